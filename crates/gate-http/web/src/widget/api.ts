import type { EmbedToken, Options, Payment, Quote, Session, VerificationTask } from './types';

/** An answer of the gate that refuses a call. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfter: number,
    readonly requestId: string,
  ) {
    super(message);
  }

  /** True when the call may have taken effect although the answer is an error. A gate that answers 501 or `rail_unavailable` has done nothing. */
  get isUnclear(): boolean {
    return (this.status >= 500 && this.status !== 501 && this.code !== 'rail_unavailable') || this.code === 'idempotency_in_progress';
  }
}

/** No answer arrived: the call may or may not have taken effect. */
export class NoAnswer extends Error {}

const TIMEOUT_MS = 20_000;
const LONG_POLL_SECONDS = 25;

export class Api {
  token = '';

  constructor(private readonly origin: string) {}

  bootstrap(publishableKey: string, clientSecret: string | null): Promise<EmbedToken> {
    const body = clientSecret ? { clientSecret } : {};
    return this.call('POST', 'bootstrap', body, { Authorization: `Bearer ${publishableKey}` });
  }

  session(after?: string): Promise<Session> {
    const query = after ? `?after=${encodeURIComponent(after)}&wait=${LONG_POLL_SECONDS}` : '';
    return this.call('GET', `session${query}`, undefined, {}, after ? (LONG_POLL_SECONDS + 10) * 1000 : TIMEOUT_MS);
  }

  options(): Promise<Options> {
    return this.call('GET', 'options');
  }

  quote(body: Record<string, string>): Promise<Quote> {
    return this.call('POST', 'quotes', body);
  }

  verification(answers?: Record<string, string>): Promise<VerificationTask> {
    return this.call('POST', 'verification', answers ? { answers } : {});
  }

  pay(body: unknown, key: string): Promise<Payment> {
    return this.call('POST', 'payments', body, { 'Idempotency-Key': key });
  }

  cancelPayment(id: string): Promise<Payment> {
    return this.call('POST', `payments/${encodeURIComponent(id)}/cancel`, {});
  }

  cancelSession(): Promise<Session> {
    return this.call('POST', 'cancel', {});
  }

  private async call<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    timeout = TIMEOUT_MS,
  ): Promise<T> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeout);
    const sent: Record<string, string> = { Accept: 'application/json', ...headers };
    if (path !== 'bootstrap') {
      sent['X-Embed-Token'] = this.token;
    }
    if (body !== undefined) {
      sent['Content-Type'] = 'application/json';
    }
    try {
      const answer = await fetch(`${this.origin}/v1/embed/${path}`, {
        method,
        headers: sent,
        body: body === undefined ? null : JSON.stringify(body),
        signal: stop.signal,
        credentials: 'omit',
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
      });
      const content = await answer.json().catch(() => null);
      if (answer.ok && content) {
        return content as T;
      }
      if (answer.ok) {
        throw new NoAnswer();
      }
      // A call with an earlier token says nothing about the newer one.
      if (answer.status === 401 && sent['X-Embed-Token'] && sent['X-Embed-Token'] !== this.token) {
        throw new NoAnswer();
      }
      const wait = Number(answer.headers.get('Retry-After-short') ?? answer.headers.get('Retry-After') ?? 5);
      throw new Refusal(answer.status, String(content?.code ?? 'unknown'), String(content?.message ?? ''), wait > 0 ? wait : 5, String(content?.request_id ?? ''));
    } catch (error) {
      throw error instanceof Refusal ? error : new NoAnswer();
    } finally {
      clearTimeout(timer);
    }
  }
}
