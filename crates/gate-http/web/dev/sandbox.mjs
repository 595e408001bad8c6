// What the sandbox's rates, verifier and rail do, as far as the fake of the gate plays them: the cents of an amount choose.

/** How a verification ends. One of 64 waits for the page of the sandbox. */
export const VERIFICATIONS = { 61: 'approved', 62: 'rejected', 63: 'pending', 64: 'pending' };
/** How the first payment fails. */
export const FAILURES = { 31: 'provider_declined', 32: 'provider_error' };
/** Payments that go on although somebody pretends to have sent the money, and those among them that go on for ever. */
export const SLOW = ['33', '34'];
export const LOST = ['34'];
/** The factor of the price from each quote to the next: below 1 the customer receives more. */
const DRIFTS = { 71: 0.998, 72: 1.002 };
export const driftOf = (cents, quotes) => (DRIFTS[cents] ?? 1) ** quotes;

const ACCOUNTS = {
  EUR: { iban: 'DE02120300000000202051', bic: 'TESTDEFFXXX' },
  GBP: { sort_code: '200000', account_number: '55779911' },
  USD: { routing_number: '021000021', account_number: '9876543210' },
};
const ADDRESSES = { bitcoin: '1BitcoinEaterAddressDontSendf59kuE' };
const EVM_ADDRESS = '0x50656e73746f636B2073616e64626f782065766D';
const NOTE = 'Sandbox: pay nothing. No money moves.';

/** What the sandbox's rail asks a customer to do, in the shape of a live rail. `due` is what the customer sends. */
export function instructionsOf({ id, payment_method }, { amount, currency, asset, network }, origin) {
  const common = { type: 'sandbox', note: NOTE, amount };
  if (asset) return { ...common, asset, network, address: ADDRESSES[network] ?? EVM_ADDRESS };
  const fiat = { ...common, payment_method, currency };
  return payment_method === 'card'
    ? { ...fiat, url: `${origin}/sandbox/card?payment=${id}` }
    : { ...fiat, account_holder: 'Penstock Sandbox', ...ACCOUNTS[currency], reference: 'TEST-PS7K42QX9M' };
}
