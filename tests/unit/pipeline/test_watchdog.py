"""When a batch that runs no job is reported."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.pipeline.restarts import Activity, Watchdog

HANGING = Activity(in_batch=True, batch=3, last_job=7, has_running_job=False)


def test_a_batch_without_a_job_is_reported_once_every_interval() -> None:
    watchdog = Watchdog(after_s=60)
    reports = [watchdog.check("shop.out", HANGING, now_s) for now_s in (0, 59, 60, 65, 119, 120)]
    assert reports == [None, None, 60, None, None, 120]


@pytest.mark.parametrize(
    "change", [{"has_running_job": True}, {"last_job": 8}, {"batch": 4}, {"in_batch": False}]
)
def test_jobs_batches_and_pauses_begin_the_interval_anew(change: dict[str, Any]) -> None:
    watchdog = Watchdog(after_s=60)
    assert watchdog.check("shop.out", HANGING, 0) is None
    assert watchdog.check("shop.out", replace(HANGING, **change), 59) is None
    assert watchdog.check("shop.out", HANGING, 61) is None
    assert watchdog.check("shop.out", HANGING, 120) is None
    assert watchdog.check("shop.out", HANGING, 121) == 60


def test_queries_are_watched_by_themselves() -> None:
    watchdog = Watchdog(after_s=60)
    assert watchdog.check("shop.out", HANGING, 0) is None
    assert watchdog.check("shop.archive", HANGING, 30) is None
    assert watchdog.check("shop.out", HANGING, 60) == 60
    assert watchdog.check("shop.archive", HANGING, 60) is None
