"""Who may ask: every route of the server rejects whoever shows neither the token nor the cookie."""

import re
from pathlib import Path

import pytest

from scripts.demo import __main__ as demo
from scripts.demo.model_list import ModelList
from scripts.demo.port import open_port
from tests.small_models import compose, read_error
from tests.small_runs import ALONE

TOKEN = "a-token-of-a-test"
REJECTION = "Open the address that the server printed, with its token.\n"
HOST = "127.0.0.1:7860"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
STRANGERS = {  # what follows the address, and the cookie
    "nothing": ("", ""),
    "empty": ("?token=", "demo-7860="),
    "wrong": (f"?token={TOKEN}x", f"demo-7860={TOKEN[:-1]}"),
    "not ASCII": ("?token=%FF%C3%A9", b"demo-7860=\xff\xc3\xa9"),
    "misnamed": (f"?Token={TOKEN}", f"demo-7861={TOKEN}; demo={TOKEN}; token={TOKEN}"),
}


@pytest.fixture(scope="module")
def testclient():
    pytest.importorskip("gradio")
    return pytest.importorskip("starlette.testclient")


def make_app(token):
    """The page of a model that is never loaded."""
    from scripts.demo.page import Page
    from scripts.demo.server import make_app

    return make_app(Page(ModelList({"a-model": Path()}, ALONE.device, changed={}), []), 20, token)


@pytest.fixture(scope="module")
def app(testclient):
    return make_app(TOKEN)


@pytest.fixture
def client(testclient, app):
    """A visitor without a cookie."""
    return testclient.TestClient(app, f"http://{HOST}")


def list_paths(routes, prefix=""):
    """The paths of routes, of mounted applications and of routers that are included."""
    for route in routes:
        within = getattr(route, "original_router", route)
        path = prefix + getattr(route, "path", "")
        if getattr(within, "routes", None):
            yield from list_paths(within.routes, path)
        else:
            yield re.sub(r"\{[^}]*\}", "x", path)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_no_route_answers_a_stranger(client, testclient, app, stranger):
    """Whoever shows nothing tries every method of every path; others try each of both."""
    query, cookie = STRANGERS[stranger]
    paths = sorted({*list_paths(app.routes), "/nowhere", "//"})
    known = {"/", "/config", "/theme.css", "/static/x", "/gradio_api/upload", "/gradio_api/info"}
    assert known | {"/gradio_api/file=x", "/gradio_api/queue/join", "/gradio_api/call/x"} <= {
        *paths
    }
    headers = {"Host": HOST, "Cookie": cookie, "Origin": f"http://{HOST}"}
    assert len(paths) > len(METHODS)
    for number, path in enumerate(paths):
        one = METHODS[number % len(METHODS)]
        for method in METHODS if stranger == "nothing" else (one,):
            answer = client.request(method, path + query, headers=headers, follow_redirects=False)
            assert answer.status_code == 401, (method, path)
            assert "set-cookie" not in answer.headers
            assert answer.text == ("" if method == "HEAD" else REJECTION)
        with (
            pytest.raises(testclient.WebSocketDenialResponse) as caught,
            client.websocket_connect(path + query, headers=headers),
        ):
            pass
        assert caught.value.status_code == 401


def test_the_token_gets_a_cookie_and_the_cookie_the_page(client):
    answer = client.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.text, answer.headers["refresh"]) == (200, "", "0; url=/")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert cookie == f"demo-7860={TOKEN}"
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=strict"]
    assert "a-model" in client.get("/config").text


def test_servers_behind_other_ports_have_other_cookies(testclient, app):
    forwarded = testclient.TestClient(app, "http://localhost:8000")
    cookie = forwarded.get(f"/?token={TOKEN}").headers["set-cookie"]
    assert cookie.startswith(f"demo-8000={TOKEN};")
    assert forwarded.get("/config").status_code == 200


def test_another_host_gets_no_cookie_for_the_token(testclient, app):
    answer = testclient.TestClient(app, "http://evil.example:7860").get(f"/?token={TOKEN}")
    assert (answer.status_code, "set-cookie" in answer.headers) == (400, False)


def test_a_token_is_random_or_ones_own_or_none(capsys):
    assert demo.choose_token(TOKEN) == TOKEN
    assert capsys.readouterr().out == ""
    usual = compose("demo", []).token
    tokens = {demo.choose_token(usual) for _ in range(9)}
    assert len(tokens) == 9
    assert min(map(len, tokens)) > 40
    assert demo.choose_token("none") is None
    assert "every user of this machine can open the page" in capsys.readouterr().out


def test_without_a_token_everyone_may_ask(testclient):
    client = testclient.TestClient(make_app(None), f"http://{HOST}")
    assert "a-model" in client.get("/config").text


@pytest.mark.parametrize("token", ["", "None", "short", "é" * 16, "a,b" * 9, "a b" * 9, "a" * 129])
def test_a_token_that_an_address_cannot_hold_is_rejected(token):
    problem = "error: token must be auto, none, or 16 to 128 of A-Z, a-z, 0-9, - and _\n"
    assert read_error(demo.main, f"token={token}") == problem


def test_a_token_may_be_all_digits_or_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("DEMO_TOKEN", TOKEN)
    for given, token in (("1" * 16, "1" * 16), ("${oc.env:DEMO_TOKEN}", TOKEN)):
        (settings,) = demo.main.compose(demo.main.parse([f"token={given}"]).overrides)
        assert settings.token == token


def test_nobody_else_can_take_the_port_before_the_page_is_served():
    with open_port(0) as taken, pytest.raises(ValueError, match="Address already in use"):
        open_port(taken.getsockname()[1])
