"""The HTTP gateway as a process beside a broker, on a socket that its parent holds."""

import logging
import socket
from collections.abc import Sequence

from headrace.cli.machine.log import pass_warnings_on
from headrace.cli.machine.member import READY, say
from headrace.cli.process import leaving_within
from headrace.http.serving import STOP_S
from headrace.http.serving import serve as serve_http
from headrace.http.settings import GatewaySettings
from headrace.http.sockets import url_of

logger = logging.getLogger("headrace")


async def serve(bootstrap: str, listening: int, hosts: Sequence[str] = ()) -> None:
    """Run a gateway to the cluster at `bootstrap` until it is told to stop."""
    pass_warnings_on()
    with socket.socket(fileno=listening) as held:
        logger.info("the gateway serves at %s, for %s", url_of(held), bootstrap)
        say(f"{READY}http={url_of(held)}")
        await leaving_within(STOP_S, serve_http(GatewaySettings(bootstrap=bootstrap, hosts=hosts), held))
