"""One broker: its state, log directories and settings."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.admin.topics import Config
from headrace.client.cluster.status import UP
from headrace.http.admin import brokers
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.tables import Table, table_of
from headrace.http.gateway.bodies import BrokerId
from headrace.http.reach import ReachDep

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/ui/brokers/{broker_id}")
def broker(request: Request, broker_id: BrokerId, reach: ReachDep) -> Response:
    found = brokers.broker(broker_id, reach)
    answers = found.broker.state == UP  # a broker that does not answer has no settings to show
    return page(
        request,
        "broker.html",
        title=f"Broker {broker_id}",
        broker=found.broker,
        directories=found.log_dirs,
        configs=settings_table(request, reach.topics.broker_configs(broker_id)) if answers else None,
        only_set="set" in request.query_params,
        owner="broker",
        change=f"/api/v1/brokers/{broker_id}/configs",
        of=f"broker {broker_id}",
    )


def settings_table(request: Request, configs: Sequence[Config]) -> Table[Config]:
    """Return the settings; with `set` in the address, only those that are not the default."""
    only_set = "set" in request.query_params
    return table_of(
        request,
        [each for each in configs if not only_set or not each.is_default],
        {"name": lambda each: each.name, "source": lambda each: each.source},
        text=lambda each: f"{each.name} {each.value}",
        sort="name",
        size=100,
    )
