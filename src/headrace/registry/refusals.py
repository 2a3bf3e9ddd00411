"""What a registry refuses, each with the number that Confluent's gives it: 40401 is 404, 42201 is 422."""

from collections.abc import Sequence


class Refusal(Exception):
    """A request that is not carried out, and changes nothing."""

    code = 50001

    @property
    def status(self) -> int:
        """The status of HTTP that goes with it."""
        return int(str(self.code)[:3])


class NoSuchSubject(Refusal):
    code = 40401

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' not found.")


class NoSuchVersion(Refusal):
    code = 40402

    def __init__(self, version: int) -> None:
        super().__init__(f"Version {version} not found.")


class NoSuchSchema(Refusal):
    code = 40403

    def __init__(self, which: int | str = "") -> None:
        super().__init__(f"Schema {which} not found" if which != "" else "Schema not found")


class SubjectDeleted(Refusal):
    code = 40404

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


class SubjectNotDeleted(Refusal):
    code = 40405

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' was not deleted first before being permanently deleted")


class VersionDeleted(Refusal):
    code = 40406

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was soft deleted. "
            "Set permanent=true to delete permanently"
        )


class VersionNotDeleted(Refusal):
    code = 40407

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(
            f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
        )


class NoConfig(Refusal):
    code = 40408

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level compatibility configured")


class NoMode(Refusal):
    code = 40409

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject '{subject}' does not have subject-level mode configured")


class Incompatible(Refusal):
    code = 409

    def __init__(self, subject: str, messages: Sequence[str]) -> None:
        super().__init__(
            f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
            f"details: [{', '.join(messages)}]"
        )


class Invalid(Refusal):
    """A schema that is none."""

    code = 42201


class InvalidVersion(Refusal):
    code = 42202

    def __init__(self, version: object) -> None:
        super().__init__(
            f"The specified version '{version}' is not a valid version id. "
            'Allowed values are between [1, 2^31-1] and the string "latest"'
        )


class InvalidLevel(Refusal):
    code = 42203

    def __init__(self) -> None:
        super().__init__(
            "Invalid compatibility level. Valid values are none, backward, forward, full, "
            "backward_transitive, forward_transitive, and full_transitive"
        )


class InvalidMode(Refusal):
    code = 42204

    def __init__(self) -> None:
        super().__init__("Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, and IMPORT")


class NotPermitted(Refusal):
    code = 42205


class Referenced(Refusal):
    code = 42206

    def __init__(self, subject: str, version: int) -> None:
        super().__init__(f"One or more references exist to the schema {subject} version {version}")


class InvalidSubject(Refusal):
    code = 42208

    def __init__(self, subject: str) -> None:
        super().__init__(f"The specified subject '{subject}' is not a valid subject.")


class ContextNotEmpty(Refusal):
    code = 42211

    def __init__(self, context: str) -> None:
        super().__init__(f"The specified context '{context}' is not empty.")
