// Files of the repository outside this folder: code that the documents show to partners and that the tests run.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const { DOCS_DIR } = process.env;
/** The root of the repository. */
export const ROOT = DOCS_DIR ? join(DOCS_DIR, '..') : fileURLToPath(new URL('../../../../', import.meta.url));

/** The code below the comment `<!-- run: name -->` in a document, which its path from the root names. */
export function sampleOf(document, name) {
  const found = readFileSync(join(ROOT, document), 'utf8').split(`<!-- run: ${name} -->\n`);
  assert.equal(found.length, 2, `${document} shows one sample ${name}.`);
  const [, code] = /^```\w+\n(.*?)^```$/ms.exec(found[1]);
  return code;
}
