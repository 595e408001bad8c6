import { Api, NoAnswer, Refusal } from './api';
import { readAddress } from './address';
import { adopt, draftOf, faultsOf, mend, type Draft } from './draft';
import type { Frame } from './frame';
import { forgetIntent, intentKey, isOwnKey, recall, remember, settleIntent } from './memory';
import { payoutOf } from './payout';
import { isPassing, mayRenewAfter, meaningOf } from './refusals';
import { dueOf, priceOf, returnAddress } from './session';
import {
  RENEW_BEFORE_MS, RETRY_PRICE_MS, READ_CHANGE_MS, SLOW_MS, MAX_IDLE_RENEWALS,
  MIN_TOKEN_LIFE_MS, MAX_BACKOFF_MS, ATTEMPTS_TO_PAY, pause, type DraftStep, type Problem, type Step, type Work,
} from './steps';
import type { Options, Quote, Session, Side, SideOptions, VerificationTask } from './types';

/** Everything that the screens show, and everything that a user can do. */
export class Flow {
  session: Session | null = null;
  options: Options | null = null;
  draft: Draft | null = null;
  quote: Quote | null = null;
  /** The price before the last change, while the user has not accepted the new one. */
  before: Quote | null = null;
  task: VerificationTask | null = null;
  problem: Problem | null = null;
  busy = false;
  work: Work = 'loading';
  offline = false;
  /** A cancelled payment is told about until the user goes on. */
  cancelled = false;
  sent = false;
  depositAsked = false;
  depositReturned = false;
  hasToken = false;
  dead: { step: 'unavailable' | 'over'; code: string } | null = null;
  lockedSide: Side | null = null;
  canDeposit = false;

  /** The payment that this very page made. Only for that one the partner's wallet is asked, and once. */
  private made: string | null = null;
  private settling = false;
  private changedAt = -Infinity;
  private quotedAt = -Infinity;
  private startedAt = -Infinity;
  private draftStep: DraftStep = 'choose';
  private dismissed: string | null = null;
  private offset = 0;
  private polling = false;
  private quoting = false;
  private announced = '';
  private unsettledBody: unknown = null;
  private busySince = 0;
  private renewals = 0;
  /** The payment that this page made, with its own draft. */
  paid: string | null = null;
  /** The call that `retry` repeats, after its refusal. */
  private refused: [() => Promise<void>, Work] | null = null;

  constructor(
    readonly api: Api,
    readonly frame: Frame | null,
    private readonly draw: () => void,
    private readonly onSession: (session: Session) => void,
    /** Starts again without a token, after the call for the first one was lost. */
    private readonly restart: () => void | Promise<void>,
    /** Bootstraps again in place of a dead token. False if no client secret is left for it. */
    private readonly renew: () => boolean,
  ) {
    addEventListener('online', () => this.offline && void this.reconnect());
    addEventListener('offline', () => this.goOffline());
    addEventListener('pageshow', (event) => event.persisted && this.hasToken && !this.dead && void this.comeBack());
    document.addEventListener('visibilitychange', () => this.tick());
    for (const touch of ['pointerdown', 'keydown']) {
      addEventListener(touch, () => (this.renewals = this.isOutdated ? this.renewals : 0));
    }
    setInterval(() => this.tick(), 1000);
  }

  get isSlow(): boolean {
    return this.busy && performance.now() - this.busySince >= SLOW_MS;
  }

  /** True if the price ran out after nobody had touched the page for a while. */
  get isOutdated(): boolean {
    return this.renewals >= MAX_IDLE_RENEWALS && this.secondsLeft === 0;
  }

  /** True after a payment whose outcome is unknown. */
  get isUnsettled(): boolean { return this.unsettledBody !== null; }
  get mayRetry(): boolean { return this.refused !== null; }

  get step(): Step {
    if (this.dead) return this.dead.step;
    const { session } = this;
    const payment = session?.payment;
    // A lost connection changes nothing about a session that has ended.
    if (session && (payment?.status === 'completed' || session.status === 'completed')) return 'done';
    if (this.offline) return 'offline';
    return this.lastStep;
  }

  /** The step that the offline screen interrupts. */
  get lastStep(): Step {
    const { session } = this;
    const payment = session?.payment;
    if (!session || !this.draft) return 'loading';
    if (payment?.status === 'processing') {
      return payment.instructions && this.due === 'open' && !this.sent && !this.depositReturned ? 'instructions' : 'progress';
    }
    if (session.status !== 'open') return 'over';
    if (payment && payment.id !== this.dismissed) return 'failed';
    return this.draftStep;
  }

