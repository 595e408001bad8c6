import { render } from 'preact';
import { apiOf, type Api } from './api';
import { App, heading, mayGoBack, type Later } from './app';
import { applyBranding } from './branding';
import type { Draft } from './draft';
import { flowOf, type Flow } from './flow/effects';
import type { Deed } from './flow/events';
import { isPassing, Refusal } from './flow/refusals';
import { sessionOfOutcome } from './flow/kept';
import { lastOf, sessionOf, type Ended, type Host } from './flow/state';
import { MIN_RESTART_MS, type Step } from './flow/steps';
import { isStuck, viewOf, withoutLater, type View } from './flow/view';
import { frameOf, isListed } from './frame';
import { followBack, shownSession, showSession, takeLink } from './history';
import { chooseLanguage, nameShop, t } from './i18n';
import { loadPart } from './load_part';
import { recall, recallEnd, remember } from './memory';
import type { Actions } from './screen_props';
import { nameOf } from './session';
import { hush, onSpeech } from './speech';
import type { Session, Side } from './types';

const topLevel = !location.pathname.startsWith('/embed');
const fragment = new URLSearchParams(topLevel ? takeLink() : location.hash.slice(1));
// A second link that is pasted into the same tab changes the fragment alone, and no browser loads the page for that.
addEventListener('hashchange', () => {
  if (topLevel && new URLSearchParams(location.hash.slice(1)).has('publishable_key')) location.reload();
});

