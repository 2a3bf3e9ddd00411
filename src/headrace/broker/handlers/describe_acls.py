"""DescribeAcls (key 29), v1-v3.

Behaviour: returns the ACLs that a filter selects, from those in force on this broker. SECURITY_DISABLED
           without an authorizer.
Versions:  v1 prefixed patterns; v2 flexible; v3 resources of type USER.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.schema import describe_acls as api
from headrace.protocol.schema.delete_acls import DeleteAclsFilter
from headrace.protocol.schema.index import ApiKey
from headrace.security.acls import AclFilter, ResourcePattern, new_filter
from headrace.security.authorization import Operation


@handles(ApiKey.DESCRIBE_ACLS, range(1, 4), requires=on_cluster(Operation.DESCRIBE))
def describe_acls(request: api.DescribeAclsRequest, context: Context) -> Steps[api.DescribeAclsResponse]:
    try:
        index = context.broker.ensure_authorizer().index
        wanted = filter_of(request)
    except FAILURES as error:
        return api.DescribeAclsResponse(resources=(), **error_fields(error))
    by_pattern: dict[ResourcePattern, list[api.AclDescription]] = {}
    resources = []
    for number, (pattern, entry) in enumerate(index.find(wanted)):
        if not number % STEP:
            yield
        if pattern not in by_pattern:
            by_pattern[pattern] = []
            resources.append(
                api.DescribeAclsResource(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                    acls=by_pattern[pattern],
                )
            )
        by_pattern[pattern].append(
            api.AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission_type,
            )
        )
    return api.DescribeAclsResponse(resources=resources)


def filter_of(request: api.DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter in a request, or raise InvalidAcl."""
    return new_filter(
        resource_type=request.resource_type_filter,
        resource_name=request.resource_name_filter,
        pattern_type=request.pattern_type_filter,
        principal=request.principal_filter,
        host=request.host_filter,
        operation=request.operation,
        permission_type=request.permission_type,
    )
