import { accountOf, addressOf, adopt, checkOf, draftOf, faultsOf, restored, typed, type Draft } from '../draft';
import { payoutOf } from '../payout';
import { priceOf, returnAddress } from '../session';
import type { Options, PaymentRequest, Quote, QuoteRequest, Session, VerificationTask } from '../types';
import type { Deed, Effect, Event, Next, Report } from './events';
import type { Kept } from './kept';
import { depositMessage, outcomeMessage, quoteMessage, type Message } from './messages';
import { isFinal, isNotSimulated, isPassing, mayRenewAfter, meaningOf, NoAnswer, Refusal } from './refusals';
import {
  entryOf,
  estimatesOf,
  isOutdated,
  isRenewing,
  isSimulated,
  lastOf,
  mayPay,
  pairOf,
  priceAt,
  secondsLeft,
  serverTime,
  sessionOf,
  sidesOf,
  stepOf,
  type Ended,
  type Follow,
  type Host,
  type Live,
  type Now,
  type Place,
  type Price,
  type Running,
  type State,
  type Task,
  type Token,
  type Waiting,
} from './state';
import {
  MAX_IDLE_RENEWALS,
  MIN_RESTART_MS,
  MIN_TOKEN_LIFE_MS,
  QUIET_FAILURES,
  RENEW_BEFORE_MS,
  RETRY_PRICE_MS,
} from './steps';

/** What an event has led to so far. The functions below take a turn further, and keep nothing between two turns. */
interface Turn<S extends State = State> {
  state: S;
  readonly effects: Effect[];
  readonly now: Now;
}
type LiveTurn = Turn<Live>;
type OpenTurn = Turn<Waiting | Live>;

/** What an event does in one kind of state. */
type Handlers<S extends State, E extends Event> = {
  [T in E['type']]: (turn: Turn<S>, event: Extract<E, { type: T }>) => void;
};

/** What a task reports although the flow has ended meanwhile: a payment may have been made. */
const LATE: Event['type'][] = ['session', 'paid', 'not_paid', 'quoted', 'verification', 'deposited'];

/** The whole flow: what an event makes of the state, and what the page has to do. Without clock, network and page. */
export function reduce(state: State, event: Event, now: Now): Next {
  const ended = state.is === 'ended' && LATE.includes(event.type) ? state : null;
  const turn: Turn = { state: ended?.before ?? state, effects: [], now };
  const handlers = {
    ...ALWAYS,
    ...(turn.state.is === 'ended' ? {} : BEFORE_END),
    ...(turn.state.is === 'live' ? WHEN_LIVE : {}),
  } as Partial<Record<Event['type'], (turn: Turn, event: Event) => void>>;
  handlers[event.type]?.(turn, event);
  if (ended) turn.state = { ...ended, before: lastOf(turn.state) };
  whenLive(turn, leaveCancelled);
  whenLive(turn, checkAddress);
  whenLive(turn, askEstimate);
  return turn;
}

type InEveryState =
  Extract<Report, { type: 'token' | 'end' | 'ended' | 'offline' | 'task_ended' }> | Extract<Deed, { type: 'return' }>;
type BeforeTheEnd =
  Extract<Report, { type: 'online' | 'shown_again' | 'loaded' | 'tick' }> | Extract<Deed, { type: 'retry' }>;

const ALWAYS: Handlers<State, InEveryState> = {
  token: (turn, { token, host }) => start(turn, token, host),
  end: (turn, { step, code }) => end(turn, step, code),
  ended: (turn, { session }) => {
    turn.state = { ...lastOf(turn.state), is: 'waiting', retryAt: null };
    load(turn as OpenTurn, { type: 'loaded', session, options: NO_OPTIONS, settles: false, kept: null });
  },
  offline: (turn, { retryAfter }) => goOffline(turn, retryAfter),
  task_ended: (turn, { error }) => finish(turn, error),
  return: leave,
};

