// Looks at every screen of the widget in a language and in every mode.

import { start } from '../../dev/gate.mjs';
import { enterMode, MODES } from '../../dev/modes.mjs';
import { visitScreens } from '../../dev/screens.mjs';
import { LANGUAGES } from '../../src/languages/load.mjs';
import { flawsOf } from './layout.mjs';

/** Values that read the same in every language. */
const VALUES = [
  /\b(Penstock( Sandbox)?|Northwind Goods( GmbH| for Gardens, Boats, Bicycles and Other Passions)?|Example Payments|Ada Example)\b/g,
  /\b(Bitcoin|Ethereum|Polygon|Solana)\b/g,
  /\b(EUR|GBP|USD|USDC|BTC)\b|US\$|\$US|£GB/g,
  /\b([a-z]{2,3}_\w+|TEST-\w+|[A-Z0-9]{10,})\b/g,
];
/** Identifiers and dates read as the value or the region says. The form of the provider that verifies has texts of its own. */
const OTHERS = '.groups, code, time, noscript, [data-step="verification"] form .field';

/** Everything that a customer reads or hears. */
function collectTexts(others) {
  const seen = [document.title];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (!parentElement.closest(others)) seen.push(data.trim());
  }
  for (const name of ['aria-label', 'placeholder', 'title', 'alt']) {
    for (const node of document.querySelectorAll(`[${name}]`)) seen.push(node.getAttribute(name));
  }
  return seen.filter(Boolean);
}

const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Recognizes each text of a language: with values for its placeholders, and the parts between its amounts and references. */
function textsIn({ messages }) {
  const parts = Object.values(messages).map((text) => text.split(/\{\w+\}/).map((part) => part.trim()));
  const rests = parts.flatMap((those) => those.map((_, from) => those.slice(from)).filter((rest) => rest.length > 1));
  const patterns = [...parts, ...rests].map((those) => new RegExp(`^${those.map(literal).join('.+')}$`));
  const pieces = new Set(parts.flat());
  return (text) => pieces.has(text) || patterns.some((pattern) => pattern.test(text));
}
const SPEAKS = Object.fromEntries(Object.entries(LANGUAGES).map(([language, texts]) => [language, textsIn(texts)]));

/** True if sentences that are announced together are whole texts. */
const isJoined = (sentences, speaks) =>
  sentences.length === 0 ||
  sentences.some(
    (_, end) => speaks(sentences.slice(0, end + 1).join(' ')) && isJoined(sentences.slice(end + 1), speaks),
  );

/** The texts of a page that are neither a text of the language nor a value. */
async function foreignTextsOf(page, language) {
  const isValue = (text) => !/\p{L}/u.test(VALUES.reduce((left, value) => left.replaceAll(value, ''), text));
  const speaks = (text) => SPEAKS[language](text) || SPEAKS[language](text.replace(/\.$/, '')) || isValue(text);
  // The label of a copy button is its verb and the name of the row.
  const isKnown = (text) => speaks(text) || text.split(': ').every(speaks) || isJoined(text.split(/(?<=\.) /), speaks);
  const isUnfilled = (text) => /\{\w+\}|undefined|NaN/.test(text);
  return (await page.evaluate(collectTexts, OTHERS)).filter((text) => isUnfilled(text) || !isKnown(text));
}

/** The dark theme changes colours alone. */
const isDark = ([, , { colorScheme }]) => colorScheme === 'dark';
const LAYOUTS = MODES.filter((mode) => !isDark(mode));

/** Returns the flaws of every screen in a language and in every mode, with those that `audit(page, mode)` finds. */
export async function flawsIn(browser, language, { audit, ...options } = {}) {
  const found = [];
  const gate = await start();
  await visitScreens(browser, gate, { locale: language, ...options }, async (page, name, screen) => {
    const add = (mode, flaws) => found.push(...flaws.map((flaw) => `${language}, ${mode}, ${name}: ${flaw}`));
    for (const mode of audit ? MODES : LAYOUTS) {
      await enterMode(page, mode);
      if (!isDark(mode)) add(mode[0], await flawsOf(page, screen));
      if (audit) add(mode[0], await audit(page, mode));
    }
    const foreign = await foreignTextsOf(page, language);
    add(
      'every mode',
      foreign.map((text) => `A text is not of the language: ${JSON.stringify(text)}`),
    );
  });
  await gate.close();
  return found;
}
