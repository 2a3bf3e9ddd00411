"""What tests ask of a cluster before and after: topics made, records written, and all that a topic has."""

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.client.errors import NoSuchTopic, TopicExists, raise_for
from headrace.client.records.one_by_one import Headers, Receipt, Record, Writer
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address
from headrace.client.wire.requests import create_topic_request, metadata_request
from headrace.protocol.errors import ErrorCode
from headrace.testing.fault import OWN_CLIENT_ID
from headrace.testing.reading import NotNow, read_all, topic_at, until

PATIENCE_S: Final = 10.0

Text = str | bytes | None


class Asking:
    """One cluster, asked over the wire as any client would; no fault is for it."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def connected(self, answer_s: float = PATIENCE_S) -> Brokers:
        """Connections to the brokers; one that gives no answer in time counts as gone."""
        return Brokers(self._bootstrap, client_id=OWN_CLIENT_ID, answer_s=answer_s)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic, and return when every broker knows its leaders."""
        values = {key: str(value) for key, value in (configs or {}).items()}
        request = create_topic_request(name, partitions=partitions, replicas=replicas, configs=values)
        with self.connected() as brokers:
            (made,) = brokers.any(request).topics
            if made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                raise TopicExists(name)
            raise_for(made.error_code, made.error_message, name)
            until(f"leaders of {name}", lambda: _known_to_all(brokers, name), PATIENCE_S)

    def write(
        self, topic: str, values: Sequence[Text], key: Text, headers: Headers, at: int | None
    ) -> Receipt:
        """Write a record of each value, and return when all are acknowledged."""
        with self.connected() as brokers:
            until(f"leaders of {topic}", lambda: topic_at(brokers, None, topic, create=True), PATIENCE_S)
        options: dict[str, str | int] = {"client.id": OWN_CLIENT_ID, "linger.ms": 0}
        writer = Writer(self._bootstrap, topic, options)
        for value in values:
            writer.write(Record(value=_bytes(value), key=_bytes(key), headers=headers, partition=at))
        return writer.flush()

    def records(self, topic: str, count: int | None, timeout_s: float) -> list[Record]:
        """All that is committed, once there are so many, by partition and offset."""

        def enough() -> list[Record]:
            try:
                found = list(read_all(brokers, topic))
            except NoSuchTopic as error:
                if count:
                    raise NotNow(str(error)) from error
                raise
            if len(found) < (count or 0):
                raise NotNow(f"there are {len(found)}")
            return found

        with self.connected() as brokers:
            return until(f"{count or 'the'} records of {topic}", enough, timeout_s)


def _known_to_all(brokers: Brokers, name: str) -> None:
    for each in brokers.any(metadata_request()).brokers:
        try:
            topic_at(brokers, Address(each.host, each.port), name)
        except NoSuchTopic as error:
            raise NotNow(f"broker {each.node_id} has not heard of it") from error


def _bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
