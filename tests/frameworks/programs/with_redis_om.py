"""Objects of redis-om. ``produce N`` saves them; ``work`` reads each and changes it, once."""

from __future__ import annotations

import os
import sys
import time

from told import PORT, begin, tell

os.environ["REDIS_OM_URL"] = f"redis://127.0.0.1:{PORT}/0?decode_responses=True"

from redis_om import HashModel


class Job(HashModel, index=True):  # type: ignore[call-arg]  # keys alone: there is no search
    number: int
    state: str


if sys.argv[1] == "produce":
    for number in range(int(sys.argv[2])):
        job = Job(pk=f"job-{number}", number=number, state="new").save()
        if number == 0:
            job.expire(1000)
else:
    while True:
        for pk in sorted(Job.all_pks()):
            job = Job.get(pk)
            if job.state == "new":
                begin(job.number)
                job.update(state="done")
                assert Job.get(pk).state == "done"
                tell(f"done {job.number}")
        time.sleep(0.05)
