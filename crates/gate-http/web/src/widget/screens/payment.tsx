import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Ask, ViewOf } from '../flow/view';
import { crypto, decimal, moment, money, networkName, t, tSide, type MessageKey } from '../i18n';
import { providerLink } from '../links';
import { CopyButton } from '../copying';
import { Amount, Button, CancelLink, Groups, Note, Picture, Ring } from '../parts';
import { PaymentNotice } from '../payment_notice';
import type { ScreenProps } from '../screen_props';
import { amountDue, sentAsset } from '../session';
import { sums } from '../terms';

/** The fields of an account have the texts of the form in which a customer names one. */
const OF_ACCOUNT = ['sort_code', 'routing_number', 'account_number'];
const KNOWN = ['account_holder', 'iban', 'bic', ...OF_ACCOUNT, 'amount', 'address', 'memo', 'reference'];
/** Chosen by the customer before, or shown elsewhere. */
const HIDDEN = ['type', 'note', 'url', 'payment_method', 'currency', 'asset', 'network', 'scan'];
/** The URIs that open a wallet. The gate writes them. */
const WALLET_URI = /^(ethereum|bitcoin|solana):/;

function QrCode({ text }: { text: string }) {
  const [image, setImage] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    import('../qr').then(
      ({ qrImage }) => current && setImage(qrImage(text)),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [text]);
  return <div class="qr-box">{image && <img class="qr" role="img" alt={t('qr')} src={image} />}</div>;
}

/** What the customer scans with another device. On a phone a link opens the wallet there. */
function Scan({ text, help }: { text: string; help: string }) {
  return (
    <div class="scan">
      <QrCode text={text} />
      <p class="help">{help}</p>
      {WALLET_URI.test(text) && (
        <a class="link" href={text}>
          {t('openWallet')}
        </a>
      )}
    </div>
  );
}

export function instructionsTitle({ ask, payment }: ViewOf<'instructions'>): string {
  if (ask !== 'crypto')
    return t(({ wallet: 'walletTitle', redirect: 'redirectTitle', bank: 'bankTitle' } as const)[ask]);
  return t('sendTitle', { amount: crypto(amountDue(payment), sentAsset(payment)) });
}

interface CopyRowProps {
  name: string;
  value: string;
  label: string;
  isGrouped?: boolean;
  /** How the value is written, if it is not written as it is copied. */
  children?: ComponentChildren;
}

function CopyRow({ name, value, label, isGrouped, children = value }: CopyRowProps) {
  return (
    <div class={isGrouped || value.length > 24 ? 'wide' : undefined}>
      <dt>{label}</dt>
      <dd class={name === 'reference' || name === 'memo' ? 'code' : undefined} translate={false}>
        {isGrouped ? <Groups text={value} /> : children}
      </dd>
      <dd class="act">
        <CopyButton text={value} label={label} />
      </dd>
    </div>
  );
}

function Lead({ ask, network }: { ask: Ask; network: string }) {
  if (ask === 'crypto')
    return (
      <p class="lead" key={ask}>
        {t('sendOn')} <strong>{network}</strong>
        {t('sendOnce')}
      </p>
    );
  return (
    <p class="lead" key={ask}>
      {t(({ wallet: 'deposit', redirect: 'redirectText', bank: 'bankLead' } as const)[ask])}
    </p>
  );
}

const Waiting = ({ text }: { text: string }) => (
  <div class="waiting">
    <Ring />
    <p key={text}>
      {text}
      <small>{t('updates')}</small>
    </p>
  </div>
);

