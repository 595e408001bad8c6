import type { GateRampCallbacks, GateRampTheme } from './api.js';
import { bootstrap, type BootstrapRefusal, type EmbedToken } from './bootstrap.js';
import { frameTexts } from './frame_texts.js';
import { recall, remember } from './memory.js';
import { bare, own } from './own.js';
import type { Settings } from './settings.js';

/** Time from `mount` to the handshake, in milliseconds, before `onError` reports it. */
const READY_TIMEOUT_MS = 9_000;
/** A frame that asks again gets the same token within this time, in milliseconds, and a new one afterwards. */
const TOKEN_REUSE_MS = 10_000;
/** Refusals after which a renewal is tried again, and the pause before it, in milliseconds. */
const RETRIED = ['network_error', 'rate_limited'];
const RENEWAL_PAUSE_MS = 3_000;
/** Height of the frame before the widget reports its own, in CSS pixels. */
const INITIAL_HEIGHT_PX = 480;
/** Larger heights are refused, so that a defect cannot stretch the page without end. */
const MAX_HEIGHT_PX = 20_000;

/** Steps that show a payment that has begun. */
const PAYMENT_STEPS = ['instructions', 'progress', 'done'];

/** Results of the partner's wallet by payment. They outlive a mount, so that a second one never sends again. */
const deposits = new Map<string, Promise<string | null>>();

/** Marks the elements of a widget, so that a later mount finds a copy of them that nothing removes. */
const MARK = 'data-penstock-widget';

type Message = Record<string, unknown>;

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Reports an error of the partner's code as an uncaught one, without stopping the SDK. */
function report(error: unknown): void {
  if (typeof reportError === 'function') {
    reportError(error);
  } else {
    console.error(error);
  }
}

/** Sets styles that the rules of the page cannot override. No markup is involved, so a strict policy permits it. */
function setStyles(element: HTMLElement, styles: Record<string, string>): void {
  for (const [name, value] of Object.entries(styles)) {
    element.style.setProperty(name, value, 'important');
  }
}

/** One mounted widget: the frame, its handshake and its messages. */
export class MountedFrame {
  private readonly frame: HTMLIFrameElement;
  private readonly placeholder: HTMLElement;
  private readonly observer = new MutationObserver(() => this.followRemoval());
  private readonly abort = new AbortController();
  private readonly reported = new Set<string>();
  private readonly timer: ReturnType<typeof setTimeout>;
  private token: EmbedToken | undefined;
  /** Why the gate issues no new token, while an earlier one may show that the session is completed. */
  private ended: BootstrapRefusal | undefined;
  private tokenReceivedAt = 0;
  private bootstrapping = false;
  private frameReady = false;
  private handedOver = false;
  private wasConnected = false;
  private succeeded = false;

  constructor(
    container: Element,
    private readonly settings: Settings,
    private readonly callbacks: GateRampCallbacks,
  ) {
    this.frame = this.createFrame();
    this.placeholder = this.createPlaceholder();
    addEventListener('message', this.receive);
    this.timer = setTimeout(() => this.expire(), READY_TIMEOUT_MS);
    void this.fetchToken();
    // A router that keeps copies of its pages restores a widget that no longer works.
    container.querySelectorAll(`:scope > [${MARK}]`).forEach((earlier) => earlier.remove());
    container.append(this.placeholder, this.frame);
    this.watchRemoval();
    this.followRemoval();
  }

  setTheme(theme: GateRampTheme): void {
    this.settings.theme = theme;
    if (this.handedOver) {
      this.post({ type: 'theme', theme });
    }
  }

  destroy(): void {
    this.abort.abort();
    clearTimeout(this.timer);
    removeEventListener('message', this.receive);
    this.observer.disconnect();
    this.placeholder.remove();
    this.frame.remove();
  }

  /** Watches the document, and each shadow root around the frame, for a removal without `destroy`. */
  private watchRemoval(): void {
    const options = bare({ childList: true, subtree: true });
    this.observer.observe(document, options);
    let root = this.frame.getRootNode();
    while (root instanceof ShadowRoot) {
      this.observer.observe(root, options);
      root = root.host.getRootNode();
    }
  }

  /** A frame that moves is connected again before an observer runs, so it stays. Its new place can have other roots. */
  private followRemoval(): void {
    if (this.frame.isConnected) {
      this.wasConnected = true;
      this.watchRemoval();
    } else if (this.wasConnected) {
      this.destroy();
    }
  }

  private get isDestroyed(): boolean {
    return this.abort.signal.aborted;
  }

