"""AlterUserScramCredentials (key 51), v0.

Behaviour: stores and deletes SCRAM credentials in ZooKeeper, in Kafka's form. The client salts the password,
           so the broker never sees it. All changes to one user are made, or none. They are in force on this
           broker when it answers, and on the others when they have read the change.
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.slices import grouped, in_slices, one_by_one
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol import kafka_errors
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import alter_user_scram_credentials as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.config_admin import USERS
from headrace.security.authorization import Operation, Permission, ResourceType
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512
from headrace.security.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential

MECHANISMS: Final = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}
"""The mechanisms by their numbers in the protocol."""

_ALTER: Final = Permission(Operation.ALTER, ResourceType.CLUSTER)

Change = api.ScramCredentialUpsertion | api.ScramCredentialDeletion


@handles(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, range(1), requires=_ALTER)
async def alter_user_scram_credentials(
    request: api.AlterUserScramCredentialsRequest, context: Context
) -> api.AlterUserScramCredentialsResponse:
    changes: list[Change] = [*request.deletions, *request.upsertions]
    by_user = await in_slices(grouped(lambda change: change.name, changes))
    await context.broker.session.reconnected()
    results = await one_by_one(lambda of_user: _alter(*of_user, context), by_user.items())
    return api.AlterUserScramCredentialsResponse(results=results)


async def _alter(user: str, changes: list[Change], context: Context) -> api.AlterUserScramCredentialsResult:
    def changed(values: dict[str, str]) -> dict[str, str]:
        for change in changes:
            mechanism = MECHANISMS[change.mechanism]
            if isinstance(change, api.ScramCredentialUpsertion):
                values[mechanism] = ScramCredential.of_salted(
                    mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations
                ).encode()
            elif values.pop(mechanism, None) is None:
                raise kafka_errors.ResourceNotFound("Attempt to delete a user credential that does not exist")
        return values

    try:
        context.require(_ALTER)
        _check(user, changes)
        await context.broker.config_admin.change_entity(USERS, user, changed)
    except FAILURES as error:
        return api.AlterUserScramCredentialsResult(user=user, **error_fields(error))
    return api.AlterUserScramCredentialsResult(user=user, error_code=ErrorCode.NONE)


def _check(user: str, changes: list[Change]) -> None:
    if not user:
        raise kafka_errors.UnacceptableCredential("Username must not be empty")
    for change in changes:
        if change.mechanism not in MECHANISMS:
            raise kafka_errors.UnsupportedSaslMechanism(f"Unknown SCRAM mechanism {change.mechanism}")
        if isinstance(change, api.ScramCredentialUpsertion):
            if not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
                raise kafka_errors.UnacceptableCredential(
                    f"{change.iterations} iterations, expected {MIN_ITERATIONS} to {MAX_ITERATIONS}"
                )
            if not change.salt or not change.salted_password:
                raise kafka_errors.UnacceptableCredential("salt and salted password must not be empty")
    if len({change.mechanism for change in changes}) < len(changes):
        raise kafka_errors.DuplicateResource("A user credential cannot be altered twice in the same request")
