// Drives the demo shop of a running sandbox, as a customer does. `SANDBOX` holds the JSON that the sandbox printed.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterEach } from 'node:test';
import { launchBrowser, newPage as newUnwatchedPage, PATIENCE_MS } from '../browser.mjs';

export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
export const IBAN = 'DE89370400440532013000';
export const NARROW = { width: 360, height: 740 };
export const WIDE = { width: 1280, height: 900 };

/** How a customer fills in the details of each flow. A further flow needs one entry here, and the suites walk it too. */
export const FLOWS = {
  on_ramp: { network: 'ethereum', wallet_address: WALLET },
  off_ramp: { network: 'ethereum', iban: IBAN, account_holder: 'Ada Example' },
  swap: { source_asset: 'USDC', source_network: 'polygon', network: 'ethereum', wallet_address: WALLET },
};

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

export const sandbox = JSON.parse(process.env.SANDBOX);

export { launchBrowser };

/** The origin of the shop in the documentation, which the sandbox allows. */
export const DOCS_SHOP = 'http://127.0.0.1:3000';
const ownOrigins = [sandbox.widget_origin, sandbox.gate_base_url, sandbox.demo_shop_url, DOCS_SHOP].map(
  (address) => new URL(address).origin,
);
const strays = [];

/** Adds origins that a suite's own pages are on. */
export const allowOrigins = (...addresses) => ownOrigins.push(...addresses.map((address) => new URL(address).origin));

/** Requests to any other origin, and everything that the policy of a page forbids, fail the test. */
export async function watchOrigins(context) {
  context.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && !ownOrigins.includes(origin)) strays.push(request.url());
  });
  await context.exposeFunction('reportViolation', (text) => {
    strays.push(text);
  });
  await context.addInitScript(() => {
    addEventListener(
      'securitypolicyviolation',
      (event) =>
        /favicon/.test(event.blockedURI) ||
        reportViolation(`${event.effectiveDirective} ${event.blockedURI} in ${event.documentURI}`),
    );
  });
}

afterEach(() => assert.deepEqual(strays.splice(0), []));

/** Opens a watched page in its own context. */
export async function newPage(browser, options) {
  const page = await newUnwatchedPage(browser, options);
  const context = page.context();
  await watchOrigins(context);
  const close = context.close.bind(context);
  context.close = async () => {
    // A page that closes has no use for the answers that its routes still fetch or hold.
    await Promise.all(context.pages().map((each) => each.unrouteAll({ behavior: 'ignoreErrors' })));
    await close();
  };
  return page;
}

/** Opens the demo shop and records everything that a browser complains about. */
export async function openShop(browser, options = {}) {
  const page = await newPage(browser, { viewport: WIDE, locale: 'en-GB', ...options });
  page.problems = [];
  watch(page);
  page.context().on('page', watch);
  await page.goto(sandbox.demo_shop_url);
  await page.waitForSelector('[data-live=true]');
  return page;

  function watch(opened) {
    opened.on('pageerror', (error) => page.problems.push(error.message));
    opened.on('console', (message) => message.type() === 'error' && page.problems.push(message.text()));
  }
}

/** Fills the order and starts it. Returns the new session's id. */
export async function order(page, { amount = '100.00', flow = 'on_ramp', way = 'embed' } = {}) {
  await page.fill('#order [name=amount]', amount);
  await page.locator(`#order [name=flow][value="${flow}"]`).check({ force: true });
  const created = page.waitForResponse((response) => response.url().endsWith('/demo/sessions'));
  await page.click(`#order [data-action=${way}]`);
  const response = await created;
  assert.equal(response.status(), 201);
  return response.json();
}

export const embedded = (page) => page.frameLocator('#ramp iframe');

/** Waits until the widget shows a step. `widget` is a page or a frame. An error says what it shows instead. */
export async function step(widget, name) {
  try {
    await widget.locator(`[data-step="${name}"]`).waitFor();
  } catch (error) {
    error.message += `\ninstead: ${await widget.locator('#root').innerHTML({ timeout: 5_000 }).catch(String)}`;
    throw error;
  }
}

