"""The published documents: valid for independent validators, complete, and served."""

import re

import linters
import pytest
from contract import ENVELOPE, Contract
from documents import CREDENTIAL, ENTITLED, GATE, HELPERS, LISTED, OTHER_CREDENTIALS, POOLS
from openapi_spec_validator import validate
from provisioning import gate_profile

# Refusals of each operation; more for operations with a body, and for those that look up an object.
ALWAYS = {"401", "403", "429", "500", "503", "default"}
OF_A_BODY = {"400", "408", "413", "415"}


@pytest.fixture(scope="module", params=LISTED)
def published(request):
    """Each document by name, and its expected content."""
    return request.param, Contract(request.param), *LISTED[request.param]


@pytest.fixture(scope="module")
def provisioned(world):
    """A partner of both services."""
    return world.partner(gate=gate_profile("https://shop.example"))


# The documents of the services, and of the operator's engine, rail and verifier.
READ = [*LISTED, "engine-v1", "rail-v1", "verifier-v1"]


# rule: openapi.readers-agree
@pytest.mark.parametrize("name", READ)
def test_document_passes_the_validator(name):
    document = Contract(name).document
    assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
    validate(document)


# rule: openapi.readers-agree
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("linter", [linters.redocly, linters.spectral])
def test_linter_finds_no_fault(name, linter, tmp_path):
    assert linter(name, tmp_path) == []


# rule: openapi.operations, openapi.gate-operations, openapi.gate-events
def test_document_lists_the_contracts_operations(published):
    _, contract, title, operations, events = published
    assert {name: (method, path) for name, (method, path, _) in contract.operations.items()} == operations
    assert set(contract.document.get("webhooks", {})) == events
    info = contract.document["info"]
    assert info["version"] == "2026-05-25"
    assert title in info["title"].lower()


# rule: openapi.operations, openapi.gate-operations, openapi.gate-embed
def test_document_states_who_may_call(published):
    name, contract, *_ = published
    entitled = {code: set() for code in ENTITLED}
    for operation, (_, _, documented) in contract.operations.items():
        given = {scheme for alternative in documented["security"] for scheme in alternative}
        assert given == OTHER_CREDENTIALS.get(operation, {CREDENTIAL[name]}), operation
        refused, _ = contract.resolve(documented["responses"]["403"])
        for code in set(ENTITLED) & set(refused["x-error-codes"]):
            entitled[code].add(operation)
    for code, operations in entitled.items():
        assert operations == ENTITLED[code] & set(contract.operations), code


# rule: openapi.errors-documented, error.six-fields
def test_every_operation_documents_its_refusals(published):
    _, contract, *_ = published
    for name, (_, path, operation) in contract.operations.items():
        responses = operation["responses"]
        assert len(set(responses) & {"200", "201"}) == 1, name
        refused = ALWAYS | (OF_A_BODY if "requestBody" in operation else set()) | ({"404"} if "Id}" in path else set())
        assert refused <= set(responses), (name, refused - set(responses))
        for status in set(responses) - {"200", "201", "default"}:
            response, _ = contract.resolve(responses[status])
            assert response["x-error-codes"], (name, status)
            schema = response["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Error"}, (name, status)
        assert operation["security"] and operation["summary"] and operation["description"], name
    if contract.operations:
        assert set(contract.document["components"]["schemas"]["Error"]["required"]) == ENVELOPE


# rule: openapi.errors-documented
def test_money_asks_for_its_key_and_names_its_refusals():
    pools = Contract("pools-v1").operations["transact"][2]
    assert {"400", "401", "402", "403", "404", "409", "429", "501"} <= set(pools["responses"])
    gate = Contract("gate-v1").operations
    keyed = {"createSession", "createCustomer", "lockQuote", "createPayIn", "createPayOut"}
    assert {name for name, (_, _, operation) in gate.items() if required_key(operation)} == keyed
    assert required_key(pools)
    for name in keyed:
        assert {"400", "401", "403", "409", "429"} <= set(gate[name][2]["responses"]), name


def required_key(operation):
    return ("Idempotency-Key", True) in [
        (given["name"], given["required"]) for given in operation.get("parameters", []) if given["in"] == "header"
    ]


IDS = {
    "id": "EUR-USDT",
    "quoteId": "pq_test_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "transactId": "txn_test_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "refid": "test_tx_01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "symbol": "USDT",
}


# rule: openapi.routes-agree
def test_every_operation_is_served(provisioned, gate_service):
    world = provisioned.world
    for service, operations in [(world.service, POOLS), (gate_service, {**GATE, **HELPERS})]:
        client = type(provisioned.client)(service, provisioned.secret)
        for name, (method, path) in operations.items():
            filled = re.sub(r"\{(\w+)\}", lambda found: IDS[found[1]], path).removeprefix("/v1")
            answer = client.call(method, filled)
            assert answer.status not in (405, 501), (name, answer)
            assert answer.status < 400 or answer.code != "route_not_found", (name, answer)
