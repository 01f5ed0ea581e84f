"""Every figure of the notebooks: arrays and labels in, a Picture out. Never pyplot.

Each function returns a Picture. The ones that can move also give it `show(...)`, which
changes the artists in place and returns the text summary of what they now show.
"""

import base64
import functools
import io
import math

import matplotlib
import numpy as np
import PIL.Image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.tri import Triangulation

BLUE, ORANGE, GREEN, GREY, LIGHT = "#0072B2", "#D55E00", "#00785A", "#6B6B6B", "#DCE9F2"
LIVE_DPI = 100  # a picture that moves has a quarter of the pixels of one that stands still
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9A9A9A",
    "axes.grid": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "xtick.color": "#4A4A4A",
    "ytick.color": "#4A4A4A",
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


class Picture(Figure):
    """A matplotlib Figure with a text summary; as the last line of a cell it shows both.

    width, height  in inches; an inch takes 100 pixels on the page, and dpi pixels of the file
    summary        the numbers the picture shows, as text: what a screen reader can read
    moving         the artists that show() changes
    """

    def __init__(self, width, height, dpi=200):
        super().__init__((width, height), dpi=dpi, layout="constrained", facecolor="white")
        FigureCanvasAgg(self)
        self.summary, self.moving, self.show = "", [], None

    def _repr_mimebundle_(self, include=None, exclude=None):
        self.canvas.draw()
        return mimebundle(self)


def mimebundle(picture):
    """What Jupyter shows and saves for a picture as its canvas holds it: (data, metadata)."""
    png = encode(picture.canvas, small=True)
    data = {"image/png": base64.b64encode(png).decode("ascii"), "text/plain": picture.summary}
    return data, {"image/png": {"width": round(picture.get_figwidth() * 100)}}


def encode(canvas, small=False):
    """Turn what an Agg canvas holds into PNG bytes: at once, or small (256 colours, 4 times the time)."""
    image = PIL.Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    if small:
        image = image.convert("P", palette=PIL.Image.Palette.ADAPTIVE)
    file = io.BytesIO()
    image.save(file, "png", compress_level=9 if small else 1)
    return file.getvalue()


