// The languages: each has the texts of English, and the documentation lists all of them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import { LANGUAGES } from '../../src/languages/load.mjs';

const DOCS = process.env.DOCS_DIR ?? join(import.meta.dirname, '../../../../../docs');
const { en, ...others } = LANGUAGES;

/** The widget's texts in a page of their own. */
async function loadTexts() {
  globalThis.document = { documentElement: { lang: 'en' }, title: '' };
  const entry = join(import.meta.dirname, '../../src/widget/i18n.ts');
  const bundle = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false, target: 'es2022' });
  return import(`data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`);
}
const { chooseLanguage, estimate, networkName, t, usually } = await loadTexts();

/** The keys in their order, each with the placeholders of its text. */
const shape = (texts) => Object.entries(texts).map(([key, text]) => [key, new Set(text.match(/\{\w+\}/g))]);

for (const [language, texts] of Object.entries(others)) {
  for (const part of Object.keys(en)) {
    test(`${part} in ${language} has the keys and placeholders of English`, () => {
      assert.deepEqual(shape(texts[part]), shape(en[part]));
    });
  }
}

test('no text has a line break, which separates the texts in the built file of a language', () => {
  for (const { messages } of Object.values(LANGUAGES)) assert.doesNotMatch(Object.values(messages).join(''), /\n/);
});

test('no line begins with the punctuation that French sets apart', () => {
  for (const { messages } of Object.values(LANGUAGES)) assert.doesNotMatch(Object.values(messages).join(''), / [:;?!]/);
});

for (const [wanted, language, lang] of [
  [['frr', 'en-GB'], 'en', 'en-GB'],
  [['den', 'fil', 'nl'], 'nl', 'nl'],
  [['DE_AT', 'fr'], 'de', 'de-AT'],
  [['es-419'], 'es', 'es-419'],
  [['fr-Latn-CH-u-nu-arab'], 'fr', 'fr-CH'],
  [['de-CH-1996'], 'de', 'de-CH'],
  [['it_IT.UTF-8'], 'it', 'it'],
  [[null, '', 'constructor', 'en'], 'en', 'en'],
]) {
  test(`page for the languages ${wanted} is in ${language}, and says so`, async () => {
    await chooseLanguage(wanted);
    assert.deepEqual([t('back'), document.documentElement.lang], [LANGUAGES[language].messages.back, lang]);
  });
}

test('estimate has two decimals, and below one the digits that say how much it is', async () => {
  await chooseLanguage(['en']);
  const shown = ['273.3', '1', '0.5', '0.00166667', '12345.678'].map(
    (amount) => estimate(amount, 'X').split('\u00a0')[0],
  );
  assert.deepEqual(shown, ['273.30', '1.00', '0.50', '0.00167', '12,345.68']);
});

const usuallyOf = (spans) => spans.map(([from_seconds, to_seconds]) => usually({ from_seconds, to_seconds }));

test('usual time names each unit once, and is one value if it has no range', async () => {
  const spans = [
    [600, 86_400],
    [60, 600],
    [86_400, 259_200],
    [90, 5_400],
    [1, 1],
    [3_600, 3_600],
    [45, 60],
  ];
  await chooseLanguage(['en']);
  assert.deepEqual(usuallyOf(spans), [
    'Usually 10 minutes to 1 day',
    'Usually 1–10 minutes',
    'Usually 1–3 days',
    'Usually 1.5 minutes to 1.5 hours',
    'Usually 1 second',
    'Usually 1 hour',
    'Usually 45 seconds to 1 minute',
  ]);
  await chooseLanguage(['de-AT']);
  assert.deepEqual(usuallyOf(spans).slice(0, 4), [
    'In der Regel 10 Minuten bis 1 Tag',
    'In der Regel 1–10 Minuten',
    'In der Regel 1–3 Tage',
    'In der Regel 1,5 Minuten bis 1,5 Stunden',
  ]);
});

test('usual time has two values in a browser that formats no ranges', async (context) => {
  const { formatRange } = Intl.NumberFormat.prototype;
  context.after(() => Object.assign(Intl.NumberFormat.prototype, { formatRange }));
  Intl.NumberFormat.prototype.formatRange = undefined;
  await chooseLanguage(['en']);
  assert.deepEqual(usuallyOf([[60, 600]]), ['Usually 1 minute to 10 minutes']);
});

test('network is shown by its name', () => {
  const names = ['bsc', 'ethereum', 'polygon', 'tron', 'arbitrum_one'].map(networkName);
  assert.deepEqual(names, ['BNB Smart Chain', 'Ethereum', 'Polygon', 'Tron', 'Arbitrum one']);
});

test('documentation of the option locale lists each language', () => {
  const [, listed] = /^\| `locale` \| (.*?);/m.exec(readFileSync(join(DOCS, 'embedding.md'), 'utf8'));
  assert.deepEqual(listed.match(/\w{2,}(?=`)/g), Object.keys(LANGUAGES));
});
