// Builds every file that the gate and the sandbox serve to browsers, and the files of the npm package, into `dist`.
// Two builds of the same sources give the same bytes.
//
// `node build.mjs` builds all parts. `node build.mjs widget` builds one part and leaves the files of the others unchanged.

import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, 'dist');

/** Each part is built by its own module. A module removes the earlier files of its part. */
const PARTS = {
  widget: async () => (await import('./src/widget/build.mjs')).buildWidget(dist),
  sandbox: async () => (await import('./src/sandbox/build.mjs')).buildSandbox(dist),
  sdk: async () => (await import('./src/sdk/build.mjs')).buildSdk(dist),
  demo: async () => (await import('./src/demo/build.mjs')).buildDemo(dist),
  // After the SDK, whose files it packs.
  package: async () => (await import('./src/package/build.mjs')).buildPackage(dist),
};

const names = process.argv.slice(2);
for (const name of names) {
  if (!(name in PARTS)) {
    throw new Error(`There is no part "${name}". The parts are: ${Object.keys(PARTS).join(', ')}.`);
  }
}

mkdirSync(dist, { recursive: true });
for (const [name, build] of Object.entries(PARTS)) {
  const isWanted = names.length === 0 || names.includes(name);
  if (isWanted && existsSync(join(root, 'src', name, 'build.mjs'))) {
    await build();
  }
}
