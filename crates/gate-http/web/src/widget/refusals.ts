import { NoAnswer, Refusal } from './api';

/** What a refusal means for the flow, by its code. */
export type Meaning = 'token' | 'unavailable' | 'state' | 'quote' | 'verification' | 'alert';

/** Codes after which this session can offer nothing, whatever the user changes. */
const UNAVAILABLE = [
  'key_revoked', 'key_expired', 'organization_suspended', 'gate_not_enabled', 'quota_exhausted', 'session_required', 'scope_missing',
  'rails_not_available', 'rails_not_enabled', 'quote_session_mismatch', 'origin_not_allowed', 'client_secret_invalid',
];
const OTHERS: Record<string, Meaning> = {
  session_payment_in_progress: 'state', session_not_open: 'state',
  quote_expired: 'quote', quote_superseded: 'quote', quote_consumed: 'quote',
  verification_required: 'verification', verification_rejected: 'verification',
};

export function meaningOf(refusal: Refusal): Meaning {
  if (refusal.status === 401) return 'token';
  return UNAVAILABLE.includes(refusal.code) ? 'unavailable' : (OTHERS[refusal.code] ?? 'alert');
}

/** True if the same call can succeed a moment later without any change by the user. */
export const isPassing = (error: unknown): boolean =>
  error instanceof NoAnswer || (error instanceof Refusal && (error.status === 429 || error.isUnclear));

/** True if a price may be asked for again by itself after this refusal. */
export const mayRenewAfter = (code: string | undefined): boolean => code === undefined || /^(quote_|rate_|service_unavailable)/.test(code);
