"""Throttles and the velocity cap."""

import secrets
import threading
import time

import pytest
from conftest import finish, make_world
from provisioning import new_key, terms_for

TIERS = ("short", "medium")


@pytest.fixture(scope="module")
def throttled(tmp_path_factory, contract):
    """Six requests in two seconds, forty in a minute."""
    settings = {"PENSTOCK_THROTTLE": "on", "PENSTOCK_THROTTLE_POOLS": "6/2s,40/60s"}
    world = make_world(tmp_path_factory.mktemp("throttled"), contract, **settings)
    yield world
    finish(world)


def standings(answer):
    return {
        tier: tuple(int(answer.headers[f"x-ratelimit-{name}-{tier}"]) for name in ("limit", "remaining", "reset"))
        for tier in TIERS
    }


# rule: throttle.headers, throttle.per-credential, throttle.refusal, throttle.window, throttle.exact
def test_credential_has_its_own_window(throttled):
    partner, other = throttled.partner(), throttled.partner()
    for n in range(6):
        answer = partner.client.get("/pools" if n % 2 else "/pools/trades")
        assert answer.status == 200
        seen = standings(answer)
        assert seen["short"][:2] == (6, 5 - n) and seen["medium"][:2] == (40, 39 - n), "all routes share the limit"
        assert 0 < seen["short"][2] <= 2 and 0 < seen["medium"][2] <= 60
    refused = partner.client.refused(429, "rate_limited", "GET", "/pools")
    assert standings(refused)["short"][1] == 0
    wait = int(refused.headers["retry-after-short"])
    assert refused.headers["retry-after"] == str(wait) and 0 < wait <= 2
    assert "retry-after-medium" not in refused.headers
    assert other.client.get("/pools").status == 200, "another credential has its own window"
    second = throttled.installation.operator("key", "create", "--partner", partner.id, "--kind", "secret")["key"]
    assert partner.client.get("/pools", key=second).status == 200
    time.sleep(wait)
    assert partner.client.get("/pools").status == 200


# rule: throttle.refusal, throttle.not-velocity
def test_throttled_transact_has_no_effect(throttled):
    partner = throttled.partner(funds="100.00")
    quote, key = partner.quote("10.00")["quoteId"], secrets.token_hex(8)
    while partner.client.get("/pools").status == 200:
        pass
    answer = partner.transact(quote, idempotency=key)
    assert (answer.status, answer.code) == (429, "rate_limited")
    time.sleep(int(answer.headers["retry-after"]) + 0.1)
    assert partner.client.ok("GET", f"/pools/quotes/{quote}")["status"] == "active"
    assert partner.transact(quote, idempotency=key).json["idempotent"] is False


