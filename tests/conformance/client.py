"""A partner's client: one keep-alive connection, and every response is checked against the rules of all responses."""

import http.client
import json
import socket
import time
from decimal import Decimal

from contract import REQUEST_ID, assert_envelope

TIMEOUT = 30.0

# Seconds after which a service closes a new connection that sends nothing.
FIRST_BYTE_TIMEOUT = 5.0


class Answer:
    def __init__(self, status, headers, raw):
        self.status = status
        self.headers = headers
        self.raw = raw

    @property
    def text(self):
        return self.raw.decode("utf-8", "replace")

    @property
    def json(self):
        """The body; numbers keep every digit."""
        return json.loads(self.raw, parse_float=Decimal)

    @property
    def code(self):
        return self.json["code"]

    def __repr__(self):
        return f"<{self.status} {self.text[:400]}>"


class Client:
    def __init__(self, service, key=None, contract=None):
        self.service = service
        self.key = key
        self.contract = contract
        self.connection = None
        self.seen_request_ids = set()

    def fork(self, key=None):
        """The same caller on a separate connection, for another thread."""
        return Client(self.service, key or self.key, self.contract)

    def call(self, method, path, body=None, headers=None, key=None, raw=None):
        sent = {}
        token = self.key if key is None else key
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None:
            sent["Content-Type"] = "application/json"
        for name, value in (headers or {}).items():
            if value is None:
                sent.pop(name, None)
            else:
                sent[name] = value
        answer = self._exchange(method, "/v1" + path, raw, sent)
        self._promises(method, "/v1" + path, answer)
        return answer

    def root(self, method, path, headers=None):
        """A route outside `/v1`, without a key."""
        return self._exchange(method, path, None, headers or {})

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, body=body, **more)

    def ok(self, method, path, body=None, **more):
        answer = self.call(method, path, body=body, **more)
        assert answer.status == 200, f"{method} {path}: {answer!r}"
        return answer.json

    def refused(self, status, code, method, path, body=None, **more):
        answer = self.call(method, path, body=body, **more)
        assert (answer.status, answer.code) == (status, code), f"{method} {path}: {answer!r}"
        return answer

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def _exchange(self, method, path, raw, headers, again=False):
        reused = self.connection is not None
        began = time.monotonic()
        if not reused:
            self.connection = http.client.HTTPConnection(self.service.host, self.service.port, timeout=TIMEOUT)
            self.connection.connect()
            self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.connection.request(method, path, body=raw, headers=headers)
            response = self.connection.getresponse()
            content = response.read()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            # The service has closed the idle connection, or the new one before this client sent a byte.
            late = method == "GET" and time.monotonic() - began >= FIRST_BYTE_TIMEOUT
            if again or not (reused or late):
                raise
            return self._exchange(method, path, raw, headers, again=True)
        except BaseException:
            self.close()
            raise
        if response.will_close:
            self.close()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, content)

    def _promises(self, method, path, answer):
        request_id = answer.headers.get("x-request-id", "")
        assert REQUEST_ID.fullmatch(request_id), f"X-Request-Id: {request_id!r}"
        assert request_id not in self.seen_request_ids, "a request id was used twice"
        self.seen_request_ids.add(request_id)
        assert answer.headers.get("cache-control") == "no-store", answer.headers
        assert answer.headers.get("x-content-type-options") == "nosniff", answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        if answer.status >= 400:
            assert_envelope(answer)
        else:
            assert answer.headers["content-type"].split(";")[0] == "application/json"
        if self.contract:
            self.contract.check(method, path, answer)
