// What the guides show to a shop, as it stands on the page: the shop in Flask, the plain page, the React application, and the code beside
// the demo shop. The sandbox sends its events on to a port of this suite.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { listen } from '../../dev/serving.mjs';
import { PATIENCE_MS } from '../browser.mjs';
import { sampleOf } from '../samples.mjs';
import {
  act,
  createSession,
  DOCS_SHOP,
  expectRecords,
  launchBrowser,
  newPage,
  openShop,
  sandbox,
  step,
  walk,
} from './shop.mjs';

const MODULES = join(dirname(fileURLToPath(import.meta.url)), '../../node_modules');
const PACKAGE_README = 'crates/gate-http/web/README.md';
const AsyncFunction = (async () => undefined).constructor;
const GATE_URL = new URL(sandbox.gate_base_url).origin;
const PAID = 'on_ramp completed 100.00';

let browser;
let folder;

before(async () => {
  // The pages of the guides are on a port that this suite does not own: the browser gets them from the suite, and so takes them for pages
  // of another machine.
  browser = await launchBrowser({ args: ['--disable-features=LocalNetworkAccessChecks'] });
  folder = mkdtempSync(join(tmpdir(), 'penstock-guides-'));
});

after(async () => {
  await browser?.close();
  if (folder) {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Repeats a question until the answer is true. */
async function until(ask, what) {
  for (const end = Date.now() + PATIENCE_MS; ; await pause(100)) {
    if (await ask()) return;
    assert.ok(Date.now() < end, what);
  }
}

async function pay(page) {
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'done');
}

/** Fills in what a guide leaves to its reader: the addresses of the gate and the widget, the key and the secret of a session. */
function filled(code, clientSecret = '') {
  return code
    .replaceAll('http://127.0.0.1:4030', sandbox.widget_origin)
    .replaceAll('https://pay.example', sandbox.widget_origin)
    .replaceAll('https://gate.example', GATE_URL)
    .replaceAll('pk_test_…', sandbox.publishable_key)
    .replaceAll('gsec_…', clientSecret);
}

/** Opens a page of a shop on the origin that the guides use, where other paths are answered by `answers`. */
async function openPage(html, answers = {}) {
  const page = await newPage(browser);
  page.said = [];
  page.on('console', (message) => page.said.push(message.text()));
  await page.route(`${DOCS_SHOP}/**`, (route) => {
    const { pathname } = new URL(route.request().url());
    const [contentType, body] = answers[pathname] ?? ['text/html; charset=utf-8', html];
    return route.fulfill({ contentType, body });
  });
  await page.goto(`${DOCS_SHOP}/`);
  return page;
}

/** Pays in the widget of the element `id`, and waits for what the page then writes to its console. */
async function payEmbedded(page, selector, session) {
  await pay(page.frameLocator(`${selector} iframe`));
  await until(() => page.said.some((text) => text.startsWith('paid, says the page')), page.said.join('\n'));
  await expectRecords(session.id, 'completed', PAID);
  await page.context().close();
}

/** The shop in Flask, on the port to which the sandbox sends the events. */
async function startFlask() {
  writeFileSync(join(folder, 'shop.py'), sampleOf('docs/shop-calls.md', 'flask'));
  const env = {
    ...process.env,
    GATE: sandbox.gate_base_url,
    SECRET_KEY: sandbox.secret_key,
    WEBHOOK_SECRET: sandbox.webhook_secret,
  };
  const words = ['-m', 'flask', '--app', 'shop', 'run', '--port', String(sandbox.events_to_port)];
  const shop = spawn(sandbox.python, words, { env, cwd: folder, stdio: 'ignore' });
  const ended = new Promise((resolve) => {
    shop.once('exit', resolve);
  });
  const get = (path) =>
    fetch(`http://127.0.0.1:${sandbox.events_to_port}${path}`, { redirect: 'manual' }).catch(() => null);
  await until(() => get('/done'), 'the shop in Flask listens');
  return {
    get,
    async stop() {
      shop.kill();
      await ended;
    },
  };
}

test('shop in Flask is paid and knows it by the event', async () => {
  const shop = await startFlask();
  try {
    const bought = await shop.get('/buy');
    assert.equal(bought.status, 303);
    const page = await newPage(browser);
    await page.route(`${DOCS_SHOP}/**`, async (route) => {
      const { pathname, search } = new URL(route.request().url());
      const answer = await shop.get(pathname + search);
      await route.fulfill({ status: answer.status, contentType: 'text/html', body: await answer.text() });
    });
    await page.goto(bought.headers.get('location'));
    await pay(page);
    await act(page, 'return');
    await page.waitForURL((url) => url.origin === DOCS_SHOP);
    const { pathname, search, searchParams } = new URL(page.url());
    await expectRecords(searchParams.get('gate_session_id'), 'completed', PAID);
    const text = async () => (await shop.get(pathname + search)).text();
    await until(async () => (await text()) === 'Your payment is completed. Your order is paid.', 'the event arrives');
    assert.equal((await shop.get('/done?gate_session_id=gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK')).status, 404);
    const forgery = { 'webhook-id': 'evt_1', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)) };
    const forged = await fetch(`http://127.0.0.1:${sandbox.events_to_port}/webhooks`, {
      method: 'POST',
      headers: { ...forgery, 'webhook-signature': 'v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' },
      body: '{}',
    });
    assert.equal(forged.status, 400);
    await page.context().close();
  } finally {
    await shop.stop();
  }
});

