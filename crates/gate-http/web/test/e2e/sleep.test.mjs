// A checkout in the background and on a device that sleeps, until its price has run out. Playwright keeps each page of its own in
// front, so these pages are in a browser that it only attaches to.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { PATIENCE_MS } from '../browser.mjs';
import { createSession, expectRecords, hold, launchBrowser, quoteStatus, step, walk, watchOrigins } from './shop.mjs';
import { freePort } from './webdriver.mjs';

const MAX_ATTEMPTS = 5;
const PAYABLE = '[data-action="pay"]:not([aria-disabled="true"])';

let launched;
let browser;
before(async () => {
  // Another program may take the port before the browser does.
  for (let attempt = 1; !browser; attempt += 1) {
    const port = await freePort();
    launched = await launchBrowser({ hasWindows: true, args: [`--remote-debugging-port=${port}`] });
    try {
      browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`, { noDefaults: true, timeout: PATIENCE_MS });
    } catch (error) {
      await launched.close();
      if (attempt === MAX_ATTEMPTS) throw error;
    }
  }
});
after(async () => {
  await browser?.close();
  await launched?.close();
});

/** Opens the checkout of a new session at this step, in front. `quotes` are the prices that it has asked for. */
async function openAt(goal) {
  const [context] = browser.contexts();
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const { id, url } = await createSession({ flow: 'on_ramp' });
  Object.assign(page, { session: id, quotes: [] });
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/v1/embed/quotes')) {
      page.quotes.push(request.response().then((response) => response.json()));
    }
  });
  // Notes whether the first frame that is seen again can be paid.
  await page.addInitScript(
    (payable) =>
      document.addEventListener('visibilitychange', () => {
        if (document.visibilityState === 'visible') {
          requestAnimationFrame(() => {
            globalThis.shown = { payable: document.querySelector(payable) !== null };
          });
        }
      }),
    PAYABLE,
  );
  await page.goto(url);
  await walk(page, goal);
  return page;
}

/** Freezes the page, which also hides it. Returns a function that ends this, and leaves the page hidden. */
async function freeze(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Page.setWebLifecycleState', { state: 'frozen' });
  return () => session.send('Page.setWebLifecycleState', { state: 'active' });
}

/** Waits until the first price of the page has run out, or until a later one of the page has retired it. */
async function outlast(page) {
  const { id } = await page.quotes[0];
  while ((await quoteStatus(id)) === 'active') {
    await pause(500);
  }
}

/** Expects that the page offers nothing at the old price, asks for a new one, and is paid at that. */
async function expectFreshPrice(page) {
  const asked = page.quotes.length;
  // The new price must not come before the first frame.
  const release = await hold(page, /\/v1\/embed\/quotes$/);
  await page.bringToFront();
  await page.waitForFunction(() => globalThis.shown);
  assert.equal(await page.evaluate(() => globalThis.shown.payable), false);
  release();
  const sent = page.waitForRequest(
    (request) => request.method() === 'POST' && request.url().endsWith('/v1/embed/payments'),
  );
  await page.locator(`[data-step="confirm"] ${PAYABLE}`).click();
  await step(page, 'done');
  assert.equal(page.quotes.length, asked + 1);
  assert.equal((await sent).postDataJSON().quote_id, (await page.quotes.at(-1)).id);
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
}

test('price that ran out behind or asleep cannot be paid, and one new price is asked for on return', async () => {
  await watchOrigins(browser.contexts()[0]);
  const frozen = await openAt('confirm');
  const hidden = await openAt('confirm');
  const front = await openAt('price');
  const thaw = await freeze(frozen);
  await (
    await freeze(hidden)
  )();
  await front.bringToFront();
  assert.equal(await hidden.evaluate(() => document.visibilityState), 'hidden');
  await outlast(frozen);
  await outlast(hidden);
  assert.equal(frozen.quotes.length, 1);
  // A page behind may ask once a minute.
  assert.ok(hidden.quotes.length <= 2);
  // The one in front, which may have opened much later, renews its price before it has run out.
  while (front.quotes.length < 2) {
    await pause(500);
  }
  const [first, second] = await Promise.all(front.quotes.slice(0, 2));
  assert.ok(Date.parse(second.created_at) < Date.parse(first.expires_at));
  assert.ok(front.quotes.length <= 3, String(front.quotes.length));
  await thaw();
  await expectFreshPrice(frozen);
  await expectFreshPrice(hidden);
});
