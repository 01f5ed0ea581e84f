"""Attention, right and wrong: what the tables of several exercises share."""

import numpy as np

from attn_helpers.attention import softmax


def share(powers):
    """Powers divided by their sum."""
    return powers / powers.sum()


def draw(*shapes, size=1.0):
    """Random arguments, the first one size times as large; size 1 gives scores of about 1."""
    rng = np.random.default_rng(1)
    first, *others = [0.8 * rng.normal(size=shape) for shape in shapes]
    return (size * first, *others)


def logits(Q, K):
    """Scaled scores (..., n_q, n_kv)."""
    return Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])


def attend(Q, K, V, axis=-1, divisor=None):
    """Attention whose softmax runs along `axis`, with another divisor if one is given."""
    S = logits(Q, K) if divisor is None else Q @ K.swapaxes(-1, -2) / divisor
    return softmax(S, axis=axis) @ V


def mistakes_after(prepare, mistakes, transpose=False):
    """The mistakes on Q, K, V, as mistakes on the arguments that `prepare` turns into Q, K, V."""

    def with_arguments(mistake):
        return lambda *case: np.transpose(mistake(*prepare(*case))) if transpose else mistake(*prepare(*case))

    return [(with_arguments(mistake), message) for mistake, message in mistakes]


def weigh(weights):
    """The attention that gets its weights from the scaled scores in this way."""
    return lambda Q, K, V: weights(logits(Q, K)) @ V


# mistakes in the divisor; {width} is where the reader finds d_k
_SCALING = [
    (
        lambda Q, K, V: attend(Q, K, V, divisor=1),
        "the scores are not scaled: divide them by sqrt(d_k) before softmax",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=Q.shape[-1]),
        "the scores are divided by d_k (or twice by its square root): divide once by sqrt(d_k)",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=Q.shape[-1] ** -0.5),
        "the scores are multiplied by sqrt(d_k): divide by it",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=np.sqrt(K.shape[-2])),
        "the scores are divided by the square root of the number of keys: d_k is the width, {width}",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=np.sqrt(Q.shape[-2])),
        "the scores are divided by the square root of the number of queries: d_k is the width, {width}",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, divisor=np.sqrt(V.shape[-1])),
        "the scores are divided by sqrt(d_v): d_k is the width of Q and K, {width}",
    ),
    (
        lambda Q, K, V: softmax(logits(Q, K) * np.sqrt(Q.shape[-1])) / np.sqrt(Q.shape[-1]) @ V,
        "the weights are divided by sqrt(d_k) and sum to less than 1: divide the scores, before softmax",
    ),
]


def scaling_mistakes(width):
    """Wrong divisors of the scores, with messages that name the width of one head."""
    return [(mistake, message.format(width=width)) for mistake, message in _SCALING]


_KEEPDIMS = "keepdims=True is missing: the numbers of one row were used for a column"

_NORMALIZING = [
    (weigh(lambda S: np.exp(S - S.max(axis=-1, keepdims=True))), "the weights do not sum to 1: divide by their sum"),
    (
        weigh(lambda S: np.exp(S) / np.exp(S).sum(axis=-1, keepdims=True)),
        "exp overflows for large scores, inf / inf is NaN: subtract the largest score of each query first",
    ),
    (
        weigh(lambda S: np.exp(S - S.max()) / np.exp(S - S.max()).sum(axis=-1, keepdims=True)),
        "one maximum was subtracted for all queries, so one with lower scores gets 0 / 0 = NaN: each needs its own",
    ),
    (weigh(lambda S: S), "the scores are used as weights: softmax is missing"),
    (lambda Q, K, V: Q @ K.swapaxes(-1, -2) @ V, "the scores are used as weights: scaling and softmax are missing"),
    (weigh(lambda S: S / S.sum(axis=-1, keepdims=True)), "the scores are divided by their sum, but exp is missing"),
    (weigh(lambda S: softmax(-S)), "the sign is wrong: the smallest score gets the largest weight"),
    (weigh(lambda S: softmax(S, temperature=0)), "each query takes only its best key: softmax shares the weight"),
    (
        weigh(lambda S: softmax(S, temperature=np.inf)),
        "every query gets the same mean of all values: the scores play no part",
    ),
    (
        weigh(lambda S: softmax(S.reshape(*S.shape[:-2], -1)).reshape(S.shape)),
        "softmax ran over the whole matrix: the weights of each query must sum to 1",
    ),
    (weigh(lambda S: softmax(softmax(S))), "softmax was taken twice: once is enough"),
    (lambda Q, K, V: softmax(logits(Q, K)), "these are the weights: the output is their weighted sum of the values"),
    (lambda Q, K, V: logits(Q, K), "these are the scores: softmax and the weighted sum are missing"),
    (
        lambda Q, K, V: Q @ K.swapaxes(-1, -2),
        "these are the scores before scaling: scaling, softmax and the weighted sum are missing",
    ),
    (lambda Q, K, V: V, "these are the values themselves: the weighted sum is missing"),
]

WEIGHING = [
    *_NORMALIZING,
    (
        weigh(lambda S: softmax(S, axis=-2)),
        "softmax ran over the queries (down the columns): each row of weights must sum to 1, use axis=-1",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, axis=-2, divisor=1),
        "softmax ran over the queries (down the columns), and the scores are not scaled: axis=-1 and sqrt(d_k)",
    ),
    (weigh(lambda S: np.exp(S) / np.exp(S).sum(axis=-1)), _KEEPDIMS),
    (
        weigh(
            lambda S: np.exp(S - S.max(axis=-1, keepdims=True)) / np.exp(S - S.max(axis=-1, keepdims=True)).sum(axis=-1)
        ),
        _KEEPDIMS,
    ),
    (weigh(lambda S: np.exp(S - S.max(axis=-1)) / np.exp(S - S.max(axis=-1)).sum(axis=-1)), _KEEPDIMS),
    (weigh(lambda S: np.exp(S - S.max()) / np.exp(S - S.max()).sum(axis=-1)), _KEEPDIMS),
]

WEIGHING_OF_COLUMNS = [
    *_NORMALIZING,
    (
        weigh(lambda S: softmax(S, axis=-2)),
        "softmax ran over the queries (along the rows of K^T Q): each column must sum to 1, use axis=0",
    ),
    (
        lambda Q, K, V: attend(Q, K, V, axis=-2, divisor=1),
        "softmax ran over the queries (along the rows of K^T Q), and the scores are not scaled: axis=0 and sqrt(d_k)",
    ),
]

ROLES = [
    (
        lambda Q, K, V: attend(K, Q, V),
        "queries and keys are swapped: the scores are Q K^T, with a row for each query",
    ),
    (
        weigh(lambda S: softmax(S).swapaxes(-1, -2)),
        "the weights are transposed: the output is A @ V, each row of A weighs the values for one query",
    ),
    (
        lambda Q, K, V: attend(Q, V, V),
        "the values stand where the keys should: the scores are Q K^T",
    ),
    (
        lambda Q, K, V: attend(Q, K, K),
        "the weights average the keys: the output is A @ V",
    ),
    (
        lambda Q, K, V: attend(Q, K, Q),
        "the weights average the queries: the output is A @ V",
    ),
    (lambda Q, K, V: attend(Q, Q, V), "the queries are compared with themselves: the scores are Q K^T"),
    (lambda Q, K, V: attend(K, K, V), "the keys are compared with themselves: the scores are Q K^T"),
    (
        lambda Q, K, V: attend(Q, K, V).swapaxes(-1, -2),
        "this is transposed: it has a row for each query",
    ),
]
