"""The screen "Runs", used as a person would; and what holds for every screen."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from browsing import NAME

pytestmark = pytest.mark.needs("chromium", "playwright", "torch", "fastapi")


def row(page, name):
    return page.locator("table.runs tbody tr").filter(has=page.get_by_role("button", name=name, exact=True))


def test_all_runs_are_listed_with_their_curves(visit):
    from playwright.sync_api import expect

    page = visit()
    page.get_by_role("link", name="Runs").click()
    for name in ("words", NAME, "attention"):
        expect(row(page, name)).to_contain_text("finished")
    picture = page.get_by_role("img")
    expect(picture).to_have_attribute("aria-label", re.compile("over seconds: attention ends at"))
    page.get_by_role("radio", name="over tokens").click()
    expect(picture).to_have_attribute("aria-label", re.compile("over tokens"))
    page.get_by_label("What is drawn").select_option("loss")
    expect(picture).to_have_attribute("aria-label", re.compile("training loss"))
    assert "x=tokens" in page.url
    page.get_by_role("checkbox", name="Draw attention").uncheck()
    expect(page.locator("figure")).to_contain_text("nothing to draw")
    assert page.locator("main img, main script").count() == 0


def test_run_shows_its_settings_and_writes_a_sample(visit):
    from playwright.sync_api import expect

    page = visit("#runs")
    row(page, "words").get_by_role("button").click()
    details = page.locator(".details")
    expect(details).to_contain_text("model.order")
    details.get_by_role("button", name="Write a sample").click()
    expect(details.locator("blockquote")).not_to_have_text("…")
    first = details.locator("blockquote").inner_text()
    details.get_by_role("button", name="Another sample").click()
    expect(details.locator("blockquote")).not_to_have_text(first)
    page.reload()
    expect(page.locator(".details")).to_contain_text("model.order")


def test_curve_grows_while_a_run_is_trained(visit, folder):
    from playwright.sync_api import expect

    from nextword.core.events import Done, Measure, Step
    from nextword.store.live import reported
    from nextword.store.writing import new_run

    page = visit("#runs?y=loss")
    expect(row(page, "attention")).to_be_visible()

    def events():
        for step in range(1, 5):
            yield Measure({"step": step, "seconds": 1.0 * step, "tokens": 100 * step, "loss": 6.0 / step})
            wrote = f"<b>line</b> of step {step}"
            yield Measure({"step": step, "seconds": 1.0 * step, "tokens": 100 * step, "sample": wrote})
            yield Step(step, 8, 1.0 * step, 75.0 - step, 100 * step, 6.0 / step, 0.1, 1.0, 50.0, 0)
        yield Done(None)

    target = folder / "live"
    try:
        with new_run(target) as run:
            run.write("config.toml", 'family = "gru"\nname = "gru"\n')
            for event in reported(events(), run):
                if isinstance(event, Step) and event.step in (1, 3):
                    expect(row(page, "live")).to_contain_text(f"1:{15 - event.step} min left")
                    points = page.locator("path.line").filter(has=page.get_by_text("live")).get_attribute("d")
                    assert points.count("L") == event.step - 1
                    if event.step == 1:
                        row(page, "live").get_by_role("button").click()
                    wrote = page.locator(".samples blockquote")
                    expect(wrote).to_have_text(  # the latest first, and as text
                        [f"<b>line</b> of step {step}" for step in range(event.step, 0, -1)]
                    )
        expect(row(page, "live")).to_contain_text("finished")
    finally:
        shutil.rmtree(target, ignore_errors=True)


def test_back_and_forward_walk_through_the_screens(visit):
    from playwright.sync_api import expect

    page = visit("#next?text=the+dog+")
    expect(page.locator(".bar").first).to_be_visible()
    page.get_by_role("link", name="Surprise").click()
    expect(page).to_have_title("Surprise – nextword")
    page.get_by_role("link", name="Next word").click()
    expect(page).to_have_title("Next word – nextword")
    expect(page.locator("#text")).to_have_value("the dog ")  # as it was left
    page.go_back()
    expect(page).to_have_title("Surprise – nextword")
    page.go_back()
    expect(page.locator("#text")).to_have_value("the dog ")


def test_letters_can_be_enlarged_for_a_projector(visit):
    page = visit()
    size = "parseFloat(getComputedStyle(document.documentElement).fontSize)"
    before = page.evaluate(size)
    page.get_by_role("button", name="Aa").click()
    assert page.evaluate(size) > 1.3 * before
    page.reload()
    assert page.evaluate(size) > 1.3 * before


SCREENS = ["#next?text=the+cat+", "#surprise?a=words&text=the+cat+sat&at=1", "#runs?run=attention"]


@pytest.mark.parametrize("hash_", SCREENS)
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_nothing_is_wider_than_the_screen(visit, hash_, size):
    page = visit(hash_, viewport={"width": size[0], "height": size[1]})
    page.wait_for_selector(".bar, .token, table.runs tr")
    page.wait_for_timeout(200)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_focus_can_be_seen_and_reaches_everything_with_the_keyboard(visit):
    page = visit("#next?text=the+cat+")
    page.wait_for_selector(".bar")
    page.wait_for_timeout(300)
    page.locator("#size").focus()
    seen = []
    for key in ["Shift+Tab"] * 5 + ["Tab"] * 30:
        page.keyboard.press(key)
        seen.append(page.evaluate(
            "[document.activeElement.className || document.activeElement.tagName,"
            " getComputedStyle(document.activeElement).outlineStyle]"))  # fmt: skip
    names = {name for name, _ in seen}
    assert {"skip", "A", "text", "bar", "why"} <= names
    assert all(style != "none" for name, style in seen if name != "BODY")


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """axe-core from npm, fetched for these tests only."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which is not there")
    place = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"]
    try:
        found = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        pytest.skip("axe-core cannot be fetched here: npm takes too long")
    if found.returncode:
        pytest.skip("axe-core cannot be fetched here: npm fails")
    return (Path(place) / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


MORE = [
    f"#surprise?a=words&b={quote(NAME)}&text=the+cat+sat",
    "#next?text=the+cat+sat+on+the+&why=words%2Cmat",
]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("hash_", [*SCREENS, *MORE])
def test_axe_finds_nothing_serious(visit, axe, hash_, scheme):
    page = visit(hash_, color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_selector(".reasons .token, .reasons table, .bar, .token, table.runs tr")
    page.wait_for_timeout(1500)
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    told = [(each["id"], [node["html"][:200] for node in each["nodes"]][:5]) for each in serious]
    assert told == [], json.dumps(told, indent=1)
