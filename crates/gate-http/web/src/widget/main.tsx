import { render } from 'preact';
import { Api, Refusal } from './api';
import { App, heading, mayGoBack } from './app';
import { applyBranding } from './branding';
import { Flow, rememberedToken } from './flow';
import { Frame } from './frame';
import { followBack } from './history';
import { chooseLanguage, nameShop, shopName, t } from './i18n';
import { remember } from './memory';
import { isPassing } from './refusals';
import { nameOf } from './session';
import { onSpeech } from './speech';
import type { Session, Side } from './types';

const fragment = new URLSearchParams(location.hash.slice(1));
// The secret leaves the address bar before anything is painted.
const topLevel = !location.pathname.startsWith('/embed');
if (topLevel && location.hash) {
  history.replaceState(null, '', location.pathname + location.search);
}
// A second link that is pasted into the same tab changes the fragment alone, and no browser loads the page for that.
addEventListener('hashchange', () => {
  if (topLevel && new URLSearchParams(location.hash.slice(1)).has('publishable_key')) location.reload();
});

const meta = (name: string) => document.querySelector<HTMLMetaElement>(`meta[name="penstock-${name}"]`)?.content ?? '';
const root = document.getElementById('root') as HTMLElement;
let theme = fragment.get('theme') ?? 'auto';
let session: Session | null = null;

const api = new Api(meta('gate-origin'));
const parentOrigin = fragment.get('parent_origin') ?? '';
const sideOf = (text: string | null): Side | null => (text === 'on_ramp' || text === 'off_ramp' || text === 'swap' ? text : null);
const speak = (first: string | null) => chooseLanguage([first, ...navigator.languages]);

/** The pages that the server lets frame this one. Without a list, `frame-ancestors` alone decides. */
const origins = meta('origins').split(/\s+/).filter(Boolean);
const isFramed = !topLevel && parent !== window && parentOrigin !== '' && (origins.length === 0 || origins.includes(parentOrigin));

const frame = !isFramed ? null : new Frame(parentOrigin, {
  token(message) {
    theme = message.theme;
    const repaint = flow.hasToken ? Promise.resolve() : speak(message.locale ?? fragment.get('locale'));
    flow.lockedSide = sideOf(message.flow);
    flow.canDeposit = message.can_deposit;
    paint();
    void repaint.then(() => {
      if (message.unavailable_reason) flow.end('unavailable', message.unavailable_reason);
      else void flow.start(message.embed_token);
    });
  },
  theme(name) {
    theme = name;
    paint();
  },
  deposited: (requestId, txHash) => flow.wallet(requestId, txHash),
});

const flow = new Flow(
  api,
  frame,
  draw,
  (current) => {
    session = current;
    nameShop(nameOf(current));
    paint();
  },
  // A frame still has its fragment, and the page around it sends the token again.
  () => (topLevel ? startCheckout() : location.reload()),
  () => {
    if (!topLevel || !fragment.get('publishable_key') || !fragment.get('client_secret')) return false;
    void startCheckout();
    return true;
  },
);
let lastStep = '';

function paint(): void {
  applyBranding(session?.branding, theme);
}

function titleOf(): string {
  const isTest = (session?.mode ?? meta('mode')) === 'test';
  return t(isTest ? 'docTest' : 'docTitle', { title: heading(flow, flow.step), shop: shopName() });
}

const keepBack = topLevel ? followBack(() => flow.back(), () => mayGoBack(flow, flow.step) && !flow.busy) : () => undefined;

function draw(): void {
  const { step } = flow;
  render(<App flow={flow} mode={meta('mode')} step={step} />, root);
  document.title = session ? titleOf() : t('title');
  if (step !== lastStep) {
    // The first screen of a frame leaves the focus in the page around it.
    const isFirst = !lastStep || lastStep === 'loading';
    if (step !== 'loading' && !(isFirst && frame)) document.getElementById('heading')?.focus({ preventScroll: frame !== null });
    lastStep = step;
    if (step !== 'loading') {
      keepBack(mayGoBack(flow, step));
      frame?.post('step', { step });
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

async function bootstrap(): Promise<void> {
  const key = fragment.get('publishable_key');
  if (!key) {
    const token = rememberedToken();
    if (fragment.has('client_secret')) return flow.end('unavailable', 'link_incomplete');
    return token ? flow.start(token) : flow.end('over', 'unauthorized');
  }
  if (!fragment.get('client_secret')) return flow.end('unavailable', 'link_incomplete');
  try {
    const token = await api.bootstrap(key, fragment.get('client_secret'));
    if (token.available === false) return flow.end('unavailable', token.unavailable_reason ?? 'unavailable');
    remember('token', token.embed_token);
    await flow.start(token.embed_token);
  } catch (error) {
    if (isPassing(error)) flow.goOffline();
    else if (!(error instanceof Refusal)) throw error;
    // A key that was good before has been withdrawn. One that never was is part of a broken link.
    else flow.end((error.status === 401 && session) || error.code === 'session_not_open' ? 'over' : 'unavailable', error.code);
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
  frame.post('ready');
  draw();
} else if (topLevel) {
  void speak(fragment.get('locale')).then(() => {
    draw();
    return startCheckout();
  });
} else {
  void speak(null).then(() => flow.end('unavailable', 'not_embedded'));
}
