"""Follows the operator's pages: their configuration, commands and statements, and restored backups that were taken under load."""

import gzip
import os
import re
import shutil
import sqlite3
import threading
import tomllib

import pytest

from client import Client
from conftest import finish, make_world
from operated import (
    OPERATING,
    PROVISIONING,
    STUBS,
    Operated,
    SlowRail,
    completed,
    fill,
    in_mode_test,
    migrated,
    of_services,
    on_sqlite,
    rows_of,
)
from programs import EMBEDDED, MASTER_KEY, Installation, run
from shown import DEPLOY, DOCS, PAGES, blocks, commands, section, statements

# Statements that no database of these suites runs, with the reason.
NOT_RUN = {
    "SELECT … FOR UPDATE": "it is the form of a statement",
    "create_reference_table": "it needs Citus",
    "create_distributed_table": "it needs Citus",
}
# Statements about the server itself.
SERVER_ONLY = "pg_total_relation_size"
# The rest of command lines that a page shortens.
SHORTENED = {
    "pools-service config --config …": "pools-service config --config /etc/penstock/penstock.toml",
    "penstock verify --database-url sqlite:///backup/….db": "penstock verify --database-url sqlite:///backup/it.db",
    "penstock export ledger --partner acme --from … --to …": "penstock export ledger --partner acme --from 2026-11-01 --to 2027-11-01",
}
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the operator's commands change their user, which needs root")


# rule: program.config-masked
def test_configuration_of_the_guide_is_accepted(installation):
    [written, *_] = blocks(OPERATING.read_text(), "toml")
    file = installation.write(written, "penstock.toml")
    settings = {"PENSTOCK_MASTER_KEY": MASTER_KEY, "PENSTOCK_DATABASE_URL": "", "PENSTOCK_POOLS_LISTEN": ""}
    shown = installation.pools_service("--config", file, "config", **settings)
    assert (shown.code, MASTER_KEY in shown.out) == (0, False), shown.err
    in_force = tomllib.loads(shown.out)
    for name, value in tomllib.loads(written).items():
        assert in_force[name] == (",".join(value) if isinstance(value, list) else value), name


def trading(partner, stop, settled):
    """Buys and polls until the stop signal; records acknowledged ids as rows have them: without kind and mode."""
    client = partner.client.fork()
    while not stop.is_set():
        quote = partner.quote("10.00", client=client)
        assert partner.transact(quote["quoteId"], client=client).status == 200
        assert partner.poll(quote["quoteId"], client=client)["status"] == "settled"
        settled.append(quote["quoteId"].rsplit("_", 1)[1])


def vacuumed(database, copy):
    with sqlite3.connect(database, timeout=30) as source:
        source.execute("VACUUM INTO ?", (str(copy),))


def backed_up(database, copy):
    with sqlite3.connect(database, timeout=30) as source, sqlite3.connect(copy) as target:
        source.backup(target)


def trades_in(copy):
    with sqlite3.connect(f"file:{copy}?mode=ro", uri=True) as database:
        return {row[0] for row in database.execute("SELECT quote_id FROM trades")}


def restore(world, copy):
    """Follows the guide: moves all three files away, puts the backup in their place and verifies it before serving."""
    database = world.installation.database
    for file in database.parent.glob(f"{database.name}*"):
        file.rename(file.with_name(f"lost-{file.name}"))
    shutil.copy(copy, database)
    world.installation.verify()
    world.service = world.installation.start()


# rule: cli.verify
def test_backups_taken_under_load_hold_what_was_acknowledged(tmp_path, contract):
    world = make_world(tmp_path / "live", contract)
    partner = world.partner(funds="100000.00")
    stop, settled = threading.Event(), []
    trader = threading.Thread(target=trading, args=(partner, stop, settled), daemon=True)
    trader.start()
    copies = []
    for number in range(6):
        before = len(settled)
        while len(settled) < before + 5:
            assert trader.is_alive(), "trading ended by itself"
        acknowledged = set(settled)
        copy = tmp_path / f"backup-{number}.db"
        (vacuumed if number % 2 else backed_up)(world.installation.database, copy)
        copies.append((copy, acknowledged))
    stop.set()
    trader.join()
    key = (world.installation.folder / "master.key").read_text().strip()
    for copy, acknowledged in copies:
        assert acknowledged <= trades_in(copy)
        done = world.installation.penstock("verify", PENSTOCK_DATABASE_URL=f"sqlite://{copy}", PENSTOCK_MASTER_KEY=key)
        assert done.code == 0, done.out + done.err
    finish(world)


