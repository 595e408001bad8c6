import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CARD, SEPA } from '../../dev/catalogue.mjs';
import { act, giveUp, open, step, until, WALLET, walk } from './driving.mjs';

let stage;
before(async () => {
  stage = await open();
});
after(() => stage.close());

async function checkout(settings, options) {
  const page = await stage.page(settings, options);
  await page.goto(stage.checkout);
  return page;
}

async function pay(page) {
  await act(page, 'pay');
  await step(page, 'instructions');
}

for (const side of ['on_ramp', 'off_ramp', 'swap']) {
  test(`${side} reaches done and returns to the shop`, async () => {
    const page = await checkout({ returnUrl: `${stage.server.origin}/shop` });
    await walk(page, 'confirm', side);
    await pay(page);
    stage.server.simulation.finish();
    await step(page, 'done');
    assert.equal(stage.server.simulation.payments.length, 1);
    assert.equal(stage.server.simulation.payments[0].side, side);
    await act(page, 'return');
    await page.waitForURL(/\/shop\?gate_session_id=gs_simulation/);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });
}

test('secret leaves the address bar and reaches no storage', async () => {
  const page = await checkout();
  await step(page, 'choose');
  assert.ok(!page.url().includes('#'));
  const kept = await page.evaluate(() => ({ ...sessionStorage }));
  assert.deepEqual(Object.keys(kept).sort(), ['penstock.draft.gs_simulation', 'penstock.token.gs_simulation']);
  const told = JSON.stringify([kept, await page.evaluate(() => globalThis.history.state)]);
  assert.ok(!told.includes('gsec_'), told);
  assert.equal(stage.server.simulation.counts['POST /bootstrap'], 1);
  assert.equal(stage.server.simulation.counts['GET /session'], 1);
  await page.context().close();
});

test('reload before the gate has answered goes on with the same link', async () => {
  const page = await stage.page();
  await page.route('**/v1/embed/bootstrap', (route) => route.fulfill({ status: 503, json: {} }));
  await page.goto(stage.checkout);
  await page.waitForSelector('[data-step="offline"]');
  assert.equal(await page.textContent('h1'), 'Not available right now');
  assert.ok(!page.url().includes('#'));
  await page.unroute('**/v1/embed/bootstrap');
  await page.reload();
  await step(page, 'choose');
  await page.context().close();
});

for (const [side, written] of [
  ['on_ramp', /at €1 = [\d.]+\sUSDC$/],
  ['off_ramp', /at 1\sUSDC = €[\d.]+$/],
  ['swap', /at 1\sBTC = [\d,.]+\sUSDC$/],
]) {
  test(`rate of ${side} is what one unit of the input gives`, async () => {
    const page = await checkout();
    await walk(page, 'price', side);
    const rate = await page.textContent('.rate');
    assert.match(rate, written);
    await page.context().close();
  });
}

for (const [goal, shown] of [
  ['choose', 'choose'],
  ['details', 'details'],
  ['price', 'price'],
  ['confirm', 'price'],
]) {
  test(`reload at ${goal} goes on at ${shown}, in the same session`, async () => {
    const page = await checkout();
    await walk(page, goal);
    await page.reload();
    await step(page, shown);
    if (shown === 'price') await page.waitForSelector('.receipt');
    assert.equal(stage.server.simulation.counts['POST /bootstrap'], 1);
    assert.equal(stage.server.simulation.payments.length, 0);
    await page.context().close();
  });
}

test('what was chosen and typed is there again after a reload, and after the link is opened again', async () => {
  const page = await checkout({ methods: [SEPA, CARD] });
  const form = () => page.$eval('form', (element) => Object.fromEntries(new FormData(element)));
  await walk(page, 'details');
  await page.selectOption('[name="network"]', 'ethereum');
  await page.check('[value="card"]');
  await page.fill('[name="wallet_address"]', WALLET);
  const filled = await form();
  await page.reload();
  await step(page, 'details');
  assert.deepEqual(await form(), filled);
  await page.goto('about:blank');
  await page.goto(stage.checkout);
  await step(page, 'details');
  assert.deepEqual(await form(), filled);
  await act(page, 'continue');
  await page.waitForSelector('[data-step="price"] .receipt');
  await page.reload();
  await page.waitForSelector('[data-step="price"] .receipt');
  assert.equal(stage.server.simulation.quote.payment_method, 'card');
  await page.context().close();
});

test('account of a sale is not kept', async () => {
  const page = await checkout();
  await walk(page, 'price', 'off_ramp');
  const kept = await page.evaluate(() => JSON.stringify(sessionStorage));
  assert.ok(!kept.includes('DE89370400440532013000') && !kept.includes('Ada Example'));
  await page.reload();
  await step(page, 'details');
  assert.equal(await page.inputValue('[name="iban"]'), '');
  await page.context().close();
});

