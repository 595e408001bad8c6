// The connection of a browser breaks: at calls of the flow, at each file that is loaded when it is needed, and for a while at each step. The
// customer continues from where it was lost, and the partner's API shows at most one payment. `test/flow` plays every other loss.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  act,
  decision,
  editSession,
  giveUp,
  embedded,
  expectRecords,
  hold,
  inTime,
  launchBrowser,
  openCheckout,
  openShop,
  order,
  step,
  unsettle,
  walk,
} from './shop.mjs';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Loses the next call of this operation, before the request has arrived or before its response has. `lost` is a promise of that. */
async function lose(page, loss, method, path) {
  let isLost = false;
  let report;
  const lost = new Promise((resolve) => {
    report = resolve;
  });
  await page.route(
    (url) => path.test(url.pathname + url.search),
    async (route) => {
      if (isLost || route.request().method() !== method) {
        await route.fallback();
        return;
      }
      isLost = true;
      if (loss === 'response') {
        await route.fetch();
      }
      await route.abort('connectionfailed');
      report();
    },
  );
  return { lost };
}

async function payAndExpect(page) {
  await act(page, 'pay');
  await step(page, 'done');
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
}

const BOOTSTRAP = /^\/v1\/embed\/bootstrap$/;

test('lost response of the bootstrap is retried from the offline screen', async () => {
  const page = await openCheckout(browser);
  await lose(page, 'response', 'POST', BOOTSTRAP);
  await page.goto(page.address);
  await step(page, 'offline');
  await act(page, 'retry');
  await walk(page, 'confirm');
  await payAndExpect(page);
  await page.context().close();
});

test('lost request of the bootstrap in a page of the shop is repeated by the SDK', async () => {
  const page = await openShop(browser);
  const { lost } = await lose(page, 'request', 'POST', BOOTSTRAP);
  const { session_id: session } = await order(page);
  await lost;
  await walk(embedded(page), 'confirm');
  await act(embedded(page), 'pay');
  await step(embedded(page), 'done');
  await decision(page, 'paid');
  await expectRecords(session, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

for (const loss of ['request', 'response']) {
  test(`lost ${loss} of the payment pays once without a further click`, async () => {
    const page = await openCheckout(browser);
    const { lost } = await lose(page, loss, 'POST', /\/payments$/);
    await page.goto(page.address);
    await walk(page, 'confirm');
    await act(page, 'pay');
    await lost;
    await step(page, 'done');
    await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
    await page.context().close();
  });
}

test('lost response of the first state after a payment leads to that payment, which is sent once', async () => {
  const page = await openCheckout(browser);
  const sent = [];
  page.on(
    'request',
    (request) => request.method() === 'POST' && request.url().endsWith('/v1/embed/payments') && sent.push(request),
  );
  await page.goto(page.address);
  await walk(page, 'confirm');
  const { lost } = await lose(page, 'response', 'GET', /^\/v1\/embed\/session$/);
  await act(page, 'pay');
  await lost;
  await step(page, 'done');
  assert.equal(sent.length, 1);
  assert.equal((await sent[0].response()).ok(), true);
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

test('lost request of the language leaves English, and the customer pays', async () => {
  const page = await openCheckout(browser, {}, { locale: 'de-DE' });
  const { lost } = await lose(page, 'request', 'GET', /^\/assets\/de-[^/]+\.js$/);
  await page.goto(page.address);
  await lost;
  await walk(page, 'confirm');
  assert.equal(await page.getAttribute('html', 'lang'), 'en');
  await payAndExpect(page);
  await page.context().close();
});

test('lost request of the checks of an address leaves them to the gate, and the customer pays', async () => {
  const page = await openCheckout(browser);
  const { lost } = await lose(page, 'request', 'GET', /^\/assets\/address_checks-[^/]+\.js$/);
  await page.goto(page.address);
  await walk(page, 'details');
  await lost;
  await act(page, 'continue');
  await walk(page, 'confirm', { from: 'price' });
  await payAndExpect(page);
  await page.context().close();
});

test('lost request of the QR code leaves the address, and the customer pays', async () => {
  const page = await openCheckout(browser, { amount: '100.33', flow: 'off_ramp' });
  const { lost } = await lose(page, 'request', 'GET', /^\/assets\/qr-[^/]+\.js$/);
  const release = await hold(page);
  const endEdits = await editSession(page, unsettle);
  await page.goto(page.address);
  await walk(page, 'confirm', { side: 'off_ramp' });
  const created = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().endsWith('/v1/embed/payments'),
  );
  await act(page, 'pay');
  const { instructions } = await (await created).json();
  await step(page, 'instructions');
  await lost;
  assert.equal(await page.locator('.copyable .groups').textContent(), instructions.address);
  assert.equal(await page.locator('.qr').count(), 0);
  await endEdits();
  release();
  await step(page, 'done');
  await expectRecords(page.session, 'completed', 'off_ramp completed 100.33');
  await page.context().close();
});

test('lost state of a payment is asked for again', async () => {
  const page = await openCheckout(browser);
  const { lost } = await lose(page, 'request', 'GET', /\/session\?after=/);
  // The first state after the payment is the one before its end, so that the widget asks for the next one.
  await editSession(page, unsettle);
  await page.goto(page.address);
  await walk(page, 'confirm');
  await act(page, 'pay');
  await lost;
  await step(page, 'done');
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

test('connection that is down for a while has its screen at each step, and the step comes back', async () => {
  const interrupt = async (page, name) => {
    await page.context().setOffline(true);
    await step(page, 'offline');
    await page.context().setOffline(false);
    await step(page, name);
  };
  const cancel = async (page) => {
    await page.goto(page.address);
    await walk(page, 'confirm', { look: (name) => interrupt(page, name) });
    await act(page, 'pay');
    await step(page, 'instructions');
    await interrupt(page, 'instructions');
    await giveUp(page);
    await step(page, 'price');
  };
  const page = await inTime(() => openCheckout(browser, { amount: '100.33' }), cancel);
  await interrupt(page, 'price');
  await expectRecords(page.session, 'open', 'on_ramp cancelled 100.33');
  await page.context().close();
});

test('payment during an outage is sent after it, once', async () => {
  const page = await openCheckout(browser);
  // A waiting read that is answered would end the offline screen.
  const release = await hold(page);
  await page.goto(page.address);
  await walk(page, 'confirm');
  const keys = new Set();
  let isDown = true;
  await page.route(/\/v1\/embed\//, async (route) => {
    const request = route.request();
    if (request.method() === 'POST') {
      keys.add(request.headers()['idempotency-key']);
    }
    await (isDown ? route.abort('connectionfailed') : route.fallback());
  });
  await act(page, 'pay');
  await step(page, 'offline');
  await expectRecords(page.session, 'open');
  isDown = false;
  await act(page, 'retry');
  release();
  await step(page, 'done');
  assert.equal(keys.size, 1);
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});
