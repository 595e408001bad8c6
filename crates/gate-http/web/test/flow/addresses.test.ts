// The address that leads back to the shop, and the origins that a page lists.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isListed } from '../../src/widget/frame';
import { returnAddress } from '../../src/widget/session';
import { sessionWith } from './objects';

const back = (address: string) => returnAddress(sessionWith({ return_url: address, cancel_url: address }), true);

test('address stays as the shop wrote it, and the session is added before the fragment', () => {
  for (const [address, expected] of [
    ['https://shop.example', 'https://shop.example?gate_session_id=gs_1'],
    ['https://shop.example/done', 'https://shop.example/done?gate_session_id=gs_1'],
    ['https://shop.example/done?', 'https://shop.example/done?gate_session_id=gs_1'],
    ['https://shop.example/done#a?b', 'https://shop.example/done?gate_session_id=gs_1#a?b'],
    ['HTTPS://SHOP.example:443/%64one', 'HTTPS://SHOP.example:443/%64one?gate_session_id=gs_1'],
    ['http://127.0.0.1:3000/a/../b', 'http://127.0.0.1:3000/a/../b?gate_session_id=gs_1'],
  ] as const)
    assert.equal(back(address), expected);
  for (const query of [
    'name=Ann%20Lee',
    'name=Ann+Lee',
    'paid&ref=7',
    'next=/a/b',
    'a=1;b=2',
    'name=M%FCller',
    'sig=%2f%2F%7e~==',
    'a=1&a=2&&',
    'x=?y=#top',
    'my_gate_session_id=1&gate_session_ids=2&gate_session_id2',
  ]) {
    const [before = '', after] = query.split('#');
    const fragment = after === undefined ? '' : `#${after}`;
    const expected = `https://shop.example/done?${before}&gate_session_id=gs_1${fragment}`;
    assert.equal(back(`https://shop.example/done?${query}`), expected);
  }
});

test('only an earlier session in the address is replaced', () => {
  for (const [query, expected] of [
    ['gate_session_id=gs_0', 'gate_session_id=gs_1'],
    ['a=%20&gate_session_id=gs_0&b=+', 'a=%20&gate_session_id=gs_1&b=+'],
    ['gate_session_id&a', 'gate_session_id=gs_1&a'],
    ['a&gate_session_id=gs_0&gate_session_id=gs_00&b', 'a&gate_session_id=gs_1&b'],
    ['a#gate_session_id=gs_0', 'a&gate_session_id=gs_1#gate_session_id=gs_0'],
  ])
    assert.equal(back(`https://shop.example/done?${query}`), `https://shop.example/done?${expected}`);
});

test('no other address than one of the web leads back', () => {
  for (const address of ['', '/done', 'javascript:alert(1)', 'shop.example/done', 'myapp://done'])
    assert.equal(back(address), null, address);
  assert.equal(returnAddress(null, true), null);
});

test('page is listed by its origin, or by its host with every port', () => {
  const origins = ['https://shop.example', 'http://127.0.0.1:*'];
  for (const listed of ['https://shop.example', 'http://127.0.0.1', 'http://127.0.0.1:49300'])
    assert.ok(isListed(origins, listed), listed);
  for (const other of [
    'https://shop.example:8443',
    'https://127.0.0.1:49300',
    'http://127.0.0.1.evil.example:49300',
    'http://localhost:49300',
    'null',
    '',
  ])
    assert.ok(!isListed(origins, other), other);
  assert.ok(isListed(['http://[::1]:*'], 'http://[::1]:5173'));
});
