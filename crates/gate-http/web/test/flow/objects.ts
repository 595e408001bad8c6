// Objects as the gate sends them.

import { readFileSync } from 'node:fs';
import type { Options, Payment, Quote, Session, VerificationTask } from '../../src/widget/types';

export const START = Date.parse('2026-11-27T05:30:00Z');
export const WALLET = '0x52908400098527886E0F7030069857D2E4169EE7';
const QUOTE_MS = 60_000;

export const instant = (clock: number): string => new Date(clock).toISOString();

const FEES = { total: '0.55', service: '0.50', network: '0.05', currency: 'EUR' };
const ORDER = { asset: 'USDC', network: 'polygon', fiat_amount: '100.00', crypto_amount: '107.58', fees: FEES };

/** An open session whose partner has named the wallet of the customer. */
export const sessionWith = (changes: Partial<Session> = {}): Session => ({
  object: 'embed_session',
  id: 'gs_1',
  mode: 'test',
  status: 'open',
  amount: '100.00',
  currency: 'EUR',
  flow: null,
  target_token: null,
  target_network: null,
  wallet_address: WALLET,
  return_url: 'https://shop.example/thanks',
  cancel_url: 'https://shop.example/basket',
  expires_at: instant(START + 3_600_000),
  server_time: instant(START),
  branding: {
    object: 'branding',
    logo_url: null,
    primary_color: null,
    secondary_color: null,
    accent_color: null,
    brand_name: null,
  },
  merchant: { legal_name: null, support_url: null, terms_url: null, privacy_url: null },
  verification: { status: 'not_required', reason: null },
  payment: null,
  version: '0000000000000001',
  ...changes,
});

export const paymentWith = (changes: Partial<Payment> = {}): Payment => ({
  object: 'embed_payment',
  id: 'pay_1',
  status: 'processing',
  side: 'on_ramp',
  ...ORDER,
  payment_method: 'sepa',
  source_asset: null,
  source_network: null,
  source_amount: null,
  exchange_rate: '1.08',
  instructions: { iban: 'DE89370400440532013000' },
  pay_until: null,
  received: null,
  failure_code: null,
  failure_reason: null,
  failure_message: null,
  tx_refid: 'tx_1',
  created_at: instant(START),
  ...changes,
});

/** What a swap has in place of a method: the crypto that the customer sends. */
export const SWAP = {
  side: 'swap',
  payment_method: null,
  source_asset: 'BTC',
  source_network: 'bitcoin',
  source_amount: '0.002',
} as const satisfies Partial<Quote>;

/** A payment of a swap says where the crypto goes. */
export const SWAP_PAYMENT = { ...SWAP, instructions: { address: 'bc1qexample' } } as const satisfies Partial<Payment>;

/** The same swap at the sandbox's rail. */
export const SIMULATED_SWAP = {
  ...SWAP,
  instructions: { type: 'sandbox', address: 'bc1qexample' },
} as const satisfies Partial<Payment>;

export const quoteAt = (clock: number, changes: Partial<Quote> = {}): Quote => ({
  object: 'signed_quote',
  id: 'quote_1',
  status: 'active',
  side: 'on_ramp',
  currency: 'EUR',
  ...ORDER,
  payment_method: 'sepa',
  exchange_rate: '1.08',
  expires_at: instant(clock + QUOTE_MS),
  consumed_at: null,
  created_at: instant(clock),
  signature: '00',
  ...changes,
});

export const taskWith = (changes: Partial<VerificationTask> = {}): VerificationTask => ({
  object: 'embed_verification',
  status: 'required',
  url: null,
  form: null,
  expires_at: null,
  reason: null,
  ...changes,
});

/** The contracts of USDC on the networks below. */
export const USDC = '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359';
export const USDC_SOLANA = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const ASSETS = [
  {
    symbol: 'USDC',
    name: 'USD Coin',
    networks: [
      { chain: 'polygon', evm: true, contract_address: USDC },
      { chain: 'solana', evm: false, contract_address: USDC_SOLANA },
    ],
    limits: null,
  },
  {
    symbol: 'BTC',
    name: 'Bitcoin',
    networks: [{ chain: 'bitcoin', evm: false, contract_address: null }],
    limits: null,
  },
];
const USUAL_TIME = { from_seconds: 600, to_seconds: 86_400 };
const SEPA = { id: 'sepa', name: 'SEPA transfer', currency: 'EUR', usual_time: USUAL_TIME };
const RAMP = { assets: ASSETS, usual_time: null, indicative: [] };

export const OPTIONS: Options = {
  object: 'embed_options',
  country_code: 'DE',
  sides: [
    { ...RAMP, side: 'on_ramp', methods: [{ ...SEPA, account: null }] },
    { ...RAMP, side: 'off_ramp', methods: [{ ...SEPA, account: 'iban' }] },
    { ...RAMP, side: 'swap', methods: [], usual_time: USUAL_TIME },
  ],
};

/** Each error code of the published documents with its status. */
export const ERROR_CODES: readonly [status: number, code: string][] = Array.from(
  readFileSync(new URL('../../src/wire/gate_embed.ts', import.meta.url), 'utf8').matchAll(/^ {2}(\d{3}): (.*);$/gm),
).flatMap(([, status, codes = '']) =>
  Array.from(codes.matchAll(/'(\w+)'/g), ([, code = '']): [number, string] => [Number(status), code]),
);

/** Lets every change of an object fail. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
  return value;
}
