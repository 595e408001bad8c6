// Builds the browser SDK and the React component: scripts by esbuild, type declarations by the TypeScript compiler.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import ts from 'typescript';

const source = dirname(fileURLToPath(import.meta.url));
/** Bar of the contract for `gate.js` and for `gate.mjs`, in bytes after gzip. */
const MAX_GZIP_BYTES = 6 * 1024;
const PLACEHOLDERS = ['"{{penstock.gate_origin}}"', '"{{penstock.widget_origin}}"', '"pk_{{penstock.mode}}_"'];

const COMMON = {
  bundle: true,
  minify: true,
  charset: 'utf8',
  legalComments: 'none',
  target: ['es2019'],
  logLevel: 'warning',
  absWorkingDir: source,
};

/** The React component uses the module beside it, so that a page loads the SDK once. */
const shareGateModule = {
  name: 'share-gate-module',
  setup(bundler) {
    bundler.onResolve({ filter: /^\.\/gate\.js$/ }, () => ({ path: './gate.mjs', external: true }));
  },
};

function checkGate(dist, name) {
  const bytes = readFileSync(join(dist, name));
  const text = bytes.toString();
  for (const placeholder of PLACEHOLDERS) {
    if (text.split(placeholder).length !== 2) {
      throw new Error(`${name} must contain ${placeholder} exactly once, because the server replaces it.`);
    }
  }
  const size = gzipSync(bytes, { level: 9 }).length;
  console.log(`${name}: ${bytes.length} bytes, ${size} bytes gzipped (bar ${MAX_GZIP_BYTES})`);
  if (size > MAX_GZIP_BYTES) {
    throw new Error(`${name} has ${size} bytes after gzip. The bar is ${MAX_GZIP_BYTES}.`);
  }
}

/** Emits the declarations of one source file as text. */
function declarations() {
  const program = ts.createProgram(
    ['gate.ts', 'react.tsx'].map((name) => join(source, name)),
    {
      declaration: true,
      emitDeclarationOnly: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
      lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
      types: [],
      newLine: ts.NewLineKind.LineFeed,
    },
  );
  const problems = ts.getPreEmitDiagnostics(program);
  if (problems.length > 0) {
    throw new Error(
      ts.formatDiagnostics(problems, {
        getCurrentDirectory: () => source,
        getCanonicalFileName: (name) => name,
        getNewLine: () => '\n',
      }),
    );
  }
  const emitted = {};
  program.emit(undefined, (path, text) => {
    emitted[path.split('/').pop()] = text;
  });
  return emitted;
}

/** Writes `gate.js`, `gate.mjs`, `react.mjs`, `gate.d.ts` and `react.d.ts` into `dist`. */
export async function buildSdk(dist) {
  await build({ ...COMMON, entryPoints: ['global.ts'], outfile: join(dist, 'gate.js'), format: 'iife' });
  await build({ ...COMMON, entryPoints: ['gate.ts'], outfile: join(dist, 'gate.mjs'), format: 'esm' });
  await build({
    ...COMMON,
    entryPoints: ['react.tsx'],
    outfile: join(dist, 'react.mjs'),
    format: 'esm',
    external: ['react'],
    plugins: [shareGateModule],
    banner: { js: '"use client";' },
  });
  checkGate(dist, 'gate.js');
  checkGate(dist, 'gate.mjs');

  const emitted = declarations();
  // The class mentions only the public types and itself: private members have no type in a declaration.
  const gate = emitted['gate.d.ts']
    .replace(/^import [^;]*;\n/gm, '')
    .replace(/^export \* from [^;]*;\n/gm, '')
    .replace(/^export \{\};\n/gm, '');
  writeFileSync(join(dist, 'gate.d.ts'), emitted['api.d.ts'] + gate);
  writeFileSync(join(dist, 'react.d.ts'), emitted['react.d.ts']);
}
