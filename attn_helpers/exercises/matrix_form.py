"""The exercises of notebook 4: attention for matrices, for batches of heads, in columns, and its shapes."""

import numpy as np

from attn_helpers.attention import softmax
from attn_helpers.exercises.mistakes import (
    ROLES,
    WEIGHING,
    WEIGHING_OF_COLUMNS,
    attend,
    draw,
    logits,
    mistakes_after,
    scaling_mistakes,
    weigh,
)
from attn_helpers.judging import judge

_MATRIX_ATTENTION = [
    *scaling_mistakes("Q.shape[-1]"),
    *WEIGHING,
    *ROLES,
    (
        weigh(lambda S: softmax(S.ravel()).reshape(S.shape)),
        "softmax ran over the batch as well: the weights of each query must sum to 1",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, axis=0),
        "softmax ran over axis 0: that is the batch, or in a 2-D matrix the queries; use axis=-1",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, axis=1),
        "softmax ran over axis 1: right for a matrix, but with heads the keys are the last axis, axis=-1",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=np.sqrt(Q.shape[1])),
        "d_k is taken from Q.shape[1]: with leading axes it is Q.shape[-1]",
    ),
    (
        lambda Q, K, V: np.dot(softmax(logits(Q, K)), V),
        "np.dot pairs every batch and head with every other: use @, which keeps them apart",
    ),
    (
        lambda Q, K, V: np.dot(softmax(np.dot(Q, np.swapaxes(K, -1, -2)) / np.sqrt(Q.shape[-1])), V),
        "np.dot pairs every batch and head with every other: use @, which keeps them apart",
    ),
    (
        lambda Q, K, V: softmax(logits(Q, K) @ V),
        "softmax comes before the product with V: the weights belong to the keys",
    ),
    (
        lambda Q, K, V: attend(Q, K, V).sum(axis=0),
        "the first axis is summed away: it is the batch and stays",
    ),
    (
        lambda Q, K, V: attend(Q, K, V)[0],
        "this is only the first matrix of the batch: keep all of them",
    ),
]


def matrix_attention(answer):
    """answer(Q (..., n_q, d_k), K (..., n_kv, d_k), V (..., n_kv, d_v)) -> Y (..., n_q, d_v)."""
    return judge(
        answer,
        cases=[
            draw((3, 4), (5, 4), (5, 2)),
            draw((4, 3), (4, 3), (4, 3)),
            draw((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 7)),
            draw((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 7), size=3600),
        ],
        right=attend,
        mistakes=_MATRIX_ATTENTION,
        hint="K.T reverses all axes, K.swapaxes(-1, -2) only the last two; use @, not np.dot, and keepdims=True; "
        "plain matrices without batch and heads come too",
        praise="one formula for one matrix and for a batch of heads.",
    )


def _turned(Q, K, V):
    return Q.T, K.T, V.T


_COLUMN_ATTENTION = [
    *mistakes_after(_turned, scaling_mistakes("Q.shape[0]"), transpose=True),
    *mistakes_after(_turned, WEIGHING_OF_COLUMNS, transpose=True),
    (
        lambda Q, K, V: attend(Q.T, K.T, V.T),
        "this is transposed: it is (d_v, n_q), a column for each query",
    ),
    (
        lambda Q, K, V: V @ softmax(Q.T @ K / np.sqrt(len(Q)), axis=0),
        "the scores are Q^T K, where a column belongs to a key: K^T Q has a column for each query",
    ),
    (
        lambda Q, K, V: V @ softmax(Q.T @ K / np.sqrt(len(Q)), axis=-1),
        "the weights of a query are a row here: V @ A needs them in a column, from K^T Q with axis=0",
    ),
    (
        lambda Q, K, V: attend(Q, K, V),
        "this is the row formula on columns, it compares features: the scores are K^T Q, the output V @ A",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=np.sqrt(len(Q))),
        "this is the row formula on columns, it compares features: the scores are K^T Q, the output V @ A",
    ),
    (
        lambda Q, K, V: V.T @ softmax(K.T @ Q / np.sqrt(len(Q)), axis=0),
        "V is transposed, but has its columns already: the output is V @ A",
    ),
    (
        lambda Q, K, V: softmax(K.T @ Q / np.sqrt(len(Q)), axis=0) @ V,
        "A @ V is the order for rows: with columns the output is V @ A",
    ),
]


def column_attention(answer):
    """answer(Q (d_k, n_q), K (d_k, n_kv), V (d_v, n_kv)), a COLUMN for each position -> Y (d_v, n_q)."""
    return judge(
        answer,
        cases=[
            draw((4, 3), (4, 5), (2, 5)),
            draw((3, 4), (3, 4), (3, 4)),
            draw((3, 4), (3, 4), (4, 4)),
            draw((4, 3), (4, 5), (2, 5), size=3600),
        ],
        right=lambda Q, K, V: attend(Q.T, K.T, V.T).T,
        mistakes=_COLUMN_ATTENTION,
        hint="the scores K.T @ Q are (n_kv, n_q), softmax takes each column (axis=0), the output is V @ A",
        praise="the column form is the row form transposed: V A in place of A V.",
    )


def shapes(answer):
    """answer(n_q, n_kv, d, d_k, d_v) -> the shapes of W_V, Q, K, V, A, Y as a list of six pairs."""
    return judge(
        answer,
        cases=[(3, 5, 8, 4, 6), (7, 2, 4, 3, 9)],
        right=lambda n_q, n_kv, d, d_k, d_v: [
            (d, d_v),
            (n_q, d_k),
            (n_kv, d_k),
            (n_kv, d_v),
            (n_q, n_kv),
            (n_q, d_v),
        ],
        mistakes=[],
        hint="n_q, n_kv, d, d_k and d_v are whole numbers",
        praise="rows are positions, and inner widths meet: Q K^T over d_k, A V over n_kv.",
        explain=_first_wrong_shape,
    )


def _first_wrong_shape(case, result, target):
    """The first matrix whose shape is wrong, in letters; the numbers of a case are all different."""
    if result.shape != target.shape:
        return "six pairs are expected: the shapes of W_V, Q, K, V, A and Y, in this order."
    if np.array_equal(result, target[:, ::-1]):
        return "all six are exchanged: that is the column convention; here a row belongs to a position."
    if sorted(map(tuple, result)) == sorted(map(tuple, target)):
        return "the six shapes are right, but not their order: W_V, Q, K, V, A, Y."
    letters = dict(zip(case, ("n_q", "n_kv", "d", "d_k", "d_v")))
    place = next(i for i, (given, wanted) in enumerate(zip(result, target)) if not np.array_equal(given, wanted))
    given, wanted = ([letters.get(x, f"{x:g}") for x in pairs[place]] for pairs in (result, target))
    name, reason = _SHAPES[place]
    turned = "the two numbers are exchanged: " if given == wanted[::-1] else ""
    return f"{name} is ({', '.join(wanted)}), not ({', '.join(given)}): {turned}{reason}."


_SHAPES = [
    ("W_V", "it takes a row of width d to a value of width d_v"),
    ("Q", "it has a row for each query, as wide as a key so that the two can be compared"),
    ("K", "it has a row for each key, and the keys stand in the sequence that is looked at"),
    ("V", "it has a row for each key, and what is carried has a width of its own, d_v"),
    ("A", "it has a row for each query and a column for each key"),
    ("Y", "it has a row for each query, a mean of values and so as wide as they are"),
]
