import type { EmbedToken } from './bootstrap.js';
import { bare } from './own.js';

/** The entries of the tab's storage begin with this. Each holds the token of one session, and never a client secret. */
const ENTRY = 'penstock_gate_token.';

/** This page's copies, for pages whose storage is denied. */
const kept = new Map<string, EmbedToken>();

/**
 * Keeps the token of a payment that has begun.
 *
 * The gate issues no further token once the payment has completed the session, but it answers reads with an earlier one. A page that
 * is loaded again after the payment therefore still learns of it.
 */
export function remember(token: EmbedToken): void {
  const { embed_token, expires_at, session_id } = token;
  if (!session_id) {
    return;
  }
  kept.set(session_id, token);
  try {
    sessionStorage.setItem(ENTRY + session_id, JSON.stringify({ embed_token, expires_at, session_id }));
  } catch {
    // The copy above serves this page until it is left.
  }
}

function read(session: string): EmbedToken | undefined {
  try {
    const stored = JSON.parse(sessionStorage.getItem(ENTRY + session) ?? 'null') as EmbedToken | null;
    if (stored) {
      return bare(stored);
    }
  } catch {
    // The storage is denied, or something else has written the entry.
  }
  return kept.get(session);
}

/** The token of this session's payment. The gate decides whether it is still valid, because the clock of the device can be wrong. */
export function recall(clientSecret: string | undefined): EmbedToken | undefined {
  const session = /^gsec_(.+)_/.exec(clientSecret ?? '')?.[1];
  const token = session ? read(session) : undefined;
  return token?.session_id === session ? token : undefined;
}
