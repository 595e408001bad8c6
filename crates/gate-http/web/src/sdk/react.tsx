import { createElement, type CSSProperties, type ReactElement, useEffect, useRef } from 'react';
import { GateRamp, type GateRampCallbacks, type GateRampOptions } from './gate.js';

/** Options and callbacks of the widget, and the attributes of the element around it. */
export interface RampCheckoutProps extends GateRampOptions, GateRampCallbacks {
  id?: string | undefined;
  className?: string | undefined;
  style?: CSSProperties | undefined;
}

/**
 * The hosted checkout as a React component.
 *
 * A new theme or new callbacks apply without a new start; a change of any other option starts the widget again.
 * Callbacks are UX signals only. Signed webhooks, or reads by your server, decide.
 */
export function RampCheckout(props: RampCheckoutProps): ReactElement {
  const { publishableKey, clientSecret, environment, theme, locale, flow, gateOrigin, widgetOrigin } = props;
  const container = useRef<HTMLDivElement>(null);
  const ramp = useRef<GateRamp | null>(null);
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });

  useEffect(() => {
    const created = new GateRamp({
      publishableKey,
      clientSecret,
      environment,
      theme: latest.current.theme,
      locale,
      flow,
      gateOrigin,
      widgetOrigin,
    });
    let isCurrent = true;
    ramp.current = created;
    // StrictMode runs an effect, its cleanup, and the effect again in one task. Only the last one reaches this microtask.
    queueMicrotask(() => {
      if (isCurrent && container.current) {
        created.mount(container.current, forwardCallbacks(latest));
      }
    });
    return () => {
      isCurrent = false;
      created.destroy();
    };
  }, [publishableKey, clientSecret, environment, locale, flow, gateOrigin, widgetOrigin]);

  useEffect(() => {
    ramp.current?.setTheme(theme ?? 'auto');
  }, [theme]);

  return createElement('div', { ref: container, id: props.id, className: props.className, style: props.style });
}

/** Callbacks that call the newest props, so that a new function needs no new start. */
function forwardCallbacks(latest: { current: RampCheckoutProps }): GateRampCallbacks {
  const callbacks: GateRampCallbacks = {
    onReady: () => latest.current.onReady?.(),
    onSuccess: (event) => latest.current.onSuccess?.(event),
    onError: (event) => latest.current.onError?.(event),
    onClose: (event) => latest.current.onClose?.(event),
    onUnavailable: (event) => latest.current.onUnavailable?.(event),
    onStep: (event) => latest.current.onStep?.(event),
    onQuote: (event) => latest.current.onQuote?.(event),
  };
  // The widget shows a QR code unless the page can send the crypto, so this callback exists only if the page has it.
  if (latest.current.onInitiateDeposit) {
    callbacks.onInitiateDeposit = (request) => latest.current.onInitiateDeposit?.(request);
  }
  return callbacks;
}
