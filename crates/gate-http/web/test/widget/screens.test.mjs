import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { act, giveUp, open, step, walk } from './driving.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Set to keep a picture of each screen. */
const pictures = process.env.WIDGET_PICTURES;
let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

/** Each screen and the way to it. */
const SCREENS = [
  ['choose', {}, (page) => walk(page, 'choose')],
  ['details', {}, (page) => walk(page, 'details')],
  ['details_sale', {}, (page) => walk(page, 'details', 'off_ramp')],
  ['details_swap', {}, (page) => walk(page, 'details', 'swap')],
  [
    'details_error',
    {},
    async (page) => {
      await walk(page, 'details');
      await act(page, 'continue');
      await page.waitForSelector('[role="alert"]');
    },
  ],
  ['price', {}, (page) => walk(page, 'price')],
  ['verification', { amount: '100.61' }, (page) => walk(page, 'verification')],
  [
    'verification_rejected',
    { amount: '100.62' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('[data-code="verification_rejected"]');
    },
  ],
  ['confirm', {}, (page) => walk(page, 'confirm')],
  [
    'instructions',
    { amount: '100.33' },
    async (page) => {
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'instructions');
    },
  ],
  [
    'instructions_swap',
    { amount: '100.33' },
    async (page) => {
      await walk(page, 'confirm', 'swap');
      await act(page, 'pay');
      await page.waitForSelector('.qr');
    },
  ],
  [
    'progress',
    { amount: '100.33' },
    async (page) => {
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'instructions');
      await act(page, 'continue');
      await step(page, 'progress');
    },
  ],
  [
    'instructions_part',
    { amount: '100.33' },
    async (page) => {
      await walk(page, 'confirm', 'swap');
      await act(page, 'pay');
      await step(page, 'instructions');
      stage.server.simulation.receive('0.001');
      await page.waitForSelector('.note .amount');
    },
  ],
  [
    'progress_late',
    { amount: '100.33' },
    async (page) => {
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'instructions');
      stage.server.simulation.report({ pay_until: stage.server.simulation.session.payment.created_at });
      await step(page, 'progress');
    },
  ],
  [
    'verification_url',
    { amount: '100.61', verifyBy: 'url' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('a.main');
    },
  ],
  [
    'verification_form',
    { amount: '100.61', verifyBy: 'form' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('[name="full_name"]');
    },
  ],
  [
    'verification_pending',
    { amount: '100.63' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('.sign.wait');
    },
  ],
  ['confirm_sale', {}, (page) => walk(page, 'confirm', 'off_ramp')],
  [
    'done',
    {},
    async (page) => {
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'instructions');
      stage.server.simulation.finish();
      await step(page, 'done');
    },
  ],
  [
    'failed',
    { amount: '100.31' },
    async (page) => {
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'instructions');
      stage.server.simulation.finish();
      await step(page, 'failed');
    },
  ],
  [
    'cancel_question',
    {},
    async (page) => {
      await walk(page, 'choose');
      await act(page, 'cancel');
      await page.waitForSelector('.ask');
    },
  ],
  [
    'cancelled',
    {},
    async (page) => {
      await walk(page, 'confirm');
      await act(page, 'pay');
      await step(page, 'instructions');
      await giveUp(page);
      await page.waitForSelector('[data-step="price"] [data-code="payment_cancelled"]');
    },
  ],
  [
    'over',
    {},
    async (page) => {
      await walk(page, 'price');
      stage.server.simulation.session.status = 'expired';
      stage.server.simulation.changed();
      await page.waitForSelector('[data-step="over"] [data-code="session_expired"]');
    },
  ],
  ['over_token', { status: 'expired' }, (page) => step(page, 'over')],
  ['unavailable', { unavailable: 'corridor_not_available' }, (page) => step(page, 'unavailable')],
  [
    'offline',
    {},
    async (page) => {
      await step(page, 'choose');
      await page.context().setOffline(true);
      await step(page, 'offline');
    },
  ],
];

async function violations(page) {
  return page.evaluate(async () => {
    const { violations: found } = await globalThis.axe.run(document, { preload: false, resultTypes: ['violations'] });
    return found.map(
      ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.failureSummary}`).join(' | ')}`,
    );
  });
}

/** Elements whose content is cut, or that reach over the edge of the page. */
function cut(page) {
  return page.evaluate(() => {
    const found = [];
    for (const element of document.querySelectorAll('.card, .card *')) {
      const { left, right, width } = element.getBoundingClientRect();
      if (width === 0 || element.closest('svg, select, .hidden')) continue;
      const hides = getComputedStyle(element).overflowX !== 'visible';
      const isCut =
        hides && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1);
      if (isCut || left < -1 || right > innerWidth + 1) found.push(element.outerHTML.slice(0, 120));
    }
    return found;
  });
}

for (const [name, settings, reach] of SCREENS) {
  test(`${name} has no accessibility finding in light and dark, and nothing is cut at 200 % zoom`, async () => {
    const branding = { primary_color: '#f5d90a', accent_color: '#f5d90a' };
    const page = await stage.page(
      { returnUrl: `${stage.server.origin}/shop`, branding, ...settings },
      { bypassCSP: true },
    );
    await page.addInitScript(axe);
    await page.goto(stage.checkout);
    await reach(page);
    for (const colorScheme of ['light', 'dark']) {
      for (const width of [360, 1280]) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.setViewportSize({ width, height: 820 });
        await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
        assert.deepEqual(await violations(page), []);
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          'The page scrolls sideways.',
        );
        if (pictures) {
          mkdirSync(pictures, { recursive: true });
          await page.screenshot({ path: `${pictures}/${name}-${colorScheme}-${width}.png` });
        }
      }
    }
    // A zoom of 200 % halves the size of the page: of a desktop, and of a small one down to the narrowest that counts.
    for (const [width, height] of [
      [640, 410],
      [320, 400],
    ]) {
      await page.setViewportSize({ width, height });
      assert.deepEqual(await cut(page), [], `Something is cut at ${width} px.`);
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        `The page scrolls sideways at ${width} px.`,
      );
    }
    await page.context().close();
  });
}
