"""Users with SCRAM credentials. Passwords are sent to the API, and are in no page."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.admin.users import MECHANISMS, User
from headrace.gateway.console.pages import PageRoute, page, requiring
from headrace.gateway.console.tables import table_of
from headrace.gateway.current import clients_of
from headrace.gateway.reach import ReachDep
from headrace.gateway.users.credentials import LONGEST_NAME, LONGEST_PASSWORD
from headrace.security.authorization import Operation

router = APIRouter(route_class=PageRoute, include_in_schema=False)


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
