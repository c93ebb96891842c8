"""Users who have the rights that docs/spark.md lists, and no others."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from pyspark_headrace.client import Client
from pyspark_headrace.given import READ, STREAM
from pyspark_headrace.jobs.archive import _trim
from pyspark_headrace.mirror import mirror
from pyspark_headrace.options import read_options
from pyspark_headrace.resources import rows_of
from pyspark_headrace.resp import Link
from pyspark_headrace.source import HeadraceSource
from support.process import Process
from support.spark_page import rights
from support.spark_query import Query
from support.spark_task import task

pytestmark = pytest.mark.once

ROWS = pa.table({"n": list(range(50))})


@pytest.fixture
def anyone(every_server: Process) -> Iterator[Process]:
    """Each server, without a user named ada."""
    yield every_server
    every_server.call("ACL", "DELUSER", "ada")


def let(server: Process, keys: str, *roles: str) -> dict[str, str]:
    """Make ada a user of these roles; the options that make use of it."""
    rules = [rule for role in roles for rule in rights()[role]]
    server.call("ACL", "SETUSER", "ada", "reset", "on", "nopass", *keys.split(), *rules)
    return {"port": str(server.port), "username": "ada"}


def has_idmp(server: Process) -> bool:
    return server.call("COMMAND", "INFO", "XCFGSET") not in ([None], [[]])


def fill(server: Process) -> None:
    for number in range(30):
        server.call("XADD", f"rides:{number % 3}", "*", "f", number)


def test_a_source(anyone: Process) -> None:
    """By names and by a pattern, with limits, where something has changed and where it has not."""
    fill(anyone)
    where = let(anyone, "~rides*", "source", "mirrorGroup")
    for which in ({"subscribe": "rides:0,rides:1,rides:2"}, {"subscribePattern": "rides*"}):
        query = Query(
            anyone,
            **{"subscribe": None, "startingOffsets": "earliest", "minPartitions": 4, **which},
            username="ada",
            maxBytesPerTrigger="300",
            mirrorGroup="g",
        )
        query.run(7)
        assert sum(map(len, query.read.values())) == 30
        assert not query.step()
        options = read_options({**where, **{k: str(v) for k, v in which.items()}}, STREAM)
        link = Link(options.connection)
        mirror(link, "g", query.at)
        assert [row["group"] for row in rows_of(link, "groups", "rides:0")] == ["g"]
        for resource in ("info", "consumers", "pending"):
            list(rows_of(link, resource, "rides:0"))
        link.close()
        query.close()


@pytest.mark.parametrize("identity", ["auto", "marker", "none"])
def test_a_sink(anyone: Process, identity: str) -> None:
    roles = ["sink"]
    more = {}
    if identity == "marker":
        roles.append("identity=marker")
    elif identity == "auto" and has_idmp(anyone):
        roles.append("configureIdmp=true")
        more = {"configureIdmp": "true"}
    schema = from_arrow_schema(ROWS.schema)
    where = let(anyone, "~rides ~rides:sink:*", *roles)
    source = HeadraceSource({**where, **more, "stream": "rides", "identity": identity})
    for _ in range(2):
        sink = pickle.loads(pickle.dumps(source.streamWriter(schema, False)))
        with task():
            assert sink.write(iter(ROWS.to_batches())).rows == 50
    known = identity == "marker" or (identity == "auto" and has_idmp(anyone))
    assert anyone.call("XLEN", "rides") == (50 if known else 100)


def test_what_trims(anyone: Process) -> None:
    fill(anyone)
    where = let(anyone, "~rides*", "source", "archive --trim")
    link = Link(read_options({**where, "path": "rides:0"}, READ).connection)
    assert _trim(link, "rides:0", (1 << 62, 0), 3) == 7
    link.close()


def test_nothing_else_is_allowed(anyone: Process) -> None:
    where = let(anyone, "~rides*", "source")
    client = Client(read_options({**where, "path": "rides:0"}, READ).connection)
    for words in (("XADD", "rides:0", "*", "f", "v"), ("XRANGE", "other", "-", "+"), ("FLUSHALL",)):
        assert str(client.pipeline([words])[0]).startswith("NOPERM")
    client.close()
