"""Options: what is taken, and how what is wrong is refused."""

from __future__ import annotations

import ast
import os
import pickle
import re
from pathlib import Path

import pytest

from pyspark_headrace.connection import Connection, connection_from
from pyspark_headrace.errors import OptionError
from pyspark_headrace.given import NAMES, READ, STREAM, WRITE, Given
from pyspark_headrace.ids import GREATEST, ID_MAX, LEAST
from pyspark_headrace.options import (
    EARLIEST,
    LATEST,
    Bound,
    Frame,
    frame_options,
    read_options,
    write_options,
)
from support.build import ROOT

pytestmark = pytest.mark.once

PACKAGE = ROOT / "pyspark_headrace"


@pytest.mark.parametrize(
    ("use", "given", "text"),
    [
        (READ, {"subscribee": "a"}, "unknown option subscribee; did you mean subscribe?"),
        (STREAM, {"subscribe": "a", "mirrorGroup": "g", "redis.group": "h"}, "are the same"),
        (STREAM, {"subscribe": "a", "maxTriggerDelay": "5m"}, "without minOffsetsPerTrigger"),
        (STREAM, {"subscribe": "a", "pollTimeoutMs": "3600001"}, "is above 3600000"),
        (
            STREAM,
            {"subscribe": "a", "startingOffsetsByTimestamp": '{"b": 5}'},
            "option startingOffsetsByTimestamp names b",
        ),
        (
            READ,
            {"subscribe": "a", "resource": "groups", "fieldsFormat": "pairs"},
            "option fieldsFormat means nothing to resource=groups",
        ),
        (READ, {"assign": '{"a": ["9-0", "5-0"]}'}, "assign: the end of stream a is before"),
        (
            READ,
            {"subscribe": "a", "startingOffsets": '{"a": "9-0"}', "endingOffsets": '{"a": "5-0"}'},
            "endingOffsets: the end of stream a is before startingOffsets",
        ),
        (
            STREAM,
            {"subscribe": "a", "startingTimestamp": "1001", "endingTimestamp": "1000"},
            "option endingTimestamp: the end is before startingTimestamp",
        ),
        (STREAM, {"StartingOffset": "x"}, "did you mean startingOffsets?"),
        (READ, {"qwertyuiop": "1"}, "unknown option qwertyuiop"),
        (READ, {"subscribe": "a", "maxlen": "1"}, "maxlen is for write, and means nothing to read"),
        (READ, {"subscribe": "a", "maxOffsetsPerTrigger": "1"}, "is for readStream"),
        (STREAM, {"subscribe": "a", "endingOffsets": "latest"}, "is for read, and means nothing"),
        (READ, {}, "which streams?"),
        (READ, {"subscribe": ""}, "option subscribe is empty"),
        (READ, {"subscribe": "a,,b"}, "a stream without a name"),
        (READ, {"subscribe": "a", "subscribePattern": "b"}, "exclude each other"),
        (READ, {"subscribe": "a", "password": "hush"}, "passwordEnv"),
        (READ, {"subscribe": "a", "redis.url": "redis://me:hush@h"}, "holds a password"),
        (READ, {"subscribe": "a", "redis.url": "http://h"}, "is wanted"),
        (READ, {"subscribe": "a", "redis.url": "redis://h:no"}, "is wanted"),
        (READ, {"subscribe": "a", "redis.url": "redis://h:0"}, "is wanted"),
        (READ, {"subscribe": "a", "redis.url": "redis://[::1"}, "Invalid IPv6 URL"),
        (READ, {"subscribe": "a", "redis.url": "redis://a..b:1"}, "'a..b' cannot be the name"),
        (READ, {"subscribe": "a", "host": "h" * 70}, "cannot be the name of a host"),
        (READ, {"subscribe": "a", "redis.url": "redis://h/x"}, "is wanted"),
        (READ, {"subscribe": "a", "redis.url": "redis://h?x=1"}, "is wanted"),
        (READ, {"subscribe": "a", "redis.url": "redis://h", "port": "1"}, "exclude each other"),
        (READ, {"subscribe": "a", "port": "x"}, "'x' is not a whole number"),
        (READ, {"subscribe": "a", "port": "0"}, "0 is below 1"),
        (READ, {"subscribe": "a", "failOnDataLoss": "yes"}, "neither true nor false"),
        (READ, {"subscribe": "a", "fieldsFormat": "jsno"}, "did you mean json?"),
        (READ, {"subscribe": "a", "resource": "group"}, "did you mean groups?"),
        (READ, {"subscribe": "a", "startingOffsets": "first"}, "neither earliest nor latest"),
        (READ, {"subscribe": "a", "startingOffsets": "{"}, "is not JSON"),
        (READ, {"subscribe": "a", "startingOffsets": "{}"}, "a JSON object"),
        (READ, {"subscribe": "a", "startingOffsets": '{"a":1}'}, "must be a string"),
        (READ, {"subscribe": "a", "startingOffsets": '{"a":"1_0"}'}, "is no stream ID"),
        (READ, {"subscribe": "a", "startingOffsets": '{"b":"1-0"}'}, "names b, which is not"),
        (READ, {"subscribe": "a", "endingOffsets": "earliest"}, "earliest is no end"),
        (READ, {"subscribe": "a", "startingTimestamp": "soon"}, "neither milliseconds"),
        (
            READ,
            {"subscribe": "a", "startingTimestamp": "1", "startingOffsets": "latest"},
            "exclude each other",
        ),
        (READ, {"assign": '{"a":["1-0"]}'}, "must have two IDs"),
        (READ, {"assign": '{"a":["1-0","x"]}'}, "is no stream ID"),
        (READ, {"assign": '{"a":["-","+"]}', "startingOffsets": "latest"}, "exclude each other"),
        (
            STREAM,
            {"subscribe": "a", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "is above",
        ),
    ],
)
def test_refused(use: str, given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as refused:
        read_options(given, use)
    assert text in str(refused.value)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"stream": "a", "subscribe": "b"}, "subscribe is for read and readStream"),
        ({"stream": "a", "identty": "none"}, "did you mean identity?"),
        ({"stream": "a", "identity": "columns"}, "did you mean column?"),
        ({"stream": "a", "identity": "content", "idColumn": "x"}, "idColumn means nothing"),
        ({"stream": "a", "maxlen": "5", "minid": "1"}, "exclude each other"),
        ({"stream": "a", "minid": "-"}, "is no stream ID"),
        ({"stream": "a", "maxlen": "-1"}, "-1 is below 0"),
        ({"stream": "a", "path": "b"}, "exclude each other"),
    ],
)
def test_refused_by_the_sink(given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as refused:
        write_options(given)
    assert text in str(refused.value)


def test_names_have_no_case_and_spark_adds_some() -> None:
    found = read_options(
        {"SUBSCRIBE": " b , a,a", "maxoffsetspertrigger": "7", "checkpointLocation": "x"}, STREAM
    )
    assert found.keys == ("a", "b")
    assert found.max_rows == 7
    assert read_options({"path": "rides"}, READ).keys == ("rides",)
    assert read_options({"paths": '["b","a"]'}, READ).keys == ("a", "b")


@pytest.mark.parametrize(
    ("use", "name", "meant"),
    [
        (STREAM, "kafka.bootstrap.servers", "redis.url"),
        (STREAM, "groupIdPrefix", "mirrorGroup"),
        (STREAM, "stream.keys", "subscribe"),
        (STREAM, "stream.read.batch.size", "fetchCount"),
        (STREAM, "maxTriggerDelayMs", "maxTriggerDelay"),
    ],
)
def test_names_of_other_sources(use: str, name: str, meant: str) -> None:
    with pytest.raises(OptionError, match=rf"did you mean {meant}\?"):
        read_options({name: "1"}, use)


def test_another_name_for_the_mirror() -> None:
    assert read_options({"path": "s", "redis.group": "g"}, STREAM).mirror_group == "g"
    with pytest.raises(OptionError, match="mirrorGroup is for readStream"):
        read_options({"path": "s", "redis.group": "g"}, READ)


def test_lengths_of_time() -> None:
    def of(text: str) -> int:
        return read_options(
            {"path": "s", "minOffsetsPerTrigger": "1", "maxTriggerDelay": text}, STREAM
        ).max_delay_ms

    assert [of(text) for text in ("250", "500ms", "30s", " 15 M", "2min", "3h", "1d")] == [
        250,
        500,
        30_000,
        900_000,
        120_000,
        10_800_000,
        86_400_000,
    ]
    for text in ("soon", "-1s", "1.5h", "5 parsecs", "s"):
        with pytest.raises(OptionError, match="is no time such as 500ms"):
            of(text)


def test_where_to_start_and_end() -> None:
    assert read_options({"subscribe": "a"}, READ).start == EARLIEST
    assert read_options({"subscribe": "a"}, STREAM).start == LATEST
    named = read_options(
        {"subscribe": "a,b", "startingOffsets": '{"a":"5-1"}', "endingOffsets": '{"b":"9-9"}'}, READ
    )
    assert (named.start_of("a"), named.start_of("b")) == (Bound(id=(5, 1)), EARLIEST)
    assert (named.end_of("a"), named.end_of("b")) == (LATEST, Bound(id=(9, 9)))
    by_time = read_options(
        {"subscribe": "a", "startingTimestamp": "1970-01-01T00:00:01", "endingTimestamp": "2000"},
        READ,
    )
    assert by_time.start.id == (999, ID_MAX)
    assert by_time.end.id == (1999, ID_MAX)
    of_each = read_options(
        {"subscribe": "a,b", "startingOffsetsByTimestamp": '{"a":7,"b":"1970-01-01T01:00+01:00"}'},
        READ,
    )
    assert of_each.starts == {"a": Bound(id=(6, ID_MAX)), "b": Bound(id=LEAST)}
    assigned = read_options({"assign": '{"a":["3-1","7"],"b":["-","+"]}'}, READ)
    assert assigned.keys == ("a", "b")
    assert assigned.start_of("a").id == (3, 0)
    assert assigned.end_of("a").id == (7, ID_MAX)
    assert (assigned.start_of("b").id, assigned.end_of("b")) == (LEAST, LATEST)
    assert assigned.end_of("b").id != GREATEST


def test_addresses() -> None:
    def of(**options: str) -> Connection:
        return connection_from(
            Given({name.replace("__", "."): v for name, v in options.items()}, READ)
        )

    assert of() == Connection()
    assert of(redis__url="redis://me@host:7000/3") == Connection("host", 7000, db=3, username="me")
    assert of(redis__url="rediss://host").tls
    assert of(redis__url="unix:///tmp/s?db=2") == Connection("localhost", 6379, "/tmp/s", 2)
    assert of(redis__url="redis://[::1]").where() == "[::1]:6379"


@pytest.mark.parametrize(
    ("options", "variable", "text"),
    [
        ({"tls": "true"}, "", "tls=true wants the option host too"),
        ({"tls": "true", "port": "1"}, "", "tls=true wants the option host too"),
        ({"tls": "true"}, "redis://host", "tls=true wants the option host too"),
        *(
            ({name: "1"}, "redis://host", f"option {name} without host: HEADRACE_URL does not")
            for name in ("db", "username")
        ),
        ({"port": "1", "db": "1"}, "redis://host", ""),
        ({"tls": "true", "host": "h"}, "redis://host", ""),
        ({"tls": "true", "sentinels": "h", "sentinelMaster": "m"}, "redis://host", ""),
        ({"tls": "false", "db": "1"}, "", ""),
    ],
)
def test_no_option_leads_to_this_machine_in_silence(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], variable: str, text: str
) -> None:
    monkeypatch.setenv("HEADRACE_URL", variable)
    if not text:
        connection_from(Given(options, READ))
        return
    with pytest.raises(OptionError, match=text):
        connection_from(Given(options, READ))


