// Plays the gate for tests and for work on the widget: the widget API and the bootstrap from memory, and the files of
// dist. It listens on the loopback address alone, plays one session at a time, and checks no signature.

import { EventEmitter, once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ASSETS, CARD, FORM, SEPA, SWAP_TIME } from './catalogue.mjs';
import { driftOf, FAILURES, instructionsOf, LOST, SLOW, VERIFICATIONS } from './sandbox.mjs';
import { scanOf } from './scan.mjs';
import { listen, send, sendFile } from './serving.mjs';

const ERROR_TYPES = { 401: 'unauthorized', 403: 'forbidden', 404: 'not_found', 409: 'conflict', 429: 'rate_limited' };
const HOUR_MS = 3_600_000;

const SIDES = ['on_ramp', 'off_ramp', 'swap'];
const BRANDING_FIELDS = ['object', 'logo_url', 'primary_color', 'secondary_color', 'accent_color', 'brand_name'];
const MERCHANT_FIELDS = ['legal_name', 'support_url', 'terms_url', 'privacy_url'];
const INDICATIVE_FIELDS = ['asset', 'payment_method', 'crypto_amount', 'fiat_amount', 'exchange_rate', 'fees'];
const PRICE_FIELDS = ['side', 'network', 'source_asset', 'source_network', 'source_amount', ...INDICATIVE_FIELDS];

/** These fields of an object, null where it has none. */
const pick = (from, ...names) => Object.fromEntries(names.map((name) => [name, from[name] ?? null]));
/** The time this many milliseconds from now. */
const instant = (milliseconds = 0) => new Date(Date.now() + milliseconds).toISOString();

/** Waits for the emitter's next `change`, or until the time is over. */
export function nextChange(emitter, seconds) {
  return Promise.race([once(emitter, 'change'), delay(seconds * 1000, undefined, { ref: false })]);
}

/** The body of every error. */
export function envelope(code, message, statusCode) {
  const type = ERROR_TYPES[statusCode] ?? (statusCode < 500 ? 'invalid_request' : 'server_error');
  return { type, code, message, request_id: 'req_simulation', doc_url: null, statusCode };
}

class Refused extends Error {
  constructor(status, code) {
    super(`The simulation refuses: ${code}.`);
    this.body = envelope(code, this.message, status);
  }
}

function refuseIf(condition, status, code) {
  if (condition) throw new Refused(status, code);
}

/** One session and everything that belongs to it. A test may change each field, and announces it with `changed`. */
class Simulation extends EventEmitter {
  quoteSeconds = 60;
  /** The time until a payment or a verification is decided. Null leaves the decision to the test. */
  holdMs = 700;
  /** What verifies the user: `url`, `form`, `none`, or null for the sandbox. */
  verifyBy = null;
  verifiedAs = 'approved';
  form = FORM;
  methods = [SEPA];
  instructions = null;
  /** True for the sandbox's rail, which gives test instructions and takes what somebody pretends. */
  isSandbox = false;
  /** Of the gate and of the widget. */
  origin = '';
  /** A factor of all prices. */
  rate = 1;
  /** Why there is nothing to offer, or null. */
  unavailable = null;
  /** True after the gate has ended all tokens of the session. */
  dead = false;
  /** The next refusals of calls, such as `{ 'POST /quotes': [[409, 'rate_unavailable']] }`. */
  refusals = {};
  /** How often each call was made, such as `{ 'GET /session': 1 }`. */
  counts = {};
  version = 1;
  /** The number of quotes so far. `quote` is the newest. */
  quotes = 0;
  quote = null;
  payments = [];
  /** The responses to payments by idempotency key. */
  keys = new Map();
  session = {
    object: 'embed_session',
    id: 'gs_simulation',
    mode: 'test',
    status: 'open',
    amount: '100.00',
    currency: 'EUR',
    ...pick({}, 'flow', 'target_token', 'target_network', 'wallet_address', 'payment'),
    expires_at: instant(HOUR_MS),
  };

