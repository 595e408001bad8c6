import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Flow } from './flow';
import { t, type MessageKey } from './i18n';

/** The gate's codes that a user can do something about. All others get one neutral sentence. */
const ERRORS: Record<string, MessageKey> = {
  rate_unavailable: 'rateUnavailable',
  rate_limited: 'rateLimited',
  amount_out_of_range: 'outOfRange',
  invalid_address: 'addressRefused',
  address_checksum_mismatch: 'addressRefused',
  network_not_supported: 'addressRefused',
  wallet_mismatch: 'walletMismatch',
  payment_not_cancellable: 'notCancellable',
  quote_expired: 'priceRenewed',
  quote_superseded: 'priceRenewed',
  quote_consumed: 'priceRenewed',
};

export function Alert({ flow }: { flow: Flow }) {
  const { problem } = flow;
  return problem && <p class="alert" role="alert" data-code={problem.code}>{t(ERRORS[problem.code] ?? 'genericError')}</p>;
}

export function Amount({ value, children }: { value: string; children: ComponentChildren }) {
  return <span class="amount" data-value={value}>{children}</span>;
}

const ICONS = {
  on_ramp: 'M12 5v13m-6-6 6 6 6-6', off_ramp: 'M12 19V6m-6 6 6-6 6 6', swap: 'M4 9h15m-4-4 4 4M20 15H5m4 4-4-4',
  good: 'm5 12.5 4.5 4.5L19 7.5', bad: 'M12 6v7m0 4.5v.01', still: 'M7 7l10 10M17 7 7 17', clock: 'M12 6v6.5l4 2.5M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  offline: 'M4 4l16 16M8.5 15.5a5 5 0 0 1 7 0M5 12a10 10 0 0 1 4.2-2.5M13.5 9.1A10 10 0 0 1 19 12M12 19v.01',
};

export type Icon = keyof typeof ICONS;

/** A picture that repeats what the text beside it says. */
export function Picture({ icon, kind }: { icon?: Icon; kind: string }) {
  return <span class={kind} aria-hidden="true">{icon && <svg viewBox="0 0 24 24"><path d={ICONS[icon]} /></svg>}</span>;
}

type Action = 'continue' | 'back' | 'pay' | 'cancel' | 'retry' | 'return';

/** A button that is off stays in the order of focus, so that a call never takes the focus from the button that made it. */
export function Button({ action, flow, label, plain, submit, disabled }: { action: Action; flow: Flow; label?: string; plain?: boolean; submit?: boolean; disabled?: boolean }) {
  const isOff = disabled === true || (flow.busy && action !== 'return');
  const main = !plain && action !== 'back' && action !== 'cancel';
  const run = () => {
    // The flow itself decides about a click on `pay`.
    if (isOff && action !== 'pay') return;
    if (action === 'continue') void flow.next();
    else if (action === 'back') flow.back();
    else if (action === 'pay') void flow.pay();
    else if (action === 'cancel') void flow.cancel();
    else if (action === 'retry') void flow.retry();
    else flow.leave();
  };
  return (
    <button type={submit ? 'submit' : 'button'} class={main ? 'main' : 'plain'} data-action={action} aria-disabled={isOff} onClick={submit ? undefined : run}>
      {label ?? t(action === 'return' && flow.frame ? 'close' : action === 'pay' ? 'confirmTitle' : action)}
    </button>
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
export function CopyButton({ text, label }: { text: string; label: string }) {
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
      await navigator.clipboard.writeText(text);
    } catch {
      done = copySelected(text);
    }
    setState(done ? 'copied' : 'refused');
    if (done) setTimeout(() => setState('idle'), 2000);
    else select();
  };
  return (
    <>
      <dd class="act">
        <button type="button" class="copy" data-action="copy" aria-label={`${t('copy')}: ${label}`} onClick={() => void copy()}>
          <span aria-live="polite">{t(state === 'copied' ? 'copied' : 'copy')}</span>
        </button>
      </dd>
      <dd class="by-hand">
        {state === 'refused' && <input ref={field} value={text} readOnly aria-label={label} autocomplete="off" />}
        <span role="status">{state === 'refused' && t('copyByHand')}</span>
      </dd>
    </>
  );
}
