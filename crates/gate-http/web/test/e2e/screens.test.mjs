// Every state of the demo shop in a running sandbox: accessible in light and dark, whole at each width. The widget has `test/widget`.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  act,
  audit,
  decision,
  embedded,
  launchBrowser,
  NARROW,
  openShop,
  order,
  sandbox,
  step,
  walk,
  WIDE,
} from './shop.mjs';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

// A zoom of 200 % halves the size of the page, and one of 400 % leaves 320 of 1280 px.
const ZOOMED = [
  { width: 640, height: 450 },
  { width: 320, height: 256 },
];

const scrollsSideways = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

/** Elements whose content is cut, or that reach over the edge of the page. */
function findCut(page) {
  return page.evaluate(() => {
    const found = [];
    for (const element of document.querySelectorAll('.card, .card *')) {
      const { left, right, width } = element.getBoundingClientRect();
      if (width === 0 || element.closest('svg, progress, select, pre, .hidden')) continue;
      const style = getComputedStyle(element);
      const isCut =
        style.overflowX === 'hidden' &&
        (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1);
      if (isCut || left < -1 || right > innerWidth + 1) found.push(element.outerHTML.slice(0, 120));
    }
    return found;
  });
}

/** Looks at a screen as each customer does. */
async function inspect(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    for (const size of [NARROW, WIDE]) {
      await page.setViewportSize(size);
      await audit(page, `${name}, ${colorScheme}, ${size.width} px`);
      assert.ok(!(await scrollsSideways(page)), `${name} scrolls sideways at ${size.width} px.`);
    }
  }
  for (const size of ZOOMED) {
    await page.setViewportSize(size);
    assert.deepEqual(await findCut(page), [], `${name} is cut at ${size.width} px.`);
    assert.ok(!(await scrollsSideways(page)), `${name} scrolls sideways at ${size.width} px.`);
  }
  await page.setViewportSize(WIDE);
}

test('every state of the demo shop is accessible and whole', async () => {
  const page = await openShop(browser);
  // The suites share one shop, and axe is slow on its list with the events of all of them.
  const inspectShop = async (name) => {
    await page.$$eval('#feed > li:nth-child(n + 4)', (entries) => entries.forEach((entry) => entry.remove()));
    await inspect(page, name);
  };
  await inspectShop('empty shop');
  await page.fill('#order [name=amount]', 'one');
  await page.click('#order [data-action=embed]');
  await page.waitForSelector('#order-error:not([hidden])');
  await inspectShop('refused order');
  await order(page, { way: 'link' });
  await page.waitForSelector('#link-box:not([hidden])');
  await inspectShop('payment link');
  await order(page);
  await walk(embedded(page), 'confirm');
  await inspectShop('embedded checkout');
  await act(embedded(page), 'pay');
  await step(embedded(page), 'done');
  await decision(page, 'paid');
  await page.click('#callbacks summary');
  await page.click('#feed summary >> nth=0');
  await inspectShop('paid order');
  for (const state of ['paid', 'cancelled']) {
    await page.goto(`${sandbox.demo_shop_url}?${state}`);
    await page.waitForSelector(`[data-returned=${state}]`);
    await inspectShop(`return ${state}`);
  }
  await page.context().close();
});
