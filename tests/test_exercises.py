"""What the checks say to right answers, to wrong ones, to none, and to what is no answer at all."""

import functools
import html
import math
import re
import warnings

import ipywidgets as widgets
import numpy as np
import pytest
import scipy.special
import scipy.stats

from attn_helpers import check, predict, scaled_dot_product_attention, softmax
from attn_helpers.exercises import leaks, splits
from attn_helpers.heads import head_statistics, multi_head_attention
from attn_helpers.judging import Feedback
from attn_helpers.masks import causal_mask, padding_mask

ARITY = {
    "softmax": 1,
    "attend": 3,
    "effective_positions": 1,
    "kernel_regression": 4,
    "previous_token": 2,
    "first_token": 2,
    "equal_tokens": 2,
    "rotate": 3,
    "self_attention": 4,
    "cross_attention": 5,
    "permuted": 2,
    "matrix_attention": 3,
    "column_attention": 3,
    "shapes": 5,
    "causal_padding_mask": 2,
    "finds_leak": 2,
    "additive_mask": 1,
    "masked_softmax": 2,
    "log_softmax": 1,
    "head_scores": 3,
    "merge_blocks": 6,
    "split_heads": 2,
    "merge_heads": 1,
    "multi_head": 6,
    "scrambles": 3,
    "induction_weight": 2,
}
EXERCISES = list(ARITY)
HEADS = ["previous_token", "first_token", "equal_tokens"]
GENERIC = re.compile(r"^(the result|your function)\b")
INF, NAN = np.inf, np.nan


