// The copy buttons of a widget in a page of a partner: what they put on the clipboard, and what they say about it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LANGUAGES } from '../../src/languages/load.mjs';
import { mount, openHost, startHosts } from './hosts.mjs';
import {
  act,
  createSession,
  editSession,
  embedded,
  FLOWS,
  hold,
  sandbox,
  step,
  transactionsOf,
  unsettle,
  walk,
} from './shop.mjs';

/** Instructions of a bank transfer. A screen writes most of them in another way. */
const TRANSFER = {
  type: 'bank_transfer',
  account_holder: 'Example Payments',
  iban: 'DE89370400440532013000',
  bic: 'COBADEFFXXX',
  amount: '1234567.5',
  reference: 'PS7K42QX9M',
  currency: 'EUR',
};
const SHOWN = ['account_holder', 'iban', 'bic', 'amount', 'reference'];
const BUTTONS = '[data-action="copy"]';
const REGION = 'main > [role="status"]';
const english = LANGUAGES.en.messages;

let hosts;
before(async () => {
  hosts = await startHosts();
});
after(() => hosts?.close());

/** A page may read the clipboard only while it has the focus itself. */
const readClipboard = (page) =>
  page.evaluate(() => {
    window.focus();
    return navigator.clipboard.readText();
  });

/** Waits until the polite region of the widget says exactly this. */
async function expectSaid(page, sentence) {
  const region = embedded(page).locator(REGION);
  await region.filter({ hasText: sentence }).waitFor({ state: 'attached' });
  assert.equal(await region.textContent(), sentence);
}

/** The name of the row that a copy button belongs to. */
async function fieldOf(button, { copyOf }) {
  const label = await button.getAttribute('aria-label');
  const [before, behind] = copyOf.split('{field}');
  assert.ok(label.startsWith(before) && label.endsWith(behind), label);
  return label.slice(before.length, label.length - behind.length);
}

/** Presses each copy button of the screen, and returns what the clipboard then holds. The widget says what it has copied. */
async function copyAll(page, { copyOf, copiedOf } = english) {
  const copied = [];
  for (const button of await embedded(page).locator(BUTTONS).all()) {
    const field = await fieldOf(button, { copyOf });
    await button.click();
    await expectSaid(page, copiedOf.replace('{field}', field));
    copied.push(await readClipboard(page));
  }
  return copied;
}

/** Opens a page with the widget of a new session, whose waiting reads are held. Returns also the session and what lets go. */
async function open(fields, { edit = (session) => unsettle(session), changes = {}, path = '/plain', ...options } = {}) {
  const page = await openHost(hosts.browser, path, options);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const release = await hold(page);
  // The payment settles by itself after ten seconds, but the page reads that it goes on.
  const endEdits = await editSession(page, edit);
  const session = await createSession({ flow: 'on_ramp', amount: '100.33', ...fields });
  await mount(page, session, undefined, changes);
  return {
    page,
    session,
    async finish() {
      await endEdits();
      release();
      await step(embedded(page), 'done');
      // The result replaces what the last copy has said.
      await expectSaid(page, await embedded(page).locator('[data-step="done"] h1').textContent());
    },
  };
}

/** Pays, and returns the payment as the gate has created it. */
async function pay(page, side = 'on_ramp') {
  await walk(embedded(page), 'confirm', { side });
  const created = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().endsWith('/v1/embed/payments'),
  );
  await act(embedded(page), 'pay');
  return (await created).json();
}

for (const side of Object.keys(FLOWS)) {
  test(`copy buttons of ${side} copy exactly what the gate has sent`, async () => {
    const { page, session, finish } = await open({ flow: side });
    const { instructions } = await pay(page, side);
    await step(embedded(page), 'instructions');
    const { amount, address } = instructions;
    const shown = side === 'on_ramp' ? SHOWN.map((name) => instructions[name]) : [amount, address];
    assert.deepEqual(await copyAll(page), shown);
    await finish();
    const [{ refid }] = await transactionsOf(session.id);
    assert.deepEqual(await copyAll(page), [refid]);
    await page.context().close();
  });
}

test('copy button of a failed payment copies its id', async () => {
  const page = await openHost(hosts.browser, '/plain');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await mount(page, await createSession({ flow: 'on_ramp', amount: '100.31' }));
  const { id } = await pay(page);
  await step(embedded(page), 'failed');
  assert.deepEqual(await copyAll(page), [id]);
  await page.context().close();
});

