"""A database on a server as its operator meets it: a standby, a full disk, a server that takes no writes."""

import contextlib
import http.client
import json
import subprocess
import time

import pytest
from programs import PROGRAM_TIMEOUT, await_ready, eventually
from provisioning import partner_toml, pool_toml, profile
from servers import OPERATE, UNPRIVILEGED, OnServer, Postgres, Standby, own_folder

# The server's files on a small disk. The namespaces need no privileges, and PostgreSQL refuses to run as root.
SMALL_DISK = """mkdir small && exec unshare --map-root-user --mount sh -c '
  mount -t tmpfs -o size=160m,mode=777 small small && cp -a data/. small/ &&
  exec unshare --user --map-user=1000 --map-group=1000 "$0" -D small "$@"' "$0" "$@"
"""
ONE = partner_toml("acme", pools=profile(allowed=["EUR-USDT"]), keys=[{"kind": "secret"}])
READS = (
    ["verify"],
    ["key", "list", "--partner", "acme"],
    ["clock", "show"],
    ["master-key", "list"],
    ["export", "trades", "--partner", "acme", "--from", "2026-01-01", "--to", "2100-01-01"],
    ["export", "ledger", "--partner", "acme", "--from", "2026-01-01", "--to", "2100-01-01"],
)


class OnSmallDisk(Postgres):
    """A cluster whose disk a test can fill."""

    def start(self):
        data, self.command = self.folder / "data", self.command
        program, _, _, *settings = self.command
        assert data.is_dir()
        self.command = ("sh", "-c", SMALL_DISK, program, *settings)
        super().start()

    @property
    def filler(self):
        return f"/proc/{self.process.pid}/root{self.folder}/small/filler"

    def fill(self):
        """Writes a file until the disk is full."""
        done = self.run("dd", "if=/dev/zero", f"of={self.filler}", "bs=64k")
        assert "No space left" in done.stderr, done

    def free(self):
        assert self.run("rm", self.filler).returncode == 0

    def run(self, *command):
        """Runs a command as the user of the server, whom alone the disk knows."""
        return subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_TIMEOUT, check=False, **UNPRIVILEGED)


@pytest.fixture
def folders():
    with contextlib.ExitStack() as stack:
        yield lambda kind, *arguments: stack.enter_context(kind(stack.enter_context(own_folder()), *arguments))


def ready(service):
    """The status of the readiness, and its body."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=PROGRAM_TIMEOUT)
    with contextlib.closing(connection):
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        return response.status, response.read().decode()


def not_ready(service, reason):
    """Waits until the service is not ready for this reason. Its body names neither hosts nor files."""

    def refused():
        status, body = ready(service)
        return body if status == 503 and reason in body else None

    body = eventually(refused, f"the service is not ready: {reason}")
    message = json.loads(body)["message"]
    assert "127.0.0.1" not in message and "/" not in message, body


# rule: base.reads-write-nothing, base.installation-mode
def test_reading_commands_work_on_a_standby_and_writing_ones_name_the_remedy(tmp_path, folders):
    primary = folders(Postgres)
    installation = OnServer(tmp_path / "penstock", primary)
    installation.apply(pool_toml("EUR-USDT") + ONE)
    standby = folders(Standby, primary)
    url = f"postgres://{OPERATE}:{primary.password}@127.0.0.1:{standby.port}/{installation.name}"
    for words in READS:
        done = installation.penstock(*words, PENSTOCK_DATABASE_URL=url)
        assert done.code == 0, (words, done)
        assert done.out == installation.penstock(*words).out, words
    words = ["balance", "credit", "--partner", "acme", "--currency", "EUR", "--amount", "1.00", "--ref", "r"]
    done = installation.penstock(*words, PENSTOCK_DATABASE_URL=url)
    assert done.code == 1 and len(done.err.splitlines()) == 1, done
    assert "it is a standby, or was made read-only; name the primary in PENSTOCK_DATABASE_URL" in done.err, done
    other = installation.penstock("verify", PENSTOCK_DATABASE_URL=url, PENSTOCK_MODE="live")
    assert other.code == 2 and "PENSTOCK_MODE: expected test, the mode of the installation" in other.err, other


# rule: base.database-readiness
def test_service_is_not_ready_while_the_disk_of_the_server_is_full(tmp_path, folders):
    server = folders(OnSmallDisk)
    installation = OnServer(tmp_path / "penstock", server)
    with installation.start() as service, installation.start_gate() as gate:
        await_ready(service)
        await_ready(gate)
        server.fill()
        for each in (service, gate):
            not_ready(each, "its disk is full")
            each.logs("the disk of the database server is full")
        server.free()
        await_ready(service)
        await_ready(gate)
    assert server.process.poll() is None


# rule: base.database-readiness
def test_service_is_not_ready_while_the_server_takes_no_writes_or_the_clock_jumped(tmp_path, folders):
    server = folders(Postgres)
    installation = OnServer(tmp_path / "penstock", server)
    with installation.start() as service:
        await_ready(service)
        server.sql(f"ALTER DATABASE {installation.name} SET default_transaction_read_only = on")
        not_ready(service, "it is read-only or a standby")
        server.sql(f"ALTER DATABASE {installation.name} RESET default_transaction_read_only")
        await_ready(service)
    now = int(time.time() * 1000)
    jump = f"UPDATE clock_jump SET expected = {now - 3_600_000}, found = {now}"
    installation.change(jump)
    with installation.start() as service:
        not_ready(service, "the clock jumped ahead")
        installation.operator("clock", "accept")
        await_ready(service)


# rule: base.installation-named
def test_service_on_a_server_logs_where_its_database_is(tmp_path, folders):
    server = folders(Postgres)
    installation = OnServer(tmp_path / "penstock", server)
    with installation.start() as service:
        await_ready(service)
        [opened] = [line for line in service.log_lines() if line["message"] == "Opened the database"]
    shown = {name: opened[f"database.{name}"] for name in ("kind", "host", "port", "name")}
    port = str(server.port)
    assert shown == {"kind": "postgres", "host": "127.0.0.1", "port": port, "name": installation.name}, opened
    assert opened["mode"] == "test" and server.password not in str(opened)
