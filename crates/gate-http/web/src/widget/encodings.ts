/** Text encodings of addresses: base58, base58 with a checksum, and bech32. */

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const GENERATORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
const BECH32_CHECKSUM = 1;
const BECH32M_CHECKSUM = 0x2bc830a3;
const CHECKSUM_BYTES = 4;
/** No address of a known form is longer. */
const MAX_BASE58_CHARS = 64;

/** Decodes base58. Returns null for a text with another character. */
export function fromBase58(text: string): number[] | null {
  if (text.length > MAX_BASE58_CHARS) return null;
  // Little-endian while it grows.
  const bytes: number[] = [];
  for (const sign of text) {
    let carry = BASE58.indexOf(sign);
    if (carry < 0) return null;
    for (let index = 0; index < bytes.length; index += 1) {
      carry += (bytes[index] ?? 0) * 58;
      bytes[index] = carry & 255;
      carry >>= 8;
    }
    if (carry > 0) bytes.push(carry);
  }
  const zeros = /^1*/.exec(text)?.[0].length ?? 0;
  return [...new Array<number>(zeros).fill(0), ...bytes.reverse()];
}

/** Browsers hash in a secure context alone. In any other this fails. */
const sha256 = (bytes: BufferSource): Promise<ArrayBuffer> => crypto.subtle.digest('SHA-256', bytes);

/** Decodes base58 whose last four bytes are a checksum. Returns the bytes before it, or null. */
export async function fromBase58Check(text: string): Promise<number[] | null> {
  const bytes = fromBase58(text);
  if (!bytes || bytes.length <= CHECKSUM_BYTES) return null;
  const body = bytes.slice(0, -CHECKSUM_BYTES);
  const hash = new Uint8Array(await sha256(await sha256(Uint8Array.from(body))));
  return bytes.slice(-CHECKSUM_BYTES).every((byte, index) => byte === hash[index]) ? body : null;
}

function polymod(values: number[]): number {
  let sum = 1;
  for (const value of values) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    GENERATORS.forEach((generator, bit) => {
      if ((top >>> bit) & 1) sum ^= generator;
    });
  }
  return sum >>> 0;
}

/** Decodes a segregated witness address into the values of its program, or null: prefix, checksum of its version, and a valid length. */
export function fromWitness(text: string, prefix: string): number[] | null {
  const lower = text.toLowerCase();
  if ((text !== lower && text !== text.toUpperCase()) || text.length > 90 || !lower.startsWith(`${prefix}1`))
    return null;
  const values = [...lower.slice(prefix.length + 1)].map((sign) => BECH32.indexOf(sign));
  const [version] = values;
  if (version === undefined || version > 16 || values.includes(-1) || values.length < 7) return null;
  const signs = [...prefix].map((sign) => sign.charCodeAt(0));
  const sum = polymod([...signs.map((sign) => sign >> 5), 0, ...signs.map((sign) => sign & 31), ...values]);
  if (sum !== (version === 0 ? BECH32_CHECKSUM : BECH32M_CHECKSUM)) return null;
  const data = values.slice(1, -6);
  const spareBits = (data.length * 5) % 8;
  const isPadded = spareBits < 5 && ((data[data.length - 1] ?? 0) & ((1 << spareBits) - 1)) === 0;
  const bytes = Math.floor((data.length * 5) / 8);
  return isPadded && (version === 0 ? bytes === 20 || bytes === 32 : bytes >= 2 && bytes <= 40) ? data : null;
}
