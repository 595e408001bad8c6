// The real SDK and the real widget in pages that nobody here controls. Each test is named after what other widgets fail at.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { stopClock } from '../browser.mjs';
import {
  CACHED,
  called,
  calls,
  expectCacheable,
  expectFit,
  HOST_ORIGIN,
  isModule,
  mount,
  nameExports,
  openHost,
  optionsOf,
  startHosts,
} from './hosts.mjs';
import {
  act,
  allowOrigins,
  createSession,
  editSession,
  embedded,
  expectRecords,
  hold,
  paidQuote,
  sandbox,
  step,
  transactionsOf,
  unsettle,
  walk,
  WALLET,
} from './shop.mjs';

/** A shop's picture of one pixel, on an origin of its own. */
const LOGO = 'https://logo.example/logo.png';
allowOrigins(LOGO);
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** A test of what does not depend on how a page loads the SDK. It runs with the script alone. */
const testOnce = isModule ? () => undefined : test;

let hosts;
before(async () => {
  hosts = await startHosts();
});
after(() => hosts?.close());

const sale = (fields = {}) => createSession({ flow: 'on_ramp', ...fields });

async function pay(page, options) {
  await walk(embedded(page), 'confirm', options);
  await act(embedded(page), 'pay');
  await step(embedded(page), 'done');
}

