"""Trades: transact, idempotency keys, the status poll, and the outcome of each sandbox amount."""

import re
import secrets
import sqlite3
import time
from decimal import Decimal
from fractions import Fraction

import money
import pytest
from contract import INSTANT
from provisioning import ADDRESS, terms_for

ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
ACK = {"transactId", "status", "quoteId", "idempotent"}
STATUS = {"transactId", "quoteId", "status", "poolId", "side", "createdAt", "settledAt"}
TRADE = {"transactId", "quoteId", "poolId", "pair", "side", "status", "fiatCurrency", "cryptoCurrency", "cryptoNetwork",
         "fiatAmount", "cryptoAmount", "quotedRate", "spreadBps", "feeBps", "totalBps", "engineFillTxId", "createdAt",
         "settledAt"}


@pytest.fixture(scope="module")
def trader(world):
    return world.partner(funds="1000000.00", receipts="1000000", name="trader")


# rule: pools.transact.effect, pools.ledger.buy, pools.balance.account, pools.trades.shape, pools.trades.equals-quote
# rule: pools.trade.settle, pools.status.shape, pools.trade.settled-at, pools.ledger.entry, sandbox.settles
def test_main_flow_succeeds(world):
    partner = world.partner(funds="1000.00")
    quote = partner.quote("100.00", cryptoNetwork="ethereum")
    ack = partner.transact(quote["quoteId"]).json
    assert set(ack) == ACK
    assert re.fullmatch(f"txn_test_{ULID}", ack["transactId"])
    assert (ack["status"], ack["quoteId"], ack["idempotent"]) == ("reserved", quote["quoteId"], False)
    assert partner.balance() == "900.00"

    record = partner.record(ack["transactId"])
    assert set(record) == TRADE
    assert record["status"] == "reserved" and record["settledAt"] is None and record["engineFillTxId"] is None
    asked = partner.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")
    for name in ("quoteId", "poolId", "pair", "side", "cryptoNetwork", "fiatAmount", "cryptoAmount", "spreadBps", "feeBps"):
        assert record[name] == asked[name], name
    assert record["quotedRate"] == asked["rate"] == quote["rate"]
    assert record["totalBps"] == record["spreadBps"] + record["feeBps"] == 55
    assert (record["fiatCurrency"], record["cryptoCurrency"]) == ("EUR", "USDT")
    assert asked["consumedAt"] == record["createdAt"]

    view = partner.poll(quote["quoteId"])
    assert set(view) == STATUS and view["status"] == "settled"
    assert INSTANT.fullmatch(view["settledAt"]) and view["settledAt"] >= view["createdAt"] == record["createdAt"]
    settled = partner.record(ack["transactId"])
    assert settled["status"] == "settled" and settled["settledAt"] == view["settledAt"]
    assert isinstance(settled["engineFillTxId"], str) and settled["engineFillTxId"]
    unchanged = set(TRADE) - {"status", "settledAt", "engineFillTxId"}
    assert {name: settled[name] for name in unchanged} == {name: record[name] for name in unchanged}
    assert partner.poll(quote["quoteId"]) == view
    assert partner.balance() == "900.00"

    debit, credit = partner.ledger()
    assert set(debit) == {"id", "delta", "balanceAfter", "reason", "ref", "transactId", "createdAt"}
    assert re.fullmatch(f"le_test_{ULID}", debit["id"])
    assert (debit["delta"], debit["balanceAfter"], debit["reason"]) == ("-100.00", "900.00", "buy_debit")
    assert (debit["ref"], debit["transactId"]) == (quote["quoteId"], ack["transactId"])
    assert credit["balanceAfter"] == "1000.00"


# Fraction of the amount, side, statuses of the first three polls, whether the balance is returned.
OUTCOMES = [
    (".00", ["settled", "settled", "settled"], False),
    (".10", ["settled", "settled", "settled"], False),
    (".22", ["settled", "settled", "settled"], False),
    (".21", ["reserved", "settled", "settled"], False),
    (".33", ["reserved", "settled", "settled"], False),
    (".31", ["failed", "failed", "failed"], True),
    (".32", ["released", "released", "released"], True),
    (".41", ["settled", "returned", "returned"], True),
]


