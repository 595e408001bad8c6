// A sandbox whose payments never end by themselves while a person looks: the customer pretends, or decides on the sandbox's own pages.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { act, launchBrowser, NARROW, openCheckout, step, walk } from './shop.mjs';

const HOUR_MS = 3_600_000;

describe('pretending in the sandbox', { timeout: 300_000 }, () => {
  let browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  const open = async (fields) => {
    const page = await openCheckout(browser, fields, { viewport: NARROW });
    await page.goto(page.address);
    return page;
  };

  const pay = async (page) => {
    await act(page, 'pay');
    await step(page, 'instructions');
  };

  /** Opens the page of a provider, which is the sandbox's own, and reloads it: it keeps its token. */
  const openProvider = async (page) => {
    const [opened] = await Promise.all([page.context().waitForEvent('page'), page.click('a.main')]);
    await opened.waitForSelector('[data-action="approve"]');
    assert.ok(!opened.url().includes('#'), opened.url());
    await opened.reload();
    return opened;
  };

  for (const flow of ['on_ramp', 'off_ramp', 'swap'])
    test(`money that was sent in a test arrives at once (${flow})`, async () => {
      const page = await open({ amount: '250.00', flow });
      await walk(page, 'confirm', { side: flow });
      await pay(page);
      await act(page, 'continue');
      await step(page, 'done');
      await page.context().close();
    });

  test('a transfer that never arrives is waited for, and can be cancelled', async () => {
    const page = await open({ amount: '250.34' });
    await walk(page, 'confirm');
    await pay(page);
    await act(page, 'continue');
    await step(page, 'progress');
    await act(page, 'cancel');
    await page.locator('.ask [data-action="cancel"]').click();
    await step(page, 'price');
    await page.context().close();
  });

  for (const [decision, end] of [
    ['approve', 'done'],
    ['reject', 'failed'],
  ])
    test(`the page of the test card decides: ${decision}`, async () => {
      const page = await open({ amount: '250.00' });
      await walk(page, 'details');
      await page.click('[value="card"]');
      await act(page, 'continue');
      await walk(page, 'confirm', { from: 'price' });
      await pay(page);
      const provider = await openProvider(page);
      await provider.click('[data-action="wait"]');
      await provider.click(`[data-action="${decision}"]`);
      await step(page, end);
      await page.context().close();
    });

  for (const [decision, shown] of [
    ['approve', '[data-step="confirm"]'],
    ['reject', '[data-code="verification_rejected"]'],
  ])
    test(`the page of the identity check decides: ${decision}`, async () => {
      const page = await open({ amount: '250.64' });
      await walk(page, 'price');
      await act(page, 'continue');
      await step(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('a.main');
      const provider = await openProvider(page);
      await provider.click(`[data-action="${decision}"]`);
      await page.waitForSelector(shown);
      await page.context().close();
    });

  for (const [amount, compare] of [
    ['250.71', (earlier, now) => now > earlier],
    ['250.72', (earlier, now) => now < earlier],
  ])
    test(`the price of ${amount} changes with each quote`, async () => {
      // The price starts over each hour.
      const left = HOUR_MS - (Date.now() % HOUR_MS);
      if (left < 60_000) await delay(left + 1_000);
      const page = await open({ amount });
      const quoted = () =>
        page
          .waitForResponse((response) => response.url().endsWith('/embed/quotes') && response.status() === 201)
          .then((response) => response.json());
      const first = quoted();
      await walk(page, 'price');
      const { crypto_amount: earlier } = await first;
      await page.waitForTimeout(1_500);
      await act(page, 'back');
      await step(page, 'details');
      const second = quoted();
      await act(page, 'continue');
      const { crypto_amount: now } = await second;
      assert.ok(compare(Number(earlier), Number(now)), `${earlier}, then ${now}`);
      await page.context().close();
    });
});
