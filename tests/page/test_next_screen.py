"""The screen "Next word", used as a person would."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from browsing import NAME

pytestmark = pytest.mark.needs("chromium", "playwright", "torch", "fastapi")


def card(page, name):
    return page.get_by_role("article", name=name, exact=True)


def first_word(page, name):
    return card(page, name).locator(".bar .word").first


def text_of(page):
    return page.locator("#text").input_value()


def test_all_models_answer_as_you_type(visit):
    from playwright.sync_api import expect

    page = visit()
    page.locator("#text").press_sequentially("the cat sat on the ")
    for name in ("words", NAME, "attention"):
        expect(card(page, name).locator(".bar")).not_to_have_count(0)
    expect(first_word(page, "words")).to_have_text("mat")
    expect(first_word(page, NAME)).to_have_text("mat")
    share = card(page, "words").locator(".share").first.inner_text()
    assert float(share.removesuffix("\u00a0%")) > 50


def test_word_that_is_clicked_is_taken_and_the_address_keeps_the_text(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+dog+")
    expect(first_word(page, "words")).to_have_text("sat")
    card(page, "words").locator("button.bar").first.click()
    assert text_of(page) == "the dog sat "
    expect(first_word(page, "words")).to_have_text("on")
    assert "text=the+dog+sat" in page.url
    page.reload()
    expect(first_word(page, "words")).to_have_text("on")
    assert text_of(page) == "the dog sat "


def test_keys_take_words_of_the_marked_model(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+")
    words = card(page, "words").locator(".bar .word")
    expect(words.first).to_be_visible()
    page.locator("#text").focus()
    first, second = words.nth(0).inner_text(), words.nth(1).inner_text()
    page.keyboard.press("ArrowRight")
    assert text_of(page) == f"the {first} "
    page.locator("#text").fill("the ")
    expect(words.nth(1)).to_have_text(second)
    page.wait_for_function("document.querySelector('.bars').textContent.length > 0")
    page.wait_for_timeout(200)
    page.keyboard.press("Alt+2")
    assert text_of(page) == f"the {second} "


def test_word_that_is_begun_is_completed(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+ca")
    expect(first_word(page, "words")).to_have_text("cat")
    card(page, "words").locator("button.bar").first.click()
    assert text_of(page) == "the cat "


def test_counts_say_why(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+cat+sat+on+the+")
    card(page, "words").get_by_role("button", name="Why mat?").click()
    panel = page.get_by_role("region", name="Why mat")
    expect(panel).to_contain_text("Counts")
    expect(panel).to_contain_text("on the")
    assert "why=" in page.url
    panel.get_by_role("button", name="Close").click()
    expect(panel).to_be_hidden()


def test_attention_and_left_out_words_say_why(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+cat+sat+on+the+")
    card(page, "attention").get_by_role("button", name=re.compile("^Why ")).first.click()
    panel = page.get_by_role("region", name=re.compile("^Why"))
    expect(panel).to_contain_text("What it looks at")
    expect(panel).to_contain_text("Which words mattered")
    panel.get_by_role("combobox").select_option(index=0)
    expect(panel.locator(".token")).to_have_count(6)  # <s> and five words
    panel.locator("canvas").click()


def test_link_shows_the_same_reasons(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+cat+sat+on+the+&why=words%2Cmat")
    expect(page.get_by_role("region", name="Why mat")).to_contain_text("Counts")


def test_models_can_be_hidden(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+")
    expect(card(page, "words").locator(".bar").first).to_be_visible()
    page.get_by_role("button", name="words", exact=True).click()
    expect(card(page, "words")).to_be_hidden()
    expect(card(page, NAME)).to_be_visible()
    page.reload()
    expect(card(page, NAME)).to_be_visible()
    expect(card(page, "words")).to_be_hidden()


def test_answers_to_older_keys_are_dropped(visit):
    """The first answer comes last of all, and is not shown."""
    from playwright.sync_api import expect

    page = visit()
    expect(card(page, "words").locator(".bar").first).to_be_visible()
    asked = []

    def late(route):
        text = json.loads(route.request.post_data)["text"]
        asked.append(text)
        if text == "the":
            page.wait_for_timeout(300)
        route.fallback()

    page.route("**/api/next", late)
    page.locator("#text").fill("the")
    page.wait_for_timeout(60)
    page.locator("#text").fill("the dog sat ")
    expect(first_word(page, "words")).to_have_text("on")
    assert text_of(page) == "the dog sat "
    assert "the" in asked


def test_model_that_fails_says_so_and_the_others_answer(browser, site):
    from browsing import visiting
    from playwright.sync_api import expect

    with visiting(browser, f"{site.address}/") as visit:
        page = visit.page
        expect(card(page, "words").locator(".bar").first).to_be_visible()

        def failing(route):
            if json.loads(route.request.post_data)["model"] != "words":
                return route.fallback()
            return route.fulfill(status=503, json={"error": {"message": "'words': the run is damaged"}})

        page.route("**/api/next", failing)
        page.locator("#text").fill("the dog sat ")
        expect(first_word(page, NAME)).to_have_text("on")
        expect(card(page, "words").locator(".problem")).to_have_text("'words': the run is damaged.")
        page.unroute("**/api/next")
        page.locator("#text").fill("the dog ")
        expect(first_word(page, "words")).to_have_text("sat")
        expect(card(page, "words").locator(".problem")).to_be_empty()
        assert all("503" in error for error in visit.errors)


@pytest.mark.parametrize("text", ["सभी मनुष्यों को ", "يولد جميع الناس "])
def test_other_scripts_are_continued(visit, text):
    from playwright.sync_api import expect

    page = visit(f"#next?text={quote(text)}")
    expected = {"स": "गौरव", "ي": "أحرارا"}[text[0]]
    expect(first_word(page, "words")).to_have_text(expected)
    is_rtl = page.evaluate("getComputedStyle(document.querySelector('#text')).direction")
    assert is_rtl == ("rtl" if text[0] == "ي" else "ltr")
    page.locator("#text").focus()
    page.keyboard.press("ArrowLeft" if text[0] == "ي" else "ArrowRight")
    assert text_of(page) == f"{text}{expected} "


def test_chinese_is_continued_character_by_character(visit):
    from playwright.sync_api import expect

    page = visit(f"#next?text={quote('人人生而')}")
    expect(first_word(page, NAME)).to_have_text("自")
    card(page, NAME).locator("button.bar").first.click()
    assert text_of(page) == "人人生而自"


def test_tokens_and_names_are_only_text(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=say+")
    expect(first_word(page, "words")).to_have_text("<script>alert(1)</script>")
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    card(page, "words").locator("button.bar").first.click()
    card(page, "words").get_by_role("button", name=re.compile("^Why")).first.click()
    assert page.locator("main img, main script").count() == 0


def test_page_without_a_server_says_so_and_recovers(browser, site):
    from browsing import visiting
    from playwright.sync_api import expect

    with visiting(browser, f"{site.address}/#next?text=the+") as visit:
        page = visit.page
        expect(first_word(page, "words")).to_be_visible()
        page.context.set_offline(True)
        page.locator("#text").fill("the dog ")
        expect(page.locator("#gone")).to_contain_text("does not answer")
        assert text_of(page) == "the dog "
        page.context.set_offline(False)
        expect(page.locator("#gone")).to_be_hidden()
        expect(first_word(page, "words")).to_have_text("sat")
        assert all("Failed to load resource" in error for error in visit.errors)
        assert visit.outside == []


def test_key_is_asked_for_kept_in_the_tab_and_sent_as_a_header(browser, folder):
    from browsing import visiting
    from playwright.sync_api import expect
    from served import serving

    key = "a-key-of-sixteen-letters"
    with (
        serving(folder / "words", key=key) as site,
        visiting(browser, f"{site.address}/#next?text=the+dog+") as visit,
    ):
        page = visit.page
        field = page.get_by_label("Key", exact=True)
        field.fill("a-wrong-key-of-letters")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#key-wrong")).to_contain_text("does not know this key")
        field.fill(key)
        page.get_by_role("button", name="Continue").click()
        expect(first_word(page, "words")).to_have_text("sat")
        page.reload()
        expect(first_word(page, "words")).to_have_text("sat")
        assert key not in page.url
        assert page.evaluate("localStorage.length") == 0
        assert all("401" in error for error in visit.errors)
