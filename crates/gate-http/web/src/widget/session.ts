import { sum } from './decimals';
import type { Payment, Quote, Session } from './types';

/** What is still missing of a payment of which something has arrived: below zero if more has arrived. */
export const missingOf = ({ received }: Payment): string | null =>
  received && sum(received.required, received.amount, -1);

/** The crypto that the customer sends in a sale or a swap. */
export const sentAsset = (payment: Payment): string => payment.source_asset ?? payment.asset;

/** What the customer pays by the terms: fiat in a purchase, and crypto otherwise. */
export const amountPaid = ({ side, fiat_amount, source_amount, crypto_amount }: Payment): string =>
  side === 'on_ramp' ? fiat_amount : (source_amount ?? crypto_amount);

/** How much the customer still has to send: all of it, or what is missing. */
export const amountDue = (payment: Payment): string => missingOf(payment) ?? amountPaid(payment);

export type Due = 'open' | 'arrived' | 'late';

/** What the customer can still do for a payment: nothing once the whole amount has arrived, and nothing after the deadline. */
export function dueOf(payment: Payment, now: number): Due {
  const missing = missingOf(payment);
  if (missing !== null && Number(missing) <= 0) return 'arrived';
  return payment.pay_until !== null && Date.parse(payment.pay_until) <= now ? 'late' : 'open';
}

/** Where a top-level checkout goes back to, with the session's id. */
export function returnAddress(session: Session | null, completed: boolean): string | null {
  const address = completed ? session?.return_url : (session?.cancel_url ?? session?.return_url);
  return session && address && isWeb(address) ? withSession(address, session.id) : null;
}

function isWeb(address: string): boolean {
  try {
    return /^https?:$/.test(new URL(address).protocol);
  } catch {
    return false;
  }
}

/**
 * The shop's address with the session's id in its query. The rest stays as the shop wrote it, which may have signed it or encode it in
 * its own way. Only an earlier id is replaced.
 */
function withSession(address: string, id: string): string {
  const [, page = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(.*)$/s.exec(address) ?? [];
  const isId = (pair: string) => pair.split('=', 1)[0] === 'gate_session_id';
  const pairs = query ? query.split('&') : [];
  const earlier = pairs.findIndex(isId);
  const place = earlier < 0 ? pairs.length : earlier;
  pairs[place] = `gate_session_id=${id}`;
  const kept = pairs.filter((pair, at) => at === place || !isId(pair));
  return `${page}?${kept.join('&')}${fragment}`;
}

/** The name of the shop, or else the host of its page. */
export function nameOf(session: Session | null): string {
  const name = session?.branding.brand_name;
  if (name) return name;
  const address = returnAddress(session, true) ?? returnAddress(session, false);
  return address ? new URL(address).hostname : '';
}

/** Everything about a price that a user can see. */
export const priceOf = (quote: Quote) => [
  quote.fiat_amount,
  quote.crypto_amount,
  quote.source_amount,
  quote.exchange_rate,
  quote.fees.total,
];
