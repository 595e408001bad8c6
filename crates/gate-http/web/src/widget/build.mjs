// Builds the widget: its page, its style, and its scripts, of which a language is loaded only where it is spoken.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { writeLicenses } from '../licenses.mjs';

const source = dirname(fileURLToPath(import.meta.url));
/** Bar of the contract for page, script and style together, in bytes after gzip. */
const MAX_GZIP_BYTES = 40_000;

const gzipped = (path) => gzipSync(readFileSync(path), { level: 9 }).length;

function contentHash(text) {
  return createHash('sha256').update(text).digest('hex').slice(0, 10);
}

/** Writes `embed.html`, `assets/*` and `licenses.txt` into `dist`. The other parts contain no code of a package. */
export async function buildWidget(dist) {
  const assets = join(dist, 'assets');
  rmSync(assets, { recursive: true, force: true });
  mkdirSync(assets, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: source,
    metafile: true,
    entryPoints: { widget: 'main.tsx' },
    outdir: assets,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    // Names of files contain a hash over paths, so paths must not depend on where the packages are stored.
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
  const css = await build({ absWorkingDir: source, entryPoints: ['style.css'], bundle: true, minify: true, write: false, logLevel: 'warning' });
  const styleText = css.outputFiles[0].text;
  const style = `widget-${contentHash(styleText)}.css`;
  writeFileSync(join(assets, style), styleText);
  const script = readdirSync(assets).find((name) => /^widget-.*\.js$/.test(name));
  const page = readFileSync(join(source, 'embed.html'), 'utf8').replace('%STYLE%', style).replace('%SCRIPT%', script);
  writeFileSync(join(dist, 'embed.html'), page);
  writeLicenses(dist, metafile, join(source, '../../node_modules'));
  checkSize(dist, style, script);
}

/** The bar holds for the first screen in each language, and in English also with the checks of addresses, which a purchase loads later. */
function checkSize(dist, style, script) {
  const assets = join(dist, 'assets');
  const sizes = (names) => names.map((name) => [name, gzipped(join(assets, name))]);
  const named = (pattern) => sizes(readdirSync(assets).filter((name) => pattern.test(name)));
  const rows = [['embed.html', gzipped(join(dist, 'embed.html'))], ...sizes([style, script]), ...named(/^chunk-.*\.js$/)];
  const largest = named(/^(de|fr|es|it|nl)-.*\.js$/).sort((a, b) => b[1] - a[1])[0];
  const [checks] = named(/^address_checks-.*\.js$/);
  const sum = (all) => all.reduce((total, [, size]) => total + size, 0);
  const totals = [['widget in its largest language', sum([...rows, largest])], ['purchase in English', sum([...rows, checks])]];
  for (const [name, size] of [...rows, largest, checks]) console.log(`${name}: ${size} bytes gzipped`);
  for (const [what, total] of totals) {
    console.log(`${what}: ${total} bytes gzipped (bar ${MAX_GZIP_BYTES})`);
    if (total > MAX_GZIP_BYTES) throw new Error(`${what}: ${total} bytes after gzip. The bar is ${MAX_GZIP_BYTES}.`);
  }
}
