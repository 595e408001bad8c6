// Serves dist as the widget origin does and plays the widget API from memory. It exists for tests and for work on the
// widget only: it checks no signature, keeps nothing, and listens on the loopback address alone.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const dist = join(dirname(fileURLToPath(import.meta.url)), '..', 'dist');
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.mjs': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8' };
/** Euro per coin, and digits of the coin. */
const PRICES = { USDC: [1 / 1.08178875, 6], BTC: [60000, 8] };
const NETWORKS = { USDC: [{ chain: 'polygon', evm: true }, { chain: 'ethereum', evm: true }, { chain: 'solana', evm: false }], BTC: [{ chain: 'bitcoin', evm: false }] };
/** What each method charges for its service. */
const SHARES = { card: 0.025 };
export const SEPA = { id: 'sepa', name: 'SEPA transfer', currency: 'EUR', account: 'iban' };
export const CARD = { id: 'card', name: 'Card', currency: 'EUR' };
const METHODS = [SEPA];

const FORM = {
  type: 'object',
  properties: { full_name: { type: 'string', title: 'Full name' }, born_on: { type: 'string', title: 'Date of birth', format: 'date' }, residence: { type: 'string', title: 'Country', enum: ['DE', 'FR'] } },
  required: ['full_name', 'born_on', 'residence'],
};

class Refused extends Error {
  constructor(status, code) {
    super(`The simulation refuses: ${code}.`);
    this.status = status;
    this.code = code;
  }
}

/** One session and everything that belongs to it. */
class Simulation {
  constructor({ amount = '100.00', flow = null, branding = {}, quoteSeconds = 60, returnUrl = null, payWithin = 72 * 3600e3, holdMs = 700, pendingMs = 3000, verifyBy = null, verifiedAs = 'approved', methods = METHODS, form = FORM, instructions = null, ...rest } = {}) {
    Object.assign(this, { methods, form, instructions, quoteSeconds, payWithin, holdMs, pendingMs, verifyBy, verifiedAs, quotes: 0, payments: [], keys: new Map(), waiting: new Set(), version: 1, quote: null, dead: false, rate: 1, counts: {} });
    this.fraction = amount.split('.')[1];
    const asked = ['61', '62', '63'].includes(this.fraction);
    this.session = {
      object: 'embed_session', id: 'gs_simulation', mode: 'test', status: 'open', amount, currency: 'EUR', flow, target_token: null, target_network: null, wallet_address: null,
      return_url: returnUrl, cancel_url: returnUrl, expires_at: new Date(Date.now() + 3600e3).toISOString(), branding: { object: 'branding', logo_url: null, primary_color: null, secondary_color: null, accent_color: null, brand_name: 'North Shop', ...branding },
      verification: { status: asked ? 'required' : 'not_required', reason: null }, payment: null, ...rest,
    };
  }

  changed() {
    this.version += 1;
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }

  view() {
    // A test may set the time of the server.
    return { server_time: new Date().toISOString(), ...this.session, version: String(this.version) };
  }

  async read(query) {
    if (query.get('after') === String(this.version)) {
      await new Promise((resolve) => {
        this.waiting.add(resolve);
        setTimeout(resolve, Number(query.get('wait')) * 1000).unref();
      });
    }
    return this.view();
  }

  options() {
    const assets = Object.keys(PRICES).map((symbol) => ({ symbol, name: symbol === 'BTC' ? 'Bitcoin' : 'USD Coin', networks: NETWORKS[symbol], limits: null }));
    const sides = ['on_ramp', 'off_ramp', 'swap'].filter((side) => !this.session.flow || side === this.session.flow);
    return { object: 'embed_options', country_code: 'DE', sides: sides.map((side) => ({ side, assets, methods: side === 'swap' ? [] : this.methods, indicative: side === 'swap' ? [] : assets.flatMap(({ symbol, networks }) => this.methods.map(({ id }) => this.price({ side, asset: symbol, network: networks[0].chain, payment_method: id }))) })) };
  }

  checkOpen() {
    if (this.session.payment?.status === 'processing') throw new Refused(409, 'session_payment_in_progress');
    if (this.session.status !== 'open') throw new Refused(409, 'session_not_open');
  }

  createQuote(body) {
    this.checkOpen();
    if ('amount' in body) throw new Refused(400, 'amount_not_allowed');
    this.quotes += 1;
    this.quote = {
      ...this.price(body), object: 'signed_quote', id: `quote_${this.quotes}`, status: 'active', currency: 'EUR', expires_at: new Date(Date.now() + this.quoteSeconds * 1000).toISOString(),
      consumed_at: null, created_at: new Date().toISOString(), signature: 'simulated',
    };
    return this.quote;
  }

