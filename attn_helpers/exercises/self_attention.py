"""The exercises of notebook 3: where queries, keys and values come from, and what order does."""

import numpy as np

from attn_helpers.exercises.mistakes import ROLES, WEIGHING, attend, draw, mistakes_after, scaling_mistakes
from attn_helpers.judging import judge


def _project(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


_SELF_ATTENTION = [
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_K, X @ W_V, divisor=np.sqrt(X.shape[1])),
        "the scores are divided by sqrt(d): it is sqrt(d_k), the width of Q and K, W_Q.shape[1]",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_K, X),
        "the weights average X itself: the values are V = X @ W_V",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_V, X @ W_V),
        "the keys are made with W_V: K = X @ W_K",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_V, X @ W_K, X @ W_V),
        "the queries are made with W_V: Q = X @ W_Q",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_Q, X @ W_Q, X @ W_V),
        "queries and keys are both made with W_Q: K = X @ W_K",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_K, X @ W_K, X @ W_V),
        "queries and keys are both made with W_K: Q = X @ W_Q",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X, X @ W_K, X @ W_V),
        "the queries are X itself: Q = X @ W_Q",
    ),
    (lambda X, W_Q, W_K, W_V: attend(X @ W_Q, X, X @ W_V), "the keys are X itself: K = X @ W_K"),
    (
        lambda X, W_Q, W_K, W_V: attend(X, X, X @ W_V),
        "the scores compare X with X: W_Q and W_K play no part",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X, X, X @ W_V, divisor=np.sqrt(W_Q.shape[1])),
        "the scores compare X with X: W_Q and W_K play no part",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X, X, X),
        "this is attention on X itself: W_Q, W_K and W_V play no part",
    ),
    (
        lambda X, W_Q, W_K, W_V: attend(X @ W_Q.T, X @ W_K.T, X @ W_V),
        "W_Q and W_K are transposed: Q = X @ W_Q, K = X @ W_K",
    ),
    *mistakes_after(_project, [*scaling_mistakes("W_Q.shape[1]"), *WEIGHING, *ROLES]),
]


def self_attention(answer):
    """answer(X (n, d), W_Q (d, d_k), W_K (d, d_k), W_V (d, d_v)) -> Y (n, d_v)."""
    return judge(
        answer,
        cases=[
            draw((4, 5), (5, 3), (5, 3), (5, 2)),
            draw((5, 6), (6, 4), (6, 4), (6, 4)),
            draw((6, 3), (3, 3), (3, 3), (3, 2)),
            draw((4, 5), (5, 3), (5, 3), (5, 2), size=60),
        ],
        right=lambda *case: attend(*_project(*case)),
        mistakes=_SELF_ATTENTION,
        hint="Q = X @ W_Q, K = X @ W_K, V = X @ W_V; the scores Q @ K.T are (n, n), the output is A @ V",
        praise="Q, K and V come from the same X: that is self-attention.",
    )


def _project_two(X, M, W_Q, W_K, W_V):
    return X @ W_Q, M @ W_K, M @ W_V


def _source(q, k, v):
    """Attention whose queries, keys and values come from X (0) or M (1)."""
    return lambda *case: attend(case[q] @ case[2], case[k] @ case[3], case[v] @ case[4])


_CROSS_ATTENTION = [
    (_source(0, 0, 0), "all comes from X, M plays no part: K = M @ W_K, V = M @ W_V"),
    (_source(1, 1, 1), "all comes from M, X plays no part: Q = X @ W_Q"),
    (_source(1, 0, 0), "the roles are swapped: the queries come from X, keys and values from M"),
    (_source(0, 1, 0), "the values come from X: those that look are in X, what they carry home is in M"),
    (_source(0, 0, 1), "the keys come from X: K = M @ W_K, so that X looks at M"),
    (_source(1, 0, 1), "queries and keys changed places: Q = X @ W_Q, K = M @ W_K"),
    (_source(1, 1, 0), "queries and keys come from M and the values from X: it is Q from X, K and V from M"),
    (
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M @ W_V, divisor=np.sqrt(X.shape[1])),
        "the scores are divided by sqrt(d): it is sqrt(d_k), the width of Q and K, W_Q.shape[1]",
    ),
    (
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_K, M @ W_Q, M @ W_V),
        "W_Q and W_K are exchanged: Q = X @ W_Q, K = M @ W_K",
    ),
    (
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_V, M @ W_V),
        "the keys are made with W_V: K = M @ W_K",
    ),
    (
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M @ W_K, M),
        "the weights average M itself: the values are V = M @ W_V",
    ),
    (lambda X, M, W_Q, W_K, W_V: attend(X, M @ W_K, M @ W_V), "the queries are X itself: Q = X @ W_Q"),
    (lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, M, M @ W_V), "the keys are M itself: K = M @ W_K"),
    (
        lambda X, M, W_Q, W_K, W_V: attend(X, M, M @ W_V),
        "the scores compare X with M: W_Q and W_K play no part",
    ),
    (
        lambda X, M, W_Q, W_K, W_V: attend(X @ W_Q, np.vstack([X @ W_K, M @ W_K]), np.vstack([X @ W_V, M @ W_V])),
        "keys and values come from X and M together: here only M is looked at",
    ),
    *mistakes_after(_project_two, [*scaling_mistakes("W_Q.shape[1]"), *WEIGHING, *ROLES]),
]


