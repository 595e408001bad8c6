"""The services follow the published contract under fuzzing."""

import os
import secrets

import pytest
from fuzzing import SHOP, fuzz
from provisioning import gate_profile

# Approximate number of examples per operation; a long run sets more.
EXAMPLES = int(os.environ.get("CONFORMANCE_EXAMPLES", "75"))
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
    """The gate with one object of each kind."""
    client = type(partner.client)(gate_service, partner.secret)
    return gate_service, one_of_each(client, SHOP)


# rule: openapi.answers-agree, error.internal-generic, auth.missing
@pytest.mark.parametrize("name", ["pools", "gate"])
def test_fuzzing_finds_no_contradiction(name, request, partner, tmp_path):
    service, known = request.getfixturevalue(f"of_{name}")
    found = fuzz(f"{name}-v1", service.address, partner, known, tmp_path, EXAMPLES, SEED)
    assert found.clean, found.report
    # The documents alone give this many; examples add more.
    assert found.cases >= {"pools": 400, "gate": 1500}[name], found.report
    print(found.report)
    assert service.running()


def one_of_each(client, shop):
    """A session, a signed quote, a pay-in, a transaction, a customer and a delivery, by the operations that take the ids."""

    def create(path, body):
        answer = client.post(path, body, headers={"Idempotency-Key": secrets.token_hex(16)})
        assert answer.status == 201, answer
        return answer.json

    order = {"currency": "EUR", "asset": "USDT", "amount": "100.00", "side": "on_ramp", "payment_method": "sepa"}
    session = create("/gate_sessions", {"amount": "100.00", "currency": "EUR", "return_url": f"{shop}/done"})
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
