// The partner's branding in the real widget: whatever its colours are, the text stays easy to read, and a logo that is not a picture
// leaves the name. The branding is changed in the session that the widget reads, because all suites share one partner.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  act,
  allowOrigins,
  axe,
  editSession,
  hold,
  launchBrowser,
  NARROW,
  openCheckout,
  step,
  walk,
  WIDE,
} from './shop.mjs';

const MIN_TEXT_CONTRAST = 4.5;
const MIN_EDGE_CONTRAST = 3;

/** Sets of colours on which hardly any text is easy to read, or which are hard to tell apart. */
const COLORS = {
  white: { primary_color: '#ffffff', secondary_color: '#ffffff', accent_color: '#ffffff' },
  black: { primary_color: '#000000', secondary_color: '#000000', accent_color: '#000000' },
  yellow: { primary_color: '#ffff00', secondary_color: '#ffe600', accent_color: '#fff200' },
  // Of nearly the same luminance.
  'red on blue': { primary_color: '#c00000', secondary_color: '#3030ff', accent_color: '#d00000' },
};

const NAME = 'Harbour Goods';
const LOGO = 'https://logo.example/logo.png';
allowOrigins(LOGO);

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Opens the checkout of a new session of a shop with this branding. */
async function openBranded(branding, fields, prepare = async () => undefined) {
  const page = await openCheckout(browser, fields);
  await editSession(
    page,
    (session) => {
      session.branding = { ...session.branding, brand_name: NAME, logo_url: null, ...branding };
    },
    { waits: true },
  );
  await prepare(page);
  await page.goto(page.address);
  return page;
}

function luminance([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((part) =>
    part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** WCAG's contrast of two colours. */
function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const parse = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));

/** The colours of an element as the browser shows them: red, green, blue, and how opaque. */
function colorsOf(page, selector) {
  return page
    .locator(selector)
    .first()
    .evaluate((element) => {
      const { color, backgroundColor, borderTopColor } = getComputedStyle(element);
      const parts = (text) => {
        const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
        return { color: [red, green, blue], alpha };
      };
      return { text: parts(color), fill: parts(backgroundColor), edge: parts(borderTopColor) };
    });
}

/** What axe says about the contrast of the text: how many elements it can read, and which it cannot. */
async function readText(page) {
  const options = { runOnly: ['color-contrast'], iframes: false };
  for (;;) {
    // A price that is being renewed is faded until the new one arrives.
    await page.locator('.old').waitFor({ state: 'detached' });
    const seen = await axe(page, options, ({ passes, violations }) => ({
      read: passes.flatMap(({ nodes }) => nodes).length,
      unread: violations.flatMap(({ nodes }) =>
        nodes.map(({ target, any }) => `${target.join(' ')} has ${any[0].data.contrastRatio}`),
      ),
    }));
    if (seen.unread.length === 0 || (await page.locator('.old').count()) === 0) return seen;
  }
}

async function expectReadable(page, name, branding) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: 'attached' });
    for (const size of [NARROW, WIDE]) {
      const look = `${name}, ${colorScheme}, ${size.width} px`;
      await page.setViewportSize(size);
      const { read, unread } = await readText(page);
      assert.deepEqual(unread, [], look);
      assert.ok(read > 5, `${look}: axe has read ${read} texts.`);
    }
    // The brand's colours are there, each below a text of its own.
    const fills = {
      '.main': branding.primary_color,
      '.side': branding.secondary_color,
      '.tile': branding.accent_color,
    };
    for (const [selector, color] of Object.entries(fills)) {
      const { text, fill } = await colorsOf(page, selector);
      assert.deepEqual(fill, { color: parse(color), alpha: 1 }, `${name}, ${colorScheme}: ${selector}`);
      assert.ok(contrast(text.color, fill.color) >= MIN_TEXT_CONTRAST, `${name}, ${colorScheme}: text on ${selector}`);
    }
    // A button of the colour of the page has an edge.
    const [button, card] = [await colorsOf(page, '.main'), await colorsOf(page, '.card')];
    const edges = [button.fill, button.edge]
      .filter(({ alpha }) => alpha === 1)
      .map(({ color }) => contrast(color, card.fill.color));
    assert.ok(Math.max(...edges) >= MIN_EDGE_CONTRAST, `${name}, ${colorScheme}: edge of the button`);
  }
}

/** The ring of a busy button is as clear as its text. */
async function expectRing(page, name) {
  await page.locator('.main .sign.wait').waitFor();
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({ state: 'attached' });
    const [ring, { text, fill }] = [await colorsOf(page, '.main .sign.wait'), await colorsOf(page, '.main')];
    assert.deepEqual(ring.text, text, `${name}, ${colorScheme}: colour of the ring`);
    assert.ok(contrast(ring.text.color, fill.color) >= MIN_EDGE_CONTRAST, `${name}, ${colorScheme}: ring`);
  }
}

for (const [name, branding] of Object.entries(COLORS)) {
  test(`text and buttons stay clear in a brand of ${name}`, async () => {
    const page = await openBranded(branding, { amount: '100.31' });
    const looks = ['choose', 'confirm'];
    await walk(page, 'confirm', {
      look: (reached) => (looks.includes(reached) ? expectReadable(page, reached, branding) : undefined),
    });
    const release = await hold(page, /\/v1\/embed\/payments$/);
    await act(page, 'pay');
    await expectRing(page, name);
    release();
    await step(page, 'failed');
    await expectReadable(page, 'failed', branding);
    await page.context().close();
  });
}

/** Logos that no browser can show: the address, and what answers there. */
const BROKEN_LOGOS = {
  'that never arrives': [LOGO, (route) => route.abort('connectionfailed')],
  'that is missing': [LOGO, (route) => route.fulfill({ status: 404, contentType: 'text/plain', body: 'Not found' })],
  'that is a text': [LOGO, (route) => route.fulfill({ contentType: 'text/plain', body: NAME })],
  'that is a text under the name of a picture': [
    LOGO,
    (route) => route.fulfill({ contentType: 'image/png', body: NAME }),
  ],
  'whose address is a text': [NAME],
  'whose address is a script': ['javascript:document.title = "hacked"'],
  'without https': ['http://logo.example/logo.png'],
};

for (const [name, [address, answer]] of Object.entries(BROKEN_LOGOS)) {
  test(`logo ${name} leaves the tile and the name`, async () => {
    const asked = [];
    const page = await openBranded({ ...COLORS.yellow, logo_url: address }, {}, async (opened) => {
      if (answer) await opened.route(LOGO, answer);
      opened.on(
        'request',
        (request) => new URL(request.url()).hostname === 'logo.example' && asked.push(request.url()),
      );
    });
    const expectName = async () => {
      await page.locator(`header .tile[data-letter="${NAME[0]}"]`).waitFor();
      assert.equal(await page.locator('header img').count(), 0);
      assert.equal(await page.textContent('header .name'), NAME);
    };
    await step(page, 'choose');
    await expectName();
    await walk(page, 'price');
    await expectName();
    // A picture that has failed once is not asked for again.
    assert.deepEqual(asked, answer ? [LOGO] : []);
    await page.context().close();
  });
}
