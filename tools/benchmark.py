"""Measure what a slider costs, beside ipywidgets.interact, and what attention costs; print one table.

    python tools/benchmark.py               3 minutes on two cores; exit status 1 where a target is missed
    python tools/benchmark.py --no-browser

A ratio compares two medians of one interleaved run, so that a busy machine slows both sides alike.
interact draws the same picture at the same size and dpi: a new figure for each move, turned into
PNG by IPython's print_figure, as plt.show() in a notebook does. What pyplot itself costs is left out.
Attention is compared with its two matrix products alone: best CPU times of one interleaved run, one thread.
"""

import argparse
import base64
import gc
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import NamedTuple

import ipywidgets
import lab
import matplotlib.pyplot as plt
import nbclient
import nbformat
import numpy as np
import PIL.Image
import psutil
from IPython.core.pylabtools import print_figure
from IPython.display import Image, display
from jupyter_client.manager import start_new_kernel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from attn_helpers import SENTENCES, moving, scaled_dot_product_attention, temperature_explorer
from attn_helpers.blockwise import blockwise_attention

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PACKAGES = ("numpy", "matplotlib", "ipywidgets", "ipykernel", "jupyterlab")
PICTURES = {"live": f"{lab.PANEL} > img", "interact": ".widget-interact img"}  # where they are on the page
MARK = "benchmark result: "


class Row(NamedTuple):
    """One line of the table; met is None where there is no target."""

    what: str
    value: str
    target: str = ""
    met: bool | None = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-browser", action="store_true", help="leave out what needs a browser")
    no_browser = "--no-browser" if parser.parse_args().no_browser else lab.missing()
    rows = [
        *versions(),
        *cpu_per_move(),
        *memory(),
        *in_browser(no_browser),
        *import_time(),
        *install_size(),
        *notebook_times(),
        *attention_time(),
        *attention_memory(),
    ]
    print_table(rows)
    return int(any(row.met is False for row in rows))


def versions():
    return [Row("python", platform.python_version()), *(Row(name, version(name)) for name in PACKAGES)]


def cpu_per_move():
    """CPU time of the kernel's thread for one move."""
    times = in_kernel("time_moves()")
    live, interact, fixed = (statistics.median(times[way]) * 1e3 for way in ("live", "interact", "fixed"))
    return [
        Row("kernel CPU per move, interact", f"{interact:.1f} ms"),
        Row("kernel CPU per move, Live", f"{live:.1f} ms"),
        at_least(6, "  interact / Live", interact / live),
        Row("  interact without a layout engine / Live", f"{fixed / live:.1f}"),
    ]


def memory():
    """What 2,000 moves leave behind in the kernel."""
    left = in_kernel("count_after_moves(2000)")
    return [
        exactly(0, "2,000 moves: open pyplot figures", left["figures"]),
        exactly(0, "2,000 moves: more widgets than before", left["widgets"]),
        Row("2,000 moves: more resident memory", f"{left['bytes'] / 2**20:.1f} MB"),
    ]


def in_browser(reason):
    """The time from a key press to the changed picture, and a recording of a drag."""
    if reason:
        return [Row("in the browser", f"skipped: {reason}")]
    cells = (f"{IMPORT}\nbenchmark.temperature_explorer()", "benchmark.interact_explorer()")
    with lab.running() as session, session.open_cells(*cells) as notebook:
        notebook.run_all()
        times = time_keys(notebook)
        frames, blank = record_drag(notebook)
    live, interact = (statistics.median(times[way]) for way in ("live", "interact"))
    return [
        Row("key press to changed picture, interact", f"{interact:.0f} ms"),
        Row("key press to changed picture, Live", f"{live:.0f} ms"),
        at_least(3, "  interact / Live", interact / live),
        at_least(10, "drag of 3 s: frames recorded", frames),
        exactly(0, "drag of 3 s: frames with a blank picture", blank),
    ]


def import_time(runs=5):
    """The time of `import attn_helpers` in a new process, and the part of it that is this package's own."""
    code = (
        "import time; start = time.perf_counter(); import numpy, matplotlib.figure, ipywidgets, PIL.Image; "
        "middle = time.perf_counter(); import attn_helpers; print(time.perf_counter() - start, "
        "time.perf_counter() - middle)"
    )
    times = [
        [float(word) for word in subprocess.check_output([sys.executable, "-c", code], text=True).split()]
        for _ in range(runs)
    ]
    whole, own = np.median(times, axis=0)
    return [
        Row("import attn_helpers", f"{whole:.2f} s"),
        Row("  without numpy, matplotlib and ipywidgets", f"{own:.2f} s"),
    ]


