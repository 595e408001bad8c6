"""Payments of the hosted flow under races, kills, and a rail that lies: a session is paid once, and only by a settled payment."""

import http.server
import json
import random
import secrets
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from conftest import make_world
from programs import Server, eventually
from provisioning import gate_profile
from test_races import at_once

SHOP = "https://shop.example"
WALLET = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
ACCOUNT = {"iban": "DE89370400440532013000", "account_holder": "Erika Mustermann"}
JSON = {"Content-Type": "application/json"}
# Responses that must not decide anything. `{id}` is the id of the payment.
LIES = [
    (200, JSON, b'{"id":"pi_test_00000000000000000000000000","status":"settled"}'),
    (200, JSON, b'{"id":null,"status":"settled"}'),
    (200, JSON, b'["{id}","settled"]'),
    (200, JSON, b'{"id":"{id}","status":"SETTLED"}'),
    (200, JSON, b'{"id":"{id}","status":"processing","status":"settled"}'),
    (200, JSON, b'{"id":"{id}","status":"settled"'),
    (200, JSON, b'{"id":"{id}","status":"settled","more":"' + b"a" * 200_000 + b'"}'),
    (200, JSON, b'{"id":"{id}","status":"failed","code":"<script>"}'),
    (200, JSON, b"\xff\xfe\x00"),
    (200, {"Content-Type": "text/html"}, b'{"id":"{id}","status":"settled"}'),
    (200, {**JSON, "Content-Encoding": "gzip"}, b'{"id":"{id}","status":"settled"'),
    (201, JSON, b'{"id":"{id}","status":"settled"}'),
    (302, {**JSON, "Location": "/v1/payments/{id}"}, b'{"id":"{id}","status":"settled"}'),
    (500, JSON, b'{"id":"{id}","status":"settled"}'),
    (204, {}, b""),
]


class Rail:
    """A rail over HTTP. While it lies, it sends a lie for half of the calls, and contradicts its final reports."""

    def __init__(self, seed):
        self.states, self.settled = {}, set()
        self.lies, self.dice, self.lock = False, random.Random(seed), threading.Lock()
        rail = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("content-length") or 0))
                record, _, operation = self.path.removeprefix("/v1/payments/").partition("/")
                with rail.lock:
                    status, headers, body = rail.respond(self.command, record, operation)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
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

    def respond(self, method, record, operation):
        if self.lies and self.dice.random() < 0.5:
            status, headers, body = self.dice.choice(LIES)
            named = {name: value.replace("{id}", record) for name, value in headers.items()}
            return status, named, body.replace(b"{id}", record.encode())
        answer = {"id": record, **self.truth(method, record, operation)}
        if answer.get("status") == "unknown":
            return 404, JSON, b"{}"
        if answer.get("status") == "settled":
            self.settled.add(record)
        return 200, JSON, json.dumps({**answer, "amount": "0.01"}).encode()

    def truth(self, method, record, operation):
        state = self.states.get(record, "unknown")
        if operation == "instructions":
            return {"instructions": {"reference": record}}
        if operation == "cancel":
            if state in ("unknown", "processing", "cancelled"):
                self.states[record] = "cancelled"
                return {"status": "cancelled"}
            return {"status": "not_cancellable"}
        if method == "PUT":
            self.states.setdefault(record, "processing")
            return {"status": "accepted"}
        if state == "processing":
            self.states[record] = "settled"
        if self.lies and state == "settled":
            state = self.dice.choice(["settled", "failed", "processing", "cancelled"])
        return {"status": state, **({"code": "no_funds"} if state == "failed" else {})}


class Checkout:
    """A partner whose users pay by a rail."""

    def __init__(self, folder, contract, seed, services=1):
        self.rail = Rail(seed)
        settings = {"PENSTOCK_RAIL": f"http:{self.rail.url}", "PENSTOCK_CONNECTIONS_PER_ADDRESS": "2000"}
        settings["PENSTOCK_SIGNED_QUOTE_TTL"] = "10m"
        self.world = make_world(folder, contract, **settings)
        self.partner = self.world.partner(gate=gate_profile(SHOP))
        self.gates = [self.world.installation.start_gate() for _ in range(services)]

    def call(self, method, path, body=None, gate=None, **headers):
        address = (gate or random.choice(self.gates)).address
        return requests.request(method, f"{address}/v1/{path}", json=body, headers=headers, timeout=30)

    def owner(self, method, path, body=None):
        key = secrets.token_hex(8)
        headers = {"Authorization": f"Bearer {self.partner.secret}", "Idempotency-Key": key}
        return self.call(method, path, body, **headers)

    def open(self, **fields):
        """A new session, with its widget's token."""
        body = {"amount": "100.00", "currency": "EUR", "return_url": f"{SHOP}/done", **fields}
        session = self.owner("POST", "gate_sessions", body).json()
        headers = {"Authorization": f"Bearer {self.partner.publishable}", "Origin": SHOP}
        begun = self.call("POST", "embed/bootstrap", {"clientSecret": session["client_secret"]}, **headers)
        return session["id"], begun.json()["embed_token"]

    def embed(self, method, path, token, body=None, gate=None, **headers):
        return self.call(method, f"embed/{path}", body, gate, **{"X-Embed-Token": token}, **headers)

    def quote(self, token, side="on_ramp"):
        order = {"side": side, "asset": "USDT", "network": "tron", "payment_method": "sepa"}
        return self.embed("POST", "quotes", token, order)

    def pay(self, token, quote, gate=None, key=None):
        where = {"wallet_address": WALLET} if quote["side"] == "on_ramp" else {"payout": ACCOUNT}
        body = {"quote_id": quote["id"], **where}
        return self.embed("POST", "payments", token, body, gate, **{"Idempotency-Key": key or secrets.token_hex(8)})

    def pay_at_last(self, token, quote, gate):
        """Pays, again under the same key while the rail responds too late."""
        key = secrets.token_hex(8)

        def answer():
            paid = self.pay(token, quote, gate, key)
            # In a list, because a refusal is false.
            return paid.status_code != 503 and [paid]

        [paid] = eventually(answer, "the rail responds in time")
        return paid

    def kill_one(self):
        """Kills a gate service as a power cut would, and starts it again."""
        number = random.randrange(len(self.gates))
        self.gates[number].kill()
        self.gates[number] = self.world.installation.start_gate()

    def finish(self):
        for service in [*self.gates, self.world.service]:
            assert service.stop() == 0
        self.world.installation.verify()