  /** Each setting is a field of the simulation or of the session. */
  constructor({ branding, merchant, returnUrl, ...settings }) {
    super();
    const { session } = this;
    session.return_url = returnUrl;
    session.cancel_url = returnUrl;
    for (const [name, value] of Object.entries(settings)) (name in this ? this : session)[name] = value;
    this.cents = session.amount.split('.')[1];
    session.verification = { status: VERIFICATIONS[this.cents] ? 'required' : 'not_required', reason: null };
    session.branding = pick({ object: 'branding', brand_name: 'North Shop', ...branding }, ...BRANDING_FIELDS);
    session.merchant = pick({ ...merchant }, ...MERCHANT_FIELDS);
  }

  changed() {
    this.version += 1;
    this.emit('change');
  }

  view() {
    // A test may set the time of the server.
    const version = this.version.toString(16).padStart(16, '0');
    return { server_time: instant(), ...this.session, payment: this.show(this.session.payment), version };
  }

  async read(query) {
    const after = query.get('after');
    refuseIf(after !== null && !/^[0-9a-f]{16}$/.test(after), 400, 'invalid_request');
    if (after === this.view().version) await nextChange(this, Number(query.get('wait')));
    return this.view();
  }

  /** The response to a bootstrap. Without a client secret, the token belongs to no session. */
  embedToken(changes = {}, session = this.session) {
    return {
      object: 'embed_token',
      embed_token: 'header.claims.signature',
      expires_at: instant(HOUR_MS),
      partner_id: 'demo',
      ...pick(this.session, 'mode', 'branding'),
      session_id: session.id ?? null,
      ...pick(session, 'amount', 'currency', 'target_token', 'target_network', 'return_url', 'flow'),
      available: !this.unavailable,
      unavailable_reason: this.unavailable,
      ...changes,
    };
  }

  /** How the session ended. */
  outcome() {
    const { status, payment, id } = this.session;
    refuseIf(status === 'open', 409, 'session_open');
    return {
      object: 'embed_outcome',
      session_id: id,
      ...pick(
        this.session,
        'mode',
        'status',
        'branding',
        'merchant',
        'amount',
        'currency',
        'flow',
        'return_url',
        'cancel_url',
      ),
      ended_at: instant(),
      payment_id: payment?.id ?? null,
      receipt: status === 'completed' && payment ? this.receipt(payment) : null,
    };
  }

  receipt(payment) {
    const { wallet_address: wallet = null } = this.paid;
    return {
      reference: payment.tx_refid,
      ...pick(payment, ...PRICE_FIELDS, 'created_at'),
      currency: this.session.currency,
      wallet_address: wallet && `${wallet.slice(0, 6)}…${wallet.slice(-4)}`,
    };
  }

  /** The prices are for a pair, or for the first network of each asset. */
  options(query) {
    const { flow } = this.session;
    const [asset, network] = [query.get('asset'), query.get('network')];
    const sides = (flow ? [flow] : SIDES).map((side) => this.offer(side, asset && { asset, network }));
    return { object: 'embed_options', country_code: 'DE', sides };
  }

  offer(side, pair) {
    const methods = this.methodsOf(side);
    const assets = Object.entries(ASSETS).map(([symbol, { name, chains, contracts }]) => {
      const networks = Object.entries(chains).map(([chain, evm]) => {
        return { chain, evm, contract_address: contracts[chain] ?? null };
      });
      return { symbol, name, networks, limits: null };
    });
    const pairs = pair
      ? [pair]
      : assets.map(({ symbol: asset, networks: [{ chain: network }] }) => ({ asset, network }));
    const indicative = pairs.flatMap(({ asset, network }) =>
      methods.map(({ id }) => pick(this.price({ side, asset, network, payment_method: id }), ...INDICATIVE_FIELDS)),
    );
    return { side, assets, methods, usual_time: side === 'swap' ? SWAP_TIME : null, indicative };
  }

  /** A sale is paid to an account, so it has only the methods with one. */
  methodsOf(side) {
    if (side === 'on_ramp') return this.methods.map((method) => ({ ...method, account: null }));
    return side === 'off_ramp' ? this.methods.filter(({ account }) => account) : [];
  }

  checkOpen() {
    refuseIf(this.session.payment?.status === 'processing', 409, 'session_payment_in_progress');
    refuseIf(this.session.status !== 'open', 409, 'session_not_open');
  }

