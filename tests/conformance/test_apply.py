"""`penstock apply`: the declarative file."""

import re
import sqlite3

import pytest
from client import Client
from provisioning import ADDRESS, new_key, partner_toml, pool_toml, profile, terms_for


def digest(installation):
    """All stored data except the store's clock; only the nonces of sealed bytes are random."""
    with sqlite3.connect(installation.database) as database:
        text = list(database.iterdump())
    database.close()
    return [line for line in text if not line.startswith('INSERT INTO "clock"')]


# rule: apply.idempotent, apply.reports, cli.json
def test_second_apply_changes_nothing(installation, partner_file):
    text = partner_file(keys=[{"kind": "secret"}, {"kind": "publishable"}], webhook={"url": "http://127.0.0.1:9/p"})
    first = installation.apply(text)
    assert set(first) == {"changed", "created_keys", "created_secrets", "mode", "database"}
    assert first["changed"]
    assert {row["kind"] for row in first["created_keys"]} == {"secret", "publishable"}
    for row in first["created_keys"]:
        assert set(row) == {"partner", "kind", "id", "key"} and row["partner"] == "acme"
    assert len(first["created_secrets"]) == 1
    before = digest(installation)
    second = installation.apply(text)
    assert [second[name] for name in ("changed", "created_keys", "created_secrets")] == [[], [], []]
    assert digest(installation) == before


# rule: apply.dry-run
def test_dry_run_writes_nothing(installation, partner_file):
    installation.apply(pool_toml("EUR-USDT"))
    before = digest(installation)
    key = new_key()
    shown = installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]), "--dry-run")
    assert shown["changed"]
    assert digest(installation) == before
    done = installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))
    assert done["changed"] == shown["changed"]


# rule: apply.unknown-key, apply.atomic
@pytest.mark.parametrize(
    ("line", "wrong", "nearest"),
    [
        ("[[partners]]\nid = \"acme\"\nnames = \"x\"\n", "names", "name"),
        ("[[pools]]\nid = \"EUR-USDT\"\nnetwork = [\"tron\"]\n", "network", "networks"),
        ("[[partners]]\nid = \"acme\"\nname = \"x\"\n[partners.pools]\nbalance_gates = true\n", "balance_gates", "balance_gate"),
        ("[[partnerz]]\nid = \"acme\"\n", "partnerz", "partners"),
        (
            "[[partners]]\nid = \"acme\"\nname = \"x\"\n[partners.pools]\n[[partners.pools.terms]]\n"
            "pool = \"EUR-USDT\"\ndraw_fee_bp = 3\n",
            "draw_fee_bp",
            "draw_fee_bps",
        ),
    ],
)
def test_unknown_key_is_named_with_its_nearest(installation, line, wrong, nearest):
    installation.apply(pool_toml("EUR-USDT"))
    before = digest(installation)
    done = installation.apply_refused(pool_toml("EUR-USDC") + line if "[[pools]]" not in line else line)
    assert done.code == 2, done
    [line] = [line for line in done.err.splitlines() if re.search(rf"\b{wrong}\b", line)]
    assert f"`{nearest}`" in line, done.err
    assert digest(installation) == before


# rule: apply.key-conflict, apply.atomic
def test_key_of_another_partner_is_refused(installation, partner_file):
    key = new_key()
    installation.apply(partner_file("acme", keys=[{"kind": "secret", "key": key}]))
    before = digest(installation)
    done = installation.apply_refused(partner_file("rival", keys=[{"kind": "secret", "key": key}]))
    assert done.code in (1, 2), done
    assert key not in done.err + done.out
    assert digest(installation) == before


# rule: apply.literal-key
@pytest.mark.parametrize(
    "row",
    [
        {"kind": "secret", "key": "sk_test_short"},
        {"kind": "secret", "key": "sk_live_" + "a" * 32},
        {"kind": "secret", "key": "sk_test_" + "a" * 31 + "-"},
        {"kind": "secret", "key": "pk_test_" + "a" * 32},
        {"kind": "publishable", "key": "sk_test_" + "a" * 32},
        {"kind": "golden"},
    ],
)
def test_literal_key_has_its_exact_form(installation, partner_file, row):
    done = installation.apply_refused(partner_file(keys=[row]))
    assert done.code == 2, done
    if len(row.get("key", "")) > 20:
        assert row["key"] not in done.err + done.out


