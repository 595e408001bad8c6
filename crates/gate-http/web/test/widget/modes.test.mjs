// Every screen in every language and mode is whole. English is in `modes_english.test.mjs`.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LANGUAGES } from '../../src/languages/load.mjs';
import { launchBrowser } from '../browser.mjs';
import { flawsIn } from './flaws.mjs';

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

// A part of each walk is waiting.
describe('every screen is whole in every mode', { concurrency: 2 }, () => {
  for (const language of Object.keys(LANGUAGES).filter((one) => one !== 'en')) {
    test(language, async () => assert.equal((await flawsIn(browser, language)).join('\n'), ''));
  }
});
