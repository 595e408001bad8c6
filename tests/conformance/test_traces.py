"""Traces received by a collector and decoded with OpenTelemetry's own messages; secrets in logs of failures."""

import http.server
import secrets
import sqlite3
import ssl
import subprocess
import threading

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from conftest import make_world
from programs import EMBEDDED, Server, eventually
from provisioning import ADDRESS
from test_webhooks import SECRET, Receiver, listen

IBAN = "DE89370400440532013000"


class Collector:
    """Accepts OTLP over HTTP and refuses other requests."""

    def __init__(self, tls=None):
        self.requests = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
                collector.requests.append((str(self.headers), body, ExportTraceServiceRequest.FromString(body)))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *words):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        scheme = "http"
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"{scheme}://127.0.0.1:{self.server.server_port}"

    def resources(self):
        return [resource for _, _, request in self.requests for resource in request.resource_spans]

    def spans(self):
        return [span for resource in self.resources() for scope in resource.scope_spans for span in scope.spans]

    def expect(self, *names):
        """Waits for spans of these names and for the parents of all spans. The last batch of a service can be lost."""

        def complete():
            spans = self.spans()
            known, parents = {span.span_id for span in spans}, {span.parent_span_id for span in spans} - {b""}
            return set(names) <= {span.name for span in spans} and parents <= known and spans

        return eventually(complete, f"the collector has {names} and every parent")

    def said(self):
        """All received data, as bytes and as text."""
        return "\n".join(f"{head}{body!r}{request}" for head, body, request in self.requests)


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.server.shutdown()


def make_traced(folder, contract, collector, **settings):
    """A service with logs of every level and every trace."""
    settings |= {"PENSTOCK_OTLP_ENDPOINT": collector.address, "OTEL_BSP_SCHEDULE_DELAY": "500", "RUST_LOG": "trace"}
    return make_world(folder, contract, **settings)


@pytest.fixture
def traced(tmp_path, contract, collector):
    world = make_traced(tmp_path / "traced", contract, collector)
    yield world
    assert world.service.stop() == 0


def secrets_of(world, partner, *more):
    master = (world.installation.folder / "master.key").read_text().strip()
    found = [partner.secret, partner.secret[8:], partner.publishable, SECRET, SECRET[6:], master, ADDRESS, IBAN, *more]
    assert all(len(secret) >= 16 for secret in found)
    return found


def assert_unsaid(found, **places):
    for name, said in places.items():
        told = [secret for secret in found if secret.lower() in said.lower()]
        assert not told, f"{name} contains {told}"


# rule: auth.keys-never-logged
@EMBEDDED
def test_collector_reads_every_trace_and_no_secret(traced, collector):
    receiver = Receiver()
    partner = traced.partner(funds="1000.00", iban=IBAN)
    listen(partner, receiver)
    quote = partner.quote("123.45")
    once = secrets.token_hex(16)
    assert partner.transact(quote["quoteId"], idempotency=once).status == 200
    assert partner.poll(quote["quoteId"])["status"] == "settled"
    partner.client.get("/pools/EUR-USDT/funding")
    receiver.expect(1)
    served, sent = "POST /v1/pools/{id}/transact", "webhook.attempt"
    spans = collector.expect(served, sent, "engine hold", "engine report", "transaction", "lane.batch")
    assert traced.service.stop() == 0
    receiver.server.shutdown()

    for part in collector.resources():
        names = {attribute.key: attribute.value.string_value for attribute in part.resource.attributes}
        assert names["service.name"] == "pools-service" and names["service.version"]
    by_id = {span.span_id: span for span in spans}
    assert len(by_id) == len(spans)
    for span in spans:
        assert len(span.trace_id) == 16 and len(span.span_id) == 8
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        if span.parent_span_id:
            assert by_id[span.parent_span_id].trace_id == span.trace_id
    kinds = {span.name: span.kind for span in spans}
    assert kinds[served] == Span.SPAN_KIND_SERVER
    assert kinds[sent] == Span.SPAN_KIND_CLIENT
    log = traced.service.log()
    assert '"level":"TRACE"' in log
    assert_unsaid(secrets_of(traced, partner, once), traces=collector.said(), log=log)
    assert "123.45" not in log and "123.45" not in collector.said(), "amounts are never logged or traced"


