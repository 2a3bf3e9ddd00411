import subprocess
import sys

import pytest

from headrace.spark.tables.packages import MissingPackage, needed


@pytest.mark.parametrize("module", ["pyspark_headrace_delta", "pyspark_headrace_iceberg"])
def test_finding_the_format_imports_none_of_what_it_needs(module: str) -> None:
    program = (
        f"import sys, {module}; "
        "print([name for name in ('deltalake', 'pyarrow', 'pyiceberg') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )

    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(("package", "extra"), [("deltalake", "spark"), ("pyiceberg", "iceberg")])
def test_a_package_that_is_missing_is_named_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    for loaded in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, package, None)  # import takes it for one that is not installed

    with pytest.raises(MissingPackage) as refusal:
        needed(f"{package}.exceptions", 'format("x")')
    assert f"needs the package {package}" in str(refusal.value)
    assert str(refusal.value).endswith(f"pip install 'headrace[{extra}]'")
