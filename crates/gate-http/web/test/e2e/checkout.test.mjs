// The real widget in the real SDK against a running sandbox: each way into the checkout, and what must never pay twice.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
  act,
  createSession,
  decision,
  editSession,
  embedded,
  eventsOf,
  expectRecords,
  FLOWS,
  giveUp,
  hold,
  inTime,
  launchBrowser,
  NARROW,
  openCheckout,
  openShop,
  order,
  quoteStatus,
  recordsOf,
  sandbox,
  step,
  unapprove,
  unsettle,
  walk,
  WALLET,
} from './shop.mjs';

const PAID = ['gate_session.created', 'gate_session.processing', 'gate_session.completed'];

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Expects that the shop has received exactly these verified events of the session, in this order. */
async function expectEvents(page, session, types) {
  const events = (await eventsOf(page, session)).filter(({ type }) => !type.startsWith('rail.'));
  assert.deepEqual(
    events,
    types.map((type) => ({ type, verified: true })),
  );
}

async function close(page, problems = []) {
  assert.deepEqual(
    page.problems.filter((text) => !problems.some((known) => known.test(text))),
    [],
  );
  await page.context().close();
}

test('embedded purchase completes on a phone, and the shop learns of it', async () => {
  const page = await openShop(browser, { viewport: NARROW, colorScheme: 'dark' });
  const { session_id: session } = await order(page);
  await walk(embedded(page), 'confirm');
  await act(embedded(page), 'pay');
  await step(embedded(page), 'done');
  await decision(page, 'paid');
  await expectEvents(page, session, PAID);
  await close(page);
});

test('redirect returns to the shop with the session', async () => {
  const page = await openShop(browser);
  await page.click('#order [data-action=redirect]');
  await walk(page, 'confirm');
  assert.equal(new URL(page.url()).hash, '');
  await act(page, 'pay');
  await step(page, 'done');
  await act(page, 'return');
  await page.waitForURL(/\/demo\?paid=?&gate_session_id=gs_test_/);
  await decision(page, 'paid');
  await expectEvents(page, new URL(page.url()).searchParams.get('gate_session_id'), PAID);
  await close(page);
});

test('link pays in its own tab', async () => {
  const page = await openShop(browser);
  const { session_id: session, url } = await order(page, { way: 'link' });
  const tab = await page.context().newPage();
  await tab.goto(url);
  await walk(tab, 'confirm');
  await act(tab, 'pay');
  await step(tab, 'done');
  await decision(page, 'paid');
  await expectEvents(page, session, PAID);
  await close(page);
});

test('sale pays out to an IBAN', async () => {
  const page = await openShop(browser);
  const { session_id: session } = await order(page, { flow: 'off_ramp' });
  await walk(embedded(page), 'confirm', { side: 'off_ramp' });
  await act(embedded(page), 'pay');
  await step(embedded(page), 'done');
  const { iban } = FLOWS.off_ramp;
  const shown = await embedded(page).locator('body').innerText();
  assert.ok(shown.includes(`${iban.slice(0, 4)}\u00a0••••\u00a0${iban.slice(-4)}`), shown);
  assert.ok(!shown.replace(/\s/g, '').includes(iban), shown);
  await decision(page, 'paid');
  await expectEvents(page, session, PAID);
  await expectRecords(session, 'completed', 'off_ramp completed 100.00');
  await close(page);
});

test('swap sends one asset and delivers another', async () => {
  const page = await openShop(browser);
  const release = await hold(page);
  // The payment settles by itself after ten seconds, but the page reads that it goes on.
  const endEdits = await editSession(page, (session) => unsettle(session));
  const { session_id: session } = await order(page, { flow: 'swap', amount: '100.33' });
  await walk(embedded(page), 'confirm', { side: 'swap' });
  const paid = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().endsWith('/v1/embed/payments'),
  );
  await act(embedded(page), 'pay');
  await step(embedded(page), 'instructions');
  const payment = await (await paid).json();
  assert.deepEqual(
    [payment.side, payment.source_asset, payment.source_network, payment.payment_method, payment.instructions.network],
    ['swap', 'USDC', 'polygon', null, 'polygon'],
  );
  // The user sends exactly what the quote says.
  await embedded(page).locator(`[data-value="${payment.source_amount}"]`).first().waitFor();
  await embedded(page).getByText(payment.instructions.address).first().waitFor();
  // Until when, the gate decides.
  assert.ok(Date.parse(payment.pay_until) > Date.parse(payment.created_at));
  await embedded(page).locator('[data-step="instructions"] .countdown time').waitFor();
  await endEdits();
  release();
  await step(embedded(page), 'done');
  await decision(page, 'paid');
  await expectEvents(page, session, PAID);
  await close(page);
});