def ended(checkout, token, within):
    """The session after its payment has ended."""
    end = time.monotonic() + within
    while True:
        session = checkout.embed("GET", "session", token).json()
        if session["payment"] is None or session["payment"]["status"] != "processing":
            return session
        assert time.monotonic() < end, session
        time.sleep(0.2)


# rule: gate.payment.once, gate.session.one-payment
def test_racing_payments_through_two_services_pay_session_once(tmp_path, contract):
    checkout = Checkout(tmp_path, contract, seed=1, services=2)
    for number in range(12):
        session, token = checkout.open()
        quote = checkout.quote(token).json()
        jobs = [
            lambda gate=gate: checkout.pay_at_last(token, quote, gate)  # noqa: B023 - run within this turn
            for gate in checkout.gates * 3
        ]
        if number % 3 == 1:
            jobs += [lambda: checkout.embed("POST", "cancel", token)] * 2  # noqa: B023
        if number % 3 == 2:
            jobs += [lambda: checkout.owner("POST", f"gate_sessions/{session}/cancel")] * 2  # noqa: B023
        answers = at_once(jobs)
        won = [answer for answer in answers[:6] if answer.status_code == 201]
        refused = {answer.json()["code"] for answer in answers if not answer.ok}
        assert refused <= {"session_payment_in_progress", "session_not_open", "quote_consumed", "quote_superseded"}
        last = ended(checkout, token, within=120)
        assert last["status"] == ("completed" if won else "cancelled")
        assert len(won) == (1 if won or number % 3 == 0 else 0), answers
        transactions = checkout.owner("GET", f"transactions?session_id={session}").json()["data"]
        assert Counter(it["status"] for it in transactions) == Counter(["completed"] * len(won))
    checkout.finish()


# rule: gate.payment.once, gate.rail.completes
@pytest.mark.parametrize("seed", [7])
def test_lying_rail_and_kills_complete_no_session_without_settlement(tmp_path, contract, seed):
    checkout = Checkout(tmp_path, contract, seed)
    checkout.rail.lies = True
    stop, tokens, answers = time.monotonic() + 5, [], {}

    def open_still():
        """For five seconds, and on a slow machine until there are ten responses."""
        return time.monotonic() < stop or (len(answers) < 10 and time.monotonic() < stop + 60)

    def shop(number):
        dice = random.Random(seed * 100 + number)
        while open_still():
            try:
                session, token = checkout.open()
                tokens.append((session, token))
                quote = checkout.quote(token, dice.choice(["on_ramp", "off_ramp"])).json()
                key = secrets.token_hex(8)
                for _ in range(3):
                    answer = checkout.pay(token, quote, key=key)
                    if answer.status_code == 201:
                        answers.setdefault((session, key), set()).add(answer.text)
                        if dice.random() < 0.3:
                            checkout.embed("POST", f"payments/{answer.json()['id']}/cancel", token)
            except (requests.RequestException, KeyError):
                # The service has been killed, or the rail has lied.
                time.sleep(0.1)

    with ThreadPoolExecutor(3) as users:
        for number in range(3):
            users.submit(shop, number)
        while time.monotonic() < stop - 2:
            time.sleep(2)
            checkout.kill_one()
    checkout.rail.lies = False
    assert answers and all(len(texts) == 1 for texts in answers.values()), "a key has one response"
    found = Counter()
    for session, token in tokens:
        shown = ended(checkout, token, within=240)
        payment = shown["payment"]
        found[payment and payment["status"]] += 1
        if payment and payment["status"] == "completed":
            ulid = payment["id"].rpartition("_")[2]
            assert {f"pi_test_{ulid}", f"po_test_{ulid}"} & checkout.rail.settled, shown
        completed = payment is not None and payment["status"] == "completed"
        assert (shown["status"] == "completed") == completed, shown
        assert checkout.owner("GET", f"gate_sessions/{session}").json()["status"] == shown["status"]
    assert found["completed"], found
    checkout.finish()
