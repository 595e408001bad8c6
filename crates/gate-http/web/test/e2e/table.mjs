// Measures what the widget must hold in a real browser, and prints it as one table. It fails if a bar is not met.
//
// `PENSTOCK_BIN` is the program whose sandbox it starts. `cargo xtask web --table` builds it first.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { LANGUAGES } from '../../src/languages/load.mjs';

const KB = 1000;
const STARTS = 21;
/** Colours on which neither black nor white, or hardly any text, is easy to read. */
const COLORS = ['#ffffff', '#000000', '#ffff00', '#00ff00', '#ff0000', '#0000ff', '#777777', '#f0e68c'];
const SCHEMES = ['light', 'dark'];
const dist = join(import.meta.dirname, '../../dist');

const folder = mkdtempSync(join(tmpdir(), 'penstock-table-'));
const program = startSandbox();
const rows = [];
const row = (what, measured, bar, holds) => rows.push([what, String(measured), bar, holds ? 'met' : 'NOT MET']);

function startSandbox() {
  // As the suites, without a price of the dollar.
  const rates = join(folder, 'rates.toml');
  const pairs = [
    ['EUR-USDT', '1.0850'],
    ['EUR-USDC', '1.0845'],
    ['GBP-USDT', '1.2600'],
  ];
  writeFileSync(
    rates,
    pairs.map(([pair, mid]) => `[[rates]]\npair = "${pair}"\nmid = "${mid}"\nspread_bps = 25\n`).join('\n'),
  );
  const env = { PATH: process.env.PATH, RUST_LOG: 'warn', PENSTOCK_RATES: `static:${rates}` };
  for (const name of ['POOLS', 'GATE', 'WIDGET']) env[`PENSTOCK_${name}_LISTEN`] = '127.0.0.1:0';
  for (const name of ['BOOTSTRAP', 'CREATE_SESSION', 'GLOBAL', 'LIST_TRANSACTIONS'])
    env[`PENSTOCK_THROTTLE_${name}`] = '100000/60s';
  const words = ['sandbox', '--dir', join(folder, 'data'), '--demo-port', '0', '--output', 'json'];
  return spawn(process.env.PENSTOCK_BIN, words, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** The line of JSON that the sandbox prints before it listens. The rest is read too, because a full pipe would stop it. */
async function description() {
  let text = '';
  program.stdout.on('data', (chunk) => {
    text += chunk;
  });
  while (!text.includes(' listening on ')) {
    await Promise.race([
      once(program.stdout, 'data'),
      once(program, 'exit').then(() => {
        throw new Error('The sandbox did not start.');
      }),
    ]);
  }
  return text.split('\n')[0];
}

function measureSizes() {
  const gzipped = (path) => gzipSync(readFileSync(join(dist, path)), { level: 9 }).length;
  const assets = readdirSync(join(dist, 'assets'));
  const sizes = (pattern) => assets.filter((name) => pattern.test(name)).map((name) => gzipped(`assets/${name}`));
  const sum = (all) => all.reduce((total, size) => total + size, 0);
  const [...start] = readFileSync(join(dist, 'embed.html'), 'utf8').matchAll(/\/(assets\/[^"]+)/g);
  const first = gzipped('embed.html') + sum(start.map(([, path]) => gzipped(path)));
  const languages = sizes(new RegExp(`^(${Object.keys(LANGUAGES).join('|')})-`));
  const size = first + Math.max(...languages) + sum(sizes(/^address_checks-/));
  row(
    'size of the first load: page, script, style, largest language, address checks',
    `${size} bytes`,
    '≤ 45 kB gzipped',
    size <= 45 * KB,
  );
  for (const name of ['gate.js', 'gate.mjs']) {
    row(`size of ${name}`, `${gzipped(name)} bytes`, '≤ 6 kB gzipped', gzipped(name) <= 6 * KB);
  }
}

function measureLanguages() {
  const keys = Object.keys(LANGUAGES.en.messages);
  const missing = Object.values(LANGUAGES).flatMap(({ messages }) => keys.filter((key) => !messages[key]));
  const codes = Object.keys(LANGUAGES).join(', ');
  row('languages', `${codes}; ${missing.length} texts missing`, 'no text missing', missing.length === 0);
}

/** From the navigation to the first screen, in milliseconds by the page's own clock, and the calls that it made. */
async function measureStart({ openCheckout }, browser) {
  const times = [];
  const calls = new Set();
  for (let turn = 0; turn < STARTS; turn += 1) {
    const page = await openCheckout(browser);
    await page.addInitScript(() => {
      new MutationObserver((_, observer) => {
        if (document.querySelector('[data-step="choose"] [data-action="continue"]')) {
          window.usableAfter = performance.now();
          observer.disconnect();
        }
      }).observe(document, { childList: true, subtree: true });
    });
    const made = [];
    page.on(
      'request',
      (request) =>
        /embed\/(bootstrap|session)$/.test(request.url()) &&
        request.method() !== 'OPTIONS' &&
        made.push(request.url().split('/').at(-1)),
    );
    await page.goto(page.address);
    times.push(await (await page.waitForFunction(() => window.usableAfter)).jsonValue());
    calls.add(made.join(', '));
    await page.context().close();
  }
  const median = times.sort((a, b) => a - b)[(STARTS - 1) / 2];
  row('start on loopback, p50', `${median.toFixed(0)} ms`, '≤ 300 ms', median <= 300);
  row(
    'calls of a start',
    [...calls].join(' | '),
    'one bootstrap, one session',
    calls.size === 1 && calls.has('bootstrap, session'),
  );
}

async function measureScreens({ audit, sandbox }, tour, browser) {
  const own = new Set([sandbox.widget_origin, new URL(sandbox.gate_base_url).origin]);
  const [foreign, findings, watched] = [new Set(), [], new Set()];
  let looks = 0;
  await tour(browser, { locale: 'en-GB' }, async (page, name) => {
    if (!watched.has(page)) {
      watched.add(page);
      page.on(
        'request',
        (request) =>
          !request.url().startsWith('data:') && !own.has(new URL(request.url()).origin) && foreign.add(request.url()),
      );
    }
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await audit(page, `${name}, ${colorScheme}`).catch((error) => findings.push(error.message));
      looks += 1;
    }
  });
  row(
    'axe, WCAG 2.2 AA',
    `${findings.length} findings in ${looks} looks, light and dark`,
    'none',
    findings.length === 0 && looks > 0,
  );
  row('requests to another origin', foreign.size, 'none', foreign.size === 0);
  for (const finding of findings) console.error(finding);
}

async function measureContrast({ editSession, openCheckout, step, axe }, browser) {
  let lowest = Infinity;
  for (const colorScheme of SCHEMES) {
    for (const color of COLORS) {
      const page = await openCheckout(browser, {}, { colorScheme });
      await editSession(page, (session) => {
        session.branding = { ...session.branding, primary_color: color, secondary_color: color, accent_color: color };
      });
      await page.goto(page.address);
      await step(page, 'choose');
      const ratios = await axe(page, { runOnly: ['color-contrast'] }, (result) =>
        [...result.passes, ...result.violations].flatMap((rule) =>
          rule.nodes.map((node) => node.any[0].data.contrastRatio),
        ),
      );
      lowest = Math.min(lowest, ...ratios);
      await page.context().close();
    }
  }
  row(
    `contrast of text in ${COLORS.length} colours of a brand`,
    `${lowest.toFixed(2)}:1 at least`,
    '≥ 4.5:1',
    lowest >= 4.5 && lowest < Infinity,
  );
}

async function measureSecurity({ openCheckout, sandbox, step }, browser) {
  const heads = {};
  for (const path of ['/checkout', `/embed?publishable_key=${sandbox.publishable_key}`]) {
    const response = await fetch(sandbox.widget_origin + path);
    heads[path.split('?')[0]] = response.headers;
  }
  const policies = Object.values(heads).map((headers) => headers.get('content-security-policy') ?? '');
  const isStrict = (policy) =>
    policy.startsWith("default-src 'none'") &&
    !/unsafe-(inline|eval)/.test(policy) &&
    policy.includes("require-trusted-types-for 'script'");
  row(
    'content security policy',
    policies.every(isStrict) ? "no 'unsafe-…', Trusted Types" : policies.join(' | '),
    'strict',
    policies.every(isStrict),
  );
  const ancestors = policies.map((policy) => policy.split('frame-ancestors ')[1] ?? 'any');
  row('frame-ancestors of checkout', ancestors[0], "'none'", ancestors[0] === "'none'");
  const pages = ancestors[1].split(' ');
  row(
    'frame-ancestors of embed',
    `${pages.length} origins`,
    'the allowed domains',
    pages.includes('https://shop.example') && pages.every((page) => /^https?:\/\/[^*]+$/.test(page)),
  );
  const isolated = ['cross-origin-resource-policy', 'cross-origin-embedder-policy'].map((name) =>
    heads['/embed'].get(name),
  );
  row(
    'isolation headers of embed',
    isolated.join(', '),
    'cross-origin, credentialless',
    isolated.join() === 'cross-origin,credentialless',
  );
  const page = await openCheckout(browser);
  await page.goto(page.address);
  await step(page, 'choose');
  const left = await page.evaluate(() => ({
    hash: location.hash,
    cookie: document.cookie,
    local: localStorage.length,
    kept: Object.values({ ...sessionStorage }).join(' '),
  }));
  const isClean = left.hash === '' && left.cookie === '' && left.local === 0 && !left.kept.includes('gsec_');
  row(
    'secrets in address, cookies and storage',
    isClean ? 'none but the token' : JSON.stringify(left),
    'none but the token',
    isClean,
  );
  await page.context().close();
}

async function measureMoneySafety({ openCheckout, recordsOf, step, walk }, browser) {
  const page = await openCheckout(browser);
  await page.goto(page.address);
  await walk(page, 'confirm');
  await page.locator('[data-action="pay"]').dblclick();
  await step(page, 'done');
  const { payments } = await recordsOf(page.session);
  row('payments of a double click', payments.length, '1', payments.length === 1);
  await page.context().close();
}

function print() {
  const all = [['what', 'measured', 'bar', ''], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((cells) => cells[column].length)));
  for (const cells of all)
    console.log(
      cells
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

let browser;
try {
  process.env.SANDBOX = await description();
  const shop = await import('./shop.mjs');
  const { tour } = await import('./tour.mjs');
  browser = await shop.launchBrowser();
  measureSizes();
  await measureStart(shop, browser);
  await measureScreens(shop, tour, browser);
  measureLanguages();
  await measureContrast(shop, browser);
  await measureSecurity(shop, browser);
  await measureMoneySafety(shop, browser);
  print();
  process.exitCode = rows.every((cells) => cells[3] === 'met') ? 0 : 1;
} finally {
  await browser?.close();
  program.kill();
  rmSync(folder, { recursive: true, force: true });
}