def judge(exercise, answer):
    """The feedback on an answer; any warning and any floating-point flag is an error."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        feedback = getattr(check, exercise)(answer)
    assert isinstance(feedback, Feedback)
    return feedback


def share(powers, axis=None):
    return powers / powers.sum(axis=axis, keepdims=True)


def stable(s):
    return share(np.exp(s - s.max()))


def stable32(s):
    return share(np.exp(np.float32(s) - np.float32(s).max()))


def softmax_by_loop(values):
    top = max(values)
    powers = [math.exp(v - top) for v in values]
    return [p / sum(powers) for p in powers]


def softmax_in_place_of_a_copy(x):
    x = x.copy()
    x -= x.max()
    np.exp(x, out=x)
    x /= x.sum()
    return x


def attend_by_loop(question, rows, t):
    weights = softmax_by_loop([sum(a * b for a, b in zip(question, row)) / t for row in rows])
    return [sum(w * row[j] for w, row in zip(weights, rows)) for j in range(len(question))]


def attend_into_one_buffer(q, X, T, buffer=np.empty(3)):  # noqa: B008
    buffer[:] = stable(X @ q / T) @ X
    return buffer


def bits(w):
    return -sum(x * math.log2(x) for x in w if x > 0)


def gauss(q, x, b):
    return np.exp(-((q[:, None] - x) ** 2) / (2 * b**2))


def mean_by(kernel, y):
    return kernel @ y / kernel.sum(axis=1)


def kernel_by_loop(points, centres, heights, width):
    fitted = []
    for p in points:
        kernel = [math.exp(-((p - c) ** 2) / 2 / width**2) for c in centres]
        fitted.append(sum(k * h for k, h in zip(kernel, heights)) / sum(kernel))
    return tuple(fitted)


def row_softmax(S):
    powers = np.exp(S - S.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(Q, K, V, divisor=None):
    """Attention by einsum, for the wrong answers to build on."""
    S = np.einsum("...qd,...kd->...qk", Q, K) / (math.sqrt(Q.shape[-1]) if divisor is None else divisor)
    return row_softmax(S) @ V


def attention32(*arrays):
    Q, K, V = map(np.float32, arrays)
    return row_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(np.float32(Q.shape[-1]))) @ V


def attention_by_loop(queries, keys, values):
    return [attend_by_loop_of(q, keys, values) for q in queries]


def attend_by_loop_of(q, keys, values):
    weights = softmax_by_loop([sum(a * b for a, b in zip(q, k)) / len(q) ** 0.5 for k in keys])
    return [sum(w * v[j] for w, v in zip(weights, values)) for j in range(len(values[0]))]


def head_by_loop(queries, keys, values):
    """The same for any leading axes."""
    if np.ndim(queries) == 2:
        return attention_by_loop(queries, keys, values)
    return [head_by_loop(*one) for one in zip(queries, keys, values)]


def looking(where, strength=40.0):
    """A head that looks, from position i at tokens t, where where(i, j, t) is True."""

    def answer(E, P):
        n, tokens = len(P), E.argmax(axis=1)
        scores = np.array([[bool(where(i, j, tokens)) for j in range(n)] for i in range(n)], dtype=float)
        return strength * scores, P

    return answer


def shifted(P, by=1):
    rows = np.zeros_like(P)
    rows[by:] = P[:-by]
    return rows


def turn_by_loop(x, position, theta):
    for _ in range(position):
        x = (x[0] * math.cos(theta) - x[1] * math.sin(theta), x[0] * math.sin(theta) + x[1] * math.cos(theta))
    return x


def turn_complex(x, position, theta):
    z = (x[0] + 1j * x[1]) * np.exp(1j * position * theta)
    return z.real, z.imag


def turn32(x, position, theta):
    cos, sin = np.cos(np.float32(position * theta)), np.sin(np.float32(position * theta))
    return np.float32([[cos, -sin], [sin, cos]]) @ np.float32(x)


def turned(angle):
    """An answer that turns by another angle."""
    return lambda x, p, t: turn_complex(x, 1, angle(p, t))


def cos_sin(formula):
    return lambda x, p, t: formula(x, math.cos(p * t), math.sin(p * t))


def turn_in_place(first, second):
    """Overwrite one number before the other is computed."""

    def answer(x, p, t):
        c, s, x = math.cos(p * t), math.sin(p * t), x.copy()
        for k in (first, second):
            x[k] = c * x[0] - s * x[1] if k == 0 else s * x[0] + c * x[1]
        return x

    return answer


def columns_by_loop(Q, K, V):
    return np.array([attend_by_loop_of(q, K.T, V.T) for q in Q.T]).T


def six(W_V="d d_v", Q="n_q d_k", K="n_kv d_k", V="n_kv d_v", A="n_q n_kv", Y="n_q d_v"):
    """An answer to the shapes exercise from letters."""

    def answer(*numbers):
        letters = dict(zip(("n_q", "n_kv", "d", "d_k", "d_v"), numbers))
        return [tuple(letters[letter] for letter in pair.split()) for pair in (W_V, Q, K, V, A, Y)]

    return answer


def tril(n, k=0):
    return np.tril(np.ones((n, n), dtype=bool), k)


def tokens(n, lengths):
    """(batch, 1, 1, n), True where there is no padding."""
    return np.array([[[[j < length for j in range(n)]]] for length in lengths])


def mask_by_loop(n, lengths):
    return [[[[j <= i and j < length for j in range(n)] for i in range(n)]] for length in lengths]


def leak_by_row(layer, X, step=1):
    before = layer(X)
    for j in range(1, len(X)):
        changed = X.copy()
        changed[j] += step
        if not np.allclose(layer(changed)[:j], before[:j]):
            return True
    return False


def leak_by_noise(layer, X):
    """All later rows are new at once."""
    rng = np.random.default_rng(5)
    found = False
    for n in range(1, len(X)):
        other = np.r_[X[:n], rng.normal(size=(len(X) - n, X.shape[1]))]
        found |= bool(np.abs(layer(other)[:n] - layer(X)[:n]).max() > 1e-9)
    return found


def leak_by_prefix(layer, X, shortest=1):
    return any(not np.allclose(layer(X[:n]), layer(X)[:n]) for n in range(shortest, len(X)))


def leak_by_poison(layer, X):
    """NaN spreads to all that depends on it."""
    found = []
    for j in range(len(X)):
        poisoned = X.copy()
        poisoned[j] = NAN
        found.append(np.isnan(layer(poisoned)[:j]).any())
    return np.any(found)


def leak_by_bits(layer, X):
    """Exactly equal, or else a leak."""
    with_zero = [np.where(np.arange(len(X))[:, None] == j, 0, X) for j in range(len(X))]
    return not all(np.array_equal(layer(other)[:j], layer(X)[:j]) for j, other in enumerate(with_zero))


def leak_by_slope(layer, X, step=1e-4):
    """The numeric derivative of each output by each later number."""
    for j, k in np.ndindex(X.shape):
        up, down = X.copy(), X.copy()
        up[j, k] += step
        down[j, k] -= step
        if j and np.abs(layer(up) - layer(down))[:j].max() > 1e-6 * step:
            return 1
    return 0


def weights_by_loop(rows, allowed):
    """For one matrix of scores: weights over the allowed ones alone."""
    result = []
    for row, may in zip(rows, np.broadcast_to(allowed, rows.shape)):
        kept = [s for s, ok in zip(row, may) if ok]
        result.append(
            [
                math.exp(s - max(kept)) / sum(math.exp(x - max(kept)) for x in kept) if ok else 0
                for s, ok in zip(row, may)
            ]
        )
    return result


def masked_by_loop(S, allowed):
    allowed = np.broadcast_to(allowed, S.shape)
    return weights_by_loop(S, allowed) if S.ndim == 2 else [masked_by_loop(*one) for one in zip(S, allowed)]


def masked_by_guard(S, allowed):
    S = np.where(allowed, S, -INF)
    top = S.max(axis=-1, keepdims=True)
    powers = np.exp(S - np.where(np.isfinite(top), top, 0))
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)


def log_by_loop(S):
    if np.ndim(S) > 1:
        return [log_by_loop(row) for row in S]
    top = max(S)
    return [s - top - math.log(sum(math.exp(x - top) for x in S)) for s in S]


def head_by_head(X, A, B):
    return [(X @ a) @ (X @ b).T / math.sqrt(a.shape[1]) for a, b in zip(A, B)]


def joined_heads(X, A, B):
    """All heads in one product, the heads beside each other, then split."""
    h, d, d_h = A.shape
    q, k = ((X @ W.transpose(1, 0, 2).reshape(d, h * d_h)).reshape(len(X), h, d_h) for W in (A, B))
    return np.einsum("nhc,mhc->hnm", q, k) / d_h**0.5


def merge_by_log(m1, l1, o1, m2, l2, o2):
    """From the logarithms of the two sums: the share of each block is a softmax."""
    shares = stable(np.array([m1 + math.log(l1), m2 + math.log(l2)]))
    return shares[0] * o1 / l1 + shares[1] * o2 / l2


def merge_by_sigmoid(m1, l1, o1, m2, l2, o2):
    share_of_1 = scipy.special.expit(m1 + np.log(l1) - m2 - np.log(l2))
    return share_of_1 * (o1 / l1) + (1 - share_of_1) * (o2 / l2)


def merge_by_update(m1, l1, o1, m2, l2, o2):
    """As FlashAttention does, the running block rescaled where the new one has a larger maximum."""
    if m2 > m1:
        m1, l1, o1, m2, l2, o2 = m2, l2, o2, m1, l1, o1
    factor = math.exp(m2 - m1)
    return [(x + factor * y) / (l1 + factor * l2) for x, y in zip(o1, o2)]


def merging(combine):
    """An answer from a, b, the factors of the blocks, and l1, o1, l2, o2."""

    def answer(m1, l1, o1, m2, l2, o2):
        m = np.maximum(m1, m2)
        return combine(np.exp(m1 - m), np.exp(m2 - m), l1, o1, l2, o2)

    return answer


def straight(x, h):
    """The classical mistake: (b, n, d) reshaped to (b, h, n, d_h)."""
    return x.reshape(len(x), h, x.shape[1], x.shape[2] // h)


def split_by_loop(x, h):
    d_h = x.shape[2] // h
    return [[[list(row[i * d_h : (i + 1) * d_h]) for row in rows] for i in range(h)] for rows in x]


def split_by_einsum(x, h):
    """Each head takes its columns by a matrix of zeros and ones."""
    return np.einsum("bnd,hdc->bhnc", x, np.eye(x.shape[2]).reshape(x.shape[2], h, -1).transpose(1, 0, 2))


def columns(i, W, h):
    width = W.shape[1] // h
    return W[:, i * width : (i + 1) * width]


def each_head(X, A, B, C, h):
    """The outputs of the heads, one by one, from the columns of the matrices that are theirs."""
    return [attention(X @ columns(i, A, h), X @ columns(i, B, h), X @ columns(i, C, h)) for i in range(h)]


def layer_by_head(X, A, B, C, D, h):
    return np.hstack(each_head(X, A, B, C, h)) @ D


def layer_by_sum(X, A, B, C, D, h):
    """W_O cut into a block of rows for each head, whose parts add up."""
    return sum(Y @ block for Y, block in zip(each_head(X, A, B, C, h), np.vsplit(D, h)))


def layer_by_einsum(X, A, B, C, D, h):
    q, k, v = (np.einsum("nd,dhc->hnc", X, W.reshape(len(W), h, -1)) for W in (A, B, C))
    return np.einsum("hnc,hcd->nd", attention(q, k, v), D.reshape(h, -1, D.shape[1]))


def layer32(X, A, B, C, D, h):
    return layer_by_head(*map(np.float32, (X, A, B, C, D)), h)


def merges_back(split, x, h):
    return not np.array_equal(np.swapaxes(split(x, h), 1, 2).reshape(x.shape), x)


def compares_heads(split, x, h):
    y, d_h = split(x, h), x.shape[2] // h
    if y.shape != (len(x), h, x.shape[1], d_h):
        return True
    return any(np.abs(y[:, i] - x[:, :, i * d_h : (i + 1) * d_h]).max() > 1e-9 for i in range(h))


def looks_at_each_token(split, x, h):
    """Whatever the order of the columns, which must stay: each token must keep its own numbers."""
    y = split(x, h)
    if y.shape[:3] != (len(x), h, x.shape[1]):
        return 1
    return int(any(sorted(y[b, :, t].ravel()) != sorted(x[b, t]) for b, t in np.ndindex(x.shape[:2])))


def numbers_of_its_own(split, x, h):
    """Judged by numbers that tell where they come from, x itself unused."""
    marks = np.arange(x.size).reshape(x.shape)
    return np.any(np.moveaxis(split(marks, h), 2, 1).ravel() != marks.ravel())


def induction_by_loop(A, names):
    found = []
    for t in range(len(names)):
        after = [j + 1 for j in range(t) if names[j] == names[t] and j + 1 < t]
        if after:
            found.append(sum(A[t][k] for k in after))
    return sum(found) / len(found)


def induction_by_mask(A, names):
    names, n = np.array(names), len(names)
    keys = np.zeros((n, n), dtype=bool)
    keys[:, 1:] = (names[:, None] == names)[:, :-1]
    keys = np.tril(keys, -1)
    return (A * keys).sum(axis=1)[keys.any(axis=1)].mean()


def induction_by_pairs(A, names):
    """Pairs first, gathered in a dictionary by query."""
    weight = {}
    for t, token in enumerate(names):
        for j, other in enumerate(names[: max(t - 1, 0)]):
            if other == token:
                weight[t] = weight.get(t, 0) + A[t, j + 1]
    return np.mean(list(weight.values()))


RIGHT = {
    "softmax": {
        "reference": softmax,
        "scipy": scipy.special.softmax,
        "numpy": stable,
        "plain loop, list": softmax_by_loop,
        "tuple": lambda s: tuple(softmax_by_loop(s)),
        "from log-sum-exp": lambda s: np.exp(s - np.logaddexp.reduce(s)),
        "from differences": lambda s: 1 / np.exp(s - s[:, None]).sum(axis=1),
        "on a copy, in place": softmax_in_place_of_a_copy,
        "float32": stable32,
        "longdouble": lambda s: stable(s.astype(np.longdouble)),
        "objects": lambda s: stable(s).astype(object),
        "partial": functools.partial(softmax, axis=-1),
        "more parameters": lambda z, axis=-1, *, T=1.0: softmax(z, axis, T),
        "keeps axes": lambda s: np.exp(s - s.max(-1, keepdims=True)) / np.exp(s - s.max(-1)).sum(-1, keepdims=True),
    },
    "attend": {
        "reference": lambda q, X, T: softmax(X @ q, temperature=T) @ X,
        "plain loop, list": attend_by_loop,
        "average": lambda q, X, T: np.average(X, axis=0, weights=scipy.special.softmax(X.dot(q) / T)),
        "einsum": lambda a, B, c: np.einsum("n,nd->d", stable(np.einsum("nd,d", B, a) / c), B),
        "attention": lambda q, X, T: scaled_dot_product_attention(q[None], X, X, scale=1 / T)[0][0],
        "float32": lambda q, X, T: stable32(np.float32(X) @ np.float32(q) / np.float32(T)) @ np.float32(X),
        "one buffer": attend_into_one_buffer,
    },
    "effective_positions": {
        "reference": lambda w: 2.0 ** -(w[w > 0] * np.log2(w[w > 0])).sum(),
        "plain loop, float": lambda ws: 2 ** bits(ws),
        "nats and e": lambda p: np.exp(-scipy.special.xlogy(p, p).sum()),
        "scipy": lambda p: 2 ** scipy.stats.entropy(p, base=2),
        "product": lambda p: np.prod(np.where(p > 0, p, 1) ** -p),
        "nansum": lambda w: 2 ** -np.nansum(w * np.log2(w)),
        "tiny epsilon": lambda w: 2 ** -np.sum(w * np.log2(w + 1e-12)),
        "0-d array": lambda w: np.array(2 ** bits(w)),
        "float32": lambda w: np.exp2(scipy.stats.entropy(w.astype(np.float32), base=2)).astype(np.float32),
    },
    "kernel_regression": {
        "reference": lambda q, x, y, b: softmax(-((q[:, None] - x) ** 2) / 2, temperature=b**2) @ y,
        "plain loop, tuple": kernel_by_loop,
        "kernel and share": lambda Q, K, V, h: mean_by(gauss(Q, K, h), V),
        "normal density": lambda q, x, y, b: mean_by(scipy.stats.norm.pdf(q[:, None], x, b), y),
        "one query at a time": lambda q, x, y, b: [stable(-0.5 * ((one - x) / b) ** 2) @ y for one in q],
        "expanded square": lambda q, x, y, b: scipy.special.softmax((q[:, None] * x - x**2 / 2) / b**2, axis=1) @ y,
        "float32": lambda *all_: mean_by(gauss(*map(np.float32, (all_[0], all_[1], all_[3]))), np.float32(all_[2])),
    },
    "previous_token": {
        "reference": lambda E, P: (50 * np.roll(P, 1, axis=0), P),
        "keys shifted": lambda E, P: (50.0 * P, np.roll(P, -1, axis=0)),
        "nothing for position 0": lambda E, P: (50 * shifted(P), P),
        "one column less": lambda E, P: [30 * P[:, 1:], np.eye(len(P))[:, :-1]],
        "plain loop": lambda E, P: (
            [[60 if j == max(i - 1, 0) else 0 for j in range(len(P))] for i in range(len(P))],
            [[int(i == j) for j in range(len(P))] for i in range(len(P))],
        ),
        "products of angles": lambda E, P: (
            900 * np.c_[np.cos(np.arange(len(P)) - 1), np.sin(np.arange(len(P)) - 1)],
            np.c_[np.cos(np.arange(len(P))), np.sin(np.arange(len(P)))],
        ),
        "float32": lambda E, P: (np.float32(20) * np.roll(np.float32(P), 1, axis=0), np.float32(P)),
        "stacked": lambda E, P: np.stack([50 * np.roll(P, 1, axis=0), P]),
        "tokens beside": lambda E, P: (np.c_[50 * np.roll(P, 1, axis=0), 0 * E], np.c_[P, E]),
    },
    "first_token": {
        "reference": lambda E, P: (50 * np.ones((len(P), 1)), P[:, :1]),
        "all rows of P[0]": lambda E, P: (40 * np.tile(P[0], (len(P), 1)), P),
        "falling keys": lambda E, P: ([[9]] * len(P), [[-i] for i in range(len(P))]),
        "float32": lambda E, P: (np.full((len(P), 1), 20, np.float32), P[:, :1].astype(np.float32)),
    },
    "equal_tokens": {
        "reference": lambda E, P: (50 * E, E),
        "both scaled": lambda E, P: (5 * E, 5 * E),
        "plain loop": lambda E, P: ([[80 * int(x) for x in row] for row in E], [list(map(int, row)) for row in E]),
        "tokens in another order": lambda E, P: (60 * E[:, ::-1], E[:, ::-1]),
        "shorter": lambda E, P: (
            900 * np.c_[np.cos(E.argmax(1)), np.sin(E.argmax(1))],
            np.c_[np.cos(E.argmax(1)), np.sin(E.argmax(1))],
        ),
        "float32": lambda E, P: (np.float32(30) * np.float32(E), np.float32(E)),
        "nearly even": lambda E, P: (np.c_[50 * E, 0.1 * P], np.c_[E, P]),
    },
    "rotate": {
        "reference": lambda x, p, t: [
            np.cos(p * t) * x[0] - np.sin(p * t) * x[1],
            np.sin(p * t) * x[0] + np.cos(p * t) * x[1],
        ],
        "plain loop, tuple": turn_by_loop,
        "complex": turn_complex,
        "row times matrix": lambda x, p, t: (
            x @ np.array([[np.cos(p * t), np.sin(p * t)], [-np.sin(p * t), np.cos(p * t)]])
        ),
        "RoPE": lambda x, p, t: x * np.cos(p * t) + np.array([-x[1], x[0]]) * np.sin(p * t),
        "float32": turn32,
    },
    "self_attention": {
        "reference": lambda X, A, B, C: scaled_dot_product_attention(X @ A, X @ B, X @ C)[0],
        "numpy": lambda X, A, B, C: row_softmax((X @ A) @ (X @ B).T / np.sqrt(A.shape[1])) @ X @ C,
        "einsum": lambda X, A, B, C: attention(X @ A, X @ B, X @ C),
        "one matrix for Q and K": lambda X, A, B, C: row_softmax(X @ (A @ B.T) @ X.T / math.sqrt(len(A[0]))) @ (X @ C),
        "plain loop, list": lambda X, A, B, C: attention_by_loop(X @ A, X @ B, X @ C),
        "float32": lambda *all_: attention32(*(np.float32(all_[0]) @ np.float32(W) for W in all_[1:])),
    },
    "cross_attention": {
        "reference": lambda X, M, A, B, C: scaled_dot_product_attention(X @ A, M @ B, M @ C)[0],
        "numpy": lambda X, M, A, B, C: row_softmax((X @ A) @ (M @ B).T / np.sqrt(A.shape[1])) @ M @ C,
        "plain loop, list": lambda X, M, A, B, C: attention_by_loop(X @ A, M @ B, M @ C),
        "float32": lambda *all_: attention32(
            np.float32(all_[0]) @ np.float32(all_[2]), *(np.float32(all_[1]) @ np.float32(W) for W in all_[3:])
        ),
    },
    "permuted": {
        "reference": lambda Y, order: Y[order],
        "take": lambda Y, order: np.take(Y, order, axis=0),
        "plain loop, list": lambda Y, order: [list(Y[i]) for i in order],
        "matrix": lambda Y, order: np.eye(len(Y))[order] @ Y,
        "float32": lambda Y, order: Y.astype(np.float32)[order],
    },
    "matrix_attention": {
        "reference": lambda Q, K, V: scaled_dot_product_attention(Q, K, V)[0],
        "numpy": lambda Q, K, V: row_softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])) @ V,
        "einsum": attention,
        "scipy": lambda Q, K, V: scipy.special.softmax(Q @ np.moveaxis(K, -1, -2) / Q.shape[-1] ** 0.5, axis=-1) @ V,
        "plain loop, list": head_by_loop,
        "float32": attention32,
    },
    "column_attention": {
        "reference": lambda Q, K, V: scaled_dot_product_attention(Q.T, K.T, V.T)[0].T,
        "columns": lambda Q, K, V: V @ scipy.special.softmax(K.T @ Q / np.sqrt(len(Q)), axis=0),
        "columns, from rows": lambda Q, K, V: V @ row_softmax(Q.T @ K / np.sqrt(Q.shape[0])).T,
        "plain loop": columns_by_loop,
        "float32": lambda Q, K, V: attention32(Q.T, K.T, V.T).T,
    },
    "shapes": {
        "reference": lambda n_q, n_kv, d, d_k, d_v: [
            (d, d_v),
            (n_q, d_k),
            (n_kv, d_k),
            (n_kv, d_v),
            (n_q, n_kv),
            (n_q, d_v),
        ],
        "tuple of lists": lambda *all_: tuple(map(list, six()(*all_))),
        "from arrays": lambda n, m, d, k, v: [
            array.shape
            for X, M in [(np.ones((n, d)), np.ones((m, d)))]
            for W_V, Q, K in [(np.ones((d, v)), X @ np.ones((d, k)), M @ np.ones((d, k)))]
            for array in (W_V, Q, K, M @ W_V, Q @ K.T, Q @ K.T @ (M @ W_V))
        ],
        "float32": lambda *all_: np.float32(six()(*all_)),
    },
    "causal_padding_mask": {
        "reference": lambda n, L: np.tri(n, dtype=bool) & (np.arange(n) < L[:, None])[:, None, None],
        "helpers": lambda n, L: causal_mask(n) & padding_mask(L, n),
        "plain loop, lists": mask_by_loop,
        "one comparison": lambda n, L: np.arange(n) < np.minimum(np.arange(1, n + 1)[:, None], L[:, None, None, None]),
        "logical_and": lambda n, L: np.logical_and(np.tri(n), tokens(n, L)),
        "hidden, inverted": lambda n, L: ~(np.triu(np.ones((n, n), bool), 1) | ~tokens(n, L)),
        "product": lambda n, L: tril(n)[None, None] * tokens(n, L),
        "from integers": lambda n, L: (np.tri(n, dtype=int) * tokens(n, L)) == 1,
    },
    "finds_leak": {
        "reference": leak_by_row,
        "all later rows at once": leak_by_noise,
        "prefixes": leak_by_prefix,
        "NaN": leak_by_poison,
        "bit for bit": leak_by_bits,
        "slope, returns 0 or 1": leak_by_slope,
    },
    "additive_mask": {
        "reference": lambda H: np.where(H, -INF, 0.0),
        "by index": lambda H: (a := np.zeros(H.shape), a.__setitem__(H, -INF))[0],
        "logarithm": lambda H: np.log(~H),
        "logarithm of floats": lambda H: np.log(1.0 - H),
        "choose": lambda H: np.choose(H, [0.0, -INF]),
        "float16": lambda H: np.where(H, np.float16(-INF), np.float16(0)),
        "plain list": lambda H: np.array([-INF if h else 0.0 for h in H.ravel()]).reshape(H.shape).tolist(),
        "minus zero": lambda H: np.where(H, -INF, -0.0),
        "NaN replaced": lambda H: np.nan_to_num(H * -INF, nan=0.0, neginf=-INF),
    },
    "masked_softmax": {
        "reference": lambda S, M: softmax(np.where(M, S, -INF)),
        "guard": masked_by_guard,
        "added": lambda S, M: softmax(S + np.where(M, 0, -INF)),
        "plain loop, lists": masked_by_loop,
        "NaN to 0": lambda S, M: np.nan_to_num(scipy.special.softmax(np.where(M, S, -INF), axis=-1)),
        "fill, then mask": lambda S, M: row_softmax(np.where(M, S, -1e9)) * M,
        "attention": lambda S, M: scaled_dot_product_attention(
            S, np.eye(S.shape[-1]), np.eye(S.shape[-1]), mask=np.broadcast_to(M, S.shape), scale=1.0
        )[0],
        "float32": lambda S, M: softmax(np.where(M, S, -INF).astype(np.float32)),
    },
    "log_softmax": {
        "reference": lambda S: (z := S - S.max(axis=-1, keepdims=True)) - np.log(np.exp(z).sum(axis=-1, keepdims=True)),
        "scipy": lambda S: scipy.special.log_softmax(S, axis=-1),
        "logsumexp": lambda S: S - scipy.special.logsumexp(S, axis=-1, keepdims=True),
        "logaddexp": lambda S: S - np.logaddexp.reduce(S, axis=-1, keepdims=True),
        "plain loop, lists": log_by_loop,
        "float32": lambda S: scipy.special.log_softmax(S.astype(np.float32), axis=-1),
    },
    "head_scores": {
        "reference": lambda X, A, B: (X @ A) @ (X @ B).swapaxes(-1, -2) / np.sqrt(A.shape[-1]),
        "head by head, list": head_by_head,
        "heads joined, then split": joined_heads,
        "one matrix for each head": lambda X, A, B: X @ (A @ B.transpose(0, 2, 1)) @ X.T / len(A[0, 0]) ** 0.5,
        "both halves scaled": lambda X, A, B: np.einsum(
            "hic,hjc->hij", X @ A / A.shape[2] ** 0.25, X @ B / A.shape[2] ** 0.25
        ),
        "float32": lambda *all_: np.float32(head_by_head(*map(np.float32, all_))),
    },
    "merge_blocks": {
        "reference": merging(lambda a, b, l1, o1, l2, o2: (a * o1 + b * o2) / (a * l1 + b * l2)),
        "softmax of the log sums": merge_by_log,
        "sigmoid": merge_by_sigmoid,
        "running, list": merge_by_update,
        "logaddexp": lambda m1, l1, o1, m2, l2, o2: (
            (L := np.logaddexp(m1 + np.log(l1), m2 + np.log(l2))) is not None
            and np.exp(m1 - L) * o1 + np.exp(m2 - L) * o2
        ),
        "float32": lambda *all_: merging(lambda a, b, l1, o1, l2, o2: (a * o1 + b * o2) / (a * l1 + b * l2))(
            *map(np.float32, all_)
        ),
    },
    "split_heads": {
        "reference": lambda x, h: x.reshape(*x.shape[:2], h, -1).transpose(0, 2, 1, 3),
        "np.split": lambda x, h: np.stack(np.split(x, h, axis=-1), axis=1),
        "array_split, list": lambda x, h: [np.array_split(rows, h, axis=1) for rows in x],
        "plain loop, lists": split_by_loop,
        "einsum": split_by_einsum,
        "columns first": lambda x, h: x.swapaxes(1, 2).reshape(len(x), h, -1, x.shape[1]).swapaxes(2, 3),
        "float16": lambda x, h: np.float16(np.stack(np.split(x, h, axis=2), axis=1)),
    },
    "merge_heads": {
        "reference": lambda x: x.swapaxes(1, 2).reshape(len(x), x.shape[2], -1),
        "concatenate": lambda x: np.concatenate([x[:, i] for i in range(x.shape[1])], axis=-1),
        "hstack, list": lambda x: [np.hstack(list(one)) for one in x],
        "plain loop, lists": lambda x: [[[v for head in one for v in head[t]] for t in range(x.shape[2])] for one in x],
        "einsum": lambda x: np.einsum("bhnc->bnhc", x).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),
        "float16": lambda x: np.float16(np.concatenate(list(np.moveaxis(x, 1, 0)), axis=-1)),
    },
    "multi_head": {
        "reference": lambda *case: multi_head_attention(*case)[0],
        "head by head": layer_by_head,
        "sum of the parts": layer_by_sum,
        "einsum": layer_by_einsum,
        "both halves scaled": lambda X, A, B, C, D, h: layer_by_head(X, 2 * A, B / 2, C, D, h),
        "float32": layer32,
    },
    "scrambles": {
        "reference": merges_back,
        "head by head": compares_heads,
        "returns 0 or 1": lambda *case: int(merges_back(*case)),
        "numbers of its own": numbers_of_its_own,
        "np.split": lambda split, x, h: not np.array_equal(split(x, h), np.stack(np.split(x, h, axis=2), axis=1)),
    },
    "induction_weight": {
        "reference": lambda A, names: head_statistics(A, names)["induction"],
        "plain loop": induction_by_loop,
        "mask": induction_by_mask,
        "pairs": induction_by_pairs,
        "float32": lambda A, names: np.float32(induction_by_loop(np.float32(A), names)),
        "0-d array": lambda A, names: np.array(induction_by_mask(A, names)),
    },
}


def logits(Q, K):
    return Q @ K.swapaxes(-1, -2) / math.sqrt(Q.shape[-1])


def safe(Q, K):
    """exp of the scaled scores, the largest of all subtracted."""
    return np.exp(logits(Q, K) - logits(Q, K).max())


def on_axis(axis):
    return lambda Q, K, V: scipy.special.softmax(logits(Q, K), axis=axis) @ V


# wrong attention from Q, K, V: (answer, phrase), for the exercises on rows and the one on columns
ON_QKV = {
    "unscaled": (lambda Q, K, V: attention(Q, K, V, 1), "the scores are not scaled: divide"),
    "d_k": (lambda Q, K, V: attention(Q, K, V, Q.shape[-1]), "divided by d_k (or twice"),
    "times sqrt(d_k)": (lambda Q, K, V: attention(Q, K, V, Q.shape[-1] ** -0.5), "multiplied by sqrt(d_k)"),
    "sqrt(n_kv)": (lambda Q, K, V: attention(Q, K, V, K.shape[-2] ** 0.5), "root of the number of keys"),
    "sqrt(d_v)": (lambda Q, K, V: attention(Q, K, V, V.shape[-1] ** 0.5), "divided by sqrt(d_v)"),
    "scaled after": (
        lambda Q, K, V: row_softmax(Q @ K.swapaxes(-1, -2)) / Q.shape[-1] ** 0.5 @ V,
        "the weights are divided by sqrt(d_k)",
    ),
    "output scaled": (
        lambda Q, K, V: row_softmax(Q @ K.swapaxes(-1, -2)) @ V / Q.shape[-1] ** 0.5,
        "the weights are divided by sqrt(d_k)",
    ),
    "not divided": (
        lambda Q, K, V: np.exp(logits(Q, K) - logits(Q, K).max(axis=-1, keepdims=True)) @ V,
        "the weights do not sum to 1",
    ),
    "exp overflows": (
        lambda Q, K, V: np.exp(logits(Q, K)) @ V / np.exp(logits(Q, K)).sum(axis=-1, keepdims=True),
        "exp overflows for large scores",
    ),
    "one maximum": (
        lambda Q, K, V: safe(Q, K) / safe(Q, K).sum(axis=-1, keepdims=True) @ V,
        "one maximum was subtracted for all",
    ),
    "no softmax": (lambda Q, K, V: logits(Q, K) @ V, "scores are used as weights: softmax is"),
    "no scaling, no softmax": (
        lambda Q, K, V: Q @ (K.swapaxes(-1, -2) @ V),
        "scores are used as weights: scaling and softmax are",
    ),
    "no exp": (lambda Q, K, V: logits(Q, K) / logits(Q, K).sum(axis=-1, keepdims=True) @ V, "exp is missing"),
    "sign": (lambda Q, K, V: attention(-Q, K, V), "the sign is wrong"),
    "best key": (lambda Q, K, V: attention(1e9 * Q, K, V), "takes only its best key"),
    "mean": (lambda Q, K, V: attention(0 * Q, K, V), "the same mean of all values"),
    "whole matrix": (
        lambda Q, K, V: scipy.special.softmax(logits(Q, K), axis=(-2, -1)) @ V,
        "ran over the whole matrix",
    ),
    "softmax twice": (lambda Q, K, V: row_softmax(row_softmax(logits(Q, K))) @ V, "softmax was taken twice"),
    "weights": (lambda Q, K, V: row_softmax(logits(Q, K)), "these are the weights"),
    "scores": (lambda Q, K, V: logits(Q, K), "these are the scores: softmax"),
    "raw scores": (lambda Q, K, V: np.einsum("...id,...jd->...ij", Q, K), "these are the scores before scaling"),
    "values": (lambda Q, K, V: V, "these are the values themselves"),
}

ROW_QKV = {
    "sqrt(n_q)": (lambda Q, K, V: attention(Q, K, V, Q.shape[-2] ** 0.5), "root of the number of queries"),
    "softmax over queries": (on_axis(-2), "softmax ran over the queries (down the columns): each"),
    "softmax over queries, unscaled": (
        lambda Q, K, V: on_axis(-2)(Q * Q.shape[-1] ** 0.5, K, V),
        "softmax ran over the queries (down the columns), and",
    ),
    "no keepdims": (
        lambda Q, K, V: np.exp(logits(Q, K)) / np.exp(logits(Q, K)).sum(axis=-1) @ V,
        "keepdims=True is missing",
    ),
    "no keepdims, safe": (lambda Q, K, V: safe(Q, K) / safe(Q, K).sum(axis=-1) @ V, "keepdims=True is missing"),
    "no keepdims at all": (
        lambda Q, K, V: (e := np.exp(logits(Q, K) - logits(Q, K).max(axis=-1))) / e.sum(axis=-1) @ V,
        "keepdims=True is missing",
    ),
    "no keepdims in the sum": (
        lambda Q, K, V: (e := np.exp(logits(Q, K) - logits(Q, K).max(axis=-1, keepdims=True))) / e.sum(axis=-1) @ V,
        "keepdims=True is missing",
    ),
    "swapped": (lambda Q, K, V: attention(K, Q, V), "queries and keys are swapped"),
    "weights transposed": (
        lambda Q, K, V: row_softmax(logits(Q, K)).swapaxes(-1, -2) @ V,
        "the weights are transposed",
    ),
    "values as keys": (lambda Q, K, V: attention(Q, V, V), "the values stand where the keys should"),
    "keys as values": (lambda Q, K, V: attention(Q, K, K), "the weights average the keys"),
    "queries as values": (lambda Q, K, V: attention(Q, K, Q), "the weights average the queries"),
    "Q Q^T": (lambda Q, K, V: attention(Q, Q, V), "the queries are compared with themselves"),
    "K K^T": (lambda Q, K, V: attention(K, K, V), "the keys are compared with themselves"),
    "transposed": (lambda Q, K, V: attention(Q, K, V).swapaxes(-1, -2), "this is transposed: it has a row"),
}


def changing(rows, seen, tolerance=1e-8):
    """A leak test that changes these rows (None: all) one by one and compares the output rows seen or seen(j)."""

    def answer(layer, X):
        found = False
        for j in range(len(X)) if rows is None else rows:
            other = X.copy()
            other[j] = other[j] - 0.7
            part = seen(j) if callable(seen) else seen
            found |= bool((np.abs(layer(other) - layer(X))[part] > tolerance).any())
        return found

    return answer


def return_at_once(layer, X):  # noqa: RET503
    for j in range(1, len(X)):
        other = X.copy()
        other[j] = 0
        return not np.allclose(layer(other)[:j], layer(X)[:j])


def heads_divided_by(X, A, B, divisor):
    return np.array([(X @ a) @ (X @ b).T / divisor for a, b in zip(A, B)])


def subtracting(reference):
    """Blocks merged with something else than the larger maximum subtracted."""

    def answer(m1, l1, o1, m2, l2, o2):
        a, b = np.exp(m1 - reference(m1, m2)), np.exp(m2 - reference(m1, m2))
        return (a * o1 + b * o2) / (a * l1 + b * l2)

    return answer


def in_order(*order):
    """A split whose axes (b, n, h, d_h) are put in this order."""
    return lambda x, h: np.transpose(x.reshape(*x.shape[:2], h, -1), order)


def on_heads(attend, split=lambda Y, h: np.stack(np.hsplit(Y, h)), merge=np.hstack):
    """A layer of several heads that attends, splits or merges in another way."""

    def answer(X, A, B, C, D, h):
        return merge(attend(*(split(X @ W, h) for W in (A, B, C)))) @ D

    return answer


def divided_by(width):
    """A layer whose scores are divided by the root of width(X, A, h)."""

    def answer(X, A, B, C, D, h):
        return on_heads(lambda Q, K, V: attention(Q, K, V, width(X, A, h) ** 0.5))(X, A, B, C, D, h)

    return answer


def scrambled(Y, h):
    return Y.reshape(h, len(Y), -1)


def unscrambled(Y):
    return Y.reshape(Y.shape[1], -1)


def every_third(Y, h):
    return np.stack([Y[:, i::h] for i in range(h)])


def in_turn(Y):
    return np.dstack(list(Y)).reshape(Y.shape[1], -1)


def values_cut_too_wide(X, A, B, C, D, h):
    w, parts = A.shape[1] // h, []
    for i in range(h):
        cut = slice(i * w, (i + 1) * w)
        parts.append(attention((X @ A)[:, cut], (X @ B)[:, cut], (X @ C)[:, cut]))
    return np.hstack(parts) @ D


def overwritten(X, A, B, C, D, h):
    for i in range(h):
        Y = each_head(X, A, B, C, h)[i] @ np.vsplit(D, h)[i]
    return Y


NOT_IN_A_LAYER = {"weights", "scores", "raw scores", "transposed", "sqrt(n_q)"}  # no W_O after these, or n_q = n_kv


def comparing(part):
    """A tester that looks at a part of the split alone."""
    return lambda split, x, h: not np.array_equal(part(split(x, h)), part(np.array(split_by_loop(x, h))))


def marked_by_token(split, x, h):
    marks = np.zeros(x.shape) + np.arange(x.shape[1])[:, None]
    y = split(marks, h)
    return y.shape != (len(x), h, x.shape[1], x.shape[2] // h) or bool((y != np.arange(x.shape[1])[:, None]).any())


def induction(keys, sum_up=sum, over=np.mean):
    """An answer that counts the keys that keys(t, names) gives."""

    def answer(A, names):
        rows = [[A[t, k] for k in keys(t, names)] for t in range(len(names))]
        return over([sum_up(row) for row in rows if row])

    return answer


def same(t, names, stop=None):
    """The earlier j with j + 1 < t, or all below stop, whose token is that of t."""
    return [j for j in range(max(t - 1, 0) if stop is None else stop) if names[j] == names[t]]


def after(t, names):
    return [j + 1 for j in same(t, names)]


def sums(A, names):
    return induction(after, over=np.array)(A, names)


def argmax_hits(A, names):
    return np.mean([A[t].argmax() in after(t, names) for t in range(len(names)) if after(t, names)])


WRONG = {
    "softmax": {
        "exp overflows": (lambda s: np.exp(s) / np.sum(np.exp(s)), "subtract the largest score before exp"),
        "half shifted": (lambda s: np.exp(s - s.max()) / np.sum(np.exp(s)), "below it exp(1000) still overflows"),
        "mean subtracted": (lambda s: share(np.exp(s - np.mean(s))), "after subtracting the mean"),
        "minimum subtracted": (lambda s: share(np.exp(s - min(s))), "subtracting the minimum"),
        "not divided": (lambda s: np.exp(s - s.max()), "do not sum to 1"),
        "divided by the largest": (lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).max(), "do not sum to 1"),
        "clipped": (lambda s: share(np.exp(np.clip(s, -500, 500))), "clipping"),
        "no exp": (lambda s: s / np.sum(s), "without exp"),
        "sign": (lambda s: stable(-s), "the sign is wrong"),
        "base 2": (lambda s: share(np.exp2(s - s.max())), "the base is 2"),
        "largest only": (lambda s: np.eye(len(s))[np.argmax(s)], "temperature 0"),
    },
    "attend": {
        "weights": (lambda q, X, T: softmax_by_loop(X @ q / T), "these are the weights"),
        "scores": (lambda q, X, T: np.inner(X, q), "these are the scores"),
        "divided scores": (lambda q, X, T: np.inner(X, q) / T, "these are the scores"),
        "not summed": (lambda q, X, T: X * stable(X @ q / T).reshape(-1, 1), "not summed"),
        "wrong sum": (lambda q, X, T: [sum(w * x) for w, x in zip(stable(X @ q / T), X)], "over the features (axis 1)"),
        "no temperature": (lambda q, X, T: stable(X @ q) @ X, "temperature plays no part"),
        "times temperature": (lambda q, X, T: stable(T * (X @ q)) @ X, "multiplied by the temperature"),
        "temperature after softmax": (lambda q, X, T: stable(X @ q) @ X / T, "weights are divided by the temperature"),
        "scores as weights": (lambda q, X, T: X.T @ (X @ q / T), "the scores are used as weights"),
        "plain mean": (lambda q, X, T: sum(X) / len(X), "mean of the rows"),
        "best row": (lambda q, X, T: max(X, key=lambda x: x @ q), "largest score"),
        "exp overflows": (lambda q, X, T: np.average(X, axis=0, weights=np.exp(X @ q / T)), "exp overflows"),
        "scaled": (lambda q, X, T: stable(X @ q / X.shape[1] ** 0.5 / T) @ X, "divided by sqrt(d)"),
        "cosine": (lambda q, X, T: stable(X @ q / np.sqrt((X * X).sum(1) * (q @ q)) / T) @ X, "cosines"),
        "softmax over features": (
            lambda q, X, T: np.sum([stable(x * q / T) * x for x in X], axis=0),
            "over the features of each row",
        ),
    },
    "effective_positions": {
        "0 log 0": (lambda w: 2 ** -np.sum(w * np.log2(w)), "0 * log2(0)"),
        "0 log 0 in nats": (lambda w: np.exp(-np.sum(w * np.log(w))), "0 * log2(0)"),
        "entropy": (bits, "this is the entropy"),
        "nats with base 2": (lambda w: 2 ** scipy.stats.entropy(w), "in nats"),
        "bits with base e": (lambda w: math.exp(bits(w)), "in bits"),
        "sign": (lambda w: 2 ** -bits(w), "minus sign"),
        "count": (lambda w: sum(x > 0 for x in w), "counts the positions"),
        "inverse Simpson": (lambda w: 1 / (w @ w), "1 / sum(w^2)"),
        "inverse maximum": (lambda w: max(w) ** -1, "1 / the largest weight"),
    },
    "kernel_regression": {
        "bandwidth not squared": (lambda q, x, y, b: mean_by(gauss(q, x, b**0.5), y), "bandwidth is not squared"),
        "no half": (lambda q, x, y, b: mean_by(gauss(q, x, b / 2**0.5), y), "factor 1/2"),
        "distance not squared": (
            lambda q, x, y, b: mean_by(np.exp(-abs(q[:, None] - x) / 2 / b**2), y),
            "distance is not squared",
        ),
        "sign": (lambda q, x, y, b: mean_by(1 / gauss(q, x, b), y), "minus sign"),
        "softmax over queries": (lambda q, x, y, b: share(gauss(q, x, b), axis=0) @ y, "ran over the queries"),
        "not divided": (lambda q, x, y, b: gauss(q, x, b) @ y, "not divided by its sum"),
        "nearest": (lambda q, x, y, b: y[np.argmax(gauss(q, x, b), axis=1)], "nearest u"),
    },
    "previous_token": {
        "next": (
            lambda E, P: (50 * P, np.roll(P, 1, axis=0)),
            "looks at the next token (mean weight 1.00): move the 1s the other way: swap",
        ),
        "next, weak": (
            lambda E, P: (4 * P[:-1].T @ P[:-1] @ np.roll(P, -1, axis=0), P),
            "looks at the next token (mean",
        ),
        "itself": (lambda E, P: (50 * P, P), "looks at the position itself (mean weight 1.00)"),
        "first": (RIGHT["first_token"]["reference"], "looks at the first token (mean weight 1.00): let row i of Q"),
        "last": (looking(lambda i, j, t: j == len(t) - 1), "looks at the last token"),
        "two back": (lambda E, P: (50 * np.roll(P, 2, axis=0), P), "looks at the token two back"),
        "two ahead": (lambda E, P: (50 * P, np.roll(P, 2, axis=0)), "looks at the token two ahead"),
        "mirror": (lambda E, P: (50 * P[::-1], P), "looks at the mirrored position"),
        "equal": (lambda E, P: (50 * E, E), "looks at the equal tokens (mean weight 1.00): a place is asked for"),
        "equal elsewhere": (looking(lambda i, j, t: i != j and t[i] == t[j]), "looks at the equal tokens elsewhere"),
        "like previous": (lambda E, P: (50 * np.roll(E, 1, axis=0), E), "looks at all tokens like the previous one"),
        "like next": (lambda E, P: (50 * np.roll(E, -1, axis=0), E), "looks at all tokens like the next one"),
        "like first": (looking(lambda i, j, t: t[j] == t[0]), "looks at all tokens like the first"),
        "uniform": (lambda E, P: (np.ones_like(P), P), "looks at all positions alike: let row i"),
        "sign": (lambda E, P: (-50 * np.roll(P, 1, axis=0), P), "everything but the previous token"),
        "causal": (looking(lambda i, j, t: j < i), "all earlier positions"),
        "causal with itself": (looking(lambda i, j, t: j <= i), "all positions up to its own"),
        "later": (looking(lambda i, j, t: j > i), "all later positions"),
        "all the others": (looking(lambda i, j, t: j != i), "everything but the position itself"),
        "other tokens": (lambda E, P: (-50 * E, E), "all other tokens"),
        "weak": (lambda E, P: (3 * np.roll(P, 1, axis=0), P), "in 'ebacbeb' only 0.34 of it: multiply Q by"),
        "one row wrong": (
            looking(lambda i, j, t: j == (i - 1 if i != 3 else 0)),
            "position 3 should look at 2, but gives only 0.00 there, and 0.99 to position 0",
        ),
        "next in most rows": (
            looking(lambda i, j, t: j == (i + 1 if (i, len(t)) != (3, 7) else 0)),
            "looks at the next token (mean weight 0.94)",
        ),
        "nearly next": (lambda E, P: (np.c_[7 * P, 3 * E], np.c_[np.roll(P, 1, axis=0), E]), "token (mean weight 0."),
    },
    "first_token": {
        "uniform": (lambda E, P: (50 * P[:, :1], np.ones((len(P), 1))), "looks at all positions alike: each row"),
        "itself": (lambda E, P: (50 * P, P), "looks at the position itself"),
        "last": (lambda E, P: (np.full((len(P), 1), 50), P[:, -1:]), "looks at the last token"),
        "like first": (lambda E, P: (50 * E[:1] + 0 * E, E), "looks at all tokens like the first"),
        "sign": (lambda E, P: (-50 * np.ones((len(P), 1)), P[:, :1]), "everything but the first token"),
        "previous": (RIGHT["previous_token"]["nothing for position 0"], "looks at the previous token"),
        "equal": (RIGHT["equal_tokens"]["reference"], "looks at the equal tokens"),
        "weak": (lambda E, P: (np.ones((len(P), 1)), P[:, :1]), "the first token gets the most weight, but in 'ebac"),
        "second": (looking(lambda i, j, t: j == 1), "position 0 should look at 0, but gives only 0.00"),
    },
    "equal_tokens": {
        "itself": (lambda E, P: (50 * P, P), "looks at the position itself (mean weight 1.00): only the place"),
        "elsewhere": (lambda E, P: (np.c_[50 * E, -90 * P], np.c_[E, P]), "looks at the equal tokens elsewhere"),
        "sign": (lambda E, P: (-50 * E, E), "looks at all other tokens"),
        "like first": (lambda E, P: (50 * E[[0] * len(E)], E), "looks at all tokens like the first"),
        "like previous": (lambda E, P: (50 * np.roll(E, 1, axis=0), E), "looks at all tokens like the previous one"),
        "keys of the previous": (
            lambda E, P: (50 * E, np.roll(E, 1, axis=0)),
            "looks at the tokens after the equal ones",
        ),
        "keys of the next": (
            lambda E, P: (50 * E, np.roll(E, -1, axis=0)),
            "looks at the tokens before the equal ones",
        ),
        "previous": (RIGHT["previous_token"]["reference"], "looks at the previous token"),
        "uniform": (lambda E, P: (0 * E, E), "looks at all positions alike: rows of E"),
        "first": (RIGHT["first_token"]["reference"], "looks at the first token"),
        "weak": (lambda E, P: (E, E), "the equal tokens get the most weight, but in"),
        "uneven": (lambda E, P: (np.c_[50 * E, 3 * P], np.c_[E, P]), "but not in equal shares"),
        "one token short": (
            lambda E, P: (50 * E[:, 1:], E[:, 1:]),
            "in 'ebacbeb' position 2 should look at 2, but gives only 0.14 there, and 0.14 to position 0",
        ),
    },
    "rotate": {
        "clockwise": (turned(lambda p, t: -p * t), "turns clockwise"),
        "no position": (turned(lambda p, t: t), "the position plays no part"),
        "no theta": (turned(lambda p, t: p), "theta plays no part"),
        "sum": (turned(lambda p, t: p + t), "position + theta"),
        "quotient": (turned(lambda p, t: p / t), "position / theta"),
        "power": (turned(lambda p, t: t**p), "theta ** position"),
        "counted from 1": (turned(lambda p, t: t * (1 + p)), "one step too far"),
        "twice": (turned(lambda p, t: p * t + p * t), "twice the angle"),
        "half": (turned(lambda p, t: p * t / 2), "half the angle"),
        "from degrees": (turned(lambda p, t: math.radians(p * t)), "conversion from degrees"),
        "to degrees": (turned(lambda p, t: math.degrees(p * t)), "do not convert the angle"),
        "sin and cos": (cos_sin(lambda x, c, s: [x[0] * s - x[1] * c, x[0] * c + x[1] * s]), "sin and cos are swapped"),
        "pair swapped": (cos_sin(lambda x, c, s: [x[1] * c - x[0] * s, x[1] * s + x[0] * c]), "x[0] and x[1] are"),
        "no minus": (cos_sin(lambda x, c, s: [x[0] * c + x[1] * s, x[0] * s + x[1] * c]), "the minus is missing"),
        "two minuses": (cos_sin(lambda x, c, s: [x[0] * c - x[1] * s, -x[0] * s + x[1] * c]), "one minus too many"),
        "mirror": (cos_sin(lambda x, c, s: [x[0] * c + x[1] * s, x[0] * s - x[1] * c]), "a mirror image"),
        "second sign": (cos_sin(lambda x, c, s: [x[0] * c - x[1] * s, x[0] * s - x[1] * c]), "second sign is wrong"),
        "first only": (cos_sin(lambda x, c, s: [x[0] * c - x[1] * s, x[1]]), "only the first number"),
        "second only": (cos_sin(lambda x, c, s: [x[0], x[0] * s + x[1] * c]), "only the second number"),
        "new first used": (turn_in_place(0, 1), "the new first number was used"),
        "new second used": (turn_in_place(1, 0), "the new second number was used"),
        "cos only": (cos_sin(lambda x, c, s: x * c), "only shortened by cos"),
        "number by number": (cos_sin(lambda x, c, s: x * [c, s]), "needs both, cos and sin"),
        "x[0] alone": (cos_sin(lambda x, c, s: [x[0] * c, x[0] * s]), "x[1] plays no part"),
        "unit pair": (cos_sin(lambda x, c, s: (c, s)), "x plays no part"),
        "matrix": (cos_sin(lambda x, c, s: [[c, -s], [s, c]]), "this is the matrix"),
        "moved by position": (lambda x, p, t: x + p, "the position is added"),
        "moved by angle": (lambda x, p, t: [v + p * t for v in x], "the angle is added"),
        "stretched by position": (lambda x, p, t: p * x, "the position is a factor"),
        "stretched by angle": (lambda x, p, t: t * p * x, "the angle is a factor"),
        "angle": (lambda x, p, t: t * p, "this is the angle"),
        "unchanged": (lambda x, p, t: x, "the pair is not turned"),
    },
    "self_attention": {
        **{name: (lambda X, A, B, C, f=f: f(X @ A, X @ B, X @ C), phrase) for name, (f, phrase) in ON_QKV.items()},
        **{name: (lambda X, A, B, C, f=f: f(X @ A, X @ B, X @ C), phrase) for name, (f, phrase) in ROW_QKV.items()},
        "sqrt(n_q)": (lambda X, A, B, C: attention(X @ A, X @ B, X @ C, len(X) ** 0.5), "root of the number of keys"),
        "sqrt(d)": (lambda X, A, B, C: attention(X @ A, X @ B, X @ C, len(A) ** 0.5), "divided by sqrt(d): it is"),
        "no W_V": (lambda X, A, B, C: attention(X @ A, X @ B, X), "average X itself"),
        "values as keys": (lambda X, A, B, C: attention(X @ A, X @ C, X @ C), "the keys are made with W_V"),
        "W_V for Q": (lambda X, A, B, C: attention(X @ C, X @ B, X @ C), "the queries are made with W_V"),
        "Q Q^T": (lambda X, A, B, C: attention(X @ A, X @ A, X @ C), "both made with W_Q"),
        "K K^T": (lambda X, A, B, C: attention(X @ B, X @ B, X @ C), "both made with W_K"),
        "X for Q": (lambda X, A, B, C: attention(X, X @ B, X @ C), "the queries are X itself"),
        "X for K": (lambda X, A, B, C: attention(X @ A, X, X @ C), "the keys are X itself"),
        "X for both": (lambda X, A, B, C: attention(X, X, X @ C), "the scores compare X with X"),
        "X for both, sqrt(d_k)": (
            lambda X, A, B, C: attention(X, X, X @ C, A.shape[1] ** 0.5),
            "the scores compare X with X",
        ),
        "X for all": (lambda X, A, B, C: attention(X, X, X), "attention on X itself"),
        "transposed W": (lambda X, A, B, C: attention(X @ A.T, X @ B.T, X @ C), "W_Q and W_K are transposed"),
    },
    "cross_attention": {
        **{name: (lambda X, M, A, B, C, f=f: f(X @ A, M @ B, M @ C), phrase) for name, (f, phrase) in ON_QKV.items()},
        **{name: (lambda X, M, A, B, C, f=f: f(X @ A, M @ B, M @ C), phrase) for name, (f, phrase) in ROW_QKV.items()},
        "all from X": (lambda X, M, A, B, C: attention(X @ A, X @ B, X @ C), "all comes from X"),
        "all from M": (lambda X, M, A, B, C: attention(M @ A, M @ B, M @ C), "all comes from M"),
        "roles": (lambda X, M, A, B, C: attention(M @ A, X @ B, X @ C), "the roles are swapped"),
        "values from X": (lambda X, M, A, B, C: attention(X @ A, M @ B, X @ C), "the values come from X"),
        "keys from X": (lambda X, M, A, B, C: attention(X @ A, X @ B, M @ C), "the keys come from X"),
        "Q from M, K from X": (lambda X, M, A, B, C: attention(M @ A, X @ B, M @ C), "changed places"),
        "Q and K from M": (lambda X, M, A, B, C: attention(M @ A, M @ B, X @ C), "queries and keys come from M"),
        "sqrt(d)": (lambda X, M, A, B, C: attention(X @ A, M @ B, M @ C, len(A) ** 0.5), "divided by sqrt(d): it is"),
        "W_Q and W_K": (lambda X, M, A, B, C: attention(X @ B, M @ A, M @ C), "W_Q and W_K are exchanged"),
        "values as keys": (lambda X, M, A, B, C: attention(X @ A, M @ C, M @ C), "the keys are made with W_V"),
        "no W_V": (lambda X, M, A, B, C: attention(X @ A, M @ B, M), "average M itself"),
        "X for Q": (lambda X, M, A, B, C: attention(X, M @ B, M @ C), "the queries are X itself"),
        "M for K": (lambda X, M, A, B, C: attention(X @ A, M, M @ C), "the keys are M itself"),
        "X and M": (lambda X, M, A, B, C: attention(X, M, M @ C), "the scores compare X with M"),
        "both together": (
            lambda X, M, A, B, C: attention(X @ A, np.r_[X, M] @ B, np.r_[X, M] @ C),
            "from X and M together",
        ),
    },
    "permuted": {
        "unchanged": (lambda Y, order: Y.copy(), "Y is unchanged"),
        "inverse": (lambda Y, order: Y[[list(order).index(i) for i in range(len(Y))]], "this is the inverse order"),
        "twice": (lambda Y, order: Y[order[order]], "applied twice"),
        "columns": (lambda Y, order: Y.T[order].T, "the columns (features) are moved"),
        "rows and columns": (lambda Y, order: Y[np.ix_(order, order)], "rows and columns are both moved"),
        "reversed": (lambda Y, order: list(reversed(Y)), "the rows are reversed, whatever the order"),
        "moved and reversed": (lambda Y, order: Y[order[::-1]], "reversed after the move"),
        "off by one": (lambda Y, order: [Y[i - 1] for i in order], "count from 0"),
        "sorted columns": (lambda Y, order: np.array([sorted(y) for y in Y.T]).T, "each column is sorted"),
        "sorted rows": (lambda Y, order: [sorted(y) for y in Y], "each row is sorted"),
        "take without axis": (lambda Y, order: Y.ravel()[order], "np.take without axis"),
        "transposed": (lambda Y, order: Y.T[:, order], "this is transposed"),
        "times the order": (lambda Y, order: np.diag(order) @ Y, "multiplied by the order"),
        "mean everywhere": (lambda Y, order: np.tile(Y.mean(0), (len(Y), 1)), "every row is the mean"),
        "mean": (lambda Y, order: sum(Y) / len(Y), "this is the mean of the rows"),
        "order": (lambda Y, order: list(order), "this is the order itself"),
        "attention again": (lambda Y, order: attention(Y[order], Y[order], Y[order]), "no new attention is needed"),
    },
    "matrix_attention": {
        **ON_QKV,
        **ROW_QKV,
        "softmax over axis 0": (lambda Q, K, V: on_axis(0)(Q, K, V), "softmax ran over axis 0"),
        "softmax over axis 1": (lambda Q, K, V: on_axis(1)(Q, K, V), "softmax ran over axis 1"),
        "width of axis 1": (lambda Q, K, V: attention(Q, K, V, Q.shape[1] ** 0.5), "d_k is taken from Q.shape[1]"),
        "over the batch": (lambda Q, K, V: share(safe(Q, K)) @ V, "softmax ran over the batch as well"),
        "dot for the output": (lambda Q, K, V: row_softmax(logits(Q, K)).dot(V), "np.dot pairs every"),
        "batch summed": (lambda Q, K, V: np.add.reduce(attention(Q, K, V)), "the first axis is summed away"),
        "first of the batch": (lambda Q, K, V: attention(Q, K, V)[0], "only the first matrix"),
    },
    "column_attention": {
        **{name: (lambda Q, K, V, f=f: np.transpose(f(Q.T, K.T, V.T)), phrase) for name, (f, phrase) in ON_QKV.items()},
        "width from shape[-1]": (
            lambda Q, K, V: V @ row_softmax(Q.T @ K / Q.shape[-1] ** 0.5).T,
            "root of the number of queries: d_k is the width, Q.shape[0]",
        ),
        "softmax over queries": (
            lambda Q, K, V: V @ scipy.special.softmax(K.T @ Q / len(Q) ** 0.5, axis=1),
            "softmax ran over the queries (along the rows of K^T Q): each",
        ),
        "softmax over queries, unscaled": (
            lambda Q, K, V: V @ row_softmax(K.T @ Q),
            "softmax ran over the queries (along the rows of K^T Q), and",
        ),
        "transposed": (lambda Q, K, V: attention(Q.T, K.T, V.T), "this is transposed"),
        "Q^T K, axis 0": (
            lambda Q, K, V: V @ scipy.special.softmax(Q.T @ K / len(Q) ** 0.5, axis=0),
            "the scores are Q^T K, where a column belongs to a key",
        ),
        "Q^T K, axis 1": (
            lambda Q, K, V: V @ row_softmax(Q.T @ K / len(Q) ** 0.5),
            "the weights of a query are a row here",
        ),
        "row formula": (attention, "this is the row formula on columns"),
        "row formula, sqrt(d_k)": (
            lambda Q, K, V: row_softmax(Q @ K.T / len(Q) ** 0.5) @ V,
            "this is the row formula on columns",
        ),
        "V transposed": (
            lambda Q, K, V: V.T @ scipy.special.softmax(K.T @ Q / len(Q) ** 0.5, axis=0),
            "V is transposed",
        ),
        "A V": (
            lambda Q, K, V: scipy.special.softmax(K.T @ Q / len(Q) ** 0.5, axis=0) @ V,
            "A @ V is the order for rows",
        ),
    },
    "shapes": {
        "W_V transposed": (six(W_V="d_v d"), "W_V is (d, d_v), not (d_v, d): the two numbers are exchanged"),
        "W_V to d_k": (six(W_V="d d_k"), "W_V is (d, d_v), not (d, d_k): it takes a row of width d"),
        "Q with d": (six(Q="n_q d"), "Q is (n_q, d_k), not (n_q, d): it has a row for each query"),
        "Q transposed": (six(Q="d_k n_q"), "Q is (n_q, d_k), not (d_k, n_q): the two"),
        "K with n_q": (six(K="n_q d_k"), "K is (n_kv, d_k), not (n_q, d_k): it has a row for each key"),
        "V with d_k": (six(V="n_kv d_k"), "V is (n_kv, d_v), not (n_kv, d_k)"),
        "V with n_q": (six(V="n_q d_v"), "V is (n_kv, d_v), not (n_q, d_v)"),
        "A transposed": (six(A="n_kv n_q"), "A is (n_q, n_kv), not (n_kv, n_q): the two numbers are exchanged"),
        "A square": (six(A="n_q n_q"), "A is (n_q, n_kv), not (n_q, n_q): it has a row for each query and a column"),
        "Y with d_k": (six(Y="n_q d_k"), "Y is (n_q, d_v), not (n_q, d_k): it has a row for each query, a mean"),
        "Y with d": (six(Y="n_q d"), "Y is (n_q, d_v), not (n_q, d)"),
        "Y with n_kv": (six(Y="n_kv d_v"), "Y is (n_q, d_v), not (n_kv, d_v)"),
        "two wrong": (six(K="d_k n_kv", Y="n_q d_k"), "K is (n_kv, d_k), not (d_k, n_kv): the two"),
        "fixed": (lambda *all_: six()(3, 5, 8, 4, 6), "W_V is (d, d_v), not (8, 6)"),
        "five": (lambda *all_: six()(*all_)[:5], "six pairs are expected"),
        "twelve": (lambda *all_: [number for pair in six()(*all_) for number in pair], "six pairs are expected"),
    },
    "causal_padding_mask": {
        "hidden": (lambda n, L: np.triu(np.ones((n, n), bool), 1) | ~tokens(n, L), "the polarity is inverted, True"),
        "upper triangle": (lambda n, L: tril(n).T & tokens(n, L), "the upper triangle is allowed"),
        "causal inverted": (lambda n, L: tril(n, -1).T & tokens(n, L), "the causal part is inverted"),
        "padding inverted": (lambda n, L: tril(n) & ~tokens(n, L), "the padding part is inverted"),
        "both inverted": (lambda n, L: tril(n, -1).T & ~tokens(n, L), "both parts are inverted"),
        "transposed": (lambda n, L: np.swapaxes(mask_by_loop(n, L), 2, 3), "the last two axes are exchanged"),
        "no diagonal": (lambda n, L: np.tri(n, k=-1, dtype=bool) & tokens(n, L), "the diagonal is hidden"),
        "one ahead": (lambda n, L: tril(n, 1) & tokens(n, L), "attend one key ahead"),
        "padding as queries": (
            lambda n, L: tril(n) & np.moveaxis(tokens(n, L), -1, -2),
            "the padding hides queries (rows)",
        ),
        "padding as both": (
            lambda n, L: tril(n) & tokens(n, L) & tokens(n, L).swapaxes(2, 3),
            "the padding hides queries (rows)",
        ),
        "or": (lambda n, L: tril(n) | tokens(n, L), "combined with OR"),
        "causal only": (lambda n, L: np.stack([tril(n)] * len(L))[:, None], "the padding is not hidden"),
        "causal only, one for all": (lambda n, L: tril(n)[None, None], "the padding is not hidden"),
        "causal only, (n, n)": (lambda n, L: tril(n), "the padding is not hidden"),
        "padding only": (lambda n, L: tokens(n, L) & np.ones((n, 1), bool), "the future is not hidden"),
        "padding only, (batch, 1, 1, n)": (lambda n, L: tokens(n, L), "the future is not hidden"),
        "padding only, (batch, n)": (lambda n, L: np.arange(n) < L[:, None], "the future is not hidden"),
        "no heads": (lambda n, L: tril(n) & (np.arange(n) < L[:, None])[:, None], "the heads axis is missing"),
        "heads last": (lambda n, L: np.array(mask_by_loop(n, L))[:, 0, :, :, None], "the heads axis stands last"),
        "heads first": (lambda n, L: np.array(mask_by_loop(n, L))[:, 0][None], "the heads axis stands first"),
        "<=": (lambda n, L: tril(n) & (np.arange(n) <= L[:, None])[:, None, None], "one position of padding"),
        "length - 1": (lambda n, L: tril(n) & (np.arange(n) < L[:, None] - 1)[:, None, None], "the last token is"),
        "padding in front": (lambda n, L: tril(n) & tokens(n, L)[..., ::-1], "hidden in front"),
        "first length": (lambda n, L: mask_by_loop(n, [L[0]] * len(L)), "all sequences get the first length"),
        "largest length": (lambda n, L: mask_by_loop(n, [max(L)] * len(L)), "all sequences get the largest length"),
        "smallest length": (lambda n, L: mask_by_loop(n, [min(L)] * len(L)), "all sequences get the smallest length"),
        "additive": (lambda n, L: np.where(mask_by_loop(n, L), 0, -INF), "this is an additive mask"),
        "additive, finite": (lambda n, L: np.where(mask_by_loop(n, L), 0, -1e9), "this is an additive mask"),
        "integers": (lambda n, L: np.tri(n, dtype=int) * tokens(n, L), "holds integers (int64), which attention ref"),
        "bytes": (lambda n, L: np.uint8(mask_by_loop(n, L)), "the mask holds integers (uint8)"),
        "floats": (lambda n, L: np.tri(n) * tokens(n, L), "the mask holds numbers (float64), which attention would"),
        "window": (
            lambda n, L: tril(n) & ~tril(n, -2) & tokens(n, L),
            "sequence 0 has length 5, and there query 2 may not attend to key 0, but should (for n, lengths = 5, [5, 3",
        ),
        "first token free": (
            lambda n, L: (tril(n) & tokens(n, L)) | (np.arange(n) == 1),
            "there query 0 may attend to key 1, but should not",
        ),
    },
    "finds_leak": {
        "never": (lambda layer, X: bool(np.size(layer(X)) < 0), "finds no leak at all"),
        "shapes": (lambda layer, X: layer(X).shape != layer(X[::-1]).shape, "finds no leak at all"),
        "itself": (lambda layer, X: not np.array_equal(layer(X), layer(X)), "finds no leak at all"),
        "first row": (changing([0], slice(0, 0)), "finds no leak at all"),
        "tiny change": (lambda layer, X: not np.allclose(layer(X + 1e-12), layer(X)), "finds no leak at all"),
        "always": (lambda layer, X: True, "calls every layer leaking"),
        "inverted": (lambda layer, X: not leak_by_row(layer, X), "the verdict is inverted"),
        "everything": (lambda layer, X: not np.allclose(layer(X + 1), layer(X)), "compared as well and may change"),
        "with the changed row": (changing(None, lambda j: slice(j + 1)), "compared as well and may change"),
        "from the changed row": (changing(None, lambda j: slice(j, None)), "compared as well and may change"),
        "all rows, last changed": (changing([-1], slice(None)), "compared as well and may change"),
        "all rows, first changed": (changing([0], slice(None)), "compared as well and may change"),
        "backwards": (changing(None, lambda j: slice(j + 1, None)), "the rows behind the changed one are compared"),
        "backwards from the first": (changing([0], slice(1, None)), "the rows behind the changed one are compared"),
        "last row only": (changing([-1], slice(-1)), "only the last row is changed: a leak"),
        "last and first only": (
            lambda layer, X: len(X) > 1 and changing([-1], slice(1))(layer, X),
            "only the last row is changed and only the first",
        ),
        "first output only": (changing(None, lambda j: slice(min(j, 1))), "only the first output row is looked at"),
        "neighbour only": (changing(None, lambda j: slice(max(j - 1, 0), j)), "just before the changed one"),
        "row 1 only": (changing([1], slice(1)), "only row 1 is changed"),
        "row 1 only, if there is one": (
            lambda layer, X: len(X) > 1 and changing([1], slice(1))(layer, X),
            "only row 1 is changed",
        ),
        "loop returns at once": (return_at_once, "only row 1 is changed"),
        "middle only": (lambda layer, X: changing([len(X) // 2], slice(len(X) // 2))(layer, X), "row in the middle"),
        "all": (
            lambda layer, X: all(changing([j], slice(j))(layer, X) for j in range(1, len(X))),
            "all later rows must leak",
        ),
        "reordered": (
            lambda layer, X: any(
                not np.allclose(layer(np.r_[X[:i], X[i:][::-1]])[:i], layer(X)[:i]) for i in range(len(X))
            ),
            "the later rows are only reordered",
        ),
        "tolerance 0.01": (
            changing(None, lambda j: slice(j), 1e-2),
            "finds no leak in attention that leaks a thousandth of its weight: make the change larger",
        ),
        "tolerance 0.5": (
            changing(None, lambda j: slice(j), 0.5),
            "finds no leak in attention without a mask: change each row in turn, clearly",
        ),
        "first column": (
            lambda layer, X: leak_by_row(lambda X: layer(X)[:, :1], X),
            "finds no leak in two heads, the second without a mask: compare every column",
        ),
        "last column": (
            lambda layer, X: leak_by_row(lambda X: layer(X)[:, -1:], X),
            "finds no leak in two heads, the first without a mask: compare every column",
        ),
        "first and last column": (
            lambda layer, X: leak_by_row(lambda X: layer(X)[:, [0, -1]], X),
            "finds no leak in a layer whose leak leaves the sum of each row: compare every column",
        ),
        "sum of each row": (
            lambda layer, X: leak_by_row(lambda X: layer(X).sum(axis=1), X),
            "finds no leak in a layer whose leak leaves the sum of each row: compare every column",
        ),
        "first feature": (
            lambda layer, X: leak_by_row(layer, X, [1, 0, 0]),
            "finds no leak in a layer that leaks the last feature alone: change all features",
        ),
        "last feature": (
            lambda layer, X: leak_by_row(layer, X, [0, 0, 1]),
            "finds no leak in a layer that leaks the first feature alone: change all features",
        ),
        "more than one row": (
            lambda layer, X: leak_by_row(layer, X) or len(X) == 1,
            "finds a leak in a layer with one row: there is no later row",
        ),
        "array": (
            lambda layer, X: layer(X[::-1]) != layer(X),
            "your test returns an array of shape (5, 4): return one True or False",
        ),
        "difference": (
            lambda layer, X: np.abs(layer(X + 0.5) - layer(X)).max(),
            "return True or False, such as difference > 1e-8",
        ),
    },
    "additive_mask": {
        "inverted": (lambda H: np.where(~H, -INF, 0), "the polarity is inverted: hidden is True where -inf must stand"),
        "logarithm of hidden": (lambda H: np.log(H), "the polarity is inverted: hidden is True where -inf must stand"),
        "inverted, finite": (lambda H: (1 - H) * -1e9, "the polarity is inverted and the number finite"),
        "product": (lambda H: H * -INF, "0 * inf is NaN: choose with"),
        "product of floats": (lambda H: -INF * H.astype(float), "0 * inf is NaN: choose with"),
        "inverted product": (lambda H: (1 - H) * -INF, "the polarity is inverted, and 0 * inf is NaN"),
        "+inf": (lambda H: np.where(H, INF, 0), "hidden positions get +inf"),
        "NaN": (lambda H: np.where(H, NAN, 0), "NaN makes every weight NaN"),
        "1 and 0": (lambda H: H.astype(float), "these are 1 where hidden and 0 elsewhere"),
        "0 and 1": (lambda H: 1.0 - H, "these are 1 where allowed and 0 elsewhere"),
        "1 if allowed": (lambda H: np.where(H, -INF, 1.0), "allowed positions get 1: what is added"),
        "zeros": (lambda H: np.zeros(H.shape), "nothing is hidden"),
        "-inf everywhere": (lambda H: np.full(H.shape, -INF), "everything is hidden"),
        "boolean": (lambda H: ~H, "this is a boolean mask"),
        "unchanged": (lambda H: H, "this is a boolean mask"),
        "integers": (lambda H: H * -(10**9), "these are integers"),
        "-1e9": (lambda H: H * -1e9, "a hidden position gets -1e+09: a score can be so large"),
        "-1": (lambda H: -H.astype(float), "a hidden position gets -1: a score"),
        "smallest float32": (lambda H: np.where(H, np.finfo(np.float32).min, 0), "a hidden position gets -3.40282e+38"),
        "allowed get 0.5": (lambda H: np.where(H, -INF, 0.5), "an allowed position gets 0.5: it must be 0"),
    },
    "masked_softmax": {
        "no mask": (lambda S, M: row_softmax(S), "the mask plays no part"),
        "after softmax": (lambda S, M: row_softmax(S) * M, "the mask comes after softmax"),
        "zeros after softmax": (lambda S, M: np.where(M, row_softmax(S), 0), "the mask comes after softmax"),
        "NaN": (lambda S, M: row_softmax(np.where(M, S, -INF)), "gets -inf - (-inf) = NaN"),
        "NaN by adding": (lambda S, M: row_softmax(S + np.log(M)), "gets -inf - (-inf) = NaN"),
        "-1e9": (lambda S, M: row_softmax(np.where(M, S, -1e9)), "nothing allowed gets equal weights"),
        "-1e30": (lambda S, M: row_softmax(np.where(M, S, -1e30)), "nothing allowed gets equal weights"),
        "-1e4": (lambda S, M: row_softmax(np.where(M, S, -1e4)), "nothing allowed gets equal weights"),
        "-1e9 added": (lambda S, M: row_softmax(S - 1e9 * ~M), "gets the weights of hidden scores"),
        "multiplied": (lambda S, M: row_softmax(S * M), "the scores are multiplied by the mask"),
        "added": (lambda S, M: row_softmax(S + M), "the mask is added as 0 and 1"),
        "polarity": (lambda S, M: softmax(np.where(M, -INF, S)), "the polarity is inverted"),
        "polarity, NaN": (lambda S, M: row_softmax(np.where(M, -INF, S)), "the polarity is inverted"),
        "polarity, -1e9": (lambda S, M: row_softmax(np.where(M, -1e9, S)), "the polarity is inverted"),
        "over queries": (lambda S, M: softmax(np.where(M, S, -INF), axis=-2), "over the queries (down the columns)"),
        "over axis 0": (lambda S, M: softmax(np.where(M, S, -INF), axis=0), "softmax ran over axis 0"),
        "over everything": (lambda S, M: stable(np.where(M, S, -INF)), "softmax ran over the whole array"),
        "hidden maximum": (
            lambda S, M: (e := np.exp(S - S.max(axis=-1, keepdims=True)) * M) / e.sum(axis=-1, keepdims=True),
            "may be a hidden one",
        ),
        "hidden maximum, guarded": (
            lambda S, M: np.nan_to_num((w := row_softmax(S) * M) / w.sum(axis=-1, keepdims=True)),
            "may be a hidden one",
        ),
        "renormalised": (
            lambda S, M: (w := np.where(M, row_softmax(S), 0)) / w.sum(axis=-1, keepdims=True),
            "may be a hidden one",
        ),
        "overflow": (
            lambda S, M: (e := np.exp(np.where(M, S, -INF))) / e.sum(axis=-1, keepdims=True),
            "exp overflows for large scores",
        ),
        "overflow, multiplied": (
            lambda S, M: (e := np.exp(S) * M) / np.where(e.sum(-1, keepdims=True), e.sum(-1, keepdims=True), 1),
            "exp overflows for large scores",
        ),
        "one maximum": (
            lambda S, M: (
                (e := np.exp(np.where(M, S, -INF) - S[np.broadcast_to(M, S.shape)].max()))
                / np.where(e.sum(-1, keepdims=True) > 0, e.sum(-1, keepdims=True), 1)
            ),
            "one maximum was subtracted",
        ),
        "not divided": (
            lambda S, M: np.exp((z := np.where(M, S, -1e300)) - z.max(axis=-1, keepdims=True)) * M,
            "the weights do not sum to 1: divide",
        ),
        "masked scores": (lambda S, M: np.where(M, S, -INF), "these are the masked scores"),
        "sign": (lambda S, M: softmax(np.where(M, -S, -INF)), "the sign is wrong"),
        "fill 0": (lambda S, M: softmax(np.where(M, S, 0)), "the scores are multiplied by the mask"),
        "fill -5": (lambda S, M: masked_by_guard(np.where(M, S, -5.0), True), "a hidden key gets the weight 0.00"),
        "empty rows 1 / n": (
            lambda S, M: np.where(np.any(M, -1, keepdims=True), masked_by_guard(S, M), 0.125),
            "nothing allowed gets 0.125: its weights should be zeros",
        ),
        "half": (lambda S, M: masked_by_guard(S, M) / 2, "the weights of a query sum to 0.5 (for"),
        "NaN for 1000": (
            lambda S, M: masked_by_guard(S, M) * np.where(np.abs(S).max() >= 1000, NAN, 1),
            "some weights are NaN (for",
        ),
    },
    "log_softmax": {
        "log of softmax": (lambda S: np.log(row_softmax(S)), "exp(-1000) is 0 and its logarithm -inf"),
        "overflow": (lambda S: S - np.log(np.exp(S).sum(axis=-1, keepdims=True)), "exp overflows for scores of 1000"),
        "log of a naive softmax": (
            lambda S: np.log(np.exp(S) / np.exp(S).sum(axis=-1, keepdims=True)),
            "exp overflows for scores of 1000",
        ),
        "half shifted": (
            lambda S: S - S.max(-1, keepdims=True) - np.log(np.exp(S).sum(-1, keepdims=True)),
            "the largest score must be subtracted in front and inside exp",
        ),
        "shifted inside only": (
            lambda S: S - np.log(np.exp(S - S.max(-1, keepdims=True)).sum(-1, keepdims=True)),
            "is subtracted inside exp only",
        ),
        "shift added": (
            lambda S: (t := S.max(-1, keepdims=True)) + S - np.log(np.exp(S - t).sum(-1, keepdims=True)),
            "the largest score is added in front",
        ),
        "1e-9": (lambda S: np.log(row_softmax(S) + 1e-9), "a small number inside the logarithm"),
        "clip": (lambda S: np.log(np.clip(row_softmax(S), 1e-12, 1)), "a small number inside the logarithm"),
        "softmax": (row_softmax, "this is softmax: its logarithm"),
        "base 2": (lambda S: np.array(log_by_loop(S)) / np.log(2), "the logarithm has base 2"),
        "base 10": (lambda S: np.array(log_by_loop(S)) * np.log10(np.e), "the logarithm has base 10"),
        "sign": (lambda S: -np.array(log_by_loop(S)), "the sign is wrong: a logarithm"),
        "sign of the scores": (lambda S: log_by_loop(-S), "the sign of the scores is wrong"),
        "no normaliser": (lambda S: S - S.max(axis=-1, keepdims=True), "log(sum(exp(scores - max))) is missing"),
        "sum without log": (
            lambda S: (z := S - S.max(-1, keepdims=True)) - np.exp(z).sum(-1, keepdims=True),
            "the sum is subtracted without its logarithm",
        ),
        "divided": (
            lambda S: (z := S - S.max(-1, keepdims=True)) / np.log(np.exp(z).sum(-1, keepdims=True)),
            "the logarithm of a quotient is a difference",
        ),
        "log added": (
            lambda S: (z := S - S.max(-1, keepdims=True)) + np.log(np.exp(z).sum(-1, keepdims=True)),
            "log(sum(exp(scores - max))) is added",
        ),
        "mean": (
            lambda S: (z := S - S.max(-1, keepdims=True)) - np.log(np.exp(z).mean(-1, keepdims=True)),
            "the mean stands where the sum should",
        ),
        "whole array": (lambda S: scipy.special.log_softmax(S), "the sum ran over the whole array"),
        "columns": (
            lambda S: scipy.special.log_softmax(S, axis=max(S.ndim - 2, 0)),
            "the sum ran down the columns",
        ),
        "axis 0": (lambda S: scipy.special.log_softmax(S, axis=0), "the sum ran over axis 0"),
        "one maximum": (
            lambda S: (z := S - S.max()) - np.log(np.exp(z).sum(axis=-1, keepdims=True)),
            "one maximum was subtracted for all rows",
        ),
        "log sum alone": (
            lambda S: np.broadcast_to(scipy.special.logsumexp(S, axis=-1, keepdims=True), S.shape),
            "this is log(sum(exp)) alone",
        ),
        "unchanged": (lambda S: S, "these are the scores themselves"),
    },
    "head_scores": {
        "unscaled": (lambda X, A, B: (X @ A) @ (X @ B).swapaxes(1, 2), "the scores are not scaled"),
        **{
            name: (lambda X, A, B, width=width: heads_divided_by(X, A, B, width(X, A)), phrase)
            for name, width, phrase in [
                ("sqrt(d)", lambda X, A: len(X[0]) ** 0.5, "divided by sqrt(d), the width of X"),
                ("sqrt(h)", lambda X, A: len(A) ** 0.5, "root of the number of heads"),
                ("sqrt(n)", lambda X, A: len(X) ** 0.5, "root of the number of positions"),
                ("sqrt(h * d_h)", lambda X, A: (len(A) * A.shape[2]) ** 0.5, "divided by sqrt(h * d_h)"),
                ("d_h", lambda X, A: A.shape[2], "divided by d_h (or twice"),
                ("1 / sqrt(d_h)", lambda X, A: A.shape[2] ** -0.5, "multiplied by sqrt(d_h)"),
            ]
        },
        "swapped": (lambda X, A, B: head_by_head(X, B, A), "queries and keys are swapped"),
        "transposed": (lambda X, A, B: np.transpose(head_by_head(X, A, B), (0, 2, 1)), "queries and keys are swapped"),
        "Q Q^T": (lambda X, A, B: head_by_head(X, A, A), "both made with W_Q"),
        "K K^T": (lambda X, A, B: head_by_head(X, B, B), "both made with W_K"),
        "softmax": (lambda X, A, B: row_softmax(np.array(head_by_head(X, A, B))), "the scores before it are asked for"),
        "softmax, unscaled": (
            lambda X, A, B: row_softmax(heads_divided_by(X, A, B, 1)),
            "the scores before it are asked for, divided by",
        ),
        "heads summed": (lambda X, A, B: sum(head_by_head(X, A, B)), "the heads are summed up"),
        "heads averaged": (lambda X, A, B: np.mean(head_by_head(X, A, B), axis=0), "this is the mean of the heads"),
        "first head": (lambda X, A, B: head_by_head(X, A, B)[0], "only the first head"),
        "heads last": (lambda X, A, B: np.dstack(head_by_head(X, A, B)), "the heads stand last"),
        "heads in the middle": (lambda X, A, B: np.stack(head_by_head(X, A, B), axis=1), "stand in the middle"),
        "reshape": (
            lambda X, A, B: (
                np.einsum(
                    "nhc,mhc->hnm",
                    *((X @ W.reshape(len(W[0]), -1)).reshape(len(X), len(W), -1) for W in (A, B)),
                )
                / A.shape[2] ** 0.5
            ),
            "reshape mixes the heads",
        ),
        "queries": (lambda X, A, B: X @ A, "these are the queries"),
        "keys of all heads": (
            lambda X, A, B: (X @ A) @ (X @ B).sum(axis=0).T / A.shape[2] ** 0.5,
            "the keys of all heads are summed up",
        ),
    },
    "merge_blocks": {
        "no rescaling": (lambda m1, l1, o1, m2, l2, o2: (o1 + o2) / (l1 + l2), "nothing is rescaled"),
        "weighed by l": (
            lambda m1, l1, o1, m2, l2, o2: np.average([o1 / l1, o2 / l2], axis=0, weights=[l1, l2]),
            "nothing is rescaled",
        ),
        "mean": (lambda m1, l1, o1, m2, l2, o2: np.mean([o1 / l1, o2 / l2], axis=0), "the mean of the two outputs"),
        "sum": (lambda m1, l1, o1, m2, l2, o2: o1 / l1 + o2 / l2, "the two outputs are added"),
        "overflow": (
            lambda m1, l1, o1, m2, l2, o2: (np.exp(m1) * o1 + np.exp(m2) * o2) / (np.exp(m1) * l1 + np.exp(m2) * l2),
            "exp(1000) overflows and exp(-1000) is 0",
        ),
        "sign": (merging(lambda a, b, l1, o1, l2, o2: (o1 / a + o2 / b) / (l1 / a + l2 / b)), "the sign of the"),
        "factors swapped": (
            merging(lambda a, b, l1, o1, l2, o2: (b * o1 + a * o2) / (b * l1 + a * l2)),
            "the factors of the two blocks are swapped",
        ),
        "minimum": (subtracting(min), "above the smaller maximum"),
        "middle": (subtracting(lambda m1, m2: m1 / 2 + m2 / 2), "above the mean of m1 and m2"),
        "m1": (subtracting(lambda m1, m2: m1), "m1 is taken for the maximum"),
        "m2": (subtracting(lambda m1, m2: m2), "m2 is taken for the maximum"),
        "o only": (merging(lambda a, b, l1, o1, l2, o2: (a * o1 + b * o2) / (l1 + l2)), "o is rescaled, but l is not"),
        "l only": (merging(lambda a, b, l1, o1, l2, o2: (o1 + o2) / (a * l1 + b * l2)), "l is rescaled, but o is not"),
        "not divided": (merging(lambda a, b, l1, o1, l2, o2: a * o1 + b * o2), "the division is missing"),
        "o summed": (lambda m1, l1, o1, m2, l2, o2: o1 + o2, "rescaling and division are missing"),
        "weighed by m": (
            merging(lambda a, b, l1, o1, l2, o2: np.average([o1 / l1, o2 / l2], axis=0, weights=[a, b])),
            "l, how much each block sums up, plays no part",
        ),
        "divided twice": (
            merging(lambda a, b, l1, o1, l2, o2: (a * (o1 / l1) + b * (o2 / l2)) / (a * l1 + b * l2)),
            "o is divided twice",
        ),
        "divided by its own l": (
            merging(lambda a, b, l1, o1, l2, o2: a * (o1 / l1) + b * (o2 / l2)),
            "each block is divided by its own l",
        ),
        "larger only": (
            lambda m1, l1, o1, m2, l2, o2: o1 / l1 if m1 > m2 else o2 / l2,
            "only the block with the larger maximum counts",
        ),
        "block 1": (lambda m1, l1, o1, m2, l2, o2: o1 / l1, "the output of block 1 alone"),
        "block 2": (lambda m1, l1, o1, m2, l2, o2: o2 / l2, "the output of block 2 alone"),
        "sum of exps": (merging(lambda a, b, l1, o1, l2, o2: a * l1 + b * l2), "this is the sum of exps"),
    },
    "split_heads": {
        "straight": (straight, "x is reshaped straight to (b, h, n, d_h), which scrambles the tokens"),
        "transposed first": (
            lambda x, h: np.moveaxis(x, 2, 1).reshape(straight(x, h).shape),
            "x is transposed before the reshape",
        ),
        "every h-th column": (
            lambda x, h: np.stack([x[:, :, i::h] for i in range(h)], axis=1),
            "each head gets every h-th column",
        ),
        "no swap": (in_order(0, 1, 2, 3), "the heads stand behind the tokens, (b, n, h, d_h)"),
        "h and d_h exchanged": (
            lambda x, h: x.reshape(len(x), len(x[0]), len(x[0, 0]) // h, h),
            "h and d_h are exchanged in the reshape",
        ),
        "heads first": (lambda x, h: np.stack(np.split(x, h, axis=2)), "in front of the batch, (h, b, n, d_h)"),
        "heads and batch swapped": (in_order(2, 1, 0, 3), "swapped with the batch, (h, n, b, d_h)"),
        "for K^T": (in_order(0, 2, 3, 1), "the last two axes are exchanged, (b, h, d_h, n)"),
        "last two swapped": (in_order(0, 1, 3, 2), "the wrong axes are swapped, which gives (b, n, d_h, h)"),
        "heads last": (in_order(0, 3, 1, 2), "the heads stand last, (b, d_h, n, h)"),
        "1 and 3 swapped": (in_order(0, 3, 2, 1), "the wrong axes are swapped, which gives (b, d_h, h, n)"),
        ".T": (lambda x, h: x.reshape(len(x), len(x[0]), h, -1).T, ".T reverses all axes"),
        "batch and tokens": (
            lambda x, h: np.array(split_by_loop(x, h)).transpose(2, 0, 1, 3),
            "the batch is swapped with the tokens, (n, b, h, d_h)",
        ),
        "(n, b, d)": (
            lambda x, h: np.moveaxis(x.reshape(len(x[0]), len(x), h, -1), 0, 2),
            "the first axis is taken for the tokens",
        ),
        "batch times heads": (
            lambda x, h: np.concatenate([np.stack(np.hsplit(rows, h)) for rows in x]),
            "batch and heads share one axis",
        ),
        "tokens shared out": (lambda x, h: np.stack(np.split(x, h, axis=1), axis=1), "some of the tokens: it gets"),
        "first head": (lambda x, h: x[:, :, : x.shape[2] // h], "this is the first head alone"),
        "unchanged": (lambda x, h: x, "x is unchanged"),
    },
    "merge_heads": {
        "straight": (
            lambda x: x.reshape(len(x), len(x[0, 0]), -1),
            "x is reshaped without swapping axes, which scrambles",
        ),
        "last two swapped": (
            lambda x: np.moveaxis(x, 3, 2).reshape(len(x), x.shape[2], -1),
            "the last two axes are swapped, which scrambles",
        ),
        "in turn": (
            lambda x: np.stack(list(x.swapaxes(0, 1)), axis=-1).reshape(len(x), x.shape[2], -1),
            "the columns of the heads take turns",
        ),
        "along the positions": (
            lambda x: np.concatenate([x[:, i] for i in range(x.shape[1])], axis=1),
            "the heads stand one below the other",
        ),
        "(b, n * h, d_h)": (
            lambda x: np.array([[row for rows in zip(*one) for row in rows] for one in x]),
            "heads and tokens share one axis",
        ),
        "not joined": (lambda x: np.moveaxis(x, 2, 1), "the axes are swapped, but the last two not joined yet"),
        "sum": (lambda x: sum(x[:, i] for i in range(x.shape[1])), "the heads are summed up"),
        "mean": (lambda x: np.mean(x, axis=1), "this is the mean of the heads"),
        "first": (lambda x: x[:, 0], "this is the first head alone"),
        "last": (lambda x: x[:, -1], "this is the last head alone"),
        "reversed": (
            lambda x: np.concatenate([x[:, i] for i in reversed(range(x.shape[1]))], axis=-1),
            "the heads stand in reverse order",
        ),
        "batch side by side": (lambda x: np.concatenate(x, axis=-1), "the sequences of the batch are put side by side"),
        "tokens first": (
            lambda x: np.array([[np.concatenate(one[:, t]) for one in x] for t in range(x.shape[2])]),
            "the tokens stand in front of the batch",
        ),
        "tokens first, forced": (
            lambda x: np.moveaxis(x, 2, 0).reshape(len(x), x.shape[2], -1),
            "the tokens were moved in front of the batch",
        ),
        ".T": (lambda x: x.T.reshape(len(x), x.shape[2], -1), ".T reverses all axes"),
        "swap 1 and 3": (
            lambda x: np.swapaxes(x, 3, 1).reshape(len(x), x.shape[3], -1),
            "the wrong axes are swapped, which gives (b, d_h, n * h)",
        ),
        "swap 1 and 3 into the right shape": (
            lambda x: np.swapaxes(x, 3, 1).reshape(len(x), x.shape[2], -1),
            "the wrong axes are swapped, heads and d_h, which scrambles the tokens",
        ),
        "unchanged": (lambda x: x, "x is unchanged"),
    },
    "multi_head": {
        **{
            name: (on_heads(f), phrase)
            for name, (f, phrase) in {**ON_QKV, **ROW_QKV}.items()
            if name not in NOT_IN_A_LAYER
        },
        "sqrt(d)": (divided_by(lambda X, A, h: len(X[0])), "divided by sqrt(d), the width of X"),
        "sqrt(h * d_h)": (divided_by(lambda X, A, h: len(A[0])), "by the square root of h * d_h"),
        "sqrt(d / h)": (divided_by(lambda X, A, h: len(A) / h), "the width of a head is taken for d / h"),
        "sqrt(d // h)": (divided_by(lambda X, A, h: len(A) // h), "the width of a head is taken for d // h"),
        "sqrt(h)": (divided_by(lambda X, A, h: h), "root of the number of heads"),
        "2": (divided_by(lambda X, A, h: 4), "the scores are always divided by 2"),
        "one head": (
            lambda X, A, B, C, D, h: attention(X @ A, X @ B, X @ C) @ D,
            "this is one head of full width: split",
        ),
        "one head, sqrt(d_h)": (
            lambda X, A, B, C, D, h: attention(X @ A, X @ B, X @ C, (len(A[0]) / h) ** 0.5) @ D,
            "this is one head of full width, only its divisor",
        ),
        "h and d_h": (
            lambda X, A, B, C, D, h: layer_by_einsum(X, A, B, C, D, len(A[0]) // h),
            "h and d_h are exchanged",
        ),
        "split straight": (on_heads(attention, split=scrambled), "Q, K and V are reshaped straight to (h, n, d_h)"),
        "merged straight": (on_heads(attention, merge=unscrambled), "the heads are merged by reshape alone"),
        "both straight": (on_heads(attention, scrambled, unscrambled), "reshape alone splits and merges"),
        "every h-th column": (on_heads(attention, split=every_third), "every h-th column: it takes d_h neighbours"),
        "every h-th column, in turn": (
            on_heads(attention, every_third, in_turn),
            "column, and they are merged in turn",
        ),
        "in turn": (on_heads(attention, merge=in_turn), "the columns of the heads take turns in the merge"),
        "mean weights": (
            on_heads(lambda Q, K, V: np.mean(row_softmax(logits(Q, K)), axis=0) @ V),
            "the weights are averaged over the heads",
        ),
        "weights of the first": (
            on_heads(lambda Q, K, V: row_softmax(logits(Q, K))[0] @ V),
            "all heads use the weights of the first",
        ),
        "first, h times": (
            lambda X, A, B, C, D, h: np.hstack([each_head(X, A, B, C, h)[0]] * h) @ D,
            "all heads are the first one",
        ),
        "softmax over heads": (on_heads(on_axis(0)), "softmax ran over the heads"),
        "causal": (
            on_heads(lambda Q, K, V: row_softmax(np.where(tril(len(Q[0])), logits(Q, K), -INF)) @ V),
            "no causal mask is asked for",
        ),
        "no W_O": (lambda X, A, B, C, D, h: np.hstack(each_head(X, A, B, C, h)), "W_O is missing"),
        "weights": (lambda *case: multi_head_attention(*case)[1], "these are the weights of the heads"),
        "outputs": (lambda X, A, B, C, D, h: each_head(X, A, B, C, h), "these are the outputs of the heads: merge"),
        "sum": (lambda X, A, B, C, D, h: sum(each_head(X, A, B, C, h)), "the heads are summed up: they"),
        "mean": (lambda X, A, B, C, D, h: np.mean(each_head(X, A, B, C, h), axis=0), "this is the mean of the heads"),
        "sum before W_O": (
            lambda X, A, B, C, D, h: sum(each_head(X, A, B, C, h)) @ D[: len(D) // h],
            "the heads are summed up before W_O",
        ),
        "mean before W_O": (
            lambda X, A, B, C, D, h: np.mean(each_head(X, A, B, C, h), axis=0) @ D[: len(D) // h],
            "the heads are averaged before W_O",
        ),
        "parts": (
            lambda X, A, B, C, D, h: [Y @ d for Y, d in zip(each_head(X, A, B, C, h), np.vsplit(D, h))],
            "but the h products are not added yet",
        ),
        "mean of the parts": (lambda *case: layer_by_sum(*case) / case[5], "the parts of the heads are averaged"),
        "first part": (
            lambda X, A, B, C, D, h: each_head(X, A, B, C, h)[0] @ D[: len(D) // h],
            "this is the part of the first head alone",
        ),
        "overwritten": (overwritten, "this is the part of the last head alone"),
        "values cut too wide": (values_cut_too_wide, "the values are cut by the width of a key"),
        "W_O^T": (lambda X, A, B, C, D, h: layer_by_head(X, A, B, C, D.T, h), "W_O is transposed"),
        "W^T": (lambda X, A, B, C, D, h: layer_by_head(X, A.T, B.T, C.T, D, h), "W_Q, W_K and W_V are transposed"),
        "residual": (lambda X, *others: layer_by_head(X, *others) + X, "X is added"),
    },
    "scrambles": {
        "never": (lambda split, x, h: False, "finds nothing scrambled"),
        "size": (lambda split, x, h: split(x, h).size != x.size, "finds nothing scrambled"),
        "itself": (lambda split, x, h: not np.array_equal(split(x, h), split(x, h)), "finds nothing scrambled"),
        "always": (lambda split, x, h: True, "calls every split scrambled"),
        "unlike x": (lambda split, x, h: not np.array_equal(split(x, h), x), "calls every split scrambled"),
        "inverted": (lambda split, x, h: not merges_back(split, x, h), "the verdict is inverted"),
        "shape": (
            lambda split, x, h: split(x, h).shape != (len(x), h, x.shape[1], x.shape[2] // h),
            "your test compares only shapes",
        ),
        "shape of the right one": (comparing(np.shape), "your test compares only shapes"),
        "sum": (lambda split, x, h: not np.isclose(split(x, h).sum(), x.sum()), "only the set of all numbers"),
        "sorted": (comparing(lambda y: sorted(y.ravel())), "only the set of all numbers"),
        "token 0 of head 0": (comparing(lambda y: y[:, 0, 0]), "only token 0 of head 0 is looked at"),
        "head 0": (lambda split, x, h: comparing(lambda y: y[:, 0])(split, x, h), "only head 0 is looked at"),
        "token 0": (comparing(lambda y: y[:, :, 0]), "only token 0 is looked at"),
        "sequence 0": (comparing(lambda y: y[0]), "only sequence 0 is looked at"),
        "last token": (
            lambda *case: comparing(np.shape)(*case) or comparing(lambda y: y[:, :, -1])(*case),
            "calls a split that exchanges two numbers only right",
        ),
        "token numbers": (marked_by_token, "only the number of its token marks"),
        "like straight": (
            lambda split, x, h: not np.array_equal(split(x, h), straight(x, h)),
            "your reference is scrambled itself",
        ),
        "merged straight": (
            lambda split, x, h: bool((split(x, h).reshape(x.shape) != x).any()),
            "your reference is scrambled itself",
        ),
        "token by token": (
            looks_at_each_token,
            "calls a split by reshape to (b, n, d_h, h), which deals the columns out to the heads in turn right",
        ),
        "means of the heads": (
            lambda *case: comparing(np.shape)(*case) or comparing(lambda y: y.mean(axis=-1).round(9))(*case),
            "calls a split with the columns of each head turned round right",
        ),
        "head 0 and token 0": (
            lambda *case: comparing(lambda y: y[:, 0])(*case) or comparing(lambda y: y[:, :, 0])(*case),
            "your test calls a split whose last head exchanges two tokens right: swap axes 1 and 2",
        ),
        "shape and set": (
            lambda *case: comparing(np.shape)(*case) or comparing(lambda y: np.sort(y, None))(*case),
            "calls a reshape straight to (b, h, n, d_h) right",
        ),
        "straight is always wrong": (
            lambda split, x, h: merges_back(split, x, h) or h == 1,
            "calls a straight reshape into one head scrambled: with one head it is right",
        ),
        "array": (
            lambda split, x, h: split(x, h) != np.array(split_by_loop(x, h)),
            "your test returns an array of shape (2, 3, 6, 4)",
        ),
    },
    "induction_weight": {
        "j": (induction(same), "the weight on j is counted"),
        "j, t - 1 as well": (induction(lambda t, names: same(t, names, t)), "the weight on j is counted"),
        "j - 1, wrapped": (
            induction(lambda t, names: [j - 1 for j in same(t, names)]),
            "is counted, the token before the earlier equal one: induction looks at j + 1 (and -1",
        ),
        "j - 1": (
            induction(lambda t, names: [j - 1 for j in same(t, names) if j > 0]),
            "the weight on j - 1 is counted, the token before the earlier equal one: induction looks at j + 1.",
        ),
        "j - 1 of all": (
            induction(lambda t, names: [j - 1 for j in same(t, names, t) if j > 0]),
            "the weight on j - 1 is counted, the token before the earlier equal one: induction looks at j + 1.",
        ),
        "j + 2": (induction(lambda t, names: [k + 1 for k in after(t, names)]), "the weight on j + 2 is counted"),
        "t - 1": (induction(lambda t, names: [t - 1][: len(same(t, names))]), "the weight on t - 1 is counted"),
        "previous": (lambda A, names: np.diagonal(A, -1).mean(), "this is the weight on the previous token"),
        "t": (induction(lambda t, names: [t][: len(same(t, names))]), "the weight on t itself is counted"),
        "transposed": (lambda A, names: induction_by_mask(A.T, names), "the map is read transposed"),
        "nearest": (induction(lambda t, names: after(t, names)[-1:]), "only the nearest earlier j counts"),
        "first": (
            lambda A, names: np.mean(
                [A[t, names.index(names[t]) + 1] for t in range(len(A)) if names.index(names[t]) + 1 < t]
            ),
            "only the first j counts",
        ),
        "all queries": (lambda A, names: sums(A, names).sum() / len(A), "the sum is divided by all n queries"),
        "all queries but one": (lambda A, names: sums(A, names).sum() / (len(A) - 1), "the sum is divided by n - 1"),
        "zeros left out": (
            lambda A, names: sums(A, names)[sums(A, names) > 0].mean(),
            "queries with a weight of 0 there are left out",
        ),
        "different tokens": (
            lambda A, names: sums(A, names).sum() / len({*names}),
            "divided by the number of different tokens",
        ),
        "sum": (lambda A, names: sums(A, names).sum(), "the queries are summed up"),
        "largest": (lambda A, names: sums(A, names).max(), "this is the largest weight of a query"),
        "single": (lambda A, names: sums(A, names).tolist(), "these are the weights of the single queries"),
        "mean over j": (induction(after, sum_up=np.mean), "the mean over the j of a query is taken"),
        "max over j": (induction(after, sum_up=max), "only the largest weight of a query counts"),
        "pairs": (
            lambda A, names: np.mean([A[t, k] for t in range(len(A)) for k in after(t, names)]),
            "the mean runs over all pairs t, j",
        ),
        "t - 1 counts": (
            induction(lambda t, names: [j + 1 for j in same(t, names, t)]),
            "j = t - 1 counts as well, where j + 1 is t itself",
        ),
        "divided by all repeats": (
            lambda A, names: sums(A, names).sum() / sum(names[t] in names[:t] for t in range(len(A))),
            "queries whose only earlier equal token is t - 1",
        ),
        "j = t": (
            induction(lambda t, names: [j + 1 for j in same(t, names, t + 1) if j + 1 < len(names)]),
            "j = t is counted as well",
        ),
        "later and t": (
            induction(lambda t, names: [j + 1 for j in same(t, names, len(names) - 1)]),
            "later equal tokens, and t itself, are counted as well",
        ),
        "later": (
            induction(lambda t, names: [j + 1 for j in same(t, names, len(names) - 1) if j != t]),
            "later equal tokens are counted as well",
        ),
        "like t - 1": (
            induction(lambda t, names: after(t - 1, names) + [t - 1] * (t > 1 and names[t - 1] == names[t - 2])),
            "tokens like t - 1 are looked for",
        ),
        "hits": (argmax_hits, "this is how often the largest weight is on such a key"),
    },
}

ALSO_WRONG = {
    "softmax": [
        lambda s: np.full(len(s), 1 / len(s)),
        lambda s: s**2 / np.sum(s**2),
        lambda s: stable(s) + 1e-4,
        lambda s: np.sort(stable(s)),
        lambda s: np.round(stable(s), 3),
        lambda s: np.log(stable(s)),
        lambda s: stable(s / 2),
        lambda s: scipy.special.expit(s),
        lambda s: stable(s)[:, None],
        lambda s: [0.24472847, 0.09003057, 0.66524096],
        np.exp,
        sum,
    ],
    "attend": [
        lambda q, X, T: q,
        lambda q, X, T: X.sum(axis=0),
        lambda q, X, T: stable(-X @ q / T) @ X,
        lambda q, X, T: stable(X @ q / len(X) / T) @ X,
        lambda q, X, T: (stable(X @ q / T) @ X)[None],
        lambda q, X, T: np.outer(stable(X @ q / T), q),
        lambda q, X, T: stable(-((X - q) ** 2).sum(axis=1) / T) @ X,
        lambda q, X, T: (stable(X @ q / T) @ X, stable(X @ q / T)),
        lambda q, X, T: np.dot(X, q)[:3],
    ],
    "effective_positions": [
        len,
        sum,
        lambda w: 2 * bits(w),
        lambda w: bits(w) ** 2,
        lambda w: 10 ** bits(w),
        lambda w: round(2 ** bits(w)),
        lambda w: [2 ** bits(w)],
        lambda w: 2 ** bits(w) + 1e-3,
        lambda w: bits(w) / math.log2(len(w)),
    ],
    "kernel_regression": [
        lambda q, x, y, b: np.interp(q, x, y),
        lambda q, x, y, b: np.full(len(q), np.mean(y)),
        lambda q, x, y, b: share(gauss(q, x, b), axis=1),
        lambda q, x, y, b: mean_by(gauss(q, x, 1), y),
        lambda q, x, y, b: mean_by(gauss(q, x, 1 / b), y),
        lambda q, x, y, b: mean_by(gauss(q, x, b), x),
        lambda q, x, y, b: mean_by(gauss(q, x, b), y)[:, None],
    ],
    "previous_token": [
        lambda E, P: (50 * P, P[::2]),
        lambda E, P: (P, P, P),
        lambda E, P: (50 * np.roll(P, 1, axis=1), P),
        lambda E, P: (2.5 * np.roll(P, 1, axis=0), 2.5 * P),
        lambda E, P: (E, P),
        lambda E, P: (1e200 * np.roll(P, 1, axis=0), 1e200 * P),
    ],
    "first_token": [
        lambda E, P: (50 * P[0], P[0]),
        lambda E, P: (50 * np.ones((4, 1)), np.eye(4)[:, :1]),
        lambda E, P: (np.where(P[:, :1] == 1, np.inf, 0), P[:, :1]),
        lambda E, P: (np.ones((len(P), 0)), np.ones((len(P), 0))),
    ],
    "equal_tokens": [
        lambda E, P: (4 * E, E),
        lambda E, P: (50 * E @ E.T, P[:, :1]),
        lambda E, P: 50 * E @ E.T,
        lambda E, P: softmax(50 * E @ E.T),
    ],
    "rotate": [
        lambda x, p, t: (x[0] + 1j * x[1]) * np.exp(1j * p * t),
        lambda x, p, t: turn_by_loop(x, p, t)[0],
        lambda x, p, t: [turn_by_loop(x, p, t)],
        lambda x, p, t: -x,
        lambda x, p, t: x[::-1],
        lambda x, p, t: np.array(turn_by_loop(x, p, t)) * 1.001,
    ],
    "self_attention": [
        lambda X, A, B, C: X,
        lambda X, A, B, C: X @ C @ C.T,
        lambda X, A, B, C: attention(X @ A, X @ B, X @ C)[::-1],
        lambda X, A, B, C: attention(X @ A, X @ B, X @ C).round(2),
        lambda X, A, B, C: scaled_dot_product_attention(X @ A, X @ B, X @ C),
        lambda X, A, B, C: scaled_dot_product_attention(X @ A, X @ B, X @ C, is_causal=True)[0],
    ],
    "cross_attention": [
        lambda X, M, A, B, C: X,
        lambda X, M, A, B, C: attention(X @ A, M @ B, M @ C)[::-1],
        lambda X, M, A, B, C: attention(X @ A, M @ B, M @ C) + 1e-4,
        lambda X, M, A, B, C: X + attention(X @ A, M @ B, M @ C).sum(),
    ],
    "permuted": [
        lambda Y, order: Y[order][:-1],
        lambda Y, order: Y[order] + 1e-4,
        lambda Y, order: np.roll(Y, 1, axis=0),
        lambda Y, order: Y[order + 1],
        lambda Y, order: 0 * Y,
    ],
    "matrix_attention": [
        lambda Q, K, V: attention(Q, K, V)[..., None],
        lambda Q, K, V: attention(Q, K, V) + 1e-4,
        lambda Q, K, V: [attention(q, k, v) for q, k, v in zip(Q, K, V)],
        lambda Q, K, V: scaled_dot_product_attention(Q, K, V),
        lambda Q, K, V: Q,
    ],
    "column_attention": [
        lambda Q, K, V: Q,
        lambda Q, K, V: scaled_dot_product_attention(Q.T, K.T, V.T)[0],
        lambda Q, K, V: scaled_dot_product_attention(K.T, Q.T, V.T)[0].T,
        lambda Q, K, V: attention(Q.T, K.T, V.T).T[::-1],
    ],
    "shapes": [
        lambda *all_: all_,
        lambda *all_: 6,
        lambda *all_: "W_V Q K V A Y".split(),
        lambda *all_: np.array(six()(*all_))[::-1],
        lambda *all_: [(1, 1)] * 6,
        lambda *all_: dict(zip("WQKVAY", six()(*all_))),
        lambda *all_: [*six()(*all_), 3],
    ],
    "causal_padding_mask": [
        lambda n, L: np.array(mask_by_loop(n, L)) & False,
        lambda n, L: np.array(mask_by_loop(n, L)) | True,
        lambda n, L: np.repeat(mask_by_loop(n, L), 2, axis=1),
        lambda n, L: mask_by_loop(5, [5, 3]),
        lambda n, L: [np.tri(n, dtype=bool)[:length, :length] for length in L],
        lambda n, L: tril(n) & (np.arange(n) < L[:, None]),
        lambda n, L: np.where(mask_by_loop(n, L), True, None),
        lambda n, L: np.ma.masked_array(mask_by_loop(n, L)).sum(),
        lambda n, L: tril(n) ^ ~tokens(n, L),
    ],
    "finds_leak": [
        lambda layer, X: leak_by_row(layer, X) and len(X) != 6,
        lambda layer, X: leak_by_row(layer, X[:3]),
        lambda layer, X: leak_by_row(layer, X[-3:]),
        lambda layer, X: changing(None, lambda j: slice(1, j))(layer, X),
        lambda layer, X: changing([1, -1], slice(1))(layer, X),
        lambda layer, X: not np.allclose(layer(X[::-1])[::-1], layer(X)),
        lambda layer, X: not np.isclose(layer(X).sum(), 0),
        lambda layer, X: [leak_by_row(layer, X)],
        lambda layer, X: str(leak_by_row(layer, X)),
        lambda layer, X: leak_by_row(layer, X) or None,
        lambda layer, X: NAN,
        lambda layer, X: layer,
    ],
    "additive_mask": [
        lambda H: np.where(H, -INF, 0.0)[None],
        lambda H: np.where(H, -INF, 0.0).T,
        lambda H: np.where(H, -1e9, 0.0).astype(np.float16).astype(int),
        lambda H: np.where(H, 0.0, 1e9),
        lambda H: np.exp(np.where(H, -INF, 0.0)),
        lambda H: np.log(np.where(H, 1e-9, 1)),
        lambda H: np.where(H, "-inf", "zero"),
        lambda H: [0.0, -INF, 0.0, -INF, -INF],
        lambda H: H / 0,
    ],
    "masked_softmax": [
        lambda S, M: S,
        lambda S, M: M,
        lambda S, M: np.where(M, 1 / S.shape[-1], 0),
        lambda S, M: softmax(S[np.broadcast_to(M, S.shape)]),
        lambda S, M: masked_by_guard(S, M) + 1e-4,
        lambda S, M: masked_by_guard(S, M).swapaxes(-1, -2),
        lambda S, M: masked_by_guard(2 * S, M),
        lambda S, M: masked_by_guard(S, M)[..., ::-1],
        lambda S, M: np.ma.masked_array(S, ~np.broadcast_to(M, S.shape)).mean(axis=-1),
        lambda S, M: row_softmax(np.where(M, S, np.nan)),
    ],
    "log_softmax": [
        lambda S: np.log(np.abs(S)),
        lambda S: np.log1p(row_softmax(S)),
        lambda S: np.round(log_by_loop(S), 2),
        lambda S: np.array(log_by_loop(S)) + 1e-3,
        lambda S: np.ravel(log_by_loop(S)),
        lambda S: np.log(S / S.sum(axis=-1, keepdims=True)),
        lambda S: scipy.special.logsumexp(S, axis=-1),
        lambda S: np.maximum(log_by_loop(S), -700),
    ],
    "head_scores": [
        lambda X, A, B: X @ X.T,
        lambda X, A, B: [X @ X.T] * len(A),
        lambda X, A, B: heads_divided_by(X, A, B, 2),
        lambda X, A, B: head_by_head(X, A, B)[::-1],
        lambda X, A, B: head_by_head(X, A, np.roll(B, 1, axis=0)),
        lambda X, A, B: (X @ A) @ (X @ B).T,
        lambda X, A, B: np.concatenate(head_by_head(X, A, B)),
        lambda X, A, B: np.array(head_by_head(X, A, B)) + 1e-4,
    ],
    "merge_blocks": [
        lambda m1, l1, o1, m2, l2, o2: o1,
        lambda m1, l1, o1, m2, l2, o2: max(m1, m2),
        lambda m1, l1, o1, m2, l2, o2: (m1 * o1 + m2 * o2) / (m1 * l1 + m2 * l2),
        lambda m1, l1, o1, m2, l2, o2: (math.exp(m1) * o1 + math.exp(m2) * o2) / (l1 + l2),
        lambda *all_: (merge_by_log(*all_), all_[1] + all_[4]),
        lambda *all_: merge_by_log(*all_)[None],
        lambda *all_: merge_by_log(*all_) + 1e-4,
        lambda m1, l1, o1, m2, l2, o2: np.maximum(o1 / l1, o2 / l2),
        lambda m1, l1, o1, m2, l2, o2: softmax([m1, m2]) @ np.array([o1, o2]),
    ],
    "split_heads": [
        lambda x, h: np.split(x, h, axis=-1)[0],
        lambda x, h: np.sort(straight(x, h)),
        lambda x, h: np.array(split_by_loop(x, h))[:, ::-1],
        lambda x, h: np.array(split_by_loop(x, h))[..., ::-1],
        lambda x, h: np.array(split_by_loop(x, h)) + 1e-3,
        lambda x, h: np.array(split_by_loop(x, h))[0],
        lambda x, h: np.zeros(straight(x, h).shape),
        lambda x, h: split_by_einsum(x, 3),
        lambda x, h: x.reshape(2, h, 6, 4),
        lambda x, h: h,
    ],
    "merge_heads": [
        lambda x: x.ravel(),
        lambda x: x[0].swapaxes(0, 1).reshape(x.shape[2], -1),
        lambda x: np.concatenate([x[:, i] for i in range(3)], axis=-1),
        lambda x: RIGHT["merge_heads"]["concatenate"](x)[..., ::-1],
        lambda x: RIGHT["merge_heads"]["concatenate"](x).swapaxes(1, 2),
        lambda x: RIGHT["merge_heads"]["concatenate"](x) + 1e-3,
        lambda x: RIGHT["merge_heads"]["concatenate"](x)[:, None],
        lambda x: 0 * RIGHT["merge_heads"]["concatenate"](x),
        lambda x: np.prod(x, axis=1),
    ],
    "multi_head": [
        lambda X, *others: X,
        lambda X, A, B, C, D, h: X @ C @ D,
        lambda *case: multi_head_attention(*case),
        lambda *case: layer_by_head(*case)[::-1],
        lambda *case: layer_by_head(*case).T,
        lambda *case: layer_by_head(*case) + 1e-3,
        lambda *case: layer_by_head(*case)[None],
        lambda X, A, B, C, D, h: layer_by_head(X, A, B, C, D[::-1], h),
        lambda X, A, B, C, D, h: layer_by_head(X, A, B, C, D, 3),
        lambda X, A, B, C, D, h: layer_by_head(X, A, B, C[:, ::-1], D, h),
        lambda X, A, B, C, D, h: np.hstack(each_head(X, A, B, C, h)[::-1]) @ D,
    ],
    "scrambles": [
        lambda split, x, h: split is straight,
        lambda split, x, h: split(x, h),
        lambda split, x, h: str(merges_back(split, x, h)),
        lambda split, x, h: merges_back(split, x, h) or None,
        lambda split, x, h: merges_back(split, x[:1], h),
        lambda split, x, h: merges_back(split, x[:, :1], h),
        lambda split, x, h: merges_back(split, x, h) and h > 2,
        lambda split, x, h: comparing(lambda y: y.sum(axis=(1, 3)))(split, np.ones(x.shape), h),
        lambda split, x, h: comparing(lambda y: y[:, :-1])(split, x, h),
        lambda split, x, h: NAN,
    ],
    "induction_weight": [
        lambda A, names: A,
        lambda A, names: 1.0,
        lambda A, names: A.mean(),
        lambda A, names: induction_by_loop(A, names) + 1e-3,
        lambda A, names: [induction_by_loop(A, names)],
        lambda A, names: (induction_by_loop(A, names), len(names)),
        lambda A, names: np.median(sums(A, names)),
        lambda A, names: induction_by_loop(A, [0] * len(names)),
        lambda A, names: induction_by_loop(A, names) if len(set(names)) > 1 else 0.0,
        lambda A, names: induction_by_loop(A, names[:-1]),
    ],
}


def cases(table):
    """(exercise, name) for each answer of a table."""
    return [(exercise, name) for exercise in EXERCISES for name in table[exercise]]


@pytest.mark.parametrize(("exercise", "name"), cases(RIGHT))
def test_a_right_answer_is_accepted(exercise, name):
    feedback = judge(exercise, RIGHT[exercise][name])
    assert feedback.correct is True, feedback
    assert repr(feedback) == "Correct: " + feedback.message


@pytest.mark.parametrize(("exercise", "name"), cases(WRONG))
def test_a_usual_mistake_is_refused_and_named(exercise, name):
    answer, phrase = WRONG[exercise][name]
    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert phrase in feedback.message
    assert not GENERIC.match(feedback.message)
    assert repr(feedback) == "Not yet: " + feedback.message


@pytest.mark.parametrize("exercise", EXERCISES)
def test_different_mistakes_are_told_apart(exercise):
    phrases = {phrase for _, phrase in WRONG[exercise].values()}
    assert len({judge(exercise, answer).message for answer, _ in WRONG[exercise].values()}) == len(phrases)


@pytest.mark.parametrize(
    ("exercise", "i"), [(exercise, i) for exercise in EXERCISES for i in range(len(ALSO_WRONG[exercise]))]
)
def test_any_other_wrong_answer_is_refused_with_a_reason(exercise, i):
    feedback = judge(exercise, ALSO_WRONG[exercise][i])
    assert feedback.correct is False
    assert len(feedback.message) > 20


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda s: stable(s)[:, None], "shape (3, 1), but should have (3,)"),
        (lambda s: stable(s)[:-1], "shape (2,), but should have (3,)"),
        (lambda s: 0.5, "shape (), but should have (3,)"),
        (lambda s: s * np.nan, "holds NaN (for [1., 0., 2.])"),
        (lambda s: stable(s) / 2, "at 2 is 0.3326, but should be 0.6652 (for [1., 0., 2.])"),
        (lambda s: stable(s) * np.inf, "is inf, but should be"),
        (lambda s: np.round(stable(s), 4), "at 2 is 0.6652, but should be 0.66524 (for"),
        (lambda s: np.ma.array(stable(s), mask=s < 0), "returns a masked array, whose hidden numbers are still there"),
    ],
)
def test_the_difference_is_told_by_shape_or_by_value_and_place(answer, reason):
    assert reason in judge("softmax", answer).message


def test_a_failure_on_some_inputs_is_told_unless_the_others_show_why():
    def only_square(*matrices):
        X, M, A, B, C = matrices
        return attention(X @ A, M @ B, M @ C) if len(X) == len(M) else 1 / 0

    assert "raised ZeroDivisionError" in judge("cross_attention", only_square).message
    assert (
        "values come from X" in judge("cross_attention", lambda X, M, A, B, C: attention(X @ A, M @ B, X @ C)).message
    )


@pytest.mark.parametrize(
    ("exercise", "answer", "hint"),
    [
        ("matrix_attention", lambda Q, K, V: row_softmax(Q @ K.T / Q.shape[-1] ** 0.5) @ V, "K.swapaxes(-1, -2) only"),
        (
            "matrix_attention",
            lambda Q, K, V: row_softmax(Q.dot(K.swapaxes(-1, -2)) / Q.shape[-1] ** 0.5) @ V,
            "use @, not np.dot",
        ),
        ("matrix_attention", lambda Q, K, V: (e := np.exp(logits(Q, K))) / e.sum(-1) @ V, "keepdims=True"),
        ("matrix_attention", lambda Q, K, V: [attention(*one) for one in zip(Q, K, V)], "reverses all axes"),
        ("self_attention", lambda X, A, B, C: A @ X, "Q = X @ W_Q"),
        ("cross_attention", lambda X, M, A, B, C: A @ X, "K = M @ W_K"),
        ("column_attention", lambda Q, K, V: Q @ V, "K.T @ Q are (n_kv, n_q)"),
        ("permuted", lambda Y, order: Y[order + 1], "0 to n - 1"),
        ("previous_token", lambda E, P: (np.roll(P, 1, axis=0) @ np.eye(5), P), "take n from len(P)"),
        ("causal_padding_mask", lambda n, L: tril(n) & (np.arange(n) < L), "must be (batch, 1, 1, n) to meet it"),
        ("finds_leak", lambda layer, X: layer[0] == X[0], "layer is a function: call it"),
        ("finds_leak", lambda layer, X: bool((layer(X[1:]) != layer(X)).any()), "has a row for each row of X"),
        ("additive_mask", lambda H: -INF if H else 0.0, "np.where chooses"),
        ("masked_softmax", lambda S, M: S / S.sum(axis=-1), "keepdims=True"),
        ("log_softmax", lambda S: S - S.max(axis=1), "axis=-1, keepdims=True"),
        ("head_scores", lambda X, A, B: (X @ A) @ (X @ B).T, "K.T reverses all axes"),
        ("merge_blocks", lambda m1, l1, o1, m2, l2, o2: math.exp(m1) * o1, "only differences such as m1 - max"),
        ("split_heads", lambda x, h: x.reshape(len(x), h, x.shape[1], x.shape[2] / h), "a head has d // h columns"),
        ("merge_heads", lambda x: np.concatenate(x[0, 0, 0]), "np.concatenate takes a list of arrays"),
        ("multi_head", lambda X, A, B, C, D, h: X @ D, "d_v is W_V.shape[1] // h: they may differ"),
        ("scrambles", lambda split, x, h: split[0] != x[0], "split is a function: call it, split(x, h)"),
        ("induction_weight", lambda A, names: A[len(names)], "j + 1 must be below t"),
    ],
)
def test_a_failure_comes_with_a_hint(exercise, answer, hint):
    message = judge(exercise, answer).message
    assert hint in message
    assert message.startswith("your function raised") or "keepdims=True is missing" in message


@pytest.mark.parametrize("case", leaks._CASES, ids=lambda case: case.name)
def test_one_wrong_verdict_on_a_layer_is_named(case):
    def answer(layer, X):
        return leak_by_row(layer, X) != (layer is case.layer)

    verb = "finds no leak in" if case.leaks else "finds a leak in"
    assert judge("finds_leak", answer).message == f"your test {verb} {case.name}: {case.cure}."


def test_a_leak_test_is_tried_on_layers_of_several_lengths_with_both_verdicts():
    seen = []
    feedback = judge("finds_leak", lambda layer, X: seen.append(X.shape) or leak_by_row(layer, X))
    assert {n for n, _ in seen} == {1, 4, 5, 6}
    assert feedback.message == f"your test is right about {len(seen)} layers, 19 of them leaking."


@pytest.mark.parametrize("case", splits._CASES, ids=lambda case: case.name)
def test_one_wrong_verdict_on_a_split_is_named(case):
    def answer(split, x, h):
        return merges_back(split, x, h) != (split is case.split and x.shape == case.shape and h == case.h)

    said = "right" if case.scrambles else "scrambled"
    assert judge("scrambles", answer).message == f"your test calls {case.name} {said}: {case.cure}."


def test_a_test_of_splits_is_tried_on_several_shapes_with_both_verdicts():
    seen = []
    feedback = judge("scrambles", lambda split, x, h: seen.append((*x.shape, h)) or merges_back(split, x, h))
    assert len({b for b, *_ in seen}) == len({h for *_, h in seen}) - 1 == 3
    assert feedback.message == f"your test is right about {len(seen)} splits, 15 of them scrambling."
    assert len({case.name for case in splits._CASES}) == len(splits._CASES) == len(seen)


def test_the_splits_of_the_exercise_are_right_or_wrong_as_their_table_says():
    for case in splits._CASES:
        x = np.arange(np.prod(case.shape)).reshape(case.shape)
        assert np.array_equal(case.split(x, case.h), split_by_loop(x, case.h)) != case.scrambles
        if " where " in case.name:
            assert case.split(x, case.h).shape == np.shape(split_by_loop(x, case.h))


def shapes_seen(exercise):
    seen = []
    judge(exercise, lambda *case: seen.append([*np.shape(case[0]), *case[1:]]) or RIGHT[exercise]["reference"](*case))
    return seen


def test_axes_of_heads_are_of_different_lengths_and_also_alike():
    merged = shapes_seen("merge_heads")
    split = [[b, h, n, d // h] for b, n, d, h in shapes_seen("split_heads")]
    for axes in (merged, split):
        assert any(len(set(shape)) == 4 for shape in axes)
        for pair in ((0, 1), (1, 2), (2, 3)):
            assert any(shape[pair[0]] == shape[pair[1]] for shape in axes)
        assert 1 in {shape[1] for shape in axes} and len({shape[1] for shape in axes}) > 2


def test_a_layer_of_heads_is_tried_with_unequal_widths_and_with_square_matrices():
    seen = []
    judge("multi_head", lambda *case: seen.append(case) or layer_by_head(*case))
    sizes = [(len(X), X.shape[1], h, A.shape[1] // h, C.shape[1] // h) for X, A, _, C, _, h in seen]
    assert len(set(sizes[0])) == 5
    assert any(d == h * d_h == h * d_v for _, d, h, d_h, d_v in sizes)
    assert {1, 2, 3} == {h for _, _, h, _, _ in sizes}


@pytest.mark.parametrize(
    ("exercise", "answer", "reason"),
    [
        (
            "split_heads",
            lambda x, h: np.array(split_by_loop(x, h))[:, :, ::-1],
            "at 0, 0, 0, 0 is x[0, 5, 0], but should be x[0, 0, 0].",
        ),
        (
            "split_heads",
            lambda x, h: np.array(split_by_loop(x, h))[..., ::-1],
            "at 0, 0, 0, 0 is x[0, 0, 3], but should be x[0, 0, 0].",
        ),
        ("split_heads", lambda x, h: np.array(split_by_loop(x, h)) / 2, "at 1, 0, 5, 1 is 72, but should be 144 (for"),
        ("split_heads", lambda x, h: np.array(split_by_loop(x, h))[:1], "shape (1, 3, 6, 4), but should have (2, 3,"),
        (
            "merge_heads",
            lambda x: np.concatenate([x[:, i, ::-1] for i in range(x.shape[1])], axis=-1),
            "at 0, 0, 0 is x[0, 0, 5, 0], but should be x[0, 0, 0, 0].",
        ),
    ],
)
def test_a_number_at_the_wrong_place_is_told_with_its_origin(exercise, answer, reason):
    assert reason in judge(exercise, answer).message


def test_the_tokens_of_the_induction_exercise_hold_what_its_mistakes_need():
    seen = []
    judge("induction_weight", lambda A, names: seen.append((A, names)) or induction_by_loop(A, names))
    A, names = seen[0]
    repeated = [t for t in range(len(names)) if names[t] in names[:t]]
    assert any(not same(t, names) for t in repeated)  # only t - 1 is equal
    assert any(len(same(t, names)) > 1 for t in repeated)
    assert (A > 0).all() and any(not np.triu(A, 1).any() for A, _ in seen)


@pytest.mark.parametrize("same", [np.bool_, int, float, np.array, lambda leak: np.float32(leak)])
def test_a_verdict_may_be_any_true_or_false(same):
    assert judge("finds_leak", lambda layer, X: same(leak_by_row(layer, X))).correct is True


def test_a_missing_return_at_the_end_does_not_hide_a_named_mistake():
    assert "only row 1 is changed" in judge("finds_leak", return_at_once).message
    assert "is a return missing" in judge("finds_leak", lambda layer, X: leak_by_row(layer, X) or None).message


def test_a_mistake_is_not_named_where_right_results_contradict_it():
    def answer(S, M):  # a finite fill, and zeros for a query with nothing allowed
        return row_softmax(np.where(M, S, -500.0)) * M.any(axis=-1, keepdims=True)

    assert "a hidden key gets the weight 1: -np.inf in its place" in judge("masked_softmax", answer).message


def test_a_query_with_nothing_allowed_is_told_the_weight_it_gets():
    def answer(S, M):  # it may see its last key
        allowed = np.broadcast_to(M, S.shape).copy()
        allowed[~allowed.any(axis=-1), -1] = True
        return softmax(np.where(allowed, S, -INF))

    assert "a query with nothing allowed gets 1: its weights" in judge("masked_softmax", answer).message


@pytest.mark.parametrize("fill", [-500.0, -1e4])
def test_a_finite_fill_above_the_allowed_scores_is_no_shared_maximum(fill):
    message = judge("masked_softmax", lambda S, M: softmax(np.where(M, S, fill)) * M).message
    assert "the weights of a query sum to 0 (for" in message


def test_a_sum_near_1_is_told_with_enough_digits():
    message = judge("masked_softmax", lambda S, M: softmax(np.where(M, S, -INF)) * 1.0002).message
    assert "the weights of a query sum to 1.0002 (for" in message


@pytest.mark.filterwarnings("error")
def test_a_leak_test_may_give_the_layers_no_row_at_all():
    assert judge("finds_leak", lambda layer, X: leak_by_prefix(layer, X, 0)).correct is True


def test_a_lone_true_names_no_mistake_that_other_layers_contradict():
    # wrong first at the layer with one row, where many mistakes say True as well
    answer = WRONG["finds_leak"]["more than one row"][0]
    assert "a layer with one row" in judge("finds_leak", answer).message


@pytest.mark.parametrize("dtype", [int, np.int8, np.uint8, np.float32, float, object])
def test_a_mask_of_another_dtype_is_refused_with_its_name(dtype):
    message = judge("causal_padding_mask", lambda n, L: np.array(mask_by_loop(n, L)).astype(dtype)).message
    assert f"({np.dtype(dtype)})" in message
    assert "make it boolean" in message


def test_one_visible_key_among_hidden_ones_is_found():
    def answer(S, M):
        weights = masked_by_guard(S, M)
        hidden = ~np.broadcast_to(M, S.shape)
        return np.where(hidden & (np.cumsum(hidden).reshape(S.shape) == 1), 0.25, weights)

    assert "a hidden key gets the weight 0.25" in judge("masked_softmax", answer).message


def test_a_layer_is_shown_as_a_function():
    assert "(for a function, an array of shape (5, 3))" in judge("finds_leak", fail).message


# heads built by hand


@pytest.mark.parametrize("exercise", HEADS)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda E, P: P, "returns ndarray, but two arrays are expected: end with return Q, K"),
        (lambda E, P: (P, P, P), "returns tuple of 3, but two arrays"),
        (lambda E, P: (P, "abc"), "K is str, but should be an array of numbers"),
        (lambda E, P: (P * 1j, P), "Q is ndarray, but should be an array of numbers"),
        (lambda E, P: (P[0], P), "Q has shape (4,), but should be a matrix with a row for each position"),
        (lambda E, P: (P[:, :0], P[:, :0]), "Q has shape (4, 0), but should be a matrix"),
        (lambda E, P: (P, P[1:]), "K has 3 rows, but the sequence has 4 tokens"),
        (lambda E, P: (np.eye(4), np.eye(4)), "Q has 4 rows, but the sequence has 5 tokens"),
        (lambda E, P: (P, E), "Q has 4 columns and K has 5: a row of Q is compared with a row of K"),
        (lambda E, P: (P, np.where(P > 0, 1, -np.inf)), "K holds NaN or infinite numbers"),
        (lambda E, P: (P * np.nan, P), "Q holds NaN or infinite numbers"),
        (lambda E, P: (1e200 * P, 1e200 * P), "overflow: multiply Q by a smaller number"),
        (lambda E, P: (-1e200 * P, 1e200 * P), "overflow: multiply Q by a smaller number"),
        (lambda E, P: print(end=""), "returns None: is a return missing"),
    ],
)
def test_what_is_no_pair_of_matrices_is_refused_with_the_cure(exercise, answer, reason):
    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert reason in feedback.message


def with_weights(shares):
    """A head with exactly these weights: shares(i, tokens) -> weights of row i, all above 0."""

    def answer(E, P):
        n, tokens = len(P), E.argmax(axis=1)
        return math.sqrt(n) * np.log([shares(i, tokens) for i in range(n)]), P

    return answer


def one_position(weight, where):
    def shares(i, tokens):
        row = np.full(len(tokens), (1 - weight) / (len(tokens) - 1))
        row[where(i)] = weight
        return row

    return with_weights(shares)


def equal_shares(total, tilt):
    """Equal tokens share the total, the first of them with more and the last with less by the tilt."""

    def shares(i, tokens):
        same = np.flatnonzero(tokens == tokens[i])
        row = np.full(len(tokens), (1 - total) / (len(tokens) - len(same)))
        row[same] = total / len(same)
        row[same[0]] += tilt * (len(same) > 1)
        row[same[-1]] -= tilt * (len(same) > 1)
        return row

    return with_weights(shares)


@pytest.mark.parametrize(
    ("exercise", "enough", "too_little"),
    [
        ("previous_token", one_position(0.91, lambda i: max(i - 1, 0)), one_position(0.89, lambda i: max(i - 1, 0))),
        ("first_token", one_position(0.91, lambda i: 0), one_position(0.89, lambda i: 0)),
        ("equal_tokens", equal_shares(0.91, 0), equal_shares(0.89, 0)),
        ("equal_tokens", equal_shares(0.98, 0.04), equal_shares(0.98, 0.06)),
    ],
)
def test_a_head_needs_nine_tenths_of_the_weight_and_equal_shares(exercise, enough, too_little):
    assert judge(exercise, enough).correct is True
    assert re.search(r"with at least 0\.9[18] of its weight", judge(exercise, enough).message)
    feedback = judge(exercise, too_little)
    assert feedback.correct is False
    assert "0.89 of it: multiply Q" in feedback.message or "0.98 of the weight, but not in equal" in feedback.message


def test_one_weak_row_is_enough_to_be_refused():
    answer = looking(lambda i, j, t: j == i - 1 and not (len(t) == 6 and i == 5))
    assert "in 'daabde' position 5 should look at 4, but gives only 0.16" in judge("previous_token", answer).message


def test_the_mean_over_the_rows_does_not_hide_a_weak_one():
    def shares(i, tokens):
        weight = 0.8 if (i, len(tokens)) == (5, 6) else 0.99
        row = np.full(len(tokens), (1 - weight) / (len(tokens) - 1))
        row[max(i - 1, 0)] = weight
        return row

    assert "in 'daabde' only 0.80 of it" in judge("previous_token", with_weights(shares)).message


@pytest.mark.parametrize(
    ("first_row", "text"),
    [
        (lambda n: 40 * np.eye(n)[-1], "looks at the last one (the shift wraps round)"),
        (lambda n: 40 * np.eye(n)[0], "looks at itself"),
        (lambda n: np.zeros(n), "spreads its weight evenly"),
        (lambda n: 40 * np.eye(n)[1], "gives its largest weight, 1.00 in 'ebacbeb', to position 1"),
    ],
)
def test_the_free_position_of_the_previous_token_is_described(first_row, text):
    def answer(E, P):
        Q = 40 * shifted(P)
        Q[0] = first_row(len(P))
        return Q, P

    feedback = judge("previous_token", answer)
    assert feedback.correct is True
    assert feedback.message.endswith(f"position 0, which is free, {text}.")


@pytest.mark.parametrize("exercise", HEADS)
def test_a_head_is_told_its_smallest_weight(exercise):
    message = judge(exercise, RIGHT[exercise]["reference"]).message
    assert re.search(r"with at least 0\.9\d of its weight|with at least 1\.00 of its weight", message)
    assert ("which is free" in message) == (exercise == "previous_token")


# what is no answer


def plain_stub(*args): ...


def stub_with_docstring(*args):
    """Return the answer."""
    ...


def stub_of_docstring(*args):
    """Return the answer."""


def stub_of_pass(*args):
    pass


def stub_with_hints(x: np.ndarray, *args, axis: int = -1) -> np.ndarray: ...


STUBS = [plain_stub, stub_with_docstring, stub_of_docstring, stub_of_pass, stub_with_hints, None, ...]


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: getattr(stub, "__name__", repr(stub)))
def test_the_untouched_stub_is_not_attempted(exercise, stub):
    feedback = judge(exercise, stub)
    assert feedback.correct is None
    assert repr(feedback).startswith("Not attempted yet: ")


def constant(x):
    return 1.5


def constant_with_docstring(x):
    """Return the answer."""
    return 1.5


def only_a_local(x):
    y = 2  # noqa: F841


@pytest.mark.parametrize(
    "answer", [constant, constant_with_docstring, only_a_local, lambda x: x, lambda x: 1.5, lambda x: ..., print]
)
def test_a_short_answer_is_not_taken_for_the_stub(answer):
    assert judge("softmax", answer).correct is False


@pytest.mark.parametrize("thing", [5, 0.0, "softmax", [1.0], stable(np.ones(2)), {}, (softmax,)], ids=repr)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_what_is_not_a_function_is_refused_with_the_cure(exercise, thing):
    feedback = judge(exercise, thing)
    assert feedback.correct is False
    assert f"this is {type(thing).__name__}, not a function" in feedback.message


@pytest.mark.parametrize("thing", [int, list, np.ndarray, dict, object, Exception, np.add, max, len, np.array, np.max])
@pytest.mark.parametrize("exercise", EXERCISES)
def test_classes_builtins_and_ufuncs_that_are_not_the_answer_are_refused(exercise, thing):
    assert judge(exercise, thing).correct is False


class Softmax:
    """An answer that is an object with a call, and its bound method."""

    def __call__(self, s):
        return stable(s)

    def method(self, s):
        return stable(s)


@pytest.mark.parametrize("answer", [Softmax(), Softmax().method], ids=["object", "bound method"])
def test_objects_and_methods_are_called_like_functions(answer):
    assert judge("softmax", answer).correct is True


def fail(*args):
    raise ZeroDivisionError("by zero")


def recurse(*args):
    return recurse(*args)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fail, "raised ZeroDivisionError: by zero"),
        (recurse, "raised RecursionError"),
        (lambda *args: missing, "raised NameError"),  # noqa: F821
        (lambda: 1, "raised TypeError"),
        (lambda a, b, c, d, e, f, g: 1, "raised TypeError"),
        (lambda *args: "abc", "returns str"),
        (lambda *args: {}, "returns dict"),
        (lambda *args: ..., "returns ellipsis"),
        (lambda *args: (x for x in args), "returns generator"),
        (lambda *args: [[1], [1, 2], [3]], "returns list"),
        (lambda *args: np.ones(3) * 1j, "returns ndarray"),
        (lambda *args: [10**400], "returns list"),
    ],
)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_that_fails_or_returns_no_numbers_is_told_so(exercise, answer, reason):
    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert reason in feedback.message


def test_a_forgotten_return_is_told():
    def answer(s):
        stable(s)

    feedback = judge("softmax", answer)
    assert feedback.correct is False
    assert "is a return missing" in feedback.message


def test_an_interruption_by_the_reader_is_let_through():
    def answer(s):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge("softmax", answer)


def test_complex_numbers_are_not_right_because_their_real_part_is():
    assert judge("softmax", lambda s: stable(s) + 1j).correct is False


@pytest.mark.parametrize("exercise", [exercise for exercise in EXERCISES if exercise != "shapes"])  # takes numbers
def test_an_answer_that_changes_its_input_is_told_so(exercise):
    def answer(*args):
        result = RIGHT[exercise]["reference"](*args)
        array = next(arg for arg in args if isinstance(arg, np.ndarray))
        array.flat[0] = not array.flat[0]
        return result

    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert "changed its input" in feedback.message


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_cannot_spoil_the_next_check(exercise):
    def spoil(*args):
        for array in args:
            if isinstance(array, np.ndarray):
                array[...] = 0
        return 1

    judge(exercise, spoil)
    assert judge(exercise, RIGHT[exercise]["reference"]).correct is True


def test_an_answer_may_print(capsys):
    assert judge("softmax", lambda s: print("here") or stable(s)).correct is True
    assert "here" in capsys.readouterr().out


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_is_called_with_the_arguments_of_its_formula_by_position(exercise):
    seen = []
    judge(exercise, lambda *args, **kwargs: seen.append((args, kwargs)))
    assert [(len(args), kwargs) for args, kwargs in seen[:1]] == [(ARITY[exercise], {})]


# predict


def asked(answer=lambda: "two", options=("one", "two", "three")):
    return predict("How many?", options, answer)


def radio(prediction):
    return next(child for child in prediction.children if isinstance(child, widgets.RadioButtons))


def guess(prediction, option):
    """Choose an option and press the button."""
    radio(prediction).value = option
    button(prediction).click()


def button(prediction):
    return next(child for child in prediction.children if isinstance(child, widgets.Button))


def reply(prediction):
    """The text under the options, without its tags."""
    return html.unescape(re.sub("<[^>]*>", "", prediction.children[-1].value))


def test_nothing_is_chosen_computed_or_told_before_the_guess():
    calls = []
    prediction = asked(lambda: calls.append(1) or "two")
    repr(prediction), prediction._repr_mimebundle_()
    assert radio(prediction).value is None
    assert not radio(prediction).disabled
    assert prediction.guess is None
    assert reply(prediction) == ""
    assert calls == []
    radio(prediction).value = "one"
    radio(prediction).value = "three"  # as the arrow keys do on their way
    assert calls == []
    button(prediction).click()
    assert calls == [1]


def test_a_guess_without_a_choice_is_asked_for():
    prediction = asked()
    button(prediction).click()
    assert reply(prediction) == "Choose an option first."
    guess(prediction, "one")
    assert "Your guess: one" in reply(prediction)


def test_ctrl_c_while_the_answer_is_computed_leaves_the_question_open():
    def answer():
        if not calls:
            calls.append(1)
            raise KeyboardInterrupt
        return "two"

    calls = []
    prediction = asked(answer)
    with pytest.raises(KeyboardInterrupt):
        guess(prediction, "one")
    assert prediction.guess is None and not button(prediction).disabled
    guess(prediction, "three")
    assert reply(prediction) == "Your guess: three. Computed: two."


@pytest.mark.parametrize("option", ["one", "two", "three"])
def test_a_guess_is_recorded_closes_the_question_and_is_answered(option):
    prediction = asked()
    guess(prediction, option)
    assert prediction.guess == option
    assert radio(prediction).disabled and button(prediction).disabled
    assert option in reply(prediction)
    assert "Computed: two" in reply(prediction)


def test_only_the_first_guess_counts():
    # two clicks may be on their way before the first closes the question
    prediction = asked()
    guess(prediction, "one")
    guess(prediction, "two")
    assert prediction.guess == "one"
    assert "Your guess: one" in reply(prediction)


@pytest.mark.parametrize("wrong", ["four", None, 2, np.array(["one", "two"])], ids=repr)
def test_a_computed_answer_that_is_not_an_option_is_shown_as_an_error(wrong):
    prediction = asked(lambda: wrong)
    guess(prediction, "one")
    assert "ValueError" in reply(prediction)
    assert "Computed" not in reply(prediction)


def test_an_answer_that_fails_is_shown_as_an_error():
    prediction = asked(lambda: 1 / 0)
    guess(prediction, "one")
    assert "ZeroDivisionError: division by zero" in reply(prediction)
    assert prediction.guess == "one"


@pytest.mark.parametrize("right", ["two", np.str_("two")], ids=repr)
def test_the_answer_may_be_a_numpy_string(right):
    prediction = asked(lambda: right)
    guess(prediction, "two")
    assert reply(prediction) == "Your guess: two. Computed: two."


def test_the_text_form_lists_the_question_and_the_options():
    prediction = asked(options=iter(["one", "two"]))
    assert repr(prediction) == "How many?\n( ) one\n( ) two"
    assert prediction._repr_mimebundle_()["text/plain"] == repr(prediction)


def test_the_question_and_the_reply_are_text_not_html():
    prediction = predict("Is a < b?", ["<b>yes</b>", "no"], lambda: "<b>yes</b>")
    assert "Is a &lt; b?" in prediction.children[0].value
    guess(prediction, "no")
    assert "<b>yes" not in prediction.children[-1].value
    assert "Computed: <b>yes</b>." in html.unescape(prediction.children[-1].value)
