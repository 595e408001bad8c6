// A page in which something has changed `Object.prototype`, as a library does that merges the query of the address into an object.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { listen, send } from '../../dev/serving.mjs';
import { launchBrowser, newPage } from '../browser.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY, SESSION_ID, startSimulation } from './simulation.mjs';

let browser;
let world;
let stranger;
let requests;
let page;
let failures;

before(async () => {
  browser = await launchBrowser();
  world = await startSimulation();
  stranger = await listen((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    send(response, 200, '<!doctype html><title>Stranger</title>', { 'Access-Control-Allow-Origin': '*' });
  });
});

after(async () => {
  await browser?.close();
  await world?.close();
  await stranger?.close();
});

beforeEach(async () => {
  world.reset();
  // A policy would stop some requests, and this test is about what the SDK tries.
  world.state.policy = () => "default-src * 'unsafe-inline'";
  requests = [];
  failures = [];
  page = await newPage(browser);
  page.on('pageerror', (error) => failures.push(error.message));
  await page.goto(world.shop.origin);
});

afterEach(() => page.context().close());

const OPTIONS = { publishableKey: PUBLISHABLE_KEY, clientSecret: CLIENT_SECRET };
const CALLBACKS = ['onReady', 'onSuccess', 'onError', 'onClose', 'onUnavailable', 'onStep', 'onQuote'];

/** Pollutes the page, and runs the shop's code in it. */
function run(shop, inherited, options = OPTIONS) {
  return page.evaluate(
    ([code, values, names, given]) => {
      window.inherited = [];
      const calls = names.map((name) => [name, () => window.inherited.push(name)]);
      Object.assign(Object.prototype, values, Object.fromEntries(calls));
      try {
        window[code](given);
        return null;
      } catch (error) {
        return `${error.code}: ${error.message}`;
      } finally {
        // The driver of the browser observes the page too.
        delete Object.prototype.attributeFilter;
      }
    },
    [shop, inherited, [...CALLBACKS, 'onInitiateDeposit'], options],
  );
}

/** The ways of a shop into the checkout. */
const defineShop = () =>
  page.evaluate(() => {
    window.calls = [];
    window.mount = (options) => new GateRamp(options).mount('#ramp', { onReady: () => window.calls.push('onReady') });
    window.mountAlone = (options) => new GateRamp(options).mount('#ramp');
    window.redirect = (options) => GateRamp.redirectToCheckout(options);
  });

const pollution = () => ({
  gateOrigin: stranger.origin,
  widgetOrigin: stranger.origin,
  publishableKey: 'pk_test_stranger',
  clientSecret: 'gsec_stranger_0',
  environment: 'production',
  theme: 'dark',
  locale: 'nl',
  flow: 'swap',
  // Names that browsers read in the options of a request and of an observer, and names of responses and messages.
  credentials: 'include',
  integrity: 'sha256-stranger',
  attributeFilter: 'stranger',
  unavailable_reason: 'stranger',
  memo: 'stranger',
  payment_id: 'stranger',
  txHash: 'stranger',
  token: { embed_token: 'stranger', session_id: 'gs_stranger' },
  refusal: 'stranger',
  de: 'stranger',
});

test('inherited_properties_change_nothing_of_a_mount', async () => {
  await defineShop();
  assert.equal(await run('mount', pollution()), null);
  await page.waitForFunction(() => window.calls.length === 1);
  const frame = await (await page.waitForSelector('#ramp iframe', { state: 'attached' })).contentFrame();
  await frame.waitForFunction(() => window.received.length === 1);
  const [message] = await frame.evaluate(() => window.received);
  assert.deepEqual(message, {
    expires_at: message.expires_at,
    penstock: 1,
    type: 'token',
    embed_token: 'header.claims.signature',
    session_id: SESSION_ID,
    unavailable_reason: null,
    locale: null,
    theme: 'auto',
    flow: null,
    can_deposit: false,
    can_deposit_memo: true,
  });
  assert.deepEqual(await frame.evaluate(() => window.fragment), { parent_origin: world.shop.origin, theme: 'auto' });
  await frame.evaluate(() => {
    window.send({ type: 'step', step: 'progress' });
    window.send({ type: 'quote', rate: '1', expires_at: '2026-11-22T11:10:26.885Z' });
    window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' });
    window.send({ type: 'deposit', request_id: 'pay_1', asset: 'USDT', network: 'tron', amount: '1', address: 'TXyz' });
    window.send({ type: 'close', reason: 'completed' });
  });
  await frame.waitForFunction(() => window.received.length === 2);
  assert.equal((await frame.evaluate(() => window.received))[1].tx_hash, null);
  assert.deepEqual(await page.evaluate(() => window.inherited), []);
  assert.deepEqual(
    world.gate.requests.map(({ authorization, body }) => [authorization, body]),
    [[`Bearer ${PUBLISHABLE_KEY}`, { clientSecret: CLIENT_SECRET }]],
  );
  assert.deepEqual([requests, failures], [[], []]);
});

