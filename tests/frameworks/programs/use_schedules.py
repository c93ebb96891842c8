"""APScheduler and redbeat: what they have planned, ``before`` a restart of the server, ``after``.

The process that planned is killed, and redbeat's lock is still held then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from apscheduler.jobstores.redis import RedisJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from celery import Celery
from celery.beat import Service
from celery.schedules import schedule
from redbeat import RedBeatSchedulerEntry
from redbeat.schedulers import RedBeatScheduler
from redis import Redis
from told import PORT, tell

URL = f"redis://127.0.0.1:{PORT}/1"
HOUR = timedelta(hours=1)
LOCK_S = 2
JOB = "use_schedules:job"
client = Redis(port=PORT)
broker = Redis(port=PORT, db=1)
app = Celery("plans", broker=URL)
app.conf.update(redbeat_redis_url=URL, redbeat_lock_timeout=LOCK_S, beat_max_loop_interval=0.2)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def job(name: str) -> None:
    tell(f"ran {name}")


def has_run(name: str) -> bool:
    return f"ran {name}\n" in Path(os.environ["HEADRACE_TOLD"]).read_text()


def in_apscheduler(moment: str) -> None:
    scheduler = BackgroundScheduler(jobstores={"default": RedisJobStore(port=PORT)}, timezone=UTC)
    scheduler.start()
    if moment == "before":
        now = datetime.now(UTC)
        scheduler.add_job(JOB, args=["now"], id="now")
        scheduler.add_job(
            "use_schedules:job", "date", run_date=now + HOUR, args=["late"], id="late"
        )
        scheduler.add_job("use_schedules:job", "interval", hours=1, args=["hourly"], id="hourly")
        scheduler.add_job("use_schedules:job", "date", run_date=now + HOUR, args=["no"], id="no")
        scheduler.pause_job("no")
        wait_until(lambda: has_run("now"))
        wait_until(lambda: scheduler.get_job("now") is None)
    else:
        assert {found.id for found in scheduler.get_jobs()} == {"late", "hourly", "no"}
        assert scheduler.get_job("no").next_run_time is None
        scheduler.modify_job("late", next_run_time=datetime.now(UTC))
        wait_until(lambda: has_run("late"))
        wait_until(lambda: scheduler.get_job("late") is None)
        scheduler.remove_all_jobs()
        assert client.exists("apscheduler.jobs", "apscheduler.run_times") == 0
    scheduler.shutdown()


def plan(name: str) -> None:
    """It is due now, and then once an hour."""
    RedBeatSchedulerEntry(
        name, "job", schedule(HOUR), args=[name], last_run_at=datetime.now(UTC) - 2 * HOUR, app=app
    ).save()


def in_redbeat(moment: str) -> None:
    before = moment == "before"
    for name in ("a", "b", "c") if before else ("d",):
        plan(name)
    beat = Service(app, scheduler_cls=RedBeatScheduler)
    threading.Thread(target=beat.start, daemon=True).start()
    wait_until(lambda: broker.llen("celery") == (3 if before else 4))
    assert broker.exists("redbeat::lock")
    kept = RedBeatSchedulerEntry.from_key("redbeat:a", app=app)
    assert kept.total_run_count == 1
    assert not kept.is_due().is_due


if __name__ == "__main__":
    in_apscheduler(sys.argv[1])
    in_redbeat(sys.argv[1])
    sys.stdout.flush()
    os._exit(0)  # as if it were killed
