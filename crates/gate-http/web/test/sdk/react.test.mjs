// The React component in Chromium: one start in StrictMode, updates without a start, and a full cleanup.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { DIST } from '../../dev/serving.mjs';
import { launchBrowser, newPage } from '../browser.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY, startSimulation } from './simulation.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const APPLICATION = `
  import { createElement, StrictMode, useState } from 'react';
  import { createRoot } from 'react-dom/client';
  import { RampCheckout } from '${DIST}/react.mjs';

  window.calls = [];
  const root = createRoot(document.getElementById('root'));
  function App(given) {
    return createElement('main', null, createElement('h1', null, 'Shop'), createElement(Checkout, given));
  }
  function Checkout(given) {
    const [state, setState] = useState({ shown: true, tag: 'first', ...given });
    window.change = (changes) => setState((current) => ({ ...current, ...changes }));
    const { shown, tag, wallet, broken, ...props } = state;
    if (!shown) return null;
    return createElement(RampCheckout, {
      ...props,
      id: 'checkout',
      className: 'card',
      style: { minWidth: 0 },
      onReady: () => window.calls.push(tag + '.onReady'),
      onStep: ({ step }) => window.calls.push(tag + '.onStep ' + step),
      onError: ({ code, message }) => {
        window.calls.push(tag + '.onError ' + code + ' ' + message);
        if (broken) throw new Error('thrown by onError');
      },
      onInitiateDeposit: wallet && (({ asset }) => {
        window.calls.push(tag + '.onInitiateDeposit ' + asset);
        return { txHash: '0x' + tag };
      }),
    });
  }
  window.start = (options) => root.render(createElement(StrictMode, null, createElement(App, options)));
  window.unmount = () => root.unmount();
`;

let browser;
let world;
let application;
let page;
let failures;

before(async () => {
  browser = await launchBrowser();
  world = await startSimulation();
  const bundle = await build({
    stdin: { contents: APPLICATION, resolveDir: HERE, loader: 'js' },
    bundle: true,
    write: false,
    format: 'iife',
    // The development build of React runs effects twice in StrictMode.
    define: { 'process.env.NODE_ENV': '"development"' },
    logLevel: 'error',
  });
  application = bundle.outputFiles[0].text;
});

after(async () => {
  await browser?.close();
  await world?.close();
});

beforeEach(async () => {
  world.reset();
  world.state.page =
    '<!doctype html><html lang="en"><title>Shop</title><div id="root"></div><script src="/application.js"></script></html>';
  world.state.scripts = { '/application.js': application };
  page = await newPage(browser);
  failures = [];
  page.on('pageerror', (error) => failures.push(error.message));
  await page.goto(world.shop.origin);
});

afterEach(() => page.context().close());

function options(changes = {}) {
  return {
    publishableKey: PUBLISHABLE_KEY,
    clientSecret: CLIENT_SECRET,
    environment: 'sandbox',
    theme: 'light',
    locale: 'en',
    gateOrigin: world.gate.origin,
    widgetOrigin: world.widget.origin,
    ...changes,
  };
}

async function start(changes) {
  await page.evaluate((given) => window.start(given), options(changes));
  await page.waitForFunction(() => window.calls.length > 0);
  const element = await page.waitForSelector('#checkout iframe', { state: 'attached' });
  return element.contentFrame();
}

test('component_starts_once_in_strict_mode', async () => {
  const frame = await start();
  await frame.waitForFunction(() => window.received?.length === 1);
  assert.equal(world.gate.requests.length, 1);
  assert.equal(await page.locator('iframe').count(), 1);
  assert.deepEqual(await page.evaluate(() => window.calls), ['first.onReady']);
  assert.equal(await page.locator('#checkout').getAttribute('class'), 'card');
});

