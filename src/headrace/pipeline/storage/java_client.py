"""A connection to a Java process that is not Spark's, in a Python process that has a Spark session."""

from typing import Any

from py4j.java_gateway import GatewayClient
from py4j.protocol import get_return_value, is_error


class JavaClient(GatewayClient):  # type: ignore[misc]
    """Raises exceptions of Java as they are.

    PySpark replaces the function by which py4j does so, for all gateways, by one that asks Spark's process
    for the trace of the exception, which that process does not know.
    """

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        answer = super().send_command(command, retry, binary)
        if not binary and is_error(answer)[0]:
            get_return_value(answer, self)
        return answer
