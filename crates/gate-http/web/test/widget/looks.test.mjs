// What the widget shows in ways of its own: on a short phone, on paper, in forced colours, translated by the browser, before its script.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CARD, SEPA } from '../../dev/catalogue.mjs';
import { act, giveUp, open, step, walk } from './driving.mjs';

const PHONE = { viewport: { width: 360, height: 740 } };
const SIDES = ['on_ramp', 'off_ramp', 'swap'];

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

const simulation = () => stage.server.simulation;

async function checkout(settings, options) {
  const page = await stage.page(settings, options);
  await page.goto(stage.checkout);
  return page;
}

/** Pays, and lets the gate complete the payment. */
async function finish(page, side) {
  await walk(page, 'confirm', side);
  await act(page, 'pay');
  await step(page, 'instructions');
  simulation().session.payment.tx_refid = `tx_${'0123456789'.repeat(4)}`;
  simulation().finish();
  await step(page, 'done');
}

const textsOf = (page, selector) => page.locator(selector).allTextContents();
const edgesOf = (page, selector) => page.locator(selector).first().boundingBox();

/** Italian has the longest texts above the button. */
for (const [locale, side] of [['en-GB', 'on_ramp'], ...SIDES.map((side) => ['it-IT', side])]) {
  test(`button to pay is in sight on a short phone, ${side} in ${locale}`, async () => {
    const page = await checkout({ amount: '250.00', methods: [SEPA, CARD] }, { ...PHONE, locale });
    await walk(page, 'confirm', side);
    const { y, height } = await edgesOf(page, '[data-action="pay"]');
    assert.ok(y + height <= 740, `The button ends at ${y + height} px.`);
    await page.context().close();
  });
}

for (const side of SIDES) {
  test(`confirm of ${side} shows once what the customer receives`, async () => {
    const page = await checkout({ amount: '250.00' });
    await walk(page, 'confirm', side);
    const { crypto_amount: coins, fiat_amount: money } = simulation().quote;
    assert.equal(await page.locator(`main [data-value="${side === 'off_ramp' ? money : coins}"]`).count(), 1);
    await page.context().close();
  });
}

for (const [side, label, facts, rows] of [
  [
    'on_ramp',
    'You paid',
    ['Sent to you', 'Rate'],
    ['To your wallet', 'You paid', 'Fees, included', 'Rate', 'Paid with'],
  ],
  ['off_ramp', 'On its way', ['You sent', 'Rate'], ['You sent', 'Fees, included', 'Rate', 'Receive by']],
  ['swap', 'Worth', ['You sent', 'Sent to you', 'Rate'], ['To your wallet', 'You sent', 'Fees, included', 'Rate']],
]) {
  test(`finished ${side} says what has happened and no more`, async () => {
    const page = await checkout({});
    await finish(page, side);
    assert.equal(await page.textContent('header .sum small'), label);
    assert.deepEqual(await textsOf(page, '.facts dt'), facts);
    assert.deepEqual(await textsOf(page, '.rows dt'), [...rows, 'Date', 'Reference', 'Payment']);
    await page.context().close();
  });
}

test('receipt on paper is black on white, whole, and has one page', async () => {
  const branding = { primary_color: '#f5d90a', secondary_color: '#10312b', accent_color: '#10312b' };
  const page = await checkout({ branding }, { colorScheme: 'dark' });
  await finish(page);
  const reference = page.locator('.reference code:visible');
  assert.equal(await reference.textContent(), 'tx_012345678…6789');
  await page.evaluate(() => {
    window.print = () => {
      window.isPrinted = true;
    };
  });
  await page.getByText('Save receipt').click();
  assert.ok(await page.evaluate(() => window.isPrinted));
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  assert.equal(await reference.textContent(), simulation().session.payment.tx_refid);
  assert.ok(await page.getByText('gs_simulation').isVisible());
  assert.equal(await page.locator('button:visible, a:visible').count(), 0);
  const colors = await page.evaluate(() => {
    const found = new Set();
    for (const element of document.querySelectorAll('.card, .card *')) {
      if (element.getClientRects().length === 0) continue;
      const { color, backgroundColor } = getComputedStyle(element);
      found.add(color).add(backgroundColor);
    }
    return [...found].filter((color) => color !== 'rgba(0, 0, 0, 0)');
  });
  assert.deepEqual(colors.sort(), ['rgb(0, 0, 0)', 'rgb(255, 255, 255)']);
  const pages = (await page.pdf({ format: 'A4' })).toString('latin1').match(/\/Type \/Page\b/g);
  assert.equal(pages.length, 1);
  await page.context().close();
});

/** Does what the translators of browsers do: puts an element of its own in the place of each text that may be translated. */
const translate = (page) =>
  page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      if (text.parentElement.closest('[translate="no"], noscript') || !text.data.trim()) continue;
      const translated = document.createElement('font');
      translated.textContent = `(${text.data})`;
      text.replaceWith(translated);
    }
  });

