"""Shell blocks of the documentation, pasted into bash and into a zsh with macOS defaults."""

import base64
import contextlib
import hashlib
import json
import re
import subprocess
import threading
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

import pytest

from programs import environment, eventually, program

SHELLS = {"bash": ["bash", "--norc", "-i", "-s"], "zsh": ["zsh", "-f", "-i", "-s"]}
FREE_PORTS = ["--pools-port", "0", "--gate-port", "0", "--widget-port", "0", "--demo-port", "0"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [
    path
    for path in sorted([*Path(program("DOCS_DIR")).rglob("*.md"), *Path(program("DOCS_DIR"), "..").glob("*.md")])
    if "```sh\n" in path.read_text()
]


def blocks(path, language="sh"):
    return [body for kind, body in BLOCK.findall(path.read_text()) if kind == language]


def readme():
    return Path(program("DOCS_DIR"), "..", "README.md")


@pytest.fixture
def folder(tmp_path):
    """A folder in which the README's commands run the programs built before."""
    penstock = program("PENSTOCK_BIN")
    commands = tmp_path / "bin"
    commands.mkdir()
    cargo = commands / "cargo"
    cargo.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f'  "run --release --bin penstock -- "*) shift 5; exec {penstock} "$@";;\n'
        "esac\n"
        'echo "cargo $*" >&2; exit 9\n'
    )
    cargo.chmod(0o755)
    (commands / "penstock").symlink_to(penstock)
    return tmp_path