  get sideOptions(): SideOptions | undefined {
    return this.options?.sides.find((entry) => entry.side === this.draft?.side);
  }

  /** The payout method that the user has chosen, on a sale. */
  get payout(): Record<string, string> {
    const method = this.sideOptions?.methods.find((one) => one.id === this.draft?.payment_method);
    return payoutOf(method?.account, this.draft ?? {});
  }

  /** False while a click could not mean the price that is shown: it ran out, or it changed a moment ago. */
  get mayPay(): boolean {
    return this.secondsLeft > 0 && performance.now() - this.changedAt >= READ_CHANGE_MS;
  }

  /** What the customer can still do for the payment, by the clock of the server. */
  get due(): ReturnType<typeof dueOf> | null {
    return this.session?.payment ? dueOf(this.session.payment, this.now()) : null;
  }

  get secondsLeft(): number {
    return this.quote ? Math.max(0, Math.floor((Date.parse(this.quote.expires_at) - this.now()) / 1000)) : 0;
  }

  async start(token: string): Promise<void> {
    if (this.dead) {
      if (this.dead.code !== 'unauthorized' || token === this.api.token) return;
      this.dead = null;
    }
    this.api.token = token;
    this.hasToken = true;
    this.startedAt = performance.now();
    await this.attempt(async () => {
      const [session, options] = await Promise.all([this.api.session(), this.options ?? this.api.options()]);
      this.options = options;
      this.accept(session);
    });
    void this.poll();
  }

  /** The catalogue offers no choice of side when the session or the partner fixed it. */
  get sides(): Side[] {
    const offered = this.options?.sides.filter((entry) => entry.assets.length > 0).map((entry) => entry.side) ?? [];
    const fixed = this.session?.flow ?? this.lockedSide;
    return fixed ? offered.filter((side) => side === fixed) : offered;
  }

  chooseSide(side: Side): void {
    const entry = this.options?.sides.find((candidate) => candidate.side === side);
    this.draft = draftOf(side, entry, this.session, this.draft);
    this.draw();
  }

  /** Takes what the form shows, because autofill can set a value without an event. */
  read(form: HTMLFormElement): void {
    const { draft } = this;
    if (!draft) return;
    Object.assign(draft, Object.fromEntries(new FormData(form)));
    if (!this.session?.wallet_address) draft.wallet_address = readAddress(draft.wallet_address);
    mend(draft, this.sideOptions);
  }

  /** Takes a change of the form. */
  edit(form: HTMLFormElement): void {
    this.read(form);
    this.problem = null;
    this.draw();
  }

  async next(): Promise<void> {
    if (this.busy) return;
    this.problem = null;
    this.cancelled = false;
    switch (this.step) {
      case 'choose':
        this.go('details');
        break;
      case 'details':
        this.quote = null;
        this.before = null;
        this.go('price');
        await this.fetchQuote();
        break;
      case 'price':
        this.before = null;
        await this.leavePrice();
        break;
      case 'verification':
        await this.startVerification();
        break;
      case 'instructions':
        this.sent = true;
        this.draw();
        break;
      default:
    }
  }

  back(): void {
    if (this.step === 'progress') {
      this.sent = false;
      return this.draw();
    }
    const previous = { choose: 'choose', details: 'choose', price: 'details', verification: 'price', confirm: 'price' } as const;
    this.problem = null;
    this.go(previous[this.draftStep]);
    if (this.draftStep === 'price' && this.secondsLeft === 0) void this.fetchQuote();
  }

  /** Pays once: the lock stops a double click, the key covers reloads and lost answers, the server covers other tabs. */
  async pay(): Promise<void> {
    const { draft, quote, session } = this;
    if (this.busy || !draft || !quote || !session) return;
    if (this.secondsLeft === 0) return this.fetchQuote();
    if (!this.mayPay) {
      document.getElementById('changed')?.focus();
      return;
    }
    await this.attempt(async () => {
      const body = {
        quote_id: quote.id,
        ...(draft.side === 'off_ramp' ? { payout: this.payout } : session.wallet_address ? {} : { wallet_address: draft.wallet_address }),
      };
      this.before = null;
      await this.settle(body);
    }, 'pay');
  }

  retry(): Promise<void> | void {
    if (this.offline) return this.reconnect();
    if (this.busy) return;
    if (this.step === 'failed') return this.startOver();
    this.renewals = 0;
    return this.problem && this.refused ? this.attempt(...this.refused) : this.fetchQuote();
  }

