const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

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
