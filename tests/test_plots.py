"""What the pictures hold: their data, their labels, their text."""

import base64
import io
import subprocess
import sys
import warnings

import matplotlib
import numpy as np
import PIL.Image
import pytest

from attn_helpers import moving, plots
from attn_helpers.picture import FONTS

LABELS = ["the", "$$", "a$b_c$d", "the"]
SCORES = np.array([2.0, -1.0, 0.5, 2.0])
WEIGHTS = np.array([0.4, 0.05, 0.15, 0.4])


def widths(ax):
    return [patch.get_width() for patch in ax.patches]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_scores_and_weights_holds_both_and_names_every_position():
    picture = plots.scores_and_weights(LABELS, SCORES, WEIGHTS)
    left, right = picture.axes
    assert widths(left) == list(SCORES)
    assert widths(right) == list(WEIGHTS)
    assert texts(left) == ["2.0", "-1.0", "0.5", "2.0"]
    assert texts(right) == ["0.400", "0.050", "0.150", "0.400"]
    assert [label.get_text() for label in left.get_yticklabels()] == LABELS
    assert not any(label.get_parse_math() for label in left.get_yticklabels())
    assert left.get_ylim()[0] > left.get_ylim()[1], "the sentence reads from top to bottom"
    assert picture.summary.splitlines()[2].split() == ["$$", "-1.000", "0.050"]


def test_nothing_is_written_as_minus_zero():
    picture = plots.scores_and_weights(["a"], [-1e-9], [0.0])
    assert picture.summary.splitlines()[1].split() == ["a", "0.000", "0.000"]
    assert texts(picture.axes[0]) == ["0.0"]


def test_weight_panels_share_one_scale():
    picture = plots.weight_panels(LABELS, {"sharp": WEIGHTS, "flat": np.full(4, 0.25)})
    assert [widths(ax) for ax in picture.axes] == [list(WEIGHTS), [0.25] * 4]
    assert len({ax.get_xlim() for ax in picture.axes}) == 1
    assert [ax.get_title(loc="left") for ax in picture.axes] == ["sharp", "flat"]


@pytest.mark.parametrize(
    "make",
    [lambda w: plots.scores_and_weights(LABELS, SCORES, w), lambda w: plots.weight_panels(LABELS, {"weights": w})],
)
def test_a_wrong_number_of_labels_is_refused_with_both_numbers(make):
    with pytest.raises(ValueError, match=r"weights has shape \(3,\), but there are 4 labels"):
        make(WEIGHTS[:3])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: plots.scores_and_weights(LABELS, [0, 1, -np.inf, 2], WEIGHTS),
            ValueError,
            "scores holds NaN or infinity, which cannot be drawn",
        ),
        (lambda: plots.weight_panels(LABELS, {"a": "abc"}), TypeError, "a has dtype <U3, but needs real numbers"),
        (lambda: plots.weight_panels(LABELS, {1: WEIGHTS}), TypeError, r"titles is \[1\], but must be a list of"),
        (lambda: plots.weight_panels(LABELS, {}), ValueError, "panels has 0 entries, but must be a dict"),
        (lambda: plots.weight_panels("abcd", {"a": WEIGHTS}), TypeError, "labels is 'abcd', but must be a list"),
        (lambda: plots.weight_panels(LABELS, {"position": WEIGHTS}), ValueError, "panels has the title 'position'"),
        (lambda: versus(x=[1, 2, 0]), ValueError, "x goes down to 0, but a logarithmic axis needs numbers above 0"),
        (lambda: versus(x=[1, np.nan, 2]), ValueError, "x is .* but must be finite numbers"),
        (lambda: versus(measured=[1, 2, -1]), ValueError, "the curve 'distance' goes down to -1, but a logarithmic"),
        (lambda: versus(theory=[1, 2]), ValueError, r"the curve 'theory' has shape \(2,\), but x has 3 places"),
        (
            lambda: versus(theory=np.ones((2, 3))),
            ValueError,
            r"the curve 'theory' has shape \(2, 3\), but must have \(3,\)",
        ),
        (
            lambda: versus(ylabel="theory"),
            ValueError,
            "xlabel is 'n' and ylabel 'theory', but must differ, and neither",
        ),
        (lambda: versus(xlabel=5), TypeError, "xlabel and ylabel is .5, 'distance'., but must be a list of"),
        (lambda: versus(ylabel="n"), ValueError, "xlabel is 'n' and ylabel 'n', but must differ"),
    ],
)
def test_bars_and_points_that_cannot_be_drawn_are_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def versus(x=(1, 2, 3), measured=(1, 2, 3), theory=(1, 2, 3), xlabel="n", ylabel="distance"):
    return plots.against_theory(x, measured, theory, xlabel, ylabel)


def test_a_panel_may_have_any_title():
    picture = plots.weight_panels(LABELS, dict.fromkeys(("labels", "name"), WEIGHTS))
    assert [ax.get_title(loc="left") for ax in picture.axes] == ["labels", "name"]


