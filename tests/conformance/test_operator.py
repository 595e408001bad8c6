"""`penstock`: keys, credits, webhook secrets, verify and export, also with running services."""

import csv
import io
import os
import pty
import re
import secrets
import sqlite3
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from client import Client
from contract import INSTANT
from programs import EMBEDDED, environment, program, run
from provisioning import ADDRESS, new_key, partner_toml, pool_toml, profile, terms_for

# The result of a command that writes also names the installation.
PLACE = {"mode", "database"}
ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"


def within_five_seconds(predicate):
    """Waits for a change that the service must follow within five seconds. A turn counts as half a second at most, because a machine that
    stands still delays the service too."""
    left = 5.5
    while True:
        began = time.monotonic()
        if predicate():
            return
        assert left > 0, "the service does not follow the change"
        time.sleep(0.05)
        left -= min(time.monotonic() - began, 0.5)


def outcome(credit):
    assert set(credit) == {"applied", "balance", *PLACE}
    return credit["applied"], credit["balance"]


# rule: cli.key.create, auth.key-form, cli.json, id.shape, base.unknown-keys-not-cached
def test_new_key_works_at_once(world):
    partner = world.partner()
    for kind, prefix in (("secret", "sk"), ("publishable", "pk")):
        made = world.installation.operator("key", "create", "--partner", partner.id, "--kind", kind)
        assert set(made) == {"id", "kind", "key", *PLACE}
        assert re.fullmatch(f"key_test_{ULID}", made["id"]), made["id"]
        assert made["kind"] == kind
        assert re.fullmatch(rf"{prefix}_test_[0-9A-Za-z]{{32}}", made["key"])
        assert partner.client.get("/pools", key=made["key"]).status == 200


# rule: base.unknown-keys-not-cached
def test_unknown_key_works_at_once_after_it_is_created(world):
    partner = world.partner()
    key = new_key()
    partner.client.refused(401, "unauthorized", "GET", "/pools", key=key)
    keys = [{"kind": "secret", "key": partner.secret}, {"kind": "secret", "key": key}]
    world.installation.apply(partner_toml(partner.id, pools=partner.pools, terms=partner.terms, keys=keys))
    assert partner.client.get("/pools", key=key).status == 200


# rule: cli.key.list, cli.json
def test_secret_keys_are_listed_without_themselves(world):
    partner = world.partner()
    made = world.installation.operator("key", "create", "--partner", partner.id, "--kind", "secret")
    done = world.installation.penstock("key", "list", "--partner", partner.id, "--output", "json")
    assert done.code == 0, done.err
    for key in (made["key"], partner.secret):
        assert key not in done.out and key[8:] not in done.out
    rows = {row["id"]: row for row in done.json}
    assert len(rows) == 3
    row = rows[made["id"]]
    fields = {"id", "kind", "prefix", "last4", "key", "created_at", "revoked_at"}
    assert set(row) == fields | {"label", "expires_at", "last_used_at"}
    assert {row["key"] for row in rows.values()} == {None, partner.publishable}
    assert made["key"].startswith(row["prefix"]) and len(row["prefix"]) < 20
    assert made["key"].endswith(row["last4"]) and len(row["last4"]) == 4
    assert INSTANT.fullmatch(row["created_at"]) and row["revoked_at"] is None


