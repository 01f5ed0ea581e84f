"""The sliders of the notebooks, by name. Each returns a Live picture."""

import ipywidgets as widgets
import numpy as np

from attn_helpers import moving
from attn_helpers.arguments import as_real, as_whole
from attn_helpers.attention import entropy, scaled_dot_product_attention, scores, softmax
from attn_helpers.live import Live
from attn_helpers.masks import causal_mask, padding_mask, window_mask
from attn_helpers.picture import MOST
from attn_helpers.rope import apply_rope
from attn_helpers.samples import (
    MINILM_HEADS,
    MINILM_SENTENCES,
    SENTENCES,
    SMOLLM2_HEADS,
    SMOLLM2_TEXTS,
    bank_senses,
    head_survey,
    minilm_head,
    minilm_maps,
    smollm2_head,
    smollm2_maps,
    word_vectors,
)

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
"""The values of d_k on the slider."""

STARTS = {"MiniLM": ("money", 2, 0), "SmolLM2": ("random", 18, 6)}
"""Text, layer and head of each model that are shown first."""


def temperature_explorer(sentence=SENTENCES["money"], queries=("money", "salary", "bank", "week", "she", "river")):
    """Ask a sentence about a word, at any temperature: weights, entropy, effective positions.

    sentence  lower-case words with blanks between them, or a list of words
    queries   the words to choose from
    Each word needs a GloVe vector (see word_vectors).
    Scores are dot products of GloVe vectors, not scaled.
    """
    words, vectors = _look_up("sentence", sentence, 1)
    queries, asked = _look_up("queries", queries, 1)
    scores = dict(zip(queries, asked @ vectors.T))  # each (n,)
    grid = np.logspace(-2, 2, 81)
    curves = {q: [2 ** entropy(softmax(s, temperature=t)) for t in grid] for q, s in scores.items()}

    def compute(query, temperature):
        weights = softmax(scores[query], temperature=temperature)
        bits = entropy(weights)
        return dict(query=query, temperature=temperature, weights=weights, bits=bits, curve=curves[query])

    return Live(
        moving.temperature(words, grid),
        compute,
        query=_choice("query word", queries),
        temperature=_log_slider("temperature", 1, -2, 2),
    )


def hull_explorer(sentence=SENTENCES["doctor"], ends=("doctor", "home")):
    """Move the query from one word to another and watch the output stay inside the convex hull.

    sentence  lower-case words with blanks between them, or a list; at least three different ones
    ends      the two words between which the query moves
    The plane is spanned by the two directions in which the sentence's vectors spread most
    (principal components); weights come from all 50 dimensions.
    """
    words, vectors = _look_up("sentence", sentence, 3)
    ends, (start, end) = _look_up("ends", ends, 2, most=2)
    centre = vectors.mean(axis=0)
    plane = np.linalg.svd(vectors - centre, full_matrices=False)[2][:2]  # (2, 50)
    plane = plane * np.where(plane.sum(axis=1, keepdims=True) < 0, -1, 1)  # the sign is free: fix it

    def flat(x):
        return (x - centre) @ plane.T

    def compute(share, temperature):
        steps = np.append(np.linspace(0, 1, 41), share)[:, None]
        asked = (1 - steps) * start + steps * end  # (42, 50)
        weights = softmax(asked @ vectors.T, temperature=temperature)  # (42, n)
        outputs = flat(weights @ vectors)  # (42, 2)
        name = f'{1 - share:.0%} "{ends[0]}", {share:.0%} "{ends[1]}"'
        return dict(query=flat(asked[-1]), output=outputs[-1], path=outputs[:-1], weights=weights[-1], name=name)

    return Live(
        moving.hull(words, flat(vectors)),
        compute,
        share=_slider(f"share of {ends[1]}", 0.25, 0, 1, 0.01),
        temperature=_log_slider("temperature", 1, -1, 2),
    )


def kernel_explorer(u, v, grid, truth):
    """Fit a curve to noisy points with attention: Nadaraya-Watson regression, bandwidth by slider.

    u, v         (n,) places and heights of noisy points: the keys and their values
    grid, truth  (m,) the queries, rising, and the curve that the points were drawn from
    The score of a query g for a key u is -(g - u)^2 / 2 and the temperature the bandwidth
    squared, so the weights are those of a Gaussian kernel.
    Source: Nadaraya, "On Estimating Regression" (1964); Watson, "Smooth Regression Analysis" (1964).
    Raises TypeError or ValueError where an argument does not fit, and names it.
    """
    u, v = _series(u=u, v=v)
    grid, truth = _series(grid=grid, truth=truth)
    if len(grid) < 2 or not (np.diff(grid) > 0).all():
        raise ValueError("grid must rise, with two numbers or more")

    def weigh(queries, bandwidth):
        return softmax(-((queries[:, None] - u) ** 2) / 2, temperature=bandwidth**2)

    def compute(bandwidth, query):
        fit = weigh(grid, bandwidth) @ v
        weights = weigh(np.array([query]), bandwidth)[0]
        error = np.sqrt(np.mean((fit - truth) ** 2))
        return dict(bandwidth=bandwidth, query=query, fit=fit, value=weights @ v, weights=weights, error=error)

    return Live(
        moving.regression(u, v, grid, truth),
        compute,
        bandwidth=_log_slider("bandwidth", 1, -2, 1),
        query=_slider("query g", 2, grid[0], grid[-1], 0.05),
    )