def test_places_below_1_are_told_as_they_are():
    lines = versus(x=[0.25, 1, 2**20 + 1]).summary.splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["0.25", "1", "1,048,577"]


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_points_are_shown_against_the_theory(log):
    x, measured = np.array([10.0, 100.0, 1000.0]), np.array([1.1, 0.29, 0.1])
    picture = plots.against_theory(x, measured, 3 / np.sqrt(x), "n", "distance", log)
    assert {axis for axis in "xy" if getattr(picture.axes[0], f"get_{axis}scale")() == "log"} == set(log)
    line, points = picture.axes[0].lines
    assert list(points.get_ydata()) == list(measured)
    assert list(line.get_ydata()) == list(3 / np.sqrt(x))
    assert picture.summary.splitlines()[-1].split() == ["1,000", "0.100", "0.095"]


def test_timeline_has_a_lane_for_each_kind():
    picture = plots.timeline({"one": [(2014.5, "a")], "two": [(2016.2, "b"), (2017.0, "c\nd")]})
    ax = picture.axes[0]
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [list(dot.get_xdata()) for dot in dots] == [[2014.5], [2016.2, 2017.0]]
    assert picture.summary.splitlines()[-1] == "two: c d"


def test_labels_with_dollar_signs_are_drawn_as_they_are():
    plots.scores_and_weights(["$\\foo$", "$$", "a$b_c$d"], *np.ones((2, 3)))._repr_mimebundle_()


def test_a_picture_is_shown_with_its_text_at_100_pixels_to_an_inch():
    picture = plots.scores_and_weights(LABELS, SCORES, WEIGHTS)
    data, metadata = picture._repr_mimebundle_()
    image = PIL.Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert image.width == 2 * metadata["image/png"]["width"]
    assert data["text/plain"] == picture.summary


def test_the_same_data_gives_the_same_bytes():
    bundles = [plots.scores_and_weights(LABELS, SCORES, WEIGHTS)._repr_mimebundle_() for _ in range(2)]
    assert bundles[0] == bundles[1]


def test_nothing_is_written_outside_the_picture():
    """No text is cut off by the edge of the figure and no tick label lies on another."""
    for picture in (
        plots.scores_and_weights(LABELS, SCORES, WEIGHTS),
        plots.weight_panels(LABELS, dict.fromkeys("abcd", WEIGHTS)),
    ):
        picture.canvas.draw()
        for ax in picture.axes:
            box = ax.get_tightbbox()
            assert box.x0 >= 0 and box.y0 >= 0
            assert box.x1 <= picture.bbox.x1 and box.y1 <= picture.bbox.y1


def test_plots_leave_matplotlib_as_it_was():
    before = dict(matplotlib.rcParams)
    plots.weight_panels(LABELS, {"weights": WEIGHTS})
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_never_imported():
    code = (
        "import sys, attn_helpers as a; a.temperature_explorer(); a.hull_explorer(); "
        "a.plots.weight_panels(['x'], {'w': [1.0]})._repr_mimebundle_(); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_attention_map_names_axes_and_keeps_equal_and_odd_tokens_apart():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [1, 0, 0, 0], [0.25] * 4, [0, 0, 0.5, 0.5]])
    picture = plots.attention_map(LABELS, {"left": weights, "right": weights.T})
    left, right = picture.axes[:2]
    assert left.get_ylabel() == "query (row)" and left.get_xlabel() == right.get_xlabel() == "key (column)"
    for axis in (left.xaxis, left.yaxis, right.xaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == LABELS
        assert list(axis.get_ticklocs()) == [0, 1, 2, 3]
        assert not any(label.get_parse_math() for label in axis.get_ticklabels())
    assert np.array_equal(left.images[0].get_array(), weights)
    assert np.array_equal(right.images[0].get_array(), weights.T)
    assert {ax.images[0].get_clim() for ax in (left, right)} == {(0, 1)}
    assert len(picture.axes) == 3, "one colour bar for both"
    picture.canvas.draw()
    assert picture.summary.splitlines()[2].split() == ["0", "the", "3", "the", "0.400"]


def test_every_map_is_shown_from_0_to_1_however_narrow_its_own_range():
    picture = plots.attention_map(["a", "b"], {"flat": np.array([[0.5, 0.5], [0.49, 0.51]]), "sharp": np.eye(2)})
    assert [ax.images[0].get_clim() for ax in picture.axes[:2]] == [(0, 1), (0, 1)]


def test_attention_map_of_different_queries_and_keys_shows_the_sums():
    weights = np.array([[0.5, 0.25, 0.25], [0, 0, 1]])
    picture = plots.attention_map(["a", "b"], {"cross": weights}, keys=["x", "y", "z"], sums=True)
    ax = picture.axes[0]
    sides = [[label.get_text() for label in axis.get_ticklabels()] for axis in (ax.yaxis, ax.xaxis)]
    assert sides == [["a", "b"], ["x", "y", "z"]], "queries in rows, keys in columns"
    assert texts(ax) == ["1.00", "1.00", "0.50", "0.25", "1.25"]
    assert picture.summary.splitlines()[-1] == "column sums 0.500 0.250 1.250"


@pytest.mark.parametrize(
    ("labels", "keys", "weights", "reason"),
    [
        (
            LABELS,
            None,
            np.eye(3),
            r"'map' has shape \(3, 3\), but there are 4 labels for queries \(rows\) and 4 for keys",
        ),
        (LABELS[:2], LABELS, np.ones((4, 2)), r"\(4, 2\), but there are 2 labels for queries \(rows\) and 4 for keys"),
        (LABELS, None, np.ones((2, 4, 4)), r"\(2, 4, 4\), but there are 4 labels"),
        (LABELS, None, 2 * np.eye(4), r"values from 0 to 2, outside the limits \(0, 1\)"),
        (LABELS, None, -np.eye(4), "values from -1 to 0, outside"),
        (LABELS, None, np.full((4, 4), np.nan), "the map 'map' holds NaN"),
    ],
)
def test_a_map_that_does_not_fit_its_labels_or_its_scale_is_refused(labels, keys, weights, reason):
    with pytest.raises(ValueError, match=reason):
        plots.attention_map(labels, {"map": weights}, keys=keys)


def test_products_are_drawn_to_scale_and_named():
    picture = plots.products([(("X", (5, 7)), ("W", (7, 3)), ("Q", (5, 3)))])
    assert [(patch.get_width(), patch.get_height()) for patch in picture.axes[0].patches] == [(7, 5), (3, 7), (3, 5)]
    assert picture.summary == "X (5, 7) @ W (7, 3) = Q (5, 3)"


@pytest.mark.parametrize("shapes", [((5, 7), (6, 3), (5, 3)), ((5, 7), (7, 3), (3, 5))])
def test_a_product_that_does_not_fit_is_refused(shapes):
    with pytest.raises(
        ValueError,
        match="the product 'Q' does not fit: (the inner lengths|its shape is .3, 5.)",
    ):
        plots.products([tuple(zip(("X", "W", "Q"), shapes))])


def test_products_too_large_to_draw_are_refused():
    with pytest.raises(ValueError, match="at most 80 can be drawn"):
        plots.products([(("X", (13, 384)), ("W", (384, 32)), ("Q", (13, 32)))])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ("abcd", "labels is 'abcd', but must be a list of strings"),
        ({"a", "b"}, "must be a list of strings"),
        (None, "labels is None"),
        ([], "at least one string"),
        ([1, 2], "nothing but strings"),
    ],
)
def test_labels_that_are_no_list_of_strings_are_refused_by_name(labels, reason):
    with pytest.raises(TypeError, match=reason):
        plots.attention_map(labels, {"map": np.eye(2)})