def test_restored_database_continues_from_its_backup(tmp_path, contract):
    world = make_world(tmp_path / "live", contract)
    partner = world.partner()
    world.installation.credit(partner.id, "1000.00", ref="before")
    kept = partner.trade("100.00")
    copy = tmp_path / "backup.db"
    vacuumed(world.installation.database, copy)
    world.installation.credit(partner.id, "500.00", ref="after")
    assert partner.poll(kept["quoteId"])["status"] == "settled"
    lost = partner.trade("200.00")
    assert world.service.stop() == 0

    restore(world, copy)
    partner.client = world.client(partner.secret)
    assert partner.balance() == "900.00", "the later deposit and the later trade are unknown"
    partner.client.refused(404, "resource_not_found", "GET", f"/pools/transactions/{lost['quoteId']}")
    assert world.installation.credit(partner.id, "1000.00", ref="before")["applied"] is False
    assert world.installation.credit(partner.id, "500.00", ref="after")["applied"] is True
    assert partner.poll(kept["quoteId"])["status"] == "settled", "the engine is asked again"
    assert partner.poll(partner.trade("10.00")["quoteId"])["status"] == "settled"
    assert partner.balance() == "1390.00"
    finish(world)


@pytest.fixture(scope="module")
def operated():
    """An installation as the pages set it up, with rows of trades, payments and deliveries."""
    operated = Operated()
    try:
        operated.install()
        operated.provision()
        operated.serve()
        shop = operated.folder / "shell" / "shop.toml"

        def apply(text):
            shop.write_text(text)
            operated.pasted("penstock apply -f shop.toml")

        credit = "penstock balance credit --partner {} --currency EUR --amount 1000.00 --ref first"
        operated.known = fill(operated.services, apply, lambda partner: operated.pasted(credit.format(partner)))
        yield operated
    finally:
        operated.stop()


def runs(statement):
    return not any(part in statement for part in NOT_RUN)


# rule: docs.statements-run
@ROOT
def test_statements_of_the_pages_find_rows_on_postgres(operated):
    shown = list(dict.fromkeys(statements()))
    assert all(any(part in statement for _, statement in shown) for part in NOT_RUN), "the list of exceptions is exact"
    ran = [(page, statement) for page, statement in shown if runs(statement)]
    assert {page for page, _ in ran} == {"operating.md", "scaling.md"}
    for page, statement in ran:
        rows = operated.query(statement)
        assert rows and all(rows), f"{page}: {statement}"
        assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", "".join(rows)), f"{page}: an id as the server stores it: {rows}"


# rule: docs.statements-run
@EMBEDDED
def test_statements_of_the_pages_find_rows_on_sqlite(tmp_path):
    rail = SlowRail(seed=7)
    installation = Installation(tmp_path / "penstock", **of_services(rail))
    [file, *_] = blocks(PROVISIONING.read_text(), "toml")
    installation.apply(file)
    with installation.start() as pools, installation.start_gate() as gate:
        known = fill((pools, gate), installation.apply, lambda partner: installation.credit(partner, "1000.00"))
        for page, statement in dict.fromkeys(statements()):
            if not runs(statement) or SERVER_ONLY in statement:
                continue
            sql = completed(in_mode_test(on_sqlite(statement)), known)
            assert rows_of(installation.database, sql), f"{page}: {sql}"


# rule: docs.commands-run
@ROOT
def test_blocks_of_the_pages_run_in_the_operators_shell(operated):
    """Those that set up the installation have run before, and those that replace its database run last."""
    database = operated.folder / "var" / "lib" / "penstock" / "penstock.db"
    migrated(database)
    earlier = [*blocks((DEPLOY / "README.md").read_text()), *blocks(PROVISIONING.read_text())]
    earlier += blocks(section(OPERATING, "## On a database server").partition("### One role per person")[0])
    last = blocks(section(OPERATING, "## Restore"))
    for page in PAGES:
        for block in blocks(page.read_text()):
            if block not in earlier + last:
                operated.pasted(block)
    assert set((operated.folder / "stubs").read_text().split()) == set(STUBS), "the list of programs that do nothing is exact"


