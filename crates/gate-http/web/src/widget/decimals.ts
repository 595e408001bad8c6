/** Exact sums of decimal texts. */

function scaled(value: string, digits: number): bigint {
  const [whole = '0', fraction = ''] = value.replace('-', '').split('.');
  const units = BigInt(whole + fraction.padEnd(digits, '0'));
  return value.startsWith('-') ? -units : units;
}

/** The number of fractional digits. */
export const digitsOf = (value: string): number => value.split('.')[1]?.length ?? 0;

/** `one + sign * other`, with the digits of the longer one. */
export function sum(one: string, other: string, sign: 1 | -1 = 1): string {
  const digits = Math.max(digitsOf(one), digitsOf(other));
  const total = scaled(one, digits) + BigInt(sign) * scaled(other, digits);
  const text = String(total < 0n ? -total : total).padStart(digits + 1, '0');
  const whole = digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text;
  return total < 0n ? `-${whole}` : whole;
}

export const isLess = (one: string, other: string): boolean => sum(one, other, -1).startsWith('-');

export const isZero = (value: string): boolean => /^-?[0.]*$/.test(value);
