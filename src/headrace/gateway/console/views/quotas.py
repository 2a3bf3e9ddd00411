"""Users with SCRAM credentials, and quotas of users, client ids and IP addresses. No page has a password."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.admin.quotas import KEYS, ClientQuota, Entity, shown
from headrace.client.admin.users import MECHANISMS, User
from headrace.gateway.admin.quotas import LARGEST, LONGEST
from headrace.gateway.console.formats import size
from headrace.gateway.console.pages import PageRoute, page, requiring
from headrace.gateway.console.tables import table_of
from headrace.gateway.current import clients_of
from headrace.gateway.reach import ReachDep
from headrace.gateway.users.credentials import LONGEST_NAME, LONGEST_PASSWORD
from headrace.security.authorization import Operation

router = APIRouter(route_class=PageRoute, include_in_schema=False)

UNITS: Final = {
    "producer_byte_rate": "bytes per second",
    "consumer_byte_rate": "bytes per second",
    "request_percentage": "% of the time of an event loop",
    "controller_mutation_rate": "partitions per second",
    "connection_creation_rate": "connections per second",
}
OF: Final = {"user": "users", "client-id": "client ids", "ip": "IP addresses", "default": "defaults"}
"""Which entities the list shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRow:
    entity: Entity
    key: str
    value: float

    @property
    def entity_text(self) -> str:
        return shown(self.entity)

    @property
    def entity_json(self) -> str:
        return json.dumps(dict(self.entity))

    @property
    def number(self) -> str:
        return f"{self.value:.15g}"

    @property
    def figure(self) -> str:
        return f"{self.value:,.15g}"

    @property
    def unit(self) -> str:
        plain = UNITS.get(self.key, "")
        return (
            f"{plain}, {size(self.value)}"
            if self.key.endswith("_byte_rate") and self.value >= 1024
            else plain
        )


_COLUMNS: Final = {
    "entity": lambda row: [(type_, name or "") for type_, name in row.entity.items()],
    "quota": lambda row: (row.key, row.value),
}


@router.get("/ui/quotas")
def quotas(request: Request, reach: ReachDep) -> Response:
    with requiring("Quotas", Operation.DESCRIBE_CONFIGS):
        found = clients_of(request).console.quotas.get(request, reach.quotas.list_quotas)
    of = request.query_params.get("of", "")
    return page(
        request,
        "quotas.html",
        title="Quotas",
        table=table_of(
            request,
            rows_of(found, of),
            _COLUMNS,
            text=lambda row: f"{row.entity_text} {row.key}",
            sort="entity",
        ),
        of=of if of in OF else "",
        kinds=OF,
        keys=KEYS,
        units=UNITS,
        longest=LONGEST,
        largest=f"{LARGEST:.0f}",
    )


def rows_of(found: Sequence[ClientQuota], of: str) -> list[QuotaRow]:
    """Return a row for each quota of the entities that `of` selects: those of a type, or the defaults."""
    return [
        QuotaRow(entity=each.entity, key=key, value=value)
        for each in found
        if of not in OF or (None in each.entity.values() if of == "default" else of in each.entity)
        for key, value in each.quotas.items()
    ]


@router.get("/ui/users")
def users(request: Request, reach: ReachDep) -> Response:
    with requiring("Users", Operation.DESCRIBE):
        found = clients_of(request).console.users.get(request, reach.users.list_users)
    columns = {"name": lambda row: row.name, "mechanisms": _mechanisms}
    return page(
        request,
        "users.html",
        title="Users",
        table=table_of(
            request, found, columns, text=lambda row: f"{row.name} {_mechanisms(row)}", sort="name"
        ),
        mechanisms=MECHANISMS,
        longest_name=LONGEST_NAME,
        longest_password=LONGEST_PASSWORD,
    )


def _mechanisms(user: User) -> str:
    return " ".join(credential.mechanism for credential in user.credentials)
