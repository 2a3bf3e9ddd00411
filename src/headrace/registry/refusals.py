"""The errors of the registry, with Confluent's error codes: 40401 is sent with status 404, 42201 with 422."""

from collections.abc import Sequence
from typing import ClassVar


class Refusal(Exception):
    """A request that is refused, and changes nothing. `message` is formatted with the arguments."""

    code: ClassVar[int] = 50001
    message: ClassVar[str] = "{}"

    def __init__(self, *arguments: object) -> None:
        super().__init__(self.message.format(*arguments))


class NoSuchSubject(Refusal):
    code, message = 40401, "Subject '{}' not found."


class NoSuchVersion(Refusal):
    code, message = 40402, "Version {} not found."


class NoSuchSchema(Refusal):
    code = 40403

    def __init__(self, which: int | str = "") -> None:
        super().__init__(f"Schema {which} not found" if which != "" else "Schema not found")


class SubjectDeleted(Refusal):
    code, message = 40404, "Subject '{}' was soft deleted. Set permanent=true to delete permanently"


class SubjectNotDeleted(Refusal):
    code, message = 40405, "Subject '{}' was not deleted first before being permanently deleted"


class VersionDeleted(Refusal):
    code, message = (
        40406,
        "Subject '{}' Version {} was soft deleted. Set permanent=true to delete permanently",
    )


class VersionNotDeleted(Refusal):
    code, message = 40407, "Subject '{}' Version {} was not deleted first before being permanently deleted"


class NoConfig(Refusal):
    code, message = 40408, "Subject '{}' does not have subject-level compatibility configured"


class NoMode(Refusal):
    code, message = 40409, "Subject '{}' does not have subject-level mode configured"


class Incompatible(Refusal):
    code = 409

    def __init__(self, subject: str, messages: Sequence[str]) -> None:
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{', '.join(messages)}]"
        )


class Invalid(Refusal):
    """A text that is not a valid schema."""

    code = 42201


class InvalidVersion(Refusal):
    code = 42202
    message = (
        "The specified version '{}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )


class InvalidLevel(Refusal):
    code = 42203
    message = (
        "Invalid compatibility level. Valid values are none, backward, forward, full, "
        "backward_transitive, forward_transitive, and full_transitive"
    )


class InvalidMode(Refusal):
    code = 42204
    message = "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT"


class NotPermitted(Refusal):
    code = 42205


class Referenced(Refusal):
    code, message = 42206, "One or more references exist to the schema {} version {}"


class InvalidSubject(Refusal):
    code, message = 42208, "The specified subject '{}' is not a valid subject."


class ContextNotEmpty(Refusal):
    code, message = 42211, "The specified context '{}' is not empty."
