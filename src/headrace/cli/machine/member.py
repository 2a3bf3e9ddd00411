"""A process of `headrace up --brokers N`: it ends with its parent, and says what its parent has to know.

    python -m headrace.cli.machine.member NAME PARENT MODULE            runs MODULE.serve(**JSON on stdin)
    python -m headrace.cli.machine.member NAME PARENT exec COMMAND...   becomes another program

Its log goes to stderr, which is a file. On stdout it says `ready …`, every warning, and `refused …` before it
exits for a reason that its log need not explain further.
"""

import ctypes
import json
import os
import signal
import sys
from importlib import import_module
from typing import Any, Final, NoReturn

REFUSED: Final = 3  # the exit status of a process that has said why it cannot run
READY: Final = "ready "
REFUSAL: Final = "refused "
EXECUTE: Final = "exec"
_LONGEST_LINE: Final = 2000  # bytes; a pipe takes twice that whole, or nothing
_PR_SET_PDEATHSIG: Final = 1


def main() -> NoReturn:
    """Run what the arguments say."""
    _name, parent, module, *command = sys.argv[1:]  # the name is for `ps`
    _end_with(int(parent))
    if module == EXECUTE:
        os.execv(command[0], command)  # noqa: S606  the parent's own words
    sys.exit(_serve(module, json.load(sys.stdin)))


def _end_with(parent: int) -> None:
    """Have the kernel kill this process, or what it executes, as soon as its parent is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it has gone before
        sys.exit(1)


def _serve(module: str, settings: dict[str, Any]) -> int:
    from headrace.cli import process  # noqa: PLC0415  what is executed needs none of this
    from headrace.cli.main import known_errors  # noqa: PLC0415

    os.set_blocking(sys.stdout.fileno(), False)
    try:
        process.run(import_module(module).serve(**settings))
    except Exception as error:
        if not isinstance(error, known_errors()):
            raise
        say(f"{REFUSAL}{error}")
        return REFUSED
    return 0


def say(line: str) -> None:
    """Tell the parent; a broker does not wait for one that is slow to listen, as the log has it all."""
    told = " ".join(line.split()).encode()[:_LONGEST_LINE]
    try:
        os.write(sys.stdout.fileno(), told + b"\n")
    except OSError as error:
        print(f"the parent was not told {told!r}: {error}", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
