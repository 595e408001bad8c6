// What outlives a reload: the draft of an open session, what the customer has left behind, and how a session ended.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../../src/widget/draft';
import { keepingOf, sessionOfOutcome, type Kept } from '../../src/widget/flow/kept';
import type { Outcome } from '../../src/widget/types';
import { instant, paymentWith, sessionWith, START, WALLET } from './objects';
import { at, begin, open, Play, refusal } from './play';

const FREE = { wallet_address: null };
const SOLANA: Kept['draft'] = {
  side: 'on_ramp',
  asset: 'USDC',
  network: 'solana',
  payment_method: 'sepa',
  source_asset: 'BTC',
  source_network: 'bitcoin',
  wallet_address: WALLET,
};
const keptOf = (play: Play) => keepingOf(play.state, play.now);
const reloaded = (kept: Partial<Kept>, session = {}) =>
  open({
    session: { ...FREE, ...session },
    kept: { step: 'details', draft: SOLANA, dismissed: null, sent: null, ...kept },
  });

test('choices and the address are kept as they are typed, and the account is not', () => {
  const play = at('details', { session: FREE });
  play.edits({ network: 'solana', wallet_address: WALLET, iban: 'DE89370400440532013000', account_holder: 'Ada' });
  assert.deepEqual(keptOf(play), {
    session: 'gs_1',
    draft: { step: 'details', draft: SOLANA, dismissed: null, sent: null },
    end: null,
  });
});

test('reload goes on where the customer was', () => {
  const choice = ({ live: { draft } }: Play) => [draft.asset, draft.network, draft.wallet_address];
  for (const step of ['choose', 'details'] as const) {
    const play = reloaded({ step });
    assert.deepEqual([play.step, ...choice(play)], [step, 'USDC', 'solana', WALLET]);
  }
  const play = reloaded({ step: 'price' });
  assert.deepEqual([play.step, play.running, ...choice(play)], ['price', 'quote', 'USDC', 'solana', WALLET]);
  assert.equal(play.quoted().does('continue').step, 'confirm');
});

test('sale goes on at its details, because its account is not kept', () => {
  const play = reloaded({ step: 'price', draft: { ...SOLANA, side: 'off_ramp' } });
  assert.deepEqual([play.step, play.live.draft.side, play.running], ['details', 'off_ramp', undefined]);
});

test('what is no longer offered is not chosen again', () => {
  const draft = { ...SOLANA, network: 'tron', payment_method: 'card' };
  const { network, payment_method } = reloaded({ draft }).live.draft;
  assert.deepEqual([network, payment_method], ['polygon', 'sepa']);
  assert.equal(reloaded({}, { flow: 'swap' }).live.draft.side, 'swap');
});

test('kept address never takes the place of the one that the session names', () => {
  const draft: Draft = { ...SOLANA, wallet_address: '0x0000000000000000000000000000000000001234' };
  assert.equal(open({ kept: { step: 'price', draft, dismissed: null, sent: null } }).live.draft.wallet_address, WALLET);
});

test('failure that the customer has left is not shown again', () => {
  const failed = { payment: paymentWith({ status: 'failed' }) };
  const play = open({ session: failed }).does('retry');
  const kept = keptOf(play)?.draft;
  assert.equal(kept?.dismissed, 'pay_1');
  assert.equal(open({ session: failed, kept }).step, 'price');
  const next = { payment: paymentWith({ id: 'pay_2', status: 'failed' }) };
  assert.equal(open({ session: next, kept }).step, 'failed');
});

test('payment that goes on is shown, whatever was kept', () => {
  assert.equal(reloaded({ step: 'price' }, { payment: paymentWith() }).step, 'instructions');
});

test('paid session is kept with the whole address, and its draft is not', () => {
  const play = at('details', { session: FREE });
  play.edits({ wallet_address: WALLET }).does('continue').quoted().does('continue').does('pay').paid();
  play.hears({ status: 'completed', payment: paymentWith({ status: 'completed' }) });
  const kept = keptOf(play);
  assert.deepEqual([kept?.draft, kept?.end?.wallet_address, kept?.end?.status], [null, WALLET, 'completed']);
});

