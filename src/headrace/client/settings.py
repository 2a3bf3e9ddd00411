"""Settings of clients under librdkafka's names, given by keyword, by dotted name, or as a dict.

Producer("127.0.0.1:9092", linger_ms=20)
Producer("127.0.0.1:9092", settings={"linger.ms": 20})
Producer({"bootstrap.servers": "127.0.0.1:9092", "linger.ms": 20})  # as for confluent_kafka
Producer(bootstrap_servers=["127.0.0.1:9092", "127.0.0.1:9093"], linger_ms=20)  # as for kafka-python
Producer(ConnectionSettings.load("client.properties"))  # a file of Java's clients or of librdkafka's

The Java client's settings of TLS and SASL are translated.
"""

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from operator import index
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka import Producer as RdkafkaProducer

from headrace.client.errors import BadSetting, WrongSetting, check_reachable
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.librdkafka import with_librdkafka_security
from headrace.client.wire.security import Security

Settings = Mapping[str, Any]
Bootstrap = str | Sequence[str] | Settings | ConnectionSettings | None  # addresses, or all settings
Client = TypeVar("Client")

LOGGER: Final = logging.getLogger("headrace.librdkafka")  # librdkafka's log

BOOTSTRAP: Final = ("bootstrap.servers", "metadata.broker.list")
_ALIASES: Final = {  # aliases: a default must not override either name
    "acks": "request.required.acks",
    "compression.type": "compression.codec",
    "delivery.timeout.ms": "message.timeout.ms",
    "linger.ms": "queue.buffering.max.ms",
}
_WITH_UNDERSCORES: Final = {
    "log_level",
    "error_cb",
    "stats_cb",
    "throttle_cb",
    "oauth_cb",
    "logger",
    "on_commit",
}
_UNKNOWN: Final = re.compile(r'No such configuration property: "(.*)"')


def gather(
    bootstrap: Bootstrap, *, defaults: Settings, settings: Settings | None, named: Settings
) -> dict[str, Any]:
    """Return all settings by librdkafka's names. A keyword overrides `settings`, and these the dict."""
    if isinstance(bootstrap, ConnectionSettings):
        given: dict[str, Any] = bootstrap.librdkafka()
    else:
        given = dict(bootstrap) if isinstance(bootstrap, Mapping) else {"bootstrap.servers": bootstrap}
    if not isinstance(settings or {}, Mapping):
        raise BadSetting(f"settings are a dict, such as {{'linger.ms': 20}}, not {settings!r:.80}")
    overrides = dict(settings or {})
    overrides |= {dotted(name): value for name, value in named.items() if value is not None}
    literal = set(given) - set(overrides) if isinstance(bootstrap, ConnectionSettings) else set()
    given |= overrides
    for name in BOOTSTRAP:
        if name in given:
            given[name] = _addresses(given[name])
    if not any(given.get(name) for name in BOOTSTRAP):
        raise BadSetting("bootstrap.servers is missing: give it as HOST:PORT,...")
    set_defaults(given, defaults)
    check(given)
    return with_librdkafka_security(given, literal)


def check_connection(given: Settings) -> None:
    """Raise Unreachable if no broker listens, and Refused if a broker does not let us in."""
    try:
        settings = ConnectionSettings(bootstrap_of(given), Security.of_resolved(given))
    except WrongSetting:  # a mechanism that only librdkafka has, such as GSSAPI
        check_reachable(bootstrap_of(given))
    else:
        settings.check()


def set_defaults(given: dict[str, Any], defaults: Settings) -> None:
    """Add the defaults of settings that are not given, under either of their names."""
    for name, value in defaults.items():
        if name not in given and _ALIASES.get(name) not in given:
            given[name] = value


def said(**arguments: object) -> dict[str, object]:
    """Return the arguments that were given: those that are None do not change a setting."""
    return {name: value for name, value in arguments.items() if value is not None}


def check_functions(**given: object) -> None:
    """Raise BadSetting for a callback that cannot be called, before it is needed."""
    for name, function in given.items():
        if function is not None and not callable(function):
            raise BadSetting(f"{name} has to be a function, not {function!r:.80}")


def check_seconds(**given: Any) -> None:
    """Raise BadSetting unless each is a number of seconds, or None for no limit."""
    for name, seconds in given.items():
        if seconds is not None and (not isinstance(seconds, Real) or math.isnan(seconds)):
            raise BadSetting(
                f"{name}={seconds!r:.80}: it is a number of seconds (of a timedelta: .total_seconds())"
            )