# rule: cli.key.revoke, cli.key.list, auth.revoked, auth.revocation-reaches-all, base.config-spreads, cli.json
def test_revoked_key_stops_within_five_seconds(world):
    partner = world.partner()
    made = world.installation.operator("key", "create", "--partner", partner.id, "--kind", "secret")
    assert partner.client.get("/pools/trades", key=made["key"]).status == 200
    revoked = world.installation.operator("key", "revoke", "--key-id", made["id"])
    assert set(revoked) == {"id", "revoked_at", *PLACE}
    assert revoked["id"] == made["id"] and INSTANT.fullmatch(revoked["revoked_at"])
    within_five_seconds(lambda: partner.client.get("/pools/trades", key=made["key"]).status == 403)
    partner.client.refused(403, "key_revoked", "GET", "/pools/trades", key=made["key"])
    partner.client.refused(403, "key_revoked", "GET", "/pools", key=made["key"])
    assert partner.client.get("/pools/trades").status == 200, "the partner's other key still works"
    again = world.installation.operator("key", "revoke", "--key-id", made["id"])
    assert again == revoked, "the first instant is kept"
    listed = world.installation.operator("key", "list", "--partner", partner.id)
    assert [row["revoked_at"] for row in listed if row["id"] == made["id"]] == [revoked["revoked_at"]]


# rule: auth.revocation-beats-money
def test_revocation_stops_all_money_movement(world):
    partner = world.partner(funds="1000.00")
    made = world.installation.operator("key", "create", "--partner", partner.id, "--kind", "secret")
    quotes = [partner.quote("1.00")["quoteId"] for _ in range(6)]
    assert partner.transact(quotes[0], key=made["key"]).status == 200
    world.installation.operator("key", "revoke", "--key-id", made["id"])
    for quote in quotes[1:]:
        answer = partner.transact(quote, key=made["key"])
        assert (answer.status, answer.code) == (403, "key_revoked"), answer
    assert partner.balance() == "999.00"


# rule: cli.exit-codes
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["key", "create", "--partner", "nobody", "--kind", "secret"], 1),
        (["key", "create", "--partner", "nobody", "--kind", "golden"], 2),
        (["key", "revoke", "--key-id", "key_test_01ARZ3NDEKTSV4RRFFQ69G5FAV"], 1),
        (["key", "revoke", "--key-id", "golden"], 2),
        (["balance", "credit", "--partner", "nobody", "--currency", "EUR", "--amount", "1.00", "--ref", "r"], 1),
        (["balance", "credit", "--partner", "nobody", "--currency", "EUR", "--amount", "1,00", "--ref", "r"], 2),
        (["balance", "credit", "--partner", "nobody", "--currency", "EUR", "--amount", "-1.00", "--ref", "r"], 2),
        (["balance", "credit", "--partner", "nobody", "--currency", "EUR", "--ref", "r"], 2),
        (["levitate"], 2),
    ],
)
def test_exit_codes(installation, words, code):
    assert installation.pools_service("migrate").code == 0
    done = installation.penstock(*words)
    assert done.code == code, done
    assert done.err.strip(), "a refusal names its reason"


# rule: cli.credit.once, cli.json, cli.credit.reason
def test_deposit_counts_once_per_ref(world):
    partner = world.partner()
    ref = secrets.token_hex(6)
    first = world.installation.credit(partner.id, "1000.00", ref=ref)
    assert outcome(first) == (True, "1000.00")
    again = world.installation.credit(partner.id, "1000.00", ref=ref)
    assert outcome(again) == (False, "1000.00")
    assert partner.balance() == "1000.00"
    [entry] = partner.ledger()
    assert entry["reason"] == "payin_credit"
    assert (entry["delta"], entry["balanceAfter"]) in ((f"{sign}1000.00", "1000.00") for sign in ("", "+"))
    assert entry["ref"] == ref and entry["transactId"] is None


# rule: cli.credit.conflict, cli.credit.scope
def test_ref_means_one_deposit(world):
    partner, other = world.partner(), world.partner()
    ref = secrets.token_hex(6)
    world.installation.credit(partner.id, "10.00", ref=ref)
    for amount, currency in (("10.01", "EUR"), ("10.00", "GBP")):
        words = ["--partner", partner.id, "--currency", currency, "--amount", amount, "--ref", ref]
        done = world.installation.penstock("balance", "credit", *words)
        assert done.code == 1, done
    words = ["--partner", partner.id, "--asset", "USDT", "--network", "tron", "--amount", "10", "--ref", ref]
    assert world.installation.penstock("crypto", "credit", *words).code == 1
    assert partner.balance() == "10.00"
    assert world.installation.credit(other.id, "10.01", ref=ref)["applied"] is True, "refs are per partner"


