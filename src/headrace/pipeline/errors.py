"""Errors of pipelines, as sentences for the people who write and run them."""

import re

from headrace.spark.errors import SparkError

# Our own errors within the messages of Spark, which contain tracebacks of Python inside of those of Java.
_OURS = re.compile(r"^headrace\.[\w.]+: (.*(?:\n(?!\s|Traceback|\tat |SQLSTATE).*)*)", re.MULTILINE)
_TRACE = "Traceback (most recent call last):"
_PYTHONS = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(\w.*)", re.MULTILINE)
_SPARKS = re.compile(r"^(?:[\w.$]+: )?\[([A-Z_.]+)\] (.*)", re.MULTILINE)
# In Java, the root cause is the last.
_CAUSES = re.compile(r"^(?:: |Caused by: )(?:[\w.$]+: )?(.+)", re.MULTILINE)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*")
_RAISED = "USER_RAISED_EXCEPTION"  # by raise_error, with a complete message


class PipelineError(SparkError):
    """The pipeline cannot run as it is declared; the message says what to do."""


class LockLost(PipelineError):
    """Another process may be running the pipeline by now."""


def is_slow_start(error: BaseException) -> bool:
    """Return whether a Python worker did not start within the ten seconds that Spark allows.

    A query that failed for this has not begun, and can be started again. Spark raises the error without an
    error class, so only its text tells it apart.
    """
    return "Python worker" in (text := str(error)) and "connect back" in text


def in_words(error: BaseException) -> str:
    """Return the message of an error without the tracebacks of Java and Python around it."""
    text = str(error)
    if ours := _OURS.findall(text):
        return _plain(ours[-1])
    sparks = _SPARKS.findall(text)
    if sparks:
        name, message = sparks[-1]
        if message.endswith(_TRACE) and (pythons := _PYTHONS.findall(text)):
            message = pythons[-1]  # the last line of the traceback, which names the error
        return _plain(message) if name == _RAISED else f"{_plain(message)} ({name})"
    if causes := _CAUSES.findall(text):
        return _plain(causes[-1])
    if pythons := _PYTHONS.findall(text):
        return _plain(pythons[-1])
    first = text.strip().splitlines()
    return first[0] if first else type(error).__name__


def _plain(text: str) -> str:
    return _SQLSTATE.sub("", text).strip()
