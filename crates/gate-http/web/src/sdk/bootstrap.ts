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

export type BootstrapResult = { token: EmbedToken } | { refusal: BootstrapRefusal };

/** Codes of a refusal that no change of the page can cure: the gate has nothing to offer. */
const UNAVAILABLE_CODES = ['organization_suspended', 'gate_not_enabled', 'quota_exhausted'];

function refuse(code: string, message: string): { refusal: BootstrapRefusal } {
  return { refusal: { unavailable: UNAVAILABLE_CODES.includes(code), code, message } };
}

async function readResponse(response: Response): Promise<BootstrapResult> {
  const body = (await response.json().catch(() => null)) as Record<string, unknown> | null;
  if (response.ok && typeof body?.embed_token === 'string') {
    return { token: body as unknown as EmbedToken };
  }
  if (typeof body?.code === 'string') {
    return refuse(body.code, String(body.message));
  }
  return refuse(
    'unexpected_response',
    `The gate's response to the bootstrap has status ${response.status} and is malformed.`,
  );
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
    const response = await fetch(url + query, {
      method: 'POST',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      signal,
    });
    return response.ok ? undefined : await readResponse(response);
  } catch {
    // Only a page that the gate knows can read a response.
  }
  try {
    await fetch(`${settings.gateOrigin}/health`, {
      mode: 'no-cors',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      cache: 'no-store',
      signal,
    });
  } catch {
    return refuse(
      'network_error',
      `The gate at ${settings.gateOrigin} cannot be reached. Check the connection, and connect-src of the page's Content-Security-Policy.`,
    );
  }
  return refuse(
    'origin_not_allowed',
    `The gate does not accept pages of ${self.origin}, or does not know publishableKey. ` +
      'Add this exact origin to allowed_domains, and check the key.',
  );
}

/** Obtains an embed token for the page. Never rejects. */
export async function bootstrap(settings: Settings, signal: AbortSignal): Promise<BootstrapResult> {
  const url = `${settings.gateOrigin}/v1/embed/bootstrap`;
  const request = (): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      headers: { Authorization: `Bearer ${settings.publishableKey}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ clientSecret: settings.clientSecret }),
      signal,
    });
  try {
    return await readResponse(await request());
  } catch {
    // Either the network failed or the browser hid the response. An aborted signal fails each further request at once.
  }
  const explained = await explainHiddenResponse(settings, url, signal);
  if (explained) {
    return explained;
  }
  try {
    return await readResponse(await request());
  } catch {
    return refuse('network_error', `The connection to the gate at ${settings.gateOrigin} failed. Try again.`);
  }
}
