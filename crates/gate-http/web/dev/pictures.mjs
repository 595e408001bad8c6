// Takes pictures of every step of the built widget: `node dev/pictures.mjs <folder>`. With `--docs`, the contact sheets of the docs. With
// `--all`, every step in all languages and modes, in a folder for each language.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LANGUAGES } from '../src/languages/load.mjs';
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
const isForAll = process.argv.includes('--all');

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

const checkoutOf = (origin) => `${origin}/checkout#publishable_key=pk_test_docs&client_secret=gsec_docs`;
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
      await page.fill('[name="wallet_address"]', 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'.replace('T', 'E'));
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
    'verification-form',
    { amount: '250.61', verifyBy: 'form' },
    async (page) => {
      await walk(page, 'verification');
      await act(page, 'continue');
      await page.waitForSelector('[name="full_name"]');
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
  [
    'confirm-busy',
    {},
    async (page) => {
      await page.route('**/payments', () => undefined);
      await walk(page, 'confirm');
      await act(page, 'pay');
      await page.waitForSelector('.main .sign.wait');
    },
  ],
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
    'done-swap',
    { flow: 'swap' },
    async (page, simulation) => {
      await pay(page, 'swap');
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
      await page.click('.ask [data-action="cancel"]');
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
      const { href, origin } = new URL(simulation.session.return_url);
      simulation.unavailable = 'country_not_supported';
      await page.goto(href);
      await page.goto(checkoutOf(origin));
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
    'over-cancelled',
    { cancel_url: null },
    async (page) => {
      await step(page, 'choose');
      await act(page, 'cancel');
      await page.click('.ask [data-action="cancel"]');
      await step(page, 'over');
    },
  ],
  [
    'long-name',
    {
      flow: null,
      branding: { ...BRANDING, brand_name: 'Northwind Goods for Gardens, Boats, Bicycles and Other Passions' },
    },
    (page) => walk(page, 'choose'),
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

/** What a browser emulates if a mode does not say otherwise. */
const PLAIN = { media: 'screen', colorScheme: 'light', forcedColors: 'none', reducedMotion: 'reduce' };
const phone = (width) => ({ width, height: 740 });
const desktop = (width) => ({ width, height: 800 });
/** Modes of `--all`: the name, the size of the page, and what the browser emulates. */
const MODES = [
  ...[phone(320), phone(360), desktop(768), desktop(1280)].flatMap((size) =>
    ['light', 'dark'].map((colorScheme) => [`${size.width}-${colorScheme}`, size, { colorScheme }]),
  ),
  // A zoom of 200 % halves the size of the page.
  ['zoom', { width: 320, height: 370 }, {}],
  ['forced-light', phone(360), { forcedColors: 'active' }],
  ['forced-dark', phone(360), { forcedColors: 'active', colorScheme: 'dark' }],
  // A page of A4 without its margins.
  ['print', { width: 718, height: 1000 }, { media: 'print' }],
];
const WIDTH_OF_PHONES = 600;

const browser = await launchBrowser();
mkdirSync(folder, { recursive: true });

/** Opens a picture in a page of this size. */
async function reach(server, [, settings, go], options) {
  server.use({
    amount: '250.00',
    flow: 'on_ramp',
    holdMs: null,
    methods: [SEPA, CARD],
    branding: BRANDING,
    returnUrl: `${server.origin}/shop`,
    ...settings,
  });
  const page = await newPage(browser, options);
  await page.goto(checkoutOf(server.origin));
  await go(page, server.simulation);
  await page.mouse.move(0, 0);
  return page;
}

async function take(server, picture, width, colorScheme) {
  const viewport = width < WIDTH_OF_PHONES ? phone(width) : desktop(width);
  const page = await reach(server, picture, { locale: 'en-GB', viewport, colorScheme });
  const bytes = await page.screenshot({ fullPage: true });
  await page.context().close();
  return bytes;
}

/** Walks to each picture once, and changes the mode there. */
async function takeAll(language, pictures) {
  const server = await start();
  mkdirSync(join(folder, language), { recursive: true });
  for (const picture of pictures) {
    const page = await reach(server, picture, { locale: language, viewport: phone(360) });
    for (const [mode, size, media] of MODES) {
      await page.setViewportSize(size);
      await page.emulateMedia({ ...PLAIN, ...media });
      await page.waitForSelector(`html[data-theme="${media.colorScheme ?? 'light'}"]`, { state: 'attached' });
      await page.screenshot({ fullPage: true, path: join(folder, language, `${picture[0]}-${mode}.png`) });
    }
    await page.context().close();
  }
  server.close();
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
const names = process.argv.slice(3).filter((word) => !word.startsWith('--'));
const wanted = PICTURES.filter(([one]) => names.length === 0 || names.includes(one));
if (isForAll) {
  // Each language has a gate of its own.
  await Promise.all(Object.keys(LANGUAGES).map((language) => takeAll(language, wanted)));
} else if (isForDocs) {
  const server = await start();
  for (const [file, width, theme, shown] of SHEETS) {
    const pictures = [];
    for (const name of shown) pictures.push(await take(server, named(name), width, theme));
    await sheet(pictures, join(folder, `${file}.png`));
  }
  server.close();
} else {
  const server = await start();
  for (const [width, theme] of SERIES) {
    for (const picture of wanted) {
      writeFileSync(join(folder, `${picture[0]}-${width}-${theme}.png`), await take(server, picture, width, theme));
    }
  }
  server.close();
}
await browser.close();
