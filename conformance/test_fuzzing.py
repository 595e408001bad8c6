"""The published contract is true under fuzzing."""

import os
import re
import subprocess
import sys
from pathlib import Path

from contract import published

# About how many cases schemathesis generates in all; a campaign sets more.
CASES = int(os.environ.get("CONFORMANCE_CASES", "1000"))

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
