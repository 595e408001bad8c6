// Finds what is wrong with the layout of a page: texts that are cut, broken or covered, fields that are too small, grey blocks that stay.
// This Chromium has no dictionary for hyphens, as many browsers have none: a word that fits only with hyphens is broken here.
// The functions run in the page, and know nothing but each other.

/** The lines of a part of a text. */
function linesOf(node, start = 0, end = node.length) {
  const range = document.createRange();
  range.setStart(node, start);
  range.setEnd(node, end);
  return [...range.getClientRects()].filter(({ width }) => width > 0);
}

const isBelow = (line, other) => line.top - other.top > other.height / 2;

/** The texts that the page shows, each with its element and lines. */
function shownTexts() {
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const element = node.parentElement;
    if (!node.data.trim() || element.closest('.hidden, option, textarea, noscript')) continue;
    const lines = linesOf(node);
    if (lines.length > 0) texts.push({ node, element, lines });
  }
  return texts;
}

/** The edges that a text keeps within: those of the page, of its block, and of all that hides what is outside. */
function boundsOf(element, known) {
  if (!known.has(element)) known.set(element, findBounds(element, known));
  return known.get(element);
}

function findBounds(element, known) {
  const { clientWidth } = document.documentElement;
  if (element === document.documentElement) return { left: 0, right: clientWidth, top: -Infinity, bottom: Infinity };
  const outer = boundsOf(element.parentElement, known);
  const { display, overflow } = getComputedStyle(element);
  if (display === 'inline' || display === 'contents') return outer;
  const box = element.getBoundingClientRect();
  const bounds = { ...outer, left: Math.max(box.left, outer.left), right: Math.min(box.right, outer.right) };
  // The name of a shop has two lines at most.
  if (overflow === 'visible' || element.matches('.name')) return bounds;
  return { ...bounds, top: Math.max(box.top, outer.top), bottom: Math.min(box.bottom, outer.bottom) };
}

const isOutside = (line, { left, right, top, bottom }) =>
  line.left < left - 1 || line.right > right + 1 || line.top < top - 1 || line.bottom > bottom + 1;

/** A word may go on below after a hyphen. An identifier may do so anywhere if no line is long enough for it. */
function brokenWords({ node, element, lines }, { left, right }) {
  if (lines.length === 1) return [];
  const words = [...node.data.matchAll(/[^ \t\n]+/g)].filter(({ 0: word, index }) => {
    const parts = linesOf(node, index, index + word.length);
    if (!parts.some((part) => isBelow(part, parts[0]))) return false;
    const width = parts.reduce((sum, part) => sum + part.width, 0);
    if (element.matches('code, .code') && width > right - left) return false;
    const places = [...word].map((_, at) => linesOf(node, index + at, index + at + 1)[0]);
    return places.some(
      (place, at) =>
        at > 0 && place && places[at - 1] && isBelow(place, places[at - 1]) && !/[-‐–—\u00ad]/.test(word[at - 1]),
    );
  });
  return words.map(([word]) => word);
}

/** Pairs of texts that share more of the page than their lines may. */
function coveredTexts(texts) {
  const all = texts.flatMap(({ node, element, lines }) =>
    element.closest('.name') ? [] : lines.map((line) => ({ node, line })),
  );
  const covers = (one, other) =>
    one.node !== other.node &&
    Math.min(one.line.right, other.line.right) - Math.max(one.line.left, other.line.left) > 2 &&
    Math.min(one.line.bottom, other.line.bottom) - Math.max(one.line.top, other.line.top) > 4;
  return all.flatMap((one, index) =>
    all.slice(index + 1).flatMap((other) => (covers(one, other) ? [[one.node, other.node]] : [])),
  );
}

const textOfField = (field) => (field.matches('select') ? (field.selectedOptions[0]?.text ?? '') : field.value);

/** Fields that do not show their whole text. */
function smallFields() {
  const pen = document.createElement('canvas').getContext('2d');
  const fields = document.querySelectorAll('select, textarea, input:not([type="hidden"], [type="radio"])');
  return [...fields].filter((field) => {
    if (field.getClientRects().length === 0) return false;
    if (field.matches('textarea')) return field.scrollHeight > field.clientHeight + 1;
    const { font, paddingLeft, paddingRight } = getComputedStyle(field);
    pen.font = font;
    return (
      pen.measureText(textOfField(field)).width > field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight)
    );
  });
}

/** Returns each flaw with its element and its text. */
function findFlaws({ isLoading }) {
  const flaws = new Set();
  const report = (flaw, { tagName, className }, text) => {
    const name = tagName.toLowerCase() + (className && `.${className.replaceAll(' ', '.')}`);
    flaws.add(`${flaw}: ${name} ${JSON.stringify(text.trim().slice(0, 80))}`);
  };
  const { clientWidth, scrollWidth } = document.documentElement;
  if (scrollWidth > clientWidth) flaws.add(`The page scrolls sideways: ${scrollWidth} of ${clientWidth} px`);
  const known = new Map();
  const texts = shownTexts();
  for (const text of texts) {
    const bounds = boundsOf(text.element, known);
    if (text.lines.some((line) => isOutside(line, bounds)))
      report('A text leaves its box', text.element, text.node.data);
    for (const word of brokenWords(text, bounds)) report('A word is broken', text.element, word);
  }
  for (const [one, other] of coveredTexts(texts))
    report(`A text covers ${JSON.stringify(other.data)}`, one.parentElement, one.data);
  for (const field of smallFields()) report('A field is too small', field, textOfField(field));
  const blocks = [...document.querySelectorAll('.ghost, .blank')].filter((block) => block.getClientRects().length > 0);
  if (!isLoading) for (const block of blocks) report('A grey block stays', block, '');
  return [...flaws];
}

const NAMED = {
  linesOf,
  isBelow,
  shownTexts,
  boundsOf,
  findBounds,
  isOutside,
  brokenWords,
  coveredTexts,
  textOfField,
  smallFields,
};
const SOURCE = Object.entries(NAMED).map(([name, run]) => `const ${name} = ${run};`);

/** The flaws of a page. On the screens that load, blocks stand for what is not there yet. */
export const flawsOf = (page, { isLoading }) =>
  page.evaluate(`(() => { ${SOURCE.join('\n')} return (${findFlaws})({ isLoading: ${isLoading} }); })()`);
