/**
 * Makes the Back button of the browser do what "Back" of the page does. One extra entry of the history stands for all steps that
 * have a way back. The entry stays when it is no longer wanted, since to remove it would race with a reload; the press that leaves it
 * then leaves the page too.
 */
export function followBack(goBack: () => void, mayGoBack: () => boolean): (isWanted: boolean) => void {
  const MARK = 'step';
  let hasEntry = history.state === MARK;
  let wanted = false;
  const sync = () => {
    if (!wanted || hasEntry) return;
    hasEntry = true;
    history.pushState(MARK, '');
  };
  addEventListener('popstate', () => {
    const hadEntry = hasEntry;
    hasEntry = history.state === MARK;
    // A new fragment is another link, not a way back.
    const isBack = hadEntry && !hasEntry && !location.hash;
    if (isBack && mayGoBack()) goBack();
    else if (isBack && !wanted) history.back();
    sync();
  });
  return (isWanted) => {
    wanted = isWanted;
    sync();
  };
}