def test_more_tokens_than_can_be_read_are_refused_before_anything_is_drawn():
    with pytest.raises(ValueError, match="there are 1000 labels, but a picture has room for 80"):
        plots.attention_map(["a"] * 1000, {"map": np.eye(1000)})


@pytest.mark.parametrize(
    ("panels", "error", "came"),
    [
        ({}, ValueError, "has 0 entries"),
        (np.eye(2), TypeError, "is of type ndarray"),
        (None, TypeError, "is of type NoneT"),
    ],
)
def test_panels_that_are_no_dict_of_maps_are_refused(panels, error, came):
    with pytest.raises(error, match=f"panels {came}.*, but must be a dict {{title: map}}"):
        plots.attention_map(["a", "b"], panels)


def test_a_sign_that_the_first_font_lacks_is_drawn_in_another_that_is_installed(monkeypatch, caplog):
    # case 60: Chinese tokens are boxes; here a sign of STIX, which comes with matplotlib, stands for them
    def draw(token):
        return plots.attention_map([token, "$$"], {"map": np.eye(2)})._repr_mimebundle_()

    english = draw("a")
    with pytest.warns(UserWarning, match="POSITION INDICATOR.* missing from "):
        draw("\u2316")
    monkeypatch.setattr("attn_helpers.picture.FONTS", (*FONTS, "no such font", "STIXGeneral"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw("\u2316")
    assert "no such font" not in caplog.text, "a font that is not installed is not asked for"
    assert draw("a") == english


def test_default_sizes_of_matplotlib_change_no_picture():
    # case 90: a release changed them
    pictures = []
    for sizes in ({}, {"figure.figsize": (3, 2), "figure.dpi": 50, "savefig.dpi": 30}):
        with matplotlib.rc_context(sizes):
            pictures.append(plots.scores_and_weights(LABELS, SCORES, WEIGHTS)._repr_mimebundle_())
    assert pictures[0] == pictures[1]


def test_a_reader_s_own_font_takes_no_sign_away():
    # case 61: a font without the minus sign
    with matplotlib.rc_context({"font.family": "cmss10"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.curves([-2, -1], {"": {"a": [-1, -2]}}, "x", "y")._repr_mimebundle_()


def test_what_cannot_be_read_as_a_label_is_written_out_or_cut():
    tokens = ["a\nb", "", " ", "x" * 80]
    picture = plots.attention_map(tokens, {"map": np.eye(4)})
    shown = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert shown == ["'a\\nb'", "''", "' '", "x" * 19 + "\u2026"]


def test_a_tie_is_not_told_as_a_preference():
    picture = plots.attention_map(["a", "b", "c"], {"map": np.array([[0.5, 0.5, 0], [0, 0, 1], [1 / 3] * 3])})
    assert [line.split()[2:-1] for line in picture.summary.splitlines()[2:]] == [
        ["0", "a", "and", "1", "more"],
        ["2", "c"],
        ["0", "a", "and", "2", "more"],
    ]


def test_a_map_that_moves_refuses_what_does_not_fit_its_labels():
    picture = moving.head_map([["a", "b"], ["a", "b", "c"]])
    picture.show("head", ["a", "b", "c"], np.eye(3), "facts")
    with pytest.raises(ValueError, match=r"shape \(2, 2\), but there are 3 labels"):
        picture.show("head", ["a", "b", "c"], np.eye(2), "facts")


@pytest.mark.parametrize("longest", ["bank", "discovered", "internationalisation"])
def test_every_label_of_a_moving_map_stays_inside_whichever_came_first(longest):
    sentences = [["a", "b", "c", "d"], [longest] * 3]
    picture = moving.head_map(sentences)
    for labels in sentences:
        picture.show("head", labels, np.eye(len(labels)), "facts")
        picture.draw_without_rendering()
        ax = picture.axes[0]
        for text in (*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label):
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.y0 >= 0, text.get_text()


def test_a_map_may_have_labels_of_its_own_for_each_panel():
    panels = {"one": np.eye(2), "two": np.eye(3)}
    picture = plots.attention_map({"one": ["a", "b"], "two": ["c", "d", "e"]}, panels)
    texts = [[text.get_text() for text in ax.get_yticklabels()] for ax in picture.axes[:2]]
    assert texts == [["a", "b"], ["c", "d", "e"]]
    assert "1 d" in picture.summary
    with pytest.raises(ValueError, match="labels by panel need one list for 'two'"):
        plots.attention_map({"one": ["a", "b"]}, panels)


def test_what_is_exactly_zero_can_be_grey():
    values = np.array([[1, 0], [1e-30, 1]])
    for zeros, hidden in ((True, [[False, True], [False, False]]), (False, np.zeros((2, 2)))):
        image = plots.attention_map(["a", "b"], {"map": values}, zeros=zeros).axes[0].images[0]
        assert np.array_equal(np.ma.getmaskarray(image.get_array()), hidden)
    assert image.cmap(np.ma.masked)[:3] == pytest.approx([0xD9 / 255] * 3, abs=1e-3)


def test_curves_of_one_name_share_a_colour_and_panels_a_y_axis():
    x = {"left": [1, 2], "right": [1, 10, 100]}
    panels = {"left": {"a": [1.0, 2.0]}, "right": {"a": [[1.0, 2, 3], [3, 4, 5]], "b": [0.0, 0, 9]}}
    picture = plots.curves(x, panels, "step", "loss", log="x", marks={"here": 2})
    left, right = picture.axes
    assert left.get_ylim() == right.get_ylim()
    assert [line.get_color() for line in right.lines[:3]] == [plots.BLUE, plots.BLUE, plots.ORANGE]
    assert [list(line.get_ydata()) for line in right.lines[:2]] == [[1, 2, 3], [3, 4, 5]]
    assert left.lines[-1].get_xdata() == [2, 2] and left.texts[0].get_text() == "here"
    assert right.get_xscale() == "log" and right.get_yscale() == "linear"
    assert "a (mean of 2)" in picture.summary and "100   4" in picture.summary
    assert [text.get_text() for text in picture.legends[0].get_texts()] == ["a", "b"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ({"a": [1.0, 2.0, 3.0]}, r"the curve 'a' has shape \(3,\), but x has 2 places"),
        ({name: [1.0, 2.0] for name in "abcd"}, "there are 4 curves"),
        ({"a": ["x", "y"]}, "the curve 'a' has dtype"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(lines, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        plots.curves([1, 2], {"": lines}, "x", "y")


def test_a_mask_that_allows_nothing_is_drawn_and_said():
    picture = moving.masked(["a", "b"])
    text = picture.show("nothing", np.zeros((2, 2), bool), np.zeros((2, 2)))
    assert text == "nothing: 0 of 4 cells allowed\n2 of 2 rows have nothing allowed: zeros"
    assert picture.axes[1].images[0].get_array().mask.all()


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"panels": []}, TypeError, "panels is of type list, but must be a dict {title: {name: curve}}"),
        ({"panels": {}}, ValueError, "panels has 0 entries, but must be a dict .* with 1 or more"),
        ({"panels": {"p": {}}}, ValueError, "panel 'p' has 0 entries, but must be a dict {name: curve} with 1 or more"),
        ({"panels": {"p": [1.0, 2.0]}}, TypeError, "panel 'p' is of type list, but must be a dict"),
        ({"panels": {3: {"a": [1, 2]}}}, TypeError, "the title or name 3, but each must be a string"),
        ({"panels": {"p": {None: [1, 2]}}}, TypeError, "the title or name None"),
        ({"panels": {"p": {"step": [1, 2]}}}, ValueError, "of panel 'p' has the name 'step', but that is the xlabel"),
        ({"panels": {"p": {"a": np.ones((0, 2))}}}, ValueError, r"'a' has shape \(0, 2\), but x has 2 places"),
        ({"x": {"q": [1, 2]}}, ValueError, "x by panel need one list for 'p', but have .'q'."),
        ({"x": {"p": [1, 2], "q": [1, 2]}}, ValueError, "x by panel have a list for 'q', but the panels are .'p'."),
        ({"x": [[1, 2]]}, ValueError, r"x is .* of shape \(1, 2\), but must be finite numbers of shape \(m,\)"),
        ({"x": []}, ValueError, r"of shape \(0,\)"),
        ({"x": [1, np.inf]}, ValueError, "x is .*inf"),
        ({"x": [1, np.nan]}, ValueError, "x is .*nan"),
        ({"x": ["a", "b"]}, TypeError, "x has dtype"),
        ({"log": "yx"}, ValueError, "log is 'yx', but must be one of '', 'x', 'y', 'xy'"),
        ({"log": None}, ValueError, "log is None"),
        ({"log": "x", "x": [0, 1]}, ValueError, "x goes down to 0, but a logarithmic axis"),
        ({"log": "xy", "panels": {"p": {"a": [1, -2]}}}, ValueError, "the curve 'a' goes down to -2"),
        ({"log": "x", "marks": {"m": 0}}, ValueError, "the mark 'm' goes down to 0"),
        ({"marks": {"m": np.nan}}, ValueError, "the mark 'm' is at nan, but must be at a finite place"),
        ({"marks": {"m": "1"}}, TypeError, "the mark 'm' is '1', but must be one number"),
        ({"marks": [1]}, TypeError, "marks is of type list, but must be a dict {text: place}"),
    ],
)
def test_curves_refuse_by_name_what_does_not_fit(change, error, reason):
    given = {"x": [1, 2], "panels": {"p": {"a": [1.0, 2.0]}}, "xlabel": "step", "ylabel": "y", "marks": {}}
    assert "step" in plots.curves(**given).summary
    with pytest.raises(error, match=reason):
        plots.curves(**{**given, **change})


def test_zero_is_refused_on_no_axis_but_a_logarithmic_one():
    plots.curves([0, 1], {"": {"a": [1, 2]}}, "x", "y", log="y", marks={"here": 0})
    plots.curves([1, 2], {"": {"a": [0, -2]}}, "x", "y", log="x")


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"limits": (1, 0)}, ValueError, r"limits is \(1, 0\), but must be two finite numbers, the lower one first"),
        ({"limits": (0, 0)}, ValueError, "limits is"),
        ({"limits": (0, np.inf)}, ValueError, "limits is .*inf"),
        ({"limits": (0, 1, 2)}, ValueError, r"limits is \(0, 1, 2\)"),
        ({"limits": None}, TypeError, "limits has dtype object"),
        ({"axes": ("row",)}, ValueError, r"axes is \('row',\), but must be two strings"),
        ({"axes": "ab"}, TypeError, "axes is 'ab', but must be a list of strings"),
        ({"axes": (1, 2)}, TypeError, r"axes is \[1, 2\]"),
        ({"sums": "no"}, TypeError, "sums is 'no', but must be True or False"),
        ({"zeros": 1}, TypeError, "zeros is 1, but must be True or False"),
        ({"labels": {"map": ["a", "b"], "mop": ["a", "b"]}}, ValueError, "labels by panel have a list for 'mop'"),
        ({"labels": {"map": ["a", "b"]}, "keys": ["a", "b"]}, ValueError, "keys is .'a', 'b'., but must be None"),
    ],
)
def test_attention_map_refuses_by_name_what_does_not_fit(change, error, reason):
    with pytest.raises(error, match=reason):
        plots.attention_map(**{"labels": ["a", "b"], "panels": {"map": np.eye(2)}, **change})


