// Every screen of the widget in a page of a partner: accessible in light and dark, and at each zoom the frame follows the height
// of its content.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { expectFit, IN_A_PAGE, mount, openHost, startHosts } from './hosts.mjs';
import { act, audit, createSession, embedded, sandbox, step, walk } from './shop.mjs';
import { tourSessions } from './tour.mjs';

const MAX_SIZES_PER_STEP = 5;
const STEPS = ['choose', 'details', 'price', 'verification', 'confirm', 'instructions', 'progress', 'done', 'failed', 'unavailable', 'over', 'offline'];

let hosts;
before(async () => { hosts = await startHosts(); });
after(() => hosts?.close());

/** Counts the sizes that the frame reports while it shows each step. */
const countSizes = (page) =>
  page.addInitScript((widget) => {
    window.sizes = [['loading', 0]];
    addEventListener('message', ({ origin, data }) => {
      if (origin !== widget) return;
      if (data.type === 'step') window.sizes.push([data.step, 0]);
      if (data.type === 'resize') window.sizes.at(-1)[1] += 1;
    });
  }, sandbox.widget_origin);

/** As a browser zooms: fewer and larger pixels. */
const zoomed = (zoom) => ({ deviceScaleFactor: zoom, viewport: { width: Math.round(800 / zoom), height: Math.round(900 / zoom) } });

for (const zoom of [1, 1.1, 2]) {
  test(`every screen of an embedded widget is accessible, and its frame as high as its content, at ${zoom} times zoom`, async () => {
    const seen = new Set();
    await tourSessions(hosts.browser, { prepare: countSizes, ...zoomed(zoom) }, async (page, name, widget) => {
      await expectFit(page, name);
      // Axe measures in CSS pixels, so one width is enough for it.
      for (const theme of zoom === 1 ? ['light', 'dark'] : []) {
        await page.evaluate((wanted) => window.ramp.setTheme(wanted), theme);
        await widget.locator(`html[data-theme="${theme}"]`).waitFor({ state: 'attached' });
        await audit(page, `${name}, ${theme}`);
      }
      await expectFit(page, name);
      const sizes = await page.evaluate(() => window.sizes);
      assert.deepEqual(sizes.filter(([, count]) => count > MAX_SIZES_PER_STEP), [], name);
      assert.ok(sizes.some(([, count]) => count > 0), `${name}: the frame has never said its size.`);
      seen.add(await widget.locator('[data-step]').getAttribute('data-step'));
    }, IN_A_PAGE);
    assert.deepEqual(STEPS.filter((name) => !seen.has(name)), []);
  });
}

test('frame gives its height back when its content becomes shorter', async () => {
  const page = await openHost(hosts.browser, '/shop', { prepare: countSizes });
  const widget = embedded(page);
  await mount(page, await createSession({ flow: 'on_ramp' }));
  await step(widget, 'choose');
  const forward = { choose: await expectFit(page, 'choose') };

  // A question within a step comes and goes.
  await act(widget, 'cancel');
  await widget.locator('.ask').waitFor();
  assert.ok(await expectFit(page, 'question') > forward.choose);
  await widget.locator('.ask button').first().click();
  await widget.locator('.ask').waitFor({ state: 'detached' });
  assert.equal(await expectFit(page, 'choose'), forward.choose);

  // The last step is longer than the one before it.
  await walk(widget, 'confirm', { look: async (name) => { forward[name] = await expectFit(page, name); } });
  assert.ok(forward.confirm > forward.price, JSON.stringify(forward));
  for (const name of ['price', 'details', 'choose']) {
    await act(widget, 'back');
    await step(widget, name);
    assert.equal(await expectFit(page, name), forward[name], name);
  }
  const sizes = await page.evaluate(() => window.sizes);
  assert.deepEqual(sizes.filter(([, count]) => count > MAX_SIZES_PER_STEP), []);
  await page.context().close();
});
