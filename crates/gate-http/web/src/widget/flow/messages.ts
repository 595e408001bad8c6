import type { Payment, Quote } from '../types';

/** A message to the page around the frame. */
export interface Message {
  readonly type: string;
  readonly [field: string]: unknown;
}

export const quoteMessage = ({ exchange_rate, expires_at }: Quote): Message => ({
  type: 'quote',
  rate: exchange_rate,
  expires_at,
});

/** The end of a payment, unless the payment goes on or was cancelled. */
export function outcomeMessage(payment: Payment, session: string): Message | null {
  switch (payment.status) {
    case 'completed':
      return { type: 'success', tx_id: payment.tx_refid ?? payment.id, session_id: session };
    case 'failed':
      return {
        type: 'error',
        code: payment.failure_code ?? 'payment_failed',
        message: payment.failure_message ?? 'The payment failed.',
        payment_id: payment.id,
      };
    default:
      return null;
  }
}

/** Asks the partner's wallet to send the crypto of a payment. */
export const depositMessage = (payment: Payment): Message => ({
  type: 'deposit',
  request_id: payment.id,
  asset: payment.source_asset ?? payment.asset,
  network: payment.source_network ?? payment.network,
  amount: payment.source_amount ?? payment.crypto_amount,
  address: payment.instructions?.['address'],
  memo: payment.instructions?.['memo'] || null,
});
