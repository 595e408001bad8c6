// The price: how long it lives, when it is renewed by itself, and which click it can be paid by.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paymentWith, quoteAt, START } from './objects';
import { at, refusal, type Play } from './play';

const mayPay = ({ view }: Play) => 'mayPay' in view && view.mayPay;
const isAsked = (play: Play) => play.started?.do === 'quote';

test('price is renewed 10 seconds before its end', () => {
  for (const step of ['price', 'confirm'] as const) {
    assert.equal(isAsked(at(step).tick(49_999)), false);
    assert.equal(isAsked(at(step).tick(50_000)), true);
  }
});

test('price holds to its end while the next one is on its way', () => {
  const play = at('price').tick(50_000);
  assert.equal(play.view.work, null);
  assert.equal(play.does('continue').step, 'confirm');
  assert.deepEqual([play.wait(10_000).view.work, mayPay(play)], ['price', false]);
});

test('click for a price that is being renewed pays the same price as soon as it has arrived', () => {
  const play = at('confirm').tick(50_000).does('pay');
  assert.deepEqual([play.running, play.view.work], ['quote', 'pay']);
  play.quoted({ id: 'quote_2' });
  assert.deepEqual(play.started, { do: 'pay', body: { quote_id: 'quote_2' }, isRepeated: false });
});

test('click for a price that is being renewed pays no other price', () => {
  const play = at('confirm').tick(50_000).does('pay').quoted({ id: 'quote_2', exchange_rate: '1.20' });
  assert.deepEqual([play.started, play.running, play.view.work], [undefined, undefined, null]);
  assert.equal('price' in play.view && play.view.price?.before?.id, 'quote_1');
  const refused = at('confirm').tick(50_000).does('pay').ends(refusal(409, 'rate_unavailable'));
  assert.equal(refused.started, undefined);
  assert.equal(refused.tick(15_000).quoted().started, undefined);
});

test('click for a price that is being renewed ends with that call, and with a step back', () => {
  const lost = at('confirm').tick(50_000).does('pay').ends(refusal(401, 'unauthorized'));
  lost.wait(600_000).send({ type: 'token', token: 'token_2', host: undefined }).hears().ends();
  lost.tick();
  assert.equal(lost.running, 'quote');
  assert.equal(lost.quoted({ id: 'quote_2' }).started, undefined);
  const back = at('confirm').tick(50_000).does('pay').does('back').does('continue');
  assert.deepEqual([back.step, back.quoted({ id: 'quote_2' }).started], ['confirm', undefined]);
});

test('verification that is pending is looked at, also if the price was being renewed', () => {
  const verification = { status: 'pending', reason: null } as const;
  const play = at('price', { session: { verification } }).tick(50_000).does('continue');
  assert.equal(play.step, 'verification');
  assert.deepEqual(play.quoted().started, { do: 'verify', answers: null });
});

test('price that another page of the session has superseded by a different one has run out', () => {
  const play = at('confirm').does('pay').ends(refusal(409, 'quote_superseded')).hears().ends();
  assert.equal(play.quoted({ exchange_rate: '1.20' }).live.trouble?.text, 'ranOut');
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
  assert.equal(isAsked(play.tick(49_000)), false);
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
    const text = code === 'quote_superseded' ? 'otherWindow' : 'ranOut';
    assert.deepEqual([play.live.trouble?.code, play.live.trouble?.text], [code, text]);
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
