"""Credentials, access, headers, bodies and errors: the rules of every route."""

import secrets

import pytest
from client import Client
from programs import EMBEDDED, Installation
from provisioning import ADDRESS, new_key, terms_for

UNKNOWN_QUOTE = "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV"
UNKNOWN_TRADE = "txn_test_01ARZ3NDEKTSV4RRFFQ69G5FAV"

# The twelve operations, with an existing path and their kind of access check.
ROUTES = [
    ("GET", "/pools", "any"),
    ("GET", "/pools/EUR-USDT/capabilities", "entitled"),
    ("POST", "/pools/EUR-USDT/quote", "entitled"),
    ("POST", "/pools/EUR-USDT/transact", "entitled"),
    ("GET", f"/pools/quotes/{UNKNOWN_QUOTE}", "secret"),
    ("POST", f"/pools/quotes/{UNKNOWN_QUOTE}/reject", "secret"),
    ("GET", f"/pools/transactions/{UNKNOWN_QUOTE}", "secret"),
    ("GET", "/pools/trades", "secret"),
    ("GET", f"/pools/trades/{UNKNOWN_TRADE}", "secret"),
    ("GET", "/pools/EUR-USDT/balance", "entitled"),
    ("GET", "/pools/funding", "secret"),
    ("GET", "/pools/ledger", "secret"),
]
EVERY = [pytest.param(*route, id=f"{route[0]} {route[1].split('_')[0]}") for route in ROUTES]
JSON = {"Content-Type": "application/json"}


# rule: auth.missing, auth.unknown, auth.before-body, response.request-id, error.six-fields, error.default-codes
@pytest.mark.parametrize(("method", "path", "kind"), EVERY)
def test_bad_key_is_refused_before_the_body_is_read(world, method, path, kind):
    client = world.client()
    for headers in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {new_key()}"},
        {"Authorization": f"Basic {new_key()}"},
        {"Authorization": "Bearer sk_test_short"},
        {"Authorization": f"Bearer {new_key()} {new_key()}"},
        {"Authorization": f"Bearer {new_key()[:-1]}ü".encode().decode("latin-1")},
        {"X-Secret-Key": new_key()},
        {"X-Publishable-Key": new_key("publishable")},
    ):
        answer = client.call(method, path, headers=headers, raw=b"{" if method == "POST" else None)
        assert (answer.status, answer.code) == (401, "unauthorized"), (headers, answer)


# rule: auth.other-mode
@pytest.mark.parametrize(("method", "path", "kind"), EVERY)
def test_key_of_other_mode_is_refused(world, method, path, kind):
    for key in (new_key("secret", "live"), new_key("publishable", "live")):
        world.client().refused(403, "key_mode_mismatch", method, path, key=key)


# rule: auth.wrong-kind, pools.list.either-key
@pytest.mark.parametrize(("method", "path", "kind"), EVERY)
def test_publishable_key_reads_discovery_only(shopper, method, path, kind):
    answer = shopper.client.call(method, path, key=shopper.publishable)
    if kind == "any":
        assert answer.status == 200
    else:
        assert (answer.status, answer.code) == (403, "key_mode_mismatch")


# rule: auth.bearer-first
def test_bearer_is_read_before_the_other_headers(shopper):
    good, bad = shopper.secret, new_key()
    client = shopper.client
    assert client.call("GET", "/pools", headers={"X-Secret-Key": bad}).status == 200
    assert client.call("GET", "/pools", headers={"Authorization": None, "X-Secret-Key": good}).status == 200
    publishable = {"Authorization": None, "X-Publishable-Key": shopper.publishable}
    assert client.call("GET", "/pools", headers=publishable).status == 200
    client.refused(401, "unauthorized", "GET", "/pools", key=bad, headers={"X-Secret-Key": good})


# rule: auth.secret-in-query
@pytest.mark.parametrize(
    "query",
    ["key={}", "publishable_key={}", "a=1&x={}&b=2", "{}", "x=pre{}post", "{}=1", "x=%73{}"],
)
def test_secret_key_in_query_is_refused_everywhere(shopper, query):
    key = new_key()
    text = query.format(key[1:] if "%73" in query else key)
    for path in ("/pools", "/pools/trades", "/pools/EUR-USDT/capabilities"):
        answer = shopper.client.refused(401, "secret_key_in_query", "GET", f"{path}?{text}")
        assert key not in answer.text
    escaped = "".join(f"%{ord(letter):02X}" for letter in key)
    shopper.client.refused(401, "secret_key_in_query", "GET", f"/pools?x={escaped}")