test('plain page of the first payment is paid', async () => {
  const session = await createSession({ flow: 'on_ramp' });
  const page = await openPage(filled(sampleOf('docs/first-payment.md', 'page'), session.client_secret));
  await payEmbedded(page, '#ramp', session);
});

test('script of the package is paid', async () => {
  const session = await createSession({ flow: 'on_ramp' });
  const code = filled(sampleOf(PACKAGE_README, 'script'), session.client_secret);
  const page = await openPage(`<!doctype html><html lang="en"><title>Shop</title>${code}</html>`);
  await payEmbedded(page, '#ramp', session);
});

test('React application in StrictMode is paid with the package that the widget serves', async () => {
  const project = mkdtempSync(join(folder, 'react-'));
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'shop', private: true, type: 'module' }));
  const [npm, ...words] = filled(sampleOf(PACKAGE_README, 'install')).trim().split(' ');
  const local = ['react', 'react-dom', 'scheduler'].map((name) => join(MODULES, name));
  const quiet = ['--registry=http://127.0.0.1:9', '--install-links', '--no-audit', '--no-fund', '--ignore-scripts'];
  await promisify(execFile)(npm, [...words, ...quiet, ...local], { cwd: project });
  writeFileSync(join(project, 'main.jsx'), filled(sampleOf(PACKAGE_README, 'react')));
  await build({
    entryPoints: [join(project, 'main.jsx')],
    outfile: join(project, 'main.js'),
    bundle: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    // The development build of React runs effects twice in StrictMode.
    define: { 'process.env.NODE_ENV': '"development"' },
    logLevel: 'error',
  });
  const session = await createSession({ flow: 'on_ramp' });
  const html =
    '<!doctype html><html lang="en"><title>Shop</title><div id="root"></div><script type="module" src="/main.js"></script></html>';
  const page = await openPage(html, {
    '/main.js': ['text/javascript', readFileSync(join(project, 'main.js'), 'utf8')],
    '/checkout': ['application/json', JSON.stringify({ clientSecret: session.client_secret })],
  });
  await payEmbedded(page, '#root', session);
});

/** The deliveries that the sandbox sends on, and the server that gets them. */
async function receiveEvents() {
  const deliveries = [];
  const receiver = await listen(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    deliveries.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.writeHead(204).end();
  }, sandbox.events_to_port);
  return { deliveries, close: receiver.close };
}

/** The code beside the demo shop for a way into the checkout: of the server, of the page and of the webhook. */
async function codeOf(page, way) {
  await page.locator(`[name=way][value=${way}]`).check({ force: true });
  return page.$$eval('.snippet', (snippets) =>
    Object.fromEntries(
      snippets.map((each) => [each.querySelector('h3').textContent, each.querySelector('code').textContent]),
    ),
  );
}

/** Runs the server's code. Returns the session that it creates, and the redirect of a shop that pays by link. */
async function runServer(code) {
  const redirects = [];
  const response = { redirect: (...given) => redirects.push(given) };
  const run = new AsyncFunction('GATE_URL', 'SECRET_KEY', 'order', 'response', `${code}\nreturn session;`);
  const session = await run(GATE_URL, sandbox.secret_key, { id: crypto.randomUUID(), version: 1 }, response);
  return { session, redirects };
}

test('code beside the demo shop is paid in each way, and its webhook verifies the event', async () => {
  const { Webhook } = createRequire(import.meta.url)('standardwebhooks');
  const received = await receiveEvents();
  const shop = await openShop(browser);
  await shop.fill('#order [name=amount]', '100.00');
  let webhook;
  const sessions = [];
  for (const way of ['embedded', 'redirect', 'link']) {
    const code = await codeOf(shop, way);
    webhook = code['Your webhook'];
    const { session, redirects } = await runServer(code['Your server']);
    sessions.push(session.id);
    if (way === 'link') {
      assert.deepEqual(redirects, [[303, session.url]]);
      const page = await newPage(browser);
      await page.goto(session.url);
      await pay(page);
      await page.context().close();
      continue;
    }
    const given = `const clientSecret = '${session.client_secret}'; const showThanks = (id) => console.log('paid, says the page', id);`;
    const page = await openPage(
      `<!doctype html><html lang="en"><title>Shop</title><script>${given}</script>${code['Your page']}</html>`,
    );
    if (way === 'embedded') {
      await payEmbedded(page, '#ramp', session);
    } else {
      await page.waitForURL((url) => url.pathname === '/checkout');
      await pay(page);
      await page.context().close();
    }
  }
  const run = new AsyncFunction('Webhook', 'WEBHOOK_SECRET', 'rawBody', 'request', 'response', 'store', webhook);
  for (const session of sessions) {
    await expectRecords(session, 'completed', PAID);
    const completed = ({ body }) => {
      const { type, data } = JSON.parse(body);
      return type === 'gate_session.completed' && data.id === session;
    };
    await until(() => received.deliveries.some(completed), `the event of ${session} arrives`);
    const { headers, body } = received.deliveries.find(completed);
    const done = [];
    const note = (what) => (given) => done.push([what, given.data?.id ?? given]);
    await run(Webhook, sandbox.webhook_secret, body, { headers }, { sendStatus: note('answer') }, note('store'));
    assert.deepEqual(done, [
      ['store', session],
      ['answer', 204],
    ]);
  }
  assert.equal(new Set(sessions).size, 3, 'each order has a key of its own');
  await shop.context().close();
  await received.close();
});
