/** What an entry of the history knows: the session of the page, and whether it stands for the steps that have a way back. */
interface Entry {
  session?: string;
  isStep?: true;
  /** The fragment of the link, until its session is known. */
  link?: string;
}

const entry = (): Entry => (history.state ?? {}) as Entry;

/** The session that this entry has shown. Each entry of a tab has its own, so that Back never leads to another order. */
export const shownSession = (): string | undefined => entry().session;

export const showSession = (session: string): void =>
  history.replaceState({ ...entry(), session, link: undefined }, '');

/** Takes the link out of the address bar before anything is painted, and returns it. A reload finds it as long as no session is known. */
export function takeLink(): string {
  const link = location.hash ? location.hash.slice(1) : (entry().link ?? '');
  if (location.hash) history.replaceState({ ...entry(), link }, '', location.pathname + location.search);
  return link;
}

/**
 * Makes the Back button of the browser do what "Back" of the page does. One extra entry of the history stands for all steps that
 * have a way back. The entry stays when it is no longer wanted, since to remove it would race with a reload; the press that leaves it
 * then leaves the page too.
 */
export function followBack(
  goBack: () => void,
  mayGoBack: () => boolean,
  session: () => string | undefined,
): (isWanted: boolean) => void {
  const isStep = () => entry().isStep === true;
  let hasEntry = isStep();
  let wanted = false;
  const sync = () => {
    if (!wanted || hasEntry) return;
    hasEntry = true;
    history.pushState({ ...entry(), link: undefined, isStep: true }, '');
  };
  addEventListener('popstate', () => {
    const hadEntry = hasEntry;
    hasEntry = isStep();
    // A link that was pasted into the tab has left an entry of the order before it, whose session may not be known yet.
    const [there, here] = [entry(), session()];
    if (here && (there.link || (there.session && there.session !== here))) return location.reload();
    // A new fragment is another link, for which the page reloads.
    if (location.hash) return;
    const isBack = hadEntry && !hasEntry;
    if (isBack && mayGoBack()) goBack();
    else if (isBack && !wanted) history.back();
    sync();
  });
  return (isWanted) => {
    wanted = isWanted;
    sync();
  };
}
