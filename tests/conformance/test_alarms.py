"""The shipped alerts in a real Prometheus: quiet while nothing is wrong, and each fires for its cause."""

import contextlib
import functools
import http.client
import http.server
import json
import os
import re
import resource
import secrets
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
import requests

from client import Client
from conftest import World, everything, make_world
from programs import Installation, Server, Service, program
from prometheus import rules, scraped, shortened
from provisioning import gate_profile, partner_toml
from servers import OnServer, Postgres, Redis, free_port, own_folder
from test_payments import SHOP, WALLET
from test_webhooks import SECRET, Receiver
from upgrade import Load, shop, trade

# How long the quiet part takes, and the part under load. In `cargo xtask proof` each takes ten minutes.
SECONDS = float(os.environ.get("CONFORMANCE_ALARMS", "25"))
# These alerts measure the machine's pace. A machine that runs other tests may be slow for a while, so they may be pending.
OF_PACE = {"PenstockCommitSlow", "PenstockTransactSlow"}
# Alerts without a test that causes them, with the reason. `penstock.rules.test.yml` feeds them with samples, like all others.
SYNTHETIC = {
    "PenstockLaneBacklog": "256 waiting commands need clients that send faster than a debug build accepts",
    "PenstockLaneRefuses": "so do 1,024 waiting commands",
    "PenstockBatchesUndone": "a lock only delays a batch; it is rolled back if the database fails within it, again and again",
}

MINUTE = 60 * 1000


@pytest.fixture
def fires(request):
    """Waits until alerts fire. Expects a test to name those in its mark `alerts`."""
    seen = set()

    def wait(prometheus, *names):
        prometheus.fires(*names)
        seen.update(names)

    yield wait
    assert seen == set(request.node.get_closest_marker("alerts").args)


def test_every_alert_is_caused_or_has_a_reason():
    tests = [found for name, found in globals().items() if name.startswith("test_")]
    marks = [mark for test in tests for mark in getattr(test, "pytestmark", ()) if mark.name == "alerts"]
    caused = [name for mark in marks for name in mark.args]
    assert sorted([*caused, *SYNTHETIC]) == sorted(rules())


@pytest.fixture
def on_server(tmp_path, postgres, contract):
    """Makes a pools service on PostgreSQL, as its role, with metrics. A service that still runs is killed at the end."""
    worlds = []

    def make(server=postgres, **settings):
        defaults = {"PENSTOCK_METRICS_LISTEN": "127.0.0.1:0", "PENSTOCK_QUOTE_TTL": "10m"}
        installation = OnServer(tmp_path / "penstock", server, **{**defaults, **settings})
        installation.apply(everything())
        worlds.append(World(installation, installation.start(), contract))
        return worlds[-1]

    yield make
    for world in worlds:
        world.service.kill()


@contextlib.contextmanager
def watched(folder, *services, **options):
    """A Prometheus with shortened durations, in which no alert is pending yet."""
    with scraped(folder, *services, change=shortened, **options) as prometheus:
        assert not prometheus.in_state("pending", "firing")
        yield prometheus


class Repeated:
    """Repeats calls until the block ends. Responses do not matter."""

    def __init__(self, *calls, pause=0.1):
        self.stopping, self.pause = threading.Event(), pause
        self.threads = [threading.Thread(target=self.run, args=(call,), daemon=True) for call in calls]

    def run(self, call):
        while not self.stopping.is_set():
            with contextlib.suppress(AssertionError, OSError, http.client.HTTPException, KeyError, requests.RequestException):
                call()
            self.stopping.wait(self.pause)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class Upstream:
    """A server whose responses a test gives: `respond(method, path, body)` returns the body of a response."""

    def __init__(self, respond, status=200):
        self.respond = respond
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                sent = self.rfile.read(int(self.headers.get("content-length") or 0))
                body = json.dumps(upstream.respond(self.command, self.path, sent and json.loads(sent))).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *words):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()


