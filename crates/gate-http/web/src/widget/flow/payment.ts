import type { Api } from '../api';
import { forgetIntent, intentKey, isOwnKey } from '../memory';
import type { PaymentRequest, Session } from '../types';
import type { Report } from './events';
import { NoAnswer, Refusal } from './refusals';
import { ATTEMPTS_TO_PAY } from './steps';

export const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

const isUnclear = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refusal && error.isUnclear);

/**
 * Sends the payment until its outcome is known. The session is read before each repetition.
 *
 * `report` hears whose payment it is, and `show` returns whether the session still waits for the payment. Fails with the refusal of the
 * gate, or with `NoAnswer` if the outcome stays unknown.
 */
export async function sendPayment(
  api: Pick<Api, 'pay' | 'session'>,
  { id, payment: earlier }: Session,
  body: PaymentRequest,
  report: (event: Report) => void,
  show: (session: Session) => boolean,
): Promise<void> {
  const key = intentKey(id, earlier?.id ?? null);
  for (let attempt = 1; attempt <= ATTEMPTS_TO_PAY; attempt += 1) {
    try {
      const payment = await api.pay(body, key);
      report({ type: 'paid', payment: payment.id, isOwn: isOwnKey(key) });
      forgetIntent(id);
      show(await api.session());
      return;
    } catch (error) {
      if (!isUnclear(error)) {
        // A token can die after a lost answer, so its refusal says nothing about the payment.
        if (error instanceof Refusal && error.status !== 429 && error.status !== 401) forgetIntent(id);
        report({ type: 'not_paid' });
        throw error;
      }
    }
    if (attempt > 1) await pause(500 * 2 ** attempt);
    if (!show(await api.session())) return;
  }
  throw new NoAnswer();
}
