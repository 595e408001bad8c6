import { GateRampError, type GateRampFlow, type GateRampOptions, type GateRampTheme } from './api.js';
import { bare } from './own.js';

/** Options after validation, with the origins resolved. */
export interface Settings {
  publishableKey: string;
  clientSecret: string;
  theme: GateRampTheme;
  locale: string | undefined;
  flow: GateRampFlow | undefined;
  gateOrigin: string;
  widgetOrigin: string;
}

/** The server that serves `gate.js` and `gate.mjs` fills the places in these texts. The npm package keeps them. */
const GATE_ORIGIN: string = '{{penstock.gate_origin}}';
const WIDGET_ORIGIN: string = '{{penstock.widget_origin}}';
/** Beginning of the publishable keys that the gate takes. */
const KEY_PREFIX: string = 'pk_{{penstock.mode}}_';

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

/** True in a file that a gate has served: it belongs to that gate. */
function isFilled(served: string): boolean {
  return !served.includes('{{');
}

/** Refuses a required option that is absent. `source` says where the page gets it from. */
function requireOption(name: string, value: unknown, source: string): void {
  if (value == null || value === '') {
    throw invalid(`${name} is missing: pass ${source}.`);
  }
}

function readKey(key: unknown, environment: unknown, served: string): string {
  requireOption(
    'publishableKey',
    key,
    'the publishable key of your partner, `pk_test_…` in the sandbox and `pk_live_…` in production',
  );
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
  if (isFilled(served) && !found[0].startsWith(served)) {
    throw new GateRampError(
      'key_mode_mismatch',
      `This gate is in ${served.slice(3, -1)} mode; use a key ${served}…. publishableKey is a pk_${found[1]}_… key.`,
    );
  }
  return found[0];
}

function readClientSecret(secret: unknown): string {
  requireOption(
    'clientSecret',
    secret,
    '`client_secret` of the session, from the response that created it on your server',
  );
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

function parseOrigin(option: unknown): string | undefined {
  try {
    const { protocol, href, origin } = new URL(option as string);
    return /^https?:$/.test(protocol) && href === `${origin}/` ? origin : undefined;
  } catch {
    return undefined;
  }
}

function readOrigin(name: string, option: unknown, served: string): string {
  if (option == null) {
    if (isFilled(served)) {
      return served;
    }
    throw invalid(
      `${name} is required with the npm package: pass the origin of your gate, such as 'https://pay.example.com'.`,
    );
  }
  const origin = parseOrigin(option);
  if (!origin) {
    throw invalid(`${name} must be an origin such as 'https://pay.example.com', without path, query or credentials.`);
  }
  if (isFilled(served) && origin !== served) {
    throw invalid(
      `${name} must be '${served}' or absent: this script knows its gate. Load the script of the other gate.`,
    );
  }
  return origin;
}

/** Validates the options and resolves the origins. Throws a `GateRampError` that names the option and the remedy. */
export function readSettings(options: GateRampOptions): Settings {
  if (typeof options !== 'object' || !options) {
    throw invalid('GateRamp takes an object with publishableKey and clientSecret.');
  }
  const { publishableKey, clientSecret, environment, theme, locale, flow, gateOrigin, widgetOrigin } = bare(options);
  return {
    publishableKey: readKey(publishableKey, environment, KEY_PREFIX),
    clientSecret: readClientSecret(clientSecret),
    theme: readTheme(theme),
    locale: readLocale(locale),
    flow: readChoice('flow', flow, FLOWS),
    gateOrigin: readOrigin('gateOrigin', gateOrigin, GATE_ORIGIN),
    widgetOrigin: readOrigin('widgetOrigin', widgetOrigin, WIDGET_ORIGIN),
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
