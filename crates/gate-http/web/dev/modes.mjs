// The modes in which the widget is looked at: sizes of the page, and what the browser emulates. The suites and the pictures have the same.

/** What a browser emulates if a mode does not say otherwise. */
const PLAIN = { media: 'screen', colorScheme: 'light', forcedColors: 'none', reducedMotion: 'reduce' };
export const phone = (width) => ({ width, height: 740 });
export const desktop = (width) => ({ width, height: 800 });
const SIZES = [phone(320), phone(360), desktop(768), desktop(1280)];
const sized = (colorScheme) => SIZES.map((size) => [`${size.width}-${colorScheme}`, size, { colorScheme }]);

/** Each mode: its name, the size of the page, and what the browser emulates. */
export const MODES = [
  ...sized('light'),
  // A zoom of 200 % halves the size of a page of 1280 px.
  ['zoom', { width: 640, height: 400 }, {}],
  // A page of A4 without its margins.
  ['print', { width: 718, height: 1000 }, { media: 'print' }],
  ['forced-light', phone(360), { forcedColors: 'active' }],
  ['forced-dark', phone(360), { forcedColors: 'active', colorScheme: 'dark' }],
  ...sized('dark'),
];

/** What each page emulates. To say it again would cost as much as a change. */
const emulated = new WeakMap();

/** Changes the mode of a page that shows a screen of the widget. */
export async function enterMode(page, [, size, media]) {
  await page.setViewportSize(size);
  const wanted = { ...PLAIN, ...media };
  if (JSON.stringify(emulated.get(page)) === JSON.stringify(wanted)) return;
  emulated.set(page, wanted);
  await page.emulateMedia(wanted);
  await page.waitForSelector(`html[data-theme="${wanted.colorScheme}"]`, { state: 'attached' });
}
