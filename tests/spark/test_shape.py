"""Entries as columns: default schemas, the user's, and values that do not fit."""

from __future__ import annotations

import datetime
import decimal
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from pyspark_headrace.columnar import Page
from pyspark_headrace.errors import OptionError, ValueTrouble
from pyspark_headrace.filling import Bad
from pyspark_headrace.options import Frame
from pyspark_headrace.shape import PAIRS, Shape, default_schema

pytestmark = pytest.mark.once

Row = list[tuple[bytes, bytes]]

FIRST = b"1700000000000-1"


def schema_of(*columns: tuple[str, object]) -> StructType:
    """A schema from names and types as JSON has them."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def page_of(rows: list[Row], columnar: bool) -> Page:
    ids = [b"1700000000%03d-%d" % (number // 2, number % 2 + 1) for number in range(len(rows))]
    names = [name for name, _ in rows[0]] if rows else []
    if columnar and all([name for name, _ in row] == names for row in rows):
        columns = [[row[number][1] for row in rows] for number in range(len(names))]
        return Page(ids, names, columns, [])
    return Page(ids, None, [], [[word for pair in row for word in pair] for row in rows])


def rows_in(
    schema: StructType,
    rows: list[Row],
    *,
    columnar: bool = True,
    form: str = "map",
    bad: str = "permissive",
    encoding: str = "utf-8",
) -> list[dict[str, object]]:
    shape = Shape(schema, Frame(fields_format=form), bad, encoding)
    found: list[dict[str, object]] = shape.batch("s", page_of(rows, columnar), Bad()).to_pylist()
    return found


TWO: list[Row] = [[(b"a", b"1"), (b"b", b"x")], [(b"a", b"2"), (b"b", b"y")]]
both_ways = pytest.mark.parametrize("columnar", [True, False])


@both_ways
def test_map(columnar: bool) -> None:
    found = rows_in(default_schema(Frame()), TWO, columnar=columnar)
    assert found[1] == {
        "key": "s",
        "id": "1700000000000-2",
        "id_ms": 1700000000000,
        "id_seq": 2,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC),
        "fields": [("a", "2"), ("b", "y")],
    }


@both_ways
def test_pairs_keep_everything(columnar: bool) -> None:
    row: Row = [(b"a", b"\xff\x00"), (b"a", b""), (b"\xfe", b"\r\n")]
    found = rows_in(
        default_schema(Frame(fields_format="pairs")), [row, row], columnar=columnar, form="pairs"
    )
    assert found[1]["pairs"] == [{"name": name, "value": value} for name, value in row]


@both_ways
def test_json(columnar: bool) -> None:
    rows: list[Row] = [[(b"a", "ü".encode()), (b"b", b"\xff")]] * 2
    found = rows_in(
        default_schema(Frame(fields_format="json")), rows, columnar=columnar, form="json"
    )
    assert json.loads(str(found[1]["json"])) == {"a": "ü", "b": {"base64": "/w=="}}


@both_ways
def test_without_ids_and_with_headers(columnar: bool) -> None:
    rows: list[Row] = [[(b"a", b"1"), (b"h:t", b"\xff"), (b"b", b"2"), (b"h:t", b"")]] * 2
    headers = [{"key": "t", "value": b"\xff"}, {"key": "t", "value": b""}]
    others = {
        "map": [("a", "1"), ("b", "2")],
        "pairs": [{"name": b"a", "value": b"1"}, {"name": b"b", "value": b"2"}],
        "json": '{"a":"1","b":"2"}',
    }
    for form, fields in others.items():
        frame = Frame(fields_format=form, include_id=False, include_headers=True)
        shape = Shape(default_schema(frame), frame, "failfast", "utf-8")
        found = shape.batch("s", page_of(rows, columnar), Bad()).to_pylist()[1]
        assert [*found.values()][2:] == [fields, headers]
        assert [*found][:2] == ["key", "timestamp"]
    frame = Frame(include_headers=True)
    bare = Shape(default_schema(frame), frame, "failfast", "utf-8")
    only: list[Row] = [[(b"h:t", b"1")]] * 2
    found = bare.batch("s", page_of(only, columnar), Bad()).to_pylist()[0]
    assert (found["fields"], found["headers"]) == ([], [{"key": "t", "value": b"1"}])


@both_ways
def test_headers_beside_columns_of_ones_own(columnar: bool) -> None:
    """In a schema as people write it, in which everything may be null."""
    rows: list[Row] = [[(b"a", b"1"), (b"h:t", b"x"), (b"b", b"2")]] * 2
    lists = {
        name: {
            "type": "array",
            "containsNull": True,
            "elementType": {
                "type": "struct",
                "fields": [
                    {"name": field, "type": kind, "nullable": True, "metadata": {}}
                    for field, kind in fields
                ],
            },
        }
        for name, fields in {
            "_headers": (("key", "string"), ("value", "binary")),
            "_pairs": (("name", "binary"), ("value", "binary")),
        }.items()
    }
    schema = schema_of(("a", "long"), ("h:t", "string"), ("_rest", _MAP), *lists.items())
    found = rows_in(schema, rows, columnar=columnar)[1]
    assert found == {
        "a": 1,
        "h:t": "x",
        "_rest": [("b", "2")],
        "_headers": [{"key": "t", "value": b"x"}],
        "_pairs": [{"name": b"a", "value": b"1"}, {"name": b"b", "value": b"2"}],
    }
    without = rows_in(schema_of(("_rest", _MAP)), rows, columnar=columnar)[0]
    assert without["_rest"] == [("a", "1"), ("h:t", "x"), ("b", "2")]
    with pytest.raises(ValueTrouble, match="a header's name"):
        rows_in(schema_of(("_headers", lists["_headers"])), [[(b"h:\xff", b"1")]], bad="failfast")


@both_ways
def test_a_field_that_comes_twice(columnar: bool) -> None:
    """The last one counts, in a map as in a column."""
    rows: list[Row] = [[(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]] * 2
    schema = schema_of(("a", "integer"), ("_fields", _MAP), ("_rest", _MAP))
    found = rows_in(schema, rows, columnar=columnar)
    assert found[0] == {"a": 3, "_fields": [("a", "3"), ("b", "2")], "_rest": [("b", "2")]}


_MAP = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
COLUMNS = (
    ("s", "string"),
    ("x", "binary"),
    ("i", "integer"),
    ("l", "long"),
    ("d", "double"),
    ("f", "float"),
    ("o", "boolean"),
    ("m", "decimal(10,2)"),
    ("t", "timestamp"),
    ("n", "timestamp_ntz"),
    ("y", "date"),
)


@both_ways
def test_casts(columnar: bool) -> None:
    row: Row = [
        (b"s", b"text"),
        (b"x", b"\xff"),
        (b"i", b"-7"),
        (b"l", b"9223372036854775807"),
        (b"d", b"1e3"),
        (b"f", b"0.5"),
        (b"o", b"true"),
        (b"m", b"1.5"),
        (b"t", b"2026-01-31T12:00:00+02:00"),
        (b"n", b"2026-01-31 12:00:00.5"),
        (b"y", b"2026-01-31"),
    ]
    found = rows_in(schema_of(*COLUMNS), [row, row], columnar=columnar, bad="failfast")[1]
    assert found == {
        "s": "text",
        "x": b"\xff",
        "i": -7,
        "l": 2**63 - 1,
        "d": 1000.0,
        "f": 0.5,
        "o": True,
        "m": decimal.Decimal("1.50"),
        "t": datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC),
        "n": datetime.datetime(2026, 1, 31, 12, 0, 0, 500_000),
        "y": datetime.date(2026, 1, 31),
    }


@both_ways
def test_missing_fields_are_null(columnar: bool) -> None:
    rows: list[Row] = [[(b"s", b"1")], [(b"s", b"2")] if columnar else [(b"x", b"2")]]
    found = rows_in(schema_of(*COLUMNS), rows, columnar=columnar)
    assert found[0] == {**dict.fromkeys([name for name, _ in COLUMNS]), "s": "1"}


@given(
    st.lists(st.sampled_from([b"1", b"2", b"x", b"", b"\xff", b"9" * 30]), min_size=1, max_size=9)
)
def test_values_that_do_not_fit(values: list[bytes]) -> None:
    rows: list[Row] = [[(b"a", value)] for value in values]
    schema = schema_of(("a", "long"))
    expected = [int(value) if value in (b"1", b"2") else None for value in values]
    assert [row["a"] for row in rows_in(schema, rows)] == expected
    if None in expected:
        wrong = values[expected.index(None)]
        with pytest.raises(ValueTrouble) as refused:
            rows_in(schema, rows, bad="failfast")
        if b"\xff" not in values:
            number = expected.index(None)
            place = f"1700000000{number // 2:03d}-{number % 2 + 1}"
            assert f"stream s, entry {place}: field a is {wrong.decode()[:40]!r}" in str(
                refused.value
            )


def test_times_with_and_without_a_zone_side_by_side() -> None:
    rows: list[Row] = [[(b"t", b"2026-01-31T12:00:00Z")], [(b"t", b"2026-01-31 12:00:00")]]
    found = rows_in(schema_of(("t", "timestamp")), rows, bad="failfast")
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    assert [row["t"] for row in found] == [noon, noon]


@both_ways
def test_binary_values_where_text_is_wanted(columnar: bool) -> None:
    rows: list[Row] = [[(b"a", b"\xff")], [(b"a", b"ok")]]
    assert [row["fields"] for row in rows_in(default_schema(Frame()), rows, columnar=columnar)] == [
        [("a", None)],
        [("a", "ok")],
    ]
    with pytest.raises(ValueTrouble, match="fieldsFormat=pairs"):
        rows_in(default_schema(Frame()), rows, columnar=columnar, bad="failfast")
    found = rows_in(default_schema(Frame()), rows, columnar=columnar, encoding="latin-1")
    assert found[0]["fields"] == [("a", "ÿ")]
    with pytest.raises(ValueTrouble, match="a field name"):
        rows_in(default_schema(Frame()), [[(b"\xff", b"1")]], columnar=columnar, bad="failfast")


CORRUPT = Frame(include_corrupt=True, include_headers=True)
MALFORMED: list[Row] = [
    [(b"a", b"1")],
    [(b"a", b"\xff"), (b"h:t", b"1")],
    [(b"\xfe", b"1"), (b"a", b"2")],
    [(b"h:\xfe", b"1"), (b"a", b"3")],
    [(b"a", b"4")],
]


def filled(rows: list[Row], shape: Shape, columnar: bool) -> tuple[list[dict[str, object]], Bad]:
    bad = Bad()
    return shape.batch("s", page_of(rows, columnar), bad).to_pylist(), bad


def raw(row: Row) -> list[dict[str, bytes]]:
    return [{"name": name, "value": value} for name, value in row]


def test_an_entry_that_is_no_text_is_kept_as_it_is() -> None:
    shape = Shape(default_schema(CORRUPT), CORRUPT, "permissive", "utf-8")
    found, bad = filled(MALFORMED, shape, False)
    assert [row["fields"] for row in found] == [
        [("a", "1")],
        [("a", None)],
        [("a", "2")],
        [("a", "3")],
        [("a", "4")],
    ]
    assert [row["headers"] for row in found][1:4] == [[{"key": "t", "value": b"1"}], [], []]
    assert [row["corrupt"] for row in found] == [
        None,
        *map(raw, MALFORMED[1:4]),
        None,
    ]
    assert bad.rows == 3
    assert bad.first.startswith("entry 1700000000000-2: a value, b'\\xff', is not UTF-8")


def test_malformed_entries_are_left_out() -> None:
    shape = Shape(default_schema(CORRUPT), CORRUPT, "dropmalformed", "utf-8")
    found, bad = filled(MALFORMED, shape, False)
    assert [row["fields"] for row in found] == [[("a", "1")], [("a", "4")]]
    assert [row["corrupt"] for row in found] == [None, None]
    assert bad.rows == 3
    json_frame = Frame(fields_format="json")
    shape = Shape(default_schema(json_frame), json_frame, "dropmalformed", "utf-8")
    found, bad = filled(MALFORMED, shape, False)
    assert [row["json"] for row in found] == [
        '{"a":"1"}',
        '{"a":{"base64":"/w=="},"h:t":"1"}',
        '{"a":"4"}',
    ]
    assert bad.rows == 2


@both_ways
def test_numbers_that_are_none_are_malformed_too(columnar: bool) -> None:
    rows: list[Row] = [[(b"a", text)] for text in (b"1", b"x", b"\xff", b"", b"4")]
    schema = schema_of(("a", "long"), ("_corrupt", PAIRS.jsonValue()))
    found, bad = filled(rows, Shape(schema, Frame(), "permissive", "utf-8"), columnar)
    assert [row["a"] for row in found] == [1, None, None, None, 4]
    assert [row["_corrupt"] is None for row in found] == [True, False, False, False, True]
    assert found[2]["_corrupt"] == raw(rows[2])
    assert bad.rows == 3
    kept, bad = filled(rows, Shape(schema, Frame(), "dropmalformed", "utf-8"), columnar)
    assert [row["a"] for row in kept] == [1, 4]
    with pytest.raises(ValueTrouble, match=r"stream s, entry 1700000000000-2: field a is 'x'"):
        filled(rows[:2], Shape(schema, Frame(), "failfast", "utf-8"), columnar)
    fine = [rows[0], rows[4]]
    _, bad = filled(fine, Shape(schema, Frame(), "permissive", "utf-8"), columnar)
    assert (bad.rows, bad.first) == (0, "")


def test_ids_of_64_bits() -> None:
    page = Page([b"18446744073709551615-18446744073709551615"], [b"a"], [[b"1"]], [])
    with pytest.raises(ValueTrouble, match="beyond the 63 bits of column _id_ms"):
        Shape(default_schema(Frame()), Frame(), "permissive", "utf-8").batch("s", page, Bad())
    schema = schema_of(("_id", "string"), ("_timestamp", "timestamp"))
    found = Shape(schema, Frame(), "permissive", "utf-8").batch("s", page, Bad()).to_pylist()
    assert found == [{"_id": "18446744073709551615-18446744073709551615", "_timestamp": None}]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ([("_kye", "string")], "did you mean _key?"),
        ([("_other", "string")], "is one of _key"),
        ([("_id_ms", "string")], "has the type bigint, not string"),
        ([("fields", _MAP)], "the entry's fields are called _fields"),
        ([("a", _MAP)], "cannot be read as map<string,string>"),
        ([("a", "interval day to second")], "cannot be read as interval"),
    ],
)
def test_schemas_that_cannot_be_filled(columns: list[tuple[str, object]], text: str) -> None:
    with pytest.raises(OptionError) as refused:
        Shape(schema_of(*columns), Frame(), "permissive", "utf-8")
    assert text in str(refused.value)


Words = st.binary(max_size=3)


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), Words), min_size=1, max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_both_ways_give_the_same(rows: list[Row]) -> None:
    for form in ("pairs", "json", "map"):
        schema = default_schema(Frame(fields_format=form))
        assert rows_in(schema, rows, columnar=True, form=form) == rows_in(
            schema, rows, columnar=False, form=form
        )
    schema = schema_of(("a", "binary"), ("b", "long"), ("_rest", _MAP))
    assert rows_in(schema, rows, columnar=True) == rows_in(schema, rows, columnar=False)
