import { checkOf, faultsOf, type Draft, type Faults } from '../draft';
import { returnAddress } from '../session';
import type { Indicative, Priced, Session, Side, SideOptions } from '../types';
import {
  entryOf,
  estimatesOf,
  isOutdated,
  isRenewing,
  isSimulated,
  lastOf,
  mayPay,
  priceAt,
  secondsLeft,
  serverTime,
  sidesOf,
  stageOf,
  stepOf,
  type Live,
  type Now,
  type Stage,
  type State,
  type Task,
  type Trouble,
  type Waiting,
} from './state';
import { walletOf } from './kept';
import { LATER_STEPS, SLOW_MS, type LaterStep, type Step, type Work } from './steps';

/** What every screen shows. */
interface Base {
  readonly session: Session | null;
  readonly draft: Draft | null;
  /** The terms of the payment, or else of the price. */
  readonly priced: Priced | null;
  /** What the customer waits for. */
  readonly work: Work | null;
  readonly isSlow: boolean;
  readonly isFramed: boolean;
  readonly canLeave: boolean;
}

/** What the screens of a session show. */
interface Open extends Base {
  readonly session: Session;
  readonly draft: Draft;
  readonly sides: readonly Side[];
  /** What is on offer for the chosen side. */
  readonly entry: SideOptions | undefined;
  readonly faults: Faults;
  /** True if the checks have found nothing wrong with the address. */
  readonly isAddressGood: boolean;
  /** What the customer receives for the chosen pair by each method. Null while the gate is asked for it. */
  readonly estimates: readonly Indicative[] | null;
  /** Whole seconds until the price ends. */
  readonly secondsLeft: number;
  readonly isOutdated: boolean;
  readonly mayPay: boolean;
  readonly trouble: Trouble | null;
  /** Until the refused call is repeated by itself. */
  readonly retryIn: number;
  readonly isCancelled: boolean;
  /** True if money may be under way: the customer or the wallet has sent it, or some has arrived. */
  readonly isSent: boolean;
  /** True if the customer may see the instructions once more. */
  readonly mayLookAgain: boolean;
  /** What the instructions of the payment ask the customer to do. */
  readonly ask: Ask;
  /** True if no money moves: the customer pretends to pay. */
  readonly isSimulated: boolean;
  readonly token: string;
  /** True if this page made the payment. */
  readonly isOwn: boolean;
  /** Where the coins of the payment went, as far as this page knows. */
  readonly wallet: string | null;
  /** By the clock of the server. */
  readonly now: number;
}

export type Ask = 'wallet' | 'redirect' | 'crypto' | 'bank';

/** One screen with what it shows. */
export type View =
  | (Base & { readonly step: 'loading' })
  | (Base & { readonly step: 'unavailable'; readonly code: string })
  | (Base & { readonly step: 'over'; readonly code: string })
  | (Base & {
      readonly step: 'offline';
      /** What the page has lost: the connection, the outcome of a payment, or a gate that is busy. */
      readonly lost: 'connection' | 'outcome' | 'gate';
      readonly last: View | null;
    })
  | (Open & Stage);

export type ViewOf<S extends Step> = Extract<View, { step: S }>;

export function viewOf(state: State, now: Now): View {
  const last = lastOf(state);
  const step = stepOf(state, now);
  const base = baseOf(last, step, now);
  if (state.is === 'ended') return { ...base, step: state.step, code: state.code };
  if (last.is === 'waiting')
    return last.isOffline
      ? { ...base, step: 'offline', lost: last.retryAt === null ? 'connection' : 'gate', last: null }
      : { ...base, step: 'loading' };
  const stage = stageOf(last, now);
  const open = { ...base, ...openOf(last, stage, now), ...stage };
  if (step !== 'offline') return open;
  const lost = last.unsettled ? 'outcome' : 'connection';
  return { ...base, step, lost, last: stage.step === 'failed' ? null : open };
}

const isLater = (view: View): view is ViewOf<LaterStep> => LATER_STEPS.some((step) => step === view.step);

/** What the page shows while the later screens are not loaded. */
export function withoutLater(view: View): View {
  if (view.step === 'offline') return { ...view, last: view.last && withoutLater(view.last) };
  return isLater(view) ? { ...view, step: 'loading' } : view;
}

/** True if the page waits for the later screens alone, and has a connection. A reload would lose what is typed into an earlier screen. */
export const isStuck = (view: View): boolean =>
  isLater(view) && view.work === null && view.trouble?.text !== 'unreachable';

function baseOf(state: Waiting | Live, step: Step, now: Now): Base {
  const {
    running,
    host: { isFramed },
  } = state;
  const live = state.is === 'live' ? state : null;
  const session = live?.session ?? null;
  return {
    session,
    draft: live?.draft ?? null,
    priced: live && pricedOf(live),
    work: live && isRenewing(live, now) ? (live.running?.isPressed ? 'pay' : null) : running && workOf(running.task),
    isSlow: running !== null && now.uptime - running.since >= SLOW_MS,
    isFramed,
    canLeave: isFramed || returnAddress(session, step === 'done') !== null,
  };
}

function pricedOf({ session: { payment }, place, dismissed }: Live): Priced | null {
  return (payment?.id === dismissed ? null : payment) ?? priceAt(place)?.quote ?? null;
}

function workOf(task: Task): Work {
  if (task.do === 'quote') return 'price';
  return task.do === 'cancel' || (task.do === 'pay' && !task.isRepeated) ? task.do : 'loading';
}

function openOf(live: Live, { step }: Stage, now: Now): Omit<Open, keyof Base> & Pick<Open, 'session' | 'draft'> {
  const { session, draft, options, host, own, sent, deposit, trouble, cancelled } = live;
  const { payment } = session;
  const entry = entryOf(options, draft.side);
  const check = checkOf(live, entry);
  const hasEnded = step === 'done' || step === 'over';
  const faults = faultsOf(live, entry);
  return {
    session,
    draft,
    sides: sidesOf(options, session, host),
    entry,
    faults,
    isAddressGood: session.wallet_address !== null || (check?.isKnown === true && !faults['wallet_address']),
    estimates: estimatesOf(live) ?? null,
    secondsLeft: secondsLeft(live, now),
    isOutdated: isOutdated(live, now),
    mayPay: mayPay(live, now),
    // A session that has ended leaves nothing to try again.
    trouble: hasEnded ? null : trouble,
    retryIn: Math.max(1, Math.ceil(((trouble?.retryAt ?? 0) - now.uptime) / 1000)),
    isCancelled: cancelled !== 'no' && !hasEnded,
    isSent: payment !== null && (sent === payment.id || deposit === 'returned' || payment.received !== null),
    mayLookAgain: payment !== null && sent === payment.id,
    ask: askOf(live),
    isSimulated: isSimulated(session),
    token: live.token?.value ?? '',
    isOwn: own === payment?.id,
    wallet: walletOf(live),
    now: serverTime(live, now),
  };
}

function askOf({ deposit, host, session }: Live): Ask {
  if (deposit === 'asked' && host.canDeposit) return 'wallet';
  const { side, instructions } = session.payment ?? {};
  if (instructions?.['type'] === 'redirect') return 'redirect';
  if (side !== 'on_ramp') return 'crypto';
  // The sandbox's rail has a type of its own. Its transfers name an account, and its cards do not.
  return isSimulated(session) && !instructions?.['account_holder'] ? 'redirect' : 'bank';
}
