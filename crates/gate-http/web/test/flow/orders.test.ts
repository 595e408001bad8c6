// Every order of events that a payment can meet, up to a depth: calls that are lost before or after they took effect, answers that
// overtake each other, other tabs, prices that end, lost connections, and sessions that end elsewhere. A failure names its shortest order.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Page, type Call } from './drive';
import { freeze } from './objects';

/** What may happen in addition to the answers of the gate, and how often. */
type Happening =
  | 'overtake'
  | 'reach' | 'lose' | 'late' | 'pay' | 'back' | 'retry' | 'continue' | 'cancel' | 'offline' | 'price ends'
  | 'tab pays' | 'completed' | 'failed' | 'cancelled' | 'session expires' | 'token dies'; // prettier-ignore
type Budget = Partial<Record<Happening, number>>;

interface Choice {
  readonly name: string;
  readonly happening?: Happening;
  readonly act: () => unknown;
}

const DRAFT_STEPS = ['choose', 'details', 'price', 'verification', 'confirm'];
type Start = 'choose' | 'details' | 'price' | 'confirm';

/** A page whose customer has come to a step. */
async function startAt(start: Start, isSimulated: boolean): Promise<Page> {
  const page = new Page();
  page.gate.isSimulated = isSimulated;
  await page.takeToken('token_1');
  await page.drain();
  while (page.step !== start) {
    await page.does('continue');
    await page.drain();
  }
  return page;
}

/** Everything that can happen now. */
function choicesOf(page: Page, left: Budget): Choice[] {
  return [
    ...page.calls.flatMap((call) => choicesOfCall(page, call)),
    ...choicesOfCustomer(page),
    ...choicesOfWorld(page),
  ].filter(({ happening }) => !happening || (left[happening] ?? 0) > 0);
}

function choicesOfCall(page: Page, call: Call): Choice[] {
  const name = call.after === null ? call.name : 'wait for a change';
  const canReach = page.canReach(call);
  const isRead = call.name === 'GET session';
  const answer = () => {
    if (!call.response) page.reach(call);
    return page.arrive(call);
  };
  return [
    ...(canReach || call.response ? [{ name: `answer ${name}`, act: answer }] : []),
    ...(canReach
      ? [{ name: `reach ${name}`, happening: isRead ? 'overtake' : 'reach', act: () => page.reach(call) } as const]
      : []),
    { name: `lose ${name}`, happening: 'lose', act: () => page.lose(call) },
  ];
}

function choicesOfCustomer(page: Page): Choice[] {
  const { step, work } = page.view;
  const does = (type: 'pay' | 'back' | 'retry' | 'continue' | 'cancel'): Choice => ({
    name: type,
    happening: type,
    act: () => page.does(type),
  });
  if (step === 'confirm') return work ? [does('pay')] : [does('pay'), does('back')];
  if (step === 'offline' || step === 'failed') return [does('retry')];
  if (step === 'instructions') return [does('continue'), does('cancel')];
  return step === 'price' && !work ? [does('continue'), does('back')] : [does('continue')];
}

function choicesOfWorld(page: Page): Choice[] {
  const { gate } = page;
  const { payment, status } = gate.session;
  const goesOn = payment?.status === 'processing';
  const late = page.late[0];
  const isPaused = page.view.work !== null && page.taskCalls.length === 0;
  const choices: (Choice | false)[] = [
    isPaused && { name: 'pause ends', act: () => page.wait(5) },
    late !== undefined && {
      name: 'late payment',
      happening: 'late',
      act: () => gate.answer(page.late.shift() ?? late),
    },
    { name: 'price ends', happening: 'price ends', act: () => page.wait(61) },
    page.isOnline
      ? { name: 'offline', happening: 'offline', act: () => page.connect(false) }
      : { name: 'online', act: () => page.connect(true) },
    status === 'open' &&
      !goesOn && {
        name: 'tab pays',
        happening: 'tab pays',
        act: () => gate.pay(gate.price().id, 'key of another tab'),
      },
    ...(['completed', 'failed', 'cancelled'] as const).map(
      (end): Choice | false => goesOn && { name: `payment is ${end}`, happening: end, act: () => gate.end(end) },
    ),
    status === 'open' &&
      !goesOn && {
        name: 'session expires',
        happening: 'session expires',
        act: () => gate.change({ status: 'expired' }),
      },
    { name: 'token dies', happening: 'token dies', act: () => gate.deadTokens.add(page.token) },
    page.flow.state.is === 'ended' &&
      gate.deadTokens.has(page.token) && { name: 'another token', act: () => page.takeToken('token_2') },
  ];
  return choices.filter((choice) => choice !== false);
}

/** What holds after each event. */
function check(page: Page): void {
  const { gate, view, flow } = page;
  freeze(flow.state);
  const tasks = page.taskCalls.filter(({ name }) => name !== 'GET options');
  assert.ok(tasks.length <= 1, 'Two tasks run at once.');
  assert.ok(page.calls.length - page.taskCalls.length <= 1, 'Two calls wait for a change.');
  const own = [...gate.payments].filter(([key]) => page.keys.includes(key)).map(([, payment]) => payment);
  const paid = own.filter(({ status }) => status === 'processing' || status === 'completed');
  assert.ok(paid.length <= 1, 'The page has paid twice.');
  const asked = page.messages.flatMap((message) => (message.type === 'deposit' ? [message['request_id']] : []));
  assert.equal(new Set(asked).size, asked.length, 'The wallet is asked twice.');
  assert.ok(
    asked.every((id) => own.some((payment) => payment.id === id)),
    'The wallet is asked for a payment of another tab.',
  );
  const ends = page.messages.filter(({ type }) => type === 'success' || type === 'error');
  assert.equal(new Set(ends.map((end) => JSON.stringify(end))).size, ends.length, 'An end is told twice.');
  if (!page.isUnknown || view.step === 'over') return;
  const isUnsettled = view.step === 'offline' && view.lost === 'outcome';
  assert.ok(view.work !== null || isUnsettled || keepsKey(page), `An unknown outcome is shown as ${view.step}.`);
  assert.notEqual(view.step, 'failed');
}