@pytest.mark.parametrize(
    ("allowed", "weights", "error", "reason"),
    [
        (np.eye(2, dtype=int), np.eye(2), TypeError, "allowed has dtype int64"),
        (np.ones((2, 3), bool), np.eye(2), ValueError, r"allowed has shape \(2, 3\), but must have \(2, 2\)"),
        (np.ones((1, 2), bool), np.eye(2), ValueError, r"allowed has shape \(1, 2\)"),
        (np.eye(2, dtype=bool), np.full((2, 2), 0.5), ValueError, "'name' has up to 0.5 where allowed is False"),
    ],
)
def test_a_mask_that_is_not_the_one_of_the_weights_is_refused(allowed, weights, error, reason):
    picture = moving.masked(["a", "b"])
    before = [np.array(ax.images[0].get_array()) for ax in picture.axes[:2]]
    with pytest.raises(error, match=reason):
        picture.show("name", allowed, weights)
    assert all(np.array_equal(old, ax.images[0].get_array()) for old, ax in zip(before, picture.axes))


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("scores", [1, 2], r"scores scaled has shape \(2,\), but must have \(3,\)"),
        ("weights", np.ones((3, 1)), r"weights scaled has shape \(3, 1\)"),
        ("bits", [1], r"bits scaled has shape \(1,\), but must have \(\)"),
        ("most", [1], "most scaled"),
        ("curves", np.ones((2, 3)), r"curves scaled has shape \(2, 3\), but must have \(2, 2\)"),
        ("curves", ([1], [1, 2]), "curves scaled is not a regular array"),
    ],
)
def test_scaling_refuses_numbers_of_another_shape(name, values, reason):
    picture = moving.scaling((1, 2), 3)
    good = {"scores": np.ones(3), "weights": np.ones(3) / 3, "bits": 1.0, "most": 0.5, "curves": np.ones((2, 2))}
    numbers = {key: {"unscaled": value, "scaled": value} for key, value in good.items()}
    picture.show(d_k=1, temperature=1, **numbers)
    with pytest.raises(ValueError, match=reason):
        picture.show(d_k=1, temperature=1, **{**numbers, name: {**numbers[name], "scaled": values}})


