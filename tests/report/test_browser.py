"""Reports as a reader meets them: in a browser, without a network, by keyboard, in the dark."""

import re

import numpy as np
import pytest

import noiseshape as ns


class Seen:
    """A page, and whatever it complained of or asked for."""

    def __init__(self, browser, path, **context):
        self.context = browser.new_context(offline=True, **context)
        self.page = self.context.new_page()
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture(scope="session")
def files(plan, release, cells, book, matrix, marginals, union, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    replaced = ns.People(neighbours="replace")
    swapped = ns.plan(ns.Queries(3, replaced).ask("x", np.eye(3), stderr=4), shape="identity")
    made = {
        "release": release.report(ledger=book, title="A <b>title</b> & more"),
        "plan": plan.report(ledger=book),
        "cells": cells.within(ns.Budget(mu=0.5)).report(),
        "matrix": matrix.report(),
        "marginals": marginals.report(),
        "union": union.report(),
        "other": swapped.release([1, 2, 3], unrecorded=True).report(),
    }
    for name, report in made.items():
        report.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


NAMES = ["release", "plan", "cells", "matrix", "marginals", "union", "other"]


@pytest.mark.parametrize("name", NAMES)
def test_it_opens_without_a_network_and_asks_for_nothing(browser, files, name):
    with Seen(browser, files[name]) as seen:
        assert seen.said == []
        assert seen.asked == [files[name].as_uri()]
        assert seen.page.locator("script").count() == 0


def test_the_check_above_can_fail(browser, files, tmp_path):
    """A picture from elsewhere and a script are planted: the page's own policy stops both."""
    planted = '<img src="https://example.org/x.png"><script>document.title = "run"</script></main>'
    (tmp_path / "bad.html").write_text(files["cells"].read_text().replace("</main>", planted))
    with Seen(browser, tmp_path / "bad.html") as seen:
        assert len(seen.said) >= 2
        assert seen.page.title() != "run"


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_has_words_and_a_table(browser, files, name):
    with Seen(browser, files[name]) as seen:
        figures = seen.page.locator("figure")
        assert figures.count() >= (9 if name == "release" else 2)
        for i in range(figures.count()):
            figure = figures.nth(i)
            assert len(figure.locator("svg[role=img]").get_attribute("aria-label")) > 20
            assert figure.locator("details table tbody tr").count() >= 1
            assert figure.locator("figcaption").inner_text().strip()
        named = "all => all.map(s => s.getAttribute('aria-label') || s.textContent)"
        names = seen.page.locator("summary").evaluate_all(named)
        assert len(set(names)) == len(names)  # no two drawers sound alike


@pytest.mark.parametrize("name", NAMES)
def test_the_keyboard_reaches_everything(browser, files, name):
    with Seen(browser, files[name]) as seen:
        page = seen.page
        wanted = page.locator("a, summary, main > section .wide:visible").count()
        reached = set()
        for _ in range(wanted + 5):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate(
                    "() => [...document.querySelectorAll('a, summary, .wide')]"
                    ".indexOf(document.activeElement)"
                )
            )
        visible = page.evaluate(
            "() => [...document.querySelectorAll('a, summary, .wide')].map((e, i) => "
            "e.checkVisibility() ? i : -1).filter(i => i >= 0)"
        )
        assert set(visible) <= reached
        summary = page.locator("summary").first
        summary.focus()
        page.keyboard.press("Enter")
        assert page.locator("details").first.get_attribute("open") is not None


def test_landmarks_and_headings(browser, files):
    with Seen(browser, files["release"]) as seen:
        for one in ("header", "nav", "main", "footer", "h1"):
            assert seen.page.locator(one).count() == 1
        links = seen.page.locator("nav a").evaluate_all("all => all.map(a => a.hash.slice(1))")
        assert links == seen.page.locator("section").evaluate_all("all => all.map(s => s.id)")
        assert seen.page.locator("html").get_attribute("lang") == "en"
        # Names from outside are text, never markup.
        assert seen.page.locator("h1").inner_text() == "A <b>title</b> & more"


_SHINES = """() => {
  const parts = c => c.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const shine = c => parts(c).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 :
    ((v + .055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
  const page = shine(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll('p, h1, a, th, td, svg text')]
    .filter(e => e.checkVisibility()).map(e => {
    const own = getComputedStyle(e), ink = shine(e.closest('svg') ? own.fill : own.color);
    return (Math.max(ink, page) + .05) / (Math.min(ink, page) + .05)})}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_in_light_and_dark(browser, files, scheme):
    """WCAG's 4.5 to 1, for everything that is written."""
    with Seen(browser, files["release"], color_scheme=scheme) as seen:
        back = seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(255, 255, 255)") == (scheme == "light")
        assert min(seen.page.evaluate(_SHINES)) >= 4.5


def test_a_narrow_screen_scrolls_pictures_and_not_the_page(browser, files):
    with Seen(browser, files["release"], viewport={"width": 360, "height": 740}) as seen:
        assert seen.page.evaluate("() => document.documentElement.scrollWidth") <= 360
        assert seen.page.locator("figure svg").first.bounding_box()["width"] > 360


def test_in_print_it_is_light_and_without_drawers(browser, files):
    with Seen(browser, files["release"], color_scheme="dark") as seen:
        seen.page.emulate_media(media="print")
        ink = seen.page.evaluate("() => getComputedStyle(document.body).color")
        assert max(map(int, re.findall(r"\d+", ink))) < 60
        assert not seen.page.locator("nav").is_visible()
        assert not seen.page.locator("summary").first.is_visible()
        assert seen.page.locator("figure svg").first.is_visible()
        assert len(seen.page.pdf(format="A4")) > 20_000


def test_texts_of_pictures_stay_inside(browser, files):
    outside = """() => [...document.querySelectorAll('figure svg text')].filter(t => {
      const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();
      return a.left < b.left - 1 || a.right > b.right + 1 || a.bottom > b.bottom + 1;
    }).map(t => t.textContent)"""
    for path in files.values():
        with Seen(browser, path, viewport={"width": 1000, "height": 800}) as seen:
            assert seen.page.evaluate(outside) == []
