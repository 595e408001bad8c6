// The price: how long it lives, when it is renewed by itself, and which click it can be paid by.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentWith, quoteAt, START } from './objects';
import { at, refusal, type Play } from './play';

const mayPay = ({ view }: Play) => 'mayPay' in view && view.mayPay;
const isAsked = (play: Play) => play.started?.do === 'quote';

test('price is renewed 10 seconds before its end on its own step, and at its end on confirm', () => {
  assert.equal(isAsked(at('price').tick(49_999)), false);
  assert.equal(isAsked(at('price').tick(50_000)), true);
  assert.equal(isAsked(at('confirm').tick(59_999)), false);
  assert.equal(isAsked(at('confirm').tick(60_000)), true);
});

test('price is not renewed on other steps, in a hidden page, or while a call runs', () => {
  assert.equal(isAsked(at('price').does('back').tick(60_000)), false);
  assert.equal(isAsked(at('confirm').tick(60_000, false)), false);
  assert.equal(isAsked(at('confirm').tick(60_000).tick(1000)), false);
  assert.equal(isAsked(at('confirm').hears({ payment: paymentWith() }).tick(60_000)), false);
  assert.equal(isAsked(at('confirm').send({ type: 'offline' }).tick(60_000)), false);
});

test('price is renewed 10 times without a touch, and again after one', () => {
  const play = at('confirm');
  for (let renewal = 1; renewal <= 10; renewal += 1) {
    assert.ok(isAsked(play.tick(60_000)), `renewal ${renewal}`);
    play.quoted();
  }
  assert.equal(isAsked(play.tick(60_000)), false);
  assert.equal('isOutdated' in play.view && play.view.isOutdated, true);
  // A touch of a page that shows no price means the button that asks for one.
  assert.equal(isAsked(play.does('touch').tick(1000)), false);
  assert.ok(isAsked(play.does('retry')));
  play.quoted();
  assert.ok(isAsked(play.tick(60_000)));
});

test('touch before the price has run out starts the count again', () => {
  const play = at('confirm');
  for (let renewal = 1; renewal <= 10; renewal += 1) play.tick(60_000).quoted();
  play.does('touch');
  assert.ok(isAsked(play.tick(60_000)));
});

test('price that was refused is asked for again 15 seconds later', () => {
  const play = at('confirm').tick(60_000).ends(refusal(409, 'rate_unavailable'));
  assert.equal(play.live.trouble?.code, 'rate_unavailable');
  assert.equal(isAsked(play.tick(14_999)), false);
  assert.ok(isAsked(play.tick(1)));
  assert.equal(play.quoted().live.trouble, null);
});

test('price is not asked for by itself after a refusal that time cannot mend', () => {
  const play = at('price').tick(50_000).ends(refusal(400, 'asset_not_supported'));
  assert.equal(isAsked(play.tick(30_000)), false);
});

test('price ends by the clock of the server', () => {
  const play = at('confirm');
  // The clock of the device is set forward, and back again.
  play.now = { ...play.now, clock: play.now.clock + 3_600_000 };
  assert.ok(isAsked(play.tick()));
  play.send({ type: 'quoted', quote: quoteAt(START) }).ends();
  assert.equal('secondsLeft' in play.view && play.view.secondsLeft, 60);
  assert.equal(isAsked(play.tick(59_000)), false);
});

test('price that ran out is never paid: the click asks for a new one', () => {
  const play = at('confirm').wait(60_000);
  assert.equal(mayPay(play), false);
  assert.deepEqual([play.does('pay').running, isAsked(play)], ['quote', true]);
});

test('changed price cannot be paid for a second, and the click shows its note', () => {
  const play = at('confirm').tick(60_000).quoted({ id: 'quote_2', exchange_rate: '1.20' });
  const { view } = play;
  assert.deepEqual(view.step === 'confirm' && [view.price.before?.id, view.price.quote.id], ['quote_1', 'quote_2']);
  assert.equal(mayPay(play.wait(999)), false);
  assert.deepEqual(play.does('pay').effects, [{ do: 'focus_change' }]);
  assert.equal(mayPay(play.wait(1)), true);
  const { started } = play.does('pay');
  assert.equal(started?.do === 'pay' && started.body.quote_id, 'quote_2');
  assert.equal(play.view.step === 'confirm' && play.view.price.before, null);
});

test('note about a change stays with a price that is renewed unchanged, until the customer goes on', () => {
  const play = at('price').tick(50_000).quoted({ exchange_rate: '1.20' });
  const before = () => play.view.step === 'price' && play.view.price?.before?.exchange_rate;
  assert.equal(before(), '1.08');
  play.tick(50_000).quoted({ exchange_rate: '1.20' });
  assert.equal(before(), '1.08');
  play.does('continue').does('back');
  assert.equal(before(), undefined);
});

test('price that is equal can be paid at once', () => {
  assert.equal(mayPay(at('confirm').tick(60_000).quoted({ id: 'quote_2' })), true);
});

test('new details forget the earlier price', () => {
  const play = at('price').does('back').does('continue');
  assert.equal(play.view.step === 'price' && play.view.price, null);
});

test('price that arrives after the customer went back is dropped', () => {
  const play = at('details').does('continue').does('back').quoted();
  assert.equal(play.step, 'details');
});

test('each price is told to the page around the frame', () => {
  const play = at('price', { host: { isFramed: true } })
    .tick(50_000)
    .quoted({ exchange_rate: '1.20' });
  assert.deepEqual(
    play.messages.map(({ type, rate }) => [type, rate]),
    [
      ['quote', '1.08'],
      ['quote', '1.20'],
    ],
  );
});

for (const code of ['quote_expired', 'quote_superseded', 'quote_consumed']) {
  test(`payment that is refused with ${code} reads the session and asks for a price, and says so`, () => {
    const play = at('confirm').does('pay').send({ type: 'not_paid' }).ends(refusal(409, code));
    assert.deepEqual(play.started, { do: 'refresh', follow: 'price', because: code });
    assert.equal(play.hears().ends().started?.do, 'quote');
    play.quoted({ id: 'quote_2' });
    assert.deepEqual([play.live.trouble?.code, play.live.trouble?.text], [code, 'ranOut']);
    const { started } = play.does('pay');
    assert.equal(started?.do === 'pay' && started.body.quote_id, 'quote_2');
  });
}

test('price that the server called expired is renewed as any other', () => {
  const play = at('confirm').does('pay').ends(refusal(409, 'quote_expired')).hears().ends().quoted();
  assert.ok(isAsked(play.tick(60_000)));
});

test('payment of another tab that consumed the price is shown in its place', () => {
  const play = at('confirm').does('pay').ends(refusal(409, 'quote_consumed'));
  play.hears({ payment: paymentWith() }).ends();
  assert.deepEqual([play.step, play.started], ['instructions', undefined]);
});
