"""After a noted clock jump a service stores nothing until an operator accepts the jump."""

import time

from client import Client
from programs import eventually
from provisioning import ADDRESS, new_key
from upgrade import provision

HOUR = 60 * 60 * 1000
ORDER = {
    "side": "on_ramp",
    "fiatCurrency": "EUR",
    "cryptoCurrency": "USDT",
    "cryptoNetwork": "tron",
    "amount": "20.00",
    "destAddress": ADDRESS,
}


def quote(service, key):
    return Client(service, key).post("/pools/EUR-USDT/quote", ORDER)


# rule: base.clock-jump
def test_service_stores_nothing_until_the_noted_jump_is_accepted(installation):
    key = new_key()
    provision(installation, key)
    assert installation.operator("clock", "show") == {"accepted": False, "jump": None}
    accepted = installation.operator("clock", "accept")
    assert accepted.pop("mode") == "test" and accepted.pop("database")
    assert accepted == {"accepted": False, "jump": None}
    now = int(time.time() * 1000)
    installation.change(f"UPDATE clock_jump SET expected = {now - HOUR}, found = {now}")
    credit = ["balance", "credit", "--partner", "upgrade", "--currency", "EUR", "--amount", "1.00", "--ref", "jumped"]
    with installation.start() as service:
        refused = quote(service, key)
        assert (refused.status, refused.code) == (503, "service_unavailable")
        assert Client(service, key).get("/pools/EUR-USDT/balance").status == 200
        assert installation.penstock(*credit).code == 1
        shown = installation.penstock("clock", "show")
        assert shown.code == 0 and "jumped 3600 s ahead" in shown.out, shown.out
        accepted = installation.operator("clock", "accept")
        assert accepted["accepted"] and accepted["jump"]["seconds"] == 3600
        eventually(lambda: quote(service, key).status == 200, "the service resumes")
        service.logs("The clock jumped ahead")
        assert installation.penstock(*credit).code == 0
    installation.verify()