# rule: throttle.exact
def test_window_admits_at_most_its_limit_under_concurrency(throttled):
    partner = throttled.partner()
    partner.client.get("/pools")
    seen, lock = [], threading.Lock()

    def ask():
        client = partner.client.fork()
        mine = [client.get("/pools").status for _ in range(6)]
        with lock:
            seen.extend(mine)

    began = time.monotonic()
    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    windows = 1 + int((time.monotonic() - began) // 2) + 1
    assert seen.count(200) <= 6 * windows - 1 and set(seen) == {200, 429}


# rule: throttle.exempt, health.alive, health.ready
def test_probes_and_documents_are_never_throttled(throttled):
    client = throttled.client()
    for _ in range(20):
        for path in ("/health", "/health/ready", "/openapi/pools-v1.yaml", "/docs"):
            answer = client.root("GET", path)
            assert answer.status == 200
            assert not [name for name in answer.headers if name.startswith("x-ratelimit")]


# rule: auth.failures-counted, throttle.spoofed-forwarding
def test_guessing_keys_is_limited_by_address(tmp_path, contract):
    settings = {"PENSTOCK_THROTTLE": "on", "PENSTOCK_THROTTLE_POOLS": "5/60s"}
    world = make_world(tmp_path / "guessing", contract, **settings)
    partner = world.partner()
    seen = []
    for n in range(12):
        headers = {"X-Forwarded-For": f"203.0.113.{n}"}
        path = ["/pools", "/pools/trades", "/pools/EUR-USDT/balance"][n % 3]
        seen.append(world.client().call("GET", path, key=new_key(), headers=headers).status)
    assert seen == [401] * 5 + [429] * 7, "for every route and every claimed address"
    assert partner.client.get("/pools").status in (200, 429)
    finish(world)


# rule: throttle.client-address
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
    seen = standings(world.partner().client.get("/pools"))
    assert (seen["short"][0], seen["medium"][0]) == (100, 3000)
    assert seen["short"][2] == 1 and seen["medium"][2] <= 60
    finish(world)


# rule: pools.velocity.boundary, pools.velocity.given-back, throttle.not-velocity
def test_cap_may_be_reached_but_not_exceeded(world):
    # 100 EUR are worth 108.5 USDT.
    partner = world.partner(funds="10000.00", velocity_cap_usdt="217")
    partner.trade("100.00")
    given_back = [partner.trade("60.31"), None]
    answer = partner.transact(partner.quote("100.00")["quoteId"])
    assert (answer.status, answer.code) == (429, "velocity_cap_exceeded")
    assert answer.json["type"] == "rate_limited" and "retry-after-short" not in answer.headers
    assert partner.poll(given_back[0]["quoteId"])["status"] == "failed"
    over = partner.quote("100.01")["quoteId"]
    assert partner.transact(over).code == "velocity_cap_exceeded"
    partner.trade("100.00")
    smallest = partner.quote("1.00")["quoteId"]
    assert partner.transact(smallest).code == "velocity_cap_exceeded"
    assert partner.client.ok("GET", f"/pools/quotes/{smallest}")["status"] == "active"
    assert partner.balance() == "9800.00"


# rule: pools.velocity.given-back
def test_returned_trade_still_counts(world):
    partner = world.partner(funds="10000.00", velocity_cap_usdt="109")
    ack = partner.trade("50.41")
    assert [partner.poll(ack["quoteId"])["status"] for _ in range(2)] == ["settled", "returned"]
    assert partner.transact(partner.quote("60.00")["quoteId"]).code == "velocity_cap_exceeded"


# rule: pools.price.usdt-rounding, pools.velocity.boundary
def test_notional_is_rounded_up(world):
    # 0.000001 USDC is 1.00046...e-6 USDT: a cap that covers the exact sum of two does not cover the rounded sum.
    partner = world.partner(receipts=None, velocity_cap_usdt="100.04610420", terms=terms_for(["EUR-USDC"], off_ramp=True))
    partner.receive("1000", "USDC")
    exactly = partner.quote("100", "EUR-USDC", side="off_ramp", cryptoNetwork="ethereum")["quoteId"]
    # 100 x 1.0850 / 1.0845 = 100.046104195..., rounded up to 100.04610420.
    assert partner.transact(exactly, "EUR-USDC").status == 200
    less = world.partner(velocity_cap_usdt="100.04610419", terms=terms_for(["EUR-USDC"], off_ramp=True))
    less.receive("1000", "USDC")
    over = less.quote("100", "EUR-USDC", side="off_ramp", cryptoNetwork="ethereum")["quoteId"]
    assert less.transact(over, "EUR-USDC").code == "velocity_cap_exceeded"


# rule: pools.velocity.off
def test_velocity_is_unlimited_without_a_cap(world):
    partner = world.partner(funds="10000000.00")
    for _ in range(3):
        partner.trade("3000000.00")


# rule: pools.velocity.window
def test_trade_outside_the_window_no_longer_counts(quick):
    partner = quick.partner(funds="10000.00", velocity_cap_usdt="110")
    partner.trade("100.00")
    assert partner.transact(partner.quote("100.00")["quoteId"]).code == "velocity_cap_exceeded"
    time.sleep(3.2)
    partner.trade("100.00")
    assert partner.transact(partner.quote("100.00")["quoteId"]).code == "velocity_cap_exceeded"


# rule: pools.velocity.off
def test_cap_of_zero_refuses_every_trade(world):
    partner = world.partner(funds="100.00", velocity_cap_usdt="0")
    assert partner.transact(partner.quote("10.00")["quoteId"]).code == "velocity_cap_exceeded"
