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
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter
from matplotlib.tri import Triangulation

from attn_helpers.attention import _real

BLUE, ORANGE, GREEN, GREY, LIGHT = "#0072B2", "#D55E00", "#00785A", "#6B6B6B", "#DCE9F2"
COLORS = (BLUE, GREEN, ORANGE)
MOST = 80  # tokens in one direction of a picture: more could not be read, and would take gigabytes
LIVE_DPI = 100  # a picture that moves has a quarter of the pixels of one that stands still
AXES = ("query (row)", "key (column)")  # of every attention map
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
        self.get_layout_engine().set(h_pad=0.08)
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
    title = left.set_title("", loc="left", parse_math=False)
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
    title = side.set_title("", loc="left", parse_math=False)

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


@styled
def attention_map(labels, panels, keys=None, bar="weight", limits=(0, 1), axes=AXES, sums=False):
    """Maps with a row for each query and a column for each key, side by side, on one colour scale.

    labels  one string for each query; keys likewise for the keys, None where both are the same
    panels  {title: (n_q, n_kv)}, values within limits, which are the ends of the colour scale
    bar     what the colours mean
    axes    what the rows and the columns are
    sums    True writes the sum of each row at its right and of each column above it
    """
    if not isinstance(panels, dict) or not panels:
        raise TypeError(f"panels is {panels!r}, but must be a dict {{title: map}} with at least one map")
    labels = _texts("labels", labels)
    keys = labels if keys is None else _texts("keys", keys)
    panels = {title: _check_map(title, values, labels, keys, limits) for title, values in panels.items()}
    cell = max(0.24, 2.4 / max(len(labels), len(keys)))
    room = 0.5 if sums else 0
    width = 1.9 + len(panels) * (cell * len(keys) + 0.4 + room)
    picture = Picture(width, cell * len(labels) + 1.6 + room)
    grid = picture.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, (title, values) in zip(grid, panels.items()):
        image = _map(ax, values, limits)
        _token_ticks(ax, labels, keys)
        ax.set_title(title, pad=30 if sums else 8)
        ax.set_xlabel(axes[1])
        if sums:
            _write_sums(ax, values)
    grid[0].set_ylabel(axes[0])
    picture.colorbar(image, ax=list(grid), label=bar, shrink=0.8)
    picture.summary = "\n\n".join(
        _read_map(title, values, labels, keys, axes, sums) for title, values in panels.items()
    )
    return picture


@styled
def head_map(sentences):
    """The map of a head, with room for each of several sentences.

    sentences  their labels, a list of strings for each
    show(title, labels, weights (n, n), facts): facts is a line of text below the title
    """
    sentences = [_texts("labels", labels) for labels in sentences]
    longest = [max((label for labels in sentences for label in labels), key=len)] * max(map(len, sentences))
    side = 0.28 * len(longest)
    picture = Picture(side + 3.4, side + 1.9, LIVE_DPI)
    ax = picture.subplots()
    image = _map(ax, np.zeros((len(longest), len(longest))), (0, 1))
    _token_ticks(ax, longest, longest)
    ax.set(xlabel=AXES[1], ylabel=AXES[0])
    title = ax.set_title("title\nfacts", loc="left")
    picture.colorbar(image, ax=ax, label="weight", shrink=0.8)
    picture.draw_without_rendering()
    picture.set_layout_engine("none")  # the room is made for the longest labels, whichever are shown first

    def show(name, labels, weights, facts):
        n, weights = len(labels), _check_map(name, weights, labels, labels, (0, 1))
        image.set_data(weights)
        image.set_extent((-0.5, n - 0.5, n - 0.5, -0.5))
        ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
        _token_ticks(ax, labels, labels)
        title.set_text(f"{name}\n{facts}")
        return f"{name}: {facts}\n{_read_map('', weights, labels, labels, AXES, False)}"

    return _moving(picture, show, image, ax.xaxis, ax.yaxis, title)


