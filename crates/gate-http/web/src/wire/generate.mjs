// Writes `gate_embed.ts`, the types and error codes of every call of the widget, from the published documents.
// `node src/wire/generate.mjs` writes the file, and with `--check` it fails if the file does not match the documents.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import openapiTypescript, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';

const DOCUMENTS = process.env.OPENAPI_DIR ?? join(import.meta.dirname, '../../../../../docs/openapi');
const FILE = join(import.meta.dirname, 'gate_embed.ts');

const read = async (name) => parse(await readFile(join(DOCUMENTS, `${name}.yaml`), 'utf8'));

/** The schemas that a part of a document names, and those that they name in turn. */
function schemasOf(part, document, found = {}) {
  for (const [, name] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (name in found) continue;
    found[name] = document.components.schemas[name];
    schemasOf(found[name], document, found);
  }
  return found;
}

/** The document of the widget with the calls of pages, which the document of the partner describes. */
async function widgetCalls() {
  const [widget, partner] = await Promise.all([read('gate-embed-v1'), read('gate-v1')]);
  for (const [path, { post }] of Object.entries(partner.paths).filter(([path]) => path.startsWith('/v1/embed/'))) {
    const responses = Object.fromEntries(
      Object.entries(post.responses).map(([status, one]) => [status, one.$ref ? follow(one.$ref, partner) : one]),
    );
    const call = { ...post, responses };
    Object.assign(widget.components.schemas, schemasOf(call, partner));
    widget.paths[path] = { post: call };
  }
  return widget;
}

const follow = (reference, document) => document.components.responses[reference.split('/').at(-1)];

/** The error codes of all calls, by the status that they come with. */
function codesOf({ paths, components }) {
  const found = {};
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const [status, response] of Object.entries(responses)) {
      const { 'x-error-codes': codes = [] } = response.$ref ? follow(response.$ref, { components }) : response;
      for (const code of codes) (found[status] ??= new Set()).add(code);
    }
  }
  return Object.entries(found).map(([status, codes]) => [status, [...codes].sort()]);
}

/** What the types need: the bodies of requests and of successes. */
function successes(document) {
  const paths = structuredClone(document.paths);
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    operation.responses = Object.fromEntries(
      Object.entries(operation.responses).filter(([status]) => status.startsWith('2')),
    );
  }
  const { schemas } = document.components;
  const kept = { ...document, paths, components: { schemas: schemasOf(paths, document, { Error: schemas.Error }) } };
  return JSON.parse(JSON.stringify(kept, (key, value) => (key === 'headers' || key === 'example' ? undefined : value)));
}

async function generate() {
  const document = await widgetCalls();
  const types = astToString(await openapiTypescript(successes(document), { defaultNonNullable: false }));
  const codes = codesOf(document).map(
    ([status, names]) => `  ${status}: ${names.map((name) => `'${name}'`).join(' | ')};`,
  );
  return `// Written by generate.mjs from docs/openapi. Do not edit it.

${types}
/** The error codes that the calls of the widget can return, by status. */
export interface ErrorCodes {
${codes.join('\n')}
}
`;
}

const wanted = await generate();
if (process.argv[2] !== '--check') await writeFile(FILE, wanted);
else if ((await readFile(FILE, 'utf8')) !== wanted) {
  console.error('src/wire/gate_embed.ts does not match docs/openapi: run `npm run wire` and commit it.');
  process.exitCode = 1;
}
