// Validation of the options, in Node: the module loads without a browser, as server-side rendering needs it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { join } from 'node:path';
import { DIST } from '../../dev/serving.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY } from './simulation.mjs';

const { createGateOffRamp, createGateOnRamp, createGateSwap, GateRamp, GateRampError } = await import(
  join(DIST, 'gate.mjs')
);

const LIVE_KEY = PUBLISHABLE_KEY.replace('test', 'live');
const ORIGINS = { gateOrigin: 'https://gate.example', widgetOrigin: 'https://pay.example' };
const VALID = { publishableKey: PUBLISHABLE_KEY, clientSecret: CLIENT_SECRET, ...ORIGINS };

function refusal(options, create = (given) => new GateRamp(given)) {
  try {
    create(options);
  } catch (error) {
    assert.ok(error instanceof GateRampError && error instanceof Error);
    return error;
  }
  return assert.fail(`accepted ${JSON.stringify(options)}`);
}

test('secret_key_is_refused_without_repeating_it', () => {
  for (const secret of [
    'sk_test_0123456789abcdefSECRET',
    'sk_live_0123456789abcdefSECRET',
    ' sk_test_0123456789abcdefSECRET',
  ]) {
    for (const name of ['publishableKey', 'clientSecret']) {
      const error = refusal({ ...VALID, [name]: secret });
      assert.equal(error.code, 'secret_key_refused');
      assert.match(error.message, new RegExp(`${name} is a secret key .*revoke it`));
      assert.ok(!error.message.includes('SECRET'));
    }
  }
});

test('key_mode_must_match_the_environment', () => {
  for (const [publishableKey, environment] of [
    [PUBLISHABLE_KEY, 'production'],
    [PUBLISHABLE_KEY, 'live'],
    [LIVE_KEY, 'sandbox'],
  ]) {
    const error = refusal({ ...VALID, publishableKey, environment });
    assert.equal(error.code, 'key_mode_mismatch');
    assert.match(error.message, new RegExp(`environment '${environment}'`));
  }
  for (const [publishableKey, environment] of [
    [PUBLISHABLE_KEY, 'sandbox'],
    [LIVE_KEY, 'production'],
    [LIVE_KEY, 'live'],
    [LIVE_KEY, undefined],
    [PUBLISHABLE_KEY, null],
  ]) {
    assert.ok(new GateRamp({ ...VALID, publishableKey, environment }));
  }
});

test('each_invalid_option_is_named', () => {
  const cases = {
    publishableKey: ['pk_test_', 'pk_prod_abc', 'gsec_x', 7, `${PUBLISHABLE_KEY}\n`],
    environment: ['staging', 'constructor', 5, ''],
    clientSecret: ['secret', 'pk_test_abc', 5, 'gsec_a b'],
    flow: ['buy', 'onramp'],
    gateOrigin: [
      '',
      'gate.example',
      'https://gate.example/v1',
      'ftp://gate.example',
      'https://a:b@gate.example',
      'javascript:alert(1)',
    ],
    widgetOrigin: ['', 'https://pay.example/embed', 'https://pay.example/?a', 'data:text/html,x'],
  };
  for (const [name, values] of Object.entries(cases)) {
    for (const value of values) {
      const error = refusal({ ...VALID, [name]: value });
      assert.equal(error.code, 'invalid_option', `${name} ${value}`);
      assert.ok(error.message.startsWith(`${name} must be`), error.message);
    }
  }
  for (const options of [undefined, null, 'pk_test_abc']) {
    assert.match(refusal(options).message, /takes an object/);
  }
});

test('locale_or_theme_that_cannot_be_read_is_warned_about_once_and_stops_nothing', (context) => {
  const { mock } = context.mock.method(console, 'warn', () => {});
  const cases = {
    locale: ['', 'pt_BR.UTF-8', 'my language', 'C', 5, {}, Object.create(null), Symbol('de')],
    theme: ['', 'pink', 'Dark', 1, {}],
  };
  for (const [name, values] of Object.entries(cases)) {
    for (const value of values) {
      mock.resetCalls();
      new GateRamp({ ...VALID, [name]: value });
      new GateRamp({ ...VALID, [name]: value });
      assert.equal(mock.callCount(), 1, name);
      const [text, shown] = mock.calls[0].arguments;
      assert.match(text, new RegExp(`^GateRamp: ${name} must be .* instead of$`));
      assert.equal(shown, typeof value === 'string' ? `'${value}'` : value);
    }
  }
});

test('missing_option_is_named_with_the_field_that_it_is_taken_from', () => {
  for (const [name, source] of [
    ['publishableKey', 'publishableKey is missing: pass the publishable key of your partner, `pk_test_…`'],
    ['clientSecret', 'clientSecret is missing: pass `client_secret` of the session'],
  ]) {
    for (const value of [undefined, null, '']) {
      for (const create of [refusal, (options) => refusal(options, createGateOnRamp)]) {
        const error = create({ ...VALID, [name]: value });
        assert.equal(error.code, 'invalid_option');
        assert.ok(error.message.startsWith(source), error.message);
      }
    }
  }
});

test('npm_package_takes_keys_of_both_modes', () => {
  for (const publishableKey of [PUBLISHABLE_KEY, LIVE_KEY]) {
    assert.ok(new GateRamp({ ...VALID, publishableKey }));
  }
});

test('npm_package_requires_both_origins', () => {
  for (const name of ['gateOrigin', 'widgetOrigin']) {
    assert.match(
      refusal({ ...VALID, [name]: undefined }).message,
      new RegExp(`^${name} is required with the npm package`),
    );
  }
});

test('usual_options_are_accepted', (context) => {
  const { mock } = context.mock.method(console, 'warn', () => {});
  for (const change of [
    {},
    { theme: 'auto' },
    { locale: 'fr-CA' },
    { locale: 'de_DE' },
    { locale: 'frr' },
    { locale: new Intl.Locale('fr-CA') },
    { locale: null, theme: null },
    { gateOrigin: 'https://gate.example/' },
    { unknown: 1 },
  ]) {
    assert.ok(new GateRamp({ ...VALID, ...change }));
  }
  for (const create of [createGateOnRamp, createGateOffRamp, createGateSwap]) {
    assert.ok(create(VALID) instanceof GateRamp);
  }
  assert.equal(mock.callCount(), 0);
});
