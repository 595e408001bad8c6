"""The gate with a published Python client of this API shape."""

import re
import secrets
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from contract import INSTANT
from documents import EMBED
from programs import MASTER_KEY, Installation, program
from provisioning import gate_profile, partner_toml
from test_deploy import listeners
from test_operator import within_five_seconds
from test_webhooks import NEWER, SECRET, Receiver
from zerobit.gate import GateClient, IdempotencyError, InvalidRequestError, PermissionError, WebhookSignatureError

SHOP = "https://shop.example"
GATE, WIDGET = "https://gate.example", "https://pay.example"
PUBLIC = {"PENSTOCK_GATE_ORIGIN": GATE, "PENSTOCK_WIDGET_ORIGIN": WIDGET}
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
        assert INSTANT.fullmatch(event["created_at"])
        assert "client_secret" not in event["data"]
        for body, other in [(delivery.body + b" ", SECRET), (delivery.body, NEWER)]:
            with pytest.raises(WebhookSignatureError):
                client.webhooks.construct_event(body, header, other)
    data = receiver.deliveries[1].event["data"]
    assert data["tx_refid"].startswith("test_tx_")
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
        return requests.request(method, gate_service.address + path, headers=headers, timeout=60)

    shown = call("GET", "/v1/embed/session")
    assert shown.status_code == 200
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(call, "GET", f"/v1/embed/session?after={shown.json()['version']}&wait=25")
        # Until the call has begun to wait.
        time.sleep(1)
        assert not waiting.done(), waiting.result().text
        change(shop)
        within_five_seconds(lambda: call("GET", "/v1/embed/session").status_code == 403)
        # A call that nothing ends gets the session after 25 s.
        ended = waiting.result(timeout=60)
    assert (ended.status_code, ended.json()["code"]) == (403, code), ended.text
    for method, path in EMBED.values():
        answer = call(method, path)
        assert (answer.status_code, answer.json()["code"]) == (403, code), f"{method} {path}: {answer.text}"


# rule: error.headers-too-large
def test_token_of_widget_over_sixteen_kibibytes_is_431(gate_service):
    headers = {"X-Embed-Token": "x" * 17 * 1024}
    answer = requests.get(f"{gate_service.address}/v1/embed/session", headers=headers, timeout=30)
    assert (answer.status_code, answer.json()["code"]) == (431, "headers_too_large"), answer.text


def link(gate, secret):
    """A new session's link to its checkout, and the session's client secret."""
    made = GateClient(api_key=secret, base_url=gate.address).sessions.create(SESSION)
    return made["url"], made["client_secret"]


# rule: gate.session.url, gate.embed.cors
def test_gate_behind_a_proxy_uses_its_public_names(world):
    shop = world.partner(gate=gate_profile(SHOP))
    with world.installation.start_gate(**PUBLIC) as gate:
        url, secret = link(gate, shop.secret)
        assert url == f"{WIDGET}/checkout#publishable_key={shop.publishable}&client_secret={secret}"
        port = listeners(gate)["gate-service widget"].rsplit(":", 1)[1]
        bound = f"http://127.0.0.1:{port}"
        checkout = requests.get(f"{bound}/checkout", timeout=30)
        assert f"connect-src {GATE};" in checkout.headers["Content-Security-Policy"]
        assert f'<meta name="penstock-gate-origin" content="{GATE}">' in checkout.text
        asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-embed-token"}
        for origin, admitted in ((WIDGET, WIDGET), (bound, None), (SHOP, None)):
            headers = {"Origin": origin, **asked}
            preflight = requests.options(f"{gate.address}/v1/embed/session", headers=headers, timeout=30)
            assert preflight.status_code == 204, preflight.text
            assert preflight.headers.get("Access-Control-Allow-Origin") == admitted, origin


# rule: gate.session.url, gate.widget.live-origins
def test_live_gate_without_widget_gives_no_link(tmp_path):
    rates = f"static:{program('DEPLOY_DIR')}/config/rates.toml"
    live = Installation(tmp_path / "live", PENSTOCK_MODE="live", PENSTOCK_MASTER_KEY=MASTER_KEY, PENSTOCK_RATES=rates)
    assert live.penstock("migrate").code == 0
    keys = [{"kind": "secret"}, {"kind": "publishable"}]
    created = live.apply(partner_toml("shop", gate=gate_profile(SHOP), keys=keys))["created_keys"]
    [secret] = [key["key"] for key in created if key["kind"] == "secret"]
    for origins, is_linked in ((PUBLIC, True), ({}, False)):
        with live.start_gate(**origins) as gate:
            url, client_secret = link(gate, secret)
            assert client_secret and bool(url) == is_linked, url
            assert gate.stop() == 0
        opened = [line for line in iter(gate.lines.get, None) if "widget" in line]
        assert bool(opened) == is_linked, opened
