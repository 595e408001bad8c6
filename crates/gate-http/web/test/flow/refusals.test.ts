// What a refusal of the gate leads to, and what happens to a token that is no longer valid.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messages as texts } from '../../src/languages/en';
import { NoAnswer } from '../../src/widget/flow/refusals';
import { waits } from '../../src/widget/flow/state';
import { ERROR_CODES, paymentWith, taskWith } from './objects';
import { at, begin, open, Play, refusal } from './play';

type Outcome = 'token' | 'unavailable' | 'read' | 'price' | 'verification' | keyof typeof texts;

/** What a refusal leads to, by status and code. The first match counts. */
const OUTCOMES: readonly [RegExp, Outcome][] = [
  [/^401 /, 'token'],
  [/^429 /, 'tooMany'],
  [/^501 /, 'unavailable'],
  [/^(408|500|503) |^409 idempotency_in_progress$/, 'unreachable'],
  [/ (quote_session_mismatch|unknown_currency)$/, 'unavailable'],
  [/ session_(not_open|open|payment_in_progress)$/, 'read'],
  [/ quote_/, 'price'],
  [/ verification_/, 'verification'],
  [/^403 /, 'unavailable'],
  [/ rate_unavailable$/, 'noRate'],
  [/ amount_out_of_range$/, 'outOfRange'],
  [/ invalid_address$/, 'walletRefused'],
  [/ address_checksum_mismatch$/, 'walletSum'],
  [/ wallet_mismatch$/, 'walletMismatch'],
  [/ (network|asset|corridor)_\w+$/, 'notOffered'],
  [/ payment_not_cancellable$/, 'tooLate'],
  [/^4\d\d /, 'unavailableText'],
];

const outcomeFor = (status: number, code: string): Outcome => {
  const found = OUTCOMES.find(([pattern]) => pattern.test(`${status} ${code}`));
  assert.ok(found, `${status} ${code}`);
  return found[1];
};

/** What the page did about a refusal at confirm. */
function outcomeOf(play: Play): string | undefined {
  const { state, effects, started, step } = play;
  if (effects.some((effect) => effect.do === 'lose_token')) return 'token';
  if (state.is === 'ended') return state.step;
  if (started?.do !== 'refresh') return play.live.trouble?.text;
  if (step === 'verification') return 'verification';
  return started.follow === 'price' ? 'price' : 'read';
}

test('document names codes for each status that the flow knows', () => {
  assert.ok(ERROR_CODES.length > 40);
  for (const status of [400, 401, 403, 404, 408, 409, 429, 500, 501, 503])
    assert.ok(
      ERROR_CODES.some(([one]) => one === status),
      String(status),
    );
});

for (const [status, code] of ERROR_CODES) {
  const outcome = outcomeFor(status, code);

  test(`${status} ${code} at confirm leads to ${outcome}`, () => {
    const play = at('confirm').does('pay').send({ type: 'not_paid' }).ends(refusal(status, code));
    assert.equal(outcomeOf(play), outcome);
    if (outcome in texts) {
      assert.deepEqual([play.step, play.live.trouble?.code, play.live.trouble?.requestId], ['confirm', code, 'req_1']);
      assert.equal(play.running, undefined);
    }
  });

  test(`${status} ${code} before anything is shown leads to a screen`, () => {
    const play = begin().ends(refusal(status, code));
    const isPassing =
      outcome === 'tooMany' || (outcome === 'unreachable' && status !== 408 && code !== 'rail_unavailable');
    if (outcome === 'token') assert.deepEqual(play.effects, [{ do: 'lose_token', mayRenew: false }]);
    else assert.equal(play.step, isPassing ? 'offline' : 'unavailable');
  });
}

test('code that nobody knows leaves a sentence', () => {
  for (const [status, text] of [
    [418, 'unavailableText'],
    [502, 'unreachable'],
  ] as const) {
    const play = at('confirm').does('pay').ends(refusal(status, 'code_of_tomorrow'));
    assert.deepEqual([play.step, play.live.trouble?.text], ['confirm', text]);
  }
  const play = at('confirm').does('pay').ends(refusal(403, 'code_of_tomorrow'));
  assert.equal(play.step, 'unavailable');
});

