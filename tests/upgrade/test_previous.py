"""Which version is the previous one."""

import subprocess
from pathlib import Path

from upgrade.previous import commit, why_not

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")


class Repository:
    """A repository with empty commits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.named = root / "PREVIOUS"
        self("init", "--quiet")

    def __call__(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *AUTHOR, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(self) -> str:
        self("commit", "--quiet", "--allow-empty", "--message=change")
        return self("rev-parse", "HEAD")

    def previous(self) -> str:
        commit.cache_clear()
        return commit(self.root, self.named)


def test_without_a_tag_it_is_the_commit_in_the_file(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    first = repository.commit()
    repository.named.write_text(f"{first}\n")
    repository.commit()
    repository("tag", "unrelated")
    repository("tag", "v1")  # the version that is tested
    assert repository.previous() == first


def test_the_last_tag_before_this_commit_wins(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.named.write_text("0" * 40)
    repository.commit()
    repository("tag", "v1")
    second = repository.commit()
    repository("tag", "v2", "--annotate", "--message=v2")
    repository.commit()
    assert repository.previous() == second
    repository("tag", "v3")
    assert repository.previous() == second


def test_a_commit_that_is_not_there_is_a_reason_to_skip(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    repository.commit()
    commit.cache_clear()
    reason = why_not(tmp_path)
    assert reason is not None
    assert "the previous version is not in the history of" in reason
