"""A real Prometheus for one test: the shipped configuration and rules, scraping one service."""

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from programs import PROGRAM_TIMEOUT, environment, program

# The shipped target and interval. The tests have a shorter interval, `SCRAPED_EVERY`.
TARGET, INTERVAL = "127.0.0.1:9464", "15s"
# The shipped target of the gate service, which does not run in these tests.
GATE_TARGET = ', "127.0.0.1:9465"'
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


class Prometheus:
    """Runs until the block ends; `target` is the metrics address of a service."""

    def __init__(self, deploy, folder, target):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        shutil.copy(Path(deploy) / "penstock.rules.yml", self.folder)
        config = (Path(deploy) / "prometheus.yml").read_text()
        for shipped, ours in ((TARGET, target), (GATE_TARGET, ""), (INTERVAL, SCRAPED_EVERY)):
            assert shipped in config, f"{shipped} is not in the shipped configuration"
            config = config.replace(shipped, ours)
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
