import pytest

from data.io.page_block import read_block, write_block


def test_a_block_is_replaced_and_all_else_stays(tmp_path):
    page = tmp_path / "page.md"
    text = "above\n<!-- make x ARGS=1 -->\nold\n<!-- end of make x -->\nbelow\n"
    page.write_text(text, encoding="utf-8")
    assert read_block(page, "make x") == "old\n"
    write_block(page, "make x", "µ\n| two |\n")
    assert page.read_text(encoding="utf-8") == text.replace("old", "µ\n| two |")


@pytest.mark.parametrize("times", [0, 2])
def test_a_page_without_its_one_block_is_named(tmp_path, times):
    page = tmp_path / "page.md"
    page.write_text("<!-- make x -->\n<!-- end of make x -->\n" * times, encoding="utf-8")
    with pytest.raises(ValueError, match=r"page.md needs one block between <!-- make x -->"):
        write_block(page, "make x", "new\n")