# rule: sandbox.second-poll, sandbox.failed, sandbox.released, sandbox.silent, sandbox.returned, sandbox.settles
# rule: pools.trade.fail, pools.trade.release, pools.trade.return, pools.trade.terminal, pools.trade.silent-engine
# rule: pools.ledger.buy-refund, pools.trade.settled-at
@pytest.mark.parametrize(("fraction", "statuses", "back"), OUTCOMES)
def test_purchase_ends_in_the_outcome_of_its_amount(world, fraction, statuses, back):
    partner = world.partner(funds="500.00")
    amount = f"20{fraction}"
    ack = partner.trade(amount)
    views = [partner.poll(ack["quoteId"]) for _ in range(5)]
    assert [view["status"] for view in views] == statuses + statuses[-1:] * 2
    settled = {view["settledAt"] for view in views if view["settledAt"]}
    assert len(settled) == (1 if set(statuses) & {"settled", "returned"} else 0)
    for view in views:
        assert (view["settledAt"] is not None) == (view["status"] in ("settled", "returned"))
    record = partner.record(ack["transactId"])
    assert record["status"] == statuses[-1]
    assert (record["engineFillTxId"] is not None) == bool(settled)
    rest = Decimal("500.00") - (0 if back else Decimal(amount))
    assert partner.balance() == f"{rest:.2f}"
    entries = partner.ledger()
    reasons = [entry["reason"] for entry in entries]
    assert reasons == (["buy_refund"] if back else []) + ["buy_debit", "payin_credit"]
    assert {entry["ref"] for entry in entries[:-1]} == {ack["quoteId"]}
    assert {entry["transactId"] for entry in entries[:-1]} == {ack["transactId"]}
    repeat = partner.transact(ack["quoteId"])
    assert repeat.json == {**ack, "status": statuses[-1], "idempotent": True}


# rule: pools.ledger.sell, pools.ledger.sell-refund, pools.ledger.sell-returned, pools.transact.sale-needs-receipt
@pytest.mark.parametrize(
    ("fraction", "statuses", "crypto_back", "fiat_credit"),
    [
        (".00", ["settled", "settled"], False, False),
        (".21", ["reserved", "settled"], False, False),
        (".31", ["failed", "failed"], True, False),
        (".32", ["released", "released"], True, False),
        (".41", ["settled", "returned"], False, True),
        (".4100", ["settled", "returned"], False, True),
        (".4101", ["settled", "settled"], False, False),
    ],
)
def test_sale_ends_in_the_outcome_of_its_amount(world, fraction, statuses, crypto_back, fiat_credit):
    partner = world.partner()
    amount = f"50{fraction}"
    quote = partner.quote(amount, side="off_ramp")["quoteId"]
    answer = partner.transact(quote)
    assert (answer.status, answer.code) == (402, "insufficient_balance"), "no crypto was received yet"
    partner.receive("80")
    ack = partner.transact(quote).json
    assert ack["status"] == "reserved" and ack["idempotent"] is False
    assert [partner.poll(quote)["status"] for _ in range(2)] == statuses
    record = partner.record(ack["transactId"])
    assert Fraction(record["cryptoAmount"]) == Fraction(amount)
    crypto = partner.ledger("USDT")
    rest = Fraction(80) - (0 if crypto_back else Fraction(amount))
    assert Fraction(crypto[0]["balanceAfter"]) == rest
    assert crypto[0]["balanceAfter"] == money.written(rest)
    assert [e["reason"] for e in crypto] == (["sell_refund"] if crypto_back else []) + ["sell_debit", "crypto_receipt"]
    fiat = partner.ledger("EUR")
    assert [entry["reason"] for entry in fiat] == (["buy_refund"] if fiat_credit else [])
    assert partner.balance() == (record["fiatAmount"] if fiat_credit else "0.00")