@pytest.fixture
def nowhere():
    """An address that refuses connections, as long as no program of the test takes the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def paced(way):
    @functools.wraps(way)
    def run(client, saw):
        way(client, saw)
        time.sleep(0.2)

    return run


def stay_quiet(prometheus, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        states = {name: rule["state"] for name, rule in prometheus.alerts().items() if rule["state"] != "inactive"}
        wrong = {name for name, state in states.items() if state == "firing" or name not in OF_PACE}
        assert not wrong, states
        time.sleep(1)


# rule: ops.alarms-true
def test_alerts_stay_inactive_without_load_and_under_load(tmp_path, on_server):
    receiver = Receiver()
    hook = {"url": receiver.url, "secret": SECRET}
    world = on_server()
    partner = world.partner(funds="9000000.00", gate=gate_profile(SHOP))
    hooks = {"webhook": hook, "gate": partner.gate, "gate_webhook": hook}
    world.installation.apply(partner_toml(partner.id, pools=partner.pools, **hooks))
    with world.service, world.installation.start_gate() as gate, scraped(tmp_path, world.service, gate) as prometheus:
        stay_quiet(prometheus, SECONDS)
        load = Load(partner.secret, [(world.service, paced(trade)), (gate, paced(shop))] * 2)
        stay_quiet(prometheus, SECONDS)
        answers = load.stop()
        assert load.faults == [] and answers["trade", 200] and answers["shop", 201], answers
        receiver.expect(2)
        assert prometheus.values('sum(increase(penstock_webhook_attempts_total{outcome="delivered"}[1m]))') > [0]
    receiver.server.shutdown()
    world.installation.verify()


def open_files(service):
    return len(os.listdir(f"/proc/{service.process.pid}/fd"))


def hold_health(service, connections):
    """One more connection, kept open."""
    connection = socket.create_connection((service.host, service.port), timeout=60)
    connections.append(connection)
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: test\r\n\r\n")
    return connection


# rule: ops.alarms-true
@pytest.mark.alerts(
    "PenstockRestarts", "PenstockDown", "PenstockFileDescriptors", "PenstockAcceptFailures", "PenstockAbsent"
)
def test_alerts_fire_for_a_process_that_restarts_ends_or_runs_out_of_files(tmp_path, on_server, fires):
    # A service that restarts keeps its address.
    world = on_server(PENSTOCK_METRICS_LISTEN=f"127.0.0.1:{free_port()}")
    with watched(tmp_path, world.service) as prometheus:
        started = "process_start_time_seconds and on(instance) up == 1"
        for _ in range(3):
            before = prometheus.values(started)
            # The figure has whole seconds.
            time.sleep(1)
            world.service.kill()
            world.service = world.installation.start()
            prometheus.eventually(lambda old=before: prometheus.values(started) not in ([], old), "the start is seen")
        fires(prometheus, "PenstockRestarts")
        world.service.kill()
        fires(prometheus, "PenstockDown")
        world.service = world.installation.start()
        prometheus.eventually(lambda: prometheus.values("up == 1"), "it is scraped again")
        # Below the limit that the service saw at its start, so it does not refuse connections.
        limit = open_files(world.service) + 100
        resource.prlimit(world.service.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        held = []
        while open_files(world.service) < 0.9 * limit:
            hold_health(world.service, held).recv(1000)
        fires(prometheus, "PenstockFileDescriptors")
        for _ in range(20):
            hold_health(world.service, held)
        world.service.logs("Failed to accept a connection")
        for connection in held:
            connection.close()
        fires(prometheus, "PenstockAcceptFailures")
        prometheus.reload(lambda text: re.sub(r"targets: \[.*\]", "targets: []", text))
        fires(prometheus, "PenstockAbsent")
    assert world.service.stop() == 0


# rule: ops.alarms-true
@pytest.mark.alerts("PenstockPanicked", "PenstockCommitUnknown")
def test_alerts_fire_for_a_panic_and_for_a_commit_in_doubt(tmp_path, contract, fires):
    broken = "quote.insert.before=1*panic;transact.commit.after=1*return(fail)"
    world = make_world(tmp_path / "broken", contract, PENSTOCK_METRICS_LISTEN="127.0.0.1:0", FAILPOINTS=broken)
    partner = world.partner(funds="1000.00")
    with watched(tmp_path, world.service) as prometheus:
        partner.client.refused(500, "internal_error", "POST", "/pools/EUR-USDT/quote", partner.ask("100.00"))
        quote = partner.quote("100.00")
        doubted = partner.transact(quote["quoteId"], idempotency="once")
        assert (doubted.status, doubted.code) == (503, "outcome_unknown")
        assert partner.transact(quote["quoteId"], idempotency="once").json["idempotent"] is True
        fires(prometheus, "PenstockPanicked", "PenstockCommitUnknown")
    assert world.service.stop() == 0
    world.installation.verify()


def rates_file(folder, url, **limits):
    """A file of one source of rates."""
    file = folder / f"rates-{secrets.token_hex(4)}.toml"
    values = {"max_age_ms": 2000, "max_spread_bps": 50, "min_sources": 1, "refresh_ms": 200, **limits}
    file.write_text(
        "".join(f"{name} = {value}\n" for name, value in values.items())
        + '[[pairs]]\npair = "EUR-USDT"\nspread_bps = 25\n'
        + f'[[sources]]\nname = "test"\nurl = "{url}/"\n[[sources.prices]]\npair = "EUR-USDT"\nmid = "/mid"\n'
    )
    return file


class User:
    """A user of the widget."""

    def __init__(self, gate, partner):
        self.gate, self.partner = gate, partner

    def call(self, path, body=None, **headers):
        return requests.post(f"{self.gate.address}/v1/{path}", json=body, headers=headers, timeout=30)

    def begin(self, **fields):
        """A new session's token."""
        key = {"Authorization": f"Bearer {self.partner.secret}", "Idempotency-Key": secrets.token_hex(8)}
        body = {"amount": "100.00", "currency": "EUR", "return_url": f"{SHOP}/done", **fields}
        secret = self.call("gate_sessions", body, **key).json()["client_secret"]
        page = {"Authorization": f"Bearer {self.partner.publishable}", "Origin": SHOP}
        return self.call("embed/bootstrap", {"clientSecret": secret}, **page).json()["embed_token"]

    def verify(self):
        """Begins a verification, which mode test wants for this amount."""
        return self.call("embed/verification", {}, **{"X-Embed-Token": self.begin(amount="100.61")})

    def pay(self):
        """Begins a payment of a verified user."""
        widget = {"X-Embed-Token": self.begin(kyc_package={"level": 2})}
        order = {"side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa"}
        quote = self.call("embed/quotes", order, **widget).json()
        paid = {"quote_id": quote["id"], "wallet_address": WALLET}
        return self.call("embed/payments", paid, **widget, **{"Idempotency-Key": secrets.token_hex(8)})


