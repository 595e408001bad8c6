import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { ScreenProps } from './app';
import { crypto, methodName, moment, money, networkName, t, type MessageKey } from './i18n';
import { Amount, Button, CancelLink, CopyButton, Picture, shortened, type Icon } from './parts';
import { AddressRow, Row, sums } from './receipt';
import { amountPaid, sentAsset } from './session';
import { say } from './speech';

const Sign = ({ icon }: { icon: Icon }) => <Picture kind={`sign ${icon === 'good' || icon === 'bad' ? icon : 'still'}`} icon={icon} />;

function Reference({ text }: { text: string }) {
  return (
    <div class="reference">
      <dt>{t('i_reference')}</dt>
      <dd><code>{shortened(text)}</code> <CopyButton text={text} label={t('i_reference')} small /></dd>
    </div>
  );
}

export function doneTitle({ flow }: ScreenProps): string {
  const payment = flow.session?.payment;
  if (!payment || !flow.session) return t('closedTitle');
  const [, text] = sums(payment, flow.session.currency).get;
  return t(payment.side === 'off_ramp' ? 'doneMoney' : 'doneSent', { amount: text });
}

export function Done({ flow }: ScreenProps) {
  const { session, draft, payout } = flow;
  const payment = session?.payment;
  const title = doneTitle({ flow });
  useEffect(() => say(title), []);
  if (!payment || !session) return <><Sign icon="good" /><div class="foot">{flow.canLeave && <Button action="return" flow={flow} />}</div></>;
  const isSale = payment.side === 'off_ramp';
  const { give } = sums(payment, session.currency);
  // Another tab may have paid to another address.
  const isOwn = flow.paid === payment.id;
  const wallet = session.wallet_address ?? (isOwn ? draft?.wallet_address : null);
  const iban = isOwn ? payout['iban'] : undefined;
  return (
    <>
      <p class="lead">{isSale ? (iban ? t('doneAccount', { account: `${iban.slice(0, 4)} •••• ${iban.slice(-4)}` }) : t('doneAnyAccount')) : t('doneWallet', { network: networkName(payment.network) })}</p>
      <dl class="box rows">
        {!isSale && wallet && <AddressRow label={t('toWallet')} text={wallet} />}
        <Row label={t(payment.side === 'on_ramp' ? 'youPaid' : 'youSend')}><Amount value={give[0]}>{give[1]}</Amount></Row>
        <Row label={t('feesIncluded')}><Amount value={payment.fees.total}>{money(payment.fees.total, payment.fees.currency)}</Amount></Row>
        <Row label={t('date')}><time>{moment(payment.created_at)}</time></Row>
        {payment.tx_refid && <Reference text={payment.tx_refid} />}
      </dl>
      <div class="foot">
        {flow.canLeave && <Button action="return" flow={flow} />}
        <p class="help">{t(payment.tx_refid ? 'keepReference' : 'mayClose')}</p>
      </div>
    </>
  );
}

/** The reasons that have a sentence of their own, under the same name. */
const REASONS = ['amount_differs', 'expired', 'returned', 'refused'] as const;

/** Title and sentence of a failed payment. */
export function failureOf({ flow }: ScreenProps): [MessageKey, MessageKey] {
  const payment = flow.session?.payment;
  const reason = REASONS.find((one) => one === payment?.failure_reason);
  if (reason) return [reason === 'refused' ? 'declinedTitle' : 'failedTitle', reason];
  if (payment?.failure_code !== 'provider_declined') return ['failedTitle', 'failedText'];
  return ['declinedTitle', payment.side !== 'on_ramp' ? 'failedText' : payment.payment_method === 'card' ? 'declinedCard' : 'declinedBank'];
}

