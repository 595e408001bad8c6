import type { Draft } from '../draft';
import type { Outcome, Payment, Session } from '../types';
import { stageOf, type Live, type Now, type State } from './state';

/** What the customer chose and typed, as far as it outlives a reload. The fields of an account do not. */
export interface Kept {
  readonly step: 'choose' | 'details' | 'price';
  readonly draft: Pick<
    Draft,
    'side' | 'asset' | 'network' | 'payment_method' | 'source_asset' | 'source_network' | 'wallet_address'
  >;
  readonly dismissed: string | null;
  /** The payment whose money has been sent, as the customer says. */
  readonly sent: string | null;
}

/** What the storage keeps of a session: its draft while it is open, and the session itself once it has ended. */
export interface Keeping {
  readonly session: string;
  readonly draft: Kept | null;
  readonly end: Session | null;
}

/** Null as long as the session is not known, and if this page cannot go on with it. */
export function keepingOf(state: State, now: Now): Keeping | null {
  if (state.is !== 'live') return null;
  const { session } = state;
  const { step } = stageOf(state, now);
  const hasEnded = step === 'done' || step === 'over';
  return {
    session: session.id,
    draft: hasEnded ? null : keptOf(state),
    end: hasEnded ? { ...session, wallet_address: walletOf(state) } : null,
  };
}

/** Where the coins of the payment went, if this page knows it. Another tab may have paid to another address. */
export const walletOf = ({ session, own, draft }: Live): string | null =>
  session.wallet_address ?? (own !== null && own === session.payment?.id ? draft.wallet_address || null : null);

function keptOf({ draft, place, dismissed, sent }: Live): Kept {
  const { side, asset, network, payment_method, source_asset, source_network, wallet_address } = draft;
  return {
    step: 'price' in place ? 'price' : place.step,
    draft: { side, asset, network, payment_method, source_asset, source_network, wallet_address },
    dismissed,
    sent,
  };
}

/** What a payment without a receipt has in place of its terms, which no screen shows. */
const UNTOLD = {
  object: 'embed_payment',
  payment_method: null,
  source_asset: null,
  source_network: null,
  source_amount: null,
  asset: '',
  network: '',
  fiat_amount: '0',
  crypto_amount: '0',
  exchange_rate: '0',
  fees: { total: '0', service: '0', network: '0', currency: '' },
  instructions: null,
  pay_until: null,
  received: null,
  failure_code: null,
  failure_reason: null,
  failure_message: null,
} as const satisfies Partial<Payment>;

/** The session of an outcome, as if it had been read. */
export function sessionOfOutcome(outcome: Outcome): Session {
  const { session_id: id, payment_id, receipt, ended_at, status, flow, ...rest } = outcome;
  const payment: Payment | null =
    payment_id === null || (status === 'completed' && !receipt)
      ? null
      : {
          ...UNTOLD,
          side: flow ?? 'on_ramp',
          created_at: ended_at,
          ...receipt,
          id: payment_id,
          status: status === 'completed' ? status : 'cancelled',
          tx_refid: receipt?.reference ?? '',
        };
  return {
    ...rest,
    object: 'embed_session',
    id,
    status,
    flow,
    target_token: null,
    target_network: null,
    wallet_address: receipt?.wallet_address ?? null,
    expires_at: ended_at,
    server_time: ended_at,
    verification: { status: 'not_required', reason: null },
    payment,
    version: '',
  };
}
