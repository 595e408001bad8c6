// The npm package as a partner gets it: installed from the widget's origin into an empty project without a registry, compiled under
// `strict`, and run in Chromium.

import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { DIST, listen } from '../../dev/serving.mjs';
import { launchBrowser, newPage } from '../browser.mjs';
import { sampleOf } from '../samples.mjs';
import { CLIENT_SECRET, PUBLISHABLE_KEY, startSimulation } from './simulation.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
/** Packages of the scratch project. They come from this project's own folder, so that the test needs no network. */
const DEPENDENCIES = ['react', 'react-dom', 'scheduler', 'typescript', 'csstype', '@types/react'];

const MAIN = `
import {
  createGateOffRamp, createGateOnRamp, createGateSwap, GateRamp, GateRampError,
  type DepositRequest, type DepositResult, type GateRampCallbacks, type GateRampEnvironment, type GateRampFlow, type GateRampOptions,
  type GateRampTheme, type RampCloseEvent, type RampErrorEvent, type RampQuoteEvent, type RampStepEvent, type RampSuccessEvent,
  type RampUnavailableEvent,
} from '@penstock/gate';
import { RampCheckout, type RampCheckoutProps } from '@penstock/gate/react';
import { createElement } from 'react';

declare global {
  interface Window {
    calls: unknown[][];
    options: GateRampOptions;
    checkout: GateRamp;
    redirect: () => void;
    element: unknown;
    refused: string;
  }
}

const calls: unknown[][] = (window.calls = []);
const environment: GateRampEnvironment = 'sandbox';
const theme: GateRampTheme = 'auto';
const flow: GateRampFlow = 'swap';
const options: GateRampOptions = { ...window.options, environment, theme, flow };

const callbacks: GateRampCallbacks = {
  onReady: () => void calls.push(['onReady']),
  onSuccess: ({ txId, sessionId }: RampSuccessEvent) => void calls.push(['onSuccess', txId.toUpperCase(), sessionId]),
  onError: ({ code, message }: RampErrorEvent) => void calls.push(['onError', code, message]),
  onClose: ({ reason }: RampCloseEvent) => void calls.push(['onClose', reason]),
  onUnavailable: ({ reason }: RampUnavailableEvent) => void calls.push(['onUnavailable', reason]),
  onStep: ({ step }: RampStepEvent) => void calls.push(['onStep', step]),
  onQuote: ({ rate, expiresAt }: RampQuoteEvent) => void calls.push(['onQuote', rate, expiresAt]),
  async onInitiateDeposit({ asset, network, amount, address, memo }: DepositRequest): Promise<DepositResult> {
    calls.push(['onInitiateDeposit', asset, network, amount, address, memo]);
    return { txHash: '0xabc' };
  },
};

const ramps: GateRamp[] = [createGateOnRamp(options), createGateOffRamp(options), createGateSwap(options)];
ramps.forEach((ramp) => ramp.destroy());
window.checkout = new GateRamp(options).mount('#ramp', callbacks);
window.checkout.setTheme('dark');
window.redirect = () => GateRamp.redirectToCheckout(options);
const props: RampCheckoutProps = { ...options, ...callbacks, className: 'card' };
window.element = createElement(RampCheckout, props);

try {
  new GateRamp({ ...options, publishableKey: 'sk_test_0123' });
} catch (error) {
  window.refused = error instanceof GateRampError ? error.code : 'another error';
}

// Each of these mistakes must fail to compile.
// @ts-expect-error The publishable key is required.
() => new GateRamp({ clientSecret: 'gsec_x' });
// @ts-expect-error The environment has three values.
() => new GateRamp({ ...options, environment: 'staging' });
// @ts-expect-error The client secret is required.
() => new GateRamp({ publishableKey: 'pk_test_x' });
// @ts-expect-error A redirect needs a client secret too.
() => GateRamp.redirectToCheckout({ publishableKey: 'pk_test_x' });
// @ts-expect-error The event has no transaction hash.
() => window.checkout.mount('#ramp', { onSuccess: ({ hash }) => hash });
// @ts-expect-error A deposit returns a hash.
() => window.checkout.mount('#ramp', { onInitiateDeposit: () => ({ hash: '0xabc' }) });
// @ts-expect-error Private state is not part of the interface.
() => window.checkout.mounted;
`;

let folder;
let browser;
let world;

const start = promisify(execFile);

