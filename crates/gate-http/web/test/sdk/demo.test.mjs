// The demo shop in Chromium: the whole story of an order, in each way into the checkout.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { envelope } from '../../dev/gate.mjs';
import { launchBrowser, newPage, stretch } from '../browser.mjs';
import { startDemo } from './demo_simulation.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

let browser;
let demo;
let page;
let problems;

before(async () => {
  browser = await launchBrowser();
});

after(() => browser?.close());

beforeEach(async () => {
  demo = await startDemo();
  page = await newPage(browser, { viewport: { width: 1280, height: 900 } });
  problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
});

afterEach(async () => {
  await page.context().close();
  await demo.close();
});

async function open(path = '/demo') {
  await page.goto(demo.shop.origin + path);
  await page.waitForSelector('[data-page=demo] [data-live=true]');
}

const widget = () => page.frameLocator('#ramp iframe');
const decision = (state) => page.waitForSelector(`#decision[data-decision=${state}]`);

/** Types of the shown events, newest first. */
const types = () => page.$$eval('[data-event-type]', (entries) => entries.map((entry) => entry.dataset.eventType));

describe('embedded', () => {
  test('order_is_paid_and_the_webhook_decides', async () => {
    await open();
    await page.click('[data-action=embed]');
    await decision('waiting');
    await widget().locator('[data-action=pay]').click();
    await decision('paid');
    assert.deepEqual(await types(), ['gate_session.completed', 'gate_session.processing', 'gate_session.created']);
    assert.deepEqual(demo.state.orders, [
      { amount: '250.00', currency: 'EUR', flow: 'on_ramp', target_token: null, target_network: null },
    ]);
    await page.waitForSelector('[data-callback=onSuccess]', { state: 'attached' });
    const callbacks = await page.$$eval('[data-callback]', (entries) => entries.map((entry) => entry.dataset.callback));
    assert.deepEqual(callbacks, ['onReady', 'onStep', 'onQuote', 'onStep', 'onStep', 'onSuccess']);
    assert.deepEqual(problems, []);
  });

  test('newest_event_is_open_and_shows_headers_and_body', async () => {
    await open();
    await page.click('[data-action=embed]');
    const entry = page.locator('[data-event-type="gate_session.created"]');
    await entry.locator('pre').waitFor();
    const text = await entry.textContent();
    for (const part of ['✓ Signature verified', 'webhook-id:', 'gate-signature:t=1795345766,v1=5257a869']) {
      assert.ok(text.includes(part), `${text} lacks ${part}`);
    }
    assert.match(await entry.locator('time').textContent(), /^\d\d:\d\d:\d\d\.\d{3}$/);
    assert.deepEqual(JSON.parse(await entry.locator('pre').textContent()), demo.log.events[0].body);
    await page.waitForFunction(() => document.getElementById('announcement').textContent === 'gate_session.created');
    await widget().locator('[data-action=pay]').click();
    await page.locator('[data-event-type="gate_session.completed"] pre').waitFor();
    assert.equal(await entry.locator('pre').isVisible(), false, 'An event that is no longer the newest is closed.');
    await entry.locator('summary').click();
    demo.log.emit('webhook.test', { id: 'whe_1' });
    await page.locator('[data-event-type="webhook.test"] pre').waitFor();
    assert.ok(await entry.locator('pre').isVisible(), 'An event that the user opened stays open.');
  });

  test('fields_choose_the_order', async () => {
    await open();
    await page.fill('[name=amount]', ' 55,5 ');
    await page.selectOption('[name=currency]', 'GBP');
    await page.check('[name=flow][value=""]');
    assert.deepEqual([await page.textContent('#cost'), await page.textContent('#card-price')], ['£55.50', '£55.50']);
    await page.click('[data-action=embed]');
    await decision('waiting');
    assert.deepEqual(demo.state.orders, [
      { amount: '55.5', currency: 'GBP', flow: null, target_token: null, target_network: null },
    ]);
  });

  test('price_follows_what_should_happen', async () => {
    await open();
    assert.equal(await page.textContent('#cost'), '€250.00');
    for (const outcome of ['31', '32', '33', '34', '71', '72', '61', '62', '63', '64', '00']) {
      await page.selectOption('[name=outcome]', outcome);
      assert.equal(await page.inputValue('[name=amount]'), `250.${outcome}`);
      assert.equal(await page.textContent('#cost'), `€250.${outcome}`);
    }
    for (const [amount, outcome] of [
      ['7.62', '62'],
      ['7.5', '00'],
      ['7.99', '00'],
      ['', '00'],
    ]) {
      await page.fill('[name=amount]', amount);
      assert.equal(await page.inputValue('[name=outcome]'), outcome, amount);
    }
  });

  test('failed_and_cancelled_payments_keep_the_goods', async () => {
    await open();
    await page.selectOption('[name=outcome]', '31');
    await page.click('[data-action=embed]');
    await widget().locator('[data-action=pay]').click();
    await decision('failed');
    await page.click('[data-action=embed]');
    await decision('waiting');
    await widget().locator('[data-action=cancel]').click();
    await decision('over');
    await page.waitForSelector('#ramp iframe', { state: 'detached' });
    assert.ok(await page.isVisible('#checkout-empty'));
    assert.ok(!(await types()).includes('gate_session.completed'));
  });

  test('new_order_replaces_the_widget_and_marks_its_own_events', async () => {
    await open();
    await page.click('[data-action=embed]');
    await page.waitForSelector('[data-event-type].current');
    const first = await page.getAttribute('[data-event-type].current', 'data-session');
    await page.click('[data-action=embed]');
    await page.waitForFunction((old) => {
      const current = [...document.querySelectorAll('[data-event-type].current')];
      return current.length === 1 && current[0].dataset.session !== old;
    }, first);
    assert.equal(await page.locator('#ramp iframe').count(), 1);
    assert.equal(await page.locator('[data-event-type]').count(), 2);
  });

  test('language_and_theme_reach_the_widget', async () => {
    await open();
    await page.click('[data-action=embed]');
    await widget().locator('[data-action=pay]').waitFor();
    await page.click('[data-action=theme]');
    await widget().locator('html[data-theme=dark]').waitFor();
    await page.selectOption('[name=locale]', 'nl');
    await page.waitForSelector('#ramp iframe[title="Veilig betalen"]');
    await widget().locator('html[data-theme=dark]').waitFor();
    assert.equal(demo.state.orders.length, 1);
  });

  test('unverified_event_decides_nothing', async () => {
    await open();
    await page.click('[data-action=embed]');
    await page.waitForSelector('[data-event-type].current');
    const session = await page.getAttribute('[data-event-type].current', 'data-session');
    demo.log.emit('gate_session.completed', { id: session, object: 'gate_session' }, false);
    const entry = page.locator('[data-event-type="gate_session.completed"][data-verified=false]');
    assert.ok((await entry.textContent()).includes('✗ Signature does not match'));
    assert.equal(await page.getAttribute('#decision', 'data-decision'), 'waiting');
  });

  test('endpoint_that_gets_the_events_instead_is_named', async () => {
    await open();
    demo.state.eventsTo = 'http://127.0.0.1:49300/hook';
    await page.click('[data-action=embed]');
    await decision('elsewhere');
    assert.equal(await page.textContent('#decision-title'), 'Events go to http://127.0.0.1:49300/hook');
    await page.getByText('Events go to http://127.0.0.1:49300/hook, so none arrive here.').waitFor();
    demo.state.eventsTo = null;
    await page.click('[data-action=embed]');
    await decision('waiting');
    await page.waitForSelector('[data-event-type="gate_session.created"]');
    assert.deepEqual(problems, []);
  });

  test('markup_in_an_event_stays_text', async () => {
    await open();
    const hostile = '<img src=x onerror="document.title=\'owned\'">';
    demo.log.emit(hostile, { id: hostile, metadata: { [hostile]: hostile } });
    await page.waitForSelector('[data-event-type]');
    assert.equal(await page.locator('#feed img').count(), 0);
    assert.ok((await page.textContent('#feed pre')).includes('onerror'));
  });

  test('older_events_are_folded', async () => {
    for (let number = 0; number < 15; number += 1) {
      demo.log.emit('webhook.test', { id: `whe_${number}` });
    }
    await open();
    await page.waitForSelector('[data-event-type]');
    assert.equal(await page.locator('[data-event-type]:visible').count(), 8);
    await page.click('[data-action=more]');
    assert.equal(await page.locator('[data-event-type]:visible').count(), 15);
  });
});

