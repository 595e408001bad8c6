"""`pools-service` for its operator: subcommands, configuration, logs, start and stop."""

import base64
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import threading
import time

import pytest
from client import Client
from contract import published
from programs import EMBEDDED, await_ready, environment, eventually, program, run
from provisioning import ADDRESS, new_key, partner_toml, pool_toml, profile, terms_for

MASTER_KEY = base64.b64encode(bytes(range(32))).decode()


def faults(done):
    return [line for line in done.err.splitlines() if line.strip()]


# rule: program.listening-line, program.serve-default, health.alive, health.ready
def test_serve_prints_one_line_with_its_real_port(installation):
    with installation.start() as service:
        assert service.port != 0
        assert Client(service).root("GET", "/health").status == 200
        await_ready(service)
        assert service.stop() == 0
    rest = []
    while (line := service.lines.get(timeout=60)) is not None:
        rest.append(line)
    assert rest == [], "stdout holds only the listening line"


# rule: program.serve-default
def test_serve_may_be_named(installation):
    with installation.start("serve") as service:
        assert Client(service).root("GET", "/health").status == 200


# rule: program.migrate
def test_migrate_brings_an_empty_database_up_to_date(installation):
    done = installation.pools_service("migrate")
    assert done.code == 0, done.err
    assert "the database was empty; its schema is now version" in done.out
    assert installation.database.exists()
    again = installation.pools_service("migrate")
    assert again.code == 0, again.err
    assert "the schema is already version" in again.out
    installation.verify()


