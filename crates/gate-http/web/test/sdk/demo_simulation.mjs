// The demo shop's backend as `penstock sandbox` serves it, with a gate and a widget that pays, on three origins of this machine.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CLIENT_SECRET, DIST, embedToken, envelope, listen, PUBLISHABLE_KEY, readBody, SESSION_ID, sendJson, sendText, served } from './simulation.mjs';

const WIDGET_PAGE = `<!doctype html><html lang="en"><head><title>Checkout</title><link rel="stylesheet" href="/widget.css"><script src="/widget.js" defer></script></head>
<body><main data-step="confirm"><h1>Pay</h1><p id="sum">…</p><button data-action="pay" disabled>Pay now</button><button data-action="cancel" disabled>Cancel</button><p id="state"></p></main></body></html>`;

const WIDGET_STYLE = `body{margin:0;font:16px/1.5 system-ui,sans-serif;background:#f4f8f7;color:#10211e}main{padding:24px}h1{margin:0;font-size:20px}
button{display:block;width:100%;min-height:52px;margin-top:12px;border:0;border-radius:12px;font:inherit;font-weight:600;background:#0b6b5d;color:#fff}
button+button{background:none;color:#4d615c}[data-theme=dark]{background:#0d1716;color:#e6f0ee}[data-theme=dark] button+button{color:#9db3ae}`;

/** A widget with two buttons, which wait for the token. It speaks the frame protocol, and the simulated gate does the rest. */
const WIDGET_SCRIPT = `
  const fragment = new URLSearchParams(location.hash.slice(1));
  const target = fragment.get('parent_origin');
  const main = document.querySelector('main');
  window.received = [];
  let session;
  const send = (message) => target && parent.postMessage({ penstock: 1, ...message }, target);
  const step = (name) => { main.dataset.step = name; send({ type: 'step', step: name }); send({ type: 'resize', height: document.documentElement.offsetHeight + 60 }); };
  const leave = (action) => fetch('/simulated/' + action, { method: 'POST', body: JSON.stringify({ session }) }).then((response) => response.json());
  const begin = (id) => {
    session = id;
    document.querySelectorAll('button').forEach((button) => { button.disabled = false; });
    document.getElementById('sum').textContent = 'Order ' + id;
    step('confirm');
    send({ type: 'quote', rate: '1.0822875', expires_at: '2026-11-22T11:10:26.885Z' });
  };
  addEventListener('message', (event) => {
    if (event.source !== parent || event.origin !== target) return;
    received.push(event.data);
    if (event.data.theme) document.documentElement.dataset.theme = event.data.theme;
    if (event.data.type === 'token') begin(event.data.session_id);
  });
  document.querySelector('[data-action=pay]').addEventListener('click', async () => {
    step('progress');
    const { status, tx_refid, return_url } = await leave('pay');
    step(status === 'completed' ? 'done' : 'failed');
    document.getElementById('state').textContent = status;
    if (status === 'completed') send({ type: 'success', tx_id: tx_refid, session_id: session });
    else send({ type: 'error', code: 'provider_declined', message: 'The payment failed.' });
    if (!target) location.assign(return_url + '&gate_session_id=' + session);
  });
  document.querySelector('[data-action=cancel]').addEventListener('click', async () => {
    const { cancel_url } = await leave('cancel');
    send({ type: 'close', reason: 'cancelled' });
    if (!target) location.assign(cancel_url + '&gate_session_id=' + session);
  });
  if (target) send({ type: 'ready' });
  else begin(fragment.get('client_secret').split('_').slice(1, 4).join('_'));
`;

/** Number, in the style of an id, that makes each session's id its own. */
function sessionId(number) {
  return SESSION_ID.slice(0, -4) + String(number).padStart(4, '0');
}

/** Events of all sessions, with a long poll. */
class EventLog {
  events = [];
  waiting = new Set();

  emit(type, data, verified = true) {
    const sequence = this.events.length + 1;
    const body = { id: `00000000-0000-4000-8000-${String(sequence).padStart(12, '0')}`, object: 'event', type, created_at: 1795345766 + sequence, data };
    const headers = { 'webhook-id': body.id, 'webhook-timestamp': '1795345766', 'webhook-signature': 'v1,c2lnbmF0dXJl', 'gate-signature': 't=1795345766,v1=5257a869' };
    this.events.push({ sequence, received_at: new Date().toISOString(), type, id: body.id, verified, headers, body });
    this.waiting.forEach((wake) => wake());
    this.waiting.clear();
  }

  async read(after, waitSeconds) {
    if (this.events.length <= after && waitSeconds > 0) {
      await new Promise((resolve) => {
        this.waiting.add(resolve);
        setTimeout(resolve, waitSeconds * 1000).unref();
      });
    }
    return { events: this.events.filter(({ sequence }) => sequence > after), next: this.events.length };
  }
}

