"""AlterClientQuotas (key 49), v0-v1.

Behaviour: stores and removes quotas in ZooKeeper, in Kafka's form. All changes of one entity are made, or
           none. They are in force on this broker when it answers, and on the others when they have read the
           change. To remove a quota that is not set, or that does not exist, is no error.
Versions:  v1 flexible.
"""

from functools import partial
from typing import Final

from headrace.broker.quotas.client_quotas import config_of
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.slices import one_by_one
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.schema import alter_client_quotas as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType
from headrace.security.quota.entities import InvalidQuota, QuotaEntity, check_value, encode_value

_ALTER_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)


@handles(ApiKey.ALTER_CLIENT_QUOTAS, range(2), requires=_ALTER_CONFIGS)
async def alter_client_quotas(
    request: api.AlterClientQuotasRequest, context: Context
) -> api.AlterClientQuotasResponse:
    await context.broker.session.reconnected()
    alter = partial(_alter, seen=set(), context=context, validate_only=request.validate_only)
    return api.AlterClientQuotasResponse(entries=await one_by_one(alter, request.entries))


async def _alter(
    entry: api.AlterClientQuotasRequestEntryData,
    seen: set[QuotaEntity],
    context: Context,
    *,
    validate_only: bool,
) -> api.AlterClientQuotasResponseEntryData:
    def changed(values: dict[str, str]) -> dict[str, str]:
        for op in entry.ops:
            if not op.remove:
                values[op.key] = encode_value(op.key, op.value)
            elif op.key in entity.keys:  # not a SCRAM credential of a user
                values.pop(op.key, None)
        return values

    try:
        context.require(_ALTER_CONFIGS)
        entity = QuotaEntity.of((part.entity_type, part.entity_name) for part in entry.entity)
        if entity in seen:
            raise InvalidQuota(f"{entity} is named twice in one request")
        seen.add(entity)
        keys = set()
        for op in entry.ops:
            if op.key in keys:
                raise InvalidQuota(f"quota {op.key[:100]!r} is named twice for {entity}")
            keys.add(op.key)
            if not op.remove:
                check_value(entity, op.key, op.value)
        await context.broker.config_admin.change_entity(
            *config_of(entity), changed, validate_only=validate_only
        )
    except FAILURES as error:
        return api.AlterClientQuotasResponseEntryData(entity=entry.entity, **error_fields(error))
    return api.AlterClientQuotasResponseEntryData(entity=entry.entity)
