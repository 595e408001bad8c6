import { type CSSProperties, type ReactElement } from 'react';
import { type GateRampCallbacks, type GateRampOptions } from './gate.js';
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
export declare function RampCheckout(props: RampCheckoutProps): ReactElement;
