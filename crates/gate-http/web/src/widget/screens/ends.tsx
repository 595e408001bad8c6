import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { accountOf } from '../draft';
import type { ViewOf } from '../flow/view';
import { crypto, methodName, moment, money, networkName, t, type MessageKey } from '../i18n';
import { Amount, Button, CancelLink, CopyButton, Picture, shortened, type Icon } from '../parts';
import { payoutOf } from '../payout';
import { AddressRow, Row, sums } from '../receipt';
import type { PartProps, ScreenProps } from '../screen_props';
import { amountPaid, sentAsset } from '../session';
import { say } from '../speech';
import type { Payment } from '../types';

const Sign = ({ icon }: { icon: Icon }) => (
  <Picture kind={`sign ${icon === 'good' || icon === 'bad' ? icon : 'still'}`} icon={icon} />
);

function Reference({ text }: { text: string }) {
  return (
    <div class="reference">
      <dt>{t('i_reference')}</dt>
      <dd>
        <code>{shortened(text)}</code> <CopyButton text={text} label={t('i_reference')} small />
      </dd>
    </div>
  );
}

export function doneTitle({ session, payment }: ViewOf<'done'>): string {
  if (!payment) return t('closedTitle');
  const [, text] = sums(payment, session.currency).get;
  return t(payment.side === 'off_ramp' ? 'doneMoney' : 'doneSent', { amount: text });
}

export function Done(props: ScreenProps<'done'>) {
  const { view } = props;
  const { session, draft, entry, payment, isOwn, canLeave } = view;
  const title = doneTitle(view);
  useEffect(() => say(title), []);
  if (!payment)
    return (
      <>
        <Sign icon="good" />
        <div class="foot">{canLeave && <Button {...props} action="return" />}</div>
      </>
    );
  const isSale = payment.side === 'off_ramp';
  const { give } = sums(payment, session.currency);
  // Another tab may have paid to another address.
  const wallet = session.wallet_address ?? (isOwn ? draft.wallet_address : null);
  const iban = isOwn ? payoutOf(accountOf(draft, entry), draft)['iban'] : undefined;
  return (
    <>
      <p class="lead">
        {isSale
          ? iban
            ? t('doneAccount', { account: `${iban.slice(0, 4)} •••• ${iban.slice(-4)}` })
            : t('doneAnyAccount')
          : t('doneWallet', { network: networkName(payment.network) })}
      </p>
      <dl class="box rows">
        {!isSale && wallet && <AddressRow label={t('toWallet')} text={wallet} />}
        <Row label={t(payment.side === 'on_ramp' ? 'youPaid' : 'youSend')}>
          <Amount value={give[0]}>{give[1]}</Amount>
        </Row>
        <Row label={t('feesIncluded')}>
          <Amount value={payment.fees.total}>{money(payment.fees.total, payment.fees.currency)}</Amount>
        </Row>
        <Row label={t('date')}>
          <time>{moment(payment.created_at)}</time>
        </Row>
        {payment.tx_refid && <Reference text={payment.tx_refid} />}
      </dl>
      <div class="foot">
        {canLeave && <Button {...props} action="return" />}
        <p class="help">{t(payment.tx_refid ? 'keepReference' : 'mayClose')}</p>
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
  const method = entry?.methods.find((one) => one.id === payment.payment_method);
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
        {payment.side === 'on_ramp' && method && <Row label={t('paidWith')}>{methodName(method)}</Row>}
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

interface EndingProps extends PartProps {
  children: ComponentChildren;
  code: string;
  retry?: boolean;
}

/** A screen that ends the flow or pauses it: a sentence, and what the customer can do. */
function Ending(props: EndingProps) {
  const { view, children, code, retry } = props;
  return (
    <>
      <p class="lead" role="alert" data-code={code}>
        {children}
      </p>
      <div class="foot">
        {retry && <Button {...props} action="retry" label={t('tryNow')} />}
        {!retry && view.canLeave && <Button {...props} action="return" />}
      </div>
    </>
  );
}

const isBrokenLink = (code: string): boolean =>
  /^(client_secret_invalid|link_incomplete|unauthorized|(test|live)_key_on_.*)$/.test(code);

export function Unavailable(props: ScreenProps<'unavailable'>) {
  const { code, session } = props.view;
  const payment = session?.payment;
  return (
    <Ending {...props} code={code}>
      {payment ? t('keepAndAsk', { reference: payment.id }) : t(isBrokenLink(code) ? 'brokenLink' : 'unavailableText')}
    </Ending>
  );
}

export function overTitle({ code, session }: ViewOf<'over'>): MessageKey {
  if (code === 'unauthorized') return 'tokenTitle';
  if (code === 'session_cancelled') return 'cancelledTitle';
  return code === 'session_expired' && session?.status === 'expired' ? 'expiredTitle' : 'closedTitle';
}

function overText({ code, session }: ViewOf<'over'>): string {
  if (code === 'unauthorized') return t('tokenText');
  if (code !== 'session_cancelled' && code !== 'session_expired') return t('closedText');
  if (session?.payment) return t('keepAndAsk', { reference: session.payment.id });
  return t(code === 'session_cancelled' ? 'nothingPaid' : 'startAgain');
}

/** Without the session the page cannot know whether it was paid, so it never says to start again. */
export const Over = (props: ScreenProps<'over'>) => (
  <Ending {...props} code={props.view.code}>
    {overText(props.view)}
  </Ending>
);

/** The last screen stays in sight, but nothing in it can be pressed, whatever it draws while it waits. */
function withoutActions(last: HTMLElement | null): void {
  if (!last) return;
  const strip = () => last.querySelectorAll('[data-action]').forEach((button) => button.removeAttribute('data-action'));
  strip();
  new MutationObserver(strip).observe(last, { childList: true, subtree: true, attributeFilter: ['data-action'] });
}

export function Offline(props: ScreenProps<'offline'> & { children: ComponentChildren }) {
  const { view, children } = props;
  return (
    <>
      <Ending {...props} code="offline" retry>
        {t(view.isUnsettled ? 'checkingText' : 'offlineText')}
      </Ending>
      <div class="last" inert aria-hidden="true" ref={withoutActions}>
        {children}
      </div>
    </>
  );
}

export const EndSign = ({ step }: { step: string }) => {
  const icon = (
    { done: 'good', failed: 'bad', over: 'clock', unavailable: 'still', offline: 'offline' } as Record<string, Icon>
  )[step];
  return icon ? <Sign icon={icon} /> : null;
};
