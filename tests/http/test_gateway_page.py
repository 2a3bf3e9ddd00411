"""docs/gateway.md: what it shows works, and its tables have every address."""

import re
import subprocess
from pathlib import Path

from headrace.http.app import create_app
from headrace.http.settings import GatewaySettings
from http_support.asking import Asking

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
FAILING = 'curl() { command curl --fail-with-body "$@"; }'
OURS = ("/api/v1/", "/topics", "/consumers", "/brokers", "/v3/clusters/{cluster_id}/")


def test_the_first_five_minutes_work(gateway: Asking) -> None:
    text = PAGE.read_text("utf-8")
    (block,) = [
        each for each in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "/consumers/billing" in each
    ]
    followed = block.replace("curl -N", "curl -sN").replace('/tail"', '/tail?last=1&limit=1"')
    followed = followed.replace("$C/records", '"$C/records?timeout=20000"')
    script = f"set -e\n{FAILING}\nH={gateway.url}\n{followed}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"item":"tea"' in done.stdout
    assert '"name":"billing"' in done.stdout


def test_every_address_is_in_a_table() -> None:
    tables = "\n".join(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|"))
    paths = create_app(GatewaySettings(bootstrap="127.0.0.1:1")).openapi()["paths"]
    for path in paths:
        if not path.startswith(OURS):
            continue
        words = re.findall(r"[a-z-]{3,}", re.sub(r"\{.*?\}", "", path.removeprefix("/api/v1")))
        missing = [word for word in words if word not in tables and word != "clusters"]
        assert not missing, (path, missing)
