// Builds the demo shop of `penstock sandbox`: one page, one script, one style.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { LANGUAGES } from '../languages/load.mjs';

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
  const options = Object.keys(LANGUAGES).map((code) => `<option value="${code}">${code.toUpperCase()}</option>`);
  const template = readFileSync(join(source, 'demo.html'), 'utf8');
  const indent = ' '.repeat(14);
  writeFileSync(join(dist, 'demo.html'), template.replace('%LANGUAGES%', options.join(`\n${indent}`)));
}
