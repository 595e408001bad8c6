// Builds the widget: its page, its style, and its scripts, of which a language is loaded only where it is spoken.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { minify } from 'terser';
import { LANGUAGES } from '../languages/load.mjs';
import { writeLicenses } from '../licenses.mjs';

const source = dirname(fileURLToPath(import.meta.url));
/** Bar of the contract for page, script and style together, in bytes after gzip. */
const MAX_GZIP_BYTES = 40_000;

const gzipped = (path) => gzipSync(readFileSync(path), { level: 9 }).length;

/**
 * A language that is loaded later has its texts alone, in the order of the English ones. They are one literal, which takes less than a list
 * of literals: no text has a line break.
 */
const packTexts = {
  name: 'pack-texts',
  setup(bundler) {
    bundler.onResolve({ filter: /\/languages\/\w+$/ }, ({ path, kind }) => {
      return kind === 'dynamic-import' ? { path, namespace: 'texts' } : undefined;
    });
    bundler.onLoad({ filter: /./, namespace: 'texts' }, ({ path }) => {
      const texts = Object.values(LANGUAGES[basename(path)].messages).join('\n');
      return { contents: `export const messages = ${JSON.stringify(texts)}.split('\\n');` };
    });
  },
};

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
    entryNames: '[name]',
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
    plugins: [packTexts],
    logLevel: 'warning',
  });
  const css = await build({
    absWorkingDir: source,
    entryPoints: ['style.css'],
    bundle: true,
    minify: true,
    write: false,
    logLevel: 'warning',
  });
  const styleText = css.outputFiles[0].text;
  const style = `widget-${contentHash(styleText)}.css`;
  writeFileSync(join(assets, style), styleText);
  const script = await writeScript(assets);
  const noscript = Object.entries(LANGUAGES).map(([code, texts]) => `<p lang="${code}">${texts.page.noscript}</p>`);
  const page = readFileSync(join(source, 'embed.html'), 'utf8')
    .replace('%STYLE%', style)
    .replace('%SCRIPT%', script)
    .replace('%NOSCRIPT%', noscript.join('\n'));
  writeFileSync(join(dist, 'embed.html'), page);
  writeLicenses(dist, metafile, join(source, '../../node_modules'));
  checkSize(dist, style, script);
}

/** Makes the first script 2 % smaller, since Terser gives the shortest names to what occurs most, and returns its name. */
async function writeScript(assets) {
  const bundled = join(assets, 'widget.js');
  const { code } = await minify(readFileSync(bundled, 'utf8'), {
    module: true,
    ecma: 2022,
    compress: { passes: 3, lhs_constants: false },
  });
  const name = `widget-${contentHash(code)}.js`;
  writeFileSync(join(assets, name), code);
  rmSync(bundled);
  return name;
}

/** The bar holds for the first screen in each language, and in English also with the checks of addresses, which a purchase loads later. */
function checkSize(dist, style, script) {
  const assets = join(dist, 'assets');
  const sizes = (names) => names.map((name) => [name, gzipped(join(assets, name))]);
  const named = (pattern) => sizes(readdirSync(assets).filter((name) => pattern.test(name)));
  const rows = [
    ['embed.html', gzipped(join(dist, 'embed.html'))],
    ...sizes([style, script]),
    ...named(/^chunk-.*\.js$/),
  ];
  const languages = named(new RegExp(`^(${Object.keys(LANGUAGES).join('|')})-`));
  const [largest] = languages.sort((a, b) => b[1] - a[1]);
  const [checks] = named(/^address_checks-.*\.js$/);
  const sum = (all) => all.reduce((total, [, size]) => total + size, 0);
  const totals = [
    ['widget in its largest language', sum([...rows, largest])],
    ['purchase in English', sum([...rows, checks])],
  ];
  for (const [name, size] of [...rows, largest, checks]) console.log(`${name}: ${size} bytes gzipped`);
  for (const [what, total] of totals) {
    console.log(`${what}: ${total} bytes gzipped (bar ${MAX_GZIP_BYTES})`);
    if (total > MAX_GZIP_BYTES) throw new Error(`${what}: ${total} bytes after gzip. The bar is ${MAX_GZIP_BYTES}.`);
  }
}