test('session that ended without a payment is kept too', () => {
  const kept = keptOf(open({ session: { status: 'expired' } }));
  assert.deepEqual([kept?.draft, kept?.end?.status], [null, 'expired']);
});

test('payment under a key of an earlier page went to an address that this page does not know', () => {
  const play = at('details', { session: FREE });
  play.edits({ wallet_address: WALLET }).does('continue').quoted().does('continue').does('pay').paid({}, false);
  play.hears({ status: 'completed', payment: paymentWith({ status: 'completed' }) });
  assert.equal(keptOf(play)?.end?.wallet_address, null);
});

test('page that cannot go on keeps what was typed before', () => {
  assert.equal(keptOf(at('details').send({ type: 'end', step: 'over', code: 'unauthorized' })), null);
});

const ENDED: Outcome = {
  object: 'embed_outcome',
  session_id: 'gs_1',
  mode: 'test',
  status: 'completed',
  branding: sessionWith().branding,
  merchant: sessionWith().merchant,
  amount: '100.00',
  currency: 'EUR',
  flow: null,
  return_url: 'https://shop.example/thanks',
  cancel_url: null,
  ended_at: instant(START),
  payment_id: 'pay_1',
  receipt: {
    reference: 'test_tx_1',
    side: 'off_ramp',
    payment_method: 'sepa',
    fiat_amount: '100.00',
    currency: 'EUR',
    crypto_amount: '108.10',
    exchange_rate: '0.93',
    fees: { total: '0.55', service: '0.55', network: '0.00', currency: 'EUR' },
    asset: 'USDC',
    network: 'polygon',
    source_asset: null,
    source_network: null,
    source_amount: null,
    wallet_address: null,
    created_at: instant(START - 60_000),
  },
};
const told = (changes: Partial<Outcome> = {}) =>
  begin().send({ type: 'ended', session: sessionOfOutcome({ ...ENDED, ...changes }) });

test('outcome of a paid session is its receipt, with the way back', () => {
  const play = told();
  const { view } = play;
  assert.ok(view.step === 'done' && view.payment);
  assert.deepEqual(
    [view.payment.tx_refid, view.payment.side, view.payment.crypto_amount, view.canLeave],
    ['test_tx_1', 'off_ramp', '108.10', true],
  );
  assert.deepEqual(play.does('return').effects, [
    { do: 'go', address: 'https://shop.example/thanks?gate_session_id=gs_1' },
  ]);
});

test('outcome without a receipt says how the session ended, and names a payment that was begun', () => {
  for (const status of ['cancelled', 'expired'] as const) {
    const { view } = told({ status, receipt: null });
    assert.deepEqual([view.step, view.session?.payment?.id], ['over', 'pay_1']);
    assert.equal(told({ status, receipt: null, payment_id: null }).view.session?.payment, null);
  }
  // The session was completed without this payment.
  const { view } = told({ receipt: null });
  assert.deepEqual([view.step, view.session?.payment], ['done', null]);
});

test('session that was cancelled goes back at once if the shop has a page for it', () => {
  const cancel = (session = {}, isFramed = false) =>
    open({ session, isFramed, host: { isFramed } }).does('cancel').hears({ status: 'cancelled' }).ends().effects;
  assert.deepEqual(cancel(), [{ do: 'go', address: 'https://shop.example/basket?gate_session_id=gs_1' }]);
  assert.deepEqual(cancel({ cancel_url: null }), []);
  assert.deepEqual(cancel({}, true), []);
  const play = open().does('cancel').ends(refusal(409, 'session_payment_in_progress'));
  assert.deepEqual([play.effects.some((effect) => effect.do === 'go'), play.running], [false, 'refresh']);
});

test('money that the customer has sent stays sent after a reload', () => {
  const play = reloaded({ sent: 'pay_1' }, { payment: paymentWith() });
  assert.equal(play.step, 'progress');
  assert.equal(keptOf(play)?.draft?.sent, 'pay_1');
  assert.equal(reloaded({ sent: 'pay_0' }, { payment: paymentWith() }).step, 'instructions');
});
