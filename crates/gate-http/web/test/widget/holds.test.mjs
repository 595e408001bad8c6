// What must hold around a payment: one price that was read, one wallet that is asked once, a token that dies, other tabs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { stretch } from '../browser.mjs';
import { act, open, step, until, WALLET, walk } from './driving.mjs';

/** The time after which the widget gives up a wait for a change. */
const WAIT_MS = 35_000;

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

const simulation = () => stage.server.simulation;

async function checkout(settings, { clock = false, ...options } = {}) {
  const page = await stage.page(settings, options);
  if (clock) await page.clock.install();
  await page.goto(stage.checkout);
  return page;
}

/** Clicks at once, without the patience of a test: it asks for no button that is on. */
const clickNow = (page, name) =>
  page.evaluate((action) => document.querySelector(`[data-action="${action}"]`).click(), name);

/** A partner's page that is a wallet: it hands over the token whenever the frame asks, and keeps every message. */
async function wallet(settings) {
  const page = await stage.page(settings);
  await page.goto(`${stage.server.origin}/parent`);
  await page.evaluate(() => {
    globalThis.messages = [];
    addEventListener('message', ({ data, source }) => {
      messages.push(data);
      if (data.type === 'ready')
        source.postMessage(
          {
            penstock: 1,
            type: 'token',
            embed_token: 'simulated-token',
            theme: 'light',
            locale: 'en',
            can_deposit: true,
          },
          '*',
        );
    });
    const frame = document.createElement('iframe');
    frame.id = 'widget';
    frame.src = `/embed?publishable_key=pk_test_x#parent_origin=${encodeURIComponent(location.origin)}`;
    document.body.append(frame);
  });
  return {
    page,
    frame: await (await page.$('#widget')).contentFrame(),
    deposits: () => page.evaluate(() => messages.filter(({ type }) => type === 'deposit').length),
  };
}

test('wallet is asked once, and a reload shows the instructions', async () => {
  const { page, frame, deposits } = await wallet({});
  await walk(frame, 'confirm', 'off_ramp');
  await act(frame, 'pay');
  await page.waitForFunction(() => messages.some(({ type }) => type === 'deposit'));
  await Promise.all([page.waitForEvent('framenavigated'), frame.evaluate(() => location.reload())]);
  await frame.waitForSelector('[data-step="instructions"] .qr');
  assert.equal(await deposits(), 1);
  assert.equal(simulation().payments.length, 1);
  await page.context().close();
});

test('wallet is not asked with a key that an earlier page may have paid with', async () => {
  const { page, frame, deposits } = await wallet({});
  await frame.waitForSelector('[data-step="choose"]');
  await frame.evaluate(() => sessionStorage.setItem('penstock.intent.gs_simulation', 'a key of an earlier page'));
  await walk(frame, 'confirm', 'off_ramp');
  await act(frame, 'pay');
  await frame.waitForSelector('[data-step="instructions"] .qr');
  assert.equal(await deposits(), 0);
  await page.context().close();
});

test('wallet that refuses leads to the address', async () => {
  const { page, frame } = await wallet({});
  await walk(frame, 'confirm', 'off_ramp');
  await act(frame, 'pay');
  await page.waitForFunction(() => messages.some(({ type }) => type === 'deposit'));
  await page.evaluate(
    (widget) =>
      document.getElementById('widget').contentWindow.postMessage(
        {
          penstock: 1,
          type: 'deposited',
          request_id: messages.find(({ type }) => type === 'deposit').request_id,
          tx_hash: null,
        },
        widget,
      ),
    stage.server.origin,
  );
  await frame.waitForSelector('[data-step="instructions"] .qr');
  await page.context().close();
});

for (const call of ['POST /quotes', 'POST /payments', 'GET /session']) {
  test(`token that dies at ${call} is renewed, and the user pays once`, async () => {
    const page = await checkout({}, { clock: true });
    await walk(page, 'confirm');
    simulation().refusals = { [call]: [[401, 'unauthorized']] };
    const read = page.waitForResponse((response) => response.url().endsWith('/embed/session') && response.ok());
    await page.clock.fastForward(call === 'POST /quotes' ? 61_000 : 11_000);
    if (call === 'POST /payments') await act(page, 'pay');
    if (call === 'GET /session') simulation().changed();
    await until(() => simulation().counts['POST /bootstrap'] === 2);
    // A press is dropped while the widget reads the session with its new token.
    await read;
    await page.waitForSelector('[data-step="confirm"][aria-busy="false"]');
    await page.waitForSelector('[data-action="pay"]:not([aria-disabled="true"])');
    await act(page, 'pay');
    await step(page, 'instructions');
    assert.equal(simulation().payments.length, 1);
    await page.context().close();
  });
}

test('token that dies after a reload ends on over, and no text says to start again', async () => {
  const page = await checkout({}, { clock: true });
  await walk(page, 'confirm');
  await act(page, 'pay');
  // The reload may cancel a request that the browser still holds back.
  await until(() => simulation().payments.length === 1);
  await page.reload();
  await step(page, 'instructions');
  simulation().dead = true;
  simulation().changed();
  const alert = page.locator('[data-step="over"] [role="alert"][data-code="unauthorized"]');
  await alert.waitFor();
  assert.doesNotMatch(await alert.textContent(), /start again/i);
  await page.context().close();
});