# rule: auth.keys-never-logged
def test_database_failure_logs_no_secret(traced, collector):
    partner = traced.partner(funds="1000.00", iban=IBAN)
    quote = partner.quote("100.00")
    once = secrets.token_hex(16)
    with sqlite3.connect(traced.installation.database, timeout=30) as database:
        database.execute("ALTER TABLE trades RENAME TO trades_elsewhere")
    refused = partner.transact(quote["quoteId"], idempotency=once)
    assert refused.status in (500, 503)
    assert partner.client.get(f"/pools/transactions/{quote['quoteId']}").status in (500, 503)
    with sqlite3.connect(traced.installation.database, timeout=30) as database:
        database.execute("ALTER TABLE trades_elsewhere RENAME TO trades")
    assert partner.transact(quote["quoteId"], idempotency=once).status == 200

    def traces_the_failure():
        requests = [span for span in collector.spans() if span.name == "POST /v1/pools/{id}/transact"]
        return Status.STATUS_CODE_ERROR in {span.status.code for span in requests}

    eventually(traces_the_failure, "the failed request is traced as an error")
    assert traced.service.stop() == 0
    log = traced.service.log()
    failed = [line for line in traced.service.log_lines() if line.get("message") == "Failed to answer a request"]
    assert len(failed) == 2 and all("no such table" in line["error.chain"] for line in failed)
    found = secrets_of(traced, partner, once)
    assert_unsaid(found, traces=collector.said(), log=log, answer=refused.text)


# rule: auth.keys-never-logged
@EMBEDDED
def test_panic_and_full_disk_log_no_secret(tmp_path, contract, collector):
    broken = "quote.insert.before=1*panic;transact.commit.before=1*return(full)"
    world = make_traced(tmp_path / "broken", contract, collector, FAILPOINTS=broken)
    partner = world.partner(funds="1000.00", iban=IBAN)
    panicked = partner.client.post("/pools/EUR-USDT/quote", partner.ask("100.00"))
    assert (panicked.status, panicked.code) == (500, "internal_error")
    once = secrets.token_hex(16)
    quote = partner.quote("100.00")
    full = partner.transact(quote["quoteId"], idempotency=once)
    assert (full.status, full.code) == (503, "service_unavailable")
    assert partner.transact(quote["quoteId"], idempotency=once).status == 200
    assert world.service.stop() == 0
    log = world.service.log()
    assert "A task panicked" in log and "a full disk" in log
    found = secrets_of(world, partner, once)
    assert_unsaid(found, traces=collector.said(), log=log, answers=panicked.text + full.text)


def self_signed(folder):
    """A server's context and the file with its certificate."""
    key, certificate = folder / "collector.key", folder / "collector.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def test_collector_receives_traces_and_headers_over_tls(tmp_path, contract):
    context, certificate = self_signed(tmp_path)
    collector = Collector(context)
    settings = {"SSL_CERT_FILE": str(certificate), "PENSTOCK_OTLP_HEADERS": "api-key=topsecretkey%2C1,x-scope=blue"}
    world = make_traced(tmp_path / "traced", contract, collector, **settings)
    world.partner().client.get("/pools")
    collector.expect("GET /v1/pools")
    assert world.service.stop() == 0
    collector.server.shutdown()
    assert all("api-key: topsecretkey,1" in head and "x-scope: blue" in head for head, _, _ in collector.requests)
    assert "topsecretkey" not in world.service.log()


def test_collector_with_unknown_certificate_gets_nothing(tmp_path, contract):
    context, _ = self_signed(tmp_path)
    collector = Collector(context)
    world = make_traced(tmp_path / "traced", contract, collector)
    world.partner().client.get("/pools")
    eventually(lambda: "Failed to send traces" in world.service.log(), "the failure is logged")
    assert world.service.stop() == 0
    collector.server.shutdown()
    assert collector.requests == []
    assert world.service.log().count("Failed to send traces") == 1
