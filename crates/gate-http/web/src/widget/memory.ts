import type { Keeping, Kept } from './flow/kept';
import type { Session } from './types';

/**
 * What outlives a reload, by session, because the widgets of a tab share its storage: the token, the key of the payment's intent, what the
 * customer chose and typed, and a session that has ended.
 */
export type Name = `${'token' | 'intent' | 'draft' | 'end'}.${string}`;
/** Blocked storage falls back to memory. */
const kept = new Map<string, string>();
/** The key that this page made itself. A key that it found in the storage may have paid before the page was loaded. */
let made: string | null = null;

export function recall(name: Name): string | null {
  try {
    return sessionStorage.getItem(`penstock.${name}`) ?? kept.get(name) ?? null;
  } catch {
    return kept.get(name) ?? null;
  }
}

export function remember(name: Name, value: string | null): void {
  if (value === null) {
    kept.delete(name);
  } else {
    kept.set(name, value);
  }
  try {
    if (value === null) {
      sessionStorage.removeItem(`penstock.${name}`);
    } else {
      sessionStorage.setItem(`penstock.${name}`, value);
    }
  } catch {
    // The value stays in memory, and the server's rule of one payment per session still holds.
  }
}

const read = <T>(name: Name): T | null => {
  try {
    return JSON.parse(recall(name) ?? 'null') as T | null;
  } catch {
    return null;
  }
};

/** What the customer chose and typed in this session before a reload. */
export const recallDraft = (session: string): Kept | null => read<Kept>(`draft.${session}`);

/** The session as this tab has seen it end, with the whole address. */
export const recallEnd = (session: string): Session | null => read<Session>(`end.${session}`);

/** Keeps either of the two, and forgets the draft of a session that has ended. */
export function keep({ session, draft, end }: Keeping): void {
  remember(`draft.${session}`, draft && JSON.stringify(draft));
  if (end) remember(`end.${session}`, JSON.stringify(end));
}

const intentOf = (session: string): Name => `intent.${session}`;

/**
 * Returns the key of the session's current intent, or makes one.
 *
 * A key made after an earlier payment begins with the id of that payment, so that a reload can tell whose outcome the session shows.
 */
export function intentKey(session: string, earlier: string | null): string {
  let key = recall(intentOf(session));
  if (!key) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    key = earlier ? `${earlier}.${random}` : random;
    made = key;
    remember(intentOf(session), key);
  }
  return key;
}

/** Returns whether this page made the key, so that no earlier page can have paid with it. */
export const isOwnKey = (key: string): boolean => key === made;

/** Forgets the session's intent, whose outcome is known. */
export const forgetIntent = (session: string): void => remember(intentOf(session), null);

/** Forgets the session's intent if this payment is its outcome, and returns whether it is. An earlier payment is not. */
export function settleIntent(session: string, payment: string): boolean {
  if (recall(intentOf(session))?.startsWith(`${payment}.`)) return false;
  forgetIntent(session);
  return true;
}
