"""Malicious or broken clients: raw bytes over sockets."""

import json
import secrets
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from contract import ENVELOPE
from programs import EMBEDDED, eventually
from provisioning import ADDRESS

HOST = b"Host: pools\r\n"


def connect(service, timeout=20.0):
    connection = socket.create_connection((service.host, service.port), timeout=timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def read_all(connection):
    """All bytes until the peer closes or resets the connection."""
    data = b""
    try:
        while chunk := connection.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


def say(service, data, timeout=20.0):
    with connect(service, timeout) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return read_all(connection)


def parse(data):
    """(status, headers, body) of the first response in `data`."""
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0].startswith(b"HTTP/1.1 "), data[:200]
    headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
    return int(lines[0].split(b" ")[1]), headers, rest[: int(headers.get(b"content-length", b"0"))]


def assert_refusal(data, status, code=None):
    found, headers, body = parse(data)
    assert found == status, data[:300]
    value = json.loads(body)
    assert set(value) == ENVELOPE and value["statusCode"] == status
    assert value["request_id"].encode() == headers[b"x-request-id"].upper().replace(b"REQ_", b"req_")
    if code:
        assert value["code"] == code
    return headers


def get(path="/v1/pools", headers=b"", version=b"HTTP/1.1", method=b"GET"):
    return method + b" " + (path if isinstance(path, bytes) else path.encode()) + b" " + version + b"\r\n" + HOST + headers + b"\r\n"


def healthy(service):
    status, _, _ = parse(say(service, get("/health", b"Connection: close\r\n")))
    assert status == 200


@pytest.fixture(autouse=True)
def service(world):
    yield world.service
    assert world.service.running()
    healthy(world.service)


