import asyncio

import pytest

from headrace.replication.controller.topic_admin import Uncancelled


def test_work_goes_on_when_whoever_waits_for_it_is_gone() -> None:
    async def story() -> list[str]:
        changes, begun, go_on = Uncancelled(), asyncio.Event(), asyncio.Event()
        steps: list[str] = []

        async def work() -> None:
            steps.append("first")
            begun.set()
            await go_on.wait()
            steps.append("second")

        client = asyncio.create_task(changes.run(work()))
        await begun.wait()
        client.cancel()
        with pytest.raises(asyncio.CancelledError):
            await client
        go_on.set()
        await changes.finished(timeout_s=5)
        return steps

    assert asyncio.run(story()) == ["first", "second"]


def test_whoever_waits_gets_the_result_or_the_error() -> None:
    async def answer() -> int:
        return 42

    async def fail() -> int:
        raise ValueError("no")

    async def story() -> int:
        changes = Uncancelled()
        with pytest.raises(ValueError, match="no"):
            await changes.run(fail())
        return await changes.run(answer())

    assert asyncio.run(story()) == 42