# rule: cli.credit.reason
def test_crypto_receipt_credits_the_crypto_account(world):
    partner = world.partner()
    done = world.installation.receive(partner.id, "500")
    assert outcome(done) == (True, "500")
    [entry] = partner.ledger("USDT")
    assert entry["reason"] == "crypto_receipt"
    assert Decimal(entry["delta"]) == 500 and entry["balanceAfter"] == "500"
    assert partner.ledger("EUR") == []


# rule: money.credit-limit
@pytest.mark.parametrize(("amount", "code"), [("10000000000.01", (1, 2)), ("0", (2, 1)), ("0.001", (2, 1)), ("1e3", (2,))])
def test_impossible_deposits_are_refused(world, amount, code):
    partner = world.partner()
    words = ["--partner", partner.id, "--currency", "EUR", "--amount", amount, "--ref", "x"]
    assert world.installation.penstock("balance", "credit", *words).code in code
    assert partner.balance() == "0.00"


# rule: money.credit-limit
def test_account_holds_at_most_nine_times_ten_to_the_ten(world):
    partner = world.partner()
    for _ in range(9):
        partner.fund("10000000000")
    words = ["--partner", partner.id, "--currency", "EUR", "--amount", "0.01", "--ref", "x"]
    assert world.installation.penstock("balance", "credit", *words).code == 1
    assert partner.balance() == "90000000000.00"


# rule: cli.webhook.rotate, cli.json
def test_webhook_secret_is_rotated(installation, partner_file):
    made = installation.apply(partner_file(webhook={"url": "http://127.0.0.1:9/pools"}))
    [first] = made["created_secrets"]
    assert set(first) == {"partner", "service", "secret"}
    assert (first["partner"], first["service"]) == ("acme", "pools")
    assert re.fullmatch(r"whsec_[0-9A-Za-z+/]{43}=", first["secret"])
    words = ["webhook", "rotate-secret", "--partner", "acme", "--service", "pools"]
    plain = installation.operator(*words)
    assert set(plain) == {"partner", "service", "secret", "overlap_until", *PLACE}
    assert plain["overlap_until"] is None
    overlapping = installation.operator(*words, "--overlap", "24h")
    assert INSTANT.fullmatch(overlapping["overlap_until"])
    until = datetime.fromisoformat(overlapping["overlap_until"])
    assert abs(until - datetime.now(timezone.utc) - timedelta(hours=24)) < timedelta(minutes=5)
    assert len({first["secret"], plain["secret"], overlapping["secret"]}) == 3


# rule: cli.webhook.rotate-twice
def test_third_secret_is_refused_and_named(installation, partner_file):
    installation.apply(partner_file(webhook={"url": "http://127.0.0.1:9/pools"}))
    words = ["webhook", "rotate-secret", "--partner", "acme", "--service", "pools"]
    until = installation.operator(*words, "--overlap", "1h")["overlap_until"]
    refused = installation.penstock(*words, "--overlap", "1h")
    assert (refused.code, refused.out) == (1, "")
    assert until in refused.err and refused.err.count("\n") == 1
    assert installation.operator(*words)["overlap_until"] is None


# rule: cli.exit-codes
@pytest.mark.parametrize(("service", "code"), [("gate", 1), ("hooks", 2)])
def test_only_a_service_with_an_endpoint_has_a_secret(installation, partner_file, service, code):
    installation.apply(partner_file(webhook={"url": "http://127.0.0.1:9/pools"}))
    done = installation.penstock("webhook", "rotate-secret", "--partner", "acme", "--service", service)
    assert done.code == code, done
    assert "gate" in done.err


