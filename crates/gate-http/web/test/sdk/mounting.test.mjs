// What a mounted widget leaves behind, and what it reports once.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { envelope } from '../../dev/gate.mjs';
import { launchBrowser, newPage, stopClock } from '../browser.mjs';
import { policyOfDocuments } from '../policy.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY, startSimulation } from './simulation.mjs';

let browser;
let world;
let page;
let failures;

before(async () => {
  browser = await launchBrowser();
  world = await startSimulation();
});

after(async () => {
  await browser?.close();
  await world?.close();
});

beforeEach(async () => {
  world.reset();
  page = await newPage(browser);
  failures = [];
  page.on('pageerror', (error) => failures.push(error.message));
  await page.addInitScript(() => {
    window.calls = [];
    window.listeners = 0;
    for (const [name, by] of [
      ['addEventListener', 1],
      ['removeEventListener', -1],
    ]) {
      const native = window[name];
      window[name] = (type, ...rest) => {
        window.listeners += type === 'message' ? by : 0;
        return native.call(window, type, ...rest);
      };
    }
  });
});

afterEach(() => page.context().close());

/** Mounts into an element that `place` makes in the page. */
async function mount(place = () => document.getElementById('ramp'), wallet = false) {
  await page.goto(world.shop.origin);
  await page.evaluate(`window.place = ${place}`);
  await page.evaluate(
    ([publishableKey, clientSecret, hasWallet]) => {
      const names = ['onReady', 'onSuccess', 'onError', 'onClose', 'onUnavailable', 'onStep'];
      const callbacks = Object.fromEntries(
        names.map((name) => [name, (event) => window.calls.push([name, ...(event ? [event] : [])])]),
      );
      if (hasWallet)
        callbacks.onInitiateDeposit = (request) => {
          window.calls.push(['onInitiateDeposit', request.asset]);
          return { txHash: '0xabc' };
        };
      window.start = () => {
        window.checkout = new GateRamp({ publishableKey, clientSecret, locale: 'de' });
        window.checkout.mount(window.place(), callbacks);
      };
      window.start();
    },
    [PUBLISHABLE_KEY, CLIENT_SECRET, wallet],
  );
}

const calls = () => page.evaluate(() => window.calls);
const ready = (count = 1) =>
  page.waitForFunction((wanted) => window.calls.filter(([name]) => name === 'onReady').length === wanted, count);

async function frame() {
  const found = await (await page.waitForSelector('iframe', { state: 'attached' })).contentFrame();
  await found.waitForFunction(() => window.received?.length > 0);
  return found;
}

/** Sends messages, and one more that shows that all have arrived. */
async function send(target, ...messages) {
  const before = (await calls()).filter(([name]) => name === 'onStep').length;
  await target.evaluate(
    (all) => all.forEach((message) => window.send(message)),
    [...messages, { type: 'step', step: 'end' }],
  );
  await page.waitForFunction((count) => window.calls.filter(([name]) => name === 'onStep').length > count, before);
  return (await calls()).filter(([name]) => name !== 'onStep' && name !== 'onReady');
}

