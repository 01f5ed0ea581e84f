"""Exercises of notebook 7: heads split and merged, and a layer of several heads."""

import numpy as np

from attn_helpers import heads
from attn_helpers.attention import scaled_dot_product_attention, softmax
from attn_helpers.exercises.mistakes import ROLES, WEIGHING, attend, draw, logits, scaling_mistakes
from attn_helpers.judging import difference, judge


def _numbered(*shape):
    """The numbers 1, 2, 3, ... shuffled, in this shape: each tells where it comes from."""
    return np.random.default_rng(0).permutation(np.arange(1.0, np.prod(shape) + 1)).reshape(shape)


def _cut(x, h):
    return x.reshape(*x.shape[:-1], h, -1)  # (..., n, h, d_h)


def straight(x, h):
    """A split by reshape alone."""
    return x.reshape(*x.shape[:-2], h, x.shape[-2], -1)  # (..., h, n, d_h), tokens scrambled


def transposed_first(x, h):
    """A split whose swap comes before the reshape."""
    return x.swapaxes(1, 2).reshape(len(x), h, x.shape[1], -1)  # (b, h, n, d_h), tokens scrambled


def _every_hth(x, h):
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, h), -1, -3)  # (..., h, n, d_h), every h-th column


def cut_in_order(*order):
    """The split whose axes (b, n, h, d_h) are then put in this order."""
    return lambda x, h: _cut(x, h).transpose(order)


_CUT = "reshape to (b, n, h, d_h), then swap axes 1 and 2"
_ORDER = "the order is (b, h, n, d_h)"

_SPLIT = [
    (straight, f"x is reshaped straight to (b, h, n, d_h), which scrambles the tokens: {_CUT}"),
    (transposed_first, f"x is transposed before the reshape, which scrambles the tokens: {_CUT}"),
    (_every_hth, "each head gets every h-th column: it takes d_h neighbours, so reshape to (b, n, h, d_h)"),
    (_cut, f"the heads stand behind the tokens, (b, n, h, d_h): swap axes 1 and 2, {_ORDER}"),
    (
        lambda x, h: x.reshape(*x.shape[:2], -1, h),
        f"h and d_h are exchanged in the reshape, and no axes are swapped: {_CUT}",
    ),
    (cut_in_order(2, 0, 1, 3), f"the heads stand in front of the batch, (h, b, n, d_h): {_ORDER}"),
    (cut_in_order(1, 0, 2, 3), f"the batch is swapped with the tokens, (n, b, h, d_h): {_CUT}"),
    (cut_in_order(2, 1, 0, 3), f"the heads are swapped with the batch, (h, n, b, d_h): {_ORDER}"),
    (cut_in_order(0, 2, 3, 1), f"the last two axes are exchanged, (b, h, d_h, n): {_ORDER}"),
    (cut_in_order(0, 1, 3, 2), f"the wrong axes are swapped, which gives (b, n, d_h, h): {_CUT}"),
    (cut_in_order(0, 3, 1, 2), f"the heads stand last, (b, d_h, n, h): {_ORDER}"),
    (cut_in_order(0, 3, 2, 1), f"the wrong axes are swapped, which gives (b, d_h, h, n): {_CUT}"),
    (cut_in_order(3, 2, 1, 0), f".T reverses all axes, (d_h, h, n, b): {_ORDER}, so swap axes 1 and 2 alone"),
    (
        lambda x, h: _cut(x.reshape(x.shape[1], len(x), -1), h).transpose(1, 2, 0, 3),
        "the first axis is taken for the tokens: x is (b, n, d), the batch comes first",
    ),
    (
        lambda x, h: heads.split_heads(x, h).reshape(len(x) * h, x.shape[1], -1),
        f"batch and heads share one axis, (b * h, n, d_h): {_ORDER}",
    ),
    (
        lambda x, h: x.reshape(len(x), h, -1, x.shape[-1]),
        "each head gets some of the tokens: it gets some of the columns, of all tokens",
    ),
    (lambda x, h: heads.split_heads(x, h)[:, 0], f"this is the first head alone: {_ORDER}"),
    (lambda x, h: x, f"x is unchanged: {_CUT}"),
]


