"""The transactional tests of franz-go, Go's Kafka client, as its authors run them: on three brokers."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from compat.registry_clients.programs import ClientUnavailable, fetch, kept, run_in
from transactions.brokers import Brokers

pytestmark = pytest.mark.long

SOURCE: Final = Path(__file__).parent / "go"
RECORDS: Final = 100_000  # the authors' default is five times as many
RUN_S: Final = 1500
CHAINS: Final = 6  # group protocols and assignors, each in a subtest


@pytest.fixture(scope="module")
def kgo_tests() -> Path:
    """The compiled tests of franz-go's package kgo."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("franz-go's tests need go (1.26 or newer).")

    def build(directory: Path) -> None:
        fetch([go, "mod", "download"], SOURCE)
        package = "github.com/twmb/franz-go/pkg/kgo"
        made = run_in([go, "test", "-c", "-o", str(directory / "kgo.test"), package], SOURCE)
        assert made.returncode == 0, made.stderr

    try:
        return kept(sorted(SOURCE.iterdir()), build) / "kgo.test"
    except ClientUnavailable as reason:
        pytest.skip(str(reason))


def test_chains_of_group_transact_sessions_copy_every_record_once(
    brokers: Brokers, kgo_tests: Path, tmp_path: Path
) -> None:
    """TestTxnEtl: members that join, leave and abort copy records through three topics in transactions."""
    environment = {
        "KGO_SEEDS": brokers.bootstrap,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_TEST_UNSAFE": "1",  # begin a transaction while the last one is ending, as Kafka allows
    }
    with (tmp_path / "franz-go.log").open("wb") as log:
        ran = subprocess.run(
            [str(kgo_tests), "-test.run", "^TestTxnEtl$", "-test.v", f"-test.timeout={RUN_S}s"],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            check=False,
            timeout=RUN_S + 60,
        )
    results = [line.strip() for line in ran.stdout.splitlines() if line.strip().startswith("---")]
    assert ran.returncode == 0, "\n".join(results)
    passed = [line for line in results if line.startswith("--- PASS: TestTxnEtl/")]
    assert len(passed) == CHAINS, results
