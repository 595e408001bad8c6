/** The screens, in the order of a payment, and its ends. */
export type Step =
  | 'loading'
  | 'choose'
  | 'details'
  | 'price'
  | 'verification'
  | 'confirm'
  | 'instructions'
  | 'progress'
  | 'done'
  | 'failed'
  | 'unavailable'
  | 'over'
  | 'offline';

/** The steps whose screens are no part of the first script. */
export const LATER_STEPS = ['price', 'verification', 'confirm', 'instructions', 'progress', 'done', 'failed'] as const;
export type LaterStep = (typeof LATER_STEPS)[number];

/** What the customer waits for. */
export type Work = 'loading' | 'price' | 'pay' | 'cancel';

export const RENEW_BEFORE_MS = 10_000;
/** Pause before a price that was refused is asked for again. */
export const RETRY_PRICE_MS = 15_000;
/** A customer cannot have read a changed price sooner. A click that was meant for the old one comes within this time. */
export const READ_CHANGE_MS = 1000;
/** A call that takes longer than this gets a word about it. */
export const SLOW_MS = 8000;
/** Renewals of the price without a touch by the customer. */
export const MAX_IDLE_RENEWALS = 10;
/** A token that dies again within this time is not renewed once more. */
export const MIN_TOKEN_LIFE_MS = 10_000;
export const MAX_BACKOFF_MS = 15_000;
/** The shortest pause before the page starts again after the gate was busy. */
export const MIN_RESTART_MS = 5000;
/** Failed waits for a change of the session after which the page says that it is offline. */
export const QUIET_FAILURES = 2;
export const ATTEMPTS_TO_PAY = 3;