# rule: ops.alarms-true
@pytest.mark.alerts(
    "PenstockEngineSilent", "PenstockRatesMissing", "PenstockRailSilent", "PenstockVerifierSilent", "PenstockServerErrors"
)
def test_alerts_fire_for_silent_upstreams(tmp_path, on_server, nowhere, fires):
    settings = {"PENSTOCK_ENGINE": f"http:{nowhere}", "PENSTOCK_RAIL": f"http:{nowhere}"}
    world = on_server(PENSTOCK_VERIFIER=f"http:{nowhere}", **settings)
    partner = world.partner(funds="1000.00", gate=gate_profile(SHOP))
    rates = {"PENSTOCK_ENGINE": "sandbox", "PENSTOCK_RATES": f"http:{rates_file(tmp_path, nowhere)}"}
    with (
        world.service,
        world.installation.start(**rates) as unpriced,
        world.installation.start_gate() as gate,
        watched(tmp_path, world.service, unpriced, gate) as prometheus,
    ):
        user = User(gate, partner)
        clients = [Client(service, partner.secret) for service in (world.service, unpriced)]
        quotes = [functools.partial(client.post, "/pools/EUR-USDT/quote", partner.ask()) for client in clients]
        with Repeated(*quotes, user.pay, user.verify):
            fires(prometheus, "PenstockEngineSilent", "PenstockRatesMissing", "PenstockRailSilent")
            fires(prometheus, "PenstockVerifierSilent", "PenstockServerErrors")
    world.installation.verify()


class Fickle:
    """An engine that delays holds, and delivers each trade under a new id at every report."""

    def __init__(self):
        self.hold = 0.0

    def respond(self, method, path, body):
        operation = path.rpartition("/")[2] if method == "POST" else "report"
        if operation == "hold":
            time.sleep(self.hold)
        if operation == "report":
            return {"status": "delivered", "fillTxId": secrets.token_hex(8)}
        return {"status": {"depth": "enough", "hold": "held", "confirm": "confirmed", "release": "released"}[operation]}


