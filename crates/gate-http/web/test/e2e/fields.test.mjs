// What customers paste into the fields, and what phones do to them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { act, expectRecords, FLOWS, IBAN, launchBrowser, openCheckout, step, WALLET, walk } from './shop.mjs';

/** The contract of USDC on Ethereum. */
const USDC = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48';
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const SIDES = Object.keys(FLOWS);

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

async function openDetails(fields, options) {
  const page = await openCheckout(browser, fields, options);
  await page.goto(page.address);
  await walk(page, 'choose');
  await act(page, 'continue');
  await step(page, 'details');
  return page;
}

/** Pastes a text from the clipboard over what the field has. */
async function paste(page, name, text) {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
  await page.focus(`[name=${name}]`);
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Control+V');
}

/** Pays from the details, and returns the request. */
async function payFromDetails(page) {
  await act(page, 'continue');
  await walk(page, 'confirm', { from: 'price' });
  const sent = page.waitForRequest(
    (request) => request.method() === 'POST' && request.url().endsWith('/v1/embed/payments'),
  );
  await act(page, 'pay');
  await step(page, 'done');
  return (await sent).postDataJSON();
}

for (const [form, pasted] of [
  ['with spaces', `  ${WALLET}  `],
  ['with line ends', `\r\n${WALLET}\n`],
  ['with a space that does not break', `\u00a0${WALLET}\u00a0`],
  ['with spaces of no width', `\u200b${WALLET.slice(0, 20)}\u200b${WALLET.slice(20)}\u200b`],
  ['in a payment address', `ethereum:${WALLET}@1`],
  ['in lower case', WALLET.toLowerCase()],
]) {
  test(`address that is pasted ${form} is sent exactly`, async () => {
    const page = await openDetails({ target_network: 'ethereum' });
    await paste(page, 'wallet_address', pasted);
    const { wallet_address: sent } = await payFromDetails(page);
    assert.equal(sent, form === 'in lower case' ? WALLET.toLowerCase() : WALLET);
    await expectRecords(page.session, 'completed', 'on_ramp completed 100.00');
    await page.context().close();
  });
}

test('address is pasted by its button', async () => {
  const page = await openDetails({ target_network: 'ethereum' });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), ` ${WALLET} `);
  await act(page, 'paste');
  await page.locator('[data-step="details"] .fine').waitFor();
  assert.equal((await payFromDetails(page)).wallet_address, WALLET);
  await page.context().close();
});

test('address that cannot be paid to is refused with its own reason, before a price is asked for', async () => {
  const page = await openDetails({});
  await page.selectOption('[name=network]', 'ethereum');
  const quotes = [];
  page.on('request', (request) => request.url().endsWith('/v1/embed/quotes') && quotes.push(request));
  const texts = [];
  for (const [pasted, codes] of [
    ['x.eth', ['wallet_address_is_a_name']],
    // One letter in the wrong case fails the checksum.
    [WALLET.replace('E7', 'e7'), ['invalid_address', 'address_checksum_mismatch']],
    [`0x${'1'.repeat(10_000)}`, ['invalid_address']],
    [USDC, ['invalid_address']],
    ['0x000000000000000000000000000000000000dEaD', ['invalid_address']],
  ]) {
    await paste(page, 'wallet_address', ` ${pasted}\n`);
    assert.equal((await page.inputValue('[name=wallet_address]')).trim(), pasted);
    await act(page, 'continue');
    const alert = page.locator(codes.map((code) => `[data-step="details"] [role="alert"][data-code="${code}"]`).join());
    await alert.waitFor();
    texts.push(await alert.textContent());
    // The next alert is not this one.
    await page.fill('[name=wallet_address]', WALLET);
    await alert.waitFor({ state: 'detached' });
  }
  assert.equal(new Set(texts).size, texts.length, texts.join('\n'));
  assert.deepEqual(quotes, []);
  await page.context().close();
});

