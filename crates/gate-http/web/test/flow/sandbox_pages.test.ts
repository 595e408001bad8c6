// The pages of the sandbox: what they say about a payment or an identity check, and what they call.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cardOf, identity, type Choice } from '../../src/sandbox/subject';
import { troubleOf } from '../../src/sandbox/trouble';
import { NoAnswer } from '../../src/widget/flow/refusals';
import type { Payment, Session } from '../../src/widget/types';
import { paymentWith, sessionWith } from './objects';
import { refusal } from './play';

const paid = (changes: Partial<Payment> = {}): Session =>
  sessionWith({ payment: paymentWith({ instructions: { type: 'sandbox' }, ...changes }) });
const verified = (status: Session['verification']['status'], session: Session['status'] = 'open'): Session =>
  sessionWith({ status: session, verification: { status, reason: null } });

test('card page is about its own payment, or about the one of the session', () => {
  const page = cardOf('pay_1');
  for (const [session, standing] of [
    [paid(), 'open'],
    [paid({ status: 'completed' }), 'approved'],
    [paid({ status: 'failed' }), 'rejected'],
    [paid({ status: 'cancelled' }), 'cancelled'],
    [paid({ id: 'pay_2' }), 'absent'],
    [sessionWith(), 'absent'],
  ] as const)
    assert.equal(page.standing(session), standing);
  assert.equal(cardOf(null).standing(paid({ id: 'pay_2' })), 'open');
  assert.equal(page.title(paid()), 'Pay €100.00 to shop.example');
  assert.deepEqual(
    [page.call(paid(), 'approve'), page.call(paid(), 'reject')],
    ['payments/pay_1/send', 'payments/pay_1/decline'],
  );
});

test('identity page is about the check of an open session', () => {
  const page = identity();
  for (const [session, standing] of [
    [verified('pending'), 'open'],
    [verified('approved'), 'approved'],
    [verified('rejected'), 'rejected'],
    [verified('pending', 'cancelled'), 'cancelled'],
    [verified('pending', 'expired'), 'cancelled'],
    [verified('required'), 'absent'],
    [verified('not_required'), 'absent'],
  ] as const)
    assert.equal(page.standing(session), standing);
  assert.match(page.lead(verified('pending')), /^shop\.example asks for it before a payment of €100\.00\./);
  assert.deepEqual(
    [page.call(verified('pending'), 'approve'), page.call(verified('pending'), 'reject')],
    ['verification/approve', 'verification/reject'],
  );
});

test('outcome fits the decision and the end, which the amount can choose', () => {
  const says = (status: Payment['status'], choice: Choice | null) => cardOf('pay_1').outcome(paid({ status }), choice);
  assert.equal(says('processing', null), null);
  assert.equal(
    says('processing', 'wait')?.text,
    'The checkout keeps waiting. The payment goes on as the last two digits of its amount say. You can still decide here.',
  );
  for (const [status, choice, title] of [
    ['processing', 'approve', /still goes on/],
    ['completed', 'approve', /approved and is complete/],
    ['completed', null, /is complete/],
    ['completed', 'reject', /complete before/],
    ['failed', 'reject', /declined/],
    ['failed', 'approve', /failed although/],
    ['cancelled', 'approve', /cancelled/],
  ] as const) {
    const outcome = says(status, choice);
    assert.match(outcome?.title ?? '', title, `${status} ${choice}`);
    assert.match(outcome?.text ?? '', /Go back to the checkout’s tab/);
  }
});

test('each trouble says what to do, and a second attempt is offered only where it can help', () => {
  for (const [error, code, mayRetry, text] of [
    [new NoAnswer(), 'offline', true, /try again/],
    [refusal(503, 'service_unavailable'), 'service_unavailable', true, /try again/],
    [refusal(429, 'rate_limited', 7), 'rate_limited', true, /Wait 7 seconds/],
    [refusal(401, 'unauthorized'), 'unauthorized', false, /open this page from there again/],
    [refusal(404, 'resource_not_found'), 'resource_not_found', false, /Go back/],
    [refusal(409, 'not_simulated'), 'not_simulated', false, /Another provider/],
    [refusal(403, 'live_keys_not_allowed'), 'live_keys_not_allowed', false, /test mode/],
    [refusal(403, 'organization_suspended'), 'organization_suspended', false, /req_1/],
  ] as const) {
    const trouble = troubleOf(error);
    assert.deepEqual([trouble.code, trouble.mayRetry], [code, mayRetry]);
    assert.match(trouble.text, text, code);
  }
  assert.throws(() => troubleOf(new TypeError('A mistake of this page.')), TypeError);
});