def split_heads(answer):
    """answer(x (b, n, d), h) -> (b, h, n, d / h): head i gets the i-th d / h columns of each token."""
    shapes = [((2, 6, 12), 3), ((2, 4, 15), 3), ((1, 4, 6), 3), ((2, 3, 12), 3), ((3, 4, 12), 3), ((2, 5, 4), 4)]
    return judge(
        answer,
        cases=[(_numbered(*shape), h) for shape, h in [*shapes, ((2, 3, 4), 1)]],
        right=heads.split_heads,
        mistakes=_SPLIT,
        hint="x.shape is (b, n, d), and a head has d // h columns, a whole number",
        praise="each head holds its own columns of every token, and every number stays with its token.",
        explain=_moved,
    )


def _moved(case, result, target):
    """Which number of x stands where another should; the numbers of a case are all different."""
    if result.shape == target.shape and np.isin(result, case[0]).all():
        place = tuple(np.argwhere(result != target)[0])
        given, wanted = (np.argwhere(case[0] == array[place])[0].tolist() for array in (result, target))
        return f"the result at {', '.join(map(str, place))} is x{given}, but should be x{wanted}."
    return difference(case, result, target)


def _join(x):
    return x.reshape(*x.shape[:-2], -1)


def _join_straight(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)  # (..., n, h * d_h), tokens scrambled


def _join_every_hth(x):
    return _join(np.moveaxis(x, -3, -1))  # (..., n, d_h * h), the heads' columns in turn


_SWAP = "swap axes 1 and 2, then reshape to (b, n, h * d_h)"

_MERGE = [
    (_join_straight, f"x is reshaped without swapping axes, which scrambles the tokens: {_SWAP}"),
    (
        lambda x: _join_straight(x.swapaxes(2, 3)).reshape(len(x), x.shape[2], -1),
        f"the last two axes are swapped, which scrambles the tokens: {_SWAP}",
    ),
    (_join_every_hth, f"the columns of the heads take turns: a head's columns stay together, {_SWAP}"),
    (
        lambda x: x.reshape(len(x), -1, x.shape[-1]),
        "the heads stand one below the other: put them side by side, axis=-1",
    ),
    (
        lambda x: _join(x.transpose(0, 2, 1, 3)[..., None]).reshape(len(x), -1, x.shape[-1]),
        "heads and tokens share one axis, (b, n * h, d_h): join the heads with d_h, to (b, n, h * d_h)",
    ),
    (lambda x: x.swapaxes(1, 2), "the axes are swapped, but the last two not joined yet: reshape to (b, n, h * d_h)"),
    (lambda x: x.sum(axis=1), "the heads are summed up: they stand side by side, in h * d_h columns"),
    (lambda x: x.mean(axis=1), "this is the mean of the heads: they stand side by side, in h * d_h columns"),
    (lambda x: x[:, 0], "this is the first head alone: the heads stand side by side, in h * d_h columns"),
    (lambda x: x[:, -1], "this is the last head alone: the heads stand side by side, in h * d_h columns"),
    (lambda x: heads.merge_heads(x[:, ::-1]), "the heads stand in reverse order"),
    (
        lambda x: np.concatenate(list(x), axis=-1),
        "the sequences of the batch are put side by side: x[i] is sequence i, head i of all is x[:, i]",
    ),
    (
        lambda x: _join(x.transpose(2, 0, 1, 3)),
        f"the tokens stand in front of the batch, (n, b, h * d_h): {_SWAP}",
    ),
    (
        lambda x: x.transpose(2, 0, 1, 3).reshape(len(x), x.shape[2], -1),
        f"the tokens were moved in front of the batch, which scrambles the sequences: {_SWAP}",
    ),
    (lambda x: _join(x.swapaxes(1, 3)), f"the wrong axes are swapped, which gives (b, d_h, n * h): {_SWAP}"),
    (
        lambda x: x.swapaxes(1, 3).reshape(len(x), x.shape[2], -1),
        f"the wrong axes are swapped, heads and d_h, which scrambles the tokens: {_SWAP}",
    ),
    (
        lambda x: x.T.reshape(len(x), x.shape[2], -1),
        f".T reverses all axes, which scrambles the tokens: {_SWAP}",
    ),
    (lambda x: x, f"x is unchanged: {_SWAP}"),
]


def merge_heads(answer):
    """answer(x (b, h, n, d_h)) -> (b, n, h * d_h), the heads side by side: what split_heads took apart."""
    shapes = [(2, 3, 6, 4), (2, 3, 4, 5), (1, 2, 2, 2), (2, 3, 3, 4), (3, 3, 4, 2), (2, 4, 5, 1), (2, 1, 3, 4)]
    return judge(
        answer,
        cases=[(_numbered(*shape),) for shape in shapes],
        right=heads.merge_heads,
        mistakes=_MERGE,
        hint="x.shape is (b, h, n, d_h); np.concatenate takes a list of arrays, one for each head",
        praise="each token has the columns of all its heads side by side.",
        explain=_moved,
    )