def shell(name, folder, text, **settings):
    """Pastes text into an interactive shell, where zsh does not recognise comments, and returns the output."""
    path = f"{folder / 'bin'}:{environment({})['PATH']}"
    run = subprocess.run(
        SHELLS[name],
        input=text,
        env=environment({"PATH": path, "PS1": "", "PS2": "", "PROMPT": "", **settings}),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    return run


# A line that ends with the link to a checkout. In a response, a quote follows the link.
LINK = re.compile(r'http://[^\s"]+/checkout#publishable_key=pk_test_\w+&client_secret=gsec_\w+$', re.MULTILINE)


class Sandbox:
    """The first command of the README, on free ports, until the block ends."""

    def __init__(self, folder):
        [start, *_] = blocks(readme())
        words = start.split() + [*FREE_PORTS, "--output", "json"]
        path = f"{folder / 'bin'}:{environment({})['PATH']}"
        settings = {"PATH": path, "PENSTOCK_QUOTE_TTL": "10m"}
        self.process = subprocess.Popen(
            words, env=environment(settings), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            executable=folder / "bin" / "cargo",
        )
        self.started = json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def addressed(self, text):
        """A block with the addresses of this sandbox in place of the usual ones."""
        text = text.replace("http://127.0.0.1:4010/v1", self.started["base_url"])
        return text.replace("http://127.0.0.1:4020/v1", self.started["gate_base_url"])


def answers(text):
    """Every JSON object that a shell has shown."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        found.append(value)
        at = end
    return found


def shape(value):
    """The keys of a JSON value, at every depth, and the kind of each leaf."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value[:1]]
    # Ids, instants and amounts differ between runs, but keep their form.
    if isinstance(value, str):
        return re.sub(r"[0-9A-HJKMNP-TV-Z]{26}", "<ulid>", re.sub(r"^\d{4}-\d\d-.*Z$", "<instant>", value)) \
            if re.search(r"[0-9A-HJKMNP-TV-Z]{26}|Z$", value) else "text"
    return type(value).__name__


# rule: cli.sandbox.start
@pytest.mark.parametrize("name", SHELLS)
def test_readme_tour_works_when_pasted(folder, name):
    tour = [block for block in blocks(readme()) if "curl" in block or "export" in block]
    assert len(tour) >= 6
    with Sandbox(folder) as sandbox:
        shown = shell(name, folder, sandbox.addressed("".join(tour)))
        assert "not found" not in shown.stderr and "error" not in shown.stderr.lower(), shown.stderr
    found = answers(shown.stdout)
    refusals = [answer for answer in found if "statusCode" in answer]
    assert [refusal["code"] for refusal in refusals] == ["quote_consumed"], found
    assert any(answer.get("status") == "settled" for answer in found), found
    assert len(LINK.findall(shown.stdout)) == 1, shown.stdout
    # Each response that the README shows has the keys and forms of a real one.
    for block in blocks(readme(), "json"):
        for example in answers(block):
            assert shape(example) in [shape(answer) for answer in found], example


@contextlib.contextmanager
def printing_sandbox(folder):
    """A sandbox on free ports. Yields the lines that it has printed, which grow while it runs."""
    path = f"{folder / 'bin'}:{environment({})['PATH']}"
    process = subprocess.Popen(
        ["penstock", "sandbox", *FREE_PORTS],
        executable=folder / "bin" / "penstock", env=environment({"PATH": path}), cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    printed = []
    threading.Thread(target=lambda: printed.extend(process.stdout), daemon=True).start()
    try:
        eventually(lambda: any(line.startswith("pools-service listening") for line in printed), "the sandbox listens")
        yield printed
    finally:
        process.terminate()
        process.wait(60)


# rule: cli.sandbox.start
@pytest.mark.parametrize("name", SHELLS)
def test_printed_calls_of_the_sandbox_work_when_pasted(folder, name):
    with printing_sandbox(folder) as printed:
        assert len(printed) <= 12, printed
        calls = [line for line in printed if line.startswith("curl ")]
        shown = shell(name, folder, "".join(calls))
        pools, balance = answers(shown.stdout)
        assert pools["pools"] and balance["balance"] == "100000.00"


# rule: cli.sandbox.start, gate.payment.events, gate.payment.key
@pytest.mark.parametrize("name", SHELLS)
def test_purchase_by_curl_alone_ends_with_verified_event_when_pasted(folder, name):
    with printing_sandbox(folder) as printed:
        gate = re.search(r"gate API +(\S+)", "".join(printed)).group(1)
        pasted = "".join(blocks(Path(program("DOCS_DIR"), "widget-api.md")))
        shown = shell(name, folder, pasted.replace("http://127.0.0.1:4020/v1", gate))
        session, _, _, quote, paid, repeated, sent, completed, outcome = answers(shown.stdout)
        assert quote["object"] == "signed_quote" and paid["status"] == "processing", shown.stdout
        assert repeated == paid and sent["id"] == paid["id"]
        assert completed["id"] == session["id"] and completed["status"] == "completed"
        assert outcome["receipt"]["reference"] == paid["tx_refid"]
        for event in ("created", "processing", "completed"):
            line = f"event gate_session.{event} {session['id']} both signatures verified"
            eventually(lambda line=line: any(line in one for one in printed), line)
        verified = shell(name, folder, "penstock verify\n")
        assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.mark.parametrize("name", SHELLS)
def test_integrity_of_the_embedding_page_is_that_of_the_served_file(folder, name):
    page = Path(program("DOCS_DIR"), "embedding.md").read_text()
    [command] = re.findall(r"<!-- run: integrity -->\n```sh\n(.*?)```\n", page, re.DOTALL)
    with Sandbox(folder) as sandbox:
        widget = sandbox.started["widget_origin"]
        shown = shell(name, folder, command, WIDGET_ORIGIN=widget)
        with urllib.request.urlopen(f"{widget}/gate.js", timeout=60) as answer:
            served = answer.read()
    assert served
    digest = base64.b64encode(hashlib.sha384(served).digest()).decode()
    assert shown.stdout.split() == [f"sha384-{digest}"], shown.stdout + shown.stderr


# rule: cli.sandbox.check
@pytest.mark.parametrize("name", SHELLS)
def test_first_command_of_the_readme_runs_the_check(folder, name):
    [start, *_] = blocks(readme())
    shown = shell(name, folder, f"{start.strip()} --check\n")
    steps = re.findall(r"^✓ (\S+)", shown.stdout, re.MULTILINE)
    picture = Path(program("DOCS_DIR"), "images", "sandbox-check.svg").read_text()
    recorded = re.findall(r'class="step">(\S+)\s*<', picture)
    assert len(steps) == 18 and recorded == steps, shown.stdout + shown.stderr


@pytest.mark.parametrize("name", SHELLS)
def test_commands_of_the_provisioning_page_work_when_pasted(folder, name):
    page = Path(program("DOCS_DIR"), "provisioning.md")
    [file, *_] = blocks(page, "toml")
    (folder / "acme.toml").write_text(file)
    for block in blocks(page):
        done = shell(name, folder, f"set -e\n{block}")
        assert done.returncode == 0, done.stdout + done.stderr


# rule: docs.commands-run
@pytest.mark.parametrize("name", SHELLS)
def test_commands_of_the_command_line_page_work_when_pasted(folder, name):
    """In the order of the page, on one embedded database."""
    [file, *_] = blocks(Path(program("DOCS_DIR"), "provisioning.md"), "toml")
    (folder / "partners.toml").write_text(file)
    next_year = str(datetime.now(timezone.utc).year + 1)
    for block in blocks(Path(program("DOCS_DIR"), "command-line.md")):
        block = re.sub(r"(--expires )\d{4}", rf"\g<1>{next_year}", block)
        done = shell(name, folder, f"set -e\n{block}", HOME=folder)
        assert done.returncode == 0, block + done.stdout + done.stderr


def test_file_of_the_provisioning_page_is_taken_by_the_database_of_the_sandbox(folder):
    [file, *_] = blocks(Path(program("DOCS_DIR"), "provisioning.md"), "toml")
    (folder / "acme.toml").write_text(file)
    with Sandbox(folder):
        applied = shell("bash", folder, "penstock apply -f acme.toml && penstock verify\n")
    assert "partner acme: created" in applied.stdout, applied.stdout + applied.stderr
    assert applied.returncode == 0, applied.stdout + applied.stderr


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_shell_blocks_have_no_comments_and_parse_in_both_shells(path):
    for block in blocks(path):
        quoted = re.sub(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", "''", block)
        assert not re.search(r"(^|\s)#", quoted), f"zsh runs a pasted comment as a command:\n{block}"
        for words in (["bash", "-n"], ["zsh", "-f", "-n"]):
            parsed = subprocess.run(words, input=block, capture_output=True, text=True, check=False)
            assert parsed.returncode == 0, f"{words[0]}: {parsed.stderr}\n{block}"
