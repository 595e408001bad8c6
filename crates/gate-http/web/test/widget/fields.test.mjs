// Fields and instructions: what a user pastes, what a method asks for, and what a provider's form or page needs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LANGUAGES } from '../../src/languages/load.mjs';
import { act, IBAN, open, step, WALLET, walk } from './driving.mjs';

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

async function payFromDetails(page) {
  await act(page, 'continue');
  await payFromPrice(page);
}

async function payFromPrice(page) {
  await step(page, 'price');
  await act(page, 'continue');
  await step(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'instructions');
}

test('name and wrong address are refused with codes of their own', async () => {
  const page = await checkout({});
  await walk(page, 'details');
  for (const [text, code] of [
    ['x.eth', 'wallet_address_is_a_name'],
    [WALLET.replace('E7', 'e7'), 'invalid_address'],
    ['', 'invalid_address'],
  ]) {
    await page.fill('[name="wallet_address"]', text);
    await act(page, 'continue');
    await page.waitForSelector(`[role="alert"][data-code="${code}"]`);
  }
  // A change of the network checks the same address again.
  await page.fill('[name="wallet_address"]', WALLET);
  await page.waitForSelector('[role="alert"]', { state: 'detached' });
  await page.selectOption('[name="network"]', 'solana');
  await page.waitForSelector('[role="alert"][data-code="invalid_address"]');
  await page.context().close();
});

/** Sets values as autofill may: without an event. */
async function autofill(page, values) {
  for (const [name, value] of Object.entries(values)) {
    await page.$eval(
      `[name="${name}"]`,
      (field, filled) => {
        field.value = filled;
      },
      value,
    );
  }
}

async function expectShown(page, values) {
  for (const [name, value] of Object.entries(values)) {
    assert.equal(await page.inputValue(`[name="${name}"]`), value, name);
  }
}

/** Keeps the checks of addresses from loading until the test calls `load`. */
async function holdChecks(page) {
  const script = '**/address_checks-*.js';
  let load;
  const held = new Promise((resolve) => {
    load = resolve;
  });
  await page.route(script, async (route) => {
    await held;
    await route.continue();
  });
  return { load, asked: page.waitForRequest(script) };
}

test('address that autofill sets before the checks of addresses are loaded is what continue sends', async () => {
  const page = await checkout({});
  const checks = await holdChecks(page);
  await walk(page, 'details');
  const url = (await checks.asked).url();
  await autofill(page, { wallet_address: WALLET });
  checks.load();
  // The page redraws the field soon after the module is loaded.
  await page.evaluate(async (script) => {
    await import(script);
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
  }, url);
  await expectShown(page, { wallet_address: WALLET });
  await payFromDetails(page);
  assert.equal(simulation().paid.wallet_address, WALLET);
  await page.context().close();
});

test('address that autofill sets while continue waits for the checks of addresses is what continue sends', async () => {
  const page = await checkout({});
  const checks = await holdChecks(page);
  await walk(page, 'details');
  await checks.asked;
  await act(page, 'continue');
  await autofill(page, { wallet_address: WALLET });
  checks.load();
  await payFromPrice(page);
  assert.equal(simulation().paid.wallet_address, WALLET);
  await page.context().close();
});

test('fields leave a pasted value alone', async () => {
  const page = await checkout({});
  for (const side of ['on_ramp', 'off_ramp']) {
    await walk(page, 'details', side);
    const name = side === 'on_ramp' ? 'wallet_address' : 'iban';
    const found = await page.$eval(`[name="${name}"]`, (field) =>
      ['autocomplete', 'autocapitalize', 'autocorrect', 'spellcheck', 'maxlength'].map((one) =>
        field.getAttribute(one),
      ),
    );
    assert.deepEqual(found, ['off', name === 'iban' ? 'characters' : 'none', 'off', 'false', null]);
    if (side === 'off_ramp') assert.equal(await page.getAttribute('[name="account_holder"]', 'autocomplete'), 'name');
    await act(page, 'back');
  }
  await page.context().close();
});

