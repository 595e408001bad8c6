// How a payment goes on and ends, and what the page around the frame hears about it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NoAnswer } from '../../src/widget/flow/refusals';
import { waits } from '../../src/widget/flow/state';
import { instant, paymentWith, START, SWAP_PAYMENT, WALLET } from './objects';
import { at, open, refusal, type Play } from './play';

const FRAMED = { host: { isFramed: true, canDeposit: true } } as const;
const messagesOf = (play: Play, type: string) => play.messages.filter((message) => message.type === type);

test('payment is sent with the price and the address that are shown', () => {
  const play = at('confirm', { session: { wallet_address: null } }).edits({ wallet_address: WALLET });
  assert.deepEqual(play.does('pay').started, {
    do: 'pay',
    body: { quote_id: 'quote_1', wallet_address: WALLET },
    isRepeated: false,
  });
});

test('payment names no address if the session does, and the account in a sale', () => {
  const body = (play: Play) =>
    play.does('pay').started?.do === 'pay' && play.started?.do === 'pay' && play.started.body;
  assert.deepEqual(body(at('confirm')), { quote_id: 'quote_1' });
  const sale = open({ session: { flow: 'off_ramp' } }).does('continue');
  sale.edits({ iban: 'DE89 3704 0044 0532 0130 00' }).does('continue').quoted().does('continue');
  assert.deepEqual(body(sale), { quote_id: 'quote_1', payout: { iban: 'DE89370400440532013000' } });
});

test('second press does nothing while the payment is sent, and neither does another step', () => {
  const play = at('confirm').does('pay');
  assert.equal(play.does('pay').started, undefined);
  assert.equal(play.does('continue').step, 'confirm');
  assert.equal(play.does('retry').started, undefined);
  assert.equal(play.does('cancel').started, undefined);
  assert.equal(play.running, 'pay');
});

test('payment without a known outcome is told apart from one that is not sent, and is sent again by itself', () => {
  const play = at('confirm').does('pay').ends(new NoAnswer());
  assert.deepEqual(play.view.step === 'offline' && play.view.lost === 'outcome', true);
  assert.deepEqual(play.does('retry').started, { do: 'refresh', follow: 'payment', because: null });
  play.hears({}, false).ends();
  assert.deepEqual(play.started, { do: 'pay', body: { quote_id: 'quote_1' }, isRepeated: true });
  play.paid();
  assert.deepEqual([play.step, play.live.unsettled], ['instructions', null]);
});

test('payment whose outcome the session shows is never sent again', () => {
  const play = at('confirm').does('pay').ends(new NoAnswer()).does('retry');
  play.hears({ payment: paymentWith() }).ends();
  assert.deepEqual([play.step, play.started, play.live.unsettled], ['instructions', undefined, null]);
});

test('session without an answer leaves the outcome unknown, and nothing is sent', () => {
  const play = at('confirm').does('pay').ends(new NoAnswer()).does('retry').ends(new NoAnswer());
  assert.deepEqual([play.step, play.started], ['offline', undefined]);
  assert.equal(play.view.step === 'offline' && play.view.lost === 'outcome', true);
});

test('customer says that the money is sent, and can look at the instructions again', () => {
  const play = at('confirm').does('pay').paid().does('continue');
  assert.equal(play.step, 'progress');
  assert.equal(play.does('back').step, 'instructions');
});

test('payment of this page is told apart from one of another tab', () => {
  const isOwn = ({ view }: Play) => 'isOwn' in view && view.isOwn;
  assert.equal(isOwn(at('confirm').does('pay').paid()), true);
  assert.equal(isOwn(at('confirm').hears({ payment: paymentWith() })), false);
});

test('failed payment is tried again at a new price, and stays left', () => {
  const play = at('confirm')
    .does('pay')
    .paid()
    .hears({ payment: paymentWith({ status: 'failed' }) });
  assert.equal(play.step, 'failed');
  play.does('retry');
  assert.deepEqual([play.step, play.started?.do], ['price', 'quote']);
  assert.equal(play.hears().quoted({ id: 'quote_2' }).does('continue').step, 'confirm');
});

test('failed payment without its details asks for them first', () => {
  const failed = { payment: paymentWith({ status: 'failed' }), wallet_address: null };
  const play = open({ session: failed }).does('retry');
  assert.deepEqual([play.step, play.started], ['details', undefined]);
});

test('failed payment leads to another way by its own button', () => {
  const play = open({ session: { payment: paymentWith({ status: 'failed' }) } }).does('choose_again');
  assert.deepEqual([play.step, play.started], ['details', undefined]);
});

