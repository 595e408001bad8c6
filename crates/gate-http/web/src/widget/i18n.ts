import { messages as en } from '../languages/en';
import type { Language } from '../languages/list';
import { exact, moneyIn } from './money';
import type { Side, UsualTime } from './types';

type Messages = typeof en;
export type MessageKey = keyof Messages;
type Loader = () => Promise<{ messages: Messages }>;

/** English is part of the first script. The others are loaded when they are needed. */
const LOADERS: Record<string, Loader> = {
  de: () => import('../languages/de'),
  fr: () => import('../languages/fr'),
  es: () => import('../languages/es'),
  it: () => import('../languages/it'),
  nl: () => import('../languages/nl'),
} satisfies Record<Exclude<Language, 'en'>, Loader>;

let messages: Messages = en;
let locale = 'en';
let shop = '';

/** The build leaves out the names of the texts in all languages but English, because their order is the same. */
const named = (texts: string[]): Messages =>
  Object.fromEntries(Object.keys(en).map((key, index) => [key, texts[index]])) as Messages;

/** Loads the first language that the widget speaks. The region of the candidate decides formats. */
export async function chooseLanguage(wanted: readonly (string | null)[]): Promise<void> {
  for (const given of wanted) {
    // Java and Android write `de_AT`.
    const candidate = given?.replace(/_/g, '-') ?? '';
    const [language = ''] = candidate.toLowerCase().split('-');
    if (language !== 'en' && !Object.hasOwn(LOADERS, language)) continue;
    try {
      messages = named(Object.values((await LOADERS[language]?.())?.messages ?? en));
      locale = withRegion(language, candidate);
    } catch {
      messages = en;
      locale = 'en';
    }
    document.documentElement.lang = locale;
    document.title = messages.title;
    return;
  }
}

function withRegion(language: string, candidate: string): string {
  try {
    const { region } = new Intl.Locale(candidate);
    return region ? `${language}-${region}` : language;
  } catch {
    return language;
  }
}

/** Every text may name the shop. */
export function nameShop(name: string): void {
  shop = name;
}

export const shopName = (): string => shop || messages.shopName;

export function t(key: MessageKey, values: Record<string, string> = {}): string {
  return messages[key].replace(/\{(\w+)\}/g, (whole, name: string) =>
    name === 'shop' ? shopName() : (values[name] ?? whole),
  );
}

type SideKey = { [K in MessageKey]: K extends `${infer Base}_on_ramp` ? Base : never }[MessageKey];

/** A text that has a variant for each side. */
export const tSide = (key: SideKey, side: Side, values?: Record<string, string>): string =>
  t(`${key}_${side}` as MessageKey, values);

export const money = (value: string, currency: string, digits?: Intl.NumberFormatOptions): string =>
  moneyIn(locale, value, currency, digits);

export const decimal = (value: string, digits: Intl.NumberFormatOptions = { maximumFractionDigits: 18 }): string =>
  new Intl.NumberFormat(locale, digits).format(exact(value));

/** A number and its unit stay on one line. */
const joined = (number: string, unit: string): string => `${number}\u00a0${unit}`;

export const crypto = (value: string, asset: string): string => joined(decimal(value), asset);

/** An amount that promises nothing: two decimals, and three digits of an amount below one. */
export function estimate(value: string, asset: string): string {
  const digits =
    Number(value) < 1
      ? { minimumSignificantDigits: 2, maximumSignificantDigits: 3 }
      : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return joined(decimal(value, digits), asset);
}

export function moment(
  instant: string | number,
  style: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeStyle: 'short' },
): string {
  return new Intl.DateTimeFormat(locale, style).format(new Date(instant));
}

/** A time of today has no date. */
export function timeOrMoment(instant: string, now: number): string {
  const day = (one: string | number) => moment(one, { dateStyle: 'short' });
  return moment(instant, day(instant) === day(now) ? { timeStyle: 'short' } : undefined);
}

const UNITS: [unit: string, seconds: number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** A span in its largest unit. */
function spanOf(seconds: number): [unit: string, count: number] {
  const [unit, length] = UNITS.find((one) => seconds >= one[1]) ?? ['second', 1];
  return [unit, seconds / length];
}

/** Older browsers format no ranges, and TypeScript knows them from ES2023 on. */
type UnitFormat = Intl.NumberFormat & { formatRange?(from: number, to: number): string };

/** How long an order usually takes. A range within one unit names it once. */
export function usually({ from_seconds: shortest, to_seconds: longest }: UsualTime): string {
  const [[unit, from], [last, to]] = [spanOf(shortest), spanOf(longest)];
  const format = (one: string): UnitFormat =>
    new Intl.NumberFormat(locale, { style: 'unit', unit: one, unitDisplay: 'long', maximumFractionDigits: 1 });
  const end = format(last);
  const [start, finish] = [format(unit).format(from), end.format(to)];
  // Two times that round to the same one are no range.
  if (start === finish) return t('usually', { time: finish });
  if (unit === last && end.formatRange) return t('usually', { time: end.formatRange(from, to) });
  return t('usuallyFrom', { from: start, to: finish });
}

export const eitherOf = (names: string[]): string => new Intl.ListFormat(locale, { type: 'disjunction' }).format(names);

/** Names that are more than the identifier with a capital. */
const NETWORK_NAMES = new Map([['bsc', 'BNB Smart Chain']]);

/** Network names are identifiers in the API. The screen shows them as names. */
export const networkName = (chain: string): string =>
  NETWORK_NAMES.get(chain) ?? chain.charAt(0).toUpperCase() + chain.slice(1).replace(/_/g, ' ');

/** The catalogue's names are English. A name that the operator chose is shown as it is. */
export function methodName({ id, name }: { id: string; name: string }): string {
  const key = `m_${id}` as MessageKey;
  return en[key] === name ? t(key) : name;
}

/** The name of a method that has a text of its own. */
export const knownMethod = (id: string): string | null => (`m_${id}` in en ? t(`m_${id}` as MessageKey) : null);

/** The name within a sentence. Only German writes its nouns with a capital. */
export function methodInText(method: { id: string; name: string }): string {
  const name = methodName(method);
  return locale.startsWith('de') || method.id === 'faster_payments'
    ? name
    : name.replace(/^\p{Lu}(?=\p{Ll})/u, (letter) => letter.toLowerCase());
}