# rule: sandbox.reservation, pools.transact.reservation-failed, pools.transact.refusal-leaves-nothing
def test_refused_reservation_leaves_everything_unchanged(world):
    partner = world.partner(funds="100.00")
    quote, key = partner.quote("50.51")["quoteId"], secrets.token_hex(8)
    for _ in range(2):
        answer = partner.transact(quote, idempotency=key)
        assert (answer.status, answer.code) == (409, "reservation_failed")
    assert partner.client.ok("GET", f"/pools/quotes/{quote}")["status"] == "active"
    assert partner.balance() == "100.00" and len(partner.ledger()) == 1
    partner.client.refused(404, "resource_not_found", "GET", f"/pools/transactions/{quote}")
    other = partner.quote("10.00")["quoteId"]
    assert partner.transact(other, idempotency=key).status == 200, "the key is still free"


# rule: pools.transact.balance, idempotency.only-success, pools.transact.refusal-leaves-nothing
def test_same_key_works_after_funding(world):
    partner = world.partner(funds="99.99")
    quote, key = partner.quote("100.00")["quoteId"], secrets.token_hex(8)
    for _ in range(2):
        answer = partner.transact(quote, idempotency=key)
        assert (answer.status, answer.code) == (402, "insufficient_balance")
        assert answer.json["type"] == "invalid_request"
    assert partner.client.ok("GET", f"/pools/quotes/{quote}")["status"] == "active"
    partner.fund("0.01")
    assert partner.transact(quote, idempotency=key).status == 200
    assert partner.balance() == "0.00"


# rule: idempotency.required, idempotency.malformed, idempotency.any-text, idempotency.quoted
def test_idempotency_key_is_validated(trader):
    path, client = "/pools/EUR-USDT/transact", trader.client
    body = {"quoteId": trader.quote()["quoteId"]}
    client.refused(400, "idempotency_key_required", "POST", path, body)
    for bad in ("", '""', "a b", "x" * 256, "tab\tinside", "ü", '"' + "x" * 256 + '"', '"open'):
        headers = {"Idempotency-Key": bad.encode("utf-8").decode("latin-1")}
        client.refused(400, "idempotency_key_invalid", "POST", path, body, headers=headers)
    for good in ("x", "x" * 255, "!#$%&'()*+,-./:;<=>?@[]^_`{|}~", "6f0c2f4e-8a43-4d0b-9d53-6ad4a1f0f3a1", '"quoted"'):
        unique = good if len(good) > 250 else good
        answer = trader.transact(trader.quote("1.00")["quoteId"], idempotency=unique)
        assert answer.status == 200, (good, answer)
    answer = trader.transact(trader.quote("1.00")["quoteId"], idempotency="quoted")
    assert (answer.status, answer.code) == (409, "idempotency_key_reused"), "bare and quoted are one key"


# rule: idempotency.reused, pools.transact.idempotent, pools.transact.repeat-leaves-key
def test_one_key_is_one_trade(trader):
    first, second = (trader.quote("5.00")["quoteId"] for _ in range(2))
    key, other = secrets.token_hex(8), secrets.token_hex(8)
    ack = trader.transact(first, idempotency=key).json
    answer = trader.transact(second, idempotency=key)
    assert (answer.status, answer.code) == (409, "idempotency_key_reused")
    assert trader.client.ok("GET", f"/pools/quotes/{second}")["status"] == "active"
    for repeat_key in (key, other):
        assert trader.transact(first, idempotency=repeat_key).json == {**ack, "idempotent": True}
    assert trader.transact(second, idempotency=other).json["idempotent"] is False, "a repeat leaves its key free"


