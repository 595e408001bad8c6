"""Concurrent clients: exactly one winner, exact balances."""

import random
import secrets
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

from programs import eventually


def at_once(jobs):
    """Runs all jobs concurrently, each in its own thread; returns the results in order."""
    barrier = threading.Barrier(len(jobs))

    def run(job):
        barrier.wait(30)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


def clients(partner, count):
    """Connected clients: connecting is not part of the race."""
    forks = [partner.client.fork() for _ in range(count)]
    for fork in forks:
        assert fork.get("/pools").status == 200
    return forks


def transact_at_last(partner, quote, key, client):
    """Transacts, again under the same key while another transact of the quote takes longer than the service waits."""

    def answer():
        began = time.monotonic()
        found = partner.transact(quote, idempotency=key, client=client)
        if found.status == 200 or found.code != "quote_in_progress":
            return found
        assert time.monotonic() - began > 2, "a transact waits for another one"
        return None

    return eventually(answer, "the other transact ends")


# rule: pools.transact.once, idempotency.in-flight, pools.transact.idempotent
def test_fifty_transacts_of_one_quote_make_one_trade(world):
    partner = world.partner(funds="1000.00")
    callers = clients(partner, 50)
    for same_key in (True, False, True, False):
        quote = partner.quote("10.00")["quoteId"]
        keys = ["same" + quote if same_key else secrets.token_hex(8) for _ in callers]
        answers = at_once([
            lambda caller=caller, key=key: transact_at_last(partner, quote, key, caller)
            for caller, key in zip(callers, keys)
        ])
        done = [answer.json for answer in answers if answer.status == 200]
        others = {answer.code for answer in answers if answer.status != 200}
        assert done and others <= {"idempotency_in_progress"}, others
        assert not others or same_key, "different keys never conflict"
        assert len({ack["transactId"] for ack in done}) == 1
        assert [ack["idempotent"] for ack in done].count(False) == 1
    assert partner.balance() == "960.00"
    assert len(partner.trades()) == 4
    partner.checked_ledger()


# rule: pools.transact.balance, money.never-negative, pools.transact.batch-equals-single
def test_two_hundred_transacts_with_funds_for_a_hundred(world):
    partner = world.partner(funds="1000.00")
    callers = clients(partner, 50)
    quotes = [partner.quote("10.00", client=callers[n % 50])["quoteId"] for n in range(200)]

    def four(n):
        return [partner.transact(quote, client=callers[n]) for quote in quotes[n::50]]

    answers = [answer for some in at_once([lambda n=n: four(n) for n in range(50)]) for answer in some]
    seen = Counter(answer.status for answer in answers)
    assert seen == {200: 100, 402: 100}
    assert partner.balance() == "0.00"
    partner.checked_ledger()
    status = Counter(partner.client.ok("GET", f"/pools/quotes/{quote}")["status"] for quote in quotes)
    assert status == {"consumed": 100, "active": 100}


# rule: pools.reject.or-consume, pools.quote-record.monotone, pools.reject.once
def test_transact_and_reject_have_one_winner_in_a_thousand_races(world):
    partner = world.partner(funds="1000000.00")
    wins, lock = Counter(), threading.Lock()

    def duels(seed):
        chance = random.Random(seed)
        mine, other = partner.client.fork(), partner.client.fork()
        lead = 0.0  # of the transact, in seconds
        with ThreadPoolExecutor(1) as rival:
            for _ in range(125):
                quote = partner.quote("10.00", client=mine)["quoteId"]
                wait = max(lead, 0) + chance.random() * 0.004
                rejecting = rival.submit(lambda: (time.sleep(wait), other.post(f"/pools/quotes/{quote}/reject"))[1])
                time.sleep(max(-lead, 0) + chance.random() * 0.002)
                bought = partner.transact(quote, client=mine)
                rejected = rejecting.result()
                final = mine.ok("GET", f"/pools/quotes/{quote}")["status"]
                if bought.status == 200:
                    assert (rejected.status, rejected.code) == (409, "quote_consumed"), rejected
                    assert final == "consumed"
                else:
                    assert (bought.status, bought.code) == (409, "quote_rejected"), bought
                    assert rejected.status == 200 and final == "rejected"
                # The loser starts earlier the next time.
                lead += 0.002 if final == "rejected" else -0.002
                with lock:
                    wins[final] += 1

    at_once([lambda seed=seed: duels(seed) for seed in range(8)])
    assert sum(wins.values()) == 1000
    assert min(wins["consumed"], wins["rejected"]) >= 20, f"the race was one-sided: {wins}"
    assert partner.balance() == f"{1000000 - 10 * wins['consumed']}.00"
    partner.checked_ledger()


