import type { Check, Draft } from '../draft';
import type { MessageKey } from '../i18n';
import { dueOf, type Due } from '../session';
import type {
  Answers,
  Indicative,
  Options,
  Payment,
  PaymentRequest,
  Quote,
  QuoteRequest,
  Session,
  Side,
  SideOptions,
  VerificationTask,
} from '../types';
import { MAX_IDLE_RENEWALS, READ_CHANGE_MS, type Step } from './steps';

/** The time of an event in milliseconds: by the clock of the device, which can be set, and by one that only runs on. */
export interface Now {
  readonly clock: number;
  readonly uptime: number;
}

/** What the page around the frame has decided. A top-level checkout has the defaults. */
export interface Host {
  readonly isFramed: boolean;
  readonly lockedSide: Side | null;
  /** The partner's wallet can send the crypto of a payment. */
  readonly canDeposit: boolean;
  /** The page's SDK hands the memo of a payment to the wallet. An older one drops it. */
  readonly canDepositMemo: boolean;
}

/** What follows when the session has been read: a fresh price, or the payment whose outcome is unknown. */
export type Follow = 'nothing' | 'price' | 'payment';

/** One call, or several in a row. One task runs at a time. */
export type Task =
  | { readonly do: 'load' }
  | { readonly do: 'refresh'; readonly follow: Follow; readonly because: string | null }
  | { readonly do: 'quote'; readonly body: QuoteRequest; readonly because: string | null }
  | { readonly do: 'pay'; readonly body: PaymentRequest; readonly isRepeated: boolean }
  | { readonly do: 'verify'; readonly answers: Answers | null }
  /** Tells the sandbox's rail that the money of a payment was sent. */
  | { readonly do: 'pretend'; readonly payment: string }
  | { readonly do: 'cancel'; readonly payment: string | null };

export interface Running {
  readonly task: Task;
  /** By `uptime`. */
  readonly since: number;
  /** The customer has pressed the button that pays while this task renews the price. The same price is paid as soon as it has arrived. */
  readonly isPressed: boolean;
}

/** A refusal that the customer reads about. */
export interface Trouble {
  readonly code: string;
  readonly text: MessageKey;
  /** Empty if no request was refused. */
  readonly requestId: string;
  /** When the task is repeated by itself, by `uptime`. */
  readonly retryAt: number | null;
  /** What `retry` repeats. Without it, `retry` asks for a price. */
  readonly task: Task | null;
}

export interface Price {
  readonly quote: Quote;
  /** The price before the last change, while the customer has not accepted the new one. */
  readonly before: Quote | null;
  /** By `uptime`. */
  readonly changedAt: number;
}

/** Where the customer is as long as the session shows no payment. */
export type Place =
  | { readonly step: 'choose' }
  | { readonly step: 'details' }
  | { readonly step: 'price'; readonly price: Price | null }
  | { readonly step: 'verification'; readonly price: Price | null; readonly task: VerificationTask | null }
  | { readonly step: 'confirm'; readonly price: Price };

/** What this page knows about the payments of the session. */
interface Payments {
  /** The payment that failed or was cancelled, and that the customer has left. */
  readonly dismissed: string | null;
  /** The payment and the status that the partner's page has heard of last. */
  readonly announced: string;
  /** The payment that this page made, with its own draft. */
  readonly own: string | null;
  /** The payment that this page made under a key of its own. Only for that one the partner's wallet is asked, and once. */
  readonly forWallet: string | null;
  /** What was sent for a payment whose outcome is unknown. */
  readonly unsettled: PaymentRequest | null;
  /** The payment whose money has been sent, as the customer says. */
  readonly sent: string | null;
  /** The customer looks at the instructions of a payment once more. */
  readonly looksAgain: boolean;
  readonly deposit: 'none' | 'asked' | 'returned';
}

/** The newest token. */
export interface Token {
  readonly value: string;
  /** Since when the page has it, by `uptime`. */
  readonly since: number;
  /** The gate takes it no longer, and another one is on its way. */
  readonly isLost: boolean;
}

interface Common {
  readonly host: Host;
  readonly token: Token | null;
  readonly running: Running | null;
  readonly isOffline: boolean;
}

/** The session has not been read yet. */
export interface Waiting extends Common {
  readonly is: 'waiting';
  /** When the page starts again by itself, by `uptime`: the gate has answered that it is busy. */
  readonly retryAt: number | null;
}

/** The session is known. */
export interface Live extends Common, Payments {
  readonly is: 'live';
  readonly session: Session;
  readonly options: Options;
  /** What the gate has said about further pairs, by asset and network: null while it is asked, empty after a failure. */
  readonly estimates: Readonly<Record<string, readonly SideOptions[] | null>>;
  /** The clock of the server minus the clock of the device, in milliseconds. */
  readonly offset: number;
  readonly draft: Draft;
  /** What is known about the address that was typed last. */
  readonly check: Check | null;
  readonly place: Place;
  readonly trouble: Trouble | null;
  /** A payment was cancelled: `leaving` until the running task has ended, `left` until the customer goes on. */
  readonly cancelled: 'no' | 'leaving' | 'left';
  /** How often the price was renewed by itself since the customer touched the page. */
  readonly idleRenewals: number;
  /** When a price was asked for last, by `uptime`. */
  readonly askedAt: number;
}

/** Nothing can go on in this page, unless a new token arrives in place of one that is no longer valid. */
export interface Ended {
  readonly is: 'ended';
  readonly step: 'unavailable' | 'over';
  readonly code: string;
  readonly before: Waiting | Live;
}

