"""Which topics the subjects of the registry belong to, and what its routes require."""

import pytest

from headrace.gateway.registry import rules, schemas, subjects
from headrace.gateway.registry.rights import REQUIRED, topic_of


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("orders-key", "orders"),
        ("orders-value-value", "orders-value"),
        ("com.example.Order", "com.example.Order"),  # RecordNameStrategy
        ("orders-com.example.Order", "orders-com.example.Order"),  # TopicRecordNameStrategy
        ("-value", "-value"),
        (":.:orders-value", "orders"),
        (":.billing:orders-value", ":.billing:orders-value"),
    ],
)
def test_a_subject_belongs_to_its_topic_or_to_itself(subject: str, topic: str) -> None:
    assert topic_of(subject) == topic


def test_every_route_of_the_registry_says_what_it_requires_and_nothing_else_does() -> None:
    routes = {
        (method, route.path)
        for module in (rules, schemas, subjects)
        for route in module.router.routes
        for method in route.methods
    }
    assert routes == set(REQUIRED)
