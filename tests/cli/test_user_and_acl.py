"""`headrace user` and `headrace acl`, against a secured broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.secure_up import Secured, administrator
from support.process import UpProcess
from wire.requests import fresh_name


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with UpProcess(tmp_path_factory.mktemp("users"), arguments=["--secure"]) as process:
        yield administrator(process)


def acls(admin: Secured, *arguments: str) -> set[tuple[Any, ...]]:
    return {tuple(each.values()) for each in admin.ok("acl", "list", "--json", *arguments).json}


# -- users -----------------------------------------------------------------------------------------


def test_a_password_comes_from_a_file_or_the_standard_input(admin: Secured, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first one\nanother line\n")
    name = fresh_name("user")
    admin.ok("user", "add", name, "--password-file", str(file))
    admin.as_user(name, "first one").ok("topic", "list")

    admin.ok("user", "password", name, "--password-file", "-", stdin="zweites päßwort\n".encode())
    admin.as_user(name, "zweites päßwort").ok("topic", "list")
    assert admin.as_user(name, "first one")("topic", "list").status == 1


def test_a_generated_password_is_printed_once(admin: Secured) -> None:
    name = fresh_name("user")
    text = admin.ok("user", "add", name, "--generate").text
    password = text.partition("password: ")[2].strip()
    admin.as_user(name, password).ok("topic", "list")
    assert password not in admin.ok("user", "list").text


def test_both_mechanisms_may_be_chosen(admin: Secured) -> None:
    name = fresh_name("user")
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
    made = admin.ok("user", "add", name, "--generate", *both, "--iterations", "4096", "--json").json
    assert made["credentials"] == [
        {"mechanism": "SCRAM-SHA-256", "iterations": 4096},
        {"mechanism": "SCRAM-SHA-512", "iterations": 4096},
    ]
    admin.ok("user", "remove", name, "--mechanism", "SCRAM-SHA-256", "--yes")
    found = {each["name"]: each["credentials"] for each in admin.ok("user", "list", "--json").json}
    assert [each["mechanism"] for each in found[name]] == ["SCRAM-SHA-512"]


def test_a_removed_user_cannot_authenticate(admin: Secured) -> None:
    name = fresh_name("user")
    password = admin.ok("user", "add", name, "--generate", "--json").json["password"]
    admin.ok("user", "remove", name, "--yes")
    assert "are user name and password right?" in admin.as_user(name, password)("topic", "list").complaint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "admin", "--generate"), "user admin exists already: `headrace user password admin` changes"),
        (("password", "nobody", "--generate"), "there is no user nobody with a SCRAM credential"),
        (("remove", "nobody", "--yes"), "there is no user nobody with a SCRAM credential"),
        (("add", "x"), "A password needs a terminal: give --password-file FILE, - for stdin, or --generate."),
        (
            ("add", "x", "--password-file", "-"),
            "--password-file <stdin>: expected a line of 1 to 4096 bytes.",
        ),
        (("remove", "admin"), "Confirmation needs a terminal: give --yes to remove the user."),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(admin: Secured, arguments: tuple[str, ...], says: str) -> None:
    assert says in admin("user", *arguments).complaint


def test_a_password_is_never_an_argument(admin: Secured) -> None:
    assert "No such option" in admin("user", "add", "x", "--password", "secret").complaint


# -- ACLs ------------------------------------------------------------------------------------------


def test_what_is_allowed_is_listed_and_removed(admin: Secured) -> None:
    topic, user = fresh_name("topic"), f"User:{fresh_name('user')}"
    admin.ok("acl", "allow", user, "--topic", topic, "--operation", "read", "--host", "10.0.0.1")
    assert acls(admin, "--principal", user) == {
        ("TOPIC", topic, "LITERAL", user, "ALLOW", "READ", "10.0.0.1")
    }

    removed = admin.ok("acl", "remove", "--principal", user, "--topic", topic, "--yes", "--json").json
    assert len(removed) == 1
    assert acls(admin, "--principal", user) == set()


def test_a_producer_and_a_consumer_get_what_they_need(admin: Secured) -> None:
    topic, user = fresh_name("topic"), f"User:{fresh_name('user')}"
    admin.ok("acl", "allow", user, "--producer", "--consumer", "--topic", topic, "--group", topic)
    assert {(each[0], each[5]) for each in acls(admin, "--principal", user)} == {
        ("TOPIC", "WRITE"),
        ("TOPIC", "DESCRIBE"),
        ("TOPIC", "CREATE"),
        ("TOPIC", "READ"),
        ("GROUP", "READ"),
    }


def test_a_topic_lists_all_acls_that_apply_to_it(admin: Secured) -> None:
    topic = fresh_name("orders")
    prefix = topic[:-1]
    admin.ok("acl", "allow", "u1", "--topic", topic)
    admin.ok("acl", "allow", "u2", "--topic", prefix, "--prefixed")
    admin.ok("acl", "deny", "u3", "--topic", "*", "--operation", "delete")
    applying = {each[1:5] for each in acls(admin, "--topic", topic)}
    assert applying >= {
        (topic, "LITERAL", "User:u1", "ALLOW"),
        (prefix, "PREFIXED", "User:u2", "ALLOW"),
        ("*", "LITERAL", "User:u3", "DENY"),
    }
    admin.ok("acl", "remove", "--topic", "*", "--yes")
    assert "User:u3" not in {each[3] for each in acls(admin, "--topic", topic)}


def test_a_user_may_create_tokens_for_another_principal(admin: Secured) -> None:
    gateway, owner = f"User:{fresh_name('gateway')}", f"User:CN={fresh_name('carol')}"
    admin.ok("acl", "allow", gateway, "--user-principal", owner, "--operation", "create-tokens")
    wanted = {("USER", owner, "LITERAL", gateway, "ALLOW", "CREATE_TOKENS", "*")}
    assert acls(admin, "--user-principal", owner) == wanted
    admin.ok(
        "acl", "remove", "--principal", gateway, "--user-principal", owner.removeprefix("User:"), "--yes"
    )
    assert acls(admin, "--principal", gateway) == set()


def test_an_acl_of_a_prefix_is_removed_only_as_such(admin: Secured) -> None:
    prefix = fresh_name("prefix")
    admin.ok("acl", "allow", "u4", "--topic", prefix, "--prefixed")
    assert "nothing was removed" in admin.ok("acl", "remove", "--topic", prefix, "--yes").text
    assert admin.ok("acl", "remove", "--topic", prefix, "--prefixed", "--yes").text == "removed 1 ACL\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("allow", "u"),
            "Name what it is about: --topic, --group, --transactional-id, --user-principal or --cluster.",
        ),
        (("allow", "u", "--producer", "--group", "g"), "A producer writes to a --topic; a consumer reads"),
        (
            ("allow", "u", "--producer", "--topic", "t", "--operation", "read"),
            "Give --operation, or --producer",
        ),
        (
            ("remove", "--yes"),
            "Give --principal, --topic, --group, --transactional-id, --user-principal or --cluster.",
        ),
        (("allow", "u", "--topic", "t", "--operation", "fly"), "'fly' is not one of"),
    ],
)
def test_mistakes_are_said_in_a_sentence(admin: Secured, arguments: tuple[str, ...], says: str) -> None:
    assert says in admin("acl", *arguments).complaint


def test_a_cluster_without_an_authorizer_says_so(headrace: Secured) -> None:
    assert "authorizer.class.name is not set" in headrace("acl", "list").err
