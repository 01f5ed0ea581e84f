"""The exercises of notebook 1: one query, the weights it gives, how widely they are spread."""

import numpy as np

from attn_helpers import attention
from attn_helpers.exercises.mistakes import share
from attn_helpers.judging import judge

_SOFTMAX = [
    (
        lambda s: share(np.exp(s)),
        "exp(1000) overflows and inf / inf is NaN: subtract the largest score before exp",
    ),
    (
        lambda s: np.exp(s - s.max()) / np.exp(s).sum(),
        "above the line the largest score is subtracted, below it exp(1000) still overflows",
    ),
    (
        lambda s: share(np.exp(s - s.mean())),
        "after subtracting the mean a score can still be 1000: subtract the maximum",
    ),
    (
        lambda s: share(np.exp(s - s.min())),
        "subtracting the minimum makes scores larger, not smaller: subtract the maximum",
    ),
    (lambda s: share(np.exp(s - 1000)), "a fixed constant cannot fit all scores: subtract the largest"),
    (
        lambda s: np.exp(s - np.log(np.exp(s).sum())),
        "exp(1000) overflows inside the logarithm: subtract the largest score before exp",
    ),
    (lambda s: np.exp(s - s.max()), "the weights do not sum to 1: divide by the sum"),
    (
        lambda s: share(np.exp(np.clip(s, -700, 700))),
        "clipping gives 1000 and 1001 the same weight; subtracting the maximum keeps their difference",
    ),
    (lambda s: s / s.sum(), "without exp, negative scores do not give proper weights"),
    (
        lambda s: share(np.exp(s.min() - s)),
        "the sign is wrong: the smallest score gets the largest weight",
    ),
    (lambda s: share(2 ** (s - s.max())), "the base is 2, but softmax uses e: np.exp"),
    (
        lambda s: attention.softmax(s, temperature=0),
        "all weight is on the largest score: that is softmax at temperature 0",
    ),
]


def softmax(answer):
    """answer(scores (n,)) -> weights (n,), also for scores of 1000."""
    return judge(
        answer,
        cases=[
            ([1.0, 0.0, 2.0],),
            ([1000.0, 1001.0, 999.0],),
            ([1000.0, 0.0, -1000.0],),
            ([-1001.0, -1000.0],),
            ([20000.0, 20001.0],),  # too large for exp in long double as well, which not every machine has
        ],
        right=attention.softmax,
        mistakes=_SOFTMAX,
        praise="the weights sum to 1 and scores of 1000 do no harm.",
    )


def _weights(q, X, T):
    return attention.softmax(X @ q, temperature=T)


_ATTEND = [
    (_weights, "these are the weights (n,): the output is their weighted sum of the rows of X, (d,)"),
    (lambda q, X, T: X @ q, "these are the scores (n,): softmax and the weighted sum are missing"),
    (lambda q, X, T: X @ q / T, "these are the scores (n,): softmax and the weighted sum are missing"),
    (lambda q, X, T: _weights(q, X, T)[:, None] * X, "the rows are weighted but not summed"),
    (
        lambda q, X, T: (_weights(q, X, T)[:, None] * X).sum(axis=1),
        "the sum ran over the features (axis 1), not over the positions (axis 0)",
    ),
    (
        lambda q, X, T: np.exp(X @ q / T - (X @ q / T).max()) @ X,
        "the weights do not sum to 1: divide by the sum",
    ),
    (lambda q, X, T: _weights(q, X, 1) @ X, "the temperature plays no part: divide the scores by it"),
    (lambda q, X, T: attention.softmax(X @ q * T) @ X, "the scores are multiplied by the temperature: divide by it"),
    (
        lambda q, X, T: _weights(q, X, 1) / T @ X,
        "the weights are divided by the temperature: divide the scores, before softmax",
    ),
    (
        lambda q, X, T: attention.softmax(-X @ q / T) @ X,
        "the sign is wrong: the smallest score gets the largest weight",
    ),
    (lambda q, X, T: X @ q / T @ X, "the scores are used as weights: softmax is missing"),
    (lambda q, X, T: X.mean(axis=0), "this is the mean of the rows: the query plays no part"),
    (
        lambda q, X, T: X[np.argmax(X @ q)],
        "this is the row with the largest score: a look-up, softmax at temperature 0",
    ),
    (
        lambda q, X, T: share(np.exp(X @ q / T)) @ X,
        "exp overflows for large scores: subtract the largest score first",
    ),
    (
        lambda q, X, T: attention.softmax(X @ q / T / np.sqrt(len(q))) @ X,
        "the scores are divided by sqrt(d): right from notebook 2 on, but not in the formula above",
    ),
    (
        lambda q, X, T: attention.softmax(X @ q / np.linalg.norm(X, axis=1) / np.linalg.norm(q) / T) @ X,
        "the scores are cosines: the formula above does not divide by the norms",
    ),
    (
        lambda q, X, T: (attention.softmax(X * q / T, axis=1) * X).sum(axis=0),
        "softmax ran over the features of each row, not over the positions",
    ),
]


