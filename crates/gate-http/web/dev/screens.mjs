// Walks to every screen of the built widget. The suite of the modes and the pictures visit the same screens.

import { newPage } from '../test/browser.mjs';
import { CARD, SEPA } from './catalogue.mjs';

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const IBAN = 'DE89370400440532013000';
const ACH = { id: 'ach', name: 'ACH transfer', currency: 'USD', account: 'us' };
const FASTER_PAYMENTS = { id: 'faster_payments', name: 'Faster Payments', currency: 'GBP', account: 'uk' };
export const BRANDING = {
  brand_name: 'Northwind Goods',
  primary_color: '#12725B',
  secondary_color: '#10312B',
  accent_color: '#E9B44C',
};
const MERCHANT = {
  legal_name: 'Northwind Goods GmbH',
  support_url: 'https://shop.example/help',
  terms_url: 'https://shop.example/terms',
  privacy_url: 'https://shop.example/privacy',
};

const step = (page, name) => page.waitForSelector(`[data-step="${name}"]`);
const act = (page, name) => page.click(`[data-action="${name}"]:not([aria-disabled="true"])`);

/** Leaves requests of this path without a response, until the returned function lets them go on. */
async function hold(page, path) {
  const held = [];
  await page.route(path, (route) => void held.push(route));
  return async () => {
    await Promise.all(held.splice(0).map((route) => route.continue()));
    await page.unroute(path);
  };
}

async function fillDetails(page, side) {
  await step(page, 'choose');
  await act(page, 'continue');
  await step(page, 'details');
  if (side === 'off_ramp') await page.fill('[name="iban"]', IBAN);
  else await page.fill('[name="wallet_address"]', WALLET);
  await page.waitForSelector('.fine');
}

async function price(page) {
  await act(page, 'continue');
  await step(page, 'price');
  await page.waitForSelector('.receipt');
}

async function confirm(page) {
  await act(page, 'continue');
  await step(page, 'confirm');
}

async function pay(page) {
  await act(page, 'pay');
  await step(page, 'instructions');
}

/** Walks through the draft to the step `confirm`. */
async function draft(page, side) {
  await fillDetails(page, side);
  await price(page);
  await confirm(page);
}

async function progress(page) {
  await act(page, 'continue');
  await step(page, 'progress');
}

async function end(page, simulation, name) {
  simulation.finish();
  await step(page, name);
}

/** Lets the gate end the session without a payment. */
function close(simulation, status) {
  simulation.session.status = status;
  simulation.changed();
}

/** Lets the price change when it is renewed. */
async function changePrice(page, simulation, rate) {
  Object.assign(simulation, { rate, quoteSeconds: 60 });
  await page.waitForSelector('[data-code="price_changed"]');
}

/** Asks whether to cancel. */
async function ask(page) {
  await act(page, 'cancel');
  await page.waitForSelector('.ask');
}
const keepGoing = (page) => page.click('.ask button');
const cancel = (page) => page.click('.ask [data-action="cancel"]');

/** Walks from the details of a sale or a swap to its instructions, and then until a part has arrived. */
async function trade({ page, simulation, look }, side, name) {
  await fillDetails(page, side);
  await look(`details-${name}`);
  await price(page);
  await look(`price-${name}`);
  await confirm(page);
  await look(`confirm-${name}`);
  await pay(page);
  await page.waitForSelector('.qr');
  await look(`instructions-${name}`);
  simulation.receive('0.001');
  await page.waitForSelector('.note.warn');
  await look(`part-${name}`);
  await progress(page);
  await look(`progress-${name}`);
}

