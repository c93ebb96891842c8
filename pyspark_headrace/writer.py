"""The sink: batches and streaming queries appended to streams, each row once.

A row goes out as ``XADD stream IDMP pid iid * field value ...``; ``identity`` says how pid and iid
are made so that a row that is written again is known again. ``marker`` tells how that is done where
there is no IDMP.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from pyspark_headrace.encoder import Encoder, Layout, Rows, layout_of
from pyspark_headrace.errors import (
    NotAStreamError,
    OptionError,
    ServerError,
    UnsafeWriteError,
)
from pyspark_headrace.identity import (
    Labels,
    Origin,
    Tokens,
    bulk,
    description,
    safe_rows,
    short_name,
)
from pyspark_headrace.ids import parse_id
from pyspark_headrace.marker import MarkedPipe
from pyspark_headrace.memory import (
    LONG_ENOUGH_S,
    NOTE_LIFE_S,
    Attempt,
    OpenBatch,
    Target,
    let_remember,
    look_at,
)
from pyspark_headrace.options import WriteOptions
from pyspark_headrace.pipe import ANY_ID, Pipe, Request, RoutedPipe
from pyspark_headrace.resp import Link
from pyspark_headrace.server import has_commands
from pyspark_headrace.slots import slot_of

log = logging.getLogger("pyspark_headrace")

BATCH_PROPERTY: Final = "streaming.sql.batchId"
QUERY_PROPERTY: Final = "sql.streaming.queryId"


@dataclass
class Written(WriterCommitMessage):
    """What one task has done.

    Attributes:
        rows: sent; ``known`` of them the server had already.
        repeated: how many were taken for another row of the same batch.
        turned_away: how many could not be written, and went to the stream of errors.
        first_error: what was wrong with one of them.
        safe_rows: how many rows of a batch the server can know again; 0 when it cannot at all.
        shortest_s: for how long it does so, at the least.
    """

    rows: int = 0
    known: int = 0
    repeated: int = 0
    safe_rows: int = 0
    shortest_s: int = 0
    turned_away: int = 0
    first_error: str = ""


@dataclass(frozen=True)
class Job:
    """What is the same for all tasks of a write; travels to them.

    Attributes:
        run: names a batch job; of a streaming query Spark knows the name.
        drawn: the run was made up, so that only this job's own tasks are known again.
        strict: nobody else writes for this query, so options that changed can be told.
        attempt: drawn for each attempt of a batch, at ``began_ms``.
    """

    options: WriteOptions
    layout: Layout
    columns: tuple[str, ...]
    run: str
    drawn: bool
    strict: bool
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))
    began_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def writer_name(self) -> str:
        """Tells the writers of one query apart."""
        given = self.options.writer_id
        return short_name(given or f"{self.options.stream}|{self.columns}|{self.layout.identity}")

    def description(self) -> str:
        """Return what must not change while a batch is open."""
        return description(
            columns=list(self.columns),
            identity=self.layout.identity,
            marks=list(self.layout.marks),
            producers=self.options.producers,
            scope=self.options.id_scope,
            stream=self.options.stream,
            writer=self.writer_name(),
        )


def origin_of(job: Job) -> Origin:
    """Whom the rows of this task belong to.

    Raises:
        UnsafeWriteError: Spark does not say which batch this is.
    """
    task = TaskContext.get()
    partition = 0 if task is None else task.partitionId()
    query = None if task is None else task.getLocalProperty(QUERY_PROPERTY)
    batch = None if task is None else task.getLocalProperty(BATCH_PROPERTY)
    if job.run and not (query and batch):
        return Origin(f"run-{short_name(job.run)}", -1, partition)
    if job.run and not job.drawn:
        raise UnsafeWriteError(
            "runId inside of a streaming query: equal rows of two batches would count as one; "
            "leave it out, the query and the batch tell them apart"
        )
    if not query or not batch:
        raise UnsafeWriteError(
            "Spark does not tell the task which query and batch it works for "
            f"({QUERY_PROPERTY}, {BATCH_PROPERTY}), so rows written again could not be known "
            "again; identity=none writes all the same"
        )
    return Origin(query[:8], int(batch), partition)


class Appender:
    """Appends the rows of one task; ``start`` comes first, ``close`` last."""

    def __init__(self, job: Job) -> None:
        self._job: Final = job
        self._options: Final = job.options
        self._link: Final = Link(job.options.connection)
        self._encoder: Final = Encoder(job.layout, job.options)
        self._tokens: Tokens | None = None
        self._labels: Labels | None = None
        self._targets: dict[bytes, Target] = {}
        self._refused: dict[bytes, str] = {}  # keys that cannot be written, and why
        self._heads: dict[tuple[bytes, int], bytes] = {}
        self._trim: Final = b"".join(bulk(word.encode()) for word in job.options.trim)
        self._window: list[Request] = []
        self._window_bytes = 0
        self._pipe: Pipe | RoutedPipe | MarkedPipe | None = None
        self._batch: OpenBatch | None = None
        self.written: Final = Written()

    def start(self) -> None:
        """Find out how rows are known again, and whether they can be.

        Raises:
            UnsafeWriteError: they cannot, though they are asked to be.
        """
        job = self._job
        kind = job.layout.identity
        if kind == "none" or (kind != "marker" and not self._offers_idmp()):
            self._pipe = self._new_pipe(False)
            return
        origin = origin_of(job)
        self._batch = _open_batch(self._link, job, origin)
        if kind == "marker":
            self._batch.note()
            key = f"{_note_key(job, origin)}:{job.writer_name()}:p{origin.partition}"
            if self._link.is_cluster():
                key = _beside(job.options, key)
            life_s = 0 if origin.batch >= 0 else NOTE_LIFE_S
            self._pipe = MarkedPipe(self._link, key, origin.batch, life_s, self._left_out)
            return
        scope = job.options.id_scope if origin.batch >= 0 else "query"
        self._tokens = Tokens(kind, origin.partition)
        self._labels = Labels(origin, job.writer_name(), scope, job.options.producers)
        self._pipe = self._new_pipe(True)

    def _new_pipe(self, repeatable: bool) -> Pipe | RoutedPipe:
        if self._link.is_cluster():
            return RoutedPipe(self._link, self._answered)
        return Pipe(self._options.connection, self._answered, repeatable)

    def _offers_idmp(self) -> bool:
        options = self._options
        if has_commands(self._link, "XCFGSET"):
            return True
        where = options.connection.where()
        if options.identity != "auto":
            raise UnsafeWriteError(
                f"identity={options.identity}: {where} has no XADD IDMP, so it cannot know a row "
                "again; identity=marker counts rows instead, where their order is fixed, and none "
                "(or auto) writes at least once"
            )
        log.warning(
            "%s has no XADD IDMP: rows are written at least once, not exactly once "
            "(identity=marker does without, where the order of rows is fixed)",
            where,
        )
        return False

    def add(self, batch: pa.RecordBatch) -> None:
        """Send the rows of a batch."""
        rows = self._encoder.encode(batch)
        for target in dict.fromkeys(rows.targets):
            if target not in self._targets and target not in self._refused:
                self._meet(target)
        if self._refused:
            self._turn_away(rows)
        labels = self._labels_of(rows)
        depth, most_bytes = self._options.depth, self._options.max_bytes
        for target, body, count, label in zip(
            rows.targets, rows.bodies, rows.counts, labels, strict=True
        ):
            words = self._head(target, count, bool(label)) + label + self._trim + ANY_ID + body
            self._window.append((target, words))
            self._window_bytes += len(words)
            if len(self._window) >= depth or self._window_bytes >= most_bytes:
                self._flush()
        self.written.rows += len(rows.bodies)

    def _turn_away(self, rows: Rows) -> None:
        """Send rows for a key that cannot be written to the stream of errors."""
        for number, target in enumerate(rows.targets):
            if target in self._refused:
                self._encoder.turn_away(rows, number, self._refused[target])
        error_stream = self._options.error_stream.encode()
        if error_stream not in self._targets:
            self._meet(error_stream)

    def finish(self) -> Written:
        """Wait for the server's word on every row."""
        self._flush()
        if self._pipe is not None:
            self._pipe.drain()
        self.written.turned_away = self._encoder.turned_away
        self.written.first_error = self._encoder.first_error
        return self.written

    def close(self) -> None:
        """End the connections."""
        if self._pipe is not None:
            self._pipe.close()
        self._link.close()

    def _flush(self) -> None:
        if self._window and self._pipe is not None:
            if self._labels is not None and self._batch is not None:
                self._batch.check()
            window, self._window, self._window_bytes = self._window, [], 0
            self._pipe.push(window)

    def _labels_of(self, rows: Rows) -> Sequence[bytes]:
        if self._tokens is None or self._labels is None:
            return [b""] * len(rows.bodies)
        bodies = rows.bodies
        if not self._options.stream:  # equal rows for two streams are not the same row
            bodies = list(map(b"\0".join, zip(rows.targets, bodies, strict=True)))
        return self._labels.of(self._tokens.of(bodies, rows.marks))

    def _head(self, target: bytes, fields: int, labelled: bool) -> bytes:
        """Return how a request for so many fields begins."""
        head = self._heads.get((target, fields))
        if head is None:
            words = 3 + 2 * fields + len(self._options.trim) + (3 if labelled else 0)
            head = b"*%d\r\n$4\r\nXADD\r\n" % words + bulk(target)
            self._heads[target, fields] = head
        return head

    def _meet(self, target: bytes) -> None:
        """Look at a stream before the first row goes there."""
        try:
            found = look_at(self._link, target)
        except (NotAStreamError, ServerError) as refused:
            final = isinstance(refused, NotAStreamError) or refused.code == "NOPERM"
            error_stream = self._options.error_stream.encode()
            if not final or not error_stream or target == error_stream:
                raise
            self._refused[target] = str(refused)
            return
        if self._labels is not None and self._batch is not None:
            options = self._options
            if options.configure_idmp and not self._batch.repeated:
                found = let_remember(self._link, target, found, options.maxsize)
            self._batch.note(found.duration_s)
            self._batch.check()
            safe = safe_rows(self._options.producers, found.window)
            self.written.safe_rows = min(self.written.safe_rows or safe, safe)
            shortest = self.written.shortest_s
            self.written.shortest_s = min(shortest or found.duration_s, found.duration_s)
        self._targets[target] = found

    def _left_out(self, rows: int) -> None:
        self.written.known += rows

    def _answered(self, target: bytes, entry_id: bytes) -> None:
        """Look at a row's ID; new ones rise.

        One from before this task began tells of a row that was there already. One that this task
        has seen before tells of two rows with one identity, of which the second is not written.
        """
        stream = self._targets[target]
        given_id = parse_id(entry_id)
        if given_id <= stream.last and given_id not in stream.met:
            stream.met.add(given_id)
            self.written.known += 1
        elif given_id <= stream.newest:
            self.written.repeated += 1
        else:
            stream.newest = given_id


