// Drives the flow of a page in Node: its calls, its clock and what its browser reports go as a test says, one thing at a time.

import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { apiOf } from '../../src/widget/api';
import { flowOf, type Flow } from '../../src/widget/flow/effects';
import type { Message } from '../../src/widget/flow/messages';
import { lastOf, sessionOf, stepOf, waits } from '../../src/widget/flow/state';
import type { Step } from '../../src/widget/flow/steps';
import { viewOf, type View } from '../../src/widget/flow/view';
import type { Frame } from '../../src/widget/frame';
import { forgetIntent, recall, remember } from '../../src/widget/memory';
import { Gate, type Request, type Response } from './gate';
import { freeze, START } from './objects';

/** No order needs more turns than this to come to rest. */
const MAX_TURNS = 200;

/** Lets everything happen that needs no time. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** A browser wakes a page in the background less often than once a second. */
const BACKGROUND_SECONDS = 5;

/** A call under way. */
export interface Call extends Request {
  /** The version that a wait for a change has seen, or null. */
  readonly after: string | null;
  readonly sentAt: number;
  /** What the gate has answered, once the call has reached it. */
  response: Response | null;
  readonly resolve: (response: Response) => void;
  readonly reject: () => void;
}

/** A page in the partner's frame, whose wallet can pay. */
export class Page {
  readonly gate = new Gate();
  readonly calls: Call[] = [];
  /** Payments that the page has given up before they reached the gate. They may still reach it. */
  readonly late: Request[] = [];
  readonly messages: Message[] = [];
  readonly flow: Flow;
  isOnline = true;
  /** The keys of all payments that the page has sent. */
  readonly keys: string[] = [];
  /** True from a lost call of the payment until the page has heard of its outcome. */
  isUnknown = false;
  /** True from a lost call of the payment until the page has read the session. */
  #mustRead = false;
  /** The payment that the page showed before its newest one. */
  #paymentBefore: string | undefined;
  token = '';
  readonly #browser = new EventTarget();

