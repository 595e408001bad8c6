"""Quotes: discovery, capabilities, pricing to the last digit, refusals, reading and rejecting."""

import random
import re
import time
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import money
import pytest
from contract import INSTANT
from programs import Installation
from conftest import World, finish
from provisioning import ADDRESS, DEPOSIT_ADDRESS, NETWORKS, partner_toml, pool_toml, profile, terms_for

ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
DECIMAL = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?")
FIRM = {"available", "type", "executable", "quoteId", "rate", "spreadBps", "feeBps", "minOrderUsdt", "maxOrderUsdt", "expiresAt"}
INDICATIVE = FIRM - {"quoteId", "expiresAt"}
RECORD = {"quoteId", "poolId", "pair", "side", "cryptoNetwork", "fiatAmount", "cryptoAmount", "rate", "spreadBps", "feeBps",
          "status", "expiresAt", "consumedAt", "rejectedAt", "createdAt"}


def at(text):
    assert INSTANT.fullmatch(text), text
    return datetime.fromisoformat(text)


# rule: pools.list.shape, pools.list.only-entitled, response.camel-case
def test_discovery_shows_the_allowed_pools(world):
    partner = world.partner(allowed=["EUR-USDT", "GBP-USDT"])
    for key in (partner.secret, partner.publishable):
        body = partner.client.ok("GET", "/pools", key=key)
        assert set(body) == {"pools"}
        pools = {pool["id"]: pool for pool in body["pools"]}
        assert set(pools) == {"EUR-USDT", "GBP-USDT"}
        assert pools["EUR-USDT"] == {
            "id": "EUR-USDT", "pair": "EUR/USDT", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "available": True
        }


# rule: pools.list.empty, pools.list.kyc-hides-nothing
def test_discovery_without_entitlement_is_empty(world):
    for change in ({"enabled": False}, {"access": "suspended"}, {"allowed": []}):
        partner = world.partner(**change)
        assert partner.client.ok("GET", "/pools") == {"pools": []}
        assert partner.client.ok("GET", "/pools", key=partner.publishable) == {"pools": []}
    partner = world.partner(kyc="pending")
    pools = partner.client.ok("GET", "/pools")["pools"]
    assert len(pools) == 3 and all(pool["available"] for pool in pools)


# rule: pools.capabilities.shape, pools.capabilities.maximum, pools.capabilities.deposit-address, money.no-floats
def test_capabilities_show_the_terms(world):
    terms = terms_for(["EUR-USDT"], draw_fee_bps=123, spread_cap_bps=17, min_order_usdt=2.5, max_order_usdt=100000.10,
                      crypto_deposit_address=DEPOSIT_ADDRESS)
    partner = world.partner(terms=terms, tier="gold")
    answer = partner.client.get("/pools/EUR-USDT/capabilities")
    assert answer.status == 200
    body = answer.json
    networks = body.pop("supportedNetworks")
    assert sorted(networks) == sorted(NETWORKS)
    assert sorted(body.pop("sides")) == ["off_ramp", "on_ramp"]
    assert body == {
        "poolId": "EUR-USDT", "pair": "EUR/USDT", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "tier": "gold",
        "drawFeeBps": 123, "spreadCapBps": 17, "minOrderUsdt": Decimal("2.5"), "maxOrderUsdt": Decimal("100000.1"),
        "cryptoDepositAddress": DEPOSIT_ADDRESS,
    }
    assert re.search(r'"maxOrderUsdt":\s*100000\.10?[,}]', answer.text), "printed as a decimal"
    plain = partner.client.ok("GET", "/pools/GBP-USDT/capabilities")
    assert (plain["drawFeeBps"], plain["spreadCapBps"], plain["minOrderUsdt"]) == (0, 50, 1)
    assert plain["maxOrderUsdt"] is None and plain["cryptoDepositAddress"] is None


