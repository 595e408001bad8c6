// A price that runs out while the customer reads it, and one on a device whose clock is wrong. The rate of the pound moves here, and
// every other suite pays in euro.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { act, expectRecords, hold, launchBrowser, openCheckout, recordsOf, sandbox, step, walk } from './shop.mjs';

const DAY_MS = 86_400_000;

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

const received = (page) => page.locator('.sums .big .amount').getAttribute('data-value');

async function moveRate(rate) {
  const response = await fetch(`${sandbox.prices_url}/GBP-USDT`, { method: 'PUT', body: rate });
  assert.equal(response.status, 200);
}

async function openAtConfirm({ standsStill = false } = {}) {
  const page = await openCheckout(browser, { currency: 'GBP' });
  if (standsStill) {
    await page.clock.install();
    // A waiting read would bring the time of the server.
    page.release = await hold(page);
  }
  await page.goto(page.address);
  await walk(page, 'confirm');
  if (standsStill) {
    await stopClock(page);
  }
  return page;
}

/** A moment that has passed by the time it arrives is refused, but the clock stands still from then on: the second moment lies ahead. */
async function stopClock(page) {
  const stop = async () => page.clock.pauseAt(await page.evaluate(() => Date.now() + 1));
  await stop().catch(stop);
}

/** Expects the difference in the alert, and that nothing was paid. */
async function expectChange(page, old) {
  const alert = page.locator('[data-step="confirm"] [role="alert"][data-code="price_changed"]');
  await alert.waitFor();
  const now = await received(page);
  assert.notEqual(now, old);
  const text = (await alert.textContent()).replace(/,/g, '');
  const less = String(Number(Math.abs(Number(now) - Number(old)).toFixed(6)));
  assert.ok(text.includes(less), `${less} is missing in: ${text}`);
  await expectRecords(page.session, 'open');
  return now;
}

async function payAt(page, amount) {
  const created = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().endsWith('/embed/payments'),
  );
  await act(page, 'pay');
  assert.equal((await (await created).json()).crypto_amount, amount);
  await step(page, 'done');
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
}

/** Makes the clock of a page wrong from its start on. */
function shiftClock(shift) {
  const { now } = Date;
  globalThis.Date = class extends Date {
    constructor(...given) {
      super(...(given.length > 0 ? given : [now() + shift]));
    }

    static now() {
      return now() + shift;
    }
  };
}

for (const days of [1, -1]) {
  test(`price on a device whose clock is wrong by ${days} day counts down from its true time, and is paid`, async () => {
    const page = await openCheckout(browser);
    await page.addInitScript(shiftClock, days * DAY_MS);
    const quotes = [];
    page.on(
      'request',
      (request) => request.method() === 'POST' && request.url().endsWith('/v1/embed/quotes') && quotes.push(request),
    );
    await page.goto(page.address);
    const wrongBy = (await page.evaluate(() => Date.now())) - Date.now();
    assert.ok(Math.abs(wrongBy - days * DAY_MS) < DAY_MS / 2, String(wrongBy));
    await walk(page, 'confirm', {
      async look(name) {
        if (name === 'price' || name === 'confirm') {
          const shown = await page.locator('.countdown strong').textContent();
          const [, minutes, seconds] = /^(\d):(\d\d)$/.exec(shown);
          const left = Number(minutes) * 60 + Number(seconds);
          assert.ok(left >= 1 && left <= 60, `${name} shows ${shown}`);
        }
      },
    });
    await act(page, 'pay');
    await step(page, 'done');
    assert.equal(quotes.length, 1);
    await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
    await page.context().close();
  });
}

test('price that runs out at confirm is renewed, and only a further click pays', async () => {
  // The clock of the first page stands still, so that this page learns from the server that its price has run out.
  const late = await openAtConfirm({ standsStill: true });
  const page = await openAtConfirm();
  const [lateOld, old] = [await received(late), await received(page)];
  await moveRate('1.3100');
  const now = await expectChange(page, old);

  // The price of the first page is older, so it runs out within the 10 seconds by which the other one was renewed early.
  await delay(11_000);
  await late.bringToFront();
  await act(late, 'pay');
  const lateNow = await expectChange(late, lateOld);
  await late.locator('[data-code="quote_expired"]').waitFor();

  await late.clock.resume();
  late.release();
  await payAt(late, lateNow);
  await page.bringToFront();
  await payAt(page, now);
  assert.equal((await recordsOf(page.session)).payments.length, 1);
  await late.context().close();
  await page.context().close();
});
