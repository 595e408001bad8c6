"""A live gate that pays through the rail for trials, a program of its own. The gate is killed at each call that the rail gets."""

import re
import secrets
import subprocess
import threading
from types import SimpleNamespace

import pytest
import requests
from programs import MASTER_KEY, Installation, environment, program
from provisioning import gate_profile, partner_toml
from test_payments import SHOP, Checkout, ended

RATES = 'valid_until = "2099-01-01T00:00:00Z"\n[[rates]]\npair = "EUR-USDT"\nmid = "1.0850"\nspread_bps = 25\n'
CALL = re.compile(r"^test-rail: (?P<method>[A-Z]+) (?P<path>\S+) \d+$")


class TrialRail:
    """`test-rail` in a process of its own. It prints each call before it responds, so a gate that dies then reads no response."""

    def __init__(self):
        self.settings = {"PENSTOCK_RAIL_SECRET": "secret-of-the-trial"}
        self.process = subprocess.Popen(
            [program("TEST_RAIL_BIN"), "--listen", "127.0.0.1:0", "--delay-ms", "200"],
            env=environment(self.settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        address = next(line for line in self.process.stdout if "listening on" in line).split()[-1]
        self.settings["PENSTOCK_RAIL"] = f"http:{address}"
        self.begun, self.fatal, self.victim, self.killed = set(), "", None, threading.Event()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        for line in self.process.stdout:
            call = CALL.match(line.rstrip())
            if call and call["method"] == "PUT":
                self.begun.add(call["path"])
            if call and self.victim and self.fatal in line:
                self.victim.kill()
                self.victim = None
                self.killed.set()

    def kill_at(self, fatal, gate):
        """Kills the gate at the next call that contains this text."""
        self.begun.clear()
        self.killed.clear()
        self.fatal, self.victim = fatal, gate

    def end(self):
        self.process.kill()
        self.process.wait(60)


class LiveCheckout(Checkout):
    """A partner whose users pay real money."""

    def __init__(self, folder, rail):
        rates = folder / "rates.toml"
        rates.write_text(RATES)
        settings = {
            "PENSTOCK_MODE": "live",
            "PENSTOCK_MASTER_KEY": MASTER_KEY,
            "PENSTOCK_RATES": f"static:{rates}",
            "PENSTOCK_GATE_ORIGIN": "https://gate.example",
            "PENSTOCK_WIDGET_ORIGIN": "https://pay.example",
            "PENSTOCK_SIGNED_QUOTE_TTL": "10m",
        }
        installation = Installation(folder / "live", **rail.settings, **settings)
        keys = [{"kind": "secret"}, {"kind": "publishable"}]
        assert installation.penstock("migrate").code == 0
        applied = installation.apply(partner_toml("shop", gate=gate_profile(SHOP), keys=keys))
        self.partner = SimpleNamespace(**{created["kind"]: created["key"] for created in applied["created_keys"]})
        self.world = SimpleNamespace(installation=installation)
        self.gates = [installation.start_gate()]


# rule: gate.payment.once, rail.http.once
@pytest.mark.parametrize("fatal", ["/instructions", "PUT /v1/payments", "GET /v1/payments"])
def test_live_purchase_settles_once_although_the_gate_is_killed_at_a_call(tmp_path, fatal):
    rail = TrialRail()
    try:
        checkout = LiveCheckout(tmp_path, rail)
        session, token = checkout.open(kyc_package={"level": 2})
        quote, key = checkout.quote(token).json(), secrets.token_hex(8)
        rail.kill_at(fatal, checkout.gates[0])
        try:
            first = checkout.pay(token, quote, key=key).text
        except requests.RequestException:
            first = None
        assert rail.killed.wait(60), f"the rail never gets {fatal}"
        checkout.kill_one()
        paid = checkout.pay(token, quote, key=key)
        assert paid.status_code == 201, paid.text
        assert first in (None, paid.text), "a key has one response"
        shown = ended(checkout, token, within=120)
        assert (shown["status"], shown["payment"]["status"]) == ("completed", "completed"), shown
        transactions = checkout.owner("GET", f"transactions?session_id={session}").json()["data"]
        assert [it["status"] for it in transactions] == ["completed"]
        assert len(rail.begun) == 1, rail.begun
        assert checkout.gates[0].stop() == 0
        checkout.world.installation.verify()
    finally:
        rail.end()
