import type { Misfit } from '../address_checks';
import type { Draft } from '../draft';
import type { Answers, Network, Options, Quote, Session, Side, VerificationTask } from '../types';
import type { Kept } from './kept';
import type { Message } from './messages';
import type { NoAnswer, Refusal } from './refusals';
import type { Ended, Host, State, Task } from './state';

/** What the customer does. */
export type Deed =
  | { type: 'choose_side'; side: Side }
  /** What the form shows. */
  | { type: 'read'; fields: Partial<Draft> }
  /** The customer has changed the form. */
  | { type: 'edit'; fields: Partial<Draft> }
  | { type: 'continue' }
  | { type: 'back' }
  | { type: 'pay' }
  | { type: 'retry' }
  | { type: 'cancel' }
  /** Goes back to the shop. */
  | { type: 'return' }
  | { type: 'choose_again' }
  | { type: 'answer'; answers: Answers }
  | { type: 'touch' };

/** What the browser, the page around the frame and the gate report. */
export type Report =
  /** `host` is what the page around the frame has decided, if there is one. */
  | { type: 'token'; token: string; host?: Partial<Host> | undefined }
  /** Nothing can go on. */
  | { type: 'end'; step: Ended['step']; code: string }
  /** `retryAfter` is for a gate that was reached and is busy, in seconds. */
  | { type: 'offline'; retryAfter?: number | null }
  | { type: 'online' }
  /** The browser shows a page that it had kept. */
  | { type: 'shown_again' }
  | { type: 'tick'; isVisible: boolean }
  /** The partner's wallet has sent the crypto, or has not if there is no hash. */
  | { type: 'deposited'; requestId: string; txHash: string | null }
  /** `kept` is what the customer chose and typed before a reload. */
  | { type: 'loaded'; options: Options; session: Session; settles: boolean; kept: Kept | null }
  /** The session ended before this page was loaded. */
  | { type: 'ended'; session: Session }
  /** `settles` is true if the payment of the session is the outcome of this page's intent. */
  | { type: 'session'; session: Session; settles: boolean }
  | { type: 'polled'; session: Session }
  | { type: 'poll_failed'; error: Refusal | NoAnswer; failures: number }
  | { type: 'checked'; address: string; chain: string; misfit: Misfit | null }
  /** What the gate offers for a pair. Null if the call failed. */
  | { type: 'estimated'; asset: string; network: string; options: Options | null }
  | { type: 'quoted'; quote: Quote }
  | { type: 'verification'; task: VerificationTask }
  /** The gate has answered with the payment. `isOwn` is false if an earlier page may have made it. */
  | { type: 'paid'; payment: string; isOwn: boolean }
  /** The gate has refused the payment for certain. */
  | { type: 'not_paid' }
  /** Without an error the task has done all that it was for. */
  | { type: 'task_ended'; error: Refusal | NoAnswer | null };

export type Event = Deed | Report;

export type Effect =
  | { do: 'run'; task: Task }
  /** Finds out why an address does not fit its network, if it does not. */
  | { do: 'check'; address: string; network: Network; others: Network[] }
  /** Asks for the examples of a pair. */
  | { do: 'estimate'; asset: string; network: string }
  /** Starts again without a token, after the call for the first one was lost. */
  | { do: 'restart' }
  /** Forgets the token, and gets another one if `mayRenew` and the client secret is there. Otherwise the flow is over. */
  | { do: 'lose_token'; mayRenew: boolean }
  | { do: 'forget_intent'; session: string }
  /** Finds out whether the session settles this page's intent, and reports `session`. */
  | { do: 'take'; session: Session }
  | { do: 'post'; message: Message }
  | { do: 'go'; address: string }
  /** Shows the note about the changed price to who cannot have read it. */
  | { do: 'focus_change' };

export interface Next {
  readonly state: State;
  readonly effects: readonly Effect[];
}
