"""Kills the process under load repeatedly. Acknowledged work persists; retries find the outcome of the rest."""

import http.client
import os
import random
import secrets
import threading
import time
from decimal import Decimal

from conftest import everything
from programs import Installation
from provisioning import Partner, new_key, partner_toml, profile, terms_for
from client import Client

ROUNDS = int(os.environ.get("CONFORMANCE_KILLS", "22"))
WORKERS = 8
LOST = (OSError, http.client.HTTPException)


class World:
    """Like the shared world, but its service is killed and restarted."""

    def __init__(self, installation):
        self.installation = installation
        self.service = None


class Book:
    """Acknowledged results of one partner's clients, and calls whose outcome is unknown."""

    def __init__(self):
        self.lock = threading.Lock()
        self.acknowledged = {}  # quote -> acknowledgement
        self.rejected = set()
        self.in_doubt = []  # (quote, key)
        self.seen = {}  # transactId -> the latest status seen
        self.broken = []


ORDER = ["reserved", "settled", "failed", "released", "returned"]


def work(partner, book, stop, seed):
    chance = random.Random(seed)
    client = Client(partner.world.service, partner.secret)
    while not stop.is_set():
        quote = None
        try:
            # Covers every outcome of the sandbox.
            amount = f"{chance.randrange(1, 9)}{chance.choice(['.00', '.00', '.31', '.32', '.41', '.21'])}"
            quote = partner.quote(amount, client=client)["quoteId"]
            if chance.random() < 0.15:
                if client.post(f"/pools/quotes/{quote}/reject").status == 200:
                    with book.lock:
                        book.rejected.add(quote)
                continue
            key = secrets.token_hex(8)
            with book.lock:
                book.in_doubt.append((quote, key))
            answer = partner.transact(quote, idempotency=key, client=client)
            if answer.status != 200:
                raise AssertionError(repr(answer))
            with book.lock:
                book.acknowledged[quote] = answer.json
                book.in_doubt.remove((quote, key))
            if chance.random() < 0.7:
                view = partner.poll(quote, client=client)
                with book.lock:
                    book.seen[quote] = view["status"]
        except LOST:
            return
        except AssertionError as error:
            with book.lock:
                book.broken.append(error)
            return


def acknowledged(partners):
    return sum(len(book.acknowledged) for _, book in partners)


def settle_doubts(partner, book):
    """Retries every call without a response, under its own key, until it succeeds."""
    for quote, key in list(book.in_doubt):
        answer = partner.transact(quote, idempotency=key)
        assert answer.status == 200 or answer.code == "quote_expired", answer
        if answer.status == 200:
            book.acknowledged[quote] = answer.json
        again = partner.transact(quote, idempotency=key)
        assert again.status == answer.status
        if answer.status == 200:
            assert again.json["transactId"] == answer.json["transactId"] and again.json["idempotent"] is True
    book.in_doubt.clear()


def judge(partner, book):
    """Compares every acknowledgement before the crash with the state after it."""
    trades = {trade["quoteId"]: trade for trade in partner.trades()}
    assert set(book.acknowledged) <= set(trades), "an acknowledged trade is lost"
    for quote, ack in book.acknowledged.items():
        assert trades[quote]["transactId"] == ack["transactId"]
    for quote, status in book.seen.items():
        if status != "reserved":
            now = trades[quote]["status"]
            assert now == status or (status, now) == ("settled", "returned"), (quote, status, now)
    assert not set(trades) & book.rejected
    entries = partner.checked_ledger()
    debits = {entry["ref"]: Decimal(entry["delta"]) for entry in entries if entry["reason"] == "buy_debit"}
    assert {quote: -Decimal(trade["fiatAmount"]) for quote, trade in trades.items()} == debits
    refunds = [entry["ref"] for entry in entries if entry["reason"] == "buy_refund"]
    assert len(refunds) == len(set(refunds)), "refunded twice"
    given_back = {quote for quote, trade in trades.items() if trade["status"] in ("failed", "released", "returned")}
    assert set(refunds) == given_back


# rule: base.acknowledged-is-kept, pools.transact.atomic, idempotency.same-transaction, idempotency.unknown-commit
# rule: sandbox.pure, base.clock-forward
def test_kill_under_load_loses_no_acknowledged_trade(tmp_path, contract):
    installation = Installation(tmp_path / "crash", PENSTOCK_QUOTE_TTL="60s")
    world = World(installation)
    installation.apply(everything())
    partners = []
    for n in range(3):
        key = new_key()
        pools, terms = profile(allowed=["EUR-USDT"]), terms_for(["EUR-USDT"])
        installation.apply(partner_toml(f"crash-{n}", pools=pools, terms=terms, keys=[{"kind": "secret", "key": key}]))
        installation.credit(f"crash-{n}", "10000000.00")
        partners.append((Partner(world, f"crash-{n}", key, "", None), Book()))
    chance = random.Random(os.environ.get("CONFORMANCE_SEED", "7"))
    for round_number in range(ROUNDS):
        world.service = installation.start()
        for partner, book in partners:
            partner.client = Client(world.service, partner.secret, contract)
            settle_doubts(partner, book)
        stop = threading.Event()
        threads = [
            threading.Thread(target=work, args=(*partners[n % 3], stop, round_number * 100 + n)) for n in range(WORKERS)
        ]
        for thread in threads:
            thread.start()
        enough, limit = acknowledged(partners) + 5, time.monotonic() + 30
        time.sleep(0.1 + chance.random() * 0.7)
        # On a slow machine only each fourth kill can be too early for any work.
        while round_number % 4 < 3 and acknowledged(partners) < enough and time.monotonic() < limit:
            time.sleep(0.01)
        world.service.kill()
        stop.set()
        for thread in threads:
            thread.join()
        for _, book in partners:
            assert not book.broken, book.broken
        installation.verify()
    world.service = installation.start()
    with world.service:
        for partner, book in partners:
            partner.client = Client(world.service, partner.secret, contract)
            settle_doubts(partner, book)
            judge(partner, book)
            for quote in book.acknowledged:
                for _ in range(3):
                    view = partner.poll(quote)
                assert view["status"] in ("settled", "failed", "released", "returned"), view
            judge(partner, book)
        assert acknowledged(partners) > ROUNDS * 3, "too little load"
        assert world.service.stop() == 0
    installation.verify()


# rule: base.acknowledged-is-kept, pools.quote.retention
def test_second_process_takes_over_after_the_first_is_killed(tmp_path, contract, partner_file):
    installation = Installation(tmp_path / "takeover", PENSTOCK_QUOTE_TTL="10m")
    key = new_key()
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))
    installation.credit("acme", "100.00")
    world = World(installation)
    world.service = installation.start()
    partner = Partner(world, "acme", key, "", Client(world.service, key, contract))
    waiting, done = partner.quote("10.21")["quoteId"], partner.trade("20.41")
    assert partner.poll(done["quoteId"])["status"] == "settled"
    world.service.kill()
    world.service = installation.start()
    with world.service:
        partner.client = Client(world.service, key, contract)
        assert partner.client.ok("GET", f"/pools/quotes/{waiting}")["status"] == "active"
        ack = partner.transact(waiting).json
        assert partner.poll(done["quoteId"])["status"] == "returned"
        assert partner.poll(ack["quoteId"])["status"] == "reserved"
    world.service = installation.start()
    with world.service:
        partner.client = Client(world.service, key, contract)
        assert partner.poll(ack["quoteId"])["status"] == "settled", "attempts are counted across restarts"
    installation.verify()
