// The later screens: how they are loaded, and what the page shows until then.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { NoAnswer } from '../../src/widget/flow/refusals';
import { isStuck, viewOf, withoutLater, type View } from '../../src/widget/flow/view';
import { loadPart } from '../../src/widget/load_part';
import { paymentWith } from './objects';
import { at, open, type Play } from './play';

const viewAt = ({ state, now }: Play): View => viewOf(state, now);
const stepWithout = (play: Play) => withoutLater(viewAt(play)).step;
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Loads a part whose first attempts fail. Says after how many seconds it was asked for, and when the page was reloaded. */
async function loading({ failures, mayReload }: { failures: number; mayReload: boolean }) {
  mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  const asked: number[] = [];
  const reloads: number[] = [];
  let part = '';
  void loadPart({
    load: () => {
      asked.push(now);
      return asked.length > failures
        ? Promise.resolve('part')
        : Promise.reject(new TypeError('The connection is lost.'));
    },
    mayReload: () => mayReload,
    reload: () => reloads.push(now),
  }).then((loaded) => {
    part = loaded;
  });
  for (; now < 20; now += 1) {
    await settle();
    mock.timers.tick(1000);
  }
  mock.timers.reset();
  return { asked, reloads, part };
}

test('part that fails to load is asked for again after one, two and four seconds', async () => {
  assert.deepEqual(await loading({ failures: 0, mayReload: true }), { asked: [0], reloads: [], part: 'part' });
  assert.deepEqual(await loading({ failures: 3, mayReload: true }), { asked: [0, 1, 3, 7], reloads: [], part: 'part' });
});

test('fourth failure reloads a page that may be reloaded, and any other keeps trying', async () => {
  const { reloads } = await loading({ failures: 4, mayReload: true });
  assert.deepEqual(reloads, [7]);
  const { asked, ...rest } = await loading({ failures: 5, mayReload: false });
  assert.deepEqual(asked, [0, 1, 3, 7, 11, 15]);
  assert.deepEqual(rest, { reloads: [], part: 'part' });
});

test('later screen shows as loading until it is there', () => {
  assert.equal(stepWithout(open()), 'choose');
  assert.equal(stepWithout(at('details')), 'details');
  assert.equal(stepWithout(at('details').does('continue')), 'loading');
  assert.equal(stepWithout(open({ session: { payment: paymentWith() } })), 'loading');
  assert.equal(stepWithout(open({ session: { status: 'cancelled' } })), 'over');
  const offline = withoutLater(viewAt(open({ session: { payment: paymentWith() } }).send({ type: 'offline' })));
  assert.ok(offline.step === 'offline');
  assert.equal(offline.last?.step, 'loading');
});

test('page may be reloaded only while it waits for a later screen and has a connection', () => {
  assert.ok(!isStuck(viewAt(at('details'))));
  const asking = at('details').does('continue');
  assert.ok(!isStuck(viewAt(asking)));
  assert.ok(isStuck(viewAt(asking.quoted())));
  assert.ok(!isStuck(viewAt(at('details').does('continue').ends(new NoAnswer()))));
  const paid = open({ session: { payment: paymentWith() } });
  assert.ok(isStuck(viewAt(paid)));
  assert.ok(!isStuck(viewAt(paid.send({ type: 'offline' }))));
});
