"""ACLs: who may, or may not, do what. Kafka's model, with Kafka's names.

acls = AclAdmin(Brokers("127.0.0.1:9092"))
acls.create([AclBinding(ResourcePattern(ResourceType.TOPIC, "orders"), AclEntry("User:alice", "*", ...))])
"""

from collections.abc import Iterable, Sequence
from typing import Final

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

    def acls(self, selected: AclFilter | None = None) -> list[AclBinding]:
        """Return the ACLs that the filter selects, or all, in a stable order."""
        chosen = selected or AclFilter()
        answer = self._brokers.any(
            DescribeAclsRequest(
                resource_type_filter=chosen.resource_type or _ANY,
                resource_name_filter=chosen.name,
                pattern_type_filter=chosen.pattern_type,
                principal_filter=chosen.principal,
                host_filter=chosen.host,
                operation=chosen.operation or _ANY,
                permission_type=chosen.permission_type or _ANY,
            )
        )
        raise_for(answer.error_code, answer.error_message)
        return sorted(
            new_binding(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                pattern_type=resource.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        )

    def create(self, bindings: Sequence[AclBinding]) -> None:
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

    def delete(self, filters: Iterable[AclFilter]) -> list[AclBinding]:
        """Delete the ACLs that a filter selects, and return them."""
        answer = self._brokers.any(DeleteAclsRequest(filters=[_deletion(each) for each in filters]))
        deleted: set[AclBinding] = set()
        for result in answer.filter_results:
            raise_for(result.error_code, result.error_message)
            for acl in result.matching_acls:
                raise_for(acl.error_code, acl.error_message)
                deleted.add(
                    new_binding(
                        resource_type=acl.resource_type,
                        resource_name=acl.resource_name,
                        pattern_type=acl.pattern_type,
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission_type,
                    )
                )
        return sorted(deleted)


def _deletion(selected: AclFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=selected.resource_type or _ANY,
        resource_name_filter=selected.name,
        pattern_type_filter=selected.pattern_type,
        principal_filter=selected.principal,
        host_filter=selected.host,
        operation=selected.operation or _ANY,
        permission_type=selected.permission_type or _ANY,
    )
