"""The page in a real browser: filters, order, the enlarged view, the keyboard."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from figures.page import Choice, Measure, Page, embed_photo, write_page
from tests.figures.sample_panels import make_photo
from tests.figures.test_page import HOSTILE, make_card

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)

# what a reader does, and what they then see; the answers end up in the document's title
SCRIPT = """
const seen = {};
const ids = () => [...document.querySelectorAll("main article:not([hidden])")].map((a) => a.id);
function change(name, value) {
  form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
}
seen.all = ids();
change("type", "number"); seen.number = ids(); change("type", "");
change("least", "0.5"); seen.least = ids(); change("most", "0.5"); seen.exact = ids();
change("least", ""); change("most", "");
change("sort", "apart"); change("order", "down"); seen.down = ids();
change("words", "RING"); seen.words = ids();
seen.count = document.getElementById("count").textContent;
change("words", "");
const press = (key) => dialog.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const heading = () => enlarged.querySelector("h2").textContent;
document.querySelector("main .frame").click();
seen.open = [dialog.open, heading()];
press("ArrowRight"); seen.next = heading();
press("ArrowRight"); press("ArrowRight"); seen.last = heading();
press("ArrowLeft"); seen.back = heading();
dialog.close();
setTimeout(() => {
  seen.focus = document.activeElement.closest("article").id;
  seen.injected = typeof window.hacked;
  document.title = "SEEN" + btoa(unescape(encodeURIComponent(JSON.stringify(seen)))) + "SEEN";
}, 50);
"""


def make_page():
    asked = [(1, "Is there a ring?", 0.25), (2, "How many rings?", 0.75), (3, HOSTILE, 0.5)]
    cards = []
    for number, question, apart in asked:
        card = make_card(number, question)
        kind = "number" if number == 2 else "yes/no"
        cards.append(replace(card, values={"type": kind, "apart": apart}))
    choices = [Choice("type", "answer type", ("number", "yes/no"))]
    photos = {7: embed_photo(make_photo(), 64)}
    return write_page(Page("t", "s", cards, photos, choices, [Measure("apart", "apart")]))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_reader_can_filter_sort_enlarge_and_leaf_through(tmp_path):
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    text = make_page().replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    (tmp_path / "page.html").write_text(
        text.replace("</body>", f"<script>{SCRIPT}</script></body>"), encoding="utf-8"
    )
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000"]
    ran = subprocess.run(
        [*command, (tmp_path / "page.html").as_uri()],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    found = re.search(r"SEEN([A-Za-z0-9+/=]+)SEEN</title>", ran.stdout)
    assert found, ran.stderr[-2000:]
    seen = json.loads(base64.b64decode(found[1]))
    assert seen["all"] == ["q1", "q2", "q3"]
    assert seen["number"] == ["q2"]
    assert seen["least"] == ["q2", "q3"]
    assert seen["exact"] == ["q3"]
    assert seen["down"] == ["q2", "q3", "q1"]
    assert seen["words"] == ["q2", "q1"]
    assert seen["count"] == "2 of 3 questions"
    assert seen["open"] == [True, "How many rings?"]
    assert seen["next"] == HOSTILE
    assert seen["last"] == "Is there a ring?"
    assert seen["back"] == HOSTILE
    assert seen["focus"] == "q3"
    assert seen["injected"] == "undefined"
