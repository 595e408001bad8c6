// The browser SDK in Chromium, against a simulated gate and widget.

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { envelope } from '../../dev/gate.mjs';
import { listen, send } from '../../dev/serving.mjs';
import { launchBrowser, newPage, stopClock } from '../browser.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY, SESSION_ID, startSimulation } from './simulation.mjs';

let browser;
let world;
let foreign;
let page;
let failures;

before(async () => {
  browser = await launchBrowser();
  world = await startSimulation();
  foreign = await listen((_, response) => send(response, 200, '<!doctype html><title>Foreign</title>'));
});

after(async () => {
  await browser?.close();
  await world?.close();
  await foreign?.close();
});

beforeEach(async () => {
  world.reset();
  world.state.foreign = foreign.origin;
  page = await newPage(browser);
  failures = [];
  page.on('pageerror', (error) => failures.push(error.message));
  await page.addInitScript(() => {
    window.calls = [];
    window.listeners = 0;
    const { addEventListener, removeEventListener } = window;
    window.addEventListener = (type, ...rest) => {
      window.listeners += type === 'message' ? 1 : 0;
      return addEventListener.call(window, type, ...rest);
    };
    window.removeEventListener = (type, ...rest) => {
      window.listeners -= type === 'message' ? 1 : 0;
      return removeEventListener.call(window, type, ...rest);
    };
    window.record = (tag = '') => {
      const names = ['onReady', 'onSuccess', 'onError', 'onClose', 'onUnavailable', 'onStep', 'onQuote'];
      return Object.fromEntries(
        names.map((name) => [name, (event) => window.calls.push([tag + name, ...(event ? [event] : [])])]),
      );
    };
  });
});

afterEach(() => page.context().close());

/** Opens the shop and mounts with these changes of the options, and with a wallet if the shop is one. */
async function mount(options = {}, hasWallet = false) {
  await page.goto(world.shop.origin);
  await page.evaluate(
    ([given, isWallet]) => {
      const callbacks = window.record();
      if (isWallet) {
        callbacks.onInitiateDeposit = (request) => {
          window.calls.push(['onInitiateDeposit', request]);
          return { txHash: '0xabc' };
        };
      }
      window.checkout = new GateRamp(given);
      window.checkout.mount('#ramp', callbacks);
    },
    [shopOptions(options), hasWallet],
  );
}

function shopOptions(options = {}) {
  return {
    publishableKey: PUBLISHABLE_KEY,
    clientSecret: CLIENT_SECRET,
    environment: 'sandbox',
    theme: 'light',
    locale: 'de',
    ...options,
  };
}

/** Waits until the partner's callbacks include one of this name, and returns all calls. */
async function callsWith(name) {
  const arrives = page.waitForFunction((wanted) => window.calls.some(([called]) => called === wanted), name);
  await arrives.catch(async () => assert.fail(`${name} is missing in ${JSON.stringify(await calls())}`));
  return calls();
}

function calls() {
  return page.evaluate(() => window.calls);
}

async function widgetFrame(selector = '#ramp iframe') {
  const element = await page.waitForSelector(selector, { state: 'attached' });
  const frame = await element.contentFrame();
  await frame.waitForFunction(() => window.received !== undefined);
  return frame;
}

function received(frame) {
  return frame.evaluate(() => window.received);
}

/** Lets the messages sent so far arrive: a resize sent afterwards has changed the frame's height. */
async function flushMessages(frame) {
  const height = 100 + Math.floor(Math.random() * 1000) + 1;
  await frame.evaluate((value) => window.send({ type: 'resize', height: value }), height);
  await page.waitForFunction(
    (value) => [...document.querySelectorAll('iframe')].some((each) => each.style.height === `${value}px`),
    height,
  );
}

