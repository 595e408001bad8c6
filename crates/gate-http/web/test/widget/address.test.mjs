// Checks of addresses and accounts, without a browser.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from 'esbuild';
import { ROOT } from '../samples.mjs';

async function load(name) {
  const entry = join(import.meta.dirname, '../../src/widget', name);
  const bundle = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false, target: 'es2020' });
  return import(`data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`);
}

const { isName, readAddress } = await load('address.ts');
const { misfitOf } = await load('address_checks.ts');
const { ibanFits, payoutFaults, payoutOf } = await load('payout.ts');

const addressFits = async (address, chain, evm) => (await misfitOf(address, { chain, evm }, [])) === null;

const EVM = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const TRON = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8';
const SOLANA = 'E6Sre16FFhssAPvtauDPPa9VtcpJEaTMDhWdgsvvJsxm';
/** Every form of the main network: key, script, witness versions 0 (both lengths) and 1. */
const BITCOIN = [
  '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
  '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy',
  'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq',
  'bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3',
  'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
];
const NETWORKS = { ethereum: [EVM], tron: [TRON], solana: [SOLANA], bitcoin: BITCOIN };

test('checksum of EIP-55 accepts its own examples and refuses a changed letter', async () => {
  for (const address of [
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ]) {
    assert.ok(await addressFits(address, 'ethereum', true), address);
    assert.ok(await addressFits(address.toLowerCase(), 'ethereum', true));
    assert.equal(
      await addressFits(
        address.replace(/[a-f]/, (letter) => letter.toUpperCase()),
        'ethereum',
        true,
      ),
      false,
    );
  }
});

test('address fits its own network and no other', async () => {
  for (const [owner, addresses] of Object.entries(NETWORKS)) {
    for (const address of addresses) {
      for (const network of Object.keys(NETWORKS)) {
        assert.equal(
          await addressFits(address, network, network === 'ethereum'),
          network === owner,
          `${address} on ${network}`,
        );
      }
    }
  }
});

test('address with a changed character fails its checksum', async () => {
  const changed = (address) => address.slice(0, -1) + (address.endsWith('3') ? '4' : '3');
  assert.equal(await addressFits(changed(TRON), 'tron', false), false);
  for (const address of BITCOIN) assert.equal(await addressFits(changed(address), 'bitcoin', false), false, address);
  // Witness version 0 with the checksum of version 1, mixed case, and a test network.
  for (const address of [
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh',
    BITCOIN[2].replace('bc1q', 'bc1Q'),
    'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx',
  ]) {
    assert.equal(await addressFits(address, 'bitcoin', false), false, address);
  }
  assert.ok(await addressFits(BITCOIN[2].toUpperCase(), 'bitcoin', false));
});

test('address at which nobody can use coins is refused with its reason', async () => {
  const zeros = '0'.repeat(36);
  for (const [chain, addresses] of Object.entries({
    ethereum: [`0x${zeros}0000`, `0x${zeros}0001`, `0x${zeros}00fF`, `0x${zeros}dEaD`, `0x${zeros}DEAd`],
    tron: ['T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb'],
    solana: ['1'.repeat(32)],
    bitcoin: ['1111111111111111111114oLvT2', 'bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq9e75rs'],
  })) {
    const network = { chain, evm: chain === 'ethereum' };
    for (const address of addresses) assert.equal(await misfitOf(address, network, [network]), 'dead', address);
  }
  for (const address of [`0x${zeros}0100`, `0x1${zeros.slice(1)}dead`, `0x1${zeros.slice(1)}0001`]) {
    assert.ok(await addressFits(address, 'ethereum', true), address);
  }
});

/** For each form of addresses in the service: a network that has it, and the payment URI of an address. */
const FORMS = {
  evm: { network: ['ethereum', true], uriOf: (address) => `ethereum:${address}@1?value=1e18` },
  tron: { network: ['tron', false], uriOf: (address) => `tron:${address}` },
  solana: { network: ['solana', false], uriOf: (address) => `solana:${address}?amount=1&label=Shop` },
  bitcoin: { network: ['bitcoin', false], uriOf: (address) => `bitcoin:${address}?amount=0.01` },
};

