"""A process that ends with its parent."""

import os
import select
import subprocess
import sys

import pytest

WAITING = (
    "from headrace.system.parent_process import end_with; "
    "end_with({parent}); print('waits', flush=True); input()"
)
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert child.stdout.readline() == b"waits\\n"
print(child.pid, flush=True)
input()
"""


def test_a_process_whose_parent_is_gone_already_exits() -> None:
    code = WAITING.format(parent=os.getppid())  # not the process that starts it
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no PR_SET_PDEATHSIG")
def test_the_kernel_kills_the_process_when_its_parent_is_killed() -> None:
    code = WAITING.format(parent="__import__('os').getppid()")
    command = [sys.executable, "-c", PARENT, code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            readable, _, _ = select.select([child], [], [], 60)  # a process that has ended
            assert readable == [child]
        finally:
            os.close(child)
