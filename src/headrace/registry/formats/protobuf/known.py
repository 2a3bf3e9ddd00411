"""Imports that need no reference, because every client has them and none registers them.

google/protobuf comes with protoc, google/type with the clients' serializers. The files of Confluent (for
metadata in a schema, and for the decimals of Connect) are below.
"""

import importlib.util
import re
from functools import lru_cache
from pathlib import Path

_CONFLUENT = {
    "confluent/meta.proto": """
        syntax = "proto3";
        package confluent;
        import "google/protobuf/descriptor.proto";
        option java_package = "io.confluent.protobuf";
        option java_outer_classname = "MetaProto";
        message Meta {
            string doc = 1;
            map<string, string> params = 2;
            repeated string tags = 3;
            repeated Rule rules = 4;
        }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }
        extend google.protobuf.FileOptions { Meta file_meta = 1088; }
        extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
        extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
        extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
        extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
    """,
    "confluent/type/decimal.proto": """
        syntax = "proto3";
        package confluent.type;
        option java_package = "io.confluent.protobuf.type";
        option java_multiple_files = true;
        option java_outer_classname = "DecimalProto";
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
    """,
    "confluent/type/variant.proto": """
        syntax = "proto3";
        package confluent.type;
        option java_package = "io.confluent.protobuf.type";
        option java_multiple_files = true;
        option java_outer_classname = "VariantProto";
        message Variant { bytes metadata = 1; bytes value = 2; }
    """,
}
_NAME = re.compile(r"""["']((?:google/type|confluent)/[a-z_/]+\.proto)["']""")


def known_imports(text: str) -> dict[str, str]:
    """Return the known files that a text imports, by name. They do not import one another."""
    found = {name: _text(name) for name in _NAME.findall(text)}
    return {name: text for name, text in found.items() if text is not None}


@lru_cache(maxsize=64)
def _text(name: str) -> str | None:
    if name in _CONFLUENT:
        return _CONFLUENT[name]
    spec = importlib.util.find_spec("google.type") if name.startswith("google/type/") else None
    for directory in (spec and spec.submodule_search_locations) or ():
        file = Path(directory) / name.rpartition("/")[2]
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return None
