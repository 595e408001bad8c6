import type { EmbedToken } from './bootstrap.js';

/** The entry of the tab's storage. It holds one token, and never a client secret. */
const ENTRY = 'penstock_gate_token';

/** This page's copy, for pages whose storage is denied. */
let latest: EmbedToken | undefined;

/**
 * Keeps the token of a payment that has begun.
 *
 * The gate issues no further token once the payment has completed the session, but it answers reads with an earlier one. A page that
 * is loaded again after the payment therefore still learns of it.
 */
export function remember(token: EmbedToken): void {
  latest = token;
  try {
    const { embed_token, expires_at, session_id } = token;
    sessionStorage.setItem(ENTRY, JSON.stringify({ embed_token, expires_at, session_id }));
  } catch {
    // The copy above serves this page until it is left.
  }
}

function read(): EmbedToken | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(ENTRY) ?? 'null') ?? latest;
  } catch {
    return latest;
  }
}

/** The token of this session's payment, while it is valid. */
export function recall(clientSecret: string | undefined): EmbedToken | undefined {
  const token = read();
  const isOfSession = token?.session_id && clientSecret?.startsWith(`gsec_${token.session_id}_`);
  return isOfSession && Date.parse(token.expires_at) > Date.now() ? token : undefined;
}
