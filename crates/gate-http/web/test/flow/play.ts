// Plays events into the reducer, with a clock of its own.

import assert from 'node:assert/strict';
import type { Draft } from '../../src/widget/draft';
import type { Effect, Event } from '../../src/widget/flow/events';
import type { Kept } from '../../src/widget/flow/kept';
import type { Message } from '../../src/widget/flow/messages';
import { reduce } from '../../src/widget/flow/reduce';
import { Refusal, type NoAnswer } from '../../src/widget/flow/refusals';
import { begun, stepOf, type Host, type Live, type Now, type State, type Task } from '../../src/widget/flow/state';
import { viewOf, type View } from '../../src/widget/flow/view';
import type { Payment, Quote, Session, VerificationTask } from '../../src/widget/types';
import { freeze, instant, OPTIONS, paymentWith, quoteAt, sessionWith, START, taskWith } from './objects';

export const refusal = (status: number, code: string, retryAfter = 5) => new Refusal(status, code, retryAfter, 'req_1');

interface Settings {
  readonly session?: Partial<Session>;
  readonly host?: Partial<Host>;
  readonly isFramed?: boolean;
  readonly kept?: Kept;
}

export class Play {
  state: State;
  /** What the last event asked for. */
  effects: readonly Effect[] = [];
  readonly messages: Message[] = [];
  now: Now = { clock: START, uptime: 60_000 };

  constructor(isFramed = false) {
    this.state = begun(isFramed);
  }

  send(event: Event): this {
    const { state, effects } = reduce(freeze(this.state), freeze(event), this.now);
    this.state = state;
    this.effects = effects;
    for (const effect of effects) if (effect.do === 'post') this.messages.push(effect.message);
    return this;
  }

  does(type: 'continue' | 'back' | 'pay' | 'retry' | 'cancel' | 'return' | 'choose_again' | 'touch'): this {
    return this.send({ type });
  }

  edits(fields: Partial<Draft>): this {
    return this.send({ type: 'edit', fields });
  }

  /** Lets time pass without an event. */
  wait(milliseconds: number): this {
    this.now = { clock: this.now.clock + milliseconds, uptime: this.now.uptime + milliseconds };
    return this;
  }

  /** Lets time pass, and looks at it as the page does once a second. */
  tick(milliseconds = 0, isVisible = true): this {
    return this.wait(milliseconds).send({ type: 'tick', isVisible });
  }

  ends(error: Refusal | NoAnswer | null = null): this {
    return this.send({ type: 'task_ended', error });
  }

  /** The gate says this about the session. */
  hears(changes: Partial<Session> = {}, settles = true): this {
    const session = { ...this.live.session, server_time: instant(this.now.clock), ...changes };
    return this.send({ type: 'session', session, settles });
  }

  quoted(changes: Partial<Quote> = {}): this {
    return this.send({ type: 'quoted', quote: quoteAt(this.now.clock, changes) }).ends();
  }

  verified(task: Partial<VerificationTask>, session: Partial<Session> = {}): this {
    return this.send({ type: 'verification', task: taskWith(task) })
      .hears(session)
      .ends();
  }

  /** The gate has made a payment for this page. */
  paid(changes: Partial<Payment> = {}, isOwn = true): this {
    const payment = paymentWith(changes);
    return this.send({ type: 'paid', payment: payment.id, isOwn }).hears({ payment }).ends();
  }

  get live(): Live {
    assert.equal(this.state.is, 'live');
    return this.state;
  }

  get step() {
    return stepOf(this.state, this.now);
  }

  get view(): View {
    return viewOf(this.state, this.now);
  }

  /** The task that the last event started. */
  get started(): Task | undefined {
    return this.effects.flatMap((effect) => (effect.do === 'run' ? [effect.task] : []))[0];
  }

  get running(): Task['do'] | undefined {
    const state = this.state.is === 'ended' ? this.state.before : this.state;
    return state.running?.task.do;
  }
}

/** A page whose session is being read. */
export const begin = ({ host, isFramed = false }: Settings = {}): Play =>
  new Play(isFramed).send({ type: 'token', token: 'token_1', host });

/** A page that has read the session. */
export function open(settings: Settings = {}, settles = true): Play {
  const session = sessionWith(settings.session);
  const { kept = null } = settings;
  return begin(settings).send({ type: 'loaded', options: OPTIONS, session, settles, kept }).ends();
}

type Goal = 'details' | 'price' | 'verification' | 'confirm';

/** A page whose customer has come to a step of a purchase. */
export function at(goal: Goal, settings: Settings = {}): Play {
  const play = open(settings).does('continue');
  if (goal === 'details') return play;
  play.does('continue').quoted();
  return goal === 'price' ? play : play.does('continue');
}