def attend(answer):
    """answer(q (d,), X (n, d), temperature) -> output (d,)."""

    rng = np.random.default_rng(0)
    q, X = np.array([0.5, -1.0, 0.75]), rng.normal(size=(4, 3))
    return judge(
        answer,
        cases=[(q, X, 0.7), (q, X, 1.9), (9000 * q, X, 2.0)],
        right=lambda q, X, T: _weights(q, X, T) @ X,
        hint="scores are X @ q, shape (n,), and the weighted sum is weights @ X; does your softmax return?",
        mistakes=_ATTEND,
        praise="scores, softmax, weighted sum: that is attention for one query.",
    )


_EFFECTIVE_POSITIONS = [
    (
        lambda w: 2 ** -(w * np.log2(w)).sum(),
        "a weight of 0 gives 0 * log2(0) = NaN: leave the zeros out of the sum",
    ),
    (attention.entropy, "this is the entropy H: the effective number of positions is 2 ** H"),
    (
        lambda w: attention.entropy(w) * np.log(2),
        "this is the entropy in nats: use np.log2 for H, and then 2 ** H",
    ),
    (
        lambda w: 2 ** (attention.entropy(w) * np.log(2)),
        "the entropy is in nats (np.log) and the power has base 2: use np.log2, or exp with np.log",
    ),
    (
        lambda w: np.exp(attention.entropy(w)),
        "the entropy is in bits and the power has base e: use 2 ** H, or np.log with np.exp",
    ),
    (lambda w: 2 ** -attention.entropy(w), "the minus sign of the entropy is missing"),
    (len, "this counts all positions, whatever their weight"),
    (np.count_nonzero, "this counts the positions with any weight at all, however small"),
    (
        lambda w: 1 / (w**2).sum(),
        "this is 1 / sum(w^2), another measure of spread; the exercise asks for 2 ** entropy",
    ),
    (
        lambda w: 1 / w.max(),
        "this is 1 / the largest weight, another measure of spread; the exercise asks for 2 ** entropy",
    ),
]


def effective_positions(answer):
    """answer(weights (n,)) -> 2 to the power of their entropy in bits."""
    return judge(
        answer,
        cases=[([0.5, 0.25, 0.125, 0.125],), ([0.7, 0.2, 0.1],), ([0.5, 0.0, 0.5],), ([0.0, 1.0],)],
        right=lambda w: 2 ** attention.entropy(w),
        mistakes=_EFFECTIVE_POSITIONS,
        hint="the logarithm of 0 does not exist: leave the zeros out of the sum",
        praise="2 ** H counts equal weights as whole positions and small ones in part.",
    )


def _fit(queries, u, v, temperature, axis=1, power=2, half=2):
    scores = -(np.abs(queries[:, None] - u) ** power) / half
    return attention.softmax(scores, axis=axis, temperature=temperature) @ v


_KERNEL_REGRESSION = [
    (lambda q, u, v, b: _fit(q, u, v, b), "the bandwidth is not squared: the temperature is bandwidth ** 2"),
    (
        lambda q, u, v, b: _fit(q, u, v, b**2, half=1),
        "the factor 1/2 is missing: the score is -(query - u) ** 2 / 2",
    ),
    (lambda q, u, v, b: _fit(q, u, v, b**2, power=1), "the distance is not squared"),
    (
        lambda q, u, v, b: _fit(q, u, v, b**2, half=-2),
        "the minus sign is missing: far points get the weight",
    ),
    (
        lambda q, u, v, b: _fit(q, u, v, b**2, axis=0),
        "softmax ran over the queries: the weights of one query over all u must sum to 1",
    ),
    (
        lambda q, u, v, b: np.exp(-((q[:, None] - u) ** 2) / (2 * b**2)) @ v,
        "the kernel is not divided by its sum, so the weights do not sum to 1",
    ),
    (
        lambda q, u, v, b: share(np.exp(-((q[:, None] - u) ** 2) / 2 / b**2)) @ v,
        "softmax ran over the whole (m, n) matrix: each query needs a sum of its own",
    ),
    (
        lambda q, u, v, b: _fit(q, u, v, 1 / b**2),
        "the scores are multiplied by bandwidth ** 2: divide by it",
    ),
    (lambda q, u, v, b: _fit(q, u, v, 1), "the bandwidth plays no part: the temperature is bandwidth ** 2"),
    (
        lambda q, u, v, b: attention.softmax(-((q[:, None] - u) ** 2) / 2, temperature=b**2),
        "these are the weights (m, n): the fit is their weighted sum of v",
    ),
    (lambda q, u, v, b: _fit(q, u, v, 0), "this is the v of the nearest u: a look-up, bandwidth 0"),
]


def kernel_regression(answer):
    """answer(queries (m,), u (n,), v (n,), bandwidth) -> fitted values (m,)."""

    u, v = np.array([0.0, 0.5, 2.0, 3.5]), np.array([1.0, -1.0, 2.0, 0.5])
    return judge(
        answer,
        cases=[(np.array([0.2, 1.0, 3.0]), u, v, 0.7), (np.array([2.5, 0.1]), u, v, 1.6)],
        right=lambda q, u, v, b: _fit(q, u, v, b**2),
        mistakes=_KERNEL_REGRESSION,
        hint="queries[:, None] - u has the shape (m, n), a row for each query",
        praise="attention with Gaussian scores is Nadaraya-Watson regression.",
    )
