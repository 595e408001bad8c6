import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ScreenProps } from './app';
import { crypto, decimal, moment, money, networkName, t, tSide, type MessageKey } from './i18n';
import { Alert, Amount, Button, CancelLink, CopyButton, Groups, Note, Picture, Ring } from './parts';
import { PaymentNotice } from './payment_notice';
import { sums } from './receipt';
import { amountDue, sentAsset } from './session';
import type { FormField } from './types';

const KNOWN = ['account_holder', 'iban', 'bic', 'amount', 'address', 'memo', 'reference'];
/** Chosen by the customer before, or shown elsewhere. What the customer pays is shown from the payment, which the gate has compared. */
const HIDDEN = ['type', 'note', 'url', 'payment_method', 'currency', 'asset', 'network'];
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/** A link to a provider's page: `https`, and in test mode also `http` on this machine. */
export function safeLink(url: string | null | undefined, mode: string | undefined): string | null {
  try {
    const { protocol, hostname, href } = new URL(url ?? '');
    return protocol === 'https:' || (mode === 'test' && protocol === 'http:' && LOOPBACK.includes(hostname)) ? href : null;
  } catch {
    return null;
  }
}

function QrCode({ text }: { text: string }) {
  const [path, setPath] = useState<{ d: string; size: number } | null>(null);
  useEffect(() => {
    let current = true;
    import('./qr').then(({ qrPath }) => current && setPath(qrPath(text)), () => undefined);
    return () => {
      current = false;
    };
  }, [text]);
  return (
    <div class="qr-box">
      {path && (
        <svg class="qr" role="img" aria-label={t('qr')} viewBox={`0 0 ${path.size} ${path.size}`} shape-rendering="crispEdges">
          <path d={path.d} />
        </svg>
      )}
    </div>
  );
}

/** What the instructions of a payment ask the customer to do. */
export type Task = 'wallet' | 'sandbox' | 'redirect' | 'crypto' | 'bank';

export function taskOf({ flow }: ScreenProps): Task {
  const payment = flow.session?.payment;
  const type = payment?.instructions?.['type'];
  if (flow.depositAsked && flow.canDeposit && !flow.depositReturned) return 'wallet';
  return type === 'sandbox' || type === 'redirect' ? type : payment?.side === 'on_ramp' ? 'bank' : 'crypto';
}

export function instructionsTitle({ flow }: ScreenProps): string {
  const task = taskOf({ flow });
  const payment = flow.session?.payment;
  if (task !== 'crypto' || !payment) return t(({ wallet: 'walletTitle', sandbox: 'sandboxTitle', redirect: 'redirectTitle', bank: 'bankTitle', crypto: 'bankTitle' } as const)[task]);
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
      <dd class={name === 'reference' || name === 'memo' ? 'code' : undefined}>{isGrouped ? <Groups text={value} /> : children}</dd>
      <dd class="act"><CopyButton text={value} label={label} /></dd>
    </div>
  );
}

function Lead({ task, network }: { task: Task; network: string }) {
  if (task === 'crypto') return <p class="lead">{t('sendOn')} <strong>{network}</strong>{t('sendOnce')}</p>;
  return <p class="lead">{t(({ wallet: 'deposit', sandbox: 'sandboxText', redirect: 'redirectText', bank: 'bankLead' } as const)[task])}</p>;
}

const Waiting = ({ text }: { text: string }) => <div class="waiting"><Ring /><p>{text}<small>{t('updates')}</small></p></div>;

export function Instructions({ flow }: ScreenProps) {
  const { session } = flow;
  const payment = session?.payment;
  const instructions = payment?.instructions;
  if (!payment || !instructions) return null;
  const task = taskOf({ flow });
  const asset = sentAsset(payment);
  const network = networkName(payment.source_network ?? payment.network);
  const isCrypto = payment.side !== 'on_ramp';
  const { address, note } = instructions;
  const shown = (name: string) => typeof instructions[name] === 'string' && instructions[name] !== '' && !HIDDEN.includes(name);
  // The page of a provider says the amount by itself.
  const isAsked = (name: string) => shown(name) || (name === 'amount' && task !== 'redirect');
  const names = [...KNOWN.filter(isAsked), ...Object.keys(instructions).filter((name) => shown(name) && !KNOWN.includes(name))];
  const label = (name: string) => {
    if (isCrypto && name === 'address') return t('addressOn', { network });
    if (isCrypto && name === 'amount') return t('exact', { asset });
    return KNOWN.includes(name) ? t(`i_${name}` as MessageKey) : name.replace(/_/g, ' ').replace(/^./, (letter) => letter.toUpperCase());
  };
  const due = amountDue(payment);
  const row = (name: string) => (name === 'amount'
    ? <CopyRow key={name} name={name} value={due} label={label(name)}><Amount value={due}>{isCrypto ? decimal(due) : money(due, session.currency)}</Amount></CopyRow>
    : <CopyRow key={name} name={name} value={instructions[name] ?? ''} label={label(name)} isGrouped={name === 'iban' || (isCrypto && name === 'address')} />);
  const link = safeLink(instructions['url'], session.mode);
  const waits = task === 'crypto' ? t('waitCrypto', { asset }) : t(task === 'bank' ? 'waitBank' : 'waitPayment');
  const sent = task === 'crypto' ? t('sentCrypto', { asset }) : t(task === 'bank' ? 'sentBank' : 'continue');
  return (
    <>
      <Lead task={task} network={network} />
      <PaymentNotice flow={flow} />
      {task === 'crypto' && address && <div class="scan"><QrCode text={address} /><p class="help">{t('scan')}</p></div>}
      {names.length > 0 && <dl class="box copyable">{names.map(row)}</dl>}
      {task === 'bank' && instructions['reference'] && <Note icon="warn" kind="warn"><strong>{t('mindReference')}</strong> <span>{t('whyReference')}</span></Note>}
      {note && task !== 'sandbox' && <p class="help">{note}</p>}
      <Waiting text={waits} />
      <div class="foot">
        {link && <a class="main" href={link} target="_blank" rel="noopener noreferrer">{t('openLink')}</a>}
        <Button action="continue" flow={flow} label={sent} kind={link ? 'second' : 'main'} />
        <Button action="cancel" flow={flow} kind="link" label={t('cancelPayment')} />
      </div>
    </>
  );
}

