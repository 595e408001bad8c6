// The list of languages for builds and tests. They bundle it, because Node imports no TypeScript.

import { join } from 'node:path';
import { build } from 'esbuild';

const list = join(import.meta.dirname, 'list.ts');
const { outputFiles } = await build({ entryPoints: [list], bundle: true, format: 'esm', write: false });

export const { LANGUAGES } = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