async function close(page) {
  assert.deepEqual(page.problems, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  await expectCacheable(page);
  await page.context().close();
}

test('mounting twice in one task starts one widget', async () => {
  const page = await openHost(hosts.browser, '/plain');
  const reads = [];
  page.on(
    'request',
    (request) =>
      /\/v1\/embed\/(bootstrap|session)$/.test(request.url()) &&
      request.method() !== 'OPTIONS' &&
      reads.push(request.url()),
  );
  await page.evaluate(
    (options) => {
      window.start(options);
      window.ramp.destroy();
      window.start(options);
    },
    optionsOf(await sale()),
  );
  await step(embedded(page), 'choose');
  assert.equal(await page.locator('iframe').count(), 1);
  assert.deepEqual(await calls(page), [['onReady']]);
  assert.equal(reads.filter((url) => url.endsWith('/session')).length, 1);
  await close(page);
});

testOnce('denied storage stops no purchase and no response sets a cookie', async () => {
  const cookies = [];
  const page = await openHost(hosts.browser, '/plain', {
    prepare: async (opened) => {
      opened.on('response', async (response) => {
        const header = await response.headerValue('set-cookie').catch(() => null);
        if (header) cookies.push(response.url());
      });
      await opened.addInitScript(() => {
        const deny = () => {
          throw new DOMException('Access is denied.', 'SecurityError');
        };
        for (const name of ['sessionStorage', 'localStorage', 'indexedDB'])
          Object.defineProperty(window, name, { get: deny });
        Object.defineProperty(document, 'cookie', { get: deny, set: deny });
      });
    },
  });
  const session = await sale();
  await mount(page, session);
  await pay(page);
  await called(page, 'onSuccess');
  await expectRecords(session.id, 'completed', 'on_ramp completed 100.00');
  assert.deepEqual(cookies, []);
  await close(page);
});

testOnce('widget that starts hidden gets its height when it is shown', async () => {
  const page = await openHost(hosts.browser, '/plain');
  await page.evaluate(() => document.getElementById('ramp').style.setProperty('display', 'none'));
  await mount(page, await sale());
  await called(page, 'onReady');
  await page.evaluate(() => document.getElementById('ramp').style.removeProperty('display'));
  await step(embedded(page), 'choose');
  await expectFit(page, 'choose');
  await close(page);
});

test('strict policy of the documents is enough', async () => {
  const page = await openHost(hosts.browser, '/strict');
  await mount(page, await sale());
  await pay(page);
  await expectFit(page, 'done');
  await page.evaluate(() => window.ramp.destroy());
  assert.equal(await page.locator('iframe').count(), 0);
  await close(page);
});

testOnce('page that may embed the widget cannot frame the checkout of a link', async () => {
  let refused;
  const page = await openHost(hosts.browser, '/framing', {
    prepare: async (opened) => {
      refused = opened.waitForEvent('console', (message) => /frame-ancestors 'none'/.test(message.text()));
    },
  });
  await refused;
  await page.context().close();
});

test('isolated page shows the widget and its logo', async () => {
  const page = await openHost(hosts.browser, '/isolated');
  assert.equal(await page.evaluate(() => crossOriginIsolated), true);
  const referrers = [];
  await page.route(LOGO, (route) => {
    referrers.push(route.request().headers().referer ?? null);
    return route.fulfill({ contentType: 'image/png', body: PIXEL });
  });
  await editSession(page, (session) => {
    session.branding.logo_url = LOGO;
  });
  await mount(page, await sale());
  await step(embedded(page), 'choose');
  const logo = embedded(page).locator(`img[src="${LOGO}"]`);
  await logo.waitFor();
  assert.equal(await logo.evaluate((image) => image.decode().then(() => image.naturalWidth)), 1);
  assert.deepEqual(referrers, [null]);
  await close(page);
});

test('isolated page reaches the checkout by redirect', async () => {
  const page = await openHost(hosts.browser, '/isolated');
  await page.evaluate((options) => GateRamp.redirectToCheckout(options), optionsOf(await sale()));
  await step(page, 'choose');
  assert.deepEqual(page.problems, []);
  await page.context().close();
});

testOnce('module with integrity loads in an isolated page', async () => {
  const address = `${sandbox.widget_origin}/gate.mjs`;
  const bytes = Buffer.from(await (await fetch(address)).arrayBuffer());
  const integrity = `sha384-${createHash('sha384').update(bytes).digest('base64')}`;
  const page = await openHost(hosts.browser, '/isolated');
  const load = (digest) =>
    page.evaluate(
      ([src, expected]) =>
        new Promise((resolve) => {
          const script = Object.assign(document.createElement('script'), {
            type: 'module',
            crossOrigin: 'anonymous',
            integrity: expected,
            src,
          });
          script.onload = () => resolve('loaded');
          script.onerror = () => resolve('refused');
          document.head.append(script);
        }),
      [address, digest],
    );
  assert.equal(await load(integrity), 'loaded');
  await page.evaluate(
    async ([src, options]) => {
      const { GateRamp } = await import(src);
      new GateRamp(options).mount('#ramp', window.record());
    },
    [address, optionsOf(await sale())],
  );
  await step(embedded(page), 'choose');
  await close(page);
});

test('host comes back from the cache with a widget that works on', async (context) => {
  const cached = await startHosts(CACHED);
  context.after(() => cached.close());
  const page = await openHost(cached.browser, '/plain');
  await page.evaluate((origin) => {
    addEventListener('pageshow', (event) => {
      window.restored = event.persisted;
    });
    window.prices = [];
    addEventListener(
      'message',
      (event) => event.origin === origin && event.data.type === 'quote' && window.prices.push(event.data.expires_at),
    );
  }, sandbox.widget_origin);
  const session = await sale();
  await mount(page, session);
  await walk(embedded(page), 'confirm');
  const shownBefore = await page.evaluate(() => window.prices.length);
  const button = await embedded(page).locator('[data-action="pay"]').boundingBox();
  await expectCacheable(page);
  await page.goto(`${HOST_ORIGIN}/empty`);
  await page.goBack({ waitUntil: 'commit' });
  await page.waitForFunction(() => window.restored === true);
  // The driver no longer finds a frame that comes back from the cache, but a mouse does. A price that is new ignores a click.
  const succeeded = called(page, 'onSuccess').then(() => true);
  do {
    await page.mouse.click(button.x + button.width / 2, button.y + button.height / 2);
  } while (!(await Promise.race([succeeded, pause(3000)])));
  await expectRecords(session.id, 'completed', 'on_ramp completed 100.00');
  // The payment is at a price that the widget has asked for since, and at the newest of these.
  const prices = await page.evaluate(() => window.prices);
  assert.ok(prices.length > shownBefore, `${prices}`);
  const { expires_at: paidAt } = await paidQuote(session.id);
  assert.equal(Date.parse(paidAt), Date.parse(prices.at(-1)));
  assert.deepEqual(await page.evaluate(() => window.leaving), []);
  await page.context().close();
});

for (const mode of ['open', 'closed']) {
  testOnce(`widget pays in the ${mode} shadow root of an element`, async () => {
    const page = await openHost(hosts.browser, '/plain');
    const session = await sale();
    const place = `() => document.getElementById('ramp').attachShadow({ mode: '${mode}' }).appendChild(document.createElement('div'))`;
    await mount(page, session, place);
    // No selector reaches into a closed root, but the browser lists the frame.
    await called(page, 'onReady');
    const widget = page.frames().find((frame) => frame.url().startsWith(sandbox.widget_origin));
    await walk(widget, 'confirm');
    await act(widget, 'pay');
    await step(widget, 'done');
    await called(page, 'onSuccess');
    await close(page);
  });
}

testOnce('frame that moves takes up its payment again', async () => {
  const page = await openHost(hosts.browser, '/plain');
  const release = await hold(page);
  // The payment settles by itself after ten seconds, but the page reads that it goes on.
  const endEdits = await editSession(page, (session) => unsettle(session));
  await mount(page, await sale({ amount: '100.33' }));
  await walk(embedded(page), 'confirm');
  await act(embedded(page), 'pay');
  await step(embedded(page), 'instructions');
  assert.deepEqual(await calls(page), [['onReady']]);
  const loaded = page.waitForEvent('framenavigated');
  await page.evaluate(
    () =>
      document.body.prepend(Object.assign(document.createElement('section'), { id: 'new' })) ??
      document.getElementById('new').append(document.getElementById('ramp')),
  );
  await loaded;
  await step(embedded(page), 'instructions');
  await endEdits();
  release();
  await step(embedded(page), 'done');
  const made = await called(page, 'onSuccess');
  assert.deepEqual(
    made.map(([name]) => name),
    ['onReady', 'onSuccess'],
  );
  await page.context().close();
});

testOnce('keyboard alone pays in a frame and leaves it', async () => {
  const page = await openHost(hosts.browser, '/plain');
  await page.evaluate(() => {
    document.body.prepend(Object.assign(document.createElement('button'), { id: 'before', textContent: 'Before' }));
    document.body.append(Object.assign(document.createElement('button'), { id: 'after', textContent: 'After' }));
  });
  const session = await sale({ wallet_address: WALLET, target_token: 'USDT', target_network: 'ethereum' });
  await mount(page, session);
  await step(embedded(page), 'choose');
  const widget = await (await page.$('#ramp iframe')).contentFrame();
  const hasFocus = (frame, selector) =>
    frame.evaluate((wanted) => document.hasFocus() && document.activeElement.matches(wanted), selector);
  const reach = async (frame, selector, key = 'Tab') => {
    for (let presses = 0; !(await hasFocus(frame, selector)); presses += 1) {
      assert.ok(presses < 40, `${key} never reaches ${selector}`);
      await page.keyboard.press(key);
    }
  };
  await page.focus('#before');
  for (const [name, action] of [
    ['choose', 'continue'],
    ['details', 'continue'],
    ['price', 'continue'],
    ['confirm', 'pay'],
  ]) {
    const button = `[data-step="${name}"] [data-action="${action}"]`;
    await widget.locator(`${button}:not([aria-disabled="true"])`).waitFor();
    await reach(widget, button);
    await page.keyboard.press('Enter');
  }
  await step(embedded(page), 'done');
  await reach(page, '#after');
  await reach(page, '#before', 'Shift+Tab');
  await expectRecords(session.id, 'completed', 'on_ramp completed 100.00');
  await close(page);
});

const FAILURES = {
  aborted: (route) => route.abort(),
  refused: (route) =>
    route.fulfill({ status: 503, contentType: 'text/plain', body: 'The checkout is not available now.' }),
  silent: () => undefined,
};

for (const name of Object.keys(FAILURES)) {
  testOnce(`widget whose page is ${name} reports one error and can be mounted again`, async () => {
    const page = await openHost(hosts.browser, '/plain', { prepare: stopClock });
    const pages = /\/embed\?/;
    await page.route(pages, FAILURES[name]);
    const session = await sale();
    const started = page.waitForResponse(
      (response) => response.url().endsWith('/v1/embed/bootstrap') && response.request().method() === 'POST',
    );
    await mount(page, session);
    await (await started).finished();
    // The time that a host waits before it would be fair to call the widget hung.
    await page.clock.runFor(10_000);
    const made = await called(page, 'onError');
    assert.deepEqual(
      made.map(([each, { code }]) => [each, code]),
      [['onError', 'frame_timeout']],
    );
    assert.equal(await page.locator('iframe').count(), 0);
    await page.unroute(pages);
    await page.clock.resume();
    await page.evaluate(() => {
      // From here on the clock is that of the machine, which may stand still for longer.
      const { setTimeout } = window;
      window.setTimeout = (run, delay, ...rest) => setTimeout(run, delay === 9_000 ? 600_000 : delay, ...rest);
      window.ramp.destroy();
      window.start(window.options);
    });
    await step(embedded(page), 'choose');
    assert.deepEqual(
      (await calls(page)).map(([each]) => each),
      ['onError', 'onReady'],
    );
    await page.context().close();
  });
}

test('success comes once and again after a reload with the same id', async () => {
  const page = await openHost(hosts.browser, '/plain');
  const session = await sale();
  await mount(page, session);
  await pay(page);
  const [, success] = (await called(page, 'onSuccess'))[1];
  const [{ refid }] = await transactionsOf(session.id);
  assert.deepEqual(success, { txId: refid, sessionId: session.id });
  await act(embedded(page), 'return');
  assert.deepEqual(await called(page, 'onClose'), [
    ['onReady'],
    ['onSuccess', success],
    ['onClose', { reason: 'completed' }],
  ]);
  await page.reload();
  await mount(page, session);
  await step(embedded(page), 'done');
  assert.deepEqual(await called(page, 'onSuccess'), [['onReady'], ['onSuccess', success]]);
  await expectRecords(session.id, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

test('two widgets of a page pay under keys of their own, and both tell of success again after a reload', async () => {
  const page = await openHost(hosts.browser, '/plain');
  const sessions = [await sale(), await sale({ amount: '50.00' })];
  const addPlace = () =>
    page.evaluate(() => document.body.append(Object.assign(document.createElement('div'), { id: 'second' })));
  const mountSecond = () => mount(page, sessions[1], () => '#second');
  const widgets = [embedded(page), page.frameLocator('#second iframe')];
  await addPlace();
  await mount(page, sessions[0]);
  await walk(widgets[0], 'confirm');
  await mountSecond();
  await walk(widgets[1], 'confirm');
  const keys = [];
  page.on(
    'request',
    (request) =>
      request.method() === 'POST' &&
      request.url().endsWith('/v1/embed/payments') &&
      keys.push(request.headers()['idempotency-key']),
  );
  const release = await hold(page, /\/v1\/embed\/payments$/);
  for (const widget of widgets) {
    const asked = page.waitForRequest(
      (request) => request.method() === 'POST' && request.url().endsWith('/v1/embed/payments'),
    );
    await act(widget, 'pay');
    await asked;
  }
  release();
  for (const widget of widgets) {
    await step(widget, 'done');
  }
  assert.equal(new Set(keys).size, 2);
  await expectRecords(sessions[0].id, 'completed', 'on_ramp completed 100.00');
  await expectRecords(sessions[1].id, 'completed', 'on_ramp completed 50.00');
  await page.reload();
  await addPlace();
  await mount(page, sessions[0]);
  await mountSecond();
  const made = await called(page, 'onSuccess', 2);
  assert.deepEqual(
    made.flatMap(([name, event]) => (name === 'onSuccess' ? [event.sessionId] : [])).sort(),
    sessions.map(({ id }) => id).sort(),
  );
  await page.context().close();
});

test('host without referrer and without randomUUID pays', async () => {
  const page = await openHost(hosts.browser, '/no-referrer', {
    prepare: (opened) =>
      opened.addInitScript(() => {
        delete Crypto.prototype.randomUUID;
      }),
  });
  const keys = [];
  page.on(
    'request',
    (request) =>
      request.url().endsWith('/v1/embed/payments') &&
      request.method() === 'POST' &&
      keys.push(request.headers()['idempotency-key']),
  );
  const session = await sale();
  await mount(page, session);
  await pay(page);
  await expectRecords(session.id, 'completed', 'on_ramp completed 100.00');
  assert.equal(keys.length, 1);
  assert.match(keys[0], /[0-9a-f]{32}|[0-9a-f-]{36}|[\w-]{22}/);
  await close(page);
});

testOnce('page that shows its address to everyone does not show it to the widget or the gate', async () => {
  const page = await openHost(hosts.browser, '/talkative');
  const seen = [];
  page.on(
    'request',
    (request) =>
      /\/embed(\?|\/bootstrap$)/.test(request.url()) &&
      request.method() !== 'OPTIONS' &&
      seen.push(request.allHeaders().then(({ referer }) => [new URL(request.url()).pathname, referer])),
  );
  await mount(page, await sale());
  await step(embedded(page), 'choose');
  const sent = await Promise.all(seen);
  assert.deepEqual(sent.sort(), [
    ['/embed', undefined],
    ['/v1/embed/bootstrap', undefined],
  ]);
  await close(page);
});

test('sandboxed page learns that its origin is not supported', async () => {
  const page = await openHost(hosts.browser, '/sandboxed');
  const inner = page.frames()[1];
  await inner.waitForLoadState();
  await nameExports(inner);
  await inner.evaluate((options) => window.start(options), optionsOf(await sale()));
  await inner.waitForFunction(() => window.calls.length > 0);
  assert.deepEqual(
    (await inner.evaluate(() => window.calls)).map(([name, { code }]) => [name, code]),
    [['onError', 'origin_not_supported']],
  );
  await page.context().close();
});

for (const payer of ['link', 'frame']) {
  testOnce(`payment by ${payer} shows in the other widget of the same session`, async () => {
    const page = await openHost(hosts.browser, '/plain');
    const session = await sale();
    await mount(page, session);
    const tab = await page.context().newPage();
    await tab.goto(session.url);
    const widgets = { link: [tab, tab], frame: [page, embedded(page)] };
    const follower = payer === 'link' ? 'frame' : 'link';
    // Only the newest price of a session can be paid, so the payer's comes last.
    for (const way of [follower, payer]) {
      const [front, widget] = widgets[way];
      // Chromium hardly draws a tab behind another one.
      await front.bringToFront();
      await walk(widget, 'confirm');
    }
    await act(widgets[payer][1], 'pay');
    await step(widgets[payer][1], 'done');
    const [front, following] = widgets[follower];
    await front.bringToFront();
    await step(following, 'done');
    assert.equal(await following.locator('[role=alert][data-code]').count(), 0);
    await page.bringToFront();
    assert.deepEqual(
      (await called(page, 'onSuccess')).map(([name]) => name),
      ['onReady', 'onSuccess'],
    );
    await expectRecords(session.id, 'completed', 'on_ramp completed 100.00');
    await page.context().close();
  });
}
