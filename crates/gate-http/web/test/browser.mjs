// Chromium for all suites: one browser per file, one context per test.

import { chromium } from 'playwright-core';

/** A machine with other work may be several times slower. A test that passes never waits this long. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 120_000);

const WITHOUT_WINDOWS = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium-headless-shell';
const WITH_WINDOWS = process.env.CHROMIUM_WITH_WINDOWS_PATH ?? '/usr/bin/chromium';

/**
 * Starts Debian's Chromium without any background traffic. The one without windows takes half of the processor time, but it keeps no page
 * for the way back and lets no tab sleep.
 */
export function launchBrowser({ args = [], hasWindows = false, ...options } = {}) {
  return chromium.launch({
    ...options,
    executablePath: hasWindows ? WITH_WINDOWS : WITHOUT_WINDOWS,
    timeout: PATIENCE_MS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  });
}

/** Opens a page in its own context. Transitions are off: a click waits until its target stands still. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  context.setDefaultNavigationTimeout(PATIENCE_MS);
  // The time that the SDK gives the widget to start. A test of this time installs a clock, which has timers of its own.
  await stretch(context, 9_000);
  return context.newPage();
}

/** Makes a timer of exactly this length last ten minutes in the pages that open from now on, so that no slow test sees its end. */
export function stretch(target, length) {
  return target.addInitScript((stretched) => {
    const { setTimeout } = window;
    window.setTimeout = (run, delay, ...rest) => setTimeout(run, delay === stretched ? 600_000 : delay, ...rest);
  }, length);
}

/** Stops the clock of the pages that open from now on. Their time passes only when a test moves it. */
export async function stopClock(page) {
  await page.clock.install({ time: 0 });
  await page.clock.pauseAt(3_600_000);
}