# rule: apply.key-stays-revoked, apply.keys-not-removed
def test_revoked_key_stays_revoked(installation, partner_file):
    key, other = new_key(), new_key()
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}, {"kind": "secret", "key": other}]))
    rows = installation.operator("key", "list", "--partner", "acme")
    [row] = [row for row in rows if key.endswith(row["last4"]) and key.startswith(row["prefix"])]
    installation.operator("key", "revoke", "--key-id", row["id"])
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))
    with installation.start() as service:
        Client(service, key).refused(403, "key_revoked", "GET", "/pools")
        assert Client(service, other).get("/pools").status == 200, "omitting a key revokes nothing"


# rule: apply.key-generated-once
def test_generated_key_is_generated_once(installation, partner_file):
    text = partner_file(keys=[{"kind": "secret"}])
    [made] = installation.apply(text)["created_keys"]
    installation.operator("key", "revoke", "--key-id", made["id"])
    assert installation.apply(text)["created_keys"] == []


def change_of(installation, service, key):
    client = Client(service, key)
    balance = client.get("/pools/EUR-USDT/balance")
    return client.ok("GET", "/pools/EUR-USDT/capabilities"), balance.json


# rule: apply.table-replaces, apply.defaults, apply.terms-defaults, apply.absence-changes-nothing
def test_written_table_replaces_and_missing_table_stays(installation, partner_file):
    key = new_key()
    keys = [{"kind": "secret", "key": key}]
    full = profile(allowed=["EUR-USDT"], tier="gold", velocity_cap_usdt="5", iban="DE89370400440532013000")
    terms = terms_for(["EUR-USDT"], draw_fee_bps=99, spread_cap_bps=10, min_order_usdt=10, max_order_usdt=500)
    installation.apply(pool_toml("EUR-USDT") + partner_toml("acme", pools=full, terms=terms, keys=keys))
    with installation.start() as service:
        before, _ = change_of(installation, service, key)
    assert (before["tier"], before["drawFeeBps"], before["spreadCapBps"]) == ("gold", 99, 10)
    assert (before["minOrderUsdt"], before["maxOrderUsdt"]) == (10, 500)
    installation.apply(partner_toml("acme", name="Renamed"))
    with installation.start() as service:
        assert change_of(installation, service, key)[0] == before, "an omitted table changes nothing"
    bare = {"enabled": True, "access": "active", "kyc": "approved", "allowed": ["EUR-USDT"]}
    bare |= {"balance_gate": False, "velocity_cap_usdt": "none"}
    installation.apply(partner_toml("acme", pools=bare), "--allow-loosening")
    with installation.start() as service:
        after, balance = change_of(installation, service, key)
        assert after == {**before, "tier": "standard"}, "the terms are a separate table"
        assert balance["balance"] is None, "the balance gate is off"
        Client(service, key).refused(404, "funding_not_enabled", "GET", "/pools/funding")
    terms = [{"pool": "EUR-USDT", "draw_fee_bps": 7}]
    installation.apply(partner_toml("acme", pools=bare, terms=terms), "--allow-loosening")
    with installation.start() as service:
        after, _ = change_of(installation, service, key)
        assert (after["drawFeeBps"], after["spreadCapBps"], after["sides"]) == (7, 50, ["on_ramp"])
        assert (after["minOrderUsdt"], after["maxOrderUsdt"]) == (1, None)
        assert after["cryptoDepositAddress"] is None


# rule: apply.protections-written
@pytest.mark.parametrize("missing", ["balance_gate", "velocity_cap_usdt"])
def test_apply_refuses_enabled_pools_without_protection(installation, missing):
    written = {name: value for name, value in profile(allowed=[]).items() if name != missing}
    done = installation.apply_refused(partner_toml("acme", pools=written))
    assert done.code == 2, done
    assert re.search(rf"line \d+: partners\.pools\.{missing}: missing", done.err), done.err


