import { render } from 'preact';
import { apiOf, callerOf } from '../widget/api';
import { isPassing } from '../widget/flow/refusals';
import { recall, remember } from '../widget/memory';
import { heading, Page, type State } from './page';
import { cardOf, identity, type Decision } from './subject';
import { NO_TOKEN, troubleOf } from './trouble';

const STORED = 'token.sandbox';
const PAUSE_MS = 1000;
const PAUSE_AFTER_FAILURE_MS = 5000;

const tokenIn = (hash: string) => new URLSearchParams(hash.slice(1)).get('embed_token');

// The token leaves the address bar before anything is painted, and outlives a reload in this tab.
const given = tokenIn(location.hash);
if (location.hash) history.replaceState(history.state, '', location.pathname + location.search);
if (given) remember(STORED, given);
const token = recall(STORED) ?? '';
// A link to another payment that opens in the same tab may change the fragment alone.
addEventListener('hashchange', () => {
  if (tokenIn(location.hash)) location.reload();
});

const origin = document.querySelector<HTMLMetaElement>('meta[name="penstock-gate-origin"]')?.content ?? '';
const api = apiOf(origin, () => token);
const call = callerOf(origin, () => token);
const subject = location.pathname.endsWith('/identity')
  ? identity()
  : cardOf(new URLSearchParams(location.search).get('payment'));
const root = document.getElementById('root') as HTMLElement;

let state: State = { session: null, choice: null, isBusy: false, trouble: token ? null : NO_TOKEN };
let isFollowing = false;
/** What `retry` repeats. */
let last: Decision | null = null;

function show(change: Partial<State>): void {
  state = { ...state, ...change };
  document.title = `Test: ${heading({ state, subject })}`;
  render(
    <Page
      state={state}
      subject={subject}
      decide={(decision) => void run(decision)}
      wait={() => show({ choice: 'wait' })}
      retry={() => void run(last)}
    />,
    root,
  );
}

/** Reads the session, after the call that decides if there is a decision. */
async function run(decision: Decision | null): Promise<void> {
  if (state.isBusy) return;
  last = decision;
  show({ isBusy: true });
  try {
    if (decision && state.session) await call('POST', `test_helpers/${subject.call(state.session, decision)}`);
    show({ session: await api.session(), choice: decision ?? state.choice, isBusy: false, trouble: null });
    void follow();
  } catch (error) {
    show({ isBusy: false, trouble: troubleOf(error) });
  }
}

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Waits for changes that happen elsewhere: the payment settles by itself, or is cancelled in the checkout. */
async function follow(): Promise<void> {
  if (isFollowing) return;
  isFollowing = true;
  while (state.session && subject.standing(state.session) === 'open' && !state.trouble) {
    const { version } = state.session;
    try {
      const session = await api.session(version);
      // A decision that has read the session meanwhile has the newer one.
      if (state.session.version === version) show({ session });
      await pause(PAUSE_MS);
    } catch (error) {
      if (!isPassing(error)) show({ trouble: troubleOf(error) });
      await pause(PAUSE_AFTER_FAILURE_MS);
    }
  }
  isFollowing = false;
}

const isDark = matchMedia('(prefers-color-scheme: dark)');
const followTheme = () => (document.documentElement.dataset['theme'] = isDark.matches ? 'dark' : 'light');
isDark.addEventListener('change', followTheme);
followTheme();
show({});
if (token) void run(null);
