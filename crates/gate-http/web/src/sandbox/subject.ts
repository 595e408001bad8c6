import { moneyIn } from '../widget/money';
import { nameOf } from '../widget/session';
import type { Session } from '../widget/types';

/** How far the payment or the identity check has come that a page is about. */
export type Standing = 'open' | 'approved' | 'rejected' | 'cancelled' | 'absent';
export type Decision = 'approve' | 'reject';
/** `wait` leaves it as it is. */
export type Choice = Decision | 'wait';

/** What a page plays: a card company, or a provider of identity checks. */
export interface Subject {
  readonly provider: string;
  lead(session: Session): string;
  readonly labels: Readonly<Record<Choice, string>>;
  /** What the customer would enter: label and test value. */
  readonly fields: readonly [label: string, value: string][];
  readonly picture: 'card' | 'identity';
  title(session: Session): string;
  standing(session: Session): Standing;
  /** The path of the call below `test_helpers`. */
  call(session: Session, decision: Decision): string;
  /** What has happened, or why nothing can be decided, and what follows. Null before that. */
  outcome(session: Session, choice: Choice | null): Outcome | null;
}

export interface Outcome {
  readonly title: string;
  readonly text: string;
}

const money = (value: string, currency: string): string => moneyIn('en', value, currency);

const shopOf = (session: Session): string => nameOf(session) || 'the shop';

type Sentences = Readonly<Record<Exclude<Standing, 'open'>, string>> & {
  /** What goes on as long as nothing is decided. */
  readonly waiting: string;
  /** The person has decided, and it goes on all the same. */
  readonly held: string;
  /** The end is not the one that the person has decided. */
  readonly approvedBefore: string;
  readonly rejectedAnyway: string;
};

const GO_BACK = 'Go back to the checkout’s tab. It goes on by itself.';

function outcomeOf(sentences: Sentences, standing: Standing, choice: Choice | null): Outcome | null {
  const ended = (title: string) => ({ title, text: GO_BACK });
  if (standing === 'open') {
    const text = `${sentences.waiting} You can still decide here.`;
    return choice === 'wait' ? { title: 'Nothing is decided yet.', text } : choice && ended(sentences.held);
  }
  if (standing === 'approved' && choice === 'reject') return ended(sentences.approvedBefore);
  if (standing === 'rejected' && choice === 'approve') return ended(sentences.rejectedAnyway);
  return ended(sentences[standing]);
}

const CARD_SENTENCES: Sentences = {
  approved: 'The card payment was approved and is complete.',
  rejected: 'The card payment was declined.',
  cancelled: 'The payment was cancelled, so nothing is left to decide.',
  absent: 'The checkout does not wait for this card payment any more.',
  held: 'The decision was sent. The payment still goes on, because the last two digits of its amount say so.',
  approvedBefore: 'The payment was complete before it could be declined.',
  rejectedAnyway: 'The payment failed although it was approved: the last two digits of its amount say so.',
  waiting: 'The checkout keeps waiting. The payment goes on as the last two digits of its amount say.',
};

/** The page of a card company, for one payment of the session. */
export function cardOf(paymentId: string | null): Subject {
  const standing = ({ payment }: Session): Standing => {
    if (!payment || (paymentId !== null && payment.id !== paymentId)) return 'absent';
    return ({ processing: 'open', completed: 'approved', failed: 'rejected', cancelled: 'cancelled' } as const)[
      payment.status
    ];
  };
  return {
    provider: 'Test card company',
    lead: () =>
      'In live mode the customer pays here, on a page of the payment provider. In the sandbox you decide what the card company says.',
    labels: { approve: 'Approve', reject: 'Decline', wait: 'Decide nothing yet' },
    fields: [
      ['Card number', '4242 4242 4242 4242'],
      ['Expires', '12 / 34'],
      ['Security code', '123'],
    ],
    picture: 'card',
    title: (session) =>
      `Pay ${money(session.payment?.fiat_amount ?? session.amount, session.currency)} to ${shopOf(session)}`,
    standing,
    call: ({ payment }, decision) =>
      `payments/${encodeURIComponent(payment?.id ?? '')}/${decision === 'approve' ? 'send' : 'decline'}`,
    outcome: (session, choice) => outcomeOf(CARD_SENTENCES, standing(session), choice),
  };
}

const IDENTITY_SENTENCES: Sentences = {
  approved: 'The identity was approved.',
  rejected: 'The identity was rejected.',
  cancelled: 'The checkout has ended, so nothing is left to decide.',
  absent: 'The checkout does not ask for an identity check.',
  held: 'The decision was sent. The check still goes on.',
  approvedBefore: 'The identity was approved before it could be rejected.',
  rejectedAnyway: 'The identity was rejected before it could be approved.',
  waiting: 'The check stays pending, and the checkout waits for it.',
};

/** The page of a provider of identity checks. */
export function identity(): Subject {
  const standing = ({ status, verification }: Session): Standing => {
    if (verification.status === 'approved' || verification.status === 'rejected') return verification.status;
    if (verification.status !== 'pending') return 'absent';
    return status === 'open' ? 'open' : 'cancelled';
  };
  return {
    provider: 'Test identity check',
    lead: (session) =>
      `${shopOf(session)} asks for it before a payment of ${money(session.amount, session.currency)}. In live mode the customer shows a document here, on a page of the identity provider. In the sandbox you decide what the provider says.`,
    labels: { approve: 'Approve', reject: 'Reject', wait: 'Decide nothing yet' },
    fields: [
      ['Name', 'Test Person'],
      ['Born', '1990-01-01'],
      ['Document', 'TEST 0000'],
    ],
    picture: 'identity',
    title: () => 'Confirm your identity',
    standing,
    call: (_, decision) => `verification/${decision}`,
    outcome: (session, choice) => outcomeOf(IDENTITY_SENTENCES, standing(session), choice),
  };
}
