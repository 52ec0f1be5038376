"""The screen "Surprise", used as a person would."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from browsing import EVIL, NAME

pytestmark = pytest.mark.needs("chromium", "playwright", "torch", "fastapi")
TEXT = "the cat sat on the zebra ."


def strength(token):  # the inline style: a token that was redrawn in between has no computed one
    return float(token.evaluate("each => each.style.getPropertyValue('--much')"))


def test_surprising_words_are_stronger(visit):
    from playwright.sync_api import expect

    page = visit()
    page.get_by_role("link", name="Surprise").click()
    page.locator("#text").fill(TEXT)
    expect(page.locator(".token")).to_have_count(8)  # seven words, and the end of the line
    zebra, cat = (page.locator(".token", has_text=word) for word in ("zebra", "cat"))
    assert strength(zebra) > 2 * strength(cat)
    expect(page.locator(".totals")).to_contain_text("bits per byte")


def test_token_shows_its_alternatives(visit):
    from playwright.sync_api import expect

    page = visit(f"#surprise?a=words&text={quote(TEXT)}")
    page.locator(".token", has_text="zebra").click()
    panel = page.get_by_role("complementary", name="The chosen token")
    expect(panel).to_contain_text("What the model expected")
    expect(panel.locator(".bar .word").first).to_have_text("mat")
    expect(panel).to_contain_text("does not know this word")
    assert "at=5" in page.url
    page.reload()
    expect(panel.locator(".bar .word").first).to_have_text("mat")
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()


def test_arrow_keys_walk_through_the_tokens(visit):
    from playwright.sync_api import expect

    page = visit(f"#surprise?a=words&text={quote(TEXT)}")
    expect(page.locator(".token")).to_have_count(8)
    page.get_by_role("listbox", name="The text, token by token").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".token[aria-selected=true]")).to_have_text("cat")
    page.keyboard.press("End")
    expect(page.get_by_role("complementary")).to_contain_text("end of the text")


def test_two_models_and_their_difference(visit):
    from playwright.sync_api import expect

    page = visit(f"#surprise?a=words&text={quote(TEXT)}")
    expect(page.locator(".token")).to_have_count(8)
    page.get_by_label("Model B").select_option(NAME)
    expect(page.get_by_role("radio", name="A − B")).to_have_attribute("aria-checked", "true")
    expect(page.locator(".token")).to_have_count(7)  # word by word
    page.locator(".token", has_text="zebra").click()
    expect(page.get_by_role("complementary")).to_contain_text("times more")
    page.get_by_role("radio", name="B", exact=True).click()
    expect(page.locator(".token")).to_have_count(len(TEXT) + 1)  # character by character
    assert "view=b" in page.url
    page.get_by_role("radio", name="B", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="A", exact=True)).to_have_attribute("aria-checked", "true")
    expect(page.locator(".token")).to_have_count(8)


def test_every_script_is_shown_as_it_is_written(visit):
    from playwright.sync_api import expect

    text = "सभी मनुष्यों को गौरव\nيولد جميع الناس أحرارا\n人人生而自由"
    page = visit(f"#surprise?a={quote(NAME)}&text={quote(text)}")
    box = page.get_by_role("listbox", name="The text, token by token")
    expect(box).to_be_visible()
    shown = box.evaluate("each => each.textContent").replace("⏎", "").removesuffix("∎")
    assert shown == text
    arabic = page.locator(".token", has_text="ج").first.bounding_box()
    first, last = (page.locator(".token", has_text=letter).first.bounding_box() for letter in ("ي", "أ"))
    assert first["x"] > arabic["x"] > last["x"]  # from right to left


def test_text_and_model_that_a_link_names_wrongly(visit):
    from playwright.sync_api import expect

    page = visit(f"#surprise?a=nobody&text={quote(EVIL)}")
    expect(page.get_by_role("alert")).to_contain_text("nobody")
    expect(page.locator(".token").first).to_have_text(EVIL)
    assert page.locator("main script").count() == 0


LINES = f"the cat sat on the mat .\n=1+1\nzebra zebra\n{EVIL}\nयह\n"
FILE = '<img src=x onerror="alert(1)">.txt'


def _choose(page, lines=LINES):
    page.locator("input[type=file]").set_input_files(
        {"name": FILE, "mimeType": "text/plain", "buffer": lines.encode()}
    )


def test_file_becomes_a_table_that_sorts(visit):
    from playwright.sync_api import expect

    page = visit("#surprise?a=words")
    expect(page.get_by_label("Model A")).to_have_value("words")
    _choose(page)
    rows = page.locator("table.lines tbody tr")
    expect(rows).to_have_count(5)
    expect(page.get_by_role("heading", name=FILE)).to_be_visible()
    page.get_by_role("button", name="bits per byte").click()
    expect(page.locator("th[aria-sort=descending]")).to_have_text("bits per byte")
    values = [float(row.locator("td").nth(1).inner_text()) for row in rows.all()]
    assert values == sorted(values, reverse=True)
    page.get_by_role("button", name="bits per byte").click()
    expect(rows.first).to_contain_text("the cat sat")
    assert page.locator("main img, main script").count() == 0


def test_csv_has_no_formulas(visit, tmp_path):
    from playwright.sync_api import expect

    page = visit(f"#surprise?a=words&b={quote(NAME)}")
    expect(page.get_by_label("Model B")).to_have_value(NAME)
    _choose(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download CSV").click()
    waiting.value.save_as(tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_text("utf-8-sig")
    lines = text.split("\n")
    assert lines[0].startswith('line,"bits per byte, words"')
    assert any(line.rstrip("\r").endswith("'=1+1\"") or "'=1+1" in line for line in lines)
    assert not any(cell.lstrip('"').startswith(("=", "+", "@")) for line in lines for cell in line.split(","))
    assert "यह" in text


def test_file_can_be_dropped(visit):
    from playwright.sync_api import expect

    page = visit("#surprise?a=words")
    expect(page.get_by_label("Model A")).to_have_value("words")
    handle = page.evaluate_handle(
        """() => { const data = new DataTransfer();
                   data.items.add(new File(["the cat\\nthe dog\\n"], "two.txt", {type: "text/plain"}));
                   return data; }"""
    )
    page.dispatch_event(".drop", "drop", {"dataTransfer": handle})
    expect(page.locator("table.lines tbody tr")).to_have_count(2)


def test_long_file_is_scored_in_pieces_and_shown_in_part(visit):
    from playwright.sync_api import expect

    page = visit("#surprise?a=words")
    expect(page.get_by_label("Model A")).to_have_value("words")
    _choose(page, "the cat sat\n" * 450)
    expect(page.get_by_role("button", name="Show more of 450 lines")).to_be_visible()
    expect(page.locator("table.lines tbody tr")).to_have_count(100)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator("table.lines tbody tr")).to_have_count(450)


def test_empty_file_says_so(visit):
    from playwright.sync_api import expect

    page = visit("#surprise?a=words")
    expect(page.get_by_label("Model A")).to_have_value("words")
    _choose(page, "")
    expect(page.get_by_text("The file has no lines.")).to_be_visible()
