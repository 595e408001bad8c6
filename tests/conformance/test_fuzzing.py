"""The services follow the published contract under fuzzing."""

import os
import secrets

import pytest
from contract import Contract, published
from fuzzing import CONFIGS, SHOP, fuzz, keys
from provisioning import gate_profile

# Approximate number of examples per operation; a long run sets more.
EXAMPLES = int(os.environ.get("CONFORMANCE_EXAMPLES", "75"))
ORDER = {"amount": "100.00", "currency": "EUR", "return_url": f"{SHOP}/done"}
SEED = int(os.environ.get("CONFORMANCE_SEED", "20260525"))


@pytest.fixture(scope="module")
def partner(world):
    """A partner of both services."""
    hook = {"url": "http://127.0.0.1:9/gate"}
    return world.partner(
        funds="1000000.00", receipts="1000000", name="fuzz", gate=gate_profile(SHOP), gate_webhook=hook
    )


@pytest.fixture
def of_pools(world, partner):
    """The pools service with trades for the reads."""
    acks = [partner.trade(amount) for amount in ("20.00", "20.31", "20.41")]
    for ack in acks:
        partner.poll(ack["quoteId"])
    of_quote = dict.fromkeys(("getQuote", "rejectQuote", "getTransactionByQuote"), acks[0]["quoteId"])
    return world.service, {**of_quote, "getTrade": acks[0]["transactId"]}


@pytest.fixture
def of_gate(gate_service, partner):
    """The gate with one object of each kind, and the token of a widget of its open session."""
    client = type(partner.client)(gate_service, partner.secret)
    known = one_of_each(client)
    session = client.post("/gate_sessions", ORDER, headers={"Idempotency-Key": secrets.token_hex(16)}).json
    start = {"clientSecret": session["client_secret"]}
    begun = client.post("/embed/bootstrap", start, headers={"Referer": f"{SHOP}/"}, key=partner.publishable)
    assert begun.status == 200, begun
    helped = dict.fromkeys(("completeTestSession", "failTestSession"), session["id"])
    return gate_service, {**known, **helped, "token": begun.json["embed_token"]}


# rule: openapi.answers-agree, error.internal-generic, auth.missing
@pytest.mark.parametrize("name", CONFIGS)
def test_fuzzing_finds_no_contradiction(name, request, partner, tmp_path):
    service, known = request.getfixturevalue("of_pools" if name == "pools-v1" else "of_gate")
    credentials = keys(partner, known.pop("token", ""))
    found = fuzz(name, service.address, credentials, known, tmp_path, EXAMPLES, SEED)
    assert found.clean, found.report
    # The documents alone give this many for each operation; examples add more.
    assert found.cases >= 33 * len(Contract(name).operations), found.report
    print(found.report)
    assert service.running()


# rule: openapi.answers-agree
def test_every_document_of_a_service_is_fuzzed():
    of_providers = {"engine-v1", "rail-v1", "verifier-v1"}
    assert {path.stem for path in published("gate-v1").parent.glob("*.yaml")} - of_providers == set(CONFIGS)


def one_of_each(client):
    """A session, a signed quote, a pay-in, a transaction, a customer and a delivery, by the operations that take the ids."""

    def create(path, body):
        answer = client.post(path, body, headers={"Idempotency-Key": secrets.token_hex(16)})
        assert answer.status == 201, answer
        return answer.json

    order = {"currency": "EUR", "asset": "USDT", "amount": "100.00", "side": "on_ramp", "payment_method": "sepa"}
    session = create("/gate_sessions", ORDER)
    quote = create("/quotes", order)
    pay_in = create("/rails/pay_ins", {"quote_id": quote["id"], "session_id": session["id"]})
    customer = create("/customers", {"email": f"{secrets.token_hex(8)}@example.com"})
    [transaction] = client.ok("GET", f"/transactions?session_id={session['id']}")["data"]
    return {
        "retrieveSession": session["id"],
        "retrieveSignedQuote": quote["id"],
        "retrievePayIn": pay_in["id"],
        "retrieveTransaction": transaction["refid"],
        "getCustomer": customer["id"],
        "updateCustomer": customer["id"],
        "replayWebhookDelivery": client.ok("POST", "/webhooks/test")["id"],
        "getAsset": "USDT",
    }