export type State = Waiting | Live | Ended;

export const begun = (isFramed: boolean): Waiting => ({
  is: 'waiting',
  host: { isFramed, lockedSide: null, canDeposit: false, canDepositMemo: false },
  token: null,
  running: null,
  isOffline: false,
  retryAt: null,
});

/** The state before the end. */
export const lastOf = (state: State): Waiting | Live => (state.is === 'ended' ? state.before : state);

/** The session, as far as it is known. */
export function sessionOf(state: State): Session | null {
  const last = lastOf(state);
  return last.is === 'live' ? last.session : null;
}

/** True if the payment is one of the sandbox's rail, where no money moves. */
export const isSimulated = ({ mode, payment }: Session): boolean =>
  mode === 'test' && payment?.instructions?.['type'] === 'sandbox';

/** The sides to choose from: one if the session or the partner's page has fixed it. */
export function sidesOf(options: Options, session: Session, host: Host): Side[] {
  const offered = options.sides.filter((entry) => entry.assets.length > 0).map((entry) => entry.side);
  const fixed = session.flow ?? host.lockedSide;
  return fixed ? offered.filter((side) => side === fixed) : offered;
}

/** What is on offer for a side. */
export const entryOf = (options: Options, side: Side): SideOptions | undefined =>
  options.sides.find((entry) => entry.side === side);

/** The name of a pair in `estimates`. */
export const pairOf = ({ asset, network }: { asset: string; network: string }): string => `${asset} ${network}`;

/** The examples for the chosen pair: null while the gate is asked for them, and undefined before. */
export function estimatesOf({ options, draft, estimates }: Live): readonly Indicative[] | null | undefined {
  const [first] = entryOf(options, draft.side)?.assets.find(({ symbol }) => symbol === draft.asset)?.networks ?? [];
  // The examples of the options are for the first network of each asset.
  const sides = first?.chain === draft.network ? options.sides : estimates[pairOf(draft)];
  return sides && (sides.find(({ side }) => side === draft.side)?.indicative ?? []);
}

/** The time by the clock of the server. */
export const serverTime = (live: Live, now: Now): number => now.clock + live.offset;

export const priceAt = (place: Place): Price | null => ('price' in place ? place.price : null);

/** Whole seconds until the price ends: 0 without a price. */
export function secondsLeft(live: Live, now: Now): number {
  const price = priceAt(live.place);
  return price ? Math.max(0, Math.floor((Date.parse(price.quote.expires_at) - serverTime(live, now)) / 1000)) : 0;
}

/** False while a click could not mean the price that is shown: it ran out, or it changed a moment ago. */
export function mayPay(live: Live, now: Now): boolean {
  const price = priceAt(live.place);
  return price !== null && secondsLeft(live, now) > 0 && now.uptime - price.changedAt >= READ_CHANGE_MS;
}

/** True while a price is renewed before its end. The old one holds until then. */
export const isRenewing = (live: Live, now: Now): boolean =>
  live.running?.task.do === 'quote' && secondsLeft(live, now) > 0;

/** True if the price ran out after nobody had touched the page for a while. */
export const isOutdated = (live: Live, now: Now): boolean =>
  live.idleRenewals >= MAX_IDLE_RENEWALS && secondsLeft(live, now) === 0;

/** What the session and the customer have come to. The session leads, and the place of the customer follows. */
export type Stage =
  | Place
  | { readonly step: 'instructions'; readonly payment: Payment; readonly due: Due; readonly instructions: Instructions }
  | { readonly step: 'progress'; readonly payment: Payment; readonly due: Due }
  | { readonly step: 'failed'; readonly payment: Payment }
  | { readonly step: 'done'; readonly payment: Payment | null }
  | { readonly step: 'over'; readonly code: 'session_cancelled' | 'session_expired' };

export type Instructions = NonNullable<Payment['instructions']>;

export function stageOf(live: Live, now: Now): Stage {
  const { session, dismissed, sent, looksAgain, deposit, place } = live;
  const { payment, status } = session;
  if (status === 'completed' || payment?.status === 'completed') return { step: 'done', payment };
  if (payment?.status === 'processing') {
    const due = dueOf(payment, serverTime(live, now));
    const { instructions } = payment;
    const isAsked = due === 'open' && (looksAgain || (sent !== payment.id && deposit !== 'returned'));
    return instructions && isAsked
      ? { step: 'instructions', payment, due, instructions }
      : { step: 'progress', payment, due };
  }
  if (status !== 'open')
    return { step: 'over', code: status === 'cancelled' ? 'session_cancelled' : 'session_expired' };
  return payment && payment.id !== dismissed ? { step: 'failed', payment } : place;
}

/** The screen that the state asks for. */
export function stepOf(state: State, now: Now): Step {
  if (state.is === 'ended') return state.step;
  const step = state.is === 'live' ? stageOf(state, now).step : 'loading';
  // A lost connection changes nothing about a session that has ended.
  return state.isOffline && step !== 'done' ? 'offline' : step;
}

/** True while the session can change without this page: a payment goes on, a provider verifies, or another tab pays. */
export function waits(state: State): state is Live {
  if (state.is !== 'live' || state.token?.isLost || state.running?.task.do === 'refresh') return false;
  const { session, place } = state;
  if (session.payment?.status === 'processing') return true;
  if (session.status !== 'open') return false;
  if (place.step === 'verification') {
    const { status } = session.verification;
    return status === 'pending' || (status === 'required' && place.task !== null && place.task.url !== null);
  }
  return place.step === 'price' || place.step === 'confirm';
}
