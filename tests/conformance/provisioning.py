"""Declarative files for the operator's `apply`, written from plain values."""

import json
import secrets
import string
from dataclasses import dataclass, field
from decimal import Decimal

from client import Client

NETWORKS = ["tron", "ethereum", "bsc", "polygon", "solana"]
ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
POOLS = ["EUR-USDT", "EUR-USDC", "GBP-USDT", "USD-USDT", "JPY-USDT", "EUR-BTC"]


def new_key(kind="secret", mode="test"):
    alphabet = string.ascii_letters + string.digits
    prefix = "sk" if kind == "secret" else "pk"
    return f"{prefix}_{mode}_" + "".join(secrets.choice(alphabet) for _ in range(32))


def table(values):
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def pool_toml(pool, networks=None, available=True):
    return "[[pools]]\n" + table({"id": pool, "networks": networks or NETWORKS, "available": available})


def partner_toml(
    partner, top=None, pools=None, terms=(), webhook=None, keys=(), name=None, gate=None, gate_webhook=None
):
    text = "[[partners]]\n" + table({"id": partner, "name": name or partner, "status": "active", **(top or {})})
    if pools is not None:
        text += "[partners.pools]\n" + table(pools)
        for entry in terms:
            text += "[[partners.pools.terms]]\n" + table(entry)
        if webhook:
            text += "[partners.pools.webhook]\n" + table(webhook)
    if gate is not None:
        text += "[partners.gate]\n" + table(gate)
    if gate_webhook:
        text += "[partners.gate.webhook]\n" + table(gate_webhook)
    for key in keys:
        text += "[[partners.keys]]\n" + table(key)
    return text


def profile(**changes):
    """A partner with full access and the given changes; `None` omits a value."""
    values = {
        "enabled": True,
        "access": "active",
        "kyc": "approved",
        "tier": "standard",
        "allowed": ["EUR-USDT", "EUR-USDC", "GBP-USDT"],
        "balance_gate": True,
        "velocity_cap_usdt": "none",
    }
    values.update(changes)
    return {name: value for name, value in values.items() if value is not None}


def gate_profile(*origins):
    """A gate partner with full access."""
    rights = ("enabled", "flow_sessions", "kyc_trusted", "rails", "preview_locks")
    return {**dict.fromkeys(rights, True), "allowed_domains": list(origins)}


def terms_for(pools, **values):
    terms = {"draw_fee_bps": 30, "spread_cap_bps": 50, "min_order_usdt": 1, "off_ramp": True}
    terms.update(values)
    return [{"pool": pool, **{k: v for k, v in terms.items() if v is not None}} for pool in pools]


@dataclass
class Partner:
    """A provisioned partner and its client."""

    world: object
    id: str
    secret: str
    publishable: str
    client: Client
    pools: dict = field(default_factory=dict)
    terms: list = field(default_factory=list)
    top: dict = field(default_factory=dict)
    gate: dict | None = None
    gate_webhook: dict | None = None

    def toml(self):
        keys = [{"kind": "secret", "key": self.secret}, {"kind": "publishable", "key": self.publishable}]
        gate = {"gate": self.gate, "gate_webhook": self.gate_webhook}
        return partner_toml(self.id, self.top, self.pools, self.terms, keys=keys, **gate)

    def change(self, top=None, terms=None, **pools):
        """Applies the partner's file again with changes; running services follow within 5 s."""
        self.pools = {**self.pools, **pools}
        self.top = {**self.top, **(top or {})}
        self.terms = self.terms if terms is None else terms
        return self.world.installation.apply(self.toml(), "--allow-loosening")

    def fund(self, amount, currency="EUR"):
        return self.world.installation.credit(self.id, amount, currency)

    def receive(self, amount, asset="USDT"):
        return self.world.installation.receive(self.id, amount, asset)

    def balance(self, pool="EUR-USDT"):
        return self.client.ok("GET", f"/pools/{pool}/balance")["balance"]

    def ask(self, amount="100.00", pool="EUR-USDT", side="on_ramp", **changes):
        """The body of a quote request."""
        fiat, crypto = pool.split("-")
        body = {"side": side, "fiatCurrency": fiat, "cryptoCurrency": crypto, "amount": amount}
        if side == "on_ramp":
            body["destAddress"] = ADDRESS
        body.update(changes)
        return {name: value for name, value in body.items() if value is not ...}

    def quote(self, amount="100.00", pool="EUR-USDT", client=None, **changes):
        body = self.ask(amount, pool, **changes)
        answer = (client or self.client).ok("POST", f"/pools/{pool}/quote", body)
        assert answer["available"] is True, answer
        return answer

    def transact(self, quote_id, pool="EUR-USDT", idempotency=None, client=None, **more):
        headers = {"Idempotency-Key": idempotency or secrets.token_hex(16), **more.pop("headers", {})}
        return (client or self.client).post(f"/pools/{pool}/transact", {"quoteId": quote_id}, headers=headers, **more)

    def trade(self, amount="100.00", pool="EUR-USDT", **changes):
        """Creates and executes a quote; returns the acknowledgement."""
        quote = self.quote(amount, pool, **changes)
        answer = self.transact(quote["quoteId"], pool)
        assert answer.status == 200, answer
        return answer.json

    def poll(self, quote_id, client=None):
        return (client or self.client).ok("GET", f"/pools/transactions/{quote_id}")

    def record(self, transact_id):
        return self.client.ok("GET", f"/pools/trades/{transact_id}")

    def trades(self, limit=100):
        """All trades, newest first, over all pages."""
        return self._whole(f"/pools/trades?limit={limit}", "data")

    def ledger(self, currency="EUR", **query):
        """All entries, newest first, over all pages."""
        more = "".join(f"&{name}={value}" for name, value in query.items())
        return self._whole(f"/pools/ledger?currency={currency}{more}", "entries")

    def checked_ledger(self, currency="EUR"):
        """All entries. Each continues the previous balance, and the newest equals the balance."""
        page = self.client.ok("GET", f"/pools/ledger?currency={currency}&limit=1")
        entries = self.ledger(currency, limit=200)
        balance = Decimal(0)
        instants = [entry["createdAt"] for entry in entries]
        assert instants == sorted(instants, reverse=True)
        assert len({entry["id"] for entry in entries}) == len(entries)
        for entry in reversed(entries):
            balance += Decimal(entry["delta"])
            assert balance == Decimal(entry["balanceAfter"]) >= 0
        assert Decimal(page["available"]) == balance
        return entries

    def _whole(self, path, items):
        found, cursor = [], None
        while True:
            page = self.client.ok("GET", path + (f"&cursor={cursor}" if cursor else ""))
            found += page[items]
            cursor = page["nextCursor"]
            assert page["hasMore"] == (cursor is not None)
            if cursor is None:
                return found