test('component_updates_theme_and_callbacks_without_a_new_start', async () => {
  const frame = await start();
  await page.evaluate(() => window.change({ theme: 'dark', tag: 'second' }));
  await frame.waitForFunction(() => window.received?.length === 2);
  assert.deepEqual((await frame.evaluate(() => window.received))[1], { penstock: 1, type: 'theme', theme: 'dark' });
  await frame.evaluate(() => window.send({ type: 'step', step: 'price' }));
  await page.waitForFunction(() => window.calls.length === 2);
  assert.deepEqual(await page.evaluate(() => window.calls), ['first.onReady', 'second.onStep price']);
  assert.equal(world.gate.requests.length, 1);
});

const DEPOSIT = {
  type: 'deposit',
  request_id: 'pay_1',
  asset: 'USDT',
  network: 'tron',
  amount: '1.5',
  address: 'TXyz',
};

/** Sends the request for a deposit, and returns what the frame gets for it. */
async function deposit(frame) {
  const count = await frame.evaluate(() => window.received.length);
  await frame.evaluate((message) => window.send(message), DEPOSIT);
  await frame.waitForFunction((before) => window.received.length > before, count);
  return (await frame.evaluate(() => window.received)).at(-1);
}

test('component_asks_the_newest_wallet', async () => {
  const frame = await start({ wallet: true });
  // The new theme shows that the rendering with the new callbacks has taken effect.
  await page.evaluate(() => window.change({ theme: 'dark', tag: 'second' }));
  await frame.waitForFunction(() => window.received?.length === 2);
  assert.equal((await frame.evaluate(() => window.received))[0].can_deposit, true);
  assert.deepEqual(await deposit(frame), { penstock: 1, type: 'deposited', request_id: 'pay_1', tx_hash: '0xsecond' });
  assert.deepEqual(await page.evaluate(() => window.calls), ['first.onReady', 'second.onInitiateDeposit USDT']);
  assert.equal(world.gate.requests.length, 1);
});

test('wallet_of_a_later_rendering_counts_from_the_next_start', async () => {
  const frame = await start();
  await page.evaluate(() => window.change({ theme: 'dark', wallet: true }));
  await frame.waitForFunction(() => window.received?.length === 2);
  assert.equal((await frame.evaluate(() => window.received))[0].can_deposit, false);
  assert.equal((await deposit(frame)).tx_hash, null);
  assert.deepEqual(await page.evaluate(() => window.calls), ['first.onReady']);
  assert.equal(world.gate.requests.length, 1);
  await page.evaluate((secret) => window.change({ clientSecret: secret, tag: 'second' }), `${CLIENT_SECRET}2`);
  await page.waitForFunction(() => window.calls.includes('second.onReady'));
  const next = await (await page.waitForSelector('#checkout iframe', { state: 'attached' })).contentFrame();
  await next.waitForFunction(() => window.received?.length > 0);
  assert.equal((await next.evaluate(() => window.received))[0].can_deposit, true);
});

test('component_starts_again_for_another_session', async () => {
  await start();
  await page.evaluate((secret) => window.change({ clientSecret: secret, tag: 'second' }), `${CLIENT_SECRET}2`);
  await page.waitForFunction(() => window.calls.includes('second.onReady'));
  assert.deepEqual(
    world.gate.requests.map(({ body }) => body.clientSecret),
    [CLIENT_SECRET, `${CLIENT_SECRET}2`],
  );
  assert.equal(await page.locator('iframe').count(), 1);
});

test('component_removes_the_widget_on_unmount', async () => {
  await start();
  await page.evaluate(() => window.change({ shown: false }));
  await page.waitForFunction(() => document.querySelectorAll('iframe').length === 0);
  await page.evaluate(() => window.change({ shown: true, tag: 'again' }));
  await page.waitForFunction(() => window.calls.includes('again.onReady'));
  await page.evaluate(() => window.unmount());
  assert.equal(await page.locator('iframe').count(), 0);
  assert.deepEqual(failures, []);
});

test('component_unmounted_in_the_same_task_starts_nothing', async () => {
  await page.evaluate((given) => {
    window.start(given);
    window.unmount();
  }, options());
  await page.waitForTimeout(200);
  assert.equal(world.gate.requests.length, 0);
  assert.equal(await page.locator('iframe').count(), 0);
});