const BEFORE_END: Handlers<Waiting | Live, BeforeTheEnd> = {
  online: (turn) => turn.state.isOffline && reconnect(turn),
  shown_again: (turn) => turn.state.token && refresh(turn, 'price'),
  loaded: load,
  tick: (turn, { isVisible }) => {
    if (!isVisible) return;
    startAgain(turn);
    whenLive(turn, tick);
  },
  retry,
};

const WHEN_LIVE: Handlers<Live, Exclude<Event, InEveryState | BeforeTheEnd>> = {
  choose_side: (turn, { side }) => {
    const { options, session, draft } = turn.state;
    set(turn, { draft: draftOf(side, entryOf(options, side), session, draft) });
  },
  read: (turn, { fields }) => read(turn, fields),
  edit: (turn, { fields }) => {
    read(turn, fields);
    set(turn, { trouble: null });
    // A check that could not be made is tried again.
    if (turn.state.check?.isKnown === false) set(turn, { check: null });
  },
  checked: (turn, { address, chain, misfit }) => {
    const { check } = turn.state;
    if (check?.address === address && check.chain === chain) set(turn, { check: { ...check, isKnown: true, misfit } });
  },
  estimated: (turn, { options, ...pair }) =>
    set(turn, { estimates: { ...turn.state.estimates, [pairOf(pair)]: options?.sides ?? [] } }),
  continue: next,
  back,
  pay,
  cancel: (turn) => {
    const { payment } = turn.state.session;
    run(turn, { do: 'cancel', payment: payment?.status === 'processing' ? payment.id : null });
  },
  choose_again: (turn) => {
    dismiss(turn);
    goTo(turn, { step: 'details' });
  },
  answer: (turn, { answers }) => run(turn, { do: 'verify', answers }),
  touch: (turn) => isOutdated(turn.state, turn.now) || set(turn, { idleRenewals: 0 }),
  deposited: (turn, { requestId, txHash }) => {
    const { session, deposit } = turn.state;
    if (requestId !== session.payment?.id || deposit === 'none') return;
    if (txHash === null) return set(turn, { deposit: 'none' });
    set(turn, { deposit: 'returned', sent: requestId });
    pretend(turn);
  },
  session: (turn, { session, settles }) => accept(turn, session, settles),
  polled: (turn, { session }) => polled(turn, session),
  poll_failed: (turn, { error, failures }) => pollFailed(turn, error, failures),
  quoted: (turn, { quote }) => quoted(turn, quote),
  verification: (turn, { task }) => setTask(turn, task),
  paid: (turn, { payment, isOwn }) =>
    set(turn, { unsettled: null, ...(isOwn ? { own: payment, forWallet: payment } : {}) }),
  not_paid: (turn) => set(turn, { unsettled: null }),
};

// Changes of the state.

const whenLive = (turn: Turn, further: (turn: LiveTurn) => void): void => {
  if (turn.state.is === 'live') further(turn as LiveTurn);
};

function set(turn: LiveTurn, change: Partial<Live>): void {
  turn.state = { ...turn.state, ...change };
}

function setCommon(turn: Turn, change: Partial<Pick<Waiting, 'token' | 'isOffline' | 'running'>>): void {
  const { state } = turn;
  turn.state = state.is === 'ended' ? { ...state, before: { ...state.before, ...change } } : { ...state, ...change };
}

const goTo = (turn: LiveTurn, place: Place): void => set(turn, { place });

function setTask(turn: LiveTurn, task: VerificationTask | null): void {
  const { place } = turn.state;
  if (place.step === 'verification') goTo(turn, { ...place, task });
}

function goOffline(turn: Turn, retryAfter: number | null = null): void {
  setCommon(turn, { isOffline: true });
  const { state, now } = turn;
  if (state.is !== 'waiting') return;
  const retryAt = retryAfter === null ? null : now.uptime + Math.max(MIN_RESTART_MS, retryAfter * 1000);
  turn.state = { ...state, retryAt };
}

const post = (turn: Turn, message: Message): unknown => turn.effects.push({ do: 'post', message });

