"""A rolling upgrade: an old replica restarts after the next release has migrated the database.

No program of an older release exists here, so the current one takes its part, and the test's SQL replaces the next release's
migration: the SQL adds a table and an optional column and records itself as a migrator does. That shows how a program behaves on
a schema that is ahead of its own. It does not show that the migrations of a real next release suit this program; `upgrade.py` shows
that, by hand, with the programs of two releases.
"""

import pytest

from client import Client
from programs import SERVER, await_ready
from provisioning import new_key
from upgrade import Load, provision, trade

NEXT = 9000
ADDED = "CREATE TABLE labels (id integer PRIMARY KEY); ALTER TABLE partners ADD COLUMN label text;"


def migrate(installation, version, description, sql=""):
    """The effect of the next release's migrator."""
    checksum = "'\\x00'" if SERVER else "x'00'"
    record = f"""INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES ({version}, '{description}', TRUE, {checksum}, 0);"""
    installation.change(f"BEGIN; {sql} {record} COMMIT;")


@pytest.fixture
def upgraded(installation):
    """An installation with a partner whose key trades."""
    key = new_key()
    provision(installation, key)
    return installation, key


def trades(service, key):
    def saw(answer):
        assert answer.status in (200, 201), repr(answer)
        return answer

    trade(Client(service, key), saw)


# rule: base.schema-one-ahead
def test_old_replica_restarts_after_an_additive_migration_under_load(upgraded):
    installation, key = upgraded
    with installation.start() as staying:
        load = Load(key, [(staying, trade)] * 2)
        with installation.start() as leaving:
            trades(leaving, key)
        migrate(installation, NEXT, "labels additive", ADDED)
        with installation.start() as back:
            await_ready(back)
            trades(back, key)
        answers = load.stop()
        await_ready(staying)
    assert load.faults == [] and answers["trade", 200] > 0
    installation.verify()


# rule: base.schema-one-ahead
@pytest.mark.parametrize("descriptions", [["labels"], ["labels additive", "names additive"]])
def test_old_replica_refuses_any_other_schema(upgraded, descriptions):
    installation, _ = upgraded
    with installation.start() as staying:
        for version, description in enumerate(descriptions, NEXT):
            migrate(installation, version, description)
        assert Client(staying).root("GET", "/health/ready").status == 503
    refused = installation.pools_service()
    assert refused.code == 1 and str(NEXT + len(descriptions) - 1) in refused.err, refused.err