  /** Text below the transparent frame until the widget has its token. It takes no room of its own. */
  private createPlaceholder(): HTMLElement {
    const placeholder = document.createElement('div');
    placeholder.setAttribute('role', 'status');
    placeholder.setAttribute(MARK, '');
    placeholder.textContent = frameTexts(this.settings.locale).loading;
    setStyles(placeholder, {
      height: `${INITIAL_HEIGHT_PX}px`,
      'margin-bottom': `-${INITIAL_HEIGHT_PX}px`,
      'line-height': '160px',
      'text-align': 'center',
      overflow: 'hidden',
    });
    return placeholder;
  }

  private createFrame(): HTMLIFrameElement {
    const { publishableKey, widgetOrigin, theme, locale, flow } = this.settings;
    const fragment = new URLSearchParams({ parent_origin: self.origin, theme });
    if (locale) {
      fragment.set('locale', locale);
    }
    if (flow) {
      fragment.set('flow', flow);
    }
    const frame = document.createElement('iframe');
    frame.setAttribute(MARK, '');
    frame.title = frameTexts(locale).title;
    frame.allow = 'payment; clipboard-write';
    frame.referrerPolicy = 'no-referrer';
    setStyles(frame, {
      all: 'initial',
      'color-scheme': 'inherit',
      display: 'block',
      width: '100%',
      height: `${INITIAL_HEIGHT_PX}px`,
    });
    frame.src = `${widgetOrigin}/embed?publishable_key=${encodeURIComponent(publishableKey)}#${fragment}`;
    return frame;
  }

  /** Calls the partner's code. The partner's errors never reach the SDK. */
  private emit<N extends Exclude<keyof GateRampCallbacks, 'onInitiateDeposit'>>(
    name: N,
    ...event: Parameters<NonNullable<GateRampCallbacks[N]>>
  ): void {
    try {
      if (own(this.callbacks, name)) {
        (this.callbacks[name] as (...event: unknown[]) => void)(...event);
      }
    } catch (error) {
      report(error);
    }
  }

  /** Removes the frame and reports why the widget cannot start. */
  private fail(code: string, message: string): void {
    this.destroy();
    this.emit('onError', { code, message });
  }

  private expire(): void {
    const { gateOrigin, widgetOrigin } = this.settings;
    if (this.token) {
      this.fail(
        'frame_timeout',
        `The widget of ${widgetOrigin} did not become ready within 9 s. Check the connection, widgetOrigin, ` +
          "and frame-src of the page's Content-Security-Policy.",
      );
    } else {
      this.fail('bootstrap_timeout', `The gate at ${gateOrigin} did not respond within 9 s.`);
    }
  }

  /** True the first time. A frame that reloads reports again what the partner knows. */
  private isNews(report: string): boolean {
    const isNew = !this.reported.has(report);
    this.reported.add(report);
    return isNew;
  }

  /** The frame and the SDK both report an unavailable corridor. The partner gets one call. */
  private reportUnavailable(reason: string): void {
    if (this.isNews(`unavailable ${reason}`)) {
      this.emit('onUnavailable', { reason });
    }
  }

  private async fetchToken(): Promise<void> {
    this.bootstrapping = true;
    // Only web origins can be in allowed_domains. Pages inside apps have a scheme of their own, or the origin `null`.
    const result = await (!/^https?:/.test(self.origin) ? refuseOrigin() : bootstrap(this.settings, this.abort.signal));
    this.bootstrapping = false;
    if (this.isDestroyed) {
      return;
    }
    if (result.token) {
      this.token = result.token;
      this.tokenReceivedAt = performance.now();
      this.handOver();
      return;
    }
    const { unavailable, code, message } = result.refusal;
    const earlier = code === 'session_not_open' && !this.token ? recall(this.settings.clientSecret) : undefined;
    if (earlier) {
      this.ended = result.refusal;
      this.token = earlier;
    }
    if (this.token && RETRIED.includes(code)) {
      const timer = setTimeout(() => void this.fetchToken(), RENEWAL_PAUSE_MS);
      this.abort.signal.addEventListener('abort', () => clearTimeout(timer));
    } else if (this.token) {
      // A renewal was refused, for example because the session is over. The widget shows what the first token still lets it read.
      this.handOver();
    } else if (unavailable) {
      this.destroy();
      this.reportUnavailable(code);
    } else {
      this.fail(code, message);
    }
  }

  private post(message: Message): void {
    this.frame.contentWindow?.postMessage({ penstock: 1, ...message }, this.settings.widgetOrigin);
  }

  private handOver(): void {
    const { token } = this;
    if (!token || !this.frameReady) {
      return;
    }
    clearTimeout(this.timer);
    const { locale, theme, flow } = this.settings;
    const unavailable = token.available === false ? (token.unavailable_reason ?? 'unavailable') : null;
    this.post({
      type: 'token',
      embed_token: token.embed_token,
      expires_at: token.expires_at,
      session_id: token.session_id ?? null,
      unavailable_reason: unavailable,
      locale: locale ?? null,
      theme,
      flow: flow ?? null,
      can_deposit: typeof own(this.callbacks, 'onInitiateDeposit') === 'function',
      can_deposit_memo: true,
    });
    if (!this.handedOver) {
      this.handedOver = true;
      this.placeholder.remove();
      this.emit('onReady');
    }
    // `onReady` may have removed the widget.
    if (unavailable !== null && !this.isDestroyed) {
      this.reportUnavailable(unavailable);
    }
  }

