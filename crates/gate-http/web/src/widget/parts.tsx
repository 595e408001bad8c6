import { Fragment, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { networkName, t, type MessageKey } from './i18n';
import type { Work } from './flow/steps';
import type { PartProps } from './screen_props';
import { say } from './speech';

const COPIED_MS = 2000;
const CLIPBOARD_TIMEOUT_MS = 1000;

const ICONS = {
  on_ramp: 'M12 4v11m-5-5 5 5 5-5M4 20h16',
  off_ramp: 'M12 16V5M7 9l5-5 5 5M4 20h16',
  swap: 'M4 8h15l-3-3m4 11H5l3 3',
  good: 'm5 12.5 4.5 4.5L19 7.5',
  bad: 'M7 7l10 10M17 7 7 17',
  warn: 'M12 9v5m0 3v.01M10.3 4 2.7 17.5A2 2 0 0 0 4.4 20.5h15.2a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0Z',
  info: 'M12 11v5.5m0-9v.01M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  clock: 'M12 7v5.5l3.5 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  fresh: 'M20 5v5h-5m4.6 0A8 8 0 1 0 20 14',
  back: 'm14.5 5-7 7 7 7',
  still: 'M6 12h12',
  offline: 'M4 4l16 16M8.5 15.5a5 5 0 0 1 7 0M5 12a10 10 0 0 1 4.2-2.5M13.5 9.1A10 10 0 0 1 19 12M12 19v.01',
  bank: 'M4 9h16L12 4ZM6 9v8m4-8v8m4-8v8m4-8v8M4 20h16M4 17h16',
  coins:
    'M19 7c0 1.7-3.1 3-7 3S5 8.7 5 7s3.1-3 7-3 7 1.3 7 3Zm0 0v10c0 1.7-3.1 3-7 3s-7-1.3-7-3V7m14 5c0 1.7-3.1 3-7 3s-7-1.3-7-3',
  wallet: 'M5 6h13a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2h10m0 7.5v.01',
  copy: 'M9 9h11v11H9ZM15 9V4H4v11h5',
};
export type Icon = keyof typeof ICONS;

/** A picture that repeats what the text beside it says. */
export function Picture({ icon, kind = 'icon' }: { icon?: Icon; kind?: string }) {
  return (
    <span class={kind} aria-hidden="true">
      {icon && (
        <svg viewBox="0 0 24 24">
          <path d={ICONS[icon]} />
        </svg>
      )}
    </span>
  );
}

export const Ring = () => <Picture kind="sign wait" />;

export function Note({
  icon,
  kind,
  children,
  code,
  id,
}: {
  icon: Icon;
  kind: 'bad' | 'warn' | 'good';
  children: ComponentChildren;
  code?: string;
  id?: string;
}) {
  return (
    <div
      class={`note ${kind}`}
      id={id}
      tabIndex={id ? -1 : undefined}
      {...(code ? { role: 'alert', 'data-code': code } : {})}
    >
      <Picture icon={icon} />
      <div>{children}</div>
    </div>
  );
}

/** Sentences that leave it to the customer to try the same again. */
const VAGUE: MessageKey[] = ['unreachable', 'unavailableText'];

/** Why the last call changed nothing, and what the customer can do. */
export function Alert({ view, act }: PartProps) {
  if (!('trouble' in view)) return null;
  const { trouble, isCancelled, isOutdated, draft, retryIn, step } = view;
  if (!trouble)
    return isCancelled ? (
      <Note icon="info" kind="warn" code="payment_cancelled">
        {t('paymentCancelled')}
      </Note>
    ) : null;
  const { code, text, requestId, task } = trouble;
  const isVague = VAGUE.includes(text);
  // The step of the price has the same button below.
  const offersRetry = isVague && task && step !== 'failed' && !isOutdated && !(step === 'price' && !view.price);
  return (
    <Note icon="warn" kind={code.startsWith('quote_') ? 'warn' : 'bad'} code={code}>
      {t(text, { asset: draft.asset, network: networkName(draft.network), seconds: String(retryIn) })}
      {isVague && requestId && <small>{t('requestId', { id: requestId })}</small>}
      {offersRetry && (
        <button type="button" class="second" data-action="retry" onClick={() => act.do({ type: 'retry' })}>
          {t('retry')}
        </button>
      )}
    </Note>
  );
}

export function Amount({ value, children }: { value: string; children: ComponentChildren }) {
  return (
    <span class="amount" data-value={value}>
      {children}
    </span>
  );
}

/** A long value in groups of four. The margins between them are no characters, so that a selection is exact. */
export function Groups({ text }: { text: string }) {
  const head = /^0x/.test(text) ? text.slice(0, 6) : text.slice(0, 4);
  const groups = [head, ...(text.slice(head.length).match(/.{1,4}/g) ?? [])];
  return (
    <span class="groups">
      {groups.map((group, index) => (
        <Fragment key={index}>
          <span>{group}</span>
          <wbr />
        </Fragment>
      ))}
    </span>
  );
}

export const shortened = (text: string): string => (text.length > 18 ? `${text.slice(0, 12)}…${text.slice(-4)}` : text);

type Action = 'continue' | 'back' | 'pay' | 'cancel' | 'retry' | 'return';

const WORKS: Partial<Record<Action, Work[]>> = {
  continue: ['price', 'loading'],
  pay: ['pay', 'price'],
  retry: ['price', 'loading', 'pay'],
  cancel: ['cancel'],
};
const BUSY: Record<Work, MessageKey> = {
  price: 'priceLoading',
  pay: 'paying',
  cancel: 'cancelling',
  loading: 'moment',
};

interface ButtonProps extends PartProps {
  action: Action;
  label?: string;
  kind?: 'main' | 'second' | 'link' | 'back';
  submit?: boolean;
  disabled?: boolean;
  run?: () => void;
}

/** A button that is off stays in the order of focus, so that a call never takes the focus from the button that made it. */
export function Button({ action, view, act, label, kind = 'main', submit, disabled, run }: ButtonProps) {
  const { work, draft, isFramed, isSlow } = view;
  const isOff = disabled === true || (work !== null && action !== 'return');
  const isBusy = work !== null && WORKS[action]?.includes(work) === true;
  const busyWith = work === 'pay' && draft?.side !== 'on_ramp' ? 'loading' : work;
  const text =
    isBusy && busyWith
      ? t(BUSY[busyWith])
      : (label ?? t(action === 'return' && isFramed ? 'close' : (action as MessageKey)));
  const start = run ?? (() => act.do({ type: action }));
  // The flow itself decides about a click on `pay`.
  const click = () => (isOff && action !== 'pay' ? undefined : start());
  return (
    <>
      <button
        type={submit ? 'submit' : 'button'}
        class={kind}
        data-action={action}
        aria-disabled={isOff}
        onClick={submit ? undefined : click}
      >
        {isBusy && <Ring />}
        {kind === 'back' && <Picture icon="back" />}
        <span>{text}</span>
      </button>
      {isBusy && isSlow && (
        <p class="help" role="status">
          {t('longer')}
        </p>
      )}
    </>
  );
}

/** Leaves the payment, after a question in place of the link. */
export function CancelLink(props: PartProps) {
  const { view } = props;
  const [asks, setAsks] = useState(false);
  const question = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (asks) question.current?.focus();
  }, [asks]);
  if (!asks)
    return (
      <Button
        {...props}
        action="cancel"
        kind="link"
        label={t(view.session?.cancel_url ? 'cancelAndBack' : 'cancel')}
        run={() => setAsks(true)}
      />
    );
  return (
    <div class="ask" ref={question} tabIndex={-1} role="group" aria-label={t('askCancel')}>
      <p>
        <strong>{t('askCancel')}</strong> {view.session?.payment === null && t('nothingYet')}
      </p>
      <div class="pair">
        <button
          type="button"
          class="second"
          onClick={() => {
            setAsks(false);
            setTimeout(() => document.querySelector<HTMLElement>('[data-action="cancel"]')?.focus());
          }}
        >
          {t('keepGoing')}
        </button>
        <Button {...props} action="cancel" kind="second" label={t('yesCancel')} />
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
      await Promise.race([
        navigator.clipboard.writeText(text),
        new Promise((_, fail) => setTimeout(fail, CLIPBOARD_TIMEOUT_MS)),
      ]);
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
      <button
        type="button"
        class={`copy${isDone ? ' good' : ''}${small ? ' small' : ''}`}
        data-action="copy"
        aria-label={t('copyOf', { field: label })}
        onClick={() => void copy()}
      >
        <Picture icon={isDone ? 'good' : 'copy'} />
        {!small && <span>{t(isDone ? 'copied' : 'copy')}</span>}
      </button>
      {state === 'refused' && (
        <input class="by-hand" ref={field} value={text} readOnly aria-label={label} autocomplete="off" />
      )}
      {state === 'refused' && <p class="help by-hand">{t('byHand')}</p>}
    </>
  );
}
