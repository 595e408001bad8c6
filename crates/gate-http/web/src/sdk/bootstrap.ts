import { bare } from './own.js';
import type { Settings } from './settings.js';

/** Token that lets the widget act for one session. */
export interface EmbedToken {
  embed_token: string;
  expires_at: string;
  session_id: string | null;
  available?: boolean;
  unavailable_reason?: string | null;
}

/** A start that the gate refused. `unavailable` separates a neutral state from an error. */
export interface BootstrapRefusal {
  unavailable: boolean;
  code: string;
  message: string;
}

/** Both names are own properties, so that none is looked up in a prototype. */
export type BootstrapResult = { token: EmbedToken; refusal: null } | { token: null; refusal: BootstrapRefusal };

/** Codes of a refusal that no change of the page can cure: the gate has nothing to offer. */
const UNAVAILABLE_CODES = ['organization_suspended', 'gate_not_enabled', 'quota_exhausted'];

function refuse(code: string, message: string): BootstrapResult {
  return { token: null, refusal: { unavailable: UNAVAILABLE_CODES.includes(code), code, message } };
}

async function readResponse(response: Response): Promise<BootstrapResult> {
  const body = bare(((await response.json().catch(() => null)) ?? {}) as Record<string, unknown>);
  if (response.ok && typeof body.embed_token === 'string') {
    return { token: body as unknown as EmbedToken, refusal: null };
  }
  if (typeof body.code === 'string') {
    return refuse(body.code, String(body.message));
  }
  return refuse(
    'unexpected_response',
    `The gate's response to the bootstrap has status ${response.status} and is malformed.`,
  );
}

/** Sends a request without cookies and referrer. The browser reads inherited options too, so they inherit nothing. */
function request(url: string, options: RequestInit): Promise<Response> {
  return fetch(url, bare<RequestInit>({ credentials: 'omit', referrerPolicy: 'no-referrer', ...options }));
}

/**
 * Finds out why the browser hid the response.
 *
 * A browser reports a refused preflight and a lost connection alike. A request without a preflight shows the refusal of a
 * suspended partner, and an opaque request shows whether the gate is reachable.
 * Returns undefined if the gate accepts this page, so that the first failure was a passing one.
 */
async function explainHiddenResponse(
  settings: Settings,
  url: string,
  signal: AbortSignal,
): Promise<BootstrapResult | undefined> {
  try {
    const query = `?publishable_key=${encodeURIComponent(settings.publishableKey)}`;
    const response = await request(url + query, { method: 'POST', signal });
    return response.ok ? undefined : await readResponse(response);
  } catch {
    // Only a page that the gate knows can read a response.
  }
  try {
    await request(`${settings.gateOrigin}/health`, { mode: 'no-cors', cache: 'no-store', signal });
  } catch {
    return refuse(
      'network_error',
      `The gate at ${settings.gateOrigin} cannot be reached. Check the connection, and connect-src of the page's Content-Security-Policy.`,
    );
  }
  return refuse(
    'origin_not_allowed',
    `The gate at ${settings.gateOrigin} refuses publishableKey in pages of ${self.origin}. Either allowed_domains of the key's partner ` +
      'lacks this exact origin: add it. Or the gate does not know the key: compare it with the one that your gate shows, ' +
      'and its mode (pk_test_… or pk_live_…) with the mode of the gate.',
  );
}

/** Obtains an embed token for the page. Never rejects. */
export async function bootstrap(settings: Settings, signal: AbortSignal): Promise<BootstrapResult> {
  const url = `${settings.gateOrigin}/v1/embed/bootstrap`;
  const ask = (): Promise<Response> =>
    request(url, {
      method: 'POST',
      headers: { Authorization: `Bearer ${settings.publishableKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ clientSecret: settings.clientSecret }),
      signal,
    });
  try {
    return await readResponse(await ask());
  } catch {
    // Either the network failed or the browser hid the response. An aborted signal fails each further request at once.
  }
  const explained = await explainHiddenResponse(settings, url, signal);
  if (explained) {
    return explained;
  }
  try {
    return await readResponse(await ask());
  } catch {
    return refuse('network_error', `The connection to the gate at ${settings.gateOrigin} failed. Try again.`);
  }
}
