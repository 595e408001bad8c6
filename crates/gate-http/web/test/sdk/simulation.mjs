// A partner's shop and the widget's frame for the tests of the browser SDK, on origins of their own beside the gate.

import { start } from '../../dev/gate.mjs';
import { listen, send, sendFile } from '../../dev/serving.mjs';

export const PUBLISHABLE_KEY = 'pk_test_0123456789abcdefghijklmnopqrstuv';
export const SESSION_ID = 'gs_test_01M81F4PBZE9VT5H43VQNFDZ38';
export const CLIENT_SECRET = `gsec_${SESSION_ID}_0123456789abcdef`;

const FRAME_PAGE = `<!doctype html><html lang="en"><head><title>Widget</title><script src="/frame.js"></script></head>
  <body></body></html>`;

/** Plays the widget: says `ready`, keeps what it receives, and lets a test send messages. */
const FRAME_SCRIPT = `
  const fragment = new URLSearchParams(location.hash.slice(1));
  const parentOrigin = fragment.get('parent_origin');
  window.fragment = Object.fromEntries(fragment);
  window.received = [];
  window.send = (message) => parentOrigin && parent.postMessage({ penstock: 1, ...message }, parentOrigin);
  addEventListener('message', (event) => {
    if (event.source === parent && event.origin === parentOrigin) received.push(event.data);
  });
  if (!new URLSearchParams(location.search).has('silent') && !window.silent) {
    addEventListener('load', () => send({ type: 'ready' }));
  }
`;

/** Sends what a frame of the widget loads: its page, its script, or the SDK. */
export function sendFrame(response, path, places, isSilent = false) {
  if (path === '/embed' || path === '/checkout') return send(response, 200, FRAME_PAGE);
  if (path !== '/frame.js') return sendFile(response, path, places);
  return send(response, 200, isSilent ? `window.silent = true;${FRAME_SCRIPT}` : FRAME_SCRIPT, { type: 'js' });
}

const SHOP_PAGE = `<!doctype html><html lang="en"><head><title>Shop</title><script src="{gate.js}"></script></head>
  <body><main><div id="ramp"></div><div id="other"></div></main></body></html>`;

/** Starts the gate, the widget and the shop. A test replaces parts of the last two in `state`; `places` are those of the SDK's scripts. */
export async function startSimulation() {
  const state = {};
  const gate = await start();
  const widget = await listen((request, response, { pathname }) => {
    state.widgetRequests.push(request.url);
    const places = { gate_origin: gate.origin, widget_origin: widget.origin, mode: 'test', ...state.places };
    return sendFrame(response, pathname, places, state.silent);
  });
  const shop = await listen((_, response, { pathname }) => {
    if (state.scripts[pathname]) return send(response, 200, state.scripts[pathname], { type: 'js' });
    const page = state.page.replace('{gate.js}', `${widget.origin}/gate.js`);
    return send(response, 200, page, { 'Content-Security-Policy': state.policy(gate.origin, widget.origin) });
  });
  /** Allows the gate, the widget and `state.foreign` alone. */
  const policy = (gateOrigin, widgetOrigin) =>
    `default-src 'none'; script-src 'self' ${widgetOrigin}; connect-src ${gateOrigin}; ` +
    `frame-src ${widgetOrigin} ${state.foreign}`;
  const reset = () => {
    const usual = { page: SHOP_PAGE, scripts: {}, policy, foreign: '', silent: false, places: {}, widgetRequests: [] };
    Object.assign(state, usual);
    Object.assign(gate, { origins: [shop.origin], suspended: false, respond: () => undefined, requests: [] });
    gate.use({ id: SESSION_ID });
  };
  reset();
  return { state, reset, gate, widget, shop, close: () => Promise.all([gate, widget, shop].map((one) => one.close())) };
}