const success = { type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' };
const failed = { type: 'error', code: 'provider_error', message: 'The provider failed.', payment_id: 'pay_1' };

test('success_and_each_failed_payment_are_reported_once', async () => {
  await mount();
  await ready();
  let widget = await frame();
  await send(widget, failed, failed, { ...failed, payment_id: 'pay_2' }, success, success);
  await Promise.all([page.waitForEvent('framenavigated'), widget.evaluate(() => location.reload())]);
  widget = await frame();
  const event = { code: failed.code, message: failed.message };
  assert.deepEqual(await send(widget, failed, success), [
    ['onError', event],
    ['onError', event],
    ['onSuccess', { txId: 'test_tx_1', sessionId: 'gs_test_1' }],
  ]);
});

test('second_mount_reports_success_again_and_never_sends_a_deposit_again', async () => {
  const deposit = {
    type: 'deposit',
    request_id: 'pay_1',
    asset: 'USDT',
    network: 'tron',
    amount: '1',
    address: 'TXyz',
  };
  await mount(undefined, true);
  await ready();
  await send(await frame(), deposit, success);
  await page.evaluate(() => {
    window.checkout.destroy();
    window.start();
  });
  await ready(2);
  const widget = await frame();
  assert.deepEqual(
    (await send(widget, deposit, success)).map(([name]) => name),
    ['onInitiateDeposit', 'onSuccess', 'onSuccess'],
  );
  await widget.waitForFunction(() => window.received.some(({ tx_hash: hash }) => hash === '0xabc'));
});

const PLACES = {
  page: () => document.getElementById('ramp'),
  shadow_root: () => {
    const root = document.getElementById('ramp').attachShadow({ mode: 'open' });
    return root.appendChild(document.createElement('div'));
  },
  closed_shadow_root: () => {
    const root = document.getElementById('ramp').attachShadow({ mode: 'closed' });
    return root.appendChild(document.createElement('div'));
  },
  element_that_is_added_later: () => {
    const element = document.createElement('div');
    element.id = 'ramp';
    setTimeout(() => document.getElementById('ramp').replaceWith(element), 50);
    return element;
  },
};

for (const [name, place] of Object.entries(PLACES)) {
  test(`container_of_a_${name}_that_is_removed_leaves_nothing`, async () => {
    await mount(place);
    await ready();
    assert.equal(await page.evaluate(() => window.listeners), 1);
    await page.evaluate(() => document.getElementById('ramp').remove());
    await page.waitForFunction(() => window.listeners === 0);
    assert.equal(await page.locator('iframe').count(), 0);
    await page.evaluate(() => window.checkout.destroy());
    assert.deepEqual(failures, []);
  });
}

test('inner_part_of_a_shadow_root_that_is_removed_leaves_nothing', async () => {
  await mount(PLACES.shadow_root);
  await ready();
  await page.evaluate(() => document.getElementById('ramp').shadowRoot.replaceChildren());
  await page.waitForFunction(() => window.listeners === 0);
});

test('container_that_moved_into_a_shadow_root_leaves_nothing_when_it_is_removed', async () => {
  await mount();
  await ready();
  await page.evaluate(async () => {
    window.root = document.getElementById('other').attachShadow({ mode: 'closed' });
    window.root.append(document.getElementById('ramp'));
    await new Promise(requestAnimationFrame);
    window.root.replaceChildren();
  });
  await page.waitForFunction(() => window.listeners === 0);
});

for (const delay of [0, 10, 100, 1000]) {
  test(`destroy_${delay}_ms_after_mount_leaves_nothing`, async () => {
    await mount();
    await page.evaluate(async (wait) => {
      if (wait > 0)
        await new Promise((resolve) => {
          setTimeout(resolve, wait);
        });
      window.checkout.destroy();
      window.calls.length = 0;
    }, delay);
    assert.deepEqual(
      await page.evaluate(() => [window.listeners, document.getElementById('ramp').childNodes.length]),
      [0, 0],
    );
    // A later mount in the same page shows that the first one's answers have come and gone.
    await page.evaluate(() => window.start());
    await ready();
    assert.deepEqual(await calls(), [['onReady']]);
    assert.equal(await page.locator('iframe').count(), 1);
    assert.deepEqual(failures, []);
  });
}

test('container_that_is_removed_while_the_frame_loads_calls_nothing_back', async () => {
  world.state.silent = true;
  await stopClock(page);
  await mount();
  await page.waitForSelector('iframe', { state: 'attached' });
  await page.evaluate(() => document.getElementById('ramp').remove());
  await page.waitForFunction(() => window.listeners === 0);
  await page.clock.fastForward(30_000);
  assert.deepEqual(await calls(), []);
});

test('container_that_moves_keeps_its_widget', async () => {
  await mount();
  await ready();
  await Promise.all([
    page.waitForEvent('framenavigated'),
    page.evaluate(() => document.getElementById('other').append(document.getElementById('ramp'))),
  ]);
  assert.deepEqual(await send(await frame(), success), [['onSuccess', { txId: 'test_tx_1', sessionId: 'gs_test_1' }]]);
  assert.equal(await page.evaluate(() => window.listeners), 1);
});

/** Replaces the content of the page with a copy, as a router does that keeps pages: the frame of the copy has no widget around it. */
const restoreCopy = () =>
  page.evaluate(() => {
    const kept = document.body.cloneNode(true);
    kept.querySelector('#ramp').append('Text of the shop');
    document.body.replaceWith(kept);
  });

for (const silent of [false, true]) {
  test(`mount_removes_the_copy_of_a_widget_that_was_${silent ? 'loading' : 'ready'}`, async () => {
    world.state.silent = silent;
    await mount();
    await (silent ? page.waitForSelector('#ramp > [role=status]') : ready());
    await restoreCopy();
    assert.equal(await page.locator('#ramp > *').count(), silent ? 2 : 1, 'The copy has what the widget had.');
    await page.waitForFunction(() => window.listeners === 0);
    world.state.silent = false;
    await page.evaluate(() => window.start());
    await ready(silent ? 1 : 2);
    assert.deepEqual(await page.$eval('#ramp', ({ childNodes }) => [...childNodes].map(({ nodeName }) => nodeName)), [
      '#text',
      'IFRAME',
    ]);
    assert.deepEqual(await send(await frame(), success), [
      ['onSuccess', { txId: 'test_tx_1', sessionId: 'gs_test_1' }],
    ]);
  });
}

test('mount_beside_another_live_widget_ends_it', async () => {
  await mount();
  await ready();
  await page.evaluate(() => window.start());
  await ready(2);
  assert.equal(await page.locator('#ramp > *').count(), 1);
  assert.equal(await page.evaluate(() => window.listeners), 1);
});

test('ready_comes_before_every_other_callback', async () => {
  world.state.silent = true;
  const corridor = { available: false, unavailable_reason: 'corridor_not_available' };
  world.gate.respond = () => [200, world.gate.simulation.embedToken(corridor)];
  const isBootstrap = (response) =>
    response.url().endsWith('/v1/embed/bootstrap') && response.request().method() === 'POST';
  const bootstrapped = page.waitForResponse(isBootstrap).then((response) => response.finished());
  await mount();
  await bootstrapped;
  const widget = await (await page.waitForSelector('iframe', { state: 'attached' })).contentFrame();
  await widget.waitForFunction(() => window.send);
  assert.deepEqual(await calls(), []);
  await widget.evaluate(() => window.send({ type: 'ready' }));
  await page.waitForFunction(() => window.calls.length === 2);
  assert.deepEqual(await calls(), [['onReady'], ['onUnavailable', { reason: 'corridor_not_available' }]]);
});

test('messages_before_the_token_call_nothing_back', async () => {
  let release;
  world.gate.respond = () =>
    new Promise((resolve) => {
      release = () => resolve(undefined);
    });
  await mount();
  const widget = await (await page.waitForSelector('iframe', { state: 'attached' })).contentFrame();
  await widget.waitForFunction(() => window.send);
  await widget.evaluate(() => {
    window.send({ type: 'ready' });
    window.send({ type: 'unavailable', reason: 'no_options' });
    window.send({ type: 'step', step: 'choose' });
    window.send({ type: 'resize', height: 611 });
  });
  await page.waitForFunction(() => document.querySelector('iframe').style.height === '611px');
  assert.deepEqual(await calls(), []);
  release();
  await ready();
  assert.deepEqual(await calls(), [['onReady']]);
});

test('rules_of_the_page_cannot_change_the_frame', async () => {
  const hostile =
    'iframe, div[role=status] { display: none !important; width: 1px !important; height: 9px !important; max-height: 9px !important; margin: 9px !important; border: 9px solid !important; opacity: 0 !important; position: fixed !important }';
  await mount(`() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(${JSON.stringify(hostile)});
    document.adoptedStyleSheets = [sheet];
    return document.getElementById('ramp');
  }`);
  await ready();
  await send(await frame(), { type: 'resize', height: 611 });
  const box = await page.$eval('#ramp', (element) => {
    const inner = element.querySelector('iframe');
    const { opacity, position, marginTop } = getComputedStyle(inner);
    const { width, height } = inner.getBoundingClientRect();
    return { opacity, position, marginTop, height, isWide: width === element.getBoundingClientRect().width };
  });
  assert.deepEqual(box, { opacity: '1', position: 'static', marginTop: '0px', height: 611, isWide: true });
});

/** The gate's refusal of a session that has ended. */
const refuseEnded = () => [403, envelope('session_not_open', 'The session is completed.', 403)];

const DAY_MS = 86_400_000;

for (const [name, isLoadedAgain, clockAheadMs] of [
  ['page_that_was_loaded_again', true, 0],
  ['page_without_storage', false, 0],
  ['page_whose_clock_is_a_day_ahead', true, DAY_MS],
]) {
  test(`completed_session_reports_success_again_in_${name}`, async () => {
    await page.addInitScript((ahead) => {
      const { now } = Date;
      Date.now = () => now() + ahead;
    }, clockAheadMs);
    if (!isLoadedAgain) {
      await page.addInitScript(() =>
        Object.defineProperty(window, 'sessionStorage', {
          get: () => {
            throw new DOMException('Denied', 'SecurityError');
          },
        }),
      );
    }
    await mount();
    await ready();
    await send(await frame(), { type: 'step', step: 'progress' });
    world.gate.respond = refuseEnded;
    if (isLoadedAgain) {
      await mount();
    } else {
      await page.evaluate(() => {
        window.checkout.destroy();
        window.calls.length = 0;
        window.start();
      });
    }
    await ready();
    const widget = await frame();
    assert.equal(await widget.evaluate(() => window.received[0].embed_token), 'header.claims.signature');
    assert.deepEqual(await send(widget, { type: 'step', step: 'done' }, success, success), [
      ['onSuccess', { txId: 'test_tx_1', sessionId: 'gs_test_1' }],
    ]);
    assert.deepEqual((await calls())[0], ['onReady']);
  });
}

test('session_that_ended_without_payment_gets_on_error', async () => {
  await mount();
  await ready();
  await send(await frame(), { type: 'step', step: 'progress' });
  world.gate.respond = refuseEnded;
  await mount();
  await ready();
  await (await frame()).evaluate(() => window.send({ type: 'step', step: 'over' }));
  await page.waitForFunction(() => window.calls.length === 2);
  assert.deepEqual((await calls())[1], ['onError', { code: 'session_not_open', message: 'The session is completed.' }]);
  assert.equal(await page.locator('iframe').count(), 0);
});

test('token_is_kept_for_its_own_session_alone', async () => {
  await mount();
  await ready();
  await send(await frame(), { type: 'step', step: 'price' });
  assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'No payment has begun.');
  await send(await frame(), { type: 'step', step: 'instructions' });
  const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }));
  assert.ok(!kept.includes('gsec_'), kept);
  world.gate.respond = refuseEnded;
  await page.evaluate(() => {
    for (const [name, text] of Object.entries(sessionStorage)) {
      sessionStorage.setItem(name, JSON.stringify({ ...JSON.parse(text), session_id: 'gs_test_another' }));
    }
  });
  await mount();
  await page.waitForFunction(() => window.calls.length === 1);
  assert.deepEqual(
    (await calls()).map(([name, event]) => [name, event?.code]),
    [['onError', 'session_not_open']],
  );
});