# rule: access.checked-routes, access.unchecked-routes, access.not-enabled, access.suspended, access.kyc
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"enabled": False}, "pools_not_enabled"),
        ({"access": "suspended"}, "pool_access_suspended"),
        ({"kyc": "pending"}, "kyc_not_approved"),
        ({"kyc": "revoked"}, "kyc_not_approved"),
    ],
)
def test_entitlement_is_checked_on_four_routes_only(world, change, code):
    partner = world.partner(**change)
    for method, path, kind in ROUTES:
        answer = partner.client.call(method, path)
        if kind == "entitled":
            assert (answer.status, answer.code) == (403, code), (path, answer)
        else:
            assert answer.status in (200, 404), (path, answer)


# rule: access.denial-order, access.order
def test_denials_come_in_their_order(world):
    partner = world.partner(enabled=False, access="suspended", kyc="pending", allowed=[], top={"status": "suspended"})
    for method, path, _ in ROUTES:
        partner.client.refused(403, "organization_suspended", method, path)
    path = "/pools/EUR-USDT/balance"
    for change, code in (
        ({"top": {"status": "active"}}, "pools_not_enabled"),
        ({"enabled": True}, "pool_access_suspended"),
        ({"access": "active"}, "kyc_not_approved"),
        ({"kyc": "approved"}, "pool_not_allowed"),
    ):
        partner.change(**change)
        restarted = world.partner(top=partner.top, **partner.pools)
        restarted.client.refused(403, code, "GET", path)


# rule: access.pool-not-allowed, pools.quote.pool-hidden, pools.capabilities.not-found, pools.balance.not-found
def test_disallowed_pool_is_denied_and_unknown_pool_is_absent(shopper):
    client, body = shopper.client, {"quoteId": UNKNOWN_QUOTE}
    for path in ("capabilities", "balance"):
        client.refused(403, "pool_not_allowed", "GET", f"/pools/USD-USDT/{path}")
        client.refused(404, "resource_not_found", "GET", f"/pools/EUR-XXX/{path}")
    client.refused(403, "pool_not_allowed", "POST", "/pools/USD-USDT/transact", body)
    client.refused(404, "resource_not_found", "POST", "/pools/EUR-XXX/transact", body)
    for pool in ("USD-USDT", "EUR-XXX"):
        client.refused(404, "resource_not_found", "POST", f"/pools/{pool}/quote", shopper.ask(pool=pool))


# rule: access.not-by-api
def test_request_fields_grant_nothing(world):
    partner = world.partner(allowed=["EUR-USDC"])
    extra = {"tier": "gold", "kyc": "approved", "allowedPools": ["EUR-USDT"], "partner_id": "x", "mode": "live"}
    before = partner.client.ok("GET", "/pools/EUR-USDC/balance")
    partner.client.ok("POST", "/pools/EUR-USDC/quote", {**partner.ask(pool="EUR-USDC", cryptoNetwork="ethereum"), **extra})
    assert partner.client.ok("GET", "/pools/EUR-USDC/balance") == before


# rule: error.route-not-found, auth.unknown-route-first
@pytest.mark.parametrize(
    "path", ["/nowhere", "/pools/", "/Pools", "/pools/quotes/x/y/z", "/pools/EUR-USDT", "//pools", "/pools/../pools/x"]
)
def test_unknown_route_is_404_without_a_key_check(world, path):
    for key in (None, new_key(), new_key("secret", "live")):
        answer = world.client().refused(404, "route_not_found", "GET", path, key=key)
        assert answer.json["type"] == "not_found"


# rule: error.method-not-allowed, auth.unknown-route-first
@pytest.mark.parametrize(("method", "path", "kind"), EVERY)
def test_wrong_method_names_the_allowed_ones(world, method, path, kind):
    for wrong in ("PUT", "PATCH", "DELETE", "POST" if method == "GET" else "GET", "TRACE", "PURGE"):
        answer = world.client().call(wrong, path, key=new_key())
        assert (answer.status, answer.code) == (405, "method_not_allowed"), answer
        assert method in answer.headers["allow"]


