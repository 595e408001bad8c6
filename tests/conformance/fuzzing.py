"""Schemathesis over a service: every check it has is on everywhere, except where the contract itself says what a check takes
for a violation.
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

GATE = """
[[operations]]
# The origins of its URLs, the currency and what a preview locked cannot be said in a schema: 400.
include-operation-id = "createSession"
checks.positive_data_acceptance.enabled = false

[[operations]]
# What the catalogue offers, and with how many digits, cannot be said in a schema: 400.
include-operation-id = ["previewQuotes", "lockQuote"]
checks.positive_data_acceptance.enabled = false

[[operations]]
# What is an email address, an https URL or a country cannot be said in a schema: 400.
include-operation-id = ["createCustomer", "updateCustomer", "listCustomers", "updateBranding"]
checks.positive_data_acceptance.enabled = false

[[operations]]
# Only what was given up is sent again: 400.
include-operation-id = "replayWebhookDelivery"
checks.positive_data_acceptance.enabled = false

[[operations]]
# A page of the partner's own sends it.
include-operation-id = "createEmbedToken"
headers = { Origin = "https://shop.example" }
"""


@dataclass
class Found:
    """What a run has to say."""

    clean: bool
    cases: int
    report: str


def fuzz(name, address, partner, known, folder, examples, seed):
    """Runs every phase over a document, so many examples an operation; `known` are things that exist, by who reads them."""
    config = folder / "schemathesis.toml"
    config.write_text('hooks = "fuzz_hooks"\n' + keys(partner) + {"pools-v1": POOLS, "gate-v1": GATE}[name])
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
        # Two at a time race within Python 3.11's `ast.parse` (cpython issue 106905) and one may fail.
        "--workers", "1",
        "--continue-on-failure",
        "--no-color",
    ]
    environment = {**os.environ, "FUZZ_KNOWN": json.dumps(known), "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200, check=False, cwd=folder, env=environment)
    cases = sum(int(found) for found in re.findall(r"(\d+) generated", done.stdout))
    return Found(done.returncode == 0, cases, done.stdout[-30000:] + done.stderr[-3000:])


def keys(partner):
    """Each operation is called with the kind of key that the document says it takes."""
    return f"""
[auth.openapi.secretKey]
bearer = "{partner.secret}"

[auth.openapi.publishableKey]
bearer = "{partner.publishable}"
"""
