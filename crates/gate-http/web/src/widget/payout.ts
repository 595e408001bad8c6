import { visible } from './address';
import type { MessageKey } from './i18n';

/** Form of the account that a payout method of the catalogue asks for. */
export type Account = 'iban' | 'uk' | 'us';

export type PayoutField =
  'iban' | 'sort_code' | 'routing_number' | 'account_number' | 'account_type' | 'account_holder';

/** The texts of an account, as they were typed. */
export type PayoutTexts = Partial<Record<PayoutField, string>>;

const FIELDS: Record<Account, PayoutField[]> = {
  iban: ['iban', 'account_holder'],
  uk: ['sort_code', 'account_number', 'account_holder'],
  us: ['routing_number', 'account_number', 'account_type', 'account_holder'],
};
export const ACCOUNT_TYPES = ['checking', 'savings'] as const;
const MIN_HOLDER_CHARS = 2;
const MAX_HOLDER_CHARS = 70;

export const payoutFields = (account: Account | null | undefined): PayoutField[] => (account ? FIELDS[account] : []);

/** ISO 13616: letters become numbers, and the number leaves 1 when divided by 97. */
export function ibanFits(value: string): boolean {
  const iban = tidy('iban', value);
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(iban)) {
    return false;
  }
  let rest = 0;
  for (const sign of iban.slice(4) + iban.slice(0, 4)) {
    rest = Number(String(rest) + parseInt(sign, 36)) % 97;
  }
  return rest === 1;
}

/** The digits weighted 3, 7 and 1 sum up to a multiple of 10. */
function routingNumberFits(digits: string): boolean {
  const sum = [...digits].reduce((total, digit, index) => total + Number(digit) * ([3, 7, 1][index % 3] ?? 0), 0);
  return /^\d{9}$/.test(digits) && sum > 0 && sum % 10 === 0;
}

/** A value as the API takes it: banks print their numbers with spaces and dashes, and an IBAN with its name. */
function tidy(name: PayoutField, value: string): string {
  if (name === 'account_holder' || name === 'account_type') return value.trim();
  const plain = visible(value.normalize('NFKC')).replace(/[\s\p{Pd}\u2212]/gu, '');
  return name === 'iban' ? plain.toUpperCase().replace(/^IBAN:?/, '') : plain;
}

/** The fields of this form of account alone. An optional field that is empty is left out. */
export function payoutOf(account: Account | null | undefined, values: PayoutTexts): Record<string, string> {
  const payout: Record<string, string> = {};
  for (const name of payoutFields(account)) {
    const value = tidy(name, values[name] ?? (name === 'account_type' ? ACCOUNT_TYPES[0] : ''));
    if (value || name !== 'account_holder') payout[name] = value;
  }
  return payout;
}

function fault(name: PayoutField, value: string, account: Account): MessageKey | null {
  switch (name) {
    case 'iban':
      return ibanFits(value) ? null : value ? 'ibanWrong' : 'ibanEmpty';
    case 'sort_code':
      return /^\d{6}$/.test(value) ? null : 'sortWrong';
    case 'routing_number':
      return routingNumberFits(value) ? null : 'routingWrong';
    case 'account_number':
      return (account === 'uk' ? /^\d{8}$/ : /^\d{4,17}$/).test(value)
        ? null
        : account === 'uk'
          ? 'numberWrong'
          : 'numberWrongUs';
    case 'account_type':
      return ACCOUNT_TYPES.some((one) => one === value) ? null : 'account_type';
    case 'account_holder': {
      const length = [...value].length;
      return length >= MIN_HOLDER_CHARS && length <= MAX_HOLDER_CHARS ? null : 'holderWrong';
    }
  }
}

/** Returns the text for each field that needs attention, in the order of the fields. */
export function payoutFaults(account: Account | null | undefined, values: PayoutTexts): [PayoutField, MessageKey][] {
  if (!account) return [];
  return Object.entries(payoutOf(account, values)).flatMap(([name, value]): [PayoutField, MessageKey][] => {
    const found = fault(name as PayoutField, value, account);
    return found ? [[name as PayoutField, found]] : [];
  });
}