  /** Leaves a failed payment for the choice of another method. */
  chooseAgain(): void {
    this.dismiss();
    this.go('details');
  }
  private dismiss(): void {
    this.dismissed = this.session?.payment?.id ?? null;
    this.sent = this.depositAsked = this.depositReturned = false;
    this.quote = this.before = this.problem = this.refused = null;
  }

  /** Shows a fresh price. A page that was reloaded has forgotten the address, so it asks for the details first. */
  private startOver(): Promise<void> | void {
    this.dismiss();
    const isComplete = Object.keys(faultsOf(this.draft, this.session, this.sideOptions)).length === 0;
    this.go(isComplete ? 'price' : 'details');
    if (isComplete) return this.fetchQuote();
  }

  async cancel(): Promise<void> {
    await this.attempt(async () => {
      const payment = this.session?.payment;
      if (payment?.status === 'processing') {
        await this.api.cancelPayment(payment.id);
        this.accept(await this.api.session());
      } else {
        this.accept(await this.api.cancelSession());
      }
    }, 'cancel');
  }

  /** A top-level checkout goes back to the shop. A frame leaves that to the page around it. */
  leave(): void {
    const { session } = this;
    const completed = this.step === 'done';
    if (this.frame) {
      this.frame.post('close', { reason: this.step === 'done' ? 'completed' : session?.status === 'cancelled' ? 'cancelled' : this.step });
      return;
    }
    const target = returnAddress(session, completed);
    if (target) location.assign(target);
  }

  get canLeave(): boolean {
    return this.frame !== null || returnAddress(this.session, this.step === 'done') !== null;
  }

  async submitVerification(answers: Record<string, string>): Promise<void> {
    await this.attempt(async () => this.takeTask(await this.api.verification(answers)));
  }

  wallet(requestId: string, txHash: string | null): void {
    if (requestId !== this.session?.payment?.id || !this.depositAsked) return;
    this.depositReturned = txHash !== null;
    this.depositAsked = this.depositReturned;
    this.draw();
  }

  end(step: 'unavailable' | 'over', code: string): void {
    this.dead = { step, code };
    if (step === 'unavailable') this.frame?.post('unavailable', { reason: code });
    this.draw();
  }

  /** By the clock of the server. */
  now(): number {
    return Date.now() + this.offset;
  }

  private go(step: DraftStep): void {
    this.draftStep = step;
    this.draw();
    void this.poll();
  }

  private accept(session: Session): void {
    this.offset = Date.parse(session.server_time) - Date.now();
    // A call that was refused before may mean another payment now.
    if (session.payment?.status !== this.session?.payment?.status) this.problem = this.refused = null;
    this.session = session;
    this.offline = false;
    this.onSession(session);
    if (session.payment && session.payment.id !== this.dismissed && settleIntent(session.id, session.payment.id)) this.unsettledBody = null;
    if (!this.draft) {
      const [first] = this.sides;
      if (!first && session.status === 'open' && !session.payment) return this.end('unavailable', 'no_options');
      this.chooseSide(this.sides.find((side) => side === session.payment?.side) ?? first ?? 'on_ramp');
      if (session.payment && this.draft) adopt(this.draft, session.payment, this.sideOptions);
    }
    if (session.payment?.status === 'cancelled' && session.payment.id !== this.dismissed && session.status === 'open') {
      this.dismiss();
      this.cancelled = true;
      this.startOverWhenIdle();
    }
    if (this.draftStep === 'verification') this.followVerification(session);
    this.announce(session);
    this.askWallet(session);
    this.draw();
    void this.poll();
  }

  /** The call that brought the session has to end first. */
  private startOverWhenIdle(): void {
    setTimeout(() => (this.busy ? this.startOverWhenIdle() : void this.startOver()), 20);
  }

  private announce(session: Session): void {
    const { payment } = session;
    const state = `${payment?.id}${payment?.status}`;
    if (!payment || state === this.announced) return;
    this.announced = state;
    this.frame?.postOutcome(payment, session.id);
  }

  /** Asks the partner's wallet to send the crypto. A payment of an earlier page or of another tab may have been sent already. */
  private askWallet({ payment }: Session): void {
    if (payment?.status !== 'processing' || payment.id !== this.made || !this.canDeposit || payment.side === 'on_ramp' || !payment.instructions?.['address']) return;
    this.made = null;
    this.depositAsked = true;
    this.frame?.postDeposit(payment);
  }

