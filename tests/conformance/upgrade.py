"""Migrates a server's database while the programs of the previous version serve.

It needs programs of two versions, so CI runs `test_upgrade.py` instead, in which the current programs take the part of the old
ones. By hand, with the programs of each version in a folder and an empty database on a PostgreSQL server:

    python upgrade.py --old DIR --new DIR postgres://…

Clients trade and hold sessions through the old programs; meanwhile the new ones' `migrate` runs; no response may be
5xx. Then the old programs stop and the new ones continue; `verify` of the new version runs last.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import itertools
import os
import tempfile
import threading
import time
import uuid

from client import Client
from programs import Installation
from provisioning import ADDRESS, new_key, partner_toml, pool_toml, profile, terms_for

PROGRAMS = {"PENSTOCK_BIN": "penstock", "POOLS_SERVICE_BIN": "pools-service", "GATE_SERVICE_BIN": "gate-service"}
TRADERS, SHOPPERS = 6, 4
SHOP = "https://shop.example"


def use(folder):
    for variable, name in PROGRAMS.items():
        os.environ[variable] = os.path.join(folder, name)


def trade(client, saw):
    order = {"side": "on_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "cryptoNetwork": "tron"}
    order |= {"amount": "20.00", "destAddress": ADDRESS}
    quote = saw(client.post("/pools/EUR-USDT/quote", order)).json["quoteId"]
    key = {"Idempotency-Key": str(uuid.uuid4())}
    saw(client.post("/pools/EUR-USDT/transact", {"quoteId": quote}, headers=key))
    saw(client.get(f"/pools/transactions/{quote}"))
    saw(client.get("/pools/ledger?currency=EUR"))


def shop(client, saw):
    body = {"amount": "20.00", "currency": "EUR", "return_url": f"{SHOP}/done"}
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = saw(client.post("/gate_sessions", body, headers=key))
    again = saw(client.fork().post("/gate_sessions", body, headers=key))
    assert again.raw == first.raw
    session = first.json["id"]
    saw(client.post(f"/test_helpers/sessions/{session}/complete"))
    saw(client.get(f"/gate_sessions/{session}"))
    saw(client.get("/transactions"))


class Refused(Exception):
    """An unexpected response; its client starts again."""


class Load:
    """Clients that run until the stop signal, and their responses."""

    def __init__(self, key, ways):
        self.answers = collections.Counter()
        self.faults = []
        self.stopping = threading.Event()
        pool = concurrent.futures.ThreadPoolExecutor(len(ways))
        self.clients = [pool.submit(self.run, Client(at, key), way) for at, way in ways]

    def run(self, client, way):
        while not self.stopping.is_set():
            with contextlib.suppress(Refused):
                way(client, functools.partial(self.saw, way.__name__))

    def saw(self, way, answer):
        self.answers[way, answer.status] += 1
        if answer.status not in (200, 201):
            self.faults.append(repr(answer))
            raise Refused
        return answer

    def stop(self):
        self.stopping.set()
        for client in self.clients:
            client.result()
        return self.answers


def provision(installation, key):
    gate = {"enabled": True, "allowed_domains": [SHOP]}
    access = profile(allowed=["EUR-USDT"], velocity_cap_usdt="90000000000")
    text = pool_toml("EUR-USDT") + partner_toml(
        "upgrade", pools=access, terms=terms_for(["EUR-USDT"]), keys=[{"kind": "secret", "key": key}], gate=gate
    )
    installation.apply(text)
    installation.credit("upgrade", "9000000.00")


def serve(installation, key, during=lambda: None):
    with installation.start() as pools, installation.start_gate() as gate:
        load = Load(key, [(pools, trade)] * TRADERS + [(gate, shop)] * SHOPPERS)
        time.sleep(4)
        during()
        time.sleep(4)
        return load.stop(), load.faults


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--old", required=True)
    options.add_argument("--new", required=True)
    options.add_argument("url", help="an empty database, as its owner")
    options = options.parse_args()
    key = new_key()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"PENSTOCK_DATABASE_URL": options.url, "PENSTOCK_MASTER_KEY": "A" * 43 + "="}
        installation = Installation(folder, **settings)

        def migrate():
            use(options.new)
            begun = time.monotonic()
            done = installation.pools_service("migrate")
            assert done.code == 0, done.out + done.err
            print(f"migrated beside the load in {time.monotonic() - begun:.1f} s")

        use(options.old)
        done = installation.pools_service("migrate")
        assert done.code == 0, done.out + done.err
        provision(installation, key)
        before, faults = serve(installation, key, migrate)
        after, more = serve(installation, key)
        figures = installation.verify()["figures"]
    for name, answers in (("the old programs", before), ("the new programs", after)):
        print(name, dict(sorted(answers.items())))
    print("verify: clean;", dict(itertools.islice(figures.items(), 6)))
    for fault in faults + more:
        print("NOT AS IT SHOULD BE:", fault)
    return 1 if faults or more else 0


if __name__ == "__main__":
    raise SystemExit(main())
