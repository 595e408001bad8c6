import type { ComponentChildren } from 'preact';
import type { Flow, Step } from './flow';
import { money, t, type MessageKey } from './i18n';
import { Alert, Amount, Button, Picture, type Icon } from './parts';
import { Confirm, Details, Price, Sums } from './draft_screens';
import { Instructions, Verification } from './task_screens';
import type { Side } from './types';

const SIDE_TEXT: Record<Side, [MessageKey, MessageKey]> = {
  on_ramp: ['chooseBuy', 'buyHint'],
  off_ramp: ['chooseSell', 'sellHint'],
  swap: ['chooseSwap', 'swapHint'],
};

const HEADINGS: Record<Step, MessageKey> = {
  loading: 'loading', choose: 'chooseTitle', details: 'detailsTitle', price: 'priceTitle', verification: 'verificationTitle',
  confirm: 'confirmTitle', instructions: 'instructionsTitle', progress: 'progressTitle', done: 'doneTitle', failed: 'failedTitle',
  unavailable: 'unavailableTitle', over: 'overTitle', offline: 'offlineTitle',
};

export interface ScreenProps {
  flow: Flow;
}

function Header({ flow, mode }: { flow: Flow; mode: string }) {
  const { session } = flow;
  const { logo_url: logo, brand_name: name } = session?.branding ?? {};
  return (
    <header>
      {(session?.mode ?? mode) === 'test' && <p class="test"><strong>{t('testMode')}</strong> {t('testNote')}</p>}
      {session && (
        <div class="brand">
          <span class="who">
            {logo && /^(https:|data:image\/)/.test(logo) && <img src={logo} alt="" height={32} referrerpolicy="no-referrer" />}
            <span>{name || t('title')}</span>
          </span>
          <span class="total">
            <small>{t('order')}</small>
            <Amount value={session.amount}>{money(session.amount, session.currency)}</Amount>
          </span>
        </div>
      )}
    </header>
  );
}

function Choose({ flow }: ScreenProps) {
  const { sides, draft } = flow;
  const side = draft?.side ?? 'on_ramp';
  const move = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const target = by && sides[(sides.indexOf(side) + by + sides.length) % sides.length];
    if (target) {
      event.preventDefault();
      flow.chooseSide(target);
      document.querySelector<HTMLElement>(`[data-flow="${target}"]`)?.focus();
    }
  };
  return (
    <>
      {sides.length > 1 && (
        <div class="tabs" role="tablist" aria-label={t('kinds')} onKeyDown={move}>
          {sides.map((one) => (
            <button key={one} type="button" role="tab" data-flow={one} id={`tab-${one}`} aria-selected={one === side} aria-controls="panel" tabIndex={one === side ? 0 : -1} onClick={() => flow.chooseSide(one)}>
              {t(one)}
            </button>
          ))}
        </div>
      )}
      <div class="offer" id="panel" {...(sides.length > 1 ? { role: 'tabpanel', 'aria-labelledby': `tab-${side}` } : {})}>
        <Picture kind="picture" icon={side} />
        <div>
          {sides.length > 1 && <h2>{t(SIDE_TEXT[side][0])}</h2>}
          <p>{t(SIDE_TEXT[side][1])}</p>
        </div>
      </div>
      <Button action="continue" flow={flow} />
      <Button action="cancel" flow={flow} />
    </>
  );
}

/** A screen that ends the flow or pauses it: a sign, a sentence, and what the user can do. */
function Ending({ flow, sign, children, code, retry, receipt }: ScreenProps & { sign: Icon; children: ComponentChildren; code?: string | undefined; retry?: boolean; receipt?: ComponentChildren }) {
  return (
    <>
      <Picture kind={`sign ${sign === 'good' || sign === 'bad' ? sign : 'still'}`} icon={sign} />
      {code ? <p class="lead" role="alert" data-code={code}>{children}</p> : <p class="lead" role="status">{children}</p>}
      {receipt}
      {retry && <Button action="retry" flow={flow} />}
      {flow.canLeave && <Button action="return" flow={flow} plain={retry === true} />}
    </>
  );
}