test('pasted address of the service is read exactly, and decided as the service decides it', async () => {
  // `crates/kernel/tests/addresses/main.rs` holds the file against the checks of the service.
  const recorded = JSON.parse(readFileSync(join(ROOT, 'crates/kernel/tests/addresses.json'), 'utf8'));
  assert.deepEqual([...new Set(recorded.map(({ form }) => form))], Object.keys(FORMS));
  for (const { form, address, accepted } of recorded) {
    const { network, uriOf } = FORMS[form];
    for (const pasted of [`  ${address} `, `\u200b${address}\u200b`, uriOf(address), ` \u200b${uriOf(address)} \n`]) {
      assert.equal(readAddress(pasted), address, JSON.stringify(pasted));
    }
    assert.equal(await addressFits(address, ...network), accepted, `${form} ${address}`);
  }
});

test('pasted text gives the address alone', async () => {
  for (const text of [
    ` ${EVM}\n`,
    `\u00a0${EVM}\u200b`,
    `\u202a${EVM}\u202c`,
    `\u2066\u{e0001}${EVM.slice(0, 9)}\u00ad\ufe0f${EVM.slice(9)}\u3164\u2069`,
    `ethereum:${EVM}`,
    `ethereum:${EVM}@1`,
    `ethereum:pay-${EVM}@1?value=1e18`,
  ]) {
    assert.equal(readAddress(text), EVM, JSON.stringify(text));
  }
  assert.equal(readAddress(`bitcoin:${BITCOIN[2]}?amount=0.01&label=Shop`), BITCOIN[2]);
  assert.equal(readAddress(`BITCOIN:${BITCOIN[2].toUpperCase()}`), BITCOIN[2].toUpperCase());
  assert.equal(readAddress(`solana:${SOLANA}?amount=1`), SOLANA);
  assert.equal(readAddress(`tron:${TRON}`), TRON);
});

test('payment address of a token gives its recipient and never its contract', async () => {
  const contract = '0xdAC17F958D2ee523a2206206994597C13D831eC7';
  assert.equal(readAddress(`ethereum:${contract}@1/transfer?address=${EVM}&uint256=1000000`), EVM);
  for (const text of [
    `ethereum:${contract}@1/transfer?uint256=1`,
    `ethereum:${contract}/approve?address=${EVM}&uint256=1`,
  ]) {
    assert.equal(await addressFits(readAddress(text), 'ethereum', true), false, text);
  }
});

test('name is told from an address', async () => {
  for (const name of ['x.eth', 'pay.shop.example', 'straße.crypto']) assert.ok(isName(readAddress(` ${name} `)), name);
  for (const text of ['', '.', 'x', EVM, TRON, ...BITCOIN, 'not a name. at all', `ethereum:${EVM}@1`])
    assert.ok(!isName(text), text);
});

test('wrong address says whether a character or the network is wrong, and which networks it is for', async () => {
  const others = [
    { chain: 'ethereum', evm: true },
    { chain: 'tron', evm: false },
    { chain: 'bitcoin', evm: false },
    { chain: 'polygon', evm: true },
    { chain: 'ethereum', evm: true },
  ];
  const [ethereum, tron, bitcoin] = others;
  assert.equal(await misfitOf(EVM, ethereum, others), null);
  assert.equal(await misfitOf(EVM.replace('a', 'A'), ethereum, others), 'sum');
  assert.equal(await misfitOf(`${TRON.slice(0, -1)}u`, tron, others), 'sum');
  assert.equal(await misfitOf(BITCOIN[0].replace('z', 'y'), bitcoin, others), 'sum');
  assert.deepEqual(await misfitOf(TRON, ethereum, others), { others: ['tron'] });
  assert.deepEqual(await misfitOf(EVM, bitcoin, others), { others: ['ethereum', 'polygon'] });
  assert.deepEqual(await misfitOf(EVM.replace('a', 'A'), tron, others), { others: ['ethereum', 'polygon'] });
  assert.deepEqual(await misfitOf(`${TRON.slice(0, -1)}u`, ethereum, others), { others: ['tron'] });
  assert.deepEqual(await misfitOf(SOLANA, tron, [...others, { chain: 'solana', evm: false }]), { others: ['solana'] });
  assert.equal(await misfitOf(EVM.slice(0, -1), ethereum, others), 'else');
  assert.equal(await misfitOf('my wallet', tron, others), 'else');
});

