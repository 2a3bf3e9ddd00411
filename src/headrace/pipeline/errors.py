"""What a person who writes or runs a pipeline can do something about, each as a sentence."""

import re

from headrace.spark.errors import SparkError

# Our own errors, wherever they stand in what Spark makes of them: Python's traces inside of Java's.
_OURS = re.compile(r"^headrace\.[\w.]+: (.*(?:\n(?!\s|Traceback|\tat |SQLSTATE).*)*)", re.MULTILINE)
_TRACE = "Traceback (most recent call last):"
_PYTHONS = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(\w.*)", re.MULTILINE)
_SPARKS = re.compile(r"^(?:[\w.$]+: )?\[([A-Z_.]+)\] (.*)", re.MULTILINE)
_CAUSES = re.compile(r"^(?:: |Caused by: )(?:[\w.$]+: )?(.+)", re.MULTILINE)  # Java's, the first of all last
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*")
_RAISED = "USER_RAISED_EXCEPTION"  # by raise_error, in words that say enough


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
    if ours := _OURS.findall(text):
        return _told(ours[-1])
    sparks = _SPARKS.findall(text)
    if sparks:
        name, said = sparks[-1]
        if said.endswith(_TRACE) and (pythons := _PYTHONS.findall(text)):
            said = pythons[-1]  # the last line of the trace, which names the error
        return _told(said) if name == _RAISED else f"{_told(said)} ({name})"
    if causes := _CAUSES.findall(text):
        return _told(causes[-1])
    first = text.strip().splitlines()
    return first[0] if first else type(error).__name__


def _told(text: str) -> str:
    return _SQLSTATE.sub("", text).strip()