HEADS = np.random.default_rng(3).dirichlet(np.ones(5), (3, 4, 5))  # (layers, heads, n, n)
JOBS = {"2.1": "looks far", "0.0": "costs $5 a_b$", "1.3": "rests"}


def blocks(picture):
    """{(layer, head): (axes, its slices of the mosaic)}, read from the numbers on the axes."""
    found = {}
    for ax in picture.axes[:-1]:
        n = picture.n
        for y, layer in zip(ax.get_yticks(), ax.get_yticklabels()):
            for x, head in zip(ax.get_xticks(), ax.get_xticklabels()):
                rows, columns = (slice(int(c - (n - 1) / 2), int(c + (n + 1) / 2)) for c in (y, x))
                found[int(layer.get_text()), int(head.get_text())] = ax, rows, columns
    return found


def drawn(maps, marks=None):
    picture = plots.thumbnails(maps, marks)
    picture.n = maps.shape[-1]
    picture.canvas.draw()
    return picture


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 2), (7, 2, 3), (30, 9, 6), (2, 3, 30), (1, 6, 13)])
def test_each_head_has_a_block_that_holds_its_map_and_nothing_else_is_coloured(shape):
    layers, heads, n = shape
    maps = np.random.default_rng(0).dirichlet(np.ones(n), shape)
    picture = drawn(maps)
    found = blocks(picture)
    assert sorted(found) == [(layer, head) for layer in range(layers) for head in range(heads)]
    for (layer, head), (ax, rows, columns) in found.items():
        assert np.array_equal(ax.images[0].get_array()[rows, columns], maps[layer, head])
        x0, x1, y0, y1 = ax.images[0].get_extent()
        assert (x0, y1) == (-0.5, -0.5) and (y0 + 0.5, x1 + 0.5) == ax.images[0].get_array().shape
    coloured = sum(np.isfinite(ax.images[0].get_array().filled(np.nan)).sum() for ax in picture.axes[:-1])
    assert coloured == maps.size
    assert {ax.images[0].get_clim() for ax in picture.axes[:-1]} == {(0, 1)}
    assert {ax.images[0].get_array().shape for ax in picture.axes[:-1]} == {picture.axes[0].images[0].get_array().shape}