# rule: idempotency.scope
def test_key_belongs_to_partner_and_path_across_api_keys(world):
    partner, other = world.partner(funds="100.00"), world.partner(funds="100.00")
    key = secrets.token_hex(8)
    quote = partner.quote("5.00")["quoteId"]
    ack = partner.transact(quote, idempotency=key).json
    second = world.installation.operator("key", "create", "--partner", partner.id, "--kind", "secret")["key"]
    again = partner.transact(quote, idempotency=key, key=second)
    assert again.json == {**ack, "idempotent": True}
    fresh = partner.quote("5.00")["quoteId"]
    assert partner.transact(fresh, idempotency=key, key=second).code == "idempotency_key_reused"
    assert other.transact(other.quote("5.00")["quoteId"], idempotency=key).json["idempotent"] is False
    elsewhere = partner.quote("5.00", "EUR-USDC", cryptoNetwork="ethereum")["quoteId"]
    answer = partner.transact(elsewhere, "EUR-USDC", idempotency=key)
    assert answer.status == 200 and answer.json["idempotent"] is False, "another path has its own scope"


# rule: idempotency.canonical, pools.transact.body-ignored
def test_only_the_quote_id_is_read_from_the_body(trader):
    quote, key = trader.quote("5.00")["quoteId"], secrets.token_hex(8)
    headers = {"Idempotency-Key": key}
    loud = {
        "amount": "1.00", "side": "off_ramp", "rate": "99", "destAddress": "0x" + "1" * 40, "destNetwork": "bsc",
        "cryptoNetwork": "solana", "fiatAmount": "0.01", "status": "settled", "quoteId": quote,
    }
    ack = trader.client.ok("POST", "/pools/EUR-USDT/transact", loud, headers=headers)
    assert ack["idempotent"] is False
    record = trader.record(ack["transactId"])
    assert (record["fiatAmount"], record["side"], record["cryptoNetwork"]) == ("5.00", "on_ramp", "tron")
    raw = f'  {{ "zzz" : [1, 2] ,\n "quoteId" :\t"{quote}" }}  '.encode()
    again = trader.client.call("POST", "/pools/EUR-USDT/transact", raw=raw, headers=headers)
    assert again.json == {**ack, "idempotent": True}
    with sqlite3.connect(trader.world.installation.database) as database:
        found = database.execute(
            "SELECT dest_address, dest_network FROM trades WHERE id = ?", [ack["transactId"].rsplit("_", 1)[1]]
        ).fetchall()
    database.close()
    assert found == [(ADDRESS, "tron")]


# rule: idempotency.kept, pools.transact.idempotent
def test_key_is_free_again_after_its_time(quick):
    partner = quick.partner(funds="100.00")
    key, first = secrets.token_hex(8), partner.quote("5.00")["quoteId"]
    ack = partner.transact(first, idempotency=key).json
    assert partner.transact(partner.quote("5.00")["quoteId"], idempotency=key).code == "idempotency_key_reused"
    time.sleep(1.7)
    assert partner.transact(first, idempotency=key).json == {**ack, "idempotent": True}, "the quote keeps its trade for ever"
    answer = partner.transact(partner.quote("5.00")["quoteId"], idempotency=key)
    assert answer.status == 200 and answer.json["idempotent"] is False