describe('handshake', () => {
  test('mount_hands_over_token_when_frame_is_ready', async () => {
    await mount();
    assert.deepEqual(await callsWith('onReady'), [['onReady']]);
    const frame = await widgetFrame();
    await frame.waitForFunction(() => window.received.length === 1);
    const [{ expires_at, ...message }] = await received(frame);
    assert.ok(Date.parse(expires_at) > Date.now());
    assert.deepEqual(message, {
      penstock: 1,
      type: 'token',
      embed_token: 'header.claims.signature',
      session_id: SESSION_ID,
      unavailable_reason: null,
      locale: 'de',
      theme: 'light',
      flow: null,
      can_deposit: false,
      can_deposit_memo: true,
    });
    assert.deepEqual(world.gate.requests, [
      { authorization: `Bearer ${PUBLISHABLE_KEY}`, query: '', body: { clientSecret: CLIENT_SECRET } },
    ]);
  });

  test('frame_has_title_permission_and_exact_address', async () => {
    await mount();
    await callsWith('onReady');
    const frame = await widgetFrame();
    const element = await page.$eval('#ramp iframe', (each) => ({
      title: each.title,
      allow: each.getAttribute('allow'),
      src: each.src,
    }));
    assert.equal(element.title, 'Sichere Zahlung');
    assert.equal(element.allow, 'payment; clipboard-write');
    assert.ok(element.src.startsWith(`${world.widget.origin}/embed?publishable_key=${PUBLISHABLE_KEY}#`));
    assert.deepEqual(await frame.evaluate(() => window.fragment), {
      parent_origin: world.shop.origin,
      theme: 'light',
      locale: 'de',
    });
    assert.ok(world.state.widgetRequests.every((path) => !path.includes('gsec_')));
  });

  test('flow_constructors_send_their_flow', async () => {
    await page.goto(world.shop.origin);
    for (const [name, flow] of [
      ['createGateOnRamp', 'on_ramp'],
      ['createGateOffRamp', 'off_ramp'],
      ['createGateSwap', 'swap'],
    ]) {
      await page.evaluate(
        ([constructor, options]) => {
          window.calls = [];
          window.checkout?.destroy();
          window.checkout = window[constructor](options).mount(document.getElementById('ramp'), window.record());
        },
        [name, shopOptions()],
      );
      await callsWith('onReady');
      const frame = await widgetFrame();
      await frame.waitForFunction(() => window.received.length === 1);
      assert.equal((await received(frame))[0].flow, flow);
      assert.equal((await frame.evaluate(() => window.fragment)).flow, flow);
    }
  });

  test('frame_messages_become_callbacks', async () => {
    await mount();
    await callsWith('onReady');
    const frame = await widgetFrame();
    await frame.evaluate(() => {
      window.send({ type: 'step', step: 'price' });
      window.send({ type: 'quote', rate: '1.0822875', expires_at: '2026-11-22T11:10:26.885Z' });
      window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' });
      window.send({ type: 'error', code: 'quote_expired', message: 'The quote has expired.' });
      window.send({ type: 'unavailable', reason: 'corridor_not_available' });
      window.send({ type: 'unavailable', reason: 'corridor_not_available' });
      window.send({ type: 'close', reason: 'completed' });
    });
    assert.deepEqual((await callsWith('onClose')).slice(1), [
      ['onStep', { step: 'price' }],
      ['onQuote', { rate: '1.0822875', expiresAt: '2026-11-22T11:10:26.885Z' }],
      ['onSuccess', { txId: 'test_tx_1', sessionId: 'gs_test_1' }],
      ['onError', { code: 'quote_expired', message: 'The quote has expired.' }],
      ['onUnavailable', { reason: 'corridor_not_available' }],
      ['onClose', { reason: 'completed' }],
    ]);
  });

  test('frame_follows_its_height_within_bounds', async () => {
    await mount();
    await callsWith('onReady');
    const frame = await widgetFrame();
    const height = () => page.$eval('#ramp iframe', (each) => each.style.height);
    await frame.evaluate(() => window.send({ type: 'resize', height: 611.2 }));
    await page.waitForFunction(() => document.querySelector('#ramp iframe').style.height === '612px');
    await frame.evaluate(() => window.send({ type: 'resize', height: 20_000 }));
    await page.waitForFunction(() => document.querySelector('#ramp iframe').style.height === '20000px');
    await frame.evaluate(() => {
      for (const value of [0, -5, 20_001, 1e9, Number.NaN, Number.POSITIVE_INFINITY, '700', null])
        window.send({ type: 'resize', height: value });
      window.send({ type: 'step', step: 'details' });
    });
    await callsWith('onStep');
    assert.equal(await height(), '20000px');
  });

  test('frame_that_asks_again_at_once_gets_the_same_token', async () => {
    await stopClock(page);
    await mount();
    await callsWith('onReady');
    await Promise.all([page.waitForEvent('framenavigated'), (await widgetFrame()).evaluate(() => location.reload())]);
    const frame = await widgetFrame();
    await frame.waitForFunction(() => window.received.length === 1);
    assert.equal((await received(frame))[0].type, 'token');
    assert.equal(world.gate.requests.length, 1);
    assert.deepEqual(await calls(), [['onReady']]);
  });

  test('frame_that_asks_again_later_gets_a_new_token', async () => {
    world.gate.respond = () => [
      200,
      world.gate.simulation.embedToken({ embed_token: `token-${world.gate.requests.length}` }),
    ];
    await stopClock(page);
    await mount();
    await callsWith('onReady');
    const frame = await widgetFrame();
    await page.clock.fastForward(11_000);
    await frame.evaluate(() => {
      window.send({ type: 'ready' });
      window.send({ type: 'ready' });
    });
    await frame.waitForFunction(() => window.received.length === 2);
    assert.deepEqual(
      (await received(frame)).map((message) => message.embed_token),
      ['token-1', 'token-2'],
    );
    assert.equal(world.gate.requests.length, 2);
    assert.deepEqual(await calls(), [['onReady']]);
  });

  test('refused_renewal_keeps_the_frame_and_its_token', async () => {
    await stopClock(page);
    await mount();
    await callsWith('onReady');
    const frame = await widgetFrame();
    world.gate.respond = () => [403, envelope('session_not_open', 'The session is completed.', 403)];
    await page.clock.fastForward(11_000);
    await frame.evaluate(() => window.send({ type: 'ready' }));
    await frame.waitForFunction(() => window.received.length === 2);
    assert.equal((await received(frame))[1].embed_token, 'header.claims.signature');
    assert.equal(await page.locator('iframe').count(), 1);
    assert.deepEqual(await calls(), [['onReady']]);
  });

  test('theme_change_reaches_the_frame_without_a_new_start', async () => {
    await mount();
    await callsWith('onReady');
    const frame = await widgetFrame();
    await page.evaluate(() => window.checkout.setTheme('dark'));
    await frame.waitForFunction(() => window.received.length === 2);
    assert.deepEqual((await received(frame))[1], { penstock: 1, type: 'theme', theme: 'dark' });
    assert.equal(world.gate.requests.length, 1);
  });

  test('locale_and_theme_that_cannot_be_read_start_the_widget_with_its_defaults', async () => {
    const warnings = [];
    page.on('console', (message) => message.type() === 'warning' && warnings.push(message.text()));
    await mount({ locale: 'pt_BR.UTF-8', theme: 'pink' });
    await callsWith('onReady');
    const frame = await widgetFrame();
    await page.evaluate(() => {
      window.checkout.setTheme('dark');
      window.checkout.setTheme('pink');
    });
    await frame.waitForFunction(() => window.received.length === 3);
    const [{ locale, theme }, ...changes] = await received(frame);
    assert.deepEqual([locale, theme, ...changes.map((change) => change.theme)], [null, 'auto', 'dark', 'auto']);
    assert.deepEqual(
      warnings.flatMap((text) => {
        const found = /^GateRamp: (theme|locale) must be .* instead of '(.*)'$/.exec(text);
        return found ? [found.slice(1)] : [];
      }),
      [
        ['theme', 'pink'],
        ['locale', 'pt_BR.UTF-8'],
      ],
    );
  });

  test('widget_starts_when_the_page_has_no_storage', async () => {
    await page.addInitScript(() => {
      for (const name of ['localStorage', 'sessionStorage', 'indexedDB']) {
        Object.defineProperty(window, name, {
          get() {
            throw new DOMException('Storage is denied.', 'SecurityError');
          },
        });
      }
    });
    await mount();
    assert.deepEqual(await callsWith('onReady'), [['onReady']]);
    assert.deepEqual(failures, []);
  });

  test('module_build_mounts_like_the_script', async () => {
    world.state.page =
      '<!doctype html><title>Shop</title><div id="ramp"></div><script type="module" src="/page.js"></script>';
    world.state.scripts = {
      '/page.js': `import { GateRamp } from '${world.widget.origin}/gate.mjs';
        new GateRamp(${JSON.stringify(shopOptions())}).mount('#ramp', window.record());`,
    };
    await page.goto(world.shop.origin);
    assert.deepEqual(await callsWith('onReady'), [['onReady']]);
  });
});