const stepNow = ({ state, now }: Turn) => stepOf(state, now);

// Tasks.

/** Starts a task, unless another one runs. */
function run(turn: OpenTurn, task: Task): void {
  if (turn.state.running) return;
  setCommon(turn, { running: { task, since: turn.now.uptime, isPressed: false } });
  whenLive(turn, (live) => set(live, { trouble: null, ...(task.do === 'pay' ? { unsettled: task.body } : {}) }));
  turn.effects.push({ do: 'run', task });
}

const refresh = (turn: OpenTurn, follow: Follow = 'nothing', because: string | null = null): void =>
  run(turn, turn.state.is === 'live' ? { do: 'refresh', follow, because } : { do: 'load' });

function askPrice(turn: LiveTurn, because: string | null = null): void {
  const { running, draft } = turn.state;
  if (running) return;
  set(turn, { askedAt: turn.now.uptime });
  run(turn, { do: 'quote', body: quoteRequest(draft), because });
}

function askNewPrice(turn: LiveTurn): void {
  goTo(turn, { step: 'price', price: null });
  askPrice(turn);
}

function quoteRequest({ side, asset, network, payment_method, source_asset, source_network }: Draft): QuoteRequest {
  const what = { side, asset, network };
  return side === 'swap' ? { ...what, source_asset, source_network } : { ...what, payment_method };
}

function reconnect(turn: OpenTurn): void {
  if (turn.state.token) refresh(turn, 'payment');
  else turn.effects.push({ do: 'restart' });
}

function finish(turn: Turn, error: Refusal | NoAnswer | null): void {
  const { running } = lastOf(turn.state);
  setCommon(turn, { running: null });
  if (!running || turn.state.is === 'ended') return;
  const { task } = running;
  // A rail that is not the sandbox's sees the money by itself.
  const failure = task.do === 'pretend' && isNotSimulated(error) ? null : error;
  if (failure instanceof NoAnswer) goOffline(turn);
  // What was sent again after a lost answer is never sent a further time without a look at the session.
  else if (failure)
    report(
      turn as OpenTurn,
      failure,
      task.do === 'pay' && task.isRepeated ? { do: 'refresh', follow: 'payment', because: null } : task,
    );
  whenLive(turn, (live) => live.state.running || live.state.token?.isLost || goOn(live, running, failure === null));
}

/** What comes after a task. */
function goOn(turn: LiveTurn, { task, isPressed }: Running, isDone: boolean): void {
  const { unsettled, place, session, host } = turn.state;
  const step = stepNow(turn);
  const isPriced = step === 'price' || step === 'confirm';
  if (task.do === 'quote') goOnWithPrice(turn, task.because, isPressed);
  // The draft of before a reload has come as far as its price.
  if (task.do === 'load' && step === 'price' && !priceAt(place)) askPrice(turn);
  // The link that cancels has promised the way back too.
  if (task.do === 'cancel' && session.status === 'cancelled' && session.cancel_url && !host.isFramed) leave(turn);
  if (task.do === 'refresh' && task.follow === 'price' && isPriced) askPrice(turn, task.because);
  if (task.do === 'refresh' && task.follow === 'payment') {
    if (isDone && unsettled && step === 'confirm') run(turn, { do: 'pay', body: unsettled, isRepeated: true });
    else if (step === 'price' && !priceAt(place)) askPrice(turn);
  }
  if (task.do === 'pretend' && isDone && step === 'instructions') setSent(turn);
  if (task.do === 'verify' && isDone && isHopeless(turn.state)) end(turn, 'unavailable', 'verification_required');
}