  checkOrder({ side, asset, network, payment_method, source_asset, source_network }) {
    const isSwap = side === 'swap';
    const source = [source_asset, source_network];
    refuseIf(!SIDES.includes(side), 400, 'invalid_request');
    refuseIf(isSwap ? payment_method || !source.every(Boolean) : source.some(Boolean), 400, 'invalid_request');
    for (const [symbol, chain] of isSwap ? [[asset, network], source] : [[asset, network]]) {
      refuseIf(!ASSETS[symbol], 400, 'unknown_currency');
      refuseIf(!(chain in ASSETS[symbol].chains), 400, 'network_not_supported');
    }
    const isOffered = isSwap ? source_asset !== asset : this.methodsOf(side).some(({ id }) => id === payment_method);
    refuseIf(!isOffered, 400, 'invalid_request');
    refuseIf(side !== (this.session.flow ?? side), 409, 'quote_session_mismatch');
  }

  createQuote(order) {
    refuseIf('amount' in order, 400, 'amount_not_allowed');
    this.checkOpen();
    this.checkOrder(order);
    this.quotes += 1;
    const times = { created_at: instant(), expires_at: instant(this.quoteSeconds * 1000), consumed_at: null };
    const state = { id: `quote_${this.quotes}`, object: 'signed_quote', status: 'active', signature: '0'.repeat(64) };
    this.quote = { ...state, ...times, currency: this.session.currency, ...this.price(order) };
    return this.quote;
  }

  /** The price of an order: the fields that a quote and its payment share. */
  price({ side, asset, network, payment_method = null, source_asset, source_network }) {
    const { amount: fiat_amount, currency } = this.session;
    const service = (fiat_amount * (payment_method === CARD.id ? 0.025 : 0.005)).toFixed(2);
    const isSale = side === 'off_ramp';
    const fees = { total: '', service, network: isSale ? '0.00' : '0.05', currency };
    fees.total = (Number(service) + Number(fees.network)).toFixed(2);
    const euro = ASSETS[asset].euro * this.rate * (side === 'on_ramp' ? driftOf(this.cents, this.quotes) : 1);
    const source = ASSETS[source_asset] ?? { euro: 1 };
    const rate = isSale ? euro : source.euro / euro;
    const exchanged = Number(fiat_amount) + (isSale ? 1 : -1) * fees.total;
    const sent = { source_asset, source_network, source_amount: (fiat_amount / source.euro).toFixed(source.digits) };
    const crypto_amount = (exchanged / euro).toFixed(ASSETS[asset].digits);
    const exchange_rate = String(Number(rate.toFixed(8)));
    const order = { side, asset, network, payment_method, ...(side === 'swap' && sent) };
    return { ...order, fiat_amount, crypto_amount, exchange_rate, fees };
  }

  verify({ answers }) {
    refuseIf(this.session.status !== 'open', 409, 'session_not_open');
    const asks = (by) => this.verifyBy === by && this.session.verification.status === 'pending';
    if (answers) {
      refuseIf(!asks('form'), 400, 'verification_form_not_asked');
      this.answers = answers;
      this.decide(this.verifiedAs);
    } else if (this.session.verification.status === 'required' && this.verifyBy !== 'none') {
      this.decide(this.verifyBy ? 'pending' : VERIFICATIONS[this.cents]);
      if (asks(null) && this.cents === '63') this.later(() => this.decide('approved'));
    }
    return this.verificationTask();
  }

  verificationTask() {
    const { verification } = this.session;
    const asks = (by) => this.verifyBy === by && verification.status === 'pending';
    const ownUrl = asks(null) && this.cents === '64' ? `${this.origin}/sandbox/identity` : null;
    const url = asks('url') ? 'https://verify.example/start' : ownUrl;
    const form = asks('form') ? this.form : null;
    return { object: 'embed_verification', ...verification, url, form, expires_at: null };
  }

  decide(status, reason = null) {
    this.session.verification = { status, reason };
    this.changed();
  }

  later(run) {
    if (this.holdMs !== null) setTimeout(run, this.holdMs).unref();
  }

