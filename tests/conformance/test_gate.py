"""The gate with a published Python client of this API shape, and its events with stock webhook libraries."""

import re
import secrets
import time
from dataclasses import dataclass

import pytest
import requests
from conftest import make_world
from provisioning import new_key, partner_toml
from test_webhooks import NEWER, SECRET, Receiver
from verifiers import Refused, verifiers
from zerobit.gate import (
    AuthenticationError,
    GateClient,
    GateError,
    IdempotencyError,
    InvalidRequestError,
    PermissionError,
    RateLimitError,
    WebhookSignatureError,
)

SHOP = "https://shop.example"
SESSION = {
    "amount": "100.00",
    "currency": "eur",
    "return_url": f"{SHOP}/done",
    "cancel_url": f"{SHOP}/cart",
    "target_token": "usdt",
    "target_network": "tron",
    "metadata": {"order": "A-1", "items": [1, 2.50]},
}


@dataclass
class Merchant:
    """A partner of the gate, and the package that its backend uses."""

    service: object
    id: str
    secret: str
    publishable: str

    def client(self, key=None, **more):
        return GateClient(api_key=key or self.secret, base_url=self.service.address, **more)

    def page(self, origin=SHOP, **more):
        """The package, called as by a page of the partner."""
        browser = requests.Session()
        if origin:
            browser.headers["Origin"] = origin
        return self.client(self.publishable, session=browser, **more)

    def post(self, path, body=None):
        answer = requests.post(
            f"{self.service.address}/v1{path}", json=body, headers={"Authorization": f"Bearer {self.secret}"}, timeout=30
        )
        assert answer.ok, answer.text
        return answer.json()


def merchant(world, service, hook=None):
    who = Merchant(service, f"m-{secrets.token_hex(5)}", new_key("secret"), new_key("publishable"))
    keys = [{"kind": "secret", "key": who.secret}, {"kind": "publishable", "key": who.publishable}]
    access = {"enabled": True, "allowed_domains": [SHOP], "flow_sessions": True}
    world.installation.apply(partner_toml(who.id, gate=access, gate_webhook=hook, keys=keys))
    return who


def serving(tmp_path_factory, contract, name, **settings):
    """The gate and the pools on one database; both shut down in order, with a clean audit."""
    world = make_world(tmp_path_factory.mktemp(name), contract)
    service = world.installation.start_gate(**settings)
    yield world, service
    assert service.stop() == 0
    failures = [line for line in service.log_lines() if line.get("level") == "ERROR"]
    assert not failures, failures[:3]
    assert world.service.stop() == 0
    world.installation.verify()


@pytest.fixture(scope="module")
def gate(tmp_path_factory, contract):
    yield from serving(tmp_path_factory, contract, "gate", PENSTOCK_WEBHOOK_WAITS="300ms,300ms")


@pytest.fixture(scope="module")
def shop(gate):
    return merchant(*gate)


# rule: gate.session.created, gate.session.retrieve, gate.session.cancel, gate.session.secret-once
def test_package_creates_retrieves_and_cancels(shop):
    client = shop.client()
    made = client.sessions.create(SESSION)
    assert made["client_secret"].startswith(f"gsec_{made['id']}_")
    assert (made["status"], made["mode"], made["partner_id"]) == ("open", "test", shop.id)
    assert (made["currency"], made["target_token"], made["target_network"]) == ("EUR", "USDT", "TRON")
    assert made["metadata"] == SESSION["metadata"]
    read = client.sessions.retrieve(made["id"])
    shown_once = {"client_secret": made["client_secret"], "url": made["url"]}
    assert {**read, **shown_once} == made and read["url"] is None
    cancelled = client.sessions.cancel(made["id"])
    assert cancelled == {**read, "status": "cancelled"}
    with pytest.raises(IdempotencyError) as again:
        client.sessions.cancel(made["id"])
    assert again.value.status_code == 409 and again.value.raw["code"] == "session_not_open"


