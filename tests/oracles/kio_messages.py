"""kio's opinion: the same message as an instance of kio's class, and the bytes kio makes of it."""

import dataclasses
import io
from datetime import UTC, datetime, timedelta
from functools import cache
from pkgutil import resolve_name
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer
from kio.serial._introspect import EntityField, EntityTupleField, classify_field

from headrace.protocol.fields import ZERO_UUID
from oracles.schemas import Case

# Kafka has renamed these fields since the version that kio was made from.
RENAMED = {
    ("TxnOffsetCommitRequest", "generation_id"): "generation_id_or_member_epoch",
    ("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag"): "acceptable_recovery_lag_legacy",
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def kio_has(case: Case) -> bool:
    """Whether kio, which follows Kafka with a delay, has the message in that version."""
    return case.version in schema_name_map.get(case.module, ())


def kio_bytes(case: Case, message: Any) -> bytes:
    kio_cls = kio_class(case)
    out = io.BytesIO()
    entity_writer(kio_cls)(out, to_kio(message, kio_cls))
    return out.getvalue()


@cache
def kio_class(case: Case) -> Any:
    paths = schema_name_map[case.module][case.version].values()
    (path,) = (path for path in paths if path.endswith(f":{case.cls.__name__}"))
    return resolve_name(path)


def to_kio(message: Any, kio_cls: Any) -> Any:
    """`message` as an instance of `kio_cls`, which is one version of the same message."""
    values = {}
    for field, our_name, kafka_type, nested in _plan(kio_cls):
        value = getattr(message, our_name)
        if isinstance(value, list | tuple):
            values[field] = tuple(_convert(item, kafka_type, nested) for item in value)
        else:
            values[field] = _convert(value, kafka_type, nested)
    return kio_cls(**values)


@cache
def _plan(kio_cls: Any) -> list[tuple[str, str, str, type[Any] | None]]:
    """Each field of kio's class: its name, our name, its type, and its struct if it has one."""
    plan = []
    for field in dataclasses.fields(kio_cls):
        kafka_type = field.metadata.get("kafka_type", "struct")
        unit = "_ms" if kafka_type.startswith(("timedelta", "datetime")) else ""
        kind = classify_field(field)
        nested = kind.type_ if isinstance(kind, EntityField | EntityTupleField) else None
        our_name = RENAMED.get((kio_cls.__name__, field.name), field.name.rstrip("_") + unit)
        plan.append((field.name, our_name, kafka_type, nested))
    return plan


def _convert(value: Any, kafka_type: str, nested: type[Any] | None) -> Any:
    if value is None:
        return None
    if nested is not None:
        return to_kio(value, nested)
    match kafka_type:
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else EPOCH + timedelta(milliseconds=value)
        case "uuid":
            return None if value == ZERO_UUID else UUID(bytes=value)
    return value
