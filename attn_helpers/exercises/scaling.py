"""The exercises of notebook 6: scores that stay in bounds, and attention in blocks."""

import numpy as np

from attn_helpers.attention import softmax
from attn_helpers.exercises.mistakes import draw, logits
from attn_helpers.judging import judge


def _top(S):
    return S.max(axis=-1, keepdims=True)


def _total(powers):
    return powers.sum(axis=-1, keepdims=True)


def _log_softmax(S):
    return S - _top(S) - np.log(_total(np.exp(S - _top(S))))


_LOG_OF_ZERO = "exp(-1000) is 0 and its logarithm -inf: take the log apart, scores - max - log(sum(exp(scores - max)))"
_LOG_OVERFLOW = "exp overflows for scores of 1000: subtract the largest score before exp"
_ONE_TOP = "one maximum was subtracted for all rows, so the exps of a lower row are all 0: each row needs its own"
_EPSILON = "a small number inside the logarithm bounds it, log(1e-9) is -20.7: take the log apart instead"

_LOG_SOFTMAX = [
    (lambda S: np.log(softmax(S)), _LOG_OF_ZERO),
    (lambda S: np.log(np.exp(S) / _total(np.exp(S))), _LOG_OVERFLOW),
    (lambda S: S - np.log(_total(np.exp(S))), _LOG_OVERFLOW),
    (
        lambda S: S - _top(S) - np.log(_total(np.exp(S))),
        "the largest score must be subtracted in front and inside exp, and then not added to the logarithm as well",
    ),
    (
        lambda S: S - np.log(_total(np.exp(S - _top(S)))),
        "the largest score is subtracted inside exp only: subtract it from the score in front as well",
    ),
    (
        lambda S: S + _top(S) - np.log(_total(np.exp(S - _top(S)))),
        "the largest score is added in front: subtract it",
    ),
    *((lambda S, e=e: np.log(softmax(S) + e), _EPSILON) for e in (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15, 1e-20)),
    *((lambda S, e=e: np.log(np.maximum(softmax(S), e)), _EPSILON) for e in (1e-30, 1e-100, 1e-300)),
    (softmax, "this is softmax: its logarithm is asked for"),
    (lambda S: S, "these are the scores themselves: subtract log(sum(exp(scores)))"),
    (lambda S: _log_softmax(S) / np.log(2), "the logarithm has base 2: use np.log"),
    (lambda S: _log_softmax(S) / np.log(10), "the logarithm has base 10: use np.log"),
    (lambda S: -_log_softmax(S), "the sign is wrong: a logarithm of a weight is never above 0"),
    (lambda S: _log_softmax(-S), "the sign of the scores is wrong: the largest score gets the largest weight"),
    (lambda S: S - _top(S), "log(sum(exp(scores - max))) is missing: so the weights do not sum to 1"),
    (
        lambda S: S - _top(S) - _total(np.exp(S - _top(S))),
        "the sum is subtracted without its logarithm: subtract log(sum(exp(scores - max)))",
    ),
    (
        lambda S: (S - _top(S)) / np.log(_total(np.exp(S - _top(S)))),
        "the logarithm of a quotient is a difference: subtract log(sum), do not divide by it",
    ),
    (
        lambda S: S - _top(S) + np.log(_total(np.exp(S - _top(S)))),
        "log(sum(exp(scores - max))) is added: subtract it",
    ),
    (
        lambda S: S - _top(S) - np.log(np.exp(S - _top(S)).mean(axis=-1, keepdims=True)),
        "the mean stands where the sum should",
    ),
    (
        lambda S: S - S.max() - np.log(np.exp(S - S.max()).sum()),
        "the sum ran over the whole array: each row needs its own, axis=-1",
    ),
    (
        lambda S: _log_softmax(S.swapaxes(0, -1)).swapaxes(0, -1),
        "the sum ran over axis 0: it runs along the last axis, axis=-1",
    ),
    (
        lambda S: _log_softmax(S.swapaxes(-min(S.ndim, 2), -1)).swapaxes(-min(S.ndim, 2), -1),
        "the sum ran down the columns: it runs along the last axis, axis=-1",
    ),
    (lambda S: S - S.max() - np.log(_total(np.exp(S - S.max()))), _ONE_TOP),
    (lambda S: np.log(_total(np.exp(S - _top(S)))) + _top(S) + 0 * S, "this is log(sum(exp)) alone: subtract it"),
]


def log_softmax(answer):
    """answer(scores (..., n)) -> the logarithm of softmax along the last axis, also for scores of 1000."""
    return judge(
        answer,
        cases=[
            ([1.0, 0.0, 2.0],),
            draw((2, 3, 4)),
            draw((3, 5)),
            ([1000.0, 1001.0, 999.0],),
            ([1000.0, 0.0, -1000.0],),
            ([[1000.0, 999.0], [-1000.0, -1002.0]],),
            ([20000.0, 20001.0],),  # too large for exp in long double as well, which not every machine has
        ],
        right=_log_softmax,
        mistakes=_LOG_SOFTMAX,
        hint="the maximum and the sum of each row need axis=-1, keepdims=True",
        praise="a weight of exp(-1000) is 0 as a number, but its logarithm is kept.",
    )


