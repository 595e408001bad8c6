// The languages: each has the texts of English, and the documentation lists all of them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { LANGUAGES } from '../../src/languages/load.mjs';

const DOCS = process.env.DOCS_DIR ?? join(import.meta.dirname, '../../../../../docs');
const { en, ...others } = LANGUAGES;

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

test('documentation of the option locale lists each language', () => {
  const [, listed] = /^\| `locale` \| (.*?);/m.exec(readFileSync(join(DOCS, 'embedding.md'), 'utf8'));
  assert.deepEqual(listed.match(/\w{2,}(?=`)/g), Object.keys(LANGUAGES));
});
