"""Every slider over its whole range, without a browser."""

import asyncio
import gc
import io
import re
import sys
import threading
import tracemalloc

import ipywidgets as widgets
import numpy as np
import PIL.Image
import pytest
import scipy.spatial
import scipy.special
from matplotlib.text import Text

from attn_helpers import (
    MINILM_HEADS,
    SENTENCES,
    bank_senses,
    explorers,
    minilm_head,
    moving,
    samples,
    smollm2_head,
    word_vectors,
)
from attn_helpers.live import RED, Live
from attn_helpers.picture import encode

GRID = np.linspace(0, 5, 101)
POINTS = np.linspace(0.1, 4.9, 30)
QKV = [np.random.default_rng(i).normal(size=size) for i, size in enumerate([(4, 5), (4, 5), (4, 3)])]
TOKENS = ["a", "$$", "b", "a", "$$", "b"]
STEPS = [0, 1, 5, 20, 100]
LOSSES = {"two layers": np.array([3.0, 2.5, 1.0, 0.2, 0.1]), "one layer": np.array([3.1, 2.9, 2.5, 2.0, 1.9])}
FORMING = {f"layer {i} head 0": np.random.default_rng(i).dirichlet(np.ones(6), (5, 6)) for i in range(2)}


EXPLORERS = {
    "temperature": explorers.temperature_explorer,
    "hull": explorers.hull_explorer,
    "kernel": lambda: explorers.kernel_explorer(POINTS, np.cos(POINTS), GRID, np.sin(GRID)),
    "head": explorers.head_explorer,
    "rope": explorers.rope_explorer,
    "sense": explorers.sense_explorer,
    "mask": explorers.mask_explorer,
    "scaling": explorers.scaling_explorer,
    "pipeline": lambda: explorers.pipeline_explorer(["a", "b", "a", "$$"], *QKV),
    "MiniLM": explorers.model_explorer,
    "SmolLM2": lambda: explorers.model_explorer("SmolLM2"),
    "forming": lambda: explorers.forming_explorer(TOKENS, STEPS, LOSSES, FORMING),
}


def positions(control):
    """Every value that a control can take."""
    if isinstance(control, widgets.SelectionSlider):
        return [value for _, value in control._options_full]
    steps = np.arange(round((control.max - control.min) / control.step) + 1)
    values = control.min + steps * control.step
    return list(control.base**values) if isinstance(control, widgets.FloatLogSlider) else list(values)


def controls():
    """(explorer, control) names for all that the explorers have."""
    return [(name, control) for name, make in EXPLORERS.items() for control in make().controls]


@pytest.mark.parametrize(("name", "control"), controls())
def test_every_position_draws_and_picture_and_text_follow(name, control):
    live = EXPLORERS[name]()
    slider = live.controls[control]
    seen = set()
    for value in positions(slider):
        slider.value = value
        assert live.error is None, f"{control} = {value}: {live.error}"
        assert plain(live._text.value) == live.picture.summary == live.draw(**live.values)
        seen.add((live._image.value, live.picture.summary))
    assert len({png for png, _ in seen}) > 0.3 * len(positions(slider)), "the picture hardly ever changes"
    assert len({text for _, text in seen}) > 0.3 * len(positions(slider)), "the summary hardly ever changes"


@pytest.mark.parametrize(("name", "control"), controls())
def test_a_move_draws_by_itself(name, control):
    live = EXPLORERS[name]()
    before = live._image.value, live._text.value
    slider = live.controls[control]
    slider.value = next(value for value in positions(slider)[::-1] if value != slider.value)
    assert live._image.value != before[0]
    assert live._text.value != before[1]