  price({ side, asset, network, payment_method: method, source_asset: source, source_network: from }) {
    const swap = side === 'swap';
    const sale = side === 'off_ramp';
    const fiat = Number(this.session.amount);
    const service = (fiat * (SHARES[method] ?? 0.005)).toFixed(2);
    const charged = sale ? '0.00' : '0.05';
    const total = (Number(service) + Number(charged)).toFixed(2);
    const [price, digits] = PRICES[asset] ?? [1, 6];
    const now = price * this.rate;
    const [sourcePrice, sourceDigits] = PRICES[source] ?? [1, 6];
    const exchanged = sale ? fiat + Number(total) : fiat - Number(total);
    return {
      side, asset, network, payment_method: swap ? null : method, fiat_amount: this.session.amount, crypto_amount: (exchanged / now).toFixed(digits),
      exchange_rate: String(Number((swap ? sourcePrice / now : sale ? now : 1 / now).toFixed(8))), fees: { total, service, network: charged, currency: 'EUR' },
      source_asset: swap ? source : null, source_network: swap ? from : null, source_amount: swap ? (fiat / sourcePrice).toFixed(sourceDigits) : null,
    };
  }

  verify(answers) {
    const { verification } = this.session;
    if (this.verifyBy) {
      if (answers) {
        this.answers = answers;
        this.decide(this.verifiedAs);
      }
      if (verification.status === 'required' && !answers && this.verifyBy !== 'none') {
        this.session.verification = { status: 'pending', reason: null };
        this.changed();
      }
      const isOpen = this.session.verification.status === 'pending' && !this.answers;
      return {
        object: 'embed_verification', ...this.session.verification, expires_at: null,
        url: isOpen && this.verifyBy === 'url' ? 'https://verify.example/start' : null,
        form: isOpen && this.verifyBy === 'form' ? this.form : null,
      };
    }
    if (verification.status === 'required') {
      verification.status = { 61: 'approved', 62: 'rejected', 63: 'pending' }[this.fraction];
      if (verification.status === 'pending') {
        if (this.pendingMs !== null) setTimeout(() => this.approve(), this.pendingMs).unref();
      }
      this.changed();
    }
    return { object: 'embed_verification', ...verification, url: null, form: null, expires_at: null };
  }

  approve() {
    this.decide('approved');
  }

  decide(status, reason = null) {
    Object.assign(this.session.verification, { status, reason });
    this.changed();
  }

