"""The notebooks in a real JupyterLab and a real browser, as a reader meets them.

Without playwright or a browser these tests are skipped; where CI=true they fail instead.
"""

import json
import os
from importlib.metadata import version
from pathlib import Path

import lab
import pytest

from attn_helpers import temperature_explorer
from attn_helpers.live import RED
from attn_helpers.picture import encode

ROOT = Path(__file__).resolve().parents[1]
ARTIFACTS = ROOT / "artifacts"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
STEP = 0.05  # of the temperature slider, in powers of 10
RACE_SECONDS = 20

EXPLORER = """
from attn_helpers import temperature_explorer

explorer = temperature_explorer()
explorer
"""
FAULT = """
right = explorer.compute

def compute(query, temperature):
    if temperature > 2:
        raise ValueError("planted <b>fault</b>")
    return right(query, temperature)

explorer.compute = compute
"""
FIGURE = r"""
import collections, hashlib, io, json, threading, time
import matplotlib.pyplot as plt
import numpy as np

def figure():
    '''Draw with pyplot as a reader would and return a hash of the picture.'''
    plt.figure(figsize=(5, 4))
    x = np.linspace(0, 6, 200)
    for shift in range(8):
        plt.plot(x, np.sin(x + shift))
    plt.title(r"$\alpha_i=\frac{e^{s_i/\sqrt{d_k}}}{\sum_j e^{s_j/\sqrt{d_k}}}$")
    plt.xlabel(r"$\sqrt{d_k}$")
    plt.tight_layout()
    file = io.BytesIO()
    plt.savefig(file)
    plt.close()
    return hashlib.sha256(file.getvalue()).hexdigest()

def beside(threads):
    return sum(thread is not threading.main_thread() for thread in threads)

reference = figure()
moves, drawings, compute = [], [], explorer.compute  # the threads of each
explorer.controls["temperature"].observe(lambda change: moves.append(threading.current_thread()), "value")
explorer.compute = lambda **values: drawings.append(threading.current_thread()) or compute(**values)
"""
RACE = f"""
found, end = collections.Counter(), time.monotonic() + {RACE_SECONDS}
while time.monotonic() < end:
    try:
        found["right" if figure() == reference else "wrong"] += 1
    except Exception as error:
        found[repr(error)[:200]] += 1
print(json.dumps(dict(found=found, moves=beside(moves))))
"""
DRAWINGS = "print(len(drawings), beside(drawings))"


@pytest.fixture(scope="module")
def session():
    if reason := lab.missing():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    with lab.running() as session:
        yield session


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request, session):
    """A notebook of the repository after Run All; its screenshots stay in artifacts/."""
    with session.open(request.param) as notebook:
        try:
            notebook.run_all()
        finally:
            notebook.screenshots(ARTIFACTS, request.param.stem)
        yield notebook


@pytest.fixture(scope="module")
def explorer(session):
    """A new notebook: the temperature explorer in cell 0, a planted fault in cell 1, not yet run."""
    with session.open_cells(EXPLORER, FAULT) as notebook:
        notebook.run(0)
        yield notebook


def test_every_cell_runs(notebook):
    assert notebook.errors() == []
    assert notebook.not_run() == []


def test_every_slider_has_a_picture_and_a_name(notebook):
    sliders = [slider for panel in notebook.panels for slider in panel.sliders]
    assert len(sliders) == notebook.page.locator(lab.HANDLE).count() > 0
    for slider in sliders:
        # ipywidgets gives the handle a role and numbers but no name of its own: the name is the label before it
        assert slider.role == "slider"
        assert slider.name and slider.readout


def test_tab_reaches_every_slider_in_order(notebook):
    assert notebook.sliders_by_tab() == list(range(notebook.page.locator(lab.HANDLE).count()))


def test_arrow_keys_move_every_slider(notebook):
    for panel in notebook.panels:
        for slider in panel.sliders:
            there, back = ("ArrowRight", "ArrowLeft") if slider.share < 0.5 else ("ArrowLeft", "ArrowRight")
            start, readout = panel.view(), slider.readout
            press_and_wait(panel, slider, there)
            assert slider.readout != readout, slider.name
            slider.press(back)
            panel.wait_for(start)
            assert slider.readout == readout, slider.name


