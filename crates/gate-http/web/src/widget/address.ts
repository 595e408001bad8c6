/** Cuts what nobody sees, such as zero-width characters and marks of the writing direction. */
export const visible = (text: string): string => text.replace(/\p{Default_Ignorable_Code_Point}|\p{Cf}/gu, '');

/**
 * Takes the address out of a pasted text: without white space around it, without invisible characters, and out of a payment URI.
 *
 * A transfer of a token (ERC-681) names the token's contract first and the recipient in `address`. Any other call of a contract
 * has no recipient that this function knows, so the text stays as it is and no check accepts it.
 */
export function readAddress(pasted: string): string {
  const text = visible(pasted).trim();
  const uri = /^[a-z][a-z0-9+.-]*:(?:\/\/)?(?:pay-)?([^/?@]+)(?:@[^/?]*)?(?:\/([^?]*))?(?:\?(.*))?$/i.exec(text);
  if (!uri) return text;
  const [, target = '', call, query] = uri;
  if (!call) return target;
  const recipient = new URLSearchParams(query).get('address');
  return call === 'transfer' && recipient ? recipient : text;
}

/** A name such as `x.eth`. No address contains a dot. */
export const isName = (text: string): boolean => /^[^\s.:/?@]+(\.[^\s.:/?@]+)+$/.test(text);

type Checks = typeof import('./address_checks');
let checks: Promise<Checks | null> | null = null;

/** Loads the checks, which need a hash function. Returns null after a failure, and the next call tries again. */
export function loadChecks(): Promise<Checks | null> {
  checks ??= import('./address_checks').catch(() => (checks = null));
  return checks;
}
