"""A checkout as a customer sees it: the widget, the SDK and the demo shop of a running sandbox, in Chromium."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from programs import PROGRAM_TIMEOUT, Server, environment, program
from test_web import expect_passing, suites

LOOPBACK = "127.0.0.1:0"
# The suites make more sessions and read more rows in a minute than a shop does. The limits of each customer's token stay.
UNLIMITED = {
    f"PENSTOCK_THROTTLE_{route}": "100000/60s"
    for route in ("BOOTSTRAP", "CANCEL_SESSION", "CREATE_SESSION", "GLOBAL", "LIST_SESSIONS", "LIST_TRANSACTIONS")
}
# Suites that do not pretend to pay wait only for this.
SETTLES_AFTER = "PENSTOCK_SANDBOX_SETTLES_AFTER"
# A test can move them. A session in dollars has no price.
RATES = {"EUR-USDT": "1.0850", "EUR-USDC": "1.0845", "GBP-USDT": "1.2600"}


class Prices(Server):
    """A source of rates: GET returns all of them, and PUT /PAIR sets one."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self, content):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            self.respond(json.dumps(self.server.rates).encode())

        def do_PUT(self):
            self.server.rates[self.path.removeprefix("/")] = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.respond(b"{}")

        def log_message(self, *_):
            """The requests are not worth a line."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.rates = dict(RATES)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def description(self):
        """The text of a file that makes a service follow this source."""
        lines = ["max_age_ms = 60000", "max_spread_bps = 50", "min_sources = 1", "refresh_ms = 100"]
        for pair in RATES:
            lines += ["[[pairs]]", f'pair = "{pair}"', "spread_bps = 25"]
        lines += ["[[sources]]", 'name = "prices"', f'url = "{self.url}"']
        for pair in RATES:
            lines += ["[[sources.prices]]", f'pair = "{pair}"', f'mid = "/{pair}"']
        return "\n".join(lines) + "\n"


def read_description(process, seconds=PROGRAM_TIMEOUT):
    """Reads the JSON object that the sandbox prints before its listening lines."""
    lines = []
    watch = threading.Timer(seconds, process.kill)
    watch.start()
    try:
        for line in process.stdout:
            if "listening on" in line:
                break
            lines.append(line)
    finally:
        watch.cancel()
    assert process.poll() is None and lines, "".join(lines)
    text = "".join(lines)
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


@contextlib.contextmanager
def running_verifier():
    """The verifier for trials, whose pages decide. Yields the settings that make a sandbox use it, and its address."""
    secret = {"PENSTOCK_VERIFIER_SECRET": "secret-of-the-trial"}
    process = subprocess.Popen(
        [program("TEST_VERIFIER_BIN"), "--listen", LOOPBACK, "--hold"],
        env=environment(secret),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = next(line for line in process.stdout if "listening on" in line).split()[-1]
        # The verifier prints every request.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield {**secret, "PENSTOCK_VERIFIER": f"http:{address}"}, address
    finally:
        process.kill()
        process.wait(60)


@contextlib.contextmanager
def running_sandbox(folder, *words, **settings):
    """A sandbox on free ports. Yields what it printed, and `prices_url`, the source of its rates."""
    prices = Prices()
    threading.Thread(target=prices.serve_forever, daemon=True).start()
    rates = folder / "rates.toml"
    rates.write_text(prices.description())
    ports = {f"PENSTOCK_{name}_LISTEN": LOOPBACK for name in ("POOLS", "GATE", "WIDGET")}
    process = subprocess.Popen(
        [program("PENSTOCK_BIN"), "sandbox", "--dir", folder / "data", "--demo-port", "0", "--output", "json", *words],
        env=environment({**ports, **UNLIMITED, "PENSTOCK_RATES": f"http:{rates}", SETTLES_AFTER: "1s", **settings}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    )
    try:
        description = read_description(process)
        # The sandbox prints every event; an unread pipe would stop it.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield {**description, "prices_url": prices.url}
    finally:
        process.terminate()
        code = process.wait(60)
        prices.shutdown()
        prices.server_close()
    assert code == 0


GUIDES = "e2e/guides"
OTHER_ENGINES = "e2e/engines"
VERIFIER = "e2e/verification"
PRETENCES = "e2e/pretences"


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory):
    """The sandbox of all suites that need no settings of their own."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as described:
        yield described


def run_suite(suite, monkeypatch, described):
    monkeypatch.setenv("SANDBOX", json.dumps(described))
    expect_passing(suite)


# rule: gate.sdk.ended, gate.sdk.hosts
@pytest.mark.parametrize("suite", [suite for suite in suites("e2e") if suite not in (GUIDES, OTHER_ENGINES, VERIFIER, PRETENCES)])
def test_customer_pays_in_sandbox(suite, sandbox, monkeypatch):
    run_suite(suite, monkeypatch, sandbox)


# rule: docs.shops-pay, cli.sandbox.events-to, gate.sdk.package
def test_shops_of_the_guides_are_paid(tmp_path, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running_sandbox(tmp_path, "--events-to", f"http://127.0.0.1:{port}/webhooks") as described:
        run_suite(GUIDES, monkeypatch, {**described, "events_to_port": port, "python": sys.executable})


def test_customer_is_verified_by_a_provider(tmp_path, monkeypatch):
    with running_verifier() as (settings, address), running_sandbox(tmp_path, **settings) as described:
        run_suite(VERIFIER, monkeypatch, {**described, "verifier_url": address})


# rule: gate.embed.pretend, sandbox.rate-changes
def test_customer_pretends(tmp_path, monkeypatch):
    settings = {SETTLES_AFTER: "10m", "PENSTOCK_RATES": "sandbox"}
    with running_sandbox(tmp_path, **settings) as described:
        run_suite(PRETENCES, monkeypatch, described)


@pytest.mark.browsers
def test_customer_pays_in_other_engines(sandbox, monkeypatch):
    run_suite(OTHER_ENGINES, monkeypatch, sandbox)
