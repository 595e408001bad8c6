"""Follows the operating guide: its configuration, and restored backups that were taken under load."""

import re
import shutil
import sqlite3
import threading
import tomllib
from pathlib import Path

from conftest import finish, make_world
from programs import program

MASTER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def guide():
    return Path(program("DOCS_DIR"), "operating.md").read_text()


# rule: program.config-masked
def test_configuration_of_the_guide_is_accepted(installation):
    written = re.search(r"```toml\n(.*?)```", guide(), re.DOTALL)[1]
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
