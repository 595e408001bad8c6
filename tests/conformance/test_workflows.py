"""The CI workflows are safe to copy: every action is pinned, and no pull request can read a secret."""

import subprocess
import sys
from pathlib import Path

WORKFLOWS = Path(__file__).resolve().parents[2] / ".github"


def zizmor(folder):
    command = [Path(sys.executable).with_name("zizmor"), "--offline", "--no-progress", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_workflows_have_no_finding():
    done = zizmor(WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_checker_finds_an_unpinned_action(tmp_path):
    text = (WORKFLOWS / "workflows" / "ci.yml").read_text()
    step = next(line for line in text.splitlines() if "uses: actions/checkout@" in line)
    loose = step.split("@")[0] + "@main"
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (folder / "ci.yml").write_text(text.replace(step, loose))
    done = zizmor(tmp_path / ".github")
    assert done.returncode != 0 and "unpinned" in done.stdout, done.stdout + done.stderr