  pay(body, key) {
    if (!key) throw new Refused(400, 'idempotency_key_required');
    const earlier = this.keys.get(key);
    // The gate answers a known key with the first answer, whatever the body says.
    if (earlier) return earlier;
    this.checkOpen();
    if (body.quote_id !== this.quote?.id) throw new Refused(409, 'quote_superseded');
    if (Date.parse(this.quote.expires_at) < Date.now()) throw new Refused(409, 'quote_expired');
    if (this.session.verification.status === 'rejected') throw new Refused(403, 'verification_rejected');
    if (!['not_required', 'approved'].includes(this.session.verification.status)) throw new Refused(403, 'verification_required');
    const { side } = this.quote;
    if (side === 'off_ramp' ? !body.payout : !body.wallet_address) throw new Refused(400, 'invalid_request');
    this.paid = body;
    const instructions = this.instructions ?? (side === 'on_ramp'
      ? { type: 'bank_transfer', account_holder: 'Example Payments', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX', reference: 'PS7K42QX9M', amount: this.session.amount, currency: 'EUR' }
      : { address: '0x52908400098527886E0F7030069857D2E4169EE7', network: this.quote.source_network ?? this.quote.network, asset: this.quote.source_asset ?? this.quote.asset, amount: this.quote.source_amount ?? this.quote.crypto_amount });
    const payment = { ...this.quote, object: 'embed_payment', id: `pay_${this.payments.length + 1}`, status: 'processing', instructions, pay_until: new Date(Date.now() + this.payWithin).toISOString(), received: null, failure_code: null, failure_reason: null, failure_message: null, tx_refid: 'tx_simulation_0001', created_at: new Date().toISOString() };
    this.payments.push(payment);
    this.keys.set(key, payment);
    this.session.payment = payment;
    this.changed();
    if (this.holdMs !== null) setTimeout(() => this.finish(payment), this.fraction === '33' ? 10_000 : this.holdMs).unref();
    return payment;
  }

  /** Changes what the gate says about the payment, and about the session if `session` is given. */
  report(changes, session = {}) {
    Object.assign(this.session.payment, changes);
    Object.assign(this.session, session);
    this.changed();
  }

  /** Lets a part of the payment arrive, or more than it asks for. */
  receive(amount) {
    const { side, fiat_amount: fiat, source_amount: source, crypto_amount: coins, asset, source_asset: sent, network, source_network: from } = this.session.payment;
    const isFiat = side === 'on_ramp';
    this.report({ received: { amount, required: isFiat ? fiat : (source ?? coins), currency: isFiat ? 'EUR' : null, asset: isFiat ? null : (sent ?? asset), network: isFiat ? null : (from ?? network), at: new Date().toISOString() } });
  }

  /** Ends a payment as the session's amount says. Without `holdMs` a test calls it. */
  finish(payment = this.session.payment) {
    if (payment.status !== 'processing') return;
    const code = this.payments.length === 1 ? { 31: 'provider_declined', 32: 'provider_error' }[this.fraction] : undefined;
    payment.status = code ? 'failed' : 'completed';
    if (code) payment.failure_code = code;
    if (payment.status === 'completed') this.session.status = 'completed';
    this.changed();
  }

  cancelPayment() {
    const { payment } = this.session;
    if (payment?.status !== 'processing') throw new Refused(409, 'payment_not_cancellable');
    payment.status = 'cancelled';
    this.changed();
    return payment;
  }

  cancel() {
    this.checkOpen();
    this.session.status = 'cancelled';
    this.changed();
    return this.view();
  }

  answer(method, path, query, body, key) {
    this.counts[`${method} ${path}`] = (this.counts[`${method} ${path}`] ?? 0) + 1;
    const refusal = this.refusals?.[`${method} ${path}`]?.shift();
    if (refusal) throw new Refused(...refusal);
    if (this.dead && path !== '/bootstrap') throw new Refused(401, 'unauthorized');
    switch (`${method} ${path}`) {
      case 'POST /bootstrap': return { object: 'embed_token', available: !this.unavailable, embed_token: 'simulated-token', unavailable_reason: this.unavailable ?? null, session_id: this.session.id, mode: 'test' };
      case 'GET /session': return this.read(query);
      case 'GET /options': return this.options();
      case 'POST /quotes': return this.createQuote(body);
      case 'POST /verification': return this.verify(body.answers);
      case 'POST /payments': return this.pay(body, key);
      case 'POST /cancel': return this.cancel();
      default:
        if (/^\/payments\/[^/]+\/cancel$/.test(path)) return this.cancelPayment();
        throw new Refused(404, 'resource_not_found');
    }
  }
}

async function readBody(request) {
  let text = '';
  for await (const part of request) text += part;
  return text ? JSON.parse(text) : {};
}

async function serveApi(simulation, request, response, url) {
  let status = 200;
  let content;
  try {
    const body = await readBody(request);
    content = await simulation.answer(request.method, url.pathname.slice('/v1/embed'.length), url.searchParams, body, request.headers['idempotency-key']);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    status = error.status;
    content = { type: 'error', code: error.code, message: error.message, request_id: 'req_simulation', statusCode: status };
  }
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(JSON.stringify(content));
}

async function serveFile(response, url, { origin, origins }) {
  const page = url.pathname === '/embed' || url.pathname === '/checkout';
  if (url.pathname === '/parent' || url.pathname === '/shop') {
    response.writeHead(200, { 'Content-Type': TYPES['.html'] }).end('<!doctype html><title>Shop</title>');
    return;
  }
  const name = page ? 'embed.html' : normalize(url.pathname).replace(/^\/+/, '');
  try {
    const bytes = await readFile(join(dist, name));
    const headers = { 'Content-Type': TYPES[extname(name)] ?? 'application/octet-stream', 'X-Content-Type-Options': 'nosniff' };
    if (page) {
      headers['Content-Security-Policy'] = `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' https: data:; connect-src ${origin}; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ${url.pathname === '/embed' ? "'self' http://localhost:*" : "'none'"}; require-trusted-types-for 'script'; trusted-types 'none'`;
    }
    const content = page ? bytes.toString().replace('{{penstock.gate_origin}}', origin).replace('{{penstock.mode}}', 'test').replace('{{penstock.origins}}', url.pathname === '/embed' ? origins.join(' ') : '') : bytes;
    response.writeHead(200, headers).end(content);
  } catch {
    response.writeHead(404).end();
  }
}

/** Starts the server on a free port. `simulation` can be replaced between tests. */
export async function start(port = 0) {
  const state = { simulation: new Simulation(), origin: '', origins: [], close: () => server.close() };
  const server = createServer((request, response) => {
    const url = new URL(request.url, state.origin);
    const work = url.pathname.startsWith('/v1/embed') ? serveApi(state.simulation, request, response, url) : serveFile(response, url, state);
    work.catch((error) => response.writeHead(500).end(String(error)));
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  state.origin = `http://127.0.0.1:${server.address().port}`;
  state.origins = [state.origin, state.origin.replace('127.0.0.1', 'localhost')];
  state.use = (settings) => (state.simulation = new Simulation(settings));
  return state;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { origin } = await start(Number(process.argv[2] ?? 4031));
  console.log(`${origin}/checkout#publishable_key=pk_test_dev&client_secret=gsec_dev`);
}
