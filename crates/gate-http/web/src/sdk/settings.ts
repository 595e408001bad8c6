import { GateRampError, type GateRampFlow, type GateRampOptions, type GateRampTheme } from './api.js';

/** Options after validation, with the origins resolved. */
export interface Settings {
  publishableKey: string;
  clientSecret: string | undefined;
  theme: GateRampTheme;
  locale: string | undefined;
  flow: GateRampFlow | undefined;
  gateOrigin: string;
  widgetOrigin: string;
}

/** The server that serves `gate.js` and `gate.mjs` replaces these two texts. The npm package keeps them. */
const GATE_ORIGIN: string = '{{penstock.gate_origin}}';
const WIDGET_ORIGIN: string = '{{penstock.widget_origin}}';

const ENVIRONMENT_MODES: Record<string, string> = { sandbox: 'test', production: 'live', live: 'live' };
const THEMES = ['light', 'dark', 'auto'];
const FLOWS = ['on_ramp', 'off_ramp', 'swap'];

function invalid(message: string): GateRampError {
  return new GateRampError('invalid_option', message);
}

/** Refuses a secret key wherever a caller puts one. The message never repeats the key. */
function refuseSecretKey(name: string, value: unknown): void {
  if (typeof value === 'string' && /^\s*sk_/.test(value)) {
    throw new GateRampError(
      'secret_key_refused',
      `${name} is a secret key (sk_…). A secret key must never reach a browser: revoke it now, create a new one, ` +
        'keep it on your server, and pass a publishable key (pk_…) here.',
    );
  }
}

function readKey(key: unknown, environment: unknown): string {
  refuseSecretKey('publishableKey', key);
  const found = typeof key === 'string' && /^pk_(test|live)_\w+$/.exec(key);
  if (!found) {
    throw invalid('publishableKey must be a publishable key: pk_test_… in the sandbox, pk_live_… in production.');
  }
  const expected = readChoice('environment', environment, Object.keys(ENVIRONMENT_MODES));
  const mode = expected && ENVIRONMENT_MODES[expected];
  if (mode && mode !== found[1]) {
    throw new GateRampError(
      'key_mode_mismatch',
      `environment '${expected}' takes a pk_${mode}_… key, but publishableKey is a pk_${found[1]}_… key. Change one of the two.`,
    );
  }
  return found[0];
}

function readClientSecret(secret: unknown): string | undefined {
  if (secret == null) {
    return undefined;
  }
  refuseSecretKey('clientSecret', secret);
  if (typeof secret !== 'string' || !/^gsec_\S+$/.test(secret)) {
    throw invalid(
      'clientSecret must be the client_secret (gsec_…) from the response that created the session on your server.',
    );
  }
  return secret;
}

function listed(allowed: string[]): string {
  return `one of '${allowed.join("', '")}'`;
}

function readChoice<T extends string>(name: string, value: unknown, allowed: string[]): T | undefined {
  if (value == null) {
    return undefined;
  }
  if (!allowed.includes(value as string)) {
    throw invalid(`${name} must be ${listed(allowed)}.`);
  }
  return value as T;
}

/** Values that the page has been warned about, by option. */
const warned = { locale: new Set<unknown>(), theme: new Set<unknown>() };

/** Warns once about a value that is not used. Locale and theme are wishes: neither stops a payment. */
function warn(name: keyof typeof warned, value: unknown, allowed: string, used: string): void {
  if (!warned[name].has(value)) {
    warned[name].add(value);
    const shown = typeof value === 'string' ? `'${value}'` : value;
    console.warn(`GateRamp: ${name} must be ${allowed}. The widget uses ${used} instead of`, shown);
  }
}

function readLocale(locale: string | null | undefined): string | undefined {
  if (locale == null) {
    return undefined;
  }
  try {
    // Java and Android write `de_AT`. A page without types may pass an `Intl.Locale`, whose text is its tag.
    return Intl.getCanonicalLocales(String(locale).replace(/_/g, '-'))[0];
  } catch {
    warn('locale', locale, "a BCP 47 language tag such as 'de' or 'fr-CA'", "the browser's language");
    return undefined;
  }
}

function readOrigin(name: string, option: unknown, served: string): string {
  const value = option ?? served;
  if (option == null && served.startsWith('{{')) {
    throw invalid(
      `${name} is required with the npm package: pass the origin of your gate, such as 'https://pay.example.com'.`,
    );
  }
  try {
    const url = new URL(value as string);
    if (/^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) {
      return url.origin;
    }
  } catch {
    // The error below covers texts that are no URL.
  }
  throw invalid(`${name} must be an origin such as 'https://pay.example.com', without path, query or credentials.`);
}

/** Validates the options and resolves the origins. Throws a `GateRampError` that names the option and the remedy. */
export function readSettings(options: GateRampOptions): Settings {
  if (typeof options !== 'object' || !options) {
    throw invalid('GateRamp takes an object with publishableKey and clientSecret.');
  }
  return {
    publishableKey: readKey(options.publishableKey, options.environment),
    clientSecret: readClientSecret(options.clientSecret),
    theme: readTheme(options.theme),
    locale: readLocale(options.locale),
    flow: readChoice('flow', options.flow, FLOWS),
    gateOrigin: readOrigin('gateOrigin', options.gateOrigin, GATE_ORIGIN),
    widgetOrigin: readOrigin('widgetOrigin', options.widgetOrigin, WIDGET_ORIGIN),
  };
}

/** Reads a theme. An absent or unknown theme is `auto`. */
export function readTheme(theme: unknown): GateRampTheme {
  if (THEMES.includes(theme as string)) {
    return theme as GateRampTheme;
  }
  if (theme != null) {
    warn('theme', theme, listed(THEMES), "'auto'");
  }
  return 'auto';
}
