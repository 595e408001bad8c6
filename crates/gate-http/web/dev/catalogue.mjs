// What the fake of the gate offers, and the form of its provider of verification.

/** The assets on offer: the price of one in euro, for each chain whether it is an EVM chain, and the contracts. */
export const ASSETS = {
  USDC: {
    name: 'USD Coin',
    euro: 1 / 1.08178875,
    digits: 6,
    chains: { polygon: true, ethereum: true, solana: false },
    contracts: {
      polygon: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
      ethereum: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
      solana: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    },
  },
  BTC: { name: 'Bitcoin', euro: 60_000, digits: 8, chains: { bitcoin: false }, contracts: {} },
};

/** Times in seconds. */
const times = (from_seconds, to_seconds) => ({ from_seconds, to_seconds });
export const SEPA = {
  id: 'sepa',
  name: 'SEPA transfer',
  currency: 'EUR',
  account: 'iban',
  usual_time: times(600, 86_400),
};
export const CARD = { id: 'card', name: 'Card', currency: 'EUR', account: null, usual_time: times(60, 600) };
export const SWAP_TIME = times(300, 1_800);

export const FORM = {
  type: 'object',
  properties: {
    full_name: { type: 'string', title: 'Full name' },
    born_on: { type: 'string', title: 'Date of birth', format: 'date' },
    residence: { type: 'string', title: 'Country', enum: ['DE', 'FR'] },
  },
  required: ['full_name', 'born_on', 'residence'],
};
