"""Starts, calls and stops the real programs, as their operator does."""

import contextlib
import http.client
import http.server
import json
import os
import queue
import re
import secrets
import signal
import sqlite3
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

# A debug build on a busy machine starts slowly; no test measures the start.
PROGRAM_TIMEOUT = 120.0

LISTENING = re.compile(r"^(?:pools|gate)-service listening on http://(127\.0\.0\.1):(\d+)$")


def program(variable):
    path = os.environ.get(variable)
    if not path:
        raise RuntimeError(f"{variable} is not set: run these suites with `cargo xtask conformance`")
    return path


def eventually(holds, what, within=60):
    """Waits until `holds()` is true, and returns its value. A call that began in time counts, however long it takes."""
    end = time.monotonic() + within
    while True:
        asked = time.monotonic()
        if found := holds():
            return found
        assert asked < end, f"not within {within} s: {what}"
        time.sleep(0.05)


def await_ready(service):
    """Waits until the service is ready. While a slow commit delays its check of the database, it is not."""

    def ready():
        connection = http.client.HTTPConnection(service.host, service.port, timeout=PROGRAM_TIMEOUT)
        with contextlib.closing(connection):
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == 200

    eventually(ready, "the service is ready")


class Server(http.server.ThreadingHTTPServer):
    """A server of a test. Its backlog holds more connections than the services open to it at once."""

    request_queue_size = 128
    daemon_threads = True


