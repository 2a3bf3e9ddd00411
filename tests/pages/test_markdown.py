"""Blocks of a page, with their comments and their outputs."""

import pytest

from pages.markdown import BadPage, blocks

PAGE = """# Title

Some words, and a list:

- one
  that goes on

## First

Try this:

    echo one
    echo two

<!-- prints: three -->
```sh
echo three
```

```python
print("four")
```

It says:

```text
four
```

## Second
<!-- a comment for people -->
<!-- not run: it needs three machines -->
<!-- needs Spark -->
```sh
reboot
```

<!-- before: headrace up -->
<!-- read: one.example.com as 127.0.0.1 -->
<!-- prints in any order:
a
b
-->
```sh
echo b; echo a
```

1. A point of a list, with

    a paragraph, and code:

    <!-- not run: because -->

        kill 1

2. and an output:

    <!-- numbers differ -->
    ```text
    $ echo five
    five
    ```

<!-- file: five.py -->
```python
five = 5
```
"""


def test_blocks_have_places_texts_and_outputs() -> None:
    found = blocks("page.md", PAGE)

    assert [(each.place, each.language, each.text) for each in found] == [
        ("page.md:12 (First)", "sh", "echo one\necho two\n"),
        ("page.md:17 (First)", "sh", "echo three\n"),
        ("page.md:21 (First)", "python", 'print("four")\n'),
        ("page.md:35 (Second)", "sh", "reboot\n"),
        ("page.md:45 (Second)", "sh", "echo b; echo a\n"),
        ("page.md:54 (Second)", "sh", "kill 1\n"),
        ("page.md:60 (Second)", "console", "$ echo five\nfive\n"),
        ("page.md:66 (Second)", "python", "five = 5\n"),
    ]
    assert [(each.prints, each.in_order) for each in found] == [
        (None, True),
        ("three", True),
        ("four\n", True),
        (None, True),
        ("a\nb", False),
        (None, True),
        (None, True),
        (None, True),
    ]
    assert [(each.not_run, each.needs_spark, each.before) for each in found[3:6]] == [
        ("it needs three machines", True, ""),
        ("", False, "headrace up"),
        ("because", False, ""),
    ]
    assert found[4].read == (("one.example.com", "127.0.0.1"),)
    assert [(each.numbers_differ, each.file) for each in found[6:]] == [(True, ""), (False, "five.py")]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("## A\n```text\nx\n```\n", "no block before this one prints it"),
        ("## A\n```sh\nls\n```\n## B\n```text\nx\n```\n", "no block before this one prints it"),
        ("## A\n<!-- not run: why -->\n## B\n```sh\nls\n```\n", "no block follows the comment 'not run'"),
        ("## A\n<!-- prints: x -->\n", "no block follows the comment 'prints'"),
    ],
)
def test_a_comment_or_an_output_without_a_block_is_a_mistake(page: str, why: str) -> None:
    with pytest.raises(BadPage, match=why):
        blocks("page.md", page)