test('further payment that fails is shown although an earlier one was left', () => {
  const play = open({ session: { payment: paymentWith({ status: 'failed' }) } }).does('choose_again');
  assert.equal(play.hears({ payment: paymentWith({ id: 'pay_2', status: 'failed' }) }).step, 'failed');
});

test('cancelled payment is left by itself at a new price, and told about until the customer goes on', () => {
  const isCancelled = () => 'isCancelled' in play.view && play.view.isCancelled;
  const play = at('confirm').does('pay').paid().does('cancel');
  play.hears({ payment: paymentWith({ status: 'cancelled' }) });
  assert.equal(play.running, 'cancel');
  play.ends();
  assert.deepEqual([play.step, play.started?.do, isCancelled()], ['price', 'quote', true]);
  play.quoted({ id: 'quote_2' });
  assert.equal(isCancelled(), true);
  play.does('continue');
  assert.deepEqual([play.step, isCancelled()], ['confirm', false]);
});

test('payment that another tab cancels is left at once', () => {
  const play = open({ session: { payment: paymentWith() } }).hears({ payment: paymentWith({ status: 'cancelled' }) });
  assert.deepEqual([play.step, play.started?.do], ['price', 'quote']);
});

test('cancelled payment of a session that is over stays over', () => {
  const play = open({ session: { payment: paymentWith() } });
  play.hears({ payment: paymentWith({ status: 'cancelled' }), status: 'expired' });
  assert.deepEqual([play.step, play.started], ['over', undefined]);
});

// The page around the frame.

test('end of a payment is told once', () => {
  for (const [status, type] of [
    ['completed', 'success'],
    ['failed', 'error'],
  ] as const) {
    const play = open({ ...FRAMED, session: { payment: paymentWith() } });
    const payment = paymentWith({ status });
    play.hears({ payment }).hears({ payment });
    assert.equal(messagesOf(play, type).length, 1, status);
  }
  const play = open({ ...FRAMED, session: { payment: paymentWith() } });
  play.hears({ payment: paymentWith({ status: 'cancelled' }) });
  assert.deepEqual(play.messages, []);
});

test('failure and the success after it are told in their order, with their fields', () => {
  const play = open({ ...FRAMED, session: { payment: paymentWith() } });
  play.hears({ payment: paymentWith({ status: 'failed', failure_code: 'provider_declined', failure_message: 'No.' }) });
  play.hears({ payment: paymentWith({ id: 'pay_2' }) });
  play.hears({ payment: paymentWith({ id: 'pay_2', status: 'completed' }) });
  assert.deepEqual(play.messages, [
    { type: 'error', code: 'provider_declined', message: 'No.', payment_id: 'pay_1' },
    { type: 'success', tx_id: 'tx_1', session_id: 'gs_1' },
  ]);
});

// The wallet of the partner.

const swap = (changes = {}) => ({ ...SWAP_PAYMENT, ...changes });
const deposits = (play: Play) => messagesOf(play, 'deposit');

test('wallet of the partner is asked once, for the payment that this page made under a key of its own', () => {
  const play = at('confirm', FRAMED).does('pay').paid(swap());
  play.hears().hears({ version: '2' });
  assert.deepEqual(deposits(play), [
    {
      type: 'deposit',
      request_id: 'pay_1',
      asset: 'BTC',
      network: 'bitcoin',
      amount: '0.002',
      address: 'bc1qexample',
      memo: null,
    },
  ]);
  assert.equal(play.view.step === 'instructions' && play.view.ask, 'wallet');
});

test('wallet is not asked for another payment, another key, a purchase, or without the partner', () => {
  const payment = paymentWith(swap());
  assert.deepEqual(deposits(at('confirm', FRAMED).does('pay').hears({ payment }).ends()), []);
  assert.deepEqual(deposits(at('confirm', FRAMED).does('pay').paid(swap(), false)), []);
  assert.deepEqual(deposits(at('confirm', FRAMED).does('pay').paid()), []);
  assert.deepEqual(
    deposits(
      at('confirm', FRAMED)
        .does('pay')
        .paid(swap({ instructions: null })),
    ),
    [],
  );
  assert.deepEqual(deposits(at('confirm').does('pay').paid(swap())), []);
  assert.deepEqual(deposits(open({ ...FRAMED, session: { payment } })), []);
});

test('wallet is asked to send a memo only if the SDK of the page hands memos on, and the address is shown otherwise', () => {
  const withMemo = (canDepositMemo: boolean, memo: string) =>
    at('confirm', { host: { ...FRAMED.host, canDepositMemo } })
      .does('pay')
      .paid(swap({ instructions: { address: 'bc1qexample', memo } }));
  assert.equal(deposits(withMemo(true, '10447'))[0]?.['memo'], '10447');
  const play = withMemo(false, '10447');
  assert.deepEqual(deposits(play), []);
  assert.equal(play.view.step === 'instructions' && play.view.ask, 'crypto');
  assert.equal(deposits(withMemo(false, ''))[0]?.['memo'], null);
});