test('refusal of something before the gate ends nothing', () => {
  const play = open({ session: { payment: paymentWith() } });
  play.send({ type: 'poll_failed', error: refusal(403, 'unknown'), failures: 1 });
  assert.deepEqual([play.step, waits(play.state), play.messages], ['instructions', true, []]);
});

test('payment that is repeated after 429 is as unsettled as the first one', () => {
  const play = at('confirm')
    .does('pay')
    .send({ type: 'not_paid' })
    .ends(refusal(429, 'rate_limited', 7));
  play.tick(7000).ends(new NoAnswer());
  assert.equal(play.view.step === 'offline' && play.view.lost === 'outcome', true);
  assert.deepEqual(play.does('retry').started, { do: 'refresh', follow: 'payment', because: null });
});

test('refused call is repeated by retry', () => {
  const play = at('confirm').does('pay').ends(refusal(409, 'wallet_mismatch'));
  assert.equal(play.does('retry').started?.do, 'pay');
  assert.equal(play.live.trouble, null);
});

test('refusal of a payment that was sent again leads to a look at the session before a further one', () => {
  const play = at('confirm').does('pay').ends(new NoAnswer());
  play.does('retry').hears({}, false).ends();
  assert.deepEqual(play.started?.do === 'pay' && play.started.isRepeated, true);
  play.send({ type: 'not_paid' }).ends(refusal(503, 'rail_unavailable'));
  assert.deepEqual(play.does('retry').started, { do: 'refresh', follow: 'payment', because: null });
});

test('429 repeats the call at its time and no sooner, in a page that is visible and online', () => {
  const play = at('confirm')
    .does('pay')
    .send({ type: 'not_paid' })
    .ends(refusal(429, 'rate_limited', 7));
  assert.equal('retryIn' in play.view && play.view.retryIn, 7);
  assert.equal(play.tick(6999).started, undefined);
  assert.equal('retryIn' in play.view && play.view.retryIn, 1);
  assert.equal(play.tick(1, false).started, undefined);
  assert.equal(play.send({ type: 'offline' }).tick().started, undefined);
});

test('429 of a payment repeats the payment', () => {
  const play = at('confirm')
    .does('pay')
    .send({ type: 'not_paid' })
    .ends(refusal(429, 'rate_limited', 7));
  assert.equal(play.tick(7000).started?.do, 'pay');
});

test('change of the payment takes away what was refused before', () => {
  const play = at('confirm')
    .does('pay')
    .send({ type: 'not_paid' })
    .ends(refusal(429, 'rate_limited', 7));
  play.hears({ payment: paymentWith() });
  assert.deepEqual([play.step, play.live.trouble, play.tick(7000).started], ['instructions', null, undefined]);
});

test('state that changed without the page forgets the intent and reads the session', () => {
  const play = at('confirm').does('pay').ends(refusal(409, 'session_payment_in_progress'));
  assert.deepEqual(
    play.effects.map((effect) => effect.do),
    ['forget_intent', 'run'],
  );
  assert.equal(play.hears({ payment: paymentWith() }).ends().step, 'instructions');
});

test('unavailable session is told to the page around the frame', () => {
  const play = at('confirm', { host: { isFramed: true } })
    .does('pay')
    .ends(refusal(501, 'rails_not_available'));
  assert.deepEqual(play.messages.at(-1), { type: 'unavailable', reason: 'rails_not_available' });
});

test('refusal of an end too late leaves the payment, with the reason', () => {
  const play = open({ session: { payment: paymentWith() } })
    .does('cancel')
    .ends(refusal(409, 'payment_not_cancellable'));
  assert.deepEqual([play.step, play.live.trouble?.text], ['instructions', 'tooLate']);
});

// The wait for a change of the session.

test('wait that fails is quiet twice, and is silent while a payment is sent', () => {
  const fails = (play: Play, failures: number) => play.send({ type: 'poll_failed', error: new NoAnswer(), failures });
  assert.equal(fails(at('confirm'), 2).step, 'confirm');
  assert.equal(fails(at('confirm'), 3).step, 'offline');
  assert.equal(fails(at('confirm').does('pay'), 3).step, 'confirm');
});

