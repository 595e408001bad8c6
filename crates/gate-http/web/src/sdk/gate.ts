import {
  type GateRampCallbacks,
  GateRampError,
  type GateRampFlow,
  type GateRampOptions,
  type GateRampTheme,
} from './api.js';
import { MountedFrame } from './mounted_frame.js';
import { own } from './own.js';
import { readSettings, readTheme, type Settings } from './settings.js';

export * from './api.js';

/** Finds the element to mount into. */
function findTarget(target: string | Element): Element {
  let found: Element | null = null;
  try {
    found = typeof target === 'string' ? document.querySelector(target) : target;
  } catch {
    // The error below covers an invalid selector.
  }
  if (found?.nodeType !== 1) {
    throw new GateRampError(
      'mount_target_not_found',
      `mount found no element for ${typeof target === 'string' ? `'${target}'` : 'its first argument'}. ` +
        'Pass a selector or an element, and call mount after the element exists.',
    );
  }
  return found;
}

/** The hosted checkout in a page: mounts the widget in an element, or redirects to it. */
export class GateRamp {
  private readonly settings: Settings;
  private mounted: MountedFrame | undefined;

  /** Validates the options. Throws a `GateRampError` that names the option and the remedy. */
  constructor(options: GateRampOptions) {
    this.settings = readSettings(options);
  }

  /**
   * Starts the widget in an element. A second call removes the first widget and starts again in the given element.
   *
   * The callbacks are UX signals only. Signed webhooks, or reads by your server, decide.
   */
  mount(target: string | Element, callbacks: GateRampCallbacks = {}): this {
    const container = findTarget(target);
    this.destroy();
    this.mounted = new MountedFrame(container, this.settings, callbacks ?? {});
    return this;
  }

  /** Changes the colour scheme of the widget without a new start. */
  setTheme(theme: GateRampTheme): void {
    this.settings.theme = readTheme(theme);
    this.mounted?.setTheme(this.settings.theme);
  }

  /** Removes the widget, its listeners and its requests. `mount` can follow again. */
  destroy(): void {
    this.mounted?.destroy();
    this.mounted = undefined;
  }

  /**
   * Leaves the page for the hosted checkout, which returns to the session's `return_url` or `cancel_url`.
   *
   * The return is a UX signal only: a user can open that address without paying. Signed webhooks decide.
   */
  static redirectToCheckout(options: GateRampOptions): void {
    const { publishableKey, clientSecret, widgetOrigin, theme, locale } = readSettings(options);
    const fragment = new URLSearchParams({ publishable_key: publishableKey, client_secret: clientSecret });
    if (own(options, 'theme')) {
      fragment.set('theme', theme);
    }
    if (locale) {
      fragment.set('locale', locale);
    }
    location.assign(`${widgetOrigin}/checkout#${fragment}`);
  }
}

function withFlow(options: GateRampOptions, flow: GateRampFlow): GateRamp {
  return new GateRamp({ ...options, flow });
}

/** A widget that only buys crypto. */
export function createGateOnRamp(options: GateRampOptions): GateRamp {
  return withFlow(options, 'on_ramp');
}

/** A widget that only sells crypto. */
export function createGateOffRamp(options: GateRampOptions): GateRamp {
  return withFlow(options, 'off_ramp');
}

/** A widget that only exchanges one asset for another. */
export function createGateSwap(options: GateRampOptions): GateRamp {
  return withFlow(options, 'swap');
}
