import { useEffect, useRef } from 'preact/hooks';
import type { ViewOf } from './flow/view';
import { crypto, decimal, money, t, timeOrMoment, type MessageKey } from './i18n';
import { Amount, Note, Picture } from './parts';
import { missingOf, sentAsset } from './session';
import { say } from './speech';

/** A text that names amounts, each with its exact value and its written form. */
function Sentence({ text, amounts }: { text: MessageKey; amounts: Record<string, [string, string]> }) {
  const parts = t(text)
    .split(/\{(\w+)\}/)
    .map((part) => {
      const amount = amounts[part];
      return amount ? <Amount value={amount[0]}>{amount[1]}</Amount> : part;
    });
  return <span>{parts} </span>;
}

/** What has arrived of a payment that goes on, and until when the customer can pay. A change is said. */
export function PaymentNotice({ view }: { view: ViewOf<'instructions' | 'progress'> }) {
  const { session, payment, due, now } = view;
  const note = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const text = note.current?.textContent;
    if (text) say(text.trim());
  }, [payment.received?.amount, due]);
  const { received, pay_until: until, side } = payment;
  const missing = missingOf(payment) ?? '';
  const number = (value: string) => (side === 'on_ramp' ? money(value, session.currency) : decimal(value));
  const exact = (value: string): [string, string] => [
    value,
    side === 'on_ramp' ? number(value) : crypto(value, sentAsset(payment)),
  ];
  return (
    <>
      {(received || due === 'late') && (
        <div ref={note} key={`${received?.amount} ${due}`}>
          <Note icon="info" kind={due === 'arrived' ? 'good' : 'warn'}>
            {received &&
              (missing.startsWith('-') ? (
                <Sentence
                  text="moreArrived"
                  amounts={{ received: exact(received.amount), required: exact(received.required) }}
                />
              ) : (
                <Sentence
                  text="partArrived"
                  amounts={{ received: [received.amount, number(received.amount)], required: exact(received.required) }}
                />
              ))}
            {due === 'late' && t('timeOver')}
            {received && due === 'open' && <Sentence text="sendRest" amounts={{ rest: exact(missing) }} />}
          </Note>
        </div>
      )}
      {until && due === 'open' && (
        <p class="countdown">
          <Picture icon="clock" />
          <span>{t('payBefore')}</span>
          <strong translate={false}>
            <time>{timeOrMoment(until, now)}</time>
          </strong>
        </p>
      )}
    </>
  );
}