def _per_head(X, W_Q, W_K):
    return X @ W_Q, X @ W_K


def _head_scores(X, W_Q, W_K, divisor=None):
    Q, K = _per_head(X, W_Q, W_K)
    return logits(Q, K) if divisor is None else Q @ K.swapaxes(-1, -2) / divisor


def _reshaped(X, W):
    """The (n, h, d_h) projections, if the heads are joined by reshape, which mixes them."""
    h, d, d_h = W.shape
    return (X @ W.reshape(d, h * d_h)).reshape(len(X), h, d_h).swapaxes(0, 1)


_D_H = "it is sqrt(d_h), the width of one head, W_Q.shape[-1]"

_HEAD_SCORES = [
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, np.sqrt(X.shape[1] // len(W_Q))),
        f"the width of one head is taken for d // h, but here it need not be: {_D_H}",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, np.sqrt(X.shape[1] / len(W_Q))),
        f"the width of one head is taken for d / h, but here it need not be: {_D_H}",
    ),
    (lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, 1), "the scores are not scaled: divide them by sqrt(d_h)"),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, np.sqrt(X.shape[1])),
        f"the scores are divided by sqrt(d), the width of X: {_D_H}",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, np.sqrt(len(W_Q))),
        f"the scores are divided by the square root of the number of heads: {_D_H}",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, np.sqrt(len(X))),
        f"the scores are divided by the square root of the number of positions: {_D_H}",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, np.sqrt(len(W_Q) * W_Q.shape[-1])),
        f"the scores are divided by sqrt(h * d_h), the width of all heads: {_D_H}",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, W_Q.shape[-1]),
        "the scores are divided by d_h (or twice by its square root): divide once by sqrt(d_h)",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K, W_Q.shape[-1] ** -0.5),
        "the scores are multiplied by sqrt(d_h): divide by it",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_K, W_Q),
        "queries and keys are swapped (or the last two axes exchanged): a row belongs to a query, Q K^T",
    ),
    (lambda X, W_Q, W_K: _head_scores(X, W_Q, W_Q), "queries and keys are both made with W_Q: K = X @ W_K"),
    (lambda X, W_Q, W_K: _head_scores(X, W_K, W_K), "queries and keys are both made with W_K: Q = X @ W_Q"),
    (lambda X, W_Q, W_K: softmax(_head_scores(X, W_Q, W_K)), "softmax is taken: the scores before it are asked for"),
    (
        lambda X, W_Q, W_K: softmax(_head_scores(X, W_Q, W_K, 1)),
        "softmax is taken: the scores before it are asked for, divided by sqrt(d_h)",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K).sum(axis=0),
        "the heads are summed up: each keeps a matrix of its own, (h, n, n)",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K).mean(axis=0),
        "this is the mean of the heads: each keeps a matrix of its own, (h, n, n)",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K)[0],
        "this is only the first head: each has a matrix of its own, (h, n, n)",
    ),
    (
        lambda X, W_Q, W_K: np.moveaxis(_head_scores(X, W_Q, W_K), 0, -1),
        "the heads stand last: they are the first axis, (h, n, n)",
    ),
    (
        lambda X, W_Q, W_K: _head_scores(X, W_Q, W_K).swapaxes(0, 1),
        "the heads stand in the middle: they are the first axis, (h, n, n)",
    ),
    (
        lambda X, W_Q, W_K: logits(_reshaped(X, W_Q), _reshaped(X, W_K)),
        "reshape mixes the heads: X @ W_Q multiplies X by the matrix of each head, no reshape is needed",
    ),
    (lambda X, W_Q, W_K: X @ W_Q, "these are the queries: compare them with the keys, Q K^T"),
    (
        lambda X, W_Q, W_K: np.einsum("hik,jlk->hil", *_per_head(X, W_Q, W_K)) / np.sqrt(W_Q.shape[-1]),
        "the keys of all heads are summed up: a head compares its own queries with its own keys",
    ),
]


def head_scores(answer):
    """answer(X (n, d), W_Q (h, d, d_h), W_K (h, d, d_h)) -> scaled scores (h, n, n), before softmax."""
    return judge(
        answer,
        cases=[
            draw((4, 6), (3, 6, 2), (3, 6, 2)),
            draw((4, 7), (2, 7, 3), (2, 7, 3)),
            draw((3, 5), (4, 5, 6), (4, 5, 6)),
        ],
        right=_head_scores,
        mistakes=_HEAD_SCORES,
        hint="X @ W_Q is (h, n, d_h), a matrix for each head; K.T reverses all axes, K.swapaxes(-1, -2) the last two",
        praise="each head has scores of its own, divided by the square root of its own width.",
    )


@np.errstate(under="ignore")
def _block(scores, values):
    """What is kept of one block of keys: the largest score, the sum of exps, the sum of exps times values."""
    powers = np.exp(scores - scores.max())
    return scores.max(), powers.sum(), powers @ values  # number, number, (d_v,)