describe('other ways', () => {
  test('redirect_returns_and_waits_for_the_webhook', async () => {
    await open();
    await page.click('[data-action=redirect]');
    await page.waitForURL(/\/checkout#publishable_key=/);
    await page.click('[data-action=pay]');
    await page.waitForURL(/\/demo\?paid&gate_session_id=/);
    await decision('paid');
    await page
      .locator('#returned[data-returned=paid]')
      .getByText('Welcome back. Your server says: completed.')
      .waitFor();
    assert.deepEqual(problems, []);
  });

  test('cancelled_redirect_returns_too', async () => {
    await open();
    await page.click('[data-action=redirect]');
    await page.waitForURL(/\/checkout/);
    await page.click('[data-action=cancel]');
    await page.waitForURL(/\/demo\?cancelled&gate_session_id=/);
    await decision('over');
    await page
      .locator('#returned[data-returned=cancelled]')
      .getByText('Your server says: cancelled or expired.')
      .waitFor();
  });

  test('forged_return_decides_nothing', async () => {
    demo.log.emit('gate_session.completed', { id: 'gs_test_other', object: 'gate_session' });
    await open('/demo?paid&gate_session_id=gs_test_forged');
    await page.waitForSelector('[data-event-type]');
    await page.locator('#returned[data-returned=paid]').getByText('Your server says: waiting for the event.').waitFor();
    assert.equal(await page.getAttribute('#decision', 'data-decision'), 'waiting');
  });

  test('link_is_shown_and_pays_in_another_tab', async () => {
    await open();
    await page.click('[data-action=link]');
    await page.waitForSelector('#link-box', { state: 'visible' });
    const url = await page.inputValue('[name=url]');
    assert.ok(url.startsWith(`${demo.widget.origin}/checkout#`), url);
    const [tab] = await Promise.all([page.context().waitForEvent('page'), page.click('[data-action=open-link]')]);
    await tab.click('[data-action=pay]');
    await decision('paid');
  });

  test('browser_history_returns_to_a_usable_page', async () => {
    await open();
    await page.click('[data-action=redirect]');
    await page.waitForURL(/\/checkout/);
    await page.goBack();
    await page.waitForSelector('[data-action=embed]:enabled');
  });
});

describe('failures', () => {
  test('refused_order_shows_code_and_message', async () => {
    demo.state.refuse = envelope('amount_out_of_range', 'The amount is too large.', 400);
    await open();
    await page.click('[data-action=embed]');
    const alert = page.locator('#order-error[role=alert][data-code=amount_out_of_range]');
    assert.ok((await alert.textContent()).includes('The amount is too large.'));
    demo.state.refuse = undefined;
    await page.click('[data-action=embed]');
    await decision('waiting');
    assert.equal(await page.isVisible('#order-error'), false);
  });

  test('refused_start_of_the_widget_is_shown', async () => {
    demo.gate.respond = () => [403, envelope('client_secret_invalid', 'The client secret is wrong.', 403)];
    await open();
    await page.click('[data-action=embed]');
    await page.waitForSelector('#checkout-error[data-code=client_secret_invalid]');
    demo.gate.respond = () => [403, envelope('organization_suspended', 'The organization is suspended.', 403)];
    await page.click('[data-action=embed]');
    await page.waitForSelector('#checkout-error[data-code=organization_suspended]');
  });

  test('missing_sdk_is_explained_before_an_order_is_created', async () => {
    await page.route('**/gate.js', (route) => route.abort());
    await open();
    for (const action of ['embed', 'redirect']) {
      await page.click(`[data-action=${action}]`);
      assert.ok((await page.textContent('#order-error[data-code=sdk_missing]')).includes(demo.widget.origin));
    }
    assert.deepEqual(demo.state.orders, []);
  });

  test('lost_backend_reconnects_without_losing_events', async () => {
    await open();
    demo.state.isUnreachable = true;
    demo.log.emit('webhook.test', { id: 'whe_1' });
    await page.locator('[data-live=false]').getByText('Paused').waitFor();
    demo.log.emit('webhook.test', { id: 'whe_2' });
    demo.state.isUnreachable = false;
    await page.waitForFunction(() => document.querySelectorAll('[data-event-type]').length === 2);
    await page.waitForSelector('[data-live=true]');
  });

  test('restarted_backend_begins_a_new_list', async () => {
    demo.log.emit('webhook.test', { id: 'whe_1' });
    demo.log.emit('webhook.test', { id: 'whe_2' });
    await open();
    await page.waitForSelector('[data-sequence="2"]');
    demo.log.events.length = 0;
    demo.log.emit('webhook.test', { id: 'whe_new' });
    await page.waitForFunction(() => document.querySelectorAll('[data-event-type]').length === 1);
    assert.ok((await page.textContent('#feed')).includes('whe_new'));
  });
});

describe('code', () => {
  test('examples_follow_the_order_and_can_be_copied', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    // The time for which a button says that it has copied.
    await stretch(page, 1600);
    await open();
    await page.selectOption('[name=outcome]', '33');
    await page.check('[name=flow][value=swap]');
    const server = page.locator('.snippet').first();
    assert.match(await server.textContent(), /amount: '250\.33'[\s\S]*flow: 'swap'/);
    await page.locator('[data-action=copy]').nth(1).click();
    await page.getByText('Copied').waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.includes(`src="${demo.widget.origin}/gate.js"`) && copied.includes('new GateRamp'), copied);
    await page.check('[name=way][value=link]');
    assert.equal(await page.locator('.snippet').count(), 2);
  });
});

