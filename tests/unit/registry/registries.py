"""A registry without a topic: what is decided is written to a list, and applied."""

from collections.abc import Mapping
from typing import Any, TypeVar

from headrace.registry.configuration import delete_config, delete_mode, set_config, set_mode
from headrace.registry.deletion import delete_subject, delete_version
from headrace.registry.formats import Level, Reference, Schema, SchemaType
from headrace.registry.library import Comparison, Library
from headrace.registry.record_json import decode, encode_key, encode_value
from headrace.registry.records import Decision, Mode, Record, SchemaValue
from headrace.registry.registration import SubmittedSchema, compatible, lookup, register
from headrace.registry.state import RegistryState, Show

Answer = TypeVar("Answer")


class ARegistry:
    """Decides, writes and applies, as a gateway does with a topic."""

    def __init__(self, written: list[tuple[bytes, bytes | None]] | None = None) -> None:
        self.state = RegistryState()
        self.library = Library(self.state)
        self.written: list[tuple[bytes, bytes | None]] = []
        for key, value in written or ():
            self.written.append((key, value))
            assert self.state.apply(decode(key, value)) is None

    def carry_out(self, decision: Decision[Answer]) -> Answer:
        for each in decision.records:
            self.written.append((encode_key(each.key), encode_value(each)))
            assert self.state.apply(each) is None
        return decision.answer

    def register(
        self,
        subject: str,
        text: str,
        *,
        normalize: bool = False,
        refers_to: tuple[Reference, ...] = (),
        **more: Any,
    ) -> SchemaValue:
        wanted = SubmittedSchema(Schema(SchemaType.AVRO, text, refers_to), **more)
        decision = register(self.state, self.library, subject, wanted, normalize=normalize)
        if isinstance(decision, Comparison):
            self.library.verdicts[decision] = decision.messages()
            decision = register(self.state, self.library, subject, wanted, normalize=normalize)
        assert isinstance(decision, Decision)
        return self.carry_out(decision)

    def lookup(
        self, subject: str, text: str, *, normalize: bool = False, show: Show = Show.LIVE
    ) -> SchemaValue:
        wanted = SubmittedSchema(Schema(SchemaType.AVRO, text))
        return lookup(self.state, self.library, subject, wanted, normalize=normalize, show=show)

    def incompatibilities(self, subject: str, text: str) -> list[str]:
        wanted = SubmittedSchema(Schema(SchemaType.AVRO, text))
        found = compatible(self.state, self.library, subject, wanted, self.state.versions(subject))
        return found.messages() if isinstance(found, Comparison) else found

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> object:
        if version is None:
            return self.carry_out(delete_subject(self.state, subject, permanent=permanent))
        return self.carry_out(delete_version(self.state, subject, version, permanent=permanent))

    def configure(self, subject: str | None, level: Level | None = None, **more: Any) -> None:
        said: Mapping[str, Any] = more if level is None else {"compatibilityLevel": str(level), **more}
        self.carry_out(set_config(self.state, subject, said))

    def unconfigure(self, subject: str | None) -> None:
        self.carry_out(delete_config(self.state, subject))

    def enter(self, subject: str | None, mode: Mode, *, force: bool = False) -> None:
        self.carry_out(set_mode(self.state, subject, mode, force=force))

    def leave(self, subject: str | None) -> None:
        self.carry_out(delete_mode(self.state, subject))

    def apply(self, record: Record) -> str | None:
        return self.state.apply(record)

    def replayed(self) -> "ARegistry":
        return ARegistry(self.written)

    def compacted(self) -> "ARegistry":
        """As after a compaction that has spared nothing: tombstones are gone, too."""
        newest = {key: at for at, (key, _) in enumerate(self.written)}
        kept = [each for at, each in enumerate(self.written) if newest[each[0]] == at and each[1] is not None]
        return ARegistry(kept)


def record_type(*fields: str, name: str = "Order") -> str:
    """An Avro record of strings; a field that ends with `?` has a default, and so may come and go."""
    described = [f'{{"name":"{field.rstrip("?")}","type":"string"{_default(field)}}}' for field in fields]
    return f'{{"type":"record","name":"{name}","fields":[{",".join(described)}]}}'


def _default(field: str) -> str:
    return ',"default":""' if field.endswith("?") else ""