def head_explorer(heads=MINILM_HEADS, sentences=MINILM_SENTENCES):
    """Look at the maps of trained heads on real sentences: choose a head of MiniLM and a sentence.

    heads, sentences  names out of MINILM_HEADS and MINILM_SENTENCES, the first shown first
    The maps are computed here from the head's matrices.
    """
    heads, sentences = _names("heads", heads, MINILM_HEADS), _names("sentences", sentences, MINILM_SENTENCES)

    def compute(head, sentence):
        found = minilm_head(head, sentence)
        weights = scaled_dot_product_attention(*_project(found))[1]  # (n, n)
        previous, following = np.diagonal(weights, -1).mean(), np.diagonal(weights, 1).mean()
        facts = f"mean weight: first {weights[1:, 0].mean():.2f}, previous {previous:.2f}, "
        facts += f"self {np.diagonal(weights).mean():.2f}, next {following:.2f}"
        return dict(name=f"head {head}", labels=found.tokens, weights=weights, facts=facts)

    return Live(
        moving.head_map([minilm_head(heads[0], sentence).tokens for sentence in sentences]),
        compute,
        head=_choice("head", heads),
        sentence=_choice("sentence", sentences),
    )


def model_explorer(model="MiniLM"):
    """Look at every head of a trained model: its map on a text, and what it does over many texts.

    model  one of MODELS
    The statistics are those of head_survey; the grey ticks are the medians over all heads.
    """
    survey = head_survey(model)
    read, texts = {"MiniLM": (minilm_maps, MINILM_SENTENCES), "SmolLM2": (smollm2_maps, SMOLLM2_TEXTS)}[model]
    medians = {name: np.median(statistic) for name, statistic in survey.items()}
    layers, heads = survey["first"].shape

    def compute(text, layer, head):
        tokens, weights = read(text)
        measured = {name: statistic[layer, head] for name, statistic in survey.items()}
        shown = dict(labels=tokens, weights=weights[layer, head], measured=measured, medians=medians)
        return dict(head=f"{model} {layer}.{head}", text=text, **shown)

    text, layer, head = STARTS[model]
    choice = _choice("text", texts)
    choice.value = text
    return Live(
        moving.surveyed([read(text).tokens for text in texts]),
        compute,
        text=choice,
        layer=_whole("layer", layer, 0, layers - 1),
        head=_whole("head", head, 0, heads - 1),
    )


def forming_explorer(labels, steps, losses, maps):
    """Watch heads form during training, step by step.

    labels  n strings, at most 32, the tokens that the maps are about
    steps   (m,) whole numbers, rising
    losses  {name: (m,)} of one to three models, maps {name: (m, n, n)} of one to three heads
    The statistics are those of head_statistics on these tokens.
    """
    picture = moving.forming(labels, steps, losses, maps)
    steps = np.asarray(steps).tolist()
    step = widgets.SelectionSlider(options=steps, value=steps[-1], description="step", **_SHAPE)
    return Live(picture, lambda step: dict(step=step), step=step)


def rope_explorer(heads=("16.0", "1.2", "18.6"), text="random", query=None):
    """Ask a head of SmolLM2 how its score depends on distance, and move the whole text along.

    heads  names out of SMOLLM2_HEADS; text one of SMOLLM2_TEXTS
    query  the position that asks; None stands for 17 in the random text and for the last in others
    The curve is the mean score over all pairs of tokens but the first, each placed at that offset.
    """
    heads, (text,) = _names("heads", heads, SMOLLM2_HEADS), _names("text", [text], SMOLLM2_TEXTS)
    tokens = smollm2_head(heads[0], text).tokens
    query = _position(query, 17 if text == "random" else len(tokens) - 1, len(tokens))
    offsets = np.arange(41)
    curves = {head: [_mean_score(smollm2_head(head, text), offset) for offset in offsets] for head in heads}
    plain = {head: _causal_weights(smollm2_head(head, text))[query] for head in heads}
    unmoved = {head: _causal_weights(smollm2_head(head, text), 0)[query] for head in heads}

    def compute(head, offset, start):
        weights = _causal_weights(smollm2_head(head, text), start)[query]
        change = np.abs(weights - unmoved[head]).max()
        numbers = dict(head=head, offset=offset, curve=curves[head], start=start, query=query)
        return dict(**numbers, weights=weights, plain=plain[head], change=change)

    return Live(
        moving.rotary(tokens, offsets, (min(map(min, curves.values())), max(map(max, curves.values())))),
        compute,
        head=_choice("head", heads),
        offset=_whole("offset", 5, 0, 40),
        start=_whole("first position", 0, 0, 1000, 20),
    )