def _note_key(job: Job, origin: Origin) -> str:
    return f"{job.options.stream or 'headrace'}:sink:{origin.name}"


def _beside(options: WriteOptions, key: str) -> str:
    """A marker's key that lies where the stream does.

    Raises:
        UnsafeWriteError: there is none, or rows go elsewhere too.
    """
    streams = [name for name in (options.stream, options.error_stream) if name]
    if options.stream and slot_of(key) != slot_of(options.stream):
        key = f"{{{options.stream}}}{key.removeprefix(options.stream)}"
    if not options.stream or any(slot_of(name) != slot_of(key) for name in streams):
        raise UnsafeWriteError(
            "identity=marker writes rows and marker in one transaction, so in a cluster all rows "
            "go to one stream, and to an errorStream in its slot: {rides}:errors beside rides"
        )
    return key


def _open_batch(link: Link, job: Job, origin: Origin) -> OpenBatch:
    """The batch that rows belong to; a job whose run was made up has no note of it.

    Raises:
        UnsafeWriteError: it was begun with other options.
    """
    key = _note_key(job, origin)
    if not job.strict or job.options.writer_id:
        key += f":{job.writer_name()}"
    task = TaskContext.get()
    attempt = Attempt(
        origin.batch,
        job.description(),
        job.attempt,
        job.began_ms,
        task is not None and task.attemptNumber() > 0,
        not job.options.fail_on_forgotten,
    )
    return OpenBatch(link, "" if origin.batch < 0 and job.drawn else key, attempt)


