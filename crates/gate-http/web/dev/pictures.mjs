// Takes pictures of every step of the built widget: `node dev/pictures.mjs <folder>`. With `--docs`, the contact sheets of the docs.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launchBrowser, newPage } from '../test/browser.mjs';
import { CARD, SEPA, start } from './gate.mjs';

const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const BRANDING = {
  brand_name: 'Northwind Goods',
  primary_color: '#12725B',
  secondary_color: '#10312B',
  accent_color: '#E9B44C',
};
const folder = process.argv[2] ?? '/tmp/shots';
const isForDocs = process.argv.includes('--docs');

const step = (page, name) => page.waitForSelector(`[data-step="${name}"]`);
const act = (page, name) => page.click(`[data-action="${name}"]:not([aria-disabled="true"])`);

async function walk(page, goal, side = 'on_ramp') {
  await step(page, 'choose');
  const tab = page.locator(`[data-flow="${side}"]`);
  if (await tab.count()) await tab.click();
  if (goal === 'choose') return;
  await act(page, 'continue');
  await step(page, 'details');
  if (side === 'off_ramp') await page.fill('[name="iban"]', 'DE89370400440532013000');
  else await page.fill('[name="wallet_address"]', WALLET);
  if (goal === 'details') return;
  await act(page, 'continue');
  await step(page, 'price');
  await page.waitForSelector('.receipt');
  if (goal === 'price') return;
  await act(page, 'continue');
  await step(page, goal === 'verification' ? goal : 'confirm');
}

async function pay(page, side) {
  await walk(page, 'confirm', side);
  await act(page, 'pay');
  await step(page, 'instructions');
}

const bank = (page) => page.waitForSelector('.copyable');

