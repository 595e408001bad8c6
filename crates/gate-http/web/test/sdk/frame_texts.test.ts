// The language of the texts around the frame.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frame as de } from '../../src/languages/de';
import { frame as en } from '../../src/languages/en';
import { frame as fr } from '../../src/languages/fr';
import { frameTexts } from '../../src/sdk/frame_texts';

test('frame speaks the first language that the widget speaks, by the whole language subtag', () => {
  const cases: [locale: string | undefined, languages: string[], title: string][] = [
    ['de', ['fr'], de.title],
    ['de-Latn-AT', ['fr'], de.title],
    ['FR_ca', ['de'], fr.title],
    ['frr', ['de'], de.title],
    ['den', [], en.title],
    [undefined, ['den-CA', 'frr', 'fr-CH', 'de'], fr.title],
    [undefined, ['pl', 'de_AT'], de.title],
    [undefined, [], en.title],
  ];
  for (const [locale, languages, title] of cases) {
    Object.defineProperty(globalThis, 'navigator', { value: { languages }, configurable: true });
    assert.equal(frameTexts(locale).title, title, `${locale} ${languages.join(' ')}`);
  }
});
