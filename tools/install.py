"""`make install`: Headrace itself, editable, and the packages of a locked requirements file.

uv installs them in a third of pip's time. It comes from the package index, in the version and with the hash
that requirements/uv.txt has, and uses the index, certificates and time limits that pip is configured for.
Where there is no uv, pip installs the same packages.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check")
UV: Final = Path(sys.executable).with_name("uv")
UV_REQUIREMENTS: Final = "requirements/uv.txt"

# An option of pip, the environment variable with which uv is told the same, and what joins several values.
VARIABLES: Final = (
    ("index-url", "UV_DEFAULT_INDEX", ""),
    ("extra-index-url", "UV_INDEX", " "),
    ("find-links", "UV_FIND_LINKS", ","),
    ("no-index", "UV_NO_INDEX", ""),
    ("trusted-host", "UV_INSECURE_HOST", " "),
    ("cert", "SSL_CERT_FILE", ""),
    ("proxy", "ALL_PROXY", ""),
    ("timeout", "UV_HTTP_TIMEOUT", ""),
    ("default-timeout", "UV_HTTP_TIMEOUT", ""),
)
# Of an option that is set several times, pip takes the last: in its files, for `pip install` in them, in the
# environment.
SECTIONS: Final = ("global", "install", ":env:")


def main(requirements: str) -> int:
    """Install the packages with uv, or with pip if that fails; return the exit status."""
    locked = ("install", "--require-hashes", "-r", requirements)
    # hatchling, which builds the package, is one of the locked packages.
    package = ("install", "--no-deps", "--no-build-isolation", "-e", ".")
    if _uv_is_installed():
        uv, environment = (str(UV), "pip"), os.environ | uv_environment(_pip_configuration(), os.environ)
        if _run([*uv, *locked, "--no-deps"], environment) and _run([*uv, *package], environment):
            return 0
        print("install: uv failed, now with pip: this takes a minute or two", file=sys.stderr)
    installed = _run([*PIP, *locked, "--no-compile"]) and _run([*PIP, *package])
    return 0 if installed else 1


def uv_environment(configuration: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell uv what pip is configured for, without those that are set already.

    `configuration` is what `pip config list` prints: lines such as `global.index-url='https://…'`.
    """
    options: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in configuration:
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in options:
            options[section][option] = str(ast.literal_eval(value))
    # pip uses the certificates of the system, and any of several indexes: each file has a locked hash.
    variables = {"UV_SYSTEM_CERTS": "true", "UV_INDEX_STRATEGY": "unsafe-best-match"}
    for option, variable, separator in VARIABLES:
        for section in SECTIONS:
            if configured := options[section].get(option):
                variables[variable] = separator.join(configured.split()) if separator else configured
    return {name: value for name, value in variables.items() if name not in environment}


def _uv_is_installed() -> bool:
    """Install the locked version of uv if it is not there; there is no wheel of it for some platforms."""
    print("install: uv, which installs the rest", file=sys.stderr)
    options = ("--quiet", "--only-binary=:all:", "--require-hashes", "-r", UV_REQUIREMENTS)
    if _run([*PIP, "install", *options]):
        return True
    print("install: uv cannot be had, now with pip: this takes a minute or two", file=sys.stderr)
    return False


def _pip_configuration() -> list[str]:
    done = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.splitlines()


def _run(command: Sequence[str], environment: Mapping[str, str] = os.environ) -> bool:
    return subprocess.run(command, env=environment, check=False).returncode == 0  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