/** A new price is here, or was refused. */
function goOnWithPrice(turn: LiveTurn, because: string | null, isPressed: boolean): void {
  const { trouble, place, session } = turn.state;
  // The customer has left the price while it was renewed.
  const isUnasked = place.step === 'verification' && !place.task && session.verification.status === 'pending';
  if (isUnasked) return run(turn, { do: 'verify', answers: null });
  const price = stepNow(turn) === 'confirm' ? priceAt(place) : null;
  if (!price || trouble) return;
  if (isPressed && !price.before) return pay(turn);
  if (!because) return;
  // No figure has changed, so the price cannot have run out: another page of the session has asked for one.
  const text = because === 'quote_superseded' && !price.before ? 'otherWindow' : 'ranOut';
  set(turn, { trouble: { code: because, text, requestId: '', retryAt: null, task: null } });
}

/** True without a provider: nothing can ever approve the customer. */
const isHopeless = ({ session, place }: Live): boolean =>
  session.verification.status === 'required' &&
  place.step === 'verification' &&
  place.task !== null &&
  !place.task.url &&
  !place.task.form;

/** Turns a refusal into a screen, an alert or a further look at the session. */
function report(turn: OpenTurn, error: Refusal, task: Task | null): void {
  const { state, now } = turn;
  const { code, requestId } = error;
  const meaning = meaningOf(error);
  if (meaning === 'token') return loseToken(turn, state.token);
  // As long as nothing is shown, nothing can carry an alert.
  if (meaning === 'unavailable' || (state.is === 'waiting' && !isPassing(error))) return end(turn, 'unavailable', code);
  if (state.is === 'waiting') return goOffline(turn, error.retryAfter);
  if (meaning === 'quote') return refresh(turn, 'price', code);
  if (typeof meaning === 'object') {
    const retryAt = error.status === 429 ? now.uptime + error.retryAfter * 1000 : null;
    return set(turn as LiveTurn, { trouble: { code, text: meaning.alert, requestId, retryAt, task } });
  }
  if (meaning === 'state') turn.effects.push({ do: 'forget_intent', session: state.session.id });
  else goTo(turn as LiveTurn, { step: 'verification', price: priceAt(state.place), task: null });
  refresh(turn);
}

/** Starts again after the gate was busy. */
function startAgain(turn: OpenTurn): void {
  const { state, now } = turn;
  if (state.is !== 'waiting' || state.running || state.retryAt === null || now.uptime < state.retryAt) return;
  // The next answer sets another time, or ends the wait.
  turn.state = { ...state, retryAt: Infinity };
  reconnect(turn);
}

/** A token that died soon after its start is not renewed: the next one would die too. */
function loseToken(turn: OpenTurn, token: Token | null): void {
  if (token) setCommon(turn, { token: { ...token, isLost: true } });
  turn.effects.push({ do: 'lose_token', mayRenew: !token || turn.now.uptime - token.since >= MIN_TOKEN_LIFE_MS });
}

// The start and the end.

function start(turn: Turn, value: string, host: Partial<Host> | undefined): void {
  const { state, now } = turn;
  const before = lastOf(state);
  if (state.is === 'ended' && (state.code !== 'unauthorized' || value === before.token?.value)) return;
  turn.state = { ...before, host: { ...before.host, ...host }, token: { value, since: now.uptime, isLost: false } };
  refresh(turn as OpenTurn);
}

function end(turn: Turn, step: Ended['step'], code: string): void {
  turn.state = { is: 'ended', step, code, before: lastOf(turn.state) };
  if (step === 'unavailable') post(turn, { type: 'unavailable', reason: code });
}

/** What is on offer for a session that has ended. */
const NO_OPTIONS: Options = { object: 'embed_options', country_code: null, sides: [] };

