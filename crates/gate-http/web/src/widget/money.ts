import { digitsOf } from './decimals';

/** `Intl` takes the exact decimal text, so that no amount passes through a binary number. */
export const exact = (value: string) => value as unknown as number;

/** An amount of a currency with every digit, also those that the currency does not have: an amount is never rounded. */
export function moneyIn(
  locale: string,
  value: string,
  currency: string,
  digits: Intl.NumberFormatOptions = {},
): string {
  const format = (own: Intl.NumberFormatOptions) =>
    new Intl.NumberFormat(locale, { style: 'currency', currency, ...own, ...digits });
  try {
    const usual = format({}).resolvedOptions().maximumFractionDigits ?? 0;
    return format({ maximumFractionDigits: Math.max(usual, digitsOf(value)) }).format(exact(value));
  } catch {
    return `${value} ${currency}`;
  }
}
