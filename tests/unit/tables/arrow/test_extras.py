"""Without an extra, an import says in one sentence what to install; `import headrace` needs none of them."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
try:
    import {module}
except ImportError as error:
    print(error)
"""


def printed(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("module", "blocked", "sentence"),
    [
        ("headrace.arrow", "pyarrow", "headrace.arrow needs pyarrow: pip install 'headrace[arrow]'"),
        ("headrace.arrow", "numba", "headrace.arrow needs numba: pip install 'headrace[arrow]'"),
        ("headrace.polars", "polars", "headrace.polars needs polars: pip install 'headrace[polars]'"),
        ("headrace.duckdb", "duckdb", "headrace.duckdb needs duckdb: pip install 'headrace[sql]'"),
        ("headrace.tables.sql.tables", "duckdb", "headrace sql needs DuckDB: pip install 'headrace[sql]'"),
    ],
)
def test_what_is_missing_is_named(module: str, blocked: str, sentence: str) -> None:
    assert printed(BLOCKED.format(module=module, blocked=[blocked])) == f"{sentence}\n"


def test_headrace_itself_imports_none_of_them() -> None:
    program = "import sys, headrace; headrace.Producer; print([m for m in sys.modules if m in %r])"

    assert printed(program % (["pyarrow", "numba", "polars", "duckdb", "numpy"],)) == "[]\n"
