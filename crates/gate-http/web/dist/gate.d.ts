/** Key mode that the page expects: `sandbox` takes `pk_test_…`, `production` and `live` take `pk_live_…`. */
export type GateRampEnvironment = 'sandbox' | 'production' | 'live';
/** Colour scheme of the widget. `auto` follows the user's system. Any other text is `auto`, with a warning in the console. */
export type GateRampTheme = 'light' | 'dark' | 'auto';
/** Kind of order: buy crypto (`on_ramp`), sell crypto (`off_ramp`), or exchange one asset for another (`swap`). */
export type GateRampFlow = 'on_ramp' | 'off_ramp' | 'swap';
/** Options of `new GateRamp(…)` and `GateRamp.redirectToCheckout(…)`. Inherited properties do not count. */
export interface GateRampOptions {
    /** Publishable key, `pk_test_…` or `pk_live_…`. A secret key is refused. */
    publishableKey: string;
    /** Client secret (`gsec_…`) from the response that created the session on your server. */
    clientSecret: string;
    /** Expected mode of the key. Without it, the key alone decides. */
    environment?: GateRampEnvironment | undefined;
    /** Colour scheme of the widget. Default `auto`. */
    theme?: GateRampTheme | undefined;
    /**
     * BCP 47 language tag, such as `de`, `fr-CA` or `de_AT`. Default: the browser's language.
     *
     * A text that is no such tag gets a warning in the console and the browser's language, and stops no payment.
     */
    locale?: string | undefined;
    /** Flow of a session that was created without one. A session that has a flow keeps its own. */
    flow?: GateRampFlow | undefined;
    /** Origin of the gate's API. Required with the npm package; `gate.js` of a gate knows its own and takes no other. */
    gateOrigin?: string | undefined;
    /** Origin that serves the widget. Required with the npm package; `gate.js` of a gate knows its own and takes no other. */
    widgetOrigin?: string | undefined;
}
/** Transaction and session of a completed payment. */
export interface RampSuccessEvent {
    txId: string;
    sessionId: string;
}
/** Failure with a stable `code` and a `message` for developers. */
export interface RampErrorEvent {
    code: string;
    message: string;
}
/** Reason why the user left the widget, such as `completed` or `cancelled`. */
export interface RampCloseEvent {
    reason: string;
}
/** Reason why nothing can be offered, such as `corridor_not_available` or `organization_suspended`. */
export interface RampUnavailableEvent {
    reason: string;
}
/** Step that the widget shows, such as `details` or `price`. */
export interface RampStepEvent {
    step: string;
}
/** Exchange rate that the widget shows, as a decimal text, and the time at which it expires (ISO 8601). */
export interface RampQuoteEvent {
    rate: string;
    expiresAt: string;
}
/**
 * Crypto that the user has to send for a sale or a swap. `amount` is an exact decimal text.
 *
 * `memo` is null if the address alone is enough. Otherwise the transaction must carry it, because crypto without it can be lost.
 */
export interface DepositRequest {
    asset: string;
    network: string;
    amount: string;
    address: string;
    memo: string | null;
}
/** Hash of the transaction that your wallet has sent. */
export interface DepositResult {
    txHash: string;
}
/**
 * Callbacks of `mount`. Inherited ones, such as the methods of a class, are not called.
 *
 * Callbacks are UX signals only: a user can forge or suppress each of them. Signed webhooks, or reads by your server, decide.
 * A callback that throws is reported to the page and never stops the widget.
 */
export interface GateRampCallbacks {
    /** The widget is loaded and has its token. It comes before every other callback, or not at all. UX signal only: webhooks decide. */
    onReady?: (() => void) | undefined;
    /**
     * The user has paid. UX signal only: deliver goods after the webhook `gate_session.completed`, never after this callback.
     *
     * It comes at most once for each `mount`, and again with the same `txId` after a reload: compare ids.
     */
    onSuccess?: ((event: RampSuccessEvent) => void) | undefined;
    /**
     * The widget cannot start, or a payment failed. UX signal only: the webhook `gate_session.failed` decides.
     *
     * The code `origin_not_supported` says that the page has no web origin: open the session's `url` in the system's browser.
     */
    onError?: ((event: RampErrorEvent) => void) | undefined;
    /** The user leaves the widget. UX signal only: the session can still complete, and webhooks decide. */
    onClose?: ((event: RampCloseEvent) => void) | undefined;
    /** The gate has nothing to offer for this session. Show a neutral state. UX signal only: webhooks decide. */
    onUnavailable?: ((event: RampUnavailableEvent) => void) | undefined;
    /** The widget shows another step. UX signal only: webhooks decide. */
    onStep?: ((event: RampStepEvent) => void) | undefined;
    /** The widget shows a new price. UX signal only: the price binds no one outside the widget, and webhooks decide. */
    onQuote?: ((event: RampQuoteEvent) => void) | undefined;
    /**
     * Sends the crypto of a sale or swap from your own wallet interface, so that the widget skips the QR code.
     *
     * Return the hash, directly or as a promise. Without a hash (a rejection, `null`), the widget shows the address instead.
     * Return `null` without sending if your wallet cannot add the `memo` of a request.
     * It is called once for a payment, and only by the page in which the user made it: after a reload the widget shows the address.
     * UX signal only: a hash completes nothing. The gate watches the network, and webhooks decide.
     */
    onInitiateDeposit?: ((request: DepositRequest) => DepositResult | null | undefined | Promise<DepositResult | null | undefined>) | undefined;
}
/** Mistake in the integration. `code` is stable; `message` names the option and the remedy. */
export declare class GateRampError extends Error {
    /** `secret_key_refused`, `key_mode_mismatch`, `invalid_option` or `mount_target_not_found`. */
    readonly code: string;
    readonly name = "GateRampError";
    constructor(
    /** `secret_key_refused`, `key_mode_mismatch`, `invalid_option` or `mount_target_not_found`. */
    code: string, message: string);
}
/** The hosted checkout in a page: mounts the widget in an element, or redirects to it. */
export declare class GateRamp {
    private readonly settings;
    private mounted;
    /** Validates the options. Throws a `GateRampError` that names the option and the remedy. */
    constructor(options: GateRampOptions);
    /**
     * Starts the widget in an element. A second call removes the first widget and starts again in the given element.
     *
     * The callbacks are UX signals only. Signed webhooks, or reads by your server, decide.
     */
    mount(target: string | Element, callbacks?: GateRampCallbacks): this;
    /** Changes the colour scheme of the widget without a new start. */
    setTheme(theme: GateRampTheme): void;
    /** Removes the widget, its listeners and its requests. `mount` can follow again. */
    destroy(): void;
    /**
     * Leaves the page for the hosted checkout, which returns to the session's `return_url` or `cancel_url`.
     *
     * The return is a UX signal only: a user can open that address without paying. Signed webhooks decide.
     */
    static redirectToCheckout(options: GateRampOptions): void;
}
/** A widget that only buys crypto. */
export declare function createGateOnRamp(options: GateRampOptions): GateRamp;
/** A widget that only sells crypto. */
export declare function createGateOffRamp(options: GateRampOptions): GateRamp;
/** A widget that only exchanges one asset for another. */
export declare function createGateSwap(options: GateRampOptions): GateRamp;
