"""Settings of other clients, and what they are here; and those that librdkafka would take and not keep to."""

from collections.abc import Mapping
from typing import Any, Final

from headrace.client.errors import BadSetting

_ACKS: Final = {"all", "-1", "1", "0"}
_CALLED_FOR_EACH: Final = ("on_delivery", "on.delivery", "dr_cb", "dr.cb", "dr_msg_cb", "dr.msg.cb")
_HERE: Final = {  # of Java's client and kafka-python; librdkafka has no such settings
    "value.serializer": "give value=FORMAT, such as value=JSON",
    "key.serializer": "give key=FORMAT, such as key=STRING",
    "value.deserializer": "give value=FORMAT, such as value=JSON",
    "key.deserializer": "give key=FORMAT, such as key=STRING",
    "schema.registry.url": "give registry='http://HOST:PORT'",
    "max.poll.records": "`batches(most)` says how many come at a time",
    "consumer.timeout.ms": "`read(idle_s=...)` ends when nothing has come for so long",
    "buffer.memory": "it is queue_buffering_max_kbytes",
    "max.request.size": "it is message_max_bytes",
    "max.block.ms": "`send` waits for room in the buffer, and nothing else",
    "api.version": "there is no need to say so",
}


def check(given: Mapping[str, Any]) -> None:
    """BadSetting for what librdkafka would take without a word, and nobody would keep to."""
    for name in _CALLED_FOR_EACH:  # we would overwrite it
        if name in given:
            raise BadSetting(
                f"{name} is no setting here: Producer(..., on_failure=FUNCTION) hears of what has failed, "
                "post(..., on_delivery=FUNCTION) of a Producer(..., receipts=True) of each"
            )
    for name in ("acks", "request.required.acks"):
        if str(given.get(name, "all")) not in _ACKS:
            raise BadSetting(f"acks is 'all', 1 or 0, not {given[name]!r}")
    if given.get("transactional.id") is not None:
        raise BadSetting(
            "transactional.id: there are no transactions yet (docs/limits.md); without it, a producer with "
            "acks='all' writes each record once and in order, by partition"
        )


def name_here(name: str) -> str:
    """What to use instead of a setting that librdkafka does not know."""
    return _HERE.get(
        name, "librdkafka's CONFIGURATION.md has all names (as a keyword, an underscore stands for each dot)"
    )
