// Packs the npm package as `npm pack` does, into an archive that the gate serves. The archive has no times, users or compression, so
// that the same files give the same bytes on every machine.

import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
/** Files that npm always packs. */
const ALWAYS = ['package.json', 'README.md', 'LICENSE'];
const BLOCK = 512;
/** The place of the operating system in a header of gzip. 255 is an unknown one. */
const GZIP_SYSTEM = 9;
const UNKNOWN_SYSTEM = 255;

/** A field of a header of tar: digits in base 8, and a zero at the end. */
const octal = (value, length) => value.toString(8).padStart(length - 1, '0') + '\0';

/** A file in the format ustar, filled up to whole blocks. */
function entry(name, content) {
  if (Buffer.byteLength(name) > 100) {
    throw new Error(`${name}: the name is too long for the archive.`);
  }
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0);
  header.write(octal(0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content.length, 12), 124);
  header.write(octal(0, 12), 136);
  header.fill(' ', 148, 156);
  header.write('0', 156);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const rest = (BLOCK - (content.length % BLOCK)) % BLOCK;
  return Buffer.concat([header, content, Buffer.alloc(rest)]);
}

/** Writes `penstock-gate.tgz` into `dist`, from the files that `package.json` publishes. */
export async function buildPackage(dist) {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const published = files.map((name) => name.replace(/^dist\//, ''));
  const entries = [
    ...ALWAYS.map((name) => entry(`package/${name}`, readFileSync(join(root, name)))),
    ...published.map((name) => entry(`package/dist/${name}`, readFileSync(join(dist, name)))),
  ];
  const archive = gzipSync(Buffer.concat([...entries, Buffer.alloc(2 * BLOCK)]), { level: 0 });
  archive[GZIP_SYSTEM] = UNKNOWN_SYSTEM;
  writeFileSync(join(dist, 'penstock-gate.tgz'), archive);
}