# rule: cli.verify, cli.json
def test_verify_is_clean_after_every_kind_of_trade(world):
    partner = world.partner(funds="1000.00", receipts="1000")
    for amount in ("1.00", "1.31", "1.32", "1.41", "1.21", "1.33"):
        for side in ("on_ramp", "off_ramp"):
            trade = partner.trade(amount, side=side)
            for _ in range(3):
                partner.poll(trade["quoteId"])
    report = world.installation.verify()
    assert set(report) == {"ok", "figures", "breaches", "open_items"}
    assert report["breaches"] == [] and report["open_items"] == [] and report["figures"]


# rule: cli.verify
def test_verify_names_what_was_tampered_with(installation, partner_file):
    installation.apply(partner_file())
    installation.credit("acme", "1000.00")
    assert installation.verify()["ok"] is True
    with sqlite3.connect(installation.database) as database:
        changed = database.execute("UPDATE accounts SET available = available + 1").rowcount
    database.close()
    assert changed == 1
    done = installation.penstock("verify", "--output", "json")
    assert done.code == 1, done
    assert done.json["ok"] is False and done.json["breaches"]


# rule: cli.export
def test_export_is_reproducible_and_half_open(world):
    partner = world.partner(funds="1000.00")
    acks = [partner.trade(f"{n}.00") for n in (10, 20, 30)]
    trades = [partner.record(ack["transactId"]) for ack in acks]
    begin = trades[0]["createdAt"]
    far = "2100-01-01T00:00:00Z"
    words = ["export", "trades", "--partner", partner.id, "--from", begin, "--to", far]
    first, second = world.installation.penstock(*words), world.installation.penstock(*words)
    assert first.code == 0, first.err
    assert first.out == second.out
    rows = list(csv.DictReader(io.StringIO(first.out)))
    assert len(rows) == 3
    for trade in trades:
        assert sum(trade["transactId"] in row.values() for row in rows) == 1
    assert ADDRESS in first.out, "the destination is shown"
    last = max(trade["createdAt"] for trade in trades)
    until = world.installation.penstock("export", "trades", "--partner", partner.id, "--from", begin, "--to", last)
    kept = list(csv.DictReader(io.StringIO(until.out)))
    assert len(kept) == sum(trade["createdAt"] < last for trade in trades), "the end is not in the window"


# rule: cli.export
def test_exported_trade_equals_the_api_resource(world):
    partner = world.partner(funds="1000.00", receipts="1000")
    trades = []
    for amount, side in [("10.00", "on_ramp"), ("11.31", "on_ramp"), ("12.41", "on_ramp"), ("13.00", "off_ramp")]:
        ack = partner.trade(amount, side=side)
        partner.poll(ack["quoteId"])
        partner.poll(ack["quoteId"])
        trades.append(partner.record(ack["transactId"]))
    words = ["export", "trades", "--partner", partner.id, "--from", "2020-01-01", "--to", "2100-01-01"]
    table = world.installation.penstock(*words)
    rows = {row["transactId"]: row for row in csv.DictReader(io.StringIO(table.out))}
    objects = {row["transactId"]: row for row in world.installation.operator(*words)}
    assert len(rows) == len(objects) == len(trades)
    for trade in trades:
        row, as_json = rows[trade["transactId"]], objects[trade["transactId"]]
        for name in set(trade) & set(row):
            assert row[name] == ("" if trade[name] is None else str(trade[name])), name
            assert as_json[name] == trade[name], name
        assert {"transactId", "status", "fiatAmount", "cryptoAmount", "createdAt", "settledAt"} <= set(trade) & set(row)
        assert row["partnerId"] == partner.id and row["attempts"] == as_json_text(as_json["attempts"])
        bought = trade["side"] == "on_ramp"
        assert (row["destAddress"], row["destNetwork"]) == ((ADDRESS, "tron") if bought else ("", ""))
        ended = {"failed": "failedAt", "returned": "returnedAt", "settled": "settledAt"}[trade["status"]]
        assert INSTANT.fullmatch(row[ended])
        mid, quoted = Decimal(row["midRate"]), Decimal(trade["quotedRate"])
        if trade["side"] == "off_ramp":
            quoted = 1 / quoted
        assert abs(quoted - mid) / mid < Decimal("0.01"), "the quoted rate is near the mid rate"
        assert (row["engine"], as_json["midRate"]) == ("sandbox", row["midRate"])