def styled(function):
    """Run a plot function under STYLE and leave matplotlib's settings as they were."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with matplotlib.rc_context(STYLE):
            return function(*args, **kwargs)

    return wrapper


def table(columns):
    """Lay out {heading: list} as aligned text: words to the left, numbers with three decimals to the right."""
    cells = {
        head: [v if isinstance(v, str) else f"{_no_minus(v):.3f}" for v in values] for head, values in columns.items()
    }
    lines = []
    for row in zip(*([head, *column] for head, column in cells.items())):
        parts = []
        for (head, values), text in zip(columns.items(), row):
            size = max(len(head), *map(len, cells[head]))
            parts.append(text.ljust(size) if isinstance(values[0], str) else text.rjust(size))
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


@styled
def scores_and_weights(labels, scores, weights):
    """Bars of one query's scores beside the weights that softmax makes of them.

    labels  n strings, in the order of the sentence; scores, weights (n,)
    """
    _check_labels(labels, scores=scores, weights=weights)
    picture = Picture(8.4, 0.9 + 0.28 * len(labels))
    left, right = picture.subplots(1, 2, sharey=True)
    _bars(left, labels, scores, GREY, "{:.1f}", min(0, *scores), max(scores))
    _bars(right, labels, weights, BLUE, "{:.3f}", 0, 1)
    left.set(title="scores  $q \\cdot x_i$", xlabel="score")
    right.set(title="weights  softmax(scores), sum 1", xlabel="weight")
    picture.summary = table({"position": list(labels), "score": scores, "weight": weights})
    return picture


@styled
def weight_panels(labels, panels):
    """Bars of several weight distributions over the same positions, side by side.

    labels  n strings; panels {title: weights (n,)}
    """
    _check_labels(labels, **panels)
    picture = Picture(8.4, 1.1 + 0.28 * len(labels))
    for ax, (title, weights) in zip(picture.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items()):
        _bars(ax, labels, weights, BLUE, "{:.3f}", 0, 1)
        ax.set(title=title, xlabel="weight")
    picture.summary = table({"position": list(labels), **panels})
    return picture


@styled
def decay(x, measured, theory, xlabel, ylabel):
    """Measured points and the values that theory gives, on two logarithmic axes.

    x, measured, theory  (n,) each, all positive
    """
    picture = Picture(6.4, 3.4)
    ax = picture.subplots()
    ax.loglog(x, theory, color=GREY, lw=1.2, label="theory")
    ax.loglog(x, measured, "o", color=BLUE, ms=6, label="measured")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    _plain_log_ticks(ax.xaxis)
    _plain_log_ticks(ax.yaxis, (1, 2, 5))
    ax.grid(True, which="major", color="#E4E4E4")
    ax.legend()
    picture.summary = table({xlabel: [f"{v:,.0f}" for v in x], ylabel: measured, "theory": theory})
    return picture


@styled
def timeline(lanes):
    """Events in time, one lane for each kind.

    lanes  {lane title: [(year as a number, text), ...]}, texts above and below their dots in turn
    """
    picture = Picture(8.4, 0.7 + 1.15 * len(lanes))
    ax = picture.subplots()
    events = [(title, year, text) for title, lane in lanes.items() for year, text in lane]
    for row, lane in enumerate(lanes.values()):
        color = (BLUE, ORANGE, GREEN)[row % 3]
        ax.axhline(-row, color="#D8D8D8", lw=1.2, zorder=0)
        ax.plot([year for year, _ in lane], [-row] * len(lane), "o", ms=8, color=color)
        for i, (year, text) in enumerate(lane):
            offset, va = ((0, 9), "bottom") if i % 2 == 0 else ((0, -9), "top")
            ax.annotate(text, (year, -row), offset, textcoords="offset points", ha="center", va=va, fontsize=9)
    years = [year for _, year, _ in events]
    ax.set_yticks(range(0, -len(lanes), -1), list(lanes))
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(-len(lanes) + 0.4, 0.6), xlim=(min(years) - 0.45, max(years) + 0.45))
    ax.set_xticks(range(math.floor(min(years)), math.ceil(max(years)) + 1))
    ax.set_xlabel("year")
    ax.spines[["left", "bottom"]].set_visible(False)
    picture.summary = "\n".join(f"{title}: {' '.join(text.split())}" for title, _year, text in events)
    return picture


@styled
def temperature(labels, temperatures):
    """Weights at one temperature beside the effective number of positions at all of them.

    labels        n strings
    temperatures  (m,) the grid of the curve
    show(query, temperature, weights (n,), bits, curve (m,)): curve in effective positions
    """
    n = len(labels)
    picture = Picture(8.6, 0.9 + 0.3 * n, LIVE_DPI)
    left, right = picture.subplots(1, 2, width_ratios=(1.15, 1))
    bars, texts = _bars(left, labels, np.zeros(n), BLUE, "{:.3f}", 0, 1)
    left.set(xlabel="weight")
    title = left.set_title("", loc="left")
    (line,) = right.semilogx(temperatures, np.ones(len(temperatures)), color=GREY)
    (dot,) = right.plot([1], [1], "o", color=ORANGE, ms=9, zorder=4)
    for height, name, side, t in (
        (n, f"the mean of all {n}", "left", temperatures[0]),
        (1, "look-up: one position", "right", temperatures[-1]),
    ):
        right.axhline(height, color="#BBBBBB", lw=1, ls=(0, (4, 3)), zorder=0)
        right.annotate(name, (t, height), (0, 4), textcoords="offset points", ha=side, fontsize=9, color=GREY)
    right.set(ylim=(0, n + 1.5), xlabel="temperature", ylabel="effective positions")
    _plain_log_ticks(right.xaxis)
    head = right.set_title("", loc="left")

    def show(query, temperature, weights, bits, curve):
        _set_bars(bars, texts, weights, "{:.3f}")
        line.set_ydata(curve)
        dot.set_data([temperature], [2**bits])
        title.set_text(f'query "{query}", temperature {temperature:.3g}')
        head.set_text(f"entropy {bits:.2f} bits, {2**bits:.2f} positions")
        best = int(np.argmax(weights))
        return (
            f'query "{query}", temperature {temperature:.3g}: largest weight {weights[best]:.3f} on "{labels[best]}"\n'
            f"entropy {bits:.3f} bits, {2**bits:.2f} effective positions"
        )

    return _moving(picture, show, *bars, *texts, title, line, dot, head)


@styled
def hull(labels, points):
    """Vectors in a plane, the convex hull around them, and a query with its output.

    labels  n strings; points (n, 2)
    show(query (2,), output (2,), path (m, 2), weights (n,), name): path is where the
    output goes as the query moves, name says what the query is
    """
    picture = Picture(8.6, 4.2, LIVE_DPI)
    plane, side = picture.subplots(1, 2, width_ratios=(1.7, 1))
    triangles = Triangulation(*points.T)
    find, centre = triangles.get_trifinder(), points.mean(axis=0)
    region = PolyCollection(points[triangles.triangles], facecolor=LIGHT, edgecolor=LIGHT, lw=1, zorder=0, label="hull")
    plane.add_collection(region)
    plane.plot(*points.T, "o", color=GREY, ms=5)
    for label, point in dict(zip(labels, points)).items():  # equal words share one point
        _label_point(plane, label, point, points)
    plane.margins(0.1, 0.13)
    (track,) = plane.plot([], [], color=ORANGE, lw=1.2, alpha=0.7, label="its path")
    (asked,) = plane.plot([], [], "x", color=BLUE, ms=9, mew=2.2, label="query $q$")
    (answer,) = plane.plot([], [], "o", color=ORANGE, ms=9, label="output")
    plane.set(xlabel="first direction of spread", ylabel="second direction of spread")
    plane.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=4, columnspacing=1.2, handletextpad=0.4, borderaxespad=0.2
    )
    bars, texts = _bars(side, labels, np.zeros(len(labels)), BLUE, "{:.2f}", 0, 1)
    side.set(xlabel="weight")
    title = side.set_title("", loc="left")

    def show(query, output, path, weights, name):
        _set_bars(bars, texts, weights, "{:.2f}")
        track.set_data(*path.T)
        asked.set_data(*query[:, None])
        answer.set_data(*output[:, None])
        title.set_text(f"query {name}")
        inside = find(*(output + 1e-6 * (centre - output))) >= 0  # a point of the edge counts as inside
        best = int(np.argmax(weights))
        return (
            f'query {name}: largest weight {weights[best]:.3f} on "{labels[best]}"\n'
            f"output at ({output[0]:.2f}, {output[1]:.2f}), {'inside' if inside else 'OUTSIDE'} the hull"
        )

    return _moving(picture, show, *bars, *texts, track, asked, answer, title)


@styled
def regression(u, v, grid, truth):
    """Noisy points, the curve behind them and a fitted curve; below, the weights of one query.

    u, v         (n,) the points; grid, truth (m,) the curve they were drawn from
    show(bandwidth, query, fit (m,), value, weights (n,), error)
    """
    picture = Picture(8.6, 4.4, LIVE_DPI)
    top, bottom = picture.subplots(2, 1, sharex=True, height_ratios=(2.2, 1))
    top.plot(grid, truth, color=GREY, lw=1.4, ls=(0, (4, 3)), label="true curve")
    top.plot(u, v, "o", color=GREY, ms=4, alpha=0.75, label="noisy points")
    (line,) = top.plot(grid, truth, color=BLUE, label="fit")
    (dot,) = top.plot([0], [0], "o", color=ORANGE, ms=9, label="fit at the query")
    top.set(ylabel="v", xlim=_padded(grid, 0.02), ylim=_padded(v))
    top.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    title = top.set_title("", loc="left")
    stems = bottom.vlines(u, 0, np.zeros(len(u)), color=BLUE, lw=2.5)
    (mark,) = bottom.plot([0, 0], [0, 1], color=ORANGE, lw=1.2, ls=(0, (4, 3)))
    bottom.set(ylim=(0, 1), xlabel="u", ylabel="weight /\nlargest weight")

    def show(bandwidth, query, fit, value, weights, error):
        line.set_ydata(fit)
        dot.set_data([query], [value])
        stems.set_segments([[(a, 0), (a, w)] for a, w in zip(u, weights / weights.max())])
        mark.set_xdata([query, query])
        title.set_text(f"bandwidth {bandwidth:.3g}: error to the true curve {error:.3f}")
        return (
            f"bandwidth {bandwidth:.3g}: root mean square error to the true curve {error:.3f}\n"
            f"at g = {query:.2f} the fit is {value:.3f}, largest weight {weights.max():.3f}"
        )

    return _moving(picture, show, line, dot, stems, mark, title)


def _moving(picture, show, *artists):
    picture.show, picture.moving = show, list(artists)
    return picture


def _bars(ax, labels, values, color, form, low, high):
    """Horizontal bars in reading order, with their numbers; returns both lists of artists."""
    rows = range(len(labels))
    bars = ax.barh(rows, values, color=color, height=0.72)
    texts = [ax.text(0, row, "", va="center", fontsize=8.5, color="#222222") for row in rows]
    ax.set_yticks(rows, labels, parse_math=False)
    ax.tick_params(axis="y", length=0)
    room = 0.16 * (high - low) or 1
    ax.set(ylim=(len(labels) - 0.4, -0.6), xlim=(low - (room if low < 0 else 0), high + room))
    if (low, high) == (0, 1):
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    _set_bars(bars, texts, values, form)
    return list(bars), texts


def _set_bars(bars, texts, values, form):
    gap = 0.012 * np.ptp(texts[0].axes.get_xlim())
    for bar, text, value in zip(bars, texts, values):
        bar.set_width(value)
        text.set_text(form.format(_no_minus(value)))
        text.set(x=value + gap if value >= 0 else value - gap, ha="left" if value >= 0 else "right")


def _no_minus(value):
    """Round to three decimals, so that nothing is written as -0.000."""
    return round(float(value), 3) + 0.0


def _label_point(ax, label, point, points):
    """Write a label above or below its point, and aside where another point is close."""
    above = point[1] >= points[:, 1].mean()
    others = points[np.any(points != point, axis=1)]
    gap = point - others[np.argmin(np.linalg.norm(others - point, axis=1))]
    close = np.linalg.norm(gap) < 0.1 * np.ptp(points, axis=0).max()
    side = "center" if not close else "left" if gap[0] > 0 else "right"
    ax.annotate(
        label,
        point,
        (0, 6 if above else -6),
        textcoords="offset points",
        ha=side,
        va="bottom" if above else "top",
        fontsize=9,
        parse_math=False,
    )


def _plain_log_ticks(axis, digits=(1,)):
    """Label a logarithmic axis 0.1, 1, 10 instead of with powers of ten."""
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _position: f"{value:,g}")
    axis.set_minor_formatter(NullFormatter())


def _padded(values, share=0.08):
    room = share * np.ptp(values)
    return min(values) - room, max(values) + room


def _check_labels(labels, **arrays):
    for name, array in arrays.items():
        if np.shape(array) != (len(labels),):
            raise ValueError(f"{name} has shape {np.shape(array)}, but there are {len(labels)} labels")
