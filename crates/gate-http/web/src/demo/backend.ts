/** Order that the shop turns into a session. */
export interface Order {
  amount: string;
  currency: string;
  flow: string | null;
}

/** Session that the shop's server created with its secret key. */
export interface CreatedSession {
  session_id: string;
  client_secret: string;
  url: string | null;
  /** The endpoint that gets the events in place of the shop, or null. */
  events_to: string | null;
}

/** Webhook that the shop's server received. */
export interface ReceivedEvent {
  sequence: number;
  received_at: string;
  type: string;
  id: string;
  verified: boolean;
  headers: Record<string, string>;
  body: { data?: Record<string, unknown> } & Record<string, unknown>;
}

/** Refusal of the shop's server, with the code of the error envelope. */
export class BackendError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Seconds that the server holds a request for events open. */
const POLL_WAIT_SECONDS = 25;
/** Pauses after a failed request, in milliseconds. */
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;

/** Creates a session. */
export async function createSession(order: Order): Promise<CreatedSession> {
  let response: Response;
  try {
    response = await fetch('/demo/sessions', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ ...order, target_token: null, target_network: null }),
    });
  } catch {
    throw new BackendError('network_error', 'The sandbox cannot be reached. Check that penstock sandbox still runs.');
  }
  const body = (await response.json().catch(() => null)) as Partial<
    CreatedSession & { code: string; message: string }
  > | null;
  if (response.ok && typeof body?.client_secret === 'string') {
    return body as CreatedSession;
  }
  throw new BackendError(
    body?.code ?? 'unexpected_response',
    body?.message ?? `The sandbox responded with status ${response.status}.`,
  );
}

/** What the shop's server knows about the events. */
export interface EventPage {
  events: ReceivedEvent[];
  next: number;
  /** The endpoint that gets the events in place of the shop, or null. */
  events_to: string | null;
}

/** Follows the events without end. `onState` reports whether the connection works. */
export async function followEvents(
  onEvents: (events: ReceivedEvent[], isNewLog: boolean, eventsTo: string | null) => void,
  onState: (isLive: boolean) => void,
): Promise<never> {
  let after = 0;
  let wait = 0;
  let backoff = FIRST_BACKOFF_MS;
  for (;;) {
    try {
      const response = await fetch(`/demo/events?after=${after}&wait=${wait}`, { cache: 'no-store' });
      if (!response.ok) {
        throw new Error(`status ${response.status}`);
      }
      const { events, next, events_to: eventsTo } = (await response.json()) as EventPage;
      onState(true);
      // A sandbox that was started again counts from the beginning.
      const isNewLog = next < after;
      after = isNewLog ? 0 : next;
      wait = isNewLog ? 0 : POLL_WAIT_SECONDS;
      backoff = FIRST_BACKOFF_MS;
      onEvents(isNewLog ? [] : events, isNewLog, eventsTo);
    } catch {
      onState(false);
      await new Promise((resolve) => setTimeout(resolve, backoff));
      backoff = Math.min(backoff * 2, MAX_BACKOFF_MS);
      wait = 0;
    }
  }
}