test('button pastes the address as if it was typed, and judges it', async () => {
  const page = await checkout({}, { permissions: ['clipboard-read', 'clipboard-write'] });
  await walk(page, 'details');
  const button = page.locator('[data-action="paste"]');
  for (const [text, shown] of [
    [` ${WALLET.toLowerCase().replace('0x', '0y')} `, '[role="alert"][data-code="invalid_address"]'],
    [`\u202a${WALLET}\u202c`, '.fine'],
  ]) {
    await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await button.click();
    await page.waitForSelector(shown);
    await expectShown(page, { wallet_address: text });
  }
  await payFromDetails(page);
  assert.equal(simulation().paid.wallet_address, WALLET);
  await page.context().close();
});

test('button to paste leaves the field to the customer if the browser refuses', async () => {
  const page = await checkout({});
  await walk(page, 'details');
  await page.evaluate(() => {
    Clipboard.prototype.readText = () => Promise.reject(new DOMException('No.', 'NotAllowedError'));
  });
  await page.click('[data-action="paste"]');
  await page.waitForSelector('[name="wallet_address"]:focus');
  assert.equal(await page.locator('[data-action="paste"], [role="alert"]').count(), 0);
  await page.context().close();
});

test('method that is the only one is a text with its estimate, and is sent', async () => {
  const page = await checkout({});
  await walk(page, 'details');
  assert.equal(await page.locator('.methods [type="radio"]').count(), 0);
  assert.equal(
    await page.textContent('.methods p'),
    'SEPA transfer≈ 107.58\u00a0USDCFees €0.55Usually 10 minutes to 1 day',
  );
  assert.equal(await page.locator('.methods p [translate="no"]').count(), 2);
  await page.fill('[name="wallet_address"]', WALLET);
  await payFromDetails(page);
  assert.equal(simulation().quote.payment_method, 'sepa');
  await page.context().close();
});

const METHODS = [
  { id: 'first', name: 'First', currency: 'EUR', account: 'iban' },
  { id: 'second', name: 'Second', currency: 'EUR', account: 'uk' },
  { id: 'third', name: 'Third', currency: 'EUR', account: 'us' },
];
const ACCOUNTS = {
  first: [{ iban: ' de89 3704 0044 0532 0130 00 ' }, { iban: IBAN }],
  second: [
    { sort_code: '12-34-56', account_number: '1234 5678', account_holder: 'Ada Example' },
    { sort_code: '123456', account_number: '12345678', account_holder: 'Ada Example' },
  ],
  third: [
    { routing_number: '021000021', account_number: '1234567890', account_type: 'savings' },
    { routing_number: '021000021', account_number: '1234567890', account_type: 'savings' },
  ],
};

for (const [method, [typed, sent]] of Object.entries(ACCOUNTS)) {
  test(`payout of ${method} asks for the fields of its account and sends no others`, async () => {
    const page = await checkout({ methods: METHODS });
    await walk(page, 'details', 'off_ramp');
    // What was typed for another method is not sent.
    for (const other of [...METHODS.filter(({ id }) => id !== method), METHODS.find(({ id }) => id === method)]) {
      await page.check(`[name="payment_method"][value="${other.id}"]`);
      for (const [name, value] of Object.entries(ACCOUNTS[other.id][0])) {
        const field = page.locator(`[name="${name}"]`);
        await (name === 'account_type' ? field.selectOption(value) : field.fill(value));
      }
    }
    await page.fill('[name="account_holder"]', typed.account_holder ?? '');
    await payFromDetails(page);
    assert.deepEqual(simulation().paid.payout, sent);
    await page.context().close();
  });
}

