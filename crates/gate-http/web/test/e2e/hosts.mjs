// Pages of a partner that nobody here controls: strict, isolated, without storage. The demo partner allows their origin.

import { createServer } from 'node:http';
import { policyOfDocuments } from '../policy.mjs';
import { allowOrigins, launchBrowser, newPage, sandbox } from './shop.mjs';

/** Of another site than the widget, so that the frame is a third party there. */
export const HOST_ORIGIN = 'http://localhost:3000';
allowOrigins(HOST_ORIGIN);
const GATE_ORIGIN = new URL(sandbox.gate_base_url).origin;
const SCRIPT = `<script src="${sandbox.widget_origin}/gate.js"></script>`;

const POLICY = { 'Content-Security-Policy': policyOfDocuments(GATE_ORIGIN, sandbox.widget_origin) };
const ISOLATED = { 'Cross-Origin-Embedder-Policy': 'require-corp', 'Cross-Origin-Opener-Policy': 'same-origin' };

/** The pages, by path. Their headers and scripts are what breaks other widgets. */
const PAGES = {
  '/plain': {},
  '/strict': { headers: POLICY },
  '/isolated': { headers: ISOLATED, script: SCRIPT.replace('<script', '<script crossorigin') },
  '/no-referrer': { headers: { 'Referrer-Policy': 'no-referrer' } },
  '/sandboxed': { body: '<iframe sandbox="allow-scripts" src="/plain"></iframe>', script: '' },
  '/empty': { script: '' },
};

/** Starts the pages, and a browser that finds them at their origin whatever port they really have. */
export async function startHosts() {
  const server = createServer((request, response) => {
    const { headers = {}, body = '<div id="ramp"></div>', script = SCRIPT } = PAGES[request.url] ?? PAGES['/empty'];
    // A page that forbids all pictures would report its missing icon.
    response.writeHead(PAGES[request.url] ? 200 : 404, { 'Content-Type': 'text/html; charset=utf-8', ...headers });
    response.end(`<!doctype html><html lang="en"><title>Host</title>${body}${script}</html>`);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address();
  const browser = await launchBrowser({
    args: [`--host-resolver-rules=MAP localhost:3000 127.0.0.1:${port}`],
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });
  return {
    browser,
    close: async () => {
      await browser.close();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}

/** Opens a page that records what a browser complains about, in the page and in its frames. */
export async function openHost(browser, path, { prepare = async () => undefined, ...options } = {}) {
  const page = await newPage(browser, { viewport: { width: 800, height: 900 }, locale: 'en-GB', ...options });
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && !/favicon/.test(message.location().url) && page.problems.push(message.text()));
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) => {
      if (!/favicon/.test(blockedURI)) window.violations.push([violatedDirective, blockedURI]);
    });
    window.calls = [];
    window.record = () => {
      const names = ['onReady', 'onSuccess', 'onError', 'onClose', 'onUnavailable'];
      return Object.fromEntries(names.map((name) => [name, (event) => window.calls.push([name, ...(event ? [event] : [])])]));
    };
    window.start = (options, target = '#ramp') => {
      window.options = options;
      window.ramp = new GateRamp(options);
      window.ramp.mount(target, window.record());
    };
  });
  await prepare(page);
  await page.goto(HOST_ORIGIN + path);
  return page;
}

export const optionsOf = ({ client_secret: clientSecret }) => ({ publishableKey: sandbox.publishable_key, clientSecret, environment: 'sandbox', locale: 'en' });

/** Mounts the widget of a session. `place` makes the element in the page. */
export function mount(page, session, place = () => '#ramp') {
  return page.evaluate(`start(${JSON.stringify(optionsOf(session))}, (${place})())`);
}

export const calls = (page) => page.evaluate(() => window.calls);

/** Waits for a callback, and returns all that came. */
export async function called(page, name, count = 1) {
  await page.waitForFunction(([wanted, times]) => window.calls.filter(([each]) => each === wanted).length >= times, [name, count]);
  return calls(page);
}
