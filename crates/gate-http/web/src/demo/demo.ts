import type * as sdk from '../sdk/gate.js';
import { BackendError, type CreatedSession, createSession, followEvents, type Order } from './backend.js';
import { decide } from './decision.js';
import { copyText, create, find } from './element.js';
import { Feed } from './feed.js';
import { type Place, showSnippets, type Way } from './snippets.js';

// The page loads `gate.js` of the widget origin, as a partner's page does.
declare const GateRamp: typeof sdk.GateRamp | undefined;

const form = find<HTMLFormElement>('#order-form');
const amount = find<HTMLInputElement>('input[name=amount]');
const outcome = find<HTMLSelectElement>('select[name=outcome]');
const currency = find<HTMLSelectElement>('select[name=currency]');
const locale = find<HTMLSelectElement>('select[name=locale]');
const feed = new Feed();

let ramp: sdk.GateRamp | undefined;
let session: string | null = new URLSearchParams(location.search).get('gate_session_id');
let remount: (() => void) | undefined;
/** The endpoint that gets the events in place of the shop. */
let eventsTo: string | null = null;

function meta(name: string): string {
  return find<HTMLMetaElement>(`meta[name=penstock-${name}]`).content;
}

function order(): Order {
  const flow = find<HTMLInputElement>('input[name=flow]:checked').value;
  return { amount: amount.value.trim().replace(',', '.'), currency: currency.value, flow: flow || null };
}

function place(): Place {
  return { widgetOrigin: meta('widget-origin'), publishableKey: meta('publishable-key'), locale: locale.value };
}

// Order

/** The price as a customer reads it, or as it was typed. */
function priceText({ amount: value, currency: code }: Order): string {
  const isNumber = /^\d{1,12}(\.\d{1,2})?$/.test(value);
  return isNumber
    ? new Intl.NumberFormat('en', { style: 'currency', currency: code }).format(Number(value))
    : `${value || '…'} ${code}`;
}

function showOrder(): void {
  const ordered = order();
  const price = priceText(ordered);
  find('#cost').textContent = price;
  find('#card-price').textContent = price.length > 12 ? ordered.currency : price;
  const cents = /\.(\d\d)$/.exec(ordered.amount)?.[1];
  outcome.value = [...outcome.options].some((option) => option.value === cents) ? (cents ?? '00') : '00';
  const way = find<HTMLInputElement>('input[name=way]:checked').value as Way;
  showSnippets(find('#snippets'), ordered, way, place());
}

/** The last two digits of the price choose what the sandbox does, so the price follows the choice. */
function followOutcome(): void {
  const whole = /^\d+/.exec(order().amount)?.[0] ?? '250';
  amount.value = `${whole}.${outcome.value}`;
  showOrder();
}

function chooseWay(way: Way): void {
  find<HTMLInputElement>(`input[name=way][value=${way}]`).checked = true;
  showOrder();
}

function setBusy(isBusy: boolean): void {
  form.toggleAttribute('aria-busy', isBusy);
  for (const button of form.querySelectorAll<HTMLButtonElement>('.actions button')) {
    button.disabled = isBusy;
  }
}

function showAlert(selector: string, code: string | null, message = ''): void {
  const alert = find(selector);
  alert.hidden = code === null;
  alert.replaceChildren();
  if (code === null) {
    delete alert.dataset.code;
  } else {
    alert.dataset.code = code;
    alert.append(create('b', {}, message), create('code', {}, code));
  }
}

/** Creates a session for the order, and continues with it unless the server refused. */
async function startOrder(way: Way, proceed: (created: CreatedSession) => void): Promise<void> {
  chooseWay(way);
  showAlert('#order-error', null);
  setBusy(true);
  try {
    if (way !== 'link') {
      gateRamp();
    }
    const created = await createSession(order());
    closeCheckout();
    eventsTo = created.events_to;
    followSession(created.session_id);
    proceed(created);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    showAlert('#order-error', code ?? 'unexpected_error', message);
  } finally {
    setBusy(false);
  }
}

/** The SDK's class, or an error that explains why it is missing. */
function gateRamp(): typeof sdk.GateRamp {
  if (typeof GateRamp === 'undefined') {
    throw new BackendError('sdk_missing', `gate.js could not be loaded from ${meta('widget-origin')}.`);
  }
  return GateRamp;
}

// Checkout

function closeCheckout(): void {
  ramp?.destroy();
  ramp = undefined;
  remount = undefined;
  showAlert('#checkout-error', null);
  find('#link-box').hidden = true;
  find('#checkout-empty').hidden = true;
  find('#callbacks').hidden = true;
  find('#callback-list').replaceChildren();
}

/** Scrolls to what has just opened. Below the first column, it begins at the top, because the widget still grows. */
function bringIntoSight(selector: string): void {
  const element = find(selector);
  const isBelow = element.getBoundingClientRect().top > innerHeight / 2;
  const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches;
  element.scrollIntoView({ block: isBelow ? 'start' : 'nearest', behavior: isStill ? 'auto' : 'smooth' });
}

function logCallback(name: string, event: object = {}): void {
  const list = find('#callback-list');
  const detail = Object.entries(event)
    .map(([key, value]) => `${key}: ${value}`)
    .join(', ');
  list.append(create('li', { 'data-callback': name }, create('b', {}, name), ` ${detail}`));
  find('#callback-count').textContent = String(list.childElementCount);
}