  constructor() {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: START });
    performance.now = () => Date.now() - START + 60_000;
    Object.assign(globalThis, {
      addEventListener: this.#browser.addEventListener.bind(this.#browser),
      document: { visibilityState: 'visible', addEventListener: () => undefined, getElementById: () => null },
      history: { state: null },
      fetch: (url: string, request: RequestInit) => this.#fetch(url, request),
    });
    forgetIntent(this.gate.session.id);
    remember(`draft.${this.gate.session.id}`, null);
    const frame = { post: (message: Message) => this.messages.push(message) } as unknown as Frame;
    this.flow = flowOf({
      api: apiOf('', () => this.token),
      frame,
      draw: () => undefined,
      restart: () => assert.fail('The page has a token.'),
      renew: () => false,
    });
  }

  close(): void {
    mock.timers.reset();
  }

  get step(): Step {
    return stepOf(this.flow.state, this.flow.now());
  }

  get view(): View {
    return viewOf(this.flow.state, this.flow.now());
  }

  get #payment(): string | undefined {
    return sessionOf(this.flow.state)?.payment?.id;
  }

  get intent(): string | null {
    return recall(`intent.${this.gate.session.id}`);
  }

  /** The calls of tasks: all but the wait for a change. */
  get taskCalls(): Call[] {
    return this.calls.filter(({ after }) => after === null);
  }

  #fetch(url: string, { method, headers, body, signal }: RequestInit): Promise<object> {
    const { pathname, searchParams } = new URL(url, 'http://gate');
    const sent = new Headers(headers);
    const key = sent.get('Idempotency-Key');
    if (key) this.#checkPayment(key);
    return new Promise((resolve, reject) => {
      const call: Call = {
        name: `${method} ${pathname.slice('/v1/embed/'.length)}`,
        token: sent.get('X-Embed-Token') ?? '',
        body: JSON.parse(typeof body === 'string' ? body : '{}') as Request['body'],
        key,
        after: searchParams.get('after'),
        sentAt: Date.now(),
        response: null,
        resolve: ([status, content]) =>
          resolve({ ok: status < 400, status, headers: new Headers(), json: () => Promise.resolve(content) }),
        reject: () => reject(new TypeError('The connection is lost.')),
      };
      signal?.addEventListener('abort', () => this.calls.includes(call) && this.#drop(call));
      this.calls.push(call);
    });
  }

  #checkPayment(key: string): void {
    const last = this.keys.at(-1);
    assert.ok(!this.#mustRead, 'A payment is sent again after the session was read.');
    assert.ok(key === last || !this.isUnknown, 'A payment without a known outcome is sent again with its own key.');
    if (key !== last) this.#paymentBefore = this.#payment;
    this.keys.push(key);
  }

  /** Lets a call reach the gate, where it takes effect. */
  reach(call: Call): void {
    call.response = freeze(this.gate.answer(call));
  }

  /** Lets the answer of the gate arrive. */
  async arrive(call: Call): Promise<void> {
    assert.ok(call.response);
    this.calls.splice(this.calls.indexOf(call), 1);
    const [status] = call.response;
    if (call.key && status !== 401) this.#mustRead = this.isUnknown = false;
    if (call.name === 'GET session' && call.after === null) this.#mustRead = false;
    call.resolve(call.response);
    await settle();
    if (this.#payment !== this.#paymentBefore) this.isUnknown = false;
  }

  async lose(call: Call): Promise<void> {
    this.#drop(call);
    await settle();
  }

  #drop(call: Call): void {
    this.calls.splice(this.calls.indexOf(call), 1);
    if (call.key) {
      this.#mustRead = this.isUnknown = true;
      if (!call.response) this.late.push(call);
    }
    call.reject();
  }

  /** Lets what the customer does happen. */
  async does(type: 'continue' | 'back' | 'pay' | 'retry' | 'cancel'): Promise<void> {
    void this.flow.send({ type });
    await settle();
  }

  async connect(isOnline: boolean): Promise<void> {
    this.isOnline = isOnline;
    this.#browser.dispatchEvent(new Event(isOnline ? 'online' : 'offline'));
    await settle();
  }

  /** The browser shows the page that it had kept. */
  async showAgain(): Promise<void> {
    this.#browser.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
    await settle();
  }

  /** The page around the frame hands a token over. */
  async takeToken(token: string): Promise<void> {
    this.token = token;
    void this.flow.send({ type: 'token', token, host: { isFramed: true, canDeposit: true } });
    await settle();
  }

  /** Lets time pass, in turns as long as those of a page in the background. */
  async wait(seconds: number): Promise<void> {
    for (let rest = seconds; rest > 0; rest -= BACKGROUND_SECONDS) {
      mock.timers.tick(Math.min(rest, BACKGROUND_SECONDS) * 1000);
      await settle();
    }
  }

  /** The gate holds a wait for a change as long as nothing has changed, and at most 25 seconds. */
  canReach({ after, response, sentAt, token }: Call): boolean {
    const isHeld = after === this.gate.session.version && Date.now() < sentAt + 25_000;
    return response === null && (!isHeld || this.gate.deadTokens.has(token));
  }

  /** Delivers everything until nothing goes on but the wait for a change. */
  async drain(): Promise<void> {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const call = this.calls.find((one) => one.response !== null || this.canReach(one));
      if (!this.isOnline) await this.connect(true);
      else if (call?.response) await this.arrive(call);
      else if (call) this.reach(call);
      else if (this.#isAtRest) return;
      else if (this.step === 'offline' && !waits(this.flow.state)) await this.does('retry');
      else await this.wait(1);
    }
    assert.fail(`The page never comes to rest at ${this.step}.`);
  }

  /** True if no call and no pause is left, no outcome is unknown, and the page waits for changes if it has to. */
  get #isAtRest(): boolean {
    const { state } = this.flow;
    if (lastOf(state).running || this.taskCalls.length > 0) return false;
    if (waits(state)) return this.calls.length > 0 && !state.unsettled && !state.isOffline;
    return this.step !== 'offline';
  }
}