  pay(body, key) {
    refuseIf(!key, 400, 'idempotency_key_required');
    // The gate replays the first response to a key, whatever the body says.
    if (this.keys.has(key)) return this.keys.get(key);
    this.checkPayment(body);
    this.paid = body;
    Object.assign(this.quote, { status: 'consumed', consumed_at: instant() });
    const id = `pay_${this.payments.length + 1}`;
    const payment = {
      object: 'embed_payment',
      id,
      status: 'processing',
      ...pick(this.quote, ...PRICE_FIELDS),
      ...pick({}, 'received', 'failure_code', 'failure_reason', 'failure_message'),
      instructions: this.instructions ?? this.instruct(id),
      pay_until: instant(72 * HOUR_MS),
      tx_refid: 'tx_simulation_0001',
      created_at: instant(),
    };
    this.payments.push(payment);
    this.keys.set(key, structuredClone(this.show(payment)));
    this.report({}, { payment });
    if (!this.isSandbox || !LOST.includes(this.cents)) this.later(() => this.finish(payment));
    return this.show(payment);
  }

  /** A payment as the widget reads it: with what the customer scans for the rest. */
  show(payment) {
    if (payment?.status !== 'processing' || !payment.instructions) return payment;
    const { amount, ...due } = this.due(payment);
    const digits = ASSETS[due.asset]?.digits ?? 2;
    const rest = (amount - (payment.received?.amount ?? 0)).toFixed(digits);
    const contract = ASSETS[due.asset]?.contracts[due.network];
    const scan = rest > 0 ? scanOf(payment.instructions, { ...due, amount: rest, contract }) : undefined;
    return { ...payment, instructions: { ...payment.instructions, ...(scan && { scan }) } };
  }

  checkPayment({ quote_id, wallet_address, payout }) {
    const { wallet_address: bound, verification } = this.session;
    const { quote } = this;
    const isSale = quote?.side === 'off_ramp';
    this.checkOpen();
    refuseIf(!/^quote_[1-9]\d*$/.test(quote_id), 400, 'invalid_request');
    refuseIf(Number(quote_id.slice('quote_'.length)) > this.quotes, 404, 'resource_not_found');
    refuseIf(quote_id !== quote.id, 409, 'quote_superseded');
    refuseIf(quote.consumed_at, 409, 'quote_consumed');
    refuseIf(Date.parse(quote.expires_at) <= Date.now(), 409, 'quote_expired');
    refuseIf(isSale ? !payout || wallet_address : payout || !(wallet_address ?? bound), 400, 'invalid_request');
    refuseIf(wallet_address && wallet_address !== (bound ?? wallet_address), 409, 'wallet_mismatch');
    refuseIf(verification.status === 'rejected', 403, 'verification_rejected');
    refuseIf(!['not_required', 'approved'].includes(verification.status), 403, 'verification_required');
  }

  /** What the customer sends for a quote or a payment. */
  due({ side, asset, network, crypto_amount, source_asset, source_network, source_amount, fiat_amount }) {
    if (side === 'on_ramp') return { amount: fiat_amount, currency: this.session.currency, asset: null, network: null };
    if (side === 'off_ramp') return { amount: crypto_amount, currency: null, asset, network };
    return { amount: source_amount, currency: null, asset: source_asset, network: source_network };
  }

  instruct(id) {
    const due = this.due(this.quote);
    const { amount, currency, asset, network } = due;
    if (this.isSandbox) return instructionsOf({ ...this.quote, id }, due, this.origin);
    if (asset) return { address: '0x52908400098527886E0F7030069857D2E4169EE7', network, asset, amount };
    const account = { account_holder: 'Example Payments', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };
    return { type: 'bank_transfer', ...account, reference: 'PS7K42QX9M', amount, currency };
  }

  /** Changes what the gate says about the payment and about the session. */
  report(payment, session = {}) {
    Object.assign(this.session, session);
    Object.assign(this.session.payment, payment);
    this.changed();
  }

  /** Lets a part of the payment arrive, or more than it asks for. */
  receive(amount) {
    const { amount: required, ...unit } = this.due(this.session.payment);
    this.report({ received: { amount, required, ...unit, at: instant() } });
  }

  /** Ends a payment as the session's amount says. */
  finish(payment = this.session.payment) {
    if (payment.status !== 'processing') return;
    const failure_code = (this.payments.length === 1 && FAILURES[this.cents]) || null;
    Object.assign(payment, { status: failure_code ? 'failed' : 'completed', failure_code });
    this.report({}, failure_code ? {} : { status: 'completed' });
  }

  findPayment(id) {
    const payment = this.payments.find((one) => one.id === id);
    refuseIf(!payment, 404, 'resource_not_found');
    return payment;
  }

