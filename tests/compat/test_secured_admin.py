"""Administration of secured clusters."""

import pytest

from compat.secured_kafka import Files, SecuredKafka
from compat.secured_settings import TLS, TLS_USER
from headrace.client.admin.admin import Admin, Span


@pytest.mark.parametrize(
    ("listener", "settings"),
    [
        ("TLS", TLS),
        ("BOTH", f"{TLS_USER} sasl.mechanism=SCRAM-SHA-512"),
        ("TLS", f"{TLS} ssl.cipher.suites=ECDHE-RSA-AES256-GCM-SHA384"),
    ],
)
def test_offsets_are_known_by_any_way_in(
    secured_kafka: SecuredKafka, secured_files: Files, listener: str, settings: str
) -> None:
    admin = Admin(secured_kafka.addresses[listener], secured_files.settings(settings))
    assert admin.offsets("empty") == {0: Span(0, 0)}
    assert admin.offsets_at("empty", 1) == {0: None}
    assert [each.next_offset for each in admin.describe_topic("empty").partitions] == [0]


def test_groups_are_known_to_who_may_ask(secured_kafka: SecuredKafka, secured_files: Files) -> None:
    admin = Admin(secured_kafka.addresses["BOTH"], secured_files.settings(f"{TLS_USER} sasl.mechanism=PLAIN"))
    admin.set_group_offsets("billing", {("empty", 0): 0})
    assert "billing" in [each.name for each in admin.list_groups()]
    assert admin.lag("billing") == {("empty", 0): 0}
    admin.delete_group("billing")
    assert "billing" not in [each.name for each in admin.list_groups()]
