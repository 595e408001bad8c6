import { keccakP } from '@noble/hashes/sha3.js';
import type { Network } from './types';
import { fromBase58, fromBase58Check, witnessFits } from './encodings';

const isZero = (bytes: number[]) => bytes.every((byte) => byte === 0);

/** A TRON address is 21 bytes with a checksum, and begins with 0x41. */
async function tronFits(address: string): Promise<boolean> {
  const bytes = await fromBase58Check(address);
  return bytes?.length === 21 && bytes[0] === 0x41 && !isZero(bytes.slice(1));
}

/** A Solana address is 32 bytes. It has no checksum. */
function solanaFits(address: string): boolean {
  const bytes = fromBase58(address);
  return bytes?.length === 32 && !isZero(bytes);
}

/** Addresses of the main network: a key or a script with a checksum, or a witness program. None of them is zero. */
async function bitcoinFits(address: string): Promise<boolean> {
  const bytes = await fromBase58Check(address);
  return bytes
    ? bytes.length === 21 && (bytes[0] === 0 || bytes[0] === 5) && !isZero(bytes.slice(1))
    : witnessFits(address, 'bc');
}

/** Checks of wallet addresses by chain, of the chains that the service checks. They catch mix-ups early; the server's check decides. */
const CHECKS = new Map<string, (address: string) => boolean | Promise<boolean>>([
  ['bitcoin', bitcoinFits],
  ['solana', solanaFits],
  ['tron', tronFits],
]);
const EVM = /^0x[0-9a-fA-F]{40}$/;
/** The length of a block of Keccak-256. */
const BLOCK_BYTES = 136;

/** Keccak-256 of a text of ASCII that is shorter than a block. Its first 32 bytes are the hash. */
function keccak256(text: string): Uint8Array {
  const state = new Uint8Array(200);
  state.set(new TextEncoder().encode(text));
  state[text.length] = 1;
  state[BLOCK_BYTES - 1] = 0x80;
  // The words of the state are little-endian, as on each machine of a browser.
  keccakP(new Uint32Array(state.buffer));
  return state;
}

/** EIP-55 writes a checksum in upper and lower case. An address in one case has none. */
function checksumFits(address: string): boolean {
  const digits = address.slice(2);
  const plain = digits.toLowerCase();
  if (digits === plain || digits === digits.toUpperCase()) {
    return true;
  }
  const hash = keccak256(plain);
  const isUpper = (index: number) => ((hash[index >> 1] ?? 0) & (index % 2 ? 0x08 : 0x80)) > 0;
  return [...digits].every((sign, index) => sign === (isUpper(index) ? sign.toUpperCase() : sign.toLowerCase()));
}

/** Why an address does not fit its network. `sum` says that a character is wrong, and a text names the network that it fits. */
export type Misfit = 'sum' | 'else' | { other: string };

/** Forms whose checksum alone is wrong: the length and the alphabet are right. */
const FORMS = new Map([
  ['tron', /^T[1-9A-HJ-NP-Za-km-z]{33}$/],
  ['bitcoin', /^(bc1[02-9ac-hj-np-z]{39,59}|BC1[02-9AC-HJ-NP-Z]{39,59}|[13][1-9A-HJ-NP-Za-km-z]{25,33})$/],
]);

/** Returns null for an address of this network. `others` are the networks that the session offers. */
export async function misfitOf(address: string, { chain, evm }: Network, others: Network[]): Promise<Misfit | null> {
  if (await addressFits(address, chain, evm)) return null;
  const form = evm ? EVM : FORMS.get(chain);
  if (form?.test(address) && !/^0x0+$/.test(address)) return 'sum';
  for (const other of others) {
    // A form that nothing checks would fit any text.
    const isChecked = other.evm || CHECKS.has(other.chain);
    if (isChecked && (await addressFits(address, other.chain, other.evm))) return { other: other.chain };
  }
  return 'else';
}

export async function addressFits(address: string, chain: string, evm: boolean): Promise<boolean> {
  if (evm) {
    return EVM.test(address) && !/^0x0+$/.test(address) && checksumFits(address);
  }
  const check = CHECKS.get(chain);
  return check ? check(address) : address.length >= 8 && !/\s/.test(address);
}
