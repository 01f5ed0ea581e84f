"""Scaled dot-product attention in NumPy: scores, softmax, weights, weighted mean.

Names, argument order and mask conventions are those of PyTorch's
``scaled_dot_product_attention``. The formula is equation 1 of Vaswani et al.,
"Attention Is All You Need" (2017), https://arxiv.org/abs/1706.03762.

n_q queries, n_kv keys and values, d_k and d_v the widths of a key and of a value;
"..." stands for any leading axes, such as (batch, heads), which broadcast.
"""

import math
import operator

import numpy as np

from attn_helpers.arguments import as_array, as_number, as_real, check_axes, check_lead, check_switch

MAX_SCORE_BYTES = 2**30  # a larger score matrix is refused: attention holds up to four such matrices at once


def softmax(scores, axis=-1, temperature=1.0):
    """Turn scores into weights: exp(scores / temperature), divided by its sum along one axis.

    scores       any shape with at least one axis; -inf stands for "not allowed"
    axis         the axis whose weights sum to 1
    temperature  0 puts all weight on the largest score (ties share it), inf gives every
                 allowed position the same weight; no unit, it divides the scores
    returns      weights of the same shape; a slice with nothing allowed is all zeros

    The maximum is subtracted first, so no score overflows. NaN scores give NaN weights.
    float16 is computed in float32 and returned as float16; integers become float64.
    Raises TypeError for scores that are not real numbers, ValueError for a score of +inf,
    a temperature below 0 or an axis that is not there.
    Source: Goodfellow, Bengio, Courville, "Deep Learning" (2016), section 4.1.
    """
    scores = as_real("scores", scores)
    axis = _axis(axis, "scores", scores.ndim)
    temperature = _temperature(temperature)
    return _cast(_softmax(_wide(scores), axis, temperature), scores.dtype)


def scores(query, key, scale=None):
    """Compare every query with every key: query @ key^T * scale.

    query    (..., n_q, d_k)
    key      (..., n_kv, d_k)
    scale    a finite number; None stands for 1 / sqrt(d_k)
    returns  (..., n_q, n_kv), before softmax

    Raises TypeError or ValueError where an argument does not fit, and names it; ValueError for
    scores of finite numbers that overflow; MemoryError for score matrices above MAX_SCORE_BYTES.
    """
    query, key = as_real("query", query), as_real("key", key)
    _check_size(_check_pair(query, key), query, key)
    s = _scores(query, key, _scale(scale, query.shape[-1]), np.result_type(np.float32, query, key))
    return _cast(s, np.result_type(query, key))


def scaled_dot_product_attention(query, key, value, mask=None, is_causal=False, scale=None):
    """Weigh the values by how well their keys match each query.

    query      (..., n_q, d_k)
    key        (..., n_kv, d_k)
    value      (..., n_kv, d_v)
    mask       (n_q, n_kv), or one axis for each axis of the scores, each 1 or its full size.
               Boolean: True = may attend. Floating point: added to the scores after scaling.
    is_causal  True: query i may attend to keys 0..i. Combines with mask.
    scale      None stands for 1 / sqrt(d_k)
    returns    output (..., n_q, d_v) and weights (..., n_q, n_kv), "..." as query, key and mask give it

    A query with nothing allowed gets weights and output of zeros. What a query may not
    attend to cannot reach its output, even where that key or value is NaN or infinite.
    Raises TypeError for integer masks and for arguments that are not real numbers,
    ValueError for shapes that do not fit, for NaN or +inf in a mask and for scores, or their sum
    with a mask, that overflow where a query may attend, MemoryError for score matrices above MAX_SCORE_BYTES.
    Source: Vaswani et al. (2017), equation 1 and section 3.2.3.
    """
    query, key, value = as_real("query", query), as_real("key", key), as_real("value", value)
    shape = _check_triple(query, key, value)
    _check_size(shape, query, key, value)
    allowed, bias = _read_mask(mask, is_causal, shape)
    dtype = np.result_type(query, key, value)
    wide = np.result_type(np.float32, dtype)
    s = _scores(query, key, _scale(scale, query.shape[-1]), wide, allowed)  # (..., n_q, n_kv)
    if bias is not None:
        s = _add(s, bias, allowed)
    if allowed is not None:
        s = np.where(allowed, s, -np.inf)
    weights = _softmax(s, -1, 1.0, out=s)  # (..., n_q, n_kv)
    output = _weighted_sum(weights, _wide(value), allowed)  # (..., n_q, d_v)
    return _cast(output, dtype), _cast(weights, dtype)


