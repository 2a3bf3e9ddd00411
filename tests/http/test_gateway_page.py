"""The tables of docs/gateway.md have every address."""

import re
from pathlib import Path

from headrace.gateway.app import create_app
from headrace.gateway.configuration import GatewaySettings

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
OURS = ("/api/v1/", "/topics", "/consumers", "/brokers", "/v3/clusters/{cluster_id}/")


def test_every_address_is_in_a_table() -> None:
    tables = "\n".join(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|"))
    paths = create_app(GatewaySettings(bootstrap="127.0.0.1:1")).openapi()["paths"]
    for path in paths:
        if not path.startswith(OURS):
            continue
        words = re.findall(r"[a-z-]{3,}", re.sub(r"\{.*?\}", "", path.removeprefix("/api/v1")))
        missing = [word for word in words if word not in tables and word != "clusters"]
        assert not missing, (path, missing)
