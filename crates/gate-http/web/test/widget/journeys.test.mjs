// Ways through the widget beyond the shortest one: failures, expired prices, providers of verification, keyboard.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { stretch } from '../browser.mjs';
import { act, open, step, until, WALLET, walk } from './driving.mjs';

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

async function pay(page) {
  await act(page, 'pay');
  await step(page, 'instructions');
}

const simulation = () => stage.server.simulation;

test('price that runs out at confirm is renewed, and only a further click pays', async () => {
  const page = await stage.page({});
  await page.clock.install();
  await page.goto(stage.checkout);
  await walk(page, 'confirm');
  const old = await page.getAttribute('.sums .big .amount', 'data-value');
  simulation().rate = 1.1;
  await page.clock.fastForward(61_000);
  const changed = page.locator('[data-step="confirm"] [role="alert"][data-code="price_changed"]');
  await changed.waitFor();
  const now = await page.getAttribute('.sums .big .amount', 'data-value');
  assert.notEqual(now, old);
  const less = (Number(old) - Number(now)).toFixed(6);
  assert.match(
    await changed.textContent(),
    new RegExp(`You receive ${Number(less)}\\sUSDC less than before\\. What you pay is the same\\.`),
  );
  assert.equal(simulation().payments.length, 0);
  await pay(page);
  assert.equal(simulation().payments.length, 1);
  assert.equal(simulation().payments[0].crypto_amount, now);
  await page.context().close();
});

for (const outcome of ['approved', 'rejected']) {
  const settings = () => ({ amount: '100.61', returnUrl: `${stage.server.origin}/shop` });

  async function ends(page) {
    if (outcome === 'approved') {
      await step(page, 'confirm');
    } else {
      await page.waitForSelector('[data-step="verification"] [role="alert"][data-code="verification_rejected"]');
      await act(page, 'return');
      await page.waitForURL(/\/shop\?gate_session_id=gs_simulation/);
    }
    assert.equal(simulation().payments.length, 0);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  }

  test(`verification at a provider's address ends ${outcome}`, async () => {
    const page = await checkout({ ...settings(), verifyBy: 'url' });
    await walk(page, 'verification');
    await act(page, 'continue');
    const link = page.locator('a.main[href="https://verify.example/start"]');
    await link.waitFor();
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
    simulation().decide(outcome);
    await ends(page);
  });

  test(`verification by a form ends ${outcome}`, async () => {
    const page = await checkout({ ...settings(), verifyBy: 'form', verifiedAs: outcome });
    await walk(page, 'verification');
    await act(page, 'continue');
    await page.waitForSelector('[name="full_name"]');
    await act(page, 'continue');
    assert.equal(await page.$eval('[name="full_name"]', (field) => field.validity.valueMissing), true);
    assert.equal(simulation().answers, undefined);
    await page.fill('[name="full_name"]', 'Ada Example');
    await page.fill('[name="born_on"]', '1990-12-10');
    await page.selectOption('[name="residence"]', 'FR');
    await act(page, 'continue');
    await until(() => simulation().answers !== undefined);
    assert.deepEqual(simulation().answers, { full_name: 'Ada Example', born_on: '1990-12-10', residence: 'FR' });
    await ends(page);
  });
}

/** The time for which a button says that it has copied. */
const COPIED_MS = 2000;

test('copy buttons copy the exact value of their row', async () => {
  const page = await stage.page({}, { permissions: ['clipboard-read', 'clipboard-write'] });
  await stretch(page, COPIED_MS);
  await page.goto(stage.checkout);
  await walk(page, 'confirm');
  await pay(page);
  const { instructions } = simulation().payments[0];
  for (const [label, name] of [
    ['IBAN', 'iban'],
    ['Reference', 'reference'],
    ['Amount', 'amount'],
  ]) {
    const button = page.locator(`[data-action="copy"][aria-label="Copy ${label}"]`);
    await button.click();
    await button.getByText('Copied').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), instructions[name]);
  }
  await page.context().close();
});

for (const works of [true, false]) {
  test(`copy button without a clipboard ${works ? 'copies from a selection' : 'leaves the exact value selected and says so'}`, async () => {
    const page = await stage.page({});
    await page.addInitScript((result) => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException('Denied.', 'NotAllowedError'));
      document.execCommand = () => {
        window.selected = String(document.activeElement.value);
        return result;
      };
    }, works);
    await stretch(page, COPIED_MS);
    await page.goto(stage.checkout);
    await walk(page, 'confirm');
    await pay(page);
    const button = page.locator('[data-action="copy"][aria-label="Copy Amount"]');
    await button.focus();
    await button.click();
    await page.waitForFunction(() => window.selected);
    const { amount } = simulation().payments[0].instructions;
    assert.equal(await page.evaluate(() => window.selected), amount);
    assert.equal(await page.locator('textarea').count(), 0);
    if (works) {
      await page.waitForFunction(() => document.activeElement.textContent === 'Copied');
    } else {
      await page.locator('p.by-hand').getByText('The text is selected.').waitFor();
      assert.equal(await button.textContent(), 'Copy');
      await page.waitForFunction((wanted) => {
        const { value, selectionStart, selectionEnd } = document.activeElement;
        return value?.slice(selectionStart, selectionEnd) === wanted;
      }, amount);
    }
    await page.context().close();
  });
}

test('purchase is made by keyboard alone', async () => {
  const page = await checkout({ returnUrl: `${stage.server.origin}/shop` });
  const reach = async (selector) => {
    for (let presses = 0; presses < 25; presses += 1) {
      if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`Tab never reaches ${selector}`);
  };
  const press = async (action) => {
    await page.waitForSelector(`[data-action="${action}"]:not([aria-disabled="true"])`);
    await reach(`[data-action="${action}"]`);
    await page.keyboard.press('Enter');
  };
  const arrives = async (name) => {
    await step(page, name);
    await page.waitForFunction(() => document.activeElement.id === 'heading');
  };
  await step(page, 'choose');
  await reach('[data-flow="on_ramp"]');
  await page.keyboard.press('ArrowRight');
  await page.waitForSelector('[data-flow="off_ramp"][aria-selected="true"]:focus');
  await page.keyboard.press('ArrowLeft');
  await press('continue');
  await arrives('details');
  await press('continue');
  await page.waitForSelector('[name="wallet_address"]:focus');
  await page.keyboard.type(WALLET);
  await page.keyboard.press('Enter');
  await arrives('price');
  await press('continue');
  await arrives('confirm');
  await press('pay');
  await arrives('instructions');
  await press('continue');
  await arrives('progress');
  simulation().finish();
  await arrives('done');
  await press('return');
  await page.waitForURL(/\/shop/);
  assert.equal(simulation().payments.length, 1);
});
