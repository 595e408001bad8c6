import { useEffect, useRef } from 'preact/hooks';
import type { Step } from './flow/steps';
import type { View } from './flow/view';
import { Footer } from './footer';
import { Header } from './header';
import { t, tSide } from './i18n';
import { Alert, Button } from './parts';
import type { Actions, PartProps } from './screen_props';
import { Choose } from './screens/choose';
import { Details } from './screens/details';
import { EndSign, lostTitle, Offline, Over, overTitle, Unavailable } from './screens/ends';
import { say, spoken } from './speech';

/** The number of each step. The ends have none. */
const NUMBERS: Partial<Record<Step, number>> = {
  choose: 1,
  details: 1,
  price: 2,
  verification: 3,
  confirm: 3,
  instructions: 4,
  progress: 4,
};

/** The later screens. Null as long as no view shows one of them. */
export type Later = typeof import('./later') | null;

const Loading = () => (
  <div class="ghost" role="status">
    <span class="hidden">{t('loading')}</span>
    <i />
    <i />
    <i />
  </div>
);

function Screen({ view, act, later }: PartProps & { later: Later }) {
  switch (view.step) {
    case 'loading':
      return <Loading />;
    case 'choose':
      return <Choose view={view} act={act} />;
    case 'details':
      return <Details view={view} act={act} />;
    case 'unavailable':
      return <Unavailable view={view} act={act} />;
    case 'over':
      return <Over view={view} act={act} />;
    case 'offline':
      return (
        <Offline view={view} act={act}>
          {view.last && <Screen view={view.last} act={act} later={later} />}
        </Offline>
      );
    default:
      return later && <later.LaterScreen view={view} act={act} />;
  }
}

export function heading(view: View, later: Later): string {
  switch (view.step) {
    case 'loading':
      return t('title');
    case 'choose':
      return view.sides.length === 1 ? tSide('choose', view.draft.side) : t('chooseTitle');
    case 'details':
      return tSide('details', view.draft.side);
    case 'unavailable':
      return t('unavailableTitle');
    case 'over':
      return t(overTitle(view));
    case 'offline':
      return t(lostTitle(view));
    default:
      return later ? later.laterHeading(view) : '';
  }
}

const BACK_STEPS: Step[] = ['details', 'price', 'verification', 'confirm'];

/** True if the user can go back from a step: a session with one side begins at `choose` too. */
export const mayGoBack = ({ step, session }: View): boolean =>
  BACK_STEPS.includes(step) && session?.verification.status !== 'rejected';

function StepLine(props: PartProps) {
  const { view } = props;
  const number = NUMBERS[view.step];
  if (!number) return null;
  return (
    <div class="line-up">
      {mayGoBack(view) && <Button {...props} action="back" kind="back" />}
      <span class="count" key={number}>
        {t('stepOf', { step: String(number) })}
      </span>
      <span class="bars" aria-hidden="true">
        {[1, 2, 3, 4].map((one) => (
          <i key={one} class={one <= number ? 'on' : ''} />
        ))}
      </span>
    </div>
  );
}

/** Says what changed between two steps without the user. */
function useSpeech(step: Step): void {
  const last = useRef<Step>('loading');
  useEffect(() => {
    const before = last.current;
    last.current = step;
    if (before === 'offline') say(t('online'));
    else if (before === 'verification' && step === 'confirm') say(t('verified'));
    else if ((before === 'details' || before === 'price') && (step === 'instructions' || step === 'progress'))
      say(t('underWay'));
  }, [step]);
}

interface AppProps {
  view: View;
  act: Actions;
  mode: string;
  later: Later;
}

export function App(props: AppProps) {
  const { view, mode, later } = props;
  const { step } = view;
  const title = heading(view, later);
  useSpeech(step);
  return (
    <div class="card" data-step={step} aria-busy={view.work !== null}>
      <Header view={view} mode={mode} />
      <main>
        <StepLine {...props} />
        <div class="step" key={step}>
          <EndSign view={view} />
          <h1 id="heading" tabIndex={-1} class={step === 'loading' ? 'hidden' : undefined}>
            <span key={title}>{title}</span>
          </h1>
          {step !== 'verification' && <Alert {...props} />}
          <Screen {...props} />
        </div>
        <p class="hidden" role="status">
          <span key={spoken()}>{spoken()}</span>
        </p>
      </main>
      <Footer session={view.session} />
    </div>
  );
}
