"""The figures that stand still: arrays and labels in, a Picture out."""

import math

import numpy as np
from matplotlib.patches import Rectangle

from attn_helpers.arguments import as_dict, as_number, as_real, check_switch, index_of
from attn_helpers.picture import (
    AXES,
    BLUE,
    COLORS,
    GREEN,
    GREY,
    LIGHT,
    MOST,
    ORANGE,
    Picture,
    _bars,
    _check_map,
    _check_series,
    _map,
    _plain_log_ticks,
    _read_map,
    _texts,
    _token_ticks,
    styled,
    table,
)

LOGS = "", "x", "y", "xy"
FRAMES = (ORANGE, BLUE, "#CC79A7", "#000000", GREEN, "#56B4E9")  # of heads that are marked


@styled
def scores_and_weights(labels, scores, weights):
    """Bars of one query's scores beside the weights that softmax makes of them.

    labels  n strings, in the order of the sentence; scores, weights (n,), finite
    """
    labels = _texts("labels", labels)
    scores, weights = _check_series(labels, {"scores": scores, "weights": weights}).values()
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

    labels  n strings; panels {title: weights (n,)}, finite; no title is position
    """
    labels = _texts("labels", labels)
    _texts("titles", list(as_dict("panels", panels, "{title: weights}", 1)))
    panels = _check_series(labels, panels)
    if "position" in panels:
        raise ValueError("panels has the title 'position', but that is the column of the labels")
    picture = Picture(8.4, 1.1 + 0.28 * len(labels))
    for ax, (title, weights) in zip(picture.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items()):
        _bars(ax, labels, weights, BLUE, "{:.3f}", 0, 1)
        ax.set(title=title, xlabel="weight")
    picture.summary = table({"position": list(labels), **panels})
    return picture


@styled
def against_theory(x, measured, theory, xlabel, ylabel, log="xy"):
    """Measured points and the line that theory gives.

    x, measured, theory  (n,) each
    xlabel, ylabel       names of x and of what was measured; neither is theory
    log                  which axes are logarithmic, with nothing but positive numbers: "", "x", "y" or "xy"
    """
    index_of("log", log, LOGS)
    if len({*_texts("xlabel and ylabel", (xlabel, ylabel)), "theory"}) < 3:
        raise ValueError(f"xlabel is {xlabel!r} and ylabel {ylabel!r}, but must differ, and neither be 'theory'")
    x = _places(x, "x" in log)
    measured, theory = (_row(name, x, line, "y" in log) for name, line in ((ylabel, measured), ("theory", theory)))
    picture = Picture(6.4, 3.4)
    ax = picture.subplots()
    ax.plot(x, theory, color=GREY, lw=1.2, label="theory")
    ax.plot(x, measured, "o", color=BLUE, ms=6, label="measured")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    _scale_axes(ax, log, (1, 2, 5))
    ax.grid(True, which="major", color="#E4E4E4")
    ax.legend()
    picture.summary = table(
        {xlabel: [f"{v:,.0f}" if v == int(v) else f"{v:,.4g}" for v in x], ylabel: measured, "theory": theory}
    )
    return picture


@styled
def curves(x, panels, xlabel, ylabel, log="", marks=None):
    """Curves in panels side by side, with one y axis.

    x       (m,), finite, or {title: (m,)} where each panel has its own
    panels  {title: {name: (m,)}}; (k, m) draws k curves in one colour; no name is xlabel
    log     which axes are logarithmic, with nothing but positive numbers: "", "x", "y" or "xy"
    marks   {text: place on the x axis} of dashed lines
    """
    _check_panels(panels, xlabel)
    index_of("log", log, LOGS)
    places = {title: _places(given, "x" in log) for title, given in _by_panel("the places x", x, panels).items()}
    panels = {
        title: {name: _rows(name, places[title], line, "y" in log) for name, line in lines.items()}
        for title, lines in panels.items()
    }
    marks = _marks({} if marks is None else marks, "x" in log)
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    if len(names) > len(COLORS):
        raise ValueError(f"there are {len(names)} curves, {names}, but only {len(COLORS)} colours")
    picture = Picture(max(6.6, 1.1 + 2.8 * len(panels)), 3.5)
    for ax, (title, lines) in zip(picture.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items()):
        for name, rows in lines.items():
            _draw_rows(ax, places[title], rows, name, COLORS[names.index(name)])
        _scale_axes(ax, log)
        _mark(ax, marks)
        ax.set(title=title, xlabel=xlabel)
        ax.grid(True, axis="y", color="#E9E9E9")
    picture.axes[0].set_ylabel(ylabel)
    handles = {line.get_label(): line for ax in picture.axes for line in ax.lines if line.get_label() in names}
    picture.legend(handles.values(), handles, loc="outside upper right", ncols=len(names), handlelength=1.4)
    picture.summary = "\n\n".join(_read_curves(t, places[t], lines, xlabel) for t, lines in panels.items())
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
        color = COLORS[row % 3]
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
def attention_map(labels, panels, keys=None, bar="weight", limits=(0, 1), axes=AXES, sums=False, zeros=False):
    """Maps with a row for each query and a column for each key, side by side, on one colour scale.

    labels  one string for each query, or {title: labels} where each panel has its own queries and keys
    keys    one string for each key, None where keys are the queries
    panels  {title: (n_q, n_kv)}, values within limits, which are the ends of the colour scale
    bar     what the colours mean
    axes    what the rows and the columns are
    sums    True writes the sum of each row at its right and of each column above it
    zeros   True draws what is exactly 0 in grey
    """
    as_dict("panels", panels, "{title: map}", 1)
    _check_options(limits, axes, sums=sums, zeros=zeros)
    own = isinstance(labels, dict)
    if own and keys is not None:
        raise ValueError(f"keys is {keys!r}, but must be None where each panel has labels of its own")
    sides = {title: _sides(given, keys) for title, given in _by_panel("labels", labels, panels).items()}
    panels = {title: _check_map(title, values, *sides[title], limits) for title, values in panels.items()}
    widest, tallest = (max(len(side[i]) for side in sides.values()) for i in (1, 0))
    cell = max(0.24, 2.4 / max(widest, tallest))
    room = 0.5 if sums else 0
    picture = Picture(1.9 + len(panels) * (cell * widest + 0.4 + room + own), cell * tallest + 1.6 + room)
    grid = picture.subplots(1, len(panels), sharey=not own, squeeze=False)[0]
    for ax, (title, values) in zip(grid, panels.items()):
        image = _map(ax, np.where(values == 0, np.nan, values) if zeros else values, limits)
        _token_ticks(ax, *sides[title])
        ax.set_title(title, pad=30 if sums else 8)
        ax.set_xlabel(axes[1])
        if sums:
            _write_sums(ax, values)
    grid[0].set_ylabel(axes[0])
    picture.colorbar(image, ax=list(grid), label=f"{bar} (grey: exactly 0)" if zeros else bar, shrink=0.8)
    picture.summary = "\n\n".join(
        _read_map(title, values, *sides[title], axes, sums) for title, values in panels.items()
    )
    return picture


@styled
def thumbnails(maps, marks=None):
    """All heads of a model as small maps on one colour scale: a row for each layer, a column for each head.

    maps   (layers, heads, n, n) of weights from 0 to 1, n at least 2
    marks  {"layer.head": what it does} of at most six heads, which get a frame and a line in the legend
    Where there are many more layers than heads, they stand in blocks side by side.
    """
    maps = _check_heads(maps)
    layers, heads, n, _ = maps.shape
    marks = _check_marks({} if marks is None else marks, layers, heads)
    blocks, side = _fold(layers, heads)
    rows, pitch = math.ceil(layers / blocks), n + max(1, round(n / 8))  # pitch: a map and the gap after it
    width = max(4.6, 0.9 + blocks * (heads * side + 0.35))
    picture = Picture(width, 0.85 + rows * side + 0.24 * math.ceil(len(marks) / 3))
    axes = picture.subplots(1, blocks, squeeze=False)[0]
    for block, ax in enumerate(axes):
        numbers = range(block * rows, min(layers, (block + 1) * rows))
        image = _map(ax, _mosaic(maps[numbers], rows, pitch), (0, 1))
        image.set_cmap(image.cmap.with_extremes(bad="white"))
        _number_heads(ax, numbers, heads, n, pitch)
    axes[0].set_ylabel("layer")
    picture.supxlabel(f"head; in each map: {AXES[0]}, {AXES[1]}", fontsize=10)
    frames = [_frame(axes, rows, n, pitch, *place, color) for (place, _), color in zip(marks.values(), FRAMES)]
    if marks:
        _name_frames(picture, frames, [f"{head} {text}" for head, (_, text) in marks.items()])
    picture.colorbar(image, ax=list(axes), label="weight", shrink=0.8, pad=0.01, aspect=30)
    picture.summary = _read_heads(maps, marks)
    return picture


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


def _by_panel(name, given, panels):
    """{title: what the panel has}, where it was given so or once for all panels."""
    if not isinstance(given, dict):
        return dict.fromkeys(panels, given)
    for title in [*panels, *given]:
        if title not in given:
            raise ValueError(f"{name} by panel need one list for {title!r}, but have {list(given)}")
        if title not in panels:
            raise ValueError(f"{name} by panel have a list for {title!r}, but the panels are {list(panels)}")
    return given


def _check_options(limits, axes, **switches):
    ends = as_real("limits", limits)
    if ends.shape != (2,) or not np.isfinite(ends).all() or ends[0] >= ends[1]:
        raise ValueError(f"limits is {limits!r}, but must be two finite numbers, the lower one first")
    if len(_texts("axes", axes)) != 2:
        raise ValueError(f"axes is {axes!r}, but must be two strings, for the rows and for the columns")
    for name, value in switches.items():
        check_switch(name, value)


def _sides(labels, keys):
    """The labels of a panel's queries and of its keys."""
    labels = _texts("labels", labels)
    return labels, labels if keys is None else _texts("keys", keys)


