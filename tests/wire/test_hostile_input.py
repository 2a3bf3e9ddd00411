"""Hostile bytes over real sockets: the broker stays up and small, and a client beside notices nothing.

HEADRACE_FUZZ_ROUNDS=100000 make wire    for longer than a minute
HEADRACE_FUZZ_SEED=7                     for other bytes
"""

import itertools
import os
import random
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from cluster.waiting import until
from headrace.protocol.batch import build_batch
from headrace.protocol.compression import Buffer, Compression, compress
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.metadata import MetadataRequest
from headrace.protocol.varint import encode_varint
from support.records import TIMESTAMP, make_batch
from wire.every_request import ADVERTISED
from wire.hostile import Bystander, garbage, mutants, valid_frames, visit
from wire.process import BrokerProcess
from wire.quotas import set_quotas
from wire.raw import RawClient, frame_of
from wire.requests import ASK_VERSIONS, create_topic, fetch, fetch_request, produce, produce_request

ROUNDS: Final = int(os.environ.get("HEADRACE_FUZZ_ROUNDS", "800"))
SEED: Final = int(os.environ.get("HEADRACE_FUZZ_SEED", "1"))
MEBIBYTE: Final = 2**20
GROWTH_BYTES: Final = 96 * MEBIBYTE  # over what the broker took before anybody came
PATIENCE_S: Final = 5.0  # the longest that a bystander may wait for one write and one read


@contextmanager
def siege(root: Path, *, growth_bytes: int = GROWTH_BYTES) -> Iterator[BrokerProcess]:
    """A broker with a bystander; at the end it is up, small and has nothing to complain of."""
    settings = {"auto.create.topics.enable": "false", "queued.max.request.bytes": str(32 * MEBIBYTE)}
    with BrokerProcess(root, settings) as broker:
        before = broker.rss_bytes
        with Bystander(broker) as bystander:
            yield broker
        assert broker.running, broker.log_tail()
        assert broker.complaints() == []
        assert bystander.trouble is None
        assert bystander.rounds > 0
        assert bystander.slowest_s < PATIENCE_S
        assert broker.peak_rss_bytes - before < growth_bytes


@pytest.fixture
def besieged(tmp_path: Path) -> Iterator[BrokerProcess]:
    with siege(tmp_path) as broker:
        yield broker


def test_mutants_of_valid_requests(besieged: BrokerProcess) -> None:
    with RawClient(besieged.bootstrap) as client:
        frames = valid_frames(client)
    chance = random.Random(SEED)

    for frame in itertools.islice(mutants(frames, chance), ROUNDS):
        visit(besieged, frame, half_close=chance.random() < 0.2)


def test_random_bytes(besieged: BrokerProcess) -> None:
    chance = random.Random(SEED)

    for frame in itertools.islice(garbage(chance), ROUNDS // 2):
        visit(besieged, frame)


def test_valid_requests_cut_short(besieged: BrokerProcess) -> None:
    with RawClient(besieged.bootstrap) as client:
        frames = valid_frames(client)
    chance = random.Random(SEED)

    for _ in range(ROUNDS // 4):
        frame = chance.choice(frames)
        visit(besieged, frame[: chance.randrange(len(frame))], half_close=chance.random() < 0.5)


def test_versions_that_do_not_exist(besieged: BrokerProcess) -> None:
    for key in [*ApiKey, 999, -1]:
        for version in (-1, 100, 32767):
            visit(besieged, struct.pack(">ihhih", 10, key, version, 1, -1))


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x80\xff\xff\xff\x0f"])
def test_arrays_that_claim_more_than_there_is(besieged: BrokerProcess, count: bytes) -> None:
    for key, version in ADVERTISED:
        for filling in (b"", b"\x00" * 50):
            body = struct.pack(">hhih", key, version, 1, -1) + filling + count + b"\x00" * 20
            visit(besieged, struct.pack(">i", len(body)) + body)


def test_frames_that_never_end(besieged: BrokerProcess) -> None:
    """Slow clients: fifty claim a hundred megabytes and send a byte at a time."""
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(besieged.bootstrap)) for _ in range(50)]
        for client in clients:
            client.socket.sendall(struct.pack(">i", 100 * MEBIBYTE))
        for _ in range(20):
            for client in clients:
                client.socket.sendall(b"\x00")