def sense_explorer():
    """Follow the vector of `bank` through the layers of MiniLM, in eight sentences of two senses."""
    sentences, kinds, vectors = bank_senses()
    units = np.swapaxes(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), 0, 1)  # (7, 8, 384)
    cosines = units @ np.swapaxes(units, 1, 2)  # (7, 8, 8)
    kinds, different = np.array(kinds), ~np.eye(len(kinds), dtype=bool)
    pairs = {f"both {kind}": different & np.outer(kinds == kind, kinds == kind) for kind in dict.fromkeys(kinds)}
    pairs["one of each"] = kinds[:, None] != kinds
    curves = {name: _spread(cosines[:, chosen]) for name, chosen in pairs.items()}
    labels = [f"{kind} {1 + i % 4}" for i, kind in enumerate(kinds)]

    return Live(
        moving.senses(labels, len(cosines), curves),
        lambda layer: dict(layer=layer, cosines=cosines[layer]),
        layer=_whole("layers passed", 4, 0, len(cosines) - 1),
    )


def pipeline_explorer(labels, query, key, value):
    """Follow one row of a layer from its query to its output.

    labels  n strings; query, key (n, d_k); value (n, d_v)
    """
    output, weights = scaled_dot_product_attention(query, key, value)
    query, key, value = (np.asarray(array, dtype=float) for array in (query, key, value))
    if weights.shape != (len(labels), len(labels)) or value.ndim != 2 or value.shape[1] == 0:
        raise ValueError(
            f"there are {len(labels)} labels, but query {query.shape}, key {key.shape} and value {value.shape} give "
            f"weights {weights.shape}: each needs one row for each label and no batch axis"
        )
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinity, which cannot be drawn")
    return Live(
        moving.pipeline(labels, query, scores(query, key), weights, value, output),
        lambda t: dict(t=t),
        t=_whole("query row t", 0, 0, len(labels) - 1),
    )


def mask_explorer(head="0.8", sentence="money"):
    """Put masks on the map of a trained head: which cells are allowed, and what weights are left.

    head, sentence  names out of MINILM_HEADS and MINILM_SENTENCES
    """
    (head,), (sentence,) = _names("head", [head], MINILM_HEADS), _names("sentence", [sentence], MINILM_SENTENCES)
    found = minilm_head(head, sentence)
    n, projected = len(found.tokens), _project(found)
    causal = causal_mask(n)
    masks = {
        "none": lambda size: ("no mask", np.ones((n, n), bool)),
        "causal": lambda size: ("causal", causal),
        "padding": lambda size: (f"first {size} keys are real", padding_mask([size], n)[0, 0] & np.ones((n, 1), bool)),
        "both": lambda size: (f"causal, first {size} real", padding_mask([size], n)[0, 0] & causal),
        "window": lambda size: (f"at most {size} position{'s' * (size != 1)} away", window_mask(n, window=size)),
    }

    def compute(kind, size):
        name, allowed = masks[kind](size)
        return dict(name=name, allowed=allowed, weights=scaled_dot_product_attention(*projected, mask=allowed)[1])

    kinds = _choice("kind of mask", ["both", *(name for name in masks if name != "both")])
    sizes = _whole("size", n - 3, 0, n)
    kinds.observe(lambda change: sizes.set_trait("disabled", change.new in ("none", "causal")), "value")
    return Live(moving.masked(found.tokens), compute, kind=kinds, size=sizes)


