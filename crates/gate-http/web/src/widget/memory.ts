/** What outlives a reload: the token and the key of the payment's intent. Blocked storage falls back to memory. */
const kept = new Map<string, string>();
/** The key that this page made itself. A key that it found in the storage may have paid before the page was loaded. */
let made: string | null = null;

export function recall(name: 'token' | 'intent'): string | null {
  try {
    return sessionStorage.getItem(`penstock.${name}`) ?? kept.get(name) ?? null;
  } catch {
    return kept.get(name) ?? null;
  }
}

export function remember(name: 'token' | 'intent', value: string | null): void {
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

/**
 * Returns the key of the current intent, or makes one.
 *
 * A key made after an earlier payment begins with the id of that payment, so that a reload can tell whose outcome the session shows.
 */
export function intentKey(earlier: string | null): string {
  let key = recall('intent');
  if (!key) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    key = earlier ? `${earlier}.${random}` : random;
    made = key;
    remember('intent', key);
  }
  return key;
}

/** Returns whether this page made the key, so that no earlier page can have paid with it. */
export const isOwnKey = (key: string): boolean => key === made;

/** Forgets the intent if this payment is its outcome, and returns whether it is. An earlier payment is not. */
export function settleIntent(payment: string): boolean {
  if (recall('intent')?.startsWith(`${payment}.`)) return false;
  remember('intent', null);
  return true;
}