for (const [name, changes, expected] of [
  ['secret_key', { publishableKey: 'sk_test_0123456789' }, 'secret_key_refused publishableKey is a secret key'],
  ['wrong_mode', { environment: 'production' }, "key_mode_mismatch environment 'production' takes a pk_live_… key"],
  ['missing_secret', { clientSecret: undefined }, 'invalid_option clientSecret is missing: pass `client_secret`'],
]) {
  test(`component_with_a_${name}_reports_it_and_leaves_the_application_alone`, async () => {
    const errors = [];
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
    await page.evaluate((given) => window.start(given), options(changes));
    await page.waitForFunction(() => window.calls.length > 0);
    // A rendering that follows shows that StrictMode's second run of the effect reports nothing more.
    await page.evaluate(() => window.change({ tag: 'second' }));
    await page.waitForFunction(() => document.querySelector('h1')?.textContent === 'Shop');
    const calls = await page.evaluate(() => window.calls);
    assert.equal(calls.length, 1);
    assert.ok(calls[0].startsWith(`first.onError ${expected}`), calls[0]);
    assert.equal(await page.locator('#checkout').isVisible(), false);
    assert.equal(await page.locator('iframe').count(), 0);
    const reports = errors.filter((text) => text.includes(expected.slice(expected.indexOf(' ') + 1)));
    assert.equal(reports.length, 1, errors.join('\n'));
    assert.deepEqual([failures, world.gate.requests], [[], []]);
    // The corrected option starts the widget.
    await page.evaluate((given) => window.change(given), options({ tag: 'third' }));
    await page.waitForFunction(() => window.calls.includes('third.onReady'));
    assert.equal(await page.locator('#checkout iframe').isVisible(), true);
    assert.equal(await page.locator('#checkout').getAttribute('class'), 'card');
  });
}

test('component_whose_on_error_throws_leaves_the_application_alone', async () => {
  await page.evaluate((given) => window.start(given), options({ publishableKey: 'pk', broken: true }));
  await page.waitForFunction(() => window.calls.length > 0);
  await page.evaluate(() => window.change({ tag: 'second' }));
  assert.equal(await page.locator('h1').textContent(), 'Shop');
  assert.deepEqual(failures, ['thrown by onError']);
});

test('component_reads_no_inherited_props', async () => {
  await page.evaluate(
    ([given, stranger]) => {
      window.inherited = [];
      Object.assign(Object.prototype, {
        gateOrigin: stranger,
        widgetOrigin: stranger,
        flow: 'swap',
        onQuote: () => window.inherited.push('onQuote'),
        onSuccess: () => window.inherited.push('onSuccess'),
      });
      window.start(given);
    },
    [options({ locale: undefined }), world.shop.origin],
  );
  await page.waitForFunction(() => window.calls.length > 0);
  const frame = await (await page.waitForSelector('#checkout iframe', { state: 'attached' })).contentFrame();
  await frame.waitForFunction(() => window.received?.length === 1);
  assert.equal((await frame.evaluate(() => window.received))[0].flow, null);
  await frame.evaluate(() => {
    window.send({ type: 'quote', rate: '1', expires_at: '2026-11-22T11:10:26.885Z' });
    window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' });
    window.send({ type: 'step', step: 'done' });
  });
  await page.waitForFunction(() => window.calls.length === 2);
  assert.deepEqual(await page.evaluate(() => [window.calls, window.inherited]), [
    ['first.onReady', 'first.onStep done'],
    [],
  ]);
  assert.equal(world.gate.requests.length, 1);
});

test('component_without_origins_ignores_inherited_ones', async () => {
  await page.evaluate(
    ([stranger, given]) => {
      delete given.gateOrigin;
      Object.assign(Object.prototype, { gateOrigin: stranger });
      window.start(given);
    },
    [world.shop.origin, options()],
  );
  await page.waitForFunction(() => window.calls.length > 0);
  assert.match((await page.evaluate(() => window.calls))[0], /^first.onError invalid_option gateOrigin is required/);
});