def as_json_text(value):
    return "" if value is None else str(value)


# rule: cli.export
def test_ledger_is_exported_completely(world):
    partner = world.partner(funds="1000.00", receipts="7")
    for amount in ("10.00", "20.31", "30.41"):
        ack = partner.trade(amount)
        partner.poll(ack["quoteId"])
        partner.poll(ack["quoteId"])
    words = ["--partner", partner.id, "--from", "2020-01-01", "--to", "2100-01-01"]
    done = world.installation.penstock("export", "ledger", *words)
    assert done.code == 0, done.err
    assert done.out == world.installation.penstock("export", "ledger", *words).out
    lines = list(csv.reader(io.StringIO(done.out)))
    assert len({len(line) for line in lines}) == 1, "every line has the same columns"
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["createdAt"] for row in rows] == sorted(row["createdAt"] for row in rows)
    for currency in ("EUR", "USDT"):
        account = [row for row in rows if row["currency"] == currency and row["sequence"]]
        assert [row["sequence"] for row in account] == [str(n + 1) for n in range(len(account))]
        shown = [{name: entry[name] or "" for name in entry} for entry in reversed(partner.ledger(currency))]
        assert [{name: row[name] for name in shown[0]} for row in account] == shown
        balance = Decimal(0)
        for row in account:
            balance += Decimal(row["delta"])
            assert Decimal(row["balanceAfter"]) == balance
    assert sum(row["reason"] == "settlement" for row in rows) == 2, "settlements to the operator"
    assert {row["network"] for row in rows} == {"", "tron"}


# rule: cli.export
def test_many_pages_are_exported_in_little_memory(installation, partner_file):
    """Forty pages need no more memory than one page."""
    installation.apply(partner_file())
    installation.credit("acme", "1.00")
    with sqlite3.connect(installation.database) as database:
        [columns] = [[row[1] for row in database.execute("PRAGMA table_info(ledger_entries)")]]
        one = dict(zip(columns, database.execute("SELECT * FROM ledger_entries").fetchone()))
        alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
        rows, start = [], one["id"][:21] + ("1" if one["id"][21] == "0" else "0")
        for n in range(2, 20_002):
            digits = "".join(alphabet[n >> 5 * place & 31] for place in (3, 2, 1, 0))
            rows.append(tuple({**one, "id": start + digits, "account_sequence": n}.values()))
        database.executemany(f"INSERT INTO ledger_entries VALUES ({','.join('?' * len(columns))})", rows)
        database.execute("UPDATE accounts SET sequence = 20001")
    database.close()
    words = ["export", "ledger", "--partner", "acme", "--from", "2020-01-01", "--to", "2100-01-01"]
    command = [program("PENSTOCK_BIN"), *words]
    meter = "import resource, subprocess, sys; subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], 'w'), check=True); "
    meter += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    out = installation.folder / "ledger.csv"
    done = run([sys.executable, "-c", meter, out, *command], installation.settings, cwd=installation.folder)
    assert done.code == 0, done.err
    with out.open(newline="") as file:
        sequences = [int(row["sequence"]) for row in csv.DictReader(file)]
    assert sequences == list(range(1, 20_002))
    assert int(done.out) < 100 * 1024, "KiB at most"


# rule: cli.progress
@pytest.mark.parametrize("terminal", [True, False])
def test_long_work_prints_progress_to_a_terminal(installation, partner_file, terminal):
    installation.apply(partner_file())
    installation.credit("acme", "1.00")
    for words in (["verify"], ["export", "ledger", "--partner", "acme", "--from", "2020-01-01", "--to", "2100-01-01"]):
        told, out = on_a_terminal(installation, words) if terminal else plainly(installation, words)
        assert ("checking" in told or "exporting" in told) == terminal, told
        assert "checking" not in out and "exporting" not in out


