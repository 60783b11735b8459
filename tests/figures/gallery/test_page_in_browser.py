"""The gallery page in a real browser: filters, order, the enlarged view, the keyboard."""

import pytest

from figures.gallery.page import Page, embed_photo, write_page
from tests.browser import CHROMIUM, Browser
from tests.figures.drawing.sample_panels import make_photo
from tests.figures.gallery.test_page import HOSTILE, make_item

# What a reader does, and what the page shows then.
SCRIPT = """(() => {
const shows = {};
const ids = () => [...document.querySelectorAll("main article:not([hidden])")].map((a) => a.id);
function change(name, value) {
  form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
}
shows.all = ids();
change("type", "number"); shows.number = ids(); change("type", "");
change("least", "0.5"); shows.least = ids(); change("most", "0.5"); shows.exact = ids();
change("least", ""); change("most", "");
change("sort", "divergence"); change("order", "down"); shows.down = ids();
change("words", "RING"); shows.words = ids();
shows.count = document.getElementById("count").textContent;
change("words", "");
const press = (key) => dialog.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const heading = () => enlarged.querySelector("h2").textContent;
document.querySelector("main .frame").click();
shows.open = [dialog.open, heading()];
press("ArrowRight"); shows.next = heading();
press("ArrowRight"); press("ArrowRight"); shows.last = heading();
press("ArrowLeft"); shows.back = heading();
dialog.close();
shows.injected = typeof window.hacked;
return shows;
})()"""
FOCUSED = 'document.activeElement.closest("article")?.id === "q3"'  # after the event of closing


def make_page():
    items = [
        make_item(1, "Is there a ring?", type="yes/no", divergence=0.25),
        make_item(2, "How many rings?", type="number", divergence=0.75),
        make_item(3, HOSTILE, type="yes/no", divergence=0.5),
    ]
    photos = {7: embed_photo(make_photo(), 64)}
    labels = {"type": "answer type"}, {"divergence": "divergence"}
    return write_page(Page("t", "s", items, photos, *labels))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_reader_can_filter_sort_enlarge_and_page_through(tmp_path):
    (tmp_path / "page.html").write_text(make_page(), encoding="utf-8")
    browser = Browser(tmp_path)
    browser.call("Page.navigate", url=(tmp_path / "page.html").as_uri())
    browser.wait_for("document.getElementById('count').textContent !== ''")
    shows = browser.evaluate(SCRIPT)
    browser.wait_for(FOCUSED)
    errors = browser.console_errors()
    browser.close()
    assert errors == []
    assert shows == {
        "all": ["q1", "q2", "q3"],
        "number": ["q2"],
        "least": ["q2", "q3"],
        "exact": ["q3"],
        "down": ["q2", "q3", "q1"],
        "words": ["q2", "q1"],
        "count": "2 of 3 questions",
        "open": [True, "How many rings?"],
        "next": HOSTILE,
        "last": "Is there a ring?",
        "back": HOSTILE,
        "injected": "undefined",
    }
