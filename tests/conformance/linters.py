"""Two independent linters of the published documents, with all their recommended rules."""

import json
import os
import subprocess
from pathlib import Path

from contract import published

# Exceptions to the linters' rules, with reasons.
REDOCLY = {
    # Each installation has its own address, so the documents name none.
    "no-empty-servers": "off",
}
SPECTRAL = {
    # Each installation has another operator, so the documents name no contact.
    "info-contact": "off",
    # Tags are in reading order.
    "openapi-tags-alphabetical": "off",
    # OpenAPI 3.1 has a licence's `url` or its `identifier`, never both.
    "license-url": "off",
}
OF_ONE = {
    # `/pools/quotes/{quoteId}` and `/pools/{id}/quote` differ in their last segment only; the contract requires this, and
    # a literal segment takes precedence.
    "pools-v1": ({"no-ambiguous-paths": "off"}, {}),
    # Every engine response other than 200 is invalid, and the few operations need no tags.
    "engine-v1": ({"operation-4xx-response": "off"}, {"openapi-tags": "off", "operation-tags": "off"}),
    # The same holds for the rail.
    "rail-v1": ({"operation-4xx-response": "off"}, {"openapi-tags": "off", "operation-tags": "off"}),
    # The same holds for a verifier.
    "verifier-v1": ({"operation-4xx-response": "off"}, {"openapi-tags": "off", "operation-tags": "off"}),
}


def redocly(name, folder):
    """Redocly's findings about a document."""
    rules = {**REDOCLY, **OF_ONE.get(name, ({}, {}))[0]}
    config = folder / "redocly.yaml"
    config.write_text(json.dumps({"extends": ["recommended-strict"], "rules": rules}))
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "CI": "true"}
    done = node("@redocly/cli/bin/cli.js", "lint", published(name), "--config", config, "--format=json", cwd=folder, **quiet)
    report = json.loads(done.stdout[done.stdout.index("{"):])
    assert (done.returncode == 0) == (report["problems"] == []), done.stdout + done.stderr
    return [(problem["ruleId"], problem["message"]) for problem in report["problems"]]


def spectral(name, folder):
    """Spectral's findings about a document."""
    rules = {**SPECTRAL, **OF_ONE.get(name, ({}, {}))[1]}
    config = folder / "spectral.json"
    config.write_text(json.dumps({"extends": [["spectral:oas", "all"]], "rules": rules}))
    report = folder / "report.json"
    program = "@stoplight/spectral-cli/dist/index.js"
    words = ["--ruleset", config, "--fail-severity", "hint", "--format", "json", "--output", report]
    done = node(program, "lint", published(name), *words, cwd=folder)
    problems = json.loads(report.read_text())
    assert (done.returncode == 0) == (problems == []), done.stdout + done.stderr
    return [(problem["code"], "/".join(map(str, problem["path"])), problem["message"]) for problem in problems]


def node(program, *words, cwd, **settings):
    """Runs a program of the installed npm packages."""
    command = ["node", str(Path(os.environ["NODE_MODULES_DIR"]) / program), *map(str, words)]
    return subprocess.run(command, env=node_environment(**settings), capture_output=True, text=True, timeout=120, check=False, cwd=cwd)


def node_environment(**settings):
    """The environment of a Node program, including the path of the installed npm packages."""
    return {**os.environ, **settings}