  /** Somebody pretends to the sandbox's rail that the money was sent, or declines the payment. An end stays as it is. */
  pretendPayment(id, what) {
    refuseIf(this.session.mode === 'live', 403, 'live_keys_not_allowed');
    const payment = this.findPayment(id);
    refuseIf(payment.instructions.type !== 'sandbox', 409, 'not_simulated');
    if (what === 'send' && !SLOW.includes(this.cents)) this.finish(payment);
    if (what === 'decline' && payment.status === 'processing')
      this.report({ status: 'failed', failure_code: 'provider_declined' });
    return payment;
  }

  /** Somebody decides on the page of the sandbox. An end stays as it is. */
  pretendVerification(what) {
    const { status } = this.session.verification;
    refuseIf(this.session.mode === 'live', 403, 'live_keys_not_allowed');
    refuseIf(['not_required', 'required'].includes(status), 404, 'resource_not_found');
    refuseIf(this.verifyBy !== null, 409, 'not_simulated');
    if (status === 'pending') this.decide(what === 'approve' ? 'approved' : 'rejected');
    return this.verificationTask();
  }

  cancelPayment(id) {
    const payment = this.findPayment(id);
    refuseIf(payment.status !== 'processing', 409, 'payment_not_cancellable');
    this.report({ status: 'cancelled' });
    return payment;
  }

  cancel() {
    this.checkOpen();
    this.session.status = 'cancelled';
    this.changed();
    return this.view();
  }

  /** Counts a call, and refuses it if the test has said so. */
  enter(call) {
    this.counts[call] = (this.counts[call] ?? 0) + 1;
    const refusal = this.refusals[call]?.shift();
    if (refusal) throw new Refused(...refusal);
  }

  /** The response to a call of the widget: status and body. */
  async answer(call, query, body, headers) {
    refuseIf(this.dead || !headers['x-embed-token'], 401, 'unauthorized');
    if (call === 'GET /session') return [200, await this.read(query)];
    if (call === 'GET /options') return [200, this.options(query)];
    if (call === 'POST /quotes') return [201, this.createQuote(body)];
    if (call === 'POST /verification') return [200, this.verify(body)];
    if (call === 'POST /payments') return [201, this.pay(body, headers['idempotency-key'])];
    if (call === 'POST /cancel') return [200, this.cancel()];
    const [, id] = /^POST \/payments\/([^/]+)\/cancel$/.exec(call) ?? [];
    if (id) return [200, this.cancelPayment(id)];
    const [, paid, pretended] = /^POST \/test_helpers\/payments\/([^/]+)\/(send|decline)$/.exec(call) ?? [];
    if (paid) return [200, this.pretendPayment(paid, pretended)];
    const [, decided] = /^POST \/test_helpers\/verification\/(approve|reject)$/.exec(call) ?? [];
    refuseIf(!decided, 404, 'route_not_found');
    return [200, this.pretendVerification(decided)];
  }
}

/** The JSON of a request, or undefined if its body is empty. */
export async function readBody(request) {
  const content = await text(request);
  if (!content) return undefined;
  refuseIf(request.headers['content-type'] !== 'application/json', 415, 'unsupported_media_type');
  try {
    return JSON.parse(content);
  } catch {
    throw new Refused(400, 'invalid_json');
  }
}

/** A gate and the widget's origin on one address, with one partner. */
class Gate {
  /** The allowed domains of the partner. */
  origins = [];
  /** True while the gate refuses the partner's key, and the preflights of its pages. */
  suspended = false;
  /** Replaces the response to a bootstrap: returns status and body, or undefined for the usual response. */
  respond = () => undefined;
  /** The bootstraps so far. */
  requests = [];

  /** Begins a session with these settings. */
  use(settings = {}) {
    const { origin } = this;
    this.simulation = new Simulation({ origin, returnUrl: `${origin}/shop`, ...settings });
  }