const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="penstock-${name}"]`)?.content ?? '';
const root = document.getElementById('root') as HTMLElement;
let theme = fragment.get('theme') ?? 'auto';

const api: Api = apiOf(meta('gate-origin'), () => lastOf(flow.state).token?.value ?? '');
const parentOrigin = fragment.get('parent_origin') ?? '';
const sideOf = (text: string | null): Side | null =>
  text === 'on_ramp' || text === 'off_ramp' || text === 'swap' ? text : null;
const speak = (first: string | null) => chooseLanguage([first, ...navigator.languages]);

/** The pages that the server lets frame this one. Without a list, `frame-ancestors` alone decides. */
const origins = meta('origins').split(/\s+/).filter(Boolean);
const isFramed =
  !topLevel && parent !== window && parentOrigin !== '' && (origins.length === 0 || isListed(origins, parentOrigin));

const frame = !isFramed
  ? null
  : frameOf(parentOrigin, {
      token(message) {
        theme = message.theme;
        const isFirst = lastOf(flow.state).token === null;
        const spoken = isFirst ? speak(message.locale ?? fragment.get('locale')) : Promise.resolve();
        const { can_deposit: canDeposit, can_deposit_memo: canDepositMemo } = message;
        const host = { lockedSide: sideOf(message.flow), canDeposit, canDepositMemo };
        paint();
        void spoken.then(() => {
          if (message.unavailable_reason) end('unavailable', message.unavailable_reason);
          else void start(message.embed_token, host);
        });
      },
      theme(name) {
        theme = name;
        paint();
      },
      deposited: (requestId, txHash) => void flow.send({ type: 'deposited', requestId, txHash }),
    });

const flow: Flow = flowOf({
  api,
  frame,
  draw,
  // A frame still has its fragment, and the page around it sends the token again.
  restart: () => (topLevel ? void startCheckout() : location.reload()),
  renew() {
    if (!topLevel || !fragment.get('publishable_key') || !fragment.get('client_secret')) return false;
    void startCheckout();
    return true;
  },
});

const fieldsOf = (form: HTMLFormElement) => Object.fromEntries(new FormData(form)) as Partial<Draft>;
const act: Actions = {
  do: (deed: Deed) => void flow.send(deed),
  read: (form) => void flow.send({ type: 'read', fields: fieldsOf(form) }),
  keep: (form) => flow.keep(fieldsOf(form)),
  async edit(form) {
    await flow.send({ type: 'edit', fields: fieldsOf(form) });
    const view = viewNow();
    return 'faults' in view ? view.faults : {};
  },
};
const viewNow = (): View => viewOf(flow.state, flow.now());
const start = (token: string, host?: Partial<Host>) => flow.send({ type: 'token', token, host });
const end = (step: Ended['step'], code: string) => void flow.send({ type: 'end', step, code });
const showEnd = (session: Session) => void flow.send({ type: 'ended', session });

let later: Later = null;
void loadPart({
  load: () => import('./later'),
  mayReload: () => isStuck(viewNow()),
  reload: () => location.reload(),
}).then((part) => {
  later = part;
  // Without a session the language may not be loaded yet.
  if (sessionOf(flow.state)) draw();
});

let lastStep: Step = 'loading';
/** True until a screen follows the loading of the session. */
let isFirst = true;

function titleOf(view: View): string {
  const { session } = view;
  const title = session ? t('docTitle', { title: heading(view, later) }) : heading(view, later);
  return (session?.mode ?? meta('mode')) === 'test' ? t('docTest', { title }) : title;
}

function paint(): void {
  applyBranding(sessionOf(flow.state)?.branding, theme);
}

const goBack = () => act.do({ type: 'back' });
const keepBack = topLevel
  ? followBack(
      goBack,
      () => mayGoBack(viewNow()) && viewNow().work === null,
      () => sessionOf(flow.state)?.id,
    )
  : () => undefined;

function draw(): void {
  const wanted = viewNow();
  const view = later ? wanted : withoutLater(wanted);
  const { step } = view;
  nameShop(nameOf(view.session));
  paint();
  if (step !== lastStep) hush();
  render(<App view={view} act={act} mode={meta('mode')} later={later} />, root);
  document.title = titleOf(view);
  if (wanted.step === 'loading') isFirst = true;
  if (step !== lastStep) {
    // The first screen of a frame leaves the focus in the page around it.
    if (step !== 'loading' && !(isFirst && frame))
      document.getElementById('heading')?.focus({ preventScroll: frame !== null });
    lastStep = step;
    if (step !== 'loading') {
      isFirst = false;
      keepBack(mayGoBack(view));
      frame?.post({ type: 'step', step });
    }
  }
}

onSpeech(draw);
let starting = false;

/** Bootstraps a top-level checkout, or continues with the token of before the reload. */
async function startCheckout(): Promise<void> {
  if (starting) return;
  starting = true;
  await bootstrap();
  starting = false;
}

async function bootstrap(): Promise<unknown> {
  const key = fragment.get('publishable_key');
  const secret = fragment.get('client_secret');
  const shown = shownSession();
  if (!key && !fragment.has('client_secret') && shown) return resume(shown);
  if (!key || !secret) return end('unavailable', 'link_incomplete');
  try {
    const { available, unavailable_reason: reason, embed_token: token, session_id } = await api.bootstrap(key, secret);
    if (available === false) return end('unavailable', reason ?? 'unavailable');
    showSession(session_id ?? '');
    remember(`token.${session_id ?? ''}`, token);
    return await start(token);
  } catch (error) {
    if (error instanceof Refusal && error.code === 'session_not_open') return tellOutcome(key, secret);
    if (isPassing(error)) return pauseAfter(error);
    if (!(error instanceof Refusal)) throw error;
    // A key that was good before has been withdrawn. One that never was is part of a broken link.
    const isOver = error.status === 401 && sessionOf(flow.state) !== null;
    return end(isOver ? 'over' : 'unavailable', error.code);
  }
}

function pauseAfter(error: unknown): unknown {
  const retryAfter = error instanceof Refusal ? error.retryAfter : null;
  // The flow itself starts again as long as it knows no session.
  if (retryAfter !== null && sessionOf(flow.state))
    setTimeout(() => void startCheckout(), Math.max(MIN_RESTART_MS, retryAfter * 1000));
  return flow.send({ type: 'offline', retryAfter });
}

/** Goes on where this entry of the history has been before a reload. */
function resume(shown: string): unknown {
  const token = recall(`token.${shown}`);
  if (token) return start(token);
  const session = recallEnd(shown);
  return session ? showEnd(session) : end('over', 'unauthorized');
}

/** The session has ended: the page says how. The tab that paid knows the whole address. */
async function tellOutcome(key: string, secret: string): Promise<unknown> {
  try {
    const outcome = await api.outcome(key, secret);
    showSession(outcome.session_id);
    const told = sessionOfOutcome(outcome);
    return showEnd({ ...told, wallet_address: recallEnd(outcome.session_id)?.wallet_address ?? told.wallet_address });
  } catch (error) {
    if (isPassing(error)) return pauseAfter(error);
    if (!(error instanceof Refusal)) throw error;
    return end('over', 'session_not_open');
  }
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
// The field in use stays in sight with its alert, also above a keyboard that opens.
const keepInSight = () => document.activeElement?.closest('.field')?.scrollIntoView({ block: 'nearest' });
addEventListener('resize', keepInSight);
new MutationObserver(keepInSight).observe(root, { childList: true, subtree: true });
paint();
if (frame) {
  document.documentElement.dataset['frame'] = '';
  frame.watchHeight(root);
  frame.post({ type: 'ready' });
  draw();
} else if (topLevel) {
  void speak(fragment.get('locale')).then(() => {
    draw();
    return startCheckout();
  });
} else {
  void speak(null).then(() => end('unavailable', 'not_embedded'));
}
