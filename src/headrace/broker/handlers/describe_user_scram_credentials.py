"""DescribeUserScramCredentials (key 50), v0.

Behaviour: returns the mechanisms and iterations of users with SCRAM credentials, of all users if none is
           named. Nothing of a credential itself is returned.
"""

from contextlib import suppress

from headrace.broker.handlers.alter_user_scram_credentials import MECHANISMS
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import Steps, each, grouped
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import describe_user_scram_credentials as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation
from headrace.security.sasl.scram import ScramCredential


@handles(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, range(1), requires=on_cluster(Operation.DESCRIBE))
def describe_user_scram_credentials(
    request: api.DescribeUserScramCredentialsRequest, context: Context
) -> Steps[api.DescribeUserScramCredentialsResponse]:
    users = context.broker.image.users
    named = yield from grouped(lambda user: user.name, request.users or ())

    def describe(name: str) -> api.DescribeUserScramCredentialsResult:
        is_repeated = len(named.get(name, ())) > 1
        values = {} if is_repeated else users.get(name, {})
        infos = []
        for number, mechanism in MECHANISMS.items():
            if mechanism in values:
                with suppress(ValueError):  # written by another program: nobody can authenticate with it
                    iterations = ScramCredential.decode(values[mechanism]).iterations
                    infos.append(api.CredentialInfo(mechanism=number, iterations=iterations))
        code, why = ErrorCode.NONE, None
        if is_repeated:
            code = ErrorCode.DUPLICATE_RESOURCE
            why = "Cannot describe SCRAM credentials for the same user twice in a single request"
        elif not infos:
            code = ErrorCode.RESOURCE_NOT_FOUND
            why = "Attempt to describe a user credential that does not exist"
        return api.DescribeUserScramCredentialsResult(
            user=name, error_code=code, error_message=why, credential_infos=infos
        )

    results = yield from each(describe, named or list(users))
    if not named:  # users with quotas and without credentials
        results = [result for result in results if result.credential_infos]
    return api.DescribeUserScramCredentialsResponse(results=results)
