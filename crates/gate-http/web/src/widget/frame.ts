import type { Message } from './flow/messages';

export interface TokenMessage {
  embed_token: string;
  unavailable_reason: string | null;
  locale: string | null;
  theme: string;
  flow: string | null;
  can_deposit: boolean;
  can_deposit_memo: boolean;
}

export interface FrameHandlers {
  token(message: TokenMessage): void;
  theme(theme: string): void;
  deposited(requestId: string, txHash: string | null): void;
}

const text = (value: unknown): value is string => typeof value === 'string' && value.length < 8192;
const textOrNull = (value: unknown): string | null => (text(value) ? value : null);

/** The channel to the partner's page. A top-level checkout has none. */
export interface Frame {
  post(message: Message): void;
  watchHeight(element: Element): void;
}

/** Whether a page's list has an origin: the origin itself, or its host with every port, such as `http://localhost:*`. */
export const isListed = (origins: readonly string[], origin: string): boolean =>
  /^https?:\/\/[^/*]+$/.test(origin) &&
  (origins.includes(origin) || origins.includes(`${origin.replace(/:\d+$/, '')}:*`));

export function frameOf(parentOrigin: string, handlers: FrameHandlers): Frame {
  const post = ({ type, ...fields }: Message) => parent.postMessage({ penstock: 1, type, ...fields }, parentOrigin);
  addEventListener('message', (event) => {
    const message = event.data as Record<string, unknown> | null;
    const isKnown = typeof message === 'object' && message?.['penstock'] === 1;
    if (event.source !== parent || event.origin !== parentOrigin || !isKnown) return;
    const { type, embed_token, theme, request_id } = message;
    if (type === 'token' && text(embed_token) && embed_token) {
      handlers.token({
        embed_token,
        unavailable_reason: textOrNull(message['unavailable_reason']),
        locale: textOrNull(message['locale']),
        theme: textOrNull(theme) ?? 'auto',
        flow: textOrNull(message['flow']),
        can_deposit: message['can_deposit'] === true,
        can_deposit_memo: message['can_deposit_memo'] === true,
      });
    } else if (type === 'theme' && text(theme)) {
      handlers.theme(theme);
    } else if (type === 'deposited' && text(request_id)) {
      handlers.deposited(request_id, textOrNull(message['tx_hash']));
    }
  });
  return {
    post,
    watchHeight(element) {
      const report = () => post({ type: 'resize', height: Math.ceil(element.getBoundingClientRect().height) });
      new ResizeObserver(report).observe(element);
    },
  };
}
