"""The log of denials is useful to operators, and useless to whoever wants to fill a disk."""

import pytest

from headrace.broker.security.audit import AuditLog
from headrace.security.authorization import Action, Operation, ResourceType
from headrace.security.principals import Principal
from headrace.system.line_limit import MAX_LINES

MALLORY = Principal("mallory\nUser:admin")


def read(topic: str) -> Action:
    return Action(Operation.READ, ResourceType.TOPIC, topic)


def test_a_denial_is_logged_once_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headrace.authorizer")
    audit = AuditLog(now_s=lambda: 0.0)

    for _ in range(3):
        audit.denied(MALLORY, "10.0.0.7", read("orders"))

    assert caplog.messages == ["'User:mallory\\nUser:admin' from 10.0.0.7 is denied READ on TOPIC 'orders'"]
    assert audit.total == 3


def test_lines_are_limited_by_the_second(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headrace.authorizer")
    now_s = 0.0
    audit = AuditLog(now_s=lambda: now_s)

    for number in range(3 * MAX_LINES):
        audit.denied(MALLORY, "10.0.0.7", read(f"topic-{number}"))
    assert len(caplog.messages) == MAX_LINES
    now_s = 1.0
    audit.denied(MALLORY, "10.0.0.7", read("later"))

    assert len(caplog.messages) == MAX_LINES + 1
    assert audit.total == 3 * MAX_LINES + 1


def test_what_is_remembered_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headrace.authorizer")
    audit = AuditLog(max_remembered=2, now_s=lambda: 0.0)

    for topic in ("a", "b", "c", "a"):
        audit.denied(MALLORY, "10.0.0.7", read(topic))

    assert len(caplog.messages) == 4