function Progress({ flow }: ScreenProps) {
  return (
    <>
      <Picture kind="sign wait" />
      <p class="lead" role="status">{t(flow.depositAsked && !flow.depositReturned ? 'deposit' : 'progressText')}</p>
      <Alert flow={flow} />
      {flow.sent && flow.session?.payment?.instructions && <Button action="back" flow={flow} label={t(flow.session.payment.instructions['iban'] ? 'showBank' : 'showDetails')} />}
      <Button action="cancel" flow={flow} label={t('cancelPayment')} />
    </>
  );
}

function Done({ flow }: ScreenProps) {
  const payment = flow.session?.payment;
  return (
    <Ending flow={flow} sign="good" receipt={payment && flow.session && <Sums priced={payment} currency={flow.session.currency} />}>
      {t(payment?.side === 'off_ramp' ? 'doneSell' : 'doneBuy')}
      {payment?.tx_refid && <span class="reference">{t('reference')}: <code>{payment.tx_refid}</code></span>}
    </Ending>
  );
}

function Failed({ flow }: ScreenProps) {
  const payment = flow.session?.payment;
  if (payment?.status === 'cancelled') {
    return <Ending flow={flow} sign="still" retry>{t('cancelledText')}</Ending>;
  }
  return (
    <Ending flow={flow} sign="bad" code={payment?.failure_code ?? 'payment_failed'} retry>
      {t('failedText')}
    </Ending>
  );
}

/** Without the session the page cannot know whether it was paid, so it never says to start again. */
function Over({ flow }: ScreenProps) {
  if (flow.dead) return <Ending flow={flow} sign="clock" code={flow.dead.code}>{t(flow.dead.code === 'unauthorized' ? 'tokenText' : 'overText')}</Ending>;
  const cancelled = flow.session?.status === 'cancelled';
  return <Ending flow={flow} sign={cancelled ? 'still' : 'clock'} code={cancelled ? 'session_cancelled' : 'session_expired'}>{t(cancelled ? 'overCancelled' : 'overExpired')}</Ending>;
}

function Screen({ flow, step }: ScreenProps & { step: Step }) {
  switch (step) {
    case 'loading': return <Picture kind="sign wait" />;
    case 'choose': return <Choose flow={flow} />;
    case 'details': return <Details flow={flow} />;
    case 'price': return <Price flow={flow} />;
    case 'verification': return <Verification flow={flow} />;
    case 'confirm': return <Confirm flow={flow} />;
    case 'instructions': return <Instructions flow={flow} />;
    case 'progress': return <Progress flow={flow} />;
    case 'done': return <Done flow={flow} />;
    case 'failed': return <Failed flow={flow} />;
    case 'unavailable': return <Ending flow={flow} sign="still" code={flow.dead?.code}>{t('unavailableText')}</Ending>;
    case 'over': return <Over flow={flow} />;
    case 'offline': return <Ending flow={flow} sign="offline" code="offline" retry>{t('offlineText')}</Ending>;
  }
}

function heading(flow: Flow, step: Step): string {
  if (step === 'failed' && flow.session?.payment?.status === 'cancelled') return t('cancelledTitle');
  if (step === 'over' && flow.dead?.code === 'unauthorized') return t('tokenTitle');
  if (step === 'choose' && flow.sides.length === 1) return t(SIDE_TEXT[flow.draft?.side ?? 'on_ramp'][0]);
  return t(HEADINGS[step]);
}

const ALERT_STEPS: Step[] = ['choose', 'details', 'price', 'confirm', 'instructions'];

export function App({ flow, mode, step }: ScreenProps & { mode: string; step: Step }) {
  return (
    <div class="card" data-step={step} aria-busy={flow.busy}>
      <Header flow={flow} mode={mode} />
      <main>
        <h1 id="heading" tabIndex={-1}>{heading(flow, step)}</h1>
        {ALERT_STEPS.includes(step) && <Alert flow={flow} />}
        <Screen flow={flow} step={step} />
      </main>
      <footer>{t('powered')}</footer>
    </div>
  );
}