LOOSENINGS = [
    ("balance_gate", {"balance_gate": False}, {}),
    ("velocity_cap_usdt", {"velocity_cap_usdt": "6"}, {}),
    ("velocity_cap_usdt", {"velocity_cap_usdt": "none"}, {}),
    ("max_order_usdt", {}, {"max_order_usdt": 501}),
    ("max_order_usdt", {}, {"max_order_usdt": None}),
    ("kyc", {"kyc": "approved"}, {}),
    ("off_ramp", {}, {"off_ramp": True}),
]


# rule: apply.suspension-kept, apply.loosening-access
def test_suspension_ends_only_by_a_file_that_says_so(installation, partner_file):
    key = new_key()
    short = "[[partners]]\nid = \"acme\"\nname = \"acme\"\n"
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))
    installation.apply(short + "status = \"suspended\"\n")
    assert installation.apply(short)["changed"] == []
    with installation.start() as service:
        Client(service, key).refused(403, "organization_suspended", "GET", "/pools")
    active = short + "status = \"active\"\n"
    refused = installation.apply_refused(active, "--output", "json")
    assert refused.code == 1, refused
    assert refused.json["loosened"] == ["partner acme: status suspended -> active"]
    installation.apply(active, "--allow-loosening")
    with installation.start() as service:
        assert Client(service, key).get("/pools").status == 200


# rule: apply.loosening
@pytest.mark.parametrize(("name", "pools", "terms"), LOOSENINGS)
def test_apply_refuses_loosening(installation, name, pools, terms):
    def file(pools, terms, who="acme"):
        access = {**profile(allowed=["EUR-USDT"], velocity_cap_usdt="5", kyc="pending", tier="new"), **pools}
        rows = terms_for(["EUR-USDT"], **{"max_order_usdt": 500, "off_ramp": False, **terms})
        return partner_toml(who, pools=access, terms=rows)

    installation.apply(pool_toml("EUR-USDT") + file({"tier": "old"}, {}))
    before = digest(installation)
    loose = file(pools, terms)
    for flags in ((), ("--dry-run",)):
        done = installation.apply_refused(loose, "--output", "json", *flags)
        assert done.code == 1, done
        assert "--allow-loosening" in done.err
        report = done.json
        assert f"{name} " in report["loosened"][0] and len(report["loosened"]) == 1
        assert report["changed"] == [*report["loosened"], "partner acme: pools.tier old -> new"]
        assert digest(installation) == before
    text = installation.apply_refused(loose)
    assert text.out.startswith("loosens: partner acme: ") and name in text.out.splitlines()[0]
    assert installation.apply(file(pools, terms, "beta"))["changed"], "a new partner is not a loosening"
    assert installation.apply(loose, "--allow-loosening", "--dry-run")["changed"] == report["changed"]
    assert installation.apply(loose, "--allow-loosening")["changed"] == report["changed"]
    tight = installation.apply(file({"tier": "old"}, {}))
    assert "loosened" not in tight and tight["changed"]


# rule: apply.default-reference
def test_funding_reference_defaults_to_the_partner(installation, partner_file):
    key = new_key()
    installation.apply(partner_file("acme_2", keys=[{"kind": "secret", "key": key}]))
    with installation.start() as service:
        funding = Client(service, key).ok("GET", "/pools/funding")
    assert funding["reference"] == "ACME-2" and funding["iban"] is None


# rule: apply.partner-id
@pytest.mark.parametrize("who", ["", "Acme", "a b", "a" * 65, "é", "a.b"])
def test_partner_id_is_validated(installation, partner_file, who):
    assert installation.apply_refused(partner_file(who)).code == 2


# rule: apply.partner-id
def test_longest_partner_id_is_accepted(installation, partner_file):
    assert installation.apply(partner_file("a-_9" * 16))["changed"]


