// What the design promises beyond the flow: texts for wrong addresses, the question before an end, titles, fees before a choice, layout.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CARD, SEPA } from '../../dev/catalogue.mjs';
import { act, giveUp, open, step, WALLET, walk } from './driving.mjs';

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

async function checkout(settings, options) {
  const page = await stage.page(settings, options);
  await page.goto(stage.checkout);
  return page;
}

test('each wrong address has its own text, and good one is confirmed', async () => {
  const page = await checkout({});
  await walk(page, 'details');
  const texts = [
    ['', 'Enter the address of your wallet.'],
    [WALLET.replace('E7', 'e7'), 'One character of this address seems to be wrong. Copy it again from your wallet.'],
    [
      'E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJsxm',
      'This is an address for Solana. You chose Polygon. Change the network, or use another address.',
    ],
    ['my wallet', 'This is not an address on Polygon. Copy the whole address from your wallet.'],
    ['x.eth', 'This is a name, not an address. Copy the address that begins with 0x from your wallet.'],
  ];
  for (const [typed, text] of texts) {
    await page.fill('[name="wallet_address"]', typed);
    await act(page, 'continue');
    await page.locator('.fault').getByText(text).waitFor();
  }
  await page.fill('[name="wallet_address"]', WALLET);
  await page.locator('.fine').getByText('Valid on Polygon. It ends in 9EE7.').waitFor();
  await page.context().close();
});

test('end of session is asked for in place, and nothing is cancelled by first press', async () => {
  const page = await checkout({ cancel_url: null });
  await step(page, 'choose');
  await act(page, 'cancel');
  await page.locator('.ask').getByText('Nothing has been paid.').waitFor();
  assert.equal(stage.server.simulation.counts['POST /cancel'], undefined);
  await page.getByText('Keep going').click();
  await page.waitForSelector('.ask', { state: 'detached' });
  await giveUp(page);
  await page.locator('[data-step="over"]').getByText('Nothing was paid.').waitFor();
  await page.context().close();
});

/** The texts and addresses of the links at the end of the page. */
const footerLinks = (page) =>
  page.$$eval('footer a', (links) =>
    links.map(({ textContent, href, target, rel }) => [textContent, href, target, rel]),
  );

test('page says who takes the money and links its pages, and so does the receipt', async () => {
  const legal_name = 'North <b>Retail</b> GmbH';
  const merchant = {
    legal_name,
    support_url: 'https://shop.example/help',
    terms_url: 'https://shop.example/terms',
    privacy_url: 'https://shop.example/privacy',
  };
  const page = await checkout({ merchant });
  await walk(page, 'confirm');
  assert.equal(await page.textContent('footer p'), `North Shop is run by ${legal_name}`);
  const pages = [
    ['Help', merchant.support_url],
    ['Terms', merchant.terms_url],
    ['Privacy', merchant.privacy_url],
    ['Licences', `${stage.server.origin}/licenses.txt`],
  ];
  const expected = pages.map((link) => [...link, '_blank', 'noopener noreferrer']);
  assert.deepEqual(await footerLinks(page), expected);
  await act(page, 'pay');
  await step(page, 'instructions');
  stage.server.simulation.finish();
  await step(page, 'done');
  const rows = await page.$$eval('.rows > div', (all) =>
    all.map((row) => [...row.children].map((it) => it.textContent)),
  );
  assert.deepEqual(
    rows.filter(([label]) => label === 'Merchant'),
    [['Merchant', legal_name]],
  );
  await page.context().close();
});

test('page without a merchant, or with links that are not https, has the licences alone', async () => {
  for (const merchant of [
    {},
    { support_url: 'javascript:alert(1)', terms_url: 'http://shop.example/', privacy_url: '' },
  ]) {
    const page = await checkout({ merchant });
    await step(page, 'choose');
    assert.equal(await page.locator('footer p').count(), 0);
    assert.deepEqual(
      (await footerLinks(page)).map(([text]) => text),
      ['Licences'],
    );
    await page.context().close();
  }
});

test('longest legal name wraps on the narrowest page, also without a space', async () => {
  for (const legal_name of ['W'.repeat(120), `${'Wide Words '.repeat(10)}GmbH`]) {
    const page = await checkout({ merchant: { legal_name } }, { viewport: { width: 320, height: 640 } });
    await step(page, 'choose');
    assert.ok((await page.textContent('footer p')).endsWith(legal_name));
    assert.ok(
      await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
      'The page scrolls sideways.',
    );
    await page.context().close();
  }
});

test('title names step, shop and mode', async () => {
  const page = await checkout({});
  await step(page, 'choose');
  assert.equal(await page.title(), 'Test: What would you like to do? – North Shop');
  await walk(page, 'price');
  assert.equal(await page.title(), 'Test: Your price – North Shop');
  await page.context().close();
  const live = await checkout({ mode: 'live' });
  await step(live, 'choose');
  assert.equal(await live.title(), 'What would you like to do? – North Shop');
  assert.equal(await live.locator('.test').count(), 0);
  await live.context().close();
});

test('methods show what is received, the fees and the usual time, on each network', async () => {
  const page = await checkout({ amount: '250.00', methods: [SEPA, CARD] });
  await walk(page, 'details');
  assert.deepEqual(await page.locator('.methods label').allTextContents(), [
    'SEPA transfer≈ 269.04\u00a0USDCFees €1.30Usually 10 minutes to 1 day',
    'Card≈ 263.63\u00a0USDCFees €6.30Usually 1–10 minutes',
  ]);
  // The fake has one price for all networks.
  await page.selectOption('[name="network"]', 'ethereum');
  await page.locator('.methods label', { hasText: '≈ 263.63 USDC' }).waitFor();
  await page.selectOption('[name="asset"]', 'BTC');
  await page.locator('.methods label', { hasText: '≈ 0.00406 BTC' }).waitFor();
  await page.context().close();
});