describe('presentation', () => {
  const WIDTHS = [320, 360, 390, 900, 1280, 1440];
  /** The narrow and the wide layout; the widths between have the rules of one of them. */
  const AXE_WIDTHS = [360, 1280];

  /** Checks the page for sideways scrolling at all widths, and with axe in both layouts. */
  async function check(state) {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      assert.equal(
        await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
        0,
        `${state} scrolls sideways at ${width} px`,
      );
      if (AXE_WIDTHS.includes(width)) {
        const { violations } = await page.evaluate(
          (values) =>
            axe.run(document, {
              iframes: false,
              preload: false,
              resultTypes: ['violations'],
              runOnly: { type: 'tag', values },
            }),
          AXE_TAGS,
        );
        const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
        assert.deepEqual(found, [], `${state} at ${width} px`);
      }
    }
  }

  for (const colorScheme of ['light', 'dark']) {
    test(`axe_finds_nothing_in_${colorScheme}_and_nothing_scrolls_sideways`, async () => {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await open('/demo?paid');
      // The page's policy forbids inline scripts; an evaluated text is not one.
      await page.evaluate(AXE);
      await check('start');
      await page.click('[data-action=link]');
      await decision('waiting');
      await page.waitForSelector('#link-box', { state: 'visible' });
      await check('link');
      await page.click('[data-action=embed]');
      await widget().locator('[data-action=pay]').click();
      await decision('paid');
      await page.locator('[data-event-type] summary').first().click();
      await page.click('#callbacks summary');
      await check('paid');
      demo.state.refuse = envelope('amount_out_of_range', 'The amount is too large.', 400);
      await page.click('[data-action=embed]');
      await page.waitForSelector('#order-error[data-code]');
      await check('refused');
    });
  }

  test('pay_buttons_are_in_sight_on_a_laptop', async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await open();
    for (const action of ['embed', 'redirect', 'link']) {
      const { y, height } = await page.locator(`[data-action=${action}]`).boundingBox();
      assert.ok(y + height <= 800, `${action} ends at ${y + height} px`);
    }
  });

  for (const [action, selector] of [
    ['embed', '#ramp iframe'],
    ['link', '#link-box'],
  ]) {
    test(`${action}_opens_in_sight_of_a_page_that_was_scrolled`, async () => {
      await page.setViewportSize({ width: 1280, height: 800 });
      await open();
      await page.evaluate(() => window.scrollTo(0, 400));
      await page.click(`[data-action=${action}]`);
      await page.waitForSelector(selector);
      await page.waitForFunction((opened) => {
        const { top, bottom } = document.querySelector(opened).getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
      }, selector);
    });
  }

  test('order_is_paid_by_keyboard_alone', async () => {
    await open();
    await page.focus('[name=amount]');
    await page.keyboard.press('Enter');
    await decision('waiting');
    await widget().locator('[data-action=pay]:enabled').focus();
    await page.keyboard.press('Enter');
    await decision('paid');
    const oldest = page.locator('[data-event-type="gate_session.created"]');
    await oldest.locator('summary').focus();
    await page.keyboard.press('Enter');
    assert.ok(await oldest.locator('pre').isVisible());
  });

  test('page_loads_nothing_from_other_origins', async () => {
    const origins = new Set();
    page.on('request', (request) => request.url().startsWith('http') && origins.add(new URL(request.url()).origin));
    await open();
    await page.click('[data-action=embed]');
    await widget().locator('[data-action=pay]').click();
    await decision('paid');
    assert.deepEqual([...origins].sort(), [demo.shop.origin, demo.widget.origin, demo.gate.origin].sort());
  });
});
