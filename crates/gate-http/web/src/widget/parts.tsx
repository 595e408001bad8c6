import { Fragment, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Flow } from './flow';
import { t, type MessageKey } from './i18n';
import { say } from './speech';
import type { Work } from './steps';

const COPIED_MS = 2000;
const CLIPBOARD_TIMEOUT_MS = 1000;

const ICONS = {
  on_ramp: 'M12 4v11m-5-5 5 5 5-5M4 20h16', off_ramp: 'M12 16V5M7 9l5-5 5 5M4 20h16', swap: 'M4 8h15l-3-3m4 11H5l3 3',
  good: 'm5 12.5 4.5 4.5L19 7.5', bad: 'M7 7l10 10M17 7 7 17', warn: 'M12 9v5m0 3v.01M10.3 4 2.7 17.5A2 2 0 0 0 4.4 20.5h15.2a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0Z', info: 'M12 11v5.5m0-9v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  clock: 'M12 7v5.5l3.5 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z', fresh: 'M20 5v5h-5m4.6 0A8 8 0 1 0 20 14', back: 'm14.5 5-7 7 7 7', still: 'M6 12h12',
  offline: 'M4 4l16 16M8.5 15.5a5 5 0 0 1 7 0M5 12a10 10 0 0 1 4.2-2.5M13.5 9.1A10 10 0 0 1 19 12M12 19v.01',
  bank: 'M4 9h16L12 4ZM6 9v8m4-8v8m4-8v8m4-8v8M4 20h16M4 17h16', coins: 'M19 7c0 1.7-3.1 3-7 3S5 8.7 5 7s3.1-3 7-3 7 1.3 7 3Zm0 0v10c0 1.7-3.1 3-7 3s-7-1.3-7-3V7m14 5c0 1.7-3.1 3-7 3s-7-1.3-7-3', wallet: 'M5 6h13a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2h10m0 7.5v.01',
  copy: 'M9 9h11v11H9ZM15 9V4H4v11h5',
};
export type Icon = keyof typeof ICONS;

/** A picture that repeats what the text beside it says. */
export function Picture({ icon, kind = 'icon' }: { icon?: Icon; kind?: string }) {
  return <span class={kind} aria-hidden="true">{icon && <svg viewBox="0 0 24 24"><path d={ICONS[icon]} /></svg>}</span>;
}

export const Ring = () => <Picture kind="sign wait" />;

export function Note({ icon, kind, children, code, id }: { icon: Icon; kind: 'bad' | 'warn' | 'good'; children: ComponentChildren; code?: string; id?: string }) {
  const note = useRef<HTMLDivElement>(null);
  return (
    <div class={`note ${kind}`} id={id} ref={note} tabIndex={id ? -1 : undefined} {...(code ? { role: 'alert', 'data-code': code } : {})}>
      <Picture icon={icon} />
      <div>{children}</div>
    </div>
  );
}

/** The gate's codes that have a sentence of their own. */
const SENTENCES: Record<string, MessageKey> = {
  rate_unavailable: 'noRate', amount_out_of_range: 'outOfRange', invalid_address: 'walletElse', address_checksum_mismatch: 'walletSum',
  network_not_supported: 'notOffered', asset_not_supported: 'notOffered', wallet_mismatch: 'walletMismatch', payment_not_cancellable: 'tooLate',
  quote_expired: 'ranOut', quote_superseded: 'ranOut', quote_consumed: 'ranOut',
};

export function Alert({ flow, network }: { flow: Flow; network: string }) {
  const { problem, cancelled, draft } = flow;
  if (!problem) return cancelled ? <Note icon="info" kind="warn" code="payment_cancelled">{t('paymentCancelled')}</Note> : null;
  const { code, retryAt, requestId } = problem;
  const known = SENTENCES[code];
  const seconds = String(Math.max(1, Math.ceil(((retryAt ?? 0) - performance.now()) / 1000)));
  // The step of the price has the same button below.
  const offersRetry = !known && retryAt === undefined && flow.mayRetry && flow.step !== 'failed' && !flow.isOutdated && !(flow.step === 'price' && !flow.quote);
  return (
    <Note icon="warn" kind={code.startsWith('quote_') ? 'warn' : 'bad'} code={code}>
      {retryAt === undefined ? t(known ?? 'unreachable', { asset: draft?.asset ?? '', network }) : t('tooMany', { seconds })}
      {!known && retryAt === undefined && requestId && <small>{t('requestId', { id: requestId })}</small>}
      {offersRetry && <button type="button" class="second" data-action="retry" onClick={() => void flow.retry()}>{t('retry')}</button>}
    </Note>
  );
}

export function Amount({ value, children }: { value: string; children: ComponentChildren }) {
  return <span class="amount" data-value={value}>{children}</span>;
}

/** A long value in groups of four. The margins between them are no characters, so that a selection is exact. */
export function Groups({ text }: { text: string }) {
  const head = /^0x/.test(text) ? text.slice(0, 6) : text.slice(0, 4);
  const groups = [head, ...(text.slice(head.length).match(/.{1,4}/g) ?? [])];
  return <span class="groups">{groups.map((group, index) => <Fragment key={index}><span>{group}</span><wbr /></Fragment>)}</span>;
}

