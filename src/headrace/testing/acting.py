"""What a fault does with a request that it meets."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from headrace.broker.dispatch import HangUp
from headrace.broker.slices import completed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.testing.named_topics import merged as put_together
from headrace.testing.named_topics import with_topics
from headrace.testing.questions import Question
from headrace.testing.refusals import refusal, replaced

Act = Callable[[Question, str | None], Any]
"""Returns what a handler would: a reply, or something to await. It is told the topic it is for, if any."""

EARLY_S = 0.002  # loops count in milliseconds, and may wake somebody before his time
_NO_SESSION = -1


def delay(seconds: float) -> Act:
    """Do what is asked at once, and answer later: so requests of a connection keep their order."""
    return lambda question, _topic: _answer_late(question.served(), seconds)


async def _answer_late(reply: Any, seconds: float) -> Any:
    answer = await completed(reply)
    await asyncio.sleep(seconds + EARLY_S)
    return answer


def hang_up_before(_question: Question, _topic: str | None) -> Any:
    """Close the connection; nothing is done."""
    raise HangUp("a fault of the test, before the request was looked at")


def hang_up_after(question: Question, _topic: str | None) -> Awaitable[Any]:
    """Do what is asked, and close the connection instead of saying so."""
    return _hang_up_after(question.served())


async def _hang_up_after(reply: Any) -> Any:
    await completed(reply)
    raise HangUp("a fault of the test, after all was done")


def fail(code: ErrorCode) -> Act:
    """Answer with an error, and do nothing; topics that it is not about are served."""
    return partial(_fail, code)


def _fail(code: ErrorCode, question: Question, topic: str | None) -> Any:
    if question.key == ApiKey.METADATA:
        return _fail_metadata(code, question, topic)
    if question.key == ApiKey.PRODUCE and question.request.acks == 0:
        raise HangUp(f"{code.name}, by a fault of the test, to a Produce with acks=0")
    if topic is None:
        return refusal(question.key, question.request, question.version, code)
    failing = with_topics(question.request, lambda each: each == topic, question.name_of)
    refused = refusal(question.key, failing, question.version, code, by_topic=True)
    if set(question.topics()) <= {topic}:
        return refused
    return _serve_others(question, topic, refused)


async def _serve_others(question: Question, topic: str, refused: Any) -> Any:
    others = with_topics(question.request, lambda each: each != topic, question.name_of)
    if question.key == ApiKey.FETCH:  # an error waits for nobody; a session would not have all its partitions
        others = replaced(others, max_wait_ms=0, session_id=0, session_epoch=_NO_SESSION)
    return put_together(await question.response(others), refused)


async def _fail_metadata(code: ErrorCode, question: Question, topic: str | None) -> Any:
    """Without the brokers in it a client could not go on, so all but the topics is true."""
    response = await question.response()
    return replaced(
        response,
        topics=[
            replaced(each, error_code=int(code), partitions=()) if topic in {None, each.name} else each
            for each in response.topics
        ],
    )
