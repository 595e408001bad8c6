// The policy of a partner's page, as the documents show it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const DOCUMENT = new URL('../../../../docs/embedding.md', import.meta.url);

/** The whole `Content-Security-Policy` of a page with nothing but the widget. */
export function policyOfDocuments(gate, widget) {
  const lines = readFileSync(DOCUMENT, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('default-src '));
  assert.equal(lines.length, 1, 'The documents show one whole policy.');
  return lines[0].replaceAll('{gate origin}', gate).replaceAll('{widget origin}', widget);
}