# rule: program.openapi, engine.http.contract
@pytest.mark.parametrize(("words", "name"), [((), "pools-v1"), (("engine-v1",), "engine-v1")])
def test_openapi_prints_the_committed_document(tmp_path, words, name):
    done = run([program("POOLS_SERVICE_BIN"), "openapi", *words], {}, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out == published(name).read_text()
    assert list(tmp_path.iterdir()) == [], "printing the contract opens no database"


# rule: openapi.published
def test_openapi_is_served_at_the_root(world):
    answer = world.client().root("GET", "/openapi/pools-v1.yaml")
    assert answer.status == 200
    assert answer.headers["content-type"].split(";")[0] == "application/yaml"
    assert answer.raw == published().read_bytes()


# rule: error.doc-anchor
def test_docs_page_explains_every_code(shopper, world):
    page = world.client().root("GET", "/docs")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    seen = {
        shopper.client.get("/pools/EUR-XXX/balance").code,
        shopper.client.get("/pools", key=new_key("secret")).code,
        shopper.client.get("/pools/trades?limit=0").code,
        shopper.client.get("/nowhere").code,
        shopper.client.call("DELETE", "/pools").code,
        shopper.client.post("/pools/EUR-USDT/quote", shopper.ask("0.001")).code,
        shopper.client.post("/pools/EUR-USDT/quote", shopper.ask(destAddress="0x00")).code,
        shopper.client.post("/pools/EUR-USDT/quote", raw=b"{").code,
    }
    for code in seen:
        assert re.search(rf"""id=["']?{code}["'>\s]""", page.text), code


# rule: program.config-masked, config.unknown-variable
def test_config_shows_what_is_in_force_and_no_secret(installation):
    done = installation.pools_service(
        "config",
        PENSTOCK_QUOTE_TTL="7s",
        PENSTOCK_MASTER_KEY=MASTER_KEY,
        PENSTOCK_REDIS_URL="redis://someone:planted-secret@127.0.0.1:1/0",
        PENSTOCK_QUOTE_TLL="8s",
    )
    assert done.code == 0, done.err
    assert "7s" in done.out
    assert "test" in done.out
    assert "PENSTOCK_QUOTE_TLL" in done.err, "an unknown variable is named"
    for secret in (MASTER_KEY, "planted-secret"):
        assert secret not in done.out + done.err


BAD_SETTINGS = {
    "PENSTOCK_MODE": "production",
    "PENSTOCK_QUOTE_TTL": "soon",
    "PENSTOCK_POOLS_LISTEN": "nowhere",
    "PENSTOCK_THROTTLE": "maybe",
    "PENSTOCK_THROTTLE_POOLS": "many",
    "PENSTOCK_DATABASE_URL": "mysql://somewhere/else",
    "PENSTOCK_RATES": "guessed",
    "PENSTOCK_ENGINE": "imaginary",
    "PENSTOCK_RAIL": "imaginary",
    "PENSTOCK_MASTER_KEY": "c2hvcnQ=",
    "PENSTOCK_TRUSTED_PROXIES": "10.0.0.0/99",
    "PENSTOCK_LOG_FORMAT": "crayon",
    "PENSTOCK_IDEMPOTENCY_TTL": "-1s",
    "PENSTOCK_QUOTE_RETENTION": "0s",
    "PENSTOCK_DATABASE_POOL": "none",
}


# rule: program.bad-configuration, cli.exit-codes
@pytest.mark.parametrize("variable", sorted(BAD_SETTINGS))
def test_bad_setting_is_one_line_and_exit_2(installation, variable):
    done = installation.pools_service(**{variable: BAD_SETTINGS[variable]})
    assert done.code == 2, done
    assert len(faults(done)) == 1, done.err
    assert variable in done.err
    assert done.out == "", "nothing is started"
    assert not installation.database.exists()


# rule: program.bad-configuration
def test_each_fault_has_its_own_line(installation):
    bad = {name: BAD_SETTINGS[name] for name in ("PENSTOCK_MODE", "PENSTOCK_QUOTE_TTL", "PENSTOCK_THROTTLE_POOLS")}
    done = installation.pools_service(**bad)
    assert done.code == 2
    lines = faults(done)
    assert len(lines) == 3, done.err
    for name in bad:
        assert sum(name in line for line in lines) == 1


# rule: config.unknown-file-key
def test_unknown_key_in_the_file_is_refused(installation):
    path = installation.write('quote_tll = "7s"\n')
    done = installation.pools_service("config", "--config", path)
    assert done.code == 2, done
    assert "quote_tll" in done.err


# rule: config.unknown-file-key
def test_missing_or_broken_file_is_refused(installation):
    assert installation.pools_service("config", "--config", installation.folder / "absent.toml").code == 2
    assert installation.pools_service("config", "--config", installation.write("quote_ttl = = 1")).code == 2


# rule: config.unknown-variable
def test_unknown_variable_only_warns(installation):
    with installation.start(PENSTOCK_QUOTE_TLL="7s") as service:
        assert Client(service).root("GET", "/health").status == 200
        assert any("PENSTOCK_QUOTE_TLL" in json.dumps(line) for line in service.log_lines())


# rule: config.environment-wins
def test_environment_overrides_the_file(installation):
    path = installation.write('quote_ttl = "7s"\nidempotency_ttl = "23h"\n')
    shown = installation.pools_service("config", "--config", path, PENSTOCK_QUOTE_TTL="9s")
    assert shown.code == 0, shown.err
    assert "9s" in shown.out and "7s" not in shown.out
    assert "23h" in shown.out, "settings missing in the environment come from the file"


# rule: pools.quote.ttl, config.environment-wins
def test_setting_of_the_file_is_in_force(installation, partner_file):
    key = new_key()
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))
    path = installation.write('quote_ttl = "5m"\n')
    with installation.start("--config", path) as service:
        body = {"side": "on_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "amount": "10.00"}
        quote = Client(service, key).ok("POST", "/pools/EUR-USDT/quote", {**body, "destAddress": ADDRESS})
        record = Client(service, key).ok("GET", f"/pools/quotes/{quote['quoteId']}")
    minutes = [int(record[field][14:16]) for field in ("createdAt", "expiresAt")]
    assert (minutes[1] - minutes[0]) % 60 == 5


# rule: config.live-master-key, program.bad-configuration
@EMBEDDED
def test_live_mode_needs_a_master_key(installation):
    done = installation.pools_service(PENSTOCK_MODE="live")
    assert done.code == 2, done
    assert "PENSTOCK_MASTER_KEY" in done.err


# rule: config.live-has-no-sandbox, config.live-has-no-sandbox-rail
def test_live_mode_never_takes_the_sandbox(installation):
    for name in ("PENSTOCK_ENGINE", "PENSTOCK_RAIL", "PENSTOCK_RATES"):
        settings = {"PENSTOCK_MODE": "live", "PENSTOCK_MASTER_KEY": MASTER_KEY, name: "sandbox"}
        done = installation.pools_service(**settings)
        assert done.code == 2, done
        assert name in done.err


# rule: config.live-has-no-sandbox, mode.one-per-process, auth.other-mode
def test_live_mode_without_sources_prices_nothing(installation):
    live = {"PENSTOCK_MODE": "live", "PENSTOCK_MASTER_KEY": MASTER_KEY}
    text = pool_toml("EUR-USDT") + partner_toml("acme", pools=profile(allowed=["EUR-USDT"]), keys=[{"kind": "secret"}])
    assert installation.penstock("migrate", **live).code == 0
    made = installation.operator("apply", "-f", installation.write(text), **live)
    [key] = [row["key"] for row in made["created_keys"]]
    assert re.fullmatch(r"sk_live_[0-9A-Za-z]{32}", key)
    with installation.start(**live) as service:
        client = Client(service, key)
        assert [pool["id"] for pool in client.ok("GET", "/pools")["pools"]] == ["EUR-USDT"]
        body = {"side": "on_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "amount": "10.00"}
        answer = client.ok("POST", "/pools/EUR-USDT/quote", {**body, "destAddress": ADDRESS})
        assert answer == {"available": False, "unavailableReason": "rate_unavailable"}
        client.refused(403, "key_mode_mismatch", "GET", "/pools", key=new_key("secret", "test"))
        client.refused(403, "key_mode_mismatch", "GET", "/pools", key=new_key("publishable", "test"))


# rule: base.master-key-file
@EMBEDDED
def test_master_key_is_created_once_and_private(installation):
    first, second = installation.start(), installation.start()
    with first, second:
        path = installation.folder / "master.key"
        assert path.stat().st_mode & 0o777 == 0o600
        made = path.read_bytes()
    with installation.start():
        assert path.read_bytes() == made


# rule: base.master-key-mismatch
def test_wrong_master_key_is_exit_2(installation):
    assert installation.pools_service("migrate").code == 0
    with installation.start():
        pass
    wrong = base64.b64encode(bytes(32)).decode()
    done = installation.pools_service(PENSTOCK_MASTER_KEY=wrong)
    assert done.code == 2, done
    assert wrong not in done.err
    assert installation.penstock("verify", PENSTOCK_MASTER_KEY=wrong).code == 2


# rule: program.logs, response.client-request-id, auth.keys-never-logged, auth.secret-in-query
@EMBEDDED
def test_logs_are_json_and_hold_no_secret(installation, partner_file):
    secret, hook = new_key(), "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    unknown, in_query, encoded = new_key(), new_key(), new_key()
    webhook = {"url": "http://127.0.0.1:9/pools", "secret": hook}
    installation.apply(partner_file(keys=[{"kind": "secret", "key": secret}], webhook=webhook))
    with installation.start(PENSTOCK_MASTER_KEY="", RUST_LOG="debug") as service:
        client = Client(service, secret)
        client.ok("GET", "/pools", headers={"X-Request-Id": "order-17.a_b"})
        client.ok("GET", "/pools", headers={"X-Request-Id": 'planted"} {"level'})
        client.refused(401, "unauthorized", "GET", "/pools", key=unknown)
        client.refused(401, "secret_key_in_query", "GET", f"/pools?api_key={in_query}")
        client.refused(401, "secret_key_in_query", "GET", f"/pools?x=1&x={encoded.replace('_', '%5F')}")
        client.call("GET", "/pools", key=f"{secret} ")
        client.post("/pools/EUR-USDT/quote", raw=b'{"planted-body-secret')
        client.get(f"/pools/quotes/{secret}")
        assert service.stop() == 0
        lines = service.log_lines()
    text = service.log()
    key_file = (installation.folder / "master.key").read_text().strip()
    for planted in (secret, unknown, in_query, encoded, hook, hook.removeprefix("whsec_"), key_file):
        for form in {planted, planted.replace("_", "%5F"), base64.b64encode(planted.encode()).decode()}:
            assert form not in text, form[:12]
    assert "planted-body-secret" not in text
    requests = [line for line in lines if "order-17.a_b" in json.dumps(line)]
    assert requests, "a harmless client request id is logged"
    assert not any("planted" in json.dumps(line) for line in lines)


# rule: response.client-request-id
def test_client_request_id_is_logged_under_its_own_field(installation, partner_file):
    secret = new_key()
    installation.apply(partner_file(keys=[{"kind": "secret", "key": secret}]))
    with installation.start() as service:
        answer = Client(service, secret).get("/pools", headers={"X-Request-Id": "order-17"})
        assert answer.headers["x-request-id"] != "order-17"
        service.stop()
        assert [line for line in service.log_lines() if line.get("client_request_id") == "order-17"]


# rule: program.logs
def test_logs_are_text_if_configured(installation):
    with installation.start(PENSTOCK_LOG_FORMAT="text", RUST_LOG="info") as service:
        Client(service).root("GET", "/health")
        service.stop()
    text = service.log()
    assert text.strip() and not text.lstrip().startswith("{")


def hanging_request(service, key):
    """A quote request that a handler is reading: its body is incomplete."""
    body = json.dumps({"side": "on_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "amount": "10.00",
                       "destAddress": ADDRESS}).encode()
    head = (f"POST /v1/pools/EUR-USDT/quote HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            "Expect: 100-continue\r\n\r\n").encode()
    connection = socket.create_connection((service.host, service.port), timeout=60)
    connection.sendall(head)
    # This response is sent when the handler asks for the body.
    assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(body[:10])
    return connection, body[10:]


def refuses(service):
    """Whether the service no longer listens."""
    try:
        socket.create_connection((service.host, service.port), timeout=20).close()
    except ConnectionRefusedError:
        return True
    return False


# rule: program.shutdown
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_finishes_requests_in_flight(installation, partner_file, how):
    key = new_key()
    installation.apply(partner_file(keys=[{"kind": "secret", "key": key}]))

    def interrupted():
        """Whether the request in flight is finished. If the machine stands still, the request may come too late."""
        service = installation.start()
        Client(service, key).ok("GET", "/pools")
        began = time.monotonic()
        connection, rest = hanging_request(service, key)
        codes = []
        waiter = threading.Thread(target=lambda: codes.append(service.stop(how)))
        waiter.start()
        eventually(lambda: refuses(service), "the service stops listening")
        # The body must be complete 15 s after the head.
        if time.monotonic() - began > 10:
            connection.close()
            waiter.join(60)
            return False
        assert service.running(), "a request in flight delays shutdown"
        connection.sendall(rest)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
        waiter.join(60)
        assert codes == [0]
        return True

    assert any(interrupted() for _ in range(3)), "the service listens on for too long"
    installation.verify()


# rule: program.shutdown
def test_idle_connection_does_not_delay_shutdown(installation):
    service = installation.start()
    client = Client(service)
    client.root("GET", "/health")
    assert service.stop() == 0
    # A service that waits for the connection gives up after 20 s, and says so.
    assert "requests still in flight" not in service.log()


# rule: program.bad-configuration
def test_address_in_use_is_a_clear_failure(installation):
    with installation.start() as service:
        done = installation.pools_service(PENSTOCK_POOLS_LISTEN=f"127.0.0.1:{service.port}")
        assert done.code == 1
        assert "PENSTOCK_POOLS_LISTEN" in done.err
        assert "panicked" not in done.err


# rule: auth.key-hash-only, base.sealed
def test_database_file_holds_no_secret_in_clear(installation, partner_file):
    secret, raw = new_key(), secrets.token_bytes(32)
    hook = "whsec_" + base64.b64encode(raw).decode()
    webhook = {"url": "http://127.0.0.1:9/pools", "secret": hook}
    installation.apply(partner_file(keys=[{"kind": "secret", "key": secret}], webhook=webhook))
    made = installation.operator("key", "create", "--partner", "acme", "--kind", "secret")
    with installation.start():
        pass
    stored = b"".join(path.read_bytes() for path in installation.folder.glob("penstock.db*"))
    for planted in (secret, made["key"], hook, hook.removeprefix("whsec_")):
        assert planted.encode() not in stored
        assert planted[8:].encode() not in stored
    assert raw not in stored


# rule: cli.exit-codes
def test_unknown_words_are_bad_input():
    for variable in ("POOLS_SERVICE_BIN", "PENSTOCK_BIN"):
        done = subprocess.run(
            [program(variable), "levitate"], env=environment({}), capture_output=True, timeout=30, check=False
        )
        assert done.returncode == 2
        assert os.fsdecode(done.stderr).strip()
