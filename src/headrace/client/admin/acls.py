"""ACLs: who may, or may not, do what. Kafka's model, with Kafka's names.

acls = AclAdmin(Brokers("127.0.0.1:9092"))
acls.create_acls([AclBinding(ResourcePattern(ResourceType.TOPIC, "orders"), AclEntry("User:alice", ...))])
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from headrace.client.errors import raise_for
from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.create_acls import AclCreation, CreateAclsRequest
from headrace.protocol.schema.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.schema.describe_acls import DescribeAclsRequest
from headrace.security.acls import AclBinding, AclFilter, new_binding

_ANY: Final = 1  # in a filter: every resource type, operation or permission type


class AclAdmin:
    """Creates, lists and deletes ACLs. Every call waits for its answer, or raises ClientError."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def list_acls(self, selected: AclFilter | None = None) -> list[AclBinding]:
        """Return the ACLs that the filter selects, or all, in a stable order."""
        answer = self._brokers.any(DescribeAclsRequest(**_wanted(selected or AclFilter())))
        raise_for(answer.error_code, answer.error_message)
        return sorted(_binding(resource, acl) for resource in answer.resources for acl in resource.acls)

    def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Create the ACLs; those that exist stay as they are."""
        creations = [
            AclCreation(
                resource_type=each.pattern.resource_type,
                resource_name=each.pattern.name,
                resource_pattern_type=each.pattern.pattern_type,
                principal=each.entry.principal,
                host=each.entry.host,
                operation=each.entry.operation,
                permission_type=each.entry.permission_type,
            )
            for each in bindings
        ]
        answer = self._brokers.any(CreateAclsRequest(creations=creations))
        for binding, result in zip(bindings, answer.results, strict=True):
            raise_for(result.error_code, result.error_message, str(binding))

    def delete_acls(self, filters: Iterable[AclFilter]) -> list[AclBinding]:
        """Delete the ACLs that a filter selects, and return them."""
        wanted = [DeleteAclsFilter(**_wanted(each)) for each in filters]
        deleted: set[AclBinding] = set()
        for result in self._brokers.any(DeleteAclsRequest(filters=wanted)).filter_results:
            raise_for(result.error_code, result.error_message)
            for acl in result.matching_acls:
                raise_for(acl.error_code, acl.error_message)
                deleted.add(_binding(acl, acl))
        return sorted(deleted)


def _wanted(selected: AclFilter) -> dict[str, Any]:
    """Return the fields of a filter, which two requests have in common."""
    return {
        "resource_type_filter": selected.resource_type or _ANY,
        "resource_name_filter": selected.name,
        "pattern_type_filter": selected.pattern_type,
        "principal_filter": selected.principal,
        "host_filter": selected.host,
        "operation": selected.operation or _ANY,
        "permission_type": selected.permission_type or _ANY,
    }


def _binding(resource: Any, acl: Any) -> AclBinding:
    """Return the ACL of a response: a description has one resource for several ACLs."""
    return new_binding(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        pattern_type=resource.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )
