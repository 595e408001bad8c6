"""The example files for operators: the real programs accept them unchanged."""

import configparser
import re
import tomllib
from pathlib import Path

from programs import program

MASTER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
# Settings of a test installation that would override the file.
UNSET = {"PENSTOCK_DATABASE_URL": "", "PENSTOCK_POOLS_LISTEN": "", "PENSTOCK_THROTTLE": ""}


def deployed(*parts):
    return Path(program("DEPLOY_DIR"), *parts)


def secrets_example():
    lines = deployed("config", "secrets.env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


# rule: program.config-masked
def test_example_configuration_is_accepted(installation):
    file = deployed("config", "penstock.toml")
    secret = secrets_example()
    password = secret["PENSTOCK_DATABASE_URL"].split("@")[0].rsplit(":", 1)[1]
    # The example names the installed rates file, which `config` reads.
    rates = f"static:{deployed('config', 'rates.toml')}"
    settings = {**UNSET, **secret, "PENSTOCK_MASTER_KEY": MASTER_KEY, "PENSTOCK_RATES": rates}
    shown = installation.pools_service("--config", file, "config", **settings)
    assert (shown.code, shown.err) == (0, "")
    assert MASTER_KEY not in shown.out and password not in shown.out
    in_force = tomllib.loads(shown.out)
    assert in_force["rates"] == rates
    example = tomllib.loads(file.read_text())
    assert Path(example.pop("rates").removeprefix("static:")).name == "rates.toml"
    for name, value in example.items():
        assert in_force[name] == (",".join(value) if isinstance(value, list) else str(value)), name


def test_example_secrets_are_placeholders(installation):
    """The unchanged placeholders are refused, and no service starts."""
    done = installation.pools_service("--config", deployed("config", "penstock.toml"), **{**UNSET, **secrets_example()})
    assert done.code == 2
    assert "PENSTOCK_MASTER_KEY" in done.err


def test_example_partners_and_rates_can_be_applied(installation):
    file = deployed("config", "partners.toml")
    first = installation.operator("apply", "-f", file)
    assert [key["kind"] for key in first["created_keys"]] == ["secret", "publishable"]
    again = installation.operator("apply", "-f", file)
    assert (again["changed"], again["created_keys"], again["created_secrets"]) == ([], [], [])
    with installation.start(PENSTOCK_RATES=f"static:{deployed('config', 'rates.toml')}") as service:
        assert service.running()


def test_units_start_the_programs_with_the_files_of_the_guide():
    for name, words in (
        ("pools-service.service", "/usr/local/bin/pools-service --config /etc/penstock/penstock.toml"),
        ("penstock-verify.service", "/usr/local/bin/penstock --config /etc/penstock/penstock.toml verify"),
    ):
        unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
        unit.optionxform = str
        unit.read_string(deployed("systemd", name).read_text())
        service = unit["Service"]
        assert service["ExecStart"] == words
        assert (service["User"], service["EnvironmentFile"]) == ("penstock", "/etc/penstock/secrets.env")
        # Shutdown takes up to 25 s; a shorter timeout would kill it.
        assert "TimeoutStopSec" not in service or service["TimeoutStopSec"] == "30s"


def test_documentation_that_the_units_name_is_installed_by_the_guide():
    steps = deployed("README.md").read_text()
    installed = re.search(r"^install -m 0644 docs/\*\.md (\S+)$", steps, re.MULTILINE)[1]
    for unit in deployed("systemd").glob("*.service"):
        for named in re.findall(r"^Documentation=file://(\S+)$", unit.read_text(), re.MULTILINE):
            folder, _, name = named.rpartition("/")
            assert f"{folder}/" == installed and Path(program("DOCS_DIR"), name).is_file(), named
