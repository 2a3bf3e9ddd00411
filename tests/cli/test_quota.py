"""`headrace quota` and the SDK's quotas against a real broker."""

import asyncio
from uuid import uuid4

import pytest

from cli.command import Command
from headrace import Admin, AsyncAdmin, BadSetting, ClientError, Closed


@pytest.fixture
def user() -> str:
    return f"user-{uuid4().hex[:8]}"


def test_quotas_are_set_listed_and_removed(headrace: Command, user: str) -> None:
    said = headrace.ok(
        "quota", "set", "--user", user, "producer_byte_rate=1000000", "request_percentage=12.5"
    )
    assert said.text == f"set producer_byte_rate=1000000, request_percentage=12.5 for user {user}\n"
    headrace.ok("quota", "set", "--user", user, "--client-id-default", "consumer_byte_rate=5")

    assert headrace.ok("quota", "list", "--user", user, "--json").json == [
        {"entity": {"user": user}, "quotas": {"producer_byte_rate": 1_000_000.0, "request_percentage": 12.5}},
        {"entity": {"user": user, "client-id": None}, "quotas": {"consumer_byte_rate": 5.0}},
    ]
    listed = headrace.ok("quota", "list").text
    assert f"user {user}, client-id <default>" in listed
    assert "1000000" in listed

    headrace.ok("quota", "remove", "--yes", "--user", user, "request_percentage")
    assert headrace.ok("quota", "remove", "--yes", "--user", user, "--json").json == {
        "entity": {"user": user},
        "removed": ["producer_byte_rate"],
    }
    headrace.ok("quota", "remove", "--yes", "--user", user, "--client-id-default")
    assert headrace.ok("quota", "list", "--user", user, "--json").json == []
    assert headrace.ok("quota", "list", "--user", user).text == "there are no quotas\n"
    assert "removed nothing" in headrace.ok("quota", "remove", "--yes", "--user", user).text


def test_quotas_of_addresses_and_defaults(headrace: Command) -> None:
    headrace.ok("quota", "set", "--ip", "10.9.8.7", "connection_creation_rate=100")
    headrace.ok("quota", "set", "--user-default", "producer_byte_rate=1e12")

    assert headrace.ok("quota", "list", "--ip", "10.9.8.7", "--json").json[0]["quotas"] == {
        "connection_creation_rate": 100.0
    }
    assert headrace.ok("quota", "list", "--user-default", "--json").json[0]["entity"] == {"user": None}
    headrace.ok("quota", "remove", "--yes", "--ip", "10.9.8.7")
    headrace.ok("quota", "remove", "--yes", "--user-default")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("set --user a no_such_rate=1", "expected QUOTA=NUMBER"),
        ("set --user a producer_byte_rate=much", "expected a number"),
        ("set --user a producer_byte_rate=-1", "greater than 0"),
        ("set --user a connection_creation_rate=1", "is no quota of user entities"),
        ("set --ip localhost connection_creation_rate=1", "not an IP address"),
        ("set --user a --user-default producer_byte_rate=1", "exclude each other"),
        ("set producer_byte_rate=1", "an entity has a user"),
        ("list --user a --ip 10.0.0.1", "cannot combine an ip"),
    ],
)
def test_mistakes_are_explained(headrace: Command, arguments: str, complaint: str) -> None:
    assert complaint in headrace("quota", *arguments.split()).complaint


def test_the_sdk_sets_and_lists_quotas(headrace: Command, user: str) -> None:
    with Admin(headrace.bootstrap) as admin:
        admin.alter_quotas({"user": user, "client-id": "app"}, sets={"producer_byte_rate": 10})
        (found,) = admin.list_quotas({"user": user})
        assert found.entity == {"user": user, "client-id": "app"}
        assert found.quotas == {"producer_byte_rate": 10.0}
        for mistake in ({"group": "g"}, {"user": ""}, {}, "alice"):
            with pytest.raises(BadSetting):
                admin.alter_quotas(mistake, sets={"producer_byte_rate": 1})  # type: ignore[arg-type]
        with pytest.raises(BadSetting, match="is unknown"):
            admin.alter_quotas({"user": user}, sets={"producer_rate": 1})
        with pytest.raises(ClientError, match="whole number"):
            admin.alter_quotas({"user": user}, sets={"producer_byte_rate": 1.5})
    with pytest.raises(Closed):
        admin.list_quotas()

    async def remove() -> None:
        async with AsyncAdmin(headrace.bootstrap) as admin:
            await admin.alter_quotas({"user": user, "client-id": "app"}, unsets=["producer_byte_rate"])
            assert await admin.list_quotas({"user": user}) == []

    asyncio.run(remove())
