// The link of the README, and the way back to a shop: an address that anyone can write tells a shop nothing that its own server does
// not know.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sampleOf } from '../samples.mjs';
import {
  act,
  createSession,
  decision,
  DOCS_SHOP,
  eventsOf,
  expectRecords,
  launchBrowser,
  newPage,
  openShop,
  order,
  sandbox,
  step,
  walk,
} from './shop.mjs';

const MADE_UP = 'gs_test_01KSFVT4Z2V6B9C1D3F5G7H8JK';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

async function pay(page) {
  await walk(page, 'confirm');
  await act(page, 'pay');
  await step(page, 'done');
}

/** A module that reports the free port on which the program of its process listens. */
const REPORT_PORT = `data:text/javascript,${encodeURIComponent(`
  import { Server } from 'node:net';
  const { listen } = Server.prototype;
  Server.prototype.listen = function listenAndReport(...args) {
    this.once('listening', () => process.send(this.address().port));
    return listen.apply(this, args);
  };
`)}`;

/** Runs the shop of `docs/embedding.md` as the page shows it. Returns `get(path)` of the shop, and `stop()`. */
async function startDocsShop() {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-docs-shop-'));
  writeFileSync(join(folder, 'shop.mjs'), sampleOf('docs/embedding.md', 'shop'));
  const env = { ...process.env, SECRET_KEY: sandbox.secret_key, GATE: sandbox.gate_base_url, PORT: '0' };
  const stdio = ['ignore', 'ignore', 'ignore', 'ipc'];
  const shop = spawn(process.execPath, ['--import', REPORT_PORT, join(folder, 'shop.mjs')], { env, stdio });
  const ended = new Promise((resolve) => {
    shop.once('exit', resolve);
  });
  const [port] = await Promise.race([
    once(shop, 'message'),
    ended.then((code) => assert.fail(`The shop has ended: ${code}`)),
  ]);
  return {
    get: (path) => fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual' }),
    async stop() {
      shop.kill();
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

test('link that the curl of the README prints is paid', async () => {
  const env = { ...process.env, GATE: sandbox.gate_base_url, SK: sandbox.secret_key, QUOTE: crypto.randomUUID() };
  const printed = execFileSync('bash', ['-euo', 'pipefail', '-c', sampleOf('README.md', 'link')], {
    env,
    encoding: 'utf8',
  });
  const [response, link, ...rest] = printed.trim().split('\n');
  assert.deepEqual(rest, []);
  const page = await newPage(browser);
  await page.goto(link);
  await pay(page);
  await expectRecords(JSON.parse(response).id, 'completed', 'on_ramp completed 100.00');
  await page.context().close();
});

test('shop of the documentation asks its own server about the customer who comes back', async () => {
  const shop = await startDocsShop();
  try {
    const bought = await shop.get('/buy');
    assert.equal(bought.status, 303);
    const page = await newPage(browser);
    // The sandbox allows this origin, and the shop listens on a free port.
    await page.route(`${DOCS_SHOP}/**`, async (route) => {
      const { pathname, search } = new URL(route.request().url());
      const answer = await shop.get(pathname + search);
      await route.fulfill({ status: answer.status, contentType: 'text/plain', body: await answer.text() });
    });
    await page.goto(bought.headers.get('location'));
    await pay(page);
    await act(page, 'return');
    await page.waitForURL((url) => url.origin === DOCS_SHOP);
    const back = new URL(page.url());
    const session = back.searchParams.get('gate_session_id');
    await expectRecords(session, 'completed', 'on_ramp completed 100.00');
    const paid = await (await shop.get(back.pathname + back.search)).text();
    assert.equal(await page.textContent('body'), paid);

    const second = await shop.get('/buy');
    const [open] = /gs_test_[0-9A-Z]+/.exec(second.headers.get('location'));
    const { id: foreign } = await createSession({});
    assert.notEqual(await (await shop.get(`/done?gate_session_id=${open}`)).text(), paid);
    for (const claimed of [MADE_UP, foreign, `${session}x`, '']) {
      assert.equal((await shop.get(`/done?gate_session_id=${claimed}`)).status, 404, claimed);
    }
    await page.context().close();
  } finally {
    await shop.stop();
  }
});

test('demo shop ships nothing for a session that an address makes up', async () => {
  const page = await openShop(browser);
  await page.goto(`${sandbox.demo_shop_url}?paid&gate_session_id=${MADE_UP}`);
  await decision(page, 'waiting');
  const other = await openShop(browser);
  const { session_id: session, url } = await order(other, { way: 'link' });
  const tab = await other.context().newPage();
  await tab.goto(url);
  await pay(tab);
  await decision(other, 'paid');
  // The shop has received the events of another session meanwhile.
  await page
    .locator(`[data-event-type="gate_session.completed"][data-session="${session}"]`)
    .waitFor({ state: 'attached' });
  await decision(page, 'waiting');
  assert.deepEqual(await eventsOf(page, MADE_UP), []);
  await page.context().close();
  await other.context().close();
});
