import type { Order } from './backend.js';
import { copyText, create } from './element.js';

/** Way into the checkout. */
export type Way = 'embedded' | 'redirect' | 'link';

/** Facts about this sandbox that the examples repeat. */
export interface Place {
  widgetOrigin: string;
  publishableKey: string;
  locale: string;
}

interface Snippet {
  title: string;
  note: string;
  code: string;
}

function quote(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`;
}

function serverSnippet(order: Order, way: Way): Snippet {
  const flow = order.flow ? `\n    flow: ${quote(order.flow)},` : '';
  const last = {
    embedded: 'const clientSecret = session.client_secret;',
    redirect: 'const clientSecret = session.client_secret;',
    link: '// Or send it by mail.\nresponse.redirect(303, session.url);',
  }[way];
  return {
    title: 'Your server',
    note: 'The secret key stays here.',
    code: `const url = GATE_URL + '/v1/gate_sessions';
const created = await fetch(url, {
  method: 'POST',
  headers: {
    Authorization: \`Bearer \${SECRET_KEY}\`,
    'Content-Type': 'application/json',
    // A changed order needs a new key.
    'Idempotency-Key': order.id + '-' + order.version,
  },
  body: JSON.stringify({
    amount: ${quote(order.amount)},
    currency: ${quote(order.currency)},${flow}
    return_url: 'https://shop.example/thanks',
  }),
});
const session = await created.json();
${last}`,
  };
}

function pageSnippet(way: Way, { widgetOrigin, publishableKey, locale }: Place): Snippet | null {
  const script = `<script src="${widgetOrigin}/gate.js"></script>`;
  if (way === 'embedded') {
    const language = locale ? `\n    locale: ${quote(locale)},` : '';
    return {
      title: 'Your page',
      note: 'The callback thanks the customer. It decides nothing.',
      code: `${script}
<div id="ramp"></div>
<script>
  const ramp = new GateRamp({
    publishableKey: ${quote(publishableKey)},
    clientSecret,
    environment: 'sandbox',${language}
  });
  ramp.mount('#ramp', {
    onSuccess: ({ txId }) => showThanks(txId),
    onClose: () => ramp.destroy(),
  });
</script>`,
    };
  }
  if (way === 'redirect') {
    return {
      title: 'Your page',
      note: 'The customer comes back to return_url.',
      code: `${script}
<script>
  GateRamp.redirectToCheckout({
    publishableKey: ${quote(publishableKey)},
    clientSecret,
  });
</script>`,
    };
  }
  return null;
}

const WEBHOOK: Snippet = {
  title: 'Your webhook',
  note: 'This event decides, after standardwebhooks verified it. Answer first, work later.',
  code: `const event = new Webhook(WEBHOOK_SECRET)
  .verify(rawBody, request.headers);
// A job ships what is stored, each session once.
await store(event);
response.sendStatus(204);`,
};

function render({ title, note, code }: Snippet): HTMLElement {
  const copy = create(
    'button',
    { type: 'button', class: 'copy', 'data-action': 'copy', 'aria-label': `Copy the code of ${title.toLowerCase()}` },
    'Copy',
  );
  copy.addEventListener('click', () => void copyText(code, copy));
  return create(
    'article',
    { class: 'snippet' },
    create('header', {}, create('h3', {}, title), copy),
    create('p', { class: 'hint' }, note),
    create('pre', { tabindex: '0', 'aria-label': title }, create('code', {}, code)),
  );
}

/** Shows the code of a partner for this order and way. */
export function showSnippets(target: Element, order: Order, way: Way, place: Place): void {
  const snippets = [serverSnippet(order, way), pageSnippet(way, place), WEBHOOK];
  target.replaceChildren(...snippets.filter((snippet) => snippet !== null).map(render));
}