# rule: idempotency.gate-replay, idempotency.gate-any-body
def test_package_retries_make_one_session(shop):
    client, key = shop.client(), secrets.token_hex(16)
    first = client.sessions.create(SESSION, idempotency_key=key)
    assert client.sessions.create(SESSION, idempotency_key=key) == first
    assert client.sessions.create({**SESSION, "amount": "7"}, idempotency_key=key) == first
    cancelled = client.sessions.cancel(first["id"], idempotency_key=key)
    assert client.sessions.cancel(first["id"], idempotency_key=key) == cancelled


# rule: error.six-fields, error.type-of-status, gate.keys.codes
def test_package_maps_every_refusal(shop):
    def refused(kind, status, code, call):
        with pytest.raises(kind) as found:
            call()
        error = found.value
        assert type(error) is kind and error.status_code == status and error.raw["code"] == code, error
        assert error.request_id == error.raw["request_id"] and str(error) == error.raw["message"]
        return error

    client = shop.client()
    bad = {**SESSION, "amount": "1e3"}
    assert "amount" in str(refused(InvalidRequestError, 400, "invalid_request", lambda: client.sessions.create(bad)))
    bad = {**SESSION, "return_url": "https://other.example/done"}
    refused(InvalidRequestError, 400, "invalid_request", lambda: client.sessions.create(bad))
    bad = {**SESSION, "currency": "ZZZ"}
    refused(InvalidRequestError, 400, "unknown_currency", lambda: client.sessions.create(bad))
    nobody = shop.client(new_key("secret"))
    refused(AuthenticationError, 401, "unauthorized", lambda: nobody.sessions.create(SESSION))
    browser = shop.client(shop.publishable)
    refused(PermissionError, 403, "key_kind_not_allowed", lambda: browser.sessions.create(SESSION))
    live = shop.client(new_key("secret", "live"))
    refused(PermissionError, 403, "live_key_on_sandbox", lambda: live.sessions.create(SESSION))
    for unknown in ("gs_test_01HF7YAT00408104G208104081", "../gate_sessions", "\u2603"):
        refused(GateError, 404, "resource_not_found", lambda id=unknown: client.sessions.retrieve(id))


# rule: gate.bootstrap.origin, gate.bootstrap.session-fields, gate.bootstrap.scopes, gate.bootstrap.secret, gate.bootstrap.not-open
def test_package_bootstraps_a_widget(shop):
    made = shop.client().sessions.create(SESSION)
    page = shop.page()
    embed = page.embed.bootstrap({"clientSecret": made["client_secret"], "requested_scopes": ["session:read"]})
    assert embed["embed_token"].count(".") == 2 and embed["available"] is True
    assert (embed["partner_id"], embed["mode"], embed["session_id"]) == (shop.id, "test", made["id"])
    for name in ("amount", "currency", "target_token", "target_network", "return_url", "flow"):
        assert embed[name] == made[name], name
    assert embed["branding"]["object"] == "branding"
    bare = page.embed.bootstrap()
    assert (bare["session_id"], bare["amount"], bare["return_url"]) == (None, None, None)
    for stranger in (shop.page("https://other.example"), shop.page(None)):
        with pytest.raises(PermissionError) as refused:
            stranger.embed.bootstrap()
        assert refused.value.raw["code"] == "origin_not_allowed"
    with pytest.raises(PermissionError) as refused:
        page.embed.bootstrap({"clientSecret": made["client_secret"] + "x"})
    assert refused.value.raw["code"] == "client_secret_invalid"
    with pytest.raises(InvalidRequestError):
        page.embed.bootstrap({"requested_scopes": ["session:write"]})
    shop.client().sessions.cancel(made["id"])
    with pytest.raises(PermissionError) as refused:
        page.embed.bootstrap({"clientSecret": made["client_secret"]})
    assert refused.value.raw["code"] == "session_not_open"


@pytest.fixture(scope="module")
def throttled(tmp_path_factory, contract):
    limit = {"PENSTOCK_THROTTLE": "on", "PENSTOCK_THROTTLE_CREATE_SESSION": "2/3s"}
    yield from serving(tmp_path_factory, contract, "throttled", **limit)


