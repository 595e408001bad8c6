import { useEffect, useState } from 'preact/hooks';
import type { ScreenProps } from './app';
import { crypto, money, networkName, t, type MessageKey } from './i18n';
import { Alert, Amount, Button, CopyButton, Picture } from './parts';
import type { FormField } from './types';

const KNOWN = ['account_holder', 'iban', 'bic', 'reference', 'asset', 'network', 'address', 'memo', 'amount', 'currency'];
/** Shown elsewhere, or chosen by the customer before. */
const HIDDEN = ['type', 'note', 'url', 'payment_method'];
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
  return path && (
    <svg class="qr" role="img" aria-label={t('qr')} viewBox={`0 0 ${path.size} ${path.size}`} shape-rendering="crispEdges">
      <path d={path.d} />
    </svg>
  );
}

export function Instructions({ flow }: ScreenProps) {
  const payment = flow.session?.payment;
  const instructions = payment?.instructions;
  if (!payment || !instructions) return null;
  const waitsForWallet = flow.depositAsked && flow.canDeposit && !flow.depositReturned;
  const sandbox = instructions['type'] === 'sandbox';
  // The amount is shown with its unit, which then needs no row.
  const unit = instructions['amount'] ? ['currency', 'asset'] : [];
  const shown = (name: string) => typeof instructions[name] === 'string' && instructions[name] !== '' && !HIDDEN.includes(name) && !unit.includes(name);
  const withUnit = (value: string) => (instructions['currency'] ? money(value, instructions['currency']) : instructions['asset'] ? crypto(value, instructions['asset']) : value);
  const names = [...KNOWN.filter(shown), ...Object.keys(instructions).filter((name) => shown(name) && !KNOWN.includes(name))];
  const label = (name: string) => (KNOWN.includes(name) ? t(`i_${name}` as MessageKey) : name.replace(/_/g, ' '));
  const { address, note } = instructions;
  const link = safeLink(instructions['url'], flow.session?.mode);
  const isRedirect = instructions['type'] === 'redirect';
  return (
    <>
      <p class="lead-left" role="status">{t(waitsForWallet ? 'deposit' : sandbox ? 'sandboxText' : isRedirect ? 'redirectText' : address ? 'sendCrypto' : 'sendMoney')}</p>
      {address && !waitsForWallet && <QrCode text={address} />}
      {names.length > 0 && (
        <dl class="rows copyable">
          {names.map((name) => {
            const value = instructions[name] ?? '';
            return (
              <div key={name}>
                <dt>{label(name)}</dt>
                <dd class="long">{name === 'amount' ? <Amount value={value}>{withUnit(value)}</Amount> : name === 'network' ? networkName(value) : value}</dd>
                <CopyButton text={value} label={label(name)} />
              </div>
            );
          })}
        </dl>
      )}
      {note && !sandbox && <p class="hint">{note}</p>}
      {link && <a class="main" href={link} target="_blank" rel="noopener noreferrer">{t('openLink')}</a>}
      <Button action="continue" flow={flow} label={t(sandbox || waitsForWallet || isRedirect ? 'goOn' : 'sent')} plain={link !== null} />
      <Button action="cancel" flow={flow} label={t('cancelPayment')} />
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
        <span>{one.title ?? name}</span>
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
      <Button action="continue" flow={flow} submit />
    </form>
  );
}

export function Verification({ flow }: ScreenProps) {
  const { task, session } = flow;
  const status = session?.verification.status;
  if (status === 'rejected') {
    return (
      <>
        <Picture kind="sign bad" icon="bad" />
        <p class="lead" role="alert" data-code="verification_rejected">{t('verificationRejected')}</p>
        {session?.verification.reason && <p class="hint">{session.verification.reason}</p>}
        {flow.canLeave && <Button action="return" flow={flow} />}
      </>
    );
  }
  const link = safeLink(task?.url, session?.mode);
  const pending = status === 'pending';
  return (
    <>
      {pending && <Picture kind="sign wait" />}
      <p class={pending ? 'lead' : 'lead-left'} role="status">{t(pending ? 'verificationPending' : 'verificationText')}</p>
      <Alert flow={flow} />
      {link && <a class="main" href={link} target="_blank" rel="noopener noreferrer">{t('verificationOpen')}</a>}
      {task?.form ? <AnswerForm flow={flow} /> : !pending && <Button action="continue" flow={flow} plain={link !== null} />}
      <Button action="back" flow={flow} />
    </>
  );
}
