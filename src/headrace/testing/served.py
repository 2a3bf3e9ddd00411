"""What tests ask of their brokers, one or several: where they are, topics, records, faults, the log."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headrace.testing.faults import Faults
from headrace.testing.hosted import Hosted
from headrace.testing.settings import Settings, as_text

if TYPE_CHECKING:  # confluent-kafka is imported when it is first needed: a test may have another client
    from headrace.client.admin.admin import Admin
    from headrace.client.records.one_by_one import Headers, Receipt, Record
    from headrace.testing.asking import Asking, Text

PATIENCE_S: Final = 10.0
_HERE: Final = 0  # where the coordinator is, and brokers are that are no processes; no broker's number

Topics = Mapping[str, int | Mapping[str, Any]] | Iterable[str]
"""Topics to begin with: ["orders"], {"orders": 6}, or {"orders": {"partitions": 6, "configs": {...}}}."""


class Served(Hosted):
    """Brokers 1, 2, 3 and so on, with all that a test wants to know of them."""

    def __init__(
        self,
        brokers: int,
        settings: Settings | None,
        *,
        topics: Topics | None,
        process: bool,
        data: Path | str | None,
    ) -> None:
        super().__init__(brokers, settings, process=process, data=data)
        self._topics = _by_name(topics or {})

    def _begin(self) -> None:
        for name, wanted in self._topics.items():
            self.create_topic(name, **({"partitions": wanted} if isinstance(wanted, int) else wanted))

    def stop(self) -> None:
        """Leave no thread, no file, no process; fine if there is none, or if it is another process's."""
        for name in ("admin", "http"):  # those of the next life are others
            self.__dict__.pop(name, None)
        super().stop()

    @property
    def bootstrap(self) -> str:
        """What clients connect to: `bootstrap.servers`."""
        if not self._owner:
            raise RuntimeError("it is not running: use a `with` block, or start()")
        return ",".join(map(self._address, self._ports))

    @property
    def faults(self) -> Faults:
        """What goes wrong between clients and brokers; see `headrace.testing.faults`."""
        if self._process:
            raise RuntimeError("faults are for brokers in this process: leave out process=True")
        return self._faults

    @property
    def log(self) -> list[str]:
        """What the brokers complain of: every line of theirs that is a warning or worse."""
        return self.log_since({})

    def log_since(self, seen: Mapping[int, int]) -> list[str]:
        """The same without what there was when `log_seen` was asked."""
        lines = self._log.since(seen.get(_HERE, 0))
        for broker_id, said in self._said_beside().items():
            lines += said[seen.get(broker_id, 0) :]
        return lines

    @property
    def log_seen(self) -> Mapping[int, int]:
        """How many lines there are: of this process, and of each broker that is one of its own."""
        beside = {broker_id: len(said) for broker_id, said in self._said_beside().items()}
        return {_HERE: self._log.count, **beside}

    @cached_property
    def admin(self) -> "Admin":
        """Topics, settings, offsets: `headrace.client.admin.admin.Admin`."""
        from headrace.client.admin.admin import Admin  # noqa: PLC0415

        return Admin(self.bootstrap)

    @cached_property
    def http(self) -> str:
        """The URL of an HTTP gateway with the schema registry, started when this is first asked for."""
        from headrace.http.serving import serve_in_thread  # noqa: PLC0415  FastAPI, for those who want it

        gateway = self._stack.enter_context(serve_in_thread(self.bootstrap))
        return str(gateway.url)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Settings | None = None,
    ) -> None:
        """Make a topic; on return every broker knows who leads it. TopicExists if it is there."""
        self._asking().create_topic(
            name, partitions=partitions, replicas=replicas, configs=as_text(configs or {})
        )

    def produce(
        self,
        topic: str,
        *values: "Text",
        key: "Text" = None,
        headers: "Headers" = (),
        partition: int | None = None,
    ) -> "Receipt":
        """Write a record of each value, and return when all of them are acknowledged."""
        return self._asking().write(topic, values, key, headers, partition)

    def records(
        self, topic: str, *, count: int | None = None, timeout_s: float = PATIENCE_S
    ) -> "list[Record]":
        """Every record of `topic` as it is now, by partition and offset; or once there are `count`."""
        return self._asking().records(topic, count, timeout_s)

    def _asking(self) -> "Asking":
        from headrace.testing.asking import Asking  # noqa: PLC0415

        return Asking(self.bootstrap)


def _by_name(topics: Topics) -> dict[str, int | Mapping[str, Any]]:
    """What each topic shall be; one partition where there are only names."""
    if isinstance(topics, str):
        raise TypeError(f"topics={topics!r}: expected a list of names, or partitions by name")
    return dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
