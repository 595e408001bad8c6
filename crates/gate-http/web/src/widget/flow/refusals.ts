import type { MessageKey } from '../i18n';
import type { ErrorCodes } from '../../wire/gate_embed';

/** An answer of the gate that refuses a call. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly retryAfter: number,
    readonly requestId: string,
  ) {
    super(code);
  }

  /** True when the call may have taken effect although the answer is an error. A gate that answers 501 or `rail_unavailable` has done nothing. */
  get isUnclear(): boolean {
    return (
      (this.status >= 500 && this.status !== 501 && this.code !== 'rail_unavailable') ||
      this.code === 'idempotency_in_progress'
    );
  }
}

/** No answer arrived: the call may or may not have taken effect. */
export class NoAnswer extends Error {}

/**
 * What a refusal means for the flow.
 *
 * - `token`: the token is no longer valid.
 * - `unavailable`: this session can offer nothing, whatever the customer changes.
 * - `state`: the session has changed without this page.
 * - `quote`: the price cannot be paid any more.
 * - `verification`: the customer has to be verified first.
 * - `alert`: the customer reads a sentence and goes on.
 */
type Meaning = 'token' | 'unavailable' | 'state' | 'quote' | 'verification' | Alert;
interface Alert {
  alert: MessageKey;
}

/** What the codes mean whose status alone does not say it. */
const MEANINGS = {
  quote_session_mismatch: 'unavailable',
  unknown_currency: 'unavailable',
  session_payment_in_progress: 'state',
  session_not_open: 'state',
  session_open: 'state',
  quote_expired: 'quote',
  quote_superseded: 'quote',
  quote_consumed: 'quote',
  verification_required: 'verification',
  verification_rejected: 'verification',
  verification_form_not_asked: 'verification',
  rate_unavailable: { alert: 'noRate' },
  amount_out_of_range: { alert: 'outOfRange' },
  invalid_address: { alert: 'walletRefused' },
  address_checksum_mismatch: { alert: 'walletSum' },
  wallet_mismatch: { alert: 'walletMismatch' },
  network_not_supported: { alert: 'notOffered' },
  asset_not_supported: { alert: 'notOffered' },
  corridor_not_available: { alert: 'notOffered' },
  country_not_supported: { alert: 'unavailableText' },
  payment_not_cancellable: { alert: 'tooLate' },
} as const satisfies Record<string, Meaning>;

/** The gate does not take the call as this page sent it, and the customer reads `unavailableText` with the reference of the request. */
type NotDone =
  | 'amount_not_allowed'
  | 'body_too_large'
  | 'idempotency_key_invalid'
  | 'idempotency_key_required'
  | 'invalid_json'
  | 'invalid_request'
  | 'not_simulated'
  | 'resource_not_found'
  | 'unsupported_media_type';

/** This session can offer nothing, whatever the customer changes. */
type Unavailable =
  | 'client_secret_invalid'
  | 'gate_not_enabled'
  | 'key_expired'
  | 'key_kind_not_allowed'
  | 'key_revoked'
  | 'live_key_on_sandbox'
  | 'live_keys_not_allowed'
  | 'organization_suspended'
  | 'origin_not_allowed'
  | 'rails_not_available'
  | 'scope_missing'
  | 'session_required'
  | 'test_key_on_live';

/** Statuses that say what their codes mean: see `meaningOf`. */
type Telling = 401 | 408 | 429 | 500 | 503;
type Untold = ErrorCodes[Exclude<keyof ErrorCodes, Telling>];
type Meaningful = keyof typeof MEANINGS | Unavailable | NotDone | 'idempotency_in_progress';
/** The compiler refuses this line if a call of the widget can return a code that has no meaning here. */
export type EachCodeHasAMeaning = Assert<Untold extends Meaningful ? true : Exclude<Untold, Meaningful>>;
type Assert<T extends true> = T;

export function meaningOf({ status, code, isUnclear }: Refusal): Meaning {
  const known = (MEANINGS as Partial<Record<string, Meaning>>)[code];
  if (status === 401) return 'token';
  if (status === 429) return { alert: 'tooMany' };
  // Without a code of the gate, something before the gate has answered.
  if ((status === 501 || status === 403) && !known && code !== 'unknown') return 'unavailable';
  return known ?? { alert: isUnclear || status === 408 || status >= 500 ? 'unreachable' : 'unavailableText' };
}

/** True if the same call can succeed a moment later without any change by the customer. */
export const isPassing = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refusal && (error.status === 429 || error.isUnclear));

/** True if the gate does not know the payment as one of the sandbox. */
export const isNotSimulated = (error: unknown): boolean =>
  error instanceof Refusal && (error.status === 404 || error.code === 'not_simulated');

/** True if the wait for a change of the session cannot go on after this refusal. */
export const isFinal = (refusal: Refusal): boolean => !isPassing(refusal) && typeof meaningOf(refusal) === 'string';

/** True if a price may be asked for again by itself after this refusal. */
export const mayRenewAfter = (code: string | undefined): boolean =>
  code === undefined || /^(quote_|rate_|service_unavailable)/.test(code);