async function run(command, ...args) {
  try {
    return (await start(command, args, { cwd: folder, encoding: 'utf8' })).stdout;
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')} failed:\n${error.stdout}\n${error.stderr}`, { cause: error });
  }
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gate-package-'));
  const archive = readFileSync(join(DIST, 'penstock-gate.tgz'));
  const served = await listen((_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/gzip' }).end(archive);
  });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'shop', private: true, type: 'module' }));
  const local = DEPENDENCIES.map((name) => join(ROOT, 'node_modules', name));
  await run(
    'npm',
    'install',
    '--registry=http://127.0.0.1:9',
    '--install-links',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    `${served.origin}/penstock-gate.tgz`,
    ...local,
  );
  await served.close();
  writeFileSync(join(folder, 'main.ts'), MAIN);
  browser = await launchBrowser();
  world = await startSimulation();
});

after(async () => {
  await browser?.close();
  await world?.close();
  if (folder) {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('archive_has_the_files_that_npm_packs', () => {
  const options = { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' };
  const packed = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], options));
  const [{ files }] = Array.isArray(packed) ? packed : Object.values(packed);
  const listed = execFileSync('tar', ['-tzf', join(DIST, 'penstock-gate.tgz')], { encoding: 'utf8' });
  assert.deepEqual(listed.trim().split('\n').sort(), files.map(({ path }) => `package/${path}`).sort());
});

test('package_contains_the_published_files_alone', async () => {
  const installed = join(folder, 'node_modules/@penstock/gate');
  const files = (await run('find', installed, '-type', 'f'))
    .trim()
    .split('\n')
    .map((path) => path.slice(installed.length + 1))
    .sort();
  const required = [
    'LICENSE',
    'dist/gate.d.ts',
    'dist/gate.js',
    'dist/gate.mjs',
    'dist/react.d.ts',
    'dist/react.mjs',
    'package.json',
  ];
  assert.deepEqual(
    files.filter((name) => !name.startsWith('README')),
    required,
  );
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  assert.deepEqual(manifest.dependencies ?? {}, {}, 'The package depends on nothing at run time.');
  assert.ok(
    manifest.peerDependencies?.react && manifest.peerDependenciesMeta?.react?.optional,
    'React is an optional peer dependency.',
  );
});

for (const [moduleKind, resolution] of [
  ['esnext', 'bundler'],
  ['nodenext', 'nodenext'],
]) {
  test(`strict_project_compiles_with_${resolution}_resolution`, async () => {
    const flags = [
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      '--skipLibCheck',
      'false',
      '--target',
      'es2022',
    ];
    await run(
      'node',
      'node_modules/typescript/bin/tsc',
      'main.ts',
      ...flags,
      '--lib',
      'es2022,dom,dom.iterable',
      '--module',
      moduleKind,
      '--moduleResolution',
      resolution,
    );
  });
}

for (const name of ['@penstock/gate', '@penstock/gate/react']) {
  test(`import_of_${name}_in_node_does_nothing`, async () => {
    const { stdout, stderr } = await start('node', ['--input-type=module', '--eval', `await import('${name}')`], {
      cwd: folder,
      encoding: 'utf8',
    });
    assert.deepEqual([stdout, stderr], ['', '']);
  });
}

test('import_in_a_browser_makes_no_request_and_adds_no_element', async () => {
  const address = `${world.widget.origin}/gate.mjs`;
  world.state.page = `<!doctype html><html lang="en"><title>Shop</title><script type="module" src="${address}"></script></html>`;
  const page = await newPage(browser);
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(world.shop.origin, { waitUntil: 'networkidle' });
  assert.equal(await page.evaluate(async (name) => typeof (await import(name)).GateRamp, address), 'function');
  assert.deepEqual(
    requests.filter((url) => !url.endsWith('/favicon.ico')),
    [`${world.shop.origin}/`, address],
  );
  assert.deepEqual(await page.$$eval('body *', (elements) => elements.map(({ tagName }) => tagName)), []);
});

test('import_of_the_component_in_a_browser_makes_no_request_and_adds_no_element', async () => {
  writeFileSync(
    join(folder, 'component.mjs'),
    "import { RampCheckout } from '@penstock/gate/react';\nwindow.component = typeof RampCheckout;\n",
  );
  await build({
    entryPoints: [join(folder, 'component.mjs')],
    outfile: join(folder, 'component.js'),
    bundle: true,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  });
  world.reset();
  world.state.page = '<!doctype html><html lang="en"><title>Shop</title><script src="/component.js"></script></html>';
  world.state.scripts = { '/component.js': readFileSync(join(folder, 'component.js'), 'utf8') };
  const page = await newPage(browser);
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(world.shop.origin, { waitUntil: 'networkidle' });
  assert.equal(await page.evaluate(() => window.component), 'function');
  assert.deepEqual(
    requests.filter((url) => !url.endsWith('/favicon.ico')),
    [`${world.shop.origin}/`, `${world.shop.origin}/component.js`],
  );
  assert.deepEqual(await page.$$eval('body *', (elements) => elements.map(({ tagName }) => tagName)), []);
  await page.context().close();
});

/** An application that renders on a server and takes over in the browser, where StrictMode runs each effect twice. */
const APPLICATION = `
import { createElement, StrictMode } from 'react';
import { RampCheckout } from '@penstock/gate/react';
export const application = (options, callbacks) =>
  createElement(StrictMode, null, createElement('main', null, createElement(RampCheckout, { ...options, ...callbacks, id: 'ramp', className: 'card' })));
`;
const CLIENT = `
import { hydrateRoot } from 'react-dom/client';
import { application } from './application.mjs';
window.calls = [];
const callbacks = { onReady: () => window.calls.push('onReady'), onError: ({ code }) => window.calls.push(code) };
hydrateRoot(document.getElementById('root'), application(window.options, callbacks), { onRecoverableError: (error) => window.calls.push(String(error)) });
`;
const SERVER = `
import { renderToString } from 'react-dom/server';
import { application } from './application.mjs';
process.stdout.write(renderToString(application(JSON.parse(process.argv[2]))));
`;

test('component_renders_on_a_server_and_starts_once_in_strict_mode', async () => {
  for (const [name, content] of [
    ['application', APPLICATION],
    ['client', CLIENT],
    ['server', SERVER],
  ]) {
    writeFileSync(join(folder, `${name}.mjs`), content);
  }
  const options = {
    publishableKey: PUBLISHABLE_KEY,
    clientSecret: CLIENT_SECRET,
    gateOrigin: world.gate.origin,
    widgetOrigin: world.widget.origin,
  };
  const html = await run('node', 'server.mjs', JSON.stringify(options));
  assert.equal(html, '<main><div id="ramp" class="card"></div></main>');
  // The development build reports what does not match.
  await build({
    entryPoints: [join(folder, 'client.mjs')],
    outfile: join(folder, 'client.js'),
    bundle: true,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"development"' },
    logLevel: 'error',
  });
  world.reset();
  world.state.page = `<!doctype html><html lang="en"><title>Shop</title><div id="root">${html}</div><script src="/options.js"></script><script src="/client.js"></script></html>`;
  world.state.scripts = {
    '/options.js': `window.options = ${JSON.stringify(options)};`,
    '/client.js': readFileSync(join(folder, 'client.js'), 'utf8'),
  };
  const page = await newPage(browser);
  const messages = [];
  page.on('pageerror', (error) => messages.push(error.message));
  page.on(
    'console',
    (message) =>
      ['error', 'warning'].includes(message.type()) &&
      !message.location().url.endsWith('favicon.ico') &&
      messages.push(message.text()),
  );
  await page.goto(world.shop.origin);
  await page.waitForFunction(() => window.calls.length > 0);
  const frame = await (await page.$('#ramp iframe')).contentFrame();
  await frame.waitForFunction(() => window.received.length === 1);
  assert.deepEqual(await page.evaluate(() => window.calls), ['onReady']);
  assert.equal(await page.locator('iframe').count(), 1);
  assert.equal(world.gate.requests.length, 1);
  assert.deepEqual(messages, []);
});

/** A sample of `docs/embedding.md`, with the origins of the simulation in place of its own. */
function sampleHere(name) {
  const sample = sampleOf('docs/embedding.md', name);
  const code = sample
    .replace('https://gate.example', world.gate.origin)
    .replace('https://pay.example', world.widget.origin);
  assert.ok(code.includes(world.gate.origin) && code.includes(world.widget.origin), code);
  return code;
}

/** Runs code in the scratch project, in a page with an element `#ramp`. Returns the page and the frame of its widget. */
async function runInPage(code) {
  writeFileSync(join(folder, 'sample.jsx'), code);
  await build({
    entryPoints: [join(folder, 'sample.jsx')],
    outfile: join(folder, 'sample.js'),
    bundle: true,
    format: 'iife',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  });
  world.reset();
  world.state.page =
    '<!doctype html><html lang="en"><title>Shop</title><div id="ramp"></div><script src="/options.js"></script><script src="/sample.js"></script></html>';
  const given = { publishableKey: PUBLISHABLE_KEY, clientSecret: CLIENT_SECRET };
  world.state.scripts = {
    '/options.js': `Object.assign(window, ${JSON.stringify(given)});`,
    '/sample.js': readFileSync(join(folder, 'sample.js'), 'utf8'),
  };
  const page = await newPage(browser);
  await page.goto(world.shop.origin);
  const frame = await (await page.waitForSelector('#ramp iframe', { state: 'attached' })).contentFrame();
  await frame.waitForFunction(() => window.received?.length === 1);
  return { page, frame };
}

test('sample_of_the_package_opens_the_widget', async () => {
  const { page } = await runInPage(`${sampleHere('package')}
    ramp.mount('#ramp', { onReady: () => { window.isReady = true; } });`);
  await page.waitForFunction(() => window.isReady);
  assert.deepEqual(
    world.gate.requests.map(({ body }) => body.clientSecret),
    [CLIENT_SECRET],
  );
  await page.context().close();
});

test('sample_of_the_component_opens_the_widget_and_reports_success', async () => {
  const [imports, element] = sampleHere('component').split('\n\n');
  const { page, frame } = await runInPage(`${imports}
    import { createRoot } from 'react-dom/client';
    const showThanks = (txId) => { window.thanked = txId; };
    createRoot(document.getElementById('ramp')).render(${element});`);
  await frame.evaluate(() => window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' }));
  await page.waitForFunction(() => window.thanked === 'test_tx_1');
  await page.context().close();
});

test('compiled_project_runs_in_a_browser', async () => {
  assert.ok(existsSync(join(folder, 'main.js')), 'The compiler wrote main.js.');
  await build({
    entryPoints: [join(folder, 'main.js')],
    outfile: join(folder, 'bundle.js'),
    bundle: true,
    format: 'iife',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
  });
  const options = {
    publishableKey: PUBLISHABLE_KEY,
    clientSecret: CLIENT_SECRET,
    gateOrigin: world.gate.origin,
    widgetOrigin: world.widget.origin,
  };
  world.state.page =
    '<!doctype html><html lang="en"><title>Shop</title><div id="ramp"></div><script src="/options.js"></script><script src="/bundle.js"></script></html>';
  world.state.scripts = {
    '/options.js': `window.options = ${JSON.stringify(options)};`,
    '/bundle.js': readFileSync(join(folder, 'bundle.js'), 'utf8'),
  };
  const page = await newPage(browser);
  const failures = [];
  page.on('pageerror', (error) => failures.push(error.message));
  await page.goto(world.shop.origin);
  await page.waitForFunction(() => window.calls.length === 1);
  const frame = await (await page.$('#ramp iframe')).contentFrame();
  await frame.waitForFunction(() => window.received.length === 1);
  const [{ theme, flow, can_deposit }] = await frame.evaluate(() => window.received);
  assert.deepEqual([theme, flow, can_deposit], ['dark', 'swap', true]);
  await frame.evaluate(() => {
    window.send({
      type: 'deposit',
      request_id: 'dep_1',
      asset: 'USDT',
      network: 'tron',
      amount: '1.5',
      address: 'TXyz',
    });
    window.send({ type: 'success', tx_id: 'test_tx_1', session_id: 'gs_test_1' });
  });
  await frame.waitForFunction(() => window.received.length === 2);
  await page.waitForFunction(() => window.calls.length === 3);
  assert.deepEqual(await page.evaluate(() => window.calls), [
    ['onReady'],
    ['onInitiateDeposit', 'USDT', 'tron', '1.5', 'TXyz', null],
    ['onSuccess', 'TEST_TX_1', 'gs_test_1'],
  ]);
  assert.equal(await page.evaluate(() => window.refused), 'secret_key_refused');
  assert.deepEqual(failures, []);
  await page.evaluate(() => window.redirect());
  await page.waitForURL(/checkout/);
  assert.ok(page.url().startsWith(`${world.widget.origin}/checkout#publishable_key=`));
});
