"""The pools as one program: the main flow, and settings that only a running program has in force."""

import re
import secrets
import time

from conftest import finish, make_world
from contract import INSTANT
from provisioning import new_key, terms_for

ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
ACK = {"transactId", "status", "quoteId", "idempotent"}
STATUS = {"transactId", "quoteId", "status", "poolId", "side", "createdAt", "settledAt"}
TRADE = {"transactId", "quoteId", "poolId", "pair", "side", "status", "fiatCurrency", "cryptoCurrency", "cryptoNetwork",
         "fiatAmount", "cryptoAmount", "quotedRate", "spreadBps", "feeBps", "totalBps", "engineFillTxId", "createdAt",
         "settledAt"}


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
    assert partner.trades() == [settled]
    assert partner.balance() == "900.00"

    debit, credit = partner.checked_ledger()
    assert set(debit) == {"id", "delta", "balanceAfter", "reason", "ref", "transactId", "createdAt"}
    assert re.fullmatch(f"le_test_{ULID}", debit["id"])
    assert (debit["delta"], debit["balanceAfter"], debit["reason"]) == ("-100.00", "900.00", "buy_debit")
    assert (debit["ref"], debit["transactId"]) == (quote["quoteId"], ack["transactId"])
    assert credit["balanceAfter"] == "1000.00"


RATES = """
[[rates]]
pair = "EUR-BTC"
mid = "0.00001234567891"
spread_bps = 33
[[rates]]
pair = "EUR-USDT"
mid = "1.0850"
spread_bps = 25
"""


# rule: pools.price.rate, pools.price.rate-rounding, pools.price.other-leg, pools.quote.rate-unavailable
def test_rates_of_a_file_price_quotes(tmp_path, contract):
    file = tmp_path / "rates.toml"
    file.write_text(RATES)
    world = make_world(tmp_path / "static", contract, PENSTOCK_RATES=f"static:{file}")
    partner = world.partner(allowed=["EUR-BTC", "GBP-USDT"], terms=terms_for(["EUR-BTC"], draw_fee_bps=7))
    quote = partner.quote("12345.00", "EUR-BTC")
    record = partner.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")
    assert (record["rate"], record["cryptoAmount"]) == ("0.000012296296", "0.15179777")
    answer = partner.client.ok("POST", "/pools/GBP-USDT/quote", partner.ask("100.00", "GBP-USDT"))
    assert answer == {"available": False, "unavailableReason": "rate_unavailable"}
    finish(world)


# Seconds by which the service's clock and the test's may differ over a few seconds.
CLOCK_TOLERANCE = 0.1


def repeat_while_refused(call, code):
    """Repeats a call until it is not refused with this code. A slow machine may see no refusal. Returns the successful response."""
    end = time.monotonic() + 60
    while (answer := call()).status != 200:
        assert answer.code == code and time.monotonic() < end, answer
        time.sleep(0.05)
    return answer


# rule: pools.velocity.window, idempotency.kept, pools.transact.idempotent
def test_configured_window_and_key_time_are_in_force(tmp_path, contract):
    settings = {"PENSTOCK_IDEMPOTENCY_TTL": "1500ms", "PENSTOCK_VELOCITY_WINDOW": "3s"}
    world = make_world(tmp_path / "brief", contract, **settings)
    # 100 EUR are 108.5 USDT.
    capped = world.partner(funds="10000.00", velocity_cap_usdt="110")
    partner, older, newer = world.partner(funds="100.00"), secrets.token_hex(8), secrets.token_hex(8)
    first = partner.quote("5.00")["quoteId"]
    ack = partner.transact(first, idempotency=older).json

    def use_key():
        return partner.transact(partner.quote("5.00")["quoteId"], idempotency=newer)

    began = time.monotonic()
    assert use_key().status == 200
    answer = repeat_while_refused(use_key, "idempotency_key_reused")
    assert time.monotonic() - began >= 1.5 - CLOCK_TOLERANCE and answer.json["idempotent"] is False
    # The older key has expired too.
    assert partner.transact(first, idempotency=older).json == {**ack, "idempotent": True}, "the quote keeps its trade for ever"

    began = time.monotonic()
    capped.trade("100.00")
    repeat_while_refused(lambda: capped.transact(capped.quote("100.00")["quoteId"]), "velocity_cap_exceeded")
    assert time.monotonic() - began >= 3 - CLOCK_TOLERANCE
    finish(world)


# rule: throttle.client-address, auth.failures-counted
def test_forwarded_address_counts_behind_a_configured_proxy(tmp_path, contract):
    settings = {"PENSTOCK_THROTTLE": "on", "PENSTOCK_THROTTLE_POOLS": "3/60s", "PENSTOCK_TRUSTED_PROXIES": "127.0.0.0/8"}
    world = make_world(tmp_path / "proxied", contract, **settings)

    def guess(forwarded):
        return world.client().call("GET", "/pools", key=new_key(), headers={"X-Forwarded-For": forwarded}).status

    assert [guess("203.0.113.1") for _ in range(5)] == [401] * 3 + [429] * 2
    assert guess("203.0.113.2") == 401
    assert guess("198.51.100.9, 203.0.113.1, 127.0.0.1") == 429, "the rightmost address that is not a proxy"
    assert guess("203.0.113.1, 203.0.113.3") == 401
    finish(world)


# rule: throttle.per-credential
def test_default_limits_hold(tmp_path, contract):
    world = make_world(tmp_path / "default", contract, PENSTOCK_THROTTLE="on")
    headers = world.partner().client.get("/pools").headers
    assert (headers["x-ratelimit-limit-short"], headers["x-ratelimit-reset-short"]) == ("100", "1")
    assert headers["x-ratelimit-limit-medium"] == "3000" and int(headers["x-ratelimit-reset-medium"]) <= 60
    finish(world)
