"""The example files for operators: the real programs accept them unchanged."""

import configparser
import re
import tomllib
import urllib.request
from pathlib import Path

import pytest
import yaml

from programs import Service, program, run

MASTER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
ORIGINS = ("PENSTOCK_GATE_ORIGIN", "PENSTOCK_WIDGET_ORIGIN")
# Settings of a test installation that would override the file.
UNSET = {f"PENSTOCK_{name}": "" for name in ("DATABASE_URL", "POOLS_LISTEN", "GATE_LISTEN", "WIDGET_LISTEN", "THROTTLE")}


def deployed(*parts):
    return Path(program("DEPLOY_DIR"), *parts)


def example(name):
    """The variables of an example file: lines of a name and a value in double quotes."""
    lines = deployed("config", name).read_text().splitlines()
    return dict(re.fullmatch(r'(\w+)="([^"$`\\]*)"', line).groups() for line in lines if line and not line.startswith("#"))


def secrets_example():
    return example("secrets.env.example")


@pytest.mark.parametrize("name", ["secrets.env.example", "operator.env.example"])
def test_shell_reads_the_values_of_an_example_file(name):
    """A URL has a `&`, which ends a value without quotes."""
    file = deployed("config", name)
    done = run(["sh", "-c", f"set -a; . {file}; env"], {})
    lines = [line for line in done.out.splitlines() if line.startswith("PENSTOCK_")]
    assert (done.code, dict(line.split("=", 1) for line in lines)) == (0, example(name)), done.err
    assert "&" in example(name)["PENSTOCK_DATABASE_URL"]
    assert example(name)["PENSTOCK_MASTER_KEY"] == ""


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


def environment_of_image():
    words = " ".join(re.findall(r"^ENV (.*)$", deployed("Dockerfile").read_text(), re.MULTILINE))
    return dict(word.split("=", 1) for word in words.split())


def compose():
    """The services of the compose file, which merges shared parts with `<<`."""
    return yaml.safe_load(deployed("compose", "compose.yaml").read_text())["services"]


def documented_settings():
    return set(re.findall(r"^\| `(PENSTOCK_\w+)`", Path(program("DOCS_DIR"), "configuration.md").read_text(), re.MULTILINE))


def listeners(service):
    """What a started program says about its listeners, as service and address."""
    found = {}
    for line in iter(lambda: service.lines.get(timeout=60), None):
        name, _, address = line.partition(" on ")
        found[name] = address
        if "widget" in name:
            return found
    raise AssertionError(f"no widget: {found}")


def test_containers_publish_what_the_image_listens_on():
    """Every listener of the image is exposed, and published by the service that has it."""
    image = environment_of_image()
    ports = {name: address.removeprefix("0.0.0.0:") for name, address in image.items()}
    assert set(ports) == {"PENSTOCK_POOLS_LISTEN", "PENSTOCK_GATE_LISTEN", "PENSTOCK_WIDGET_LISTEN"}
    exposed = re.search(r"^EXPOSE (.*)$", deployed("Dockerfile").read_text(), re.MULTILINE)[1].split()
    assert sorted(exposed) == sorted(ports.values())
    published = {name: service.get("ports", []) for name, service in compose().items()}
    inside = {name: [port.rsplit(":", 1)[1] for port in ports] for name, ports in published.items() if ports}
    assert inside == {
        "pools-service": [ports["PENSTOCK_POOLS_LISTEN"]],
        "gate-service": [ports["PENSTOCK_GATE_LISTEN"], ports["PENSTOCK_WIDGET_LISTEN"]],
    }
    for port in published["pools-service"] + published["gate-service"]:
        address, outside, port = port.split(":")
        assert (address, outside.split("-")[0]) == ("127.0.0.1", port), "the first replica has the usual port"
    given = compose()["gate-service"]["environment"]
    reached = [f"http://127.0.0.1:{port}" for port in inside["gate-service"]]
    assert [given[name] for name in ORIGINS] == reached, "a browser calls the published ports"


