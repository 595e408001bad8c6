import { en, type MessageKey, type Messages } from './languages/en';
export type { MessageKey };

const LOADERS: Record<string, () => Promise<{ messages: Messages }>> = {
  de: () => import('./languages/de'),
  fr: () => import('./languages/fr'),
  es: () => import('./languages/es'),
  it: () => import('./languages/it'),
  nl: () => import('./languages/nl'),
};

let messages: Messages = en;
let locale = 'en';

/** Loads the first language that the widget speaks. The region of the locale still decides formats. */
export async function chooseLanguage(wanted: readonly (string | null)[]): Promise<void> {
  for (const given of wanted) {
    // Java and Android write `de_AT`.
    const candidate = given?.replace(/_/g, '-');
    const language = candidate?.slice(0, 2).toLowerCase() ?? '';
    if (language === 'en' || language in LOADERS) {
      try {
        messages = (await LOADERS[language]?.())?.messages ?? en;
        locale = Intl.getCanonicalLocales(candidate ?? 'en')[0] ?? 'en';
      } catch {
        messages = en;
        locale = 'en';
      }
      document.documentElement.lang = locale;
      document.title = messages.title;
      return;
    }
  }
}

export function t(key: MessageKey, values: Record<string, string> = {}): string {
  return messages[key].replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** `Intl` takes the exact decimal text, so that no amount passes through a binary number. */
const exact = (value: string) => value as unknown as number;

export function money(value: string, currency: string, digits?: number): string {
  try {
    const precision = digits === undefined ? {} : { maximumFractionDigits: digits };
    return new Intl.NumberFormat(locale, { style: 'currency', currency, ...precision }).format(exact(value));
  } catch {
    return `${value} ${currency}`;
  }
}

export function crypto(value: string, asset: string): string {
  const text = new Intl.NumberFormat(locale, { maximumFractionDigits: 18 }).format(exact(value));
  return `${text} ${asset}`;
}

/** Network names are identifiers in the API. The screen shows them as names. */
export function networkName(chain: string): string {
  return chain.charAt(0).toUpperCase() + chain.slice(1).replace(/_/g, ' ');
}

/** The catalogue's names are English. A name that the operator chose is shown as it is. */
export function methodName({ id, name }: { id: string; name: string }): string {
  const key = `m_${id}` as MessageKey;
  return en[key] === name ? t(key) : name;
}
