"""An order that refers to its items, in three formats: as it is, with a note, and as it may not become."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]
from grpc_tools import protoc  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What is registered: `item` by the name that the others refer to it by, which is its subject too."""

    type: str
    reference: str
    item: str
    order: str
    more: str  # may follow `order`
    other: str  # may not


def _avro(id_type: str, *more: dict[str, Any]) -> str:
    items = {"name": "items", "type": {"type": "array", "items": "shop.Item"}}
    fields = [{"name": "id", "type": id_type}, items, *more]
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


AVRO: Final = Format(
    type="AVRO",
    reference="shop.Item",
    item=json.dumps(
        {
            "type": "record",
            "name": "Item",
            "namespace": "shop",
            "fields": [{"name": "name", "type": "string"}],
        }
    ),
    order=_avro("long"),
    more=_avro("long", {"name": "note", "type": "string", "default": ""}),
    other=_avro("string"),
)


def _json(id_type: str, **more: Any) -> str:
    items = {"type": "array", "items": {"$ref": "item.json"}}
    return json.dumps(
        {
            "title": "Order",
            "type": "object",
            "properties": {"id": {"type": id_type}, "items": items, **more},
            "required": ["id"],
            "additionalProperties": False,
        }
    )


JSON: Final = Format(
    type="JSON",
    reference="item.json",
    item=json.dumps(
        {
            "$id": "item.json",
            "title": "Item",
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        }
    ),
    order=_json("integer"),
    more=_json("integer", note={"type": "string"}),
    other=_json("string"),
)


def _protobuf(id_type: str, more: str = "") -> str:
    # Order is not the file's first message, so that its number has to be written before every record.
    return (
        'syntax = "proto3";\npackage shop;\n\nimport "item.proto";\n\nmessage Unused {\n}\n\n'
        f"message Order {{\n  {id_type} id = 1;\n  repeated Item items = 2;\n{more}}}\n"
    )


PROTOBUF: Final = Format(
    type="PROTOBUF",
    reference="item.proto",
    item='syntax = "proto3";\npackage shop;\n\nmessage Item {\n  string name = 1;\n}\n',
    order=_protobuf("int32"),
    more=_protobuf("int32", "  string note = 3;\n"),
    other=_protobuf("string"),
)


def descriptors() -> bytes:
    """What protoc makes of `PROTOBUF.order`, and of what it imports."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "item.proto").write_text(PROTOBUF.item)
        Path(directory, "order.proto").write_text(PROTOBUF.order)
        made = Path(directory, "order.pb")
        arguments = [f"-I{directory}", f"--descriptor_set_out={made}", "--include_imports", "order.proto"]
        assert protoc.main(["protoc", *arguments]) == 0
        return made.read_bytes()


def order_class(described: bytes) -> Any:
    """The class of orders, as protoc would have generated it."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(described).file:
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