  /** True while the session can change without this page: a payment goes on, a provider verifies, or another tab pays. */
  private get waits(): boolean {
    const { session, draftStep } = this;
    if (session?.payment?.status === 'processing') return true;
    const status = session?.verification.status;
    const verifies = status === 'pending' || (status === 'required' && this.task?.url != null);
    return session?.status === 'open' && (draftStep === 'price' || draftStep === 'confirm' || (draftStep === 'verification' && verifies));
  }

  /** Waits for changes by long polling, slower after each failure. */
  private async poll(): Promise<void> {
    if (this.polling) return;
    this.polling = true;
    let failures = 0;
    while (this.waits && !this.dead && this.session) {
      const asked = Date.now();
      try {
        const session = await this.api.session(this.session.version);
        failures = 0;
        // The answer of the payment says whose payment the session shows.
        if (this.unsettledBody && !this.busy) await this.reconnect();
        else if (!this.settling) this.accept(session);
        if (Date.now() - asked < 500) await pause(1000);
      } catch (error) {
        failures += 1;
        if (!isPassing(error) && !(error instanceof Refusal && meaningOf(error) === 'alert')) {
          this.polling = false;
          if (!(error instanceof Refusal)) throw error;
          await this.report(error)?.();
          return;
        }
        if (failures > 2 && error instanceof NoAnswer && !this.settling) this.goOffline();
        const asks = error instanceof Refusal && error.status === 429 ? error.retryAfter * 1000 : 0;
        await pause(Math.max(asks, Math.min(MAX_BACKOFF_MS, 500 * 2 ** failures)));
      }
    }
    this.polling = false;
  }

  private async refresh(): Promise<void> {
    await this.attempt(async () => this.accept(await this.api.session()));
  }

  /** Shows the true session to a page that the browser kept, and a fresh price: another tab may have retired the one that was left. */
  private async comeBack(): Promise<void> {
    await this.refresh();
    if (this.step === 'price' || this.step === 'confirm') await this.fetchQuote();
  }

  private async reconnect(): Promise<void> {
    if (!this.hasToken) return this.restart();
    await this.attempt(async () => {
      this.options ??= await this.api.options();
      this.accept(await this.api.session());
      if (this.unsettledBody && this.step === 'confirm') await this.settle(this.unsettledBody);
    });
    if (this.step === 'price' && !this.quote) await this.fetchQuote();
  }

  goOffline(): void {
    this.offline = true;
    this.draw();
  }

  private async settle(body: unknown): Promise<void> {
    this.settling = true;
    try {
      await this.sendPayment(body);
    } finally {
      this.settling = false;
    }
  }

  /** Sends the payment until its outcome is known. The session is read before each repetition. */
  private async sendPayment(body: unknown): Promise<void> {
    if (!this.session) return;
    this.unsettledBody = body;
    const { id, payment: earlier } = this.session;
    const key = intentKey(id, earlier?.id ?? null);
    for (let attempt = 1; attempt <= ATTEMPTS_TO_PAY; attempt += 1) {
      try {
        const payment = await this.api.pay(body, key);
        this.paid = payment.id;
        if (isOwnKey(key)) this.made = payment.id;
        forgetIntent(id);
        this.unsettledBody = null;
        this.accept(await this.api.session());
        return;
      } catch (error) {
        const unclear = error instanceof NoAnswer || (error instanceof Refusal && error.isUnclear);
        if (!unclear) {
          // A token can die after a lost answer, so its refusal says nothing about the payment.
          if (error instanceof Refusal && error.status !== 429 && error.status !== 401) forgetIntent(id);
          this.unsettledBody = null;
          throw error;
        }
        if (attempt > 1) await pause(500 * 2 ** attempt);
        const session = await this.api.session();
        this.accept(session);
        if (this.step !== 'confirm') return;
      }
    }
    throw new NoAnswer();
  }

  private async leavePrice(): Promise<void> {
    if (!this.quote || this.secondsLeft === 0) return this.fetchQuote();
    const status = this.session?.verification.status;
    if (status === 'required' || status === 'pending' || status === 'rejected') {
      this.task = null;
      this.go('verification');
      if (status === 'pending') await this.startVerification();
      return;
    }
    this.go('confirm');
  }

  private async startVerification(): Promise<void> {
    await this.attempt(async () => this.takeTask(await this.api.verification()));
  }

  private async takeTask(task: VerificationTask): Promise<void> {
    this.task = task;
    const session = await this.api.session();
    this.accept(session);
    // Without a provider nothing can ever approve the user.
    if (session.verification.status === 'required' && !task.url && !task.form) this.end('unavailable', 'verification_required');
  }

  private followVerification(session: Session): void {
    const { status } = session.verification;
    if (status === 'approved' || status === 'not_required') {
      this.draftStep = 'confirm';
      this.task = null;
    }
  }

