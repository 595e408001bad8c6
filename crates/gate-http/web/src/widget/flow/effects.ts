import { loadChecks } from '../address';
import type { Api } from '../api';
import type { Draft } from '../draft';
import type { Frame } from '../frame';
import { shownSession } from '../history';
import { forgetIntent, keep, recallDraft, recallEnd, remember, settleIntent } from '../memory';
import type { Session } from '../types';
import type { Effect, Event } from './events';
import { keepingOf, type Keeping } from './kept';
import { pause, sendPayment } from './payment';
import { reduce } from './reduce';
import { isFinal, NoAnswer, Refusal } from './refusals';
import { begun, lastOf, sessionOf, stepOf, waits, type Now, type State, type Task } from './state';
import { MAX_BACKOFF_MS, READ_CHANGE_MS, SLOW_MS } from './steps';

/** What the flow needs from the page around it. */
export interface Surroundings {
  readonly api: Api;
  /** The channel to the partner's page. A top-level checkout has none. */
  readonly frame: Frame | null;
  readonly draw: () => void;
  /** Starts again without a token. */
  readonly restart: () => void;
  /** Bootstraps again in place of a token that is no longer valid. False if no client secret is left for it. */
  readonly renew: () => boolean;
}

const isAnswer = (error: unknown): error is Refusal | NoAnswer => error instanceof Refusal || error instanceof NoAnswer;

/** The flow of one page. */
export interface Flow {
  readonly state: State;
  now(): Now;
  /** Lets the flow take an event, and draws the page. Ends when everything has ended that the event started. */
  send(event: Event): Promise<unknown>;
  /** Takes what the form shows, without a drawing: it is called while a drawing removes the form. */
  keep(fields: Partial<Draft>): void;
}

