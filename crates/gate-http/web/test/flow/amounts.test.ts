// How the widget writes amounts: with every digit that the shop has sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { money } from '../../src/widget/i18n';
import { moneyIn } from '../../src/widget/money';

test('amount is shown with every digit, also those that its currency does not have', () => {
  for (const [value, currency, shown] of [
    ['100.00', 'EUR', '€100.00'],
    ['100.1', 'EUR', '€100.10'],
    ['100.101', 'EUR', '€100.101'],
    ['100.005', 'EUR', '€100.005'],
    ['0.00000001', 'EUR', '€0.00000001'],
    ['100.0000', 'EUR', '€100.00'],
    ['1000', 'JPY', '¥1,000'],
    ['1000.5', 'JPY', '¥1,000.5'],
    ['1.2345', 'KWD', 'KWD\u00a01.2345'],
    ['9999999999.99999999', 'EUR', '€9,999,999,999.99999999'],
    ['1.5', 'no currency', '1.5 no currency'],
  ] as const) {
    assert.equal(money(value, currency), shown);
  }
});

test('amount is exact in the format of each language', () => {
  assert.equal(moneyIn('de', '100.101', 'EUR'), '100,101\u00a0€');
  assert.equal(moneyIn('fr', '1234.5678', 'EUR'), '1\u202f234,5678\u00a0€');
});

test('rate has at most the digits that it asks for', () => {
  assert.equal(money('1', 'EUR', { minimumFractionDigits: 0 }), '€1');
  assert.equal(money('0.123456789123', 'EUR', { maximumFractionDigits: 10 }), '€0.1234567891');
});
