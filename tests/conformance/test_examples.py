"""Examples in the documents and in the published contracts: each address fits its network."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

DOCS = Path(os.environ.get("DOCS_DIR") or Path(__file__).parents[2] / "docs")
PAGES = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md", *sorted((DOCS / "openapi").glob("*.yaml"))]
EVM = re.compile(r"0x[0-9a-fA-F]{40}")
TRON = re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}")
SOLANA = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}")
FORMS = {"tron": TRON, "solana": SOLANA, **dict.fromkeys(("ethereum", "bsc", "polygon", "arbitrum", "optimism"), EVM)}
# An address field and the fields that may name its network, by precedence.
PAIRS = {
    "destAddress": ("destNetwork", "cryptoNetwork"),
    "address": ("network",),
    "wallet_address": ("network", "chain"),
    "dest_address": ("dest_network", "network"),
}


def objects(value):
    """Every object inside a value. The properties of a schema count as one object of their examples."""
    if isinstance(value, dict):
        yield value
        if isinstance(value.get("properties"), dict):
            schemas = value["properties"].items()
            yield {name: schema["example"] for name, schema in schemas if isinstance(schema, dict) and "example" in schema}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from objects(one)


def in_text(text):
    """Every JSON object that a text contains."""
    decoder = json.JSONDecoder()
    for start in re.finditer(r"\{", text):
        try:
            yield from objects(decoder.raw_decode(text, start.start())[0])
        except ValueError:
            continue


def misfits(found):
    for one in found:
        for address, networks in PAIRS.items():
            named = next((one[name] for name in networks if isinstance(one.get(name), str)), None)
            written = one.get(address)
            # A receipt shows the ends of an address alone.
            is_whole = isinstance(written, str) and "…" not in written
            if is_whole and named in FORMS and not FORMS[named].fullmatch(written):
                yield f"{address} {written} on {named}"


# rule: docs.addresses-fit
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_example_addresses_fit_their_networks(page):
    text = page.read_text()
    found = [*in_text(text)]
    if page.suffix == ".yaml":
        found += objects(yaml.safe_load(text))
    assert sorted(set(misfits(found))) == []


def test_reader_of_examples_finds_a_misfit():
    order = '... -d \'{"destAddress": "0x52908400098527886E0F7030069857D2E4169EE7", "cryptoNetwork": "tron"}\''
    assert len([*misfits(in_text(order))]) == 1
    schema = {"properties": {"address": {"example": "0x1"}, "network": {"example": "solana"}}}
    assert len([*misfits(objects(schema))]) == 1
