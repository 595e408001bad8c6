// Visits every screen of the widget in a running sandbox, so that a suite can look at each.

import { act, editSession, FLOWS, newPage, openCheckout, sandbox, step, unapprove, unsettle, walk } from './shop.mjs';

const SIDES = Object.keys(FLOWS);

/** Keeps the state that the page shows. Otherwise a slow look at a screen that waits would see the next one. */
const holdState = (page) =>
  page.route(/\/session\?after=/, (route) =>
    route.fulfill({ status: 429, headers: { 'Retry-After': '3600', 'Access-Control-Expose-Headers': 'Retry-After' }, json: { code: 'rate_limited' } }));

const pay = async (page) => {
  await act(page, 'pay');
  await step(page, 'instructions');
};

/** Each visit: the fields of its session and the way through its screens. `look` sees a screen under its name. */
const VISITS = [
  [{ amount: '100.33', flow: null }, async (page, look) => {
    for (const side of SIDES) {
      await step(page, 'choose');
      await page.locator(`[data-flow="${side}"]`).click();
      await page.locator(`[data-flow="${side}"][aria-selected=true]`).waitFor();
      await look(`choose-${side}`);
      await act(page, 'continue');
      await step(page, 'details');
      await look(`details-${side}`);
      await act(page, 'continue');
      await page.locator('[role=alert]').first().waitFor();
      await look(`details-${side}-incomplete`);
      await act(page, 'back');
    }
    await step(page, 'choose');
    await page.context().setOffline(true);
    await step(page, 'offline');
    await look('offline');
    await page.context().setOffline(false);
    await step(page, 'choose');
    await act(page, 'cancel');
    await page.locator('.ask').waitFor();
    await look('cancel-question');
    await page.locator('.ask [data-action="cancel"]').click();
    await step(page, 'over');
    await look('over-cancelled');
  }],
  ...SIDES.map((side) => [{ amount: '100.33', flow: side }, async (page, look) => {
    await holdState(page);
    await walk(page, 'confirm', { side, look: (name) => (name === 'details' || name === 'price' || name === 'confirm' ? look(`${name}-${side}`) : undefined) });
    await pay(page);
    await look(`instructions-${side}`);
    await act(page, 'continue');
    await step(page, 'progress');
    await look(`progress-${side}`);
  }]),
  ...SIDES.map((side) => [{ flow: side }, async (page, look) => {
    await walk(page, 'confirm', { side });
    await act(page, 'pay');
    await step(page, 'done');
    await look(`done-${side}`);
  }]),
  [{ amount: '100.33' }, async (page, look) => {
    // The payment settles by itself after ten seconds, so the page sees one that can be cancelled at any time.
    let status = 'processing';
    await holdState(page);
    await editSession(page, (session) => unsettle(session, status));
    await page.route(/\/payments\/[^/]+\/cancel$/, (route) => {
      status = 'cancelled';
      return route.fulfill({ json: {} });
    });
    await walk(page, 'confirm');
    await pay(page);
    await act(page, 'cancel');
    await page.locator('[data-step=price] [data-code=payment_cancelled]').waitFor();
    await look('cancelled');
  }],
  [{ amount: '100.31' }, async (page, look) => {
    await walk(page, 'confirm');
    await act(page, 'pay');
    await step(page, 'failed');
    await look('failed');
  }],
  // The source of rates does not know the dollar.
  [{ currency: 'USD' }, async (page, look) => {
    await walk(page, 'details');
    await act(page, 'continue');
    await page.locator('[data-code=rate_unavailable]').waitFor();
    await look('price-unavailable');
  }],
  [{ amount: '100.63' }, async (page, look) => {
    await holdState(page);
    await editSession(page, unapprove);
    await walk(page, 'verification');
    await look('verification');
    await act(page, 'continue');
    await page.locator('[data-step=verification] .sign.wait').waitFor();
    await look('verification-pending');
  }],
  [{ amount: '100.62' }, async (page, look) => {
    await walk(page, 'verification');
    await act(page, 'continue');
    await page.locator('[data-code=verification_rejected]').waitFor();
    await look('verification-rejected');
  }],
];

/** Shows `look(page, name)` every screen. Each page has these options. */
export async function tour(browser, options, look) {
  for (const [fields, visit] of VISITS) {
    const page = await openCheckout(browser, fields, options);
    await page.goto(page.address);
    await visit(page, (name) => look(page, name));
    await page.context().close();
  }
  const page = await newPage(browser, options);
  // Without a session: a checkout that was opened without its fragment, and the frame's page outside of a frame.
  for (const [name, address] of [['over-access', '/checkout'], ['unavailable', `/embed?publishable_key=${sandbox.publishable_key}`]]) {
    await page.goto(sandbox.widget_origin + address);
    await step(page, name.split('-')[0]);
    await look(page, name);
  }
  await page.context().close();
}
