"""kcat against our broker, where it is installed."""

import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from wire.process import BrokerProcess

KCAT: Final = shutil.which("kcat") or shutil.which("kafkacat")
TIMEOUT_S: Final = 30

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed: apt install kcat")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("kcat")) as process:
        yield process


def kcat(broker: BrokerProcess, *arguments: str, text: str = "") -> str:
    assert KCAT is not None
    run = subprocess.run(
        [KCAT, "-b", broker.bootstrap, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_kcat_reads_back_keys_headers_and_values(broker: BrokerProcess) -> None:
    kcat(broker, "-P", "-t", "cat", "-p", "0", "-K:", "-H", "a=1", "-z", "lz4", text="k1:v1\nk2:v2\n")

    printed = kcat(broker, "-C", "-t", "cat", "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %k %s %h\n")

    assert printed == "0 k1 v1 a=1\n1 k2 v2 a=1\n"


def test_kcat_lists_the_cluster_and_finds_offsets(broker: BrokerProcess) -> None:
    kcat(broker, "-P", "-t", "listed", "-p", "0", text="one\n")

    assert 'topic "listed" with 1 partitions' in kcat(broker, "-L")
    assert kcat(broker, "-Q", "-t", "listed:0:-1").strip() == "listed [0] offset 1"
