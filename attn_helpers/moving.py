"""The figures that move. Each returns a Picture with show(...), which changes the artists in place and returns
the text summary of what they now show. Live puts sliders above it."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle
from matplotlib.tri import Triangulation

from attn_helpers.arguments import as_array, as_dict, as_number, as_real
from attn_helpers.heads import head_statistics
from attn_helpers.masks import _boolean
from attn_helpers.picture import (
    AXES,
    BLUE,
    COLORS,
    GREY,
    HIDDEN,
    LIGHT,
    LIVE_DPI,
    ORANGE,
    Picture,
    _bars,
    _check_map,
    _check_series,
    _map,
    _no_minus,
    _plain_log_ticks,
    _read_map,
    _set_bars,
    _shown,
    _texts,
    _token_ticks,
    styled,
    table,
)

SHARES = ("previous", "next", "self", "first", "delimiter", "duplicate", "induction")
"""The statistics of head_statistics that are shares of a head's weight."""


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
        weights = _check_map(name, weights, labels, labels, (0, 1))
        image.set_data(weights)
        _relabel(image, labels)
        title.set_text(f"{name}\n{facts}")
        return f"{name}: {facts}\n{_read_map('', weights, labels, labels, AXES, False)}"

    return _moving(picture, show, image, ax.xaxis, ax.yaxis, title)


@styled
def surveyed(texts):
    """The map of a head on one text, beside what the head does over many texts.

    texts  the labels of each, a list of strings
    show(head, text, labels, weights (n, n), measured, medians): measured and medians are dicts of
    the statistics of head_statistics, of this head and the medians over all heads of its model
    """
    texts = [_texts("labels", labels) for labels in texts]
    picture = Picture(9.8, 5.7, LIVE_DPI)
    picture.get_layout_engine().set(wspace=0.06)
    grid = picture.add_gridspec(2, 2, width_ratios=(2, 1), height_ratios=(4, 1))
    image = _surveyed_map(picture.add_subplot(grid[:, 0]), texts)
    bars, numbers, ticks = _surveyed_bars(picture.add_subplot(grid[0, 1]))
    left, right = image.axes, ticks.axes
    titles = (
        left.set_title("title", loc="left", parse_math=False),
        right.set_title("title\nfacts", loc="left", fontsize=9.5),
    )
    picture.draw_without_rendering()
    picture.set_layout_engine("none")  # the room is made for the longest labels, whichever are shown first
    axes = [left.add_artist(_KeptAxis(axis)) for axis in (left.xaxis, left.yaxis)]

    def show(head, text, labels, weights, measured, medians):
        title, labels = f'{head} on "{text}"', tuple(_texts("labels", labels))
        weights = _check_map(title, weights, labels, labels, (0, 1))
        measured, medians = _check_survey("measured", measured), _check_survey("medians", medians)
        if axes[0].labels != labels:
            _relabel(image, labels)
            axes[0].labels = axes[1].labels = labels
        image.set_data(weights)
        _set_bars(bars, numbers, [measured[name] for name in SHARES], "{:.2f}")
        ticks.set_xdata([medians[name] for name in SHARES])
        titles[0].set_text(title)
        facts = f"entropy {measured['entropy']:.2f} bits, distance {measured['distance']:.1f}"
        titles[1].set_text(f"{head} over many texts\n{facts}")
        return f"{_read_map(title, weights, labels, labels, AXES, False)}\n\n{_read_survey(head, measured, medians)}"

    return _moving(picture, show, image, *axes, *titles, *bars, *numbers, ticks)