/** Each picture: its name, the settings of the session, and the way to it. */
const PICTURES = [
  ['choose', { flow: null }, (page) => walk(page, 'choose')],
  ['details', {}, (page) => walk(page, 'details')],
  [
    'details-fault',
    {},
    async (page) => {
      await walk(page, 'details');
      await page.fill('[name="wallet_address"]', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t'.replace('T', 'E'));
      await act(page, 'continue');
      await page.waitForSelector('.fault');
    },
  ],
  ['details-sale', { flow: 'off_ramp' }, (page) => walk(page, 'details', 'off_ramp')],
  ['details-swap', { flow: 'swap' }, (page) => walk(page, 'details', 'swap')],
  ['price', {}, (page) => walk(page, 'price')],
  [
    'price-changed',
    { quoteSeconds: 11 },
    async (page, simulation) => {
      await walk(page, 'price');
      simulation.rate = 1.0004613;
      simulation.quoteSeconds = 60;
      await page.waitForSelector('[data-code="price_changed"]');
    },
  ],
  ['price-sale', { flow: 'off_ramp' }, (page) => walk(page, 'price', 'off_ramp')],
  ['price-swap', { flow: 'swap' }, (page) => walk(page, 'price', 'swap')],
  [
    'price-loading',
    {},
    async (page) => {
      await page.route('**/quotes', () => undefined);
      await walk(page, 'details');
      await act(page, 'continue');
      await page.waitForSelector('.ghost');
      await page.waitForTimeout(500);
    },
  ],
  [
    'price-none',
    {},
    async (page, simulation) => {
      simulation.refusals = { 'POST /quotes': [[409, 'rate_unavailable']] };
      await walk(page, 'details');
      await act(page, 'continue');
      await page.waitForSelector('[data-code="rate_unavailable"]');
    },
  ],
  ['verification', { amount: '250.61' }, (page) => walk(page, 'verification')],
  [
    'verification-link',
    { amount: '250.61', verifyBy: 'url' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('a.main');
    },
  ],
  [
    'verification-pending',
    { amount: '250.63' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('.waiting');
    },
  ],
  [
    'verification-rejected',
    { amount: '250.62' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('.note');
    },
  ],
  ['confirm', {}, (page) => walk(page, 'confirm')],
  ['confirm-sale', { flow: 'off_ramp' }, (page) => walk(page, 'confirm', 'off_ramp')],
  ['confirm-swap', { flow: 'swap' }, (page) => walk(page, 'confirm', 'swap')],
  [
    'instructions',
    { mode: 'live' },
    async (page) => {
      await pay(page);
      await bank(page);
    },
  ],
  [
    'instructions-sale',
    { mode: 'live', flow: 'off_ramp' },
    async (page) => {
      await pay(page, 'off_ramp');
      await page.waitForSelector('.qr');
    },
  ],
  ['instructions-redirect', { instructions: { type: 'redirect', url: 'https://pay.example/' } }, (page) => pay(page)],
  [
    'progress',
    {},
    async (page) => {
      await pay(page);
      await act(page, 'continue');
      await step(page, 'progress');
    },
  ],
  [
    'done',
    {},
    async (page, simulation) => {
      await pay(page);
      simulation.finish();
      await step(page, 'done');
    },
  ],
  [
    'done-sale',
    { flow: 'off_ramp' },
    async (page, simulation) => {
      await pay(page, 'off_ramp');
      simulation.finish();
      await step(page, 'done');
    },
  ],
  [
    'failed',
    { amount: '250.31' },
    async (page, simulation) => {
      await pay(page);
      simulation.finish();
      await step(page, 'failed');
    },
  ],
  [
    'cancelled',
    {},
    async (page) => {
      await pay(page);
      await act(page, 'cancel');
      await step(page, 'price');
      await page.waitForSelector('.receipt');
    },
  ],
  [
    'part-arrived',
    { flow: 'swap' },
    async (page, simulation) => {
      await pay(page, 'swap');
      simulation.receive('0.001');
      await page.waitForSelector('.note.warn');
    },
  ],
  [
    'late',
    {},
    async (page, simulation) => {
      await pay(page);
      simulation.report({ pay_until: simulation.session.payment.created_at });
      await step(page, 'progress');
    },
  ],
  [
    'cancel-question',
    {},
    async (page) => {
      await step(page, 'choose');
      await act(page, 'cancel');
      await page.waitForSelector('.ask');
    },
  ],
  [
    'unavailable',
    {},
    async (page, simulation) => {
      const address = `${server.origin}/checkout#publishable_key=pk_test_docs&client_secret=gsec_docs`;
      simulation.unavailable = 'country_not_supported';
      await page.goto(`${server.origin}/shop`);
      await page.goto(address);
      await step(page, 'unavailable');
    },
  ],
  [
    'over',
    {},
    async (page, simulation) => {
      await walk(page, 'price');
      simulation.session.status = 'expired';
      simulation.changed();
      await step(page, 'over');
    },
  ],
  [
    'offline',
    {},
    async (page) => {
      await walk(page, 'price');
      await page.context().setOffline(true);
      await step(page, 'offline');
    },
  ],
];

/** Series of single pictures: width and theme. */
const SERIES = [
  [360, 'light'],
  [360, 'dark'],
  [1280, 'light'],
  [1280, 'dark'],
];
/** Pictures of the docs: name of the file, width, theme and steps, which stand side by side. */
const SHEETS = [
  ['widget-decide', 360, 'light', ['choose', 'details', 'price', 'confirm']],
  ['widget-pay', 360, 'light', ['instructions', 'instructions-sale', 'progress', 'done']],
  ['widget-trouble', 360, 'light', ['price-changed', 'verification-link', 'failed', 'offline']],
  ['widget-ends', 360, 'light', ['unavailable', 'over', 'failed', 'cancelled']],
  ['widget-dark', 360, 'dark', ['details', 'price', 'instructions', 'done']],
  ['widget-desktop', 1280, 'light', ['confirm']],
];

const server = await start();
const browser = await launchBrowser();
mkdirSync(folder, { recursive: true });

async function take([, settings, reach], width, colorScheme) {
  server.use({
    amount: '250.00',
    flow: 'on_ramp',
    holdMs: null,
    methods: [SEPA, CARD],
    branding: BRANDING,
    returnUrl: `${server.origin}/shop`,
    ...settings,
  });
  const page = await newPage(browser, {
    locale: 'en-GB',
    viewport: { width, height: width < 600 ? 740 : 800 },
    colorScheme,
  });
  await page.goto(`${server.origin}/checkout#publishable_key=pk_test_docs&client_secret=gsec_docs`);
  await reach(page, server.simulation);
  await page.mouse.move(0, 0);
  const bytes = await page.screenshot({ fullPage: true });
  await page.context().close();
  return bytes;
}

/** Puts pictures side by side, with a hairline around each. */
async function sheet(pictures, file) {
  const page = await newPage(browser, { viewport: { width: 1600, height: 900 } });
  const images = pictures.map((bytes) => `<img src="data:image/png;base64,${bytes.toString('base64')}">`).join('');
  await page.setContent(
    `<style>:root{--w:${pictures.length > 1 ? 246 : 960}px}body{margin:0;display:inline-flex;gap:20px;align-items:flex-start;padding:1px;background:#fff}img{width:var(--w);outline:1px solid #dfe3e8;display:block}</style>${images}`,
  );
  await page.locator('body').screenshot({ path: file });
  await page.context().close();
}

const named = (name) => PICTURES.find(([one]) => one === name);
if (isForDocs) {
  for (const [file, width, theme, names] of SHEETS) {
    const pictures = [];
    for (const name of names) pictures.push(await take(named(name), width, theme));
    await sheet(pictures, join(folder, `${file}.png`));
  }
} else {
  const wanted = process.argv.slice(3);
  for (const [width, theme] of SERIES) {
    for (const picture of PICTURES.filter(([one]) => wanted.length === 0 || wanted.includes(one))) {
      writeFileSync(join(folder, `${picture[0]}-${width}-${theme}.png`), await take(picture, width, theme));
    }
  }
}
await browser.close();
server.close();
