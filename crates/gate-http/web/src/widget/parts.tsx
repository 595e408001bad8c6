import { Fragment, type ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { limitsMisfit, type Limits } from './draft';
import { money, networkName, shopName, t, type MessageKey } from './i18n';
import type { Trouble } from './flow/state';
import type { Work } from './flow/steps';
import type { View } from './flow/view';
import type { PartProps } from './screen_props';

/** A button names the shop up to this many characters. */
const MAX_NAME_LENGTH = 30;

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

type Sight = Extract<View, { trouble: unknown }>;

/** What the customer reads about a refusal, with the limits of the choice if the amount is outside of them. */
function sentenceOf({ entry, session, draft, retryIn }: Sight, { text }: Trouble): string {
  const limits = text === 'outOfRange' ? limitsMisfit(entry, session, draft.asset) : null;
  const sentence = t(text, { asset: draft.asset, network: networkName(draft.network), seconds: String(retryIn) });
  return limits ? `${sentence} ${limitsText(limits)}` : sentence;
}

export const limitsText = ({ min, max, currency }: Limits): string =>
  t('limits', { min: money(min, currency), max: money(max, currency) });

/** Why the last call changed nothing, and what the customer can do. */
export function Alert({ view, act }: PartProps) {
  if (!('trouble' in view)) return null;
  const { trouble, isCancelled, isOutdated, step } = view;
  if (!trouble)
    return isCancelled ? (
      <Note icon="info" kind="warn" code="payment_cancelled">
        {t('paymentCancelled')}
      </Note>
    ) : null;
  const { code, text, requestId, task } = trouble;
  const sentence = sentenceOf(view, trouble);
  const isVague = VAGUE.includes(text);
  // The step of the price has the same button below.
  const offersRetry = isVague && task && step !== 'failed' && !isOutdated && !(step === 'price' && !view.price);
  return (
    <Note icon="warn" kind={code.startsWith('quote_') ? 'warn' : 'bad'} code={code}>
      <span key={sentence}>{sentence}</span>
      {isVague && requestId && <small translate={false}>{t('requestId', { id: requestId })}</small>}
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
    <span class="amount" data-value={value} translate={false}>
      {children}
    </span>
  );
}

/** A long value in groups of four. The margins between them are no characters, so that a selection is exact. A shortened one has no groups. */
export function Groups({ text }: { text: string }) {
  if (text.includes('…')) return <span class="groups">{text}</span>;
  const head = /^0x/.test(text) ? text.slice(0, 6) : text.slice(0, 4);
  const groups = [head, ...(text.slice(head.length).match(/.{1,4}/g) ?? [])];
  return (
    <span class="groups" translate={false}>
      {groups.map((group, index) => (
        <Fragment key={index}>
          <span>{group}</span>
          <wbr />
        </Fragment>
      ))}
    </span>
  );
}

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

/** True if the name of the shop makes a button too long. */
const isLongName = (): boolean => [...shopName()].length > MAX_NAME_LENGTH;

function labelOf(action: Action, isFramed: boolean): MessageKey {
  if (action !== 'return') return action as MessageKey;
  if (isFramed) return 'close';
  return isLongName() ? 'returnPlain' : 'return';
}

/** A button that is off stays in the order of focus, so that a call never takes the focus from the button that made it. */
export function Button({ action, view, act, label, kind = 'main', submit, disabled, run }: ButtonProps) {
  const { work, draft, isFramed, isSlow } = view;
  const isOff = disabled === true || (work !== null && action !== 'return');
  const isBusy = work !== null && WORKS[action]?.includes(work) === true;
  const busyWith = work === 'pay' && draft?.side !== 'on_ramp' ? 'loading' : work;
  const text = isBusy && busyWith ? t(BUSY[busyWith]) : (label ?? t(labelOf(action, isFramed)));
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
        <span key={text}>{text}</span>
      </button>
      {isBusy && isSlow && (
        <p class="help" role="status">
          {t('longer')}
        </p>
      )}
    </>
  );
}

/** Leaves the payment, after a question in place of the link. Money may be under way already, and cancelling does not bring it back. */
export function CancelLink(props: PartProps) {
  const { view } = props;
  const payment = view.session?.payment;
  const isUnderWay = payment?.status === 'processing';
  const isSent = isUnderWay && 'isSent' in view && view.isSent;
  // The page around a frame decides what follows.
  const goesBack = view.session?.cancel_url && !view.isFramed && !isLongName();
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
        label={t(isUnderWay ? 'cancelPayment' : goesBack ? 'cancelAndBack' : 'cancel')}
        run={() => setAsks(true)}
      />
    );
  return (
    <div class="ask" ref={question} tabIndex={-1} role="group" aria-label={t('askCancel')}>
      <p>
        <strong>{t(isSent ? 'riskSent' : 'askCancel')}</strong>{' '}
        {isUnderWay ? t(isSent ? 'askCancel' : 'askSent') : payment === null && t('nothingYet')}
      </p>
      <div class="pair">
        <button
          type="button"
          class={isSent ? 'main' : 'second'}
          onClick={() => {
            setAsks(false);
            setTimeout(() => document.querySelector<HTMLElement>('[data-action="cancel"]')?.focus());
          }}
        >
          {t(isUnderWay ? 'keepWaiting' : 'keepGoing')}
        </button>
        <Button {...props} action="cancel" kind="second" label={t('yesCancel')} />
      </div>
    </div>
  );
}