@styled
def forming(labels, steps, losses, maps):
    """Losses during training, and the maps of a few heads at one step of it.

    labels  n strings, at most 32; steps (m,) whole numbers, rising
    losses  {name: (m,)} of one to three models; maps {name: (m, n, n)} of one to three heads
    show(step): one of steps
    """
    labels, steps = _check_steps(labels, steps)
    losses, maps = _check_losses(losses, len(steps)), _check_maps(maps, labels, len(steps))
    measured = {name: _measure(name, values, labels) for name, values in maps.items()}
    side = min(max(2.8, 0.15 * len(labels)), 8.1 / len(maps))  # inches of a map
    picture = Picture(max(6.6, 1.7 + side * len(maps)), 3.3 + side, LIVE_DPI)
    top, bottom = picture.subfigures(2, 1, height_ratios=(1.9, 1.4 + side))
    dots, title = _loss_curves(top, steps, losses)
    images, heads = _forming_maps(bottom, labels, maps, side)

    def show(step):
        at = steps.index(step)
        for dot, values in zip(dots, losses.values()):
            dot.set_data([step], [values[at]])
        title.set_text(f"step {step}")
        for image, head, (name, values) in zip(images, heads, maps.items()):
            image.set_data(values[at])
            head.set_text("\n".join([name, *_read_measured(measured[name], at, 2)]))
        lines = [f"step {step}: " + ", ".join(f"loss {name} {values[at]:.3f}" for name, values in losses.items())]
        lines += [f"{name}: {', '.join(_read_measured(measured[name], at, 3))}" for name in maps]
        return "\n".join(lines)

    return _moving(picture, show, *dots, title, *images, *heads)


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
        _check_series(labels, {"weights": weights, "plain": plain})
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
def pipeline(labels, Q, S, A, V, Y):
    """Five matrices of one attention layer; one query row is framed in four of them, its numbers as bars below.

    labels  n strings; Q (n, d_k), S and A (n, n), V (n, d_v), Y (n, d_v)
    show(t): t is the row
    """
    labels = _texts("labels", labels)
    picture = Picture(9.6, 3.1 + 0.2 * len(labels), LIVE_DPI)
    top, bottom = picture.subfigures(2, 1, height_ratios=(0.9 + 0.2 * len(labels), 2.2))
    carried = np.abs(V).max()  # one scale for V and Y: a mean is compared with what it averages
    matrices = (
        ("$Q$", Q, "$d_k$ columns", np.abs(Q).max()),
        ("$S = Q K^T / \\sqrt{d_k}$", S, AXES[1], np.abs(S).max()),
        ("$A = \\mathrm{softmax}(S)$", A, AXES[1], None),
        ("$V$", V, "$d_v$ columns", carried),
        ("$Y = A V$", Y, "$d_v$ columns", carried),
    )
    axes = top.subplots(1, 5, width_ratios=(1.5, 1.2, 1.2, 1.5, 1.5))
    frames = []
    for ax, (name, M, columns, limit) in zip(axes, matrices):
        image = _map(ax, M, (0, 1)) if limit is None else _map(ax, M, (-limit, limit), "RdBu_r")
        image.axes.set_aspect("auto")
        ax.set(title=name, xlabel=columns, xticks=[])
        ax.set_yticks(range(len(labels)), map(_shown, labels) if ax is axes[0] else [], fontsize=8, parse_math=False)
        ax.tick_params(length=0)
        if name != "$V$":
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


@styled
def masked(labels):
    """Which keys a query may attend to, beside the weights that are left; what is hidden is grey.

    labels  n strings
    show(name, allowed (n, n) of booleans, weights (n, n), 0 where nothing is allowed)
    """
    labels = _texts("labels", labels)
    n, side = len(labels), 0.27 * len(labels)
    picture = Picture(2 * side + 3.9, side + 1.9, LIVE_DPI)
    left, right = picture.subplots(1, 2, sharey=True)
    cells, image = _map(left, np.ones((n, n)), (0, 1), "Blues"), _map(right, np.zeros((n, n)), (0, 1))
    cells.set_cmap(ListedColormap([HIDDEN, BLUE]))
    for ax in (left, right):
        _token_ticks(ax, labels, labels)
        ax.set_xlabel(AXES[1])
    left.set_ylabel(AXES[0])
    title = left.set_title("", loc="left")
    right.set_title("weights, and the sum of each row", loc="left")
    place = dict(textcoords="offset points", fontsize=8, va="center", annotation_clip=False)
    sums = [right.annotate("0.00", (n - 0.5, row), (4, 0), **place) for row in range(n)]
    picture.colorbar(image, ax=[left, right], label="weight (grey: hidden)", shrink=0.8, pad=0.06)

    def show(name, allowed, weights):
        allowed, weights = _boolean("allowed", allowed), _check_map(name, weights, labels, labels, (0, 1))
        _check_shape("allowed", allowed, (n, n))
        if weights[~allowed].any():
            raise ValueError(f"the map {name!r} has up to {weights[~allowed].max():.3g} where allowed is False, not 0")
        cells.set_data(allowed)
        image.set_data(np.ma.masked_where(~allowed, weights))
        title.set_text(name)
        for text, total in zip(sums, weights.sum(axis=1)):
            text.set_text(f"{total:.2f}")
        some = np.flatnonzero(allowed.any(axis=1))
        lines = [f"{name}: {allowed.sum()} of {n * n} cells allowed"]
        if len(some) < n:
            lines.append(f"{n - len(some)} of {n} rows have nothing allowed: zeros")
        if len(some):
            lines.append(_read_map("", weights[some], [labels[i] for i in some], labels, AXES, False))
        return "\n".join(lines)

    return _moving(picture, show, cells, image, title, *sums)


