"""`penstock sandbox`: the first thing a developer runs."""

import base64
import concurrent.futures
import json
import re
import select
import socket
import subprocess
import time

from programs import environment, program, run

SANDBOX_TIMEOUT = 180


def sandbox(folder, *words, **settings):
    # Free ports instead of the documented ones, so that runs on one machine do not conflict.
    ports = {"PENSTOCK_POOLS_LISTEN": "127.0.0.1:0", "PENSTOCK_GATE_LISTEN": "127.0.0.1:0", "PENSTOCK_WIDGET_LISTEN": "127.0.0.1:0"}
    command = [program("PENSTOCK_BIN"), "sandbox", "--dir", folder / "data", *words]
    return run(command, {**ports, **settings}, timeout=SANDBOX_TIMEOUT, cwd=folder)


# rule: cli.sandbox.check
def test_check_does_the_main_job(tmp_path):
    done = sandbox(tmp_path, "--check")
    assert done.code == 0, done.out + done.err
    text = done.out.lower()
    for step in ("discover", "capabilit", "quote", "transact", "settled", "trade", "balance", "ledger"):
        assert step in text, f"no step names {step!r}:\n{done.out}"


# rule: cli.sandbox.check, cli.sandbox.demo-kept
def test_check_can_be_repeated(tmp_path):
    assert sandbox(tmp_path, "--check").code == 0
    first = (tmp_path / "data" / "demo.json").read_bytes()
    done = sandbox(tmp_path, "--check")
    assert done.code == 0, done.out + done.err
    assert (tmp_path / "data" / "demo.json").read_bytes() == first


# rule: cli.sandbox.check-event
def test_check_receives_and_verifies_an_event(tmp_path):
    done = sandbox(tmp_path, "--check")
    assert done.code == 0, done.out + done.err
    [event] = [line for line in done.out.splitlines() if line.startswith("✓ event")]
    assert "pool.transaction.settled" in event and "both signatures verified" in event


# rule: cli.sandbox.check-event
def test_check_fails_if_no_event_arrives(tmp_path):
    done = sandbox(tmp_path, "--check", PENSTOCK_WEBHOOK_ALLOW_PRIVATE="none")
    assert done.code == 1, done.out + done.err
    message = "✗ event        no event arrived within 10s; the last attempt: the endpoint's URL cannot be used"
    assert message in done.out and done.out.count("✓") == 11, done.out


# rule: cli.sandbox.check-event
def test_concurrent_checks_receive_their_own_events(tmp_path):
    assert sandbox(tmp_path, "--check").code == 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: sandbox(tmp_path, "--check"), range(2)))
    assert [done.code for done in both] == [0, 0], both


def started(folder, **settings):
    """Starts a sandbox and reads its output until the last line of the start."""
    ports = {"PENSTOCK_POOLS_LISTEN": "127.0.0.1:0", "PENSTOCK_GATE_LISTEN": "127.0.0.1:0", "PENSTOCK_WIDGET_LISTEN": "127.0.0.1:0"}
    process = subprocess.Popen(
        [program("PENSTOCK_BIN"), "sandbox", "--dir", folder / "data"],
        env=environment({**ports, **settings}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    printed, deadline = b"", time.monotonic() + SANDBOX_TIMEOUT
    while not re.search(rb"^pools-service listening .*\n", printed, re.MULTILINE):
        ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
        chunk = process.stdout.read1(65536) if ready else b""
        if not chunk:
            break
        printed += chunk
    return process, printed.decode()


# rule: cli.sandbox.start, cli.sandbox.demo-kept
def test_demo_partner_is_printed_kept_and_reused(tmp_path):
    process, printed = started(tmp_path)
    try:
        [secret] = set(re.findall(r"sk_test_[0-9A-Za-z]{32}", printed))
        [publishable] = set(re.findall(r"pk_test_[0-9A-Za-z]{32}", printed))
        assert re.search(r"whsec_[0-9A-Za-z+/]{43}=", printed)
        assert "curl" in printed, "calls ready to paste"
        address = re.search(r"pools-service listening on http://127\.0\.0\.1:(\d+)", printed)
        assert address, printed
        with socket.create_connection(("127.0.0.1", int(address[1])), timeout=60) as connection:
            head = f"GET /v1/pools HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\nConnection: close\r\n\r\n"
            connection.sendall(head.encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
    finally:
        process.terminate()
        assert process.wait(60) == 0
    demo = tmp_path / "data" / "demo.json"
    assert demo.stat().st_mode & 0o777 == 0o600
    assert isinstance(json.loads(demo.read_text()), dict)
    kept = demo.read_bytes()
    process, again = started(tmp_path)
    process.terminate()
    assert process.wait(60) == 0
    assert secret in again and publishable in again
    assert demo.read_bytes() == kept


# rule: cli.sandbox.refuses
def test_sandbox_is_for_tests_only(tmp_path):
    live = {"PENSTOCK_MODE": "live", "PENSTOCK_MASTER_KEY": base64.b64encode(bytes(range(32))).decode()}
    done = sandbox(tmp_path, "--check", **live)
    assert done.code == 2 and done.err.strip(), done
    assert not (tmp_path / "data").exists()


# rule: cli.sandbox.refuses
def test_sandbox_refuses_a_server_database(tmp_path):
    done = sandbox(tmp_path, "--check", PENSTOCK_DATABASE_URL="postgres://nobody@127.0.0.1:1/none")
    assert done.code == 2 and "names a server" in done.err, done
    assert not (tmp_path / "data").exists()
