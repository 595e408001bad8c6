// What the customer sees of the money of a payment: how much to send, what has arrived, until when it can be paid, and why it failed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LANGUAGES } from '../../src/languages/load.mjs';
import { qrImage } from '../pictures.mjs';
import { act, IBAN, open, step, WALLET, walk } from './driving.mjs';

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

const simulation = () => stage.server.simulation;

/** A checkout that has paid, and shows the instructions. */
async function paid(side = 'on_ramp', settings = {}, options = {}) {
  const page = await stage.page(settings, options);
  await page.goto(stage.checkout);
  await walk(page, 'confirm', side);
  await act(page, 'pay');
  await step(page, 'instructions');
  return page;
}

const close = async (page) => {
  assert.deepEqual(page.errors, []);
  await page.context().close();
};

const textsOf = (page, selector) => page.locator(selector).allTextContents();
const valuesOf = (page, selector) => page.locator(selector).evaluateAll((all) => all.map((one) => one.dataset.value));

/** Waits until the polite region says exactly this. */
const hears = (page, sentence) =>
  page.waitForFunction((wanted) => document.querySelector('main > [role="status"]').textContent === wanted, sentence);

/** Waits until the note says exactly this. */
const reads = (page, sentence) =>
  page.waitForFunction(
    (wanted) => document.querySelector('[data-step] .note')?.textContent.trim() === wanted,
    sentence,
  );

/** By the clock of the server, and in the time zone of the customer, it is 27 November, 14:30. */
const ZONE = { timezoneId: 'Asia/Tokyo' };
const NOW = { server_time: '2026-11-27T05:30:00Z' };
const LATE =
  'The time to pay is over: please send nothing now. If you have paid already, wait here. The payment still completes, or the money is given back.';

test('deadline is shown in the time zone of the customer, with its date unless it is today', async () => {
  const page = await paid('on_ramp', {}, ZONE);
  const deadlines = [
    ['2026-11-27T14:59:59Z', /^23:59$/],
    ['2026-11-27T15:00:00Z', /^28 Nov 2026, 00:00$/],
  ];
  for (const name of ['instructions', 'progress']) {
    await step(page, name);
    for (const [until, hasText] of deadlines) {
      simulation().report({ pay_until: until }, NOW);
      await page.locator('.countdown time', { hasText }).waitFor();
    }
    assert.equal(await page.textContent('.countdown'), 'Pay before28 Nov 2026, 00:00');
    if (name === 'instructions') await act(page, 'continue');
  }
  await close(page);
});

test('payment without a deadline shows none', async () => {
  const page = await paid();
  simulation().report({ pay_until: null });
  await page.waitForSelector('.countdown', { state: 'detached' });
  await step(page, 'instructions');
  await close(page);
});

for (const side of ['on_ramp', 'swap']) {
  test(`${side} asks for nothing from its deadline on, and says what happens to the money`, async () => {
    const page = await paid(side, {}, ZONE);
    simulation().report({ pay_until: NOW.server_time }, NOW);
    await step(page, 'progress');
    await reads(page, LATE);
    await hears(page, LATE);
    for (const selector of ['.countdown', '.copyable', '.qr', '[data-action="back"]'])
      assert.equal(await page.locator(selector).count(), 0, selector);
    await close(page);
  });
}

for (const [side, part, arrived, rest, title] of [
  ['on_ramp', '20', '€20.00 of €100.00', '€80.00', 'Send your transfer'],
  ['swap', '0.001', '0.001 of 0.00166667\u00a0BTC', '0.00066667\u00a0BTC', 'Send 0.00066667\u00a0BTC'],
]) {
  test(`${side} of which a part has arrived asks for the rest alone`, async () => {
    const page = await paid(side, {}, ZONE);
    simulation().receive(part);
    const { required } = simulation().session.payment.received;
    const missing = side === 'on_ramp' ? '80.00' : '0.00066667';
    const sentence = `${arrived} have arrived. Send the remaining ${rest} in the same way.`;
    await reads(page, sentence);
    await hears(page, sentence);
    assert.equal(await page.textContent('h1'), title);
    assert.deepEqual(await valuesOf(page, '.note .amount'), [part, required, missing]);
    assert.deepEqual(await valuesOf(page, '.copyable .amount'), [missing]);
    await act(page, 'continue');
    await step(page, 'progress');
    await reads(page, sentence);
    simulation().report({ pay_until: NOW.server_time }, NOW);
    await reads(page, `${arrived} have arrived. ${LATE}`);
    assert.equal(await page.locator('.facts-list .good').count(), 1);
    await close(page);
  });
}

test('payment whose whole amount has arrived shows no instructions', async () => {
  const page = await paid('on_ramp', {}, ZONE);
  simulation().receive('100.0');
  await step(page, 'progress');
  await reads(page, '€100.00 of €100.00 have arrived.');
  assert.equal(await page.locator('.facts-list .good').count(), 2);
  // The deadline says nothing about money that is here.
  simulation().report({ pay_until: NOW.server_time }, NOW);
  simulation().receive('110.00');
  const sentence = '€110.00 have arrived; €100.00 were asked for. The payment provider gives back the difference.';
  await reads(page, sentence);
  await hears(page, sentence);
  assert.deepEqual(await valuesOf(page, '.note .amount'), ['110.00', '100.00']);
  for (const selector of ['.countdown', '[data-action="back"]'])
    assert.equal(await page.locator(selector).count(), 0, selector);
  await close(page);
});

