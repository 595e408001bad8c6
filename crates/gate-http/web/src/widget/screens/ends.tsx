import type { ComponentChildren } from 'preact';
import type { View, ViewOf } from '../flow/view';
import { t, type MessageKey } from '../i18n';
import { Button, Picture, type Icon } from '../parts';
import type { PartProps, ScreenProps } from '../screen_props';

const Sign = ({ icon, kind = 'still' }: { icon: Icon; kind?: string }) => <Picture kind={`sign ${kind}`} icon={icon} />;

interface EndingProps extends PartProps {
  children: ComponentChildren;
  code: string;
  retry?: boolean;
}

/** A screen that ends the flow or pauses it: a sentence, and what the customer can do. */
function Ending(props: EndingProps) {
  const { view, children, code, retry } = props;
  return (
    <>
      <p class="lead" role="alert" data-code={code}>
        {children}
      </p>
      <div class="foot">
        {retry && <Button {...props} action="retry" label={t('tryNow')} />}
        {!retry && view.canLeave && <Button {...props} action="return" />}
      </div>
    </>
  );
}

/** The reference stays whole and as it is, also in a page that is translated. */
function KeepAndAsk({ reference }: { reference: string }) {
  const [before, after] = t('keepAndAsk', { reference: '\0' }).split('\0');
  return (
    <>
      {before}
      <code translate={false}>{reference}</code>
      {after}
    </>
  );
}

const isBrokenLink = (code: string): boolean =>
  /^(client_secret_invalid|link_incomplete|unauthorized|(test|live)_key_on_.*)$/.test(code);

export function Unavailable(props: ScreenProps<'unavailable'>) {
  const { code, session } = props.view;
  const payment = session?.payment;
  return (
    <Ending {...props} code={code}>
      {payment ? <KeepAndAsk reference={payment.id} /> : t(isBrokenLink(code) ? 'brokenLink' : 'unavailableText')}
    </Ending>
  );
}

export function overTitle({ code, session }: ViewOf<'over'>): MessageKey {
  if (code === 'unauthorized') return 'tokenTitle';
  if (code === 'session_cancelled') return 'cancelledTitle';
  return code === 'session_expired' && session?.status === 'expired' ? 'expiredTitle' : 'closedTitle';
}

function overText({ code, session }: ViewOf<'over'>): ComponentChildren {
  if (code === 'unauthorized') return t('tokenText');
  if (code !== 'session_cancelled' && code !== 'session_expired') return t('closedText');
  if (session?.payment) return <KeepAndAsk reference={session.payment.id} />;
  return t(code === 'session_cancelled' ? 'nothingPaid' : 'startAgain');
}

/** Without the session the page cannot know whether it was paid, so it never says to start again. */
export const Over = (props: ScreenProps<'over'>) => (
  <Ending {...props} code={props.view.code}>
    {overText(props.view)}
  </Ending>
);

/** The last screen stays in sight, but nothing in it can be pressed, whatever it draws while it waits. */
function withoutActions(last: HTMLElement | null): void {
  if (!last) return;
  const strip = () => last.querySelectorAll('[data-action]').forEach((button) => button.removeAttribute('data-action'));
  strip();
  new MutationObserver(strip).observe(last, { childList: true, subtree: true, attributeFilter: ['data-action'] });
}

const LOST = {
  connection: ['offlineTitle', 'offlineText'],
  outcome: ['checkingTitle', 'checkingText'],
  gate: ['unavailableTitle', 'unreachable'],
} as const satisfies Record<ViewOf<'offline'>['lost'], [MessageKey, MessageKey]>;

export const lostTitle = ({ lost }: ViewOf<'offline'>): MessageKey => LOST[lost][0];

export function Offline(props: ScreenProps<'offline'> & { children: ComponentChildren }) {
  const { view, children } = props;
  return (
    <>
      <Ending {...props} code="offline" retry>
        {t(LOST[view.lost][1])}
      </Ending>
      <div class="last" inert aria-hidden="true" ref={withoutActions}>
        {children}
      </div>
    </>
  );
}

export function EndSign({ view }: { view: View }) {
  const { step } = view;
  if (step === 'done' || step === 'failed') {
    const kind = step === 'done' ? 'good' : 'bad';
    return <Sign icon={kind} kind={kind} />;
  }
  if (step === 'unavailable') return <Sign icon="still" />;
  if (step === 'offline') return <Sign icon={view.lost === 'gate' ? 'still' : 'offline'} />;
  if (step !== 'over') return null;
  const isEnded = ['cancelledTitle', 'closedTitle'].includes(overTitle(view));
  return <Sign icon={isEnded ? 'bad' : 'clock'} />;
}