@styled
def scaling(widths, positions):
    """One query's scores and weights, unscaled and scaled, and what both do as d_k grows.

    widths     (m,) the values of d_k on the curves; positions: the number of keys
    show(d_k, temperature, scores, weights, bits, most, curves): the first four are dicts with the
    keys "unscaled" and "scaled", of (n,), (n,), a number and a number; curves a dict with
    (mean entropy (m,), mean largest weight (m,)) for each
    """
    picture = Picture(9.8, 4.9, LIVE_DPI)
    grid = picture.subplots(2, 3, width_ratios=(1, 1, 1.05))
    kinds = {"unscaled": ORANGE, "scaled": BLUE}
    shared = grid[0, :2]
    bars, titles, notes, lines, dots = {}, {}, {}, {}, {}
    keys = range(positions)
    for column, (kind, color) in enumerate(kinds.items()):
        top, bottom = grid[:, column]
        bars[kind] = top.bar(keys, np.zeros(positions), color=GREY), bottom.bar(keys, np.zeros(positions), color=color)
        top.axhline(0, color="#9A9A9A", lw=0.8)
        bottom.set(ylim=(0, 1.02), xlabel="key")
        for ax in (top, bottom):
            ax.set_xticks(range(0, positions, 5))
        titles[kind], notes[kind] = top.set_title("", loc="left"), bottom.set_title("", loc="left")
    shared[0].set_ylabel("score")
    grid[1, 0].set_ylabel("weight")
    for row, (name, high) in enumerate((("entropy, bits", np.log2(positions)), ("largest weight", 1))):
        ax = grid[row, 2]
        for kind, color in kinds.items():
            (line,) = ax.semilogx(widths, np.zeros(len(widths)), color=color, label=kind)
            (dot,) = ax.plot([1], [0], "o", color=color, ms=8, mec="white", zorder=4)
            lines[kind, row], dots[kind, row] = line, dot
        ax.set(ylabel=name, ylim=(-0.04 * high, 1.06 * high), xlabel="$d_k$" if row else None)
        _plain_log_ticks(ax.xaxis)
    grid[0, 2].set_title("mean of many queries; dots: this one", loc="left", fontsize=9)
    grid[1, 2].legend(loc="upper left", bbox_to_anchor=(0, 1.22), ncols=2, borderaxespad=0, handlelength=1.4)

    shapes = dict(scores=(positions,), weights=(positions,), bits=(), most=(), curves=(2, len(widths)))

    def show(d_k, temperature, scores, weights, bits, most, curves):
        for (name, shape), given in zip(shapes.items(), (scores, weights, bits, most, curves)):
            for kind in kinds:
                _check_shape(f"{name} {kind}", given[kind], shape)
        reach = 1.1 * max(np.abs(scores["unscaled"]).max(), np.abs(scores["scaled"]).max())
        for ax in shared:
            ax.set_ylim(-reach, reach)
        for kind, parts in bars.items():
            for part, values in zip(parts, (scores[kind], weights[kind])):
                for bar, value in zip(part, values):
                    bar.set_height(value)
            for row, value in enumerate((bits[kind], most[kind])):
                lines[kind, row].set_ydata(curves[kind][row])
                dots[kind, row].set_data([d_k], [value])
            notes[kind].set_text(f"{bits[kind]:.2f} bits, largest weight {most[kind]:.2f}")
        titles["unscaled"].set_text(f"unscaled: $q \\cdot k$, $d_k$ = {d_k}")
        titles["scaled"].set_text(f"scaled: $q \\cdot k\\,/\\,\\sqrt{{{d_k}}}$")
        rows = [
            f"{kind:8s}  scores {scores[kind].min():7.2f} to {scores[kind].max():6.2f}   "
            f"entropy {bits[kind]:.3f} bits, {2 ** bits[kind]:5.2f} positions   largest weight {most[kind]:.3f}"
            for kind in kinds
        ]
        return f"d_k = {d_k}, temperature {temperature:.3g}\n" + "\n".join(rows)

    artists = [bar for parts in bars.values() for part in parts for bar in part]
    return _moving(
        picture,
        show,
        *artists,
        *titles.values(),
        *notes.values(),
        *lines.values(),
        *dots.values(),
        *(ax.yaxis for ax in shared),
    )


