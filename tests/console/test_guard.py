"""Who may see the console and change something there: names, sessions, passwords, forgeries."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from support import build
from support.certificates import Certificates
from support.consoles import TOKEN, Console, Shop
from support.process import ServerProcess
from support.tools import tool

pytestmark = pytest.mark.once
Show = Callable[..., Console]


@pytest.fixture
def url(server: ServerProcess) -> str:
    server.call("XADD", "orders", "1-1", "a", "b")
    return f"redis://127.0.0.1:{server.port}"


def log_in(visitor: httpx.Client, password: str, place: str = "login") -> httpx.Response:
    return visitor.post(place, data={"password": password}, follow_redirects=False)


def test_headers_forbid_what_is_not_of_the_console(our_shop: Shop) -> None:
    answer = our_shop.console.visitor.get("stream?key=orders")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


def test_no_page_has_scripts_styles_or_other_hosts_in_it() -> None:
    """No inline script, style or handler, and no URL that is not relative."""
    pages = sorted((build.ROOT / "console" / "templates").glob("*.html"))
    assert len(pages) > 10
    for page in pages:
        text = page.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|\|safe", text), page
        assert not re.search(r"<script(?! src=\"static/)", text), page
        assert "http" not in text.replace("http-equiv", ""), page


def test_what_browsers_load_is_small() -> None:
    import gzip

    scripts = list((build.ROOT / "console" / "static").glob("*.js"))
    assert len(scripts) == 3
    assert sum(len(gzip.compress(each.read_bytes())) for each in scripts) < 150_000


def test_another_name_is_not_answered(url: str, show: Show) -> None:
    """Or a page of another site, whose name leads here, could read and change everything."""
    console = show(url, "--allow-host", "streams.example")
    for name, status in (
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("streams.example", 200),
        (f"localhost:{console.port}", 200),
        (f"[::1]:{console.port}", 200),
    ):
        assert console.visitor.get("./", headers={"Host": name}).status_code == status, name


def test_a_form_of_another_page_changes_nothing(our_shop: Shop) -> None:
    console, server = our_shop.console, our_shop.server
    token = console.token()
    form = {"confirmed": "1", "typed": "emails"}
    place = "drop?key=emails"
    for fields, headers in (
        (form, {}),
        ({**form, "token": "x"}, {}),
        ({**form, "token": token + "x"}, {}),
        ({**form, "token": token}, {"Sec-Fetch-Site": "cross-site"}),
        ({**form, "token": token}, {"Sec-Fetch-Site": "same-site"}),
        ({**form, "token": token}, {"Origin": "http://evil.example"}),
        ({**form, "token": token}, {"Origin": "null"}),
    ):
        answer = console.visitor.post(place, data=fields, headers=headers)
        assert answer.status_code == 403, (fields, headers)
    with console.another() as stranger:  # the token of another session
        assert stranger.post(place, data={**form, "token": token}).status_code == 403
        other = TOKEN.search(stranger.get("trim?key=orders").text)
        assert other
        assert other[1] != token
    assert console.visitor.get(place).status_code == 405
    assert server.call("EXISTS", "emails") == 1
    answer = console.visitor.post(place, data={**form, "token": token})
    assert answer.status_code == 303
    assert server.call("EXISTS", "emails") == 0


def test_a_form_has_a_limit(our_shop: Shop) -> None:
    answer = our_shop.console.post("append?key=orders", name=["a"], value=["x" * 9_000_000])
    assert answer.status_code == 413


def test_a_password_is_asked_for(url: str, show: Show) -> None:
    console = show(url, password="so secret")
    visitor = console.visitor
    for place in ("./", "stream?key=orders", "rates?key=orders", "value?key=orders&id=1-1"):
        answer = visitor.get(place)
        assert answer.status_code == 303, place
        assert answer.headers["location"].startswith("login?next=")
    assert visitor.get("events?key=orders").status_code == 401
    assert visitor.post("drop?key=orders", data={"confirmed": "1"}).status_code == 401
    assert visitor.get("static/console.css").status_code == 200
    assert "set-cookie" not in visitor.get("login").headers
    assert log_in(visitor, "wrong").status_code == 401
    answer = log_in(visitor, "so secret", "login?next=stream%3Fkey%3Dorders")
    assert answer.status_code == 303
    assert answer.headers["location"] == "stream?key=orders"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "1-1" in console.get("stream?key=orders")


def test_a_login_leads_to_a_page_of_the_console(url: str, show: Show) -> None:
    console = show(url, password="p")
    for place in ("//evil.example", "https://evil.example", "/\\evil", "javascript:x", "a\r\nb:c"):
        answer = console.visitor.post("login", params={"next": place}, data={"password": "p"})
        assert answer.headers["location"] == "./", place


def test_a_session_is_new_after_the_password_and_ends(url: str, show: Show) -> None:
    console = show(url, password="p")
    name = f"headrace_console_{console.port}"
    visitor = console.visitor
    log_in(visitor, "p")
    first = visitor.cookies[name]
    log_in(visitor, "p")
    assert visitor.cookies[name] != first
    token = console.token()
    kept = visitor.cookies[name]
    assert visitor.post("logout", data={"token": "x"}).status_code == 403
    assert visitor.post("logout", data={"token": token}).status_code == 303
    with console.another() as thief:
        thief.cookies.set(name, kept, domain="127.0.0.1")
        assert thief.get("./").status_code == 303
        thief.cookies.set(name, kept[:-1] + "x", domain="127.0.0.1")
        assert thief.get("./").status_code == 303


def test_passwords_are_not_guessed_quickly(url: str, show: Show) -> None:
    console = show(url, password="p")
    answers = [log_in(console.visitor, f"{n}").status_code for n in range(8)]
    assert answers == [401] * 5 + [429] * 3
    assert log_in(console.visitor, "p").status_code == 429


def test_https_makes_cookies_secure(url: str, show: Show, certificates: Certificates) -> None:
    made = certificates.server
    console = show(
        url,
        *("--tls-cert", str(made.file), "--tls-key", str(made.key)),
        password="p",
        verify=str(certificates.authority.file),
    )
    assert "; Secure" in log_in(console.visitor, "p").headers["set-cookie"]


def test_a_proxy_may_show_it_under_a_prefix(url: str, show: Show) -> None:
    """Whether it takes the prefix away or not; links are relative, so they need not know."""
    console = show(url, "--root-path", "/tools/console/", password="p")
    answer = log_in(console.visitor, "p", "tools/console/login")
    assert answer.headers["location"] == "./"
    assert "Path=/tools/console;" in answer.headers["set-cookie"]
    session = answer.headers["set-cookie"].partition(";")[0]
    for place in ("tools/console/stream?key=orders", "stream?key=orders"):
        page = console.visitor.get(place, headers={"Cookie": session}).text
        assert "1-1" in page
        links = re.findall(r'(?:href|src|action)="([^"]*)"', page)
        assert links
        assert not [each for each in links if each.startswith("/")]
    assert console.visitor.get("tools/console").headers["location"] == "/tools/console/"
    assert console.visitor.get("tools/consoles").status_code == 303


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "headrace", "console", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=build.environment() | variables,
    )


def test_what_is_unsafe_or_wrong_does_not_start(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for words, text in (
        (("--bind", "0.0.0.0"), "needs a password"),
        (("--bind", "::"), "needs a password"),
        (("--password-file", str(empty)), "has no password"),
        (("--password-file", str(tmp_path / "none")), "cannot be read"),
        (("--tls-cert", "x"), "go together"),
        (("--url", "http://here"), "--url"),
    ):
        done = run(*words)
        assert done.returncode == 2, (words, done)
        assert text in done.stderr, words


def test_a_taken_port_is_told(url: str, show: Show) -> None:
    taken = show(url)
    done = run("--port", str(taken.port), "--url", url)
    assert done.returncode == 1
    assert "address already in use" in done.stderr.lower()


def test_the_password_of_the_server_is_not_shown(
    fresh_server: Callable[..., ServerProcess], show: Show
) -> None:
    server = fresh_server("--requirepass", "hush")
    console = show(f"redis://:hush@127.0.0.1:{server.port}")
    assert "hush" not in console.get("./") + console.log()
    console = show(f"redis://:wrong-one@127.0.0.1:{server.port}")
    page = console.get("stream?key=orders", 503)
    assert "does not take the user and password" in page
    assert "wrong-one" not in page


def test_its_arguments_are_explained() -> None:
    done = tool("console", "--help")
    assert done.returncode == 0
    assert b"usage: headrace console" in done.stdout
    assert b"Exit codes: 0 it was interrupted; 1 it could not start" in done.stdout
    assert tool("console", "--nonsense").returncode == 2
