import { NoAnswer, Refusal } from './flow/refusals';
import type {
  Answer,
  Answers,
  Body,
  ErrorBody,
  Outcome,
  Payment,
  PaymentRequest,
  QuoteRequest,
  VerificationTask,
} from './types';

const TIMEOUT_MS = 20_000;
const LONG_POLL_SECONDS = 25;
const LONG_POLL_MS = (LONG_POLL_SECONDS + 10) * 1000;
/** Pause after a refusal that does not name one. */
const RETRY_SECONDS = 5;

/** Makes calls. `token` returns the newest token, which a call may outlive. */
export function callerOf(origin: string, token: () => string) {
  return async function call<T>(
    method: 'GET' | 'POST',
    path: string,
    body: object | null = null,
    headers: Record<string, string> = { 'X-Embed-Token': token() },
    timeout = TIMEOUT_MS,
  ): Promise<T> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), timeout);
    const sent: Record<string, string> = { Accept: 'application/json', ...headers };
    if (body) sent['Content-Type'] = 'application/json';
    try {
      const answer = await fetch(`${origin}/v1/embed/${path}`, {
        method,
        headers: sent,
        body: body && JSON.stringify(body),
        signal: stop.signal,
        credentials: 'omit',
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
      });
      const content = (await answer.json().catch(() => null)) as (T & Partial<ErrorBody>) | null;
      if (answer.ok && content) return content;
      // A call with an earlier token says nothing about the newer one.
      const isOutdated = answer.status === 401 && 'X-Embed-Token' in sent && sent['X-Embed-Token'] !== token();
      if (answer.ok || isOutdated) throw new NoAnswer();
      const wait = Number(answer.headers.get('Retry-After-short') ?? answer.headers.get('Retry-After'));
      throw new Refusal(
        answer.status,
        String(content?.code ?? 'unknown'),
        wait > 0 ? wait : RETRY_SECONDS,
        String(content?.request_id ?? ''),
      );
    } catch (error) {
      throw error instanceof Refusal ? error : new NoAnswer();
    } finally {
      clearTimeout(timer);
    }
  };
}

/** The calls of the widget. */
export function apiOf(origin: string, token: () => string) {
  const call = callerOf(origin, token);
  return {
    bootstrap: (publishableKey: string, clientSecret: string) =>
      call<Answer<'createEmbedToken'>>('POST', 'bootstrap', { clientSecret } satisfies Body<'createEmbedToken'>, {
        Authorization: `Bearer ${publishableKey}`,
      }),
    /** How a session ended that can no longer be paid. */
    outcome: (publishableKey: string, clientSecret: string) =>
      call<Outcome>('POST', 'outcome', { clientSecret } satisfies Body<'retrieveEmbedOutcome'>, {
        Authorization: `Bearer ${publishableKey}`,
      }),
    /** Reads the session. With a version the gate answers as soon as it has another one. */
    session: (after?: string) =>
      after
        ? call<Answer<'retrieveEmbedSession'>>(
            'GET',
            `session?after=${encodeURIComponent(after)}&wait=${LONG_POLL_SECONDS}`,
            null,
            undefined,
            LONG_POLL_MS,
          )
        : call<Answer<'retrieveEmbedSession'>>('GET', 'session'),
    /** Lists what is on offer. The examples are for the pair, or else for the first network of each asset. */
    options: (pair?: { asset: string; network: string }) =>
      call<Answer<'listEmbedOptions'>>('GET', pair ? `options?${new URLSearchParams(pair)}` : 'options'),
    quote: (body: QuoteRequest) => call<Answer<'createEmbedQuote'>>('POST', 'quotes', body),
    /** Starts a verification, or sends the answers to its form. */
    verification: (answers: Answers | null) =>
      call<VerificationTask>('POST', 'verification', answers ? { answers } : {}),
    pay: (body: PaymentRequest, key: string) =>
      call<Answer<'createEmbedPayment'>>('POST', 'payments', body, {
        'X-Embed-Token': token(),
        'Idempotency-Key': key,
      }),
    /** Tells the sandbox's rail that the money of a payment was sent. */
    pretend: (id: string) => call<Payment>('POST', `test_helpers/payments/${encodeURIComponent(id)}/send`),
    cancelPayment: (id: string) =>
      call<Answer<'cancelEmbedPayment'>>('POST', `payments/${encodeURIComponent(id)}/cancel`, {}),
    cancelSession: () => call<Answer<'cancelEmbedSession'>>('POST', 'cancel', {}),
  };
}

export type Api = ReturnType<typeof apiOf>;
