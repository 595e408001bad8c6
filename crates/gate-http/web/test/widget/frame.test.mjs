import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { act, open, step, walk } from './driving.mjs';

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

/** A partner's page on another origin that keeps every message of the frame. */
async function embed(settings) {
  const page = await stage.page(settings);
  const parent = stage.server.origin.replace('127.0.0.1', 'localhost');
  await page.goto(`${parent}/parent`);
  await page.evaluate(
    ([widget]) => {
      globalThis.messages = [];
      addEventListener(
        'message',
        ({ data, origin }) => data?.penstock === 1 && origin === widget && messages.push(data),
      );
      const frame = document.createElement('iframe');
      frame.id = 'widget';
      frame.style.width = '420px';
      frame.src = `${widget}/embed?publishable_key=pk_test_x#parent_origin=${encodeURIComponent(location.origin)}&theme=light&locale=en`;
      document.body.append(frame);
      globalThis.post = (message) => frame.contentWindow.postMessage(message, widget);
    },
    [stage.server.origin],
  );
  await page.waitForFunction(() => messages.some(({ type }) => type === 'ready'));
  return { page, frame: await (await page.$('#widget')).contentFrame() };
}

const token = (extra = {}) => ({
  penstock: 1,
  type: 'token',
  embed_token: 'simulated-token',
  expires_at: '2099-01-01T00:00:00Z',
  session_id: 'gs',
  theme: 'light',
  locale: 'en',
  flow: null,
  can_deposit: false,
  ...extra,
});
const types = (page) => page.evaluate(() => messages.map(({ type }) => type));

test('embedded purchase reports ready, steps, price, size and success', async () => {
  const { page, frame } = await embed({});
  await page.evaluate((message) => post(message), token());
  await walk(frame, 'confirm');
  await act(frame, 'pay');
  await step(frame, 'instructions');
  stage.server.simulation.finish();
  await step(frame, 'done');
  await page.waitForFunction(() => messages.some(({ type }) => type === 'success'));
  const seen = await types(page);
  for (const type of ['ready', 'resize', 'step', 'quote', 'success']) assert.ok(seen.includes(type), type);
  const success = await page.evaluate(() => messages.find(({ type }) => type === 'success'));
  assert.deepEqual(success, { penstock: 1, type: 'success', tx_id: 'tx_simulation_0001', session_id: 'gs_simulation' });
  await act(frame, 'return');
  await page.waitForFunction(() => messages.some(({ type, reason }) => type === 'close' && reason === 'completed'));
  assert.deepEqual(page.errors, []);
  await page.context().close();
});

test('messages of a foreign frame and of a wrong shape are ignored', async () => {
  const { page, frame } = await embed({});
  await page.evaluate(() => {
    for (const message of [
      null,
      'token',
      7,
      { type: 'token', embed_token: 'x' },
      { penstock: 2, type: 'token', embed_token: 'x' },
      { penstock: 1, type: 'token', embed_token: 7 },
      { penstock: 1, type: 'token', embed_token: '' },
    ])
      post(message);
  });
  // A frame of the parent's own origin beside the widget has the right origin and the wrong source.
  await page.evaluate(
    (message) =>
      new Promise((resolve) => {
        const sibling = document.createElement('iframe');
        sibling.src = '/parent';
        sibling.onload = () => {
          sibling.contentWindow.eval(`parent.frames[0].postMessage(${JSON.stringify(message)}, '*')`);
          resolve();
        };
        document.body.append(sibling);
      }),
    token(),
  );
  // Messages arrive in order, so the answer to one more shows that the frame has seen all.
  await page.evaluate(() => post({ penstock: 1, type: 'theme', theme: 'dark' }));
  await frame.waitForSelector('html[data-theme=dark]', { state: 'attached' });
  assert.equal(await frame.locator('[data-step="loading"]').count(), 1);
  assert.equal(stage.server.simulation.counts['GET /session'], undefined);
  await page.evaluate((message) => post(message), token());
  await step(frame, 'choose');
  await page.context().close();
});

test('flow of the partner hides the tabs', async () => {
  const { page, frame } = await embed({});
  await page.evaluate((message) => post(message), token({ flow: 'off_ramp' }));
  await step(frame, 'choose');
  assert.equal(await frame.locator('[data-flow]').count(), 0);
  await page.context().close();
});

test('wallet of the partner sends the deposit and the widget skips the instructions', async () => {
  const instructions = { address: 'rEb8TK3gBgk5auZkwc6sHnwrGVJH8DuaLh', memo: '10447' };
  const { page, frame } = await embed({ amount: '100.33', instructions });
  await page.evaluate((message) => post(message), token({ can_deposit: true, can_deposit_memo: true }));
  await walk(frame, 'confirm', 'off_ramp');
  await act(frame, 'pay');
  await page.waitForFunction(() => messages.some(({ type }) => type === 'deposit'));
  const deposit = await page.evaluate(() => messages.find(({ type }) => type === 'deposit'));
  assert.deepEqual([deposit.address, deposit.memo], [instructions.address, instructions.memo]);
  assert.equal(await frame.locator('.qr').count(), 0);
  await page.evaluate(
    (id) => post({ penstock: 1, type: 'deposited', request_id: id, tx_hash: '0xabc' }),
    deposit.request_id,
  );
  await step(frame, 'progress');
  await page.context().close();
});
