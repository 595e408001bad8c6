// Plays the gate for tests and for work on the widget: the widget API and the bootstrap from memory, and the files of
// dist. It listens on the loopback address alone, plays one session at a time, and checks no signature.

import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const SCRIPT = 'text/javascript; charset=utf-8';
const CONTENT_TYPES = { css: 'text/css; charset=utf-8', html: 'text/html; charset=utf-8', js: SCRIPT, mjs: SCRIPT };
const ERROR_TYPES = { 401: 'unauthorized', 403: 'forbidden', 404: 'not_found', 409: 'conflict', 429: 'rate_limited' };
const HOUR_MS = 3_600_000;

/** The assets on offer: the price of one in euro, for each chain whether it is an EVM chain, and the contracts. */
const ASSETS = {
  USDC: {
    name: 'USD Coin',
    euro: 1 / 1.08178875,
    digits: 6,
    chains: { polygon: true, ethereum: true, solana: false },
    contracts: {
      polygon: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359',
      ethereum: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
      solana: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    },
  },
  BTC: { name: 'Bitcoin', euro: 60_000, digits: 8, chains: { bitcoin: false }, contracts: {} },
};
const SIDES = ['on_ramp', 'off_ramp', 'swap'];
export const SEPA = { id: 'sepa', name: 'SEPA transfer', currency: 'EUR', account: 'iban' };
export const CARD = { id: 'card', name: 'Card', currency: 'EUR', account: null };
const FORM = {
  type: 'object',
  properties: {
    full_name: { type: 'string', title: 'Full name' },
    born_on: { type: 'string', title: 'Date of birth', format: 'date' },
    residence: { type: 'string', title: 'Country', enum: ['DE', 'FR'] },
  },
  required: ['full_name', 'born_on', 'residence'],
};
/** As in the sandbox, the cents of an amount choose how its verification ends, and how its first payment fails. */
const VERIFICATIONS = { 61: 'approved', 62: 'rejected', 63: 'pending' };
const FAILURES = { 31: 'provider_declined', 32: 'provider_error' };

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
    return { server_time: instant(), ...this.session, version: this.version.toString(16).padStart(16, '0') };
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
    return { side, assets, methods, indicative };
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
    const euro = ASSETS[asset].euro * this.rate;
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
      if (asks(null)) this.later(() => this.decide('approved'));
    }
    const url = asks('url') ? 'https://verify.example/start' : null;
    const form = asks('form') ? this.form : null;
    return { object: 'embed_verification', ...this.session.verification, url, form, expires_at: null };
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
    const payment = {
      object: 'embed_payment',
      id: `pay_${this.payments.length + 1}`,
      status: 'processing',
      ...pick(this.quote, ...PRICE_FIELDS),
      ...pick({}, 'received', 'failure_code', 'failure_reason', 'failure_message'),
      instructions: this.instructions ?? this.instruct(),
      pay_until: instant(72 * HOUR_MS),
      tx_refid: 'tx_simulation_0001',
      created_at: instant(),
    };
    this.payments.push(payment);
    this.keys.set(key, structuredClone(payment));
    this.report({}, { payment });
    this.later(() => this.finish(payment));
    return payment;
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
    if (side === 'on_ramp') return { amount: fiat_amount, currency: 'EUR', asset: null, network: null };
    if (side === 'off_ramp') return { amount: crypto_amount, currency: null, asset, network };
    return { amount: source_amount, currency: null, asset: source_asset, network: source_network };
  }

  instruct() {
    const { amount, currency, asset, network } = this.due(this.quote);
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

  cancelPayment(id) {
    const payment = this.payments.find((one) => one.id === id);
    refuseIf(!payment, 404, 'resource_not_found');
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
    refuseIf(!id, 404, 'route_not_found');
    return [200, this.cancelPayment(id)];
  }
}

/** Listens on the loopback address, on a free port unless one is named. */
export async function listen(handle, port = 0) {
  const server = createServer((request, response) => {
    const handled = handle(request, response, new URL(request.url, 'http://loopback'));
    Promise.resolve(handled).catch((error) => response.writeHead(500).end(String(error.stack)));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { origin: `http://127.0.0.1:${server.address().port}`, close };
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

/** Sends an object as JSON, or a text, which is a page unless `type` says otherwise. */
export function send(response, status, body, { type = 'html', ...headers } = {}) {
  const isText = typeof body === 'string';
  const kind = isText ? CONTENT_TYPES[type] : 'application/json';
  response.writeHead(status, { 'Content-Type': kind, 'Cache-Control': 'no-store', ...headers });
  response.end(isText ? body : JSON.stringify(body));
}

/** Sends a file of dist with its placeholders filled. */
export async function sendFile(response, path, places, headers = {}) {
  const file = join(DIST, path);
  const type = extname(path).slice(1);
  if (!CONTENT_TYPES[type] || !existsSync(file)) return response.writeHead(404).end();
  const content = (await readFile(file, 'utf8')).replace(/\{\{penstock\.(\w+)\}\}/g, (_, place) => places[place]);
  // Pages of partners load the scripts of the SDK.
  const access = path.startsWith('/gate.') && { 'Access-Control-Allow-Origin': '*' };
  return send(response, 200, content, { type, 'X-Content-Type-Options': 'nosniff', ...access, ...headers });
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
    this.simulation = new Simulation({ returnUrl: `${this.origin}/shop`, ...settings });
  }

  handle(request, response, url) {
    const { pathname } = url;
    if (pathname.startsWith('/v1/embed/')) return this.serveApi(request, response, url);
    if (pathname === '/health') return send(response, 200, { status: 'ok' });
    // The policy also allows pages that `origins` lacks: a test sees that the widget says nothing to them.
    if (pathname === '/embed') return this.sendWidget(response, this.origins.join(' '), "'self' http://localhost:*");
    if (pathname === '/checkout') return this.sendWidget(response, '', "'none'");
    // Pages of the partner.
    if (['/shop', '/parent'].includes(pathname)) return send(response, 200, '<!doctype html><title>Shop</title>');
    return sendFile(response, pathname, { gate_origin: this.origin, widget_origin: this.origin });
  }

  sendWidget(response, origins, ancestors) {
    const policy = [
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; font-src 'self'",
      `connect-src ${this.origin}; frame-ancestors ${ancestors}; base-uri 'none'; form-action 'none'`,
      "require-trusted-types-for 'script'; trusted-types 'none'",
    ];
    const places = { gate_origin: this.origin, mode: 'test', origins };
    return sendFile(response, 'embed.html', places, {
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
  const { origin } = await start(Number(process.argv[2] ?? 4031));
  console.log(`${origin}/checkout#publishable_key=pk_test_dev&client_secret=gsec_dev`);
}
