"""Clients from independent generators: they compile and complete the main flow against the services."""

import json
import os

import pytest
from generated import LANGUAGES
from provisioning import ADDRESS, gate_profile

SHOP = "https://shop.example"


@pytest.fixture(scope="module")
def shop(world):
    return world.partner(funds="1000.00", name="clients", gate=gate_profile(SHOP))


@pytest.fixture(scope="module", params=LANGUAGES)
def programs(request, tmp_path_factory):
    """One language's client of each service: generated, compiled and run."""
    return LANGUAGES[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture
def does(shop, gate_service, programs):
    """Runs the program of a service and expects success."""
    settings = {
        "POOLS_URL": shop.world.service.address,
        "GATE_URL": gate_service.address,
        "SECRET_KEY": shop.secret,
        "ADDRESS": ADDRESS,
        "RETURN_URL": f"{SHOP}/done",
    }

    def run(service):
        done = programs(service, {**os.environ, **settings})
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    return run


# rule: openapi.clients
def test_client_buys(shop, does):
    said = does("pools")
    trade = shop.record(said["transactId"])
    assert (trade["status"], trade["fiatAmount"]) == ("settled", "100.00")


# rule: openapi.clients
def test_client_opens_a_session_and_moves_money(shop, gate_service, does):
    said = does("gate")
    gate = type(shop.client)(gate_service, shop.secret)
    assert gate.ok("GET", f"/rails/pay_ins/{said['payIn']}")["session_id"] == said["session"]
    assert gate.ok("GET", f"/rails/pay_outs/{said['payOut']}")["status"] == "settled"
    assert gate.ok("GET", f"/gate_sessions/{said['session']}")["status"] == "completed"