def test_mouse_moves_every_slider(notebook):
    for panel in notebook.panels:
        for slider in panel.sliders:
            end, far_key, near_key = (1, "End", "Home") if slider.share < 0.5 else (0, "Home", "End")
            far = press_and_wait(panel, slider, far_key)
            press_and_wait(panel, slider, near_key)
            slider.drag(end)
            panel.wait_for(far)
        assert panel.alert() == ""


def test_predictions_answer(notebook):
    assert notebook.predictions
    for i, prediction in enumerate(notebook.predictions):
        answer = prediction.guess if i % 2 else prediction.guess_by_keyboard
        last = prediction.options.count() - 1
        answer(last)
        assert prediction.reply().startswith("Your guess: ")
        assert prediction.options.nth(last).is_checked()


def test_nothing_comes_from_the_network(notebook):
    assert notebook.outside == []


def test_the_console_stays_quiet(notebook):
    assert notebook.problems == []


def test_an_arrow_key_is_one_step_and_shows_that_picture(explorer):
    (panel,) = explorer.panels
    _, slider = panel.sliders
    position = slider.value
    press_and_wait(panel, slider, "ArrowRight")
    assert slider.value == pytest.approx(position + STEP)
    assert panel.view() == drawn_here(slider.value)


def test_an_exception_in_a_callback_is_shown_and_the_next_good_value_clears_it(explorer):
    (panel,) = explorer.panels
    _, slider = panel.sliders
    explorer.run(1)
    slider.press("Home")
    good = panel.wait_for(drawn_here(-2))
    slider.press("End")
    lab.wait_until(explorer.page, panel.alert, "the error message")
    assert "ValueError: planted <b>fault</b>" in panel.alert()
    assert "'temperature': 100.0" in panel.alert()
    assert panel.style("pre[role=alert]", "color") == panel.style("> img", "border-top-color") == css(RED)
    assert panel.style("> img", "border-top-width") != "0px"
    assert panel.view() == good  # stale, and marked as such
    slider.press("Home")
    lab.wait_until(explorer.page, lambda: not panel.alert(), "the error message to go")
    assert panel.style("> img", "border-top-color") != css(RED)
    assert panel.view() == good


def test_sliders_moved_while_a_cell_draws_spoil_nothing(session):
    """JupyterLab >= 4.4 with ipykernel >= 7 calls a slider's callback on a thread beside the running cell."""
    with session.open_cells(EXPLORER, FIGURE, RACE, DRAWINGS) as notebook:
        notebook.run(0)
        notebook.run(1)
        (panel,) = notebook.panels
        _, slider = panel.sliders
        press_and_wait(panel, slider, "ArrowRight")  # JupyterLab starts that thread for the messages after the first
        notebook.start(2)
        slider.drag_about(RACE_SECONDS - 1)
        notebook.wait_for_run()
        assert notebook.errors() == []
        (output,) = notebook.outputs(2)  # one line of text: no half-drawn figure was put out
        check_race(json.loads(output["text"]))
        panel.wait_for(drawn_here(slider.value))
        press_and_wait(panel, slider, "ArrowLeft")  # the kernel is alive
        assert panel.alert() == ""
        notebook.run(3)
        drawn, drawn_beside = map(int, notebook.outputs(3)[0]["text"].split())
        assert drawn >= 2 and drawn_beside == 0, "the live picture was drawn on a thread beside the cell"


def check_race(result):
    assert list(result["found"]) == ["right"], result
    assert result["found"]["right"] >= 10, "too few figures to tell"
    if int(version("ipykernel").split(".")[0]) >= 7:
        assert result["moves"] >= 10, "the slider did not move beside the cell: nothing was tested"


def press_and_wait(panel, slider, key):
    """Press a key on a slider and wait until its picture shows."""
    start = panel.view()
    slider.press(key)
    return panel.wait_for_other(start)


def drawn_here(exponent):
    """What the temperature explorer shows at a temperature of 10 ** exponent, drawn in this process."""
    live = temperature_explorer()
    live.controls["temperature"].value = 10**exponent
    return lab.View(encode(live.picture.canvas), live.picture.summary)


def css(color):
    """Write #RRGGBB as a browser does."""
    red, green, blue = bytes.fromhex(color[1:])
    return f"rgb({red}, {green}, {blue})"
