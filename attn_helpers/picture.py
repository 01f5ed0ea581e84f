"""What all figures share: the Picture, its style, and the parts that more than one figure has. Never pyplot."""

import base64
import functools
import io

import matplotlib
import numpy as np
import PIL.Image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import LogLocator, NullFormatter

from attn_helpers.arguments import as_real

BLUE, ORANGE, GREEN, GREY, LIGHT = "#0072B2", "#D55E00", "#00785A", "#6B6B6B", "#DCE9F2"
COLORS = (BLUE, ORANGE, GREEN)
MOST = 80  # tokens in one direction of a picture: more could not be read, and would take gigabytes
HIDDEN = "#D9D9D9"  # what a mask takes away
LIVE_DPI = 100  # a picture that moves has a quarter of the pixels of one that stands still
AXES = ("query (row)", "key (column)")  # of every attention map
FONTS = (  # the first has no Chinese, Japanese and Korean signs; the others have them on Linux, Windows, macOS
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Hiragino Sans GB",
    "Arial Unicode MS",
)
STYLE = {
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
        with matplotlib.rc_context({"font.family": _fonts(), **STYLE}):
            return function(*args, **kwargs)

    return wrapper


def _fonts():
    """The first of FONTS, and those others that are installed: matplotlib would warn of each that is not."""
    installed = fontManager.get_font_names()
    return [FONTS[0], *(name for name in FONTS[1:] if name in installed)]


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


def _map(ax, values, limits, colors="viridis"):
    """An image of the values; NaN, or what is masked, is grey."""
    colors = matplotlib.colormaps[colors].with_extremes(bad=HIDDEN)
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
    values = as_real(f"the map {title!r}", values)
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
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
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


def _plain_log_ticks(axis, digits=(1,)):
    """Label a logarithmic axis 0.1, 1, 10 instead of with powers of ten."""
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _position: f"{value:,g}")
    axis.set_minor_formatter(NullFormatter())


def _check_series(labels, series):
    """The series as {name: array}, after each was found to have one finite number for each label."""
    series = {name: as_real(name, values) for name, values in series.items()}
    for name, values in series.items():
        if values.shape != (len(labels),):
            raise ValueError(f"{name} has shape {values.shape}, but there are {len(labels)} labels")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinity, which cannot be drawn")
    return series
