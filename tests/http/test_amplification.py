"""Requests that may cost the gateway more than their bytes: some of what `make amplification-http` tries.

Costs are CPU time and memory of the gateway's own process, which other programs do not change; the bounds are
far above what the requests take, and far below what an amplification does.
"""

from pathlib import Path

import pytest

from http_amplification.measuring import HEAD, Served
from http_amplification.routes import operations
from http_amplification.search import sample
from support.process import UpProcess

pytestmark = pytest.mark.extended

SEED = 13
SIZE = 30_000
ROUTES = 30


def test_no_request_costs_much_more_than_its_bytes(broker: UpProcess) -> None:
    with Served(broker.bootstrap, str(Path(__file__).parents[1])) as served:
        costs = [served.cost(attack) for attack in sample(served, SIZE, SEED, groups=ROUTES, each=3)]
    assert len(costs) >= 2 * ROUTES
    found = [f"{', '.join(cost.findings())}: {cost}" for cost in costs if cost.findings()]
    assert not found, "\n".join([HEAD, *found])


def test_every_route_is_attacked() -> None:
    found, _ = operations()
    paths = {each.path for each in found}
    assert {"/topics/{name}", "/v3/clusters/{cluster_id}/topics", "/api/v1/topics/{name}/messages"} <= paths
    assert {"/subjects/{subject}/versions", "/metrics", "/ui/topics/{name}"} <= paths
    assert len(found) > 130
