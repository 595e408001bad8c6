// Every screen in English and in every mode is whole and accessible. A language changes texts alone, so that one is enough for axe.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { BRANDING } from '../../dev/screens.mjs';
import { launchBrowser } from '../browser.mjs';
import { flawsIn } from './flaws.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Between the narrow and the wide page, nothing that axe reads differs. */
const SIZES_BETWEEN = /^(360|768)-/;
/** Hard for contrast. */
const PALE = { ...BRANDING, primary_color: '#f5d90a', accent_color: '#f5d90a' };

let browser;
before(async () => {
  browser = await launchBrowser();
});
after(() => browser?.close());

async function violationsOf(page, [mode]) {
  if (SIZES_BETWEEN.test(mode)) return [];
  if (await page.evaluate(() => !('axe' in window))) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { preload: false, resultTypes: ['violations'] });
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
    );
  });
}

test('every screen is whole, and axe finds nothing on it, in every mode', async () => {
  const options = { audit: violationsOf, bypassCSP: true, settings: { branding: PALE } };
  assert.equal((await flawsIn(browser, 'en', options)).join('\n'), '');
});