export const shortened = (text: string): string => (text.length > 18 ? `${text.slice(0, 12)}…${text.slice(-4)}` : text);

type Action = 'continue' | 'back' | 'pay' | 'cancel' | 'retry' | 'return';

const WORKS: Partial<Record<Action, Work[]>> = { continue: ['price', 'loading'], pay: ['pay', 'price'], retry: ['price', 'loading', 'pay'], cancel: ['cancel'] };
const BUSY: Record<Work, MessageKey> = { price: 'priceLoading', pay: 'paying', cancel: 'cancelling', loading: 'moment' };

interface ButtonProps {
  action: Action;
  flow: Flow;
  label?: string;
  kind?: 'main' | 'second' | 'link' | 'back';
  submit?: boolean;
  disabled?: boolean;
  run?: () => unknown;
}

function runnerOf(flow: Flow, action: Action): () => unknown {
  switch (action) {
    case 'continue': return () => flow.next();
    case 'back': return () => flow.back();
    case 'pay': return () => flow.pay();
    case 'cancel': return () => flow.cancel();
    case 'retry': return () => flow.retry();
    case 'return': return () => flow.leave();
  }
}

/** A button that is off stays in the order of focus, so that a call never takes the focus from the button that made it. */
export function Button({ action, flow, label, kind = 'main', submit, disabled, run }: ButtonProps) {
  const isOff = disabled === true || (flow.busy && action !== 'return');
  const isBusy = flow.busy && WORKS[action]?.includes(flow.work) === true;
  const start = run ?? runnerOf(flow, action);
  const busyText = BUSY[flow.work === 'pay' && flow.draft?.side !== 'on_ramp' ? 'loading' : flow.work];
  const text = isBusy ? t(busyText) : (label ?? t(action === 'return' && flow.frame ? 'close' : (action as MessageKey)));
  // The flow itself decides about a click on `pay`.
  const click = () => (isOff && action !== 'pay' ? undefined : void start());
  return (
    <>
      <button type={submit ? 'submit' : 'button'} class={kind} data-action={action} aria-disabled={isOff} onClick={submit ? undefined : click}>
        {isBusy && <Ring />}
        {kind === 'back' && <Picture icon="back" />}
        <span>{text}</span>
      </button>
      {isBusy && flow.isSlow && <p class="help" role="status">{t('longer')}</p>}
    </>
  );
}

/** Leaves the payment, after a question in place of the link. */
export function CancelLink({ flow }: { flow: Flow }) {
  const [asks, setAsks] = useState(false);
  const question = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (asks) question.current?.focus();
  }, [asks]);
  if (!asks) return <Button action="cancel" flow={flow} kind="link" label={t(flow.session?.cancel_url ? 'cancelAndBack' : 'cancel')} run={() => setAsks(true)} />;
  return (
    <div class="ask" ref={question} tabIndex={-1} role="group" aria-label={t('askCancel')}>
      <p><strong>{t('askCancel')}</strong> {flow.session?.payment === null && t('nothingYet')}</p>
      <div class="pair">
        <button type="button" class="second" onClick={() => { setAsks(false); setTimeout(() => document.querySelector<HTMLElement>('[data-action="cancel"]')?.focus()); }}>{t('keepGoing')}</button>
        <Button action="cancel" flow={flow} kind="second" label={t('yesCancel')} />
      </div>
    </div>
  );
}

/** Copies from a selection, as a frame without the clipboard permission still may. */
function copySelected(text: string): boolean {
  const before = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}

/** Copies the exact value of a row. A refused copy leaves the value selected and says how to copy it by hand. */
export function CopyButton({ text, label, small }: { text: string; label: string; small?: boolean }) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  const field = useRef<HTMLInputElement>(null);
  const select = () => {
    field.current?.focus();
    field.current?.select();
  };
  useEffect(() => {
    if (state === 'refused') select();
  }, [state]);
  const copy = async () => {
    let done = true;
    try {
      // A browser that asks the user for permission may never settle.
      await Promise.race([navigator.clipboard.writeText(text), new Promise((_, fail) => setTimeout(fail, CLIPBOARD_TIMEOUT_MS))]);
    } catch {
      done = copySelected(text);
    }
    setState(done ? 'copied' : 'refused');
    say(done ? t('copiedOf', { field: label }) : t('byHand'));
    if (done) setTimeout(() => setState('idle'), COPIED_MS);
    else select();
  };
  const isDone = state === 'copied';
  return (
    <>
      <button type="button" class={`copy${isDone ? ' good' : ''}${small ? ' small' : ''}`} data-action="copy" aria-label={t('copyOf', { field: label })} onClick={() => void copy()}>
        <Picture icon={isDone ? 'good' : 'copy'} />
        {!small && <span>{t(isDone ? 'copied' : 'copy')}</span>}
      </button>
      {state === 'refused' && <input class="by-hand" ref={field} value={text} readOnly aria-label={label} autocomplete="off" />}
      {state === 'refused' && <p class="help by-hand">{t('byHand')}</p>}
    </>
  );
}
