import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Details } from './details';
import { doneTitle, Done, EndSign, Failed, failureOf, Offline, Over, overTitle, Unavailable } from './ends';
import type { Flow } from './flow';
import { crypto, eitherOf, methodInText, moment, money, networkName, shopName, t, tSide, type MessageKey } from './i18n';
import { Alert, Amount, Button, CancelLink, Picture, type Icon } from './parts';
import { Confirm, Price } from './price';
import { rateOf, sums } from './receipt';
import { say, spoken } from './speech';
import type { Step } from './steps';
import { Instructions, instructionsTitle, Progress, Verification } from './task_screens';

/** The number of each step. The ends have none. */
const NUMBERS: Partial<Record<Step, number>> = { choose: 1, details: 1, price: 2, verification: 3, confirm: 3, instructions: 4, progress: 4 };

export interface ScreenProps {
  flow: Flow;
}

function Tile({ flow }: ScreenProps) {
  const [broken, setBroken] = useState(false);
  const logo = flow.session?.branding.logo_url;
  if (logo && !broken && /^(https:|data:image\/)/.test(logo)) return <img src={logo} alt="" referrerpolicy="no-referrer" onError={() => setBroken(true)} />;
  return <span class="tile" aria-hidden="true" data-letter={[...shopName()][0]?.toUpperCase()} />;
}

function amountLabel(flow: Flow, step: Step): MessageKey {
  const side = flow.session?.payment?.side ?? flow.draft?.side;
  switch (step) {
    case 'choose': return 'i_amount';
    case 'done': return side === 'off_ramp' ? 'youReceived' : side === 'swap' ? 'worth' : 'youPaid';
    case 'failed': case 'over': case 'offline': case 'unavailable': return 'toPay';
    default: return side === 'off_ramp' ? 'youReceive' : side === 'swap' ? 'worth' : 'youPay';
  }
}

/** Beside the step on wide pages: what the user gets, and at which rate. */
function Facts({ flow, step }: ScreenProps & { step: Step }) {
  const { session, quote } = flow;
  if (!session) return null;
  const row = (label: MessageKey, value: ComponentChildren) => <div><dt>{t(label)}</dt><dd>{value}</dd></div>;
  const priced = session.payment && step !== 'price' && step !== 'confirm' ? session.payment : quote;
  if (step === 'choose' || step === 'details') return <dl class="facts">{row('payBefore', <time>{moment(session.expires_at)}</time>)}</dl>;
  if (!priced || step === 'over' || step === 'unavailable') return null;
  const { give, get } = sums(priced, session.currency);
  return (
    <dl class="facts">
      {priced.side !== 'on_ramp' && row('youSend', give[1])}
      {priced.side !== 'off_ramp' && row('youReceive', get[1])}
      {row('rate', rateOf(priced, session.currency))}
    </dl>
  );
}

function Header({ flow, mode, step }: ScreenProps & { mode: string; step: Step }) {
  const { session } = flow;
  return (
    <header>
      {(session?.mode ?? mode) === 'test' && <p class="test"><strong>{t('testMode')}</strong>{t('testNote')}</p>}
      <div class="side">
        {session ? (
          <div class="brand">
            <span class="who"><Tile flow={flow} /><span class="name">{shopName()}</span></span>
            <span class="sum">
              <small>{t(amountLabel(flow, step))}</small>
              <Amount value={session.amount}>{money(session.amount, session.currency)}</Amount>
            </span>
            <Facts flow={flow} step={step} />
          </div>
        ) : (step === 'loading' || step === 'offline') && <div class="brand" aria-hidden="true"><span class="who"><i class="blank tile" /><i class="blank" /></span><i class="blank" /></div>}
      </div>
    </header>
  );
}

/** What the chosen side takes and gives, in three lines. */
function linesOf(flow: Flow): [Icon, string, (string | undefined)?][] {
  const { session, sideOptions, draft } = flow;
  const side = draft?.side ?? 'on_ramp';
  const amount = money(session?.amount ?? '0', session?.currency ?? '');
  const methods = sideOptions?.methods ?? [];
  const ways = methods.length ? t('byMethods', { methods: eitherOf(methods.map(methodInText)) }) : undefined;
  if (side === 'swap') return [['off_ramp', t('sendOne')], ['coins', t('receiveAnother', { amount }), t('everyFee')], ['wallet', t('needWalletNew')]];
  if (side === 'off_ramp') return [['wallet', t('sendFromWallet'), t('everyFee')], ['bank', t('receiveThis', { amount }), ways], ['info', t(methods.every(({ account }) => account === 'iban') ? 'needIban' : 'needAccount')]];
  const symbols = (sideOptions?.assets ?? []).map(({ symbol }) => symbol).filter((symbol) => !session?.target_token || symbol.toLowerCase() === session.target_token.toLowerCase());
  const example = sideOptions?.indicative?.find(({ asset }) => asset === draft?.asset);
  return [
    ['bank', t('payAmount', { amount }), ways],
    ['coins', t('receiveThis', { amount: eitherOf(symbols) }), example ? t('aboutToday', { amount: crypto(example.crypto_amount, example.asset, 2) }) : t('everyFee')],
    ...(session?.wallet_address ? [] : [['wallet', t('needWallet'), t('anyWallet')] as [Icon, string, string]]),
  ];
}

