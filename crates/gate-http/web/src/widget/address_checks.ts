import { keccakP } from '@noble/hashes/sha3.js';
import type { Network } from './types';
import { fromBase58, fromBase58Check, fromWitness } from './encodings';

/** A TRON address is 21 bytes with a checksum, and begins with 0x41. */
async function fromTron(address: string): Promise<number[] | null> {
  const bytes = await fromBase58Check(address);
  return bytes?.length === 21 && bytes[0] === 0x41 ? bytes.slice(1) : null;
}

/** A Solana address is 32 bytes. It has no checksum. */
function fromSolana(address: string): number[] | null {
  const bytes = fromBase58(address);
  return bytes?.length === 32 ? bytes : null;
}

/** Addresses of the main network: a key or a script with a checksum, or a witness program. */
async function fromBitcoin(address: string): Promise<number[] | null> {
  const bytes = await fromBase58Check(address);
  if (!bytes) return fromWitness(address, 'bc');
  return bytes.length === 21 && (bytes[0] === 0 || bytes[0] === 5) ? bytes.slice(1) : null;
}

/** Decoders by chain, of the chains that the service checks. They catch mix-ups early; the server's check decides. */
const DECODERS = new Map<string, (address: string) => number[] | null | Promise<number[] | null>>([
  ['bitcoin', fromBitcoin],
  ['solana', fromSolana],
  ['tron', fromTron],
]);
const EVM = /^0x[0-9a-fA-F]{40}$/;
/** Zero, the contracts that each EVM network has built in, and the address to which coins are sent to destroy them. */
const DEAD_EVM = /^0x0{36}(00[\da-f]{2}|dead)$/i;
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

/**
 * Why an address does not fit its network: a character is wrong (`sum`), nobody can use coins there (`dead`), or something else.
 * `others` are the networks that it is for.
 */
export type Misfit = 'sum' | 'dead' | 'else' | { others: string[] };

/** Forms with a checksum: the length and the alphabet are right. */
const FORMS = new Map([
  ['tron', /^T[1-9A-HJ-NP-Za-km-z]{33}$/],
  ['bitcoin', /^(bc1[02-9ac-hj-np-z]{39,59}|BC1[02-9AC-HJ-NP-Z]{39,59}|[13][1-9A-HJ-NP-Za-km-z]{25,33})$/],
]);

const hasForm = (address: string, { chain, evm }: Network) => (evm ? EVM : FORMS.get(chain))?.test(address) === true;

/** Returns null for an address of this network. `others` are the networks that the session offers. */
export async function misfitOf(address: string, network: Network, others: Network[]): Promise<Misfit | null> {
  const verdict = await judge(address, network);
  if (verdict !== 'else') return verdict === 'fits' ? null : verdict;
  if (hasForm(address, network)) return 'sum';
  // A form that nothing checks would fit any text.
  const checked = others.filter(({ chain, evm }) => evm || DECODERS.has(chain));
  const verdicts = await Promise.all(checked.map((other) => judge(address, other)));
  const exact = checked.filter((_, index) => verdicts[index] === 'fits');
  const alike = exact.length > 0 ? exact : checked.filter((other) => hasForm(address, other));
  return alike.length > 0 ? { others: [...new Set(alike.map(({ chain }) => chain))] } : 'else';
}

async function judge(address: string, { chain, evm }: Network): Promise<'fits' | 'dead' | 'else'> {
  if (evm) return DEAD_EVM.test(address) ? 'dead' : EVM.test(address) && checksumFits(address) ? 'fits' : 'else';
  const decode = DECODERS.get(chain);
  if (!decode) return address.length >= 8 && !/\s/.test(address) ? 'fits' : 'else';
  const bytes = await decode(address);
  return !bytes ? 'else' : bytes.some((byte) => byte > 0) ? 'fits' : 'dead';
}
