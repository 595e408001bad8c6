import type { Payment } from './types';

/** The channel to the partner's page. A top-level checkout has none. */

export interface TokenMessage {
  embed_token: string;
  unavailable_reason: string | null;
  locale: string | null;
  theme: string;
  flow: string | null;
  can_deposit: boolean;
}

export interface FrameHandlers {
  token(message: TokenMessage): void;
  theme(theme: string): void;
  deposited(requestId: string, txHash: string | null): void;
}

const text = (value: unknown): value is string => typeof value === 'string' && value.length < 8192;
const textOrNull = (value: unknown): string | null => (text(value) ? value : null);

export class Frame {
  constructor(
    private readonly parentOrigin: string,
    handlers: FrameHandlers,
  ) {
    addEventListener('message', (event) => {
      const message = event.data as Record<string, unknown> | null;
      if (event.source !== parent || event.origin !== parentOrigin || typeof message !== 'object' || message?.['penstock'] !== 1) {
        return;
      }
      const { type, embed_token, theme, request_id } = message;
      if (type === 'token' && text(embed_token) && embed_token) {
        handlers.token({
          embed_token,
          unavailable_reason: textOrNull(message['unavailable_reason']),
          locale: textOrNull(message['locale']),
          theme: textOrNull(theme) ?? 'auto',
          flow: textOrNull(message['flow']),
          can_deposit: message['can_deposit'] === true,
        });
      } else if (type === 'theme' && text(theme)) {
        handlers.theme(theme);
      } else if (type === 'deposited' && text(request_id)) {
        handlers.deposited(request_id, textOrNull(message['tx_hash']));
      }
    });
  }

  post(type: string, fields: Record<string, unknown> = {}): void {
    parent.postMessage({ penstock: 1, type, ...fields }, this.parentOrigin);
  }

  /** Reports the end of a payment. */
  postOutcome(payment: Payment, session: string): void {
    if (payment.status === 'completed') {
      this.post('success', { tx_id: payment.tx_refid ?? payment.id, session_id: session });
    } else if (payment.status === 'failed') {
      this.post('error', {
        code: payment.failure_code ?? 'payment_failed',
        message: payment.failure_message ?? 'The payment failed.',
        payment_id: payment.id,
      });
    }
  }

  /** Asks the partner's wallet to send the crypto of a payment. */
  postDeposit(payment: Payment): void {
    this.post('deposit', {
      request_id: payment.id,
      asset: payment.source_asset ?? payment.asset,
      network: payment.source_network ?? payment.network,
      amount: payment.source_amount ?? payment.crypto_amount,
      address: payment.instructions?.['address'],
    });
  }

  watchHeight(element: Element): void {
    new ResizeObserver(() => this.post('resize', { height: Math.ceil(element.getBoundingClientRect().height) })).observe(element);
  }
}