/** How often a button is pressed until it has received the press. */
const PRESSES = 5;

/** Presses a button. A page or a frame that moves under the pointer loses a press, which is then repeated. */
export async function act(widget, name) {
  const locator = widget.locator(`[data-step] [data-action="${name}"]`);
  for (let presses = 1; ; presses += 1) {
    const button = await locator.elementHandle();
    await button.evaluate(async (element) => {
      const height = () => Math.ceil(document.getElementById('root').getBoundingClientRect().height);
      for (let turn = 0; turn < 250 && parent !== window && Math.abs(innerHeight - height()) > 1; turn += 1) {
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
      element.addEventListener(
        'click',
        () => {
          element.isPressed = true;
        },
        { once: true },
      );
    });
    const refused = await button.click().then(
      () => null,
      (error) => error,
    );
    // A page that the press has left cannot tell.
    if (await button.evaluate((element) => element.isPressed === true).catch(() => true)) return;
    if (refused?.name === 'TimeoutError' || presses === PRESSES)
      throw refused ?? new Error(`the button ${name} received none of ${PRESSES} presses`);
  }
}

/** Leaves the payment: the widget asks once. */
export async function giveUp(widget) {
  await act(widget, 'cancel');
  await widget.locator('.ask [data-action="cancel"]').click();
}

/** Walks from the first screen to a step of the draft. `look` sees each screen on the way. */
export async function walk(widget, goal, { side = 'on_ramp', from = 'choose', look = async () => undefined } = {}) {
  const names = [...new Set(['choose', 'details', 'price', goal])];
  for (const name of names.slice(names.indexOf(from))) {
    await step(widget, name);
    if (name === 'details') {
      await fillDetails(widget, side);
    }
    if (name === 'price') {
      await widget.locator('[data-action="continue"]:not([aria-disabled="true"])').waitFor();
    }
    await look(name);
    if (name === goal) {
      return;
    }
    await act(widget, 'continue');
  }
}

async function fillDetails(widget, side) {
  for (const [name, value] of Object.entries(FLOWS[side])) {
    const field = widget.locator(`[name=${name}]`);
    if (await field.evaluate((element) => element instanceof HTMLSelectElement)) {
      await field.selectOption(value);
    } else {
      await field.fill(value);
    }
  }
}

export const decision = (page, state) => page.locator(`#decision[data-decision=${state}]`).waitFor();

/** The session's events that the shop received, oldest first. */
export async function eventsOf(page, session) {
  return page.$$eval(`[data-event-type][data-session="${session}"]`, (entries) =>
    entries.map((entry) => ({ type: entry.dataset.eventType, verified: entry.dataset.verified === 'true' })).reverse(),
  );
}

async function call(path, options = {}) {
  const headers = {
    Authorization: `Bearer ${sandbox.secret_key}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': crypto.randomUUID(),
  };
  const response = await fetch(`${sandbox.gate_base_url}${path}`, { headers, ...options });
  const body = await response.json();
  assert.ok(response.ok, JSON.stringify(body));
  return body;
}

/** Creates a session with the shop's secret key, as its server does. */
export function createSession(fields) {
  const back = { return_url: `${sandbox.demo_shop_url}?paid`, cancel_url: `${sandbox.demo_shop_url}?cancelled` };
  return call('/gate_sessions', {
    method: 'POST',
    body: JSON.stringify({ amount: '100.00', currency: 'EUR', ...back, ...fields }),
  });
}

/** The session's transactions, as the partner's API lists them. */
export const transactionsOf = async (session) => (await call(`/transactions?session_id=${session}&limit=100`)).data;

/** The status of a signed quote, by the server's clock. */
export const quoteStatus = async (id) => (await call(`/quotes/${id}`)).status;

/** The signed quote that the session's newest purchase was paid with. */
export async function paidQuote(session) {
  const [{ local_rail_transaction_id: payIn }] = await transactionsOf(session);
  const { quote_id: quote } = await call(`/rails/pay_ins/${payIn}`);
  return call(`/quotes/${quote}`);
}

/** What the partner's API has recorded: the status of the session, and each of its payments as `side status amount`. */
export async function recordsOf(session) {
  const [{ status }, data] = await Promise.all([call(`/gate_sessions/${session}`), transactionsOf(session)]);
  return { status, payments: data.map((row) => `${row.action} ${row.status} ${row.fiat_amount}`) };
}

/** Expects a session in a status with exactly these payments. */
export async function expectRecords(session, status, ...payments) {
  assert.deepEqual(await recordsOf(session), { status, payments });
}

/** Opens the checkout of a new session at the top level. */
export async function openCheckout(browser, fields = {}, options = {}) {
  const session = await createSession({ flow: 'on_ramp', ...fields });
  const page = await newPage(browser, { viewport: WIDE, locale: 'en-GB', ...options });
  page.session = session.id;
  page.address = session.url;
  return page;
}

/** Holds back these requests. Without its waiting reads of the session, the widget learns of no change. Returns a function that lets go. */
export async function hold(page, requests = /\/session\?after=/) {
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  await page.route(requests, async (route) => {
    await released;
    // The page may have given up by now.
    await route.continue().catch(() => undefined);
  });
  return release;
}

/** Lets `edit` change the session that the widget reads, by a waiting read only with `waits`. Returns a function that ends this. */
export async function editSession(page, edit, { waits = false } = {}) {
  const reads = waits ? /\/v1\/embed\/session(\?|$)/ : /\/v1\/embed\/session$/;
  await page.route(reads, async (route) => {
    const response = await route.fetch({ timeout: PATIENCE_MS });
    const session = await response.json();
    edit(session);
    // The page may have given up a waiting read by now, or be closed.
    await route.fulfill({ response, json: session }).catch((error) => assert.ok(waits || page.isClosed(), error));
  });
  return () => page.unroute(reads);
}

/** An edit that shows a payment as it was before its end. The old version makes the next waiting read end at once. */
export function unsettle(session, status = 'processing') {
  if (session.payment) {
    Object.assign(session, { status: 'open', version: '0000000000000000', payment: { ...session.payment, status } });
  }
}

/** An edit that shows a verification as it was before its approval. */
export function unapprove(session) {
  if (session.verification.status === 'approved' && !session.payment) {
    Object.assign(session, { version: '0000000000000000', verification: { status: 'pending', reason: null } });
  }
}

/**
 * Does work on a payment of `.33`, which settles by itself after ten seconds. Work that is too late is repeated in a new page.
 * Returns the page of the work that was in time. `widgetOf` finds the widget in a page.
 */
export async function inTime(open, work, widgetOf = (page) => page) {
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    const page = await open();
    const late = widgetOf(page)
      .locator('[data-step="done"]')
      .waitFor({ timeout: 0 })
      .then(() => false);
    const done = work(page).then(() => true);
    // The one that loses the race fails when its page closes.
    late.catch(() => undefined);
    done.catch(() => undefined);
    if (await Promise.race([late, done])) {
      return page;
    }
    await page.context().close();
  }
  assert.fail('Each payment settled before the work on it was done.');
}

/** What axe says about a page or a frame, as `read` reads it there. */
export async function axe(frame, options, read) {
  // DevTools evaluates in spite of the page's policy; a script element would not load.
  if (await frame.evaluate(() => !('axe' in window))) {
    await frame.evaluate(AXE);
  }
  return frame.evaluate(`axe.run(document, ${JSON.stringify(options)}).then(${read})`);
}

/** Runs axe in the page and in its frames. `rules` can switch rules off. */
export async function audit(page, name = '', rules = {}) {
  for (const frame of page.frames()) {
    const options = { runOnly: { type: 'tag', values: AXE_TAGS }, iframes: false, resultTypes: ['violations'], rules };
    const violations = await axe(frame, options, (result) =>
      result.violations.map(({ id, nodes }) => ({ id, targets: nodes.map((node) => node.target.join(' ')) })),
    );
    const found = violations.map(({ id, targets }) => `${id}: ${targets.join(', ')}`);
    assert.deepEqual(found, [], `${name} ${frame.url()}`);
  }
}