def slow_gate(method, path, body):
    """A rail and a verifier that take longer than 2 s."""
    time.sleep(2.2)
    id, _, operation = path.removeprefix("/v1/payments/").removeprefix("/v1/verifications/").partition("/")
    if "verifications" in path:
        return {"id": id, "status": "pending", "url": "https://verifier.example/page"}
    return {"id": id, "instructions": {"reference": id}} if operation else {"id": id, "status": "processing"}


# rule: ops.alarms-true
@pytest.mark.alerts(
    "PenstockTransactSlow", "PenstockInvariantViolated", "PenstockRailSlow", "PenstockVerifierSlow", "PenstockRateJumped"
)
def test_alerts_fire_for_slow_and_contradictory_upstreams(tmp_path, on_server, fires):
    fickle, mid = Fickle(), ["1.0850"]
    with (
        Upstream(fickle.respond) as engine,
        Upstream(slow_gate) as slow,
        Upstream(lambda *_: {"mid": mid[0]}) as source,
    ):
        upstreams = {"ENGINE": engine.url, "RAIL": slow.url, "VERIFIER": slow.url}
        upstreams["RATES"] = rates_file(tmp_path, source.url, max_move_bps=200)
        settings = {f"PENSTOCK_{name}": f"http:{where}" for name, where in upstreams.items()}
        world = on_server(**settings)
        partner = world.partner(funds="100000.00", gate=gate_profile(SHOP))
        with (
            world.service,
            world.installation.start_gate(PENSTOCK_RATES="sandbox") as gate,
            watched(tmp_path, world.service, gate) as prometheus,
        ):
            first = partner.trade()
            assert partner.poll(first["quoteId"])["status"] == "settled"
            # The engine is asked again at once, and not only after a minute.
            world.installation.change("UPDATE trades SET lease_until = 1 WHERE lease_until IS NOT NULL")
            partner.poll(first["quoteId"])
            fires(prometheus, "PenstockInvariantViolated")
            user, fickle.hold = User(gate, partner), 1.3
            with Repeated(user.pay, user.pay, user.verify, user.verify, partner.trade):
                fires(prometheus, "PenstockTransactSlow", "PenstockRailSlow", "PenstockVerifierSlow")
            mid[0] = "1.2000"
            fires(prometheus, "PenstockRateJumped")


class Stuttering:
    """Stops the sessions of the services for 0.4 s again and again, until the block ends."""

    def __init__(self, postgres):
        self.postgres = postgres
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.stopping.wait(0.1):
            sessions = self.postgres.sql("SELECT pid FROM pg_stat_activity WHERE usename = 'penstock_serve'")
            for how, pause in ((signal.SIGSTOP, 0.4), (signal.SIGCONT, 0)):
                for session in sessions:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(session), how)
                time.sleep(pause)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()


def processing(method, path, body):
    """A rail that ends no payment."""
    id, _, operation = path.removeprefix("/v1/payments/").partition("/")
    if operation:
        return {"id": id, "instructions": {"reference": id}}
    return {"id": id, "status": "accepted" if method == "PUT" else "processing"}