// One groups its digits by points, one by narrow spaces.
for (const language of ['de', 'fr']) {
  test(`copy buttons in ${language} copy the values and not their display`, async () => {
    const { page, finish } = await open(
      {},
      {
        changes: { locale: language },
        edit(session) {
          unsettle(session);
          // The amount is the payment's own.
          if (session.payment) Object.assign(session.payment, { instructions: TRANSFER, fiat_amount: TRANSFER.amount });
        },
      },
    );
    await pay(page);
    await step(embedded(page), 'instructions');
    // The display has what a bank would refuse.
    const shown = await embedded(page)
      .locator('[data-step="instructions"] .amount', { hasText: '€' })
      .last()
      .textContent();
    assert.match(shown, /1\D234\D567/);
    assert.deepEqual(
      await copyAll(page, LANGUAGES[language].messages),
      SHOWN.map((name) => TRANSFER[name]),
    );
    await finish();
    await page.context().close();
  });
}

/** Keeps everything that the polite region says. */
function keepSpeech() {
  window.said = [];
  new MutationObserver(() => {
    const text = document.querySelector('main > [role="status"]')?.textContent;
    if (text && text !== window.said.at(-1)) window.said.push(text);
  }).observe(document, { childList: true, subtree: true, characterData: true });
}

/** A browser that refuses every copy by a script. */
function refuseCopies() {
  if (!('Clipboard' in window)) return;
  Clipboard.prototype.writeText = () => Promise.reject(new DOMException('Write permission denied.', 'NotAllowedError'));
  Document.prototype.execCommand = () => false;
}

const frameOf = (page) => page.frames().find((frame) => frame.url().startsWith(sandbox.widget_origin));

/** Waits until the field in use has exactly this text selected. */
const expectSelected = (page, text) =>
  frameOf(page).waitForFunction((wanted) => {
    const { value, selectionStart, selectionEnd } = document.activeElement;
    return value?.slice(selectionStart, selectionEnd) === wanted;
  }, text);

const speechOf = (page) => frameOf(page).evaluate(() => window.said);

const copyReference = english.copyOf.replace('{field}', english.i_reference);
const referenceButton = (page) => embedded(page).locator(`${BUTTONS}[aria-label="${copyReference}"]`);

test('refused copy leaves the value selected, says how to copy it, and is never announced as one', async () => {
  const { page, finish } = await open(
    {},
    {
      prepare: async (opened) => {
        await opened.addInitScript(keepSpeech);
        await opened.addInitScript(refuseCopies);
      },
    },
  );
  const { instructions } = await pay(page);
  const widget = embedded(page);
  await step(widget, 'instructions');
  const { copied, copy, byHand } = english;
  const button = referenceButton(page);
  await button.click();
  await expectSaid(page, byHand);
  await widget.locator('p.by-hand').getByText(byHand).waitFor();
  assert.equal(await widget.locator('input.by-hand').inputValue(), instructions.reference);
  await expectSelected(page, instructions.reference);
  assert.equal(await button.textContent(), copy);
  // The customer does what the text says.
  await page.keyboard.press('Control+C');
  assert.equal(await readClipboard(page), instructions.reference);
  const said = await speechOf(page);
  assert.deepEqual(
    said.filter((text) => text.startsWith(copied)),
    [],
  );
  assert.equal(said.filter((text) => text === byHand).length, 1);
  await finish();
  await page.context().close();
});

test('page that forbids the clipboard hears of a copy only if there is one', async () => {
  const { page, finish } = await open(
    {},
    { path: '/no-clipboard', prepare: (opened) => opened.addInitScript(keepSpeech) },
  );
  const { instructions } = await pay(page);
  await step(embedded(page), 'instructions');
  await referenceButton(page).click();
  const { byHand, copiedOf, i_reference: field } = english;
  const copied = copiedOf.replace('{field}', field);
  await frameOf(page).waitForFunction((ends) => ends.includes(window.said.at(-1)), [copied, byHand]);
  // No other test knows the reference of this payment, so the clipboard cannot have it from one.
  if ((await speechOf(page)).includes(copied)) {
    assert.equal(await readClipboard(page), instructions.reference);
  } else {
    await expectSelected(page, instructions.reference);
  }
  await finish();
  await page.context().close();
});
