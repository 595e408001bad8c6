// What the gate lets a customer scan, read back by the parsers of wallets and as a picture. The domain of the gate compares the same
// examples with what it makes.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decode } from 'bip21';
import { parse } from 'eth-url-parser';
import generate from 'sepa-payment-qr-code';
import { scanOf } from '../../dev/scan.mjs';
import { launchBrowser } from '../browser.mjs';
import { qrImage, readPicture } from '../pictures.mjs';
import { ROOT } from '../samples.mjs';

const EXAMPLES = JSON.parse(readFileSync(join(ROOT, 'crates/gate-core/tests/scan_examples.json'), 'utf8'));
/** The contracts of the examples, with the digits of their units and the ids of their chains. */
const CONTRACTS = {
  'USDT ethereum': { contract: '0xdAC17F958D2ee523a2206206994597C13D831ec7', digits: 6, chain: '1' },
  'USDT bsc': { contract: '0x55d398326f99059fF775485246999027B3197955', digits: 18, chain: '56' },
  'GUSD ethereum': { contract: '0x056Fd409E1d7A124BD7017459dFEa2F387b6d5Cd', digits: 2, chain: '1' },
  'ETH ethereum': { digits: 18, chain: '1' },
  'USDC solana': { contract: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' },
};

const termsOf = ({ pays, left }) => ({
  amount: left ?? pays.amount,
  ...CONTRACTS[`${pays.asset} ${pays.network}`],
});

/** A decimal in whole units with this many digits. */
function unitsOf(amount, digits) {
  const [whole, fraction = ''] = amount.split('.');
  return String(BigInt(whole + fraction.padEnd(digits, '0')));
}

/** The library writes a number of 22 digits and more with an exponent. */
function digitsOf(number) {
  const [digits, exponent] = number.split('e+');
  return exponent ? unitsOf(digits, Number(exponent)) : number;
}

/** Reads a URI or a code as an app does, and compares it with the terms. */
const READERS = {
  ethereum(example) {
    const { amount, contract, digits = 0, chain } = termsOf(example);
    const { address } = example.instructions;
    const read = parse(example.scan);
    const { uint256, value, ...others } = read.parameters;
    assert.deepEqual([read.scheme, read.chain_id], ['ethereum', chain]);
    assert.equal(digitsOf(uint256 ?? value), unitsOf(amount, digits));
    assert.deepEqual(
      [read.target_address, read.function_name, others],
      contract ? [contract, 'transfer', { address }] : [address, undefined, {}],
    );
  },
  bitcoin(example) {
    const { address, options } = decode(example.scan);
    assert.equal(address, example.instructions.address);
    assert.deepEqual({ ...options }, { amount: Number(termsOf(example).amount) });
  },
  // The library of Solana Pay needs all of Solana, so the form of its document is read here.
  solana(example) {
    const { amount, contract } = termsOf(example);
    const { address, memo } = example.instructions;
    const { protocol, pathname, search, searchParams, hash } = new URL(example.scan);
    assert.deepEqual([protocol, pathname, hash], ['solana:', address, '']);
    const expected = { amount, ...(contract && { 'spl-token': contract }), ...(memo && { memo }) };
    assert.deepEqual(Object.fromEntries(searchParams), expected);
    assert.doesNotMatch(search, /\+/, 'Not every wallet reads a plus sign as a space.');
  },
  BCD(example) {
    const { account_holder = '', iban = '', bic = '', reference = '' } = example.instructions;
    const { amount } = termsOf(example);
    const [tag, version, characters, kind, ...values] = example.scan.split('\n');
    assert.deepEqual([tag, version, characters, kind], ['BCD', '002', '1', 'SCT']);
    const account = iban.replaceAll(' ', '').toUpperCase();
    const [readBic, holder, readIban, sum, purpose = '', structured = '', unstructured = ''] = values;
    assert.deepEqual([readBic, holder, readIban, sum], [bic, account_holder.trim(), account, `EUR${amount}`]);
    assert.deepEqual([purpose, structured, unstructured], ['', '', reference]);
    const same = generate({
      name: account_holder.trim(),
      iban,
      amount: Number(amount),
      ...(bic && { bic }),
      ...(reference && { unstructuredReference: reference }),
    });
    assert.equal(example.scan, same.trimEnd());
  },
};

/** What is before the first colon or line break: the scheme, or the tag of the code. */
const readerOf = ({ scan }) => READERS[/^(\w+)[:\n]/.exec(scan)?.[1] ?? ''];

for (const example of EXAMPLES) {
  test(`${example.what} is read as what the customer pays`, () => {
    const read = readerOf(example);
    if (read) read(example);
    else assert.equal(example.scan, example.instructions.address);
  });
}

test('each form has an example', () => {
  const read = new Set(EXAMPLES.map(readerOf));
  assert.deepEqual(
    [...Object.values(READERS), undefined].filter((one) => !read.has(one)),
    [],
  );
});

// The longest code of a transfer, with text that only UTF-8 has.
const LONGEST = [...'BCD 002 1 SCT COBADEFFXXX'.split(' '), 'é'.repeat(70), 'DE89370400440532013000', 'EUR100.00'];
const PICTURES = [...EXAMPLES.map(({ scan }) => scan), [...LONGEST, '', '', 'r'.repeat(129)].join('\n')];

for (const text of PICTURES) {
  test(`picture of ${JSON.stringify(text.slice(0, 60))} is read back`, () => {
    const read = readPicture(qrImage(text));
    assert.equal(read.text, text);
    // EPC069-12 allows no more than version 13.
    assert.ok(read.version <= 13);
  });
}

const PLAYED = ['USDT ethereum', 'USDC solana', 'BTC bitcoin'];

test('fake of the gate writes the same forms', () => {
  for (const { what, pays, left, instructions, scan } of EXAMPLES) {
    const { asset = null, network = null, currency } = pays;
    if (!currency && !PLAYED.includes(`${asset} ${network}`)) continue;
    const { account_holder = '', iban = '' } = instructions;
    // The fake takes its instructions as they are.
    const tidy = { account_holder: account_holder.trim(), iban: iban.replaceAll(' ', '').toUpperCase() };
    const { contract } = CONTRACTS[`${asset} ${network}`] ?? {};
    const due = { amount: left ?? pays.amount, asset, network, contract };
    assert.equal(scanOf({ ...instructions, ...tidy }, due), scan, what);
  }
});

test('browser that darkens pages leaves the colours of a code', async () => {
  const browser = await launchBrowser({ args: ['--blink-settings=forceDarkModeEnabled=true'] });
  const page = await browser.newPage({ viewport: { width: 200, height: 200 } });
  // The page of the widget names its colours, too.
  await page.setContent(
    `<style>html{color-scheme:light}</style><body style="margin:0"><img width="200" height="200" src="${qrImage('TEST-1')}">`,
  );
  const shot = (await page.screenshot()).toString('base64');
  const darkParts = await page.evaluate(async (png) => {
    const { createImageBitmap, OffscreenCanvas } = globalThis;
    const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const canvas = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    canvas.drawImage(picture, 0, 0);
    const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
    let dark = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] < 64) dark += 4;
    return [dark / data.length, data[0]];
  }, shot);
  await browser.close();
  assert.ok(darkParts[0] > 0.2 && darkParts[0] < 0.6, `${darkParts[0]} of the picture is dark.`);
  assert.equal(darkParts[1], 255, 'The ground is white.');
});
