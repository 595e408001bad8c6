// The server of the fakes, and the files of dist.

import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const SCRIPT = 'text/javascript; charset=utf-8';
const CONTENT_TYPES = { css: 'text/css; charset=utf-8', html: 'text/html; charset=utf-8', js: SCRIPT, mjs: SCRIPT };

/** Listens on the loopback address, on a free port unless one is named. */
export async function listen(handle, port = 0) {
  const server = createServer((request, response) => {
    const handled = handle(request, response, new URL(request.url, 'http://loopback'));
    Promise.resolve(handled).catch((error) => response.writeHead(500).end(String(error.stack)));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
}

/** Sends an object as JSON, or a text, which is a page unless `type` says otherwise. */
export function send(response, status, body, { type = 'html', ...headers } = {}) {
  const isText = typeof body === 'string';
  const kind = isText ? CONTENT_TYPES[type] : 'application/json';
  response.writeHead(status, { 'Content-Type': kind, 'Cache-Control': 'no-store', ...headers });
  response.end(isText ? body : JSON.stringify(body));
}

/** Sends a file of dist with its placeholders filled. */
export async function sendFile(response, path, places, headers = {}) {
  const file = join(DIST, path);
  const type = extname(path).slice(1);
  if (!CONTENT_TYPES[type] || !existsSync(file)) return response.writeHead(404).end();
  const content = (await readFile(file, 'utf8')).replace(/\{\{penstock\.(\w+)\}\}/g, (_, place) => places[place]);
  // Pages of partners load the scripts of the SDK.
  const access = path.startsWith('/gate.') && { 'Access-Control-Allow-Origin': '*' };
  return send(response, 200, content, { type, 'X-Content-Type-Options': 'nosniff', ...access, ...headers });
}