for (const [method, [, values]] of Object.entries({ wallet: [null, { wallet_address: WALLET }], ...ACCOUNTS })) {
  test(`values of ${method} that autofill sets without an event stay through redraws and other screens`, async () => {
    const side = method === 'wallet' ? 'on_ramp' : 'off_ramp';
    const page = await checkout({ methods: METHODS.filter(({ id }) => side === 'on_ramp' || id === method) });
    await walk(page, 'details', side);
    await autofill(page, values);
    // Each choice redraws the page.
    await page.selectOption('[name="network"]', 'solana');
    await page.selectOption('[name="network"]', 'ethereum');
    await expectShown(page, values);
    const changed = Object.fromEntries(
      Object.keys(values).map((name) => [name, name === 'account_type' ? 'checking' : 'x']),
    );
    for (const filled of [changed, values]) {
      await autofill(page, filled);
      await act(page, 'back');
      await walk(page, 'details', side);
      await expectShown(page, filled);
    }
    await autofill(page, changed);
    await page.context().setOffline(true);
    await step(page, 'offline');
    await page.context().setOffline(false);
    await step(page, 'details');
    await expectShown(page, changed);
    await autofill(page, values);
    await payFromDetails(page);
    const { wallet_address, payout } = simulation().paid;
    assert.deepEqual(side === 'on_ramp' ? { wallet_address } : payout, values);
    await page.context().close();
  });
}

test('wrong value that autofill sets without an event is judged after the customer leaves the field', async () => {
  const page = await checkout({});
  for (const [side, name] of [
    ['on_ramp', 'wallet_address'],
    ['off_ramp', 'iban'],
  ]) {
    await walk(page, 'details', side);
    await autofill(page, { [name]: 'x' });
    await page.focus(`[name="${name}"]`);
    await page.focus('[name="network"]');
    await page.waitForSelector(`[role="alert"][data-code="invalid_${side === 'on_ramp' ? 'address' : name}"]`);
    await expectShown(page, { [name]: 'x' });
    await act(page, 'back');
  }
  await page.context().close();
});

test('account holder is optional, and one letter is too short', async () => {
  const page = await checkout({});
  await walk(page, 'details', 'off_ramp');
  await page.fill('[name="iban"]', IBAN);
  await page.fill('[name="account_holder"]', 'A');
  await act(page, 'continue');
  await page.waitForSelector('[role="alert"][data-code="invalid_account_holder"]');
  await page.fill('[name="account_holder"]', '');
  await payFromDetails(page);
  assert.deepEqual(simulation().paid.payout, { iban: IBAN });
  await page.context().close();
});

test('form of a provider checks its fields and leaves empty ones out', async () => {
  const form = {
    type: 'object',
    properties: {
      email: { type: 'string', title: 'Mail', format: 'email', maxLength: 40 },
      town: { type: 'string', title: 'Town', maxLength: 5 },
      title: { type: 'string', title: 'Title', enum: ['Dr'] },
    },
    required: ['email'],
  };
  const page = await checkout({ amount: '100.61', verifyBy: 'form', form });
  await walk(page, 'verification');
  await act(page, 'continue');
  await page.waitForSelector('[name="email"]');
  const read = (name) => page.$eval(`[name="${name}"]`, ({ type, maxLength }) => [type, maxLength]);
  assert.deepEqual(
    [await read('email'), await read('town')],
    [
      ['email', 40],
      ['text', 5],
    ],
  );
  await page.fill('[name="email"]', 'ada');
  await act(page, 'continue');
  assert.equal(await page.$eval('[name="email"]', (field) => field.validity.typeMismatch), true);
  await page.fill('[name="email"]', 'ada@shop.example');
  await act(page, 'continue');
  await step(page, 'confirm');
  assert.deepEqual(simulation().answers, { email: 'ada@shop.example' });
  await page.context().close();
});

