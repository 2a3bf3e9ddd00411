"""Which broker coordinates the transactions of a program."""

from typing import Final

from cluster.asking import coordinator_of
from headrace import Admin

TRANSACTION: Final = 1  # a type of coordinator


def busy_coordinator(bootstrap: str, prefix: str) -> int:
    """Return the coordinator of an id with this prefix, of one that is in a transaction if there is any."""
    with Admin(bootstrap) as admin:
        listed = [each for each in admin.list_transactions() if each.transactional_id.startswith(prefix)]
    assert listed, f"no transactional id begins with {prefix}"
    ongoing = [each for each in listed if each.state == "Ongoing"]
    transactional_id = (ongoing or listed)[0].transactional_id
    return coordinator_of(bootstrap.split(","), TRANSACTION, transactional_id)