# rule: ops.alarms-true
@pytest.mark.alerts("PenstockRailUnderpaid", "PenstockRailMoney", "PenstockHeldElsewhere", "PenstockEndedElsewhere")
def test_alerts_fire_for_other_money_at_the_rail_and_for_a_rail_that_is_not_configured(tmp_path, on_server, fires):
    arrived, polled = ["20.00"], []

    def respond(method, path, body):
        """The payment that is polled first settles. Of every other one something has arrived."""
        answer = processing(method, path, body)
        if method != "GET":
            return answer
        polled.append(path)
        if path == polled[0]:
            return {**answer, "status": "settled"}
        return {**answer, "received": {"amount": arrived[0]}}

    with Upstream(respond) as rail:
        world = on_server(PENSTOCK_RAIL=f"http:{rail.url}")
        partner = world.partner(gate=gate_profile(SHOP))
        # A service that restarts keeps its address.
        metrics = {"PENSTOCK_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
        with (
            world.service,
            world.installation.start_gate(**metrics) as gate,
            watched(tmp_path, world.service, gate) as prometheus,
        ):
            for _ in range(2):
                assert User(gate, partner).pay().status_code == 201
            fires(prometheus, "PenstockRailUnderpaid")
            arrived[0] = "110.00"
            fires(prometheus, "PenstockRailMoney")
            assert gate.stop() == 0
            with world.installation.start_gate(PENSTOCK_RAIL="none", **metrics):
                fires(prometheus, "PenstockHeldElsewhere", "PenstockEndedElsewhere")


# rule: ops.alarms-true
@pytest.mark.alerts(
    "PenstockTradeStuck",
    "PenstockPaymentStuck",
    "PenstockCommitSlow",
    "PenstockClockSetBack",
    "PenstockClockJumped",
    "PenstockStoreFails",
)
def test_alerts_fire_for_old_rows_slow_commits_wrong_clocks_and_a_lost_database(tmp_path, on_server, fires):
    with own_folder() as folder, Postgres(folder) as postgres, Upstream(processing) as rail:
        # A service that restarts keeps its address.
        settings = {"PENSTOCK_RAIL": f"http:{rail.url}", "PENSTOCK_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
        world = on_server(postgres, **settings)
        change = world.installation.change
        partner = world.partner(funds="100000.00", gate=gate_profile(SHOP))
        with (
            world.installation.start_gate(PENSTOCK_METRICS_LISTEN="127.0.0.1:0") as gate,
            watched(tmp_path, world.service, gate) as prometheus,
        ):
            partner.trade()
            assert User(gate, partner).pay().status_code == 201
            with Stuttering(postgres), Repeated(partner.trade):
                fires(prometheus, "PenstockCommitSlow")
            change(f"UPDATE trades SET created_at = created_at - {61 * MINUTE}")
            change(f"UPDATE rail_records SET created_at = created_at - {3 * 24 * 60 * MINUTE + MINUTE}")
            fires(prometheus, "PenstockTradeStuck", "PenstockPaymentStuck")
            # A service reads the jump at its start. A write at a later instant would end it.
            world.service.stop()
            now = int(time.time() * 1000)
            change(f"UPDATE clock_jump SET expected = {now - 60 * MINUTE}, found = {now}")
            world.service = partner.client.service = world.installation.start()
            fires(prometheus, "PenstockClockJumped")
            world.installation.operator("clock", "accept")
            # The server's clock was ahead by an hour when the partner last wrote.
            change(f"UPDATE books SET at = at + {60 * MINUTE}")
            with Repeated(partner.trade):
                fires(prometheus, "PenstockClockSetBack")
            postgres.stop()
            with Repeated(partner.quote):
                fires(prometheus, "PenstockStoreFails")
            world.service.stop()


# A service whose database is on a small disk. The namespace needs no privileges.
SMALL_DISK = """#!/bin/sh
mkdir data && exec unshare --map-root-user --mount sh -c 'mount -t tmpfs -o size=64m small data && exec "$0"' {binary}
"""


# rule: ops.alarms-true
@pytest.mark.alerts("PenstockDiskFills", "PenstockDiskLow", "PenstockDiskFull", "PenstockLogGrows")
def test_alerts_fire_for_a_small_disk_and_a_large_log(tmp_path, monkeypatch, fires):
    script = tmp_path / "small-disk"
    script.write_text(SMALL_DISK.format(binary=program("POOLS_SERVICE_BIN")))
    script.chmod(0o755)
    monkeypatch.setenv("SMALL_DISK_BIN", str(script))
    folder = tmp_path / "penstock"
    installation = Installation(folder, PENSTOCK_METRICS_LISTEN="127.0.0.1:0")
    installation.settings["PENSTOCK_DATABASE_URL"] = f"sqlite://{folder / 'data' / 'penstock.db'}"
    with Service(installation, "SMALL_DISK_BIN", (), installation.settings) as service:
        data = Path(f"/proc/{service.process.pid}/root{folder}/data")
        with scraped(tmp_path, service, change=shortened) as prometheus:
            (data / "grows").write_bytes(bytes(20 << 20))
            # A log that has grown, without the bytes.
            with (data / "penstock.db-wal").open("ab") as log:
                log.truncate((1 << 30) + 1)
            fires(prometheus, "PenstockDiskFills", "PenstockDiskLow", "PenstockDiskFull", "PenstockLogGrows")


# rule: ops.alarms-true, webhook.gone
@pytest.mark.alerts(
    "PenstockRefusedForFunds",
    "PenstockDeadLetters",
    "PenstockReceiverGone",
    "PenstockDeliveriesFail",
    "PenstockDeliveriesLate",
    "PenstockLimitsApart",
)
def test_alerts_fire_for_empty_accounts_lost_deliveries_and_a_lost_redis(tmp_path, on_server, nowhere, fires):
    with own_folder() as folder, Redis(folder) as redis, Upstream(lambda *_: {}, status=410) as removed:
        settings = {"PENSTOCK_WEBHOOK_WAITS": "10ms,10ms", "PENSTOCK_REDIS_URL": redis.url}
        world = on_server(**settings)
        partner, gone, poor = world.partner(funds="100000.00"), world.partner(funds="100000.00"), world.partner()
        for receiver, url in ((partner, nowhere), (gone, removed.url)):
            hook = {"url": f"{url}/hooks", "secret": SECRET}
            world.installation.apply(partner_toml(receiver.id, pools=receiver.pools, webhook=hook))

        settles = [lambda each=each: each.poll(each.trade()["quoteId"]) for each in (partner, gone)]
        with world.service, watched(tmp_path, world.service) as prometheus:
            redis.stop()
            with Repeated(*settles):
                fires(prometheus, "PenstockDeadLetters", "PenstockReceiverGone", "PenstockDeliveriesFail", "PenstockLimitsApart")
            with Repeated(lambda: poor.transact(poor.quote()["quoteId"])):
                fires(prometheus, "PenstockRefusedForFunds")
            # The worker cannot take events, which have been due for a minute.
            world.installation.change("REVOKE UPDATE ON deliveries FROM penstock_serve")
            due = int(time.time() * 1000) - MINUTE - 1000
            world.installation.change(f"UPDATE deliveries SET status = 'pending', next_attempt_at = {due}")
            fires(prometheus, "PenstockDeliveriesLate")


class TextFile:
    """Plays node_exporter: serves what a program wrote for its textfile collector."""

    def __init__(self, file):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(file.read_bytes())

            def log_message(self, *words):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server.server_port}"


# rule: ops.alarms-true
@pytest.mark.alerts("PenstockVerifyFailed", "PenstockVerifyOverdue")
def test_alerts_fire_for_a_breach_and_for_a_verification_that_does_not_run(tmp_path, on_server, fires):
    world = on_server()
    partner = world.partner(funds="1000.00")
    written = tmp_path / "penstock_verify.prom"
    verify = ("verify", "--metrics", written)
    assert world.installation.penstock(*verify).code == 0
    node = TextFile(written)
    with world.service, watched(tmp_path, world.service, node=node.address) as prometheus:
        prometheus.eventually(lambda: prometheus.values("penstock_verify_ok") == [1], "the file is scraped")
        url = prometheus.alerts()["PenstockVerifyFailed"]["annotations"]["runbook_url"]
        assert url == "{{ $externalLabels.docs }}/operating.md#penstockverifyfailed"
        world.installation.change(f"UPDATE accounts SET available = available + 1 WHERE partner_id = '{partner.id}'")
        assert world.installation.penstock(*verify).code == 1
        fires(prometheus, "PenstockVerifyFailed")
        [firing] = prometheus.alerts()["PenstockVerifyFailed"]["alerts"]
        assert firing["annotations"]["runbook_url"] == "https://docs.example.com/penstock/operating.md#penstockverifyfailed"
        text = written.read_text()
        [completed] = prometheus.values("penstock_verify_completed_timestamp_seconds")
        assert time.time() - 60 < completed <= time.time() + 1
        stamp = f" {text.split('penstock_verify_completed_timestamp_seconds{')[1].split()[1]}\n"
        written.write_text(text.replace(stamp, f" {int(completed) - 37 * 60 * 60}\n"))
        fires(prometheus, "PenstockVerifyOverdue")
    node.server.shutdown()