test('link of a paid session shows its receipt, with the whole address in the tab that paid', async () => {
  const page = await checkout();
  await walk(page, 'confirm');
  await pay(page);
  stage.server.simulation.finish();
  await step(page, 'done');
  const rows = (one) => one.textContent('.rows');
  const receipt = await rows(page);
  assert.ok(receipt.includes(WALLET));
  assert.equal(await page.evaluate(() => sessionStorage.getItem('penstock.draft.gs_simulation')), null);
  for (const open of [() => page.reload(), () => page.goto('about:blank').then(() => page.goto(stage.checkout))]) {
    await open();
    await step(page, 'done');
    assert.equal(await rows(page), receipt);
  }
  // Another browser has the link alone.
  const context = await stage.browser.newContext({ locale: 'en-GB' });
  const other = await context.newPage();
  await other.goto(stage.checkout);
  await step(other, 'done');
  const short = `${WALLET.slice(0, 6)}…${WALLET.slice(-4)}`;
  assert.equal(await rows(other), receipt.replace(WALLET, short));
  assert.match(await other.title(), /^Test: .* – North Shop$/);
  await act(other, 'return');
  await other.waitForURL(`${stage.server.origin}/shop?gate_session_id=gs_simulation`);
  await context.close();
  await page.context().close();
});

test('link of a session that ended without a payment says so, and leads back', async () => {
  const page = await checkout();
  stage.server.simulation.session.status = 'expired';
  await page.goto('about:blank');
  await page.goto(stage.checkout);
  await page.waitForSelector('[data-step="over"] [data-code="session_expired"]');
  assert.equal(await page.textContent('h1'), 'This payment has expired');
  assert.match(await page.textContent('.who'), /North Shop/);
  await act(page, 'return');
  await page.waitForURL(`${stage.server.origin}/shop?gate_session_id=gs_simulation`);
  await page.context().close();
});

test('page that is opened without its link says that the link is incomplete', async () => {
  const page = await stage.page({});
  await page.goto(`${stage.server.origin}/checkout`);
  await page.waitForSelector('[data-step="unavailable"] [data-code="link_incomplete"]');
  assert.match(await page.title(), /^Test: /);
  await page.context().close();
});

test('reload at instructions shows the same payment', async () => {
  const page = await checkout({});
  await walk(page, 'confirm');
  await pay(page);
  await page.reload();
  await step(page, 'instructions');
  await act(page, 'continue');
  await step(page, 'progress');
  stage.server.simulation.finish();
  await step(page, 'done');
  assert.equal(stage.server.simulation.payments.length, 1);
  await page.context().close();
});

test('verification approves, rejects and waits as the amount says', async () => {
  for (const [fraction, outcome] of [
    ['61', 'confirm'],
    ['63', 'confirm'],
    ['62', 'verification'],
  ]) {
    const page = await checkout({ amount: `100.${fraction}`, returnUrl: `${stage.server.origin}/shop` });
    await walk(page, 'verification');
    await act(page, 'continue');
    if (fraction === '63') {
      await until(() => stage.server.simulation.session.verification.status === 'pending');
      stage.server.simulation.decide('approved');
    }
    await step(page, outcome);
    if (fraction === '62') {
      await page.waitForSelector('[data-code="verification_rejected"]');
      assert.equal(await page.locator('[data-action="return"]').count(), 1);
    }
    await page.context().close();
  }
});

test('cancel ends a payment under way and an open session', async () => {
  const page = await checkout({ amount: '100.33' });
  await walk(page, 'confirm');
  await pay(page);
  await giveUp(page);
  await page.waitForSelector('[data-step="price"] [data-code="payment_cancelled"]');
  await page.waitForSelector('.receipt');
  assert.equal(stage.server.simulation.payments.length, 1);
  await page.reload();
  await page.waitForSelector('[data-step="price"] .receipt');
  await act(page, 'back');
  await step(page, 'details');
  await act(page, 'back');
  await step(page, 'choose');
  await giveUp(page);
  await page.waitForURL(`${stage.server.origin}/shop?gate_session_id=*`);
  assert.equal(stage.server.simulation.session.status, 'cancelled');
  await page.context().close();
});

test('dead token, unavailable corridor and lost connection have their screens', async () => {
  const page = await checkout();
  await step(page, 'choose');
  await page.context().setOffline(true);
  await step(page, 'offline');
  await page.context().setOffline(false);
  await step(page, 'choose');
  stage.server.simulation.dead = true;
  await page.reload();
  await page.waitForSelector('[data-step="over"] [data-code="unauthorized"]');
  stage.server.use({});
  stage.server.simulation.unavailable = 'country_not_supported';
  await page.goto(`${stage.server.origin}/shop`);
  await page.goto(stage.checkout);
  await page.waitForSelector('[data-step="unavailable"] [data-code="country_not_supported"]');
  await page.context().close();
});

