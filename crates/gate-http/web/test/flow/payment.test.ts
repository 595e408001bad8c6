// The sending of a payment: the order of its reads and writes, and what becomes of its key.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import type { Report } from '../../src/widget/flow/events';
import { sendPayment } from '../../src/widget/flow/payment';
import { NoAnswer } from '../../src/widget/flow/refusals';
import { intentKey, isOwnKey, recall } from '../../src/widget/memory';
import type { Payment, Session } from '../../src/widget/types';
import { ERROR_CODES, paymentWith, sessionWith } from './objects';
import { refusal } from './play';

const UNPAID = sessionWith();
const PAID = sessionWith({ payment: paymentWith() });
const LOST = new NoAnswer();

type Answer = Payment | Session | Error;
const isWaiting = ({ payment }: Session) => payment?.status !== 'processing';
let sessions = 0;

/** Sends a payment to a gate that gives these answers, one after the other. */
async function send(answers: readonly Answer[], before = sessionWith({ id: `gs_${(sessions += 1)}` })) {
  const log: string[] = [];
  const keys: string[] = [];
  const reports: Report[] = [];
  const rest = [...answers];
  const next = <T extends Answer>(call: string): Promise<T> => {
    log.push(call);
    const answer = rest.shift();
    assert.ok(answer, `There is no answer to ${log.join(', ')}.`);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as T);
  };
  const api = {
    pay: (_body: object, key: string) => (keys.push(key), next<Payment>('pay')),
    session: () => next<Session>('read'),
  };
  mock.timers.enable({ apis: ['setTimeout'] });
  let isOver = false;
  const sent = sendPayment(
    api,
    before,
    { quote_id: 'quote_1' },
    (report) => reports.push(report),
    (session) => (log.push('show'), isWaiting(session)),
  ).then(
    () => null,
    (error: unknown) => error,
  );
  void sent.then(() => (isOver = true));
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    // Only a pause keeps the sending from going on.
    if (!isOver) {
      log.push('pause');
      mock.timers.tick(10_000);
    }
  }
  mock.timers.reset();
  assert.deepEqual(rest, [], 'Each answer was asked for.');
  return { error: await sent, log: log.join(' '), keys, reports, kept: recall(`intent.${before.id}`) };
}

test('payment is sent once, and the session is read after it', async () => {
  const { error, log, keys, reports, kept } = await send([paymentWith(), PAID]);
  assert.deepEqual([error, log, keys.length, kept], [null, 'pay read show', 1, null]);
  assert.deepEqual(reports, [{ type: 'paid', payment: 'pay_1', isOwn: true }]);
});

test('lost answer leads to a read, which shows the payment', async () => {
  const { error, log } = await send([LOST, PAID]);
  assert.deepEqual([error, log], [null, 'pay read show']);
});

test('lost request is repeated under the same key, and the session is read before each repetition', async () => {
  const { error, log, keys, kept } = await send([LOST, UNPAID, LOST, UNPAID, paymentWith(), PAID]);
  assert.deepEqual([error, log], [null, 'pay read show pay pause read show pay read show']);
  assert.deepEqual([keys.length, new Set(keys).size, kept], [3, 1, null]);
});

test('payment is unknown after three attempts, and its key is kept', async () => {
  const { error, log, keys, reports, kept } = await send([LOST, UNPAID, LOST, UNPAID, LOST, UNPAID]);
  assert.ok(error instanceof NoAnswer);
  assert.equal(log, 'pay read show pay pause read show pay pause read show');
  assert.deepEqual([new Set(keys).size, kept], [1, keys[0]]);
  assert.deepEqual(reports, [], 'Nothing is reported about an outcome that is unknown.');
});

test('read that is lost ends the sending before a repetition, and the key is kept', async () => {
  const { error, log, keys, reports, kept } = await send([LOST, LOST]);
  assert.ok(error instanceof NoAnswer);
  assert.deepEqual([log, reports, kept], ['pay read', [], keys[0]]);
});

test('read that is lost after the answer of the gate leaves nothing unknown', async () => {
  const { error, log, reports, kept } = await send([paymentWith(), LOST, UNPAID, paymentWith(), PAID]);
  assert.deepEqual(reports[0], { type: 'paid', payment: 'pay_1', isOwn: true });
  assert.deepEqual([error, log, kept], [null, 'pay read read show pay read show', null]);
});

test('session that does not show the payment yet leads to one repetition under the same key', async () => {
  const { log, keys } = await send([LOST, UNPAID, paymentWith(), PAID]);
  assert.deepEqual([log, new Set(keys).size], ['pay read show pay read show', 1]);
});

test('key of an earlier attempt is used again, and is not called the own one of this page', async () => {
  const first = await send([LOST, LOST], sessionWith({ id: 'gs_again' }));
  // Another intent of this page makes the earlier key one that the page found.
  intentKey('gs_other', null);
  const { keys, reports } = await send([paymentWith(), PAID], sessionWith({ id: 'gs_again' }));
  assert.deepEqual(keys, first.keys);
  assert.ok(!isOwnKey(keys[0] ?? ''));
  assert.deepEqual(reports, [{ type: 'paid', payment: 'pay_1', isOwn: false }]);
});

test('key after an earlier payment names it', async () => {
  const { keys } = await send([paymentWith(), PAID], sessionWith({ payment: paymentWith({ status: 'failed' }) }));
  assert.match(keys[0] ?? '', /^pay_1\.[0-9a-f]{32}$/);
});

/** Statuses and codes after which the payment may have been made. */
const isUnclear = (status: number, code: string) =>
  (status >= 500 && status !== 501 && code !== 'rail_unavailable') || code === 'idempotency_in_progress';
/** What a further call with the same key may still be answered. */
const keepsKey = (status: number) => status === 401 || status === 429;

for (const [status, code] of ERROR_CODES) {
  const fate = isUnclear(status, code) ? 'is unclear' : `${keepsKey(status) ? 'keeps' : 'forgets'} the key`;

  test(`refusal with ${status} ${code} ${fate}`, async () => {
    const refused = refusal(status, code);
    const { error, log, keys, reports, kept } = await send(isUnclear(status, code) ? [refused, PAID] : [refused]);
    if (isUnclear(status, code)) {
      assert.deepEqual([error, log, reports], [null, 'pay read show', []]);
    } else {
      assert.deepEqual([error, log, reports], [refused, 'pay', [{ type: 'not_paid' }]]);
      assert.equal(kept, keepsKey(status) ? keys[0] : null);
    }
  });
}

test('refusal of a repetition ends the sending', async () => {
  const refused = refusal(409, 'quote_expired');
  const { error, log, reports, kept } = await send([LOST, UNPAID, refused]);
  assert.deepEqual([error, log, kept], [refused, 'pay read show pay', null]);
  assert.deepEqual(reports, [{ type: 'not_paid' }]);
});

test('refusal of the read is the error, and the outcome stays unknown', async () => {
  const refused = refusal(401, 'unauthorized');
  const { error, log, keys, reports, kept } = await send([LOST, refused]);
  assert.deepEqual([error, log, reports, kept], [refused, 'pay read', [], keys[0]]);
});
