// What the polite region of the page says at each step, once each. A screen reader reads it without a move of the focus.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { act, IBAN, open, step, until, WALLET, walk } from './driving.mjs';

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

const simulation = () => stage.server.simulation;

/** Keeps each change of the region with the step of its time, and the region itself: a new one would not be heard. */
function keepSpeech() {
  window.said = [];
  window.regions = new Set();
  new MutationObserver((changes) => {
    const region = document.querySelector('main > [role="status"]');
    if (!region) return;
    window.regions.add(region);
    if (region.textContent && changes.some(({ target }) => region.contains(target))) {
      window.said.push([document.querySelector('[data-step]').dataset.step, region.textContent]);
    }
  }).observe(document, { childList: true, subtree: true, characterData: true });
}

async function checkout(settings = {}, { clock = false, ...options } = {}) {
  const page = await stage.page({ flow: 'on_ramp', ...settings }, options);
  if (clock) await page.clock.install();
  await page.addInitScript(keepSpeech);
  await page.goto(stage.checkout);
  return page;
}

/** Waits until the region says this. */
const hears = (page, sentence) => page.waitForFunction((wanted) => window.said.at(-1)?.[1] === wanted, sentence);

async function expectSpeech(page, ...said) {
  assert.deepEqual(await page.evaluate(() => window.said), said);
  assert.equal(await page.evaluate(() => window.regions.size), 1);
  assert.equal(await page.locator('main > [role="status"]').count(), 1);
  await page.context().close();
}

const VALID = 'Valid on Polygon. It ends in 9EE7.';
const coins = () => `${Number(simulation().quote.crypto_amount)}\u00a0USDC`;
const price = () =>
  `You receive ${coins()}. You pay €${simulation().session.amount}, fees of €${simulation().quote.fees.total} included.`;

/** Walks from the details to the price, and listens on the way. */
async function toPrice(page) {
  await walk(page, 'details');
  await page.fill('[name="wallet_address"]', WALLET);
  await hears(page, VALID);
  await act(page, 'continue');
  await page.waitForSelector('[data-step="price"] .receipt');
  await hears(page, price());
}

async function toConfirm(page) {
  await act(page, 'continue');
  await step(page, 'confirm');
}

async function pay(page) {
  await act(page, 'pay');
  await step(page, 'instructions');
}

test('purchase says what was chosen, checked, priced, copied and done, once each', async () => {
  const page = await checkout({ flow: null }, { permissions: ['clipboard-read', 'clipboard-write'] });
  for (const [side, name] of [
    ['off_ramp', 'Sell'],
    ['swap', 'Swap'],
    ['on_ramp', 'Buy'],
  ]) {
    await page.click(`[data-flow="${side}"]`);
    await hears(page, `${name} selected.`);
  }
  await act(page, 'continue');
  await toPrice(page);
  await toConfirm(page);
  await pay(page);
  await page.click('[data-action="copy"][aria-label="Copy IBAN"]');
  await hears(page, 'Copied: IBAN.');
  await act(page, 'continue');
  await step(page, 'progress');
  simulation().finish();
  await step(page, 'done');
  await hears(page, `${coins()} sent`);
  await expectSpeech(
    page,
    ['choose', 'Sell selected.'],
    ['choose', 'Swap selected.'],
    ['choose', 'Buy selected.'],
    ['details', VALID],
    ['price', price()],
    ['instructions', 'Copied: IBAN.'],
    ['done', `${coins()} sent`],
  );
});

test('sale says its price and its end', async () => {
  const page = await checkout({ flow: 'off_ramp' });
  await walk(page, 'details');
  await page.fill('[name="iban"]', IBAN);
  await act(page, 'continue');
  await page.waitForSelector('[data-step="price"] .receipt');
  const says = `You send ${coins()}. You receive €100.00, fees of €${simulation().quote.fees.total} already taken off.`;
  await hears(page, says);
  await toConfirm(page);
  await pay(page);
  simulation().finish();
  await step(page, 'done');
  await hears(page, '€100.00 on its way to you');
  await expectSpeech(page, ['price', says], ['done', '€100.00 on its way to you']);
});

test('failed payment and its further price are said', async () => {
  const page = await checkout({ amount: '100.31' });
  await toPrice(page);
  await toConfirm(page);
  await pay(page);
  simulation().finish();
  await step(page, 'failed');
  const failure =
    'The payment was declined. The bank declined it and gave no reason. Try again, or choose another way to pay.';
  await hears(page, failure);
  await act(page, 'retry');
  await page.waitForSelector('[data-step="price"] .receipt');
  await hears(page, price());
  await expectSpeech(page, ['details', VALID], ['price', price()], ['failed', failure], ['price', price()]);
});

test('approved verification is said where it leads to', async () => {
  const page = await checkout({ amount: '100.61' });
  await toPrice(page);
  await act(page, 'continue');
  await step(page, 'verification');
  await act(page, 'continue');
  await step(page, 'confirm');
  await hears(page, 'Identity confirmed.');
  await expectSpeech(page, ['details', VALID], ['price', price()], ['confirm', 'Identity confirmed.']);
});

test('payment of another tab is said to be under way', async () => {
  const page = await checkout();
  await toPrice(page);
  const said = price();
  simulation().pay({ quote_id: simulation().quote.id, wallet_address: WALLET }, 'key of another tab');
  await step(page, 'instructions');
  await hears(page, 'This payment is already under way.');
  await expectSpeech(page, ['details', VALID], ['price', said], ['instructions', 'This payment is already under way.']);
});

test('connection that comes back is said', async () => {
  const page = await checkout();
  await step(page, 'choose');
  await page.context().setOffline(true);
  await step(page, 'offline');
  await page.context().setOffline(false);
  await step(page, 'choose');
  await hears(page, 'You are online again.');
  await expectSpeech(page, ['choose', 'You are online again.']);
});

test('changed price is left to its alert', async () => {
  const page = await checkout({}, { clock: true });
  await toPrice(page);
  const before = price();
  simulation().rate = 1.1;
  await page.clock.fastForward(51_000);
  const alert = page.locator('[data-step="price"] [role="alert"][data-code="price_changed"]');
  await alert.waitFor();
  assert.match(await alert.textContent(), /^The price has changed\. You receive [\d.]+\sUSDC less than before\./);
  // What the customer does next is said after everything that the change could have said.
  await act(page, 'back');
  await step(page, 'details');
  await hears(page, VALID);
  await expectSpeech(page, ['details', VALID], ['price', before], ['details', VALID]);
});

test('start and slow call are said in regions of their own', async () => {
  const page = await stage.page({ flow: 'on_ramp' });
  await page.clock.install();
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  await page.route('**/v1/embed/session', async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(stage.checkout);
  await page
    .locator('[data-step="loading"] .step [role="status"]')
    .getByText('Loading…')
    .waitFor({ state: 'attached' });
  release();
  await walk(page, 'confirm');
  assert.equal(await page.locator('.step [role="status"]').count(), 0);
  let isAsked = false;
  await page.route('**/v1/embed/payments', () => {
    isAsked = true;
  });
  await act(page, 'pay');
  await until(() => isAsked);
  await page.clock.fastForward(8000);
  const slow = page.locator('.step [role="status"]');
  await slow.getByText('This takes longer than usual. Please leave the page open.').waitFor();
  assert.equal(await slow.count(), 1);
  await page.context().close();
});