# rule: apply.term-ranges
@pytest.mark.parametrize(
    "values",
    [
        {"draw_fee_bps": -1},
        {"draw_fee_bps": 5001},
        {"spread_cap_bps": 51},
        {"spread_cap_bps": -1},
        {"min_order_usdt": -1},
        {"min_order_usdt": 10, "max_order_usdt": 9},
    ],
)
def test_terms_stay_in_their_ranges(installation, values):
    text = pool_toml("EUR-USDT") + partner_toml(
        "acme", pools=profile(allowed=["EUR-USDT"]), terms=terms_for(["EUR-USDT"], **values)
    )
    done = installation.apply_refused(text)
    assert done.code == 2, done


# rule: apply.term-ranges
def test_ends_of_the_ranges_are_accepted(installation):
    for fee, cap in ((0, 0), (5000, 50)):
        terms = terms_for(["EUR-USDT"], draw_fee_bps=fee, spread_cap_bps=cap)
        text = pool_toml("EUR-USDT") + partner_toml("acme", pools=profile(allowed=["EUR-USDT"]), terms=terms)
        assert installation.apply(text)["changed"]


# rule: apply.webhook-url
@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/x", "not a url", "http://10.0.0.1/x", "http://169.254.169.254/x", "https://[fd00::1]/x",
     "http://0x0a000001/x", "http://167772161/x", "https://user:pass@10.1.2.3/", "file:///etc/passwd"],
)
def test_webhook_address_is_validated(installation, partner_file, url):
    done = installation.apply_refused(partner_file(webhook={"url": url}))
    assert done.code in (1, 2), done


# rule: apply.webhook-url
def test_loopback_is_accepted_in_test_mode_unless_forbidden(installation, partner_file):
    text = partner_file(webhook={"url": "http://127.0.0.1:9999/pools"})
    path = installation.write(text)
    assert installation.penstock("apply", "-f", path, PENSTOCK_WEBHOOK_ALLOW_PRIVATE="none").code in (1, 2)
    assert installation.apply(text)["changed"]


# rule: apply.atomic
@pytest.mark.parametrize(
    "fault",
    [
        "[[pools]]\nid = \"EURUSDT\"\nnetworks = [\"tron\"]\navailable = true\n",
        "[[pools]]\nid = \"EUR-USDC\"\nnetworks = [\"lightning\"]\navailable = true\n",
        "[[pools]]\nid = \"ZZZ-USDT\"\nnetworks = [\"tron\"]\navailable = true\n",
        "[[partners]]\nid = \"beta\"\nname = \"x\"\nstatus = \"dormant\"\n",
        "[[partners]]\nid = \"beta\"\nname = \"x\"\n[partners.pools]\nallowed = [\"EUR-NIX\"]\n",
        "[[partners]]\nid = \"beta\"\nname = \"x\"\n[partners.pools]\nkyc = \"maybe\"\n",
        "[[partners]]\nid = \"beta\"\nname = \"x\"\n[partners.pools]\nvelocity_cap_usdt = \"-1\"\n",
        "[[partners]]\nid = \"beta\"\nname = 7\n",
        "not toml at all",
    ],
)
def test_document_with_any_error_changes_nothing(installation, partner_file, fault):
    assert installation.pools_service("migrate").code == 0
    before = digest(installation)
    done = installation.apply_refused(partner_file() + fault)
    assert done.code in (1, 2), done
    assert done.err.strip()
    assert digest(installation) == before


# rule: apply.reports
def test_generated_credentials_work(installation, partner_file):
    made = installation.apply(partner_file(keys=[{"kind": "secret"}, {"kind": "publishable"}]))
    keys = {row["kind"]: row["key"] for row in made["created_keys"]}
    body = {"side": "on_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "amount": "10.00"}
    with installation.start() as service:
        client = Client(service, keys["secret"])
        assert client.ok("POST", "/pools/EUR-USDT/quote", {**body, "destAddress": ADDRESS})["executable"] is True
        assert client.get("/pools", key=keys["publishable"]).status == 200