def entropy(weights, axis=-1):
    """Measure how widely weights are spread: -sum(w * log2 w), in bits.

    weights  non-negative, sum 1 along the axis
    returns  one number per slice: 0 for all weight on one position, log2(n) for n equal
             weights. 2 ** entropy is the effective number of positions. A slice of zeros
             (nothing was allowed) has no distribution and gives NaN.

    Raises ValueError where weights are negative or do not sum to 1.
    Source: Shannon, "A Mathematical Theory of Communication" (1948), section 6.
    """
    weights = as_real("weights", weights)
    axis = _axis(axis, "weights", weights.ndim)
    wide = _wide(weights)
    with np.errstate(all="ignore"):
        total = wide.sum(axis)
    tolerance = 1e-2 if weights.dtype == np.float16 else 1e-4
    if np.any(wide < 0):
        raise ValueError(f"weights must not be negative, but the smallest is {np.nanmin(wide):g}")
    if np.any((np.abs(total - 1) > tolerance) & (total != 0)):
        worst = total.flat[np.nanargmax(np.where(total == 0, 0, np.abs(total - 1)))]
        raise ValueError(f"weights must sum to 1 along axis {axis}, but one slice sums to {worst:g}")
    with np.errstate(under="ignore"):
        bits = np.maximum(0 - (wide * np.log2(np.where(wide == 0, 1, wide))).sum(axis), 0)
    return np.where(total == 0, np.nan, bits)[()]


def _softmax(scores, axis, temperature, out=None):
    with np.errstate(all="ignore"):
        temperature = scores.dtype.type(temperature)
        top = _top(scores, axis)
        top = np.where(top == -np.inf, 0, top)
        if temperature == np.inf:
            powers = (scores > -np.inf) + 0 * top  # NaN where top is
        else:
            powers = np.subtract(scores, top, out=out)  # 0 at the best score, negative elsewhere
            powers = (powers == 0) + 0 * top if temperature == 0 else _exp(powers, temperature)
        total = powers.sum(axis, keepdims=True)
        powers /= np.where(total == 0, 1, total)
    return powers


def _exp(below, temperature):
    if temperature != 1:
        below /= temperature
    return np.exp(below, out=below)


def _top(scores, axis):
    """The largest score of each slice, -inf for an empty one; +inf is refused."""
    top = scores.max(axis, keepdims=True, initial=-np.inf)
    if not np.all(top < np.inf) and np.any(scores == np.inf):  # a NaN in top may hide a +inf
        raise ValueError("a score is +inf: softmax has no value there (only -inf, for 'not allowed', can be weighed)")
    return top


def _scores(query, key, scale, dtype, allowed=None):
    """Scaled scores in that dtype; one of finite numbers that overflows where a query may attend is refused."""
    with np.errstate(all="ignore"):
        if not np.isfinite(dtype.type(scale)):
            raise ValueError(f"scale is {scale}, but must be finite in {dtype}, the dtype of the scores")
        query, key = (a.astype(dtype, copy=False) for a in (query, key))
        s = query @ key.swapaxes(-1, -2)  # (..., n_q, n_kv)
        s *= scale
        sizes = (max(a.max(initial=0), -a.min(initial=0)) for a in (query, key))
        bound = math.prod(sizes) * (query.shape[-1] * max(abs(scale), 1))
    if not bound < np.finfo(dtype).max / 2:  # by far cheaper than a look at every score
        finite = np.isfinite(query).all(-1)[..., :, None] & np.isfinite(key).all(-1)[..., None, :]
        if np.any(~np.isfinite(s) & finite & (True if allowed is None else allowed)):
            raise ValueError(f"a score is beyond what {dtype} can hold: make query or key smaller")
    return s


def _add(s, bias, allowed):
    """s + bias, in the memory of s where that has room for it; refused where two finite numbers give -inf."""
    dtype = np.result_type(s, bias)
    room = dtype == s.dtype and np.broadcast_shapes(s.shape, bias.shape) == s.shape
    limit = np.finfo(dtype)
    lowest = bias.min(initial=0, where=bias > -np.inf)
    with np.errstate(all="ignore"):
        # a smaller addend is lost in rounding at the end of the range
        if lowest < limit.min * (limit.eps / 4) and np.any(allowed & np.isfinite(s) & (s + bias == -np.inf)):
            raise ValueError(f"a score plus the mask is beyond what {dtype} can hold: use -inf for 'not allowed'")
        return np.add(s, bias, out=s if room else None)


def _weighted_sum(weights, value, allowed):
    with np.errstate(all="ignore"):
        broken = None if allowed is None else ~np.isfinite(value)
        if broken is None or not broken.any():
            return weights @ value
        allowed = np.broadcast_to(allowed, weights.shape)
        total = weights @ np.where(broken, 0, value)
        for j in np.flatnonzero(broken.any(axis=(*range(value.ndim - 2), -1))):  # NaN and infinity, key by key
            reached = allowed[..., j, None] & broken[..., j, None, :]  # (..., n_q, d_v)
            total = total + np.where(reached, weights[..., j, None] * value[..., j, None, :], 0)
        return total


