// The widget's texts, by language and key.

import { join } from 'node:path';
import { build } from 'esbuild';

export const LANGUAGES = ['en', 'de', 'fr', 'es', 'it', 'nl'];

export async function languages() {
  const source = LANGUAGES.map((name) => `import * as ${name}_ from './${name}'; export const ${name} = Object.values(${name}_)[0];`).join('\n');
  const resolveDir = join(import.meta.dirname, '../src/widget/languages');
  const bundle = await build({ stdin: { contents: source, resolveDir, loader: 'ts' }, bundle: true, format: 'esm', write: false });
  return import(`data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`);
}
