"""What a broker does not import: each of these would make every start slower and every broker larger."""

import subprocess
import sys

HEAVY = ("confluent_kafka", "re2", "urllib.request", "importlib.metadata", "email", "argparse", "fastapi")


def test_a_broker_imports_only_what_it_needs() -> None:
    program = (
        "import sys; import headrace.cli.main, headrace.cli.up, headrace.broker.server; "
        "import headrace.coordination.embedded.server; "
        "headrace.broker.server.load_handlers(); "
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