describe('forged messages', () => {
  const success = { penstock: 1, type: 'success', tx_id: 'test_tx_forged', session_id: 'gs_test_forged' };
  /** One message of each type that a widget sends. */
  const forged = [
    { penstock: 1, type: 'ready' },
    { penstock: 1, type: 'resize', height: 1999 },
    { penstock: 1, type: 'step', step: 'done' },
    { penstock: 1, type: 'quote', rate: '9.99', expires_at: '2099-01-01T00:00:00Z' },
    { penstock: 1, type: 'error', code: 'forged', message: 'Forged.' },
    { penstock: 1, type: 'close', reason: 'completed' },
    { penstock: 1, type: 'unavailable', reason: 'forged' },
    {
      penstock: 1,
      type: 'deposit',
      request_id: 'forged',
      asset: 'USDT',
      network: 'tron',
      amount: '1',
      address: 'TForged',
    },
    success,
  ];

  /** Mounts a wallet's widget, and counts the messages that reach the page from now on, by their origin. */
  async function mountAndCount() {
    await mount({}, true);
    await callsWith('onReady');
    const frame = await widgetFrame();
    await frame.waitForFunction(() => window.received.length === 1);
    await page.evaluate(() => {
      window.counts = {};
      // The SDK listens longer, so that it has seen each message when this listener has.
      addEventListener('message', ({ origin }) => {
        window.counts[origin] = (window.counts[origin] ?? 0) + 1;
      });
    });
    return frame;
  }

  /** Waits until all forged messages of this origin have arrived, and expects that the SDK has done nothing. */
  async function expectIgnored(origin) {
    await page.waitForFunction(([from, count]) => window.counts[from] >= count, [origin, forged.length]);
    assert.deepEqual(await calls(), [['onReady']]);
    assert.equal(await page.$eval('#ramp iframe', (each) => each.style.height), '480px');
    assert.equal(await page.evaluate(() => sessionStorage.length), 0, 'No payment has begun.');
    assert.equal(world.gate.requests.length, 1);
  }

  test('messages_of_the_page_itself_are_ignored', async () => {
    const frame = await mountAndCount();
    await page.evaluate((messages) => messages.forEach((message) => window.postMessage(message, '*')), forged);
    await expectIgnored(world.shop.origin);
    await flushMessages(frame);
    assert.equal((await received(frame)).length, 1);
  });

  test('messages_of_another_frame_are_ignored', async () => {
    const frame = await mountAndCount();
    for (const origin of [foreign.origin, world.widget.origin]) {
      await page.evaluate((src) => {
        const other = document.createElement('iframe');
        other.id = 'forger';
        other.src = src;
        document.getElementById('other').replaceChildren(other);
        return new Promise((resolve) => other.addEventListener('load', resolve));
      }, `${origin}/embed?silent=1&publishable_key=x`);
      const forger = await (await page.$('#forger')).contentFrame();
      await forger.evaluate((messages) => {
        window.answers = [];
        addEventListener('message', ({ data }) => window.answers.push(data));
        messages.forEach((message) => parent.postMessage(message, '*'));
      }, forged);
      await expectIgnored(origin);
      assert.deepEqual(await forger.evaluate(() => window.answers), []);
    }
    await flushMessages(frame);
    assert.deepEqual(await calls(), [['onReady']]);
    assert.equal((await received(frame)).length, 1);
  });

  test('messages_of_a_frame_that_left_the_widget_origin_are_ignored', async () => {
    const frame = await mountAndCount();
    await frame.goto(foreign.origin);
    await frame.evaluate((messages) => {
      window.received = [];
      addEventListener('message', (event) => window.received.push(event.data));
      messages.forEach((message) => parent.postMessage(message, '*'));
    }, forged);
    await page.evaluate(() => window.checkout.setTheme('dark'));
    await expectIgnored(foreign.origin);
    // Messages arrive in order, so the frame has everything that the SDK has posted before this one.
    await page.evaluate(() => document.querySelector('#ramp iframe').contentWindow.postMessage('last', '*'));
    await frame.waitForFunction(() => window.received.includes('last'));
    assert.deepEqual(await received(frame), ['last']);
  });

  test('messages_of_another_shape_are_ignored', async () => {
    await mount({}, true);
    await callsWith('onReady');
    const frame = await widgetFrame();
    await frame.evaluate(() => {
      const post = (message) => parent.postMessage(message, '*');
      for (const message of [null, undefined, 7, 'success', [], {}, { type: 'success', tx_id: 'a', session_id: 'b' }])
        post(message);
      for (const fields of [
        { penstock: 2, type: 'success', tx_id: 'a', session_id: 'b' },
        { type: 'success', tx_id: 1, session_id: 'b' },
        { type: 'success' },
        { type: 'error', code: 'x' },
        { type: 'error', code: {}, message: 'x' },
        { type: 'close' },
        { type: 'step', step: 4 },
        { type: 'quote', rate: 1.08, expires_at: 'now' },
        { type: 'unavailable' },
        { type: 'deposit', request_id: 'r', asset: 'USDT' },
        { type: 'deposit', request_id: 'r', asset: 'XRP', network: 'xrpl', amount: '1', address: 'r', memo: 10447 },
        { type: 'constructor' },
        { type: 'token', embed_token: 'x' },
      ]) {
        window.send(fields);
      }
    });
    await flushMessages(frame);
    assert.deepEqual(await calls(), [['onReady']]);
    assert.deepEqual(failures, []);
  });

  test('messages_before_the_handshake_are_ignored', async () => {
    world.state.silent = true;
    await mount();
    const frame = await widgetFrame();
    await frame.evaluate((message) => parent.postMessage(message, '*'), success);
    await frame.evaluate(() => window.send({ type: 'ready' }));
    assert.deepEqual(await callsWith('onReady'), [['onReady']]);
  });
});

