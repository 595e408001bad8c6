"""Schemathesis over a service: all its checks are enabled, except where the contract requires what a check reports as
a violation.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from contract import published

SHOP = "https://shop.example"

POOLS = """
[[operations]]
# `limit` is clamped for every integer, also beyond 64 bits.
include-operation-id = "listLedgerEntries"
checks.negative_data_rejection.enabled = false
# A generated cursor was never issued, and an account in a generated currency does not exist: 400.
checks.positive_data_acceptance.enabled = false

[[operations]]
# A generated cursor does not have the form of a trade id: 400.
include-operation-id = "listTrades"
checks.positive_data_acceptance.enabled = false

[[operations]]
# Only EUR is funded; another currency is 400.
include-operation-id = "getFundingInstructions"
checks.positive_data_acceptance.enabled = false

[[operations]]
# A schema cannot express checksum, precision and order size: 400.
include-operation-id = "createQuote"
checks.positive_data_acceptance.enabled = false

[[operations]]
# An order can be larger than the balance: 402. A generated quote id is malformed: 400.
include-operation-id = "transact"
checks.positive_data_acceptance.enabled = false
"""

GATE = """
[[operations]]
# A schema cannot express the allowed origins, the currency and the terms of a preview: 400.
include-operation-id = "createSession"
checks.positive_data_acceptance.enabled = false

[[operations]]
# A schema cannot express the catalogue and its number of digits: 400.
include-operation-id = ["previewQuotes", "lockQuote"]
checks.positive_data_acceptance.enabled = false

[[operations]]
# A schema cannot express email addresses, https URLs and countries: 400.
include-operation-id = ["createCustomer", "updateCustomer", "listCustomers", "updateBranding"]
checks.positive_data_acceptance.enabled = false

[[operations]]
# Only dead letters can be replayed: 400.
include-operation-id = "replayWebhookDelivery"
checks.positive_data_acceptance.enabled = false

[[operations]]
# Sent by a page of the partner.
include-operation-id = ["createEmbedToken", "retrieveEmbedOutcome"]
headers = { Origin = "https://shop.example" }
"""

TEST_HELPERS = """
[[operations]]
# The session can be completed or cancelled already: 409.
include-operation-id = ["completeTestSession", "failTestSession"]
checks.positive_data_acceptance.enabled = false
"""

EMBED = """
[[operations]]
# A schema cannot express the catalogue: 400. The one session of the token ends during the run: 409.
include-operation-id = [
    "createEmbedQuote", "createEmbedPayment", "createEmbedVerification", "cancelEmbedPayment", "cancelEmbedSession",
    "listEmbedOptions", "sendTestPayment", "declineTestPayment", "approveTestVerification", "rejectTestVerification",
]
checks.positive_data_acceptance.enabled = false
"""

# By document.
CONFIGS = {"pools-v1": POOLS, "gate-v1": GATE, "gate-test-helpers-v1": TEST_HELPERS, "gate-embed-v1": EMBED}


@dataclass
class Found:
    """The result of a run."""

    clean: bool
    cases: int
    report: str


def fuzz(name, address, credentials, known, folder, examples, seed):
    """Runs every phase over a document with this many examples per operation; `known` maps operations to existing values."""
    config = folder / "schemathesis.toml"
    # A response may take as long as the service waits for a change of a session: 25 s.
    config.write_text('hooks = "fuzz_hooks"\nrequest-timeout = 60\n' + credentials + CONFIGS[name])
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(config), "run", str(published(name)),
        "--url", address,
        "--phases", "examples,coverage,fuzzing,stateful",
        "--max-examples", str(examples),
        "--generation-allow-x00", "false",
        "--generation-with-security-parameters", "false",
        "--generation-database", "none",
        "--suppress-health-check", "all",
        "--seed", str(seed),
        # Two workers race within Python 3.11's `ast.parse` (cpython issue 106905) and one may fail.
        "--workers", "1",
        "--continue-on-failure",
        "--no-color",
    ]
    environment = {**os.environ, "FUZZ_KNOWN": json.dumps(known), "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200, check=False, cwd=folder, env=environment)
    cases = sum(int(found) for found in re.findall(r"(\d+) generated", done.stdout))
    return Found(done.returncode == 0, cases, done.stdout[-30000:] + done.stderr[-3000:])


def keys(partner, token=""):
    """Calls each operation with its documented kind of credential."""
    return f"""
[auth.openapi.secretKey]
bearer = "{partner.secret}"

[auth.openapi.publishableKey]
bearer = "{partner.publishable}"

[auth.openapi.embedToken]
api_key = "{token}"
"""
