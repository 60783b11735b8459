"""The page in a real browser that reaches this machine alone: pick, ask, move, upload, download."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from tests.browser import CHROMIUM, Browser
from tests.small_models import QUIET
from tests.small_runs import ROOT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium (apt-get install chromium)"),
    pytest.mark.skipif(
        importlib.util.find_spec("gradio") is None, reason="no gradio (pip install -e '.[demo]')"
    ),
]

STARTUP = 180  # seconds at most: Gradio and torch are imported
SHOWN = "document.querySelector('#attention .attention').innerText"
ANSWERS = "document.querySelector('#answers').innerText"


@pytest.fixture(scope="module")
def address(peaky_run, discrete_run, tmp_path_factory):
    """The command itself, in a folder of its own; the address that it prints."""
    temporary = tmp_path_factory.mktemp("server")
    words = [f"checkpoints=[{peaky_run},{discrete_run}]", "port=0", "num_examples=3", *QUIET]
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.demo", *words, "attention.lam=0.1"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed = process.stdout.readline()
    assert printed.startswith("open http://127.0.0.1:"), printed + process.stdout.read()
    yield printed.split()[1]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=STARTUP)
    assert rest.endswith("interrupted\n")
    errors = re.findall(r"^[\w.]*(?:Error|Exception)\b", rest, flags=re.MULTILINE)
    assert set(errors) <= {"gradio.exceptions.InvalidPathError"}  # what a forger gets, below
    assert process.returncode == 130
    assert list(temporary.iterdir()) == []  # what was uploaded is gone


@pytest.fixture(scope="module")
def server(address):
    """The address without its token."""
    return address.partition("/?token=")[0]


@pytest.fixture(scope="module")
def cookie(address):
    """What a browser keeps of the token."""
    with urllib.request.urlopen(address) as answer:
        return answer.headers["Set-Cookie"].partition(";")[0]


@pytest.fixture(scope="module")
def browser(address, tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def page(browser, address):
    """The page, freshly opened."""
    browser.call("Page.navigate", url=address)
    browser.wait_for("document.querySelectorAll('#examples .gallery-item img').length === 3")
    return browser


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """A user's own drawing: portrait, with a transparent background."""
    path = tmp_path_factory.mktemp("drawings") / "mine.png"
    picture = Image.new("RGBA", (200, 300))
    ImageDraw.Draw(picture).ellipse([20, 20, 120, 120], fill=(220, 30, 30, 255))
    picture.save(path)
    return path


def pick_example(page, number):
    """Click on an example and wait for what was seen; its question."""
    item = f"#examples .gallery-item:nth-child({number})"
    question = page.evaluate(f"document.querySelector('{item} img').alt")
    page.click(f"{item} button")
    page.wait_for(f"{SHOWN}.includes({json.dumps(question)})")
    return question


def drag_lambda(page, value):
    """Take the slider's knob and pull it."""
    page.centre("#lam input[type=range]")  # scrolled to where the mouse can reach it
    x, y, width, height, now = page.evaluate(
        "(() => { const e = document.querySelector('#lam input[type=range]');"
        "const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height, +e.value]; })()"
    )
    page.mouse("mousePressed", x + width * now / 10, y + height / 2)
    for part in (0.25, 0.5, 0.75, 1):
        there = now + part * (value - now)
        page.mouse("mouseMoved", x + width * there / 10, y + height / 2)
    page.mouse("mouseReleased", x + width * value / 10, y + height / 2)


def test_a_link_with_the_token_leads_to_the_page_and_hides_it(browser, address, server):
    link = f"<a href='{address}'>a link of another site</a>"
    browser.call("Page.navigate", url=f"data:text/html,{link}")
    browser.click("a")
    browser.wait_for_element("#examples .gallery-item:nth-child(3) img")
    pick_example(browser, 3)
    assert browser.evaluate("[location.href, document.cookie]") == [f"{server}/", ""]
    answers = [each["response"] for each in browser.reported("Network.responseReceived")]
    rejected = {each["url"] for each in answers if each["status"] == 401}
    assert rejected <= {f"{server}/manifest.json"}  # browsers ask for it without cookies


def test_without_the_token_a_browser_shows_one_sentence(server, tmp_path):
    stranger = Browser(tmp_path)
    try:
        stranger.call("Page.navigate", url=server)
        shown = stranger.wait_for("document.body.innerText")
        assert shown == "Open the address that the server printed, with its token.\n"
        asked = "fetch('/gradio_api/upload', {method: 'POST', body: new FormData()})"
        assert stranger.evaluate(f"{asked}.then(answer => answer.status)") == 401
    finally:
        stranger.close()