test('wallet that has sent leads to the progress, and one that has not to the instructions', () => {
  const asked = () => at('confirm', FRAMED).does('pay').paid(swap());
  const answers = (play: Play, requestId: string, txHash: string | null) =>
    play.send({ type: 'deposited', requestId, txHash });
  assert.equal(answers(asked(), 'pay_1', '0xhash').step, 'progress');
  const refused = answers(asked(), 'pay_1', null);
  assert.equal(refused.view.step === 'instructions' && refused.view.ask, 'crypto');
  assert.equal(answers(asked(), 'pay_2', '0xhash').step, 'instructions');
  // A second answer to the same question changes nothing.
  assert.equal(answers(refused, 'pay_1', '0xhash').step, 'instructions');
});

// What can change without this page.

test('page waits for changes as long as another one can cause them', () => {
  const verification = (status: 'pending' | 'required') => ({ session: { verification: { status, reason: null } } });
  const cases: [string, Play, boolean][] = [
    ['choose', open(), false],
    ['details', at('details'), false],
    ['price', at('price'), true],
    ['confirm', at('confirm'), true],
    ['pending', at('verification', verification('pending')), true],
    ['required', at('verification', verification('required')), false],
    ['processing', open({ session: { payment: paymentWith() } }), true],
    ['completed', open({ session: { status: 'completed' } }), false],
    ['expired', at('confirm').hears({ status: 'expired' }), false],
    ['ended', at('confirm').send({ type: 'end', step: 'over', code: 'unauthorized' }), false],
  ];
  for (const [name, { state }, expected] of cases) assert.equal(waits(state), expected, name);
  const atProvider = at('verification', verification('required')).does('continue');
  assert.equal(waits(atProvider.verified({ url: 'https://verify.example/' }).state), true);
});

test('deadline passes by the clock of the server', () => {
  const play = open({ session: { payment: paymentWith({ pay_until: instant(START + 1000) }) } });
  assert.equal(play.wait(999).step, 'instructions');
  assert.equal(play.wait(1).step, 'progress');
});

test('alert of before is not shown once the session has ended', () => {
  for (const end of [
    { status: 'completed', payment: paymentWith({ status: 'completed' }) },
    { status: 'expired' },
  ] as const) {
    const cancelled = at('confirm').does('pay').paid({ status: 'cancelled' });
    cancelled.quoted().hears({ payment: null }).hears(end);
    const refused = at('price').does('retry').ends(refusal(503, 'service_unavailable')).hears(end);
    for (const { view } of [cancelled, refused]) {
      assert.deepEqual('trouble' in view && [view.trouble, view.isCancelled], [null, false], view.step);
    }
  }
});

// What arrives after the end of the flow, which another token can begin again.

const overDuring = (play: Play) => play.send({ type: 'end', step: 'over', code: 'unauthorized' });
const revived = (play: Play) => play.send({ type: 'token', token: 'token_2' });

test('refusal of a payment that arrives after the end is known to the page that goes on', () => {
  const play = overDuring(at('confirm').does('pay')).send({ type: 'not_paid' }).ends(refusal(409, 'wallet_mismatch'));
  assert.equal(play.step, 'over');
  revived(play).hears({}, false).ends();
  assert.deepEqual([play.step, play.started, play.live.unsettled], ['confirm', undefined, null]);
  assert.deepEqual(play.send({ type: 'polled', session: play.live.session }).started, undefined);
});

test('payment whose answer arrives after the end is asked of the wallet, once', () => {
  const host = { isFramed: true, canDeposit: true };
  const payment = paymentWith(SWAP_PAYMENT);
  const play = overDuring(at('confirm', { host }).does('pay'));
  play.send({ type: 'paid', payment: payment.id, isOwn: true }).ends();
  revived(play).hears({ payment }).ends();
  assert.deepEqual([messagesOf(play, 'deposit').length, play.live.own], [1, payment.id]);
});

test('price that arrives after the end is there when the flow goes on', () => {
  const play = overDuring(at('price').does('retry')).quoted({ id: 'quote_2' });
  assert.equal(play.step, 'over');
  revived(play);
  assert.equal(play.view.step === 'price' && play.view.price?.quote.id, 'quote_2');
});

test('price is not asked for with a token that the gate has just refused', () => {
  const play = at('price').send({ type: 'shown_again' }).ends(refusal(401, 'unauthorized'));
  assert.deepEqual([play.started, waits(play.state)], [undefined, false]);
});