def plainly(installation, words):
    done = installation.penstock(*words)
    assert done.code == 0
    return done.err, done.out


def on_a_terminal(installation, words):
    """Runs a command whose stderr is a terminal."""
    ours, its = pty.openpty()
    settings = {**installation.settings, "TERM": "xterm"}
    with subprocess.Popen(
        [program("PENSTOCK_BIN"), *words],
        env=environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=its,
        cwd=installation.folder,
    ) as process:
        os.close(its)
        told = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the terminal closes with its last user
                break
            if not chunk:
                break
            told += chunk
        out = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0, told
    return told.decode(), out


# rule: auth.keys-never-logged
def test_pasted_key_is_not_repeated(installation, partner_file):
    installation.apply(partner_file())
    for key in (new_key(), new_key("publishable", "live"), "whsec_" + "q7" * 20):
        for words in (
            ["key", "list", "--partner", key.lower()],
            ["key", "revoke", "--key-id", key],
            ["webhook", "rotate-secret", "--partner", "acme", "--service", key],
            ["export", "trades", "--partner", "acme", "--from", key, "--to", key],
            ["apply", "-f", key],
            [key],
        ):
            done = installation.penstock(*words)
            assert done.code in (1, 2) and done.err
            assert key[8:].lower() not in (done.out + done.err).lower(), done
        refused = installation.apply_refused(f'{key.rstrip("=")} = 1\n')
        assert refused.code == 2 and key[8:] not in refused.err, refused


# rule: base.config-spreads, access.suspended, access.kyc, access.not-enabled, access.organisation-suspended
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"access": "suspended"}, "pool_access_suspended"),
        ({"kyc": "revoked"}, "kyc_not_approved"),
        ({"enabled": False}, "pools_not_enabled"),
        ({"top": {"status": "suspended"}}, "organization_suspended"),
        ({"allowed": ["EUR-USDC"]}, "pool_not_allowed"),
    ],
)
def test_change_reaches_a_running_service_within_five_seconds(world, change, code):
    partner = world.partner(funds="10.00")
    quote = partner.quote("1.00")["quoteId"]
    assert partner.client.get("/pools/EUR-USDT/balance").status == 200
    partner.change(**change)
    within_five_seconds(lambda: partner.client.get("/pools/EUR-USDT/balance").status == 403)
    assert partner.client.get("/pools/EUR-USDT/balance").code == code
    answer = partner.transact(quote)
    assert (answer.status, answer.code) == (403, code), answer


# rule: base.config-spreads
def test_terms_reach_a_running_service(world):
    partner = world.partner()
    assert partner.client.ok("GET", "/pools/EUR-USDT/capabilities")["drawFeeBps"] == 30
    partner.change(terms=terms_for(["EUR-USDT"], draw_fee_bps=77))
    within_five_seconds(lambda: partner.client.ok("GET", "/pools/EUR-USDT/capabilities")["drawFeeBps"] == 77)
    assert partner.quote("10.00")["feeBps"] == 77


# rule: config.embedded-migrates
@EMBEDDED
def test_command_line_creates_an_embedded_database_at_the_given_path(installation):
    nothing = installation.penstock("verify")
    assert (nothing.code, nothing.out) == (2, "") and "there is no file at" in nothing.err
    assert not installation.database.exists()
    installation.apply(pool_toml("EUR-USDT") + partner_toml("acme", pools=profile(allowed=["EUR-USDT"])))
    key = installation.operator("key", "create", "--partner", "acme", "--kind", "publishable")["key"]
    with installation.start() as service:
        pools = Client(service, key).ok("GET", "/pools")["pools"]
    assert [pool["id"] for pool in pools] == ["EUR-USDT"]