/** A token can die after a lost answer. The key is kept for the press that follows. */
const keepsKey = ({ gate, intent, keys }: Page): boolean => gate.deadTokens.size > 0 && intent === keys.at(-1);

/** What holds after everything was delivered. */
async function checkEnd(page: Page): Promise<void> {
  for (const late of page.late.splice(0)) page.gate.answer(late);
  await page.drain();
  // Nothing waits for changes on these steps. The customer who comes back to the page sees them.
  if (page.step === 'choose' || page.step === 'details') await page.showAgain();
  await page.drain();
  check(page);
  assert.ok(expectedSteps(page).includes(page.step), `The page shows ${page.step} at last.`);
  assert.ok(page.step === 'over' || !page.isUnknown || keepsKey(page), 'The outcome stays unknown.');
  const isSpent = page.intent !== null && page.gate.payments.has(page.intent);
  assert.ok(page.isUnknown || !isSpent, 'The key of a known payment is kept.');
}

/** The steps that fit what the gate says. */
function expectedSteps({ gate, token, flow: { state } }: Page): string[] {
  const { payment, status } = gate.session;
  if (gate.deadTokens.has(token)) return ['over'];
  if (status === 'completed') return ['done'];
  if (payment?.status === 'processing') return ['instructions', 'progress'];
  if (status !== 'open') return ['over'];
  const isLeft = payment?.status !== 'failed' || (state.is === 'live' && state.dismissed === payment.id);
  return isLeft ? DRAFT_STEPS : ['failed'];
}

/** Plays every order of at most this many events, and returns how many there are. */
async function play(start: Start, depth: number, budget: Budget, isSimulated = false): Promise<number> {
  let orders = 0;
  /** The order as the index of each choice, and how many choices there were. */
  const order: { index: number; of: number }[] = [];
  do {
    const page = await startAt(start, isSimulated);
    const names: string[] = [];
    const left = { ...budget };
    try {
      for (let turn = 0; turn < depth; turn += 1) {
        const choices = choicesOf(page, left);
        const { index, of } = (order[turn] ??= { index: 0, of: choices.length });
        assert.equal(choices.length, of, 'The same order leads to the same choices.');
        const choice = choices[index];
        if (!choice) break;
        names.push(choice.name);
        if (choice.happening) left[choice.happening] = (left[choice.happening] ?? 0) - 1;
        await choice.act();
        check(page);
      }
      await checkEnd(page);
    } catch (error) {
      throw new Error(`From ${start}: ${names.join(', ')}`, { cause: error });
    } finally {
      page.close();
    }
    orders += 1;
    while (order.length > 0 && isLast(order.at(-1))) order.pop();
    const last = order.at(-1);
    if (last) last.index += 1;
  } while (order.length > 0);
  return orders;
}

const isLast = (one: { index: number; of: number } | undefined) => one !== undefined && one.index + 1 >= one.of;

const LOSSES: Budget = { pay: 2, reach: 2, lose: 3, late: 1, retry: 1 };
const ONE_LOSS: Budget = { ...LOSSES, lose: 1, reach: 1 };
const OFFLINE: Budget = { lose: 1, offline: 1, retry: 1, 'tab pays': 1 };

const SCENARIOS: readonly [name: string, start: Start, depth: number, budget: Budget, isSimulated?: boolean][] = [
  ['payment with lost answers', 'confirm', 7, LOSSES],
  ['payment beside another tab', 'confirm', 5, { ...ONE_LOSS, 'tab pays': 1, failed: 1, cancelled: 1, completed: 1 }],
  ['payment while the price ends', 'confirm', 5, { ...ONE_LOSS, 'price ends': 1, back: 1, continue: 1 }],
  ['payment of a session that ends elsewhere', 'confirm', 5, { ...ONE_LOSS, 'session expires': 1, 'token dies': 1 }],
  ['payment of a page that is offline', 'confirm', 5, { ...LOSSES, offline: 1 }],
  [
    'payment that fails and is tried again',
    'confirm',
    8,
    { pay: 2, failed: 1, lose: 1, retry: 1, continue: 1, late: 1 },
  ],
  ['payment that is cancelled', 'confirm', 7, { pay: 1, cancel: 1, lose: 1, reach: 1, completed: 1, retry: 1 }],
  [
    'payment of the sandbox that the customer pretends to send',
    'confirm',
    7,
    { pay: 1, continue: 2, cancel: 1, lose: 1, reach: 1, completed: 1, retry: 1 },
    true,
  ],
  ['choice of a page that is offline', 'choose', 5, { ...OFFLINE, continue: 3 }],
  ['details of a page that is offline', 'details', 5, { ...OFFLINE, continue: 2 }],
  ['price of a page that is offline', 'price', 5, { ...OFFLINE, continue: 1, pay: 1 }],
];

for (const [name, start, depth, budget, isSimulated] of SCENARIOS) {
  test(`${name}: every order of ${depth} events`, async (context) => {
    // A smaller depth first, so that a failure names the shortest order.
    for (let events = 1; events < depth; events += 1) await play(start, events, budget, isSimulated);
    context.diagnostic(`${await play(start, depth, budget, isSimulated)} orders`);
  });
}

test('reads that overtake each other: every order of 5 events', async () => {
  for (let events = 1; events <= 5; events += 1) await play('confirm', events, { pay: 1, overtake: 1, completed: 1 });
});
