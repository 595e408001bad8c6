"""A real Prometheus for one test: the shipped configuration and rules, scraping services."""

import contextlib
import json
import re
import secrets
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from programs import PROGRAM_TIMEOUT, environment, program

# The shipped targets and interval. The tests have a shorter interval, `SCRAPED_EVERY`.
TARGETS, INTERVAL = '"127.0.0.1:9464", "127.0.0.1:9465"', "15s"
# The job of node_exporter, which the shipped configuration contains as a comment.
NODE_JOB, NODE_TARGET = re.compile(r"^  # (?=- job_name: node$|  static_configs:$|    - targets: )", re.MULTILINE), "127.0.0.1:9100"
# Prometheus chooses its port, and logs it.
LISTENING = re.compile(r'msg="Listening on".* address=(127\.0\.0\.1:\d+)')
# Also the timeout of a scrape.
SCRAPED_EVERY = "1s"


def promtool(*words, cwd):
    """Expects Prometheus' own checker to find nothing."""
    command = [program("PROMTOOL_BIN"), *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PROGRAM_TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


DURATION = re.compile(r"(\d+)([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def shortened(rules):
    """The rules with every duration divided by 60, so that alerts fire in seconds.

    A duration is a range such as `[5m]`, which stays at least 5 s because it must hold two samples, or a wait such as `for: 5m`, which
    becomes at most 10 s. Names, expressions and thresholds stay unchanged.
    """

    def seconds(text):
        number, unit = DURATION.fullmatch(text).groups()
        return int(number) * SECONDS[unit] // 60

    rules = re.sub(r"\[(\w+)\]", lambda found: f"[{max(5, seconds(found[1]))}s]", rules)
    return re.sub(r"(?<=  for: )(\w+)", lambda found: f"{min(10, seconds(found[1]))}s", rules)


class Prometheus:
    """Runs until the block ends.

    `targets` are the metrics addresses of services, and `node` that of a node_exporter. `change` is a function of the text of the rules.
    """

    def __init__(self, deploy, folder, *targets, node=None, change=lambda rules: rules):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        rules = (Path(deploy) / "penstock.rules.yml").read_text()
        (self.folder / "penstock.rules.yml").write_text(change(rules))
        config = (Path(deploy) / "prometheus.yml").read_text()
        ours = ", ".join(f'"{target}"' for target in targets)
        for shipped, replacement in ((TARGETS, ours), (INTERVAL, SCRAPED_EVERY)):
            assert shipped in config, f"{shipped} is not in the shipped configuration"
            config = config.replace(shipped, replacement)
        if node:
            config, lines = NODE_JOB.subn("  ", config)
            assert lines == 3 and NODE_TARGET in config, config
            config = config.replace(NODE_TARGET, node)
        (self.folder / "prometheus.yml").write_text(config)
        promtool("check", "config", "prometheus.yml", cwd=self.folder)
        self.log = self.folder / "prometheus.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    program("PROMETHEUS_BIN"),
                    "--config.file=prometheus.yml",
                    "--storage.tsdb.path=data",
                    "--web.listen-address=127.0.0.1:0",
                ],
                cwd=self.folder,
                env=environment({}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self):
        try:
            found = self.eventually(lambda: LISTENING.search(self.log.read_text()), "it listens")
            self.address = f"http://{found[1]}"
            self.eventually(self.ready, "it is ready")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(PROGRAM_TIMEOUT)
        finally:
            self.process.kill()

    def eventually(self, ask, what):
        end = time.monotonic() + PROGRAM_TIMEOUT
        while not (answer := ask()):
            assert time.monotonic() < end, f"{what}: not within {PROGRAM_TIMEOUT:.0f} s\n{self.log.read_text()}"
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        return answer

    def ready(self):
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready", timeout=PROGRAM_TIMEOUT) as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError):
            return False

    def ask(self, path, **query):
        """One call of its API; a refused expression fails the test with the error."""
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=PROGRAM_TIMEOUT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{query}: {refused.read().decode()}") from None

    def values(self, expression):
        """The current values of an expression, without NaN."""
        found = self.ask("query", query=expression)["result"]
        values = [float(series["value"][1]) for series in found]
        return [value for value in values if value == value]

    def alerts(self):
        """The state of every alert rule, by name."""
        groups = self.ask("rules", type="alert")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def in_state(self, *states):
        """The names of the alerts in one of these states: `inactive`, `pending`, `firing`."""
        return {name for name, rule in self.alerts().items() if rule["state"] in states}

    def fires(self, *names):
        """Waits until these alerts fire."""
        self.eventually(lambda: set(names) <= self.in_state("firing"), f"{names} fire")

    def reload(self, change):
        """Changes the text of the configuration while it runs."""
        file = self.folder / "prometheus.yml"
        file.write_text(change(file.read_text()))
        self.process.send_signal(signal.SIGHUP)


def rules():
    """The shipped rules, by name."""
    groups = yaml.safe_load(Path(program("DEPLOY_DIR"), "prometheus", "penstock.rules.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def metrics_of(service):
    """The address of a service's metrics."""
    service.logs("Serving metrics")
    [address] = [line["metrics.address"] for line in service.log_lines() if line["message"] == "Serving metrics"]
    return address


@contextlib.contextmanager
def scraped(folder, *services, **options):
    """The shipped Prometheus after its first scrape of every service."""
    targets = [metrics_of(service) for service in services]
    deploy = Path(program("DEPLOY_DIR"), "prometheus")
    with Prometheus(deploy, folder / f"prometheus-{secrets.token_hex(4)}", *targets, **options) as prometheus:
        up = 'count(up{job="penstock"} == 1)'
        prometheus.eventually(lambda: prometheus.values(up) == [len(targets)], "the services are scraped")
        # Rules may be evaluated before the first scrape, and then miss the services.
        absent = {"health": "ok", "state": "inactive"}
        prometheus.eventually(lambda: absent.items() <= prometheus.alerts()["PenstockAbsent"].items(), "the rules see the services")
        yield prometheus