# rule: response.no-cors
def test_routes_send_no_cors_headers(shopper):
    origin = {"Origin": "https://shop.example", "Access-Control-Request-Method": "GET"}
    for method, path, _ in ROUTES:
        shopper.client.call(method, path, headers=origin)
        answer = shopper.client.call("OPTIONS", path, headers=origin)
        assert answer.status == 405, "a preflight is a wrong method"


# rule: response.request-id-own, response.request-id
@pytest.mark.parametrize("sent", ["mine", "req_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x" * 4000, "a b", '"}'])
def test_client_request_id_is_never_adopted(shopper, sent):
    for path in ("/pools", "/nowhere", "/pools/quotes/x"):
        answer = shopper.client.call("GET", path, headers={"X-Request-Id": sent})
        assert answer.headers["x-request-id"] != sent
        assert sent not in answer.text


QUOTE = "/pools/EUR-USDT/quote"

MALFORMED = {
    "empty": b"",
    "cut off": b'{"side":',
    "two values": b"{} {}",
    "trailing comma": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "comment": b'{"a":1/*x*/}',
    "NaN": b'{"a":NaN}',
    "leading zero": b'{"a":01}',
    "lone surrogate": b'{"a":"\\ud800"}',
    "invalid utf-8": b'{"a":"\xff\xfe"}',
    "overlong utf-8": b'{"a":"\xc0\xaf"}',
    "raw control": b'{"a":"\x01"}',
    "escaped nul": b'{"a":"\\u0000"}',
    "nul in a key": b'{"\\u0000":1}',
    "duplicate": b'{"side":"on_ramp","side":"on_ramp"}',
    "duplicate by escape": b'{"side":"on_ramp","\\u0073ide":"off_ramp"}',
    "nested duplicate": b'{"x":{"a":1,"a":1}}',
    "too deep": b'{"x":' + b"[" * 32 + b"]" * 32 + b"}",
    "far too deep": b"[" * 30000,
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "utf-16": '{"a":1}'.encode("utf-16"),
}


# rule: error.invalid-json, request.duplicate-keys, request.nul, request.utf8, request.depth
@pytest.mark.parametrize("name", sorted(MALFORMED))
def test_malformed_body_is_400(shopper, name):
    for path, headers in ((QUOTE, {}), ("/pools/EUR-USDT/transact", {"Idempotency-Key": "k"})):
        answer = shopper.client.call("POST", path, raw=MALFORMED[name], headers=headers)
        assert answer.status == 400, answer
        assert answer.code in ("invalid_json", "invalid_request"), answer


# rule: error.invalid-json
@pytest.mark.parametrize("raw", [b"null", b"[]", b"7", b'"text"', b"true"])
def test_body_other_than_an_object_is_400(shopper, raw):
    assert shopper.client.call("POST", QUOTE, raw=raw).status == 400


# rule: request.depth
def test_deepest_allowed_nesting_passes(shopper):
    deep = b'{"side":"on_ramp","fiatCurrency":"EUR","cryptoCurrency":"USDT","amount":"10.00","destAddress":"%s","x":%s}'
    raw = deep % (ADDRESS.encode(), b"[" * 31 + b"]" * 31)
    assert shopper.client.call("POST", QUOTE, raw=raw).status == 200


# rule: request.unknown-fields, request.null-is-absent
def test_unknown_fields_are_ignored_and_null_is_absent(shopper):
    body = shopper.ask(unheard="of", status="consumed", quoteId="x", cryptoNetwork=None, type=None, destNetwork=None)
    quote = shopper.client.ok("POST", QUOTE, body)
    assert quote["type"] == "firm"
    assert shopper.client.ok("GET", f"/pools/quotes/{quote['quoteId']}")["cryptoNetwork"] == "tron"
    for field in ("side", "amount", "fiatCurrency", "cryptoCurrency", "destAddress"):
        answer = shopper.client.post(QUOTE, {**shopper.ask(), field: None})
        assert answer.status == 400 and field in answer.json["message"], answer