function Choose({ flow }: ScreenProps) {
  const { sides, draft } = flow;
  const side = draft?.side ?? 'on_ramp';
  const choose = (one: typeof side) => {
    flow.chooseSide(one);
    say(t('selected', { side: t(one) }));
  };
  const move = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const target = by && sides[(sides.indexOf(side) + by + sides.length) % sides.length];
    if (target) {
      event.preventDefault();
      choose(target);
      document.querySelector<HTMLElement>(`[data-flow="${target}"]`)?.focus();
    }
  };
  return (
    <>
      {sides.length > 1 && (
        <div class="tabs" role="tablist" aria-label={t('kinds')} onKeyDown={move}>
          {sides.map((one) => (
            <button key={one} type="button" role="tab" data-flow={one} id={`tab-${one}`} aria-selected={one === side} aria-controls="panel" tabIndex={one === side ? 0 : -1} onClick={() => choose(one)}>
              <Picture icon={one} /><span>{t(one)}</span>
            </button>
          ))}
        </div>
      )}
      <div id="panel" {...(sides.length > 1 ? { role: 'tabpanel', 'aria-labelledby': `tab-${side}` } : {})}>
        <ul class="lines">
          {linesOf(flow).map(([icon, title, text]) => <li key={title}><Picture icon={icon} kind="badge" /><span><strong>{title}</strong>{text && <small>{text}</small>}</span></li>)}
        </ul>
      </div>
      <div class="foot"><Button action="continue" flow={flow} /><CancelLink flow={flow} /></div>
    </>
  );
}

const Loading = () => <div class="ghost" role="status"><span class="hidden">{t('loading')}</span><i /><i /><i /></div>;

function Screen({ flow, step }: ScreenProps & { step: Step }) {
  switch (step) {
    case 'loading': return <Loading />;
    case 'choose': return <Choose flow={flow} />;
    case 'details': return <Details flow={flow} />;
    case 'price': return <Price flow={flow} />;
    case 'verification': return <Verification flow={flow} />;
    case 'confirm': return <Confirm flow={flow} />;
    case 'instructions': return <Instructions flow={flow} />;
    case 'progress': return <Progress flow={flow} />;
    case 'done': return <Done flow={flow} />;
    case 'failed': return <Failed flow={flow} />;
    case 'unavailable': return <Unavailable flow={flow} />;
    case 'over': return <Over flow={flow} />;
    case 'offline': return <Offline flow={flow}>{flow.session && flow.lastStep !== 'failed' && <Screen flow={flow} step={flow.lastStep} />}</Offline>;
  }
}

export function heading(flow: Flow, step: Step): string {
  const side = flow.draft?.side ?? 'on_ramp';
  switch (step) {
    case 'loading': return t('title');
    case 'choose': return flow.sides.length === 1 ? tSide('choose', side) : t('chooseTitle');
    case 'details': return tSide('details', side);
    case 'price': return t('priceTitle');
    case 'verification': return t('verificationTitle');
    case 'confirm': return tSide('confirm', side);
    case 'instructions': return instructionsTitle({ flow });
    case 'progress': return t('progressTitle');
    case 'done': return doneTitle({ flow });
    case 'failed': return t(failureOf({ flow })[0]);
    case 'unavailable': return t('unavailableTitle');
    case 'over': return t(overTitle({ flow }));
    case 'offline': return t(flow.isUnsettled ? 'checkingTitle' : 'offlineTitle');
  }
}

const ALERT_STEPS: Step[] = ['choose', 'details', 'price', 'confirm', 'instructions', 'progress', 'failed'];
const BACK_STEPS: Step[] = ['details', 'price', 'verification', 'confirm'];

/** True if the user can go back from a step: a session with one side begins at `choose` too. */
export const mayGoBack = (flow: Flow, step: Step): boolean => BACK_STEPS.includes(step) && flow.session?.verification.status !== 'rejected';

function StepLine({ flow, step }: ScreenProps & { step: Step }) {
  const number = NUMBERS[step];
  if (!number) return null;
  return (
    <div class="line-up">
      {mayGoBack(flow, step) && <Button action="back" flow={flow} kind="back" />}
      <span class="count">{t('stepOf', { step: String(number) })}</span>
      <span class="bars" aria-hidden="true">{[1, 2, 3, 4].map((one) => <i key={one} class={one <= number ? 'on' : ''} />)}</span>
    </div>
  );
}

/** Says what changed between two steps without the user. */
function useSpeech(flow: Flow, step: Step): void {
  const last = useRef<Step>('loading');
  useEffect(() => {
    const before = last.current;
    last.current = step;
    if (before === 'offline') say(t('online'));
    else if (before === 'verification' && step === 'confirm') say(t('verified'));
    else if ((before === 'details' || before === 'price') && (step === 'instructions' || step === 'progress')) say(t('underWay'));
  }, [step, flow]);
}

export function App({ flow, mode, step }: ScreenProps & { mode: string; step: Step }) {
  useSpeech(flow, step);
  return (
    <div class="card" data-step={step} aria-busy={flow.busy}>
      <Header flow={flow} mode={mode} step={step} />
      <main>
        <StepLine flow={flow} step={step} />
        <div class="step" key={step}>
          <EndSign step={step} />
          <h1 id="heading" tabIndex={-1} class={step === 'loading' ? 'hidden' : undefined}>{heading(flow, step)}</h1>
          {ALERT_STEPS.includes(step) && <Alert flow={flow} network={networkName(flow.draft?.network ?? '')} />}
          <Screen flow={flow} step={step} />
        </div>
        <p class="hidden" role="status">{spoken()}</p>
      </main>
      <footer><span>{t('powered')} <strong>Penstock</strong></span><a href="/licenses.txt" target="_blank" rel="noopener noreferrer">{t('licences')}</a></footer>
    </div>
  );
}
