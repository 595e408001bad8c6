// A partner's shop, a gate and a widget origin, simulated on three origins of this machine for the tests of the browser SDK.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const DIST = join(dirname(fileURLToPath(import.meta.url)), '../../dist');
export const PUBLISHABLE_KEY = 'pk_test_0123456789abcdefghijklmnopqrstuv';
export const CLIENT_SECRET = 'gsec_gs_test_01M81F4PBZE9VT5H43VQNFDZ38_0123456789abcdef';
export const SESSION_ID = 'gs_test_01M81F4PBZE9VT5H43VQNFDZ38';

/** Listens on a free port of the loopback address. */
export async function listen(handle) {
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://loopback');
    Promise.resolve(handle(request, response, url)).catch((error) => {
      response.writeHead(500).end(String(error.stack));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

export async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString();
  return text ? JSON.parse(text) : undefined;
}

export function sendJson(response, status, body) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(body));
}

export function sendText(response, type, text, headers = {}) {
  response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-store', ...headers }).end(text);
}

/** Error envelope of the gate's API. */
export function envelope(code, message, statusCode) {
  return { type: 'forbidden', code, message, request_id: 'req_0000000000000000', doc_url: 'https://docs.example/errors', statusCode };
}

/** Response of `POST /v1/embed/bootstrap`. */
export function embedToken(changes = {}) {
  return {
    object: 'embed_token',
    available: true,
    embed_token: 'header.claims.signature',
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    partner_id: 'demo',
    mode: 'test',
    session_id: SESSION_ID,
    amount: '100.00',
    currency: 'EUR',
    target_token: 'USDT',
    target_network: null,
    return_url: 'http://127.0.0.1/demo?paid',
    flow: null,
    branding: { object: 'branding', logo_url: null, primary_color: null, secondary_color: null, accent_color: null, brand_name: null },
    unavailable_reason: null,
    ...changes,
  };
}

/**
 * The gate's bootstrap, with the CORS rules of the real one.
 *
 * `state.allowed` lists the partner's origins. `state.suspended` refuses the key and the preflights. `state.respond` replaces the
 * response; it returns `[status, body]`, or undefined for the usual one.
 */
async function startGate(state) {
  return listen(async (request, response, url) => {
    const { origin } = request.headers;
    if (url.pathname === '/health') {
      return sendJson(response, 200, { status: 'ok' });
    }
    if (url.pathname !== '/v1/embed/bootstrap') {
      return sendJson(response, 404, envelope('route_not_found', 'There is no such route.', 404));
    }
    response.setHeader('Vary', 'origin');
    const isKnown = state.allowed.includes(origin);
    if (request.method === 'OPTIONS') {
      state.preflights += 1;
      if (isKnown && !state.suspended) {
        response.setHeader('Access-Control-Allow-Origin', origin);
        response.setHeader('Access-Control-Allow-Methods', 'POST');
        response.setHeader('Access-Control-Allow-Headers', 'authorization, content-type');
      }
      return response.writeHead(204).end();
    }
    const body = await readBody(request);
    state.requests.push({ authorization: request.headers.authorization, query: url.search, body });
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Origin', origin);
    }
    if (state.suspended) {
      return sendJson(response, 403, envelope('organization_suspended', 'The organization is suspended.', 403));
    }
    if (!isKnown) {
      return sendJson(response, 403, envelope('origin_not_allowed', 'The origin is not allowed.', 403));
    }
    const [status, answer] = (await state.respond?.(body)) ?? [200, embedToken()];
    if (typeof answer === 'string') {
      return response.writeHead(status, { 'Content-Type': 'text/html' }).end(answer);
    }
    return sendJson(response, status, answer);
  });
}

const FRAME_PAGE = '<!doctype html><html lang="en"><head><title>Widget</title><script src="/frame.js"></script></head><body></body></html>';

/** Plays the widget: says `ready`, keeps what it receives, and lets a test send messages. */
const FRAME_SCRIPT = `
  const fragment = new URLSearchParams(location.hash.slice(1));
  const parentOrigin = fragment.get('parent_origin');
  window.fragment = Object.fromEntries(fragment);
  window.received = [];
  window.send = (message) => parent.postMessage({ penstock: 1, ...message }, parentOrigin);
  addEventListener('message', (event) => {
    if (event.source === parent && event.origin === parentOrigin) received.push(event.data);
  });
  if (!new URLSearchParams(location.search).has('silent') && !window.silent) addEventListener('load', () => send({ type: 'ready' }));
`;

/** Replaces the placeholders of a built file as the gate's server does. */
export function served(name, places) {
  return readFileSync(join(DIST, name), 'utf8').replace(/\{\{penstock\.(\w+)\}\}/g, (_, place) => places[place]);
}

async function startWidget(state, places) {
  return listen((request, response, url) => {
    state.widgetRequests.push(request.url);
    const scripts = { '/gate.js': 'gate.js', '/gate.mjs': 'gate.mjs', '/react.mjs': 'react.mjs' };
    if (scripts[url.pathname]) {
      return sendText(response, 'text/javascript', served(scripts[url.pathname], places()), { 'Access-Control-Allow-Origin': '*' });
    }
    if (url.pathname === '/frame.js') {
      return sendText(response, 'text/javascript', state.silent ? `window.silent = true;${FRAME_SCRIPT}` : FRAME_SCRIPT);
    }
    if (url.pathname === '/embed' || url.pathname === '/checkout') {
      return sendText(response, 'text/html', FRAME_PAGE);
    }
    return response.writeHead(404).end();
  });
}

const SHOP_PAGE = `<!doctype html><html lang="en"><head><title>Shop</title><script src="{gate.js}"></script></head>
  <body><main><div id="ramp"></div><div id="other"></div></main></body></html>`;

/** A page of the partner, with a strict policy that allows the gate and the widget alone. */
async function startShop(state, places) {
  return listen((request, response, url) => {
    const { gate_origin, widget_origin } = places();
    const extra = state.scripts?.[url.pathname];
    if (extra) {
      return sendText(response, 'text/javascript', extra);
    }
    const policy = state.policy?.(gate_origin, widget_origin) ?? `default-src 'none'; script-src 'self' ${widget_origin}; frame-src ${widget_origin} ${state.foreign ?? ''}; connect-src ${gate_origin}`;
    const page = (state.page ?? SHOP_PAGE).replace('{gate.js}', `${widget_origin}/gate.js`).replace('{gate.mjs}', `${widget_origin}/gate.mjs`);
    return sendText(response, 'text/html', page, { 'Content-Security-Policy': policy });
  });
}

/** Starts the three origins. */
export async function startSimulation() {
  const state = { allowed: [], suspended: false, respond: undefined, silent: false, preflights: 0, requests: [], widgetRequests: [] };
  const initial = { ...state };
  const places = () => ({ gate_origin: gate.origin, widget_origin: widget.origin });
  const gate = await startGate(state);
  const widget = await startWidget(state, places);
  const shop = await startShop(state, places);
  const reset = () => {
    Object.assign(state, initial, { allowed: [shop.origin], requests: [], widgetRequests: [], page: undefined, foreign: undefined, scripts: undefined, policy: undefined });
  };
  reset();
  return { state, reset, gate, widget, shop, close: () => Promise.all([gate, widget, shop].map((server) => server.close())) };
}
