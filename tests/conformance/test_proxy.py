"""The shipped configuration of nginx before two replicas of each service, which restart under load."""

import collections
import re
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

from client import Client
from conftest import World, everything
from programs import await_ready, eventually, program
from provisioning import gate_profile
from servers import OnServer, Server, free_port, installed, own_folder
from test_payments import SHOP
from upgrade import shop

# What Debian's own nginx.conf does around the shipped file.
MAIN = """worker_processes 2;
pid nginx.pid;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {temporary}
    include penstock.conf;
}}
"""
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
NAMES = ("pools.example.com", "gate.example.com", "pay.example.com")
SHIPPED = {name: [f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"] for name, port in zip(NAMES, (4010, 4020, 4030), strict=True)}


class Nginx(Server):
    """Runs the shipped file without TLS, with free ports for each name and with the addresses of replicas."""

    def __init__(self, folder, upstreams):
        text = Path(program("DEPLOY_DIR"), "nginx", "penstock.conf").read_text()
        for name, addresses in SHIPPED.items():
            for shipped, ours in zip(addresses, upstreams[name], strict=True):
                assert text.count(f"server {shipped} ") == 1, shipped
                text = text.replace(f"server {shipped} ", f"server {ours} ")
        text = re.sub(r"^ssl_.*\n", "", text, flags=re.MULTILINE)
        self.ports = {}
        for name in NAMES:
            self.ports[name] = free_port()
            listen = f"listen 443 ssl;\n    server_name {name};"
            assert text.count(listen) == 1, name
            text = text.replace(listen, f"listen 127.0.0.1:{self.ports[name]};\n    server_name {name};")
        (folder / "penstock.conf").write_text(text)
        temporary = " ".join(f"{name}_temp_path {name};" for name in TEMPORARY)
        (folder / "nginx.conf").write_text(MAIN.format(temporary=temporary))
        words = ["-p", str(folder), "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"]
        super().__init__(installed("nginx"), *words, folder=folder)
        eventually(lambda: self.answers(NAMES[0]), "nginx responds")

    def answers(self, name):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[name]}/health", timeout=60) as answer:
                return answer.status == 200
        except ConnectionError:
            return False
        except urllib.error.URLError:
            return False

    def client(self, name, key):
        return Proxied(SimpleNamespace(host="127.0.0.1", port=self.ports[name]), key)


class Proxied(Client):
    """A client of the proxy, whose own errors are no responses of a service."""

    def _promises(self, method, path, answer):
        if answer.headers.get("content-type") != "text/html":
            super()._promises(method, path, answer)


class Buyers:
    """Clients that trade and open sessions until the block ends."""

    def __init__(self, nginx, partner, number=3):
        self.answers, self.trades, self.stopping = collections.Counter(), [], threading.Event()
        self.partner = partner
        ways = [(self.buy, NAMES[0]), (shop, NAMES[1])] * number
        self.threads = [
            threading.Thread(target=self.run, args=(way, nginx.client(name, partner.secret)), daemon=True)
            for way, name in ways
        ]

    def run(self, way, client):
        while not self.stopping.is_set():
            try:
                way(client, self.saw)
            except Refused:
                continue

    def saw(self, answer):
        self.answers[answer.status] += 1
        if answer.status not in (200, 201):
            raise Refused
        return answer

    def buy(self, client, saw):
        saw(client.get("/pools"))
        quote = saw(client.post("/pools/EUR-USDT/quote", self.partner.ask("10.00"))).json["quoteId"]
        bought = saw(self.partner.transact(quote, client=client))
        self.trades.append(bought.json["transactId"])
        saw(client.get(f"/pools/transactions/{quote}"))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class Refused(Exception):
    """An unexpected response; its client starts again."""


@pytest.fixture
def replicas(tmp_path, postgres, contract):
    """Two replicas of each service, which keep their addresses, and the proxy."""
    settings = {"PENSTOCK_QUOTE_TTL": "10m", "PENSTOCK_TRUSTED_PROXIES": "127.0.0.1/32"}
    installation = OnServer(tmp_path / "penstock", postgres, **settings)
    installation.apply(everything())
    upstreams = {name: [f"127.0.0.1:{free_port()}" for _ in range(2)] for name in NAMES}
    pools, gate, widget = upstreams.values()
    starts = [lambda at=at: installation.start(PENSTOCK_POOLS_LISTEN=at) for at in pools]
    starts += [
        lambda at=at, page=page: installation.start_gate(PENSTOCK_GATE_LISTEN=at, PENSTOCK_WIDGET_LISTEN=page)
        for at, page in zip(gate, widget, strict=True)
    ]
    services = [start() for start in starts]
    world = World(installation, services[0], contract)
    with own_folder() as folder, Nginx(folder, upstreams) as nginx:
        yield world, services, starts, nginx
    for service in services:
        assert service.stop() == 0
    installation.verify()


# rule: ops.restart-behind-proxy
def test_replicas_restart_one_after_the_other_without_an_error(replicas):
    world, services, starts, nginx = replicas
    partner = world.partner(funds="9000000.00", gate=gate_profile(SHOP))
    # Later reads go to the replica that runs last.
    with Buyers(nginx, partner) as buyers:
        time.sleep(1)
        for place, start in [*enumerate(starts)] * 2:
            assert services[place].stop() == 0
            services[place] = start()
            await_ready(services[place])
    assert set(buyers.answers) == {200, 201}, (buyers.answers, nginx.log())
    world.service = partner.client.service = services[0]
    partner.client.close()
    assert sorted(trade["transactId"] for trade in partner.trades()) == sorted(buyers.trades)
    assert nginx.answers(NAMES[2])
