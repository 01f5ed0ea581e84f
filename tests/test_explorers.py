"""Every slider over its whole range, without a browser."""

import asyncio
import gc
import re
import sys
import threading
import tracemalloc

import ipywidgets as widgets
import numpy as np
import pytest
import scipy.special

from attn_helpers import SENTENCES, explorers, plots, word_vectors
from attn_helpers.live import RED, Live

GRID = np.linspace(0, 5, 101)
POINTS = np.linspace(0.1, 4.9, 30)
EXPLORERS = {
    "temperature": explorers.temperature_explorer,
    "hull": explorers.hull_explorer,
    "kernel": lambda: explorers.kernel_explorer(POINTS, np.cos(POINTS), GRID, np.sin(GRID)),
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
    live.controls[control].value = positions(live.controls[control])[-1]
    assert live._image.value != before[0]
    assert live._text.value != before[1]


@pytest.mark.parametrize("name", EXPLORERS)
def test_each_control_has_a_description_and_holds_the_value_asked_for(name):
    for control in EXPLORERS[name]().controls.values():
        assert control.description
        for value in positions(control)[:: max(1, len(positions(control)) // 10)]:
            control.value = value
            assert control.value == pytest.approx(value, rel=1e-6) if not isinstance(value, str) else value


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


def test_blitting_gives_the_pixels_of_a_full_drawing():
    live = explorers.temperature_explorer()
    live.controls["temperature"].value = 3
    moved = live._image.value
    for artist in live._moving:
        artist.set_animated(False)
    live.picture.canvas.draw()
    assert moved == plots.encode(live.picture.canvas)


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
        Live(plots.temperature(["a"], [1.0, 2.0]), lambda size: 1 / 0, size=widgets.FloatSlider())


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
def test_without_a_kernel_there_is_a_picture_and_its_numbers(name):
    live = EXPLORERS[name]()
    data, metadata = live._repr_mimebundle_()
    assert data["text/plain"] == repr(live) == live.picture.summary
    assert data["image/png"].startswith("iVBOR")
    assert metadata["image/png"]["width"] == live.picture.get_figwidth() * 100


def plain(markup):
    """The text of a <pre> element."""
    text = re.sub(r"<[^>]+>", "", markup)
    return text.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