# rule: pools.reject.once
def test_twenty_rejects_of_one_quote(world):
    partner = world.partner()
    callers = clients(partner, 20)
    for _ in range(5):
        quote = partner.quote("10.00")["quoteId"]
        answers = at_once([lambda caller=caller: caller.post(f"/pools/quotes/{quote}/reject") for caller in callers])
        seen = Counter(answer.status if answer.status == 200 else answer.code for answer in answers)
        assert seen == {200: 1, "quote_rejected": 19}


# rule: pools.velocity.exact, pools.velocity.boundary
def test_velocity_cap_holds_under_64_clients(world):
    # 10 EUR are 10.85 USDT: the cap admits exactly 40 of them.
    partner = world.partner(funds="100000.00", velocity_cap_usdt="434")
    callers = clients(partner, 64)
    quotes = [partner.quote("10.00", client=caller)["quoteId"] for caller in callers for _ in range(2)]
    answers = at_once([
        lambda n=n: [partner.transact(quote, client=callers[n]) for quote in quotes[2 * n : 2 * n + 2]] for n in range(64)
    ])
    seen = Counter(answer.status if answer.status == 200 else answer.code for pair in answers for answer in pair)
    assert seen == {200: 40, "velocity_cap_exceeded": 88}
    counted = sum(Fraction(trade["fiatAmount"]) * Fraction("1.0850") for trade in partner.trades())
    assert counted == 434


# rule: pools.trade.converge, pools.event.once, pools.trade.second-poller
def test_concurrent_polls_reach_one_outcome(world):
    partner = world.partner(funds="10000.00")
    callers = clients(partner, 16)
    for fraction, final in ((".00", "settled"), (".31", "failed"), (".32", "released"), (".41", "returned")) * 3:
        ack = partner.trade(f"20{fraction}")
        seen = set()
        for _ in range(3):
            views = at_once([lambda caller=caller: partner.poll(ack["quoteId"], client=caller) for caller in callers])
            seen |= {view["status"] for view in views}
        assert seen <= {"reserved", "settled", final}
        assert partner.poll(ack["quoteId"])["status"] == final
    reasons = Counter(entry["reason"] for entry in partner.checked_ledger())
    assert reasons == {"payin_credit": 1, "buy_debit": 12, "buy_refund": 9}
    assert partner.balance() == f"{Decimal('10000.00') - 3 * Decimal('20.00'):.2f}"


# rule: idempotency.in-flight, idempotency.reused
def test_one_key_for_many_quotes_executes_one(world):
    partner = world.partner(funds="1000.00")
    callers = clients(partner, 32)
    for _ in range(4):
        quotes = [partner.quote("10.00")["quoteId"] for _ in callers]
        key = secrets.token_hex(8)
        answers = at_once([
            lambda caller=caller, quote=quote: partner.transact(quote, idempotency=key, client=caller)
            for caller, quote in zip(callers, quotes)
        ])
        seen = Counter(answer.status if answer.status == 200 else answer.code for answer in answers)
        assert seen[200] == 1
        assert set(seen) <= {200, "idempotency_in_progress", "idempotency_key_reused"}
    assert partner.balance() == "960.00"