def _write_sums(ax, values):
    place = dict(textcoords="offset points", fontsize=8, annotation_clip=False)
    for row, total in enumerate(values.sum(axis=1)):
        ax.annotate(f"{total:.2f}", (values.shape[1] - 0.5, row), (4, 0), va="center", **place)
    for column, total in enumerate(values.sum(axis=0)):
        ax.annotate(f"{total:.2f}", (column, -0.5), (0, 3), ha="center", va="bottom", rotation=90, **place)


def _check_panels(panels, xlabel):
    as_dict("panels", panels, "{title: {name: curve}}", 1)
    for title, lines in panels.items():
        as_dict(f"panel {title!r}", lines, "{name: curve}", 1)
        for name in (title, *lines):
            if not isinstance(name, str):
                raise TypeError(f"panels has the title or name {name!r}, but each must be a string")
        if xlabel in lines:
            raise ValueError(f"a curve of panel {title!r} has the name {xlabel!r}, but that is the xlabel")


def _check_positive(name, values):
    if np.any(values <= 0):
        raise ValueError(f"{name} goes down to {np.nanmin(values):g}, but a logarithmic axis needs numbers above 0")


def _places(x, log):
    x = as_real("x", x)
    if x.ndim != 1 or not x.size or not np.isfinite(x).all():
        raise ValueError(f"x is {x} of shape {x.shape}, but must be finite numbers of shape (m,), one or more")
    if log:
        _check_positive("x", x)
    return x


