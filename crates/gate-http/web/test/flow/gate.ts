// A gate in memory: one session that is priced and paid as the gate does it. A test decides when a call reaches it.

import type { Payment, Quote, Session } from '../../src/widget/types';
import { instant, OPTIONS, paymentWith, quoteAt, sessionWith, SIMULATED_SWAP, SWAP, SWAP_PAYMENT } from './objects';

export interface Request {
  /** Method and path, such as `POST payments`. */
  readonly name: string;
  readonly token: string;
  readonly body: { readonly quote_id?: string };
  readonly key: string | null;
}
export type Response = readonly [status: number, body: object];

const refused = (status: number, code: string): Response => [status, { code, request_id: 'req_1' }];

export class Gate {
  session: Session = sessionWith({ flow: 'swap', version: 'v1' });
  /** The payments by idempotency key. */
  readonly payments = new Map<string, Payment>();
  readonly deadTokens = new Set<string>();
  /** True for the sandbox's rail. */
  isSimulated = false;
  #quote: Quote | null = null;
  #quotes = 0;
  #versions = 1;

  change(changes: Partial<Session>): void {
    this.#versions += 1;
    this.session = { ...this.session, ...changes, version: `v${this.#versions}` };
  }

  /** Ends the payment that goes on. */
  end(status: 'completed' | 'failed' | 'cancelled'): void {
    for (const [key, one] of this.payments) {
      if (one.status !== 'processing') continue;
      const payment = { ...one, status };
      this.payments.set(key, payment);
      this.change({ payment, ...(status === 'completed' ? { status } : {}) });
    }
  }

  answer({ name, token, body, key }: Request): Response {
    if (this.deadTokens.has(token)) return refused(401, 'unauthorized');
    switch (name) {
      case 'GET options':
        return [200, OPTIONS];
      case 'GET session':
        return [200, { ...this.session, server_time: instant(Date.now()) }];
      case 'POST quotes':
        return this.#refusal() ?? [201, this.price()];
      case 'POST payments':
        return this.pay(body.quote_id ?? '', key ?? '');
      case 'POST test_helpers/payments/pay_1/send':
      case 'POST test_helpers/payments/pay_2/send':
        if (!this.isSimulated) return refused(409, 'not_simulated');
        this.end('completed');
        return [200, this.session.payment ?? {}];
      default:
        if (this.session.payment?.status !== 'processing') return refused(409, 'payment_not_cancellable');
        this.end('cancelled');
        return [200, this.session.payment];
    }
  }

  /** Makes the newest price, after which no earlier one can be paid. */
  price(): Quote {
    this.#quotes += 1;
    this.#quote = quoteAt(Date.now(), { ...SWAP, id: `quote_${this.#quotes}` });
    return this.#quote;
  }

  pay(quoteId: string, key: string): Response {
    const known = this.payments.get(key);
    if (known) return [201, known];
    const refusal = this.#refusal();
    if (refusal) return refusal;
    if (quoteId !== this.#quote?.id) return refused(409, 'quote_superseded');
    if (this.#quote.consumed_at) return refused(409, 'quote_consumed');
    if (Date.parse(this.#quote.expires_at) <= Date.now()) return refused(409, 'quote_expired');
    this.#quote = { ...this.#quote, consumed_at: instant(Date.now()) };
    const { instructions } = this.isSimulated ? SIMULATED_SWAP : SWAP_PAYMENT;
    const payment = paymentWith({ ...SWAP_PAYMENT, instructions, id: `pay_${this.payments.size + 1}` });
    this.payments.set(key, payment);
    this.change({ payment });
    return [201, payment];
  }

  #refusal(): Response | null {
    if (this.session.payment?.status === 'processing') return refused(409, 'session_payment_in_progress');
    return this.session.status === 'open' ? null : refused(409, 'session_not_open');
  }
}
