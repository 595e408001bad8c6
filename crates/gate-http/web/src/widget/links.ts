const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/**
 * A provider's link as the customer opens it. The sandbox plays the provider on pages of this origin, which need the token to act for the
 * customer. No other page gets it, and no page in mode live.
 */
export function providerLink(url: string | null | undefined, mode: string, token: string): string | null {
  const link = safeLink(url, mode);
  if (link === null || mode !== 'test') return link;
  const page = new URL(link);
  if (page.origin !== location.origin || !page.pathname.startsWith('/sandbox/')) return link;
  page.hash = `embed_token=${encodeURIComponent(token)}`;
  return page.href;
}

/** A link to a provider's page: `https`, and in test mode also `http` on this machine. */
export function safeLink(url: string | null | undefined, mode: string | undefined): string | null {
  try {
    const { protocol, hostname, href } = new URL(url ?? '');
    return protocol === 'https:' || (mode === 'test' && protocol === 'http:' && LOOPBACK.includes(hostname))
      ? href
      : null;
  } catch {
    return null;
  }
}
