"""The published contract: valid for two independent readers, complete, and true under fuzzing."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from contract import ENVELOPE, published
from openapi_spec_validator import validate

OPERATIONS = {
    "listPools": ("GET", "/pools"),
    "getCapabilities": ("GET", "/pools/{id}/capabilities"),
    "createQuote": ("POST", "/pools/{id}/quote"),
    "transact": ("POST", "/pools/{id}/transact"),
    "getQuote": ("GET", "/pools/quotes/{quoteId}"),
    "rejectQuote": ("POST", "/pools/quotes/{quoteId}/reject"),
    "getTransactionByQuote": ("GET", "/pools/transactions/{quoteId}"),
    "listTrades": ("GET", "/pools/trades"),
    "getTrade": ("GET", "/pools/trades/{transactId}"),
    "getBalance": ("GET", "/pools/{id}/balance"),
    "getFundingInstructions": ("GET", "/pools/funding"),
    "listLedgerEntries": ("GET", "/pools/ledger"),
}
EVENTS = {"pool.transaction.settled", "pool.transaction.failed", "pool.transaction.released"}

# About how many cases schemathesis generates in all; a campaign sets more.
CASES = int(os.environ.get("CONFORMANCE_CASES", "1000"))


# rule: openapi.operations
def test_it_is_valid_for_the_first_reader(contract):
    assert re.fullmatch(r"3\.1\.\d+", contract.document["openapi"])
    validate(contract.document)


# rule: openapi.operations
def test_it_is_valid_for_the_second_reader(tmp_path):
    linter = Path(os.environ["NODE_MODULES_DIR"]) / "@redocly/cli/bin/cli.js"
    settings = {
        "extends": ["recommended"],
        # Each installation has an address of its own, so the document need not name one.
        "rules": {"no-empty-servers": "off"},
    }
    config = tmp_path / "redocly.yaml"
    config.write_text(json.dumps(settings))
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "CI": "true"}
    done = subprocess.run(
        ["node", str(linter), "lint", str(published()), "--config", str(config), "--format=json"],
        env={**os.environ, **quiet}, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    report = json.loads(done.stdout[done.stdout.index("{"):])
    assert report["totals"]["errors"] == 0, report["problems"]


# rule: openapi.operations
def test_it_has_the_twelve_operations_and_three_events(contract):
    prefix = (contract.document.get("servers") or [{"url": ""}])[0]["url"].rstrip("/")
    found = {}
    for name, (method, path, operation) in contract.operations.items():
        assert operation["operationId"] == name
        whole = path if path.startswith("/v1") else f"{prefix[prefix.find('/v1'):]}{path}"
        found[name] = (method, whole.removeprefix("/v1"))
    assert found == OPERATIONS
    assert set(contract.document["webhooks"]) == EVENTS
    info = contract.document["info"]
    assert info["version"] == "2026-05-25"
    assert "partner api" in info["title"].lower()


# rule: openapi.operations, error.six-fields
def test_every_operation_documents_its_errors_and_its_key(contract):
    for name, (_, _, operation) in contract.operations.items():
        responses = set(operation["responses"])
        assert "200" in responses and {"401", "403", "429"} <= responses, (name, responses)
        assert operation.get("security") or contract.document.get("security"), name
        assert operation.get("summary"), name
    errors = contract.operations["transact"][2]["responses"]
    assert {"400", "401", "402", "403", "404", "409", "429", "501"} <= set(errors)
    header = [row for row in contract.operations["transact"][2]["parameters"] if row["in"] == "header"]
    assert [(row["name"], row["required"]) for row in header] == [("Idempotency-Key", True)]
    envelopes = [
        schema for schema in contract.document["components"]["schemas"].values() if "doc_url" in schema.get("properties", {})
    ]
    assert len(envelopes) == 1 and set(envelopes[0]["required"]) == ENVELOPE


# rule: openapi.routes-agree
def test_every_operation_is_served(contract, world):
    partner = world.partner()
    ids = {"id": "EUR-USDT", "quoteId": "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV", "transactId": "txn_test_01ARZ3NDEKTSV4RRFFQ69G5FAV"}
    for method, path in OPERATIONS.values():
        filled = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], path)
        answer = partner.client.call(method, filled)
        assert answer.status not in (405, 501) and (answer.status < 400 or answer.code != "route_not_found"), answer


# Every check is on everywhere, except where the contract itself says what the check takes for a violation.
CONFIG = """
[[operations]]
# `limit` is clamped, whatever the integer: one that no machine word holds is accepted as well.
include-operation-id = "listLedgerEntries"
checks.negative_data_rejection.enabled = false
# A generated cursor is not one that was given out, and an account in a generated currency does not exist: 400.
checks.positive_data_acceptance.enabled = false

[[operations]]
# A generated cursor has not the form of a trade id: 400.
include-operation-id = "listTrades"
checks.positive_data_acceptance.enabled = false

[[operations]]
# Only EUR is funded; another currency is 400.
include-operation-id = "getFundingInstructions"
checks.positive_data_acceptance.enabled = false

[[operations]]
# Checksum, precision and order size cannot be said in a schema: 400.
include-operation-id = "createQuote"
checks.positive_data_acceptance.enabled = false

[[operations]]
# An order can be larger than the balance: 402. A generated quote id has not the form of one: 400.
include-operation-id = "transact"
checks.positive_data_acceptance.enabled = false
"""


# rule: openapi.answers-agree, error.internal-generic, auth.missing
def test_fuzzing_finds_no_contradiction(world, tmp_path):
    partner = world.partner(funds="1000000.00", receipts="1000000", name="fuzz")
    # Some history, so that reads have something to show.
    for amount in ("20.00", "20.31", "20.41"):
        ack = partner.trade(amount)
        partner.poll(ack["quoteId"])
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run", str(published()),
        "--url", partner.world.service.address,
        "--header", f"Authorization: Bearer {partner.secret}",
        "--phases", "examples,coverage,fuzzing,stateful",
        "--max-examples", str(max(1, CASES // 20)),
        "--generation-allow-x00", "false",
        "--generation-with-security-parameters", "false",
        "--generation-database", "none",
        "--suppress-health-check", "all",
        "--seed", os.environ.get("CONFORMANCE_SEED", "20260525"),
        "--workers", "2",
        "--continue-on-failure",
        "--no-color",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False, cwd=tmp_path)
    report = done.stdout[-12000:] + done.stderr[-3000:]
    assert done.returncode == 0, report
    cases = [int(found) for found in re.findall(r"(\d+) generated", done.stdout)]
    assert sum(cases) >= CASES * 0.8, report
    assert world.service.running()