export function Progress({ flow }: ScreenProps) {
  const payment = flow.session?.payment;
  const currency = flow.session?.currency ?? '';
  if (!payment) return null;
  const { side, received } = payment;
  const { get } = sums(payment, currency);
  const asset = sentAsset(payment);
  const values = { asset, get: get[1] };
  const byBank = payment.payment_method !== 'card' && taskOf({ flow }) === 'bank';
  const text = flow.depositAsked && !flow.depositReturned && flow.due === 'open' ? t('deposit') : side === 'on_ramp' && !byBank ? t('progressCard', values) : tSide('progress', side, values);
  const hasArrived = flow.due === 'arrived';
  const arrived = side !== 'on_ramp' ? asset : t(byBank ? 'transfer' : 'payment');
  return (
    <>
      <div class="waiting"><Ring /><p>{text}</p></div>
      <PaymentNotice flow={flow} />
      <ol class="box facts-list">
        <li class="good"><Picture icon="good" /><span>{t('placed')}</span><time>{moment(payment.created_at, { timeStyle: 'short' })}</time></li>
        <li class={hasArrived ? 'good' : undefined}><Picture {...(hasArrived ? { icon: 'good' } : { kind: 'dot' })} /><span>{t('arrived', { what: arrived })}</span>{hasArrived && received && <time>{moment(received.at, { timeStyle: 'short' })}</time>}</li>
        <li><Picture kind="dot" /><span>{t('coinSent', { what: side === 'off_ramp' ? t('money') : payment.asset })}</span></li>
      </ol>
      <p class="help">{t('closePage')}</p>
      <div class="foot">
        {flow.sent && flow.due === 'open' && payment.instructions && <Button action="back" flow={flow} kind="second" label={t(payment.instructions['iban'] ? 'showBank' : 'showDetails')} />}
        <Button action="cancel" flow={flow} kind="link" label={t('cancelPayment')} />
      </div>
    </>
  );
}

function AnswerForm({ flow }: ScreenProps) {
  const form = flow.task?.form;
  if (!form) return null;
  const field = (name: string, one: FormField) => {
    const required = form.required?.includes(name) === true;
    return (
      <label class="field" key={name}>
        <span class="label">{one.title ?? name}</span>
        {one.enum
          ? <select name={name} required={required}>{!required && <option />}{one.enum.map((value) => <option key={value}>{value}</option>)}</select>
          : one.format === 'date' ? <input name={name} required={required} type="date" />
            : one.format === 'email' ? <input name={name} required={required} type="email" maxLength={one.maxLength} />
              : <input name={name} required={required} maxLength={one.maxLength} />}
      </label>
    );
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const answers: Record<string, string> = {};
    new FormData(event.currentTarget as HTMLFormElement).forEach((value, name) => {
      const answer = String(value).trim();
      if (answer || form.required?.includes(name)) answers[name] = answer;
    });
    void flow.submitVerification(answers);
  };
  return (
    <form onSubmit={submit}>
      {Object.entries(form.properties).map(([name, one]) => field(name, one))}
      <div class="foot"><Button action="continue" flow={flow} submit label={t('send')} /></div>
    </form>
  );
}

/** The provider's page opens in a new tab. This page follows the session meanwhile. */
function PartnerLink({ url }: { url: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {isOpen && <div class="waiting"><Ring /><p>{t('comeBack')}</p></div>}
      <a class={isOpen ? 'main second' : 'main'} data-action="continue" href={url} target="_blank" rel="noopener noreferrer" onClick={() => setOpen(true)}>{t(isOpen ? 'openAgain' : 'partner')}</a>
    </>
  );
}

export function Verification({ flow }: ScreenProps) {
  const { task, session } = flow;
  const status = session?.verification.status;
  if (status === 'rejected') {
    return (
      <>
        <Note icon="bad" kind="bad" code="verification_rejected">{t('verificationRejected')}</Note>
        {session?.verification.reason && <p class="help">{session.verification.reason}</p>}
        <div class="foot">{flow.canLeave && <Button action="return" flow={flow} />}</div>
      </>
    );
  }
  const link = safeLink(task?.url, session?.mode);
  // A provider asks while the verification is pending already.
  const pending = status === 'pending' && task !== null && !link && !task.form;
  return (
    <>
      {pending ? <div class="waiting"><Ring /><p>{t('verificationPending')}</p></div> : <p class="lead">{t('verificationText')}</p>}
      <Alert flow={flow} network="" />
      {task?.form && <AnswerForm flow={flow} />}
      <div class="foot">
        {link && !task?.form && <PartnerLink url={link} />}
        {!link && !task?.form && !pending && <Button action="continue" flow={flow} />}
        <CancelLink flow={flow} />
      </div>
    </>
  );
}