@pytest.mark.parametrize("name", EXPLORERS)
def test_each_control_has_a_description_and_holds_the_value_asked_for(name):
    for control in EXPLORERS[name]().controls.values():
        assert control.description
        for value in positions(control)[:: max(1, len(positions(control)) // 10)]:
            control.value = value
            assert control.value == (value if isinstance(value, str) else pytest.approx(value, rel=1e-6))


@pytest.mark.parametrize("name", EXPLORERS)
def test_no_token_is_ever_read_as_maths(name):
    # case 59
    axes = EXPLORERS[name]().picture.axes
    labels = [label.get_text() for ax in axes for label in (*ax.get_xticklabels(), *ax.get_yticklabels())]
    tokens = {label for label in labels if re.search("[a-z]", label)}
    assert tokens or name in ("kernel", "scaling")
    found = [text for ax in axes for text in ax.findobj(Text) if text.get_text() in tokens]
    assert not any(text.get_parse_math() for text in found)


@pytest.mark.parametrize("name", ["head", "mask", "MiniLM", "SmolLM2", "forming"])
def test_weights_are_shown_from_0_to_1_at_every_position(name):
    # case 56
    live = EXPLORERS[name]()
    for control in live.controls.values():
        control.value = positions(control)[-1]
        assert {image.get_clim() for ax in live.picture.axes for image in ax.images} == {(0, 1)}


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_picture_keeps_its_size_and_the_widgets_are_plain_ones(name):
    # cases 69, 75: a page that jumps while a slider is dragged; widgets that a hosting site does not have
    live, sizes = EXPLORERS[name](), set()
    for control in live.controls.values():
        for value in (positions(control)[0], positions(control)[-1]):
            control.value = value
            sizes.add((PIL.Image.open(io.BytesIO(live._image.value)).size, live._image.layout.width))
    assert len(sizes) == 1
    shown = [live, *live.children, *live.controls.values()]
    assert {widget._view_module for widget in shown} == {"@jupyter-widgets/controls"}


@pytest.mark.parametrize("temperature", np.logspace(-2, 2, 10))
def test_temperature_bars_are_the_softmax_of_the_dot_products(temperature):
    live = explorers.temperature_explorer()
    live.controls["query"].value = "week"
    live.controls["temperature"].value = temperature
    words = SENTENCES["money"].split()
    scores = word_vectors(words) @ word_vectors(["week"])[0]
    expected = scipy.special.softmax(scores / live.controls["temperature"].value)
    bars = [patch.get_width() for patch in live.picture.axes[0].patches]
    assert np.allclose(bars, expected)
    bits = -np.sum(scipy.special.xlogy(expected, expected)) / np.log(2)
    assert f"entropy {bits:.3f} bits, {2**bits:.2f} effective positions" in live.picture.summary
    assert [label.get_text() for label in live.picture.axes[0].get_yticklabels()] == words


def bars(ax):
    return np.array([patch.get_height() for patch in ax.patches])


@pytest.mark.parametrize(
    ("d_k", "temperature"),
    [(1, 1), (2, 0.125), (3, 32), (16, 1), (24, 2), (64, 8), (256, 16), (384, 0.5), (1024, 1), (1024, 32)],
)
def test_the_scaling_bars_are_the_softmax_of_the_same_draw(d_k, temperature):
    live = explorers.scaling_explorer(seed=3)
    live.controls["d_k"].value, live.controls["temperature"].value = d_k, temperature
    assert live.error is None
    rng = np.random.default_rng(3)
    query, key = rng.normal(size=(200, 1, 1024)), rng.normal(size=(200, 16, 1024))
    for column, divisor in enumerate((1, np.sqrt(d_k))):
        scores = (query[..., :d_k] * key[..., :d_k]).sum(-1) / divisor  # the first d_k components: nested draws
        weights = scipy.special.softmax(scores / temperature, axis=-1)
        assert np.allclose(bars(live.picture.axes[column]), scores[0])
        assert np.allclose(bars(live.picture.axes[3 + column]), weights[0])
        bits = -scipy.special.xlogy(weights, weights).sum(-1) / np.log(2)
        at = explorers.WIDTHS.index(d_k)
        for row, (one, mean) in enumerate([(bits[0], bits.mean()), (weights[0].max(), weights.max(-1).mean())]):
            lines = live.picture.axes[2 + 3 * row].lines  # line and dot, unscaled and scaled in turn
            assert lines[2 * column].get_ydata()[at] == pytest.approx(mean)
            assert lines[2 * column + 1].get_data() == ([d_k], [pytest.approx(one)])
        line = live.picture.summary.splitlines()[1 + column]
        assert f"entropy {bits[0]:.3f} bits" in line and f"largest weight {weights[0].max():.3f}" in line


def test_both_score_panels_of_scaling_have_one_axis_that_holds_every_bar():
    live = explorers.scaling_explorer()
    for d_k in explorers.WIDTHS:
        live.controls["d_k"].value = d_k
        left, right = live.picture.axes[:2]
        assert left.get_ylim() == right.get_ylim()
        assert np.abs([*bars(left), *bars(right)]).max() <= left.get_ylim()[1]


@pytest.mark.parametrize("size", [0, 1, 7, 13])
def test_the_masks_of_the_explorer_are_those_they_are_called(size):
    live, t = explorers.mask_explorer(), np.arange(13)
    real, past, near = t[None] < size, t[None] <= t[:, None], np.abs(t[None] - t[:, None]) <= size
    everything = np.ones((13, 13), bool)
    for kind, expected in dict(
        none=everything, causal=past, padding=real & everything, both=real & past, window=near
    ).items():
        live.controls["kind"].value, live.controls["size"].value = kind, size
        cells, image = (ax.images[0].get_array() for ax in live.picture.axes[:2])
        assert np.array_equal(cells, expected)
        assert np.array_equal(np.ma.getmaskarray(image), ~expected)
        found = minilm_head("0.8", "money")
        scores = (found.X @ found.W_Q + found.b_Q) @ (found.X @ found.W_K + found.b_K).T / np.sqrt(32)
        powers = np.where(expected, np.exp(scores), 0)
        total = powers.sum(1, keepdims=True)
        assert np.allclose(image.filled(0), powers / np.where(total == 0, 1, total))
        sums = [text.get_text() for text in live.picture.axes[1].texts]
        assert sums == ["1.00" if row.any() else "0.00" for row in expected]


def test_hull_output_is_inside_at_every_position():
    live = explorers.hull_explorer()
    for share in np.linspace(0, 1, 21):
        for temperature in (0.1, 1, 10, 100):
            assert ", inside the hull" in live.draw(share=share, temperature=temperature)


@pytest.mark.parametrize("bandwidth", [0.01, 0.3, 1, 10])
def test_kernel_fit_is_nadaraya_watson(bandwidth):
    live = EXPLORERS["kernel"]()
    numbers = live.compute(bandwidth=bandwidth, query=2.0)
    kernel = np.exp(-((2.0 - POINTS) ** 2) / (2 * bandwidth**2))
    if kernel.sum() > 0:
        assert numbers["value"] == pytest.approx(kernel @ np.cos(POINTS) / kernel.sum())
    assert numbers["fit"][40] == pytest.approx(numbers["value"])  # GRID[40] is 2.0
    live.draw(bandwidth=bandwidth, query=2.0)
    heights = [segment[1][1] for segment in live.picture.moving[2].get_segments()]
    assert np.allclose(heights, numbers["weights"] / numbers["weights"].max())


@pytest.mark.parametrize("head", MINILM_HEADS)
@pytest.mark.parametrize("sentence", ["suitcase", "attention"])
def test_the_head_map_is_the_one_of_the_models_own_framework(head, sentence):
    live = explorers.head_explorer()
    live.controls["head"].value, live.controls["sentence"].value = head, sentence
    found = minilm_head(head, sentence)
    ax = live.picture.axes[0]
    assert np.abs(ax.images[0].get_array() - found.reference).max() < 1e-3
    assert [label.get_text() for label in ax.get_yticklabels()] == list(found.tokens)
    assert ax.images[0].get_extent() == [-0.5, len(found.tokens) - 0.5, len(found.tokens) - 0.5, -0.5]
    for word, step in (("previous", -1), ("self", 0), ("next", 1)):
        assert f"{word} {np.diagonal(found.reference, step).mean():.2f}" in live.picture.summary
    assert f"first {found.reference[1:, 0].mean():.2f}" in live.picture.summary


@pytest.mark.parametrize("head", ["16.0", "1.2", "18.6"])
@pytest.mark.parametrize("start", [0, 20, 1000])
def test_rope_bars_are_the_frameworks_weights_wherever_the_text_starts(head, start):
    live = explorers.rope_explorer(query=15)
    live.controls["head"].value, live.controls["start"].value = head, start
    found = smollm2_head(head, "random")
    bars = [bar.get_height() for bar in live.picture.axes[1].patches]
    assert np.allclose(bars, found.reference[15], atol=1e-5)
    marks = live.picture.axes[1].lines[0].get_ydata()
    plain = scipy.special.softmax(found.Q[15] @ found.K[:16].T / 8)
    assert np.allclose(marks[:16], plain) and not marks[16:].any()
    assert "no weight by more than 1e-12" in live.picture.summary


@pytest.mark.parametrize("offset", [0, 1, 7, 40])
def test_rope_curve_is_the_mean_score_of_all_pairs_at_that_offset(offset):
    live = explorers.rope_explorer(heads=("16.0", "18.6"))
    live.controls["offset"].value = offset
    found = smollm2_head("16.0", "random")
    halves = [x[1:, :32] + 1j * x[1:, 32:] for x in (found.Q, found.K)]
    turns = np.exp(1j * offset * 100000.0 ** (-np.arange(32) / 32))
    mean = np.real((halves[0] * turns) @ halves[1].conj().T / 8).mean()
    (x,), (y,) = live.picture.axes[0].lines[1].get_data()
    assert (x, y) == (offset, pytest.approx(mean))


@pytest.mark.parametrize("layer", range(7))
def test_sense_map_holds_the_cosines_of_that_layer(layer):
    live = explorers.sense_explorer()
    live.controls["layer"].value = layer
    vectors = bank_senses().vectors[:, layer]
    cosines = 1 - scipy.spatial.distance.cdist(vectors, vectors, "cosine")
    assert np.allclose(live.picture.axes[0].images[0].get_array(), cosines)
    assert f"one of each: {cosines[:4, 4:].min():.3f} to {cosines[:4, 4:].max():.3f}" in live.picture.summary
    same = cosines[:4, :4][~np.eye(4, dtype=bool)]
    assert f"both money: {same.min():.3f} to {same.max():.3f}" in live.picture.summary


def kernel(u=(1, 2, 3), v=(1, 2, 3), grid=(1, 2), truth=(1, 2)):
    return explorers.kernel_explorer(u, v, grid, truth)


@pytest.mark.parametrize(
    ("make", "error", "reason"),
    [
        (lambda: explorers.head_explorer(heads="2.0"), TypeError, "heads is '2.0', but must be a list"),
        (lambda: explorers.head_explorer(heads=["2.0", "9.9"]), ValueError, "heads is .*must hold names out of '0.2'"),
        (lambda: explorers.head_explorer(sentences=[]), ValueError, r"sentences is \[\], but must hold names"),
        (lambda: explorers.rope_explorer(text="money"), ValueError, "text is .*'money'.*out of 'gift'"),
        (lambda: explorers.rope_explorer(query=25), ValueError, "query is 25, but must be from 0 to 24"),
        (lambda: explorers.rope_explorer(query=-1), ValueError, "query is -1"),
        (lambda: explorers.rope_explorer(query=True), TypeError, "query is True"),
        (lambda: explorers.pipeline_explorer(["a"] * 5, *QKV), ValueError, "there are 5 labels, but query .4, 5."),
        (lambda: explorers.pipeline_explorer(["a"] * 4, QKV[0][:3], *QKV[1:]), ValueError, "weights .3, 4."),
        (lambda: explorers.pipeline_explorer(["a"] * 4, *(x[None] for x in QKV)), ValueError, "no batch axis"),
        (lambda: explorers.pipeline_explorer(["a"] * 4, *QKV[:2], QKV[2] * np.nan), ValueError, "value holds NaN"),
        (lambda: explorers.pipeline_explorer(["a"] * 4, *QKV[:2], QKV[2][None]), ValueError, "no batch axis"),
        (lambda: kernel(u=[1, 2]), ValueError, r"u .2,. and v .3,. must be lists of numbers"),
        (lambda: kernel(truth=[[1, 2]]), ValueError, r"grid .2,. and truth .1, 2. must be lists of numbers"),
        (lambda: kernel(u=[], v=[]), ValueError, r"u .0,. and v .0,. must be lists of numbers, one or more"),
        (lambda: kernel(v=[1, np.inf, 2]), ValueError, "v holds NaN or infinity"),
        (lambda: kernel(v="abc"), TypeError, "v has dtype <U3, but needs real numbers"),
        (lambda: kernel(grid=[1, 1]), ValueError, "grid must rise, with two numbers or more"),
        (lambda: kernel(grid=[1], truth=[1]), ValueError, "grid must rise, with two numbers or more"),
        (lambda: explorers.forming_explorer(TOKENS, STEPS[::-1], LOSSES, FORMING), ValueError, "steps is .100 "),
        (lambda: explorers.forming_explorer(TOKENS[1:], STEPS, LOSSES, FORMING), ValueError, "'layer 0 head 0' has sh"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(make, error, reason):
    with pytest.raises(error, match=reason):
        make()


def test_the_pipeline_takes_lists_and_one_array_for_all_three():
    live = explorers.pipeline_explorer(["a", "b"], [[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1], [2]])
    assert "sum 1.000" in live.picture.summary
    live = explorers.pipeline_explorer(["a", "b", "a", "$$"], QKV[0], QKV[0], QKV[0])
    assert [len(ax.patches) for ax in live.picture.axes[:5]] == [1, 1, 1, 0, 1]


def test_values_and_outputs_of_the_pipeline_share_one_scale_and_bars_start_at_zero():
    live = explorers.pipeline_explorer(["a", "b", "c", "d"], QKV[0], QKV[1], 10 + np.abs(QKV[2]))
    value, output = (live.picture.axes[i].images[0].get_clim() for i in (3, 4))
    assert value == output
    assert live.picture.axes[7].get_ylim()[0] == 0


def test_rope_asks_from_the_last_position_of_an_ordinary_text():
    assert '"to" (14)' in explorers.rope_explorer(text="gift").picture.summary


READ = {"MiniLM": samples.minilm_maps, "SmolLM2": samples.smollm2_maps}


def choose(live, **values):
    """Move the sliders in this order."""
    for name, value in values.items():
        live.controls[name].value = value


@pytest.mark.parametrize(
    ("model", "text", "layer", "head"),
    [
        ("MiniLM", "money", 2, 0),
        ("MiniLM", "suitcase", 0, 11),
        ("MiniLM", "attention", 5, 3),
        ("SmolLM2", "random", 18, 6),
        ("SmolLM2", "names", 29, 8),
        ("SmolLM2", "keys", 0, 1),
    ],
)
def test_the_model_explorer_shows_the_map_and_the_survey_of_that_head(model, text, layer, head):
    live = explorers.model_explorer(model)
    choose(live, text=text, layer=layer, head=head)
    maps, survey = READ[model](text), samples.head_survey(model)
    left, right = [ax for ax in live.picture.axes if ax.get_xlabel()]
    assert np.array_equal(left.images[0].get_array(), maps.weights[layer, head])
    assert left.images[0].get_clim() == (0, 1)
    for axis in (left.xaxis, left.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == list(maps.tokens)
        assert not any(label.get_parse_math() for label in axis.get_ticklabels())
    n = len(maps.tokens)
    assert left.images[0].get_extent() == [-0.5, n - 0.5, n - 0.5, -0.5] == [*left.get_xlim(), *left.get_ylim()]
    names = ["previous", "next", "self", "first", "delimiter", "duplicate", "induction"]
    assert [label.get_text() for label in right.get_yticklabels()] == names
    assert [bar.get_width() for bar in right.patches] == [survey[name][layer, head] for name in names]
    (ticks,) = right.lines
    assert np.allclose(ticks.get_xdata(), [np.median(survey[name]) for name in names])
    assert np.all(np.abs(ticks.get_ydata() - np.arange(7)) < 0.5), "each tick in the row of its bar"
    assert left.get_title(loc="left") == f'{model} {layer}.{head} on "{text}"'
    bits, distance = survey["entropy"][layer, head], survey["distance"][layer, head]
    assert right.get_title(loc="left") == (
        f"{model} {layer}.{head} over many texts\nentropy {bits:.2f} bits, distance {distance:.1f}"
    )


def test_the_model_explorer_tells_what_it_shows():
    live = explorers.model_explorer("SmolLM2")
    choose(live, text="gift", layer=18, head=6)
    maps, survey = samples.smollm2_maps("gift"), samples.head_survey("SmolLM2")
    top, bottom = live.picture.summary.split("\n\n")
    assert top.splitlines()[0] == 'SmolLM2 18.6 on "gift"'
    for i, line in enumerate(top.splitlines()[2:]):
        row = maps.weights[18, 6, i]
        assert line.split()[0] == str(i) and f"{np.argmax(row)} {maps.tokens[np.argmax(row)]}" in line
        assert line.endswith(f"{row.max():.3f}")
    assert len(top.splitlines()) == 2 + len(maps.tokens)
    told = {line.split()[0]: line.split()[1:] for line in bottom.splitlines()[1:]}
    assert told == {name: [f"{s[18, 6]:.3f}", f"{np.median(s):.3f}"] for name, s in survey.items()}


@pytest.mark.parametrize(("model", "text", "layer", "head"), [("MiniLM", "money", 2, 0), ("SmolLM2", "random", 18, 6)])
def test_the_model_explorer_starts_at_a_head_with_a_job(model, text, layer, head):
    live = explorers.model_explorer(model)
    assert live.values == dict(text=text, layer=layer, head=head)
    assert live.picture.summary.startswith(f'{model} {layer}.{head} on "{text}"')


def test_the_model_explorer_refuses_a_model_that_is_not_there():
    with pytest.raises(ValueError, match="model is 'GPT', but must be one of 'MiniLM', 'SmolLM2'"):
        explorers.model_explorer("GPT")


@pytest.mark.parametrize("model", READ)
def test_the_kept_labels_are_the_pixels_of_labels_drawn_anew(model):
    live = explorers.model_explorer(model)
    for text in ("keys", positions(live.controls["text"])[-1], "keys"):
        live.controls["text"].value = text
    choose(live, layer=1, head=3)
    moved = live._image.value
    for artist in live._moving:
        artist.set_animated(False)
        if isinstance(artist, moving._KeptAxis):
            artist.remove()
            artist.axis.set_animated(False)
    live.picture.canvas.draw()
    assert moved == encode(live.picture.canvas)


def test_forming_starts_with_the_last_step():
    live = EXPLORERS["forming"]()
    assert live.values == {"step": 100} and live.picture.summary.startswith("step 100: ")


@pytest.mark.parametrize("at", range(5))
def test_forming_shows_the_maps_and_the_losses_of_that_step(at):
    live = EXPLORERS["forming"]()
    live.controls["step"].value = STEPS[at]
    curve, *axes = live.picture.axes[:3]
    for ax, (name, values) in zip(axes, FORMING.items()):
        assert np.array_equal(ax.images[0].get_array(), values[at])
        assert ax.images[0].get_clim() == (0, 1)
        A = values[at]
        first, previous = A[1:, 0].mean(), np.mean([A[t, t - 1] for t in range(1, 6)])
        induction = np.mean([A[t, t - 2] for t in (3, 4, 5)])  # the token after the earlier equal one
        facts = [f"previous {previous:.3f}", f"first {first:.3f}", f"induction {induction:.3f}"]
        assert f"{name}: {', '.join(facts)}" in live.picture.summary.splitlines()
        rounded = [f"previous {previous:.2f}", f"first {first:.2f}", f"induction {induction:.2f}"]
        assert ax.get_title(loc="left").split("\n") == [name, *rounded]
        assert [label.get_text() for label in ax.get_xticklabels()] == TOKENS
        assert not any(label.get_parse_math() for label in ax.get_xticklabels())
    assert [label.get_text() for label in axes[0].get_yticklabels()] == TOKENS
    for line, dot, (name, values) in zip(curve.lines[::2], curve.lines[1::2], LOSSES.items()):
        assert (list(line.get_xdata()), list(line.get_ydata())) == (STEPS, list(values))
        assert dot.get_data() == ([STEPS[at]], [values[at]])
        assert line.get_color() == dot.get_color() and line.get_label() == name
        assert f"loss {name} {values[at]:.3f}" in live.picture.summary.splitlines()[0]
    assert curve.get_title(loc="left") == f"step {STEPS[at]}"
    assert [text.get_text() for text in curve.get_legend().get_texts()] == list(LOSSES)


@pytest.mark.parametrize("t", range(4))
def test_the_pipeline_lights_up_one_row_of_each(t):
    live = EXPLORERS["pipeline"]()
    live.controls["t"].value = t
    query, key, value = QKV
    S = query @ key.T / np.sqrt(5)
    A = scipy.special.softmax(S, axis=1)
    shown = [ax.images[0].get_array() for ax in live.picture.axes[:5]]
    assert all(np.allclose(*pair) for pair in zip(shown, (query, S, A, value, A @ value)))
    assert [ax.patches[0].get_y() for ax in live.picture.axes[:5] if ax.patches] == [t - 0.5] * 4
    for ax, row in zip(live.picture.axes[5:], (S[t], A[t], (A @ value)[t])):
        assert np.allclose([bar.get_height() for bar in ax.patches], row)


@pytest.mark.parametrize(
    ("name", "control", "value"),
    [
        ("temperature", "temperature", 3),
        ("head", "sentence", "keys"),
        ("MiniLM", "text", "river"),
        ("MiniLM", "layer", 4),
        ("SmolLM2", "head", 8),
        ("forming", "step", 1),
    ],
)
def test_blitting_gives_the_pixels_of_a_full_drawing(name, control, value):
    live = EXPLORERS[name]()
    live.controls[control].value = value
    moved = live._image.value
    for artist in live._moving:
        artist.set_animated(False)
    live.picture.canvas.draw()
    assert moved == encode(live.picture.canvas)


def test_an_error_stands_in_red_and_the_next_good_value_clears_it():
    live = explorers.temperature_explorer()
    good = live._image.value, live._text.value
    live.compute = fail_below(live.compute, 0.05)
    live.controls["temperature"].value = 0.01
    assert isinstance(live.error, ValueError)
    assert "no &lt;such&gt; temperature" in live._message.value
    assert RED in live._message.value
    assert RED in live._image.layout.border_top
    assert (live._image.value, live._text.value) == good
    live.controls["temperature"].value = 1
    assert live.error is None
    assert live._message.value == ""
    assert RED not in live._image.layout.border_top


def fail_below(compute, limit):
    """The same function, but it fails for low temperatures."""

    def wrapped(query, temperature):
        if temperature < limit:
            raise ValueError("no <such> temperature")
        return compute(query, temperature)

    return wrapped


def test_an_error_in_the_first_drawing_is_raised():
    with pytest.raises(ZeroDivisionError):
        Live(moving.temperature(["a"], [1.0, 2.0]), lambda size: 1 / 0, size=widgets.FloatSlider())


def test_a_move_on_another_thread_draws_on_the_main_one_and_bursts_are_drawn_once():
    threads = []

    async def kernel():
        live = explorers.temperature_explorer()
        draw = live.draw
        live.draw = lambda **values: threads.append(threading.current_thread()) or draw(**values)
        mover = threading.Thread(target=lambda: [setattr(live.controls["temperature"], "value", t) for t in (2, 3, 4)])
        mover.start()
        mover.join()
        assert threads == []
        await asyncio.sleep(0.05)
        return live

    live = asyncio.run(kernel())
    assert threads == [threading.main_thread()]
    assert "temperature 4:" in plain(live._text.value)


def test_2000_moves_leave_no_figure_no_widget_and_no_memory_behind():
    live = EXPLORERS["kernel"]()
    slider = live.controls["bandwidth"]
    values = positions(slider)
    count = len(widgets.widget._instances)

    def move(times):
        for i in range(times):
            slider.value = values[i % len(values)]
        gc.collect()

    move(1400)
    tracemalloc.start()
    move(200)  # what the figure holds at any time is now counted
    before = tracemalloc.get_traced_memory()[0]
    move(300)
    growth = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert growth / 300 < 100, "bytes per move"
    assert len(widgets.widget._instances) == count
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


@pytest.mark.parametrize("name", EXPLORERS)
def test_moves_of_all_sliders_leave_no_artist_no_callback_and_no_widget_behind(name):
    live, rng = EXPLORERS[name](), np.random.default_rng(0)
    start = live.values
    choose(live, **{control: positions(slider)[-1] for control, slider in live.controls.items()})
    choose(live, **start)
    before = census(live)
    for _ in range(4):
        for slider in live.controls.values():
            slider.value = positions(slider)[rng.integers(len(positions(slider)))]
            assert live.error is None
    choose(live, **start)
    assert census(live) == before


def census(live):
    """How many artists the picture has, functions it would call, widgets, and observers of the sliders."""
    axes = live.picture.axes
    holders = [live.picture.canvas, *axes, *(axis for ax in axes for axis in (ax.xaxis, ax.yaxis)), *images(axes)]
    functions = [len(names) for holder in holders for names in holder.callbacks.callbacks.values()]
    observers = [
        len(functions)
        for slider in live.controls.values()
        for kinds in slider._trait_notifiers.values()
        for functions in kinds.values()
    ]
    artists = len(live.picture.findobj()), len(live._moving)
    return artists, sum(functions), sum(observers), len(widgets.widget._instances)


def images(axes):
    return [image for ax in axes for image in ax.images]


@pytest.mark.parametrize("name", ["hull", "forming"])
def test_ctrl_c_during_a_move_marks_the_picture_and_the_next_move_is_right(name, monkeypatch):
    live, right = EXPLORERS[name](), EXPLORERS[name]()
    control, slider = next(iter(live.controls.items()))
    good, (value, following) = live._image.value, [v for v in positions(slider) if v != slider.value][:2]
    monkeypatch.setattr(live, "_blit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        slider.value = value
    monkeypatch.undo()
    assert live._image.value == good and RED in live._image.layout.border_top
    assert "KeyboardInterrupt" in live._message.value
    slider.value = right.controls[control].value = following
    assert live.error is None and live._message.value == ""
    assert live._image.value == right._image.value


def interrupt(*_arguments, **_options):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", EXPLORERS)
def test_without_a_kernel_there_is_a_picture_and_its_numbers(name):
    live = EXPLORERS[name]()
    data, metadata = live._repr_mimebundle_()
    assert data["text/plain"] == repr(live) == live.picture.summary
    assert data["image/png"].startswith("iVBOR")
    assert metadata["image/png"]["width"] == round(live.picture.get_figwidth() * 100)


def plain(markup):
    """The text of a <pre> element."""
    text = re.sub(r"<[^>]+>", "", markup)
    return text.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@pytest.mark.parametrize(
    ("given", "error", "reason"),
    [
        ({"positions": 1}, ValueError, "positions is 1, but must be from 2 to 80"),
        ({"positions": 81}, ValueError, "positions is 81"),
        ({"positions": 16.0}, TypeError, "positions is 16.0, but must be one whole number"),
        ({"queries": 0}, ValueError, "queries is 0, but must be from 1 to 1000"),
        ({"queries": 1001}, ValueError, "queries is 1001"),
        ({"queries": True}, TypeError, "queries is True"),
        ({"seed": -1}, ValueError, "seed is -1, but must be 0 or more"),
        ({"seed": None}, TypeError, "seed is None, but must be one whole number"),
    ],
)
def test_scaling_refuses_numbers_out_of_range_by_name(given, error, reason):
    with pytest.raises(error, match=reason):
        explorers.scaling_explorer(**given)


@pytest.mark.parametrize(("positions", "queries"), [(2, 1), (80, 2), (np.int64(2), 3)])
def test_scaling_draws_at_the_ends_of_its_ranges(positions, queries):
    live = explorers.scaling_explorer(positions, queries)
    assert live.error is None and len(bars(live.picture.axes[0])) == positions


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: explorers.head_explorer(heads=[["0.8"]]), "heads has .'0.8'. where a name is expected"),
        (lambda: explorers.head_explorer(sentences=["money", 3]), "sentences has 3 where a name .* such as 'suitcase'"),
        (lambda: explorers.mask_explorer(head=["0.8"]), "head has .'0.8'. where"),
        (lambda: explorers.mask_explorer(sentence=None), "sentence has None where"),
    ],
)
def test_a_name_that_is_no_string_is_refused_by_name(make, reason):
    with pytest.raises(TypeError, match=reason):
        make()


@pytest.mark.parametrize(("size", "words"), [(0, "0 positions"), (1, "1 position"), (2, "2 positions")])
def test_the_window_is_told_in_good_english(size, words):
    live = explorers.mask_explorer()
    live.controls["kind"].value, live.controls["size"].value = "window", size
    assert live.picture.summary.startswith(f"at most {words} away:")


def test_the_size_of_a_mask_that_has_none_cannot_be_moved():
    live = explorers.mask_explorer()
    for kind in positions(live.controls["kind"]):
        live.controls["kind"].value = kind
        before = live._image.value
        live.controls["size"].value = 4 if live.controls["size"].value == 3 else 3
        assert live.controls["size"].disabled == (live._image.value == before), kind
