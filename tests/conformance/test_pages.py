"""The reference pages in a browser: no accessibility findings and no broken layout."""

import json
import subprocess
from pathlib import Path

import pytest
from linters import node_environment
from programs import program

VIEWS = {f"{scheme} at {width} px" for scheme in ("light", "dark") for width in (390, 1440)}


def looked_at(address):
    """The findings about a page in each view."""
    script = Path(__file__).parent / "look_at_page.js"
    command = ["node", str(script), address, program("CHROMIUM_BIN")]
    done = subprocess.run(command, env=node_environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=["pools", "gate"])
def views(request, world, gate_service):
    """The reference page of each service."""
    service = world.service if request.param == "pools" else gate_service
    return looked_at(f"http://{service.host}:{service.port}/docs")


# rule: docs.accessible
def test_checker_finds_no_fault_in_light_and_dark(views):
    assert {view["view"] for view in views} == VIEWS
    for view in views:
        assert view["faults"] == [], (view["view"], json.dumps(view["faults"], indent=2))


# rule: docs.accessible
def test_codes_of_the_error_table_stay_whole(views):
    for view in views:
        assert view["broken"] == [], view["view"]
        assert view["sideways"] <= 0, f"{view['view']}: the page scrolls sideways by {view['sideways']} px"


# rule: docs.accessible
def test_ids_are_unique_and_links_within_the_page_lead_somewhere(views):
    for view in views:
        assert view["loose"] == [], view["view"]


# rule: docs.accessible
def test_tables_are_whole_at_every_width(views):
    for view in views:
        assert view["cut"] == 0, f"{view['view']}: {view['cut']} tables are cut off at a side"


# rule: docs.accessible
def test_page_asks_its_own_origin_only(views):
    for view in views:
        assert view["foreign"] == [], view["view"]
