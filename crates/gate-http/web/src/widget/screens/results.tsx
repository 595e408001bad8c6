import { useEffect } from 'preact/hooks';
import { CopyButton } from '../copying';
import { accountOf } from '../draft';
import type { ViewOf } from '../flow/view';
import { crypto, knownMethod, methodName, moment, money, networkName, t, type MessageKey } from '../i18n';
import { Amount, Button, CancelLink, Picture } from '../parts';
import { payoutOf } from '../payout';
import { AddressRow, Row } from '../receipt';
import type { ScreenProps } from '../screen_props';
import { amountPaid, sentAsset } from '../session';
import { say } from '../speech';
import { rateOf, sums } from '../terms';
import type { Payment, SideOptions } from '../types';

const shortened = (text: string): string => (text.length > 18 ? `${text.slice(0, 12)}…${text.slice(-4)}` : text);

function Reference({ text }: { text: string }) {
  return (
    <div class="reference">
      <dt>{t('i_reference')}</dt>
      <dd>
        <code class="short" translate={false}>
          {shortened(text)}
        </code>
        <code class="paper" translate={false}>
          {text}
        </code>{' '}
        <CopyButton text={text} label={t('i_reference')} small />
      </dd>
    </div>
  );
}

/** The name of the payment's method. A session that has ended offers none, so that only the methods with a text of their own have a name. */
function methodOf(entry: SideOptions | undefined, { payment_method: id }: Payment): string | null {
  const method = entry?.methods.find((one) => one.id === id);
  return method ? methodName(method) : knownMethod(id ?? '');
}

export function doneTitle({ session, payment }: ViewOf<'done'>): string {
  if (!payment) return t('closedTitle');
  const [, text] = sums(payment, session.currency).get;
  return t(payment.side === 'off_ramp' ? 'doneMoney' : 'doneSent', { amount: text });
}

export function Done(props: ScreenProps<'done'>) {
  const { view } = props;
  const { session, draft, entry, payment, wallet, isOwn, isFramed, canLeave } = view;
  const title = doneTitle(view);
  useEffect(() => say(title), []);
  if (!payment)
    return (
      <>
        <div class="foot">{canLeave && <Button {...props} action="return" />}</div>
      </>
    );
  const isSale = payment.side === 'off_ramp';
  const { give } = sums(payment, session.currency);
  const method = methodOf(entry, payment);
  const merchant = session.merchant.legal_name;
  const iban = isOwn ? payoutOf(accountOf(draft, entry), draft)['iban'] : undefined;
  return (
    <>
      <p class="lead">
        {isSale
          ? iban
            ? t('doneAccount', { account: `${iban.slice(0, 4)}\u00a0••••\u00a0${iban.slice(-4)}` })
            : t('doneAnyAccount')
          : t('doneWallet', { network: networkName(payment.network) })}
      </p>
      <dl class="box rows">
        {!isSale && wallet && <AddressRow label={t('toWallet')} text={wallet} />}
        <Row label={t(payment.side === 'on_ramp' ? 'youPaid' : 'youSent')}>
          <Amount value={give[0]}>{give[1]}</Amount>
        </Row>
        <Row label={t('feesIncluded')}>
          <Amount value={payment.fees.total}>{money(payment.fees.total, payment.fees.currency)}</Amount>
        </Row>
        <Row label={t('rate')}>
          <Amount value={payment.exchange_rate}>{rateOf(payment, session.currency)}</Amount>
        </Row>
        {method && <Row label={t(isSale ? 'payoutMethod' : 'paidWith')}>{method}</Row>}
        <Row label={t('date')}>
          {/* The long style names the time zone. */}
          <time>{moment(payment.created_at, { dateStyle: 'medium', timeStyle: 'long' })}</time>
        </Row>
        {merchant && <Row label={t('merchant')}>{merchant}</Row>}
        {payment.tx_refid && <Reference text={payment.tx_refid} />}
        <div class="paper">
          <dt>{t('payment')}</dt>
          <dd>
            <code translate={false}>{session.id}</code>
          </dd>
        </div>
      </dl>
      <button type="button" class="link" onClick={() => print()}>
        {t('saveReceipt')}
      </button>
      <div class="foot">
        {canLeave && <Button {...props} action="return" />}
        <p class="help">
          {payment.tx_refid && t('keepReference')} {t(isFramed ? 'mayReturn' : 'mayClose')}
        </p>
      </div>
    </>
  );
}

/** The reasons that have a sentence of their own, under the same name. */
const REASONS = ['amount_differs', 'expired', 'returned', 'refused'] as const;

/** Title and sentence of a failed payment. */
export function failureOf(payment: Payment): [MessageKey, MessageKey] {
  const reason = REASONS.find((one) => one === payment.failure_reason);
  if (reason) return [reason === 'refused' ? 'declinedTitle' : 'failedTitle', reason];
  if (payment.failure_code !== 'provider_declined') return ['failedTitle', 'failedText'];
  return [
    'declinedTitle',
    payment.side !== 'on_ramp' ? 'failedText' : payment.payment_method === 'card' ? 'declinedCard' : 'declinedBank',
  ];
}

export function Failed(props: ScreenProps<'failed'>) {
  const { view, act } = props;
  const { session, entry, payment } = view;
  const [title, text] = failureOf(payment);
  useEffect(() => say(`${t(title)}. ${t(text)}`), []);
  const method = methodOf(entry, payment);
  const isCrypto = payment.side !== 'on_ramp';
  const asset = sentAsset(payment);
  return (
    <>
      <p class="lead strong" role="alert" data-code={payment.failure_code ?? 'payment_failed'}>
        {t(text)}
      </p>
      <dl class="box rows">
        <Row label={t('i_amount')}>
          <Amount value={payment.fiat_amount}>{money(payment.fiat_amount, session.currency)}</Amount>
        </Row>
        {isCrypto && (
          <Row label={t('youSend')}>
            <Amount value={amountPaid(payment)}>{crypto(amountPaid(payment), asset)}</Amount>
          </Row>
        )}
        {payment.side === 'on_ramp' && method && <Row label={t('triedWith')}>{method}</Row>}
        <Reference text={payment.id} />
      </dl>
      <p class="info">
        <Picture icon="info" />
        <span>{t(isCrypto ? 'failedHelpCrypto' : 'failedHelp', { asset })}</span>
      </p>
      <div class="foot">
        <Button {...props} action="retry" />
        <Button
          {...props}
          action="back"
          kind="second"
          label={t('otherWay')}
          run={() => act.do({ type: 'choose_again' })}
        />
        <CancelLink {...props} />
      </div>
    </>
  );
}