@pytest.mark.parametrize("layers", [3, 7, 8])
def test_the_pixels_of_a_head_are_those_of_its_map_and_the_gaps_are_white(layers):
    maps = np.random.default_rng(1).dirichlet(np.ones(4), (layers, 2, 4))
    picture = drawn(maps)
    pixels = np.asarray(picture.canvas.buffer_rgba())[::-1]

    def color(ax, x, y):
        column, row = ax.transData.transform((x, y)).astype(int)
        return pixels[row, column, :3] / 255

    for (layer, head), (ax, rows, columns) in blocks(picture).items():
        for i, j in np.ndindex(4, 4):
            expected = matplotlib.colormaps["viridis"](maps[layer, head, i, j])[:3]
            assert np.allclose(color(ax, columns.start + j, rows.start + i), expected, atol=0.01), (layer, head, i, j)
        assert color(ax, columns.stop, rows.start + 1).min() == color(ax, columns.start + 1, rows.stop).min() == 1


@pytest.mark.parametrize(("shape", "marks"), [((3, 4, 5), JOBS), ((7, 2, 3), {"6.1": "a", "0.0": "b", "4.0": "c"})])
def test_a_frame_surrounds_the_head_that_is_marked_and_has_the_colour_of_its_name(shape, marks):
    picture = drawn(np.random.default_rng(2).dirichlet(np.ones(shape[2]), shape), marks)
    found = blocks(picture)
    legend = picture.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [f"{head} {text}" for head, text in marks.items()]
    colors = [patch.get_edgecolor() for patch in legend.get_patches()]
    assert len(set(colors)) == len(marks)
    for head, color in zip(marks, colors):
        ax, rows, columns = found[tuple(map(int, head.split(".")))]
        (frame,) = [patch for patch in ax.patches if patch.get_edgecolor() == color]
        box = frame.get_bbox()
        assert not frame.get_fill()
        for low, high, cells in ((box.x0, box.x1, columns), (box.y0, box.y1, rows)):
            assert cells.start - 1.5 < low < cells.start - 0.5 and cells.stop - 0.5 < high < cells.stop + 0.5
    assert sum(len(ax.patches) for ax in picture.axes[:-1]) == len(marks)


SIX = {f"1.{head}": "does a job with a long name" for head in range(6)}