def _read_mask(mask, is_causal, shape):
    """(allowed, bias), each an array or None, for scores of the given shape."""
    mask = _check_mask(mask, is_causal, shape)
    return _split_mask(mask, np.tri(*shape[-2:], dtype=bool) if is_causal else None)


def _split_mask(mask, causal):
    """(allowed, bias), each an array or None, of a mask and a boolean one that says what is not in the future."""
    bias = mask if mask is not None and mask.dtype.kind == "f" else None
    allowed = mask if bias is None else mask != -np.inf
    if causal is not None:
        allowed = causal if allowed is None else allowed & causal
    return allowed, bias


def _check_mask(mask, is_causal, shape):
    """The mask as an array that fits scores of the given shape, or None."""
    check_switch("is_causal", is_causal)
    if mask is None:
        return None
    mask = as_array("mask", mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            f"mask has dtype {mask.dtype}: write a boolean mask (True = may attend) or a "
            "floating-point one (added to the scores); 0 and 1 could mean either"
        )
    if mask.dtype.kind == "f":
        top = mask.max(initial=-np.inf)  # NaN where the mask holds one
        if not top < np.inf:
            held = "NaN" if np.isnan(top) else "+inf"
            raise ValueError(
                f"mask holds {held}: a floating-point mask adds a finite number, or -inf for 'not allowed'"
            )
    _check_mask_shape(mask.shape, shape)
    return mask


def _check_mask_shape(mask, scores):
    if len(mask) not in (2, len(scores)):
        raise ValueError(
            f"mask {mask} has {len(mask)} axes and the scores {scores} have {len(scores)}: give it two "
            "axes (n_q, n_kv) or as many as the scores, for padding (batch, 1, 1, n_kv)"
        )
    if any(m not in (1, s) for m, s in zip(mask[::-1], scores[::-1])):
        raise ValueError(
            f"mask {mask} does not fit the scores {scores}: from the right, each axis must be 1 or "
            "equal; a padding mask of shape (batch, n_kv) is written (batch, 1, 1, n_kv)"
        )


def _check_pair(query, key):
    """The shape of the scores, after both arguments were found to fit."""
    for name, array, axes in (("query", query, "(n_q, d_k)"), ("key", key, "(n_kv, d_k)")):
        check_axes(name, array, axes)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query {query.shape} and key {key.shape} differ in d_k, the last axis: "
            f"{query.shape[-1]} and {key.shape[-1]}"
        )
    if query.shape[-1] == 0:
        raise ValueError(f"query {query.shape} and key {key.shape} have d_k = 0: there is nothing to compare")
    return (*check_lead(query=query, key=key), query.shape[-2], key.shape[-2])


def _check_triple(query, key, value):
    """The shape of the scores with the leading axes of the value, after all three arguments were found to fit."""
    n_q, n_kv = _check_pair(query, key)[-2:]
    check_axes("value", value, "(n_kv, d_v)")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key {key.shape} and value {value.shape} differ in n_kv, the last axis but one: "
            f"{key.shape[-2]} and {value.shape[-2]}"
        )
    return (*check_lead(query=query, key=key, value=value), n_q, n_kv)


def _check_size(shape, *arrays):
    size = math.prod(shape) * np.result_type(np.float32, *arrays).itemsize  # float16 is computed in float32
    if size > MAX_SCORE_BYTES:
        raise MemoryError(
            f"the scores {shape} of {shape[-2]} queries and {shape[-1]} keys would take "
            f"{size / 2**30:.1f} GiB, more than {MAX_SCORE_BYTES / 2**30:g} GiB"
        )


def _cast(array, dtype):
    """The array in that dtype; what float16 cannot hold becomes 0 or infinite, silently."""
    with np.errstate(all="ignore"):
        return array.astype(dtype, copy=False)


def _wide(array):
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _axis(axis, name, ndim):
    try:
        index = operator.index(axis)
    except TypeError:
        raise TypeError(f"axis is {axis!r}, but must be one whole number") from None
    if not -ndim <= index < ndim:
        raise ValueError(f"axis is {axis}, but {name} has {ndim} axes")
    return index


def _temperature(temperature):
    number = as_number("temperature", temperature)
    if not number >= 0:
        raise ValueError(f"temperature is {temperature}, but must be 0 or more")
    return number


def _scale(scale, d_k):
    number = 1 / math.sqrt(d_k) if scale is None else as_number("scale", scale)
    if not math.isfinite(number):
        raise ValueError(f"scale is {scale}, but must be finite")
    return number