GARBAGE = {
    "noise": secrets.token_bytes(2000),
    "tls hello": bytes.fromhex("16030100a5010000a10303") + secrets.token_bytes(200),
    "http2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /v1/pools\r\n\r\n",
    "unknown version": b"GET /v1/pools HTTP/9.9\r\nHost: x\r\n\r\n",
    "spaces in the target": b"GET /v1/ pools HTTP/1.1\r\nHost: x\r\n\r\n",
    "nul in the target": b"GET /v1/\x00pools HTTP/1.1\r\nHost: x\r\n\r\n",
    "nul in a header": b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\n\r\n",
    "bare cr in a header": b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nX-A: a\rb\r\n\r\n",
    "space before the colon": b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello",
    "folded header": b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n",
    "no colon": b"GET /v1/pools HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
    "negative length": b"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    "plus length": b"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
    "huge length": b"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "two lengths": b"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "unknown coding": b"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    "bad chunk": b"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


# rule: base.deadlines, error.six-fields
@pytest.mark.parametrize("name", sorted(GARBAGE))
def test_garbage_is_refused_or_dropped_and_never_a_5xx(service, name):
    data = say(service, GARBAGE[name])
    if data:
        status, _, body = parse(data)
        assert 400 <= status < 500, data[:200]
        assert set(json.loads(body)) == ENVELOPE, data[:300]


# rule: error.headers-too-large
@pytest.mark.parametrize("lines", [
    [b"X-Flood-%d: %s" % (n, b"x" * 100) for n in range(3000)],
    [b"X-Flood: " + b"x" * 1_000_000],
    [b"X-%d: y" % n for n in range(150)],
    [b"Authorization: Bearer " + b"x" * 60_000],
])
def test_flood_of_headers_is_431(service, lines):
    data = say(service, get(headers=b"\r\n".join(lines) + b"\r\n"))
    assert_refusal(data, 431, "headers_too_large")


# rule: error.headers-too-large
def test_endless_request_line_is_refused(service):
    data = say(service, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    status, _, body = parse(data)
    assert status in (414, 431) and set(json.loads(body)) == ENVELOPE


# rule: tenancy.nothing-crosses
@pytest.mark.parametrize("fields", [
    b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n",
    b"Content-Length: 4\r\nTransfer-Encoding:\tchunked\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    b"Content-Length: 4, 4\r\nTransfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\nContent-Length: 5\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
])
def test_request_with_two_lengths_is_refused_and_cut_off(world, service, shopper, fields):
    auth = f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\n".encode()
    smuggled = get("/health")
    data = say(service, get("/v1/pools/EUR-USDT/quote", auth + fields, method=b"POST") + b"0\r\n\r\n" + smuggled)
    status, _, _ = parse(data)
    assert status == 400, data[:300]
    assert data.count(b"HTTP/1.1 ") == 1, "the rest is never read as a request"


def chunked(body, sizes, trailers=b""):
    """`body` in chunks, with the sizes in all spellings that HTTP allows."""
    forms = (b"%x", b"%X", b"000%x", b"%x;a=b", b'%X ; a ; b="c;d"')
    data = b""
    for n, size in enumerate([*sizes, len(body)]):
        piece, body = body[:size], body[size:]
        if piece:
            data += forms[n % len(forms)] % len(piece) + b"\r\n" + piece + b"\r\n"
    return data + b"0\r\n" + trailers + b"\r\n"


# rule: error.body-too-large, base.hang-up-cancels-nothing
@pytest.mark.parametrize("piece", [1, 7, 100_000])
def test_chunked_requests_share_a_connection(service, shopper, piece):
    auth = f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\n".encode()
    head = get("/v1/pools/EUR-USDT/quote", auth + b"Transfer-Encoding: chunked\r\n", method=b"POST")
    order = json.dumps(shopper.ask()).encode()
    bodies = [
        chunked(order, []),
        chunked(order, [1, 2, 3, 15, 16, 17]),
        chunked(order, [10], b"X-Trailer: Content-Length: 7\r\nX-Other: y\r\n"),
    ]
    data = b"".join(head + body for body in bodies * 2) + get("/health", b"Connection: close\r\n")
    with connect(service) as connection:
        for at in range(0, len(data), piece):
            connection.sendall(data[at:at + piece])
        answers = read_all(connection)
    assert answers.count(b"HTTP/1.1 200 ") == 7, answers[:600]
    assert answers.count(b"quoteId") == 6


# rule: error.body-too-large, base.deadlines
def test_endless_chunked_body_is_cut_off(service, shopper):
    head = get("/v1/pools/EUR-USDT/quote", method=b"POST", headers=(
        f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n").encode())
    with connect(service) as connection:
        connection.sendall(head)
        sent = 0
        try:
            while sent < 50_000_000:
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass
        assert sent < 20_000_000, "the service stops reading"
        data = read_all(connection)
    if data:
        assert_refusal(data, 413, "body_too_large")


# rule: error.body-too-large
def test_chunked_body_over_the_limit_is_refused(service, shopper):
    head = get("/v1/pools/EUR-USDT/quote", method=b"POST", headers=(
        f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n").encode())
    order = json.dumps(shopper.ask()).encode()
    for spaces, status in ((65536 - len(order), 200), (65537 - len(order), 413)):
        body = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(order), order, spaces, b" " * spaces)
        data = say(service, head + body)
        assert parse(data)[0] == status, data[:300]


# rule: error.body-too-large
def test_declared_length_over_the_limit_is_refused_before_the_body(service, shopper):
    head = get("/v1/pools/EUR-USDT/quote", method=b"POST", headers=(
        f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\nContent-Length: 65537\r\n").encode())
    with connect(service) as connection:
        connection.sendall(head)
        assert_refusal(connection.recv(65536), 413, "body_too_large")


# rule: auth.before-body
def test_bad_key_is_refused_without_reading_the_body(service):
    head = get("/v1/pools/EUR-USDT/quote", method=b"POST", headers=(
        b"Authorization: Bearer sk_test_00000000000000000000000000000000\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n"))
    with connect(service) as connection:
        connection.sendall(head)
        assert_refusal(connection.recv(65536), 401, "unauthorized")


# rule: auth.unknown
def test_two_authorization_headers_are_refused(service, shopper):
    lines = f"Authorization: Bearer {shopper.secret}\r\n".encode()
    for pair in (lines * 2, lines + b"Authorization: Bearer x\r\n"):
        assert_refusal(say(service, get(headers=pair)), 401, "unauthorized")


# rule: idempotency.malformed
def test_two_idempotency_keys_are_refused(service, shopper):
    body = json.dumps({"quoteId": shopper.quote()["quoteId"]}).encode()
    head = get("/v1/pools/EUR-USDT/transact", method=b"POST", headers=(
        f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Idempotency-Key: one\r\nIdempotency-Key: two\r\n").encode())
    assert_refusal(say(service, head + body), 400, "idempotency_key_invalid")


# rule: response.request-id-own
@pytest.mark.parametrize("value", [b"a\xff\xfe", b"\x1b\x5b31mred", b"x" * 8000, b'"},{"level":"ERROR"', b"\xe2\x80\xae"])
def test_odd_bytes_in_headers_are_refused_or_ignored(world, service, shopper, value):
    lines = f"Authorization: Bearer {shopper.secret}\r\n".encode()
    for name in (b"X-Request-Id", b"Idempotency-Key", b"Origin", b"User-Agent", b"X-Forwarded-For", b"Cookie"):
        data = say(service, get(headers=lines + name + b": " + value + b"\r\n"))
        status, headers, _ = parse(data)
        assert status in (200, 400), data[:200]
        assert value not in data
    world.service.log_lines()


# rule: request.unknown-query
def test_ten_thousand_query_pairs_are_survived(service, shopper):
    query = "&".join(f"{n}=1" for n in range(4000))
    data = say(service, get(f"/v1/pools/trades?{query}", f"Authorization: Bearer {shopper.secret}\r\n".encode()))
    assert parse(data)[0] in (200, 400, 414, 431)


# rule: request.nul
def test_odd_text_is_stored_or_refused_but_never_breaks(shopper):
    for text in ("\u2028", "💰" * 50, "\u202e", "e\u0301", "\x7f", "' OR 1=1 --", "${jndi:ldap://x}", "{{7*7}}", "\ufeff"):
        for field in ("side", "amount", "fiatCurrency", "cryptoCurrency", "cryptoNetwork", "type", "destAddress", "destNetwork"):
            answer = shopper.client.post("/pools/EUR-USDT/quote", shopper.ask(**{field: text}))
            assert answer.status == 400, (field, text, answer)


# rule: throttle.exempt
def test_pipelined_requests_are_answered_in_order(service, shopper):
    auth = f"Authorization: Bearer {shopper.secret}\r\n".encode()
    data = say(service, get("/v1/pools", auth) + get("/nowhere") + get("/health", b"Connection: close\r\n"))
    statuses = [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [200, 404, 200]


# rule: response.request-id
def test_old_and_odd_clients(service, shopper):
    auth = f"Authorization: Bearer {shopper.secret}\r\n".encode()
    old = say(service, b"GET /v1/pools HTTP/1.0\r\n" + auth + b"\r\n")
    assert b" 200 " in old.split(b"\r\n")[0]
    head = say(service, get("/v1/pools", auth, method=b"HEAD"))
    status, _, _ = parse(head)
    assert status in (200, 405) and head.endswith(b"\r\n\r\n"), "a response to HEAD has no body"
    absolute = say(service, get("http://pools/v1/pools", auth))
    assert parse(absolute)[0] in (200, 404)
    assert parse(say(service, get("*", method=b"OPTIONS")))[0] in (400, 404, 405)
    assert parse(say(service, get("pools:443", method=b"CONNECT")))[0] in (400, 404, 405)


# rule: base.deadlines, error.request-timeout
def test_slow_clients_are_disconnected_and_delay_no_other(world, service, shopper):
    """A head may take 10 seconds, a body 15. All slow clients run concurrently; other clients are served meanwhile."""
    auth = f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\n".encode()
    body = get("/v1/pools/EUR-USDT/quote", auth + b"Content-Length: 1000\r\n", method=b"POST")
    chunks = get("/v1/pools/EUR-USDT/quote", auth + b"Transfer-Encoding: chunked\r\n", method=b"POST")
    kinds = {
        "head": (b"GET /v1/pools HTTP/1.1\r\nX-A: ", b"a", 10, 408),
        "line": (b"GE", b"T", 10, 408),
        "body": (body, b" ", 15, 408),
        "chunks": (chunks, b"1\r\n \r\n", 15, 408),
    }

    def drip(kind):
        first, piece, phase_limit, status = kinds[kind]
        with connect(service, timeout=phase_limit + 60) as connection:
            began = time.monotonic()
            connection.sendall(first)
            data = b""
            while time.monotonic() - began < phase_limit + 45:
                try:
                    connection.sendall(piece)
                except OSError:
                    pass
                connection.settimeout(0.5)
                try:
                    chunk = connection.recv(65536)
                except TimeoutError:
                    continue
                except ConnectionResetError:
                    break
                if not chunk:
                    break
                data += chunk
            took = time.monotonic() - began
        assert phase_limit - 1 < took < phase_limit + 40, (kind, took)
        assert_refusal(data, status, "request_timeout")

    def longest_wait():
        """The longest that an honest client waits, while slow ones are served."""
        crowd = []
        for _ in range(200):
            silent = connect(service)
            silent.sendall(b"GET /v1/pools HTTP/1.1\r\n")
            crowd.append(silent)
        with ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(drip, kind) for kind in kinds for _ in range(2)]
            worst = 0.0
            while not all(future.done() for future in waiting):
                began = time.monotonic()
                assert shopper.client.get("/pools").status == 200
                worst = max(worst, time.monotonic() - began)
                time.sleep(0.05)
            for future in waiting:
                future.result()
        for silent in crowd:
            assert b"408" in read_all(silent)[:20]
            silent.close()
        return worst

    # A client that had to wait for a slow one would wait at least 10 s each time. A machine that stands still delays one attempt.
    waits = []
    while not waits or (waits[-1] >= 9 and len(waits) < 3):
        waits.append(longest_wait())
    assert waits[-1] < 9, f"an honest client waited {waits} s"


def transact_bytes(partner, quote, key):
    body = json.dumps({"quoteId": quote}).encode()
    return get("/v1/pools/EUR-USDT/transact", method=b"POST", headers=(
        f"Authorization: Bearer {partner.secret}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"Idempotency-Key: {key}\r\n").encode()) + body


def consumed(partner, quote):
    return partner.client.ok("GET", f"/pools/quotes/{quote}")["status"] == "consumed"


# rule: base.hang-up-cancels-nothing, idempotency.unknown-commit, pools.transact.once
def test_disconnected_client_finds_its_outcome_by_retrying(world, service):
    partner = world.partner(funds="1000.00")
    quotes = [partner.quote("1.00")["quoteId"] for _ in range(60)]
    for n, quote in enumerate(quotes):
        key = f"hang-up-{n}"
        data = transact_bytes(partner, quote, key)
        cut = len(data) if n % 3 else secrets.randbelow(len(data))
        connection = connect(service)
        connection.sendall(data[:cut])
        # Some disconnect at once, some with a reset, some during the response.
        if n % 2:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        connection.close()
    for n, quote in enumerate(quotes):
        # A reset may arrive before the service has read the request.
        if n % 3 and n % 2 == 0:
            eventually(lambda quote=quote: consumed(partner, quote), "a completely received request is executed")
    for n, quote in enumerate(quotes):
        answer = partner.transact(quote, idempotency=f"hang-up-{n}")
        assert answer.status == 200, answer
    assert partner.balance() == "940.00"
    assert len(partner.ledger()) == 61


def answers(service):
    """Whether the service answers a request on a new connection."""
    try:
        return parse(say(service, get("/v1/pools")))[0] == 401
    except (OSError, AssertionError, IndexError):
        return False


# rule: base.hang-up-cancels-nothing
def test_many_disconnects_leave_a_healthy_service(world, service):
    partner = world.partner(funds="10000.00")

    def storm(seed):
        for n in range(60):
            data = get("/v1/pools/trades", f"Authorization: Bearer {partner.secret}\r\n".encode())
            if n % 2:
                body = json.dumps(partner.ask("1.00", destAddress=ADDRESS)).encode()
                data = get("/v1/pools/EUR-USDT/quote", method=b"POST", headers=(
                    f"Authorization: Bearer {partner.secret}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n").encode()) + body
            connection = connect(service)
            connection.sendall(data[: 1 + (seed * 977 + n * 131) % len(data)] if n % 5 == 0 else data)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            connection.close()

    threads = [threading.Thread(target=storm, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The service notices the disconnects one by one; until then the address may be over its bound of connections.
    eventually(lambda: answers(service), "the service admits a connection")
    for _ in range(20):
        ack = partner.trade("1.00")
        assert partner.poll(ack["quoteId"])["status"] == "settled"
    assert partner.balance() == "9980.00"


# rule: error.body-too-large, request.depth
def test_large_input_does_not_grow_the_service(world, service, shopper):
    before = service.memory()
    auth = f"Authorization: Bearer {shopper.secret}\r\nContent-Type: application/json\r\n".encode()

    def attack(n):
        wide = b"{" + b",".join(b'"%d":1' % key for key in range(6000)) + b"}"
        number = b'{"amount":' + b"9" * 60000 + b"}"
        text = b'{"amount":"' + b"9" * 60000 + b'"}'
        raw = [wide, number, text, b"[" * 60000, b'{"a":' * 9000][n % 5][:65536]
        head = get("/v1/pools/EUR-USDT/quote", auth + f"Content-Length: {len(raw)}\r\n".encode(), method=b"POST")
        status, _, _ = parse(say(service, head + raw))
        assert status == 400

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(attack, range(200)))
    assert service.memory() - before < 50_000_000


# rule: auth.key-hash-only
@EMBEDDED
def test_files_of_a_running_service_hold_no_key(world):
    """Neither the database nor its write-ahead log."""
    partner = world.partner(funds="100.00")
    ack = partner.trade("10.00")
    assert partner.poll(ack["quoteId"])["status"] == "settled"
    files = list(world.installation.folder.glob("penstock.db*"))
    assert any(path.name.endswith("-wal") for path in files), files
    stored = b"".join(path.read_bytes() for path in files)
    assert partner.id.encode() in stored, "the right files are read"
    for key in (partner.secret, partner.publishable):
        assert key.encode() not in stored and key[8:].encode() not in stored
