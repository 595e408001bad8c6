import type { ReceivedEvent } from './backend.js';

/** What the shop does about its order, and why. */
export interface Decision {
  state: 'none' | 'elsewhere' | 'waiting' | 'paid' | 'failed' | 'over';
  title: string;
  reason: string;
}

/** Id of the session that an event is about, or null. */
export function sessionOf(event: ReceivedEvent): string | null {
  const data = event.body.data ?? {};
  for (const id of [data.session_id, data.id]) {
    if (typeof id === 'string' && id.startsWith('gs_')) {
      return id;
    }
  }
  return null;
}

const DECISIONS: Record<string, [Decision['state'], string]> = {
  'gate_session.created': ['waiting', 'Wait for the payment'],
  'gate_session.processing': ['waiting', 'Wait: the payment is under way'],
  'gate_session.kyc_package_accepted': ['waiting', 'Wait for the payment'],
  'kyc.required': ['waiting', 'Wait: the customer is being verified'],
  'gate_session.failed': ['failed', 'Keep the goods: the payment failed'],
  'gate_session.completed': ['paid', 'Paid: ship the goods'],
  'gate_session.cancelled': ['over', 'Keep the goods: the order was cancelled'],
  'gate_session.expired': ['over', 'Keep the goods: the order has expired'],
};

/**
 * Decides about a session by its events, in their order. Only events with a valid signature count. `eventsTo` is the endpoint that
 * gets the events in place of the shop.
 */
export function decide(session: string | null, events: ReceivedEvent[], eventsTo: string | null): Decision {
  if (eventsTo !== null) {
    return {
      state: 'elsewhere',
      title: `Events go to ${eventsTo}`,
      reason: 'Your own server decides. This shop gets no events.',
    };
  }
  if (!session) {
    return {
      state: 'none',
      title: 'No order yet',
      reason: 'Your server decides after an event with a valid signature, and never earlier.',
    };
  }
  let decision: Decision = { state: 'waiting', title: 'Wait for the first event', reason: `Order ${session}.` };
  for (const event of events) {
    const known = DECISIONS[event.type];
    if (known && event.verified && sessionOf(event) === session) {
      decision = { state: known[0], title: known[1], reason: `Event ${event.type}, signature verified.` };
    }
  }
  return decision;
}
