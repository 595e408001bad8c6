// Takes pictures of every screen of the built widget: `node dev/pictures.mjs <folder> [screen…]`. With `--all`, in all languages and
// modes, in a folder for each language. With `--docs`, the contact sheets of the docs.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LANGUAGES } from '../src/languages/load.mjs';
import { launchBrowser, newPage } from '../test/browser.mjs';
import { start } from './gate.mjs';
import { enterMode, MODES } from './modes.mjs';
import { visitScreens } from './screens.mjs';

const words = process.argv.slice(2);
const [folder = '/tmp/shots', ...names] = words.filter((word) => !word.startsWith('--'));
/** Modes of the pictures without `--all`. */
const USUAL = ['360-light', '360-dark', '1280-light', '1280-dark'];
/** Pictures of the docs: name of the file, mode, and screens, which stand side by side. */
const SHEETS = [
  ['widget-decide', '360-light', ['choose', 'details', 'price', 'confirm']],
  ['widget-pay', '360-light', ['instructions', 'instructions-sale', 'progress', 'done']],
  ['widget-trouble', '360-light', ['price-changed', 'verification-link', 'failed', 'offline']],
  ['widget-ends', '360-light', ['unavailable', 'over', 'failed', 'cancelled']],
  ['widget-dark', '360-dark', ['details', 'price', 'instructions', 'done']],
  ['widget-desktop', '1280-light', ['confirm']],
];

const browser = await launchBrowser();

/** Takes each screen in each mode that `isWanted(name, mode)`. Returns the pictures by `name-mode`. */
async function takeAll(locale, isWanted) {
  const gate = await start();
  const pictures = new Map();
  await visitScreens(browser, gate, { locale }, async (page, name) => {
    // No button looks as if the mouse were over it.
    await page.mouse.move(0, 0);
    for (const mode of MODES.filter(([one]) => isWanted(name, one))) {
      await enterMode(page, mode);
      pictures.set(`${name}-${mode[0]}`, await page.screenshot({ fullPage: true }));
    }
  });
  await gate.close();
  return pictures;
}

function save(pictures, ...place) {
  const target = join(folder, ...place);
  mkdirSync(target, { recursive: true });
  for (const [name, bytes] of pictures) writeFileSync(join(target, `${name}.png`), bytes);
}

/** Puts pictures side by side, with a hairline around each. */
async function sheet(pictures) {
  const page = await newPage(browser, { viewport: { width: 1600, height: 900 } });
  const images = pictures.map((bytes) => `<img src="data:image/png;base64,${bytes.toString('base64')}">`).join('');
  await page.setContent(
    `<style>:root{--w:${pictures.length > 1 ? 246 : 960}px}body{margin:0;display:inline-flex;gap:20px;align-items:flex-start;padding:1px;background:#fff}img{width:var(--w);outline:1px solid #dfe3e8;display:block}</style>${images}`,
  );
  const bytes = await page.locator('body').screenshot();
  await page.context().close();
  return bytes;
}

async function takeSheets() {
  const pictures = await takeAll('en-GB', (name, mode) =>
    SHEETS.some(([, theirs, screens]) => mode === theirs && screens.includes(name)),
  );
  const sheets = new Map();
  for (const [file, mode, screens] of SHEETS)
    sheets.set(file, await sheet(screens.map((name) => pictures.get(`${name}-${mode}`))));
  return sheets;
}

const isNamed = (name) => names.length === 0 || names.includes(name);
if (words.includes('--docs')) {
  save(await takeSheets());
} else if (words.includes('--all')) {
  // Each language has a gate of its own.
  await Promise.all(Object.keys(LANGUAGES).map(async (language) => save(await takeAll(language, isNamed), language)));
} else {
  save(await takeAll('en-GB', (name, mode) => isNamed(name) && USUAL.includes(mode)));
}
await browser.close();
