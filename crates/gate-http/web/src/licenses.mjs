// Writes the licence notices of every package whose code is part of a built file.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const INTRODUCTION = 'The scripts of this checkout contain code of these packages.';

/** The packages whose modules are in a bundle, by the metadata of esbuild, and in order of their names. */
function packagesOf(metafile) {
  const bundled = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs));
  const names = bundled.flatMap((path) => {
    const [, inside] = path.split(/.*node_modules\//);
    if (inside === undefined) return [];
    return [
      inside
        .split('/')
        .slice(0, inside.startsWith('@') ? 2 : 1)
        .join('/'),
    ];
  });
  return [...new Set(names)].sort();
}

/** Writes `licenses.txt` into `dist`. Fails if a package has no notice. */
export function writeLicenses(dist, metafile, modules) {
  const notices = packagesOf(metafile).map((name) => {
    const folder = join(modules, name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)(\.|$)/i.test(entry));
    if (!file) throw new Error(`The package ${name} has no licence notice.`);
    const notice = readFileSync(join(folder, file), 'utf8').replace(/\r\n/g, '\n').trim();
    return `${name} ${version} (${license})\n\n${notice}\n`;
  });
  writeFileSync(join(dist, 'licenses.txt'), [`${INTRODUCTION}\n`, ...notices].join(`\n${'-'.repeat(80)}\n\n`));
}
