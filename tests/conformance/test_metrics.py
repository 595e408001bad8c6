"""Metrics, scraped by a real Prometheus and used by the dashboard and the alerts."""

import contextlib
import json
import re
import time
from pathlib import Path

import pytest
import yaml

from conftest import finish, make_world
from programs import program
from prometheus import Prometheus, promtool
from test_webhooks import Receiver, listen

RUNBOOK = re.compile(r"docs/operating\.md#(\w+)")
# Exported only with rate sources, which this service does not have.
OF_HTTP_RATES = {"penstock_rate_pairs"}
METRIC = re.compile(r"\b(?:penstock|process|invariant)_[a-z_]+\b")
# Grafana's values of its variables.
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}


def deployed(*parts):
    return Path(program("DEPLOY_DIR"), *parts)


def rules():
    groups = yaml.safe_load(deployed("prometheus", "penstock.rules.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def dashboard():
    return json.loads(deployed("grafana", "penstock.json").read_text())


def filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, f"a variable without a value: {expression}"
    return expression


def panels():
    """Title and expression of every panel."""
    shown = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]
    return [(panel["title"], filled(target["expr"])) for panel in shown for target in panel["targets"]]


def test_promtool_passes_the_rules_and_their_own_tests():
    folder = deployed("prometheus")
    promtool("check", "rules", "penstock.rules.yml", cwd=folder)
    promtool("check", "config", "prometheus.yml", cwd=folder)
    promtool("test", "rules", "penstock.rules.test.yml", cwd=folder)


def test_every_alert_is_tried_quiet_and_firing():
    tests = yaml.safe_load(deployed("prometheus", "penstock.rules.test.yml").read_text())["tests"]
    tried = {test["name"]: test["alert_rule_test"] for test in tests}
    assert set(tried) == set(rules())
    for name, cases in tried.items():
        assert {case["alertname"] for case in cases} == {name}
        first, second, *_ = [bool(case["exp_alerts"]) for case in cases]
        assert (first, second) == (False, True), name


def test_every_alert_has_its_section_in_the_operating_guide():
    guide = Path(program("DOCS_DIR"), "operating.md").read_text()
    sections = set(re.findall(r"^#+ (Penstock\w+)$", guide, re.MULTILINE))
    assert sections == set(rules())
    for name, rule in rules().items():
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name
        notes = rule["annotations"]
        assert set(notes) == {"summary", "action", "runbook"}, name
        assert RUNBOOK.fullmatch(notes["runbook"])[1] == name.lower()


def test_grafana_reads_the_dashboard():
    board = dashboard()
    assert board["schemaVersion"] >= 39 and board["uid"] == "penstock"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    cells = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        across, down = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        taken = {(x, y) for x in across for y in down}
        assert not taken & cells, f"{panel['title']} overlaps another panel"
        cells |= taken


# Durations without a call are no numbers, and a pools service calls neither a rail nor a verifier.
OF_THE_GATE = ("penstock_rail_call_duration_seconds", "penstock_verifier_call_duration_seconds")


@pytest.fixture
def measured(tmp_path, contract):
    """A service that serves metrics and has a low limit."""
    settings = {
        "PENSTOCK_METRICS_LISTEN": "127.0.0.1:0",
        "PENSTOCK_THROTTLE": "on",
        "PENSTOCK_THROTTLE_POOLS": "100/60s",
    }
    world = make_world(tmp_path / "measured", contract, **settings)
    yield world
    finish(world)


@contextlib.contextmanager
def scraped(service, folder):
    """The shipped Prometheus after its first scrape of the service."""
    service.logs("Serving metrics")
    address = [line["metrics.address"] for line in service.log_lines() if line["message"] == "Serving metrics"]
    assert len(address) == 1
    with Prometheus(deployed("prometheus"), folder / "prometheus", address[0]) as prometheus:
        prometheus.eventually(lambda: prometheus.values('up{job="penstock"} == 1'), "the service is scraped")
        yield prometheus


def some_traffic(partner):
    """Causes some of every metric that a partner can cause."""
    bought = partner.quote("100.00")
    for _ in range(2):
        assert partner.transact(bought["quoteId"], idempotency=f"once-{bought['quoteId']}").status == 200
    partner.poll(bought["quoteId"])
    failing = partner.trade("100.31")
    partner.poll(failing["quoteId"])
    for amount, code in (("4000.00", "insufficient_balance"), ("10.51", "reservation_failed")):
        assert partner.transact(partner.quote(amount)["quoteId"]).code == code
    for fraction in (".11", ".12", ".13"):
        partner.client.call("POST", "/pools/EUR-USDT/quote", partner.ask("50" + fraction))
    partner.client.get("/pools/quotes/pq_test_unknown")


# rule: config.metrics-listen
def test_prometheus_evaluates_every_panel_and_every_alert(measured, tmp_path):
    receiver = Receiver()
    partner = measured.partner(funds="1000.00", velocity_cap_usdt="900000")
    listen(partner, receiver)
    with scraped(measured.service, tmp_path) as prometheus:
        for _ in range(4):
            some_traffic(partner)
            time.sleep(1.2)
        while partner.client.get("/pools").status != 429:
            pass
        receiver.expect(4)
        throttled = "changes(penstock_throttle_refusals_total[5m]) > 0"
        prometheus.eventually(lambda: prometheus.values(throttled), "the last of the traffic is scraped")

        shown = [panel for panel in panels() if not any(metric in panel[1] for metric in OF_THE_GATE)]
        assert len(shown) == len(panels()) - len(OF_THE_GATE)
        for title, expression in shown:
            prometheus.eventually(lambda asked=expression: prometheus.values(asked), f"data for {title}: {expression}")
        alerts = prometheus.alerts()
        assert set(alerts) == set(rules())
        known = set(prometheus.ask("label/__name__/values"))
        for name, rule in alerts.items():
            prometheus.ask("query", query=rule["query"])
            assert rule["health"] == "ok", f"{name}: {rule.get('lastError')}"
            missing = set(METRIC.findall(rule["query"])) - known - OF_HTTP_RATES
            assert not missing, f"{name} uses metrics that no service exports: {missing}"
        firing = {name for name, rule in alerts.items() if rule["state"] == "firing"}
        assert not firing, "nothing is wrong here"
        prometheus.ask("query", query=filled(dashboard()["annotations"]["list"][0]["expr"]))
    receiver.server.shutdown()


def test_alerts_fire_for_a_panic_and_for_a_commit_in_doubt(tmp_path, contract):
    broken = "quote.insert.before=1*panic;transact.commit.after=1*return(fail)"
    world = make_world(tmp_path / "broken", contract, PENSTOCK_METRICS_LISTEN="127.0.0.1:0", FAILPOINTS=broken)
    partner = world.partner(funds="1000.00")
    with scraped(world.service, tmp_path) as prometheus:
        partner.client.refused(500, "internal_error", "POST", "/pools/EUR-USDT/quote", partner.ask("100.00"))
        quote = partner.quote("100.00")
        doubted = partner.transact(quote["quoteId"], idempotency="once")
        assert (doubted.status, doubted.code) == (503, "outcome_unknown")
        assert partner.transact(quote["quoteId"], idempotency="once").json["idempotent"] is True
        expected = {"PenstockPanicked", "PenstockCommitUnknown"}

        def firing():
            return {name for name, rule in prometheus.alerts().items() if rule["state"] == "firing"}

        prometheus.eventually(lambda: expected <= firing(), "both alerts fire")
        assert firing() == expected
    assert world.service.stop() == 0
    world.installation.verify()
