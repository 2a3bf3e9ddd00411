"""What a person who writes or runs a pipeline can do something about, each as a sentence."""

import re

from headrace.spark.errors import SparkError

# Our own errors, wherever they stand in what Spark makes of them: Python's traces inside of Java's.
_OURS = re.compile(r"^headrace\.[\w.]+: (.*(?:\n(?!\s|Traceback|\tat |SQLSTATE).*)*)", re.MULTILINE)
_SPARKS = re.compile(r"^\[([A-Z_.]+)\] (.*)", re.MULTILINE)

_CAUSES = re.compile(r"^(?:: |Caused by: )(?:[\w.$]+: )?(.+)", re.MULTILINE)  # Java's, the first of all last


class PipelineError(SparkError):
    """The pipeline cannot be as it is declared; the sentence says what to do."""


def is_slow_start(error: BaseException) -> bool:
    """Whether a Python process of Spark's has taken more than the ten seconds it is given to start.

    On a machine that is busy it may do better the next time; the query has not begun yet.
    """
    return "Python worker" in (text := str(error)) and "connect back" in text


def in_words(error: BaseException) -> str:
    """What went wrong, without the frames of Java and Python around it."""
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        return str(ours[-1]).split("\n SQLSTATE")[0].strip()
    sparks = _SPARKS.findall(text)
    if sparks:
        name, said = sparks[-1]
        return f"{said.split(' SQLSTATE')[0].strip()} ({name})"
    causes = _CAUSES.findall(text)
    if causes:
        return str(causes[-1])
    first = text.strip().splitlines()
    return first[0] if first else type(error).__name__
