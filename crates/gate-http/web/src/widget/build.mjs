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
/** Bar of the contract for the files of the first load together, in bytes after gzip. */
const MAX_GZIP_BYTES = 45_000;
/** The name of the first script before it has a hash. */
const FIRST = 'widget.js';

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
  const { metafile, outputFiles } = await build({
    absWorkingDir: source,
    metafile: true,
    write: false,
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
  const names = await writeScripts(assets, metafile, outputFiles);
  const script = names.get(FIRST);
  const chunks = importsOf(metafile, FIRST, ['import-statement']).map((name) => names.get(name));
  const preloads = chunks.map((name) => `<link rel="modulepreload" href="/assets/${name}">`);
  const noscript = Object.entries(LANGUAGES).map(([code, texts]) => `<p lang="${code}">${texts.page.noscript}</p>`);
  const page = readFileSync(join(source, 'embed.html'), 'utf8')
    .replace('%STYLE%', style)
    .replace('%PRELOADS%', preloads.join('\n'))
    .replace('%SCRIPT%', script)
    .replace('%TEST_MODE%', LANGUAGES.en.messages.testMode)
    .replace('%TEST_NOTE%', LANGUAGES.en.messages.testNote)
    .replace('%NOSCRIPT%', noscript.join('\n'));
  writeFileSync(join(dist, 'embed.html'), page);
  writeLicenses(dist, metafile, join(source, '../../node_modules'));
  checkSize(dist, [style, script, ...chunks]);
}

/** The scripts that a script imports, by the names that esbuild gave them, each after those that it imports itself. */
function importsOf(metafile, name, kinds, above = []) {
  const chain = [...above, name];
  if (above.includes(name)) throw new Error(`No name can contain its hash: ${chain.join(' imports ')}.`);
  const [, { imports }] = Object.entries(metafile.outputs).find(([path]) => basename(path) === name);
  const direct = imports.filter(({ kind }) => kinds.includes(kind)).map(({ path }) => basename(path));
  return [...new Set(direct.flatMap((one) => [...importsOf(metafile, one, kinds, chain), one]))];
}

/**
 * Writes all scripts, and returns their names by those that esbuild gave them. A name contains a hash of the content, which has the names of
 * the imports, so each is written after its imports. Terser makes them 2 % smaller, since it gives the shortest names to what occurs most.
 */
async function writeScripts(assets, metafile, files) {
  const texts = new Map(files.map(({ path, text }) => [basename(path), text]));
  const names = new Map();
  for (const bundled of [...importsOf(metafile, FIRST, ['import-statement', 'dynamic-import']), FIRST]) {
    const [part] = bundled.split(/[-.]/);
    // A language is one text, which esbuild writes shorter.
    const code = part in LANGUAGES ? texts.get(bundled) : await minified(texts.get(bundled));
    const script = [...names].reduce((text, [before, name]) => text.replaceAll(`./${before}`, `./${name}`), code);
    const name = `${part}-${contentHash(script)}.js`;
    writeFileSync(join(assets, name), script);
    names.set(bundled, name);
  }
  return names;
}

async function minified(text) {
  const { code } = await minify(text, { module: true, ecma: 2022, compress: { passes: 3, lhs_constants: false } });
  return code;
}

/** The bar holds for the first screens in each language, together with the checks of addresses, which they load when they need them. */
function checkSize(dist, first) {
  const assets = join(dist, 'assets');
  const sizes = (names) => names.map((name) => [name, gzipped(join(assets, name))]);
  const named = (pattern) => sizes(readdirSync(assets).filter((name) => pattern.test(name)));
  const languages = named(new RegExp(`^(${Object.keys(LANGUAGES).join('|')})-`));
  const [largest] = languages.sort((a, b) => b[1] - a[1]);
  const parts = [
    ['embed.html', gzipped(join(dist, 'embed.html'))],
    ...sizes(first),
    largest,
    ...named(/^address_checks-/),
  ];
  const later = named(/^later-/);
  const sum = (all) => all.reduce((total, [, size]) => total + size, 0);
  for (const [name, size] of [...parts, ...later]) console.log(`${name}: ${size} bytes gzipped`);
  const total = sum(parts);
  console.log(`first load with the largest language: ${total} bytes gzipped (bar ${MAX_GZIP_BYTES})`);
  console.log(`with the later screens: ${total + sum(later)} bytes gzipped`);
  if (total > MAX_GZIP_BYTES)
    throw new Error(`The first load has ${total} bytes after gzip. The bar is ${MAX_GZIP_BYTES}.`);
}
