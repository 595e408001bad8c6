"""Every event as a partner receives it, compared with the published schema and with the examples in `docs/events.md`.
`UPDATE_DOCS=1` rewrites the page with the deliveries of this run."""

import json
import os
import re
import secrets
import time
from pathlib import Path

import pytest
import requests
from conftest import make_world
from contract import Contract, escape
from programs import eventually
from provisioning import gate_profile, partner_toml
from test_webhooks import SECRET, Receiver

PAGE = Path(os.environ["DOCS_DIR"]) / "events.md"
SHOP = "https://shop.example"
WALLET = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"

INTRODUCTION = """# Events

This page shows every event by example. The examples are deliveries from a sandbox, indented for reading. A program receives them, compares
each with its schema, and writes this page (`UPDATE_DOCS=1 cargo xtask conformance -k events`). CI fails if a field or its type differs
between this page and a delivery. [Webhooks](webhooks.md) says how deliveries are signed, retried and ordered. The schemas are in
[pools-v1.yaml](openapi/pools-v1.yaml) and [gate-v1.yaml](openapi/gate-v1.yaml), under `webhooks`.

Ignore fields that you do not know. A pools event is a flat object. A gate event is an envelope around `data`, which is the resource as its
own `GET` returns it.
"""


class Shop:
    """A partner of both services with one receiver of events."""

    def __init__(self, world, gate, receiver):
        self.partner = world.partner(funds="10000.00", gate=gate_profile(SHOP))
        self.gate = gate
        hook = {"url": receiver.url, "secret": SECRET}
        file = partner_toml(
            self.partner.id, pools=self.partner.pools, webhook=hook, gate=self.partner.gate, gate_webhook=hook
        )
        world.installation.apply(file)

    def ask(self, method, path, body=None, gate=None):
        headers = {"Authorization": f"Bearer {self.partner.secret}", "Idempotency-Key": secrets.token_hex(16)}
        url = f"{(gate or self.gate).address}/v1{path}"
        answer = requests.request(method, url, json=body, headers=headers, timeout=30)
        assert answer.ok, f"{method} {path}: {answer.text}"
        return answer.json()

    def session(self, amount="100.00", gate=None, **more):
        body = {"amount": amount, "currency": "EUR", "return_url": f"{SHOP}/done", **more}
        return self.ask("POST", "/gate_sessions", body, gate)["id"]

    def pay_in_widget(self, amount):
        """Pays a new session as its user does: with the calls of the widget."""
        body = {"amount": amount, "currency": "EUR", "return_url": f"{SHOP}/done"}
        secret = self.ask("POST", "/gate_sessions", body)["client_secret"]

        def call(path, body, **headers):
            answer = requests.post(f"{self.gate.address}/v1/embed/{path}", json=body, headers=headers, timeout=30)
            assert answer.ok, f"{path}: {answer.text}"
            return answer.json()

        key = f"Bearer {self.partner.publishable}"
        token = call("bootstrap", {"clientSecret": secret}, Authorization=key, Origin=SHOP)["embed_token"]
        widget = {"X-Embed-Token": token}
        call("verification", {}, **widget)
        order = {"side": "on_ramp", "asset": "USDT", "network": "tron", "payment_method": "sepa"}
        quote = call("quotes", order, **widget)
        paid = {"quote_id": quote["id"], "wallet_address": WALLET}
        call("payments", paid, **widget, **{"Idempotency-Key": secrets.token_hex(16)})

    def rail(self, path, side, amount):
        """Redeems a signed quote of this many euros, or of the equivalent tokens."""
        order = {"currency": "EUR", "asset": "USDT", "amount": amount, "side": side, "payment_method": "sepa"}
        quote = self.ask("POST", "/quotes", order)
        session = self.session(quote["fiat_amount"])
        self.ask("POST", f"/rails/{path}", {"quote_id": quote["id"], "session_id": session})


def trades(shop):
    for amount, status in [("100.00", "settled"), ("50.31", "failed"), ("60.32", "released")]:
        trade = shop.partner.trade(amount)
        assert shop.partner.poll(trade["quoteId"])["status"] == status