  /** Looks once a second at the age of the price. A hidden page fetches nothing. */
  private tick(): void {
    const { step, problem } = this;
    const isVisible = document.visibilityState === 'visible';
    if (problem?.retryAt !== undefined && !this.offline) {
      if (isVisible && !this.busy && performance.now() >= problem.retryAt) void (this.refused ? this.attempt(...this.refused) : this.retry());
      this.draw();
      return;
    }
    if (step !== 'price' && step !== 'confirm') return;
    const left = this.quote ? Date.parse(this.quote.expires_at) - this.now() : Infinity;
    const code = this.problem?.code;
    const isDue = left <= (step === 'price' ? RENEW_BEFORE_MS : 0) && mayRenewAfter(code);
    const hasRested = !code || code.startsWith('quote_') || performance.now() - this.quotedAt >= RETRY_PRICE_MS;
    if (isVisible && !this.busy && isDue && hasRested && this.renewals < MAX_IDLE_RENEWALS) {
      this.renewals += 1;
      void this.fetchQuote();
    }
    this.draw();
  }

  private async fetchQuote(): Promise<void> {
    const { draft } = this;
    if (!draft || this.quoting) return;
    this.quoting = true;
    this.quotedAt = performance.now();
    await this.attempt(async () => {
      const { side, asset, network, payment_method, source_asset, source_network } = draft;
      const old = this.quote;
      const quote = await this.api.quote(
        side === 'swap' ? { side, source_asset, source_network, asset, network } : { side, asset, network, payment_method },
      );
      if (old && JSON.stringify(priceOf(old)) !== JSON.stringify(priceOf(quote))) {
        this.before = old;
        this.changedAt = performance.now();
        setTimeout(() => this.draw(), READ_CHANGE_MS);
      }
      // A clock that was set meanwhile would renew a fresh price for ever.
      this.offset = Date.parse(quote.created_at) - Date.now();
      this.quote = quote;
      this.frame?.post('quote', { rate: quote.exchange_rate, expires_at: quote.expires_at });
    }, 'price');
    this.quoting = false;
  }

  /** Runs one thing at a time and turns every failure into a screen or an alert. */
  private async attempt(work: () => Promise<void>, name: Work = 'loading'): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.work = name;
    this.busySince = performance.now();
    this.problem = null;
    this.refused = null;
    const slow = setTimeout(() => this.draw(), SLOW_MS);
    this.draw();
    let follow: (() => Promise<void>) | null = null;
    try {
      await work();
    } catch (error) {
      if (error instanceof Refusal) {
        follow = this.report(error);
        if (this.problem) this.refused = [work, name];
      } else if (error instanceof NoAnswer) this.goOffline();
      else throw error;
    } finally {
      clearTimeout(slow);
      this.busy = false;
      this.draw();
    }
    await follow?.();
  }

  /** Shows a refusal and returns what has to happen next, if anything. */
  private report(error: Refusal): (() => Promise<void>) | null {
    const { code, message } = error;
    switch (meaningOf(error)) {
      case 'token':
        this.loseToken();
        return null;
      case 'unavailable':
        this.end('unavailable', code);
        return null;
      case 'state':
        if (this.session) forgetIntent(this.session.id);
        return () => this.refresh();
      case 'quote':
        return async () => {
          await this.refresh();
          if (this.step === 'confirm' || this.step === 'price') await this.fetchQuote();
          if (this.step === 'confirm' && !this.problem) this.problem = { code, message };
          this.draw();
        };
      case 'verification':
        return async () => {
          this.task = null;
          this.draftStep = 'verification';
          await this.refresh();
        };
      case 'alert':
        // Nothing is shown yet that could carry an alert.
        if (this.session === null) {
          if (isPassing(error)) this.goOffline();
          else this.end('unavailable', code);
          return null;
        }
        this.problem = { code, message, requestId: error.requestId, retryAt: error.status === 429 ? performance.now() + error.retryAfter * 1000 : undefined };
        return null;
    }
  }

  /** A dead token is renewed with the client secret in memory, or by the page around the frame. Without either, the flow is over. */
  private loseToken(): void {
    remember('token', null);
    if (performance.now() - this.startedAt >= MIN_TOKEN_LIFE_MS && this.renew()) return;
    this.end('over', 'unauthorized');
    // The page around a frame can fetch a new token. It answers with the old one if that is still fresh.
    this.frame?.post('ready');
  }
}

/** The token of a checkout that was reloaded. */
export const rememberedToken = (): string | null => recall('token');
