"""What the pages show and change, on our server and on the oldest Redis that there is."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from urllib.parse import quote, quote_from_bytes

import pytest

from support.consoles import Console, Shop
from support.process import Process, ServerProcess
from support.waiting import wait_until

pytestmark = pytest.mark.once
ID = re.compile(r'name="id" value="(\d+-\d+)"')
TICKET = re.compile(r'name="id" value="([^"]+/[^"]+)"')
OLDER = re.compile(r'rel="next" href="([^"]+)"')
NEWER = re.compile(r'rel="prev" href="([^"]+)"')
GROUP = "group?key=orders&group=billing"


def call(server: Process, *words: bytes | str | int) -> list[object]:
    reply = server.call(*words)
    assert isinstance(reply, list)
    return reply


def ids_of(reply: list[object]) -> list[str]:
    return [row[0].decode() for row in reply if isinstance(row, list)]


def link(pattern: re.Pattern[str], page: str) -> str:
    found = pattern.search(page)
    return html.unescape(found[1]) if found else ""


def tickets(page: str) -> list[str]:
    return [html.unescape(each) for each in TICKET.findall(page)]


def said(answer: str) -> str:
    """What a page says has happened."""
    found = re.search(r'<p class="banner (?:good|bad)" role="status">(.*?)</p>', answer)
    assert found, answer
    return html.unescape(found[1])


def order_of(page: str) -> list[str]:
    return re.findall(r'id="s-([^"]+)"', page)


def test_streams_are_listed_with_their_groups(shop: Shop) -> None:
    wait_until(lambda: "stuck 22 min" in shop.console.get("./?part=ORD"))
    page = shop.console.get("./?part=ORD")
    assert order_of(page)[0] == "orders"
    assert "payments" not in page
    assert "90 behind" in page
    assert "13 pending" in page


def test_streams_are_sorted_and_sifted(shop: Shop) -> None:
    get = shop.console.get
    wait_until(lambda: order_of(get("./?sort=length&down=1"))[:2] == ["clicks", "orders"])
    assert order_of(get("./"))[0] == "audit%3A2026-01"
    wait_until(lambda: order_of(get("./?only=stuck")) == ["orders"])
    wait_until(lambda: order_of(get("./?sort=lag&down=1"))[0] == "clicks")
    assert "Open a stream of exactly this name" in get("./?part=no-such")


def test_pages_go_both_ways(shop: Shop) -> None:
    all_ids = ids_of(call(shop.server, "XREVRANGE", "orders", "+", "-"))
    place, seen = "stream?key=orders", list[str]()
    while place:
        page = shop.console.get(place)
        seen += ID.findall(page)
        place = link(OLDER, page)
    assert seen == all_ids
    place, back = "stream?key=orders&at=oldest", list[str]()
    while place:
        page = shop.console.get(place)
        back = ID.findall(page) + back
        place = link(NEWER, page)
    assert back == all_ids


def test_a_jump_leads_to_a_time_or_an_id(shop: Shop) -> None:
    all_ids = ids_of(call(shop.server, "XRANGE", "orders", "-", "+"))
    wanted = all_ids[100]
    page = shop.console.get(f"stream?k=orders&way=from&at={wanted}")
    assert ID.findall(page)[-1] == wanted
    ms = int(wanted.split("-")[0])
    when = re.search(rf"id\">{wanted}.*?title=\"([^\"]+) UTC\"", page, re.DOTALL)
    assert when
    page = shop.console.get(f"stream?k=orders&way=from&at={when[1].replace(' ', 'T')}")
    assert ID.findall(page)[-1] == wanted
    page = shop.console.get(f"stream?k=orders&way=from&at={ms - 1}")
    assert ID.findall(page)[-1] == wanted
    assert "is no ID, and no time" in shop.console.get("stream?k=orders&way=from&at=soon")


def test_a_filter_finds_entries_by_field_and_value(shop: Shop) -> None:
    page = shop.console.get("stream?k=orders&field=customer&value=grac")
    assert len(ID.findall(page)) == 30
    assert "30 entries found among 240" in page
    assert "None of these 240" in shop.console.get("stream?k=orders&field=no-such")


def test_an_entry_is_shown_in_four_ways(shop: Shop) -> None:
    fields = (b"j", b'{"a": [1]}', b"raw", b"\xff\x00\n<b>", b"j", b"twice")
    shop.server.call("XADD", "odd", "5-1", *fields)
    place = "entry?key=odd&id=5-1&as="
    assert r"\xff\x00" in shop.console.get(place + "table")
    shown = html.unescape(shop.console.get(place + "json"))
    assert '"a": [\n' in shown
    assert '"j": "twice"' in shown
    assert "raw: \\xff" in shop.console.get(place + "text")
    assert "ff 00 0a 3c 62 3e" in shop.console.get(place + "hex&field_at=1")
    value = shop.console.visitor.get("value?key=odd&id=5-1&field_at=1")
    assert value.content == b"\xff\x00\n<b>"
    assert value.headers["content-type"] == "application/octet-stream"
    assert "No such entry" in shop.console.get("entry?key=odd&id=5-2")


def test_an_entry_is_appended_again_byte_by_byte(shop: Shop) -> None:
    fields = [b"a\\b", b"1\r\n2\n\xff\xe2\x80\xae", b"", b"\n\nx", b"a\\b", "ü".encode()]
    shop.server.call("XADD", "orders", "9999999999999-1", *fields)
    page = shop.console.get("append?key=orders&id=9999999999999-1")
    found = re.findall(r'<textarea name="(name|value)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    # A browser sends line ends in its own way.
    texts = [html.unescape(text).replace("\n", "\r\n") for _, text in found]
    answer = shop.console.post("append?key=orders", name=texts[::2], value=texts[1::2])
    assert "Appended as 9999999999999-2" in answer.text
    last = call(shop.server, "XREVRANGE", "orders", "+", "-", "COUNT", 1)
    assert last == [[b"9999999999999-2", fields]]


def test_what_is_wrong_with_an_entry_is_said(shop: Shop) -> None:
    answer = shop.console.post("append?key=orders", name=["a"], value=["\\q"])
    assert answer.status_code == 400
    assert "a backslash stands before" in answer.text
    assert "\\q</textarea>" in answer.text
    answer = shop.console.post("append?key=orders", name=["a"], value=["b"], new_id="1-1")
    assert "equal or smaller" in answer.text


def test_a_trim_says_what_goes(shop: Shop) -> None:
    answer = shop.console.post("trim?key=orders", how="keep", value="100")
    text = html.unescape(answer.text)
    assert "140 entries of 240 will be deleted" in text
    assert "The group billing has pending entries" in text
    assert shop.server.call("XLEN", "orders") == 240
    answer = shop.console.post("trim?key=orders", how="keep", value="100", confirmed="1")
    assert said(answer.text) == "140 entries deleted."
    oldest = ids_of(call(shop.server, "XRANGE", "orders", "-", "+"))
    answer = shop.console.post("trim?key=orders", how="before", value=oldest[95])
    text = html.unescape(answer.text)
    assert "95 entries of 100 will be deleted" in text
    assert "The group shipping has not read 85 of them." in text
    answer = shop.console.post("trim?key=orders", how="before", value=oldest[95], confirmed="1")
    assert ids_of(call(shop.server, "XRANGE", "orders", "-", "+")) == oldest[95:]
    assert "A number, please" in shop.console.post("trim?key=orders", how="keep", value="x").text


def test_entries_are_deleted_when_it_is_confirmed(shop: Shop) -> None:
    ids = ids_of(call(shop.server, "XPENDING", "orders", "billing", "-", "+", 2))
    answer = shop.console.post("delete?key=orders", id=ids)
    assert "2 entries of them are pending in the group billing" in answer.text
    assert shop.server.call("XLEN", "orders") == 240
    answer = shop.console.post("delete?key=orders", id=ids, confirmed="1")
    assert said(answer.text) == "2 entries deleted."
    answer = shop.console.post("delete?key=orders", id=ids, confirmed="1")
    assert "2 were gone before" in said(answer.text)
    assert said(shop.console.post("delete?key=orders").text) == "Nothing is selected."


def test_a_stream_is_deleted_by_its_name(shop: Shop) -> None:
    answer = shop.console.post("drop?key=payments")
    assert "The group ledger goes, too" in answer.text
    answer = shop.console.post("drop?key=payments", confirmed="1", typed="emails")
    assert "Nothing was deleted" in said(answer.text)
    assert shop.server.call("EXISTS", "payments") == 1
    answer = shop.console.post("drop?key=payments", confirmed="1", typed="payments")
    assert said(answer.text) == "The stream payments is deleted."
    assert shop.server.call("EXISTS", "payments") == 0


def test_stuck_entries_come_first(shop: Shop) -> None:
    page = shop.console.get(GROUP)
    seen = tickets(page)
    idle = [int(each.split("/")[1]) for each in seen]
    assert idle == sorted(idle, reverse=True)
    assert idle[0] > 1_300_000
    assert "holds <b>9 entries</b>" in page
    of_one = tickets(shop.console.get(f"{GROUP}&by=consumer&consumer=billing-1"))
    assert of_one
    assert all(each.endswith("/billing-1") for each in of_one)


def test_of_two_who_claim_one_gets_it(shop: Shop) -> None:
    stuck = tickets(shop.console.get(GROUP))[:3]
    place = "claim?key=orders&group=billing"
    answer = shop.console.post(place, id=stuck, consumer="ann")
    assert said(answer.text) == "3 entries claimed for ann."
    answer = shop.console.post(place, id=stuck, consumer="bob")
    assert said(answer.text).startswith("0 entries claimed for bob. 3 not:")
    ids = [each.split("/")[0] for each in stuck]
    rows = call(shop.server, "XPENDING", "orders", "billing", "-", "+", 100, "ann")
    assert ids_of(rows) == sorted(ids)
    counts = {each.split("/")[0]: int(each.split("/")[2]) for each in stuck}
    assert {row[0].decode(): row[3] for row in rows if isinstance(row, list)} == counts
    assert "Say which consumer" in said(shop.console.post(place, id=stuck).text)


def test_entries_are_acknowledged_unless_they_have_changed(shop: Shop) -> None:
    stuck = tickets(shop.console.get(GROUP))[:3]
    first = stuck[0].split("/")[0]
    shop.server.call("XCLAIM", "orders", "billing", "other", 0, first)
    place = "acknowledge?key=orders&group=billing"
    answer = shop.console.post(place, id=stuck)
    assert "3 entries will count as done" in answer.text
    answer = shop.console.post(place, id=stuck, confirmed="1")
    assert said(answer.text) == "2 entries acknowledged. 1 not: no longer as the page showed."
    left = ids_of(call(shop.server, "XPENDING", "orders", "billing", "-", "+", 100))
    assert first in left
    assert len(left) == 11


def test_what_a_server_lacks_is_grey_with_the_reason(shop: Shop) -> None:
    page = html.unescape(shop.console.get(GROUP))
    if shop.ours:
        assert "XPOLICY SET orders GROUP billing delivery-limit 5" in page
        assert "XPOLICY SET orders max-len 1000000" in page
        assert "cannot be used" not in page
        return
    assert "has no XNACK; Redis 8.8 and Headrace have it" in page
    assert "has no XPOLICY; it is Headrace's" in page
    assert re.search(r'<button formaction="release[^>]* disabled', page)
    stuck = tickets(page)[:1]
    answer = shop.console.post("release?key=orders&group=billing", id=stuck)
    assert "unknown command" in said(answer.text)


def test_entries_are_released(our_shop: Shop) -> None:
    shop = our_shop
    stuck = tickets(shop.console.get(GROUP))
    place = "release?key=orders&group=billing"
    answer = shop.console.post(place, id=stuck[:2], mode="SILENT")
    assert said(answer.text) == "2 entries released."
    page = shop.console.get(GROUP)
    assert [each for each in tickets(page) if each.endswith("/")]
    assert "none of this page" in said(shop.console.post(place, id=stuck, mode="FATAL").text)


def test_dead_letters_are_redriven(our_shop: Shop) -> None:
    shop = our_shop
    page = shop.console.get(GROUP)
    assert page.count("<b>rejected</b>") == 4
    ids = ids_of(call(shop.server, "XRANGE", "orders.dead", "-", "+"))
    place = "redrive?key=orders.dead&group=billing"
    answer = shop.console.post(place, one=ids[0], home_key="orders")
    assert said(answer.text) == "1 dead letter put back."
    assert "<h1><bdi>billing</bdi></h1>" in answer.text
    answer = shop.console.post(place, which="selected", id=ids[1:2])
    assert said(answer.text) == "1 dead letter put back."
    assert "letters?key=orders.dead" in str(answer.url)
    answer = shop.console.post(place, which="all")
    assert "All dead letters of the group billing" in html.unescape(answer.text)
    assert shop.server.call("XLEN", "orders.dead") == 2
    answer = shop.console.post(place, which="all", confirmed="1")
    assert said(answer.text) == "2 dead letters put back."
    assert shop.server.call("XLEN", "orders.dead") == 0


def test_dead_letters_of_one_group_are_redriven_alone(our_shop: Shop) -> None:
    shop = our_shop
    for group in ("billing-2", "billing"):
        marks = ("__dlq.errors.topic", "orders", "__dlq.errors.group", group)
        shop.server.call("XADD", "orders.dead", "*", "a", 1, *marks, "__dlq.errors.offset", "1-1")
    answer = shop.console.post("redrive?key=orders.dead&group=billing", which="all", confirmed="1")
    assert "as new entries" in said(answer.text)
    left = call(shop.server, "XRANGE", "orders.dead", "-", "+")
    assert len(left) == 1
    assert b"billing-2" in str(left).encode()


def test_dead_letters_of_any_server_are_listed(shop: Shop) -> None:
    shop.server.call("DEL", "dead")
    marks = ("__dlq.errors.offset", "7-7", "__dlq.errors.message", "no such customer")
    shop.server.call("XADD", "dead", "*", *marks)
    page = shop.console.get("letters?key=dead")
    assert "no such customer" in page
    assert shop.ours is not bool(re.search('name="one"[^>]* disabled', page))
    assert "There are no dead letters" in shop.console.get("letters?key=emails")


def test_regions_and_cluster_are_told(shop: Shop) -> None:
    page = html.unescape(shop.console.get("regions"))
    assert ("aa-region-id is 0" in page) if shop.ours else ("Regions are Headrace's" in page)
    assert f"127.0.0.1:{shop.server.port} (this one)" in shop.console.get("cluster")


def test_a_cluster_and_a_region_are_tables(
    fresh_server: Callable[..., ServerProcess], show: Callable[..., Console]
) -> None:
    server = fresh_server("--cluster-enabled", "yes", "--save", "")
    console = show(f"redis://127.0.0.1:{server.port}")
    assert "(this one)" in console.get("cluster")
    assert "16,384 in 1" in console.get("cluster")
    region = fresh_server("--aa-region-id", "1", "--appendonly", "yes")
    console = show(f"redis://127.0.0.1:{region.port}")
    assert "this region" in console.get("regions")


def test_what_is_not_there_is_said(shop: Shop) -> None:
    assert "There is no such stream." in shop.console.get("stream?key=none")
    assert "has no group none" in shop.console.get("group?key=orders&group=none")
    shop.server.call("SET", "text", "1")
    assert "WRONGTYPE" in shop.console.get("stream?key=text")
    shop.server.call("DEL", "text")
    assert shop.console.visitor.get("nowhere").status_code == 404


def test_values_are_hidden_on_every_page(shop: Shop, show: Callable[..., Console]) -> None:
    shop.server.call("XADD", "orders", "*", "customer", "s3cret-value")
    call(shop.server, "XREADGROUP", "GROUP", "billing", "b", "COUNT", 99, "STREAMS", "orders", ">")
    [newest] = ids_of(call(shop.server, "XREVRANGE", "orders", "+", "-", "COUNT", 1))
    console = show(f"redis://127.0.0.1:{shop.server.port}", "--hide-values")
    entry = f"entry?key=orders&id={newest}&as="
    places = [entry + way for way in ("table", "json", "text", "hex")]
    places += ["stream?key=orders", GROUP, f"append?key=orders&id={newest}", "./"]
    for place in places:
        page = console.get(place)
        assert "s3cret" not in page, place
        assert "values hidden" in page
    assert "(12 bytes, hidden)" in console.get("stream?key=orders")
    assert console.visitor.get(f"value?key=orders&id={newest}&field_at=0").status_code == 403
    # A filter by value would let people guess.
    page = console.get("stream?k=orders&field=customer&value=no-such")
    assert newest in page


def test_read_only_changes_nothing(shop: Shop, show: Callable[..., Console]) -> None:
    console = show(f"redis://127.0.0.1:{shop.server.port}", "--read-only")
    stuck = tickets(console.get(GROUP))
    for place in ("append", "trim", "delete", "drop", "claim", "release", "acknowledge", "redrive"):
        answer = console.post(f"{place}?key=orders&group=billing", id=stuck, confirmed="1")
        assert answer.status_code == 403, place
        assert "--read-only" in answer.text
    assert '<button class="main" disabled' in console.get(GROUP)


HOSTILE = b"<script>alert(1)</script>\"'&{{7*7}}\xff\x00/../?a=b#c"


def test_hostile_names_and_values_are_text(shop: Shop) -> None:
    call_ = shop.server.call
    call_("XADD", HOSTILE, "1-1", HOSTILE, HOSTILE)
    call_("XGROUP", "CREATE", HOSTILE, HOSTILE, 0)
    call_("XREADGROUP", "GROUP", HOSTILE, HOSTILE, "STREAMS", HOSTILE, ">")
    wait_until(lambda: "alert(1)" in shop.console.get("./?part=alert"))
    key = quote_from_bytes(HOSTILE, safe="")
    group = f"group?key={key}&group={key}"
    places = ["./?part=alert", f"stream?key={key}", group, f"tail?key={key}", f"trim?key={key}"]
    places += [f"entry?key={key}&id=1-1&as={way}" for way in ("table", "json", "text", "hex")]
    places += [f"append?key={key}&id=1-1", f"letters?key={key}", "./?part=<script>alert(2)"]
    places += [f"stream?k={quote(key)}&field=<script>alert(3)&value=%22%3E<script>alert(4)"]
    for place in places:
        page = shop.console.get(place)
        assert "<script>alert" not in page, place
        assert "49" not in re.sub(r"\d{3,}", "", page) or "7*7" in page
    stuck = tickets(shop.console.get(group))
    answer = shop.console.post(f"claim?key={key}&group={key}", id=stuck, consumer="<i>x\\xff")
    assert said(answer.text) == "1 entry claimed for <i>x\\xff."
    assert "<i>x" not in answer.text
    call_("DEL", HOSTILE)


def test_what_is_large_is_shown_in_parts(shop: Shop) -> None:
    call_ = shop.server.call
    call_("XADD", "large", "1-1", "f", b"<script>" + b"A" * 10_000_000)
    call_("XADD", "large", "1-2", "f", b"\xc3" * 20_000_000)
    many = [part for n in range(5_000) for part in (f"field-{n}", n)]
    call_("XADD", "large", "1-3", *many)
    for place in ("stream?key=large", "./?part=large", "entry?key=large&id=1-1"):
        page = shop.console.get(place)
        assert len(page) < 100_000, place
        assert "<script>A" not in page
    for way in ("json", "text"):
        assert len(shop.console.get(f"entry?key=large&id=1-2&as={way}")) < 400_000
        assert "That is not all of it" in shop.console.get(f"entry?key=large&id=1-1&as={way}")
    page = shop.console.get("entry?key=large&id=1-1&as=hex&offset=9998336")
    assert "10,000,008" in page
    page = shop.console.get("entry?key=large&id=1-3&field_at=4800")
    assert "field-4999" in page
    assert "field-4799<" not in page
    assert "fields 4,801 to 5,000 of 5,000" in page
    answer = shop.console.visitor.get("value?key=large&id=1-1&field_at=0")
    assert len(answer.content) == 10_000_008
    assert "too large to be changed" in shop.console.get("append?key=large&id=1-1")
    call_("DEL", "large")


def test_nothing_unbounded_is_asked(shop: Shop) -> None:
    """No KEYS, and nothing that brings a whole stream or a whole list."""
    with shop.server.client() as monitor:
        assert monitor.call("MONITOR") == b"+OK\r\n"
        for place in ("./?sort=lag", "stream?key=orders", GROUP, "letters?key=orders.dead"):
            shop.console.get(place)
        shop.console.get("stream?k=orders&field=no-such")
        shop.server.call("ECHO", "the-end")
        seen = list[str]()
        while not seen or "the-end" not in seen[-1]:
            seen.append(monitor.read().decode("utf-8", "replace"))
    commands = [re.findall(r'"((?:[^"\\]|\\.)*)"', line) for line in seen]
    names = {words[0].upper() for words in commands if words}
    assert {"XRANGE", "XREVRANGE", "XPENDING", "XINFO"} <= names
    assert not names & {"KEYS", "XREAD", "XREADGROUP", "EVAL"}
    for words in commands:
        if words and words[0].upper() in ("XRANGE", "XREVRANGE"):
            of_one = len(words) == 4 and words[2] == words[3]
            assert of_one or words[4].upper() == "COUNT", words
        if words and words[0].upper() == "XPENDING":
            assert len(words) > 3, words
