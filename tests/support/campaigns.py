"""What a push does not wait for, because something quicker proves it: ``make test-all`` runs it.

Each line is a pattern of test IDs, and of how many of these one is run all the same; 0: none is.
Tests by chance that take seconds ask ``drawn`` how much they draw.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final

from support import judges

CAMPAIGNS: Final = {
    "kills and cuts by the dozen: single ones are tested at each place where they may come": (
        ("tests/crash/test_torture.py::test_kills_power_cuts_*", 2),
        ("tests/crash/test_steps.py::test_a_kill_within_a_write_*", 3),
        ("tests/crash/test_steps.py::test_each_step_of_a_snapshot*", 2),
        ("tests/crash/test_steps.py::test_failures_while_*", 2),
        ("tests/crash/test_truncation.py::*", 0),
        ("tests/frameworks/test_workers.py::test_a_killed_worker_loses_*", 20),
        ("tests/frameworks/test_workers.py::test_a_killed_worker_of_npm_*", 3),
        ("tests/persistence/test_recovery.py::test_what_vanishes_*", 3),
        ("tests/persistence/test_recovery.py::test_writes_are_refused_*", 3),
        ("tests/regions/test_faults.py::test_nothing_is_lost_*", 3),
        ("tests/server/test_sentinel.py::test_they_fail_over_as_planned_*", 2),
        ("tests/server/test_sentinel.py::test_a_master_that_stands_still_*", 0),
        ("tests/spark/test_cluster.py::test_a_node_that_is_killed*", 0),
        ("tests/spark/test_crash.py::*", 0),
        ("tests/spark/test_kills.py::*", 2),
        ("tests/spark/test_kills_of_jobs.py::*", 0),
        ("tests/spark/test_supervisor.py::test_a_job_whose_jvm_is_killed*", 0),
    ),
    "the simulator plays each of them in its own time": (
        ("tests/regions/test_scenarios.py::*", 8),
    ),
    "the same without Spark, against the connector's own classes": (
        ("tests/spark/test_cluster_with_spark.py::*", 0),
        ("tests/spark/test_replaced_with_spark.py::*", 6),
        ("tests/spark/test_sessions.py::*", 3),
    ),
    "great sizes and counts, where a thousandth shows the rule": (
        ("tests/bench/test_suite.py::test_every_workload_*", 0),
        ("tests/bench/test_suite.py::test_scale*", 0),
        ("tests/differential/test_extremes.py::test_extremes*", 0),
        ("tests/differential/test_script_extremes.py::test_a_large_reply*", 0),
        ("tests/differential/test_script_extremes.py::test_a_million_words*", 0),
        ("tests/persistence/test_large_hash.py::test_no_step_takes_long*", 2),
        ("tests/persistence/test_rdb_pieces.py::test_memory_stays_flat_*", 0),
        ("tests/server/test_busy_scripts.py::test_a_script_that_takes_all_memory*", 3),
        ("tests/server/test_slicing.py::test_all_or_nothing*", 3),
        ("tests/server/test_slicing.py::test_no_snapshot_has_a_part_*", 3),
        ("tests/spark/test_paging.py::test_memory_stays_small_*", 0),
    ),
    "many ways to one end": (
        ("tests/differential/test_fuzz.py::test_drills_beside_an_older_judge*", 0),
        ("tests/differential/test_lists.py::test_requests_by_chance*", 4),
        ("tests/differential/test_pipelines.py::test_any_pipelines*", 2),
        ("tests/differential/test_replication_stream.py::test_a_real_replica_and_*", 3),
        ("tests/frameworks/test_libraries.py::*", 8),
        ("tests/frameworks/test_policies.py::*", 5),
        ("tests/frameworks/test_socket_io.py::*", 3),
        ("tests/persistence/test_foreign_snapshots.py::test_what_stands_behind_the_end_*", 2),
        ("tests/persistence/test_functions.py::test_redis_loads_what_we_export*", 3),
        ("tests/persistence/test_functions.py::test_we_load_what_redis_wrote*", 2),
        ("tests/persistence/test_interchange.py::test_a_damaged_rdb_file_*", 2),
        ("tests/persistence/test_interchange.py::test_redis_starts_on_our_folder*", 3),
        ("tests/persistence/test_interchange.py::test_redis_starts_on_what_was_exported*", 2),
        ("tests/persistence/test_interchange.py::test_what_redis_wrote_is_imported*", 3),
        ("tests/persistence/test_interchange.py::test_scripts_in_files_*", 3),
        ("tests/persistence/test_rdb_exchange.py::test_a_snapshot_goes_to_and_fro*", 2),
        ("tests/persistence/test_rdb_exchange.py::test_damaged_payloads_do_no_harm*", 4),
        ("tests/persistence/test_rdb_exchange.py::test_what_real_servers_saved_*", 2),
        ("tests/persistence/test_rdb_export.py::test_real_servers_start_on_it*", 2),
        ("tests/persistence/test_rdb_notes.py::test_export_and_import_*", 2),
        ("tests/persistence/test_rdb_pieces.py::test_a_file_that_is_cut_or_broken_*", 2),
        ("tests/regions/test_docs.py::test_tables*", 3),
        ("tests/server/commands/test_streams_departed_readers.py::test_a_reader_that_has_*", 3),
        ("tests/server/test_strange_files.py::test_what_is_no_file*", 2),
        ("tests/server/test_sentinel.py::test_pairs_of_ours_and_a_real_server*", 0),
        ("tests/server/test_sentinel.py::test_a_second_master_*", 0),
        ("tests/server/test_sentinel.py::test_over_tls", 0),
        ("tests/server/test_tools.py::test_a_damaged_end*", 3),
        ("tests/spark/test_jobs.py::test_an_archive_that_is_not_whole*", 0),
        ("tests/spark/test_jobs.py::test_only_what_is_archived_*", 0),
        ("tests/spark/test_jobs.py::test_totals_of_a_batch_that_is_repeated*", 0),
    ),
    "fetches or compiles much": (
        ("tests/spark/test_checkpoints.py::test_the_first_version_goes_on*", 0),
        ("tests/spark/test_docs.py::test_the_examples_run*", 0),
        ("tests/test_build.py::test_a_compiler_that_fails_*", 0),
    ),
}  # fmt: skip


def drawn(count: int) -> int:
    """How many examples, worlds or commands a push draws by chance, of so many of a release."""
    return count if judges.everything() else count // 2


class Selection:
    """Chooses what a push runs of the tests that it is asked about, in order."""

    def __init__(self) -> None:
        self._met: Counter[str] = Counter()
        self._of_file: dict[str, list[tuple[str, int]]] = {}
        for pattern, every in chain.from_iterable(CAMPAIGNS.values()):
            self._of_file.setdefault(pattern.partition("::")[0], []).append((pattern, every))

    def has(self, test: str) -> bool:
        """Return whether the test with this ID is one that a push runs."""
        for pattern, every in self._of_file.get(test.partition("::")[0], ()):
            if fnmatchcase(test, pattern):
                self._met[pattern] += 1
                return every > 0 and self._met[pattern] % every == 1 % every
        return True
