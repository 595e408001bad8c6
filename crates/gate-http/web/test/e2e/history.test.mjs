// Back and forward in the browser, with the cache that keeps a page as it was left, and without it. Both show the true session.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CACHED } from './hosts.mjs';
import {
  act,
  createSession,
  expectRecords,
  giveUp,
  launchBrowser,
  openCheckout,
  sandbox,
  step,
  walk,
} from './shop.mjs';

const PAYABLE = '[data-action="pay"]:not([aria-disabled="true"])';

/**
 * Notes the listeners that keep a page out of the cache, whether the page came from there, and whether its first frame can be paid:
 * what the page shows when its own listeners have run, before any answer arrives.
 */
function observe(payable) {
  globalThis.leaving = [];
  const { addEventListener } = EventTarget.prototype;
  EventTarget.prototype.addEventListener = function listen(type, ...rest) {
    if (type === 'unload' || type === 'beforeunload') globalThis.leaving.push(type);
    return addEventListener.call(this, type, ...rest);
  };
  globalThis.addEventListener('load', () =>
    globalThis.addEventListener('pageshow', ({ persisted }) => {
      globalThis.shown = { persisted, payable: document.querySelector(payable) !== null };
    }),
  );
}

async function open(browser, fields) {
  const page = await openCheckout(browser, fields);
  await page.addInitScript(observe, PAYABLE);
  await page.goto(page.address);
  return page;
}

/** Leaves the checkout for the shop, as a link or the address bar does. */
async function leave(page) {
  await page.goto(sandbox.demo_shop_url);
  await page.waitForSelector('[data-live=true]');
}

/** Goes back to the checkout. Whatever has happened meanwhile, its first frame offers no payment at the price of before. */
async function goBack(page, isCached) {
  await page.goBack({ waitUntil: 'commit' });
  await page.waitForFunction(
    (isRestored) => location.pathname === '/checkout' && globalThis.shown?.persisted === isRestored,
    isCached,
  );
  assert.equal(await page.evaluate(() => globalThis.shown.payable), false);
}

for (const [name, options] of [
  ['with the cache of pages', CACHED],
  ['without it', {}],
]) {
  const isCached = options === CACHED;
  describe(name, () => {
    let browser;
    before(async () => {
      browser = await launchBrowser(options);
    });
    after(() => browser?.close());

    test('back from the shop shows that the session is paid', async () => {
      const page = await open(browser);
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'done');
      await act(page, 'return');
      await page.waitForSelector('[data-live=true]');
      await goBack(page, isCached);
      await step(page, 'done');
      assert.equal(await page.locator('[data-action="pay"]').count(), 0);
      await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
      await page.context().close();
    });

    test('back to confirm shows what another tab has paid meanwhile', async () => {
      const page = await open(browser);
      await walk(page, 'confirm');
      await leave(page);
      const other = await page.context().newPage();
      await other.goto(page.address);
      await walk(other, 'confirm');
      await act(other, 'pay');
      await step(other, 'done');
      await goBack(page, isCached);
      await step(page, 'done');
      await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
      await page.context().close();
    });

    test('back to confirm shows that the session is over', async () => {
      const page = await open(browser);
      await walk(page, 'confirm');
      await leave(page);
      const other = await page.context().newPage();
      await other.goto(page.address);
      await step(other, 'choose');
      await giveUp(other);
      await other.waitForURL(/\?cancelled/);
      await goBack(page, isCached);
      await page.locator('[data-step="over"] [data-code="session_cancelled"]').waitFor();
      await page.context().close();
    });

    test('back to confirm leads to a price that can be paid', async () => {
      const page = await open(browser);
      await walk(page, 'confirm');
      await leave(page);
      // The price of another tab retires the one that was left.
      const other = await page.context().newPage();
      await other.goto(page.address);
      await walk(other, 'confirm');
      await other.close();
      const quotes = [];
      page.on('response', (response) => response.url().endsWith('/v1/embed/quotes') && quotes.push(response.json()));
      await goBack(page, isCached);
      const pay = page.locator(`[data-step="confirm"] ${PAYABLE}`);
      if (!isCached) {
        await walk(page, 'confirm', { from: 'price' });
      }
      const paid = page.waitForRequest(
        (request) => request.method() === 'POST' && request.url().endsWith('/v1/embed/payments'),
      );
      await pay.click();
      const { quote_id: quote } = (await paid).postDataJSON();
      await step(page, 'done');
      assert.equal(quote, (await quotes.at(-1)).id);
      await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
      assert.deepEqual(await page.evaluate(() => globalThis.leaving), []);
      await page.context().close();
    });
  });
}

test('back from a link that was pasted into the tab shows the order before it', async (context) => {
  const browser = await launchBrowser();
  context.after(() => browser.close());
  const page = await open(browser);
  const amount = (value) => page.locator(`.sum [data-value="${value}"]`).waitFor();
  await walk(page, 'details');
  const { url } = await createSession({ flow: 'on_ramp', amount: '77.00' });
  await Promise.all([
    page.waitForEvent('load'),
    page.evaluate((hash) => {
      globalThis.location.hash = hash;
    }, new URL(url).hash),
  ]);
  await amount('77.00');
  await step(page, 'choose');
  await page.goBack();
  await amount('100.00');
  await step(page, 'details');
  await page.goForward();
  await amount('77.00');
});