# rule: money.zero-sum, money.never-negative
def test_concurrent_deposits_and_purchases_lose_no_cent(world):
    partner = world.partner(funds="1.00")
    callers = clients(partner, 8)

    def credited(ref):
        """Whether a deposit was credited. It is not if others keep the database locked for too long."""
        words = ["--partner", partner.id, "--currency", "EUR", "--amount", "5.00", "--ref", ref]
        done = world.installation.penstock("balance", "credit", *words)
        assert done.code == 0 or (done.code == 1 and "locked" in done.err), done
        return done.code == 0

    def deposit():
        for _ in range(12):
            ref = secrets.token_hex(8)
            eventually(lambda ref=ref: credited(ref), "the deposit is credited")

    bought = []
    with ThreadPoolExecutor(1) as pool:
        deposits = pool.submit(deposit)
        while not deposits.done():
            quotes = [partner.quote("1.00", client=caller)["quoteId"] for caller in callers]
            answers = at_once([
                lambda caller=caller, quote=quote: partner.transact(quote, client=caller)
                for caller, quote in zip(callers, quotes)
            ])
            assert {answer.status for answer in answers} <= {200, 402}
            bought += [answer for answer in answers if answer.status == 200]
        deposits.result()
    assert partner.balance() == f"{61 - len(bought)}.00"
    partner.checked_ledger()


# rule: pools.transact.expired, time.read-after-lock, pools.quote-record.monotone
def test_quote_has_one_outcome_at_the_instant_of_expiry(quick):
    partner = quick.partner(funds="100000.00")
    callers = clients(partner, 16)

    def on_the_edge(caller, offset):
        quote = partner.quote("1.00", client=caller)
        time.sleep(0.8 + offset)
        before = caller.ok("GET", f"/pools/quotes/{quote['quoteId']}")["status"]
        answer = partner.transact(quote["quoteId"], client=caller)
        after = caller.ok("GET", f"/pools/quotes/{quote['quoteId']}")
        if answer.status == 200:
            assert before == "active" and after["status"] == "consumed"
            assert after["consumedAt"] < after["expiresAt"]
        else:
            assert (answer.status, answer.code) == (409, "quote_expired") and after["status"] == "expired"
        return answer.status

    seen = Counter()
    for _ in range(6):
        seen.update(at_once([
            lambda caller=caller, n=n: on_the_edge(caller, (n - 10) * 0.004) for n, caller in enumerate(callers)
        ]))
    assert set(seen) <= {200, 409}


# rule: tenancy.nothing-crosses, idempotency.scope
def test_partners_of_one_batch_are_separate(world):
    partners = [world.partner(funds="50.00") for _ in range(12)]
    jobs = []
    for partner in partners:
        quotes = [partner.quote("10.00")["quoteId"] for _ in range(6)]
        callers = clients(partner, 6)
        jobs += [
            lambda partner=partner, quote=quote, caller=caller, n=n: partner.transact(quote, idempotency=f"k{n}", client=caller)
            for n, (quote, caller) in enumerate(zip(quotes, callers))
        ]
    seen = Counter(answer.status for answer in at_once(jobs))
    assert seen == {200: 60, 402: 12}
    assert {partner.balance() for partner in partners} == {"0.00"}


# rule: list.no-loss, list.order
def test_paging_under_concurrent_writes_loses_and_repeats_nothing(world):
    partner = world.partner(funds="100000.00")
    before = {partner.trade("1.00")["transactId"] for _ in range(60)}
    made, stop = [], threading.Event()

    def write(client):
        while not stop.is_set():
            quote = partner.quote("1.00", client=client)["quoteId"]
            made.append(partner.transact(quote, client=client).json["transactId"])

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, client) for client in clients(partner, 4)]
        try:
            began = time.monotonic()
            while time.monotonic() < began + 4 or (len(made) <= 20 and time.monotonic() < began + 90):
                keys = [(trade["createdAt"], trade["transactId"]) for trade in partner.trades(limit=7)]
                ids = {transact_id for _, transact_id in keys}
                assert len(ids) == len(keys), "nothing twice"
                assert before <= ids, "nothing lost"
                assert keys == sorted(keys, reverse=True)
        finally:
            stop.set()
    for written in writing:
        written.result()
    assert len(made) > 20
    assert {trade["transactId"] for trade in partner.trades()} == before | set(made)
    partner.checked_ledger()
