// What a customer of the played gate scans, in the forms of the real one.

const CHAIN_IDS = { ethereum: 1, polygon: 137 };
/** Units of a token on the chains above. */
const UNITS = 1e6;

/** The text of the QR code for what is still to pay by these instructions, or undefined. */
export function scanOf(instructions, { amount, asset, network, contract }) {
  const { type, address, memo, account_holder: holder, iban, bic = '', reference = '' } = instructions;
  if (type === 'redirect') return undefined;
  if (asset === null) {
    const lines = ['BCD', '002', '1', 'SCT', bic, holder, iban, `EUR${amount}`, '', '', reference];
    return holder && iban ? lines.join('\n').trimEnd() : undefined;
  }
  if (network === 'solana' && type !== 'sandbox') {
    const query = new URLSearchParams({ amount, 'spl-token': contract, ...(memo && { memo }) });
    return `solana:${address}?${query}`.replaceAll('+', '%20');
  }
  if (memo || !address || type === 'sandbox') return address;
  if (network === 'bitcoin') return `bitcoin:${address}?amount=${amount}`;
  const units = Math.round(amount * UNITS);
  return `ethereum:${contract}@${CHAIN_IDS[network]}/transfer?address=${address}&uint256=${units}`;
}
