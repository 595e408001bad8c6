// Where the customer is: the steps of a checkout, what the form says, verification, and the ways out.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Misfit } from '../../src/widget/address_checks';
import { NoAnswer } from '../../src/widget/flow/refusals';
import type { Effect } from '../../src/widget/flow/events';
import type { MessageKey } from '../../src/widget/i18n';
import type { Payment, Session } from '../../src/widget/types';
import { instant, OPTIONS, paymentWith, sessionWith, START, taskWith, WALLET } from './objects';
import { at, begin, open, Play, refusal } from './play';

const verification = (status: Session['verification']['status']) => ({ verification: { status, reason: null } });

test('session decides the first screen', () => {
  const cases: [Partial<Session>, string][] = [
    [{}, 'choose'],
    [{ status: 'expired' }, 'over'],
    [{ status: 'cancelled' }, 'over'],
    [{ status: 'completed' }, 'done'],
    [{ payment: paymentWith() }, 'instructions'],
    [{ payment: paymentWith({ instructions: null }) }, 'progress'],
    [{ payment: paymentWith({ pay_until: instant(START) }) }, 'progress'],
    [{ payment: paymentWith({ status: 'completed' }) }, 'done'],
    [{ payment: paymentWith({ status: 'failed' }) }, 'failed'],
    [{ payment: paymentWith({ status: 'failed' }), status: 'expired' }, 'over'],
  ];
  for (const [session, step] of cases) assert.equal(open({ session }).step, step, JSON.stringify(session));
});

test('whole amount that has arrived asks for nothing', () => {
  const received = { required: '100.00', currency: 'EUR', asset: null, network: null, at: instant(START) };
  const withAmount = (amount: string) =>
    open({ session: { payment: paymentWith({ received: { ...received, amount } }) } });
  assert.equal(withAmount('99.99').step, 'instructions');
  assert.equal(withAmount('100.0').step, 'progress');
});

test('customer goes from step to step, and back', () => {
  const play = open();
  assert.equal(play.does('continue').step, 'details');
  play.does('continue');
  assert.equal(play.step, 'price');
  assert.deepEqual(play.started, {
    do: 'quote',
    body: { side: 'on_ramp', asset: 'USDC', network: 'polygon', payment_method: 'sepa' },
    because: null,
  });
  assert.equal(play.quoted().does('continue').step, 'confirm');
  assert.deepEqual(
    ['price', 'details', 'choose', 'choose'].map(() => play.does('back').step),
    ['price', 'details', 'choose', 'choose'],
  );
  assert.equal(play.started, undefined);
});

test('continue does nothing while a call runs', () => {
  const play = at('details').does('continue');
  assert.equal(play.does('continue').step, 'price');
  assert.equal(play.started, undefined);
});

test('price that ran out is asked for again by continue and by back', () => {
  const play = at('price').wait(60_000);
  assert.equal(play.does('continue').step, 'price');
  assert.equal(play.started?.do, 'quote');
  play.quoted().does('continue').wait(60_000).does('back');
  assert.equal(play.step, 'price');
  assert.equal(play.started?.do, 'quote');
});

test('swap asks for a price with its source, and without a method', () => {
  const play = open().send({ type: 'choose_side', side: 'swap' }).does('continue').does('continue');
  assert.deepEqual(play.started, {
    do: 'quote',
    body: { side: 'swap', asset: 'USDC', network: 'polygon', source_asset: 'BTC', source_network: 'bitcoin' },
    because: null,
  });
});

test('sides are those that offer something, and one if it is fixed', () => {
  const sides = (play: Play) => 'sides' in play.view && play.view.sides;
  assert.deepEqual(sides(open()), ['on_ramp', 'off_ramp', 'swap']);
  assert.deepEqual(sides(open({ session: { flow: 'swap' } })), ['swap']);
  assert.deepEqual(sides(open({ host: { lockedSide: 'off_ramp' } })), ['off_ramp']);
  const [first, ...others] = OPTIONS.sides;
  assert.ok(first);
  const options = { ...OPTIONS, sides: [{ ...first, assets: [] }, ...others] };
  const play = begin().send({ type: 'loaded', options, session: sessionWith(), settles: false, kept: null }).ends();
  assert.deepEqual(sides(play), ['off_ramp', 'swap']);
  assert.equal(play.live.draft.side, 'off_ramp');
});

test('session without anything on offer is unavailable, unless it has a payment or is over', () => {
  const options = { ...OPTIONS, sides: [] };
  const load = (session: Partial<Session>) =>
    begin({ isFramed: true }).send({
      type: 'loaded',
      options,
      session: sessionWith(session),
      settles: false,
      kept: null,
    });
  const play = load({});
  assert.equal(play.step, 'unavailable');
  assert.deepEqual(play.messages, [{ type: 'unavailable', reason: 'no_options' }]);
  assert.equal(load({ payment: paymentWith() }).step, 'instructions');
  assert.equal(load({ status: 'expired' }).step, 'over');
});