test('placeholder_is_announced_until_the_widget_has_its_token', async () => {
  world.state.silent = true;
  await mount();
  await page.waitForSelector('#ramp > [role=status]:visible');
  assert.equal(await page.textContent('#ramp > [role=status]'), 'Wird geladen …');
  const heights = await page.$eval('#ramp', (element) => [
    element.getBoundingClientRect().height,
    element.querySelector('iframe').getBoundingClientRect().height,
  ]);
  assert.equal(heights[0], heights[1], 'The placeholder takes no room.');
  const widget = await (await page.$('iframe')).contentFrame();
  await widget.waitForFunction(() => window.send);
  await widget.evaluate(() => window.send({ type: 'ready' }));
  await ready();
  assert.equal(await page.locator('#ramp > [role=status]').count(), 0);
});

test('widget_lives_under_the_policy_that_the_documents_show', async () => {
  world.state.policy = policyOfDocuments;
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      window.violations.push([violatedDirective, blockedURI]),
    );
  });
  await mount();
  await ready();
  await send(await frame(), { type: 'resize', height: 611 }, success);
  await page.waitForFunction(() => document.querySelector('iframe').style.height === '611px');
  await page.evaluate(() => window.checkout.destroy());
  assert.deepEqual(
    (await page.evaluate(() => window.violations)).filter(([, uri]) => !/favicon/.test(uri)),
    [],
  );
  assert.deepEqual(failures, []);
});