def _append(job: Job, batches: Iterator[pa.RecordBatch]) -> Written:
    appender = Appender(job)
    try:
        appender.start()
        for batch in batches:
            if batch.num_rows:
                appender.add(batch)
        return appender.finish()
    finally:
        appender.close()


def _summed(messages: Sequence[WriterCommitMessage | None]) -> Written:
    done = [message for message in messages if isinstance(message, Written) and message.rows]
    return Written(
        sum(message.rows for message in done),
        sum(message.known for message in done),
        sum(message.repeated for message in done),
        min((message.safe_rows for message in done), default=0),
        min((message.shortest_s for message in done), default=0),
        sum(message.turned_away for message in done),
        next((message.first_error for message in done if message.first_error), ""),
    )


def _warn(what: str, total: Written) -> None:
    """Say what was left out, and what keeps a repetition from being known again."""
    if total.turned_away:
        log.warning(
            "%s: %d of %d rows could not be written, and went to the errorStream; one of them: %s",
            what,
            total.turned_away,
            total.rows,
            total.first_error,
        )
    if total.repeated:
        log.warning(
            "%s: %d of %d rows were left out, because the value of their idColumn is that of "
            "another row too; it has to be unique",
            what,
            total.repeated,
            total.rows,
        )
    if total.safe_rows and total.rows > total.safe_rows:
        log.warning(
            "%s has %d rows, and only %d are sure to be known again if it is repeated: it has to "
            "be smaller, or idmpProducers more",
            what,
            total.rows,
            total.safe_rows,
        )
    if total.safe_rows and total.shortest_s < LONG_ENOUGH_S:
        log.warning(
            "the stream forgets rows after %d s (idmp-duration): a batch that is repeated later is "
            "refused (failOnForgotten); configureIdmp=true on an empty stream, or XCFGSET",
            total.shortest_s,
        )