test('inherited_fields_of_a_response_do_not_count', async () => {
  world.gate.respond = () => [502, {}];
  await page.evaluate(() => {
    window.calls = [];
    window.mount = (options) =>
      new GateRamp(options).mount('#ramp', { onError: ({ code }) => window.calls.push(`onError ${code}`) });
  });
  const token = { embed_token: 'stranger', session_id: 'gs_stranger' };
  await run('mount', { code: 'organization_suspended', embed_token: 'stranger', available: false, token });
  await page.waitForFunction(() => window.calls.length > 0);
  assert.deepEqual(await page.evaluate(() => [window.calls, window.inherited]), [['onError unexpected_response'], []]);
});

test('inherited_required_option_is_missing', async () => {
  await defineShop();
  for (const [name, field] of [
    ['publishableKey', /^invalid_option: publishableKey is missing: pass the publishable key/],
    ['clientSecret', /^invalid_option: clientSecret is missing: pass `client_secret` of the session/],
  ]) {
    for (const shop of ['mountAlone', 'redirect']) {
      const options = Object.fromEntries(Object.entries(OPTIONS).filter(([each]) => each !== name));
      assert.match((await run(shop, pollution(), options)) ?? 'nothing', field);
    }
  }
  assert.deepEqual([requests, world.gate.requests], [[], []]);
});

test('inherited_properties_change_nothing_of_a_redirect', async () => {
  await defineShop();
  const arrives = page.waitForURL(/checkout/);
  await run('redirect', pollution());
  await arrives;
  assert.equal(
    page.url(),
    `${world.widget.origin}/checkout#publishable_key=${PUBLISHABLE_KEY}&client_secret=${CLIENT_SECRET}`,
  );
  assert.deepEqual(requests, []);
});

test('served_script_takes_no_other_origin_than_its_own', async () => {
  await defineShop();
  for (const name of ['gateOrigin', 'widgetOrigin']) {
    const own = { gateOrigin: world.gate.origin, widgetOrigin: world.widget.origin }[name];
    for (const shop of ['mountAlone', 'redirect']) {
      const refused = await run(shop, {}, { ...OPTIONS, [name]: stranger.origin });
      assert.ok(refused?.startsWith(`invalid_option: ${name} must be '${own}' or absent`), `${refused}`);
    }
    assert.equal(await run('mountAlone', {}, { ...OPTIONS, [name]: `${own}/` }), null);
  }
  assert.deepEqual(requests, []);
});

test('served_module_takes_no_other_origin_than_its_own', async () => {
  const refused = await page.evaluate(
    async ([address, options]) => {
      const { GateRamp: Ramp } = await import(address);
      try {
        return typeof new Ramp(options);
      } catch (error) {
        return error.message;
      }
    },
    [`${world.widget.origin}/gate.mjs`, { ...OPTIONS, gateOrigin: stranger.origin }],
  );
  assert.ok(refused.startsWith(`gateOrigin must be '${world.gate.origin}'`), refused);
});

for (const [mode, wrong] of [
  ['test', 'live'],
  ['live', 'test'],
]) {
  test(`served_script_of_a_gate_in_mode_${mode}_names_the_key_that_it_takes`, async () => {
    world.state.places = { mode };
    await page.reload();
    await defineShop();
    const keyOf = (other) => PUBLISHABLE_KEY.replace('test', other);
    for (const shop of ['mountAlone', 'redirect']) {
      assert.equal(
        await run(shop, {}, { ...OPTIONS, publishableKey: keyOf(wrong) }),
        `key_mode_mismatch: This gate is in ${mode} mode; use a key pk_${mode}_…. publishableKey is a pk_${wrong}_… key.`,
      );
    }
    assert.deepEqual(world.gate.requests, []);
    assert.equal(await run('mountAlone', {}, { ...OPTIONS, publishableKey: keyOf(mode) }), null);
  });
}