describe('lifetime', () => {
  test('second_mount_replaces_the_first', async () => {
    await mount();
    await callsWith('onReady');
    await page.evaluate(() => window.checkout.mount('#other', window.record('second.')));
    await callsWith('second.onReady');
    const frame = await widgetFrame('#other iframe');
    await frame.evaluate(() => window.send({ type: 'step', step: 'details' }));
    assert.deepEqual(await callsWith('second.onStep'), [
      ['onReady'],
      ['second.onReady'],
      ['second.onStep', { step: 'details' }],
    ]);
    assert.equal(await page.locator('iframe').count(), 1);
    assert.equal(await page.evaluate(() => window.listeners), 1);
  });

  test('second_mount_in_the_same_task_starts_one_widget', async () => {
    await page.goto(world.shop.origin);
    await page.evaluate((options) => {
      window.checkout = new GateRamp(options);
      window.checkout.mount('#ramp', window.record('first.'));
      window.checkout.mount('#ramp', window.record('second.'));
      window.checkout.destroy();
      window.checkout.mount('#ramp', window.record('third.'));
    }, shopOptions());
    assert.deepEqual(await callsWith('third.onReady'), [['third.onReady']]);
    assert.deepEqual(failures, []);
    assert.equal(await page.locator('iframe').count(), 1);
  });

  test('destroy_removes_frame_listeners_and_callbacks', async () => {
    await mount();
    await callsWith('onReady');
    await page.evaluate(() => {
      window.checkout.destroy();
      window.checkout.destroy();
    });
    assert.equal(await page.locator('iframe').count(), 0);
    assert.equal(await page.evaluate(() => window.listeners), 0);
    assert.equal(await page.evaluate(() => document.getElementById('ramp').childNodes.length), 0);
    await page.evaluate(() => window.checkout.mount('#ramp', window.record('again.')));
    assert.deepEqual(await callsWith('again.onReady'), [['onReady'], ['again.onReady']]);
  });

  test('destroy_during_the_bootstrap_calls_nothing_back', async () => {
    let release;
    const arrived = new Promise((arrive) => {
      world.gate.respond = () =>
        new Promise((resolve) => {
          release = () => resolve(undefined);
          arrive();
        });
    });
    await mount();
    await arrived;
    await page.evaluate(() => window.checkout.destroy());
    release();
    await page.waitForTimeout(200);
    assert.deepEqual(await calls(), []);
    assert.deepEqual(failures, []);
  });

  test('destroy_inside_a_callback_stops_all_further_callbacks', async () => {
    await page.goto(world.shop.origin);
    await page.evaluate((options) => {
      const callbacks = window.record();
      window.checkout = new GateRamp(options).mount('#ramp', {
        ...callbacks,
        onStep(event) {
          callbacks.onStep(event);
          window.checkout.destroy();
        },
      });
    }, shopOptions());
    await callsWith('onReady');
    const frame = await widgetFrame();
    await frame.evaluate(() => {
      window.send({ type: 'step', step: 'details' });
      window.send({ type: 'step', step: 'price' });
      window.send({ type: 'close', reason: 'completed' });
    });
    await callsWith('onStep');
    await page.waitForTimeout(100);
    assert.deepEqual(await calls(), [['onReady'], ['onStep', { step: 'details' }]]);
  });

  test('throwing_callbacks_are_reported_and_stop_nothing', async () => {
    await page.goto(world.shop.origin);
    await page.evaluate((options) => {
      const callbacks = Object.fromEntries(
        Object.entries(window.record()).map(([name, call]) => [
          name,
          (event) => {
            call(event);
            throw new Error(`thrown by ${name}`);
          },
        ]),
      );
      new GateRamp(options).mount('#ramp', callbacks);
    }, shopOptions());
    await callsWith('onReady');
    const frame = await widgetFrame();
    await frame.evaluate(() => {
      window.send({ type: 'step', step: 'price' });
      window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' });
      window.send({ type: 'error', code: 'x', message: 'y' });
      window.send({ type: 'close', reason: 'completed' });
    });
    assert.deepEqual(
      (await callsWith('onClose')).map(([name]) => name),
      ['onReady', 'onStep', 'onSuccess', 'onError', 'onClose'],
    );
    await flushMessages(frame);
    assert.deepEqual(
      failures,
      ['onReady', 'onStep', 'onSuccess', 'onError', 'onClose'].map((name) => `thrown by ${name}`),
    );
  });

  test('mount_without_callbacks_works', async () => {
    await page.goto(world.shop.origin);
    await page.evaluate((options) => new GateRamp(options).mount('#ramp'), shopOptions());
    const frame = await widgetFrame();
    await frame.waitForFunction(() => window.received.length === 1);
    await frame.evaluate(() => window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' }));
    await flushMessages(frame);
    assert.deepEqual(failures, []);
  });

  test('mount_refuses_a_missing_target', async () => {
    await page.goto(world.shop.origin);
    for (const target of ['#absent', '<<', null, undefined, 7, {}]) {
      const error = await page.evaluate(
        ([options, given]) => {
          try {
            new GateRamp(options).mount(given);
            return 'mounted';
          } catch (thrown) {
            return `${thrown.name} ${thrown.code} ${thrown.message.includes(typeof given === 'string' ? `'${given}'` : 'first argument')}`;
          }
        },
        [shopOptions(), target],
      );
      assert.equal(error, 'GateRampError mount_target_not_found true', String(target));
    }
  });
});

describe('refused start', () => {
  /** Mounts, waits for this callback, and returns its event. */
  async function refusal(callback, options = {}) {
    await mount(options);
    const made = await callsWith(callback);
    assert.equal(made.length, 1, JSON.stringify(made));
    return made[0][1];
  }

  test('foreign_page_gets_on_error', async () => {
    world.gate.origins = ['https://shop.example'];
    const { code, message } = await refusal('onError');
    assert.equal(code, 'origin_not_allowed');
    for (const part of [world.shop.origin, 'allowed_domains', 'does not know the key', 'mode of the gate']) {
      assert.ok(message.includes(part), message);
    }
    assert.equal(await page.locator('iframe').count(), 0);
    assert.equal(await page.evaluate(() => window.listeners), 0);
  });

  test('suspended_partner_gets_on_unavailable', async () => {
    world.gate.suspended = true;
    assert.deepEqual(await refusal('onUnavailable'), { reason: 'organization_suspended' });
    assert.equal(await page.locator('iframe').count(), 0);
    assert.ok(
      world.gate.requests.every(({ body }) => body === undefined),
      'The explaining request carries no client secret.',
    );
  });

  test('unavailable_corridor_gets_on_unavailable_and_shows_the_frame', async () => {
    world.gate.respond = () => [
      200,
      world.gate.simulation.embedToken({ available: false, unavailable_reason: 'corridor_not_available' }),
    ];
    await mount();
    await callsWith('onReady');
    const reports = [['onReady'], ['onUnavailable', { reason: 'corridor_not_available' }]];
    assert.deepEqual(await callsWith('onUnavailable'), reports);
    const frame = await widgetFrame();
    await frame.waitForFunction(() => window.received.length === 1);
    assert.equal((await received(frame))[0].unavailable_reason, 'corridor_not_available');
    await frame.evaluate(() => window.send({ type: 'unavailable', reason: 'corridor_not_available' }));
    await flushMessages(frame);
    assert.equal((await calls()).length, 2);
  });

  for (const code of ['gate_not_enabled', 'quota_exhausted', 'organization_suspended']) {
    test(`${code}_gets_on_unavailable`, async () => {
      world.gate.respond = () => [403, envelope(code, 'Refused.', 403)];
      assert.deepEqual(await refusal('onUnavailable'), { reason: code });
    });
  }

  for (const [status, code] of [
    [403, 'client_secret_invalid'],
    [403, 'session_not_open'],
    [403, 'key_revoked'],
    [429, 'rate_limited'],
    [503, 'service_unavailable'],
  ]) {
    test(`${code}_gets_on_error`, async () => {
      world.gate.respond = () => [status, envelope(code, 'Refused for a reason.', status)];
      assert.deepEqual(await refusal('onError'), { code, message: 'Refused for a reason.' });
      assert.equal(await page.locator('iframe').count(), 0);
    });
  }

  test('malformed_response_gets_on_error', async () => {
    world.gate.respond = () => [502, '<h1>Bad gateway</h1>'];
    const { code, message } = await refusal('onError');
    assert.equal(code, 'unexpected_response');
    assert.ok(message.includes('502'), message);
  });

  test('unreachable_gate_gets_on_error', async () => {
    const closed = await listen(() => {});
    await closed.close();
    world.state.page = `<!doctype html><title>Shop</title><div id="ramp"></div><script src="{gate.js}"></script>`;
    world.state.places = { gate_origin: closed.origin };
    const { code, message } = await refusal('onError');
    assert.equal(code, 'network_error');
    assert.ok(message.includes(closed.origin), message);
  });

  test('lost_connection_is_tried_once_more', async () => {
    await page.route(`${world.gate.origin}/v1/embed/bootstrap`, (route) => route.abort('connectionreset'), {
      times: 1,
    });
    await mount();
    assert.deepEqual(await callsWith('onReady'), [['onReady']]);
  });

  test('page_without_web_origin_gets_on_error', async () => {
    await page.goto(foreign.origin);
    await page.setContent(`<iframe sandbox="allow-scripts" src="${world.shop.origin}/"></iframe>`);
    const opaque = page.frames()[1];
    await opaque.waitForFunction(() => typeof window.GateRamp === 'function' && window.record);
    await opaque.evaluate((options) => new GateRamp(options).mount('#ramp', window.record()), shopOptions());
    await opaque.waitForFunction(() => window.calls.length === 1);
    const [[name, { code }]] = await opaque.evaluate(() => window.calls);
    assert.deepEqual([name, code], ['onError', 'origin_not_supported']);
  });

  test('frame_that_never_becomes_ready_gets_on_error', async () => {
    world.state.silent = true;
    await stopClock(page);
    const started = page.waitForResponse(
      (response) => response.url().endsWith('/v1/embed/bootstrap') && response.request().method() === 'POST',
    );
    await mount();
    await widgetFrame();
    await (await started).finished();
    await page.clock.fastForward(8_000);
    assert.deepEqual(await calls(), []);
    await page.clock.fastForward(2_000);
    const [[name, { code, message }]] = await callsWith('onError');
    assert.deepEqual([name, code], ['onError', 'frame_timeout']);
    assert.ok(message.includes('frame-src'), message);
    assert.equal(await page.locator('iframe').count(), 0);
    await page.clock.fastForward(60_000);
    assert.equal((await calls()).length, 1);
  });

  test('gate_that_never_responds_gets_on_error', async () => {
    world.gate.respond = () => new Promise(() => {});
    await stopClock(page);
    await mount();
    await widgetFrame();
    await page.clock.fastForward(10_000);
    const [[, { code }]] = await callsWith('onError');
    assert.equal(code, 'bootstrap_timeout');
  });

  test('started_widget_never_times_out', async () => {
    await stopClock(page);
    await mount();
    await callsWith('onReady');
    await page.clock.fastForward(120_000);
    assert.deepEqual(await calls(), [['onReady']]);
  });
});

describe('deposit', () => {
  const request = {
    type: 'deposit',
    request_id: 'dep_1',
    asset: 'USDT',
    network: 'tron',
    amount: '107.310001',
    address: 'TXyz',
  };

  /** Mounts with this wallet, which runs in the page. */
  async function mountWallet(wallet) {
    await page.goto(world.shop.origin);
    await page.evaluate(
      ([options, code]) => {
        window.asked = [];
        // The page's policy has no `unsafe-eval`, so the wallet is chosen by name.
        const wallets = {
          sends: async () => ({ txHash: '0xabc' }),
          sendsAtOnce: () => ({ txHash: '0xdef' }),
          rejects: () => Promise.reject(new Error('The user declined.')),
          throws: () => {
            throw new Error('The wallet is locked.');
          },
          returnsNothing: () => undefined,
          returnsNumber: () => ({ txHash: 7 }),
        };
        new GateRamp(options).mount('#ramp', {
          ...window.record(),
          onInitiateDeposit(given) {
            window.asked.push(given);
            return wallets[code]();
          },
        });
      },
      [shopOptions(), wallet],
    );
    await callsWith('onReady');
    const frame = await widgetFrame();
    await frame.waitForFunction(() => window.received.length === 1);
    return frame;
  }

  for (const [wallet, hash, reports] of [
    ['sends', '0xabc', []],
    ['sendsAtOnce', '0xdef', []],
    ['rejects', null, ['The user declined.']],
    ['throws', null, ['The wallet is locked.']],
    ['returnsNothing', null, []],
    [
      'returnsNumber',
      null,
      ['onInitiateDeposit returned no own text `txHash`: the widget does not know that the crypto was sent.'],
    ],
  ]) {
    test(`wallet_that_${wallet}_is_answered`, async () => {
      const frame = await mountWallet(wallet);
      assert.equal((await received(frame))[0].can_deposit, true);
      await frame.evaluate((message) => window.send(message), request);
      await frame.waitForFunction(() => window.received.length === 2);
      assert.deepEqual((await received(frame))[1], {
        penstock: 1,
        type: 'deposited',
        request_id: 'dep_1',
        tx_hash: hash,
      });
      const { asset, network, amount, address } = request;
      assert.deepEqual(await page.evaluate(() => window.asked), [{ asset, network, amount, address, memo: null }]);
      assert.deepEqual(failures, reports);
    });
  }

  test('wallet_gets_the_memo_of_the_payment', async () => {
    const frame = await mountWallet('sends');
    await frame.evaluate((message) => window.send(message), { ...request, memo: '10447' });
    await frame.waitForFunction(() => window.received.length === 2);
    assert.deepEqual(await page.evaluate(() => window.asked.map(({ memo }) => memo)), ['10447']);
  });

  test('repeated_request_never_asks_the_wallet_twice', async () => {
    const frame = await mountWallet('sends');
    await frame.evaluate((message) => {
      window.send(message);
      window.send(message);
    }, request);
    await frame.waitForFunction(() => window.received.length === 3);
    assert.deepEqual(
      (await received(frame)).slice(1).map((message) => message.tx_hash),
      ['0xabc', '0xabc'],
    );
    assert.equal(await page.evaluate(() => window.asked.length), 1);
    await frame.evaluate((message) => window.send({ ...message, request_id: 'dep_2' }), request);
    await frame.waitForFunction(() => window.received.length === 4);
    assert.equal(await page.evaluate(() => window.asked.length), 2);
  });
});

describe('redirect', () => {
  test('redirect_keeps_the_client_secret_in_the_fragment', async () => {
    await page.goto(world.shop.origin);
    await page.evaluate((options) => GateRamp.redirectToCheckout(options), {
      publishableKey: PUBLISHABLE_KEY,
      clientSecret: CLIENT_SECRET,
    });
    await page.waitForURL(/checkout/);
    assert.equal(
      page.url(),
      `${world.widget.origin}/checkout#publishable_key=${PUBLISHABLE_KEY}&client_secret=${CLIENT_SECRET}`,
    );
    assert.ok(world.state.widgetRequests.includes('/checkout'));
    assert.ok(world.state.widgetRequests.every((path) => !path.includes('gsec_')));
  });

  test('redirect_carries_theme_and_locale', async () => {
    await page.goto(world.shop.origin);
    await page.evaluate(
      (options) => GateRamp.redirectToCheckout(options),
      shopOptions({ theme: 'dark', locale: 'fr' }),
    );
    await page.waitForURL(/checkout/);
    assert.ok(page.url().endsWith('&theme=dark&locale=fr'), page.url());
  });

  test('redirect_refuses_a_missing_client_secret', async () => {
    await page.goto(world.shop.origin);
    const options = shopOptions({ clientSecret: null });
    await assert.rejects(
      page.evaluate((given) => GateRamp.redirectToCheckout(given), options),
      /clientSecret is missing: pass `client_secret` of the session/,
    );
  });
});