test('long text is read within a moment', async () => {
  // The time of this process alone: other work of the machine does not count.
  const begun = process.cpuUsage();
  for (const text of ['1'.repeat(10_000), 'ethereum:'.repeat(2_000), '.'.repeat(10_000), `a${'.a'.repeat(5_000)}:`]) {
    const address = readAddress(text);
    isName(address);
    for (const network of Object.keys(NETWORKS))
      assert.equal(await addressFits(address, network, network === 'ethereum'), false);
  }
  assert.ok(process.cpuUsage(begun).user < 5_000_000);
});

test('iban with a typing error is refused', async () => {
  assert.ok(ibanFits('DE89 3704 0044 0532 0130 00'));
  assert.ok(!ibanFits('DE89 3704 0044 0532 0130 01'));
});

test('pasted account is read as its plain digits and letters', () => {
  for (const iban of [
    '\u202aDE89 3704 0044 0532 0130 00\u202c',
    'IBAN: DE89370400440532013000',
    'iban DE89\u00a03704\u20090044\u20110532\u22120130\u201400',
    '\u2067IBAN\uff1aＤＥ８９３７０４００４４０５３２０１３０００\u2069',
    'DE89\u200b3704\u00ad00440532013000\ufeff',
  ]) {
    assert.deepEqual(payoutOf('iban', { iban }), { iban: 'DE89370400440532013000' }, JSON.stringify(iban));
    assert.ok(ibanFits(iban), JSON.stringify(iban));
  }
  assert.deepEqual(
    payoutOf('uk', { sort_code: '\u202d１２\u201034\u221256\u202c', account_number: '1234\u00a05678' }),
    {
      sort_code: '123456',
      account_number: '12345678',
    },
  );
  const { routing_number, account_number } = payoutOf('us', {
    routing_number: '021\u2013000\u2013021\u200e',
    account_number: '\u2060１２３４',
  });
  assert.deepEqual([routing_number, account_number], ['021000021', '1234']);
});

test('payout holds the fields of its account alone, as the API takes them', async () => {
  const values = {
    iban: ' de89 3704-0044 0532 0130 00',
    sort_code: '12-34-56',
    account_number: '1234 5678',
    routing_number: '021 000 021',
    account_holder: '',
  };
  assert.deepEqual(payoutOf('iban', values), { iban: 'DE89370400440532013000' });
  assert.deepEqual(payoutOf('uk', { ...values, account_holder: ' Ada ' }), {
    sort_code: '123456',
    account_number: '12345678',
    account_holder: 'Ada',
  });
  assert.deepEqual(payoutOf('us', values), {
    routing_number: '021000021',
    account_number: '12345678',
    account_type: 'checking',
  });
  assert.deepEqual(payoutOf(null, values), {});
  for (const account of ['iban', 'uk', 'us']) assert.deepEqual(payoutFaults(account, values), []);
});

test('payout with a typing error names each field', async () => {
  const names = (account, values) => payoutFaults(account, values).map(([name]) => name);
  assert.deepEqual(names('iban', { account_holder: 'A' }), ['iban', 'account_holder']);
  assert.deepEqual(names('iban', { iban: 'DE89370400440532013000', account_holder: 'x'.repeat(71) }), [
    'account_holder',
  ]);
  assert.deepEqual(names('uk', { sort_code: '12345', account_number: '1234567' }), ['sort_code', 'account_number']);
  assert.deepEqual(names('us', { routing_number: '021000022', account_number: '123', account_type: 'loan' }), [
    'routing_number',
    'account_number',
    'account_type',
  ]);
});