# rule: pools.quote.firm, pools.quote.firm-is-default, pools.quote.status, pools.quote.ttl, response.money-as-strings
def test_firm_quote_has_exactly_its_fields(shopper):
    quote = shopper.quote("100.00")
    assert set(quote) == FIRM
    assert quote["type"] == "firm" and quote["executable"] is True
    assert re.fullmatch(f"pq_test_{ULID}", quote["quoteId"])
    assert isinstance(quote["spreadBps"], int) and isinstance(quote["feeBps"], int)
    record = shopper.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")
    assert set(record) == RECORD
    assert record["status"] == "active" and record["consumedAt"] is None and record["rejectedAt"] is None
    assert record["expiresAt"] == quote["expiresAt"]
    assert (at(record["expiresAt"]) - at(record["createdAt"])).total_seconds() == 15
    for name in ("poolId", "pair", "side", "cryptoNetwork"):
        assert record[name] == {"poolId": "EUR-USDT", "pair": "EUR/USDT", "side": "on_ramp", "cryptoNetwork": "tron"}[name]
    for name in ("rate", "fiatAmount", "cryptoAmount"):
        assert DECIMAL.fullmatch(record[name]), record


# rule: pools.quote.indicative
def test_indicative_quote_has_exactly_its_fields_and_leaves_no_trace(shopper):
    quote = shopper.quote("100.00", type="indicative")
    assert set(quote) == INDICATIVE
    assert quote["type"] == "indicative" and quote["executable"] is False
    firm = shopper.quote("100.00")
    assert {name: quote[name] for name in ("rate", "spreadBps", "feeBps")} == {
        name: firm[name] for name in ("rate", "spreadBps", "feeBps")
    }


# rule: sandbox.rates, pools.price.rate, pools.price.rate-rounding, pools.price.other-leg, pools.price.spread
# rule: money.print-fiat, money.print-crypto, pools.quote.amount-side, pools.price.remainder, pools.price.fee-uncapped
def test_prices_are_exact_to_the_last_digit(world):
    chance = random.Random(20260525)
    for fee, cap in ((0, 50), (30, 10), (5000, 0), (1, 50), (333, 25), (4999, 24)):
        pools = ["EUR-USDT", "EUR-USDC", "GBP-USDT"]
        partner = world.partner(terms=terms_for(pools, draw_fee_bps=fee, spread_cap_bps=cap))
        for _ in range(12):
            pool, side = chance.choice(pools), chance.choice(["on_ramp", "off_ramp"])
            fiat, crypto = pool.split("-")
            whole, digits = chance.randrange(2, 10 ** chance.randrange(1, 7) + 2), 2 if side == "on_ramp" else chance.choice([2, 6])
            # A fraction without a special meaning in the sandbox.
            amount = f"{whole}.{chance.choice(['00', '07', '10', '99', '50'])}" + "".join(
                chance.choice("123456789") for _ in range(digits - 2)
            )
            quote = partner.quote(amount, pool, side=side)
            spread = min(money.SANDBOX_SPREAD, cap, 50)
            assert (quote["spreadBps"], quote["feeBps"]) == (spread, fee)
            legs = money.legs(pool, side, Fraction(amount), money.SANDBOX_MIDS[pool], spread + fee)
            record = partner.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")
            expected = (money.written(legs[0], fiat), money.written(legs[1], crypto), money.written(legs[2]))
            assert (record["fiatAmount"], record["cryptoAmount"], record["rate"]) == expected, (pool, side, amount, fee, cap)
            assert quote["rate"] == record["rate"]


STATIC = {
    "EUR-USDT": "1.0850", "EUR-BTC": "0.00001234567891", "JPY-USDT": "0.0066666", "JPY-BTC": "0.000000071234567",
    "USD-USDT": "0.99951234", "USD-ETH": "0.00029999999999", "EUR-ETH": "0.0003333333333333", "BHD-USDT": "2.65251989",
}
STATIC_SPREADS = {"EUR-USDT": 75, "EUR-BTC": 33, "JPY-USDT": 0, "JPY-BTC": 50}