function load(turn: OpenTurn, { options, session, settles, kept }: Extract<Report, { type: 'loaded' }>): void {
  const { state } = turn;
  const sides = sidesOf(options, session, state.host);
  const [first] = sides;
  const { payment } = session;
  const side = sides.find((one) => one === (kept?.draft ?? payment)?.side) ?? payment?.side ?? first ?? 'on_ramp';
  const entry = entryOf(options, side);
  const draft = draftOf(side, entry, session, null);
  turn.state = {
    ...state,
    is: 'live',
    session,
    options,
    estimates: {},
    offset: 0,
    draft: restored(payment ? adopt(draft, payment, entry) : draft, kept, session, entry),
    check: null,
    place: { step: 'choose' },
    dismissed: kept?.dismissed ?? null,
    announced: '',
    own: null,
    forWallet: null,
    unsettled: null,
    sent: kept?.sent ?? null,
    looksAgain: false,
    deposit: 'none',
    trouble: null,
    cancelled: 'no',
    idleRenewals: 0,
    askedAt: -Infinity,
  };
  accept(turn as LiveTurn, session, settles);
  goTo(turn as LiveTurn, keptPlace(turn.state, kept));
  if (!first && session.status === 'open' && !payment) end(turn, 'unavailable', 'no_options');
}

/** Where the customer was before a reload. A price needs all details, and those of an account are not kept. */
function keptPlace(live: Live, kept: Kept | null): Place {
  if (kept?.step !== 'price') return { step: kept?.step ?? 'choose' };
  return isComplete(live) ? { step: 'price', price: null } : { step: 'details' };
}

const isComplete = (live: Live): boolean =>
  Object.keys(faultsOf(live, entryOf(live.options, live.draft.side))).length === 0;

/** A top-level checkout goes back to the shop. A frame leaves that to the page around it. */
function leave(turn: Turn): void {
  const { state, effects } = turn;
  const session = sessionOf(state);
  const step = stepNow(turn);
  const isDone = step === 'done';
  const address = returnAddress(session, isDone);
  if (lastOf(state).host.isFramed)
    post(turn, { type: 'close', reason: isDone ? 'completed' : session?.status === 'cancelled' ? 'cancelled' : step });
  else if (address) effects.push({ do: 'go', address });
}

// What the customer chooses.

function read(turn: LiveTurn, fields: Partial<Draft>): void {
  const { draft, session, options } = turn.state;
  set(turn, { draft: typed(draft, fields, session, entryOf(options, draft.side)) });
}

/** Has the address checked that the customer has typed. */
function checkAddress(turn: LiveTurn): void {
  const { state, effects } = turn;
  const entry = entryOf(state.options, state.draft.side);
  const wanted = addressOf(state, entry);
  if (!wanted || state.place.step !== 'details' || checkOf(state, entry)) return;
  set(turn, { check: { address: wanted.address, chain: wanted.network.chain, isKnown: false, misfit: null } });
  effects.push({ do: 'check', ...wanted, others: entry?.assets.flatMap((one) => one.networks) ?? [] });
}

/** Asks once for the examples of a pair that the details show. A swap has none. */
function askEstimate(turn: LiveTurn): void {
  const { state, effects } = turn;
  const { side, asset, network } = state.draft;
  if (side === 'swap' || !network || state.place.step !== 'details' || estimatesOf(state) !== undefined) return;
  set(turn, { estimates: { ...state.estimates, [pairOf(state.draft)]: null } });
  effects.push({ do: 'estimate', asset, network });
}

function next(turn: LiveTurn): void {
  if (turn.state.running && !isRenewing(turn.state, turn.now)) return;
  set(turn, { trouble: null, cancelled: 'no' });
  switch (stepNow(turn)) {
    case 'choose':
      return goTo(turn, { step: 'details' });
    case 'details':
      return askNewPrice(turn);
    case 'price':
      return leavePrice(turn, priceAt(turn.state.place));
    case 'verification':
      return run(turn, { do: 'verify', answers: null });
    case 'instructions':
      return pretend(turn) ? undefined : setSent(turn);
    default:
  }
}

function leavePrice(turn: LiveTurn, known: Price | null): void {
  const { status } = turn.state.session.verification;
  const price = known && { ...known, before: null };
  goTo(turn, { step: 'price', price });
  if (!price || secondsLeft(turn.state, turn.now) === 0) return askPrice(turn);
  if (!['required', 'pending', 'rejected'].includes(status)) return goTo(turn, { step: 'confirm', price });
  goTo(turn, { step: 'verification', price, task: null });
  if (status === 'pending') run(turn, { do: 'verify', answers: null });
}

