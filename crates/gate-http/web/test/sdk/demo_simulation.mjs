// The demo shop's backend as `penstock sandbox` serves it, beside the gate and a widget with two buttons.

import { EventEmitter } from 'node:events';
import { envelope, nextChange, readBody, start } from '../../dev/gate.mjs';
import { listen, send, sendFile } from '../../dev/serving.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY, sendFrame, SESSION_ID } from './simulation.mjs';

const WIDGET_PAGE = `<!doctype html><html lang="en"><head><title>Checkout</title><script src="/frame.js"></script>
<script src="/widget.js" defer></script></head><body><h1>Pay</h1>
<button data-action="pay" disabled>Pay now</button><button data-action="cancel" disabled>Cancel</button></body></html>`;

/** Lets the buttons wait for the token. The widget's server decides what a click leads to. */
const WIDGET_SCRIPT = `
  let session;
  const begin = (id) => {
    session = id;
    document.querySelectorAll('button').forEach((button) => { button.disabled = false; });
    send({ type: 'step', step: 'confirm' });
    send({ type: 'quote', rate: '1.0822875', expires_at: '2026-11-22T11:10:26.885Z' });
  };
  const end = async (action) => {
    if (action === 'pay') send({ type: 'step', step: 'progress' });
    const { messages, url } = await (await fetch('/' + action, { method: 'POST' })).json();
    messages.forEach((message) => send(message));
    if (!parentOrigin) location.assign(url + '&gate_session_id=' + session);
  };
  document.querySelectorAll('button').forEach((button) => { button.onclick = () => end(button.dataset.action); });
  addEventListener('message', ({ source, origin, data }) => {
    if (source !== parent || origin !== parentOrigin) return;
    if (data.theme) document.documentElement.dataset.theme = data.theme;
    if (data.type === 'token') begin(data.session_id);
  });
  if (!parentOrigin) begin(fragment.get('client_secret').split('_').slice(1, 4).join('_'));
`;

/** Events of all sessions, with a long poll. */
class EventLog {
  events = [];
  changes = new EventEmitter();

  emit(type, data, verified = true) {
    const sequence = this.events.length + 1;
    const id = `00000000-0000-4000-8000-${String(sequence).padStart(12, '0')}`;
    const body = {
      id,
      object: 'event',
      type,
      created_at: new Date((1795345766 + sequence) * 1000).toISOString(),
      data,
    };
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': '1795345766',
      'webhook-signature': 'v1,c2lnbmF0dXJl',
      'gate-signature': 't=1795345766,v1=5257a869',
    };
    this.events.push({ sequence, received_at: new Date().toISOString(), type, id, verified, headers, body });
    this.changes.emit('change');
  }

  async read(query) {
    const after = Number(query.get('after'));
    if (this.events.length <= after) await nextChange(this.changes, Number(query.get('wait')));
    return { events: this.events.filter(({ sequence }) => sequence > after), next: this.events.length };
  }
}

/** Ends the payment of the session as its amount says. Returns what the widget does then. */
function pay({ session }, log) {
  const data = { ...session, object: 'gate_session' };
  log.emit('gate_session.processing', data);
  if (session.amount.endsWith('.31')) {
    log.emit('gate_session.failed', { ...data, failure_code: 'provider_declined' });
    const error = { type: 'error', code: 'provider_declined', message: 'The payment failed.' };
    return { messages: [{ type: 'step', step: 'failed' }, error], url: session.return_url };
  }
  const tx_refid = 'test_tx_01M81F4PCRYY0H5NFWXZDN1N02';
  log.emit('gate_session.completed', { ...data, status: 'completed', tx_refid });
  const success = { type: 'success', tx_id: tx_refid, session_id: session.id };
  return { messages: [{ type: 'step', step: 'done' }, success], url: session.return_url };
}

function cancel(simulation, log) {
  log.emit('gate_session.cancelled', { ...simulation.cancel(), object: 'gate_session' });
  return { messages: [{ type: 'close', reason: 'cancelled' }], url: simulation.session.cancel_url };
}

/** Starts the shop, the gate and the widget. `state.refuse` is the error of the next order, `state.eventsTo` another endpoint. */
export async function startDemo() {
  const log = new EventLog();
  const state = { refuse: undefined, isUnreachable: false, orders: [], eventsTo: null };
  const gate = await start();
  const places = { gate_origin: gate.origin, publishable_key: PUBLISHABLE_KEY, mode: 'test' };

  const widget = await listen((_, response, { pathname }) => {
    if (pathname === '/pay') return send(response, 200, pay(gate.simulation, log));
    if (pathname === '/cancel') return send(response, 200, cancel(gate.simulation, log));
    if (pathname === '/embed' || pathname === '/checkout') return send(response, 200, WIDGET_PAGE);
    if (pathname === '/widget.js') return send(response, 200, WIDGET_SCRIPT, { type: 'js' });
    return sendFrame(response, pathname, places);
  });
  places.widget_origin = widget.origin;

  const createSession = async (request, response) => {
    const order = await readBody(request);
    if (state.refuse) return send(response, state.refuse.statusCode, state.refuse);
    state.orders.push(order);
    const session_id = SESSION_ID.slice(0, -4) + String(state.orders.length).padStart(4, '0');
    const [return_url, cancel_url] = ['paid', 'cancelled'].map((end) => `${shop.origin}/demo?${end}`);
    gate.use({ id: session_id, ...order, return_url, cancel_url });
    if (!state.eventsTo) log.emit('gate_session.created', { ...gate.simulation.session, object: 'gate_session' });
    const client_secret = CLIENT_SECRET.replace(SESSION_ID, session_id);
    const url = `${widget.origin}/checkout#publishable_key=${PUBLISHABLE_KEY}&client_secret=${client_secret}`;
    return send(response, 201, { session_id, client_secret, url, events_to: state.eventsTo });
  };

  const shop = await listen(async (request, response, { pathname, searchParams }) => {
    if (pathname === '/demo/sessions') return createSession(request, response);
    if (pathname === '/demo/events' && state.isUnreachable) {
      return send(response, 503, envelope('service_unavailable', 'The sandbox is stopping.', 503));
    }
    if (pathname === '/demo/events') {
      return send(response, 200, { ...(await log.read(searchParams)), events_to: state.eventsTo });
    }
    const policy = [
      `default-src 'none'; script-src 'self' ${widget.origin}; style-src 'self'; frame-src ${widget.origin}`,
      `connect-src 'self' ${gate.origin}; img-src 'self' data:`,
      "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ];
    const path = pathname === '/demo' ? '/demo.html' : pathname;
    return sendFile(response, path, places, { 'Content-Security-Policy': policy.join('; ') });
  });
  gate.origins = [shop.origin];
  return { state, log, gate, widget, shop, close: () => Promise.all([gate, widget, shop].map((one) => one.close())) };
}