def test_an_example_is_asked_and_k_and_lambda_change_the_density_at_once(page, tmp_path):
    pick_example(page, 2)
    assert "K* = " in page.evaluate(SHOWN)
    assert page.evaluate("document.querySelectorAll('#answers .bar').length") == 5
    assert page.evaluate("document.querySelector('#question textarea').value") != ""
    passes = len([url for url in page.requested() if "queue/join" in url])
    for k in (1, 3):
        page.click(f"#components label:nth-of-type({k + 1})")
        page.wait_for(f"{SHOWN}.includes('K = {k}')")
        shapes = "document.querySelectorAll('#attention svg circle').length"
        assert page.evaluate(shapes) == k
    page.click("#components label:nth-of-type(1)")
    page.wait_for(f"{SHOWN}.includes('K* = ')")
    drag_lambda(page, 9)
    page.wait_for(f"{SHOWN}.includes('K* = 1')")
    page.wait_for(f"/log-likelihood \\+ (8.9|9|9.1)\\d* · k/.test({ANSWERS})")
    # the network runs in the queue, which nothing has joined meanwhile
    assert len([url for url in page.requested() if "queue/join" in url]) == passes
    page.photograph(tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as seen:
        assert len(seen.convert("RGB").resize((64, 64)).getcolors(4096)) > 100  # not an empty page


def test_a_drawing_is_uploaded_asked_about_and_the_figure_saved(page, drawing, tmp_path):
    page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.upload("#picture input[type=file]", drawing)
    page.wait_for("document.querySelector('#picture img')?.naturalHeight === 300")
    hostile = "<img src=x onerror='window.hacked=1'> ${window.hacked=2} circle?"
    page.type_into("#question textarea", hostile)
    page.click("#ask")
    page.wait_for(f"{SHOWN}.includes({json.dumps(hostile)})")
    assert page.evaluate("typeof window.hacked") == "undefined"
    box = "document.querySelector('#attention .frame').getBoundingClientRect()"
    assert page.evaluate(f"(r => r.height / r.width)({box})") == pytest.approx(1.5, rel=0.01)
    page.click("#download")
    deadline = time.monotonic() + 60
    while not (tmp_path / "attention.png").is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    with Image.open(tmp_path / "attention.png") as figure:
        assert figure.size[0] > 500


def test_another_model_answers_the_same_question(page, discrete_run):
    question = pick_example(page, 1)
    page.click("#run input")
    page.wait_for("document.querySelectorAll('[role=option]').length === 2")
    page.evaluate(
        "[...document.querySelectorAll('[role=option]')].find("
        f"each => each.innerText.includes('{discrete_run.name}'))"
        ".dispatchEvent(new MouseEvent('mousedown', {bubbles: true}))"
    )
    page.wait_for(f"{SHOWN}.includes('discrete')")
    assert question in page.evaluate(SHOWN)
    assert page.evaluate("document.querySelector('#lam')?.offsetParent ?? null") is None


def test_a_bad_file_and_an_empty_question_get_a_sentence_on_the_page(page, drawing, tmp_path):
    message = "document.querySelector('#message .message')?.innerText"
    page.click("#ask")
    assert "There is no image yet" in page.wait_for(message)
    for name, content, problem in (
        ("text.png", b"hello", "text.png is not an image that can be read"),
        ("cut.png", drawing.read_bytes()[:120], "cut.png is damaged"),
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "drawing.svg is not a"),
    ):
        (tmp_path / name).write_bytes(content)
        page.upload("#picture input[type=file]", tmp_path / name)
        page.wait_for(f"{message}?.startsWith({json.dumps(problem)})")
    page.upload("#picture input[type=file]", drawing)
    page.wait_for(f"({message} ?? '') === ''")
    page.wait_for_element("#picture img")
    page.click("#ask")
    page.wait_for(f"{message}?.startsWith('There is no question yet')")
    assert "Traceback" not in page.text()


def test_a_file_that_is_too_large_is_rejected(page, tmp_path):
    (tmp_path / "large.png").write_bytes(bytes(21 << 20))
    page.upload("#picture input[type=file]", tmp_path / "large.png")
    page.wait_for("document.body.innerText.includes('exceed the maximum allowed size')")


def test_the_page_needs_no_other_machine(page, server):
    pick_example(page, 1)
    own = (server, "data:", "blob:", "about:", "chrome")
    assert [url for url in page.requested() if not url.startswith(own)] == []
    assert len([url for url in page.requested() if url.startswith(server)]) > 20
    assert [text for text in page.console_errors() if "Content Security Policy" in text] == []
    refused = page.evaluate("fetch('https://example.com/').then(() => 'went out', () => 'refused')")
    assert refused == "refused"
    assert any("Content Security Policy" in text for text in page.console_errors())


def request(address, cookie, body=None, host=None):
    """The status and the text that the server answers."""
    headers = {"Content-Type": "application/json", "Cookie": cookie}
    headers |= {"Host": host} if host else {}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data, headers)) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")


def test_no_link_leads_elsewhere_and_nothing_is_offered_to_programs(server, cookie):
    status, text = request(server, cookie)
    assert status == 200
    assert re.findall(r"<(?:script|link|iframe|img)\b[^>]*(?:https?:)?//[^>]*>", text) == []
    config = json.loads(request(f"{server}/config", cookie)[1])
    assert config["analytics_enabled"] is False
    assert config["stylesheets"] == []
    offered = json.loads(request(f"{server}/gradio_api/info", cookie)[1])
    assert offered == {"named_endpoints": {}, "unnamed_endpoints": {}}
    for path in ("docs", "redoc", "openapi.json"):
        assert request(f"{server}/{path}", cookie)[0] == 404
    assert request(server, cookie, host="evil.example")[0] == 400


def test_no_file_of_the_server_can_be_named(server, cookie):
    secret = Path(ROOT / "docs" / "shapes.png")
    for path in (secret, Path("/etc/passwd"), Path("README.md")):
        assert request(f"{server}/gradio_api/file={path}", cookie)[0] == 403
    config = json.loads(request(f"{server}/config", cookie)[1])
    (check,) = [each for each in config["dependencies"] if each["api_name"] == "do_check"]
    forged = {"path": str(secret), "meta": {"_type": "gradio.FileData"}}
    body = {"fn_index": check["id"], "data": [forged], "session_hash": "forger"}
    status, text = request(f"{server}/gradio_api/run/predict", cookie, body)
    assert (status, text) == (500, '{"error":null}')