def _rows(name, x, line, log):
    rows = np.atleast_2d(as_real(f"the curve {name!r}", line))
    if rows.ndim != 2 or rows.shape[1] != len(x) or not len(rows):
        raise ValueError(
            f"the curve {name!r} has shape {np.shape(line)}, but x has {len(x)} places: "
            "it needs one number for each, or rows of as many, one or more"
        )
    if log:
        _check_positive(f"the curve {name!r}", rows)
    return rows


def _row(name, x, line, log):
    """The one curve of that name."""
    if np.ndim(line) != 1:
        raise ValueError(f"the curve {name!r} has shape {np.shape(line)}, but must have {x.shape}")
    return _rows(name, x, line, log)[0]


def _marks(marks, log):
    as_dict("marks", marks, "{text: place}")
    for text, place in marks.items():
        number = as_number(f"the mark {text!r}", place)
        if not math.isfinite(number):
            raise ValueError(f"the mark {text!r} is at {number}, but must be at a finite place")
        if log:
            _check_positive(f"the mark {text!r}", number)
    return marks


def _draw_rows(ax, x, rows, name, color):
    lines = ax.plot(
        x,
        rows.T,
        "o-" if len(x) <= 16 and len(rows) == 1 else "-",
        ms=4,
        color=color,
        lw=1.8 if len(rows) == 1 else 1.3,
    )
    lines[0].set_label(name)


def _mark(ax, marks):
    for text, place in marks.items():
        ax.axvline(place, color=GREY, lw=1.2, ls=(0, (4, 3)), zorder=0)
        at = dict(xycoords=ax.get_xaxis_transform(), textcoords="offset points", fontsize=9, color=GREY)
        ax.annotate(text, (place, 0.03), (4, 0), **at)


def _scale_axes(ax, log, digits=(1,)):
    if "x" in log:
        ax.set_xscale("log")
        _plain_log_ticks(ax.xaxis)
    if "y" in log:
        ax.set_yscale("log")
        _plain_log_ticks(ax.yaxis, digits)


def _read_curves(title, x, lines, xlabel):
    """The curves at some twelve places as text; several curves of one name by their mean."""
    some = np.unique(np.linspace(0, len(x) - 1, min(len(x), 12)).round().astype(int))
    columns = {xlabel: [f"{x[i]:,.4g}" for i in some]}
    for name, rows in lines.items():
        columns[name if len(rows) == 1 else f"{name} (mean of {len(rows)})"] = [f"{v:.3g}" for v in rows.mean(0)[some]]
    return f"{title}\n{table(columns)}".strip("\n")