def _layer(attend=attend, split=heads.split_heads, merge=heads.merge_heads):
    """A layer of several heads in which these steps may be mistaken."""

    def layer(X, W_Q, W_K, W_V, W_O, h):
        return merge(attend(*(split(X @ W, h) for W in (W_Q, W_K, W_V)))) @ W_O  # (n, d)

    return layer


def _outputs(X, W_Q, W_K, W_V, W_O, h):
    """The output of each head, (h, n, d_v)."""
    return attend(*(heads.split_heads(X @ W, h) for W in (W_Q, W_K, W_V)))


def _values_cut_by_d_h(X, W_Q, W_K, W_V, W_O, h):
    """Slices as wide as a key, of values that are not; the last slices run short."""
    A = softmax(logits(*(heads.split_heads(X @ W, h) for W in (W_Q, W_K))))  # (h, n, n)
    V, d_h = X @ W_V, W_Q.shape[1] // h
    return np.concatenate([A[i] @ V[:, i * d_h : (i + 1) * d_h] for i in range(h)], axis=1) @ W_O


def _divided_by(width):
    """A layer whose scores are divided by the square root of width(X, W_Q, h)."""

    def layer(X, W_Q, W_K, W_V, W_O, h):
        return _layer(lambda Q, K, V: attend(Q, K, V, divisor=np.sqrt(width(X, W_Q, h))))(X, W_Q, W_K, W_V, W_O, h)

    return layer


_WIDTH = "it is sqrt(d_h), the width of one head, Q.shape[-1] after the split"
_SCRAMBLED = "the tokens are scrambled, reshape to (n, h, d_h) and swap the first two axes"
_BESIDE = "they stand side by side, (n, h * d_v), and W_O mixes them"

