"""`headrace up --secure` for tests, and commands as its administrator or as another user."""

from pathlib import Path

from cli.command import Command, Result
from headrace.client.properties import parse_properties, to_properties
from headrace.client.wire.connection_settings import ConnectionSettings
from support.process import UpProcess


class Secured(Command):
    """Runs `headrace --command-config FILE`; the address is in the file."""

    def __init__(self, file: Path) -> None:
        super().__init__("")
        self.file = file

    def __call__(
        self, *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> Result:
        given = ("--command-config", str(self.file), *arguments)
        return super().__call__(*given, stdin=stdin, environment=environment)

    def arguments(self, *arguments: str) -> list[str]:
        return super().arguments("--command-config", str(self.file), *arguments)

    @property
    def connection(self) -> ConnectionSettings:
        return ConnectionSettings.load(self.file)

    def as_user(self, name: str, password: str) -> "Secured":
        """The same for another user, whose file is written beside this one."""
        settings = parse_properties(self.file.read_text(), "file")
        module = settings["sasl.jaas.config"].partition(" ")[0]
        settings["sasl.jaas.config"] = f'{module} required username="{name}" password="{password}";'
        file = self.file.with_name(f"{name}.properties")
        file.write_text(to_properties(settings))
        return Secured(file)


def administrator(up: UpProcess) -> Secured:
    return Secured(up.data / "client.properties")
