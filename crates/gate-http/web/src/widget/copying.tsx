import { useEffect, useRef, useState } from 'preact/hooks';
import { t } from './i18n';
import { Picture } from './parts';
import { say } from './speech';

const COPIED_MS = 2000;
const CLIPBOARD_TIMEOUT_MS = 1000;

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
        {!small && <span key={state}>{t(isDone ? 'copied' : 'copy')}</span>}
      </button>
      {state === 'refused' && (
        <input class="by-hand" ref={field} value={text} readOnly aria-label={label} autocomplete="off" />
      )}
      {state === 'refused' && <p class="help by-hand">{t('byHand')}</p>}
    </>
  );
}
