"""Fixtures of all suites: one provisioned service, and partners created per test."""

import secrets

import pytest

from client import Client
from contract import Contract
from programs import Installation
from provisioning import POOLS, Partner, new_key, partner_toml, pool_toml, profile, terms_for
from servers import Postgres, own_folder
from workers import Scheduling, arranged


class World:
    """An installation, its running service, and the partners provisioned in it."""

    def __init__(self, installation, service, contract):
        self.installation = installation
        self.service = service
        self.contract = contract

    def client(self, key=None):
        return Client(self.service, key, self.contract)

    def partner(self, funds=None, top=None, terms=None, receipts=None, name=None, gate=None, gate_webhook=None, **pools):
        """A new partner for one test."""
        who = f"{name or 'p'}-{secrets.token_hex(5)}"
        values = profile(**pools)
        rows = terms_for(values.get("allowed", [])) if terms is None else terms
        secret, publishable = new_key("secret"), new_key("publishable")
        client = self.client(secret)
        partner = Partner(self, who, secret, publishable, client, values, rows, top or {}, gate, gate_webhook)
        self.installation.apply(partner.toml())
        if funds:
            partner.fund(funds)
        if receipts:
            partner.receive(receipts)
        return partner


def pytest_configure(config):
    config.addinivalue_line("markers", "browsers: needs Firefox and WebKit")
    config.addinivalue_line("markers", "alerts: the alerts that the test causes")


def pytest_collection_modifyitems(config, items):
    """Deselects the tests that need Firefox and WebKit, unless `-m` names their marker. Arranges the tests for several workers."""
    if "browsers" not in config.option.markexpr:
        others = [item for item in items if item.get_closest_marker("browsers")]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
    if hasattr(config, "workerinput"):
        items[:] = arranged(items)


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


def pytest_testnodedown(node, error):
    """Notes a worker that has died. Its tests have results, but what follows them, such as the audit of its database, has not run."""
    if error:
        node.config.dead_worker = f"{node.gateway.id}: {error}"


def pytest_sessionfinish(session):
    dead = getattr(session.config, "dead_worker", None)
    if dead:
        print(f"\na worker died: {dead}")
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR


@pytest.fixture(scope="session")
def contract():
    return Contract()


def everything():
    """The pools of every shared service, and one that no partner is allowed in."""
    return "".join(pool_toml(pool) for pool in POOLS) + pool_toml("USD-USDC", ["ethereum"], available=False)


def make_world(folder, contract, **settings):
    # A quote that a slow machine made long ago can still be executed.
    settings = {"PENSTOCK_QUOTE_TTL": "10m", **settings}
    installation = Installation(folder, **settings)
    installation.apply(everything())
    return World(installation, installation.start(), contract)


def finish(world):
    """Expects an orderly shutdown, readable logs, no 5xx and a clean audit."""
    assert world.service.stop() == 0
    refused = {"side_not_enabled"}  # 501 is a documented refusal, not a failure
    failures = [line for line in world.service.log_lines() if line.get("level") == "ERROR"]
    failures = [line for line in failures if line.get("error.code") not in refused]
    assert not failures, failures[:3]
    world.installation.verify()


@pytest.fixture(scope="session")
def world(tmp_path_factory, contract):
    """A service without throttles."""
    world = make_world(tmp_path_factory.mktemp("world"), contract)
    yield world
    finish(world)


@pytest.fixture(scope="session")
def gate_service(world):
    """The gate on the database of `world`, without throttles."""
    service = world.installation.start_gate()
    yield service
    assert service.stop() == 0
    failures = [line for line in service.log_lines() if line.get("level") == "ERROR"]
    assert not failures, failures[:3]


@pytest.fixture(scope="session")
def quick(tmp_path_factory, contract):
    """A service whose quotes expire while a test waits."""
    world = make_world(tmp_path_factory.mktemp("quick"), contract, PENSTOCK_QUOTE_TTL="800ms")
    yield world
    finish(world)


@pytest.fixture(scope="session")
def postgres():
    """A private PostgreSQL that no test stops."""
    with own_folder() as folder, Postgres(folder) as server:
        yield server


@pytest.fixture
def installation(tmp_path):
    """An empty folder for this test."""
    return Installation(tmp_path / "penstock")


@pytest.fixture(scope="module")
def shopper(world):
    """A funded partner for tests of single responses."""
    return world.partner(funds="1000000.00", name="shopper")


@pytest.fixture
def partner_file():
    """A complete file for one partner with literal keys."""

    def make(who="acme", pools=None, **more):
        keys = more.pop("keys", [])
        values = profile(allowed=["EUR-USDT"]) if pools is None else pools
        return pool_toml("EUR-USDT") + partner_toml(who, pools=values, terms=terms_for(["EUR-USDT"]), keys=keys, **more)

    return make
