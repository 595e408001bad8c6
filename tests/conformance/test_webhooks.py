"""Events received by a partner: verifiable by stock libraries, complete, and retried after a failure."""

import hashlib
import hmac
import http.server
import json
import re
import threading
import time
from dataclasses import dataclass

import pytest

from conftest import finish, make_world
from programs import Server
from provisioning import partner_toml
from verifiers import verifiers

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
NEWER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="


@dataclass
class Delivery:
    headers: dict
    body: bytes

    @property
    def event(self):
        return json.loads(self.body)


class Receiver:
    """A partner's server. It responds with `status`, once `release` is set."""

    def __init__(self):
        self.deliveries = []
        self.status, self.release = 200, threading.Event()
        self.release.set()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                # Chosen before the delivery is visible, because the waiting test then sets the next response.
                status, release = receiver.status, receiver.release
                receiver.deliveries.append(Delivery(headers, body))
                release.wait(120)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/hooks"

    def expect(self, count, timeout=60.0):
        end = time.monotonic() + timeout
        while len(self.deliveries) < count:
            assert time.monotonic() < end, f"{count} deliveries expected, got {len(self.deliveries)}"
            time.sleep(0.02)
        return self.deliveries


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()


@pytest.fixture(scope="module")
def hooked(tmp_path_factory, contract):
    """A service that retries after about a second."""
    world = make_world(tmp_path_factory.mktemp("hooked"), contract, PENSTOCK_WEBHOOK_WAITS="1200ms,1200ms,1200ms")
    yield world
    finish(world)


def listen(partner, receiver, secret=SECRET):
    keys = [{"kind": "secret", "key": partner.secret}]
    hook = {"url": receiver.url, "secret": secret}
    partner.world.installation.apply(partner_toml(partner.id, pools=partner.pools, webhook=hook, keys=keys))


def verify(delivery, *secrets):
    """Expects every function of the page to accept the unchanged delivery with each secret; returns the event."""
    assert re.fullmatch(r"t=\d+(,v1=[0-9a-f]{64})+", delivery.headers["pools-signature"])
    for name, event_of in verifiers().items():
        for secret in secrets:
            event = event_of(delivery.headers, delivery.body, secret)
            assert event == delivery.event, name
    return delivery.event


# rule: webhook.signature, webhook.standard-headers, pools.event.once
def test_each_end_of_a_trade_arrives_signed(hooked, receiver):
    partner = hooked.partner(funds="10000.00")
    listen(partner, receiver)
    for count, (amount, status) in enumerate([("100.00", "settled"), ("50.31", "failed"), ("60.32", "released")], 1):
        trade = partner.trade(amount)
        assert partner.poll(trade["quoteId"])["status"] == status
        delivery = receiver.expect(count)[-1]
        event = verify(delivery, SECRET)
        kind = f"pool.transaction.{status}"
        id = hashlib.sha256(f"{trade['transactId']}:{kind}".encode()).hexdigest()
        assert delivery.headers["webhook-id"] == id
        assert event == {"eventId": id, "type": kind, **partner.record(trade["transactId"])}
        assert delivery.headers["content-type"] == "application/json"
    time.sleep(0.5)
    assert len(receiver.deliveries) == 3


# rule: pools.event.none-else
def test_return_emits_no_event(hooked, receiver):
    partner = hooked.partner(funds="10000.00")
    listen(partner, receiver)
    trade = partner.trade("70.41")
    assert partner.poll(trade["quoteId"])["status"] == "settled"
    assert partner.poll(trade["quoteId"])["status"] == "returned"
    assert receiver.expect(1)[0].event["type"] == "pool.transaction.settled"
    time.sleep(0.5)
    assert len(receiver.deliveries) == 1


# rule: webhook.at-least-once, webhook.fresh
def test_failed_attempt_is_retried_with_the_same_bytes(hooked, receiver):
    partner = hooked.partner(funds="10000.00")
    listen(partner, receiver)
    receiver.status = 500
    trade = partner.trade("100.00")
    partner.poll(trade["quoteId"])
    receiver.expect(1)
    receiver.status = 204
    first, second = receiver.expect(2)[:2]
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.headers["webhook-timestamp"] < second.headers["webhook-timestamp"]
    assert first.headers["pools-signature"] != second.headers["pools-signature"]
    verify(second, SECRET)


# rule: webhook.rotation-seen
def test_new_secret_signs_alone_within_five_seconds(hooked, receiver):
    partner = hooked.partner(funds="10000.00")
    listen(partner, receiver)
    partner.poll(partner.trade("100.00")["quoteId"])
    verify(receiver.expect(1)[0], SECRET)
    listen(partner, receiver, NEWER)
    partner.poll(partner.trade("110.00")["quoteId"])
    event = verify(receiver.expect(2)[1], NEWER)
    assert event["fiatAmount"] == "110.00"
    assert receiver.deliveries[1].headers["pools-signature"].count("v1=") == 1


# rule: cli.webhook.rotate, webhook.overlap, webhook.rotation-seen
def test_operator_rotates_a_secret(hooked, receiver):
    partner = hooked.partner(funds="10000.00")
    listen(partner, receiver)
    words = ["webhook", "rotate-secret", "--partner", partner.id, "--service", "pools"]
    newer = hooked.installation.operator(*words, "--overlap", "1h")["secret"]
    partner.poll(partner.trade("100.00")["quoteId"])
    first = receiver.expect(1)[0]
    verify(first, newer, SECRET)
    newest, oldest = re.findall("v1=([0-9a-f]{64})", first.headers["pools-signature"])
    assert (newest, oldest) == (signature(first, newer), signature(first, SECRET)), "newest secret first"
    alone = hooked.installation.operator(*words)["secret"]
    partner.poll(partner.trade("110.00")["quoteId"])
    second = receiver.expect(2)[1]
    verify(second, alone)
    assert re.findall("v1=([0-9a-f]{64})", second.headers["pools-signature"]) == [signature(second, alone)]
    assert len(second.headers["webhook-signature"].split(" ")) == 1


def signature(delivery, secret):
    signed = delivery.headers["webhook-timestamp"].encode() + b"." + delivery.body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


# rule: webhook.hand-back
def test_shutdown_returns_undelivered_events(tmp_path, contract, receiver):
    world = make_world(tmp_path / "stopping", contract, PENSTOCK_WEBHOOK_TIMEOUT="60s")
    partner = world.partner(funds="10000.00")
    listen(partner, receiver)
    receiver.release = threading.Event()
    partner.poll(partner.trade("100.00")["quoteId"])
    receiver.expect(1)
    assert world.service.stop() == 0
    receiver.release.set()
    world.service = world.installation.start()
    # The lease of an event that is not handed back lasts 80 seconds.
    first, second = receiver.expect(2)
    assert first.body == second.body
    finish(world)


# rule: webhook.lease, webhook.at-least-once
def test_kill_after_the_post_loses_no_event(tmp_path, contract, receiver):
    world = make_world(tmp_path / "killed", contract)
    partner = world.partner(funds="10000.00")
    listen(partner, receiver)
    receiver.release = threading.Event()
    began = time.monotonic()
    partner.poll(partner.trade("100.00")["quoteId"])
    receiver.expect(1)
    world.service.kill()
    receiver.release.set()
    world.service = world.installation.start()
    first, second = receiver.expect(2, timeout=120.0)
    # The lease outlasts the attempt's ten seconds by twenty.
    assert time.monotonic() - began > 29, "the dead worker holds the claim until then"
    assert first.body == second.body
    assert verify(second, SECRET) == first.event
    finish(world)