@styled
def rotary(labels, offsets, limits):
    """How a head's score depends on distance, and the weights of one query wherever the text starts.

    labels   n strings; offsets (m,) distances of the curve, in tokens
    limits   lowest and highest value of all curves
    show(head, offset, curve (m,), start, query, weights (n,), plain (n,), change): plain are the
    weights without RoPE, change is what the start has altered at most
    """
    picture = Picture(9.2, 4.0, LIVE_DPI)
    left, right = picture.subplots(1, 2, width_ratios=(1, 1.35))
    (line,) = left.plot(offsets, np.zeros(len(offsets)), color=GREY)
    (dot,) = left.plot([0], [0], "o", color=ORANGE, ms=9, zorder=4)
    left.set(xlabel="offset: query position - key position", ylabel="mean score", ylim=_padded(limits))
    left.axhline(0, color="#D8D8D8", lw=1, zorder=0)
    head_title = left.set_title("", loc="left")
    n = len(labels)
    bars = right.bar(range(n), np.zeros(n), color=BLUE, label="with RoPE")
    (marks,) = right.plot(range(n), np.zeros(n), "_", color=ORANGE, ms=9, mew=2, ls="none", label="without RoPE")
    right.set_xticks(range(n), labels, rotation=90, fontsize=8, parse_math=False)
    right.set(ylim=(0, 1), ylabel="weight", xlim=(-0.7, n - 0.3))
    right.legend(loc="lower right", bbox_to_anchor=(1, 1.0), ncols=2, borderaxespad=0.1)
    title = right.set_title("", loc="left")

    def show(head, offset, curve, start, query, weights, plain, change):
        _check_labels(labels, weights=weights, plain=plain)
        line.set_ydata(curve)
        score = curve[list(offsets).index(offset)]
        dot.set_data([offset], [score])
        for rectangle, weight in zip(bars, weights):
            rectangle.set_height(weight)
        marks.set_ydata(plain)
        head_title.set_text(f"head {head}, offset {offset}: {_no_minus(score):.2f}")
        title.set_text(f"first position {start}")
        best, other = int(np.argmax(weights)), int(np.argmax(plain))
        return (
            f"head {head}: mean score {_no_minus(score):.2f} at offset {offset}; the highest is "
            f"{max(curve):.2f} at {int(np.argmax(curve))}, the lowest {min(curve):.2f} at {int(np.argmin(curve))}\n"
            f'first position {start}: query "{labels[query]}" ({query}) gives {weights[best]:.3f} to '
            f'"{labels[best]}" ({best}); without RoPE {plain[other]:.3f} to "{labels[other]}" ({other})\n'
            f"the start has changed no weight by more than {'1e-12' if change < 1e-12 else f'{change:.1e}'}"
        )

    return _moving(picture, show, line, dot, *bars, marks, head_title, title)


@styled
def senses(labels, layers, curves):
    """Cosines between vectors of one word in several sentences, layer by layer.

    labels  m strings; layers their number; curves {name: (lowest, mean, highest), each (layers,)}
    show(layer, cosines (m, m))
    """
    if len(curves) > len(COLORS):
        raise ValueError(f"there are {len(curves)} curves, but only {len(COLORS)} colours")
    picture = Picture(9.4, 4.3, LIVE_DPI)
    left, right = picture.subplots(1, 2, width_ratios=(1.05, 1))
    limits = (0.75, 1)
    image = _map(left, np.ones((len(labels), len(labels))), limits)
    _token_ticks(left, labels, labels)
    picture.colorbar(image, ax=left, label="cosine", shrink=0.8)
    for (name, (low, mean, high)), color in zip(curves.items(), COLORS):
        right.fill_between(range(layers), low, high, color=color, alpha=0.15, lw=0.8)
        right.plot(range(layers), mean, "o-", ms=4, color=color, label=name)
    bar = right.axvline(0, color=GREY, lw=1.2, ls=(0, (4, 3)))
    right.set(xlabel="layers passed", ylabel="cosine", xticks=range(layers), ylim=(0.75, 1.01))
    right.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=3, columnspacing=0.9, handlelength=1.2, borderaxespad=0.1
    )
    title = left.set_title("", loc="left")

    def show(layer, cosines):
        image.set_data(_check_map(f"layer {layer}", cosines, labels, labels, limits))
        bar.set_xdata([layer, layer])
        title.set_text(f"layers passed: {layer}")
        lines = [f"{name}: {low[layer]:.3f} to {high[layer]:.3f}" for name, (low, _, high) in curves.items()]
        return f"layers passed: {layer}, cosines from lowest to highest\n" + "\n".join(lines)

    return _moving(picture, show, image, bar, title)