def test_many_large_frames_that_are_never_finished(besieged: BrokerProcess) -> None:
    """Fast ones: each sends sixteen megabytes of a hundred, together far more than may be in hand."""
    chunk = bytes(MEBIBYTE)
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(besieged.bootstrap)) for _ in range(20)]
        for client in clients:
            client.socket.settimeout(0.05)
            with suppress(ConnectionError, TimeoutError):
                client.socket.sendall(struct.pack(">i", 100 * MEBIBYTE))
                for _ in range(16):
                    client.socket.sendall(chunk)


def test_large_requests_of_a_throttled_client_that_wait_on_many_connections(besieged: BrokerProcess) -> None:
    """A hundred connections with three megabytes each; as many of them wait as there is memory for."""
    request = frame_of(produce_request("held", make_batch([bytes(3 * MEBIBYTE)])), 9, client_id="greedy")
    with ExitStack() as stack:
        admin = stack.enter_context(RawClient(besieged.bootstrap))
        create_topic(admin, "held")
        set_quotas(admin, {"client-id": "greedy"}, producer_byte_rate=1)
        clients = [stack.enter_context(RawClient(besieged.bootstrap, "greedy")) for _ in range(100)]
        clients[0].ask(produce_request("held", make_batch([b"x" * 1000])), 9)
        for client in clients[1:]:
            with suppress(ConnectionError):
                client.socket.sendall(request)
        until(
            "two requests wait, and the other connections are closed",
            lambda: sum(map(_is_closed, clients)) == len(clients) - 3,
        )


def _is_closed(client: RawClient) -> bool:
    client.socket.setblocking(False)
    try:
        return client.socket.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_flood_of_tiny_requests_by_clients_that_never_read(besieged: BrokerProcess) -> None:
    flood = frame_of(ASK_VERSIONS, 3) * 1000
    with ExitStack() as stack:
        for _ in range(5):
            _send_until_full(stack.enter_context(RawClient(besieged.bootstrap)), flood, 20)


def test_large_replies_that_nobody_reads(besieged: BrokerProcess) -> None:
    with RawClient(besieged.bootstrap) as client:
        create_topic(client, "large", partitions=20)
        for partition in range(20):
            produce(client, "large", make_batch([b"x" * 1_000_000]), partition=partition)
    everything = fetch_request("large", partitions=range(20), max_bytes=50 * MEBIBYTE)
    flood = frame_of(everything, 12) * 50 + frame_of(MetadataRequest(topics=None), 12) * 50
    with ExitStack() as stack:
        for _ in range(3):
            _send_until_full(stack.enter_context(RawClient(besieged.bootstrap)), flood, 5)


