"""An installation on a private PostgreSQL that the commands of the operator's pages set up, as its operator pastes them."""

import collections
import contextlib
import os
import re
import secrets
import sqlite3
import subprocess
import tempfile
from pathlib import Path

from client import Client
from programs import MASTER_KEY, Done, Installation, environment, eventually, program, run
from provisioning import ADDRESS, gate_profile, new_key, partner_toml, profile, terms_for
from servers import Postgres, Standby, own_folder, psql
from shown import DEPLOY, DOCS, blocks, section
from test_fuzzing import one_of_each
from test_payments import SHOP, Rail

# Programs of the pages that do nothing here, with the reason.
STUBS = {
    "cargo": "the programs are built before the suites",
    "systemctl": "systemd does not run here",
    "systemd-sysusers": "it would add a user to this machine",
}
FOLDERS = (
    "etc/systemd/system", "usr/lib/sysusers.d", "usr/local/bin", "var/lib/penstock", "var/lib/prometheus/node-exporter", "backup",
    "bin", "shell/target",
)
# A function of the pages changes its user with `sudo`, which root does not need.
SUDO = '#!/bin/sh\nexec "$@"\n'
OPERATING, PROVISIONING = DOCS / "operating.md", DOCS / "provisioning.md"
SERVER, FUNCTIONS = section(OPERATING, "## On a database server"), section(OPERATING, "### Run a command")


class SlowRail(Rail):
    """A rail on which a part of each payment arrives. When it was asked about two of them again, one settles, under a reference."""

    def __init__(self, seed):
        super().__init__(seed)
        self.reports = collections.Counter()

    def truth(self, method, record, operation):
        found = super().truth(method, record, operation)
        if method != "GET" or found["status"] == "unknown":
            return found
        self.reports[record] += 1
        again = [known for known, reports in self.reports.items() if reports > 1]
        if len(again) > 1 and self.settled <= {record}:
            return {"status": "settled", "reference": "statement-7"}
        self.states[record] = "processing"
        return {"status": "processing", "received": {"amount": "1.00"}}