@pytest.fixture(scope="module")
def exotic(tmp_path_factory, contract):
    """A service with rates from a file: small and long rates, and currencies without cents."""
    installation = Installation(tmp_path_factory.mktemp("exotic"))
    rows = "".join(
        f'[[rates]]\npair = "{pair}"\nmid = "{mid}"\nspread_bps = {STATIC_SPREADS.get(pair, 25)}\n'
        for pair, mid in STATIC.items()
    )
    installation.settings["PENSTOCK_RATES"] = f"static:{installation.write(rows, 'rates.toml')}"
    pools = [*STATIC, "GBP-USDT", "GBP-BTC"]
    installation.apply("".join(pool_toml(pool, available=pool != "BHD-USDT") for pool in pools))
    world = World(installation, installation.start(), contract)
    yield world
    finish(world)


# rule: pools.price.rate-rounding, pools.price.spread, money.crypto-digits, money.fiat-digits, pools.price.other-leg
@pytest.mark.parametrize("pool", sorted(set(STATIC) - {"BHD-USDT"}))
@pytest.mark.parametrize("side", ["on_ramp", "off_ramp"])
def test_small_and_long_rates_are_exact(exotic, pool, side):
    fiat, crypto = pool.split("-")
    partner = exotic.partner(allowed=[pool], terms=terms_for([pool], draw_fee_bps=7, min_order_usdt=0))
    amounts = {"on_ramp": ["12345", "9999999", "1000"], "off_ramp": ["0.12345678", "1.00000001", "21"]}[side]
    if side == "off_ramp" and crypto == "USDT":
        amounts = ["123.456789", "1000", "99999.999999"]
    for amount in amounts:
        quote = partner.quote(amount, pool, side=side)
        spread = min(STATIC_SPREADS.get(pool, 25), 50)
        assert quote["spreadBps"] == spread
        legs = money.legs(pool, side, Fraction(amount), Fraction(STATIC[pool]), spread + 7)
        record = partner.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")
        expected = (money.written(legs[0], fiat), money.written(legs[1], crypto), money.written(legs[2]))
        assert (record["fiatAmount"], record["cryptoAmount"], record["rate"]) == expected


# rule: pools.quote.rate-unavailable, pools.quote.unavailable, pools.quote.pool-dry
def test_unavailable_quote_shows_its_reason_with_200(exotic, shopper):
    partner = exotic.partner(allowed=["GBP-USDT", "GBP-BTC", "BHD-USDT"])
    for pool, reason in (("GBP-USDT", "rate_unavailable"), ("GBP-BTC", "rate_unavailable"), ("BHD-USDT", "pool_dry")):
        for kind in ("firm", "indicative"):
            answer = partner.client.ok("POST", f"/pools/{pool}/quote", partner.ask("100.00", pool, type=kind))
            assert answer == {"available": False, "unavailableReason": reason}, pool
    listed = {pool["id"]: pool["available"] for pool in partner.client.ok("GET", "/pools")["pools"]}
    assert listed == {"GBP-USDT": True, "GBP-BTC": True, "BHD-USDT": False}
    assert partner.client.ok("GET", "/pools/BHD-USDT/balance")["available"] is False


# rule: sandbox.dry, sandbox.engine-away, sandbox.rate-away, sandbox.by-value, pools.quote.engine-unavailable
@pytest.mark.parametrize(
    ("amount", "reason"),
    [("100.11", "pool_dry"), ("100.12", "engine_unavailable"), ("100.13", "rate_unavailable"), ("7.11", "pool_dry")],
)
def test_sandbox_plays_every_reason_for_unavailability(shopper, amount, reason):
    for side, text in (("on_ramp", amount), ("off_ramp", amount), ("off_ramp", amount + "0000")):
        for kind in ("firm", "indicative"):
            answer = shopper.client.ok("POST", "/pools/EUR-USDT/quote", shopper.ask(text, side=side, type=kind))
            assert answer == {"available": False, "unavailableReason": reason}
    answer = shopper.quote(amount + "1", side="off_ramp")
    assert answer["available"] is True, "further digits make another value"


