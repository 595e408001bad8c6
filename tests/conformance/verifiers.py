"""The functions that `docs/verifying-webhooks.md` shows to partners, extracted from the page and run unchanged."""

import json
import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "verifying-webhooks.md"
RUST = ROOT / "crates" / "webhooks" / "examples" / "verify_delivery.rs"


class Refused(Exception):
    """The delivery was refused."""


def blocks():
    """The code of each marked block, by its name."""
    found = re.findall(r"<!-- run: ([a-z ]+) -->\n```[a-z]+\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert len(found) == PAGE.read_text().count("```") // 2, "a block of the page is not run"
    return dict(found)


def in_python(code):
    names = {}
    exec(code, names)  # noqa: S102 - the project's own documentation

    def verify(headers, body, secret):
        try:
            return names["event_of"](headers, body, secret)
        except Exception as fault:
            raise Refused from fault

    return verify


def in_process(command, **fixed):
    """Another program reads the delivery and prints the event."""

    def verify(headers, body, secret, **more):
        given = json.dumps({"headers": headers, "body": body.decode(), "secret": secret, **fixed, **more})
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise Refused(done.stderr)
        return json.loads(done.stdout)

    return verify


def in_rust(code):
    assert code in RUST.read_text(), f"{RUST.name} and {PAGE.name} show different functions"
    return in_process([os.environ["VERIFY_DELIVERY_BIN"]])


def verifiers():
    """Every function of the page, by its name."""
    languages = {
        "python": in_python,
        "node": lambda code: in_process(["node", str(HERE / "run_block.js")], code=code),
        "rust": in_rust,
    }
    return {name: languages[name.split()[0]](code) for name, code in blocks().items()}