# Names in messages that are not ours: of Spark, HTML and PostgreSQL.
OF_OTHERS = {
    *("checkpointLocation", "foreachBatch", "outputMode", "readStream", "sortWithinPartitions"),
    *("charset", "class", "dbname", "lang"),
}
# The modules whose messages a sink alone gives, and those whose messages only readers give.
OF_SINKS = ("encoder", "identity", "marker", "memory", "writer")
OF_READERS = (
    *("filling", "filters", "loss", "mirror", "offsets", "paging", "planner", "reader"),
    *("resources", "settling", "shape", "watch"),
)
_NAMED = re.compile(
    r"\b[a-z]+(?:[A-Z][A-Za-z]*)+\b"  # camelCase
    r"|\b(?:redis|fetchOffset)\.\w+"
    r"|\b[a-z]\w+(?==\w)"  # name=value
    r"|(?<=\boption )[a-z]\w+(?= |:)"
)


def test_messages_name_options_that_are_there() -> None:
    """Where they are given: a sink does not name an option of a source."""
    checked = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or id(node) in docs:
                continue
            text = node.value
            if not isinstance(text, str) or " " not in text:
                continue
            for name in set(_NAMED.findall(text)) - OF_OTHERS:
                where = f"{path.name}:{node.lineno}: {name}"
                uses = set(NAMES.get(name, ()))
                assert uses, f"{where} is no option"
                if path.stem in OF_SINKS:
                    assert WRITE in uses, f"{where} means nothing to a sink"
                if path.stem in OF_READERS:
                    assert {READ, STREAM} & uses, f"{where} means nothing to a reader"
                checked += 1
    assert checked > 50