test('failed payment can be tried again', async () => {
  const page = await openShop(browser);
  const { session_id: session } = await order(page, { amount: '100.31' });
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    await walk(embedded(page), 'confirm', { from: attempt === 1 ? 'choose' : 'price' });
    await act(embedded(page), 'pay');
    await embedded(page).locator('[data-step="failed"] [data-code="provider_declined"]').waitFor();
    await decision(page, 'failed');
    await act(embedded(page), 'retry');
  }
  await step(embedded(page), 'price');
  await expectRecords(session, 'open', 'on_ramp failed 100.31', 'on_ramp failed 100.31');
  await close(page);
});

test('payment under way can be cancelled', async () => {
  let session;
  const cancel = async (page) => {
    ({ session_id: session } = await order(page, { amount: '100.33' }));
    await walk(embedded(page), 'confirm');
    await act(embedded(page), 'pay');
    await step(embedded(page), 'instructions');
    await giveUp(embedded(page));
    await embedded(page).locator('[data-step="price"] [data-code="payment_cancelled"]').waitFor();
  };
  const page = await inTime(() => openShop(browser), cancel, embedded);
  await expectRecords(session, 'open', 'on_ramp cancelled 100.33');
  await act(embedded(page), 'back');
  await step(embedded(page), 'details');
  await act(embedded(page), 'back');
  await step(embedded(page), 'choose');
  await giveUp(embedded(page));
  await embedded(page).locator('[data-step="over"] [data-code="session_cancelled"]').waitFor();
  await decision(page, 'over');
  await expectRecords(session, 'cancelled', 'on_ramp cancelled 100.33');
  await close(page);
});

test('open session is priced in each tab, back and forth, and pays the last one', async () => {
  const last = 'swap';
  const sides = [last, ...Object.keys(FLOWS).filter((side) => side !== last), last];
  const page = await openCheckout(browser, { flow: null });
  const quotes = [];
  page.on(
    'response',
    (response) =>
      response.request().method() === 'POST' &&
      response.url().endsWith('/v1/embed/quotes') &&
      quotes.push(response.json()),
  );
  await page.goto(page.address);
  for (const [turn, side] of sides.entries()) {
    await step(page, 'choose');
    await page.locator(`[data-flow="${side}"]`).click();
    await walk(page, 'price', { side });
    if (turn < sides.length - 1) {
      await act(page, 'back');
      await step(page, 'details');
      await act(page, 'back');
    }
  }
  await walk(page, 'confirm', { from: 'price' });
  await act(page, 'pay');
  await step(page, 'done');
  const made = await Promise.all(quotes);
  assert.deepEqual(
    made.map(({ side }) => side),
    sides,
  );
  const statuses = await Promise.all(made.map(({ id }) => quoteStatus(id)));
  assert.deepEqual(statuses, ['superseded', 'superseded', 'superseded', 'consumed']);
  await expectRecords(page.session, 'completed', `${last} completed 100.00`);
  await page.context().close();
});

test('verification that is pending for three seconds is followed to the payment', async () => {
  const page = await openShop(browser);
  const release = await hold(page);
  const { session_id: session } = await order(page, { amount: '100.63' });
  await walk(embedded(page), 'verification');
  const endEdits = await editSession(page, unapprove);
  await act(embedded(page), 'continue');
  await embedded(page).locator('[data-step="verification"] .sign.wait').waitFor();
  await expectRecords(session, 'open');
  await endEdits();
  release();
  // The widget goes on by itself.
  await step(embedded(page), 'confirm');
  await act(embedded(page), 'pay');
  await step(embedded(page), 'done');
  await decision(page, 'paid');
  await expectRecords(session, 'completed', 'on_ramp completed 100.63');
  await close(page);
});

test('rejected verification ends the payment', async () => {
  const page = await openShop(browser);
  const { session_id: session } = await order(page, { amount: '100.62' });
  await walk(embedded(page), 'verification');
  await act(embedded(page), 'continue');
  await embedded(page).locator('[data-step="verification"] [data-code="verification_rejected"]').waitFor();
  await expectRecords(session, 'open');
  await page.locator(`[data-event-type="kyc.required"][data-session="${session}"]`).waitFor({ state: 'attached' });
  const types = (await eventsOf(page, session)).map(({ type }) => type);
  assert.deepEqual(types, ['gate_session.created', 'kyc.required']);
  await close(page);
});

test('double click and reload pay once', async () => {
  const page = await openShop(browser);
  const { session_id: session, url } = await order(page, { amount: '100.33', way: 'link' });
  const tab = await page.context().newPage();
  await tab.goto(url);
  await walk(tab, 'confirm');
  // The second click has to meet the same screen.
  const release = await hold(tab, /\/v1\/embed\/payments$/);
  await tab.locator('[data-action="pay"]').dblclick();
  release();
  // The reload may cancel a request that the browser still holds back, so the server must have it.
  while ((await recordsOf(session)).payments.length === 0) {
    await pause(50);
  }
  await tab.reload();
  await tab.locator('[data-step="instructions"], [data-step="progress"], [data-step="done"]').waitFor();
  await step(tab, 'done');
  await decision(page, 'paid');
  await expectEvents(page, session, PAID);
  await expectRecords(session, 'completed', 'on_ramp completed 100.33');
  await close(page);
});