AMOUNTS = {
    "1e3": "invalid_request", "+1": "invalid_request", "-1": "invalid_request", "01": "invalid_request",
    "00.5": "invalid_request", ".5": "invalid_request", "1.": "invalid_request", "1,00": "invalid_request",
    "0x10": "invalid_request", "NaN": "invalid_request", "Infinity": "invalid_request", "": "invalid_request",
    " 1": "invalid_request", "1 ": "invalid_request", "1_000": "invalid_request", "١٠": "invalid_request",
    "0": "invalid_request", "0.00": "invalid_request", "-0": "invalid_request", "1.2.3": "invalid_request",
    "10.001": "amount_precision", "10.000": "amount_precision", "10.0000000000": "amount_precision",
    "10000000000.01": "amount_out_of_range", "9" * 500: "amount_out_of_range", "1" + "0" * 30: "amount_out_of_range",
}


# rule: money.grammar, money.zero, money.fiat-digits, money.digits-as-written, money.out-of-range
@pytest.mark.parametrize("amount", sorted(AMOUNTS), ids=lambda amount: amount[:24] or "empty")
def test_amount_is_read_strictly(shopper, amount):
    for kind in ("firm", "indicative"):
        body = shopper.ask(amount, type=kind)
        shopper.client.refused(400, AMOUNTS[amount], "POST", "/pools/EUR-USDT/quote", body)


# rule: money.crypto-digits, money.out-of-range
def test_crypto_amounts_have_their_assets_digits(shopper, exotic):
    body = shopper.ask("1.0000001", side="off_ramp")
    shopper.client.refused(400, "amount_precision", "POST", "/pools/EUR-USDT/quote", body)
    # 10^-6 USDT are worth less than a cent.
    body = shopper.ask("0.000001", side="off_ramp")
    shopper.client.refused(400, "amount_out_of_range", "POST", "/pools/EUR-USDT/quote", body)
    partner = exotic.partner(allowed=["JPY-USDT"], terms=terms_for(["JPY-USDT"], min_order_usdt=0))
    partner.client.refused(400, "amount_precision", "POST", "/pools/JPY-USDT/quote", partner.ask("100.0", "JPY-USDT"))
    assert partner.quote("100", "JPY-USDT")["available"] is True


# rule: money.out-of-range
def test_other_leg_is_bounded(shopper):
    # 9.9 x 10^9 EUR is a valid amount; its value in USDT exceeds 10^10.
    body = shopper.ask("9900000000.00")
    shopper.client.refused(400, "amount_out_of_range", "POST", "/pools/EUR-USDT/quote", body)


