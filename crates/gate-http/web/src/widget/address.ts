import { keccak_256 } from '@noble/hashes/sha3.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { fromBase58, fromBase58Check, witnessFits } from './encodings';

const isZero = (bytes: number[]) => bytes.every((byte) => byte === 0);

/** A TRON address is 21 bytes with a checksum, and begins with 0x41. */
function tronFits(address: string): boolean {
  const bytes = fromBase58Check(address);
  return bytes?.length === 21 && bytes[0] === 0x41 && !isZero(bytes.slice(1));
}

/** A Solana address is 32 bytes. It has no checksum. */
function solanaFits(address: string): boolean {
  const bytes = fromBase58(address);
  return bytes?.length === 32 && !isZero(bytes);
}

/** Addresses of the main network: a key or a script with a checksum, or a witness program. */
function bitcoinFits(address: string): boolean {
  const bytes = fromBase58Check(address);
  return bytes ? bytes.length === 21 && (bytes[0] === 0 || bytes[0] === 5) : witnessFits(address, 'bc');
}

const shape = (form: RegExp) => (address: string) => form.test(address);

/** Checks of wallet addresses by network. They catch mix-ups early; the server's check decides. */
const CHECKS: [RegExp, (address: string) => boolean][] = [
  [/bitcoin|^btc/, bitcoinFits],
  [/solana|^sol/, solanaFits],
  [/tron|^trx/, tronFits],
  [/litecoin|^ltc/, shape(/^(ltc1[02-9ac-hj-np-z]{8,87}|[LM3][1-9A-HJ-NP-Za-km-z]{25,34})$/)],
  [/stellar|^xlm/, shape(/^G[A-Z2-7]{55}$/)],
  [/ripple|xrp/, shape(/^r[1-9A-HJ-NP-Za-km-z]{24,34}$/)],
  [/dogecoin|^doge/, shape(/^[DA9][1-9A-HJ-NP-Za-km-z]{25,34}$/)],
];
const EVM = /^0x[0-9a-fA-F]{40}$/;
/** Zero-width characters, marks of the writing direction, and the soft hyphen. */
const INVISIBLE = /[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]/g;

/** EIP-55 writes a checksum in upper and lower case. An address in one case has none. */
function checksumFits(address: string): boolean {
  const digits = address.slice(2);
  const plain = digits.toLowerCase();
  if (digits === plain || digits === digits.toUpperCase()) {
    return true;
  }
  const hash = bytesToHex(keccak_256(new TextEncoder().encode(plain)));
  return [...digits].every((sign, index) => sign === (parseInt(hash[index] ?? '0', 16) > 7 ? sign.toUpperCase() : sign.toLowerCase()));
}

export function addressFits(address: string, chain: string, evm: boolean): boolean {
  if (evm) {
    return EVM.test(address) && !/^0x0+$/.test(address) && checksumFits(address);
  }
  const check = CHECKS.find(([names]) => names.test(chain.toLowerCase()));
  return check ? check[1](address) : address.length >= 8 && !/\s/.test(address);
}

/**
 * Takes the address out of a pasted text: without white space around it, without invisible characters, and out of a payment URI.
 *
 * A transfer of a token (ERC-681) names the token's contract first and the recipient in `address`. Any other call of a contract
 * has no recipient that this function knows, so the text stays as it is and no check accepts it.
 */
export function readAddress(pasted: string): string {
  const text = pasted.replace(INVISIBLE, '').trim();
  const uri = /^[a-z][a-z0-9+.-]*:(?:\/\/)?(?:pay-)?([^/?@]+)(?:@[^/?]*)?(?:\/([^?]*))?(?:\?(.*))?$/i.exec(text);
  if (!uri) return text;
  const [, target = '', call, query] = uri;
  if (!call) return target;
  const recipient = new URLSearchParams(query).get('address');
  return call === 'transfer' && recipient ? recipient : text;
}

/** A name such as `x.eth`. No address contains a dot. */
export const isName = (text: string): boolean => /^[^\s.:/?@]+(\.[^\s.:/?@]+)+$/.test(text);