def _send_until_full(client: RawClient, data: bytes, times: int) -> None:
    """Send until the broker stops reading, as it should, or long enough."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.socket.settimeout(0.2)
    with suppress(ConnectionError, TimeoutError):
        for _ in range(times):
            client.socket.sendall(data)


@pytest.mark.parametrize("compression", [each for each in Compression if each], ids=lambda each: each.name)
def test_a_compressed_batch_that_unpacks_to_far_more(tmp_path: Path, compression: Compression) -> None:
    """A compacted topic looks into its batches, and so unpacks what a client has packed."""
    bomb = make_batch([b"\x00" * (60 * MEBIBYTE)], compression=compression)
    with siege(tmp_path, growth_bytes=4 * 60 * MEBIBYTE) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "compacted", cleanup_policy="compact", max_message_bytes=str(64 * MEBIBYTE))
        for _ in range(3):
            produce(client, "compacted", bytearray(bomb))


def test_a_few_kilobytes_that_are_much_work(tmp_path: Path) -> None:
    """Batches of some kilobytes whose records are worth seconds; each is refused for what it is."""
    # To deflate, with its window of 32 KiB, this is noise of four letters; zstd sees that it is repeated.
    letters = bytes(random.Random(SEED).choices(b"abcd", k=33_000))
    plain = Record(b"k", b"v").encoded()
    headers = Record(b"k", b"v", many_headers=8_000_000).encoded()
    bombs = [
        ("compression_type", "gzip", packed_batch([Record(b"k", letters * 900).encoded()])),
        ("compression_type", "gzip", packed_batch([Record(b"k", letters * 2000).encoded()])),
        ("cleanup_policy", "compact", packed_batch([plain] * 1_000_000)),
        ("headrace_append_expected_offset", "true", packed_batch([headers])),
        ("headrace_validate_records", "true", packed_batch([plain] * 1_000_000)),
    ]
    with siege(tmp_path, growth_bytes=4 * 60 * MEBIBYTE) as broker, RawClient(broker.bootstrap) as client:
        for number, (setting, value, bomb) in enumerate(bombs):
            topic = f"{setting}-{number}"
            create_topic(client, topic, partitions=1, **{setting: value})
            assert len(bomb) < 32 * 1024, topic
            for _ in range(3):
                refused = produce(client, topic, bytearray(bomb))
                assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE, topic
            assert fetch(client, topic).high_watermark == 0


def test_lookups_by_time_in_batches_that_are_much_work(besieged: BrokerProcess) -> None:
    """A topic that stores what it gets has batches that nobody should unpack on an event loop."""
    count = 10_000_000
    packed = compress(Compression.ZSTD, Record(b"k", b"v").encoded() * count)
    bomb = claiming(count, packed, Compression.ZSTD)
    by_time = [
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name="any", partitions=[ListOffsetsPartition(partition_index=0, timestamp=each)]
                )
            ],
        )
        for each in (TIMESTAMP, -3)
    ]
    with RawClient(besieged.bootstrap) as client:
        create_topic(client, "any")
        assert produce(client, "any", bytearray(bomb)).error_code == ErrorCode.NONE
        for _ in range(5):
            for request in by_time:
                found = client.ask(request, 7).topics[0].partitions[0]
                assert (found.error_code, found.offset, found.timestamp) == (ErrorCode.NONE, 0, TIMESTAMP)


def test_a_registry_topic_with_a_batch_that_is_much_work(besieged: BrokerProcess) -> None:
    """Brokers read `_schemas`, which clients can write to, for topics with a rule about schemas."""
    count = 10_000_000
    packed = compress(Compression.ZSTD, Record(b"k", b"v").encoded() * count)
    with RawClient(besieged.bootstrap) as client:
        create_topic(client, "_schemas")
        create_topic(client, "ruled", confluent_value_schema_validation="true")
        bomb = claiming(count, packed, Compression.ZSTD)
        assert produce(client, "_schemas", bomb).error_code == ErrorCode.NONE

        assert produce(client, "ruled", make_batch(1)).error_code == ErrorCode.INVALID_RECORD


def test_batches_that_hold_no_records(besieged: BrokerProcess) -> None:
    """What a header claims against its own size is refused everywhere; garbage where records are checked."""
    liars = [claiming(count, b"x" * 100, each) for each in Compression for count in (100_000_000, 2**31 - 1)]
    garbage = [claiming(1, b"\xfe\xca" * 50, each) for each in Compression]
    with RawClient(besieged.bootstrap) as client:
        create_topic(client, "any")
        create_topic(client, "validated", headrace_validate_records="true")
        for topic, batches in (("any", liars), ("validated", liars + garbage)):
            for batch in batches:
                assert produce(client, topic, bytearray(batch)).error_code == ErrorCode.INVALID_RECORD
            assert fetch(client, topic).high_watermark == 0


class Record(NamedTuple):
    """A record as bytes that say what they like; its offset delta is 0, wherever it stands."""

    key: bytes
    value: bytes
    many_headers: int = 0

    def encoded(self) -> bytes:
        body = (
            b"\0\0\0" + encode_varint(len(self.key)) + self.key + encode_varint(len(self.value)) + self.value
        )
        body += encode_varint(self.many_headers) + b"\0\1" * self.many_headers
        return encode_varint(len(body)) + body


def packed_batch(records: Sequence[bytes]) -> bytearray:
    return claiming(len(records), compress(Compression.ZSTD, b"".join(records)), Compression.ZSTD)


def claiming(count: int, payload: Buffer, compression: Compression) -> bytearray:
    """A batch whose header and checksum hold, around anything."""
    return build_batch(
        payload,
        base_offset=0,
        last_offset_delta=count - 1,
        records_count=count,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP,
        compression=compression,
    )


def test_connections_that_come_and_go(besieged: BrokerProcess) -> None:
    quiet = besieged.open_sockets
    for number in range(ROUNDS // 2):
        with RawClient(besieged.bootstrap) as client:
            if number % 2:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.send(ASK_VERSIONS, 3)

    assert besieged.open_sockets <= quiet + 50