@styled
def products(lines):
    """Matrix products drawn to scale, a line for each: the inner lengths that must agree are in one colour.

    lines  [((name, shape), (name, shape), (name, shape)), ...], the third the product of the first two
    """
    for line in lines:
        _check_product(line)
    heights = [max(shape[0] for _, shape in line) + 2.2 for line in lines]
    width = max(sum(shape[1] for _, shape in line) for line in lines) + 8
    if max(width, sum(heights)) > MOST:
        raise ValueError(f"the products take {width} columns and {sum(heights):.0f} rows: at most {MOST} can be drawn")
    unit = 0.16  # inches for one row or column
    picture = Picture(unit * width, unit * sum(heights))
    ax = picture.subplots()
    ax.set(xlim=(0, width), ylim=(sum(heights), 0), aspect="equal")
    ax.axis("off")
    for top, height, line in zip(np.cumsum([0, *heights]), heights, lines):
        left = 1.5
        for (name, (rows, columns)), sign, colors in zip(
            line, ("@", "=", ""), ((GREY, BLUE), (BLUE, GREY), (GREY, GREY))
        ):
            y = top + 1.1 + (height - 2.2 - rows) / 2
            ax.add_patch(Rectangle((left, y), columns, rows, fc=LIGHT, ec=GREY, lw=1))
            ax.text(left + columns / 2, y + rows / 2, name, ha="center", va="center", fontsize=9)
            ax.text(left - 0.25, y + rows / 2, rows, ha="right", va="center", fontsize=8.5, color=colors[0])
            ax.text(left + columns / 2, y - 0.2, columns, ha="center", va="bottom", fontsize=8.5, color=colors[1])
            ax.text(left + columns + 1.0, top + height / 2, sign, ha="center", va="center", fontsize=11)
            left += columns + 3
    text = "\n".join(f"{a} {p} @ {b} {q} = {c} {r}" for (a, p), (b, q), (c, r) in lines)
    picture.summary = text.replace("$", "")
    return picture


@styled
def pipeline(labels, Q, S, A, V, Y):
    """Five matrices of one attention layer; one query row lights up in four of them, as numbers below.

    labels  n strings; Q (n, d_k), S and A (n, n), V (n, d_v), Y (n, d_v)
    show(t): t is the row
    """
    labels = _texts("labels", labels)
    picture = Picture(9.6, 3.1 + 0.2 * len(labels), LIVE_DPI)
    top, bottom = picture.subfigures(2, 1, height_ratios=(0.9 + 0.2 * len(labels), 2.2))
    carried = np.abs(V).max()  # one scale for V and Y: a mean is compared with what it averages
    matrices = (
        ("Q", Q, "$d_k$ columns", np.abs(Q).max()),
        ("S = Q K$^T$ / $\\sqrt{d_k}$", S, "key", np.abs(S).max()),
        ("A = softmax(S)", A, "key", None),
        ("V", V, "$d_v$ columns", carried),
        ("Y = A V", Y, "$d_v$ columns", carried),
    )
    axes = top.subplots(1, 5, width_ratios=(1.5, 1.2, 1.2, 1.5, 1.5))
    frames = []
    for ax, (name, M, columns, limit) in zip(axes, matrices):
        image = _map(ax, M, (0, 1)) if limit is None else _map(ax, M, (-limit, limit), "RdBu_r")
        image.axes.set_aspect("auto")
        ax.set(title=name, xlabel=columns, xticks=[])
        ax.set_yticks(range(len(labels)), map(_shown, labels) if ax is axes[0] else [], fontsize=8, parse_math=False)
        ax.tick_params(length=0)
        if name != "V":
            edge = dict(fill=False, ec=ORANGE, lw=2.2, clip_on=False)
            frames.append(ax.add_patch(Rectangle((-0.5, -0.5), M.shape[1], 1, **edge)))
    scores, weights, output = bottom.subplots(1, 3)
    parts = [
        _columns(scores, S, GREY, "score", labels),
        _columns(weights, A, BLUE, "weight", labels),
        _columns(output, Y, ORANGE, "value"),
    ]
    output.set_xlabel("component")
    titles = [ax.set_title("", loc="left", parse_math=False) for ax in (scores, weights, output)]

    def show(t):
        for frame in frames:
            frame.set_y(t - 0.5)
        for bars, values in zip(parts, (S[t], A[t], Y[t])):
            for rectangle, value in zip(bars, values):
                rectangle.set_height(value)
        for title, text in zip(titles, ("S", "A", "Y")):
            title.set_text(f'row of {text} for "{_shown(labels[t])}"')
        best = int(np.argmax(A[t]))
        return (
            f'row {t}, "{labels[t]}": largest score {S[t].max():.3f}, '
            f'largest weight {A[t, best]:.3f} on "{labels[best]}"\n'
            f"weights {np.array2string(A[t], precision=3, suppress_small=True)}, sum {A[t].sum():.3f}\n"
            f"output starts with {np.array2string(Y[t, :4] + 0.0, precision=3, suppress_small=True)}"
        )

    return _moving(picture, show, *frames, *(bar for bars in parts for bar in bars), *titles)


