// Payments and identity checks of the sandbox: the customer pretends to pay, or somebody decides on the pages of the sandbox.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { CARD } from '../../dev/catalogue.mjs';
import { act, open, step, walk } from './driving.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SEND = 'POST /test_helpers/payments/pay_1/send';
let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

const simulation = () => stage.server.simulation;

async function checkout(settings = {}) {
  const page = await stage.page({ isSandbox: true, ...settings });
  await page.goto(stage.checkout);
  return page;
}

/** A checkout whose payment waits for the customer. */
async function paid(settings, side) {
  const page = await checkout(settings);
  await walk(page, 'confirm', side);
  await act(page, 'pay');
  await step(page, 'instructions');
  return page;
}

async function openedFrom(page) {
  const [tab] = await Promise.all([page.context().waitForEvent('page'), page.click('main a.main')]);
  tab.errors = [];
  tab.on('pageerror', (error) => tab.errors.push(String(error)));
  tab.on('console', (message) => /Security Policy|TrustedHTML/.test(message.text()) && tab.errors.push(message.text()));
  await standing(tab, 'open');
  return tab;
}

/** The page of the sandbox that a checkout has opened in a tab of its own. */
const cardPage = async (settings) => {
  const page = await paid({ methods: [CARD], ...settings });
  return [page, await openedFrom(page)];
};

async function identityPage() {
  const page = await checkout({ amount: '100.64', verifyBy: null });
  await walk(page, 'verification');
  await act(page, 'continue');
  await page.waitForSelector('main a.main');
  return [page, await openedFrom(page)];
}

const standing = (tab, name) => tab.waitForSelector(`[data-standing="${name}"]`);
const says = (tab, text) => tab.locator('.outcome').getByText(text).waitFor();

async function ends(...pages) {
  assert.deepEqual(
    pages.flatMap(({ errors }) => errors),
    [],
  );
  await pages[0].context().close();
}

test('customer of the sandbox sees bank details with a note, pretends that the money was sent, and is done', async () => {
  const page = await paid();
  await page.getByText('DE02').waitFor();
  await page.getByText('Do not forget the reference.').waitFor();
  await page.getByText('This is a test: pay nothing. No money moves.').waitFor();
  const button = page.locator('[data-action="continue"]');
  assert.equal(await button.textContent(), 'Pretend that it was sent');
  simulation().refusals[SEND] = [[503, 'service_unavailable']];
  await button.click();
  await page.waitForSelector('[data-step="instructions"] [role="alert"][data-code="service_unavailable"]');
  await button.click();
  await step(page, 'done');
  assert.equal(simulation().counts[SEND], 2);
  await ends(page);
});

test('account of each currency has the labels of its country', async () => {
  for (const [currency, labels] of [
    ['GBP', ['Sort code', 'Account number']],
    ['USD', ['Routing number', 'Account number']],
  ]) {
    const page = await paid({ currency });
    const shown = await page.locator('.copyable dt').allTextContents();
    assert.deepEqual(shown, ['Account holder', ...labels, 'Amount', 'Reference']);
    await ends(page);
  }
});

test('transfer that never arrives goes on after it was pretended, and can be cancelled', async () => {
  const page = await paid({ amount: '100.34' }, 'off_ramp');
  await page.waitForSelector('.qr');
  await page.getByText('This is a test: send nothing to this address').waitFor();
  await act(page, 'continue');
  await step(page, 'progress');
  await act(page, 'cancel');
  await page.click('.ask [data-action="cancel"]');
  await page.waitForSelector('[data-code="payment_cancelled"]');
  await ends(page);
});

test('card is approved on the page of the sandbox, which hides its token and keeps it for a reload', async () => {
  const [page, tab] = await cardPage();
  assert.equal(await page.textContent('[data-action="continue"]'), 'Pretend that you paid');
  assert.equal(await page.locator('.copyable').count(), 0);
  assert.equal(tab.url(), `${stage.server.origin}/sandbox/card?payment=pay_1`);
  await tab.reload();
  await standing(tab, 'open');
  assert.equal(await tab.textContent('h1'), 'Pay €100.00 to North Shop');
  assert.equal(await tab.title(), 'Test: Pay €100.00 to North Shop');
  await act(tab, 'approve');
  await says(tab, 'Go back to the checkout’s tab.');
  await tab.waitForFunction(() => document.activeElement.matches('.outcome.good'));
  await step(page, 'done');
  await ends(page, tab);
});