def cross_attention(answer):
    """answer(X (n, d), M (m, d), W_Q (d, d_k), W_K (d, d_k), W_V (d, d_v)) -> Y (n, d_v)."""
    return judge(
        answer,
        cases=[
            draw((3, 6), (5, 6), (6, 4), (6, 4), (6, 2)),
            draw((4, 5), (4, 5), (5, 3), (5, 3), (5, 3)),
            draw((6, 3), (4, 3), (3, 3), (3, 3), (3, 2)),
            draw((3, 6), (5, 6), (6, 4), (6, 4), (6, 2), size=3600),
        ],
        right=lambda *case: attend(*_project_two(*case)),
        mistakes=_CROSS_ATTENTION,
        hint="Q = X @ W_Q is (n, d_k), K = M @ W_K and V = M @ W_V have m rows, the scores are (n, m)",
        praise="the rows of X look, the rows of M are looked at: that is cross-attention.",
    )


_MOVED = "the rows move as the rows of X do"

_PERMUTED = [
    (lambda Y, order: Y, f"Y is unchanged, as if the order had no effect at all: {_MOVED}"),
    (
        lambda Y, order: Y[np.argsort(order)],
        "this is the inverse order: row i of the result is row order[i] of Y, as in X[order]",
    ),
    (lambda Y, order: Y[order][order], "the order is applied twice: once is enough"),
    (lambda Y, order: Y[:, order], f"the columns (features) are moved: {_MOVED}, and columns stay"),
    (lambda Y, order: Y[order][:, order], f"rows and columns are both moved: {_MOVED}, and columns stay"),
    (lambda Y, order: Y[::-1], f"the rows are reversed, whatever the order: {_MOVED}"),
    (lambda Y, order: Y[order][::-1], f"the rows are reversed after the move: {_MOVED}"),
    (lambda Y, order: Y[order - 1], "the positions count from 0: take order as it is, without - 1"),
    (lambda Y, order: np.sort(Y, axis=0), f"each column is sorted, which mixes the rows: {_MOVED}"),
    (lambda Y, order: np.sort(Y, axis=1), f"each row is sorted, which mixes the features: {_MOVED}"),
    (lambda Y, order: np.take(Y, order), "np.take without axis picks single numbers: add axis=0"),
    (lambda Y, order: Y[order].T, "this is transposed: keep a row for each position"),
    (lambda Y, order: Y * order[:, None], "the rows are multiplied by the order: use it as an index"),
    (lambda Y, order: Y.mean(axis=0) + 0 * Y, f"every row is the mean of the rows: {_MOVED}"),
    (lambda Y, order: Y.mean(axis=0), f"this is the mean of the rows: {_MOVED}"),
    (lambda Y, order: order, "this is the order itself: use it as an index of the rows of Y"),
    (
        lambda Y, order: attend(Y[order], Y[order], Y[order]),
        f"Y is the result of attention already, no new attention is needed: {_MOVED}",
    ),
]


def permuted(answer):
    """answer(Y (n, d_v), order (n,)) -> what self-attention gives for X[order], if it gives Y for X."""
    return judge(
        answer,
        cases=[
            (*draw((4, 3)), [2, 0, 3, 1]),
            (*draw((5, 5)), [3, 0, 4, 2, 1]),
            (*draw((3, 6)), [1, 2, 0]),
            (*draw((6, 2)), [4, 0, 1, 5, 3, 2]),
        ],
        right=lambda Y, order: Y[order],
        mistakes=_PERMUTED,
        hint="order holds row numbers, each of 0 to n - 1 once",
        praise="the rows move and nothing else changes: attention alone does not know the order.",
    )
