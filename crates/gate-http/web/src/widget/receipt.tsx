import type { ComponentChildren } from 'preact';
import { isZero, sum } from './decimals';
import { crypto, money, networkName, t } from './i18n';
import { Amount, Groups } from './parts';
import type { Priced, Quote } from './types';

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
  if (side === 'swap') return `1 ${source} = ${crypto(rate, asset)}`;
  return side === 'on_ramp'
    ? `${money('1', currency, { minimumFractionDigits: 0 })} = ${crypto(rate, asset)}`
    : `1 ${asset} = ${money(rate, currency, { maximumFractionDigits: 10 })}`;
}

export function Row({
  label,
  children,
  wide,
  big,
}: {
  label: string;
  children: ComponentChildren;
  wide?: boolean;
  big?: boolean;
}) {
  return (
    <div class={wide ? 'wide' : big ? 'big' : undefined}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export const AddressRow = ({ label, text }: { label: string; text: string }) => (
  <Row label={label} wide>
    <Groups text={text} />
  </Row>
);

/** Every fee is a line, and the lines add up to the total. */
export function Receipt({ quote }: { quote: Quote }) {
  const { fees, side, currency, network } = quote;
  const { give, get } = sums(quote, currency);
  const line = (label: string, value: string, minus = false) => (
    <Row label={label}>
      <Amount value={value}>{minus ? `−${money(value, fees.currency)}` : money(value, fees.currency)}</Amount>
    </Row>
  );
  const isSale = side !== 'on_ramp';
  const [total, text] = isSale ? get : give;
  return (
    <dl class="box receipt">
      {side === 'swap' && (
        <Row label={t('youSend')}>
          <Amount value={give[0]}>{give[1]}</Amount>
        </Row>
      )}
      {side === 'on_ramp' && line(t('exchanged', { asset: quote.asset }), sum(quote.fiat_amount, fees.total, -1))}
      {side === 'off_ramp' && line(t('worth'), sum(quote.fiat_amount, fees.total))}
      {side === 'swap' && line(t('worth'), quote.fiat_amount)}
      {line(t('serviceFee'), fees.service, isSale)}
      {!(side === 'off_ramp' && isZero(fees.network)) &&
        line(t('networkFee', { network: networkName(network) }), fees.network, isSale)}
      <div class="total">
        <dt>{t(isSale ? 'youReceive' : 'youPay')}</dt>
        <dd>
          <Amount value={total}>{text}</Amount>
        </dd>
      </div>
    </dl>
  );
}