test('card is declined by keyboard, and the checkout says so', async () => {
  const [page, tab] = await cardPage();
  await tab.focus('[data-action="approve"]');
  await tab.keyboard.press('Tab');
  await tab.keyboard.press('Enter');
  await standing(tab, 'rejected');
  await step(page, 'failed');
  await ends(page, tab);
});

test('card page that waits decides nothing, and follows a payment that settles by itself', async () => {
  const [page, tab] = await cardPage();
  await act(tab, 'wait');
  await says(tab, 'The payment goes on as the last two digits of its amount say.');
  assert.equal(await tab.locator('[data-action="approve"]').count(), 1);
  assert.equal(simulation().session.payment.status, 'processing');
  simulation().finish();
  await standing(tab, 'approved');
  assert.equal(await tab.locator('[data-action="approve"]').count(), 0);
  await step(page, 'done');
  await ends(page, tab);
});

test('decision that fails for now is sent again', async () => {
  const [page, tab] = await cardPage();
  simulation().refusals[SEND] = [[503, 'service_unavailable']];
  await act(tab, 'approve');
  await tab.waitForSelector('.outcome[data-code="service_unavailable"]');
  await act(tab, 'retry');
  await standing(tab, 'approved');
  await ends(page, tab);
});

test('payment of another rail, and an access that has ended, leave nothing to decide', async () => {
  const [page, tab] = await cardPage();
  simulation().session.payment.instructions.type = 'redirect';
  await act(tab, 'approve');
  await tab.waitForSelector('.outcome[data-code="not_simulated"]');
  assert.equal(await tab.locator('button').count(), 0);
  simulation().dead = true;
  await tab.reload();
  await tab.getByText('open this page from there again').waitFor();
  await ends(page, tab);
});

test('identity is rejected on the page of the sandbox', async () => {
  const [page, tab] = await identityPage();
  assert.equal(tab.url(), `${stage.server.origin}/sandbox/identity`);
  await act(tab, 'reject');
  await says(tab, 'The identity was rejected.');
  await page.waitForSelector('[data-step="verification"] [data-code="verification_rejected"]');
  await ends(page, tab);
});

test('identity is approved after a wait, and the checkout goes on to the payment', async () => {
  const [page, tab] = await identityPage();
  await act(tab, 'wait');
  await says(tab, 'The check stays pending');
  await act(tab, 'approve');
  await standing(tab, 'approved');
  await step(page, 'confirm');
  await ends(page, tab);
});

test('page of the sandbox without a token shows nothing of a payment', async () => {
  const page = await stage.page({ isSandbox: true });
  for (const path of ['card', 'card?payment=pay_1', 'identity']) {
    await page.goto(`${stage.server.origin}/sandbox/${path}`);
    await page.waitForSelector('[role="alert"][data-code="no_token"]');
    assert.equal(await page.textContent('h1'), 'Open this page from the payment');
  }
  assert.equal(simulation().counts['GET /session'], undefined);
  await ends(page);
});

/** Each state of the two pages and the way to it. */
const STATES = [
  ['card', cardPage, () => undefined],
  ['card that waits', cardPage, (tab) => act(tab, 'wait')],
  [
    'card that was approved',
    cardPage,
    async (tab) => {
      await act(tab, 'approve');
      await standing(tab, 'approved');
    },
  ],
  [
    'card whose decision failed',
    cardPage,
    async (tab) => {
      simulation().refusals[SEND] = [[503, 'service_unavailable']];
      await act(tab, 'approve');
      await tab.waitForSelector('[data-action="retry"]');
    },
  ],
  ['identity', identityPage, () => undefined],
];

for (const [name, reach, go] of STATES) {
  test(`${name} has no accessibility finding in light, dark and forced colours, and fits 320 px`, async () => {
    const [page, tab] = await reach();
    await go(tab);
    await tab.evaluate(axe);
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    for (const media of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { forcedColors: 'active' }]) {
      await tab.emulateMedia(media);
      for (const width of [320, 1280]) {
        await tab.setViewportSize({ width, height: 700 });
        const findings = await tab.evaluate(async (values) => {
          const { violations } = await axe.run(document, { runOnly: { type: 'tag', values } });
          return violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]);
        }, tags);
        assert.deepEqual(findings, []);
        const isWide = await tab.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.equal(isWide, false, `It scrolls sideways at ${width} px.`);
      }
    }
    await page.context().close();
  });
}