test('two tabs pay once', async () => {
  const page = await openShop(browser);
  const { session_id: session, url } = await order(page, { way: 'link' });
  const tabs = [await page.context().newPage(), await page.context().newPage()];
  for (const tab of tabs) {
    await tab.goto(url);
    await walk(tab, 'confirm');
  }
  // The second tab's price retired the first one's. Whoever did not pay sees the payment, or a new price to accept. Such a price can
  // retire that of the other tab in turn, so that neither has paid.
  do {
    // A tab that is too late for a click already shows the payment of the other one.
    await Promise.all(tabs.map((tab) => tab.evaluate(() => document.querySelector('[data-action="pay"]')?.click())));
    await pause(500);
  } while ((await recordsOf(session)).payments.length === 0);
  await decision(page, 'paid');
  await expectEvents(page, session, PAID);
  await expectRecords(session, 'completed', 'on_ramp completed 100.00');
  await close(page, [/status of 409/]);
});

test('button of the browser leads back to a checkout that pays once', async () => {
  const page = await openCheckout(browser, { amount: '100.33' });
  const release = await hold(page);
  const endEdits = await editSession(page, (session) => unsettle(session));
  await page.goto(sandbox.demo_shop_url);
  await page.goto(page.address);
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'instructions');
  await endEdits();
  release();
  await page.goBack();
  await page.waitForSelector('#order');
  await page.goForward();
  await page.locator('[data-step="instructions"], [data-step="progress"], [data-step="done"]').waitFor();
  const { payments } = await recordsOf(page.session);
  assert.equal(payments.length, 1);
  await page.context().close();
});

test('reload before the payment goes on with the same session, and the link of a paid one shows its receipt', async () => {
  const page = await openCheckout(browser);
  await page.goto(page.address);
  let from = 'choose';
  for (const goal of ['choose', 'details', 'price', 'confirm']) {
    await walk(page, goal, { from });
    await page.reload();
    from = goal === 'confirm' ? 'price' : goal;
    await step(page, from);
  }
  await walk(page, 'confirm', { from });
  await expectRecords(page.session, 'open');
  await act(page, 'pay');
  await step(page, 'done');
  await page.reload();
  await step(page, 'done');
  const context = await browser.newContext();
  const stranger = await context.newPage();
  await stranger.goto(page.address);
  await step(stranger, 'done');
  assert.match(await stranger.textContent('.rows'), /test_tx_\w{26}/);
  await act(stranger, 'return');
  await stranger.waitForURL(/\?paid.*gate_session_id=/);
  await context.close();
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

test('targets in upper case choose the asset and the network', async () => {
  const { url } = await createSession({ flow: 'on_ramp', target_token: 'USDT', target_network: 'ETHEREUM' });
  const page = await openShop(browser);
  await page.goto(url);
  await step(page, 'choose');
  await act(page, 'continue');
  await step(page, 'details');
  assert.equal(await page.locator('[name=network]').inputValue(), 'ethereum');
  await page.locator('[name=wallet_address]').fill(WALLET);
  await act(page, 'continue');
  await walk(page, 'confirm', { from: 'price' });
  await act(page, 'pay');
  await step(page, 'done');
  await close(page);
});

for (const [name, path] of [
  ['widget', `/embed?publishable_key=${sandbox.publishable_key}`],
  ['checkout of a link', '/checkout'],
]) {
  test(`foreign origin cannot frame the ${name}`, async () => {
    const server = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end(`<!doctype html><iframe src="${sandbox.widget_origin}${path}"></iframe>`);
    });
    await new Promise((resolve) => {
      server.listen(0, '127.0.0.2', resolve);
    });
    try {
      const page = await browser.newPage();
      const refused = page.waitForEvent('console', (message) => /frame-ancestors/.test(message.text()));
      // The sandbox allows every port of 127.0.0.1 and localhost alone.
      await page.goto(`http://127.0.0.2:${server.address().port}/`);
      await refused;
      await page.close();
    } finally {
      server.close();
    }
  });
}

const BROKEN_LINKS = {
  'an unknown key': (fragment) => fragment.set('publishable_key', 'pk_test_unknown'),
  'a key of the other mode': (fragment) =>
    fragment.set('publishable_key', sandbox.publishable_key.replace('pk_test_', 'pk_live_')),
  'a foreign secret': (fragment) => fragment.set('client_secret', `${fragment.get('client_secret').slice(0, -4)}0000`),
  'a doubled fragment': (fragment) => fragment.set('client_secret', `${fragment.get('client_secret')}#${fragment}`),
};

for (const [name, damage] of Object.entries(BROKEN_LINKS)) {
  test(`link with ${name} is called incomplete`, async () => {
    const page = await openCheckout(browser);
    const link = new URL(page.address);
    const fragment = new URLSearchParams(link.hash.slice(1));
    damage(fragment);
    link.hash = fragment;
    await page.goto(link.href);
    await page.locator('[data-step="unavailable"]').getByText('This payment link is not complete.').waitFor();
    await page.context().close();
  });
}