export function Failed({ flow }: ScreenProps) {
  const { session, sideOptions } = flow;
  const payment = session?.payment;
  const [title, text] = failureOf({ flow });
  useEffect(() => say(`${t(title)}. ${t(text)}`), []);
  if (!payment || !session) return null;
  const method = sideOptions?.methods.find((one) => one.id === payment.payment_method);
  const isCrypto = payment.side !== 'on_ramp';
  const asset = sentAsset(payment);
  return (
    <>
      <p class="lead strong" role="alert" data-code={payment.failure_code ?? 'payment_failed'}>{t(text)}</p>
      <dl class="box rows">
        <Row label={t('i_amount')}><Amount value={payment.fiat_amount}>{money(payment.fiat_amount, session.currency)}</Amount></Row>
        {isCrypto && <Row label={t('youSend')}><Amount value={amountPaid(payment)}>{crypto(amountPaid(payment), asset)}</Amount></Row>}
        {payment.side === 'on_ramp' && method && <Row label={t('paidWith')}>{methodName(method)}</Row>}
        <Reference text={payment.id} />
      </dl>
      <p class="info"><Picture icon="info" /><span>{t(isCrypto ? 'failedHelpCrypto' : 'failedHelp', { asset })}</span></p>
      <div class="foot">
        <Button action="retry" flow={flow} />
        <Button action="back" flow={flow} kind="second" label={t('otherWay')} run={() => flow.chooseAgain()} />
        <CancelLink flow={flow} />
      </div>
    </>
  );
}

/** A screen that ends the flow or pauses it: a sentence, and what the user can do. */
function Ending({ flow, children, code, retry }: ScreenProps & { children: ComponentChildren; code: string; retry?: boolean }) {
  return (
    <>
      <p class="lead" role="alert" data-code={code}>{children}</p>
      <div class="foot">
        {retry && <Button action="retry" flow={flow} label={t('tryNow')} />}
        {!retry && flow.canLeave && <Button action="return" flow={flow} />}
      </div>
    </>
  );
}

export const isBrokenLink = (code: string | undefined): boolean => /^(client_secret_invalid|link_incomplete|unauthorized|(test|live)_key_on_.*)$/.test(code ?? '');

export function Unavailable({ flow }: ScreenProps) {
  const code = flow.dead?.code ?? 'unavailable';
  const payment = flow.session?.payment;
  return <Ending flow={flow} code={code}>{payment ? t('keepAndAsk', { reference: payment.id }) : t(isBrokenLink(code) ? 'brokenLink' : 'unavailableText')}</Ending>;
}

export function overTitle({ flow }: ScreenProps): MessageKey {
  if (flow.dead) return flow.dead.code === 'unauthorized' ? 'tokenTitle' : 'closedTitle';
  const status = flow.session?.status;
  return status === 'cancelled' ? 'cancelledTitle' : status === 'expired' ? 'expiredTitle' : 'closedTitle';
}

/** Without the session the page cannot know whether it was paid, so it never says to start again. */
export function Over({ flow }: ScreenProps) {
  const { dead, session } = flow;
  if (dead) return <Ending flow={flow} code={dead.code}>{t(dead.code === 'unauthorized' ? 'tokenText' : 'closedText')}</Ending>;
  const isCancelled = session?.status === 'cancelled';
  const payment = session?.payment;
  const text = payment ? t('keepAndAsk', { reference: payment.id }) : t(isCancelled ? 'nothingPaid' : 'startAgain');
  return <Ending flow={flow} code={isCancelled ? 'session_cancelled' : 'session_expired'}>{text}</Ending>;
}

/** The last screen stays in sight, but nothing in it can be pressed, whatever it draws while it waits. */
function withoutActions(last: HTMLElement | null): void {
  if (!last) return;
  const strip = () => last.querySelectorAll('[data-action]').forEach((button) => button.removeAttribute('data-action'));
  strip();
  new MutationObserver(strip).observe(last, { childList: true, subtree: true, attributeFilter: ['data-action'] });
}

export function Offline({ flow, children }: ScreenProps & { children: ComponentChildren }) {
  return (
    <>
      <Ending flow={flow} code="offline" retry>{t(flow.isUnsettled ? 'checkingText' : 'offlineText')}</Ending>
      <div class="last" inert aria-hidden="true" ref={withoutActions}>{children}</div>
    </>
  );
}

export const EndSign = ({ step }: { step: string }) => {
  const icon = ({ done: 'good', failed: 'bad', over: 'clock', unavailable: 'still', offline: 'offline' } as Record<string, Icon>)[step];
  return icon ? <Sign icon={icon} /> : null;
};
