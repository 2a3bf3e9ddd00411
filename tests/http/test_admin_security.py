"""Users, ACLs and quotas over HTTP: brokers decide who may change them, and other clients see the changes."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
import requests
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from cluster.waiting import until
from headrace.client.wire.security import Security
from headrace.gateway.serving import serve_in_thread
from http_support.asking import Asking, quoted
from wire.guarded import PASSWORDS, guarded_cluster, user
from wire.requests import fresh_name
from wire.secured import SecuredCluster

TIMEOUT_S: Final = 30
SECRET: Final = "a-secret-of-dora"
ODD: Final = "a/b c%2F<i>ü"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("guarded"), brokers=1) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: SecuredCluster) -> AdminClient:
    """Librdkafka's admin client, which sees what the gateway has changed."""
    return AdminClient(user(cluster, "admin"))


@pytest.fixture(scope="module")
def url(cluster: SecuredCluster) -> Iterator[str]:
    security = Security.of(user(cluster, "admin"))
    with serve_in_thread(
        cluster.bootstrap, security=security, authentication=True, password_mechanism="PLAIN"
    ) as served:
        yield served.url


class Api:
    """Asks /api/v1 as a user."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._auth = f"{url}/api/v1", (name, PASSWORDS[name])

    def __call__(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(
            method,
            f"{self._url}/{path}",
            data=None if body is None else json.dumps(body),
            headers={"content-type": "application/json"},
            auth=self._auth,
            timeout=TIMEOUT_S,
        )

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        answer = self(method, path, body)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        answer = self(method, path, body)
        assert not answer.ok, answer.text
        return answer.json()["error_code"], answer.json()["message"]


@pytest.fixture(scope="module")
def admin(url: str) -> Api:
    return Api(url, "admin")


@pytest.fixture(scope="module")
def alice(url: str) -> Api:
    return Api(url, "alice")


# -- users -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["dora", ODD])
def test_a_user_is_added_changed_and_removed(admin: Api, client: AdminClient, prefix: str) -> None:
    name = fresh_name(prefix)
    made = admin.ok("POST", "users", {"name": name, "password": SECRET})
    assert made == {"name": name, "credentials": [{"mechanism": "SCRAM-SHA-512", "iterations": 8192}]}
    assert admin.ok("GET", f"users/{quoted(name)}") == made
    assert made in admin.ok("GET", "users")
    assert admin.refused("POST", "users", {"name": name, "password": "x"})[0] == 40905

    both = {"password": "other", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"], "iterations": 4096}
    changed = admin.ok("PUT", f"users/{quoted(name)}/password", both)
    assert [each["iterations"] for each in changed["credentials"]] == [4096, 4096]
    described = client.describe_user_scram_credentials([name])[name].result(TIMEOUT_S)
    assert {each.mechanism.name for each in described.scram_credential_infos} == {
        "SCRAM_SHA_256",
        "SCRAM_SHA_512",
    }

    admin.ok("DELETE", f"users/{quoted(name)}?mechanism=SCRAM-SHA-256")
    (left,) = admin.ok("GET", f"users/{quoted(name)}")["credentials"]
    assert left["mechanism"] == "SCRAM-SHA-512"
    admin.ok("DELETE", f"users/{quoted(name)}")
    for method, path, body in (
        ("GET", "", None),
        ("DELETE", "", None),
        ("PUT", "/password", {"password": "x"}),
    ):
        assert admin.refused(method, f"users/{quoted(name)}{path}", body)[0] == 40410


def test_an_added_user_can_authenticate_with_the_new_password_only(
    cluster: SecuredCluster, admin: Api
) -> None:
    name = fresh_name("erin")
    admin.ok("POST", "users", {"name": name, "password": "first"})
    admin.ok("PUT", f"users/{name}/password", {"password": "second"})
    security = Security.of(user(cluster, "admin"))
    with serve_in_thread(cluster.bootstrap, security=security, authentication=True) as served:

        def status(password: str) -> int:
            return requests.get(f"{served.url}/topics", auth=(name, password), timeout=TIMEOUT_S).status_code

        assert status("second") == 200
        assert status("first") == 401


@pytest.mark.parametrize(
    "body",
    [
        {"name": "dora", "password": ""},
        {"name": "dora", "password": SECRET * 100},
        {"name": "dora", "password": f"{SECRET}\0"},
        {"name": "dora", "password": f"{SECRET}\ud800"},
        {"name": "dora", "password": [SECRET]},
        {"name": "", "password": SECRET},
        {"name": "d" * 257, "password": SECRET},
        {"name": "dora", "password": SECRET, "iterations": 4095},
        {"name": "dora", "password": SECRET, "iterations": 10**9},
        {"name": "dora", "password": SECRET, "mechanisms": []},
        {"name": "dora", "password": SECRET, "mechanisms": ["PLAIN"]},
        {"name": "dora", "password": SECRET, "pasword": SECRET},
    ],
)
def test_what_cannot_be_a_user_is_refused_without_its_password(admin: Api, body: dict[str, Any]) -> None:
    answer = admin("POST", "users", body)

    assert answer.status_code == 422, answer.text
    assert SECRET not in answer.text


def test_passwords_are_not_logged(admin: Api, caplog: pytest.LogCaptureFixture) -> None:
    name = fresh_name("flo")
    with caplog.at_level("DEBUG"):
        admin.ok("POST", "users", {"name": name, "password": SECRET})
        admin.ok("PUT", f"users/{name}/password", {"password": f"{SECRET}-2"})
        admin.refused("POST", "users", {"name": name, "password": f"{SECRET}-3", "x": 1})
    assert f"PUT /api/v1/users/{name}/password 200" in caplog.text
    assert SECRET not in caplog.text


# -- ACLs ------------------------------------------------------------------------------------------


def acl(principal: str, name: str, **more: str) -> dict[str, str]:
    return {
        "resource_type": "TOPIC",
        "resource_name": name,
        "pattern_type": "LITERAL",
        "principal": principal,
        "permission": "ALLOW",
        "operation": "READ",
        "host": "*",
        **more,
    }


def test_acls_are_created_found_and_deleted_one_by_one(admin: Api, client: AdminClient) -> None:
    topic, who = fresh_name("team.orders"), f"User:{fresh_name('gina')}"
    exact, everybody = acl(who, topic), acl("User:*", topic, operation="DESCRIBE")
    prefixed = acl(
        who, topic[:9], pattern_type="PREFIXED", permission="DENY", operation="WRITE", host="10.0.0.7"
    )
    made = [exact, everybody, prefixed]
    assert admin.ok("POST", "acls", {"acls": [*made, exact]}) == made

    def found(query: str) -> list[dict[str, str]]:
        answer = admin.ok("GET", f"acls?{query}")
        assert answer["total"] == len(answer["acls"])
        return sorted(answer["acls"], key=made.index)

    assert found(f"principal={who}") == [exact, prefixed]
    assert found(f"principal={who.removeprefix('User:')}&effective=true&resource_type=TOPIC") == made
    assert found(f"resource_type=TOPIC&resource_name={topic}") == [exact, everybody]
    assert found(f"resource_type=TOPIC&resource_name={topic}&pattern_type=MATCH") == made
    assert found(f"principal={who}&permission=DENY&host=10.0.0.7&operation=WRITE") == [prefixed]
    limited = admin.ok("GET", f"acls?resource_name={topic}&limit=1")
    assert (len(limited["acls"]), limited["total"]) == (1, 2)
    in_librdkafka = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, who, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert {each.name for each in client.describe_acls(in_librdkafka).result(TIMEOUT_S)} == {topic, topic[:9]}

    assert admin.ok("DELETE", "acls", {"acls": [prefixed, acl(who, "never")]}) == [prefixed]
    assert found(f"resource_type=TOPIC&resource_name={topic}&pattern_type=MATCH") == [exact, everybody]


def test_an_acl_for_a_name_without_a_type_is_for_a_user(admin: Api, alice: Api) -> None:
    topic = fresh_name("mine")
    admin.ok("POST", "topics", {"name": topic})
    (made,) = admin.ok("POST", "acls", {"acls": [acl("alice", topic)]})
    assert made["principal"] == "User:alice"
    until("alice sees the topic", lambda: topic in [each["name"] for each in alice.ok("GET", "topics")])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"resource_type": "CLUSTER"}, 40002),
        ({"resource_type": "ANY"}, 422),
        ({"pattern_type": "MATCH"}, 422),
        ({"permission": "ANY"}, 422),
        ({"operation": "UNKNOWN"}, 422),
        ({"resource_name": ""}, 422),
        ({"principal": "p" * 1001}, 422),
        ({"host": "\0"}, 422),
        ({"else": "1"}, 422),
    ],
)
def test_what_cannot_be_an_acl_is_refused(admin: Api, change: dict[str, str], code: int) -> None:
    for method in ("POST", "DELETE"):
        assert admin.refused(method, "acls", {"acls": [acl("User:alice", "x") | change]})[0] == code


def test_a_request_has_a_bounded_number_of_acls(admin: Api) -> None:
    for acls in ([], [acl("User:alice", f"t{number}") for number in range(101)]):
        assert admin.refused("POST", "acls", {"acls": acls})[0] == 422


def test_without_an_authorizer_the_refusal_says_so(gateway: Asking) -> None:
    for method, body in (("GET", None), ("POST", {"acls": [acl("User:alice", "x")]})):
        status, code, message = gateway.refused(method, "/api/v1/acls", body)
        assert (status, code) == (400, 40002)
        assert "SECURITY_DISABLED" in message


# -- quotas ----------------------------------------------------------------------------------------


def test_quotas_are_set_changed_and_removed(admin: Api) -> None:
    name = fresh_name("hans")
    entity: dict[str, str | None] = {"user": name}
    both: dict[str, str | None] = {"user": name, "client-id": None}

    def alter(of: dict[str, str | None], **change: Any) -> Any:
        return admin.ok("PATCH", "quotas", {"entity": of, **change})["quotas"]

    assert alter(entity, set={"producer_byte_rate": 1e6, "request_percentage": 12.5}) == {
        "producer_byte_rate": 1e6,
        "request_percentage": 12.5,
    }
    assert alter(both, set={"consumer_byte_rate": 5}) == {"consumer_byte_rate": 5.0}
    assert alter(entity, set={"producer_byte_rate": 2}, unset=["request_percentage"]) == {
        "producer_byte_rate": 2
    }
    assert admin.ok("GET", f"quotas?user={name}") == [
        {"entity": entity, "quotas": {"producer_byte_rate": 2.0}},
        {"entity": both, "quotas": {"consumer_byte_rate": 5.0}},
    ]
    assert [each["entity"] for each in admin.ok("GET", f"quotas?user={name}&client_id_default=true")] == [
        both
    ]

    removed = admin.ok("DELETE", "quotas", {"entity": entity})
    assert removed == {"entity": entity, "quotas": {"producer_byte_rate": 2.0}}
    assert [each["entity"] for each in admin.ok("GET", f"quotas?user={name}")] == [both]


def test_the_defaults_and_addresses_have_quotas(admin: Api) -> None:
    for entity, key, query in (
        ({"user": None}, "producer_byte_rate", "user_default=true"),
        ({"client-id": None}, "request_percentage", "client_id_default=true"),
        ({"ip": "203.0.113.7"}, "connection_creation_rate", "ip=203.0.113.7"),
        ({"ip": None}, "connection_creation_rate", "ip_default=true"),
    ):
        admin.ok("PATCH", "quotas", {"entity": entity, "set": {key: 1e9}})
        assert {"entity": entity, "quotas": {key: 1e9}} in admin.ok("GET", f"quotas?{query}")
        admin.ok("DELETE", "quotas", {"entity": entity})


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"entity": {}, "set": {"producer_byte_rate": 1}}, 40002),
        ({"entity": {"user": "a", "ip": "10.0.0.7"}, "set": {"producer_byte_rate": 1}}, 40002),
        ({"entity": {"ip": "10.0.0.7"}, "set": {"producer_byte_rate": 1}}, 40002),
        ({"entity": {"user": "a"}}, 40002),
        ({"entity": {"user": "a"}, "set": {"request_percentage": 1}, "unset": ["request_percentage"]}, 40002),
        ({"entity": {"user": "a"}, "set": {"producer_byte_rate": 0}}, 422),
        ({"entity": {"user": "a"}, "set": {"producer_byte_rate": "1"}}, 422),
        ({"entity": {"user": "a"}, "set": {"producer_byte_rate": float("inf")}}, 422),
        ({"entity": {"user": "a"}, "set": {"retention.ms": 1}}, 422),
        ({"entity": {"user": ""}, "set": {"producer_byte_rate": 1}}, 422),
        ({"entity": {"client_id": "a"}, "set": {"producer_byte_rate": 1}}, 422),
        ({"entity": {"group": "a"}, "set": {"producer_byte_rate": 1}}, 422),
    ],
)
def test_what_cannot_be_a_quota_is_refused(admin: Api, body: dict[str, Any], code: int) -> None:
    assert admin.refused("PATCH", "quotas", body)[0] == code


# -- rights ----------------------------------------------------------------------------------------


def test_users_without_rights_on_the_cluster_are_refused(alice: Api, admin: Api) -> None:
    for method, path, body, needs in (
        ("GET", "users", None, "DESCRIBE on CLUSTER"),
        ("GET", "users/alice", None, "DESCRIBE on CLUSTER"),
        ("POST", "users", {"name": "eve", "password": SECRET}, "DESCRIBE on CLUSTER"),
        ("PUT", "users/alice/password", {"password": SECRET}, "DESCRIBE on CLUSTER"),
        ("DELETE", "users/alice", None, "DESCRIBE on CLUSTER"),
        ("GET", "acls", None, "DESCRIBE on CLUSTER"),
        ("POST", "acls", {"acls": [acl("User:alice", "*")]}, "ALTER on CLUSTER"),
        ("DELETE", "acls", {"acls": [acl("User:alice", "*")]}, "ALTER on CLUSTER"),
        ("GET", "quotas", None, "DESCRIBE_CONFIGS on CLUSTER"),
        ("PATCH", "quotas", {"entity": {"user": "a"}, "set": {"request_percentage": 1}}, "ALTER_CONFIGS"),
        ("DELETE", "quotas", {"entity": {"user": "a"}}, "DESCRIBE_CONFIGS on CLUSTER"),
    ):
        code, message = alice.refused(method, path, body)
        assert code == 40301, (method, path, message)
        assert needs in message, (method, path, message)
    assert "eve" not in [each["name"] for each in admin.ok("GET", "users")]


def test_who_may_only_describe_the_cluster_changes_nothing(url: str, admin: Api) -> None:
    bob = Api(url, "bob")
    describe = acl("User:bob", "kafka-cluster", resource_type="CLUSTER", operation="DESCRIBE")
    admin.ok("POST", "acls", {"acls": [describe]})
    assert describe in bob.ok("GET", "acls?principal=bob")["acls"]
    assert bob.refused("POST", "users", {"name": "eve", "password": SECRET})[0] == 40301
    assert bob.refused("DELETE", "acls", {"acls": [describe]})[0] == 40301
    admin.ok("DELETE", "acls", {"acls": [describe]})