def _addresses(given: object) -> str:
    if given is None or isinstance(given, str):
        return given or ""
    if isinstance(given, Sequence) and all(isinstance(each, str) for each in given):
        return ",".join(given)
    raise BadSetting(f"the brokers are HOST:PORT,... or a list of such, not {given!r:.80}")


def dotted(keyword: str) -> str:
    """Return `linger.ms` for `linger_ms`; the few names with underscores keep them."""
    return keyword if keyword in _WITH_UNDERSCORES else keyword.replace("_", ".")


def bootstrap_of(settings: Settings) -> str:
    return str(next(settings[name] for name in BOOTSTRAP if settings.get(name)))


def delivery_timeout_ms(settings: Settings) -> int | None:
    """Return the delivery timeout; None if it is not a number, which `build` refuses."""
    names = ("delivery.timeout.ms", _ALIASES["delivery.timeout.ms"])
    found = str(next((settings[name] for name in names if name in settings), ""))
    return int(found) if found.isdigit() else None


def check_settings(settings: Settings) -> None:
    """Raise BadSetting for settings that librdkafka would refuse, by a client of it that never connects."""
    others = {name: value for name, value in settings.items() if name not in {*BOOTSTRAP, "client.id"}}
    if others:
        build(RdkafkaProducer, {"log_level": 0, **others})


def build(kind: Callable[..., Client], settings: dict[str, Any]) -> Client:
    """Return a client of librdkafka; BadSetting names the setting that is wrong."""
    settings.setdefault("logger", LOGGER)
    try:
        return kind(settings)
    except KafkaException as error:
        raise BadSetting(_sentence(str(error.args[0].str()))) from error
    except (TypeError, ValueError) as error:
        raise BadSetting(_sentence(str(error))) from error


def _sentence(said: str) -> str:
    said = re.sub(r"^Failed to create \w+: ", "", said.strip())
    unknown = _UNKNOWN.search(said)
    if unknown:
        return f"there is no setting {unknown[1]}: {name_here(unknown[1])}"
    return f"{said[:1].lower()}{said[1:]}"


_ACKS: Final = {"all", "-1", "1", "0"}
_CALLED_FOR_EACH: Final = ("on_delivery", "on.delivery", "dr_cb", "dr.cb", "dr_msg_cb", "dr.msg.cb")
_HERE: Final = {  # of Java's client and kafka-python; librdkafka has no such settings
    "value.serializer": "give value=FORMAT, such as value=JSON",
    "key.serializer": "give key=FORMAT, such as key=STRING",
    "value.deserializer": "give value=FORMAT, such as value=JSON",
    "key.deserializer": "give key=FORMAT, such as key=STRING",
    "schema.registry.url": "give registry='http://HOST:PORT'",
    "max.poll.records": "`batches(most)` limits a batch",
    "consumer.timeout.ms": "`read(idle_s=...)` ends after so long without a record",
    "buffer.memory": "it is queue_buffering_max_kbytes",
    "max.request.size": "it is message_max_bytes",
    "max.block.ms": "`send` waits for room in the buffer, and nothing else",
    "api.version": "leave it out: versions are negotiated",
}


def check(given: Mapping[str, Any]) -> None:
    """Raise BadSetting for settings that librdkafka accepts and this client could not obey."""
    for name in _CALLED_FOR_EACH:  # we would overwrite it
        if name in given:
            raise BadSetting(
                f"{name} is not a setting here: Producer(..., on_failure=FUNCTION) gets failed records, "
                "post(..., on_delivery=FUNCTION) of a Producer(..., receipts=True) each record"
            )
    for name in ("acks", "request.required.acks"):
        if str(given.get(name, "all")) not in _ACKS:
            raise BadSetting(f"acks is 'all', 1 or 0, not {given[name]!r}")
        if given.get("transactional.id") is not None and str(given.get(name, "all")) not in {"all", "-1"}:
            raise BadSetting(f"a producer with a transactional.id needs acks='all', not {given[name]!r}")
    transactional_id = given.get("transactional.id")
    if transactional_id is not None and not (isinstance(transactional_id, str) and transactional_id):
        raise BadSetting(f"a transactional.id is a str, such as 'billing-1', not {transactional_id!r:.80}")


def name_here(name: str) -> str:
    """Return what to use instead of a setting that librdkafka does not have."""
    return _HERE.get(
        name, "librdkafka's CONFIGURATION.md has all names (as a keyword, an underscore stands for each dot)"
    )


LAST_OFFSET: Final = 2**63 - 1
LAST_PARTITION: Final = 2**31 - 1


def whole(given: Any) -> int | None:
    """Return an int for Python's or numpy's whole numbers; None for anything else."""
    try:
        return index(given)
    except TypeError:
        return None