/** Starts the demo shop, its gate and its widget. `state.refuse` is an error of the next session; `state.gateDown` stops the event log. */
export async function startDemo() {
  const log = new EventLog();
  const sessions = new Map();
  const state = { refuse: undefined, isUnreachable: false, orders: [], bootstrap: undefined };
  const data = (id, changes = {}) => ({ id, object: 'gate_session', status: 'open', ...sessions.get(id), metadata: {}, ...changes });

  const gate = await listen(async (request, response) => {
    const { origin } = request.headers;
    response.setHeader('Access-Control-Allow-Origin', origin ?? '*');
    response.setHeader('Access-Control-Allow-Headers', 'authorization, content-type');
    if (request.method === 'OPTIONS') {
      return response.writeHead(204).end();
    }
    const body = await readBody(request);
    const id = body?.clientSecret?.slice('gsec_'.length, 'gsec_'.length + SESSION_ID.length);
    const [status, answer] = state.bootstrap ?? [200, embedToken({ ...sessions.get(id), session_id: id })];
    return sendJson(response, status, answer);
  });

  const settle = (id) => {
    const { amount } = sessions.get(id);
    log.emit('gate_session.processing', data(id));
    if (amount.endsWith('.31')) {
      log.emit('gate_session.failed', data(id, { failure_code: 'provider_declined' }));
      return { status: 'failed' };
    }
    log.emit('gate_session.completed', data(id, { status: 'completed', tx_refid: 'test_tx_01M81F4PCRYY0H5NFWXZDN1N02' }));
    return { status: 'completed', tx_refid: 'test_tx_01M81F4PCRYY0H5NFWXZDN1N02' };
  };
  const places = () => ({ gate_origin: gate.origin, widget_origin: widget.origin, publishable_key: PUBLISHABLE_KEY });

  const widget = await listen(async (request, response, url) => {
    const assets = { '/gate.js': ['text/javascript', served('gate.js', places())], '/widget.js': ['text/javascript', WIDGET_SCRIPT], '/widget.css': ['text/css', WIDGET_STYLE] };
    if (assets[url.pathname]) {
      return sendText(response, ...assets[url.pathname]);
    }
    if (url.pathname.startsWith('/simulated/')) {
      const { session } = await readBody(request);
      const { return_url, cancel_url } = sessions.get(session);
      if (url.pathname.endsWith('cancel')) {
        log.emit('gate_session.cancelled', data(session, { status: 'cancelled' }));
        return sendJson(response, 200, { cancel_url });
      }
      return sendJson(response, 200, { ...settle(session), return_url });
    }
    return sendText(response, 'text/html', WIDGET_PAGE);
  });

  const createSession = async (request, response) => {
    const order = await readBody(request);
    if (state.refuse) {
      return sendJson(response, state.refuse.statusCode, state.refuse);
    }
    state.orders.push(order);
    const id = sessionId(sessions.size + 1);
    sessions.set(id, { ...order, return_url: `${shop.origin}/demo?paid`, cancel_url: `${shop.origin}/demo?cancelled` });
    log.emit('gate_session.created', data(id));
    const client_secret = CLIENT_SECRET.replace(SESSION_ID, id);
    return sendJson(response, 201, { session_id: id, client_secret, url: `${widget.origin}/checkout#publishable_key=${PUBLISHABLE_KEY}&client_secret=${client_secret}` });
  };
  const shop = await listen(async (request, response, url) => {
    if (url.pathname === '/demo/sessions' && request.method === 'POST') {
      return createSession(request, response);
    }
    if (url.pathname === '/demo/events') {
      if (state.isUnreachable) {
        return sendJson(response, 503, envelope('service_unavailable', 'The sandbox is stopping.', 503));
      }
      return sendJson(response, 200, await log.read(Number(url.searchParams.get('after')), Number(url.searchParams.get('wait'))));
    }
    if (url.pathname === '/demo') {
      const policy = `default-src 'none'; script-src 'self' ${widget.origin}; style-src 'self'; frame-src ${widget.origin}; connect-src 'self' ${gate.origin}; img-src 'self' data:`;
      return sendText(response, 'text/html', served('demo.html', places()), { 'Content-Security-Policy': policy });
    }
    const types = { '/demo/demo.js': 'text/javascript', '/demo/demo.css': 'text/css' };
    if (types[url.pathname]) {
      return sendText(response, types[url.pathname], readFileSync(join(DIST, url.pathname), 'utf8'));
    }
    return response.writeHead(404).end();
  });

  return { state, log, gate, widget, shop, close: () => Promise.all([gate, widget, shop].map((server) => server.close())) };
}