class StreamSink(DataSourceStreamArrowWriter):
    """``df.writeStream``."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        if options.run_id:
            raise OptionError("option runId is for batch jobs: a query has a name of its own")
        layout = layout_of(schema, options)
        self._job = Job(options, layout, tuple(schema.names), "", False, True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Append the rows of one partition of a micro-batch."""
        return _append(self._job, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Say what was written; the rows are in the stream since their tasks ended."""
        total = _summed(messages)
        if total.known:
            log.info("batch %d: %d of %d rows were there", batchId, total.known, total.rows)
        _warn(f"batch {batchId}", total)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing is taken back: the batch is written again, and its rows are known again."""
        total = _summed(messages)
        log.warning("batch %d failed; %d rows of it are in the stream", batchId, total.rows)


class BatchSink(DataSourceArrowWriter):
    """``df.write``, also inside of ``foreachBatch``."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        layout = layout_of(schema, options)
        # Drawn here, a name is the same in all tasks and attempts of this job, and of no other.
        run = options.run_id or secrets.token_hex(8)
        self._job = Job(options, layout, tuple(schema.names), run, not options.run_id, False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Append the rows of one partition."""
        return _append(self._job, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Say what was written."""
        total = _summed(messages)
        if self._job.drawn:
            total.safe_rows = 0  # nobody expects a job without a runId to be repeatable
        _warn("this job", total)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing is taken back."""
        total = _summed(messages)
        again = "" if self._job.drawn else "; run again with the same runId, they count once"
        log.warning("the job failed; %d rows of it are in the stream%s", total.rows, again)