# rule: throttle.gate-routes, throttle.refusal
def test_package_backs_off_for_the_requested_time(throttled):
    shop = merchant(*throttled)
    client = shop.client()
    for _ in range(2):
        client.sessions.create(SESSION)
    with pytest.raises(RateLimitError) as refused:
        client.sessions.create(SESSION, max_retries=0)
    assert 1 <= refused.value.retry_after_seconds <= 3
    began = time.monotonic()
    assert client.sessions.create(SESSION)["status"] == "open"
    assert time.monotonic() - began >= 0.9, "it waited"


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()


# rule: gate.event.envelope, gate.event.data, gate.event.completed-refid, webhook.signature
def test_package_verifies_signed_events(gate, receiver):
    shop = merchant(*gate, hook={"url": receiver.url, "secret": SECRET})
    client = shop.client()
    made = client.sessions.create(SESSION)
    completed = shop.post(f"/test_helpers/sessions/{made['id']}/complete")["session"]
    kinds = ["gate_session.created", "gate_session.completed"]
    for kind, delivery in zip(kinds, receiver.expect(2), strict=True):
        header = delivery.headers["gate-signature"]
        assert re.fullmatch(r"t=\d+,v1=[0-9a-f]{64}", header)
        event = client.webhooks.construct_event(delivery.body, header, SECRET)
        assert (event["type"], event["object"]) == (kind, "event")
        assert event["id"] == delivery.headers["webhook-id"]
        assert abs(event["created_at"] - time.time()) < 60
        assert "client_secret" not in event["data"]
        for body, secret in [(delivery.body + b" ", SECRET), (delivery.body, NEWER)]:
            with pytest.raises(WebhookSignatureError):
                client.webhooks.construct_event(body, header, secret)
    data = receiver.deliveries[1].event["data"]
    assert data.pop("tx_refid").startswith("test_tx_")
    assert data == completed == client.sessions.retrieve(made["id"])


# rule: webhook.signature, webhook.standard-headers, webhook.overlap, gate.webhook-tools.test
def test_stock_libraries_verify_events_with_either_secret(gate, receiver):
    world, service = gate
    shop = merchant(world, service, hook={"url": receiver.url, "secret": SECRET})
    words = ["--partner", shop.id, "--service", "gate", "--overlap", "1h"]
    newer = world.installation.operator("webhook", "rotate-secret", *words)["secret"]
    sent = shop.post("/webhooks/test")
    [delivery] = receiver.expect(1)
    assert delivery.headers["webhook-id"] == sent["event_id"]
    assert delivery.event["type"] == "webhook.test"
    # The page's functions are for the pools, whose header has another name.
    headers = {**delivery.headers, "pools-signature": delivery.headers["gate-signature"]}
    for name, event_of in verifiers().items():
        for secret in (SECRET, newer):
            assert event_of(headers, delivery.body, secret) == delivery.event, name
        with pytest.raises(Refused):
            event_of(headers, delivery.body, NEWER)
    client = shop.client()
    event = client.webhooks.construct_event(delivery.body, delivery.headers["gate-signature"], SECRET)
    assert event == delivery.event, "a client that reads only the last `v1` still verifies with the old secret"


# rule: gate.webhook-tools.list, gate.webhook-tools.replay, webhook.dead-letter, webhook.replay
def test_dead_letter_is_replayed_under_its_own_id(gate, receiver):
    shop = merchant(*gate, hook={"url": receiver.url, "secret": SECRET})
    receiver.status = 500
    sent = shop.post("/webhooks/test")
    receiver.expect(3)
    listing = f"{shop.service.address}/v1/webhooks/deliveries?status=dead_lettered"
    key = {"Authorization": f"Bearer {shop.secret}"}
    end = time.monotonic() + 15
    while not (found := requests.get(listing, headers=key, timeout=30).json()["data"]):
        assert time.monotonic() < end, "the delivery is a dead letter after its last attempt"
        time.sleep(0.05)
    assert [(one["id"], one["attempts"], one["last_response_status"]) for one in found] == [(sent["id"], 3, 500)]
    receiver.status = 200
    replayed = shop.post(f"/webhooks/deliveries/{sent['id']}/replay")
    assert (replayed["status"], replayed["attempts"]) == ("pending", 0)
    last = receiver.expect(4)[-1]
    assert last.body == receiver.deliveries[0].body
    assert last.headers["webhook-id"] == sent["event_id"]
