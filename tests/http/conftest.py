"""One broker and one gateway before it, which the tests share; each has topics of its own."""

from collections.abc import Iterator

import pytest

from headrace.gateway.serving import serve_in_thread
from http_support.asking import Asking
from support.process import UpProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        assert process.running, process.log_tail()
        assert " ERROR " not in process.log.read_text(), process.log_tail()


@pytest.fixture(scope="session")
def gateway(broker: UpProcess) -> Iterator[Asking]:
    with serve_in_thread(broker.bootstrap) as served:
        asking = Asking(served.url)
        yield asking
        asking.close()