  /**
   * A frame asks again after a reload, or because the gate no longer accepts its token.
   *
   * The age of the token decides and not its expiry, because the clock of the device can be wrong.
   */
  private answerReady(): void {
    this.frameReady = true;
    if (this.bootstrapping) {
      return;
    }
    if (this.handedOver && performance.now() - this.tokenReceivedAt > TOKEN_REUSE_MS) {
      void this.fetchToken();
    } else {
      this.handOver();
    }
  }

  private followStep(step: string): void {
    if (this.ended && step === 'over') {
      // The earlier token shows a session that ended without a payment.
      this.fail(this.ended.code, this.ended.message);
      return;
    }
    if (this.token && PAYMENT_STEPS.includes(step)) {
      remember(this.token);
    }
    this.emit('onStep', { step });
  }

  private async deposit(message: Message): Promise<void> {
    const { request_id, asset, network, amount, address, memo = null } = message;
    const hasTexts = isText(request_id) && isText(asset) && isText(network) && isText(amount) && isText(address);
    if (!hasTexts || !(memo === null || isText(memo))) {
      return;
    }
    // A repeated request gets the first result, so that the wallet never sends twice.
    let result = deposits.get(request_id);
    if (!result) {
      const ask = async (): Promise<string | null> => {
        if (!own(this.callbacks, 'onInitiateDeposit')) {
          return null;
        }
        const sent = await this.callbacks.onInitiateDeposit?.({ asset, network, amount, address, memo });
        if (!sent) {
          return null;
        }
        const hash = own(sent, 'txHash');
        if (isText(hash) && hash) {
          return hash;
        }
        throw new Error(
          'onInitiateDeposit returned no own text `txHash`: the widget does not know that the crypto was sent.',
        );
      };
      result = ask().catch((error: unknown) => {
        report(error);
        return null;
      });
      deposits.set(request_id, result);
    }
    const tx_hash = await result;
    if (!this.isDestroyed) {
      this.post({ type: 'deposited', request_id, tx_hash });
    }
  }

  /** Accepts messages of this frame, from the widget's exact origin and of a known shape, and ignores all others. */
  private readonly receive = (event: MessageEvent): void => {
    if (event.source !== this.frame.contentWindow || event.origin !== this.settings.widgetOrigin || !event.source) {
      return;
    }
    const message = bare(Object(event.data) as Message);
    if (message.penstock === 1) {
      this.dispatch(message);
    }
  };

  private dispatch(message: Message): void {
    const { type, height, step, rate, expires_at, tx_id, session_id, code, reason, payment_id } = message;
    if (type === 'ready') {
      this.answerReady();
    } else if (!this.frameReady) {
      return;
    } else if (
      type === 'resize' &&
      Number.isFinite(height) &&
      (height as number) > 0 &&
      (height as number) <= MAX_HEIGHT_PX
    ) {
      setStyles(this.frame, { height: `${Math.ceil(height as number)}px` });
    } else if (!this.handedOver) {
      return;
    } else if (type === 'step' && isText(step)) {
      this.followStep(step);
    } else if (type === 'quote' && isText(rate) && isText(expires_at)) {
      this.emit('onQuote', { rate, expiresAt: expires_at });
    } else if (type === 'success' && isText(tx_id) && isText(session_id)) {
      if (this.succeeded) {
        return;
      }
      this.succeeded = true;
      this.emit('onSuccess', { txId: tx_id, sessionId: session_id });
    } else if (type === 'error' && isText(code) && isText(message.message)) {
      if (isText(payment_id) && !this.isNews(`failed ${payment_id}`)) {
        return;
      }
      this.emit('onError', { code, message: message.message });
    } else if (type === 'close' && isText(reason)) {
      this.emit('onClose', { reason });
    } else if (type === 'unavailable' && isText(reason)) {
      this.reportUnavailable(reason);
    } else if (type === 'deposit') {
      void this.deposit(message);
    }
  }
}

function refuseOrigin(): Awaited<ReturnType<typeof bootstrap>> {
  return {
    token: null,
    refusal: {
      unavailable: false,
      code: 'origin_not_supported',
      message:
        `This page has the origin '${self.origin}' (a page inside an app, a file, or a sandboxed frame), which allowed_domains cannot name. ` +
        "Open the session's url in the system's browser, or serve the page over https.",
    },
  };
}