test('answers that autofill sets without an event stay when the page redraws', async () => {
  const answers = { name: 'Ada Example', email: 'ada@shop.example', born_on: '1990-12-31', residence: 'FR' };
  const form = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      email: { type: 'string', format: 'email' },
      born_on: { type: 'string', format: 'date' },
      residence: { type: 'string', enum: ['DE', 'FR'] },
    },
    required: Object.keys(answers),
  };
  const page = await checkout({ amount: '100.61', verifyBy: 'form', form });
  await walk(page, 'verification');
  await act(page, 'continue');
  await page.waitForSelector('[name="email"]');
  await autofill(page, answers);
  simulation().session.branding.brand_name = 'South Shop';
  simulation().changed();
  await page.getByText('South Shop').first().waitFor();
  await expectShown(page, answers);
  await act(page, 'continue');
  await step(page, 'confirm');
  assert.deepEqual(simulation().answers, answers);
  await page.context().close();
});

test('rejection shows the reason of the provider', async () => {
  const page = await checkout({ amount: '100.61', verifyBy: 'url' });
  await walk(page, 'verification');
  await act(page, 'continue');
  await page.waitForSelector('a.main');
  simulation().decide('rejected', 'The document has expired.');
  await page.waitForSelector('[data-code="verification_rejected"]');
  await page.getByText('The document has expired.').waitFor();
  await page.context().close();
});

for (const [mode, url, shown] of [
  ['test', 'http://127.0.0.1:9/pay', true],
  ['live', 'http://127.0.0.1:9/pay', false],
  ['test', 'http://pay.example/', false],
  ['live', 'https://pay.example/', true],
  ['test', 'javascript:alert(1)', false],
]) {
  test(`redirect to ${url} in mode ${mode} is ${shown ? 'a link' : 'never a link'}`, async () => {
    const page = await checkout({ mode, instructions: { type: 'redirect', url } });
    await walk(page, 'confirm');
    await act(page, 'pay');
    await step(page, 'instructions');
    assert.deepEqual(
      await page.locator('main a').evaluateAll((links) => links.map(({ href, target, rel }) => [href, target, rel])),
      shown ? [[url, '_blank', 'noopener noreferrer']] : [],
    );
    await page.getByText('You pay on a page of the payment provider.').waitFor();
    assert.equal(await page.getByText('Send your transfer').count(), 0);
    await page.context().close();
  });
}

test('bank details can be shown again after the user has sent the money', async () => {
  const page = await checkout({});
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'instructions');
  await act(page, 'continue');
  await step(page, 'progress');
  assert.equal(await page.textContent('[data-action="back"]'), 'Show the bank details');
  await act(page, 'back');
  await step(page, 'instructions');
  await page.getByText(IBAN).waitFor();
  await page.context().close();
});

test('locale with an underscore is understood', async () => {
  const page = await stage.page({});
  await page.goto(`${stage.checkout}&locale=de_AT`);
  await page.getByText('Weiter').waitFor();
  assert.equal(await page.getAttribute('html', 'lang'), 'de-AT');
  await page.context().close();
});

test('page without scripts sends the user back to the shop in each language', async () => {
  const page = await checkout({}, { javaScriptEnabled: false });
  const lines = page.locator('noscript p');
  const shown = await lines.evaluateAll((all) => all.map(({ lang, textContent }) => [lang, textContent]));
  assert.deepEqual(
    shown,
    Object.entries(LANGUAGES).map(([code, texts]) => [code, texts.page.noscript]),
  );
  await page.context().close();
});

test('reduced motion stops the spinner, and the pointer changes no colour', async () => {
  const page = await checkout({ holdMs: null });
  await walk(page, 'confirm');
  const style = () =>
    page.$eval('[data-action="pay"]', (button) => {
      const { filter, color, backgroundColor } = getComputedStyle(button);
      return [filter, color, backgroundColor];
    });
  const before = await style();
  await page.hover('[data-action="pay"]');
  assert.deepEqual(await style(), before);
  await act(page, 'pay');
  await step(page, 'instructions');
  await act(page, 'continue');
  assert.equal(await page.$eval('.sign.wait', (sign) => getComputedStyle(sign).animationName), 'none');
  await page.context().close();
});
