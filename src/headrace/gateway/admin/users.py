"""Users with SCRAM credentials: list, add, change the password, remove.

The gateway salts and hashes a password, and sends the result to a broker. No response and no log line has a
password or a part of a credential.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, Secret, StrictInt, StrictStr

from headrace.client.admin.users import ITERATIONS, Credential, User
from headrace.gateway.current import RawRoute
from headrace.gateway.problems import answers
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import NO_NUL, Body
from headrace.gateway.users.credentials import LONGEST_NAME, LONGEST_PASSWORD
from headrace.security.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS

LONGEST_KNOWN: Final = 1000  # characters of the name of a user that another program may have added

router = APIRouter(tags=["users"], route_class=RawRoute, responses=answers(400, 403, 404, 503))

UserName = Annotated[
    str, Path(description="The user.", min_length=1, max_length=LONGEST_KNOWN, pattern=NO_NUL)
]
Mechanism = Literal["SCRAM-SHA-512", "SCRAM-SHA-256"]
Mechanisms = Annotated[list[Mechanism], Field(min_length=1, max_length=2)]
NewPassword = Annotated[
    Secret[Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_PASSWORD, pattern=NO_NUL)]],
    Field(json_schema_extra={"format": "password", "writeOnly": True}),
]
Iterations = Annotated[
    StrictInt, Field(ge=MIN_ITERATIONS, le=MAX_ITERATIONS, description="How often the password is hashed.")
]


@router.get("/users")
def users(reach: ReachDep) -> list[User]:
    """Return every user with a SCRAM credential, by name, with mechanisms and iterations.

    Users of other mechanisms (PLAIN, OAUTHBEARER, certificates) are not listed: brokers have no list of them.
    """
    return reach.users.list_users()


class UserBody(Body):
    name: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_NAME, pattern=NO_NUL)]
    password: NewPassword
    mechanisms: Annotated[
        Mechanisms, Field(default=["SCRAM-SHA-512"], description="What the user may authenticate with.")
    ]
    iterations: Iterations = ITERATIONS


@router.post("/users", status_code=201, responses=answers(409))
def add_user(body: UserBody, reach: ReachDep) -> User:
    """Add a user who authenticates with this password; refused if there is a user of this name."""
    reach.users.create_user(
        body.name, body.password.get_secret_value(), mechanisms=body.mechanisms, iterations=body.iterations
    )
    return _with_password(body.name, body.mechanisms, body.iterations)


@router.get("/users/{name}")
def user(name: UserName, reach: ReachDep) -> User:
    """Return the mechanisms and iterations of the user's credentials."""
    return reach.users.describe_user(name)


class PasswordBody(Body):
    """A new password. Without `mechanisms` it is for all that the user has."""

    password: NewPassword
    mechanisms: Mechanisms | None = None
    iterations: Iterations = ITERATIONS


@router.put("/users/{name}/password")
def change_password(name: UserName, body: PasswordBody, reach: ReachDep) -> User:
    """Change the password for these mechanisms, and return them. Connections that are open stay open."""
    known = reach.users.describe_user(name)
    mechanisms: Sequence[str] = body.mechanisms or [credential.mechanism for credential in known.credentials]
    reach.users.set_user_password(
        name, body.password.get_secret_value(), mechanisms=mechanisms, iterations=body.iterations
    )
    return _with_password(name, mechanisms, body.iterations)


@router.delete("/users/{name}", status_code=204)
def remove_user(
    name: UserName,
    reach: ReachDep,
    mechanism: Annotated[
        list[Mechanism],
        Query(description="Only the credentials for these mechanisms; default: all.", max_length=2),
    ] = [],  # noqa: B006
) -> Response:
    """Remove the user's credentials: the user cannot authenticate any more. ACLs and quotas stay."""
    reach.users.remove_user(name, mechanisms=list(dict.fromkeys(mechanism)) or None)
    return Response(status_code=204)


def _with_password(name: str, mechanisms: Sequence[str], iterations: int) -> User:
    """Return what a broker has just stored: another broker may not have read it yet."""
    return User(
        name=name,
        credentials=tuple(
            Credential(mechanism=mechanism, iterations=iterations) for mechanism in sorted(set(mechanisms))
        ),
    )