class Operated:
    """A folder in place of the machine's, and a shell that keeps the functions and passwords of the pages between blocks."""

    def __init__(self):
        # The services' user reaches everything in this folder but the files that only root may read.
        self.until_end = contextlib.ExitStack()
        self.folder = Path(self.until_end.enter_context(tempfile.TemporaryDirectory(prefix="penstock-operated-")))
        self.folder.chmod(0o755)
        self.postgres, self.standby = self.server(Postgres), None
        self.postgres.sql("ALTER SYSTEM SET log_line_prefix = '%m [%p] %q%u@%d '")
        self.postgres.sql("SELECT pg_reload_conf()")
        self.rail, self.services, self.address, self.known = SlowRail(seed=7), [], None, {}
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True)
        for name in ("deploy", "docs"):
            (self.folder / "shell" / name).symlink_to((DEPLOY if name == "deploy" else DOCS).resolve())
        (self.folder / "shell" / "target" / "dist").symlink_to(Path(program("PENSTOCK_BIN")).parent)
        for name in STUBS:
            self.command(name, f'#!/bin/sh\necho {name} >> {self.folder / "stubs"}\n')
        self.command("sudo", SUDO)
        (self.folder / "state").touch()
        # What the pasted text printed on stderr.
        self.printed = ""

    def server(self, kind, *arguments):
        return self.until_end.enter_context(kind(self.until_end.enter_context(own_folder()), *arguments))

    def command(self, name, text):
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def substituted(self, text):
        """Text of a page with the paths, addresses and ids of this installation."""
        text = re.sub(r"(?<![\w.])/(etc|usr|var|backup)/", rf"{self.folder}/\1/", text)
        text = text.replace("@db.internal", f"@127.0.0.1:{self.postgres.port}")
        if "@two.internal" in text:
            self.standby = self.standby or self.server(Standby, self.postgres)
            text = text.replace("@two.internal", f"@127.0.0.1:{self.standby.port}")
        text = text.replace("--reuid=penstock --regid=penstock", "--reuid=nobody --regid=nogroup")
        if self.address:
            text = text.replace("http://127.0.0.1:4010", self.address)
        return completed(in_mode_test(text), self.known)

    def shell(self, text):
        """Pastes text into the operator's shell."""
        keep = 'for it in $(compgen -v | grep _PASSWORD$); do declare -p "$it"; done; declare -f'
        state, places = self.folder / "state", [self.folder / "bin", self.folder / "usr/local/bin", os.environ["PATH"]]
        script = f"set -eo pipefail\n. {state}\n{self.substituted(text)}\n({keep}) > {state}.new && mv {state}.new {state}\n"
        superuser = {"PGHOST": "127.0.0.1", "PGPORT": self.postgres.port, "PGUSER": "postgres", "PGPASSWORD": self.postgres.password}
        settings = {**superuser, "PATH": ":".join(map(str, places))}
        done = subprocess.run(
            ["bash", "-c", script], env=environment(settings), cwd=self.folder / "shell",
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def pasted(self, text):
        done = self.shell(text)
        assert done.code == 0, f"{text}\n{done.out}\n{done.err}"
        self.printed += done.err
        return done.out

    def password(self, role):
        return re.search(rf'{role}_PASSWORD="(\w+)"', (self.folder / "state").read_text())[1]

    def url(self, role):
        # A shell ends this URL at the `&` unless it is in quotes.
        user = f"penstock_{role.lower()}:{self.password(role)}"
        return f"postgres://{user}@127.0.0.1:{self.postgres.port}/penstock?sslmode=disable&application_name=penstock"

    def query(self, sql):
        """The rows of a statement, which runs as the operator's role."""
        return psql(self.url("OPERATE"), "-c", self.substituted(sql))

    def install(self):
        for block in blocks((DEPLOY / "README.md").read_text()):
            self.pasted(block)
        before_roles = SERVER[: SERVER.index("### One role per person")]
        for block in blocks(before_roles):
            self.pasted(block)
        for name, role in (("secrets", "SERVE"), ("operator", "OPERATE")):
            file = self.folder / "etc" / "penstock" / f"{name}.env"
            assert file.stat().st_mode & 0o777 == 0o600
            text = file.read_text().replace('PENSTOCK_MASTER_KEY=""', f'PENSTOCK_MASTER_KEY="{MASTER_KEY}"')
            file.write_text(re.sub(r'(PENSTOCK_DATABASE_URL)=".*"', rf'\1="{self.url(role)}"', text))
        file = self.folder / "etc" / "penstock" / "penstock.toml"
        text = file.read_text().replace('mode = "live"', 'mode = "test"').replace('allow_private = "none"', 'allow_private = "loopback"')
        file.write_text(re.sub(r"^(rates|gate_origin|widget_origin) = .*\n", "", text, flags=re.MULTILINE))
        self.pasted(blocks(FUNCTIONS)[0])

    def provision(self):
        [file, *_] = blocks(PROVISIONING.read_text(), "toml")
        (self.folder / "shell" / "acme.toml").write_text(file)
        for block in blocks(PROVISIONING.read_text()):
            self.pasted(block)

    def serve(self):
        settings = {"PENSTOCK_DATABASE_URL": self.url("SERVE"), "PENSTOCK_MASTER_KEY": MASTER_KEY}
        installation = Installation(self.folder / "services", **settings, **of_services(self.rail))
        self.services = [installation.start(), installation.start_gate()]
        self.address = self.services[0].address

    def stop_services(self):
        while self.services:
            assert self.services.pop().stop() == 0

    def stop(self):
        with self.until_end:
            self.stop_services()


def of_services(rail):
    """Settings with which an event is given up at once, and payments use the rail of these suites."""
    return {"PENSTOCK_RAIL": f"http:{rail.url}", "PENSTOCK_WEBHOOK_WAITS": "1ms", "PENSTOCK_SIGNED_QUOTE_TTL": "10m"}


def fill(services, apply, credit):
    """Rows of every kind that a statement of the pages reads: trades, payments and deliveries. Returns the ids that it needs."""
    keys = [{"kind": kind, "key": new_key(kind)} for kind in ("secret", "publishable")]
    nowhere = {"url": "http://127.0.0.1:9/hooks"}
    access = {"pools": profile(allowed=["EUR-USDT"]), "terms": terms_for(["EUR-USDT"]), "gate": gate_profile(SHOP)}
    apply(partner_toml("shop", **access, keys=keys, webhook=nowhere, gate_webhook=nowhere))
    credit("shop")
    pools, gate = (Client(service, keys[0]["key"]) for service in services)
    order = {"side": "on_ramp", "fiatCurrency": "EUR", "cryptoCurrency": "USDT", "amount": "10.00"}
    for ends in (True, False):
        body = {**order, "cryptoNetwork": "ethereum", "destAddress": ADDRESS}
        quote = pools.ok("POST", "/pools/EUR-USDT/quote", body)["quoteId"]
        key = {"Idempotency-Key": secrets.token_hex(8)}
        trade = pools.ok("POST", "/pools/EUR-USDT/transact", {"quoteId": quote}, headers=key)["transactId"]
        if ends:
            assert pools.ok("GET", f"/pools/transactions/{quote}")["status"] == "settled"
    payments = [one_of_each(gate), one_of_each(gate)]

    def states():
        return [gate.ok("GET", f"/rails/pay_ins/{one['retrievePayIn']}")["status"] for one in payments]

    eventually(lambda: sorted(states()) == ["processing", "settled"], "one of two payments settles")
    settled = payments[states().index("settled")]["retrieveTransaction"]
    # The shortened ids of the pages, in mode test.
    return {"txn_test_…": trade, "test_tx_…": settled}


def in_mode_test(text):
    """Text of a page for services of these suites."""
    return text.replace("'live'", "'test'").replace("_live_", "_test_").replace("'live_", "'test_")


def completed(text, known):
    """Text with ids in place of shortened ones."""
    for place, found in known.items():
        text = text.replace(place, found)
    return text


def on_sqlite(statement):
    """A statement in the form that the pages describe for `sqlite3`."""
    text = re.sub(r"\n.* interval .*", "", statement)
    text = re.sub(r"\bulid\((\w+)\)", r"\1", text)
    return re.sub(r"to_timestamp\(((?:\w+|max\(\w+\)) / 1000)\.0\)", r"datetime(\1, 'unixepoch')", text)


def rows_of(database, sql):
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        return connection.execute(sql).fetchall()


def migrated(file):
    """An embedded database in place of the one that a page backs up."""
    settings = {"PENSTOCK_DATABASE_URL": f"sqlite://{file}", "PENSTOCK_MASTER_KEY": MASTER_KEY}
    done = run([program("POOLS_SERVICE_BIN"), "migrate"], settings)
    assert done.code == 0, done.err