@pytest.mark.parametrize(
    ("shape", "marks"),
    [
        ((6, 12, 13), SIX),
        ((6, 12, 13), None),
        ((30, 9, 25), SIX),
        ((1, 80, 3), None),
        ((80, 1, 3), {"9.0": "x"}),
        ((2, 2, 4), {"0.0": "x"}),
        ((12, 12, 30), SIX),
    ],
)
def test_many_heads_fit_the_page_and_nothing_lies_on_the_maps(shape, marks):
    picture = drawn(np.random.default_rng(0).dirichlet(np.ones(shape[2]), shape), marks)
    assert picture.get_figwidth() <= 9.8 and picture.get_figheight() <= 9.5
    tight = [ax.get_tightbbox() for ax in picture.axes] + [legend.get_window_extent() for legend in picture.legends]
    for box in tight:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= picture.bbox.x1 and box.y1 <= picture.bbox.y1
    for i, box in enumerate(tight):
        assert not any(box.overlaps(other) for other in tight[i + 1 :]), i
    assert len(picture.summary.splitlines()) <= 40


@pytest.mark.parametrize(
    ("layers", "heads", "blocks"), [(6, 12, 1), (12, 12, 1), (30, 9, 2), (48, 4, 3), (1, 80, 1), (2, 2, 1)]
)
def test_layers_are_folded_into_as_many_blocks_as_make_the_maps_largest(layers, heads, blocks):
    picture = plots.thumbnails(np.full((layers, heads, 2, 2), 0.5))
    assert len(picture.axes) == blocks + 1, "and one colour bar"


def test_thumbnails_tell_the_marked_heads_and_the_strongest_of_each_layer():
    picture = plots.thumbnails(HEADS, JOBS)
    first = [[np.mean([HEADS[layer, head, t, 0] for t in range(1, 5)]) for head in range(4)] for layer in range(3)]
    previous = [
        [np.mean([HEADS[layer, head, t, t - 1] for t in range(1, 5)]) for head in range(4)] for layer in range(3)
    ]
    lines = picture.summary.splitlines()
    assert lines[0] == "3 layers with 4 heads each, maps 5 x 5"
    assert lines[1] == (
        f"2.1 looks far: mean weight on the first key {first[2][1]:.3f}, on the previous one {previous[2][1]:.3f}"
    )
    assert [line.split()[0] for line in lines[1:4]] == list(JOBS)
    for layer, line in enumerate(lines[5:]):
        best = [f"head {np.argmax(s[layer])} {np.max(s[layer]):.3f}" for s in (first, previous)]
        assert " ".join(line.split()) == f"{layer} {best[0]} {best[1]}"
    assert len(lines) == 8
    numbers = [line.split()[0] for line in plots.thumbnails(np.full((80, 1, 2, 2), 0.5)).summary.splitlines()[2:]]
    assert (len(numbers), numbers[0], numbers[-1]) == (30, "0", "79")


def test_marks_are_never_read_as_maths_and_their_names_are_on_the_axes():
    picture = drawn(HEADS, JOBS)
    assert not any(text.get_parse_math() for text in picture.legends[0].get_texts())
    assert picture.axes[0].get_ylabel() == "layer"
    assert picture.get_supxlabel() == "head; in each map: query (row), key (column)"
    assert not drawn(HEADS).legends
    assert picture.axes[-1].get_ylabel() == "weight"


@pytest.mark.parametrize(
    ("maps", "marks", "error", "reason"),
    [
        (HEADS[0], None, ValueError, r"maps has shape \(4, 5, 5\), but must have \(layers, heads, n, n\)"),
        (HEADS[..., :4], None, ValueError, r"maps has shape \(3, 4, 5, 4\), but must have"),
        (np.ones((1, 1, 1, 1)), None, ValueError, "with n from 2 to 80"),
        (np.zeros((1, 1, 81, 81)), None, ValueError, "with n from 2 to 80"),
        (np.zeros((81, 1, 2, 2)), None, ValueError, "room for 80 layers and 80 heads"),
        (np.zeros((0, 1, 2, 2)), None, ValueError, r"maps has shape \(0, 1, 2, 2\)"),
        (2 * HEADS, None, ValueError, r"'maps' has values from .*outside the limits \(0, 1\)"),
        (HEADS * np.nan, None, ValueError, "'maps' holds NaN"),
        (HEADS > 0, None, TypeError, "maps has dtype bool"),
        (HEADS, {"3.0": "x"}, ValueError, "marks has the head '3.0', but must name heads of 0.0 to 2.3"),
        (HEADS, {"0.4": "x"}, ValueError, "marks has the head '0.4'"),
        (HEADS, {(0, 1): "x"}, ValueError, r"marks has the head \(0, 1\)"),
        (HEADS, {"0.1": 3}, TypeError, "marks has 3 for the head '0.1', but must have a string"),
        (HEADS, ["0.1"], TypeError, "marks is of type list, but must be a dict"),
        (HEADS, {f"{i}.{j}": "x" for i in range(2) for j in range(4)}, ValueError, "marks has 8 heads.*only 6 colours"),
    ],
)
def test_thumbnails_refuse_by_name_what_does_not_fit(maps, marks, error, reason):
    with pytest.raises(error, match=reason):
        plots.thumbnails(maps, marks)


