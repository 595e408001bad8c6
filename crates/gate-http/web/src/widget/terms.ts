import { crypto, money } from './i18n';
import type { Priced } from './types';

/** What the user gives and what the user gets, as texts with their exact values. */
export function sums(priced: Priced, currency: string): { give: [string, string]; get: [string, string] } {
  const fiat: [string, string] = [priced.fiat_amount, money(priced.fiat_amount, currency)];
  const coins: [string, string] = [priced.crypto_amount, crypto(priced.crypto_amount, priced.asset)];
  if (priced.side === 'swap') {
    const source = priced.source_amount ?? '';
    return { give: [source, crypto(source, priced.source_asset ?? '')], get: coins };
  }
  return priced.side === 'on_ramp' ? { give: fiat, get: coins } : { give: coins, get: fiat };
}

/** The exchange rate is output per input: crypto per fiat on a purchase, fiat per crypto on a sale, target per source on a swap. */
export function rateOf({ side, asset, source_asset: source, exchange_rate: rate }: Priced, currency: string): string {
  if (side === 'swap') return `${crypto('1', source ?? '')} = ${crypto(rate, asset)}`;
  return side === 'on_ramp'
    ? `${money('1', currency, { minimumFractionDigits: 0 })} = ${crypto(rate, asset)}`
    : `${crypto('1', asset)} = ${money(rate, currency, { maximumFractionDigits: 10 })}`;
}