for (const [side, usual] of [
  ['on_ramp', 'Usually 10 minutes to 1 day'],
  ['off_ramp', 'Usually 10 minutes to 1 day'],
  ['swap', 'Usually 5–30 minutes'],
]) {
  test(`price of ${side} says how long it usually takes`, async () => {
    const page = await checkout({});
    await walk(page, 'price', side);
    assert.equal(await page.locator('.sums > p').last().textContent(), usual);
    await page.context().close();
  });
}

test('method without a usual time says nothing about it', async () => {
  const page = await checkout({ methods: [{ ...SEPA, usual_time: null }] });
  await walk(page, 'details');
  assert.equal(await page.textContent('.methods p'), 'SEPA transfer≈ 107.58\u00a0USDCFees €0.55');
  await walk(page, 'price');
  assert.match(await page.locator('.sums > p').last().textContent(), /^On Polygon/);
  await page.context().close();
});

for (const [side, lines] of [
  ['on_ramp', ['248.70', '1.25', '0.05', '250.00']],
  ['off_ramp', ['251.25', '1.25', '250.00']],
]) {
  test(`receipt of ${side} adds up to its total`, async () => {
    const page = await checkout({ amount: '250.00' });
    await walk(page, 'price', side);
    assert.deepEqual(
      await page.locator('.receipt .amount').evaluateAll((all) => all.map((one) => one.dataset.value)),
      lines,
    );
    await page.context().close();
  });
}

test('wide page has two panes, and narrow one has one column', async () => {
  const page = await checkout({});
  await walk(page, 'price');
  const left = (selector) => page.$eval(selector, (element) => element.getBoundingClientRect().left);
  assert.ok((await left('main')) > (await left('.side')));
  assert.ok(await page.locator('.facts').isVisible());
  await page.setViewportSize({ width: 320, height: 640 });
  assert.equal(await left('main'), await left('.side'));
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await page.context().close();
});

test('amount and name of the shop are on each screen', async () => {
  const page = await checkout({ amount: '100.31' });
  const look = async (name) => {
    await step(page, name);
    assert.equal(await page.getAttribute('header .amount', 'data-value'), '100.31', name);
    assert.equal(await page.textContent('header .name'), 'North Shop', name);
  };
  await look('choose');
  await walk(page, 'confirm');
  await look('confirm');
  await act(page, 'pay');
  await look('instructions');
  stage.server.simulation.finish();
  await look('failed');
  await page.context().close();
});

test('failed payment leads to another method by its own button', async () => {
  const page = await checkout({ amount: '100.31' });
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'instructions');
  stage.server.simulation.finish();
  await step(page, 'failed');
  await act(page, 'back');
  await step(page, 'details');
  assert.equal(await page.inputValue('[name="wallet_address"]'), WALLET);
  await page.context().close();
});

test('button of the browser goes back within the draft, and leaves after the payment', async () => {
  const page = await stage.page({});
  await page.goto(`${stage.server.origin}/shop`);
  await page.goto(stage.checkout);
  await walk(page, 'price');
  await page.goBack();
  await step(page, 'details');
  await act(page, 'continue');
  await step(page, 'price');
  await page.waitForSelector('.receipt');
  await act(page, 'continue');
  await step(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'instructions');
  await page.goBack();
  await page.waitForURL(/\/shop$/);
  await page.context().close();
});

test('link without its secret is called incomplete', async () => {
  const page = await stage.page({});
  await page.goto(`${stage.server.origin}/checkout#publishable_key=pk_test_widget`);
  await page.locator('[data-step="unavailable"]').getByText('This payment link is not complete.').waitFor();
  assert.equal(stage.server.simulation.counts['POST /bootstrap'], undefined);
  await page.context().close();
});

test('too many requests are counted down and then repeated', async () => {
  const page = await stage.page({});
  await page.clock.install();
  await page.goto(stage.checkout);
  await walk(page, 'details');
  await page.fill('[name="wallet_address"]', WALLET);
  stage.server.simulation.refusals = { 'POST /quotes': [[429, 'rate_limited']] };
  // A slow machine would see the repetition only. No price is shown yet, so that the time that is skipped changes nothing.
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 60_000));
  await act(page, 'continue');
  await page.locator('[data-code="rate_limited"]').getByText('There were too many requests.').waitFor();
  await page.clock.fastForward(6000);
  await page.waitForSelector('.receipt');
  await page.context().close();
});

test('price that nobody looks at is not renewed for ever', async () => {
  const page = await stage.page({});
  await page.clock.install();
  // A wait that lasts too long by this clock would look like a lost connection.
  await page.route(/session\?after=/, (route) =>
    route.fulfill({
      status: 429,
      headers: { 'Retry-After': '3600', 'Access-Control-Expose-Headers': 'Retry-After' },
      json: { code: 'rate_limited' },
    }),
  );
  await page.goto(stage.checkout);
  await walk(page, 'price');
  for (let renewals = 1; renewals <= 10; renewals += 1) {
    const renewed = page.waitForResponse((response) => response.url().endsWith('/quotes'));
    await page.clock.fastForward(51_000);
    await renewed;
    await page.waitForSelector('[data-step="price"][aria-busy="false"]');
  }
  await page.clock.fastForward(61_000);
  await page.getByText('This price is out of date.').waitFor();
  await act(page, 'retry');
  await page.waitForSelector('[data-action="continue"]:not([aria-disabled="true"])');
  await page.context().close();
});
