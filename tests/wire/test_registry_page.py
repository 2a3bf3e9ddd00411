"""docs/schemas.md, run as it is written."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.testing import Broker

PAGE = (Path(__file__).parents[2] / "docs" / "schemas.md").read_text("utf-8")
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def snippet(language: str, broker: Broker) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return (
        str(found).replace("http://127.0.0.1:8080", broker.http).replace("127.0.0.1:9092", broker.bootstrap)
    )


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_curl_says_what_is_there(broker: Broker) -> None:
    said = run("bash", "-ec", snippet("sh", broker))

    assert '"id":1,"version":1' in said
    assert '["users-value"]' in said
    assert '"is_compatible":false' in said
    assert '{"compatibility":"FULL_TRANSITIVE"}' in said
    assert said.endswith("[1][1]")


def test_the_serialisers_of_confluent_kafka_work(broker: Broker) -> None:
    assert run(sys.executable, "-c", snippet("python", broker)) == "{'id': 1, 'item': 'cake'}\n"
