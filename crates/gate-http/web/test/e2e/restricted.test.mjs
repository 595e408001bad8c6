// The checkout that is opened by link, in browsers that withhold what a page usually relies on.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { act, expectRecords, hold, launchBrowser, NARROW, openCheckout, sandbox, step, walk } from './shop.mjs';

const WEB_VIEW =
  'Mozilla/5.0 (Linux; Android 14; Pixel 8; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/126.0.0.0 Mobile Safari/537.36';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Each access to a storage throws, as where a browser blocks it. `refused` counts the accesses. */
function denyStorage() {
  globalThis.refused = 0;
  const deny = () => {
    globalThis.refused += 1;
    throw new DOMException('The operation is insecure.', 'SecurityError');
  };
  for (const name of ['sessionStorage', 'localStorage', 'indexedDB', 'caches']) {
    Object.defineProperty(globalThis, name, { get: deny });
  }
  Object.defineProperty(Document.prototype, 'cookie', { get: deny, set: deny });
}

/** A web view inside an app: no storage, no windows, no clipboard. */
function denyWindows() {
  globalThis.open = () => null;
  Object.defineProperty(Navigator.prototype, 'clipboard', { get: () => undefined });
}

/** Without `randomUUID`, as outside of secure contexts and in older browsers. `drawn` counts the random bytes. */
function denyRandomUuid() {
  delete Crypto.prototype.randomUUID;
  globalThis.drawn = 0;
  const { getRandomValues } = Crypto.prototype;
  Crypto.prototype.getRandomValues = function draw(array) {
    globalThis.drawn += array.byteLength;
    return getRandomValues.call(this, array);
  };
}

/** Opens the checkout of a new session in such a browser, and keeps what it complains about and everything that it sends. */
async function open(restrictions, options) {
  const page = await openCheckout(browser, {}, options);
  Object.assign(page, { problems: [], sent: [] });
  page.on('pageerror', (error) => page.problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && page.problems.push(message.text()));
  page.on('request', (request) => page.sent.push(request));
  for (const restriction of restrictions) {
    await page.addInitScript(restriction);
  }
  await page.goto(page.address);
  return page;
}

const calls = (page, path) =>
  page.sent.filter((request) => request.method() === 'POST' && new URL(request.url()).pathname === `/v1/embed/${path}`);

/** Pays while the connection breaks, so that the widget sends the payment again after the outage. Returns the keys that it has sent. */
async function payThroughOutage(page) {
  const release = await hold(page);
  await page.route(/\/v1\/embed\/(payments|session)$/, (route) => route.abort('connectionfailed'));
  await act(page, 'pay');
  await step(page, 'offline');
  await page.unroute(/\/v1\/embed\/(payments|session)$/);
  await act(page, 'retry');
  release();
  await step(page, 'done');
  const attempts = calls(page, 'payments').map((request) => request.headers()['idempotency-key']);
  assert.ok(attempts.length > 1);
  return [...new Set(attempts)];
}

test('purchase without any storage keeps its token and its intent in memory', async () => {
  const page = await open([denyStorage]);
  await walk(page, 'confirm');
  const keys = await payThroughOutage(page);
  assert.equal(keys.length, 1);
  assert.equal(calls(page, 'bootstrap').length, 1);
  assert.ok((await page.evaluate(() => globalThis.refused)) > 0);
  assert.deepEqual(
    page.problems.filter((text) => !text.includes('ERR_CONNECTION_FAILED')),
    [],
  );
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
  const answers = await Promise.all(
    page.sent.filter((request) => request.url().startsWith(sandbox.widget_origin)).map((request) => request.response()),
  );
  const cookies = await Promise.all(answers.map((answer) => answer.headerValue('set-cookie')));
  assert.deepEqual(
    cookies,
    answers.map(() => null),
  );
  await page.context().close();
});

test('web view of an app pays and comes back by plain navigation', async () => {
  const page = await open([denyStorage, denyWindows], {
    userAgent: WEB_VIEW,
    viewport: NARROW,
    isMobile: true,
    hasTouch: true,
  });
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'done');
  assert.deepEqual(page.problems, []);
  await act(page, 'return');
  await page.waitForURL(
    (url) => url.href.startsWith(sandbox.demo_shop_url) && url.searchParams.get('gate_session_id') === page.session,
  );
  assert.equal(page.context().pages().length, 1);
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

test('payment without randomUUID has one intent key of 128 random bits', async () => {
  const keys = new Set();
  for (let purchase = 1; purchase <= 2; purchase += 1) {
    const page = await open([denyRandomUuid]);
    await walk(page, 'confirm');
    const before = await page.evaluate(() => globalThis.drawn);
    const [key, ...others] = await payThroughOutage(page);
    assert.deepEqual(others, []);
    assert.ok((await page.evaluate(() => globalThis.drawn)) - before >= 16);
    // Base64 without padding would be the shortest text of 16 bytes.
    assert.ok(key.length >= 22, key);
    keys.add(key);
    await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
    await page.context().close();
  }
  assert.equal(keys.size, 2);
});

test('checkout sends no referrer, neither to the gate nor to the shop', async () => {
  const page = await open([]);
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'done');
  await act(page, 'return');
  await page.waitForURL((url) => url.href.startsWith(sandbox.demo_shop_url));
  assert.equal(await page.evaluate(() => document.referrer), '');
  const checkout = page.sent.find((request) => request.url().startsWith(`${sandbox.widget_origin}/checkout`));
  assert.equal(await (await checkout.response()).headerValue('referrer-policy'), 'no-referrer');
  // The shop's page has a policy of its own for the requests after the return.
  const own = page.sent.filter((request) => !request.url().startsWith(new URL(sandbox.demo_shop_url).origin));
  assert.ok(own.length > 5);
  for (const request of own) {
    assert.equal((await request.allHeaders()).referer, undefined, request.url());
  }
  await page.context().close();
});