_MULTI_HEAD = [
    (_divided_by(lambda X, W_Q, h: 4), f"the scores are always divided by 2: {_WIDTH}"),
    (_divided_by(lambda X, W_Q, h: X.shape[1]), f"the scores are divided by sqrt(d), the width of X: {_WIDTH}"),
    (_divided_by(lambda X, W_Q, h: W_Q.shape[1]), f"the scores are divided by the square root of h * d_h: {_WIDTH}"),
    (_divided_by(lambda X, W_Q, h: X.shape[1] / h), f"the width of a head is taken for d / h: {_WIDTH}"),
    (_divided_by(lambda X, W_Q, h: X.shape[1] // h), f"the width of a head is taken for d // h: {_WIDTH}"),
    (_divided_by(lambda X, W_Q, h: h), f"the scores are divided by the square root of the number of heads: {_WIDTH}"),
    (
        lambda X, W_Q, W_K, W_V, W_O, h: _layer()(X, W_Q, W_K, W_V, W_O, 1),
        "this is one head of full width: split Q, K and V into h heads before the scores",
    ),
    (
        lambda X, W_Q, W_K, W_V, W_O, h: attend(X @ W_Q, X @ W_K, X @ W_V, divisor=np.sqrt(W_Q.shape[1] / h)) @ W_O,
        "this is one head of full width, only its divisor is that of a small one: split Q, K and V into h heads",
    ),
    (
        lambda X, W_Q, W_K, W_V, W_O, h: _layer()(X, W_Q, W_K, W_V, W_O, W_Q.shape[1] // h),
        "h and d_h are exchanged: there are h heads, each of width W_Q.shape[1] // h",
    ),
    (_layer(split=straight), f"Q, K and V are reshaped straight to (h, n, d_h): {_SCRAMBLED}"),
    (_layer(merge=_join_straight), "the heads are merged by reshape alone: swap the first two axes before it"),
    (
        _layer(split=straight, merge=_join_straight),
        f"reshape alone splits and merges, with no axes swapped: {_SCRAMBLED}",
    ),
    (_layer(split=_every_hth), "each head gets every h-th column: it takes d_h neighbours, so reshape to (n, h, d_h)"),
    (
        _layer(split=_every_hth, merge=_join_every_hth),
        "each head gets every h-th column, and they are merged in turn: a head takes d_h neighbours",
    ),
    (_layer(merge=_join_every_hth), "the columns of the heads take turns in the merge: a head's columns stay together"),
    (
        _layer(lambda Q, K, V: softmax(logits(Q, K)).mean(axis=0) @ V),
        "the weights are averaged over the heads: each head weighs its values with weights of its own",
    ),
    (_layer(lambda Q, K, V: attend(Q[:1], K[:1], V)), "all heads use the weights of the first: each has its own"),
    (
        _layer(lambda Q, K, V: np.repeat(attend(Q, K, V)[:1], len(Q), axis=0)),
        "all heads are the first one: head i uses columns i * d_h to (i + 1) * d_h",
    ),
    (_layer(lambda Q, K, V: attend(Q, K, V, axis=0)), "softmax ran over the heads: it runs over the keys, axis=-1"),
    (
        _layer(lambda Q, K, V: scaled_dot_product_attention(Q, K, V, is_causal=True)[0]),
        "the future is hidden: no causal mask is asked for",
    ),
    (lambda *case: heads.merge_heads(_outputs(*case)), "W_O is missing: multiply the merged heads by it"),
    (lambda *case: heads.multi_head_attention(*case)[1], "these are the weights of the heads: the output is asked for"),
    (lambda *case: _outputs(*case), "these are the outputs of the heads: merge them and multiply by W_O"),
    (lambda *case: _outputs(*case).sum(axis=0), f"the heads are summed up: {_BESIDE}"),
    (lambda *case: _outputs(*case).mean(axis=0), f"this is the mean of the heads: {_BESIDE}"),
    (
        lambda *case: _outputs(*case).sum(axis=0) @ np.split(case[4], case[5])[0],
        f"the heads are summed up before W_O: {_BESIDE}",
    ),
    (
        lambda *case: _outputs(*case).mean(axis=0) @ np.split(case[4], case[5])[0],
        f"the heads are averaged before W_O: {_BESIDE}",
    ),
    (
        lambda *case: _outputs(*case) @ np.split(case[4], case[5]),
        "each head is multiplied by its rows of W_O, but the h products are not added yet",
    ),
    (lambda *case: _layer()(*case) / case[5], "the parts of the heads are averaged: W_O adds them"),
    (
        lambda *case: _outputs(*case)[0] @ np.split(case[4], case[5])[0],
        "this is the part of the first head alone: the heads are merged before W_O",
    ),
    (
        lambda *case: _outputs(*case)[-1] @ np.split(case[4], case[5])[-1],
        "this is the part of the last head alone (does the loop overwrite it?): keep all heads and merge them",
    ),
    (_values_cut_by_d_h, "the values are cut by the width of a key: theirs is W_V.shape[1] // h"),
    (
        lambda X, W_Q, W_K, W_V, W_O, h: _layer()(X, W_Q, W_K, W_V, W_O.T, h),
        "W_O is transposed: multiply by W_O itself, its rows belong to the columns of the merged heads",
    ),
    (
        lambda X, W_Q, W_K, W_V, W_O, h: _layer()(X, W_Q.T, W_K.T, W_V.T, W_O, h),
        "W_Q, W_K and W_V are transposed: Q = X @ W_Q",
    ),
    (lambda X, *others: X + _layer()(X, *others), "X is added: the residual connection is not asked for"),
    *((_layer(mistake), message) for mistake, message in scaling_mistakes("Q.shape[-1] after the split")),
    *((_layer(mistake), message) for mistake, message in [*WEIGHING, *ROLES]),
]


def multi_head(answer):
    """answer(X (n, d), W_Q, W_K (d, h * d_h), W_V (d, h * d_v), W_O (h * d_v, d), h) -> (n, d)."""
    return judge(
        answer,
        cases=[
            (*draw((7, 17), (17, 12), (17, 12), (17, 6), (6, 17)), 3),
            (*draw((4, 6), (6, 6), (6, 6), (6, 6), (6, 6)), 3),
            (*draw((3, 4), (4, 6), (4, 6), (4, 10), (10, 4)), 2),
            (*draw((3, 5), (5, 3), (5, 3), (5, 2), (2, 5)), 1),
            (*draw((3, 4), (4, 6), (4, 6), (4, 10), (10, 4), size=40), 2),
        ],
        right=lambda *case: heads.multi_head_attention(*case)[0],
        mistakes=_MULTI_HEAD,
        hint="d_h is W_Q.shape[1] // h and d_v is W_V.shape[1] // h: they may differ from each other and from d // h",
        praise="each head looks with its own columns of Q and K, and W_O adds what the heads carry.",
    )
