"""The web sources of the gate: their browser tests, and the committed files that are built from them."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "crates/gate-http/web"
WEB = Path(os.environ["WEB_DIR"])


def run(*command, seconds=600, folder=WEB):
    """Runs a command. The limit is far beyond its usual time: it ends a command that hangs, never one that is slow."""
    browsers = {"CHROMIUM_PATH": os.environ["CHROMIUM_BIN"], "CHROMIUM_WITH_WINDOWS_PATH": os.environ["CHROMIUM_WITH_WINDOWS_BIN"]}
    environment = {**os.environ, **browsers}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as written:
        # The command leads its own group, so that a time-out also ends the browsers that it started.
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=written, stderr=subprocess.STDOUT, start_new_session=True)
        ended = True
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        written.seek(0)
        output = written.read()
    assert ended, f"{' '.join(map(str, command))} took more than {seconds} s. Its output so far:\n{output}"
    return process.returncode, output


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_committed_assets_match_their_sources(tmp_path):
    build = tmp_path / "web"
    shutil.copytree(WEB, build, symlinks=True, ignore=shutil.ignore_patterns("dist", "node_modules"))
    (build / "node_modules").symlink_to(WEB / "node_modules")
    code, output = run("npm", "run", "build", folder=build)
    assert code == 0, output
    committed, built = files(SOURCES / "dist"), files(build / "dist")
    assert committed, "no file is committed"
    assert sorted(committed) == sorted(built)
    changed = [str(name) for name, content in built.items() if committed[name] != content]
    assert changed == [], "run `npm run build` in crates/gate-http/web and commit dist"


def suites(folder="*"):
    """The files of tests, as `folder/name`: most in JavaScript, those of the flow in TypeScript."""
    found = [path for path in (SOURCES / "test").glob(f"{folder}/*.test.*") if path.suffix in (".mjs", ".ts")]
    assert found, f"test/{folder} has no suite"
    return sorted(f"{path.parent.name}/{path.name.partition('.')[0]}" for path in found)


def expect_passing(suite):
    (path,) = (WEB / "test").glob(f"{suite}.test.*")
    loader = ["--import", "tsx"] if path.suffix == ".ts" else []
    code, output = run("node", *loader, "--test", path)
    passed = re.search(r"^# pass (\d+)$", output, re.MULTILINE)
    assert code == 0 and passed and int(passed.group(1)) > 0, output


# rule: gate.sdk.served-alone, gate.sdk.own-properties, gate.sdk.required, gate.sdk.order, gate.sdk.component, gate.sdk.copies
# rule: gate.sdk.messages, gate.sdk.wishes, gate.sdk.deposit, gate.widget.asks, gate.widget.simulated, gate.widget.sandbox-token
# rule: gate.widget.way-back
# `test_checkout.py` runs the suites of `e2e`, which need a running sandbox.
@pytest.mark.parametrize("suite", [suite for suite in suites() if not suite.startswith("e2e/")])
def test_web_suite_passes_in_browser(suite):
    expect_passing(suite)
