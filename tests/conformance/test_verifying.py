"""The functions on `docs/verifying-webhooks.md`: they accept every authentic delivery and nothing else."""

import base64
import hashlib
import hmac
import json
import re
import time
from datetime import datetime
from pathlib import Path
from unittest import mock

import pytest
import stripe

from verifiers import PAGE, Refused, verifiers

HERE = Path(__file__).parent

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
OTHER = "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
VERIFIERS = verifiers()
BODIES = {
    "plain": '{"eventId":"e"}',
    "line separators": '{"eventId":"e","text":"\u2028\u2029"}',
    "emoji": '{"eventId":"e","text":"\U0001f980\u200d\U0001f4b8"}',
    "escaped": '{"eventId":"e","text":"\\u2028\\ud83e\\udd80"}',
    "right to left": '{"eventId":"e","text":"\u202e\u05e9"}',
    "spaces": '{ "eventId" : "e" }\n',
}


# The header of each service's events.
HEADERS = ("gate-signature", "pools-signature")


def sign(body, secret=SECRET, age=0, header="gate-signature"):
    """Both signature schemes, implemented from their documents."""
    sent = int(time.time()) - age
    plain = hmac.new(secret.encode(), f"{sent}.{body}".encode(), hashlib.sha256).hexdigest()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    standard = base64.b64encode(hmac.new(key, f"e.{sent}.{body}".encode(), hashlib.sha256).digest()).decode()
    return {
        header: f"t={sent},v1={plain}",
        "webhook-id": "e",
        "webhook-timestamp": str(sent),
        "webhook-signature": f"v1,{standard}",
    }


def test_page_shows_each_language():
    assert set(VERIFIERS) == {
        "python standard",
        "python svix",
        "python stripe",
        "python alone",
        "node standard",
        "node svix",
        "node stripe",
        "rust standard",
    }


# rule: webhook.signature, webhook.standard-headers
@pytest.mark.parametrize("name", VERIFIERS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("header", HEADERS)
def test_every_body_is_verified_byte_for_byte(name, body, header):
    assert VERIFIERS[name](sign(body, header=header), body.encode(), SECRET) == json.loads(body)


def test_page_names_the_versions_that_the_suites_use():
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", (HERE / "requirements.txt").read_text(), re.MULTILINE))
    packages = json.loads((HERE / "package.json").read_text())["dependencies"]
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [name for name, *_ in rows] == ["standardwebhooks", "svix", "stripe"]
    for name, python, node in rows:
        assert (pinned[name], packages[name]) == (python, node), name


def test_construct_event_of_stripe_takes_events_of_the_gate():
    body = '{"id":"e","object":"event","type":"gate_session.completed","data":{"id":"gs_test_1"}}'
    event = stripe.Webhook.construct_event(body, sign(body)["gate-signature"], SECRET)
    assert event["data"]["id"] == "gs_test_1"


# rule: webhook.verify
@pytest.mark.parametrize("name", VERIFIERS)
def test_invalid_signature_is_refused(name):
    body = BODIES["plain"]
    good = sign(body)
    # The margin allows for a receiver that starts slowly.
    late, early = sign(body, age=310), sign(body, age=-400)
    other = sign(body, OTHER)
    swapped = {**good, **{name: other[name] for name in ("gate-signature", "webhook-signature")}}
    for headers, what, secret in [
        (good, body + " ", SECRET),
        (good, body.replace("e", "f", 1), SECRET),
        (good, body, OTHER),
        (swapped, body, SECRET),
        (late, body, SECRET),
        (early, body, SECRET),
        ({**good, "gate-signature": "", "webhook-signature": ""}, body, SECRET),
        ({}, body, SECRET),
    ]:
        with pytest.raises(Refused):
            VERIFIERS[name](headers, what.encode(), secret)
    for age in (200, -200):
        VERIFIERS[name](sign(body, age=age), body.encode(), SECRET)


SIGNED = json.loads((HERE / "signed_delivery.json").read_text())


class Then(datetime):
    """The signing time of the delivery in `signed_delivery.json`."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(SIGNED["time"], tz)


# rule: webhook.overlap, webhook.signature, webhook.standard-headers
@pytest.mark.parametrize("secret", SIGNED["secrets"])
@pytest.mark.parametrize("name", [name for name in VERIFIERS if name.startswith("python")])
def test_signed_delivery_verifies_in_python(name, secret):
    with mock.patch("time.time", lambda: float(SIGNED["time"])), mock.patch("standardwebhooks.webhooks.datetime", Then):
        event = VERIFIERS[name](SIGNED["headers"], SIGNED["body"].encode(), secret)
    assert event == json.loads(SIGNED["body"])


# rule: webhook.overlap, webhook.signature, webhook.standard-headers
@pytest.mark.parametrize("secret", SIGNED["secrets"])
@pytest.mark.parametrize("name", [name for name in VERIFIERS if name.startswith("node")])
def test_signed_delivery_verifies_in_node(name, secret):
    event = VERIFIERS[name](SIGNED["headers"], SIGNED["body"].encode(), secret, now=SIGNED["time"])
    assert event == json.loads(SIGNED["body"])
