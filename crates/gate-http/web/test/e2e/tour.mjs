// Visits every screen of the widget in a running sandbox, so that a suite can look at each: by link, or in a page of a partner.

import {
  act,
  editSession,
  FLOWS,
  giveUp,
  newPage,
  openCheckout,
  sandbox,
  step,
  unapprove,
  unsettle,
  walk,
} from './shop.mjs';

const SIDES = Object.keys(FLOWS);

/** Keeps the state that the page shows. Otherwise a slow look at a screen that waits would see the next one. */
const holdState = (page) =>
  page.route(/\/session\?after=/, (route) =>
    route.fulfill({
      status: 429,
      headers: { 'Retry-After': '3600', 'Access-Control-Expose-Headers': 'Retry-After' },
      json: { code: 'rate_limited' },
    }),
  );

const pay = async (widget) => {
  await act(widget, 'pay');
  await step(widget, 'instructions');
};

/** Lets the gate have nothing to offer. */
const closeCorridor = (page) =>
  page.route(/\/v1\/embed\/bootstrap$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      json: { ...(await response.json()), available: false, unavailable_reason: 'corridor_not_available' },
    });
  });

/**
 * Each visit: the fields of its session, the way through its screens, and what the page needs before the widget starts. `look` sees
 * a screen under its name. By link the widget is the page, and in a page of a partner it is a frame.
 */
const VISITS = [
  [
    { amount: '100.33', flow: null },
    async ({ page, widget, look }) => {
      for (const side of SIDES) {
        await step(widget, 'choose');
        await widget.locator(`[data-flow="${side}"]`).click();
        await widget.locator(`[data-flow="${side}"][aria-selected=true]`).waitFor();
        await look(`choose-${side}`);
        await act(widget, 'continue');
        await step(widget, 'details');
        await look(`details-${side}`);
        await act(widget, 'continue');
        await widget.locator('[role=alert]').first().waitFor();
        await look(`details-${side}-incomplete`);
        await act(widget, 'back');
      }
      await step(widget, 'choose');
      await page.context().setOffline(true);
      await step(widget, 'offline');
      await look('offline');
      await page.context().setOffline(false);
      await step(widget, 'choose');
      await act(widget, 'cancel');
      await widget.locator('.ask').waitFor();
      await look('cancel-question');
      await widget.locator('.ask [data-action="cancel"]').click();
      // A checkout by link goes to the shop, and the link then says how the session ended.
      if (page === widget) {
        await page.waitForURL(/\?cancelled/);
        await page.goto(page.address);
      }
      await step(widget, 'over');
      await look('over-cancelled');
    },
  ],
  ...SIDES.map((side) => [
    { amount: '100.33', flow: side },
    async ({ page, widget, look }) => {
      await holdState(page);
      // The payment settles by itself after ten seconds, but the page reads that it goes on.
      await editSession(page, (session) => unsettle(session));
      await walk(widget, 'confirm', {
        side,
        look: (name) =>
          name === 'details' || name === 'price' || name === 'confirm' ? look(`${name}-${side}`) : undefined,
      });
      await pay(widget);
      await look(`instructions-${side}`);
      await act(widget, 'continue');
      await step(widget, 'progress');
      await look(`progress-${side}`);
    },
  ]),
  ...SIDES.map((side) => [
    { flow: side },
    async ({ widget, look }) => {
      await walk(widget, 'confirm', { side });
      await act(widget, 'pay');
      await step(widget, 'done');
      await look(`done-${side}`);
    },
  ]),
  [
    { amount: '100.33' },
    async ({ page, widget, look }) => {
      // The page sees a payment that can be cancelled at any time.
      let status = 'processing';
      await holdState(page);
      await editSession(page, (session) => unsettle(session, status));
      await page.route(/\/payments\/[^/]+\/cancel$/, (route) => {
        status = 'cancelled';
        return route.fulfill({ json: {} });
      });
      await walk(widget, 'confirm');
      await pay(widget);
      await giveUp(widget);
      await widget.locator('[data-step=price] [data-code=payment_cancelled]').waitFor();
      await look('cancelled');
    },
  ],
  [
    { amount: '100.31' },
    async ({ widget, look }) => {
      await walk(widget, 'confirm');
      await act(widget, 'pay');
      await step(widget, 'failed');
      await look('failed');
    },
  ],
  // The source of rates does not know the dollar.
  [
    { currency: 'USD' },
    async ({ widget, look }) => {
      await walk(widget, 'details');
      await act(widget, 'continue');
      await widget.locator('[data-code=rate_unavailable]').waitFor();
      await look('price-unavailable');
    },
  ],
  [
    { amount: '100.63' },
    async ({ page, widget, look }) => {
      await holdState(page);
      await editSession(page, unapprove);
      await walk(widget, 'verification');
      await look('verification');
      await act(widget, 'continue');
      await widget.locator('[data-step=verification] .sign.wait').waitFor();
      await look('verification-pending');
    },
  ],
  [
    { amount: '100.62' },
    async ({ widget, look }) => {
      await walk(widget, 'verification');
      await act(widget, 'continue');
      await widget.locator('[data-code=verification_rejected]').waitFor();
      await look('verification-rejected');
    },
  ],
  [
    {},
    async ({ widget, look }) => {
      await step(widget, 'over');
      await look('over-expired');
    },
    (page) =>
      editSession(page, (session) => {
        session.status = 'expired';
      }),
  ],
  [
    {},
    async ({ widget, look }) => {
      await step(widget, 'unavailable');
      await look('unavailable-corridor');
    },
    closeCorridor,
  ],
];

/** A way into the checkout: `open` makes a page for a new session, and `start` starts the widget in it and returns the widget. */
const BY_LINK = {
  open: openCheckout,
  async start(page) {
    await page.goto(page.address);
    return page;
  },
};

/** Shows `look(page, name, widget)` every screen of a widget that has a session, in this way into the checkout. */
export async function tourSessions(browser, options, look, { open, start }) {
  for (const [fields, visit, prepare = async () => undefined] of VISITS) {
    const page = await open(browser, fields, options);
    await prepare(page);
    const widget = await start(page);
    await visit({ page, widget, look: (name) => look(page, name, widget) });
    await page.context().close();
  }
}

/** Shows `look(page, name, widget)` every screen of the checkout by link. Each page has these options. */
export async function tour(browser, options, look) {
  await tourSessions(browser, options, look, BY_LINK);
  const page = await newPage(browser, options);
  // Without a session: a checkout that was opened without its fragment, and the frame's page outside of a frame.
  for (const [name, address] of [
    ['unavailable-link', '/checkout'],
    ['unavailable', `/embed?publishable_key=${sandbox.publishable_key}`],
  ]) {
    await page.goto(sandbox.widget_origin + address);
    await step(page, name.split('-')[0]);
    await look(page, name, page);
  }
  await page.context().close();
}
