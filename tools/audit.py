"""`make audit`: known vulnerabilities of the locked dependencies, as pip-audit finds them.

pip-audit succeeds if its vulnerability service knows none of the packages, and ends with a traceback if the
service cannot be reached. Here both are failures with a message of one line, and so is a vulnerability.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

FOUND: Final = 1  # exit status: there are vulnerabilities
NOT_AUDITED: Final = 2  # exit status: the service did not answer for every package


def main(command: Sequence[str]) -> int:
    """Run pip-audit, the path of which and whose arguments are `command`; return the exit status."""
    done = subprocess.run(  # noqa: S603  the Makefile's
        [*command, "--format=json", "--progress-spinner=off"], capture_output=True, text=True, check=False
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"audit: nothing was audited, because pip-audit failed: {last[:300]}")
        return NOT_AUDITED
    status, message = verdict(report["dependencies"])
    print(f"audit: {message}")
    return status


def verdict(dependencies: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Return the exit status and what to say about the dependencies in pip-audit's report."""
    vulnerable = [
        f"{each['name']} {each['version']}: {', '.join(known['id'] for known in each['vulns'])}"
        for each in dependencies
        if each.get("vulns")
    ]
    if vulnerable:
        return FOUND, "vulnerable packages:\n  " + "\n  ".join(vulnerable)
    skipped = [str(each["name"]) for each in dependencies if "skip_reason" in each]
    if skipped or not dependencies:
        return NOT_AUDITED, (
            f"{len(skipped)} of {len(dependencies)} packages were not audited, such as "
            f"{', '.join(skipped[:3])}: the vulnerability service does not know them, or cannot be reached"
        )
    return 0, f"no known vulnerability in {len(dependencies)} packages"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