# rule: pools.transact.quote-id
@pytest.mark.parametrize("body", [
    {}, {"quoteId": None}, {"quoteId": 7}, {"quoteId": ""}, {"quoteId": "x"}, {"quoteId": "pq_test_"}, {"quoteId": []},
    {"quoteId": "pq_test_01arz3ndektsv4rrffq69g5fav"}, {"quoteId": "txn_test_01ARZ3NDEKTSV4RRFFQ69G5FAV"},
    {"quoteId": "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAU"}, {"quoteId": "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV "},
    {"quoteid": "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, {"quoteId": "x" * 10000},
])
def test_missing_or_malformed_quote_id_is_400(trader, body):
    answer = trader.client.post("/pools/EUR-USDT/transact", body, headers={"Idempotency-Key": "k"})
    assert answer.status == 400 and answer.code == "invalid_request" and "quoteId" in answer.json["message"], answer


# rule: pools.transact.not-found, id.other-mode
def test_unknown_and_foreign_quotes_are_absent(trader):
    for quote in ("pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV", "pq_live_01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        answer = trader.transact(quote)
        assert (answer.status, answer.code) == (404, "resource_not_found"), quote
    other_pool = trader.quote("10.00", "EUR-USDC", cryptoNetwork="ethereum")["quoteId"]
    answer = trader.transact(other_pool, "EUR-USDT")
    assert (answer.status, answer.code) == (404, "resource_not_found")
    assert trader.transact(other_pool, "EUR-USDC").status == 200


# rule: pools.transact.side
def test_selling_is_closed_unless_opened(world):
    partner = world.partner(receipts="100", terms=terms_for(["EUR-USDT"], off_ramp=False))
    answer = partner.transact(partner.quote("50", side="off_ramp")["quoteId"])
    assert (answer.status, answer.code) == (501, "side_not_enabled")
    assert answer.json["type"] == "server_error"
    assert len(partner.ledger("USDT")) == 1


# rule: pools.transact.order, idempotency.shape-first
def test_transact_checks_run_in_their_order(world):
    partner = world.partner(
        terms=terms_for(["EUR-USDT"], off_ramp=False), velocity_cap_usdt="60", receipts="1"
    )
    path, client = "/pools/EUR-USDT/transact", partner.client
    key = {"Idempotency-Key": secrets.token_hex(4)}
    client.refused(400, "invalid_json", "POST", path, raw=b"{")
    client.refused(400, "idempotency_key_required", "POST", path, {"quoteId": "x"})
    client.refused(400, "invalid_request", "POST", path, {"quoteId": "x"}, headers=key)
    # A sale that is rejected and too large: the side is checked first, then the rejection, the cap, the balance, the engine.
    sale = partner.quote("70.51", side="off_ramp")["quoteId"]
    client.ok("POST", f"/pools/quotes/{sale}/reject")
    assert partner.transact(sale).code == "side_not_enabled"
    rejected = partner.quote("70.51")["quoteId"]
    client.ok("POST", f"/pools/quotes/{rejected}/reject")
    assert partner.transact(rejected).code == "quote_rejected"
    assert partner.transact(partner.quote("70.51")["quoteId"]).code == "velocity_cap_exceeded"
    assert partner.transact(partner.quote("50.51")["quoteId"]).code == "insufficient_balance"
    partner.fund("100.00")
    assert partner.transact(partner.quote("50.51")["quoteId"]).code == "reservation_failed"


# rule: pools.trade.only-polls, pools.trades.pure, pools.ledger.pure
def test_trade_moves_only_by_a_poll(trader):
    ack = trader.trade("20.00")
    for _ in range(3):
        for path in (f"/pools/trades/{ack['transactId']}", "/pools/trades?limit=5", "/pools/ledger?limit=5",
                     "/pools/EUR-USDT/balance", f"/pools/quotes/{ack['quoteId']}", "/pools"):
            assert trader.client.get(path).status == 200
        assert trader.record(ack["transactId"])["status"] == "reserved"
    assert trader.poll(ack["quoteId"])["status"] == "settled"


# rule: pools.status.not-found
def test_quote_without_trade_has_no_status(trader):
    quote = trader.quote()["quoteId"]
    trader.client.refused(404, "resource_not_found", "GET", f"/pools/transactions/{quote}")


# rule: pools.balance.gate-off, pools.gate-off.reserves-nothing, pools.funding.gate-off, pools.gate-off.sale
def test_purchase_moves_no_fiat_without_the_balance_gate(world):
    partner = world.partner(balance_gate=False, receipts="200")
    assert partner.balance() is None
    partner.client.refused(404, "funding_not_enabled", "GET", "/pools/funding")
    for amount in ("20.00", "20.31", "20.32", "20.41"):
        ack = partner.trade(amount)
        for _ in range(2):
            partner.poll(ack["quoteId"])
    assert partner.ledger() == []
    sale = partner.trade("50.41", side="off_ramp")
    assert [partner.poll(sale["quoteId"])["status"] for _ in range(2)] == ["settled", "returned"]
    assert [entry["reason"] for entry in partner.ledger("USDT")] == ["sell_debit", "crypto_receipt"]
    [entry] = partner.ledger()
    assert entry["reason"] == "buy_refund" and entry["delta"].lstrip("+") == partner.record(sale["transactId"])["fiatAmount"]
    assert partner.balance() is None


# rule: pools.refund.mirrors
def test_refund_returns_the_trades_own_reservation(world):
    partner = world.partner(funds="100.00")
    gated, opened = partner.trade("20.31"), None
    partner.change(balance_gate=False)
    deadline = time.monotonic() + 5.5
    while partner.balance() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    opened = partner.trade("30.31")
    partner.change(balance_gate=True)
    while partner.balance() is None:
        assert time.monotonic() < deadline + 6
        time.sleep(0.1)
    for ack in (gated, opened):
        assert partner.poll(ack["quoteId"])["status"] == "failed"
    assert partner.balance() == "100.00"
    assert [entry["reason"] for entry in partner.ledger()] == ["buy_refund", "buy_debit", "payin_credit"]


# rule: pools.funding.shape, pools.funding.currency
def test_funding_instructions(world):
    partner = world.partner(iban="DE89370400440532013000", funding_reference="ACME-7F3K")
    for query in ("", "?currency=EUR"):
        funding = partner.client.ok("GET", f"/pools/funding{query}")
        assert set(funding) == {"currency", "iban", "reference", "instructions"}
        assert (funding["currency"], funding["iban"]) == ("EUR", "DE89370400440532013000")
        assert funding["reference"] == "ACME-7F3K" and isinstance(funding["instructions"], str)
    for currency in ("GBP", "USDT", "", "XXX"):
        partner.client.refused(400, "invalid_request", "GET", f"/pools/funding?currency={currency}")
    bare = world.partner()
    funding = bare.client.ok("GET", "/pools/funding")
    assert funding["iban"] is None and funding["reference"] == bare.id.upper()


# rule: pools.balance.shape
def test_balance_has_exactly_its_fields(world):
    partner = world.partner(funds="12.30", tier="gold", allowed=["EUR-USDT", "GBP-USDT"])
    view = partner.client.ok("GET", "/pools/EUR-USDT/balance")
    assert sorted(view.pop("allowedPools")) == ["EUR-USDT", "GBP-USDT"]
    assert view == {"poolId": "EUR-USDT", "pair": "EUR/USDT", "available": True, "tier": "gold", "balance": "12.30"}
    assert partner.balance("GBP-USDT") == "0.00", "each fiat has its own account"


# rule: pools.event.once, pools.event.none-else, pools.event.same-transaction
def test_each_ended_trade_has_one_event(world):
    partner = world.partner(funds="500.00")
    expected = {}
    for fraction, kind in ((".00", "settled"), (".31", "failed"), (".32", "released"), (".41", "settled")):
        ack = partner.trade(f"20{fraction}")
        for _ in range(3):
            partner.poll(ack["quoteId"])
        expected[ack["transactId"].rsplit("_", 1)[1]] = f"pool.transaction.{kind}"
    reserved = partner.trade("20.00")["transactId"].rsplit("_", 1)[1]
    quote = partner.quote()["quoteId"]
    partner.client.ok("POST", f"/pools/quotes/{quote}/reject")
    with sqlite3.connect(world.installation.database) as database:
        rows = database.execute("SELECT object_id, type FROM events WHERE partner_id = ?", [partner.id]).fetchall()
    database.close()
    found = {object_id.rsplit("_", 1)[-1]: kind for object_id, kind in rows}
    assert len(rows) == len(expected) and found == expected
    assert reserved not in found
