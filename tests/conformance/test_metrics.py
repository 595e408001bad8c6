"""Metrics, scraped by a real Prometheus and used by the dashboard and the alerts."""

import json
import re
import time
from pathlib import Path

import pytest
import yaml

from conftest import World, everything, finish
from programs import Installation, program
from prometheus import promtool, rules, scraped
from servers import OnServer
from test_webhooks import Receiver, listen

RUNBOOK = re.compile(r"\{\{ \$externalLabels\.docs \}\}/operating\.md#(\w+)")
# Exported only with rate sources, which this service does not have, by a gate service, or by `penstock verify`.
OF_OTHERS = {
    "penstock_rate_pairs",
    "penstock_held_elsewhere",
    "penstock_rail_findings_total",
    "penstock_verify_ok",
    "penstock_verify_completed_timestamp_seconds",
}
# Exported only for a database file.
OF_FILES = {"penstock_store_free_bytes", "penstock_store_size_bytes"}
METRIC = re.compile(r"\b(?:penstock|process|invariant)_[a-z_]+\b")
# Grafana's values of its variables.
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}


def deployed(*parts):
    return Path(program("DEPLOY_DIR"), *parts)


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
        assert set(notes) == {"summary", "action", "runbook_url"}, name
        assert RUNBOOK.fullmatch(notes["runbook_url"])[1] == name.lower()


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


# Durations without a call are no numbers, and a pools service has neither a rail nor a verifier.
OF_THE_GATE = (
    "penstock_rail_call_duration_seconds",
    "penstock_verifier_call_duration_seconds",
    "penstock_held_elsewhere",
    "penstock_rail_findings_total",
    "penstock_rail_notifications_total",
    "penstock_rail_open_items",
)


@pytest.fixture(params=[Installation, OnServer])
def measured(request, tmp_path, contract):
    """A service that serves metrics and has a low limit, on either kind of database."""
    settings = {
        "PENSTOCK_METRICS_LISTEN": "127.0.0.1:0",
        "PENSTOCK_QUOTE_TTL": "10m",
        "PENSTOCK_THROTTLE": "on",
        "PENSTOCK_THROTTLE_POOLS": "100/60s",
    }
    server = [request.getfixturevalue("postgres")] if request.param is OnServer else []
    installation = request.param(tmp_path / "measured", *server, **settings)
    installation.apply(everything())
    world = World(installation, installation.start(), contract)
    yield world
    finish(world)


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
    absent = OF_FILES if isinstance(measured.installation, OnServer) else set()
    with scraped(tmp_path, measured.service) as prometheus:
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
        known = set(prometheus.ask("label/__name__/values"))
        assert known.isdisjoint(absent)
        for title, expression in shown:
            if absent & set(METRIC.findall(expression)):
                continue
            prometheus.eventually(lambda asked=expression: prometheus.values(asked), f"data for {title}: {expression}")
        alerts = prometheus.alerts()
        assert set(alerts) == set(rules())
        for name, rule in alerts.items():
            prometheus.ask("query", query=rule["query"])
            assert rule["health"] == "ok", f"{name}: {rule.get('lastError')}"
            missing = set(METRIC.findall(rule["query"])) - known - OF_OTHERS - absent - set(OF_THE_GATE)
            assert not missing, f"{name} uses metrics that no service exports: {missing}"
        assert not prometheus.in_state("firing"), "nothing is wrong here"
        prometheus.ask("query", query=filled(dashboard()["annotations"]["list"][0]["expr"]))
    receiver.server.shutdown()
