import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { View } from './flow/view';
import { moment, money, shopName, t, type MessageKey } from './i18n';
import { Amount } from './parts';
import { rateOf, sums } from './terms';
import type { Session } from './types';

function Tile({ logo }: { logo: string | null }) {
  const [broken, setBroken] = useState(false);
  if (logo && !broken && /^(https:|data:image\/)/.test(logo))
    return <img src={logo} alt="" referrerpolicy="no-referrer" onError={() => setBroken(true)} />;
  return <span class="tile" aria-hidden="true" data-letter={[...shopName()][0]?.toUpperCase()} />;
}

function amountLabel({ session, draft, step }: View): MessageKey {
  const side = session?.payment?.side ?? draft?.side;
  switch (step) {
    case 'choose':
      return 'i_amount';
    case 'done':
      // The test helper completes a session without a payment.
      if (!session?.payment) return 'i_amount';
      return side === 'off_ramp' ? 'onItsWay' : side === 'swap' ? 'worth' : 'youPaid';
    case 'failed':
    case 'over':
    case 'offline':
    case 'unavailable':
      return side === 'off_ramp' ? 'i_amount' : side === 'swap' ? 'worth' : 'toPay';
    default:
      return side === 'off_ramp' ? 'youReceive' : side === 'swap' ? 'worth' : 'youPay';
  }
}

/** Beside the step on wide pages: what the user gets, and at which rate. */
function Facts({ view, session }: { view: View; session: Session }) {
  const { step, priced } = view;
  const row = (label: MessageKey, value: ComponentChildren) => (
    <div key={label}>
      <dt>{t(label)}</dt>
      <dd translate={false}>{value}</dd>
    </div>
  );
  if (step === 'choose' || step === 'details')
    return <dl class="facts">{row('payBefore', <time>{moment(session.expires_at)}</time>)}</dl>;
  const isDone = step === 'done';
  // A price that nobody paid says nothing about a session that has ended.
  if (!priced || step === 'over' || step === 'unavailable' || (isDone && !session.payment)) return null;
  const { give, get } = sums(priced, session.currency);
  return (
    <dl class="facts">
      {priced.side !== 'on_ramp' && row(isDone ? 'youSent' : 'youSend', give[1])}
      {priced.side !== 'off_ramp' && row(isDone ? 'sentToYou' : 'youReceive', get[1])}
      {row('rate', rateOf(priced, session.currency))}
    </dl>
  );
}

export function Header({ view, mode }: { view: View; mode: string }) {
  const { session, step } = view;
  const label = amountLabel(view);
  return (
    <header>
      {(session?.mode ?? mode) === 'test' && (
        <p class="test">
          <strong>{t('testMode')}</strong>
          {t('testNote')}
        </p>
      )}
      <div class="side">
        {session ? (
          <div class="brand">
            <span class="who">
              <Tile logo={session.branding.logo_url} />
              <span class="name" translate={false}>
                {shopName()}
              </span>
            </span>
            <span class="sum">
              <small key={label}>{t(label)}</small>
              <Amount value={session.amount}>{money(session.amount, session.currency)}</Amount>
            </span>
            <Facts view={view} session={session} />
          </div>
        ) : (
          step === 'loading' && (
            <div class="brand" aria-hidden="true">
              <span class="who">
                <i class="blank tile" />
                <i class="blank" />
              </span>
              <i class="blank" />
            </div>
          )
        )}
      </div>
    </header>
  );
}