test('wallet address of another network is refused with a plain warning', async () => {
  const page = await checkout();
  await walk(page, 'details');
  await page.fill('[name="wallet_address"]', 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq');
  await act(page, 'continue');
  await page.waitForSelector('[data-code="invalid_address"]');
  assert.equal(await page.locator('[data-step="details"]').count(), 1);
  await page.context().close();
});

test('language of the browser is loaded', async () => {
  const page = await checkout({}, { locale: 'de-DE' });
  await page.waitForSelector('text=Weiter');
  assert.equal(await page.getAttribute('html', 'lang'), 'de-DE');
  await page.context().close();
});

test('lost request of the later screens leaves the first ones, and the customer pays', async () => {
  const page = await stage.page();
  const lost = new Promise((resolve) => {
    const abort = (route) => {
      resolve();
      return route.abort('connectionfailed');
    };
    void page.route('**/assets/later-*.js', abort, { times: 1 });
  });
  await page.goto(stage.checkout);
  await lost;
  // A browser that remembers the failure reloads the page, which goes on with what was chosen.
  await walk(page, 'confirm');
  await pay(page);
  assert.equal(stage.server.simulation.payments.length, 1);
  assert.deepEqual(page.errors, []);
  await page.context().close();
});

test('reload after a lost answer shows the payment and never pays again', async () => {
  const page = await checkout({});
  let reached;
  const paid = new Promise((resolve) => {
    reached = resolve;
  });
  await page.route('**/v1/embed/payments', async (route) => {
    await route.fetch();
    reached();
  });
  await walk(page, 'confirm');
  await act(page, 'pay');
  await paid;
  assert.match(await page.evaluate(() => sessionStorage.getItem('penstock.intent.gs_simulation')), /^[0-9a-f]{32}$/);
  await page.reload();
  await step(page, 'instructions');
  assert.equal(stage.server.simulation.payments.length, 1);
  assert.equal(await page.evaluate(() => sessionStorage.getItem('penstock.intent.gs_simulation')), null);
  await page.context().close();
});

test('key of an intent without known outcome is used again after a reload', async () => {
  const page = await checkout();
  let lost;
  const sent = new Promise((resolve) => {
    lost = resolve;
  });
  await page.route('**/v1/embed/payments', () => lost(), { times: 1 });
  await walk(page, 'confirm');
  await act(page, 'pay');
  await sent;
  const key = await page.evaluate(() => sessionStorage.getItem('penstock.intent.gs_simulation'));
  await page.reload();
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'instructions');
  assert.deepEqual([...stage.server.simulation.keys.keys()], [key]);
  await page.context().close();
});

test('key of a retry outlives a reload after the earlier failure', async () => {
  const page = await checkout({ amount: '100.31' });
  await walk(page, 'confirm');
  await pay(page);
  stage.server.simulation.finish();
  await step(page, 'failed');
  await act(page, 'retry');
  await step(page, 'price');
  await act(page, 'continue');
  await step(page, 'confirm');
  let lost;
  const sent = new Promise((resolve) => {
    lost = resolve;
  });
  await page.route('**/v1/embed/payments', (route) => lost(route.request().headers()['idempotency-key']), { times: 1 });
  await act(page, 'pay');
  const key = await sent;
  await page.reload();
  // The failure was answered before, so it is not shown again.
  await walk(page, 'confirm');
  await pay(page);
  const [first, second, ...others] = stage.server.simulation.keys.keys();
  assert.notEqual(first, key);
  assert.equal(second, key);
  assert.deepEqual(others, []);
  await page.context().close();
});

test('script in branding is shown as text and never runs', async () => {
  const page = await checkout({
    branding: {
      brand_name: '<img src=x onerror="window.hacked=1">',
      logo_url: 'javascript:window.hacked=1',
      primary_color: 'red;} body{display:none',
    },
  });
  await walk(page, 'price');
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('header img').count(), 0);
  assert.equal(await page.locator('header >> text=<img src=x').count(), 1);
  await page.context().close();
});

test('new token of the page revives a frame with a dead token', async () => {
  const page = await stage.page();
  await page.goto(`${stage.server.origin}/parent`);
  await page.evaluate(
    ([widget]) => {
      let tokens = 0;
      addEventListener('message', ({ data, source }) => {
        if (data.type === 'ready')
          source.postMessage(
            { penstock: 1, type: 'token', embed_token: `token-${tokens++}`, theme: 'light', locale: 'en' },
            widget,
          );
      });
      const frame = document.createElement('iframe');
      frame.id = 'widget';
      frame.src = `/embed?publishable_key=pk_test_x#parent_origin=${encodeURIComponent(location.origin)}`;
      document.body.append(frame);
    },
    [stage.server.origin],
  );
  await page.route('**/v1/embed/session', (route) =>
    route.request().headers()['x-embed-token'] === 'token-0'
      ? route.fulfill({ status: 401, json: { code: 'unauthorized' } })
      : route.continue(),
  );
  const frame = await (await page.$('#widget')).contentFrame();
  await step(frame, 'choose');
  await page.context().close();
});