test('change of the network checks the address again before continue works', async () => {
  const page = await openDetails({});
  await page.selectOption('[name=network]', 'ethereum');
  await page.fill('[name=wallet_address]', WALLET);
  await act(page, 'continue');
  await walk(page, 'price', { from: 'price' });
  await act(page, 'back');
  await step(page, 'details');
  await page.selectOption('[name=network]', 'tron');
  await act(page, 'continue');
  await page.locator('[data-step="details"] [role="alert"][data-code="invalid_address"]').waitFor();
  await page.selectOption('[name=network]', 'ethereum');
  assert.equal((await payFromDetails(page)).wallet_address, WALLET);
  await page.context().close();
});

test('value that a phone fills in without an event is what continue sends', async () => {
  for (const [flow, fields] of Object.entries({
    on_ramp: { wallet_address: WALLET },
    off_ramp: { iban: IBAN, account_holder: 'Ada Example' },
  })) {
    const page = await openDetails({ flow }, PHONE);
    await page.selectOption('[name=network]', 'ethereum');
    for (const [name, value] of Object.entries(fields)) {
      await page.$eval(
        `[name=${name}]`,
        (field, filled) => {
          field.value = filled;
        },
        value,
      );
    }
    const { wallet_address, payout } = await payFromDetails(page);
    assert.deepEqual(flow === 'on_ramp' ? { wallet_address } : payout, fields);
    await page.context().close();
  }
});

test('fields neither zoom nor correct on a phone, and cut nothing', async () => {
  const named = {};
  for (const flow of SIDES) {
    const page = await openDetails({ flow }, PHONE);
    const fields = await page.$$eval('[data-step="details"] [name]:not([type=hidden], [type=radio])', (elements) =>
      elements.map((element) => ({
        name: element.getAttribute('name'),
        isText: !(element instanceof HTMLSelectElement),
        size: parseFloat(getComputedStyle(element).fontSize),
        ...Object.fromEntries(
          ['autocomplete', 'autocapitalize', 'autocorrect', 'spellcheck', 'maxlength'].map((one) => [
            one,
            element.getAttribute(one),
          ]),
        ),
      })),
    );
    for (const { name, isText, size, ...attributes } of fields) {
      assert.ok(size >= 16, `${name} of ${flow} has ${size} px.`);
      if (isText) named[name] = attributes;
    }
    await page.context().close();
  }
  const plain = {
    autocomplete: 'off',
    autocapitalize: 'none',
    autocorrect: 'off',
    spellcheck: 'false',
    maxlength: null,
  };
  assert.deepEqual(named.wallet_address, plain);
  assert.deepEqual(named.iban, { ...plain, autocapitalize: 'characters' });
  assert.equal(named.account_holder.autocomplete, 'name');
  assert.equal(named.account_holder.maxlength, null);
});

/** Expects the focus in a field with an alert, and both within the page. */
async function expectInSight(page, name) {
  const field = page.locator(`[name=${name}]:focus`);
  const alert = page.locator('[data-step="details"] [role="alert"]');
  for (const element of [field, alert]) {
    await element.waitFor();
    const found = await element.elementHandle();
    await page.waitForFunction((one) => {
      const { top, bottom } = one.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    }, found);
  }
}

for (const [when, isOpen] of [
  ['is open', true],
  ['opens', false],
]) {
  test(`field and its alert stay in sight above a keyboard that ${when}`, async () => {
    const keyboard = { width: PHONE.viewport.width, height: 320 };
    for (const [flow, name] of [
      ['on_ramp', 'wallet_address'],
      ['off_ramp', 'iban'],
    ]) {
      const page = await openDetails({ flow }, isOpen ? { ...PHONE, viewport: keyboard } : PHONE);
      await page.fill(`[name=${name}]`, 'x'.repeat(30));
      await act(page, 'continue');
      await page.locator('[data-step="details"] [role="alert"]').waitFor();
      await page.setViewportSize(keyboard);
      await expectInSight(page, name);
      await page.context().close();
    }
  });
}
