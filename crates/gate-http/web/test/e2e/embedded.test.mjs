// Every screen of the widget in a page of a partner: the frame follows the height of its content.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { expectFit, IN_A_PAGE, mount, openHost, startHosts } from './hosts.mjs';
import { act, createSession, embedded, sandbox, step, walk } from './shop.mjs';
import { tourSessions } from './tour.mjs';

const MAX_SIZES_PER_STEP = 5;
const STEPS = [
  'choose',
  'details',
  'price',
  'verification',
  'confirm',
  'instructions',
  'progress',
  'done',
  'failed',
  'unavailable',
  'over',
  'offline',
];

let hosts;
before(async () => {
  hosts = await startHosts();
});
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

/** Zoomed to 110 %: a height is a fraction of pixels. */
const ZOOMED = { deviceScaleFactor: 1.1, viewport: { width: 727, height: 818 } };

test('frame of every screen is as high as its content', async () => {
  const seen = new Set();
  await tourSessions(
    hosts.browser,
    { prepare: countSizes, ...ZOOMED },
    async (page, name, widget) => {
      await expectFit(page, name);
      const sizes = await page.evaluate(() => window.sizes);
      assert.deepEqual(
        sizes.filter(([, count]) => count > MAX_SIZES_PER_STEP),
        [],
        name,
      );
      assert.ok(
        sizes.some(([, count]) => count > 0),
        `${name}: the frame has never said its size.`,
      );
      seen.add(await widget.locator('[data-step]').getAttribute('data-step'));
    },
    IN_A_PAGE,
  );
  assert.deepEqual(
    STEPS.filter((name) => !seen.has(name)),
    [],
  );
});

test('frame gives its height back when its content becomes shorter', async () => {
  const page = await openHost(hosts.browser, '/shop', { prepare: countSizes });
  const widget = embedded(page);
  await mount(page, await createSession({ flow: 'on_ramp' }));
  await step(widget, 'choose');
  const forward = { choose: await expectFit(page, 'choose') };

  // A question within a step comes and goes.
  await act(widget, 'cancel');
  await widget.locator('.ask').waitFor();
  assert.ok((await expectFit(page, 'question')) > forward.choose);
  await widget.locator('.ask button').first().click();
  await widget.locator('.ask').waitFor({ state: 'detached' });
  assert.equal(await expectFit(page, 'choose'), forward.choose);

  // The last step is longer than the one before it.
  await walk(widget, 'confirm', {
    look: async (name) => {
      forward[name] = await expectFit(page, name);
    },
  });
  assert.ok(forward.confirm > forward.price, JSON.stringify(forward));
  for (const name of ['price', 'details', 'choose']) {
    await act(widget, 'back');
    await step(widget, name);
    assert.equal(await expectFit(page, name), forward[name], name);
  }
  const sizes = await page.evaluate(() => window.sizes);
  assert.deepEqual(
    sizes.filter(([, count]) => count > MAX_SIZES_PER_STEP),
    [],
  );
  await page.context().close();
});
