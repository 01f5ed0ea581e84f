"""The sliders of the notebooks, by name. Each returns a Live picture."""

import ipywidgets as widgets
import numpy as np

from attn_helpers import plots
from attn_helpers.attention import entropy, softmax
from attn_helpers.live import Live
from attn_helpers.samples import SENTENCES, word_vectors


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
        plots.temperature(words, grid),
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
        plots.hull(words, flat(vectors)),
        compute,
        share=_slider(f"share of {ends[1]}", 0.25, 0, 1, 0.01),
        temperature=_log_slider("temperature", 1, -1, 2),
    )


def kernel_explorer(u, v, grid, truth):
    """Fit a curve to noisy points with attention: Nadaraya-Watson regression, bandwidth by slider.

    u, v         (n,) places and heights of noisy points: the keys and their values
    grid, truth  (m,) the queries and the curve that the points were drawn from
    The score of a query g for a key u is -(g - u)^2 / 2 and the temperature the bandwidth
    squared, so the weights are those of a Gaussian kernel.
    Source: Nadaraya, "On Estimating Regression" (1964); Watson, "Smooth Regression Analysis" (1964).
    """

    u, v, grid, truth = (np.asarray(array, dtype=float) for array in (u, v, grid, truth))

    def weigh(queries, bandwidth):
        return softmax(-((queries[:, None] - u) ** 2) / 2, temperature=bandwidth**2)

    def compute(bandwidth, query):
        fit = weigh(grid, bandwidth) @ v
        weights = weigh(np.array([query]), bandwidth)[0]
        error = np.sqrt(np.mean((fit - truth) ** 2))
        return dict(bandwidth=bandwidth, query=query, fit=fit, value=weights @ v, weights=weights, error=error)

    return Live(
        plots.regression(u, v, grid, truth),
        compute,
        bandwidth=_log_slider("bandwidth", 1, -2, 1),
        query=_slider("query g", 2, grid[0], grid[-1], 0.05),
    )


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


def _choice(name, options):
    return widgets.SelectionSlider(options=list(options), description=name, **_SHAPE)


def _slider(name, value, low, high, step):
    return widgets.FloatSlider(value=value, min=low, max=high, step=step, description=name, **_SHAPE)


def _log_slider(name, value, low, high):
    """A slider from 10**low to 10**high, 20 steps to a factor of 10."""
    return widgets.FloatLogSlider(
        value=value, base=10, min=low, max=high, step=0.05, description=name, readout_format=".3g", **_SHAPE
    )


_SHAPE = {"style": {"description_width": "110px"}, "layout": {"width": "460px", "max_width": "100%"}}
