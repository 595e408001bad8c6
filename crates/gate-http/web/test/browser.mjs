// Chromium for all suites: one browser per file, one context per test.

import { chromium } from 'playwright-core';

/** A machine with other work may be several times slower. A test that passes never waits this long. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 120_000);

/** Starts Debian's Chromium without any background traffic. */
export function launchBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
    timeout: PATIENCE_MS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Opens a page in its own context. Transitions are off: a click waits until its target stands still. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  context.setDefaultNavigationTimeout(PATIENCE_MS);
  return context.newPage();
}
