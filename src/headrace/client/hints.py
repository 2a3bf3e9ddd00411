"""Hints for users of other clients: a name that another client has raises an error with the name here.

producer.produce(...)  # AttributeError: Producer has no `produce`: it is `send(topic, value, key)` here
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final, NoReturn

from headrace.client.errors import BadSetting, ClientError

OWNER: Final = "{owner}"  # in a message: the class of the object, which may be a subclass
ITERATE: Final = "it is `for message in consumer` (`async for`), or `read(idle_s=...)`, which ends, here"
_LEAVES: Final = "waiting records are in `counts.waiting`, and `flush` raises if they are not delivered"
_TRANSACTION: Final = (
    "it is `with producer.transaction():` (`async with`), of a Producer(..., transactional_id=...), here"
)

PRODUCER: Final = {
    "produce": "it is `send(topic, value, key)` here",
    "produce_batch": "it is `send_all(topic, values)` here",
    "list_topics": "it is `Admin(...).list_topics()` here",
    "partitions_for": "it is `Admin(...).describe_topic(name).partitions` here",
    "metrics": "it is the property `counts` here; librdkafka's own come with the setting stats_cb=FUNCTION",
    "purge": _LEAVES,
    "init_transactions": _TRANSACTION,
    "begin_transaction": _TRANSACTION,
    "commit_transaction": _TRANSACTION,
    "abort_transaction": _TRANSACTION,
    "send_offsets_to_transaction": "it is `with producer.transaction(offsets_of=consumer):` here",
}
CONSUMER: Final = {
    "poll": ITERATE,
    "consume": "it is `batches(most)` here",
    "getone": ITERATE,
    "getmany": "it is `batches(most)` here",
    "unsubscribe": "close it, or `subscribe` to others",
    "unassign": "close it, or `assign` others",
    "incremental_assign": "it is `assign` with all partitions here",
    "subscription": "it is the property `assignment` here, by partition",
    "seek_to_beginning": "it is `seek(topic, partition, 'earliest')` here",
    "seek_to_end": "it is `seek(topic, partition, 'latest')` here",
    "store_offsets": "done records are stored by themselves; `commit(message)` commits all up to one at once",
    "commit_async": "it is `commit(wait=False)` here",
    "get_watermark_offsets": "it is `Admin(...).offsets(topic)` here",
    "beginning_offsets": "it is `Admin(...).offsets(topic)` here",
    "end_offsets": "it is `Admin(...).offsets(topic)` here",
    "offsets_for_times": "it is `Admin(...).offsets_at(topic, time_ms)` here",
    "list_topics": "it is `Admin(...).list_topics()` here",
    "topics": "it is `Admin(...).list_topics()` here",
    "partitions_for_topic": "it is `Admin(...).describe_topic(name).partitions` here",
}
ADMIN: Final = {
    "create_topics": "it is `create_topic(name, partitions=, replicas=, configs=)` here, one by one",
    "delete_topics": "it is `delete_topic(name)` here, one by one",
    "create_partitions": "it is `add_partitions(name, total)` here",
    "describe_topics": "it is `describe_topic(name)` here, one by one",
    "describe_configs": "it is `topic_configs(name)` or `broker_configs(broker_id)` here",
    "alter_configs": "it is `alter_topic_configs(name, sets=...)` here",
    "incremental_alter_configs": "it is `alter_topic_configs(name, sets=...)` here",
    "list_offsets": "it is `offsets(topic)` or `offsets_at(topic, time_ms)` here",
    "list_consumer_groups": "it is `list_groups()` here",
    "describe_consumer_groups": "it is `describe_group(name)` here, one by one",
    "delete_consumer_groups": "it is `delete_group(name)` here, one by one",
    "list_consumer_group_offsets": "it is `describe_group(name).partitions` here",
    "alter_consumer_group_offsets": "it is `set_group_offsets(group, offsets)` here",
}


class Hints:
    """A class whose missing names raise errors with hints.

    They are class attributes: with `__getattr__` Python looks up all names more slowly, and `send` would take
    half as long again.
    """

    _hints: ClassVar[Mapping[str, str]] = {}
    _opened: ClassVar[tuple[str, ...]] = ()  # attributes that an asyncio client has only within `async with`

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, hint in cls._hints.items():
            if name not in dir(cls):
                setattr(cls, name, Missing(AttributeError, f"{OWNER} has no `{name}`: {hint}"))
        for name in cls._opened:
            unopened = f"not open yet: use it as `async with {OWNER}(...) as it:`"
            setattr(cls, name, Missing(ClientError, unopened))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not is_missing(type(self), name)]


class Missing:
    """An attribute that raises an error, unless it is set on the object."""

    def __init__(self, kind: type[Exception], sentence: str) -> None:
        self._kind, self._sentence = kind, sentence

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise self._kind(self._sentence.replace(OWNER, owner.__name__))


def is_missing(kind: type, name: str) -> bool:
    """Whether this attribute of the class only raises an error with a hint."""
    return isinstance(inspect.getattr_static(kind, name, None), Missing)


class ConsumerHints(Hints):
    """Hints of a consumer, which is not an iterator: `iter` begins with the records that are not done."""

    _hints = CONSUMER

    if not TYPE_CHECKING:

        def __next__(self) -> NoReturn:
            raise TypeError(
                f"{type(self).__name__} is no iterator: `messages = iter(consumer)`, then `next(messages)`"
            )


def refuse_callback(function: object) -> NoReturn:
    """Raise BadSetting for a callback of `send`, which names `post`."""
    raise BadSetting(
        f"send takes no on_delivery={function!r}: `post` does, of a Producer(..., receipts=True); "
        "Producer(..., on_failure=FUNCTION) calls a function for each failed record"
    )


def refuse_commit(unknown: Mapping[str, object]) -> NoReturn:
    """Raise BadSetting for an argument of `commit` that another client has."""
    names = ", ".join(unknown)
    if "asynchronous" in unknown:
        raise BadSetting("commit has no asynchronous=: it is `commit(wait=False)`, and waits by default")
    if "offsets" in unknown:
        raise BadSetting("commit has no offsets=: it is `commit(message)`, which commits all up to that one")
    raise BadSetting(f"commit has no {names}: it is `commit()`, `commit(message)` or `commit(wait=False)`")


@contextmanager
def note_failure(error: BaseException | None) -> Iterator[None]:
    """Add a ClientError that the block raises as a note to `error`, which ended the client's `with` block."""
    try:
        yield
    except ClientError as failure:
        if error is None:
            raise
        error.add_note(f"and besides: {failure}")