test('targets of the session and choices of its payment are the first choices', () => {
  const { draft } = open({ session: { target_token: 'USDC', target_network: 'SOLANA' } }).live;
  assert.deepEqual([draft.asset, draft.network], ['USDC', 'solana']);
  const after = open({ session: { payment: paymentWith({ side: 'off_ramp', asset: 'BTC', network: 'bitcoin' }) } });
  assert.deepEqual([after.live.draft.side, after.live.draft.asset], ['off_ramp', 'BTC']);
});

// What the form says.

test('form is read without an alert being taken away, and a change takes it away', () => {
  const play = at('details').does('continue').ends(refusal(409, 'rate_unavailable')).does('back');
  play.does('continue').ends(refusal(409, 'rate_unavailable'));
  play.send({ type: 'read', fields: { asset: 'BTC' } });
  assert.equal(play.live.trouble?.code, 'rate_unavailable');
  assert.deepEqual([play.live.draft.asset, play.live.draft.network], ['BTC', 'bitcoin']);
  assert.equal(play.edits({ asset: 'USDC' }).live.trouble, null);
});

test('two assets of a swap are never the same', () => {
  const play = open().send({ type: 'choose_side', side: 'swap' }).edits({ asset: 'BTC' });
  const { asset, network, source_asset, source_network } = play.live.draft;
  assert.deepEqual([asset, network, source_asset, source_network], ['BTC', 'bitcoin', 'USDC', 'polygon']);
});

test('address is taken out of what was pasted, and the wallet of the session stays', () => {
  const pasted = { wallet_address: `ethereum:${WALLET}@1` };
  assert.equal(at('details', { session: { wallet_address: null } }).edits(pasted).live.draft.wallet_address, WALLET);
  assert.equal(at('details').live.draft.wallet_address, WALLET);
});

// Checks of addresses.

const typed = (wallet_address: string, play = at('details', { session: { wallet_address: null } })) =>
  play.edits({ wallet_address });
const checks = (effects: readonly Effect[]) =>
  effects.flatMap((effect) => (effect.do === 'check' ? [`${effect.address} ${effect.network.chain}`] : []));
const faultOf = ({ view }: Play) => 'faults' in view && view.faults.wallet_address?.text;

test('address is checked once for its network, on the step that asks for it', () => {
  const play = typed('0xabc');
  assert.deepEqual(checks(play.effects), ['0xabc polygon']);
  assert.deepEqual(checks(play.send({ type: 'read', fields: { wallet_address: '0xabc' } }).effects), []);
  assert.deepEqual(checks(play.edits({ network: 'solana' }).effects), ['0xabc solana']);
  assert.deepEqual(checks(typed('alice.eth').effects), []);
  assert.deepEqual(checks(typed('').effects), []);
  assert.deepEqual(checks(typed('0xabc', open({ session: { wallet_address: null } })).effects), []);
  assert.deepEqual(checks(at('details').effects), []);
});

test('result of a check counts for the newest address alone', () => {
  const play = typed('0xabc').edits({ wallet_address: '0xabcd' });
  play.send({ type: 'checked', address: '0xabc', chain: 'polygon', misfit: 'sum' });
  assert.equal(faultOf(play), undefined);
  play.send({ type: 'checked', address: '0xabcd', chain: 'solana', misfit: 'sum' });
  assert.equal(faultOf(play), undefined);
  play.send({ type: 'checked', address: '0xabcd', chain: 'polygon', misfit: 'sum' });
  assert.equal(faultOf(play), 'walletSum');
  play.send({ type: 'checked', address: '0xabcd', chain: 'polygon', misfit: null });
  assert.equal('isAddressGood' in play.view && play.view.isAddressGood, true);
});

test('check that could not be made is made again after a change', () => {
  const play = typed('0xabc');
  assert.deepEqual(checks(play.edits({}).effects), ['0xabc polygon']);
  play.send({ type: 'checked', address: '0xabc', chain: 'polygon', misfit: 'else' });
  assert.deepEqual(checks(play.edits({}).effects), []);
});

test('each misfit has its text', () => {
  const misfits = [
    ['sum', 'walletSum'],
    ['else', 'walletElse'],
    ['dead', 'walletDead'],
    [{ others: ['bitcoin'] }, 'walletOther'],
  ] satisfies [Misfit, MessageKey][];
  for (const [misfit, text] of misfits) {
    const play = typed('0xabc').send({ type: 'checked', address: '0xabc', chain: 'polygon', misfit });
    assert.equal(faultOf(play), text);
  }
  assert.equal(faultOf(typed('')), 'walletEmpty');
  assert.equal(faultOf(typed('alice.eth')), 'walletName');
});