function currentTheme(): 'light' | 'dark' | 'auto' {
  return (document.documentElement.dataset.theme as 'light' | 'dark' | undefined) ?? 'auto';
}

function mountWidget(created: CreatedSession): void {
  const start = (): void => {
    ramp?.destroy();
    ramp = new (gateRamp())({
      publishableKey: meta('publishable-key'),
      clientSecret: created.client_secret,
      environment: 'sandbox',
      theme: currentTheme(),
      locale: locale.value || undefined,
    });
    ramp.mount('#ramp', {
      onReady: () => logCallback('onReady'),
      onStep: (event) => logCallback('onStep', event),
      onQuote: (event) => logCallback('onQuote', event),
      onSuccess: (event) => logCallback('onSuccess', event),
      onError(event) {
        logCallback('onError', event);
        // The widget shows its own errors. Without a frame, the page has to.
        if (!document.querySelector('#ramp iframe')) {
          showAlert('#checkout-error', event.code, event.message);
        }
      },
      onUnavailable(event) {
        logCallback('onUnavailable', event);
        if (!document.querySelector('#ramp iframe')) {
          showAlert('#checkout-error', event.reason, 'The gate has nothing to offer for this order.');
        }
      },
      onClose(event) {
        logCallback('onClose', event);
        ramp?.destroy();
        find('#checkout-empty').hidden = false;
      },
    });
  };
  start();
  remount = start;
  find('#callbacks').hidden = false;
  bringIntoSight('#ramp');
}

function showLink({ url }: CreatedSession): void {
  if (!url) {
    throw new BackendError('url_missing', 'The session has no url: the partner has no active publishable key.');
  }
  find<HTMLInputElement>('input[name=url]').value = url;
  find<HTMLAnchorElement>('#link-open').href = url;
  find('#link-box').hidden = false;
  bringIntoSight('#link-box');
}

// Webhooks

const WORDS = {
  none: 'no order is known',
  elsewhere: 'another server gets the events',
  waiting: 'waiting for the event',
  paid: 'completed',
  failed: 'failed',
  over: 'cancelled or expired',
};

const NO_EVENTS = 'No events yet. Start a purchase.';

function showDecision(): void {
  const { state, title, reason } = decide(session, feed.events, eventsTo);
  find('#events-empty').textContent = eventsTo === null ? NO_EVENTS : `${title}, so none arrive here.`;
  find('#decision').dataset.decision = state;
  find('#decision-title').textContent = title;
  find('#decision-reason').textContent = reason;
  const pill = find('#pill');
  pill.hidden = state === 'none';
  pill.dataset.decision = state;
  pill.textContent = title;
  const banner = find('#returned');
  banner.dataset.decision = state;
  banner.replaceChildren(
    create('b', {}, `Welcome back. Your server says: ${WORDS[state]}.`),
    create('span', {}, 'Anyone can type the address of this page, so your server waits for the signed event.'),
  );
}

function followSession(id: string): void {
  session = id;
  feed.mark(id);
  showDecision();
}

/** Greets a customer who comes back from the checkout. The address proves nothing, so the decision stands beside it. */
function showReturn(): void {
  const query = new URLSearchParams(location.search);
  const [returned] = ['paid', 'cancelled'].filter((name) => query.has(name));
  const banner = find('#returned');
  banner.hidden = returned === undefined;
  banner.dataset.returned = returned;
}

function listen(): void {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void startOrder('embedded', mountWidget);
  });
  form.addEventListener('input', ({ target }) => (target === outcome ? followOutcome() : showOrder()));
  find('[data-action=redirect]').addEventListener('click', () => {
    void startOrder('redirect', (created) =>
      gateRamp().redirectToCheckout({
        publishableKey: meta('publishable-key'),
        clientSecret: created.client_secret,
        environment: 'sandbox',
        theme: currentTheme(),
        locale: locale.value || undefined,
      }),
    );
  });
  find('[data-action=link]').addEventListener('click', () => void startOrder('link', showLink));
  find<HTMLButtonElement>('[data-action=copy-link]').addEventListener('click', (event) => {
    void copyText(find<HTMLInputElement>('input[name=url]').value, event.currentTarget as HTMLButtonElement);
  });
  find('#code').addEventListener('change', showOrder);
  locale.addEventListener('change', () => {
    showOrder();
    remount?.();
  });
  find('[data-action=theme]').addEventListener('click', () => {
    const theme = currentTheme();
    const isDark = theme === 'auto' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
    document.documentElement.dataset.theme = isDark ? 'light' : 'dark';
    ramp?.setTheme(currentTheme());
  });
  // The browser's back button shows this page as it was left, with its buttons disabled.
  addEventListener('pageshow', () => setBusy(false));
}

listen();
showOrder();
showReturn();
showDecision();
void followEvents(
  (events, isNewLog, elsewhere) => {
    eventsTo = elsewhere;
    if (isNewLog) {
      feed.clear();
    }
    feed.add(events, session);
    showDecision();
  },
  (isLive) => {
    const live = find('#live');
    live.textContent = isLive ? 'Live' : 'Paused';
    live.dataset.live = String(isLive);
  },
);