/** Keeps the state, and does what the reducer asks for: calls, timers, messages. */
export function flowOf({ api, frame, draw, restart, renew }: Surroundings): Flow {
  let current: State = begun(frame !== null);
  let isPolling = false;
  let keptText = '';

  const now = (): Now => ({ clock: Date.now(), uptime: performance.now() });

  function send(event: Event): Promise<unknown> {
    const done = change(event);
    draw();
    return done;
  }

  function change(event: Event): Promise<unknown> {
    const { state, effects } = reduce(current, event, now());
    current = state;
    keepChange(keepingOf(current, now()));
    const done = Promise.all(effects.map((effect) => perform(effect)));
    void poll();
    return done;
  }

  /** Most events change nothing of what is kept. */
  function keepChange(keeping: Keeping | null): void {
    const text = JSON.stringify(keeping);
    if (!keeping || text === keptText) return;
    keptText = text;
    keep(keeping);
  }

  function perform(effect: Effect): unknown {
    switch (effect.do) {
      case 'run':
        return run(effect.task);
      case 'take':
        return take(effect.session);
      case 'post':
        return frame?.post(effect.message);
      case 'check':
        return check(effect);
      case 'estimate':
        return void estimate(effect);
      case 'restart':
        return restart();
      case 'lose_token':
        return loseToken(effect.mayRenew);
      case 'forget_intent':
        return forgetIntent(effect.session);
      case 'go':
        return location.assign(effect.address);
      case 'focus_change':
        return document.getElementById('changed')?.focus();
    }
  }

  /** Runs a task, and turns every failure into an event. */
  async function run(task: Task): Promise<void> {
    const slow = setTimeout(draw, SLOW_MS);
    let error: Refusal | NoAnswer | null = null;
    try {
      await work(task);
    } catch (caught) {
      if (!isAnswer(caught)) throw caught;
      error = caught;
    } finally {
      clearTimeout(slow);
      await send({ type: 'task_ended', error });
    }
  }

  async function work(task: Task): Promise<void> {
    switch (task.do) {
      case 'load': {
        const [session, options] = await Promise.all([api.session(), api.options()]);
        return void send({
          type: 'loaded',
          session: withEnd(session),
          options,
          settles: settles(session),
          kept: recallDraft(session.id),
        });
      }
      case 'refresh':
        return take(await api.session());
      case 'quote':
        void send({ type: 'quoted', quote: await api.quote(task.body) });
        // A price that has changed can be paid from then on.
        return void setTimeout(draw, READ_CHANGE_MS);
      case 'pay': {
        const session = sessionOf(current);
        const show = (read: Session) => {
          take(read);
          return stepOf(current, now()) === 'confirm';
        };
        return session ? sendPayment(api, session, task.body, (event) => void send(event), show) : undefined;
      }
      case 'verify':
        void send({ type: 'verification', task: await api.verification(task.answers) });
        return take(await api.session());
      case 'pretend':
        await api.pretend(task.payment);
        return take(await api.session());
      case 'cancel':
        if (!task.payment) return take(await api.cancelSession());
        await api.cancelPayment(task.payment);
        return take(await api.session());
    }
  }

  async function check({ address, network, others }: Extract<Effect, { do: 'check' }>): Promise<void> {
    // A browser hashes in a secure context alone. Elsewhere the check of the gate decides, as it does without the checks.
    const misfit = await loadChecks()
      .then((checks) => checks?.misfitOf(address, network, others))
      .catch(() => undefined);
    if (misfit !== undefined) await send({ type: 'checked', address, chain: network.chain, misfit });
  }

  /** Nothing waits for the answer: the page shows the methods without it too. */
  async function estimate({ asset, network }: Extract<Effect, { do: 'estimate' }>): Promise<void> {
    const options = await api.options({ asset, network }).catch(() => null);
    await send({ type: 'estimated', asset, network, options });
  }

  /** The page that paid has kept where the coins went. */
  const withEnd = (session: Session): Session =>
    session.status === 'completed'
      ? { ...session, wallet_address: session.wallet_address ?? recallEnd(session.id)?.wallet_address ?? null }
      : session;

  function take(session: Session): void {
    void send({ type: 'session', session: withEnd(session), settles: settles(session) });
  }

  /** Forgets the intent if the payment of the session is its outcome, and returns whether it is. */
  function settles({ id, payment }: Session): boolean {
    const last = lastOf(current);
    const dismissed = last.is === 'live' ? last.dismissed : null;
    return payment !== null && payment.id !== dismissed && settleIntent(id, payment.id);
  }

  function loseToken(mayRenew: boolean): void {
    const id = sessionOf(current)?.id ?? shownSession() ?? '';
    remember(`token.${id}`, null);
    if (mayRenew && renew()) return;
    // The page around a frame has heard of the end already.
    const session = frame ? null : recallEnd(id);
    void send(session ? { type: 'ended', session } : { type: 'end', step: 'over', code: 'unauthorized' });
    // The page around a frame can fetch a new token. It answers with the old one if that is still fresh.
    frame?.post({ type: 'ready' });
  }

  /** Waits for changes by long polling, slower after each failure. */
  async function poll(): Promise<void> {
    if (isPolling) return;
    isPolling = true;
    let failures = 0;
    try {
      while (waits(current)) {
        const asked = Date.now();
        try {
          const { version } = current.session;
          const session = await api.session(version);
          failures = 0;
          // An answer that another read has overtaken may be older.
          if (sessionOf(current)?.version === version) await send({ type: 'polled', session });
          if (Date.now() - asked < 500) await pause(1000);
        } catch (error) {
          if (!isAnswer(error)) throw error;
          failures += 1;
          await send({ type: 'poll_failed', error, failures });
          if (error instanceof Refusal && isFinal(error)) return;
          const asks = error instanceof Refusal && error.status === 429 ? error.retryAfter * 1000 : 0;
          await pause(Math.max(asks, Math.min(MAX_BACKOFF_MS, 500 * 2 ** failures)));
        }
      }
    } finally {
      isPolling = false;
    }
  }

  const tick = () => void send({ type: 'tick', isVisible: document.visibilityState === 'visible' });
  addEventListener('online', () => void send({ type: 'online' }));
  addEventListener('offline', () => void send({ type: 'offline' }));
  addEventListener('pageshow', (event) => event.persisted && void send({ type: 'shown_again' }));
  document.addEventListener('visibilitychange', tick);
  for (const touch of ['pointerdown', 'keydown']) addEventListener(touch, () => void change({ type: 'touch' }));
  setInterval(tick, 1000);

  return {
    get state() {
      return current;
    },
    now,
    send,
    keep: (fields) => void change({ type: 'read', fields }),
  };
}
