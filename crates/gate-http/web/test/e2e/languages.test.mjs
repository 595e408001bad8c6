// Every screen of the widget in a language: each text is a text of that language, or a value such as an amount. One language is enough,
// because the compiler asks for each text in all of them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LANGUAGES } from '../../src/languages/load.mjs';
import { FLOWS, launchBrowser } from './shop.mjs';
import { tour } from './tour.mjs';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

/** Values that read the same in every language. */
const VALUES = [
  ...Object.values(FLOWS).flatMap((fields) => Object.values(fields)),
  /\b(test_tx|pi_test|po_test|gs_test)_\w+/,
  /\b0x[0-9a-f]{6,}\b/i,
  /US\$|\$US/,
  /\b(Penstock( Sandbox)?|Northwind Goods( GmbH)?)\b/,
  /\bTEST(-[0-9A-Z]{10}|DE00XXX)\b/,
  /\b(Tether|USD Coin|Bitcoin|Ether|Tron|Ethereum|BNB Smart Chain|Polygon|Solana)\b/,
  /\b(EUR|GBP|USD|USDT|USDC|BTC|ETH)\b/,
];

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
const PATTERNS = VALUES.map((value) => new RegExp(value.source ?? literal(value), value.flags === 'i' ? 'gi' : 'g'));

/** Everything that a customer reads or hears. */
function textsOf(page) {
  return page.evaluate(() => {
    const seen = [document.title];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      // Identifiers and dates read as the value or the region says.
      if (!walker.currentNode.parentElement.closest('noscript, .groups, code, time'))
        seen.push(walker.currentNode.data.trim());
    }
    for (const name of ['aria-label', 'placeholder', 'title', 'alt']) {
      for (const node of document.querySelectorAll(`[${name}]`)) seen.push(node.getAttribute(name));
    }
    return seen.filter(Boolean);
  });
}

test('every screen speaks German and nothing else', async () => {
  const own = Object.values(LANGUAGES.de.messages).map((text) => {
    const parts = text
      .trim()
      .split(/\{\w+\}/)
      .map((part) => literal(part));
    return new RegExp(`^${parts.join('.+')}$`);
  });
  const speaks = (text) => own.some((pattern) => pattern.test(text));
  const found = new Set();
  await tour(
    browser,
    {
      locale: 'de-DE',
      viewport: { width: 320, height: 700 },
    },
    async (page, name) => {
      for (const text of await textsOf(page)) {
        const rest = PATTERNS.reduce((left, pattern) => left.replaceAll(pattern, ''), text);
        // A label of a copy button is its verb and the name of the row. A failure is announced with its title before its sentence.
        const [title, ...sentences] = text.split('. ');
        const isAnnounced = speaks(title) && speaks(sentences.join('. '));
        if (/\p{L}/u.test(rest) && !speaks(text) && !text.split(': ').every(speaks) && !isAnnounced) {
          found.add(`${name}: ${text}`);
        }
      }
      assert.ok(
        await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
        `${name} scrolls sideways.`,
      );
    },
  );
  assert.deepEqual([...found], []);
});
