// Drives the built widget in Chromium as a user does.

import { start } from '../../dev/gate.mjs';
import { launchBrowser, newPage, PATIENCE_MS } from '../browser.mjs';

export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
export const IBAN = 'DE89370400440532013000';

export async function open() {
  const server = await start();
  const browser = await launchBrowser();
  return {
    server,
    browser,
    async close() {
      await browser.close();
      server.close();
    },
    async page(settings = {}, options = {}) {
      server.use({ holdMs: null, ...settings });
      const page = await newPage(browser, { locale: 'en-GB', viewport: { width: 1280, height: 900 }, ...options });
      page.errors = [];
      page.on('pageerror', (error) => page.errors.push(String(error)));
      page.on(
        'console',
        (message) => /Content Security Policy|TrustedHTML/.test(message.text()) && page.errors.push(message.text()),
      );
      return page;
    },
    checkout: `${server.origin}/checkout#publishable_key=pk_test_widget&client_secret=gsec_widget`,
  };
}

export const step = (page, name) => page.waitForSelector(`[data-step="${name}"]`);
export const act = (page, name) => page.click(`[data-action="${name}"]`);

/** Leaves the payment: the page asks once. */
export async function giveUp(page) {
  await act(page, 'cancel');
  await page.waitForSelector('.ask');
  await page.click('.ask [data-action="cancel"]');
}

/** Walks to a step of the draft, from wherever the customer is before it. */
export async function walk(page, goal, side = 'on_ramp') {
  await page.waitForSelector('[data-step="choose"], [data-step="details"], [data-step="price"]');
  if (await page.locator('[data-step="choose"]').count()) {
    const tab = page.locator(`[data-flow="${side}"]`);
    if (await tab.count()) await tab.click();
    if (goal === 'choose') return;
    await act(page, 'continue');
  }
  if ((await page.locator('[data-step="price"]').count()) === 0) {
    await step(page, 'details');
    if (goal === 'details') return;
    if (side === 'off_ramp') {
      await page.fill('[name="iban"]', IBAN);
      await page.fill('[name="account_holder"]', 'Ada Example');
    } else {
      await page.fill('[name="wallet_address"]', WALLET);
    }
    await act(page, 'continue');
  }
  await step(page, 'price');
  await page.waitForSelector('[data-action="continue"]:not([aria-disabled="true"])');
  if (goal === 'price') return;
  await act(page, 'continue');
  await step(page, goal === 'verification' ? 'verification' : 'confirm');
}

/** Waits for a state of the simulation. */
export async function until(holds) {
  const end = Date.now() + PATIENCE_MS;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`This never held: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