def _moving(picture, show, *artists):
    picture.show, picture.moving = show, list(artists)
    return picture


class _KeptAxis(Artist):
    """An axis that is drawn once for each value of labels, and then kept as pixels: 50 words take 50 ms."""

    def __init__(self, axis):
        super().__init__()
        self.axis, self.labels, self._kept = axis, None, {}
        axis.set_animated(True)

    def draw(self, renderer):
        key = self.labels, renderer.dpi
        if key in self._kept:
            renderer.restore_region(self._kept[key])
        else:
            self.axis.draw(renderer)
            self._kept[key] = renderer.copy_from_bbox(self.axis.get_tightbbox(renderer).padded(2))


def _surveyed_map(ax, texts):
    """The image of a map, with room for the longest labels of all texts."""
    longest = [max((label for labels in texts for label in labels), key=len)] * max(map(len, texts))
    image = _map(ax, np.zeros((len(longest), len(longest))), (0, 1))
    _relabel(image, longest)
    ax.tick_params(labelsize=8.5)
    ax.set(xlabel=AXES[1], ylabel=AXES[0])
    ax.figure.colorbar(image, ax=ax, label="weight", shrink=0.8, pad=0.02)
    return image


def _surveyed_bars(ax):
    """Bars for SHARES, their numbers, and a tick over each at the median of all heads."""
    rows = np.arange(len(SHARES))
    bars, numbers = _bars(ax, SHARES, np.zeros(len(SHARES)), BLUE, "{:.2f}", 0, 1)
    (ticks,) = ax.plot(rows * 0.0, rows - 0.36, "|", ms=9, mew=2, color=GREY, ls="none", label="median of all heads")
    ax.set_xlabel("mean weight")
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), borderaxespad=0, handlelength=1)
    return bars, numbers, ticks


def _relabel(image, labels):
    """Fit the axes of a map to other labels."""
    end = len(labels) - 0.5
    image.set_extent((-0.5, end, end, -0.5))
    image.axes.set(xlim=(-0.5, end), ylim=(end, -0.5))
    _token_ticks(image.axes, labels, labels)


def _check_survey(name, statistics):
    as_dict(name, statistics, "{statistic: number}", 1)
    for statistic in (*SHARES, "entropy", "distance"):
        if statistic not in statistics:
            raise ValueError(f"{name} has no {statistic!r}, but only {list(statistics)}")
        as_number(f"{name} {statistic!r}", statistics[statistic])
    return statistics


def _read_survey(head, measured, medians):
    names = [*SHARES, "entropy", "distance"]
    columns = {"mean over many texts": names, head: [measured[name] for name in names]}
    return table({**columns, "median of all heads": [medians[name] for name in names]})


def _check_steps(labels, steps):
    labels, steps = _texts("labels", labels), as_array("steps", steps)
    if len(labels) > 32:
        raise ValueError(f"there are {len(labels)} labels, but a map that moves has room for 32: show a part of them")
    if steps.ndim != 1 or not steps.size or steps.dtype.kind not in "iu" or (steps[1:] <= steps[:-1]).any():
        raise ValueError(f"steps is {steps} of {steps.dtype}, but must be whole numbers (m,), one or more, rising")
    return labels, steps.tolist()


