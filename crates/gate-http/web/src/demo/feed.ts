import type { ReceivedEvent } from './backend.js';
import { sessionOf } from './decision.js';
import { create, find } from './element.js';

/** Older events than these are folded away (`demo.css` hides them). */
const FOLDED_AFTER_EVENTS = 8;
/** The list keeps this many events, so that a long session stays fast. */
const MAX_SHOWN_EVENTS = 200;

const TIME = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
});

/** Kinds of JSON tokens, in the order of the expression's groups. */
const TOKEN_CLASSES = ['json-key', 'json-text', 'json-word', 'json-number'];
const TOKENS =
  /("(?:\\.|[^"\\])*")(?=\s*:)|("(?:\\.|[^"\\])*")|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;

/** Formats JSON with coloured tokens. */
function highlight(value: unknown): Node[] {
  const text = JSON.stringify(value, null, 2);
  const nodes: Node[] = [];
  let end = 0;
  for (const found of text.matchAll(TOKENS)) {
    nodes.push(document.createTextNode(text.slice(end, found.index)));
    const kind = TOKEN_CLASSES[found.slice(1).findIndex((group) => group !== undefined)] ?? '';
    nodes.push(create('span', { class: kind }, found[0]));
    end = found.index + found[0].length;
  }
  nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}

function entryOf(event: ReceivedEvent, current: string | null): HTMLElement {
  const session = sessionOf(event);
  const verified = event.verified ? '✓ Signature verified' : '✗ Signature does not match';
  const time = new Date(event.received_at);
  return create(
    'li',
    {
      'data-event-type': event.type,
      'data-event-id': event.id,
      'data-sequence': String(event.sequence),
      'data-verified': String(event.verified),
      'data-session': session ?? '',
      class: `event${session !== null && session === current ? ' current' : ''}`,
    },
    create(
      'details',
      {},
      create(
        'summary',
        {},
        create('span', { class: 'event-type' }, event.type),
        create(
          'time',
          { datetime: event.received_at, title: event.received_at },
          Number.isNaN(time.getTime()) ? event.received_at : TIME.format(time),
        ),
        create('span', { class: event.verified ? 'verified' : 'unverified' }, verified),
      ),
      create(
        'div',
        { class: 'event-body' },
        create(
          'dl',
          { class: 'headers' },
          ...Object.entries(event.headers).flatMap(([name, value]) => [
            create('dt', {}, `${name}:`),
            create('dd', {}, value),
          ]),
        ),
        create(
          'pre',
          { tabindex: '0', 'aria-label': `Body of ${event.type}` },
          create('code', {}, ...highlight(event.body)),
        ),
      ),
    ),
  );
}

/** The list of webhooks, newest first. */
export class Feed {
  readonly events: ReceivedEvent[] = [];
  private readonly list = find('#feed');
  private readonly empty = find('#events-empty');
  private readonly announcement = find('#announcement');
  private readonly more = find('#more');
  private newest: HTMLDetailsElement | null = null;

  constructor() {
    this.more.addEventListener('click', () => {
      this.list.classList.add('all');
      this.more.hidden = true;
    });
  }

  /** Shows further events. Events of the current session are marked. */
  add(events: ReceivedEvent[], current: string | null): void {
    for (const event of events) {
      this.events.push(event);
      this.list.prepend(entryOf(event, current));
    }
    this.openNewest();
    while (this.list.childElementCount > MAX_SHOWN_EVENTS) {
      this.list.lastElementChild?.remove();
    }
    const count = this.list.childElementCount;
    this.more.textContent = `Show all ${count} events`;
    this.more.hidden = count <= FOLDED_AFTER_EVENTS || this.list.classList.contains('all');
    this.empty.hidden = this.events.length > 0;
    const last = events[events.length - 1];
    if (last) {
      this.announcement.textContent = last.type;
    }
  }

  /** The newest event is open. One that a user has opened stays open. */
  private openNewest(): void {
    const newest = this.list.querySelector('details');
    if (newest && newest !== this.newest) {
      if (this.newest?.dataset.chosen === undefined) {
        this.newest?.removeAttribute('open');
      }
      newest.open = true;
      newest.querySelector('summary')?.addEventListener(
        'click',
        () => {
          newest.dataset.chosen = '';
        },
        { once: true },
      );
      this.newest = newest;
    }
  }

  /** Marks the events of another session. */
  mark(current: string | null): void {
    for (const entry of this.list.querySelectorAll<HTMLElement>('[data-event-type]')) {
      entry.classList.toggle('current', current !== null && entry.dataset.session === current);
    }
  }

  clear(): void {
    this.events.length = 0;
    this.list.replaceChildren();
  }
}