def _check_heads(maps):
    maps = as_real("maps", maps)
    if maps.ndim != 4 or maps.shape[2] != maps.shape[3] or not maps.size or not 2 <= maps.shape[3] <= MOST:
        raise ValueError(f"maps has shape {maps.shape}, but must have (layers, heads, n, n) with n from 2 to {MOST}")
    if max(maps.shape) > MOST:
        raise ValueError(f"maps has shape {maps.shape}, but a picture has room for {MOST} layers and {MOST} heads")
    if maps.size > 2**24:
        raise ValueError(f"maps has shape {maps.shape}, {maps.size:,} weights, but a picture has room for {2**24:,}")
    rows = maps.reshape(-1, maps.shape[3])
    _check_map("maps", rows, range(rows.shape[0]), range(rows.shape[1]), (0, 1))
    return maps


def _check_marks(marks, layers, heads):
    """{layer.head: ((layer, head), text)}, in the order given."""
    as_dict("marks", marks, "{'layer.head': text}")
    if len(marks) > len(FRAMES):
        raise ValueError(f"marks has {len(marks)} heads, but there are only {len(FRAMES)} colours")
    places = {f"{layer}.{head}": (layer, head) for layer in range(layers) for head in range(heads)}
    for head, text in marks.items():
        if head not in places:
            raise ValueError(f"marks has the head {head!r}, but must name heads of 0.0 to {layers - 1}.{heads - 1}")
        if not isinstance(text, str):
            raise TypeError(f"marks has {text!r} for the head {head!r}, but must have a string")
    return {head: (places[head], text) for head, text in marks.items()}


def _fold(layers, heads):
    """(blocks, side): into how many blocks the layers are cut so that a map becomes largest, and its inches."""
    sides = [min((8.9 / b - 0.35) / heads, 8 / math.ceil(layers / b), 1.4) for b in range(1, layers + 1)]
    return 1 + sides.index(max(sides)), max(sides)


def _mosaic(maps, rows, pitch):
    """Maps (layers, heads, n, n) as one array (rows * pitch, heads * pitch), NaN between them."""
    layers, heads, n, _ = maps.shape
    mosaic = np.full((rows, pitch, heads, pitch), np.nan)
    mosaic[:layers, :n, :, :n] = maps.swapaxes(1, 2)  # (layers, n, heads, n)
    return mosaic.reshape(rows * pitch, heads * pitch)


def _number_heads(ax, layers, heads, n, pitch):
    ax.set_xticks((n - 1) / 2 + pitch * np.arange(heads), range(heads))
    ax.set_yticks((n - 1) / 2 + pitch * np.arange(len(layers)), layers)
    ax.tick_params(length=0)
    edge = n - pitch - 0.5  # as wide a gap before the first map as after the last
    ax.set(xlim=(edge, ax.get_xlim()[1]), ylim=(ax.get_ylim()[0], edge))


def _frame(axes, rows, n, pitch, layer, head, color):
    """A frame in the gaps around one map."""
    size, gap = (n + pitch) / 2, (pitch - n) / 4
    corner = head * pitch - 0.5 - gap, layer % rows * pitch - 0.5 - gap
    frame = Rectangle(corner, size, size, fill=False, ec=color, lw=2.2, clip_on=False)
    return axes[layer // rows].add_patch(frame)


def _name_frames(picture, frames, names):
    legend = picture.legend(frames, names, loc="outside upper left", ncols=3, handlelength=1, handleheight=1)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _read_heads(maps, marks):
    """The marked heads, and at most 30 layers with their strongest heads, as text."""
    first = maps[..., 1:, 0].mean(axis=-1)  # (layers, heads)
    previous = np.diagonal(maps, -1, -2, -1).mean(axis=-1)  # (layers, heads)
    some = np.unique(np.linspace(0, len(maps) - 1, min(len(maps), 30)).round().astype(int))
    columns = {"layer": [str(layer) for layer in some]}
    for name, share in (("first key", first[some]), ("previous key", previous[some])):
        columns[f"most on the {name}"] = [f"head {head}" for head in share.argmax(axis=1)]
        columns["weight" + " " * len(columns)] = share.max(axis=1)
    lines = [
        f"{head} {text}: mean weight on the first key {first[at]:.3f}, on the previous one {previous[at]:.3f}"
        for head, (at, text) in marks.items()
    ]
    layers, heads, n, _ = maps.shape
    return "\n".join([f"{layers} layers with {heads} heads each, maps {n} x {n}", *lines, table(columns)])


def _check_product(line):
    (_, (n, inner)), (_, (other, m)), (name, result) = line
    if inner != other:
        raise ValueError(f"the product {name!r} does not fit: the inner lengths {inner} and {other} differ")
    if tuple(result) != (n, m):
        raise ValueError(f"the product {name!r} does not fit: its shape is {tuple(result)}, but should be {(n, m)}")