test('translated page shows the amounts of a new price', async () => {
  const page = await checkout({ quoteSeconds: 11 });
  await walk(page, 'confirm', 'off_ramp');
  await translate(page);
  await page.getByText('(Service fee)').waitFor();
  simulation().rate = 1.0004613;
  simulation().quoteSeconds = 60;
  await page.waitForSelector('[data-code="price_changed"]');
  const { crypto_amount: coins } = simulation().quote;
  await page.locator(`[data-action="pay"]`, { hasText: String(Number(coins)) }).waitFor();
  const amounts = await page.$$eval('main .amount', (all) => all.map((one) => [one.textContent, one.dataset.value]));
  assert.ok(amounts.some(([, value]) => value === coins));
  for (const [text, value] of amounts) assert.equal(Number(text.replace(/[^\d.]/g, '')), Number(value), text);
  await page.context().close();
});

const isStyled = (page) =>
  page.waitForFunction(() => document.querySelector('.brand') && getComputedStyle(document.body).marginTop === '0px');

test('test band and blocks of the header are there before the script, and nothing moves when it runs', async () => {
  const page = await stage.page({}, PHONE);
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  await page.route('**/assets/*.js', async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(stage.checkout, { waitUntil: 'commit' });
  await isStyled(page);
  await page.locator('.test').getByText('no real money moves').waitFor();
  assert.equal(await page.locator('.blank:visible').count(), 3);
  const edges = async () => [await edgesOf(page, '.test'), await edgesOf(page, '.side')];
  const first = await edges();
  release();
  await step(page, 'choose');
  assert.deepEqual(await edges(), first);
  for (const [selector, count] of Object.entries({ '.card': 1, '.test': 1, '.side': 1, '.blank': 0, noscript: 0 }))
    assert.equal(await page.locator(selector).count(), count, selector);
  await page.context().close();
});

test('live page has no test band before the script', async () => {
  const page = await stage.page({});
  await page.route('**/assets/*.js', () => undefined);
  await page.route(/\/checkout/, async (route) => {
    const response = await route.fetch();
    const body = await response.text();
    await route.fulfill({ response, body: body.replace('data-mode="test"', 'data-mode="live"') });
  });
  await page.goto(stage.checkout, { waitUntil: 'commit' });
  await isStyled(page);
  await page.locator('.blank').first().waitFor();
  assert.ok(!(await page.locator('.test').isVisible()));
  await page.context().close();
});

test('name of 64 characters stays on two lines, and the buttons do without it', async () => {
  const name = 'Donaudampfschifffahrtsgesellschaftskapitän Ersatzteile und Ruder';
  const page = await checkout({ branding: { brand_name: name } }, { viewport: { width: 320, height: 640 } });
  await step(page, 'choose');
  const { height } = await edgesOf(page, 'header .name');
  assert.ok(height <= 48, `The name is ${height} px high.`);
  await finish(page);
  assert.equal(await page.textContent('[data-action="return"]'), 'Back to the shop');
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.context().close();
});

test('cancelled session has a cross, and an expired one a clock', async () => {
  const signOf = (page) => page.locator('.sign.still path').getAttribute('d');
  const cancelled = await checkout({ cancel_url: null });
  await walk(cancelled, 'choose');
  await giveUp(cancelled);
  await step(cancelled, 'over');
  assert.equal(await signOf(cancelled), 'M7 7l10 10M17 7 7 17');
  await cancelled.context().close();
  const expired = await checkout({});
  await walk(expired, 'price');
  simulation().session.status = 'expired';
  simulation().changed();
  await step(expired, 'over');
  assert.match(await signOf(expired), /^M12 7v5\.5/);
  await expired.context().close();
});

test('text below a button of the offline screen keeps its distance', async () => {
  const page = await checkout({});
  await walk(page, 'confirm');
  await page.context().setOffline(true);
  await step(page, 'offline');
  const [foot, text] = [await edgesOf(page, '.step > .foot'), await edgesOf(page, '.last .lead')];
  assert.ok(text.y - foot.y - foot.height >= 16);
  await page.context().close();
});

test('QR code is black on white in forced colours too', async () => {
  const page = await checkout({}, { colorScheme: 'dark', forcedColors: 'active' });
  await walk(page, 'confirm', 'swap');
  await act(page, 'pay');
  const code = page.getByRole('img', { name: 'QR code of these values, which are also shown as text' });
  await code.waitFor();
  const { width, height } = await edgesOf(page, '.qr-box');
  assert.deepEqual([width, height], [200, 200]);
  assert.equal(await page.$eval('.qr-box', (box) => getComputedStyle(box).backgroundColor), 'rgb(255, 255, 255)');
  assert.match(decodeURIComponent(await code.getAttribute('src')), /<path fill="#fff" d="M0 0h/);
  await page.context().close();
});
