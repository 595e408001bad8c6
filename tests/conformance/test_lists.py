"""The two lists: trades and ledger. Pages, filters, cursors, and pages during concurrent writes."""

import threading
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from urllib.parse import quote as escaped

import pytest

PAGE = {"data", "nextCursor", "hasMore"}
LEDGER = {"currency", "available", "entries", "nextCursor", "hasMore"}


@pytest.fixture(scope="module")
def history(world):
    """A partner with 12 trades of every outcome and side."""
    partner = world.partner(funds="10000.00", receipts="10000", name="history")
    partner.trades = []
    for n in range(12):
        side = "off_ramp" if n % 3 == 2 else "on_ramp"
        fraction = [".00", ".31", ".32", ".41"][n % 4]
        ack = partner.trade(f"{20 + n}{fraction}", side=side)
        if n < 10:
            for _ in range(2):
                partner.poll(ack["quoteId"])
        partner.trades.append(partner.record(ack["transactId"]))
    partner.trades.reverse()
    return partner


def walk(client, query="", limit=5):
    items, cursor, pages = [], None, 0
    while True:
        more = f"&cursor={cursor}" if cursor else ""
        page = client.ok("GET", f"/pools/trades?limit={limit}{query}{more}")
        assert set(page) == PAGE
        assert len(page["data"]) <= limit
        assert page["hasMore"] == (page["nextCursor"] is not None)
        if page["nextCursor"]:
            assert page["nextCursor"] == page["data"][-1]["transactId"]
        items += page["data"]
        cursor, pages = page["nextCursor"], pages + 1
        if cursor is None:
            return items, pages


