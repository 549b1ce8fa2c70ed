"""The HTML report: text stays text, nothing is fetched or run, numbers are all there, and files change nothing."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from spinformer.explain.explanation import Explanation
from spinformer.explain.record import Pair
from spinformer.explain.render.html import embedded_html, to_html
from spinformer.explain.render.layout import pair_map
from spinformer.explain.render.markup import escape, format_number, format_signed, pair_table, shade_class
from spinformer.explain.render.scale import scales_of
from spinformer.explain.render.style import DARK, DEPTHS, LIGHT, background, text_color
from spinformer.explain.render.svg import arcs_svg
from tests.explain.examples import HOSTILE, NOTE, every, explanation, scored, scores_only

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Elements with their attributes, the text of each <bdi>, and whether everything that opens is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.bdi, self.open, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "bdi":
            self.bdi.append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text.append(data)
        if self.open and self.open[-1] == "bdi":
            self.bdi[-1] += data

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data}")


def head_of(source):
    """The heads of all columns."""
    return re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', source)


def shades_of(source):
    """The shade of every word, none where it has none."""
    return re.findall(r'<span class="w ?(\w*)[^"]*" title', source)


@pytest.fixture(scope="module")
def page():
    return Page(to_html(list(every().values()), title="<script>title</script>"))


class TestSafety:
    def test_hostile_text_comes_back_as_text(self, page):
        assert set(HOSTILE) <= set(page.bdi)
        assert "<script>title</script>" in page.bdi

    def test_nothing_runs(self, page):
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"script", "iframe", "object", "embed", "form", "img", "link", "base", "foreignobject", "use"}
        names = {name for _, attributes in page.elements for name in attributes}
        assert not any(name.startswith("on") or name == "style" for name in names)
        links = {attributes["href"] for _, attributes in page.elements if "href" in attributes}
        assert links == {f"#e{number}" for number in range(1, len(every()) + 1)}

    def test_only_tags_of_ours(self, page):
        """None of the elements that hostile texts spell out."""
        assert [tag for tag, _ in page.elements if tag in ("i", "u")] == []

    def test_policy_forbids_all_but_the_style_sheet(self, page):
        import base64
        import hashlib

        source = to_html(every()["pair"])
        (style,) = re.findall(r"<style>(.*?)</style>", source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        assert f"style-src 'sha256-{digest}'" in policy
        assert "unsafe" not in policy
        assert "url(" not in style
        assert "@import" not in style

    def test_nothing_is_fetched(self):
        addresses = set(re.findall(r"\w+://[^\"'<> ]+", to_html(every()["pair"])))
        assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG

    def test_what_no_document_may_hold(self):
        assert escape("a\x00b\x1b\ud800c\r") == "a\ufffdb\ufffd\ufffdc\ufffd"
        assert escape("\u2069\u2066x\u2069\u2069") == "\ufffd\u2066x\u2069\ufffd"
        to_html(explanation(["a\ud800"])).encode()


class TestContents:
    def test_every_number_of_a_word(self):
        one = every()["pair"]
        rows = re.findall(r"<tr><td>(\d+)</td>(.*?)</tr>", to_html(one))
        assert len(rows) == len(one.words)
        for word, (position, row) in zip(one.words, rows, strict=True):
            cells = re.findall(r"<td>([^<]*)</td>", row)
            assert cells == [
                ("first text", "second text")[word.side],
                format_signed(word.shapley, 4),
                format_number(word.shapley_stderr, 4),
                format_signed(word.banzhaf, 4),
                format_number(word.banzhaf_stderr, 4),
                format_number(word.field),
                format_number(word.attention),
            ], position

    def test_columns_that_say_nothing_are_folded(self):
        """The gate is 0.5 throughout. A score that is the same for every word is still the answer."""
        source = to_html(every()["pair"])
        assert ">gate<" not in source
        folded = "<details><summary>Numbers that are the same for every word</summary><p>gate 0.500</p></details>"
        assert folded in source
        source = to_html(every()["zeros"])
        assert "<p>Banzhaf 0.0000</p></details>" in source
        assert head_of(source)[3:] == ["word", "text", "Shapley", "±"]
        assert "same for every word" not in to_html(scores_only(["not", "bad"]))

    def test_both_parts_of_a_standard_error(self):
        one = every()["noted"]
        source = to_html(one)
        assert head_of(source)[5:9] == ["Shapley", "±", "game ±", "sampling ±"]
        word, pair = one.words[0], max(one.pairs, key=lambda pair: abs(pair.interaction))
        for part in (word.importance_stderr, pair.stderr):
            assert f"game ± {0.6 * part:.4f}, sampling ± {0.8 * part:.4f}" in source
        assert "It has two parts" in source
        assert not re.search("game ±|It has two parts", to_html(every()["pair"]))

    def test_pairs_listed_drawn_and_mapped(self):
        one = every()["pair"]
        source = to_html(one)
        (first, *_) = re.findall(r"<li>(.*?)</li>", source)
        strongest = max(one.pairs, key=lambda pair: abs(pair.interaction))
        assert one.words[strongest.first].text in first
        assert format_signed(strongest.interaction, 4) in first
        assert source.count('<path class="arc ') == 12
        table = source.split('<table class="heat">')[1].split("</table>")[0]
        assert table.count("<td") == 1 + len(one.words) ** 2
        assert table.count('class="top"') == 1

    def test_how_it_was_computed(self):
        source = to_html(explanation(["a"], ["b"], converged=False, passes=512, method="kernel-shap"))
        for part in ("512 passes", "12.5", "NOT reached", "kernel-shap"):
            assert part in source
        source = to_html(every()["zeros"])
        assert "mean field" not in source
        assert "no pair of words interacts" in source.lower()

    def test_a_method_without_shapley_values_names_none(self):
        """Nor errors, pairs or a probability with no word: only its scores."""
        source = to_html(scores_only(["not", "bad"], ["it"]))
        assert "Shapley" not in source
        assert "no words" not in source
        assert "This method scores no pairs of words." in source
        assert "<svg" not in source
        assert 'class="heat"' not in source
        assert head_of(source) == ["class", "probability", "#", "word", "text", "importance"]
        assert re.findall(r"<td>([+−][^<]*)</td>", source) == ["+0.3000", "+0.1000", "+0.3000"]

    def test_banzhaf_values_by_their_name(self):
        words = tuple(replace(word, importance=word.banzhaf) for word in every()["one and one"].words)
        source = to_html(explanation(["cat"], ["dog"], words=words, method="banzhaf", pair_index="BII"))
        assert head_of(source)[4:9] == ["text", "Banzhaf", "±", "Shapley", "±"]
        assert "A Shapley value" not in source
        assert "Every pair by Banzhaf interaction" in source

    def test_the_explained_class_where_it_is_not_the_decision(self):
        source = to_html(every()["another class"])
        assert "(70.0%), explained for <bdi>other &amp; &lt;u&gt;</bdi> (30.0%)</h2>" in source
        assert "words spoke for <bdi>the class other &amp; &lt;u&gt;</bdi>" in source
        assert "words spoke for the decision" in to_html(every()["pair"])

    def test_outline(self, page):
        tags = [tag for tag, _ in page.elements]
        assert tags.count("h1") == 1
        assert tags.count("h2") == tags.count("section") == len(every())
        assert ("html", {"lang": "en"}) in page.elements
        assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.elements
        assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids))

    def test_long_texts_are_cut_and_say_so(self):
        source = to_html(every()["128 words"])
        assert "The 24 most important of 128 words" in source
        assert "12 strongest of 8,128 pairs" in source
        assert len(re.findall(r"<tr><td>\d+</td>", source)) == 128

    def test_the_map_paints_what_the_layout_chose(self):
        one = every()["128 words"]
        chosen = pair_map(one, 10)
        best = {word.text for word in one.top_words(10)}
        assert chosen.words == tuple(word.text for word in one.words if word.text in best)
        in_first = sum(word.text in best and word.side == 0 for word in one.words)
        assert chosen.border == in_first
        assert chosen.scale == scales_of(one).pairs
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in pair_table(chosen).split("<tr")[2:]]
        assert rows == [
            ["" if i == j else format_signed(value) for j, value in enumerate(row)]
            for i, row in enumerate(chosen.values)
        ]
        assert "the line separates the two texts" in pair_table(chosen)

    def test_none_is_an_error(self):
        with pytest.raises(ValueError, match="at least one"):
            to_html([])


class TestWhatComesFirst:
    @pytest.mark.parametrize("draw", [to_html, arcs_svg, lambda one: unescape(embedded_html(one))])
    def test_notes_and_the_base_value_are_everywhere_as_text(self, draw):
        source = draw(every()["noted"])
        assert "<b>9%" not in source
        assert unescape(re.sub(r"<[^>]+>", "", source)).count(NOTE) >= 1
        assert "no words 0.300" in source
        assert "Note:" not in draw(every()["pair"])
        assert "no words" not in draw(explanation(["a"], base_value=None, method="banzhaf"))

    def test_before_the_words(self):
        source = to_html(every()["noted"])
        assert source.index("Note:") < source.index("no words 0.300") < source.index('<p class="words">')
        assert "no words 0.400 + words 0.300 = 0.700" in to_html(scored(0.2, 0.1))


class TestNotebook:
    def test_the_page_is_in_a_frame_where_nothing_runs(self):
        one = every()["hostile"]
        ((tag, attributes),) = Page(embedded_html(one)).elements
        assert tag == "iframe"
        assert attributes["sandbox"] is None
        assert attributes["srcdoc"] == to_html(one)
        assert one._repr_html_() == embedded_html(one)


class TestFiles:
    @pytest.mark.parametrize("name", every())
    def test_saved_loaded_and_shown_is_identical(self, name, tmp_path):
        one = every()[name]
        again = Explanation.load(one.save(tmp_path / "one.json"))
        assert again.to_html() == one.to_html(tmp_path / "sub" / "one.html")
        assert (tmp_path / "sub" / "one.html").read_text(encoding="utf-8") == one.to_html()


class TestNumbersAndColours:
    def test_one_scale_for_all_texts(self):
        """A number has the same colour beside larger ones, on a page of its own, and on one of many."""
        weak, strong = scored(0.01, -0.004), scored(0.2, 0.01, -0.6)
        shades = [shades_of(to_html(page)) for page in (weak, strong, [strong, weak])]
        assert shades == [["p1", ""], ["p5", "p1", "n10"], ["p5", "p1", "n10", "p1", ""]]

    def test_the_legend_shows_the_scale(self):
        source = to_html(scored(0.2))
        assert '<p class="scale">Shapley value: <span class="w n10 against">≤ −0.5</span>' in source
        assert '<span class="w p5">+0.2</span>' in source
        assert "(one scale for all texts)" in source
        loose = {"method": "gradient-times-input", "base_value": None}
        source = to_html([scored(0.003, **loose), scored(0.012, **loose)])
        assert source.count('<span class="w p10">+0.012</span> (no fixed scale: set by the largest number here)') == 2
        assert shades_of(source) == ["p4", "p10"]

    def test_arcs_are_as_wide_as_the_interaction_is_strong(self):
        def widths(*interactions):
            pairs = tuple(Pair(0, number, value) for number, value in enumerate(interactions, 1))
            return re.findall(r'stroke-width="([\d.]+)"', arcs_svg(scored(0.1, 0.1, 0.1, pairs=pairs)))

        assert widths(0.01, -0.005) == ["1.2", "1.4"]
        assert widths(0.01, -0.9) == ["1.4", "6.0"]

    def test_signs(self):
        assert (format_signed(0.01), format_signed(-0.01), format_signed(-0.0001), format_number(None)) == (
            "+0.010",
            "−0.010",
            "0.000",
            "–",
        )
        assert (shade_class(1), shade_class(-1), shade_class(0.04), shade_class(0.06)) == ("p10", "n10", "", "p1")

    @pytest.mark.parametrize("dark", [False, True])
    def test_text_is_read_on_every_colour(self, dark):
        """WCAG's contrast of at least 4.5 to 1."""

        def light(colour):
            parts = [part / 255 for part in colour]
            linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        assert background(1, 0, dark) == (DARK if dark else LIGHT)
        for sign in (1, -1):
            for depth in range(1, DEPTHS + 1):
                one, other = sorted((light(background(sign, depth, dark)), light(text_color(sign, depth, dark))))
                assert (other + 0.05) / (one + 0.05) >= 4.5, (sign, depth)
