// Builds the demo shop of `penstock sandbox`: one page, one script, one style.

import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = dirname(fileURLToPath(import.meta.url));

/** Writes `demo.html` and `demo/*` into `dist`. */
export async function buildDemo(dist) {
  mkdirSync(join(dist, 'demo'), { recursive: true });
  await build({
    entryPoints: [join(source, 'demo.ts'), join(source, 'demo.css')],
    outdir: join(dist, 'demo'),
    bundle: true,
    minify: true,
    charset: 'utf8',
    format: 'iife',
    legalComments: 'none',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    logLevel: 'warning',
  });
  copyFileSync(join(source, 'demo.html'), join(dist, 'demo.html'));
}
