"""A request that has reached a broker of a test, on its way to the handler: here a fault may step in."""

from typing import Any, NamedTuple

from headrace.broker.dispatch import Context, Encoded, Handler, can_answer
from headrace.broker.envelopes import forward
from headrace.broker.slices import completed
from headrace.protocol.api import response_class
from headrace.protocol.schema.index import ApiKey
from headrace.testing.named_topics import topics_of


class Question(NamedTuple):
    """What was asked, by whom, and who would answer it."""

    request: Any
    context: Context
    handler: Handler

    @property
    def key(self) -> int:
        return self.handler.key

    @property
    def version(self) -> int:
        return self.context.version

    def topics(self) -> list[str]:
        """The topics that it names."""
        return list(topics_of(self.request, self.name_of))

    def name_of(self, topic_id: bytes) -> str | None:
        return self.context.broker.image.topic_names.get(topic_id)

    def served(self, request: Any = None) -> Any:
        """What the broker answers to it, or to another request in its place; maybe steps or awaitable."""
        request = self.request if request is None else request
        if self.handler.on_controller and not can_answer(self.handler, self.context.broker):
            return forward(request, self.context)
        return self.handler.function(request, self.context)

    async def response(self, request: Any = None) -> Any:
        """The same, waited for and decoded."""
        reply = await completed(self.served(request))
        if isinstance(reply, Encoded):
            return response_class(self.key).decode(b"".join(reply.body), self.version)
        return reply

    @property
    def leaves_topics_out(self) -> bool:
        """Whether it goes on with a fetch session, and names only what has changed."""
        return self.key == ApiKey.FETCH and self.request.session_epoch > 0