def sessions(shop, brief):
    """`brief` is a replica whose sessions expire at once."""
    metadata = {"order": "A-1"}
    done = shop.session(user_reference="user-7", metadata=metadata, flow="on_ramp", target_token="USDT")
    shop.ask("POST", f"/test_helpers/sessions/{done}/complete")
    shop.ask("POST", f"/gate_sessions/{shop.session()}/cancel")
    shop.ask("POST", f"/gate_sessions/{shop.session(kyc_package={'level': 'full'})}/cancel")
    late = shop.session(gate=brief)
    eventually(lambda: shop.ask("GET", f"/gate_sessions/{late}")["status"] == "expired", "the session expires")


def customers(shop):
    person = {"email": "ada@shop.example", "first_name": "Ada", "last_name": "Byron", "country_code": "DE"}
    path = f"/customers/{shop.ask('POST', '/customers', person)['id']}"
    shop.ask("PATCH", path, {"metadata": {"tier": "gold"}})
    shop.ask("DELETE", path)


def rails(shop):
    for amount in ("100.00", "100.31", "100.32"):
        shop.rail("pay_ins", "on_ramp", amount)
    shop.rail("pay_outs", "off_ramp", "100.000000")
    shop.rail("pay_outs", "off_ramp", tokens_for(shop, "31"))


def tokens_for(shop, fraction):
    """A number of tokens whose value in euros has this fraction."""
    order = {"currency": "EUR", "asset": "USDT", "side": "off_ramp", "payment_method": "sepa"}
    for cents in range(10_000, 10_400):
        amount = f"{cents // 100}.{cents % 100:02}"
        [option] = shop.ask("POST", "/quotes/preview", {**order, "amount": amount})["options"]
        if (option["fiat_amount"] or "").endswith(f".{fraction}"):
            return amount
    raise AssertionError(f"no amount makes a fraction of .{fraction}")


@pytest.fixture(scope="module")
def delivered(tmp_path_factory, contract):
    """One delivery of each type."""
    receiver = Receiver()
    world = make_world(tmp_path_factory.mktemp("events"), contract)
    gate = world.installation.start_gate()
    brief = world.installation.start_gate(PENSTOCK_SESSION_TTL="1s")
    shop = Shop(world, gate, receiver)
    trades(shop)
    sessions(shop, brief)
    customers(shop)
    rails(shop)
    for amount in ("100.31", "100.61"):
        shop.pay_in_widget(amount)
    shop.ask("POST", "/webhooks/test")
    types = {name for service in documents().values() for name in service.document["webhooks"]}
    end = time.monotonic() + 120
    while missing := types - {delivery.event["type"] for delivery in receiver.deliveries}:
        assert time.monotonic() < end, missing
        time.sleep(0.05)
    for service in (brief, gate, world.service):
        assert service.stop() == 0
    world.installation.verify()
    receiver.server.shutdown()
    first = {}
    for delivery in receiver.deliveries:
        first.setdefault(delivery.event["type"], delivery.event)
    return first


def documents():
    return {"Pools": Contract("pools-v1"), "Gate": Contract("gate-v1")}


def described(document, name):
    return document.document["webhooks"][name]["post"]


def page(delivered):
    parts = [INTRODUCTION]
    for service, contract in documents().items():
        parts.append(f"## {service}\n")
        for name in contract.document["webhooks"]:
            operation = described(contract, name)
            parts.append(f"### {name}\n\n{operation['description'].strip()}\n")
            parts.append(f"```json\n{json.dumps(delivered[name], indent=2)}\n```\n")
    return "\n".join(parts)


def examples():
    sections = re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    shown = [re.match(r"(\S+)\n.*?```json\n(.*?)\n```", section, re.DOTALL) for section in sections]
    return {found[1]: json.loads(found[2]) for found in shown if found}


def shape(value):
    """The fields of a value and their types, without the values."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__


# rule: openapi.answers-agree, pools.event.once, gate.event.envelope, gate.event.data
def test_each_event_matches_its_schema(delivered):
    for contract in documents().values():
        for name in contract.document["webhooks"]:
            pointer = f"/webhooks/{escape(name)}/post/requestBody/content/application~1json/schema"
            errors = list(contract.validator(pointer).iter_errors(delivered[name]))
            assert not errors, f"{name}: {errors[0].message}: {delivered[name]}"


# rule: openapi.answers-agree
def test_page_shows_the_delivered_events(delivered):
    if os.environ.get("UPDATE_DOCS") == "1":
        PAGE.write_text(page(delivered))
    written = examples()
    assert set(written) == set(delivered)
    for name, event in delivered.items():
        assert shape(written[name]) == shape(event), name
