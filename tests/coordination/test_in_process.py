"""The coordinator as a library, and what it does when clients or the disk misbehave."""

import asyncio
import contextlib
import os
import random
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from coordination.conftest import WAIT_S, wait_until
from coordination.wire import Wire
from headrace.coordination.embedded import connection as connection_module
from headrace.coordination.embedded import server as server_module
from headrace.coordination.embedded.server import Coordinator
from headrace.coordination.errors import CoordinationError, CorruptJournal, JournalInUse


def run(data_dir: Path, work: Callable[[Coordinator], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with Coordinator(data_dir, port=0, **{"sync": False} | options) as coordinator:
            await work(coordinator)

    asyncio.run(main())


def bystander(coordinator: Coordinator) -> Any:
    client = KazooClient(coordinator.address, timeout=4)
    client.start(WAIT_S)
    client.create("/bystander", ephemeral=True)
    return client


def leave(client: Any) -> None:
    client.get("/bystander")
    client.stop()
    client.close()


def test_a_line_in_the_log_says_that_it_is_one_node(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(coordinator: Coordinator) -> None:
        assert coordinator.address.startswith("127.0.0.1:")

    with caplog.at_level("INFO", "headrace"):
        run(data_dir, work)
    assert "It is a single node" in caplog.text
    assert "Use a ZooKeeper ensemble" in caplog.text


def test_a_port_or_directory_in_use_is_an_error_and_leaves_nothing_behind(
    data_dir: Path, tmp_path: Path
) -> None:
    async def work(coordinator: Coordinator) -> None:
        with pytest.raises(JournalInUse):
            await Coordinator(data_dir, port=0).start()
        other = tmp_path / "other"
        port = int(coordinator.address.rpartition(":")[2])
        with pytest.raises(OSError, match=str(port)):
            await Coordinator(other, port=port).start()
        async with Coordinator(other, port=0):  # its lock was let go of
            pass

    run(data_dir, work)


def test_damaged_data_keeps_it_from_starting(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / f"{0:020d}.txnlog").write_bytes(b"not a log at all")

    with pytest.raises(CorruptJournal, match="at byte 0"):
        asyncio.run(Coordinator(data_dir, port=0).start())


HOSTILE = [
    b"\xff" * 100,
    struct.pack(">i", -1),
    struct.pack(">i", 0),
    struct.pack(">i", 2**31 - 1) + b"x" * 1000,
    struct.pack(">i", 0x100000),  # one more than allowed
    struct.pack(">i", 5) + b"short",
    struct.pack(">i", 44) + bytes(24) + b"\x7f" * 20,
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(50),  # TLS
]


def test_rubbish_closes_its_own_connection_and_no_other(data_dir: Path) -> None:
    def work(coordinator: Coordinator) -> None:
        client = bystander(coordinator)
        for rubbish in HOSTILE:
            wire = Wire(coordinator.address)
            wire.socket.sendall(rubbish)
            assert wire.is_closed_by_server(), rubbish
            wire.close()
        for rubbish in (*HOSTILE[:5], struct.pack(">i", 4) + b"\0\0\0\1"):
            wire = Wire(coordinator.address)
            wire.connect()
            wire.socket.sendall(rubbish)
            assert wire.is_closed_by_server(), rubbish
            wire.close()
        leave(client)

    run(data_dir, lambda coordinator: asyncio.to_thread(work, coordinator))


def test_hundreds_of_mutated_requests_do_not_disturb_anybody(data_dir: Path) -> None:
    chance = random.Random(2181)
    path = struct.pack(">i", 10) + b"/bystander"
    bodies = [path + b"\1", path + struct.pack(">i", 3) + b"abc" + struct.pack(">i", -1), path, b""]

    def mutated() -> bytes:
        message = bytearray(struct.pack(">ii", 1, chance.choice([1, 2, 3, 4, 5, 8, 14, 22, 100, 101, 106])))
        message += chance.choice(bodies)
        for _ in range(chance.randrange(4)):
            message[chance.randrange(8, len(message) + 1) - 1] = chance.randrange(256)
        length = len(message) + chance.choice([0, 0, 0, 0, -3, 5, 2**30])
        return struct.pack(">i", length) + message

    def work(coordinator: Coordinator) -> None:
        client = bystander(coordinator)
        client.create("/bystander-too")
        for _ in range(60):
            wire = Wire(coordinator.address)
            wire.connect()
            with contextlib.suppress(OSError):
                for _ in range(10):
                    wire.socket.sendall(mutated())
            wire.close()
        leave(client)

    run(data_dir, lambda coordinator: asyncio.to_thread(work, coordinator))


def test_a_frame_that_comes_byte_by_byte_is_still_a_frame(data_dir: Path) -> None:
    def work(coordinator: Coordinator) -> None:
        wire = Wire(coordinator.address)
        wire.connect()
        wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in struct.pack(">iii", 8, -2, 11):
            wire.socket.sendall(bytes((byte,)))
        assert wire.receive()[0] == -2
        wire.close()

    run(data_dir, lambda coordinator: asyncio.to_thread(work, coordinator))


def test_connections_are_limited(data_dir: Path) -> None:
    def work(coordinator: Coordinator) -> None:
        wires = [Wire(coordinator.address) for _ in range(3)]
        for wire in wires:
            wire.connect()
        extra = Wire(coordinator.address)
        assert extra.is_closed_by_server()
        wires[0].ask(-11)
        assert wires[0].is_closed_by_server()
        again = Wire(coordinator.address)
        assert again.connect()[0]
        for wire in (*wires, extra, again):
            wire.close()

    run(data_dir, lambda coordinator: asyncio.to_thread(work, coordinator), max_connections=3)


def test_who_asks_for_much_and_reads_nothing_is_not_answered_without_bound(data_dir: Path) -> None:
    async def work(coordinator: Coordinator) -> None:
        client = await asyncio.to_thread(bystander, coordinator)
        await asyncio.to_thread(client.create, "/large", bytes(900_000))
        greedy = await asyncio.to_thread(Wire, coordinator.address)
        await asyncio.to_thread(greedy.connect)
        path = struct.pack(">i", 6) + b"/large"
        request = struct.pack(">iii", 19, 1, 4) + path + b"\0"
        greedy.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:  # 45,000 requests in a megabyte: 40 GB of replies
                greedy.socket.send(request * 1000)
                await asyncio.sleep(0)
        unsent = [each.transport.get_write_buffer_size() for each in coordinator.connections]
        assert max(unsent) < connection_module.PAUSE_BYTES + 1_000_000
        await asyncio.to_thread(leave, client)
        greedy.close()

    run(data_dir, work)


def test_who_watches_much_and_reads_nothing_is_dropped(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "MAX_UNSENT_BYTES", 1 << 20)

    def work(coordinator: Coordinator) -> None:
        client = bystander(coordinator)
        name = "n" * 20_000
        client.create(f"/{name}")
        deaf = Wire(coordinator.address)
        deaf.connect()
        deaf.ask(106, struct.pack(">i", 1) + b"/" + struct.pack(">i", 1))
        for _ in range(20):
            for result in [client.set_async(f"/{name}", b"") for _ in range(100)]:
                result.get(WAIT_S)
        assert len(coordinator.service.watches) == 0
        deaf.close()
        leave(client)

    run(data_dir, lambda coordinator: asyncio.to_thread(work, coordinator))


def test_who_says_nothing_or_never_reads_the_end_is_cut_off(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HANDSHAKE_S", 0.1)
    monkeypatch.setattr(server_module, "GOODBYE_S", 0.1)

    def work(coordinator: Coordinator) -> None:
        client = bystander(coordinator)
        client.create("/large", bytes(1_000_000))
        silent, deaf = Wire(coordinator.address), Wire(coordinator.address)
        deaf.connect(100)
        for _ in range(20):
            deaf.send(4, struct.pack(">i", 6) + b"/large" + b"\0")
        wait_until(lambda: len(coordinator.connections) == 1)  # the session of the deaf one has expired
        assert silent.is_closed_by_server()
        silent.close()
        deaf.close()
        leave(client)

    run(data_dir, lambda coordinator: asyncio.to_thread(work, coordinator), tick_ms=50)


@pytest.mark.parametrize("sync", [True, False])
def test_a_disk_that_refuses_stops_the_coordinator_before_anybody_is_told(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    def full(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    async def work(coordinator: Coordinator) -> None:
        wire = await asyncio.to_thread(Wire, coordinator.address)
        await asyncio.to_thread(wire.connect)
        monkeypatch.setattr(os, "pwrite", full)
        wire.send(
            1,
            struct.pack(">i", 2)
            + b"/x"
            + struct.pack(">i", 0)
            + struct.pack(">ii", 1, 31)
            + struct.pack(">i", 5)
            + b"world"
            + struct.pack(">i", 6)
            + b"anyone"
            + struct.pack(">i", 0),
        )
        with pytest.raises(CoordinationError, match="No space left"):
            await asyncio.wait_for(coordinator.wait_failed(), WAIT_S)
        assert await asyncio.to_thread(wire.is_closed_by_server)
        monkeypatch.undo()
        wire.close()

    run(data_dir, work, sync=sync)
