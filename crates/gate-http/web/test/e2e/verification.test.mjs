// A verification on the page of a provider: it opens in a tab of its own, whatever the browser does to windows, and the widget follows it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { act, allowOrigins, expectRecords, launchBrowser, openCheckout, sandbox, step, walk } from './shop.mjs';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

allowOrigins(sandbox.verifier_url);

/** Starts the verification in a browser that blocks windows, and answers late: a pop-up would have lost its click by then. */
async function startVerification() {
  const page = await openCheckout(browser, { amount: '100.61' });
  await page.addInitScript(() => {
    window.open = () => null;
  });
  await page.route(/\/v1\/embed\/verification$/, async (route) => {
    await pause(6_000);
    await route.continue();
  });
  await page.goto(page.address);
  await walk(page, 'verification');
  await act(page, 'continue');
  const link = page.locator('[data-step="verification"] a[data-action="continue"]');
  await link.waitFor();
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer');
  assert.equal(page.frames().length, 1);
  return { page, link };
}

/** Opens the provider's page by the link, and decides there. */
async function decide(page, link, button, status) {
  const [provider] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
  assert.equal(await provider.evaluate(() => window.opener), null);
  await provider.getByRole('button', { name: button }).click();
  await provider.locator('strong').getByText(status).waitFor();
  return provider;
}

async function payAndExpect(page) {
  await step(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'done');
  await expectRecords(page.session, 'completed', 'on_ramp completed 100.61');
  await page.context().close();
}

test('provider approves, and its page is closed', async () => {
  const { page, link } = await startVerification();
  const provider = await decide(page, link, 'Approve', 'approved');
  await provider.close();
  await payAndExpect(page);
});

test('provider approves, and its page stays open', async () => {
  const { page, link } = await startVerification();
  await decide(page, link, 'Approve', 'approved');
  await payAndExpect(page);
});

test('provider approves on another device', async () => {
  const { page, link } = await startVerification();
  const answer = await fetch(`${await link.getAttribute('href')}/approve`, { method: 'POST' });
  assert.equal(answer.status, 200);
  await payAndExpect(page);
});

test('provider rejects, and its reason is shown', async () => {
  const { page, link } = await startVerification();
  await decide(page, link, 'Reject', 'rejected');
  await page.locator('[data-step="verification"] [data-code="verification_rejected"]').waitFor();
  await page.getByText('A trial: rejected.').waitFor();
  await expectRecords(page.session, 'open');
  await page.context().close();
});
