import type { ComponentChildren } from 'preact';
import { isZero, sum } from './decimals';
import { money, networkName, t } from './i18n';
import { Amount, Groups } from './parts';
import { sums } from './terms';
import type { Quote } from './types';

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
