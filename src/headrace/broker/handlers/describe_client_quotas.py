"""DescribeClientQuotas (key 48), v0-v1.

Behaviour: returns the quotas of the entities that match all components of the filter: an exact name, the
           default, or any name of a type. With `strict`, entities with names of other types do not match.
Versions:  v1 flexible.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import error_fields
from headrace.protocol.errors import KafkaError
from headrace.protocol.schema import describe_client_quotas as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation
from headrace.security.quota.filters import Component, QuotaFilter


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, range(2), requires=on_cluster(Operation.DESCRIBE_CONFIGS))
def describe_client_quotas(
    request: api.DescribeClientQuotasRequest, context: Context
) -> Steps[api.DescribeClientQuotasResponse]:
    components = (Component(each.entity_type, each.match_type, each.match) for each in request.components)
    try:
        asked = QuotaFilter.of(components, strict=request.strict)
    except KafkaError as error:
        return api.DescribeClientQuotasResponse(entries=None, **error_fields(error))
    entries = []
    for number, (entity, quotas) in enumerate(list(context.broker.quotas.table.entities.items())):
        if not number % STEP:
            yield
        if asked.matches(entity):
            entries.append(
                api.EntryData(
                    entity=[
                        api.EntityData(entity_type=type_, entity_name=name) for type_, name in entity.parts
                    ],
                    values=[api.ValueData(key=key, value=value) for key, value in quotas.items()],
                )
            )
    return api.DescribeClientQuotasResponse(entries=entries)
