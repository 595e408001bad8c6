"""Helpers of both programs for the generated packages."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


def setting(name: str) -> str:
    return os.environ[name]


def body(answer: object, kind: type[Answer]) -> Answer:
    """Returns the body of a success; a refusal ends the program."""
    assert isinstance(answer, kind), f"not a {kind.__name__}: {answer}"
    return answer


def until(ask: Callable[[], Answer], last: Callable[[Answer], bool]) -> Answer:
    """Polls until the response is final."""
    for _ in range(100):
        answer = ask()
        if last(answer):
            return answer
        time.sleep(0.1)
    raise AssertionError("it never reached a final status")
