// Builds the pages of the sandbox on the widget's origin: one page for both paths, one script, one style.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = dirname(fileURLToPath(import.meta.url));

/** Writes `sandbox.html` and `sandbox/*` into `dist`. Their only package is Preact, whose licence the widget's file has. */
export async function buildSandbox(dist) {
  const folder = join(dist, 'sandbox');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { outputFiles } = await build({
    absWorkingDir: source,
    entryPoints: { sandbox: 'main.tsx', style: 'sandbox.css' },
    outdir: folder,
    write: false,
    bundle: true,
    preserveSymlinks: true,
    format: 'esm',
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    target: ['es2022'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
  });
  const write = (ending) => {
    const { text } = outputFiles.find(({ path }) => extname(path) === ending);
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 10);
    writeFileSync(join(folder, `sandbox-${hash}${ending}`), text);
    return `sandbox-${hash}${ending}`;
  };
  const page = readFileSync(join(source, 'sandbox.html'), 'utf8')
    .replace('%STYLE%', write('.css'))
    .replace('%SCRIPT%', write('.js'));
  writeFileSync(join(dist, 'sandbox.html'), page);
}