test('wait that is refused for certain is reported, and a passing refusal is not', () => {
  const refused = (status: number, code: string) =>
    at('confirm').send({ type: 'poll_failed', error: refusal(status, code), failures: 1 });
  assert.equal(refused(403, 'key_revoked').step, 'unavailable');
  assert.equal(refused(409, 'session_not_open').started?.do, 'refresh');
  for (const [status, code] of [
    [429, 'rate_limited'],
    [503, 'overloaded'],
    [404, 'resource_not_found'],
  ] as const) {
    const play = refused(status, code);
    assert.deepEqual([play.step, play.live.trouble, play.started], ['confirm', null, undefined]);
  }
});

test('session that a wait brings is taken, unless a payment is sent', () => {
  const session = at('confirm').live.session;
  assert.deepEqual(at('confirm').send({ type: 'polled', session }).effects, [{ do: 'take', session }]);
  assert.deepEqual(at('confirm').does('pay').send({ type: 'polled', session }).effects, []);
  const unknown = at('confirm').does('pay').ends(new NoAnswer()).send({ type: 'polled', session });
  assert.deepEqual(unknown.started, { do: 'refresh', follow: 'payment', because: null });
});

// The token.

const loses = (play: Play) => play.send({ type: 'poll_failed', error: refusal(401, 'unauthorized'), failures: 1 });

test('token that dies is renewed unless it died within 10 seconds', () => {
  assert.deepEqual(loses(at('confirm').wait(9_999)).effects, [{ do: 'lose_token', mayRenew: false }]);
  const play = loses(at('confirm').wait(10_000));
  assert.deepEqual(play.effects, [{ do: 'lose_token', mayRenew: true }]);
  assert.deepEqual(play.live.token, { value: 'token_1', since: 60_000, isLost: true });
  play.send({ type: 'token', token: 'token_2' });
  assert.deepEqual([play.started?.do, play.live.token?.isLost, play.step], ['refresh', false, 'confirm']);
});

test('token that dies without a further one ends the flow, and another token revives it where it was', () => {
  const play = loses(at('confirm')).send({ type: 'end', step: 'over', code: 'unauthorized' });
  assert.equal(play.step, 'over');
  assert.deepEqual(play.send({ type: 'token', token: 'token_1' }).effects, []);
  assert.equal(play.step, 'over');
  play.send({ type: 'token', token: 'token_2' });
  assert.deepEqual([play.started?.do, play.step], ['refresh', 'confirm']);
});

test('flow that ended for another reason stays ended', () => {
  const play = at('confirm').send({ type: 'end', step: 'unavailable', code: 'key_revoked' });
  for (const event of [
    { type: 'token', token: 'token_2' },
    { type: 'online' },
    { type: 'retry' },
    { type: 'pay' },
    { type: 'shown_again' },
  ] as const)
    assert.deepEqual([play.send(event).step, play.effects], ['unavailable', []], event.type);
});

test('call that ends after the flow has ended leaves no task behind', () => {
  const play = at('confirm').does('pay').send({ type: 'end', step: 'over', code: 'unauthorized' });
  assert.equal(play.running, 'pay');
  assert.equal(play.ends(refusal(503, 'overloaded')).running, undefined);
  assert.equal(play.send({ type: 'token', token: 'token_2' }).started?.do, 'refresh');
});

test('token and what the page around the frame has decided come together', () => {
  const play = begin({ host: { canDeposit: true, lockedSide: 'swap' } });
  assert.deepEqual(play.state.is === 'waiting' && play.state.host, {
    isFramed: false,
    canDeposit: true,
    canDepositMemo: false,
    lockedSide: 'swap',
  });
  assert.deepEqual(play.started, { do: 'load' });
});

test('task of a verification that the customer has left is dropped', () => {
  const play = at('price')
    .does('back')
    .send({ type: 'verification', task: taskWith({ url: 'https://verify.example/' }) });
  assert.equal(play.step, 'details');
});