test('session that the bootstrap calls over may have been paid', async () => {
  const page = await stage.page({});
  simulation().refusals = { 'POST /bootstrap': [[403, 'session_not_open']] };
  await page.goto(stage.checkout);
  const alert = page.locator('[data-step="over"] [role="alert"][data-code="session_not_open"]');
  await alert.waitFor();
  assert.doesNotMatch(await alert.textContent(), /again/i);
  await page.context().close();
});

test('change of a swap says what is received and what is sent', async () => {
  const page = await checkout({}, { clock: true });
  await walk(page, 'confirm', 'swap');
  simulation().rate = 1.1;
  await page.clock.fastForward(61_000);
  const note = await page.textContent('[data-step="confirm"] [data-code="price_changed"]');
  assert.match(
    note,
    /You receive [\d.]+\sUSDC less than before\. What you send is the same\. Press the button again if you agree\./,
  );
  await page.context().close();
});

test('click that was meant for the old price pays nothing', async () => {
  const page = await checkout({}, { clock: true });
  await walk(page, 'confirm');
  simulation().rate = 1.1;
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 61_000));
  await page.waitForSelector('[data-step="confirm"] [data-code="price_changed"]');
  await page.waitForSelector('[data-step="confirm"] [data-action="pay"][aria-disabled="true"]');
  await clickNow(page, 'pay');
  await page.waitForFunction(() => document.activeElement.dataset.code === 'price_changed');
  assert.equal(simulation().counts['POST /payments'], undefined);
  await page.clock.resume();
  await act(page, 'pay');
  await step(page, 'instructions');
  assert.equal(simulation().payments.length, 1);
  await page.context().close();
});

for (const status of [429, 502, 503]) {
  test(`${status} to the bootstrap is tried again`, async () => {
    const page = await stage.page({});
    simulation().refusals = { 'POST /bootstrap': [[status, 'passing']] };
    await page.goto(stage.checkout);
    await step(page, 'offline');
    await act(page, 'retry');
    await step(page, 'choose');
    await page.context().close();
  });
}

for (const goal of ['price', 'confirm']) {
  test(`payment of another tab shows at ${goal} before the widget's wait has ended`, async () => {
    const page = await stage.page({});
    // Neither the gate nor the widget ends a wait for a change by itself.
    await page.route(/\/session\?after=/, (route) =>
      route.continue({
        url: route
          .request()
          .url()
          .replace(/wait=\d+/, 'wait=3600'),
      }),
    );
    await stretch(page, WAIT_MS);
    await page.goto(stage.checkout);
    await walk(page, goal);
    simulation().pay({ quote_id: simulation().quote.id, wallet_address: WALLET }, 'key of another tab');
    await step(page, 'instructions');
    assert.equal(await page.locator('[role="alert"]').count(), 0);
    await page.context().close();
  });
}

test('button of a call keeps the focus, and a second press does nothing', async () => {
  const page = await checkout({});
  await walk(page, 'confirm');
  let release;
  await page.route('**/v1/embed/payments', (route) => {
    release = () => route.continue();
  });
  await page.focus('[data-action="pay"]');
  await page.keyboard.press('Enter');
  await page.waitForSelector('[data-action="pay"][aria-disabled="true"]:focus');
  await page.keyboard.press('Enter');
  await clickNow(page, 'back');
  assert.equal(await page.locator('[data-step="confirm"]').count(), 1);
  await until(() => release);
  release();
  await step(page, 'instructions');
  assert.equal(simulation().payments.length, 1);
  await page.context().close();
});

test('second link that is pasted into the tab opens its own session', async () => {
  const page = await checkout({});
  await walk(page, 'details');
  await Promise.all([
    page.waitForEvent('load'),
    page.evaluate(() => {
      location.hash = 'publishable_key=pk_test_widget&client_secret=gsec_second';
    }),
  ]);
  // The simulation has one session, whose details are still there.
  await step(page, 'details');
  assert.equal(simulation().counts['POST /bootstrap'], 2);
  assert.ok(!page.url().includes('gsec_second'));
  await page.context().close();
});

test('page that the server does not name gets no message', async () => {
  const page = await stage.page({});
  const { origins } = stage.server;
  stage.server.origins = ['https://shop.example'];
  try {
    await page.goto(`${stage.server.origin}/parent`);
    await page.evaluate(() => {
      globalThis.messages = [];
      addEventListener('message', ({ data }) => messages.push(data));
      const frame = document.createElement('iframe');
      frame.id = 'widget';
      frame.src = `/embed?publishable_key=pk_test_x#parent_origin=${encodeURIComponent(location.origin)}`;
      document.body.append(frame);
    });
    const frame = await (await page.$('#widget')).contentFrame();
    await frame.waitForSelector('[data-step="unavailable"] [data-code="not_embedded"]');
    assert.deepEqual(await page.evaluate(() => messages), []);
  } finally {
    stage.server.origins = origins;
  }
  await page.context().close();
});
