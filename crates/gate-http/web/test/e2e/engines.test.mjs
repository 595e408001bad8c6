// The flows in Firefox and WebKit: embedded in the shop's page, and by redirect.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { expectRecords, FLOWS, sandbox } from './shop.mjs';
import { ENGINES } from './webdriver.mjs';

const FRAME = '#ramp iframe';
const action = (name) => `[data-step] [data-action="${name}"]:not([aria-disabled="true"])`;

/** Fills in the details, as a customer does. */
async function fillIn(browser, side) {
  for (const [name, value] of Object.entries(FLOWS[side])) {
    const select = `select[name="${name}"]`;
    if (await browser.find(select)) {
      // An option whose value is its text has no attribute for it.
      const place = await browser.evaluate(
        'return [...document.querySelector(arguments[0]).options].findIndex((one) => one.value === arguments[1])',
        select,
        value,
      );
      await browser.click(`${select} option:nth-child(${place + 1})`);
    } else {
      await browser.type(`[name="${name}"]`, value);
    }
  }
}

async function pay(browser, side) {
  for (const step of ['choose', 'details', 'price']) {
    await browser.wait(`[data-step="${step}"]`);
    if (step === 'details') {
      await fillIn(browser, side);
    }
    await browser.click(action('continue'));
  }
  await browser.wait('[data-step="confirm"]');
  await browser.click(action('pay'));
  await browser.wait('[data-step="done"]');
}

for (const [engine, start] of Object.entries(ENGINES)) {
  describe(engine, () => {
    let browser;
    before(async () => {
      browser = await start();
    });
    after(() => browser?.close());

    for (const side of Object.keys(FLOWS)) {
      for (const way of ['embed', 'redirect']) {
        test(`${side} completes ${way === 'embed' ? 'embedded' : 'by redirect'}`, async () => {
          await browser.open(sandbox.demo_shop_url);
          await browser.wait('#live[data-live=true]');
          await browser.click(`#order label:has([name=flow][value="${side}"])`);
          await browser.click(`#order [data-action=${way}]`);
          if (way === 'embed') {
            await browser.enter(FRAME);
          }
          await pay(browser, side);
          if (way === 'embed') {
            await browser.enter();
          } else {
            await browser.click(action('return'));
            await browser.wait('#returned[data-returned=paid]');
          }
          await browser.wait('#decision[data-decision=paid]');
          const session = await browser.evaluate(
            'return document.querySelector(".current[data-event-type=\'gate_session.completed\']").dataset.session',
          );
          await expectRecords(session, 'completed', `${side} completed 250.00`);
          assert.equal((await browser.address()).includes('client_secret'), false);
        });
      }
    }
  });
}
