"""A hanging transaction: a partition has it open, and the coordinator does not know it there."""

from headrace import Admin
from wire.group_stories.waiting import eventually
from wire.raw import RawClient
from wire.transactions import OLD, RawProducer

_VERIFICATION = "transaction.partition.verification.enable"


def leave_hanging(bootstrap: str, topic: str, transactional_id: str, partition: int = 0) -> int:
    """Leave a transaction open that no coordinator will end, and return its producer id.

    Without verification a leader accepts a batch that was delayed until its transaction had ended.
    """
    with Admin(bootstrap) as admin:
        admin.alter_broker_configs(1, sets={_VERIFICATION: "false"}, unsets=[])
        try:
            with RawClient(bootstrap) as client:
                producer = RawProducer(client, transactional_id, OLD)
                producer.begin()
                eventually(lambda: producer.producer.producer_id >= 0 or not producer.init())  # it is loaded
                assert producer.send(topic, partition=partition).error_code == 0
                return producer.producer.producer_id
        finally:
            admin.alter_broker_configs(1, sets={}, unsets=[_VERIFICATION])
