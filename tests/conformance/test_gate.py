"""The gate with a published Python client of this API shape."""

import re
import secrets
import time

import pytest
import requests
from documents import EMBED
from provisioning import gate_profile
from test_operator import within_five_seconds
from test_webhooks import NEWER, SECRET, Receiver
from zerobit.gate import GateClient, IdempotencyError, InvalidRequestError, PermissionError, WebhookSignatureError

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


def page(gate, key, origin=SHOP):
    """The package, called as by a page of the partner."""
    browser = requests.Session()
    browser.headers["Origin"] = origin
    return GateClient(api_key=key, base_url=gate.address, session=browser)


def refused(kind, status, code, call, *words):
    with pytest.raises(kind) as found:
        call(*words)
    error = found.value
    assert (error.status_code, error.raw["code"]) == (status, code), error
    assert error.request_id == error.raw["request_id"] and str(error) == error.raw["message"]


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()


# rule: gate.session.created, gate.session.retrieve, gate.session.secret-once, gate.session.not-open
# rule: idempotency.gate-replay
# rule: gate.bootstrap.origin, gate.bootstrap.session-fields, gate.bootstrap.not-open
# rule: gate.event.envelope, gate.event.data, gate.event.completed-refid, webhook.signature
def test_package_does_the_main_job(world, gate_service, receiver):
    shop = world.partner(gate=gate_profile(SHOP), gate_webhook={"url": receiver.url, "secret": SECRET})
    client = GateClient(api_key=shop.secret, base_url=gate_service.address)
    refused(InvalidRequestError, 400, "invalid_request", client.sessions.create, {**SESSION, "amount": "1e3"})
    key = secrets.token_hex(16)
    made = client.sessions.create(SESSION, idempotency_key=key)
    assert client.sessions.create(SESSION, idempotency_key=key) == made
    assert made["client_secret"].startswith(f"gsec_{made['id']}_")
    assert (made["status"], made["mode"], made["partner_id"]) == ("open", "test", shop.id)
    assert (made["currency"], made["target_token"], made["target_network"]) == ("EUR", "USDT", "TRON")
    assert made["metadata"] == SESSION["metadata"]
    secret = made.pop("client_secret")
    assert client.sessions.retrieve(made["id"]) == {**made, "url": None}

    wanted = {"clientSecret": secret, "requested_scopes": ["session:read"]}
    bootstrap = page(gate_service, shop.publishable).embed.bootstrap
    embed = bootstrap(wanted)
    assert embed["embed_token"].count(".") == 2 and embed["available"] is True
    assert (embed["partner_id"], embed["mode"], embed["session_id"]) == (shop.id, "test", made["id"])
    for name in ("amount", "currency", "target_token", "target_network", "return_url", "flow"):
        assert embed[name] == made[name], name
    stranger = page(gate_service, shop.publishable, "https://other.example")
    refused(PermissionError, 403, "origin_not_allowed", stranger.embed.bootstrap, wanted)

    path, headers = f"/v1/test_helpers/sessions/{made['id']}/complete", {"Authorization": f"Bearer {shop.secret}"}
    completed = requests.post(gate_service.address + path, headers=headers, timeout=30).json()["session"]
    refused(PermissionError, 403, "session_not_open", bootstrap, wanted)
    refused(IdempotencyError, 409, "session_not_open", client.sessions.cancel, made["id"])
    kinds = ["gate_session.created", "gate_session.completed"]
    for kind, delivery in zip(kinds, receiver.expect(2), strict=True):
        header = delivery.headers["gate-signature"]
        assert re.fullmatch(r"t=\d+,v1=[0-9a-f]{64}", header)
        event = client.webhooks.construct_event(delivery.body, header, SECRET)
        assert (event["type"], event["object"]) == (kind, "event")
        assert event["id"] == delivery.headers["webhook-id"]
        assert abs(event["created_at"] - time.time()) < 60
        assert "client_secret" not in event["data"]
        for body, other in [(delivery.body + b" ", SECRET), (delivery.body, NEWER)]:
            with pytest.raises(WebhookSignatureError):
                client.webhooks.construct_event(body, header, other)
    data = receiver.deliveries[1].event["data"]
    assert data.pop("tx_refid").startswith("test_tx_")
    assert data == completed == client.sessions.retrieve(made["id"])


def suspend(shop):
    shop.change(top={"status": "suspended"})


def switch_off(shop):
    shop.gate = {**shop.gate, "enabled": False}
    shop.change()


def revoke(shop):
    keys = shop.world.installation.operator("key", "list", "--partner", shop.id)
    [key] = [row["id"] for row in keys if row["key"] == shop.publishable]
    shop.world.installation.operator("key", "revoke", "--key-id", key)


# rule: gate.embed.dies, base.config-spreads
@pytest.mark.parametrize(
    ("change", "code"),
    [(suspend, "organization_suspended"), (switch_off, "gate_not_enabled"), (revoke, "key_revoked")],
)
def test_token_of_widget_ends_within_five_seconds(world, gate_service, change, code):
    shop = world.partner(gate=gate_profile(SHOP))
    made = GateClient(api_key=shop.secret, base_url=gate_service.address).sessions.create(SESSION)
    embed = page(gate_service, shop.publishable).embed.bootstrap({"clientSecret": made["client_secret"]})

    def call(method, path):
        headers = {"X-Embed-Token": embed["embed_token"]}
        return requests.request(method, gate_service.address + path, headers=headers, timeout=30)

    assert call("GET", "/v1/embed/session").status_code == 200
    change(shop)
    within_five_seconds(lambda: call("GET", "/v1/embed/session").status_code == 403)
    for method, path in EMBED.values():
        answer = call(method, path)
        assert (answer.status_code, answer.json()["code"]) == (403, code), f"{method} {path}: {answer.text}"
