"""Message classes out of .proto texts, as protoc would have generated them."""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]
from grpc_tools import protoc  # type: ignore[import-untyped]


def messages(directory: Path, **files: str) -> dict[str, Any]:
    """The classes by their names within the package: Order, and Order.Line within it."""
    for name, text in files.items():
        (directory / f"{name}.proto").write_text(text)
    described = directory / "described.pb"
    known = Path(protoc.__file__).parent / "_proto"
    names = [f"{name}.proto" for name in files]
    arguments = [f"-I{directory}", f"-I{known}", f"--descriptor_set_out={described}", "--include_imports"]
    assert protoc.main(["protoc", *arguments, *names]) == 0
    pool = DescriptorPool()
    found = FileDescriptorSet.FromString(described.read_bytes()).file
    for file in found:
        pool.Add(file)
    made: dict[str, Any] = {}
    for file in found:
        waiting = list(pool.FindFileByName(file.name).message_types_by_name.values())
        while waiting:
            message = waiting.pop()
            made[message.full_name.removeprefix(f"{file.package}.")] = GetMessageClass(message)
            waiting += [each for each in message.nested_types if not each.GetOptions().map_entry]
    return made
