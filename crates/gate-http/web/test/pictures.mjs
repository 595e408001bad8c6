// The pictures of codes that the widget draws, and what a camera reads in them.

import { join } from 'node:path';
import { build } from 'esbuild';
import readQr from 'jsqr';

const MODULE_PIXELS = 4;

const entry = join(import.meta.dirname, '../src/widget/qr.ts');
const bundle = await build({ entryPoints: [entry], bundle: true, format: 'esm', write: false, target: 'es2022' });
export const { qrImage } = await import(`data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`);

/** The text of a picture, and the version of its code. */
export function readPicture(source) {
  const picture = decodeURIComponent(source.replace('data:image/svg+xml,', ''));
  const size = Number(/viewBox="0 0 (\d+) \1"/.exec(picture)[1]) * MODULE_PIXELS;
  const pixels = new Uint8ClampedArray(size * size * 4).fill(255);
  for (const [, x, y] of picture.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
    for (let row = 0; row < MODULE_PIXELS; row += 1) {
      const from = ((Number(y) * MODULE_PIXELS + row) * size + Number(x) * MODULE_PIXELS) * 4;
      for (let at = from; at < from + MODULE_PIXELS * 4; at += 1) if (at % 4 < 3) pixels[at] = 0;
    }
  }
  const { binaryData, version } = readQr(pixels, size, size, { inversionAttempts: 'dontInvert' });
  return { text: Buffer.from(binaryData).toString('utf8'), version };
}