def _check_few(name, given, form):
    """The entries of a dict, as real numbers by name."""
    as_dict(name, given, form, 1)
    if len(given) > len(COLORS):
        raise ValueError(f"{name} has {len(given)} entries, {list(given)}, but there is room for {len(COLORS)}")
    for one in given:
        if not isinstance(one, str):
            raise TypeError(f"{name} has the name {one!r}, but each must be a string")
    return {one: as_real(f"{name} {one!r}", values).copy() for one, values in given.items()}


def _check_losses(losses, m):
    losses = _check_few("losses", losses, "{name: loss at each step}")
    for name, values in losses.items():
        _check_shape(f"losses {name!r}", values, (m,))
        if not np.isfinite(values).all():
            raise ValueError(f"losses {name!r} holds NaN or infinity, which cannot be drawn")
    return losses


def _check_maps(maps, labels, m):
    maps = _check_few("maps", maps, "{name: map at each step}")
    for name, values in maps.items():
        _check_shape(f"maps {name!r}", values, (m, len(labels), len(labels)))
        for values_then in values:
            _check_map(name, values_then, labels, labels, (0, 1))
    return maps


def _measure(name, values, labels):
    """What a head looks at, at each step; without what there is none of."""
    try:
        found = head_statistics(values, tokens=labels)  # (m,) each
    except ValueError as error:
        raise ValueError(f"maps {name!r}: {error}") from None
    return {key: found[key] for key in ("previous", "first", "induction") if not np.isnan(found[key]).all()}


def _read_measured(measured, at, digits):
    return [f"{name} {values[at]:.{digits}f}" for name, values in measured.items()]


def _loss_curves(figure, steps, losses):
    """A dot on each curve, and the title."""
    ax, dots = figure.subplots(), []
    for (name, values), color in zip(losses.items(), COLORS):
        ax.plot(steps, values, color=color, label=name)
        dots += ax.plot(steps[-1:], values[-1:], "o", color=color, ms=8, mec="white", zorder=4)
    ax.set(xlabel="step", ylabel="loss, nats", ylim=_padded([0, *np.concatenate(list(losses.values()))]))
    place = dict(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(losses), borderaxespad=0.1, handlelength=1.4)
    for text in ax.legend(ax.lines[::2], list(losses), **place).get_texts():
        text.set_parse_math(False)
    return dots, ax.set_title("", loc="left")


def _forming_maps(figure, labels, maps, side):
    """An image for each map, and its title."""
    axes = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    images = [_map(ax, values[-1], (0, 1)) for ax, values in zip(axes, maps.values())]
    for ax in axes:
        _token_ticks(ax, labels, labels)
        ax.tick_params(labelsize=min(9, max(5.5, 62 * side / len(labels))))  # points
        ax.set_xlabel(AXES[1])
    axes[0].set_ylabel(AXES[0])
    figure.colorbar(images[0], ax=list(axes), label="weight", shrink=0.8, pad=0.02)
    return images, [ax.set_title("name\n\n\n", loc="left", fontsize=9.5, parse_math=False) for ax in axes]


def _check_shape(name, values, shape):
    found = as_array(name, values).shape
    if found != shape:
        raise ValueError(f"{name} has shape {found}, but must have {shape}")


def _columns(ax, values, color, ylabel, labels=None):
    """Bars for the first row of values; the axis has room for every row."""
    bars = ax.bar(range(values.shape[1]), values[0], color=color)
    low, high = min(0, values.min()), max(0, values.max())
    room = 0.06 * (high - low) or 1
    if labels:
        ax.set_xticks(range(len(labels)), map(_shown, labels), rotation=90, fontsize=8, parse_math=False)
    ax.set(ylim=(low - (room if low < 0 else 0), high + room), ylabel=ylabel)
    return bars


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


def _padded(values, share=0.08):
    room = share * np.ptp(values) or 1
    return min(values) - room, max(values) + room
