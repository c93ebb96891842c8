"""The console in a real browser, Debian's Chromium: what people see and do, by keyboard, too.

``HEADRACE_PICTURES`` names a folder for the pictures that docs/console.md shows.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.consoles import Console, Shop, furnish
from support.process import ServerProcess, free_port
from support.waiting import wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="only with the extra `browser`")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.once,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here (apt install chromium)"),
]
Page = Any  # of playwright, which need not be there
PICTURES = os.environ.get("HEADRACE_PICTURES", "")
GROUP = "group?key=orders&group=billing"
PLACES = {
    "streams": "./",
    "stream": "stream?key=orders",
    "entry": "entry?key=orders&id=$ID",
    "tail": "tail?key=orders",
    "append": "append?key=orders&id=$ID",
    "trim": "trim?key=orders",
    "letters": "letters?key=orders.dead",
    "group": GROUP,
    "regions": "regions",
    "cluster": "cluster",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api.expect.set_options(timeout=60_000)
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def look(browser: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """Opens pages; what they log, and what asks another host, fails the test."""
    trouble: list[str] = []
    contexts: list[Any] = []

    def open_at(console: Console, place: str, **how: Any) -> Page:
        how.setdefault("viewport", {"width": 1280, "height": 800})
        context = browser.new_context(timezone_id="UTC", **how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: trouble.append(f"alert: {dialog.message}"))

        def note(message: Any) -> None:
            is_told = message.text.startswith(("Failed to load resource", "Response Status"))
            if message.type == "error" and not is_told:
                trouble.append(message.text)

        def asked(sent: Any) -> None:
            if not sent.url.startswith(console.home):
                trouble.append(f"asks {sent.url}")

        page.on("console", note)
        page.on("request", asked)
        page.goto(console.home + place)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert trouble == []


def picture(page: Page, name: str) -> None:
    if PICTURES:
        path = Path(PICTURES, f"console-{name}.png")
        page.screenshot(path=path)
        from PIL import Image

        Image.open(path).quantize(200).save(path, optimize=True)


@contextmanager
def load(shop: Shop) -> Iterator[None]:
    """Thousands of new orders a second, and a consumer that reads them."""
    stop = threading.Event()

    def work() -> None:
        add = ("XADD", "orders", "*", "n", 1, "by", "load")
        read = ("XREADGROUP", "GROUP", "shipping", "s", "COUNT", 40, "STREAMS", "orders", ">")
        with shop.server.client() as client:
            while not stop.is_set():
                client.pipeline(*[add] * 50, read)
                stop.wait(0.01)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stop.set()
        worker.join()


def newest(shop: Shop) -> tuple[str, list[bytes]]:
    """The ID of the newest order, and its fields and values."""
    reply: Any = shop.server.call("XREVRANGE", "orders", "+", "-", "COUNT", 1)
    return reply[0][0].decode(), reply[0][1]


# What a page looks like: nothing sticks out, and all text can be read.
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node);
    const [one, other] = [light(parse(style.color)), light(behind(node))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)}: ${walker.currentNode.textContent.trim()}`);
  }
  return poor;
}"""
UNNAMED = """() => {
  const named = (node) => node.textContent.trim() || node.getAttribute("aria-label") || node.title
    || [...(node.labels || [])].some((label) => label.textContent.trim());
  return [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a")]
    .filter((node) => node.checkVisibility() && !named(node)).map((node) => node.outerHTML);
}"""
FOCUSED = """() => {
  const node = document.activeElement;
  return node.innerText || node.value || node.getAttribute("aria-label");
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280, 2400])
def test_pages_fit_and_can_be_read(
    our_shop: Shop, look: Callable[..., Page], scheme: str, width: int
) -> None:
    console = our_shop.console
    wait_until(lambda: "stuck" in console.get("./?part=orders"))
    page = look(console, "./", color_scheme=scheme, viewport={"width": width, "height": 800})
    for name, place in PLACES.items():
        page.goto(console.home + place.replace("$ID", newest(our_shop)[0]))
        page.wait_for_load_state("networkidle") if name not in ("tail", "stream") else None
        assert page.evaluate(WIDER) <= 0, (name, width)
        assert page.evaluate(CONTRAST) == [], (name, scheme)
        assert page.evaluate(UNNAMED) == [], name
        assert page.locator("h1").count() == 1, name


def test_every_page_under_load(our_shop: Shop, look: Callable[..., Page]) -> None:
    entry_id = newest(our_shop)[0]
    page = look(our_shop.console, "./")
    with load(our_shop):
        for name, place in PLACES.items():
            page.goto(our_shop.console.home + place.replace("$ID", entry_id))
            assert page.locator("h1").count() == 1, name
            assert page.locator("#trouble").is_hidden(), name
        page.goto(our_shop.console.home + "./?sort=in&down=1")
        sync_api.expect(page.locator(".streams tbody tr").first).to_contain_text("orders")
        page.goto(our_shop.console.home + "group?key=orders&group=shipping")
        sync_api.expect(page.locator(".pending input[name=id]")).to_have_count(100)


def test_what_a_page_looks_like_when_it_is_open(our_shop: Shop, look: Callable[..., Page]) -> None:
    console = our_shop.console
    page = look(console, "./?sort=stuck&down=1", viewport={"width": 1280, "height": 620})
    page.get_by_text("stuck 22 min").first.wait_for()
    picture(page, "streams")
    page.goto(console.home + "stream?key=orders")
    page.locator("details summary").nth(1).click()
    page.get_by_role("link", name="JSON").click()
    page.locator("pre.text").wait_for()
    assert '"sku"' in page.locator("pre.text").inner_text()
    page.locator(".plot canvas").wait_for()
    assert page.evaluate(WIDER) <= 0
    picture(page, "stream")
    for scheme in ("light", "dark"):
        page = look(console, GROUP, color_scheme=scheme, viewport={"width": 1280, "height": 900})
        page.locator("input[name=id]").first.check()
        page.get_by_text("1 selected").wait_for()
        assert page.evaluate(CONTRAST) == []
        picture(page, f"group-{scheme}")


def test_an_operator_finds_claims_and_redrives_by_keyboard(
    our_shop: Shop, look: Callable[..., Page]
) -> None:
    """What is stuck, since when, given to somebody else; then the dead letters go back."""
    console = our_shop.console
    wait_until(lambda: "with something stuck" in console.get("./"))
    page = look(console, "./")
    keys = page.keyboard

    def tab_to(text: str) -> None:
        for _ in range(80):
            keys.press("Tab")
            if page.evaluate(FOCUSED) == text:
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", text
                return
        raise AssertionError(f"Tab does not lead to {text}")

    tab_to("1 with something stuck")
    keys.press("Enter")
    page.wait_for_url("**only=stuck**")
    tab_to("billing")
    keys.press("Enter")
    page.get_by_text("holds 9 entries").wait_for()
    tab_to("on")  # the box that selects all
    keys.press("Space")
    page.get_by_text("13 selected").wait_for()
    tab_to("Claim for")
    keys.press("Tab")
    keys.type("billing-3")
    keys.press("Enter")
    page.get_by_text("13 entries claimed for billing-3.").wait_for()
    tab_to("Redrive all …")
    keys.press("Enter")
    page.get_by_role("heading", name="Redrive all").wait_for()
    picture(page, "confirm")
    keys.press("Escape")
    page.locator("dialog").wait_for(state="hidden")
    assert our_shop.server.call("XLEN", "orders.dead") == 4
    keys.press("Enter")  # the button still has the focus
    page.get_by_role("heading", name="Redrive all").wait_for()
    keys.press("Tab")
    keys.press("Enter")
    page.get_by_text("4 dead letters put back.").wait_for()
    assert our_shop.server.call("XLEN", "orders.dead") == 0


def test_pages_are_refreshed_unless_somebody_works_in_them(
    our_shop: Shop, look: Callable[..., Page]
) -> None:
    page = look(our_shop.console, GROUP)
    our_shop.server.call("XACK", "orders", "billing", *_pending(our_shop)[:2])
    page.get_by_text("holds 7 entries").wait_for()
    page.locator("input[name=id]").first.check()
    page.get_by_text("waits while you work here").wait_for()
    our_shop.server.call("XACK", "orders", "billing", *_pending(our_shop)[-2:])
    with page.expect_response("**/group?**", timeout=60_000):
        page.locator("input[name=id]").first.uncheck()
        page.evaluate("document.activeElement.blur()")
    sync_api.expect(page.locator(".pending input[name=id]")).to_have_count(9)


def _pending(shop: Shop) -> list[bytes]:
    rows = shop.server.call("XPENDING", "orders", "billing", "-", "+", 100)
    assert isinstance(rows, list)
    return [row[0] for row in rows]


def test_the_list_is_sifted_while_one_types(our_shop: Shop, look: Callable[..., Page]) -> None:
    page = look(our_shop.console, "./")
    page.get_by_placeholder("Name has").press_sequentially("audit:2026-03")
    sync_api.expect(page.locator(".streams tbody tr")).to_have_count(1)
    assert "part=audit" in page.url


def test_an_entry_is_changed_and_appended(our_shop: Shop, look: Callable[..., Page]) -> None:
    page = look(our_shop.console, "stream?key=orders")
    page.locator("details summary").first.click()
    page.get_by_role("link", name="Append again").click()
    page.locator("textarea[name=value]").first.fill("changed\nin two lines")
    page.get_by_role("button", name="Add a field").click()
    page.keyboard.type("note")
    page.keyboard.press("Tab")
    page.keyboard.type("by hand")
    page.get_by_role("button", name="Remove this field").nth(1).click()
    page.get_by_role("button", name="Append", exact=True).click()
    page.get_by_text("Appended as").wait_for()
    fields = newest(our_shop)[1]
    assert fields[:2] == [b"order", b"changed\nin two lines"]
    assert fields[-2:] == [b"note", b"by hand"]
    assert b"customer" not in fields


def test_a_tail_is_paused_and_goes_on(our_shop: Shop, look: Callable[..., Page]) -> None:
    page = look(our_shop.console, "tail?key=orders", viewport={"width": 1280, "height": 620})
    page.get_by_text("waiting for the next entry").wait_for()
    call = our_shop.server.call
    with load(our_shop):
        page.get_by_text("a sample of").wait_for()
        page.get_by_text("are not shown").first.wait_for()
        picture(page, "tail")
        assert page.locator("ol.tail > li").count() <= 200
        page.get_by_role("button", name="Pause").click()
    page.get_by_text("paused at").wait_for()
    call("XADD", "orders", "*", "n", "while-it-was-paused")
    page.wait_for_timeout(300)
    assert page.get_by_text("while-it-was-paused").count() == 0
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("while-it-was-paused").wait_for()


def test_hostile_entries_do_nothing_in_a_browser(our_shop: Shop, look: Callable[..., Page]) -> None:
    call = our_shop.server.call
    hostile = b"<img src=x onerror=alert(1)><script>alert(2)</script>"
    call("XADD", hostile, "1-1", hostile, hostile)
    call("XADD", "orders", "*", hostile, hostile, "large", b"<script>" + b"A" * 10_000_000)
    page = look(our_shop.console, "tail?key=orders")
    page.get_by_text("waiting for the next entry").wait_for()
    call("XADD", "orders", "*", hostile, hostile)
    page.get_by_text("alert(2)").first.wait_for()
    page.locator("ol.tail summary").first.click()
    page.locator("ol.tail table.values").wait_for()
    page.goto(our_shop.console.home + "stream?key=orders")
    page.locator("details summary").nth(1).click()
    page.locator("table.values").wait_for()
    page.get_by_role("link", name="Text").click()
    page.locator("pre.text").wait_for()
    assert page.evaluate(WIDER) <= 0
    page.goto(our_shop.console.home + "./?part=img")
    page.get_by_text("alert(2)").first.wait_for()
    assert page.locator("img[src=x]").count() == 0
    call("DEL", hostile)


def test_a_server_that_goes_away_and_comes_back(
    fresh_server: Callable[..., ServerProcess],
    show: Callable[..., Console],
    look: Callable[..., Page],
) -> None:
    server = fresh_server("--appendonly", "yes", "--requirepass", "p", port=free_port())
    with server.client() as client:
        client.call("AUTH", "p")
        furnish(client, ours=True)
    console = show(f"redis://:p@127.0.0.1:{server.port}")
    streams = look(console, "./")
    streams.locator("#s-orders").wait_for()
    group = look(console, GROUP)
    tail = look(console, "tail?key=orders")
    server.kill()
    streams.get_by_text("The server does not answer").wait_for()
    assert streams.locator("#s-orders").count() == 1
    group.locator("#trouble").get_by_text("tries again").wait_for()
    tail.locator("#trouble").get_by_text("The server").wait_for()
    gone = look(console, "stream?key=orders")
    gone.get_by_text("This page tries again by itself").wait_for()
    server.start()
    gone.get_by_text("240").first.wait_for()
    streams.get_by_text("The server does not answer").wait_for(state="detached")
    group.locator("#trouble").wait_for(state="hidden")
    with server.client() as client:
        client.call("AUTH", "p")
        client.call("XADD", "orders", "*", "n", "after-all")
    tail.get_by_text("after-all").wait_for()


def test_a_password_is_given_in_a_browser(
    our_shop: Shop, show: Callable[..., Console], look: Callable[..., Page]
) -> None:
    console = show(f"redis://127.0.0.1:{our_shop.server.port}", password="secret")
    page = look(console, "stream?key=orders")
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    page.get_by_text("That is not the password.").wait_for()
    page.keyboard.type("secret")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="orders").wait_for()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()


def test_regions_are_a_table(
    fresh_server: Callable[..., ServerProcess],
    show: Callable[..., Console],
    look: Callable[..., Page],
) -> None:
    ports = free_port(), free_port()
    first, _ = (
        fresh_server(
            *("--aa-region-id", f"{1 + at}", "--aa-port", f"{ports[at]}", "--appendonly", "yes"),
            *("--aa-peers", f"{2 - at} 127.0.0.1 {ports[1 - at]}"),
        )
        for at in (0, 1)
    )
    console = show(f"redis://127.0.0.1:{first.port}")
    page = look(console, "regions", viewport={"width": 1280, "height": 300})
    page.locator("td", has_text="up").wait_for()
    assert page.evaluate(CONTRAST) == []
    picture(page, "regions")