# rule: error.names-the-field, error.names-no-software
@pytest.mark.parametrize("field", ["side", "amount", "fiatCurrency", "cryptoCurrency", "destAddress", "type", "cryptoNetwork"])
def test_field_of_wrong_type_is_named(shopper, field):
    for value in (7, True, [], {}, ["on_ramp"], 1.5):
        answer = shopper.client.post(QUOTE, {**shopper.ask(), field: value})
        assert answer.status == 400 and field in answer.json["message"], (value, answer)
        for word in ("serde", "axum", "hyper", "sqlx", "sqlite", "rust", "line 1 column", "expected struct"):
            assert word not in answer.json["message"].lower(), answer


# rule: error.media-type
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                                  "application/jsonp", "json", "", None])
def test_another_content_type_is_415(shopper, kind):
    answer = shopper.client.call("POST", QUOTE, raw=b"{}", headers={"Content-Type": kind})
    assert (answer.status, answer.code) == (415, "unsupported_media_type"), answer


# rule: error.media-type
@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"])
def test_json_is_json_in_any_case(shopper, kind):
    assert shopper.client.post(QUOTE, shopper.ask(), headers={"Content-Type": kind}).status == 200


# rule: error.body-too-large
def test_body_may_have_64_kib_and_no_byte_more(shopper):
    whole = b'{"side":"on_ramp","fiatCurrency":"EUR","cryptoCurrency":"USDT","amount":"10.00","destAddress":"%s","x":"%s"}'
    empty = whole % (ADDRESS.encode(), b"")
    fits = whole % (ADDRESS.encode(), b"x" * (65536 - len(empty)))
    assert len(fits) == 65536
    assert shopper.client.call("POST", QUOTE, raw=fits).status == 200
    answer = shopper.client.call("POST", QUOTE, raw=fits + b" ")
    assert (answer.status, answer.code) == (413, "body_too_large"), answer


# rule: request.unknown-query, request.repeated-query, warning.unknown-parameter
def test_query_parameters(shopper):
    ignored = shopper.client.get("/pools/trades?unheard=of&unheard=again&limit=5")
    assert (ignored.status, ignored.headers.get("penstock-warning")) == (200, "unknown_parameter; unheard"), ignored
    assert shopper.client.get("/pools?limit=0&cursor=x").status == 200
    for query in ("limit=5&limit=5", "cursor=a&cursor=b", "side=on_ramp&side=on_ramp", "status=settled&status=failed"):
        shopper.client.refused(400, "invalid_request", "GET", f"/pools/trades?{query}")
    shopper.client.refused(400, "invalid_request", "GET", "/pools/ledger?currency=EUR&currency=EUR")


ODD_IDS = ["x", "%00", "pq_test_", "pq_test_01arz3ndektsv4rrffq69g5fav", "pq_test_81ARZ3NDEKTSV4RRFFQ69G5FAV",
           "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAU", "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV0", "%F0%9F%92%B0", "%FF%FE", "..%2F..",
           "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FA%00", "a" * 3000, "%0d%0aSet-Cookie:x", "' OR 1=1 --".replace(" ", "%20"),
           "pq_live_01ARZ3NDEKTSV4RRFFQ69G5FAV", "txn_test_01ARZ3NDEKTSV4RRFFQ69G5FAV", "PQ_TEST_01ARZ3NDEKTSV4RRFFQ69G5FAV"]


# rule: id.malformed-path, id.other-mode, pools.trades.not-found, pools.status.not-found
@pytest.mark.parametrize("odd", ODD_IDS)
def test_malformed_id_in_a_path_is_404(shopper, odd):
    for method, path in (
        ("GET", f"/pools/quotes/{odd}"),
        ("POST", f"/pools/quotes/{odd}/reject"),
        ("GET", f"/pools/transactions/{odd}"),
        ("GET", f"/pools/trades/{odd}"),
        ("GET", f"/pools/{odd}/capabilities"),
        ("GET", f"/pools/{odd}/balance"),
    ):
        shopper.client.refused(404, "resource_not_found", method, path)


# rule: id.kinds-differ
def test_id_of_one_kind_finds_no_object_of_another(shopper):
    trade = shopper.trade()
    ulid = trade["transactId"].rsplit("_", 1)[1]
    for odd in (trade["transactId"], f"pq_test_{ulid}"):
        shopper.client.refused(404, "resource_not_found", "GET", f"/pools/quotes/{odd}")
        shopper.client.refused(404, "resource_not_found", "GET", f"/pools/transactions/{odd}")
    shopper.client.refused(404, "resource_not_found", "GET", f"/pools/trades/{trade['quoteId']}")


