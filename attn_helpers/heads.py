"""Multi-head attention in NumPy: split, attend, merge, mix; and what kind of map each head has.

The formula is that of Vaswani et al., "Attention Is All You Need" (2017), section 3.2.2,
https://arxiv.org/abs/1706.03762: MultiHead = Concat(head_1, ..., head_h) W_O, with
head_i = Attention(x W_Q_i, context W_K_i, context W_V_i). The matrices of all heads stand side by
side in one: head i owns columns i * d_k to (i + 1) * d_k of W_Q, and rows likewise of W_O.
"""

import numpy as np

from attn_helpers.arguments import as_array, as_real, as_whole, check_axes, check_lead
from attn_helpers.attention import (
    _cast,
    entropy,
    scaled_dot_product_attention,
)

BIASES = "b_Q", "b_K", "b_V", "b_O"


def split_heads(x, heads):
    """Cut each token's features into heads of equal width, and bring the heads before the tokens.

    x        (..., n, heads * d_h), of any dtype
    heads    how many; head i gets features i * d_h to (i + 1) * d_h
    returns  (..., heads, n, d_h), which may share memory with x

    Raises TypeError or ValueError where an argument does not fit, and names it.
    Source: Vaswani et al. (2017), section 3.2.2.
    """
    x, heads = as_array("x", x), as_whole("heads", heads, 1)
    check_axes("x", x, "(n, heads * d_h)")
    *lead, width = x.shape
    if width % heads:
        raise ValueError(f"x {x.shape} has {width} features, its last axis, which {heads} heads do not divide")
    return x.reshape(*lead, heads, width // heads).swapaxes(-2, -3)  # (..., heads, n, d_h)


def merge_heads(x):
    """Put the features of all heads side by side for each token: the inverse of split_heads.

    x        (..., heads, n, d_h), of any dtype
    returns  (..., n, heads * d_h), which may share memory with x

    Raises ValueError for less than three axes.
    Source: Vaswani et al. (2017), section 3.2.2: Concat(head_1, ..., head_h).
    """
    x = as_array("x", x)
    if x.ndim < 3:
        raise ValueError(f"x has shape {x.shape}, but needs at least three axes (heads, n, d_h)")
    *lead, heads, n, d_h = x.shape
    return x.swapaxes(-2, -3).reshape(*lead, n, heads * d_h)  # (..., n, heads * d_h)


def multi_head_attention(
    x,
    W_Q,
    W_K,
    W_V,
    W_O,
    heads,
    context=None,
    kv_heads=None,
    biases=None,
    mask=None,
    is_causal=False,
    scale=None,
):
    """Attend in several heads, each with its own part of the matrices, and mix what they found.

    x          (..., n_q, d), what asks
    W_Q        (d, heads * d_k)
    W_K        (d_context, kv_heads * d_k)
    W_V        (d_context, kv_heads * d_v)
    W_O        (heads * d_v, d_out)
    heads      how many
    context    (..., n_kv, d_context), what is asked; None stands for x, self-attention
    kv_heads   heads of keys and values, a divisor of heads; None stands for heads, 1 is multi-query attention.
               With g = heads / kv_heads, query heads j * g to (j + 1) * g - 1 share key/value head j.
    biases     (b_Q, b_K, b_V, b_O), each None or a vector with a number for each column of its matrix
    mask       as for scaled_dot_product_attention, on scores (..., heads, n_q, n_kv)
    is_causal  True: query i may attend to keys 0..i. Combines with mask.
    scale      None stands for 1 / sqrt(d_k)
    returns    output (..., n_q, d_out) and weights (..., heads, n_q, n_kv)

    What is hidden, NaN or empty follows the rules of scaled_dot_product_attention. float16 is computed
    in float32 throughout and returned as float16; integers become float64.
    Raises TypeError or ValueError where an argument does not fit, and names it, and the errors of
    scaled_dot_product_attention.
    Source: Vaswani et al. (2017), section 3.2.2; for kv_heads Ainslie et al., "GQA" (2023),
    https://arxiv.org/abs/2305.13245, section 2.2.
    """
    heads = as_whole("heads", heads, 1)
    kv_heads = _kv_heads(kv_heads, heads)
    W = {name: _matrix(name, matrix) for name, matrix in dict(W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O).items()}
    x, context = _inputs(x, context, W)
    _check_matrices(heads, kv_heads, **W)
    b = _biases(biases, W)
    dtype = np.result_type(x, context, *W.values(), *(bias for bias in b if bias is not None))
    wide = np.result_type(np.float32, dtype)
    q, k, v, o = ((W[name], bias, wide) for name, bias in zip(W, b))
    query = split_heads(_project(x, *q), heads)  # (..., heads, n_q, d_k)
    key, value = (split_heads(_project(context, *p), kv_heads) for p in (k, v))  # (..., kv_heads, n_kv, d_k or d_v)
    key, value = (np.repeat(a, heads // kv_heads, axis=-3) for a in (key, value))  # (..., heads, n_kv, d_k or d_v)
    found, weights = scaled_dot_product_attention(query, key, value, mask, is_causal, scale)
    output = _project(merge_heads(found), *o)  # (..., n_q, d_out)
    return _cast(output, dtype), _cast(weights, dtype)


def head_statistics(weights, tokens=None, delimiters=None):
    """Measure by a few numbers what a self-attention map looks at; each is a mean over queries t.

    weights     (..., n, n), A[t, i] the weight of query t on key i
    tokens      n of anything that == compares
    delimiters  n booleans, True for a delimiter token such as [SEP]
    returns     a dict of float64 arrays (...), all but distance and entropy a share of the weight from 0 to 1:
                previous   A[t, t-1], for t from 1 on
                next       A[t, t+1], for t up to n-2
                self       A[t, t]
                first      A[t, 0], for t from 1 on
                delimiter  only with delimiters: on all delimiters, for t that are none
                distance   sum over i of A[t, i] |t - i|, in tokens
                entropy    of A[t], in bits
                duplicate  only with tokens: on all earlier tokens j that equal token t, for t with such j
                induction  only with tokens: on all tokens j + 1 after such j, for t with such j + 1 < t

    NaN where there is no such query. A row of zeros (nothing allowed) has no entropy and makes it NaN.
    Raises TypeError or ValueError where an argument does not fit, and names it; ValueError where
    weights are negative or a row does not sum to 1.
    Source: Clark et al. (2019), https://arxiv.org/abs/1906.04341, section 3; distance: Vig, Belinkov (2019),
    https://arxiv.org/abs/1906.04284, "attention distance"; duplicate: Wang et al. (2022),
    https://arxiv.org/abs/2211.00593, section 3; induction: Olsson et al. (2022),
    https://arxiv.org/abs/2209.11895, "prefix matching".
    """
    weights = as_real("weights", weights)
    n = _square(weights)
    bits = _mean(np.asarray(entropy(weights), np.float64))
    weights = _cast(weights, np.float64)
    with np.errstate(under="ignore"):
        t, i = np.indices((n, n))
        on = dict(previous=i == t - 1, next=i == t + 1, self=i == t, first=(i == 0) & (t > 0))
        if delimiters is not None:
            delimiters = _delimiters(delimiters, n)
            on["delimiter"] = delimiters[i] & ~delimiters[t]
        statistics = {name: _weight_on(keys, weights) for name, keys in on.items()}
        statistics |= dict(distance=_mean((weights * abs(t - i)).sum(-1)), entropy=bits)
        if tokens is not None:
            equal = _equal(tokens, n) & (i < t)  # (n, n)
            after = np.roll(equal, 1, axis=1) & (i < t)  # (n, n)
            statistics |= dict(duplicate=_weight_on(equal, weights), induction=_weight_on(after, weights))
        return statistics


def _project(x, W, bias, dtype):
    with np.errstate(all="ignore"):
        projected = np.asarray(x, dtype) @ W
        return projected if bias is None else projected + bias


def _weight_on(keys, weights):
    """Mean over the queries t with keys[t, i] True for some i of their weight on all such i."""
    queries = keys.any(1)
    return _mean(weights[..., queries, :].sum(-1, where=keys[queries]))


def _mean(values):
    """The mean along the last axis, NaN where that is empty."""
    return values.mean(-1) if values.shape[-1] else np.full(values.shape[:-1], np.nan)[()]


def _kv_heads(kv_heads, heads):
    kv_heads = heads if kv_heads is None else as_whole("kv_heads", kv_heads, 1)
    if heads % kv_heads:
        raise ValueError(f"kv_heads is {kv_heads}, but must divide heads, {heads}")
    return kv_heads


def _matrix(name, matrix):
    matrix = as_real(name, matrix)
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}, but needs two axes, rows and columns")
    return matrix


def _inputs(x, context, W):
    """x and context as arrays that fit each other and the rows of the matrices."""
    given = dict(x=as_real("x", x)) if context is None else dict(x=as_real("x", x), context=as_real("context", context))
    for name, array in given.items():
        check_axes(name, array, "(n_q, d)" if name == "x" else "(n_kv, d_context)")
    check_lead(**given)
    asked = "x" if context is None else "context"
    for source, name in (("x", "W_Q"), (asked, "W_K"), (asked, "W_V")):
        array, rows = given[source], len(W[name])
        if array.shape[-1] != rows:
            raise ValueError(
                f"{source} {array.shape} has width {array.shape[-1]}, its last axis, but {name} {W[name].shape} "
                f"has {rows} rows"
            )
    return given["x"], given[asked]


def _check_matrices(heads, kv_heads, W_Q, W_K, W_V, W_O):
    sharing = "heads" if kv_heads == heads else "kv_heads"
    d_k, d_v = _columns("W_Q", W_Q, heads, "heads"), _columns("W_V", W_V, kv_heads, sharing)
    if d_k == 0:
        raise ValueError(f"W_Q {W_Q.shape} has no columns: there is nothing to compare")
    if W_K.shape[1] != kv_heads * d_k:
        raise ValueError(
            f"W_K {W_K.shape} has {W_K.shape[1]} columns, but needs {kv_heads * d_k}: "
            f"{kv_heads} {sharing} of d_k = {d_k}, as W_Q {W_Q.shape} has it for {heads} heads"
        )
    if len(W_O) != heads * d_v:
        raise ValueError(
            f"W_O {W_O.shape} has {len(W_O)} rows, but needs {heads * d_v}: "
            f"{heads} heads of d_v = {d_v}, as W_V {W_V.shape} has it for {kv_heads} {sharing}"
        )


def _columns(name, W, heads, kind):
    """How many columns of W one head has."""
    if W.shape[1] % heads:
        raise ValueError(f"{name} {W.shape} has {W.shape[1]} columns, which {heads} {kind} do not divide")
    return W.shape[1] // heads


def _biases(biases, W):
    """Four vectors, each an array or None, that fit the columns of their matrices."""
    expected = f"must be None or four: ({', '.join(BIASES)}), each a vector or None"
    try:
        given = [None] * len(BIASES) if biases is None else list(biases)
    except TypeError:
        raise TypeError(f"biases is {biases!r}, but {expected}") from None
    if len(given) != len(BIASES):
        raise ValueError(f"biases has {len(given)} entries, but {expected}")
    return [None if b is None else _bias(name, b, *matrix) for name, b, matrix in zip(BIASES, given, W.items())]


def _bias(name, bias, W_name, W):
    bias = as_real(name, bias)
    if bias.shape != W.shape[1:]:
        raise ValueError(f"{name} has shape {bias.shape}, but needs {W.shape[1:]}, the columns of {W_name} {W.shape}")
    return bias


def _square(weights):
    """n of weights (..., n, n)."""
    check_axes("weights", weights, "(n, n)")
    n, n_kv = weights.shape[-2:]
    if n != n_kv:
        raise ValueError(
            f"weights {weights.shape} have {n} queries and {n_kv} keys, "
            "but self-attention has as many of both, (..., n, n)"
        )
    return n


def _delimiters(delimiters, n):
    delimiters = as_array("delimiters", delimiters)
    if delimiters.dtype.kind != "b":
        raise TypeError(f"delimiters has dtype {delimiters.dtype}, but must be boolean, True for a delimiter token")
    if delimiters.shape != (n,):
        raise ValueError(
            f"delimiters has shape {delimiters.shape}, but needs {(n,)}, an entry for each of n = {n} tokens"
        )
    return delimiters


def _equal(tokens, n):
    """Whether tokens t and i are equal, (n, n)."""
    if isinstance(tokens, np.ndarray) and tokens.ndim != 1:
        raise ValueError(f"tokens has shape {tokens.shape}, but needs one axis (n,), the same tokens for all maps")
    try:
        tokens = list(tokens)
    except TypeError:
        raise TypeError(f"tokens is {tokens!r}, but must be n tokens in a row") from None
    if len(tokens) != n:
        raise ValueError(f"there are {len(tokens)} tokens, but weights have n = {n}, their last axis")
    try:
        return np.array([[bool(a == b) for b in tokens] for a in tokens], bool).reshape(n, n)
    except ValueError:
        raise TypeError("tokens hold arrays, but == must give one True or False for two tokens") from None