def environment(settings):
    """A clean environment, so that settings of the machine cannot affect a test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    kept.pop("RUST_LOG", None)
    kept.update({name: str(value) for name, value in settings.items()})
    return kept


@dataclass
class Done:
    """A program that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def run(command, settings, timeout=PROGRAM_TIMEOUT, cwd=None):
    done = subprocess.run(
        [str(word) for word in command],
        env=environment(settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=cwd,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


# Not a secret: the databases of these suites hold test data only.
MASTER_KEY = "Y29uZm9ybWFuY2UtY29uZm9ybWFuY2UtMDEyMzQ1Njc="

# A server on which every installation gets its own database, instead of an embedded one.
SERVER = os.environ.get("CONFORMANCE_SERVER", "").rstrip("/")

EMBEDDED = pytest.mark.skipif(bool(SERVER), reason="this looks at the files of an embedded database, or at the key beside it")


def on_server():
    """The settings of a new database, migrated by its owner."""
    name = f"conformance_{secrets.token_hex(8)}"
    subprocess.run(["psql", "-qX", f"{SERVER}/postgres", "-c", f"CREATE DATABASE {name}"], check=True)
    url = f"{SERVER}/{name}"
    settings = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_MASTER_KEY": MASTER_KEY}
    done = run([program("POOLS_SERVICE_BIN"), "migrate"], settings)
    assert done.code == 0, done.out + done.err
    return settings


class Installation:
    """A folder with one database, embedded unless `CONFORMANCE_SERVER` is set, and the settings that name it."""

    def __init__(self, folder, **settings):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings = {
            **(on_server() if SERVER else {"PENSTOCK_DATABASE_URL": f"sqlite://{self.folder / 'penstock.db'}"}),
            "PENSTOCK_POOLS_LISTEN": "127.0.0.1:0",
            "PENSTOCK_GATE_LISTEN": "127.0.0.1:0",
            "PENSTOCK_WIDGET_LISTEN": "127.0.0.1:0",
            "PENSTOCK_THROTTLE": "off",
        }
        self.settings.update(settings)

    @property
    def database(self):
        """The embedded database's file."""
        if SERVER:
            pytest.skip("this test reads the file of an embedded database")
        return self.folder / "penstock.db"

    def change(self, sql):
        """Runs SQL as the owner of the database."""
        if SERVER:
            command = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", self.settings["PENSTOCK_DATABASE_URL"], "-c", sql]
            subprocess.run(command, check=True, capture_output=True)
            return
        with contextlib.closing(sqlite3.connect(self.database, timeout=60)) as database:
            database.executescript(sql)

    def penstock(self, *words, **settings):
        """Runs the operator's program; the caller checks the exit code."""
        return run([program("PENSTOCK_BIN"), *words], {**self.settings, **settings}, cwd=self.folder)

    def operator(self, *words, **settings):
        """Runs the operator's program with JSON output and expects it to succeed."""
        done = self.penstock(*words, "--output", "json", **settings)
        assert done.code == 0, f"penstock {' '.join(map(str, words))}: {done.code}\n{done.out}\n{done.err}"
        return done.json

    def write(self, text, name=None):
        path = self.folder / (name or f"{secrets.token_hex(6)}.toml")
        path.write_text(text)
        return path

    def apply(self, text, *flags):
        return self.operator("apply", "-f", self.write(text), *flags)

    def apply_refused(self, text, *flags):
        return self.penstock("apply", "-f", self.write(text), *flags)

    def credit(self, partner, amount, currency="EUR", ref=None):
        ref = ref or secrets.token_hex(8)
        words = ["--partner", partner, "--currency", currency, "--amount", amount, "--ref", ref]
        return self.operator("balance", "credit", *words)

    def receive(self, partner, amount, asset="USDT", network="tron", ref=None):
        ref = ref or secrets.token_hex(8)
        words = ["--partner", partner, "--asset", asset, "--network", network, "--amount", amount, "--ref", ref]
        return self.operator("crypto", "credit", *words)

    def verify(self):
        """All invariants over the whole database; a breach fails the test with its name."""
        done = self.penstock("verify", "--output", "json")
        assert done.code == 0, done.out + done.err
        assert done.json["ok"] is True, done.out
        return done.json

    def pools_service(self, *words, **settings):
        return run([program("POOLS_SERVICE_BIN"), *words], {**self.settings, **settings}, cwd=self.folder)

    def start(self, *words, **settings):
        settings = {**self.settings, **settings}
        binary = "ARMED_POOLS_SERVICE_BIN" if "FAILPOINTS" in settings else "POOLS_SERVICE_BIN"
        return Service(self, binary, words, settings)

    def start_gate(self, **settings):
        return Service(self, "GATE_SERVICE_BIN", (), {**self.settings, **settings})


class Service:
    """A running service, with crash points if `FAILPOINTS` is set."""

    def __init__(self, installation, binary, words, settings):
        self.installation = installation
        self.log_path = installation.folder / f"service-{secrets.token_hex(4)}.log"
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [program(binary), *map(str, words)],
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=installation.folder,
            )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            first = self.lines.get(timeout=PROGRAM_TIMEOUT)
        except queue.Empty:
            first = None
        found = LISTENING.match(first or "")
        if not found:
            self.kill()
            raise AssertionError(f"not the listening line: {first!r}\n{self.log()}")
        self.host, self.port = found[1], int(found[2])
        self.address = f"http://{self.host}:{self.port}"

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def logs(self, text):
        """Waits until the log contains a text, because the service writes its log in the background."""
        deadline = time.monotonic() + 60
        while text not in self.log():
            assert time.monotonic() < deadline, f"not in the log: {text}\n{self.log()}"
            time.sleep(0.02)

    def log_lines(self):
        """Every complete line of the log, each of which must be one JSON object."""
        parsed = []
        for line in self.log().rpartition("\n")[0].splitlines():
            value = json.loads(line)
            assert isinstance(value, dict), line
            parsed.append(value)
        return parsed

    def running(self):
        return self.process.poll() is None

    def stop(self, how=signal.SIGTERM, timeout=60.0):
        """Asks the service to stop and returns its exit code."""
        if self.running():
            self.process.send_signal(how)
        return self.process.wait(timeout)

    def kill(self):
        """Kills the process, as a power cut would."""
        self.process.kill()
        self.process.wait(PROGRAM_TIMEOUT)

    def memory(self):
        """The resident memory in bytes."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.running():
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                raise
