"""Checks responses against the published contract with an independent validator."""

import json
import os
import re
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

FORMATS = FormatChecker(formats=())


@FORMATS.checks("date-time")
def _instant(value):
    # Stricter than RFC 3339: the contract always writes UTC with `Z` and milliseconds.
    return not isinstance(value, str) or INSTANT.fullmatch(value) is not None


INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ENVELOPE = {"type", "code", "message", "request_id", "doc_url", "statusCode"}
REQUEST_ID = re.compile(r"req_[0-7][0-9A-HJKMNP-TV-Z]{25}")
TYPE_OF_STATUS = {
    400: "invalid_request",
    401: "unauthorized",
    402: "invalid_request",
    403: "forbidden",
    404: "not_found",
    405: "invalid_request",
    408: "invalid_request",
    409: "conflict",
    413: "invalid_request",
    415: "invalid_request",
    429: "rate_limited",
    431: "invalid_request",
}


def published(name="pools-v1"):
    return Path(os.environ["OPENAPI_DIR"]) / f"{name}.yaml"


class Contract:
    def __init__(self, name="pools-v1"):
        self.urn = f"urn:{name}"
        self.text = published(name).read_text()
        # Through JSON, which removes YAML's own types such as dates.
        self.document = json.loads(json.dumps(yaml.safe_load(self.text), default=str))
        resource = Resource(contents=self.document, specification=DRAFT202012)
        self.registry = Registry().with_resource(self.urn, resource)
        self.validators = {}
        self.operations = {}
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                if method in ("get", "post", "put", "patch", "delete"):
                    self.operations[operation["operationId"]] = (method.upper(), path, operation)
        # A literal segment takes precedence over a parameter, as in routers.
        ordered = sorted(self.operations.values(), key=lambda entry: entry[1].count("{"))
        self.patterns = [
            (method, path, re.compile(re.sub(r"\{[^/]+\}", "[^/]+", path))) for method, path, _ in ordered
        ]

    def find(self, method, target):
        path = target.split("?", 1)[0]
        for known, template, pattern in self.patterns:
            if known == method and pattern.fullmatch(path):
                return template
        return None

    def check(self, method, target, answer):
        """Every response must be documented and have the documented form."""
        template = self.find(method, target)
        if template is None:
            return
        responses = self.document["paths"][template][method.lower()]["responses"]
        status = str(answer.status)
        key = next((k for k in (status, f"{status[0]}XX", "default") if k in responses), None)
        assert key, f"{method} {template} returned {status}, which is not documented: {answer.text}"
        response, pointer = self.resolve(responses[key], f"/paths/{escape(template)}/{method.lower()}/responses/{key}")
        if "application/json" not in response.get("content", {}):
            return
        pointer += "/content/application~1json/schema"
        errors = list(self.validator(pointer).iter_errors(json.loads(answer.raw)))
        assert not errors, f"{method} {template} {status}: {errors[0].message} at {list(errors[0].path)}: {answer.text}"

    def resolve(self, value, pointer=""):
        """What a reference refers to, and where that is."""
        while "$ref" in value:
            pointer = value["$ref"].removeprefix("#")
            value = self.document
            for part in pointer.strip("/").split("/"):
                value = value[part.replace("~1", "/").replace("~0", "~")]
        return value, pointer

    def validator(self, pointer):
        if pointer not in self.validators:
            self.validators[pointer] = Draft202012Validator(
                {"$ref": f"{self.urn}#{pointer.replace('{', '%7B').replace('}', '%7D')}"},
                registry=self.registry,
                format_checker=FORMATS,
            )
        return self.validators[pointer]


def escape(path):
    return path.replace("~", "~0").replace("/", "~1")


def assert_envelope(answer):
    """Six fields, the type that belongs to the status, and the id of the header."""
    body = answer.json
    assert set(body) == ENVELOPE, answer.text
    assert body["statusCode"] == answer.status
    expected = TYPE_OF_STATUS.get(answer.status, "server_error" if answer.status >= 500 else None)
    assert body["type"] == expected, answer.text
    assert re.fullmatch(r"[a-z][a-z0-9_]*", body["code"]), answer.text
    assert isinstance(body["message"], str) and body["message"], answer.text
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["doc_url"] is None or body["doc_url"].endswith(f"/docs#{body['code']}"), answer.text
    assert answer.headers["content-type"].split(";")[0] == "application/json"
