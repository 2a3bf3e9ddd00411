"""What /openapi.json says is what the gateway does: schemathesis asks everything in it, sensibly and not."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from headrace.gateway.app import create_app
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.serving import serve_in_thread
from http_support.asking import Asking
from support.process import UpProcess

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
PARTITIONS = 3  # at most, of what schemathesis makes: it would try ten thousand
ENDLESS = "/tail"
OTHERS = ("/metrics", "/ui")
_app = create_app(GatewaySettings(bootstrap="127.0.0.1:1"))
_schema = schemathesis.openapi.from_dict(_app.openapi())
_operations: dict[str, Any] = {
    each.label: each
    for each in (result.ok() for result in _schema.get_all_operations() if isinstance(result, Ok))
    if not each.path.endswith(ENDLESS) and not each.path.startswith(OTHERS)
}
_CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def own_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """A gateway whose cluster may be changed in any way."""
    with (
        UpProcess(tmp_path_factory.mktemp("asked-everything")) as up,
        serve_in_thread(up.bootstrap) as served,
    ):
        asking = Asking(served.url)
        asking.topic("known", PARTITIONS)
        yield asking
        asking.close()
        assert up.running, up.log_tail()


@pytest.mark.parametrize("label", sorted(_operations))
def test_the_gateway_does_what_its_openapi_says(own_gateway: Asking, label: str) -> None:
    operation = _operations[label]
    known = {
        "name": own_gateway.topic("asked"),
        "group": "asked",
        "cluster_id": own_gateway.get("/v3/clusters")["data"][0]["cluster_id"],
        "broker_id": 1,
        "partition_id": 0,
    }
    known["topic_name"] = known["name"]

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), is_known=st.booleans())
    def ask(case: Any, *, is_known: bool) -> None:
        for name in set(case.path_parameters or {}) & set(known) if is_known else ():
            case.path_parameters[name] = known[name]
        if isinstance(case.body, dict):
            for name in {"partitions", "total", "partitions_count"} & set(case.body):
                if isinstance(case.body[name], int):
                    case.body[name] = min(case.body[name], PARTITIONS)
        case.call_and_validate(base_url=own_gateway.url, checks=_CHECKS)

    ask()


def test_every_operation_says_what_it_is_for() -> None:
    ours = [
        each for each in _operations.values() if each.path.startswith(("/api/v1", "/v3", "/topics", "/cons"))
    ]
    assert len(ours) > 80
    for each in ours:
        raw = each.definition.raw
        assert raw["summary"][0].isupper(), each.label
        assert len(raw["description"]) > 5, each.label
        assert raw["tags"], each.label
