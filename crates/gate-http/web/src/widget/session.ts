import type { Quote, Session } from './types';

/** Where a top-level checkout goes back to, with the session's id. */
export function returnAddress(session: Session | null, completed: boolean): string | null {
  const address = completed ? session?.return_url : (session?.cancel_url ?? session?.return_url);
  try {
    const url = new URL(address ?? '');
    if (!/^https?:$/.test(url.protocol)) return null;
    url.searchParams.set('gate_session_id', session?.id ?? '');
    return url.href;
  } catch {
    return null;
  }
}

/** The name of the shop, or else the host of its page. */
export function nameOf(session: Session | null): string {
  const name = session?.branding.brand_name;
  if (name) return name;
  const address = returnAddress(session, true) ?? returnAddress(session, false);
  return address ? new URL(address).hostname : '';
}

/** Everything about a price that a user can see. */
export const priceOf = (quote: Quote) => [quote.fiat_amount, quote.crypto_amount, quote.source_amount, quote.exchange_rate, quote.fees.total];
