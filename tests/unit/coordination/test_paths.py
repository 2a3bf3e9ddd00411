import pytest

from headrace.coordination.embedded.errors import ErrorCode, KeeperError
from headrace.coordination.embedded.paths import check_path, parent_of


@pytest.mark.parametrize("path", ["/", "/a", "/a/b", "/a.b", "/.a", "/a/..b", "/...", "/ä ö"])
def test_legal_paths(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    "path",
    ["", "a", "/a/", "//", "/a//b", "/.", "/..", "/a/./b", "/a/../b", "/a/..", "/a\0", "/a\x1f", "/a\x7f"],
)
def test_illegal_paths(path: str) -> None:
    with pytest.raises(KeeperError) as refused:
        check_path(path)

    assert refused.value.code is ErrorCode.BAD_ARGUMENTS


def test_the_parent_of_a_top_node_is_the_root() -> None:
    assert [parent_of(path) for path in ("/a", "/a/b", "/a/b/c")] == ["/", "/a", "/a/b"]