function back(turn: LiveTurn): void {
  const { place, running } = turn.state;
  if (stepNow(turn) === 'progress') return set(turn, { looksAgain: true });
  if (running) press(turn, running, false);
  set(turn, { trouble: null });
  if (place.step === 'price') return goTo(turn, { step: 'details' });
  if (!('price' in place)) return goTo(turn, { step: 'choose' });
  goTo(turn, { step: 'price', price: place.price });
  if (secondsLeft(turn.state, turn.now) === 0) askPrice(turn);
}

// The payment.

/** Pays once: the running task stops a double click, the key covers reloads and lost answers, the server covers other tabs. */
function pay(turn: LiveTurn): void {
  const { state, now, effects } = turn;
  const { place, running } = state;
  if ((running && !isRenewing(state, now)) || place.step !== 'confirm') return;
  if (secondsLeft(state, now) === 0) return askPrice(turn);
  if (!mayPay(state, now)) return void effects.push({ do: 'focus_change' });
  const body = paymentRequest(state, place.price.quote);
  goTo(turn, { ...place, price: { ...place.price, before: null } });
  if (running) return press(turn, running, true);
  run(turn, { do: 'pay', body, isRepeated: false });
}

const press = (turn: LiveTurn, running: Running, isPressed: boolean): void =>
  setCommon(turn, { running: { ...running, isPressed } });

function paymentRequest({ draft, session, options }: Live, { id: quote_id }: Quote): PaymentRequest {
  if (draft.side === 'off_ramp')
    return { quote_id, payout: payoutOf(accountOf(draft, entryOf(options, draft.side)), draft) };
  return session.wallet_address ? { quote_id } : { quote_id, wallet_address: draft.wallet_address };
}

/** Tells the sandbox's rail that the money was sent. Returns false if the payment has another rail, which sees the money by itself. */
function pretend(turn: LiveTurn): boolean {
  const { session } = turn.state;
  if (session.payment?.status !== 'processing' || !isSimulated(session)) return false;
  run(turn, { do: 'pretend', payment: session.payment.id });
  return true;
}

/** The customer says that the money was sent. */
const setSent = (turn: LiveTurn): void =>
  set(turn, { sent: turn.state.session.payment?.id ?? null, looksAgain: false });

/** Leaves a payment that failed or was cancelled. */
function dismiss(turn: LiveTurn): void {
  const dismissed = turn.state.session.payment?.id ?? null;
  set(turn, { dismissed, sent: null, looksAgain: false, deposit: 'none', trouble: null });
}

/** Shows a fresh price. A page that was reloaded has forgotten the address, so it asks for the details first. */
function startOver(turn: LiveTurn): void {
  dismiss(turn);
  if (isComplete(turn.state)) askNewPrice(turn);
  else goTo(turn, { step: 'details' });
}

/** The call that brought the cancelled payment has to end first. */
function leaveCancelled(turn: LiveTurn): void {
  if (turn.state.cancelled !== 'leaving' || turn.state.running) return;
  set(turn, { cancelled: 'left' });
  startOver(turn);
}

// What the session says.

/** Takes what the gate says about the session. */
function accept(turn: LiveTurn, session: Session, settles: boolean): void {
  const { state, now } = turn;
  // A call that was refused before may mean another payment now.
  if (session.payment?.status !== state.session.payment?.status) set(turn, { trouble: null });
  set(turn, { session, offset: Date.parse(session.server_time) - now.clock, isOffline: false });
  if (settles) set(turn, { unsettled: null });
  followPayment(turn, session);
  followVerification(turn, session);
}