/** Each visit: the settings of its session, and the way through its screens. `look` sees a screen under its name. */
export const VISITS = [
  [
    { flow: null },
    async ({ page, simulation, look }) => {
      await step(page, 'choose');
      await look('choose');
      for (const [side, name] of [
        ['off_ramp', 'choose-sale'],
        ['swap', 'choose-swap'],
        ['on_ramp', null],
      ]) {
        await page.click(`[data-flow="${side}"]`);
        await page.waitForSelector(`[data-flow="${side}"][aria-selected="true"]`);
        if (name) await look(name);
      }
      await ask(page);
      await look('cancel-question');
      await keepGoing(page);
      await act(page, 'continue');
      await step(page, 'details');
      await look('details-empty');
      await page.fill('[name="wallet_address"]', 'EJRabPrwbZy45sbavfcjinPJC18kjpRTv8');
      await act(page, 'continue');
      await page.waitForSelector('.fault');
      await look('details-fault');
      await page.fill('[name="wallet_address"]', WALLET);
      await page.waitForSelector('.fine');
      await look('details');
      await price(page);
      await look('price');
      await confirm(page);
      await look('confirm');
      await pay(page);
      await look('instructions-test');
      await progress(page);
      await look('progress');
      await end(page, simulation, 'done');
      await look('done');
    },
  ],
  [
    { mode: 'live' },
    async ({ page, simulation, look }) => {
      await draft(page);
      await pay(page);
      await look('instructions');
      await page.evaluate(() => {
        navigator.clipboard.writeText = () => Promise.reject(new Error('The page may not copy.'));
        document.execCommand = () => false;
      });
      await page.click('[data-action="copy"]');
      await page.waitForSelector('.by-hand');
      await look('copy-by-hand');
      await ask(page);
      await look('cancel-unpaid-question');
      await keepGoing(page);
      await progress(page);
      await ask(page);
      await look('cancel-sent-question');
      await keepGoing(page);
      simulation.report({ pay_until: simulation.session.payment.created_at });
      await page.waitForSelector('.note.warn');
      await look('late');
      simulation.receive('300.00');
      await page.waitForSelector('.note.good');
      await look('more-arrived');
    },
  ],
  [
    { flow: 'off_ramp', mode: 'live' },
    async (visit) => {
      const { page, simulation, look } = visit;
      await trade(visit, 'off_ramp', 'sale');
      await end(page, simulation, 'done');
      await look('done-sale');
    },
  ],
  [
    // The first payment fails.
    { amount: '250.31', flow: 'swap' },
    async (visit) => {
      const { page, simulation, look } = visit;
      await trade(visit, 'swap', 'swap');
      await end(page, simulation, 'failed');
      await look('failed-swap');
      await act(page, 'retry');
      await step(page, 'price');
      await page.waitForSelector('.receipt');
      await confirm(page);
      await pay(page);
      await end(page, simulation, 'done');
      await look('done-swap');
    },
  ],
  [
    { flow: 'off_ramp', currency: 'USD', methods: [ACH, FASTER_PAYMENTS] },
    async ({ page, look }) => {
      await step(page, 'choose');
      await act(page, 'continue');
      await step(page, 'details');
      await act(page, 'continue');
      await page.waitForSelector('.fault');
      await look('details-us');
      await page.check('[value="faster_payments"]');
      await page.fill('[name="sort_code"]', '20-00-00');
      await look('details-uk');
      await page.fill('[name="account_number"]', '55779911');
      await page.fill('[name="account_holder"]', 'Ada Example');
      await price(page);
      await confirm(page);
      await look('confirm-uk');
    },
  ],
  [
    {},
    async ({ page, simulation, look }) => {
      await fillDetails(page);
      const release = await hold(page, '**/quotes');
      await act(page, 'continue');
      await page.waitForSelector('.ghost');
      await look('price-loading', { isLoading: true });
      simulation.refusals = { 'POST /quotes': [[409, 'rate_unavailable']] };
      await release();
      await page.waitForSelector('[data-code="rate_unavailable"]');
      await look('price-none');
      simulation.quoteSeconds = 11;
      await act(page, 'retry');
      await page.waitForSelector('.receipt');
      await changePrice(page, simulation, 1.0004613);
      await look('price-changed');
      simulation.quoteSeconds = 11;
      await act(page, 'back');
      await step(page, 'details');
      await price(page);
      await confirm(page);
      await changePrice(page, simulation, 0.9995);
      await look('confirm-changed');
      simulation.refusals = { 'POST /payments': [[400, 'invalid_request']] };
      await act(page, 'pay');
      await page.waitForSelector('[data-code="invalid_request"]');
      await look('confirm-refused');
      await page.route('**/payments', async (route) => {
        await page.context().setOffline(true);
        await route.abort();
      });
      await act(page, 'pay');
      await step(page, 'offline');
      await look('checking');
    },
  ],
  [
    { amount: '250.61', verifyBy: 'url' },
    async ({ page, simulation, look }) => {
      await fillDetails(page);
      await price(page);
      await act(page, 'continue');
      await step(page, 'verification');
      await look('verification');
      await act(page, 'continue');
      await page.waitForSelector('a.main');
      await look('verification-link');
      await page.context().route('https://verify.example/**', (route) => route.fulfill({ body: '' }));
      await page.click('a.main');
      await page.waitForSelector('.waiting');
      await page.bringToFront();
      await look('verification-open');
      simulation.decide('rejected');
      await page.waitForSelector('[data-code="verification_rejected"]');
      await look('verification-rejected');
    },
  ],
  [
    { amount: '250.63' },
    async ({ page, simulation, look }) => {
      await fillDetails(page);
      await price(page);
      await act(page, 'continue');
      await step(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('.waiting');
      await look('verification-pending');
      close(simulation, 'completed');
      await step(page, 'done');
      await look('over-closed');
    },
  ],
  [
    { amount: '250.61', verifyBy: 'form' },
    async ({ page, simulation, look }) => {
      await fillDetails(page);
      await price(page);
      await act(page, 'continue');
      await step(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('[name="full_name"]');
      await look('verification-form');
      close(simulation, 'expired');
      await step(page, 'over');
      await look('over');
    },
  ],
  [
    { amount: '250.31', instructions: { type: 'redirect', url: 'https://pay.example/' } },
    async ({ page, simulation, look }) => {
      await draft(page);
      const release = await hold(page, '**/payments');
      await act(page, 'pay');
      await page.waitForSelector('.main .sign.wait');
      await look('confirm-busy');
      await release();
      await step(page, 'instructions');
      await look('instructions-redirect');
      await progress(page);
      await look('progress-redirect');
      await end(page, simulation, 'failed');
      await look('failed');
      simulation.report({ id: 'pay_test_01KB8Z3N5V6Q7R8S9T0V1W2X3Y', status: 'cancelled' }, { status: 'expired' });
      await step(page, 'over');
      await look('over-reference');
    },
  ],
  ...['on_ramp', 'off_ramp'].map((flow) => [
    // A payment of the sandbox that never ends by itself.
    { isSandbox: true, amount: '250.34', flow },
    async ({ page, look }) => {
      await draft(page, flow);
      await pay(page);
      await look(`instructions-pretend-${flow === 'on_ramp' ? 'bank' : 'sale'}`);
    },
  ]),
  [
    { cancel_url: null },
    async ({ page, look }) => {
      await draft(page);
      await pay(page);
      await ask(page);
      await cancel(page);
      await step(page, 'price');
      await page.waitForSelector('.receipt');
      await look('cancelled');
      await page.context().setOffline(true);
      await step(page, 'offline');
      await look('offline');
      await page.context().setOffline(false);
      await step(page, 'price');
      await act(page, 'back');
      await step(page, 'details');
      await act(page, 'back');
      await step(page, 'choose');
      await ask(page);
      await cancel(page);
      await step(page, 'over');
      await look('over-cancelled');
    },
  ],
  [
    {
      branding: { ...BRANDING, brand_name: 'Northwind Goods for Gardens, Boats, Bicycles and Other Passions' },
      amount: '98765.43',
      wallet_address: WALLET,
      target_token: 'BTC',
      target_network: 'bitcoin',
    },
    async ({ page, simulation, look }) => {
      await step(page, 'choose');
      await look('long-name');
      await act(page, 'continue');
      await step(page, 'details');
      await look('details-fixed');
      await price(page);
      await look('price-high');
      await confirm(page);
      await look('confirm-high');
      simulation.dead = true;
      await act(page, 'pay');
      await step(page, 'over');
      await look('over-token');
    },
  ],
  [
    {},
    async ({ page, gate, simulation, look }) => {
      await step(page, 'choose');
      await page.goto(`${gate.origin}/checkout?#publishable_key=pk_test_docs`);
      await step(page, 'unavailable');
      await look('unavailable-link');
      simulation.unavailable = 'country_not_supported';
      const release = await hold(page, '**/bootstrap');
      await open(page, gate);
      await page.waitForSelector('.ghost');
      await look('loading', { isLoading: true });
      await release();
      await step(page, 'unavailable');
      await look('unavailable');
      await page.route('**/bootstrap', (route) => route.fulfill({ status: 503, json: {} }));
      await open(page, gate);
      await step(page, 'offline');
      await look('busy');
    },
  ],
];

let opened = 0;
/** The query makes each address a new page. */
const open = (page, { origin }) =>
  page.goto(`${origin}/checkout?${++opened}#publishable_key=pk_test_docs&client_secret=gsec_docs`);

/** Leaves nothing of the last visit to the next one. A page of its own for each would cost more than most visits. */
async function clear(page) {
  await page.context().setOffline(false);
  await page.unrouteAll();
  if (page.url() !== 'about:blank') await page.evaluate(() => sessionStorage.clear());
}

/** Shortens the pause before the page asks for the next change of its session. */
function hurry() {
  const { setTimeout } = window;
  window.setTimeout = (run, delay, ...rest) => setTimeout(run, delay === 1000 ? 20 : delay, ...rest);
}

/** Walks through all visits with one gate, in a page with these options. `look(page, name, { isLoading })` sees each screen. */
export async function visitScreens(browser, gate, { settings, ...options }, look) {
  const page = await newPage(browser, options);
  await page.addInitScript(hurry);
  for (const [own, visit] of VISITS) {
    gate.use({
      amount: '250.00',
      flow: 'on_ramp',
      holdMs: null,
      methods: [SEPA, CARD],
      branding: BRANDING,
      merchant: MERCHANT,
      returnUrl: `${gate.origin}/shop`,
      ...settings,
      ...own,
    });
    await clear(page);
    await open(page, gate);
    const seen = (name, { isLoading = false } = {}) => look(page, name, { isLoading });
    await visit({ page, gate, simulation: gate.simulation, look: seen });
  }
  await page.context().close();
}