# rule: pools.trades.page, list.order, pools.trades.shape
@pytest.mark.parametrize("limit", [1, 4, 5, 11, 12, 13, 100])
def test_list_is_complete_and_newest_first(history, limit):
    items, pages = walk(history.client, limit=limit)
    assert items == history.trades, "each item equals the trade read by id"
    assert pages == max(1, -(-12 // limit)), "a full last page reports that it is the last"


# rule: pools.trades.limit
def test_limit_is_50_by_default_and_1_to_100(world):
    partner = world.partner(funds="1000.00")
    for _ in range(51):
        partner.trade("1.00")
    page = partner.client.ok("GET", "/pools/trades")
    assert len(page["data"]) == 50 and page["hasMore"] is True
    for limit in ("0", "101", "-1", "1.5", "x", "", "1e1", "+5", " 5", "99999999999999999999", "%35%20"):
        partner.client.refused(400, "invalid_request", "GET", f"/pools/trades?limit={escaped(limit, safe='%')}")
    assert len(partner.client.ok("GET", "/pools/trades?limit=100")["data"]) == 51
    assert len(partner.client.ok("GET", "/pools/trades?limit=1")["data"]) == 1


# rule: pools.trades.filters, pools.trades.unknown-filter, pools.trades.quoted
def test_filters_combine(history):
    for side in (None, "on_ramp", "off_ramp"):
        for status in (None, "quoted", "reserved", "settled", "released", "failed", "returned"):
            query = "".join(f"&{name}={value}" for name, value in (("side", side), ("status", status)) if value)
            expected = [t for t in history.trades if side in (None, t["side"]) and status in (None, t["status"])]
            assert walk(history.client, query, limit=2)[0] == expected
    for query in ("side=both", "side=", "status=done", "status=", "status=Settled", "side=ON_RAMP"):
        history.client.refused(400, "invalid_request", "GET", f"/pools/trades?{query}")


# rule: pools.trades.bounds, pools.trades.filters
def test_date_bounds_include_their_instant(history):
    instants = sorted({trade["createdAt"] for trade in history.trades})
    low, high = instants[2], instants[-3]
    for query, kept in (
        (f"&created_after={low}", lambda at: at >= low),
        (f"&created_before={high}", lambda at: at <= high),
        (f"&created_after={low}&created_before={high}", lambda at: low <= at <= high),
        (f"&created_after={low}&created_before={low}", lambda at: at == low),
        (f"&created_after={high}&created_before={low}", lambda at: high <= at <= low),
    ):
        expected = [trade for trade in history.trades if kept(trade["createdAt"])]
        assert walk(history.client, query, limit=3)[0] == expected


# rule: time.input-offset, time.input-date, time.input-leap, time.input-plus
def test_dates_are_read_as_rfc_3339(history):
    today = datetime.now(timezone.utc).date()
    everything, nothing = len(history.trades), 0
    instant = history.trades[5]["createdAt"]
    shifted = datetime.fromisoformat(instant).astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat(timespec="milliseconds")
    at = [t for t in history.trades if t["createdAt"] >= instant]
    for text, count in (
        (str(today - timedelta(days=1)), everything),
        (str(today + timedelta(days=1)), nothing),
        ("1990-12-31T23:59:60Z", everything),
        ("1990-12-31T15:59:60-08:00", everything),
        ("1985-04-12T23:20:50.52Z", everything),
        ("1937-01-01T12:00:27.87+00:20", everything),
        ("2999-12-31t00:00:00z", nothing),
        (shifted, len(at)),
        (instant.replace("Z", "+00:00"), len(at)),
        (instant.replace("Z", "-00:00"), len(at)),
    ):
        found = walk(history.client, f"&created_after={escaped(text, safe='')}", limit=100)[0]
        assert len(found) == count, text
    plus = shifted.replace("+", " ").replace(" ", "%20")
    answer = history.client.refused(400, "invalid_request", "GET", f"/pools/trades?created_after={plus}")
    assert "%2B" in answer.json["message"], "the hint shows the encoding"
    raw = history.client.refused(400, "invalid_request", "GET", f"/pools/trades?created_after={shifted}")
    assert "created_after" in raw.json["message"]


# rule: pools.trades.unknown-filter
@pytest.mark.parametrize("text", ["yesterday", "", "2026", "2026-13-01", "2026-02-30", "2026-05-25T00:00", "1748131200",
                                  "2026-05-25T25:00:00Z", "2026-05-25T00:00:00", "2026-05-25 00:00:00Z%00"])
def test_unreadable_date_is_400(history, text):
    for name in ("created_after", "created_before"):
        answer = history.client.refused(400, "invalid_request", "GET", f"/pools/trades?{name}={escaped(text, safe='%')}")
        assert name in answer.json["message"]
        ledger = history.client.get(f"/pools/ledger?{name}={escaped(text, safe='%')}")
        assert ledger.status == 400


# rule: list.malformed-cursor, list.foreign-cursor
def test_cursors(history):
    client = history.client
    for cursor in ("", "x", "txn_test_", "5", "txn_test_01arz3ndektsv4rrffq69g5fav", history.trades[0]["quoteId"], "%00"):
        client.refused(400, "invalid_request", "GET", f"/pools/trades?cursor={cursor}")
    for cursor in ("txn_test_01ARZ3NDEKTSV4RRFFQ69G5FAV", "txn_live_01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        page = client.ok("GET", f"/pools/trades?cursor={cursor}")
        assert page == {"data": [], "nextCursor": None, "hasMore": False}
    last = history.trades[-1]["transactId"]
    assert client.ok("GET", f"/pools/trades?cursor={last}") == {"data": [], "nextCursor": None, "hasMore": False}
    for cursor in ("!!", "%00", "x" * 5000, "-1", "%F0%9F%92%B0"):
        assert client.get(f"/pools/ledger?cursor={cursor}").status == 400, cursor


# rule: list.no-loss, list.order
def test_paging_under_concurrent_writes_loses_and_repeats_nothing(world):
    partner = world.partner(funds="100000.00")
    before = {partner.trade("1.00")["transactId"] for _ in range(60)}
    stop, made, broken = threading.Event(), [], []

    def write():
        client = partner.client.fork()
        try:
            while not stop.is_set():
                quote = partner.quote("1.00", client=client)["quoteId"]
                made.append(partner.transact(quote, client=client).json["transactId"])
        except BaseException as error:  # noqa: BLE001
            broken.append(error)

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline:
            items, _ = walk(partner.client, limit=7)
            ids = [item["transactId"] for item in items]
            assert len(ids) == len(set(ids)), "nothing twice"
            assert before <= set(ids), "nothing lost"
            keys = [(item["createdAt"], item["transactId"]) for item in items]
            assert keys == sorted(keys, reverse=True)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not broken and len(made) > 20
    ids = {item["transactId"] for item in walk(partner.client, limit=100)[0]}
    assert ids == before | set(made)
    check_chain(partner)


def check_chain(partner, currency="EUR"):
    """Every entry continues the previous balance, and the newest equals the balance."""
    page = partner.client.ok("GET", f"/pools/ledger?currency={currency}&limit=200")
    assert set(page) == LEDGER
    entries = partner.ledger(currency, limit=200)
    balance = Decimal(0)
    instants = [entry["createdAt"] for entry in entries]
    assert instants == sorted(instants, reverse=True)
    assert len({entry["id"] for entry in entries}) == len(entries)
    for entry in reversed(entries):
        balance += Decimal(entry["delta"])
        assert balance == Decimal(entry["balanceAfter"]) >= 0
    assert Decimal(page["available"]) == balance
    return entries


# rule: pools.ledger.answer, pools.ledger.chain, pools.ledger.order
def test_ledger_balances_chain(history):
    for currency in ("EUR", "USDT"):
        entries = check_chain(history, currency)
        for limit in (1, 3, len(entries), 200):
            assert history.ledger(currency, limit=limit) == entries
    assert history.client.ok("GET", "/pools/ledger")["currency"] == "EUR"
    assert history.client.ok("GET", "/pools/ledger")["available"] == history.balance()


# rule: pools.ledger.limit
def test_ledger_limit_is_clamped(world):
    partner = world.partner(funds="1000.00")
    for _ in range(55):
        partner.trade("1.00")
    for limit, count in (("0", 1), ("-5", 1), ("1", 1), ("7", 7), ("200", 56), ("201", 56), ("100000", 56)):
        assert len(partner.client.ok("GET", f"/pools/ledger?limit={limit}")["entries"]) == count, limit
    assert len(partner.client.ok("GET", "/pools/ledger")["entries"]) == 50
    for limit in ("x", "", "1.5", "1e2", "%20"):
        partner.client.refused(400, "invalid_request", "GET", f"/pools/ledger?limit={limit}")


# rule: pools.ledger.default-currency, pools.ledger.other-currency
def test_ledger_of_an_unfunded_partner_is_empty(world):
    partner = world.partner()
    empty = {"currency": "EUR", "available": "0.00", "entries": [], "nextCursor": None, "hasMore": False}
    assert partner.client.ok("GET", "/pools/ledger") == empty
    for currency in ("GBP", "USDT", "XXX", "", "nonsense", "E%00R"):
        partner.client.refused(400, "invalid_request", "GET", f"/pools/ledger?currency={currency}")
    partner.receive("1.5")
    page = partner.client.ok("GET", "/pools/ledger?currency=USDT")
    assert page["available"] == "1.5" and len(page["entries"]) == 1


# rule: pools.ledger.filters
def test_ledger_dates_narrow_the_entries(history):
    entries = history.ledger()
    low, high = entries[-3]["createdAt"], entries[2]["createdAt"]
    query = {"created_after": low, "created_before": high, "limit": 2}
    assert history.ledger("EUR", **query) == [entry for entry in entries if low <= entry["createdAt"] <= high]
