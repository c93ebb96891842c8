"""What ``--dist loadscope`` means here: tests go to workers one by one, but for those that share a
Spark session.

A session is a JVM that takes seconds to start and half a gigabyte, so one worker has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

WITH_SPARK = {
    "tests/spark/test_checkpoints.py",
    "tests/spark/test_cluster_with_spark.py",
    "tests/spark/test_connect.py",
    "tests/spark/test_database.py",
    "tests/spark/test_docs.py",
    "tests/spark/test_jobs.py",
    "tests/spark/test_kills.py",
    "tests/spark/test_kills_of_jobs.py",
    "tests/spark/test_lag.py",
    "tests/spark/test_malformed.py",
    "tests/spark/test_naming.py",
    "tests/spark/test_replaced_with_spark.py",
    "tests/spark/test_sessions.py",
    "tests/spark/test_with_spark.py",
}


class Scheduling(LoadScopeScheduling):
    """Gives out the greatest scope first: the session's tests, then the others in their order."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.partition("::")[0] in WITH_SPARK else nodeid

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget what is done, too: all that a worker has is counted after each test."""
        super().mark_test_complete(node, item_index, duration)
        scopes = self.assigned_work[node]
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(scopes[scope].values()):
            del scopes[scope]