def test_a_password_is_read_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("hush\n")
    monkeypatch.setenv("SECRET", "hush")
    for options in ({"passwordFile": str(tmp_path / "secret")}, {"passwordEnv": "SECRET"}):
        found = read_options({"subscribe": "a", **options}, READ)
        assert found.connection.password() == "hush"
        assert "hush" not in repr(found)
        assert b"hush" not in pickle.dumps(found)
    monkeypatch.delenv("SECRET")
    with pytest.raises(OptionError, match="there is no variable SECRET"):
        Connection(password_env="SECRET").password()
    with pytest.raises(OptionError, match="passwordFile"):
        Connection(password_file=os.devnull + "/x").password()


def test_what_columns_depend_on() -> None:
    assert frame_options({"subscribe": "a"}) == Frame("entries", "map", True, False)
    assert frame_options({"subscribe": "a", "resource": "pending"}) == Frame("pending")
    given = {"fieldsFormat": "pairs", "includeId": "false", "includeHeaders": "true"}
    assert frame_options(given) == Frame("entries", "pairs", False, True)
    with pytest.raises(OptionError, match="unknown option"):
        frame_options({"wat": "1"})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"identity": "none", "runId": "r"}, "option runId means nothing to identity=none"),
        ({"identity": "none", "writerId": "w"}, "option writerId means nothing"),
        ({"identity": "marker", "configureIdmp": "true"}, "configureIdmp means nothing to"),
        ({"identity": "content", "idColumn": "n"}, "option idColumn means nothing"),
        ({"approximateTrim": "false"}, "approximateTrim means nothing without maxlen or minid"),
        ({"maxInFlightBytes": "4 apples"}, "'4 apples' is no size"),
    ],
)
def test_writing_options_that_contradict(given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        write_options({"stream": "s", **given})


def test_bounds_that_leave_nothing_are_no_mistake() -> None:
    times = {"startingTimestamp": "1000", "endingTimestamp": "1000"}
    assert read_options({"subscribe": "a", **times}, READ).end.id < (1000, 0)
    read_options({"assign": '{"a": ["5-0", "5-0"]}'}, READ)
    assert write_options({"stream": "s", "maxInFlightBytes": "4m"}).max_bytes == 4 << 20