export function Instructions(props: ScreenProps<'instructions'>) {
  const { view } = props;
  const { session, payment, instructions, ask, isSimulated, token } = view;
  const asset = sentAsset(payment);
  const network = networkName(payment.source_network ?? payment.network);
  const isCrypto = payment.side !== 'on_ramp';
  const { address, note, scan } = instructions;
  // The amount is that of the payment, which the gate has compared. The page of a provider says it by itself.
  const isAsked = (name: string) =>
    name === 'amount'
      ? ask !== 'redirect'
      : typeof instructions[name] === 'string' && instructions[name] !== '' && !HIDDEN.includes(name);
  const names = [
    ...KNOWN.filter(isAsked),
    ...Object.keys(instructions).filter((name) => isAsked(name) && !KNOWN.includes(name)),
  ];
  const label = (name: string) => {
    if (isCrypto && name === 'address') return t('addressOn', { network });
    if (isCrypto && name === 'amount') return t('exact', { asset });
    return KNOWN.includes(name)
      ? t((OF_ACCOUNT.includes(name) ? name : `i_${name}`) as MessageKey)
      : name.replace(/_/g, ' ').replace(/^./, (letter) => letter.toUpperCase());
  };
  const due = amountDue(payment);
  const row = (name: string) =>
    name === 'amount' ? (
      <CopyRow key={name} name={name} value={due} label={label(name)}>
        <Amount value={due}>{isCrypto ? decimal(due) : money(due, session.currency)}</Amount>
      </CopyRow>
    ) : (
      <CopyRow
        key={name}
        name={name}
        value={instructions[name] ?? ''}
        label={label(name)}
        isGrouped={name === 'iban' || (isCrypto && name === 'address')}
      />
    );
  const link = providerLink(instructions['url'], session.mode, token);
  const waits = ask === 'crypto' ? t('waitCrypto', { asset }) : t(ask === 'bank' ? 'waitBank' : 'waitPayment');
  const sent = isSimulated
    ? t(ask === 'redirect' ? 'pretendPaid' : 'pretendSent')
    : ask === 'crypto'
      ? t('sentCrypto', { asset })
      : t(ask === 'bank' ? 'sentBank' : 'continue');
  return (
    <>
      <Lead ask={ask} network={network} />
      <PaymentNotice view={view} />
      {ask === 'crypto' && address && <Scan text={scan ?? address} help={t(isSimulated ? 'testAddress' : 'scan')} />}
      {names.length > 0 && <dl class="box copyable">{names.map(row)}</dl>}
      {ask === 'bank' && scan && <Scan text={scan} help={t('scanBank')} />}
      {ask === 'bank' && instructions['reference'] && (
        <Note icon="warn" kind="warn">
          <strong>{t('mindReference')}</strong> <span>{t('whyReference')}</span>
        </Note>
      )}
      {isSimulated ? ask !== 'crypto' && <p class="help">{t('testPayment')}</p> : note && <p class="help">{note}</p>}
      <Waiting text={waits} />
      <div class="foot">
        {link && (
          <a class="main" href={link} target="_blank" rel="noopener noreferrer">
            {t('openLink')}
          </a>
        )}
        <Button {...props} action="continue" label={sent} kind={link ? 'second' : 'main'} />
        <CancelLink {...props} />
      </div>
    </>
  );
}

export function Progress(props: ScreenProps<'progress'>) {
  const { view } = props;
  const { session, payment, due, ask, mayLookAgain } = view;
  const { side, received } = payment;
  const { get } = sums(payment, session.currency);
  const asset = sentAsset(payment);
  const values = { asset, get: get[1] };
  const byBank = payment.payment_method !== 'card' && ask === 'bank';
  const text =
    ask === 'wallet' && due === 'open'
      ? t('deposit')
      : side === 'on_ramp' && !byBank
        ? t('progressCard', values)
        : tSide('progress', side, values);
  const hasArrived = due === 'arrived';
  const arrived = side !== 'on_ramp' ? asset : t(byBank ? 'transfer' : 'payment');
  return (
    <>
      <div class="waiting">
        <Ring />
        <p key={text}>{text}</p>
      </div>
      <PaymentNotice view={view} />
      <ol class="box facts-list">
        <li class="good">
          <Picture icon="good" />
          <span>{t('placed')}</span>
          <time>{moment(payment.created_at, { timeStyle: 'short' })}</time>
        </li>
        <li class={hasArrived ? 'good' : undefined}>
          <Picture {...(hasArrived ? { icon: 'good' } : { kind: 'dot' })} />
          <span>{t('arrived', { what: arrived })}</span>
          {hasArrived && received && <time>{moment(received.at, { timeStyle: 'short' })}</time>}
        </li>
        <li>
          <Picture kind="dot" />
          <span>{t('coinSent', { what: side === 'off_ramp' ? t('money') : payment.asset })}</span>
        </li>
      </ol>
      <p class="help">{t('closePage')}</p>
      <div class="foot">
        {mayLookAgain && due === 'open' && payment.instructions && (
          <Button
            {...props}
            action="back"
            kind="second"
            label={t(payment.instructions['iban'] ? 'showBank' : 'showDetails')}
          />
        )}
        <CancelLink {...props} />
      </div>
    </>
  );
}