function followPayment(turn: LiveTurn, { payment, status, id }: Session): void {
  if (!payment) return;
  if (payment.status === 'cancelled' && payment.id !== turn.state.dismissed && status === 'open') {
    dismiss(turn);
    set(turn, { cancelled: 'leaving' });
  }
  // The partner's page hears once how a payment ended.
  const announced = payment.id + payment.status;
  const message = outcomeMessage(payment, id);
  if (message && announced !== turn.state.announced) post(turn, message);
  set(turn, { announced });
  // A payment of an earlier page or of another tab may have been sent already, so the wallet is not asked for it.
  const { address, memo } = payment.instructions ?? {};
  const { host, forWallet } = turn.state;
  const isSending = payment.status === 'processing' && payment.side !== 'on_ramp' && address;
  const canDeposit = host.canDeposit && (host.canDepositMemo || !memo);
  if (isSending && canDeposit && payment.id === forWallet) {
    set(turn, { forWallet: null, deposit: 'asked' });
    post(turn, depositMessage(payment));
  }
}

function followVerification(turn: LiveTurn, { verification: { status } }: Session): void {
  const { place } = turn.state;
  if (place.step !== 'verification' || (status !== 'approved' && status !== 'not_required')) return;
  goTo(turn, place.price ? { step: 'confirm', price: place.price } : { step: 'price', price: null });
}

const isPaying = ({ running }: Live): boolean => running?.task.do === 'pay';

function polled(turn: LiveTurn, session: Session): void {
  const { state, effects } = turn;
  // The answer of the payment says whose payment the session shows.
  if (state.unsettled && !state.running) reconnect(turn);
  else if (!isPaying(state)) effects.push({ do: 'take', session });
}

function pollFailed(turn: LiveTurn, error: Refusal | NoAnswer, failures: number): void {
  if (error instanceof NoAnswer) {
    if (failures > QUIET_FAILURES && !isPaying(turn.state)) goOffline(turn);
  } else if (isFinal(error)) report(turn, error, null);
}

// The price.

function quoted(turn: LiveTurn, quote: Quote): void {
  const {
    now,
    state: { place },
  } = turn;
  // A clock that was set meanwhile would renew a fresh price for ever.
  set(turn, { offset: Date.parse(quote.created_at) - now.clock });
  post(turn, quoteMessage(quote));
  if (!('price' in place)) return;
  const old = place.price;
  const isChanged = old && JSON.stringify(priceOf(old.quote)) !== JSON.stringify(priceOf(quote));
  const fresh = { quote, before: null, changedAt: -Infinity };
  goTo(turn, {
    ...place,
    price: isChanged ? { quote, before: old.quote, changedAt: now.uptime } : { ...fresh, ...old, quote },
  });
}

/** Looks at the age of the price, and at a call that waits for its repetition. */
function tick(turn: LiveTurn): void {
  const {
    state: { trouble, running, isOffline, idleRenewals, askedAt, place },
    now,
  } = turn;
  if (running) return;
  if (trouble?.retryAt != null && !isOffline) {
    if (trouble.task && now.uptime >= trouble.retryAt) run(turn, trouble.task);
    return;
  }
  const step = stepNow(turn);
  const price = priceAt(place);
  if (
    !price ||
    (step !== 'price' && step !== 'confirm') ||
    !mayRenewAfter(trouble?.code) ||
    idleRenewals >= MAX_IDLE_RENEWALS
  )
    return;
  const left = Date.parse(price.quote.expires_at) - serverTime(turn.state, now);
  const hasRested = !trouble || trouble.code.startsWith('quote_') || now.uptime - askedAt >= RETRY_PRICE_MS;
  if (left > RENEW_BEFORE_MS || !hasRested) return;
  set(turn, { idleRenewals: idleRenewals + 1 });
  askPrice(turn);
}

function retry(turn: OpenTurn): void {
  if (turn.state.isOffline) return reconnect(turn);
  if (turn.state.running) return;
  whenLive(turn, (live) => {
    if (stepNow(live) === 'failed') return startOver(live);
    set(live, { idleRenewals: 0 });
    const task = live.state.trouble?.task;
    return task ? run(live, task) : askPrice(live);
  });
}