def _moving(picture, show, *artists):
    picture.show, picture.moving = show, list(artists)
    return picture


def _map(ax, values, limits, colors="viridis"):
    image = ax.imshow(values, cmap=colors, vmin=limits[0], vmax=limits[1], interpolation="nearest", aspect="equal")
    ax.spines[:].set_visible(False)
    return image


def _token_ticks(ax, queries, keys):
    """One tick for each position, so that equal tokens stay apart; a token is never read as maths."""
    ax.set_xticks(range(len(keys)), map(_shown, keys), rotation=90, parse_math=False)
    ax.set_yticks(range(len(queries)), map(_shown, queries), parse_math=False)
    ax.tick_params(length=0)


def _shown(token):
    """A token as a label: what cannot be seen is written out, what is long is cut."""
    text = token if token.isprintable() and token.strip() else repr(token)
    return text if len(text) <= 20 else text[:19] + "\u2026"


def _write_sums(ax, values):
    place = dict(textcoords="offset points", fontsize=8, annotation_clip=False)
    for row, total in enumerate(values.sum(axis=1)):
        ax.annotate(f"{total:.2f}", (values.shape[1] - 0.5, row), (4, 0), va="center", **place)
    for column, total in enumerate(values.sum(axis=0)):
        ax.annotate(f"{total:.2f}", (column, -0.5), (0, 3), ha="center", va="bottom", rotation=90, **place)


def _columns(ax, values, color, ylabel, labels=None):
    """Bars for the first row of values; the axis has room for every row."""
    bars = ax.bar(range(values.shape[1]), values[0], color=color)
    low, high = min(0, values.min()), max(0, values.max())
    room = 0.06 * (high - low) or 1
    if labels:
        ax.set_xticks(range(len(labels)), map(_shown, labels), rotation=90, fontsize=8, parse_math=False)
    ax.set(ylim=(low - (room if low < 0 else 0), high + room), ylabel=ylabel)
    return bars


def _read_map(title, values, queries, keys, axes, sums):
    """For each row the column with the largest value, as text."""
    best, most = values.argmax(axis=1), values.max(axis=1)
    ties = (values >= most[:, None] - 1e-9).sum(axis=1) - 1
    columns = {
        axes[0]: [f"{i} {_shown(q)}" for i, q in enumerate(queries)],
        f"most on {axes[1]}": [f"{j} {_shown(keys[j])}" + (f" and {t} more" if t else "") for j, t in zip(best, ties)],
        "value": most,
    }
    if sums:
        columns["row sum"] = values.sum(axis=1)
    text = f"{title}\n{table(columns)}".strip("\n")
    if sums:
        text += "\ncolumn sums " + " ".join(f"{total:.3f}" for total in values.sum(axis=0))
    return text


def _texts(name, labels):
    """labels as a list of at least one and at most MOST strings."""
    if isinstance(labels, (str, bytes, set, dict)) or not np.iterable(labels):
        raise TypeError(f"{name} is {labels!r}, but must be a list of strings")
    labels = list(labels)
    if not labels or not all(isinstance(label, str) for label in labels):
        raise TypeError(f"{name} is {labels!r}, but must be a list of at least one string, and nothing but strings")
    if len(labels) > MOST:
        raise ValueError(f"there are {len(labels)} {name}, but a picture has room for {MOST}: show a part of them")
    return labels


def _check_map(title, values, queries, keys, limits):
    """The map as an array, after its shape and its values were found to fit."""
    values = _real(f"the map {title!r}", values)
    if values.shape != (len(queries), len(keys)):
        raise ValueError(
            f"the map {title!r} has shape {values.shape}, but there are {len(queries)} labels for queries (rows) "
            f"and {len(keys)} for keys (columns)"
        )
    if np.isnan(values).any():
        raise ValueError(f"the map {title!r} holds NaN")
    low, high = values.min() + 0.0, values.max() + 0.0
    if not (limits[0] - 1e-6 <= low and high <= limits[1] + 1e-6):
        raise ValueError(f"the map {title!r} has values from {low:.3g} to {high:.3g}, outside the limits {limits}")
    return values


def _check_product(line):
    (_, (n, inner)), (_, (other, m)), (name, result) = line
    if inner != other:
        raise ValueError(f"the product {name!r} does not fit: the inner lengths {inner} and {other} differ")
    if tuple(result) != (n, m):
        raise ValueError(f"the product {name!r} does not fit: its shape is {tuple(result)}, but should be {(n, m)}")


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