# rule: tenancy.foreign-is-absent, tenancy.nothing-crosses, list.foreign-cursor
def test_foreign_objects_read_as_unknown(world, shopper):
    other = world.partner(funds="100.00")
    mine = shopper.trade()
    open_quote = shopper.quote()["quoteId"]
    pairs = [
        ("GET", "/pools/quotes/{}", open_quote, UNKNOWN_QUOTE),
        ("POST", "/pools/quotes/{}/reject", open_quote, UNKNOWN_QUOTE),
        ("GET", "/pools/transactions/{}", mine["quoteId"], UNKNOWN_QUOTE),
        ("GET", "/pools/trades/{}", mine["transactId"], UNKNOWN_TRADE),
    ]
    for method, path, foreign, unknown in pairs:
        seen = [other.client.call(method, path.format(odd)) for odd in (foreign, unknown)]
        assert [answer.status for answer in seen] == [404, 404]
        bodies = [{**answer.json, "request_id": None} for answer in seen]
        assert bodies[0] == bodies[1]
        names = [set(answer.headers) for answer in seen]
        assert names[0] == names[1]
    for quote in (open_quote, UNKNOWN_QUOTE):
        answer = other.transact(quote)
        assert (answer.status, answer.code) == (404, "resource_not_found")
    page = other.client.ok("GET", f"/pools/trades?cursor={mine['transactId']}")
    assert page == {"data": [], "nextCursor": None, "hasMore": False}
    assert shopper.client.ok("GET", f"/pools/quotes/{open_quote}")["status"] == "active"


# rule: throttle.exempt, throttle.headers
def test_disabled_throttles_send_no_headers(shopper):
    answer = shopper.client.get("/pools")
    assert not [name for name in answer.headers if name.startswith(("x-ratelimit", "retry-after"))]


# rule: idempotency.ignored-elsewhere
def test_other_routes_ignore_the_idempotency_key(shopper):
    for value in ("k", "", "x" * 300, "a b"):
        headers = {"Idempotency-Key": value}
        quotes = [shopper.client.ok("POST", QUOTE, shopper.ask(), headers=headers)["quoteId"] for _ in range(2)]
        assert quotes[0] != quotes[1]
        rejected = shopper.client.ok("POST", f"/pools/quotes/{quotes[0]}/reject", headers=headers)
        assert rejected["status"] == "rejected"
        again = shopper.client.post(f"/pools/quotes/{quotes[0]}/reject", headers=headers)
        assert (again.status, again.code) == (409, "quote_rejected")
        assert shopper.client.get("/pools", headers=headers).status == 200


# rule: error.names-no-software, error.internal-generic
@EMBEDDED
def test_broken_database_is_a_generic_5xx(tmp_path, contract, partner_file):
    installation = Installation(tmp_path / "broken")
    key = new_key()
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))
    with installation.start() as service:
        client = Client(service, key, contract)
        client.ok("GET", "/pools/ledger")
        # In place: a file cut shorter would stop the service by a signal, because SQLite maps its index into memory.
        for path in [installation.database, installation.folder / "penstock.db-wal"]:
            with path.open("r+b") as file:
                file.write(secrets.token_bytes(path.stat().st_size))
        answers = [client.get("/pools/trades"), client.post(QUOTE, {"side": "on_ramp", "fiatCurrency": "EUR",
                   "cryptoCurrency": "USDT", "amount": "10.00", "destAddress": ADDRESS})]
        failed = [answer for answer in answers if answer.status >= 500]
        assert failed
        for answer in failed:
            for word in ("sqlite", "sqlx", "database", "disk", "malformed", ".db", "table", "file"):
                assert word not in answer.json["message"].lower(), answer
            service.logs(answer.json["request_id"])


# rule: pools.capabilities.sides
def test_terms_decide_the_sides(world):
    partner = world.partner(terms=terms_for(["EUR-USDT"], off_ramp=False) + terms_for(["EUR-USDC"]))
    assert partner.client.ok("GET", "/pools/EUR-USDT/capabilities")["sides"] == ["on_ramp"]
    assert sorted(partner.client.ok("GET", "/pools/EUR-USDC/capabilities")["sides"]) == ["off_ramp", "on_ramp"]
    assert partner.client.ok("GET", "/pools/GBP-USDT/capabilities")["sides"] == ["on_ramp"]
