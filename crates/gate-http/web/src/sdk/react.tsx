import { createElement, type CSSProperties, type ReactElement, useEffect, useRef, useState } from 'react';
import { GateRamp, type GateRampCallbacks, type GateRampError, type GateRampOptions } from './gate.js';
import { bare } from './own.js';

/** Options and callbacks of the widget, and the attributes of the element around it. */
export interface RampCheckoutProps extends GateRampOptions, GateRampCallbacks {
  id?: string | undefined;
  className?: string | undefined;
  style?: CSSProperties | undefined;
}

/**
 * The hosted checkout as a React component.
 *
 * A new theme or new callbacks apply without a new start; a change of any other option starts the widget again. A wrong or missing option
 * never throws: the component shows nothing, calls `onError`, and writes the error to the console.
 * Callbacks are UX signals only. Signed webhooks, or reads by your server, decide.
 */
export function RampCheckout(props: RampCheckoutProps): ReactElement {
  const given = bare(props);
  const { publishableKey, clientSecret, environment, theme, locale, flow, gateOrigin, widgetOrigin } = given;
  const container = useRef<HTMLDivElement>(null);
  const ramp = useRef<GateRamp | null>(null);
  const latest = useRef(given);
  const [isRefused, setRefused] = useState(false);
  useEffect(() => {
    latest.current = given;
  });

  useEffect(() => {
    let created: GateRamp | undefined;
    let isCurrent = true;
    const start = (element: Element): void => {
      created = new GateRamp({
        publishableKey,
        clientSecret,
        environment,
        theme: latest.current.theme,
        locale,
        flow,
        gateOrigin,
        widgetOrigin,
      });
      created.mount(element, forwardCallbacks(latest));
      ramp.current = created;
      setRefused(false);
    };
    // StrictMode runs an effect, its cleanup, and the effect again in one task. Only the last one reaches this microtask.
    queueMicrotask(() => {
      if (!isCurrent || !container.current) {
        return;
      }
      try {
        start(container.current);
      } catch (error) {
        // An error of an effect would unmount the whole application.
        setRefused(true);
        console.error(error);
        const { code, message } = error as GateRampError;
        latest.current.onError?.({ code, message });
      }
    });
    return () => {
      isCurrent = false;
      created?.destroy();
      ramp.current = null;
    };
  }, [publishableKey, clientSecret, environment, locale, flow, gateOrigin, widgetOrigin]);

  useEffect(() => {
    ramp.current?.setTheme(theme ?? 'auto');
  }, [theme]);

  const { id, className, style } = given;
  return createElement('div', { ref: container, id, className, style: isRefused ? { display: 'none' } : style });
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
