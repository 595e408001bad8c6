// Links to the pages of providers: which are shown, and which gets the token of the page.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { providerLink } from '../../src/widget/links';

Object.assign(globalThis, { location: { origin: 'https://pay.example' } });

const OWN = 'https://pay.example/sandbox/card?payment=pay_1';

test('page of the sandbox on the own origin gets the token', () => {
  assert.equal(providerLink(OWN, 'test', 'a.b+c'), `${OWN}#embed_token=a.b%2Bc`);
});

test('no other link gets the token, and none in mode live', () => {
  for (const [url, mode] of [
    ['https://verify.example/start', 'test'],
    ['https://pay.example.evil.example/', 'test'],
    ['https://pay.example:8443/sandbox/card', 'test'],
    ['https://pay.example@evil.example/', 'test'],
    ['http://127.0.0.1:4030/sandbox/card', 'test'],
    ['https://pay.example/checkout', 'test'],
    [OWN, 'live'],
    ['https://verify.example/start', 'live'],
  ] as const)
    assert.equal(providerLink(url, mode, 'secret'), url, `${mode} ${url}`);
  for (const url of [null, undefined, '', 'javascript:alert(1)', 'http://pay.example/sandbox/card'])
    assert.equal(providerLink(url, 'test', 'secret'), null, String(url));
});