  handle(request, response, url) {
    const { pathname } = url;
    if (pathname.startsWith('/v1/embed/')) return this.serveApi(request, response, url);
    if (pathname === '/health') return send(response, 200, { status: 'ok' });
    // The policy also allows pages that `origins` lacks: a test sees that the widget says nothing to them.
    if (pathname === '/embed')
      return this.sendPage(response, 'embed.html', this.origins.join(' '), "'self' http://localhost:*");
    if (pathname === '/checkout') return this.sendPage(response, 'embed.html');
    if (['/sandbox/card', '/sandbox/identity'].includes(pathname)) return this.sendPage(response, 'sandbox.html');
    // Pages of the partner.
    if (['/shop', '/parent'].includes(pathname)) return send(response, 200, '<!doctype html><title>Shop</title>');
    return sendFile(response, pathname, { gate_origin: this.origin, widget_origin: this.origin, mode: 'test' });
  }

  /** Sends a page that no other page may frame, or the widget for the frames of `origins`. */
  sendPage(response, file, origins = '', ancestors = "'none'") {
    const policy = [
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; font-src 'self'",
      `connect-src ${this.origin}; frame-ancestors ${ancestors}; base-uri 'none'; form-action 'none'`,
      "require-trusted-types-for 'script'; trusted-types 'none'",
    ];
    const places = { gate_origin: this.origin, mode: 'test', origins };
    return sendFile(response, file, places, {
      'Content-Security-Policy': policy.join('; '),
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Referrer-Policy': 'no-referrer',
      ...(origins && { 'Cross-Origin-Embedder-Policy': 'credentialless' }),
    });
  }

  async serveApi(request, response, url) {
    const call = `${request.method} ${url.pathname.slice('/v1/embed'.length)}`;
    try {
      const isForPages = ['/bootstrap', '/outcome'].some((path) => url.pathname.endsWith(path));
      if (isForPages && request.method === 'OPTIONS') return this.preflight(request, response);
      this.simulation.enter(call);
      const [status, body] = await (isForPages
        ? this.answerPage(call, request, response, url)
        : this.simulation.answer(call, url.searchParams, (await readBody(request)) ?? {}, request.headers));
      return send(response, status, body);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return send(response, error.body.statusCode, error.body);
    }
  }

  /** Lets a page of the widget or of the partner read the response. Returns whether it is one. */
  admit({ headers: { origin } }, response) {
    const isKnown = [this.origin, ...this.origins].includes(origin);
    response.setHeader('Vary', 'origin');
    if (isKnown) response.setHeader('Access-Control-Allow-Origin', origin);
    return isKnown;
  }

  preflight(request, response) {
    if (!this.suspended && this.admit(request, response)) {
      response.setHeader('Access-Control-Allow-Methods', 'POST');
      response.setHeader('Access-Control-Allow-Headers', 'authorization, content-type');
    }
    return response.writeHead(204).end();
  }

  /** The calls that need no token. */
  async answerPage(call, request, response, { search, searchParams }) {
    const { authorization, origin } = request.headers;
    const isKnown = this.admit(request, response);
    const body = await readBody(request);
    if (call === 'POST /bootstrap') this.requests.push({ authorization, query: search, body });
    const key = authorization?.replace(/^Bearer /, '') ?? searchParams.get('publishable_key');
    refuseIf(!/^pk_test_\w+$/.test(key), 401, 'unauthorized');
    refuseIf(this.suspended, 403, 'organization_suspended');
    refuseIf(!isKnown, 403, 'origin_not_allowed');
    const secret = body?.clientSecret;
    const isOutcome = call === 'POST /outcome';
    const replaced = isOutcome ? undefined : await this.respond(body);
    if (replaced) return replaced;
    const isWrong = secret ? !secret.startsWith('gsec_') : isOutcome || origin === this.origin;
    refuseIf(isWrong, 403, 'client_secret_invalid');
    if (isOutcome) return [200, this.simulation.outcome()];
    refuseIf(secret && this.simulation.session.status !== 'open', 403, 'session_not_open');
    return [200, this.simulation.embedToken({}, secret ? this.simulation.session : {})];
  }
}

export async function start(port) {
  const gate = new Gate();
  const server = await listen((...call) => gate.handle(...call), port);
  Object.assign(gate, server, { origins: [server.origin, server.origin.replace('127.0.0.1', 'localhost')] });
  gate.use();
  return gate;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const gate = await start(Number(process.argv[2] ?? 4031));
  gate.use({ isSandbox: true, holdMs: 30_000 });
  console.log(`${gate.origin}/checkout#publishable_key=pk_test_dev&client_secret=gsec_dev`);
}
