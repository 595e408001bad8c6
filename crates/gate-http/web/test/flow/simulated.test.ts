// Payments of the sandbox: they look like live ones, and the customer pretends to send the money.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoAnswer } from '../../src/widget/flow/refusals';
import type { Payment } from '../../src/widget/types';
import { paymentWith, SIMULATED_SWAP } from './objects';
import { at, open, refusal, type Play } from './play';

const BANK = { type: 'sandbox', account_holder: 'Test Payments', iban: 'DE89370400440532013000', reference: 'PS7K42' };
const CARD = { type: 'sandbox', url: 'https://pay.example/sandbox/card?payment=pay_1' };
const bank = paymentWith({ instructions: BANK });

const shown = (payment: Partial<Payment>, mode: 'test' | 'live' = 'test') => {
  const { view } = open({ session: { mode, payment: paymentWith(payment) } });
  return view.step === 'instructions' && [view.ask, view.isSimulated];
};
const instructed = (): Play => open({ session: { payment: bank } });
const pretending = (): Play => instructed().does('continue');

test('payment of the sandbox asks for what it would ask for in live', () => {
  const { type, ...account } = BANK;
  assert.equal(type, 'sandbox');
  assert.deepEqual(shown({ instructions: BANK }), ['bank', true]);
  assert.deepEqual(shown({ instructions: account }), ['bank', false]);
  assert.deepEqual(shown({ instructions: CARD, payment_method: 'card' }), ['redirect', true]);
  assert.deepEqual(shown({ instructions: { type: 'sandbox' }, payment_method: 'card' }), ['redirect', true]);
  assert.deepEqual(shown(SIMULATED_SWAP), ['crypto', true]);
  assert.deepEqual(shown({ side: 'off_ramp', instructions: SIMULATED_SWAP.instructions }), ['crypto', true]);
  // A transfer can also have a page on which the customer makes it.
  assert.deepEqual(shown({ instructions: { ...account, url: 'https://bank.example/' } }), ['bank', false]);
});

test('nothing is simulated in mode live', () => {
  const play = open({ session: { mode: 'live', payment: bank } });
  assert.deepEqual(shown({ instructions: BANK }, 'live'), ['bank', false]);
  play.does('continue');
  assert.deepEqual([play.step, play.started], ['progress', undefined]);
});

test('customer pretends once, and the page is busy until the session was read', () => {
  const play = pretending();
  assert.deepEqual(play.started, { do: 'pretend', payment: 'pay_1' });
  assert.deepEqual([play.step, play.view.work], ['instructions', 'loading']);
  assert.equal(play.does('continue').started, undefined);
  play.hears({ status: 'completed', payment: { ...bank, status: 'completed' } }).ends();
  assert.equal(play.step, 'done');
});

test('payment that goes on after it was pretended shows its progress, and can be cancelled', () => {
  const play = pretending().hears().ends();
  assert.deepEqual([play.step, play.view.work], ['progress', null]);
  assert.equal(play.does('cancel').running, 'cancel');
  const again = pretending().ends().does('back');
  assert.equal(again.step, 'instructions');
  assert.equal(again.does('continue').running, 'pretend');
});

test('customer of a rail that cannot pretend goes on as if the money was sent', () => {
  for (const [status, code] of [
    [409, 'not_simulated'],
    [404, 'resource_not_found'],
    [404, 'route_not_found'],
  ] as const) {
    const play = pretending().ends(refusal(status, code));
    assert.deepEqual([play.step, play.live.trouble, play.started], ['progress', null, undefined], code);
  }
});

test('pretending that was refused for now can be tried again', () => {
  const play = pretending().ends(refusal(503, 'service_unavailable'));
  assert.deepEqual([play.step, play.live.trouble?.text, play.view.work], ['instructions', 'unreachable', null]);
  assert.equal(play.does('retry').running, 'pretend');
  const limited = pretending().ends(refusal(429, 'rate_limited', 3));
  assert.deepEqual([limited.step, limited.live.trouble?.text], ['instructions', 'tooMany']);
  assert.equal(limited.tick(3000).running, 'pretend');
});

test('lost answer leads to a look at the session, and back to the same button', () => {
  const play = pretending().ends(new NoAnswer());
  assert.equal(play.step, 'offline');
  play.does('retry').hears().ends();
  assert.deepEqual([play.step, play.started], ['instructions', undefined]);
  assert.equal(play.does('continue').running, 'pretend');
});

test('end that the amount chooses is shown, and nothing is left of the pretending', () => {
  const failed = { ...bank, status: 'failed' } as const;
  const play = pretending().hears({ payment: failed }).ends();
  assert.deepEqual([play.step, play.live.sent], ['failed', null]);
  const cancelled = pretending().hears({ payment: { ...bank, status: 'cancelled' } });
  assert.deepEqual([cancelled.ends().live.cancelled, cancelled.live.sent], ['left', null]);
});

test('wallet of the partner that has sent settles a payment of the sandbox', () => {
  const host = { isFramed: true, canDeposit: true };
  const asked = () => at('confirm', { host }).does('pay').paid(SIMULATED_SWAP);
  const answers = (play: Play, txHash: string | null) => play.send({ type: 'deposited', requestId: 'pay_1', txHash });
  assert.deepEqual(answers(asked(), '0xhash').started, { do: 'pretend', payment: 'pay_1' });
  assert.equal(answers(asked(), null).started, undefined);
  const play = answers(asked(), '0xhash').hears().ends();
  assert.equal(play.step, 'progress');
});
