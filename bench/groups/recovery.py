"""A broker that starts again with a million commits in its offsets topic, until it knows them."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Final

from compare.drive import Endpoint, drive
from compare.servers import Server
from compare.table import Figures
from compare.wire import answers_metadata, ask, request
from groups.coordinator import commit_request, fetch_request, find
from groups.membership import Topic
from groups.progress import progress
from groups.table import Case
from headrace.client.wire.connection import Address
from headrace.protocol.api import ApiKey
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.offset_fetch import OffsetFetchResponse

PARTITIONS: Final = 100
TIMEOUT_S: Final = 300
SETTINGS: Final = {"offsets.topic.num.partitions": "1"}


class Commits:
    """Commits to all groups in turn, the offset growing from round to round."""

    def __init__(self, topic: Topic, groups: int) -> None:
        self._topic = topic
        self._groups = groups
        self._numbers = count()

    def next(self) -> bytes:
        number = next(self._numbers)
        if number % 100 == 0:
            progress(f"{number * PARTITIONS:,} offsets committed")
        round_, group = divmod(number, self._groups)
        body = commit_request(_name(group), self._topic, PARTITIONS, offset=round_)
        return request(ApiKey.OFFSET_COMMIT, body)

    def answered(self, _frame: memoryview) -> int:
        return 1


def _name(group: int) -> str:
    return f"recovered-{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """So many rounds of commits for each of 100 partitions in each of so many groups."""

    groups: int
    rounds: int

    def run(self, server: Server) -> Figures:
        find(server.address)
        topic = Topic.made(server, "recovered", PARTITIONS)
        self._commit(server.address, topic)
        server.stop()
        return {
            **self._started(server, topic, "after a stop"),
            **self._started(server, topic, "after kill -9"),
        }

    def _commit(self, address: Address, topic: Topic) -> None:
        requests = self.groups * self.rounds
        commits = Commits(topic, self.groups)
        endpoint = Endpoint(address)
        drive(endpoint, lambda _: commits, connections=1, depth=1, seconds=TIMEOUT_S, max_bytes=requests)
        for group in range(self.groups):
            assert self._knows(address, topic, group), f"the commits of {_name(group)} are not there"

    def _started(self, server: Server, topic: Topic, when: str) -> Figures:
        """Start the broker and wait until it has the last group's offsets; kill it."""
        progress(f"start {when}")
        start = time.perf_counter()
        longest = 0.0
        with server:
            while not self._knows(server.address, topic, self.groups - 1):
                asked = time.perf_counter()
                assert answers_metadata(server.address)
                longest = max(longest, time.perf_counter() - asked)
                assert asked < start + TIMEOUT_S, f"not loaded after {TIMEOUT_S} s"
            seconds = time.perf_counter() - start
            memory = server.resident_bytes()
            os.kill(server.pid, signal.SIGKILL)
        return {
            f"{when}: s to Metadata": server.seconds_to_metadata,
            f"{when}: s to OffsetFetch": seconds,
            f"{when}: Metadata max ms": longest * 1000,
            f"{when}: RSS MB": memory / 1e6,
        }

    def _knows(self, address: Address, topic: Topic, group: int) -> bool:
        """Whether the broker answers for the group; what it answers has to be the last commit."""
        answer = ask(address, fetch_request(_name(group), topic, PARTITIONS))
        assert isinstance(answer, OffsetFetchResponse)
        (found,) = answer.groups
        if ErrorCode(found.error_code).retriable:
            return False
        assert not found.error_code, ErrorCode(found.error_code).name
        offsets = [part.committed_offset for part in found.topics[0].partitions]
        assert offsets == [self.rounds - 1] * PARTITIONS, offsets
        return True


def cases(*, quick: bool) -> Iterator[Case]:
    groups, rounds = (100, 10) if quick else (1000, 10)
    keys = groups * PARTITIONS
    yield Case(
        name=f"restart with {keys * rounds:,} commits of {keys:,} keys",
        run=Recovery(groups=groups, rounds=rounds).run,
        settings=SETTINGS,
    )
