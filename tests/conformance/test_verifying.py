"""The functions on `docs/verifying-webhooks.md`: they accept every authentic delivery and nothing else."""

import base64
import hashlib
import hmac
import json
import time
from datetime import datetime
from pathlib import Path
from unittest import mock

import pytest

from verifiers import Refused, verifiers

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


def sign(body, secret=SECRET, age=0):
    """Both signature schemes, implemented from their documents."""
    sent = int(time.time()) - age
    plain = hmac.new(secret.encode(), f"{sent}.{body}".encode(), hashlib.sha256).hexdigest()
    key = base64.b64decode(secret.removeprefix("whsec_"))
    standard = base64.b64encode(hmac.new(key, f"e.{sent}.{body}".encode(), hashlib.sha256).digest()).decode()
    return {
        "pools-signature": f"t={sent},v1={plain}",
        "webhook-id": "e",
        "webhook-timestamp": str(sent),
        "webhook-signature": f"v1,{standard}",
    }


def test_page_shows_each_language():
    assert set(VERIFIERS) == {
        "python standard",
        "python stripe",
        "python alone",
        "node standard",
        "node stripe",
        "rust standard",
    }


# rule: webhook.signature, webhook.standard-headers
@pytest.mark.parametrize("name", VERIFIERS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_every_body_is_verified_byte_for_byte(name, body):
    assert VERIFIERS[name](sign(body), body.encode(), SECRET) == json.loads(body)


# rule: webhook.verify
@pytest.mark.parametrize("name", VERIFIERS)
def test_invalid_signature_is_refused(name):
    body = BODIES["plain"]
    good = sign(body)
    # The margin allows for a receiver that starts slowly.
    late, early = sign(body, age=310), sign(body, age=-400)
    swapped = {**good, "pools-signature": sign(body, OTHER)["pools-signature"]}
    swapped["webhook-signature"] = sign(body, OTHER)["webhook-signature"]
    for headers, what, secret in [
        (good, body + " ", SECRET),
        (good, body.replace("e", "f", 1), SECRET),
        (good, body, OTHER),
        (swapped, body, SECRET),
        (late, body, SECRET),
        (early, body, SECRET),
        ({**good, "pools-signature": "", "webhook-signature": ""}, body, SECRET),
        ({}, body, SECRET),
    ]:
        with pytest.raises(Refused):
            VERIFIERS[name](headers, what.encode(), secret)
    for age in (200, -200):
        VERIFIERS[name](sign(body, age=age), body.encode(), SECRET)


SIGNED = json.loads((Path(__file__).parent / "signed_delivery.json").read_text())


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
