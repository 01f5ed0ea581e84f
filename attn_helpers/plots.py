"""The figures that stand still: arrays and labels in, a Picture out."""

import math

import numpy as np
from matplotlib.patches import Rectangle

from attn_helpers.picture import (
    AXES,
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    MOST,
    ORANGE,
    Picture,
    _bars,
    _check_labels,
    _check_map,
    _map,
    _plain_log_ticks,
    _read_map,
    _texts,
    _token_ticks,
    styled,
    table,
)


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


def _write_sums(ax, values):
    place = dict(textcoords="offset points", fontsize=8, annotation_clip=False)
    for row, total in enumerate(values.sum(axis=1)):
        ax.annotate(f"{total:.2f}", (values.shape[1] - 0.5, row), (4, 0), va="center", **place)
    for column, total in enumerate(values.sum(axis=0)):
        ax.annotate(f"{total:.2f}", (column, -0.5), (0, 3), ha="center", va="bottom", rotation=90, **place)


def _check_product(line):
    (_, (n, inner)), (_, (other, m)), (name, result) = line
    if inner != other:
        raise ValueError(f"the product {name!r} does not fit: the inner lengths {inner} and {other} differ")
    if tuple(result) != (n, m):
        raise ValueError(f"the product {name!r} does not fit: its shape is {tuple(result)}, but should be {(n, m)}")