// Verification.

for (const status of ['not_required', 'approved'] as const) {
  test(`verification that is ${status} is passed over`, () => {
    assert.equal(at('confirm', { session: verification(status) }).step, 'confirm');
  });
}

for (const status of ['required', 'rejected'] as const) {
  test(`verification that is ${status} waits for the customer`, () => {
    const play = at('confirm', { session: verification(status) });
    assert.deepEqual([play.step, play.started], ['verification', undefined]);
  });
}

test('verification that is pending is looked at by itself', () => {
  const play = at('verification', { session: verification('pending') });
  assert.deepEqual([play.step, play.started], ['verification', { do: 'verify', answers: null }]);
});

test('verification starts by continue, and its approval leads on to the price that is known', () => {
  const play = at('verification', { session: verification('required') }).does('continue');
  assert.deepEqual(play.started, { do: 'verify', answers: null });
  assert.equal(play.verified({ status: 'pending', url: 'https://verify.example/' }).step, 'verification');
  assert.equal(play.hears(verification('pending')).step, 'verification');
  assert.equal(play.hears(verification('approved')).step, 'confirm');
  assert.equal(play.view.step === 'confirm' && play.view.price.quote.id, 'quote_1');
});

test('answers to a form are sent, and a rejection stays on the step', () => {
  const play = at('verification', { session: verification('required') }).does('continue');
  play.verified({ status: 'pending', form: { properties: { name: {} } } }, verification('pending'));
  assert.equal(play.view.step === 'verification' && play.view.task?.form?.properties.name !== undefined, true);
  play.send({ type: 'answer', answers: { name: 'Ada' } });
  assert.deepEqual(play.started, { do: 'verify', answers: { name: 'Ada' } });
  assert.equal(play.verified({ status: 'rejected' }, verification('rejected')).step, 'verification');
});

test('verification without a provider ends the flow', () => {
  const play = at('verification', { session: verification('required') })
    .does('continue')
    .verified({});
  assert.deepEqual(
    [play.step, play.view.step === 'unavailable' && play.view.code],
    ['unavailable', 'verification_required'],
  );
});

test('verification that fails leaves the step, and nothing is called hopeless', () => {
  const play = at('verification', { session: verification('required') }).does('continue');
  play.send({ type: 'verification', task: taskWith() }).ends(refusal(503, 'overloaded'));
  assert.deepEqual([play.step, play.live.trouble?.code], ['verification', 'overloaded']);
});

test('verification without a known price leads to a price', () => {
  const play = at('details', { session: verification('required') }).does('continue');
  play.ends(refusal(403, 'verification_required'));
  assert.deepEqual([play.step, play.started?.do], ['verification', 'refresh']);
  assert.equal(play.hears(verification('approved')).step, 'price');
});

// The ways out.

test('top-level checkout goes back to the address that fits its end', () => {
  const address = (session: Partial<Session>) =>
    open({ session })
      .does('return')
      .effects.map((effect) => effect.do === 'go' && effect.address);
  const paid = { payment: paymentWith({ status: 'completed' }) };
  assert.deepEqual(address({}), ['https://shop.example/basket?gate_session_id=gs_1']);
  assert.deepEqual(address(paid), ['https://shop.example/thanks?gate_session_id=gs_1']);
  assert.deepEqual(address({ cancel_url: null }), ['https://shop.example/thanks?gate_session_id=gs_1']);
  assert.deepEqual(address({ cancel_url: 'javascript:alert(1)' }), []);
});

test('frame leaves the return to its page, and says why', () => {
  const reason = (session: Partial<Session>) => {
    const play = open({ session, host: { isFramed: true } }).does('return');
    assert.ok(play.effects.every((effect) => effect.do === 'post'));
    return play.messages.at(-1);
  };
  assert.deepEqual(reason({}), { type: 'close', reason: 'choose' });
  assert.deepEqual(reason({ status: 'cancelled' }), { type: 'close', reason: 'cancelled' });
  assert.deepEqual(reason({ status: 'completed' }), { type: 'close', reason: 'completed' });
});

test('session is cancelled, or its payment if one goes on', () => {
  assert.deepEqual(open().does('cancel').started, { do: 'cancel', payment: null });
  const play = open({ session: { payment: paymentWith() } }).does('cancel');
  assert.deepEqual(play.started, { do: 'cancel', payment: 'pay_1' });
  const failed: Payment = paymentWith({ status: 'failed' });
  assert.deepEqual(open({ session: { payment: failed } }).does('cancel').started, { do: 'cancel', payment: null });
});

// The connection.