WRONG = [
    ({"side": "sideways"}, "invalid_request"),
    ({"side": "ON_RAMP"}, "invalid_request"),
    ({"side": ...}, "invalid_request"),
    ({"type": "soft"}, "invalid_request"),
    ({"type": ""}, "invalid_request"),
    ({"amount": ...}, "invalid_request"),
    ({"amount": 100}, "invalid_request"),
    ({"fiatCurrency": ...}, "invalid_request"),
    ({"fiatCurrency": "GBP"}, "currency_mismatch"),
    ({"fiatCurrency": "XXQ"}, "unknown_currency"),
    ({"fiatCurrency": "EURO"}, "unknown_currency"),
    ({"fiatCurrency": "XAU"}, "unknown_currency"),
    ({"cryptoCurrency": "USDC"}, "currency_mismatch"),
    ({"cryptoCurrency": "DOGE2"}, "unknown_currency"),
    ({"cryptoNetwork": "lightning"}, "network_not_supported"),
    ({"cryptoNetwork": "Tron"}, "network_not_supported"),
    ({"cryptoNetwork": "arbitrum"}, "network_not_supported"),
    ({"destNetwork": "tron"}, "network_not_supported"),
    ({"destNetwork": "solana"}, "network_not_supported"),
    ({"destNetwork": "Polygon"}, "network_not_supported"),
    ({"destAddress": ...}, "invalid_address"),
    ({"destAddress": ""}, "invalid_address"),
    ({"destAddress": ADDRESS[:-1]}, "invalid_address"),
    ({"destAddress": ADDRESS + "0"}, "invalid_address"),
    ({"destAddress": "0X" + ADDRESS[2:]}, "invalid_address"),
    ({"destAddress": ADDRESS[2:]}, "invalid_address"),
    ({"destAddress": " " + ADDRESS}, "invalid_address"),
    ({"destAddress": ADDRESS[:-1] + "g"}, "invalid_address"),
    ({"destAddress": "0x" + "0" * 40}, "invalid_address"),
    ({"destAddress": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"}, "invalid_address"),
    ({"destAddress": ADDRESS.replace("aAeb", "AAeb")}, "address_checksum_mismatch"),
]


# rule: pools.quote.side, pools.quote.unknown-currency, pools.quote.currency-mismatch, pools.quote.network
# rule: pools.quote.dest-network, pools.quote.address-required, pools.quote.address-form, pools.quote.address-zero
# rule: pools.quote.address-checksum
@pytest.mark.parametrize(("change", "code"), WRONG, ids=[str(change)[:50] for change, _ in WRONG])
def test_wrong_field_has_its_code(shopper, change, code):
    for kind in ("firm", "indicative"):
        body = {"type": kind, **shopper.ask(**change)}
        answer = shopper.client.refused(400, code, "POST", "/pools/EUR-USDT/quote", {**body, **({} if "type" not in change else change)})
        assert next(iter(change)) in answer.json["message"], answer


VECTORS = [
    "0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]


# rule: pools.quote.address-checksum
@pytest.mark.parametrize("address", VECTORS)
def test_address_checksums_of_the_standard_hold(shopper, address):
    assert shopper.quote(destAddress=address)["available"] is True
    for form in ("0x" + address[2:].lower(), "0x" + address[2:].upper()):
        assert shopper.quote(destAddress=form)["available"] is True
    letters = [n for n, letter in enumerate(address) if n > 1 and letter.isalpha()]
    for n in letters:
        flipped = address[:n] + address[n].swapcase() + address[n + 1:]
        if flipped[2:] in (flipped[2:].lower(), flipped[2:].upper()):
            continue
        body = shopper.ask(destAddress=flipped)
        shopper.client.refused(400, "address_checksum_mismatch", "POST", "/pools/EUR-USDT/quote", body)


# rule: pools.quote.order
def test_quote_checks_run_in_their_order(shopper):
    wrongs = [
        ("invalid_request", {"side": "sideways"}),
        ("currency_mismatch", {"fiatCurrency": "GBP"}),
        ("network_not_supported", {"cryptoNetwork": "lightning"}),
        ("invalid_address", {"destAddress": "nowhere"}),
        ("amount_precision", {"amount": "0.001"}),
    ]
    for first in range(len(wrongs)):
        body = shopper.ask()
        for _, change in wrongs[first:]:
            body.update(change)
        shopper.client.refused(400, wrongs[first][0], "POST", "/pools/EUR-USDT/quote", body)
    # Availability comes before order size: .11 has insufficient depth although it is too small.
    answer = shopper.client.ok("POST", "/pools/EUR-USDT/quote", shopper.ask("0.11"))
    assert answer["unavailableReason"] == "pool_dry"


# rule: pools.quote.codes-upper-cased
def test_codes_are_read_in_any_case(shopper):
    quote = shopper.quote(fiatCurrency="eur", cryptoCurrency="Usdt")
    record = shopper.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")
    assert (record["poolId"], record["pair"]) == ("EUR-USDT", "EUR/USDT")


# rule: pools.quote.network-default, pools.quote-record.locked, pools.quote.dest-network-default
@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_of_the_pool_can_be_quoted(shopper, network):
    quote = shopper.quote(cryptoNetwork=network)
    assert shopper.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")["cryptoNetwork"] == network
    for delivery in ("arbitrum", "ethereum", "bsc", "optimism", "polygon"):
        assert shopper.quote(cryptoNetwork=network, destNetwork=delivery)["available"] is True


# rule: pools.quote.off-ramp-open
def test_sale_is_quoted_although_selling_is_disabled(world):
    partner = world.partner(terms=terms_for(["EUR-USDT"], off_ramp=False))
    assert partner.quote("50", side="off_ramp")["executable"] is True


# rule: pools.quote.below-minimum, pools.quote.above-maximum, pools.quote.limits-inclusive
# rule: pools.price.usdt-fiat, pools.price.usdt-crypto, pools.price.usdt-rounding
def test_order_size_is_compared_exactly(world):
    # 100 EUR are 108.5 USDT; 100 GBP are 126 USDT; 100 USDC are 100 x 1.0850 / 1.0845 USDT.
    terms = terms_for(["EUR-USDT", "EUR-USDC"], min_order_usdt=108.5, max_order_usdt=1085) + terms_for(
        ["GBP-USDT"], min_order_usdt=126, max_order_usdt=126
    )
    partner = world.partner(terms=terms)
    cases = [
        ("EUR-USDT", "on_ramp", "100.00", None), ("EUR-USDT", "on_ramp", "99.99", "amount_below_minimum"),
        ("EUR-USDT", "on_ramp", "1000.00", None), ("EUR-USDT", "on_ramp", "1000.01", "amount_above_maximum"),
        ("EUR-USDT", "off_ramp", "108.5", None), ("EUR-USDT", "off_ramp", "108.499999", "amount_below_minimum"),
        ("EUR-USDT", "off_ramp", "1085", None), ("EUR-USDT", "off_ramp", "1085.000001", "amount_above_maximum"),
        ("EUR-USDC", "on_ramp", "100.00", None), ("EUR-USDC", "on_ramp", "99.99", "amount_below_minimum"),
        ("EUR-USDC", "off_ramp", "108.45", None), ("EUR-USDC", "off_ramp", "108.449999", "amount_below_minimum"),
        ("EUR-USDC", "off_ramp", "1084.5", None), ("EUR-USDC", "off_ramp", "1084.500001", "amount_above_maximum"),
        ("GBP-USDT", "on_ramp", "100.00", None), ("GBP-USDT", "on_ramp", "100.01", "amount_above_maximum"),
    ]
    for pool, side, amount, code in cases:
        for kind in ("firm", "indicative"):
            body = partner.ask(amount, pool, side=side, type=kind)
            answer = partner.client.post(f"/pools/{pool}/quote", body)
            if code:
                assert (answer.status, answer.code) == (400, code), (pool, side, amount, answer)
            else:
                assert answer.status == 200 and answer.json["available"] is True, (pool, side, amount, answer)
                assert answer.json["minOrderUsdt"] in (Decimal("108.5"), 126)


# rule: pools.quote-record.pure
def test_reading_a_quote_changes_nothing(shopper):
    quote = shopper.quote()["quoteId"]
    reads = [shopper.client.get(f"/pools/quotes/{quote}").raw for _ in range(5)]
    assert len(set(reads)) == 1


# rule: pools.reject.effect, pools.reject.rejected, pools.quote-record.derived
def test_quote_is_rejected_once(shopper):
    before = shopper.balance()
    quote = shopper.quote()["quoteId"]
    record = shopper.client.ok("POST", f"/pools/quotes/{quote}/reject")
    assert set(record) == RECORD and record["status"] == "rejected" and record["consumedAt"] is None
    assert at(record["createdAt"]) <= at(record["rejectedAt"]) < at(record["expiresAt"])
    assert shopper.client.ok("GET", f"/pools/quotes/{quote}") == record
    shopper.client.refused(409, "quote_rejected", "POST", f"/pools/quotes/{quote}/reject")
    answer = shopper.transact(quote)
    assert (answer.status, answer.code) == (409, "quote_rejected")
    shopper.client.refused(404, "resource_not_found", "GET", f"/pools/transactions/{quote}")
    assert shopper.balance() == before


# rule: pools.reject.consumed, pools.quote-record.shape
def test_executed_quote_reads_as_consumed(shopper):
    trade = shopper.trade()
    record = shopper.client.ok("GET", f"/pools/quotes/{trade['quoteId']}")
    assert record["status"] == "consumed" and record["rejectedAt"] is None and "executable" not in record
    assert at(record["createdAt"]) <= at(record["consumedAt"]) < at(record["expiresAt"])
    shopper.client.refused(409, "quote_consumed", "POST", f"/pools/quotes/{trade['quoteId']}/reject")


# rule: pools.reject.expired, pools.transact.expired, pools.quote-record.derived, pools.quote.retention
# rule: time.deadline-exclusive, pools.transact.idempotent, pools.quote.ttl
def test_expired_quote_stays_expired_and_outcomes_stay(quick):
    partner = quick.partner(funds="1000.00")
    left, rejected, done = (partner.quote()["quoteId"] for _ in range(3))
    partner.client.ok("POST", f"/pools/quotes/{rejected}/reject")
    trade = partner.transact(done).json
    record = partner.client.ok("GET", f"/pools/quotes/{left}")
    assert (at(record["expiresAt"]) - at(record["createdAt"])).total_seconds() == 0.8
    time.sleep(1)
    states = {quote: partner.client.ok("GET", f"/pools/quotes/{quote}")["status"] for quote in (left, rejected, done)}
    assert states == {left: "expired", rejected: "rejected", done: "consumed"}
    partner.client.refused(409, "quote_expired", "POST", f"/pools/quotes/{left}/reject")
    partner.client.refused(409, "quote_rejected", "POST", f"/pools/quotes/{rejected}/reject")
    partner.client.refused(409, "quote_consumed", "POST", f"/pools/quotes/{done}/reject")
    answers = {quote: partner.transact(quote) for quote in (left, rejected)}
    assert [answer.code for answer in answers.values()] == ["quote_expired", "quote_rejected"]
    again = partner.transact(done)
    assert again.status == 200 and again.json == {**trade, "idempotent": True}


# rule: pools.quote.pool-hidden, apply.absence-changes-nothing
def test_pool_added_later_can_be_traded(world):
    text = pool_toml("GBP-USDC", ["ethereum"])
    world.installation.apply(text)
    partner = world.partner(allowed=["GBP-USDC"])
    deadline = time.monotonic() + 5.5
    while not partner.client.ok("GET", "/pools")["pools"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    body = partner.ask("10.00", "GBP-USDC", cryptoNetwork="ethereum")
    answer = partner.client.ok("POST", "/pools/GBP-USDC/quote", body)
    assert answer == {"available": False, "unavailableReason": "rate_unavailable"}
    partner.client.refused(400, "network_not_supported", "POST", "/pools/GBP-USDC/quote", partner.ask("10.00", "GBP-USDC"))


# rule: apply.partner-id
def test_partner_without_products_sees_no_pools(world):
    key = world.partner().publishable
    assert world.client(key).ok("GET", "/pools")["pools"]
    world.installation.apply(partner_toml("bare-partner", pools=profile(enabled=False)))
