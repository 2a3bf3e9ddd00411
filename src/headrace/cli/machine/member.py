"""A process of `headrace up --brokers N` or of a node: it ends with its parent, and reports to its parent.

    python -m headrace.cli.machine.member NAME PARENT SERVICE           runs services.SERVICE(**settings)
    python -m headrace.cli.machine.member NAME PARENT exec COMMAND...   becomes another program

The first line of its stdin is JSON: {"settings": …, "shares_log": …}. Its log goes to stderr: a file of its
own, or that of its parent, with its name in every line. On stdout it reports `ready …`, `refused …` before it
exits for a reason that its log need not explain further, and every warning if its log is its own.
"""

import json
import os
import sys
from typing import Any, Final, NoReturn

from headrace.system.parent_process import end_with

REFUSED: Final = 3  # the exit status of a process that has reported why it cannot run
UNABLE: Final = 4  # the same, for an error of the system, such as a disk that cannot be read: others may run
READY: Final = "ready "
REFUSAL: Final = "refused "
EXECUTE: Final = "exec"
_LONGEST_LINE: Final = 2000  # bytes; a pipe takes up to twice as many in one piece, or none


def main() -> NoReturn:
    """Run the service or the program that the arguments name."""
    name, parent, service, *command = sys.argv[1:]
    end_with(int(parent))
    os.environ.pop("NOTIFY_SOCKET", None)  # the parent tells systemd when all members are ready
    if service == EXECUTE:
        os.execv(command[0], command)  # noqa: S606  the parent's own command
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as unbuffered:
        given = json.loads(unbuffered.readline())  # the service may read later lines
    sys.exit(_serve(name, service, given["settings"], shares_log=given["shares_log"]))


def _serve(name: str, service: str, settings: dict[str, Any], *, shares_log: bool) -> int:
    from headrace.cli.machine import services  # noqa: PLC0415
    from headrace.cli.main import known_errors  # noqa: PLC0415
    from headrace.cli.support import process  # noqa: PLC0415  another program needs none of these

    async def serve() -> None:
        if shares_log:
            process.name_in_log(name)
        else:
            services.log_warnings_to_parent()
        await getattr(services, service)(**settings)

    os.set_blocking(sys.stdout.fileno(), False)
    try:
        process.run(serve())
    except Exception as error:
        if not isinstance(error, known_errors()):
            raise
        report(f"{REFUSAL}{error}")
        return UNABLE if isinstance(error, OSError) else REFUSED
    return 0


def report(line: str) -> None:
    """Send a line to the parent, and drop it rather than wait if the parent is slow: the log has it too."""
    data = " ".join(line.split()).encode()[:_LONGEST_LINE]
    try:
        os.write(sys.stdout.fileno(), data + b"\n")
    except OSError as error:
        print(f"could not report {data!r} to the parent: {error}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
