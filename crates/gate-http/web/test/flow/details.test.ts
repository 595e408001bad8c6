// What the details say beside the form: addresses of assets, examples of a pair, and limits of the amount.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitsMisfit } from '../../src/widget/draft';
import { estimatesOf } from '../../src/widget/flow/state';
import type { Indicative, Options, Session, SideOptions } from '../../src/widget/types';
import { OPTIONS, sessionWith, USDC, USDC_SOLANA, WALLET } from './objects';
import { at, begin, open, type Play } from './play';

// Addresses of assets.

const withWallet = (wallet_address: string, network = 'polygon', asset = 'USDC') => {
  const play = at('details', { session: { wallet_address: null } }).edits({ asset, network, wallet_address });
  return play.send({ type: 'checked', address: wallet_address, chain: network, misfit: null });
};
const fault = ({ view }: Play) => 'faults' in view && view.faults['wallet_address'];
const REFUSED = { code: 'invalid_address', text: 'walletContract', asset: 'USDC' };
const isGood = ({ view }: Play) => 'isAddressGood' in view && view.isAddressGood;

test('address of an asset itself is no wallet, whichever asset of the session is chosen', () => {
  for (const address of [USDC, USDC.toLowerCase()]) {
    assert.deepEqual(fault(withWallet(address)), REFUSED);
    assert.equal(isGood(withWallet(address)), false);
  }
  assert.deepEqual(fault(withWallet(USDC_SOLANA, 'solana')), REFUSED);
  // Addresses of Solana differ by their case, and a contract belongs to its network.
  assert.equal(fault(withWallet(USDC_SOLANA.toLowerCase(), 'solana')), undefined);
  assert.equal(fault(withWallet(USDC, 'solana')), undefined);
  assert.equal(isGood(withWallet(WALLET)), true);
});

test('address of an asset counts for every side of the session', () => {
  const [first, ...others] = OPTIONS.sides;
  assert.ok(first);
  const contract = WALLET.toLowerCase();
  const other = {
    symbol: 'USDT',
    name: 'Tether',
    networks: [{ chain: 'polygon', evm: true, contract_address: contract }],
    limits: null,
  };
  const options = { ...OPTIONS, sides: [first, ...others.map((side) => ({ ...side, assets: [other] }))] };
  const session = sessionWith({ wallet_address: null });
  const play = begin().send({ type: 'loaded', options, session, settles: true, kept: null }).ends().does('continue');
  assert.deepEqual(fault(play.edits({ wallet_address: WALLET })), { ...REFUSED, asset: 'USDT' });
});

test('wallet of the session is not judged', () => {
  assert.equal(fault(at('details', { session: { wallet_address: USDC } })), undefined);
});

// Examples of a pair.

const example = (crypto_amount: string): Indicative => ({
  asset: 'USDC',
  payment_method: 'sepa',
  crypto_amount,
  fiat_amount: '100.00',
  exchange_rate: '1.08',
  fees: { total: '0.55', service: '0.50', network: '0.05', currency: 'EUR' },
});
const optionsWith = (row: Indicative): Options => ({
  ...OPTIONS,
  sides: OPTIONS.sides.map((side) => ({ ...side, indicative: side.side === 'swap' ? [] : [row] })),
});
const asked = ({ effects }: Play) => effects.filter(({ do: name }) => name === 'estimate');
const answer = (options: Options | null) => ({ type: 'estimated', asset: 'USDC', network: 'solana', options }) as const;

test('examples of a pair that the options lack are asked for once', () => {
  const play = at('details');
  assert.deepEqual(asked(play), []);
  assert.deepEqual(asked(play.edits({ network: 'solana' })), [{ do: 'estimate', asset: 'USDC', network: 'solana' }]);
  assert.equal(estimatesOf(play.live), null);
  assert.deepEqual(asked(play.edits({ account_holder: 'Ada' })), []);
  play.send(answer(optionsWith(example('107.00'))));
  assert.deepEqual('estimates' in play.view && play.view.estimates, [example('107.00')]);
  play.edits({ network: 'polygon' });
  assert.deepEqual(asked(play.edits({ network: 'solana' })), []);
});

test('examples are asked for when the details are shown, and for no swap', () => {
  const play = open({ session: { target_network: 'SOLANA' } });
  assert.deepEqual(asked(play), []);
  assert.equal(asked(play.does('continue')).length, 1);
  const swap = open().send({ type: 'choose_side', side: 'swap' }).does('continue');
  assert.deepEqual(asked(swap.edits({ network: 'solana' })), []);
});

test('examples that cannot be read leave the methods without them, and no alert', () => {
  const play = at('details').edits({ network: 'solana' }).send(answer(null));
  assert.deepEqual(estimatesOf(play.live), []);
  assert.deepEqual([play.step, play.live.trouble, asked(play.edits({}))], ['details', null, []]);
});

// Limits of the amount.

const asset = (symbol: string, min_amount: string, max_amount: string, currency = 'EUR') => ({
  symbol,
  name: symbol,
  networks: [],
  limits: { currency, min_amount, max_amount },
});
const misfitOf = (amount: string, assets: SideOptions['assets'], symbol?: string) => {
  const session: Session = sessionWith({ amount });
  return limitsMisfit({ side: 'on_ramp', assets, methods: [], usual_time: null, indicative: [] }, session, symbol);
};

test('amount is outside of limits only if it is below the least or above the most', () => {
  const limits = { min: '10.00', max: '9007199254740993.00', currency: 'EUR' };
  const only = [asset('USDC', limits.min, limits.max)];
  for (const amount of ['10', '10.00', '10.000000000000000001', '9007199254740993']) {
    assert.equal(misfitOf(amount, only), null, amount);
  }
  for (const amount of ['9.99', '0', '9007199254740993.01']) assert.deepEqual(misfitOf(amount, only), limits, amount);
});

test('amount is outside of all limits only if each asset excludes it', () => {
  const both = [asset('USDC', '10.00', '100.00'), asset('BTC', '1000.00', '5000.00')];
  assert.deepEqual(misfitOf('5.00', both), { min: '10.00', max: '5000.00', currency: 'EUR' });
  assert.deepEqual(misfitOf('5000.01', both), { min: '10.00', max: '5000.00', currency: 'EUR' });
  assert.deepEqual(misfitOf('500.00', both), { min: '10.00', max: '100.00', currency: 'EUR' });
  assert.equal(misfitOf('50.00', both), null);
  assert.deepEqual(misfitOf('50.00', both, 'BTC'), { min: '1000.00', max: '5000.00', currency: 'EUR' });
  assert.equal(misfitOf('50.00', both, 'USDC'), null);
});

test('limits of another currency, and none, exclude no amount', () => {
  const low = asset('USDC', '10.00', '100.00');
  assert.equal(misfitOf('5.00', [asset('BTC', '10.00', '100.00', 'USD')]), null);
  assert.equal(misfitOf('5.00', [low, { ...low, symbol: 'BTC', limits: null }]), null);
  assert.equal(misfitOf('5.00', []), null);
  assert.equal(limitsMisfit(undefined, sessionWith()), null);
});
