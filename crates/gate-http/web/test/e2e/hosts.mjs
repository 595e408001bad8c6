// Pages of a partner that nobody here controls: strict, isolated, without storage. The demo partner allows their origin.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { PATIENCE_MS } from '../browser.mjs';
import { policyOfDocuments } from '../policy.mjs';
import { allowOrigins, createSession, embedded, launchBrowser, newPage, sandbox } from './shop.mjs';

/** Of another site than the widget, so that the frame is a third party there. */
export const HOST_ORIGIN = 'http://localhost:3000';
allowOrigins(HOST_ORIGIN);
const GATE_ORIGIN = new URL(sandbox.gate_base_url).origin;

/** The build of the SDK that the pages load. `hosts_module.test.mjs` sets the other one. */
const BUILD = process.env.SDK_BUILD ?? 'gate.js';
export const isModule = BUILD.endsWith('.mjs');

const scriptWith = (attributes) =>
  `<script${isModule ? ' type="module"' : ''}${attributes} src="${sandbox.widget_origin}/${BUILD}"></script>`;

const POLICY = { 'Content-Security-Policy': policyOfDocuments(GATE_ORIGIN, sandbox.widget_origin) };
const ISOLATED = { 'Cross-Origin-Embedder-Policy': 'require-corp', 'Cross-Origin-Opener-Policy': 'same-origin' };

/** The pages, by path. Their headers and scripts are what breaks other widgets. */
const PAGES = {
  '/plain': {},
  '/shop': { body: '<main><h1>Shop</h1><div id="ramp"></div></main>' },
  '/strict': { headers: POLICY },
  '/isolated': { headers: ISOLATED, attributes: ' crossorigin' },
  '/no-referrer': { headers: { 'Referrer-Policy': 'no-referrer' } },
  '/talkative': { headers: { 'Referrer-Policy': 'unsafe-url' } },
  '/no-clipboard': { headers: { 'Permissions-Policy': 'clipboard-write=()' } },
  '/sandboxed': { body: '<iframe sandbox="allow-scripts" src="/plain"></iframe>', hasScript: false },
  '/framing': { body: `<iframe src="${sandbox.widget_origin}/checkout"></iframe>`, hasScript: false },
  '/empty': { hasScript: false },
};

/** The options of a browser that keeps a page as it was left for the way back. */
export const CACHED = { hasWindows: true, ignoreDefaultArgs: ['--disable-back-forward-cache'] };

/** Starts the pages, and a browser that finds them at their origin whatever port they really have. */
export async function startHosts(options = {}) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, HOST_ORIGIN);
    const {
      headers = {},
      body = '<div id="ramp"></div>',
      attributes = '',
      hasScript = true,
    } = PAGES[pathname] ?? PAGES['/empty'];
    const script = hasScript ? scriptWith(attributes) : '';
    // A page that forbids all pictures would report its missing icon.
    response.writeHead(PAGES[pathname] ? 200 : 404, { 'Content-Type': 'text/html; charset=utf-8', ...headers });
    response.end(`<!doctype html><html lang="en"><title>Host</title>${body}${script}</html>`);
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address();
  const browser = await launchBrowser({
    args: [`--host-resolver-rules=MAP localhost:3000 127.0.0.1:${port}`],
    ...options,
  });
  return {
    browser,
    close: async () => {
      await browser.close();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** Notes the listeners that keep a page out of the cache of pages. Each page and each frame has its own list. */
function noteLeaving() {
  window.leaving = [];
  const { addEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function listen(type, ...rest) {
    if (type === 'unload' || type === 'beforeunload') window.leaving.push(type);
    return addEventListener.call(this, type, ...rest);
  };
}

/** Expects that neither the page nor a frame of it listens for its end in a way that keeps it out of the cache of pages. */
export async function expectCacheable(page) {
  for (const frame of page.frames()) {
    const listeners = frame.evaluate(() => [
      ...window.leaving,
      ...['onunload', 'onbeforeunload'].filter((name) => window[name] !== null),
    ]);
    // A frame that has just been removed may still be in the list.
    const found = await listeners.catch((error) => assert.ok(frame.isDetached(), error) ?? []);
    assert.deepEqual(found, [], frame.url());
  }
}

/** Opens a page with the SDK. It records what a browser complains about, in the page and in its frames. */
export async function openHost(browser, path, { prepare = async () => undefined, ...options } = {}) {
  const page = await newPage(browser, { viewport: { width: 800, height: 900 }, locale: 'en-GB', ...options });
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(error.message));
  page.on(
    'console',
    (message) =>
      message.type() === 'error' && !/favicon/.test(message.location().url) && page.problems.push(message.text()),
  );
  await page.addInitScript(noteLeaving);
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      if (!/favicon/.test(blockedURI)) window.violations.push([violatedDirective, blockedURI]);
    });
    window.calls = [];
    window.record = () => {
      const names = ['onReady', 'onSuccess', 'onError', 'onClose', 'onUnavailable'];
      return Object.fromEntries(
        names.map((name) => [name, (event) => window.calls.push([name, ...(event ? [event] : [])])]),
      );
    };
    window.start = (options, target = '#ramp') => {
      window.options = options;
      window.ramp = new GateRamp(options);
      window.ramp.mount(target, window.record());
    };
  });
  await prepare(page);
  await page.goto(`${HOST_ORIGIN}${path}`);
  await nameExports(page);
  return page;
}

/** The names of a module are not global, as those of the script are. */
export const nameExports = (frame) =>
  frame.evaluate(async () => {
    const module = document.querySelector('script[type=module]');
    if (module) Object.assign(window, await import(module.src));
  });

export const optionsOf = ({ client_secret: clientSecret }) => ({
  publishableKey: sandbox.publishable_key,
  clientSecret,
  environment: 'sandbox',
  locale: 'en',
});

/** Mounts the widget of a session. `place` makes the element in the page, and `changes` are further options of the SDK. */
export async function mount(page, session, place = () => '#ramp', changes = {}) {
  await nameExports(page);
  await page.evaluate(`start(${JSON.stringify({ ...optionsOf(session), ...changes })}, (${place})())`);
}

/** The way of `tour.mjs` into the checkout in a page of a partner. */
export const IN_A_PAGE = {
  async open(browser, fields, options) {
    const page = await openHost(browser, '/shop', options);
    page.created = await createSession({ flow: 'on_ramp', ...fields });
    return page;
  },
  async start(page) {
    await mount(page, page.created);
    return embedded(page);
  },
};

/** Height of the frame, and of the widget in it. */
async function heights(page) {
  const outer = await page.locator('#ramp iframe').evaluate((frame) => frame.getBoundingClientRect().height);
  const inner = await embedded(page)
    .locator('#root')
    .evaluate((root) => root.getBoundingClientRect().height);
  return [outer, inner];
}

/** Waits until the frame is as high as its content, and returns its height. */
export async function expectFit(page, name) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const [outer, inner] = await heights(page);
    if (inner > 0 && Math.abs(outer - inner) <= 1) return outer;
    assert.ok(Date.now() < end, `${name}: the frame has ${outer} px and its content ${inner} px.`);
    await page.waitForTimeout(50);
  }
}

export const calls = (page) => page.evaluate(() => window.calls);

/** Waits for a callback, and returns all that came. */
export async function called(page, name, count = 1) {
  await page.waitForFunction(
    ([wanted, times]) => window.calls.filter(([each]) => each === wanted).length >= times,
    [name, count],
  );
  return calls(page);
}