test('amount, asset and network of the instructions are those of the payment', async () => {
  const others = { amount: '9100.00', currency: 'USD', asset: 'BTC', network: 'bitcoin' };
  const purchase = await paid('on_ramp', {
    instructions: { ...others, iban: IBAN, address: 'Main Street 1', reference: 'PS7K42QX9M' },
  });
  assert.deepEqual(await textsOf(purchase, '.copyable dt'), ['IBAN', 'Amount', 'Address', 'Reference']);
  assert.deepEqual(await textsOf(purchase, '.copyable .amount'), ['€100.00']);
  assert.equal(await purchase.textContent('h1'), 'Send your transfer');
  assert.equal(await purchase.locator('.qr-box').count(), 0);
  await close(purchase);
  const sale = await paid('off_ramp', { instructions: { ...others, address: WALLET } });
  const { crypto_amount: amount } = simulation().session.payment;
  assert.equal(await sale.textContent('h1'), `Send ${Number(amount)}\u00a0USDC`);
  assert.equal(await sale.textContent('.lead'), 'Send it on Polygon, in one transfer.');
  assert.deepEqual(await textsOf(sale, '.copyable dt'), ['Exact amount, USDC', 'Address on Polygon']);
  assert.deepEqual(await valuesOf(sale, '.copyable .amount'), [amount]);
  await close(sale);
});

test('amount is shown although the instructions leave it out', async () => {
  const page = await paid('on_ramp', { instructions: { reference: 'PS7K42QX9M' } });
  assert.deepEqual(await textsOf(page, '.copyable dt'), ['Amount', 'Reference']);
  assert.deepEqual(await valuesOf(page, '.copyable .amount'), ['100.00']);
  await close(page);
});

/** Waits until the page shows the code of this text. */
const shows = (page, text) =>
  page.waitForFunction((source) => document.querySelector('.scan .qr')?.src === source, qrImage(text));
const codeOf = (amount) => `BCD\n002\n1\nSCT\nCOBADEFFXXX\nExample Payments\n${IBAN}\nEUR${amount}\n\n\nPS7K42QX9M`;
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

test('customer scans what is still to send', async () => {
  const page = await paid('swap');
  await shows(page, `bitcoin:${WALLET}?amount=0.00166667`);
  assert.equal(await page.locator('.scan a').isVisible(), false);
  simulation().receive('0.001');
  await shows(page, `bitcoin:${WALLET}?amount=0.00066667`);
  await close(page);
});

test('customer scans the transfer that is still to send, below its values', async () => {
  const page = await paid();
  await shows(page, codeOf('100.00'));
  assert.equal(await page.textContent('.copyable + .scan'), 'Or scan this code with your banking app');
  const labels = ['Account holder', 'IBAN', 'BIC', 'Amount', 'Reference'];
  assert.deepEqual(await textsOf(page, '.copyable dt'), labels);
  simulation().receive('20');
  await shows(page, codeOf('80.00'));
  await close(page);
});

test('address alone is scanned if its memo has no place, and opens no wallet', async () => {
  const page = await paid('off_ramp', { instructions: { address: WALLET, memo: '7' } }, PHONE);
  await shows(page, WALLET);
  assert.equal(await page.locator('.scan a').count(), 0);
  await close(page);
});

test('phone opens the wallet, and has no code of a transfer', async () => {
  const sale = await paid('swap', {}, PHONE);
  const link = sale.getByRole('link', { name: 'Open in wallet app' });
  assert.equal(await link.getAttribute('href'), `bitcoin:${WALLET}?amount=0.00166667`);
  await close(sale);
  const purchase = await paid('on_ramp', {}, PHONE);
  await purchase.locator('.scan').waitFor({ state: 'hidden' });
  await close(purchase);
});

const REASONS = ['amount_differs', 'expired', 'returned', 'refused'];

test('each reason of a failure has its sentence', async () => {
  for (const { messages } of Object.values(LANGUAGES)) {
    assert.equal(new Set(REASONS.map((reason) => messages[reason])).size, REASONS.length);
  }
  const { messages: texts } = LANGUAGES.de;
  const page = await paid('on_ramp', {}, { locale: 'de' });
  for (const reason of REASONS) {
    simulation().report({ status: 'failed', failure_code: 'code_of_the_rail', failure_reason: reason });
    const alert = page.locator('[data-step="failed"] [role="alert"][data-code="code_of_the_rail"]');
    await alert.filter({ hasText: texts[reason] }).waitFor();
    assert.equal(await page.textContent('h1'), reason === 'refused' ? texts.declinedTitle : texts.failedTitle);
  }
  await close(page);
});

test('reason that the widget does not know leaves the sentence of the code', async () => {
  const page = await paid();
  simulation().report({ status: 'failed', failure_code: 'provider_declined', failure_reason: 'reason_of_tomorrow' });
  await page
    .locator('[data-step="failed"] [role="alert"]', { hasText: 'The bank declined it and gave no reason.' })
    .waitFor();
  await close(page);
});