def formed(m=2, n=2, **change):
    given = dict(labels=["a"] * n, steps=range(m), losses={"one": np.ones(m)}, maps={"head": np.full((m, n, n), 1 / n)})
    return moving.forming(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"labels": "ab"}, TypeError, "labels is 'ab', but must be a list of strings"),
        ({"labels": ["a"] * 33}, ValueError, "there are 33 labels, but a map that moves has room for 32"),
        ({"labels": ["a"] * 3}, ValueError, r"maps 'head' has shape \(2, 2, 2\), but must have \(2, 3, 3\)"),
        ({"steps": [0, 0]}, ValueError, r"steps is \[0 0\] of int64, but must be whole numbers \(m,\), one or more, r"),
        ({"steps": [1, 0]}, ValueError, "steps is"),
        ({"steps": [0.0, 1.0]}, ValueError, "steps is .* of float64"),
        ({"steps": [[0, 1]]}, ValueError, "steps is"),
        ({"steps": []}, ValueError, "steps is"),
        ({"steps": [0, 1, 2]}, ValueError, r"losses 'one' has shape \(2,\), but must have \(3,\)"),
        (
            {"losses": {}},
            ValueError,
            "losses has 0 entries, but must be a dict {name: loss at each step} with 1 or more",
        ),
        ({"losses": [1, 2]}, TypeError, "losses is"),
        ({"losses": {"one": [1, np.nan]}}, ValueError, "losses 'one' holds NaN or infinity"),
        ({"losses": {"one": ["a", "b"]}}, TypeError, "losses 'one' has dtype"),
        ({"losses": dict.fromkeys("abcd", [1, 2])}, ValueError, "losses has 4 entries, .*room for 3"),
        ({"maps": {}}, ValueError, "maps has 0 entries"),
        ({"maps": dict.fromkeys("abcd", np.ones((2, 2, 2)))}, ValueError, "maps has 4 entries"),
        ({"maps": {"head": 2 * np.ones((2, 2, 2))}}, ValueError, "the map 'head' has values from 2 to 2, outside"),
        ({"maps": {"head": np.full((2, 2, 2), 0.3)}}, ValueError, "maps 'head': .*sum to"),
    ],
)
def test_a_training_that_does_not_fit_is_refused_by_name(change, error, reason):
    assert formed().show(1)
    with pytest.raises(error, match=reason):
        formed(**change)


def test_a_training_tells_no_statistic_that_there_is_not():
    assert formed(1, 1).show(0) == "step 0: loss one 1.000\nhead: "
    assert formed(labels=["a", "b"]).show(0).endswith("head: previous 0.500, first 0.500")


@pytest.mark.parametrize(("n", "heads"), [(32, 1), (32, 2), (32, 3), (8, 3), (2, 2), (16, 1)])
def test_the_maps_of_a_training_are_of_one_size_and_no_text_lies_on_another(n, heads):
    maps = {f"layer {i} head 0": np.full((3, n, n), 1 / n) for i in range(heads)}
    losses = {"two layers": np.array([3.0, 1, 0.1]), "one layer": np.array([3.0, 2, 1])}
    picture = moving.forming(["w"] * n, [0, 10, 600], losses, maps)
    picture.show(600)
    picture.canvas.draw()
    axes = [ax for ax in picture.axes if ax.images]
    sizes = [ax.get_window_extent().bounds[2:] for ax in axes]
    assert len(axes) == heads and np.allclose(sizes, sizes[0]) and sizes[0][0] == pytest.approx(sizes[0][1])
    assert picture.get_figwidth() <= 9.8
    boxes = [ax.get_tightbbox() for ax in picture.axes]
    for i, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= picture.bbox.x1 and box.y1 <= picture.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :]), i


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        ({"weights": np.eye(2)}, ValueError, r"'M 0.0 on \"t\"' has shape \(2, 2\), but there are 3 labels"),
        ({"measured": [0.5]}, TypeError, "measured is of type list, but must be a dict {statistic: number}"),
        ({"measured": {"previous": 0.5}}, ValueError, "measured has no 'next', but only .'previous'."),
        ({"medians": {**dict.fromkeys(moving.SHARES, 0.5), "distance": 1}}, ValueError, "medians has no 'entropy'"),
        ({"medians": dict.fromkeys((*moving.SHARES, "entropy", "distance"), "x")}, TypeError, "medians 'previous' is"),
    ],
)
def test_a_surveyed_head_refuses_by_name_what_does_not_fit(change, error, reason):
    picture = moving.surveyed([["a", "b", "c"], ["a", "b"]])
    survey = dict.fromkeys((*moving.SHARES, "entropy", "distance"), 0.5)
    given = dict(head="M 0.0", text="t", labels=["a", "b", "c"], weights=np.eye(3), measured=survey, medians=survey)
    before = picture.show(**given)
    with pytest.raises(error, match=reason):
        picture.show(**{**given, **change})
    assert np.array_equal(picture.axes[0].images[0].get_array(), np.eye(3)) and "M 0.0" in before