def scaling_explorer(positions=16, queries=200, seed=0):
    """Widen queries and keys, and watch softmax sharpen: scaled and unscaled on the same random draw.

    positions  the number of keys, 2 to 80; queries: how many the mean curves are taken over, 1 to 1000
    seed       of the draw, 0 or more: standard normal components, independent
    At d_k the first d_k columns of one draw are used, so that a wider query keeps what it had.
    """
    positions, queries = as_whole("positions", positions, 2, MOST), as_whole("queries", queries, 1, 1000)
    seed = as_whole("seed", seed, 0)
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(queries, 1, WIDTHS[-1])), rng.normal(size=(queries, positions, WIDTHS[-1]))
    products = np.cumsum(query * key, axis=-1)[..., np.array(WIDTHS) - 1]  # (queries, positions, m)
    products = np.moveaxis(products, -1, 0)  # (m, queries, positions)
    divisors = {"unscaled": np.ones(len(WIDTHS)), "scaled": np.sqrt(WIDTHS)}
    scores = {kind: products / divisor[:, None, None] for kind, divisor in divisors.items()}

    def compute(d_k, temperature):
        at, numbers = WIDTHS.index(d_k), {"scores": {}, "weights": {}, "bits": {}, "most": {}, "curves": {}}
        for kind, s in scores.items():
            weights = softmax(s, temperature=temperature)  # (m, queries, positions)
            bits, most = entropy(weights), weights.max(axis=-1)  # (m, queries) each
            one = dict(scores=s[at, 0], weights=weights[at, 0], bits=bits[at, 0], most=most[at, 0])
            for name, value in {**one, "curves": (bits.mean(axis=1), most.mean(axis=1))}.items():
                numbers[name][kind] = value
        return dict(d_k=d_k, temperature=temperature, **numbers)

    return Live(
        moving.scaling(WIDTHS, positions),
        compute,
        d_k=widgets.SelectionSlider(options=WIDTHS, value=64, description="d_k", **_SHAPE),
        temperature=widgets.FloatLogSlider(
            value=1, base=2, min=-3, max=5, step=0.25, description="temperature", readout_format=".3g", **_SHAPE
        ),
    )


def _project(head):
    """Q, K, V (n, d_k) of a BertHead."""
    return [head.X @ W + b for W, b in ((head.W_Q, head.b_Q), (head.W_K, head.b_K), (head.W_V, head.b_V))]


def _causal_weights(head, start=None):
    """Weights (n, n) of a GptHead whose text starts at a position; None leaves RoPE out."""
    query, key = head.Q, head.K
    if start is not None:
        query, key = (apply_rope(x, start + np.arange(len(x)), base=100000) for x in (query, key))
    return scaled_dot_product_attention(query, key, head.V, is_causal=True)[1]


def _mean_score(head, offset):
    """Mean over all queries and keys but the first, each query `offset` positions after each key."""
    return scores(apply_rope(head.Q[1:], np.full(len(head.Q) - 1, offset), base=100000), head.K[1:]).mean()


def _spread(values):
    return values.min(axis=1), values.mean(axis=1), values.max(axis=1)


def _series(**columns):
    """Each of them as finite numbers (n,), of one length."""
    columns = {name: as_real(name, numbers).astype(float) for name, numbers in columns.items()}
    first = next(iter(columns))
    for name, numbers in columns.items():
        if numbers.ndim != 1 or not numbers.size or len(numbers) != len(columns[first]):
            shapes = " and ".join(f"{other} {column.shape}" for other, column in columns.items())
            raise ValueError(f"{shapes} must be lists of numbers, one or more, and of one length")
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name} holds NaN or infinity, which cannot be drawn")
    return columns.values()


def _look_up(name, words, least, most=None):
    """(list of words, vectors) for an argument that is a sentence or a list of words."""
    if not isinstance(words, (str, list, tuple)):
        raise TypeError(f"{name} is {words!r}, but must be words with blanks between them or a list of words")
    words = words.split() if isinstance(words, str) else list(words)
    if len(set(words)) < least or (most and len(words) > most):
        wanted = "exactly" if most else "at least"
        raise ValueError(f"{name} has {len(set(words))} different words, but needs {wanted} {least}: {words}")
    try:
        return words, word_vectors(words)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _names(name, chosen, known):
    """A list of different names, each one of those known."""
    if isinstance(chosen, (str, bytes, set, dict)) or not np.iterable(chosen):
        raise TypeError(f"{name} is {chosen!r}, but must be a list of names such as {[known[0]]}")
    chosen = list(chosen)
    for one in chosen:
        if not isinstance(one, str):
            raise TypeError(f"{name} has {one!r} where a name is expected, a string such as {known[0]!r}")
    chosen = list(dict.fromkeys(chosen))
    if not chosen or any(one not in known for one in chosen):
        raise ValueError(f"{name} is {chosen!r}, but must hold names out of {', '.join(map(repr, known))}")
    return chosen


def _position(position, default, n):
    return default if position is None else as_whole("query", position, 0, n - 1)


def _choice(name, options):
    return widgets.SelectionSlider(options=list(options), description=name, **_SHAPE)


def _slider(name, value, low, high, step):
    return widgets.FloatSlider(value=value, min=low, max=high, step=step, description=name, **_SHAPE)


def _whole(name, value, low, high, step=1):
    return widgets.IntSlider(value=value, min=low, max=high, step=step, description=name, **_SHAPE)


def _log_slider(name, value, low, high):
    """A slider from 10**low to 10**high, 20 steps to a factor of 10."""
    return widgets.FloatLogSlider(
        value=value, base=10, min=low, max=high, step=0.05, description=name, readout_format=".3g", **_SHAPE
    )


_SHAPE = {"style": {"description_width": "110px"}, "layout": {"width": "460px", "max_width": "100%"}}