# rule: docs.commands-run
@ROOT
def test_command_lines_of_the_pages_run_in_the_operators_shell(operated):
    """A command without arguments is a name: its help is shown."""
    shown = dict.fromkeys(words for _, words in commands())
    assert set(SHORTENED) <= set(shown), "the list of shortened commands is exact"
    # The user of the commands opens this copy for writing.
    copy = operated.folder / "backup" / "it.db"
    migrated(copy)
    operated.pasted("chmod 0777 /backup/ && chmod 0666 /backup/it.db")
    created = operated.pasted("penstock key create --partner acme --kind secret --output json")
    key = {"key_test_…": re.search(r'"(key_test_\w+)"', created)[1]}
    for words in shown:
        whole = SHORTENED.get(words, words) if " -" in words else f"{words} --help"
        operated.pasted(completed(in_mode_test(whole), key))


# rule: docs.commands-run
@ROOT
def test_verification_of_the_page_reads_the_standby(operated):
    [block] = blocks((DOCS / "high-availability.md").read_text())
    done = operated.shell(block)
    assert done.code == 0, done.out + done.err
    assert done.err.strip() == f"test, postgres://127.0.0.1:{operated.standby.port}/penstock"


# rule: docs.commands-run
@ROOT
def test_variables_of_the_operator_reach_the_program_as_the_services_user(operated):
    url = operated.url("OPERATE")
    assert "&" in url
    assert operated.pasted("as_operator sh -c 'echo \"$PENSTOCK_DATABASE_URL\"; id -un; echo \"$HOME\"'").split() == [
        url, "nobody", f"{operated.folder}/var/lib/penstock",
    ]
    refused = operated.shell("as_operator cat /etc/penstock/operator.env")
    assert refused.code != 0 and url not in refused.out + refused.err, "the user cannot read the file itself"


# rule: docs.commands-run
@ROOT
def test_log_of_the_server_names_the_person_who_changed_something(operated):
    """With the role of the page."""
    [role] = [block for block in blocks(OPERATING.read_text()) if "log_statement" in block]
    if "ANNA_PASSWORD" not in (operated.folder / "state").read_text():
        operated.pasted(role)
    url = operated.url("OPERATE").replace(
        f"penstock_operate:{operated.password('OPERATE')}", f"penstock_anna:{operated.password('ANNA')}"
    )
    settings = {"PENSTOCK_DATABASE_URL": url, "PENSTOCK_MASTER_KEY": MASTER_KEY}
    installation = Installation(operated.folder / "anna", **settings)
    installation.credit("acme", "7.00", ref="by-anna")
    installation.operator("key", "create", "--partner", "acme", "--kind", "secret")
    log = [line for line in operated.postgres.log().splitlines() if "penstock_anna@penstock" in line]
    for table in ("deposits", "api_keys"):
        assert any("INSERT" in line and table in line for line in log), log


# rule: docs.commands-run
@ROOT
def test_dump_of_the_server_takes_its_place(operated):
    """After the services have stopped; the dump is that of the page."""
    if not (operated.folder / "shell" / "penstock.dump").exists():
        for block in blocks(section(OPERATING, "### A server")):
            operated.pasted(block)
    assert f"test, postgres://127.0.0.1:{operated.postgres.port}/penstock_restored\n" in operated.printed
    operated.stop_services()
    before = operated.query("SELECT count(*) FROM trades")
    for block in blocks(section(OPERATING, "## Restore")):
        operated.pasted(block)
    operated.serve()
    assert Client(operated.services[0]).root("GET", "/health").status == 200
    assert operated.query("SELECT count(*) FROM trades") == before
    operated.pasted("penstock verify")


# rule: docs.commands-run
def test_log_that_logrotate_truncates_is_complete(installation):
    """By the configuration of the page, between requests."""
    [rotation] = blocks((DOCS / "logging.md").read_text(), "text")
    file = installation.write(rotation.replace("/var/log/penstock/", f"{installation.folder}/"), "logrotate.conf")
    file.chmod(0o644)
    command = ["logrotate", "--force", "--state", installation.folder / "state", file]
    seen = []
    with installation.start() as service:
        for _ in range(3):
            seen.append(Client(service).get("/pools").headers["x-request-id"])
            service.logs(seen[-1])
            done = run(command, {})
            assert done.code == 0, done.err
            assert service.log() == ""
    rotated = "".join(gzip.decompress(old.read_bytes()).decode() for old in installation.folder.glob("*.log.*.gz"))
    assert all(request in rotated for request in seen)
    assert service.log_lines(), "the truncated file has whole lines only"