test('lost connection hides each step but done, and the step comes back', () => {
  for (const play of [
    open(),
    at('details'),
    at('price'),
    at('confirm'),
    open({ session: { payment: paymentWith() } }),
  ]) {
    const { step } = play;
    assert.equal(play.send({ type: 'offline' }).step, 'offline');
    assert.deepEqual(play.send({ type: 'online' }).started, { do: 'refresh', follow: 'payment', because: null });
    assert.equal(play.hears().ends().step, step);
  }
  const done = open({ session: { status: 'completed' } }).send({ type: 'offline' });
  assert.equal(done.step, 'done');
});

test('online does nothing on a page that was not offline', () => {
  assert.deepEqual(open().send({ type: 'online' }).effects, []);
});

test('call without an answer leads to the offline screen, whose retry reads the session', () => {
  const play = at('details').does('continue').ends(new NoAnswer());
  assert.equal(play.step, 'offline');
  assert.equal(play.does('retry').started?.do, 'refresh');
  play.hears();
  assert.equal(play.step, 'price');
  assert.equal(play.ends().started?.do, 'quote');
});

test('verification without an answer is asked for again, unless the session says that it is over', () => {
  const lost = () =>
    at('verification', { session: { verification: { status: 'required', reason: null } } })
      .does('continue')
      .ends(new NoAnswer())
      .does('retry');
  const request = lost().hears().ends();
  assert.deepEqual([request.step, request.started], ['verification', undefined]);
  assert.equal(request.does('continue').started?.do, 'verify');
  const response = lost().hears({ verification: { status: 'approved', reason: null } });
  assert.equal(response.ends().step, 'confirm');
});

test('end of a session without an answer is shown by the session, and can be asked for again', () => {
  const lost = () => open().does('cancel').ends(new NoAnswer()).does('retry');
  const request = lost().hears().ends();
  assert.deepEqual([request.step, request.started], ['choose', undefined]);
  assert.equal(request.does('cancel').started?.do, 'cancel');
  const { view } = lost().hears({ status: 'cancelled' }).ends();
  assert.deepEqual([view.step, view.step === 'over' && view.code], ['over', 'session_cancelled']);
});

test('start without an answer is repeated, with or without a token', () => {
  const play = begin().ends(new NoAnswer());
  assert.equal(play.step, 'offline');
  assert.deepEqual(play.does('retry').started, { do: 'load' });
  const first = new Play().send({ type: 'offline' });
  assert.equal(first.step, 'offline');
  assert.deepEqual(first.does('retry').effects, [{ do: 'restart' }]);
});

test('page that the browser had kept reads the session and asks for a price', () => {
  const play = at('confirm').send({ type: 'shown_again' });
  assert.deepEqual(play.started, { do: 'refresh', follow: 'price', because: null });
  assert.equal(play.hears().ends().started?.do, 'quote');
  assert.equal(at('details').send({ type: 'shown_again' }).hears().ends().started, undefined);
  const paid = at('confirm').send({ type: 'shown_again' }).hears({ payment: paymentWith() }).ends();
  assert.deepEqual([paid.step, paid.started], ['instructions', undefined]);
  assert.deepEqual(new Play().send({ type: 'shown_again' }).effects, []);
});

test('cancelling is risky from the moment that money may be under way', () => {
  const isSent = ({ view }: Play) => 'isSent' in view && view.isSent;
  const play = open({ session: { payment: paymentWith() } });
  assert.equal(isSent(play), false);
  assert.deepEqual([play.does('continue').step, isSent(play)], ['progress', true]);
  assert.deepEqual([play.does('back').step, isSent(play)], ['instructions', true]);
  assert.deepEqual([play.does('continue').step, isSent(play)], ['progress', true]);
  const part = { amount: '40', required: '100.00', currency: 'EUR', asset: null, network: null, at: instant(START) };
  assert.equal(isSent(open({ session: { payment: paymentWith({ received: part }) } })), true);
});

test('gate that is busy at the start is asked again by itself, and no connection is called lost', () => {
  const play = new Play().send({ type: 'offline', retryAfter: 7 });
  assert.equal(play.view.step === 'offline' && play.view.lost, 'gate');
  assert.deepEqual(play.tick(6_999).effects, []);
  assert.deepEqual(play.tick(1).effects, [{ do: 'restart' }]);
  assert.deepEqual(play.tick(60_000).effects, []);
  assert.equal(play.view.step === 'offline' && play.view.lost, 'gate', 'until the next answer');
  const withToken = begin().ends(refusal(503, 'service_unavailable', 1));
  assert.equal(withToken.view.step === 'offline' && withToken.view.lost, 'gate');
  assert.equal(withToken.tick(4_999).started, undefined);
  assert.deepEqual(withToken.tick(1).started, { do: 'load' });
  const lost = begin().ends(new NoAnswer());
  assert.equal(lost.view.step === 'offline' && lost.view.lost, 'connection');
  assert.equal(lost.tick(60_000).started, undefined);
});
