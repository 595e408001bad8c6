export type Step =
  | 'loading' | 'choose' | 'details' | 'price' | 'verification' | 'confirm' | 'instructions'
  | 'progress' | 'done' | 'failed' | 'unavailable' | 'over' | 'offline';

/** Steps in which the user still decides. The server's state leads in all others. */
export type DraftStep = 'choose' | 'details' | 'price' | 'verification' | 'confirm';

export interface Problem {
  code: string;
  message: string;
  requestId?: string;
  /** When the refused call is repeated by itself, by `performance.now()`. */
  retryAt?: number | undefined;
}

/** What the widget is busy with. */
export type Work = 'loading' | 'price' | 'pay' | 'cancel';

export const RENEW_BEFORE_MS = 10_000;
/** Pause before a price that was refused is asked for again. */
export const RETRY_PRICE_MS = 15_000;
/** A user cannot have read a changed price sooner. A click that was meant for the old one comes within this time. */
export const READ_CHANGE_MS = 1000;
/** A call that takes longer than this gets a word about it. */
export const SLOW_MS = 8000;
/** Renewals of the price without a touch by the user. */
export const MAX_IDLE_RENEWALS = 10;
/** A token that dies again within this time is not renewed once more. */
export const MIN_TOKEN_LIFE_MS = 10_000;
export const MAX_BACKOFF_MS = 15_000;
export const ATTEMPTS_TO_PAY = 3;
export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
