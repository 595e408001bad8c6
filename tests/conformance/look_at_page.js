// Opens a page in Chromium, light and dark, wide and narrow, and prints the findings as JSON.
//
//     node look_at_page.js URL CHROMIUM [FOLDER]
//
// With a folder it saves a picture of each view there.

const fs = require("node:fs");
const path = require("node:path");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { chromium } = require("playwright-core");

const [url, executablePath, folder] = process.argv.slice(2);
const WIDTHS = [390, 1440];
const SCHEMES = ["light", "dark"];
const QUIET = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--no-first-run"];

// Codes of the error table that wrap to more than one line.
function brokenCodes() {
  const codes = [...document.querySelectorAll(".codes td code")];
  if (codes.length === 0) return ["no code was found"];
  return codes.filter((code) => code.getClientRects().length !== 1).map((code) => code.textContent);
}

// Ids that occur more than once, and links within the page that have no target.
function looseLinks() {
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
  const targets = [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href").slice(1));
  return [...twice, ...targets.filter((target) => !ids.includes(target))];
}

// Regions that cut off a part of their table.
function cutTables() {
  const regions = [...document.querySelectorAll(".scroll")];
  return regions.filter((region) => region.scrollWidth > region.clientWidth + 1).length;
}

async function look(browser, colorScheme, width) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
  const page = await context.newPage();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(url, { waitUntil: "load" });
  await page.evaluate(axe);
  const report = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const faults = report.violations.map((fault) => ({
    rule: fault.id,
    help: fault.help,
    count: fault.nodes.length,
    first: fault.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.html.slice(0, 160)}`),
  }));
  const view = {
    view: `${colorScheme} at ${width} px`,
    faults,
    broken: await page.evaluate(brokenCodes),
    loose: await page.evaluate(looseLinks),
    cut: await page.evaluate(cutTables),
    sideways: await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth),
    foreign: asked.filter((address) => new URL(address).origin !== new URL(url).origin),
  };
  if (folder) await page.screenshot({ path: path.join(folder, `${colorScheme}-${width}.png`) });
  await context.close();
  return view;
}

async function main() {
  const browser = await chromium.launch({ executablePath, headless: true, chromiumSandbox: false, args: QUIET });
  try {
    const views = [];
    for (const scheme of SCHEMES) for (const width of WIDTHS) views.push(await look(browser, scheme, width));
    console.log(JSON.stringify(views));
  } finally {
    await browser.close();
  }
}

main().catch((fault) => {
  console.error(fault);
  process.exitCode = 1;
});
