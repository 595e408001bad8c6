// The whole way from the shop and back by keyboard alone.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { decision, expectRecords, FLOWS, launchBrowser, openShop, step } from './shop.mjs';

const MAX_PRESSES = 60;
const MAX_ATTEMPTS = 5;

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Presses Tab until an element has the focus. */
async function reach(page, selector) {
  for (let presses = 0; presses < MAX_PRESSES; presses += 1) {
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) {
      return;
    }
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab never reaches ${selector}`);
}

async function press(page, action) {
  const selector = `[data-action="${action}"]`;
  await page.locator(`${selector}:not(:disabled, [aria-disabled=true])`).waitFor();
  await reach(page, selector);
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(ring, 'none', `${action} shows no focus ring`);
  await page.keyboard.press('Enter');
}

/** A new screen takes the focus to its heading, so that a screen reader announces it. */
async function arrive(page, name) {
  await step(page, name);
  await page.waitForFunction(() => document.activeElement.id === 'heading');
}

/** Types into a field, or chooses the entry of a select that begins with the text. */
async function enter(page, name, value) {
  await reach(page, `[name="${name}"]`);
  await page.keyboard.type(value);
  // A select takes a letter that comes more than a second after the last one for the beginning of another entry.
  const isWrong = () =>
    page.evaluate(
      (wanted) => document.activeElement.localName === 'select' && document.activeElement.value !== wanted,
      value,
    );
  for (let attempt = 1; attempt < MAX_ATTEMPTS && (await isWrong()); attempt += 1) {
    await pause(1100);
    await page.keyboard.type(value);
  }
  await page.waitForFunction(
    ([field, wanted]) => document.querySelector(`[name="${field}"]`).value === wanted,
    [name, value],
  );
}

for (const side of Object.keys(FLOWS)) {
  test(`${side} is made by keyboard alone`, async () => {
    const page = await openShop(browser);
    await reach(page, '#order [name=flow]');
    for (let presses = 0; await page.evaluate((flow) => document.activeElement.value !== flow, side); presses += 1) {
      assert.ok(presses < 3, `${side} cannot be chosen`);
      await page.keyboard.press('ArrowRight');
    }
    await press(page, 'redirect');
    await step(page, 'choose');
    await press(page, 'continue');
    await arrive(page, 'details');
    for (const [name, value] of Object.entries(FLOWS[side])) {
      await enter(page, name, value);
    }
    await page.keyboard.press('Enter');
    await arrive(page, 'price');
    await press(page, 'continue');
    await arrive(page, 'confirm');
    await press(page, 'pay');
    await arrive(page, 'done');
    await press(page, 'return');
    await page.waitForURL(/gate_session_id=/);
    await decision(page, 'paid');
    await expectRecords(
      new URL(page.url()).searchParams.get('gate_session_id'),
      'completed',
      `${side} completed 250.00`,
    );
    await page.context().close();
  });
}