def install_size():
    """Disk space of this package, and of all packages that requirements.txt brings, without compiled Python."""
    own = [path for path in (ROOT / "attn_helpers").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    found = needed([line for line in lines if line[:1].isalpha()], {})
    others = [path.locate() for package in found.values() for path in package.files if path.suffix != ".pyc"]
    return [
        Row("install size, attn_helpers with its data", megabytes(own)),
        Row(f"  the other {len(found)} packages", megabytes(others)),
    ]


def needed(requirements, found):
    """The installed packages that satisfy the requirements, and theirs in turn, by name."""
    for requirement in map(Requirement, requirements):
        name, marker = canonicalize_name(requirement.name), requirement.marker
        if name not in found and (marker is None or marker.evaluate({"extra": ""})):
            try:
                package = found[name] = distribution(name)
            except PackageNotFoundError:  # for another platform or Python
                continue
            needed(package.requires or (), found)
    return found


def megabytes(paths):
    return f"{sum(path.stat().st_size for path in paths if path.exists()) / 1e6:.1f} MB"


def notebook_times():
    """How long each notebook runs, with the start of its kernel."""
    rows = []
    for path in NOTEBOOKS:
        client = nbclient.NotebookClient(nbformat.read(path, as_version=4), timeout=600, kernel_name="python3")
        start = time.perf_counter()
        client.execute(stderr=subprocess.DEVNULL)
        rows.append(Row(f"run {path.name}", f"{time.perf_counter() - start:.1f} s"))
    return rows


def attention_time():
    """CPU time of attention as a multiple of its two matrix products, Q @ K^T and A @ V, alone."""
    rows = []
    for n in (512, 2048):
        best = {way: min(times) for way, times in on_one_thread(f"time_attention({n})").items()}
        rows += [
            Row(f"two matrix products, n = {n}", f"{best['products'] * 1e3:.1f} ms"),
            at_most(2, "  attention / products", best["full"] / best["products"]),
            at_most(1.3, "  blockwise / products", best["blockwise"] / best["products"]),
        ]
    return rows


def attention_memory():
    """Memory of attention beyond input and output."""
    peaks = on_one_thread("attention_peaks(2048)")
    return [
        Row("memory of attention, n = 2048", f"{peaks['full'] / 2**20:.0f} MiB"),
        at_most(4, "memory of blockwise, n = 2048, MiB", peaks["blockwise"] / 2**20),
        at_most(4, "  with a mask and causal, MiB", peaks["blockwise, masked"] / 2**20),
    ]


def at_most(bound, what, number):
    return Row(what, f"{number:.3g}", f"<= {bound}", number <= bound)


def at_least(bound, what, number):
    return Row(what, f"{number:.3g}", f">= {bound}", number >= bound)


def exactly(wanted, what, number):
    return Row(what, str(number), str(wanted), number == wanted)


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        verdict = {True: "ok", False: "MISSED", None: ""}[row.met]
        print(f"{row.what:{widths[0]}}  {row.value:>{widths[1]}}  {row.target:>{widths[2]}}  {verdict}".rstrip())


# In the kernel


IMPORT = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import benchmark, json"


def in_kernel(call):
    """Evaluate a call of one of the functions below in a new ipykernel; return its result."""
    manager, client = start_new_kernel(stderr=subprocess.DEVNULL)
    texts = []
    try:
        reply = client.execute_interactive(
            f"{IMPORT}\nprint({MARK!r} + json.dumps(benchmark.{call}))",
            output_hook=lambda message: texts.append(message["content"].get("text", "")),
            timeout=600,
        )["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    if reply["status"] != "ok":
        raise RuntimeError(f"{call}: {reply['ename']}: {reply['evalue']}")
    return json.loads("".join(texts).split(MARK)[1])


def time_moves(moves=100, warm_up=10):
    """Move the temperature of each way in turn; list the CPU seconds of each move after the warm-up."""
    sliders = {
        "live": temperature_explorer().controls["temperature"],
        "interact": interact_explorer().children[1],
        "fixed": interact_explorer(layout="none").children[1],
    }
    times = {way: [] for way in sliders}
    for value in 10 ** np.random.default_rng(0).uniform(-2, 2, warm_up + moves):
        for way, slider in sliders.items():
            start = time.thread_time()
            move(slider, value)
            times[way].append(time.thread_time() - start)
    return {way: all_times[warm_up:] for way, all_times in times.items()}


def count_after_moves(moves):
    """Move Live's slider many times; count what is there afterwards and was not before."""
    slider = temperature_explorer().controls["temperature"]
    values = 10 ** np.random.default_rng(0).uniform(-2, 2, moves)
    for value in values[:200]:  # until the caches are full
        move(slider, value)
    before = _holdings()
    for value in values:
        move(slider, value)
        time.sleep(0.001)  # lets the kernel send what it has queued
    return {name: number - before[name] for name, number in _holdings().items()}


def _holdings():
    gc.collect()
    return {
        "figures": len(plt.get_fignums()),
        "widgets": len(ipywidgets.widgets.widget._instances),
        "bytes": psutil.Process().memory_info().rss,
    }


def move(slider, value):
    """Do what the kernel does when the page reports that a slider moved."""
    data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
    slider._handle_msg({"content": {"data": data}, "buffers": []})


def interact_explorer(layout="constrained"):
    """The temperature explorer as ipywidgets.interact makes it: a new figure for each move."""
    live = temperature_explorer()
    words, grid = SENTENCES["money"].split(), np.logspace(-2, 2, 81)

    def redraw(query, temperature):
        picture = moving.temperature(words, grid)
        picture.set_layout_engine(layout)
        picture.show(**live.compute(query=query, temperature=temperature))
        display(Image(print_figure(picture)))

    query, temperature = live.controls.values()
    return ipywidgets.interactive(
        redraw,
        query=ipywidgets.SelectionSlider(options=query.options),
        temperature=ipywidgets.FloatLogSlider(
            value=temperature.value, min=temperature.min, max=temperature.max, step=temperature.step
        ),
    )


# In a process of its own


def on_one_thread(call):
    """Evaluate a call of one of the functions below where matrix products have one thread; return its result."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    code = f"{IMPORT}\nprint({MARK!r} + json.dumps(benchmark.{call}))"
    text = subprocess.check_output([sys.executable, "-c", code], text=True, env={**os.environ, **threads})
    return json.loads(text.split(MARK)[1])


def time_attention(n, rounds=12):
    """CPU seconds of attention and of its products, in turn; each twice, since the first finds cold memory."""
    query, key, value = _heads(n)
    ways = {
        "products": lambda: (query @ key.swapaxes(-1, -2)) @ value,
        "full": lambda: scaled_dot_product_attention(query, key, value),
        "blockwise": lambda: blockwise_attention(query, key, value),
    }
    times = {way: [] for way in ways}
    for _ in range(rounds):
        for way, function in ways.items():
            for _ in range(2):
                start = time.thread_time()
                function()
                times[way].append(time.thread_time() - start)
    return times


def attention_peaks(n):
    """The most bytes that each way holds at once, beyond its input and its output."""
    arrays, masked = _heads(n), dict(mask=np.arange(n)[None] % 7 > 0, is_causal=True)
    return {
        "full": _peak(lambda: scaled_dot_product_attention(*arrays)[0]) - arrays[0].nbytes,
        "blockwise": _peak(lambda: blockwise_attention(*arrays)) - arrays[0].nbytes,
        "blockwise, masked": _peak(lambda: blockwise_attention(*arrays, **masked)) - arrays[0].nbytes,
    }


def _heads(n):
    """Query, key and value of 8 heads of width 64."""
    return np.random.default_rng(0).normal(size=(3, 8, n, 64)).astype(np.float32)


def _peak(function):
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


# In the browser


def time_keys(notebook, rounds=5, keys=8):
    """Press arrow keys on the temperature slider of both ways in turn; list the ms until each changed picture."""
    page = notebook.page
    sliders = {
        "live": notebook.panels[0].sliders[1],
        "interact": lab.Slider(page, page.locator(".widget-interact .widget-slider").nth(1)),
    }
    times = {way: [] for way in sliders}
    for turn in range(rounds):
        for way, slider in sliders.items():
            for _ in range(keys):
                page.evaluate(_WATCH, PICTURES[way])
                slider.press("ArrowLeft" if turn % 2 else "ArrowRight")
                times[way].append(page.evaluate("() => window.labWatch"))
                page.wait_for_timeout(60)
    return times


def record_drag(notebook, seconds=3):
    """Record the screen while Live's slider is dragged; count the frames and those without the picture."""
    (panel,) = notebook.panels
    slider, frames = panel.sliders[1], []
    slider.handle.scroll_into_view_if_needed()
    box = panel.image.bounding_box()
    recorder = notebook.page.context.new_cdp_session(notebook.page)

    def keep(event):
        frames.append(base64.b64decode(event["data"]))
        recorder.send("Page.screencastFrameAck", {"sessionId": event["sessionId"]})

    recorder.on("Page.screencastFrame", keep)
    recorder.send("Page.startScreencast", {"format": "png"})
    slider.drag_about(seconds)
    recorder.send("Page.stopScreencast")
    ink = np.array([_ink(frame, box) for frame in frames])
    return len(frames), int((ink < np.median(ink) / 2).sum())


def _ink(frame, box):
    """The share of pixels that are not white in the place of the picture."""
    image = PIL.Image.open(io.BytesIO(frame)).convert("L")
    scale = image.width / lab.SIZE["width"]
    left, top, right, bottom = box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]
    return np.mean(np.asarray(image.crop([round(scale * edge) for edge in (left, top, right, bottom)])) < 200)


_WATCH = """selector => {
    const picture = () => document.querySelector(selector);
    const before = picture().src;
    let start = null;
    document.addEventListener('keydown', event => { start = event.timeStamp }, { capture: true, once: true });
    window.labWatch = new Promise(resolve => {
        const look = () => {
            const now = picture();
            const changed = start !== null && now?.complete && now.naturalWidth && now.src !== before;
            if (changed) resolve(performance.now() - start); else requestAnimationFrame(look);
        };
        look();
    });
    return null;
}"""


if __name__ == "__main__":
    sys.exit(main())