def _merging(combine, reference=max):
    """The answer combine(a, b, l1, o1, l2, o2) with a = exp(m1 - m), b = exp(m2 - m), m = reference(m1, m2)."""

    def merge(m1, l1, o1, m2, l2, o2):
        m = reference(m1, m2)
        return combine(np.exp(m1 - m), np.exp(m2 - m), l1, o1, l2, o2)

    return merge


def _mean(a, b, l1, o1, l2, o2):
    return (a * o1 + b * o2) / (a * l1 + b * l2)


_RESCALE = "l and o times exp(m1 - m) in block 1 and exp(m2 - m) in block 2, with m = max(m1, m2)"

_MERGE_BLOCKS = [
    (
        _merging(lambda a, b, *rest: _mean(1, 1, *rest)),
        f"nothing is rescaled, but each block has subtracted a maximum of its own: {_RESCALE}",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: (o1 / l1 + o2 / l2) / 2),
        f"this is the mean of the two outputs: a block with more weight counts more, {_RESCALE}",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: o1 / l1 + o2 / l2),
        "the two outputs are added: add the rescaled o and the rescaled l, and divide once",
    ),
    (
        _merging(_mean, reference=lambda m1, m2: 0),
        "exp(1000) overflows and exp(-1000) is 0: only m1 - m and m2 - m, with m = max(m1, m2), go into exp",
    ),
    (_merging(lambda a, b, *rest: _mean(1 / a, 1 / b, *rest)), f"the sign of the exponent is wrong: {_RESCALE}"),
    (_merging(lambda a, b, *rest: _mean(b, a, *rest)), f"the factors of the two blocks are swapped: {_RESCALE}"),
    (_merging(_mean, reference=min), "exp overflows above the smaller maximum: subtract the larger one, max(m1, m2)"),
    (
        _merging(_mean, reference=lambda m1, m2: (m1 + m2) / 2),
        "exp overflows above the mean of m1 and m2: subtract the larger one, max(m1, m2)",
    ),
    (
        _merging(_mean, reference=lambda m1, m2: m1),
        "m1 is taken for the maximum, and exp overflows where m2 is much larger: subtract max(m1, m2)",
    ),
    (
        _merging(_mean, reference=lambda m1, m2: m2),
        "m2 is taken for the maximum, and exp overflows where m1 is much larger: subtract max(m1, m2)",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: (a * o1 + b * o2) / (l1 + l2)),
        f"o is rescaled, but l is not: {_RESCALE}",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: (o1 + o2) / (a * l1 + b * l2)),
        f"l is rescaled, but o is not: {_RESCALE}",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: a * o1 + b * o2),
        "the division is missing: divide the sum of the rescaled o by the sum of the rescaled l",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: o1 + o2),
        f"rescaling and division are missing: {_RESCALE}, then divide o by l",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: (a * o1 / l1 + b * o2 / l2) / (a + b)),
        "the outputs are weighed by exp(m - max) alone: l, how much each block sums up, plays no part",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: (a * o1 / l1 + b * o2 / l2) / (a * l1 + b * l2)),
        "o is divided twice: add the rescaled o, which is not divided yet, and divide once",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: a * o1 / l1 + b * o2 / l2),
        "each block is divided by its own l: add first, and divide by the sum of the rescaled l",
    ),
    (
        _merging(lambda a, b, l1, o1, l2, o2: o1 / l1 if a == 1 else o2 / l2),
        "only the block with the larger maximum counts: the other one has weight, too",
    ),
    (_merging(lambda a, b, l1, o1, l2, o2: o1 / l1), "this is the output of block 1 alone"),
    (_merging(lambda a, b, l1, o1, l2, o2: o2 / l2), "this is the output of block 2 alone"),
    (
        _merging(lambda a, b, l1, o1, l2, o2: a * l1 + b * l2),
        "this is the sum of exps: the output is the rescaled o divided by it",
    ),
]


def merge_blocks(answer):
    """answer(m1, l1, o1 (d_v,), m2, l2, o2 (d_v,)) -> the output (d_v,) of one query over both blocks of keys.

    Of each block of keys: m the largest score, l the sum of exp(score - m), o the sum of exp(score - m) * value.
    """
    first, second = draw((3, 4), (2, 4))
    pairs = [
        ([0.5, -0.3, 1.1], [1.9, 1.2]),
        ([2.0, 0.4, 1.5], [0.7, 0.6]),
        ([1000.0, 998.0, 999.5], [1001.0, 997.0]),
        ([-1000.0, -999.0, -1001.0], [-1000.5, -999.2]),
        ([1000.0, 999.0, -1000.0], [-1000.0, -999.0]),
        ([-1000.0, -999.0, -998.5], [1000.0, 999.0]),
        ([1000.0, 999.0, 998.0], [0.5, -0.3]),
    ]
    return judge(
        answer,
        cases=[(*_block(np.array(one), first), *_block(np.array(two), second)) for one, two in pairs],
        right=_merging(_mean),
        mistakes=_MERGE_BLOCKS,
        hint="exp(1000) overflows: only differences such as m1 - max(m1, m2) go into exp",
        praise="two blocks give what all their keys would give at once, so no row of scores is ever held whole.",
    )