def test_settings_of_the_containers_are_documented():
    known = documented_settings()
    assert set(environment_of_image()) <= known
    for name, service in compose().items():
        given = {key for key in service.get("environment", {}) if key.startswith("PENSTOCK_")}
        assert given <= known, name


def test_gate_container_serves_widget_that_calls_its_published_ports(installation):
    """The gate with the settings of its container, on free ports, and without its public names, as the image alone."""
    entrypoint = compose()["gate-service"]["entrypoint"]
    assert entrypoint == ["/usr/local/bin/gate-service"]
    given = {**environment_of_image(), **compose()["gate-service"]["environment"]}
    for name in ("PENSTOCK_DATABASE_URL", "PENSTOCK_REDIS_URL", "PENSTOCK_POOLS_LISTEN"):
        del given[name]
    given |= {"PENSTOCK_GATE_LISTEN": "127.0.0.1:0", "PENSTOCK_WIDGET_LISTEN": "0.0.0.0:0"}
    assert installation.penstock("migrate", **given).code == 0
    named = {name: given.pop(name) for name in ORIGINS}
    for origins in (named, {}):
        with installation.start_gate(**given, **origins) as service:
            port = listeners(service)["gate-service widget"].rsplit(":", 1)[1]
            bound = f"http://127.0.0.1:{port}"
            gate = origins.get("PENSTOCK_GATE_ORIGIN", service.address)
            widget = origins.get("PENSTOCK_WIDGET_ORIGIN", bound)
            with urllib.request.urlopen(f"{bound}/gate.js", timeout=60) as answer:
                script = answer.read().decode()
            assert f'"{widget}"' in script and f'"{gate}"' in script
            with urllib.request.urlopen(f"{bound}/checkout", timeout=60) as answer:
                assert f"connect-src {gate};" in answer.headers["Content-Security-Policy"]


def test_both_services_of_the_guide_start_side_by_side(installation):
    """With the example files and the settings of their units, on free ports."""
    file = deployed("config", "penstock.toml")
    rates = f"static:{deployed('config', 'rates.toml')}"
    settings = {**installation.settings, "PENSTOCK_MASTER_KEY": MASTER_KEY, "PENSTOCK_RATES": rates}
    assert installation.penstock("--config", file, "migrate", **settings).code == 0
    metrics = set()
    for name, binary in (("pools-service", "POOLS_SERVICE_BIN"), ("gate-service", "GATE_SERVICE_BIN")):
        own = re.findall(r"^Environment=(\w+)=(.*)$", deployed("systemd", f"{name}.service").read_text(), re.MULTILINE)
        given = {**tomllib.loads(file.read_text()), **{key.removeprefix("PENSTOCK_").lower(): text for key, text in own}}
        metrics.add(given["metrics_listen"])
        with Service(installation, binary, ("--config", file), {**settings, "PENSTOCK_METRICS_LISTEN": "127.0.0.1:0"}) as service:
            assert service.running()
    assert len(metrics) == 2, "each service has its own listener for metrics"
    [scraped] = yaml.safe_load(deployed("prometheus", "prometheus.yml").read_text())["scrape_configs"]
    [group] = scraped["static_configs"]
    assert sorted(group["targets"]) == sorted(metrics), "the shipped Prometheus scrapes both"


def test_units_start_the_programs_with_the_files_of_the_guide():
    for name, words in (
        ("pools-service.service", "/usr/local/bin/pools-service --config /etc/penstock/penstock.toml"),
        ("gate-service.service", "/usr/local/bin/gate-service --config /etc/penstock/penstock.toml"),
        ("penstock-verify.service", "/usr/local/bin/penstock --config /etc/penstock/penstock.toml verify --metrics /var/cache/penstock/verify.prom"),
    ):
        unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
        unit.optionxform = str
        unit.read_string(deployed("systemd", name).read_text())
        service = unit["Service"]
        assert service["ExecStart"] == words
        for folder in re.findall(r"--metrics (\S+)/verify.prom$", words):
            assert (folder, service["CacheDirectoryMode"]) == (f"/var/cache/{service['CacheDirectory']}", "0755")
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
