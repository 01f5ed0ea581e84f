"""Masks in NumPy: which query may attend to which key.

A mask is boolean, True = may attend, as in PyTorch's ``scaled_dot_product_attention``; PyTorch's
``MultiheadAttention`` takes the opposite, True = hidden. Its shape is (n_q, n_kv), or one axis for
each axis of the scores, such as (batch, heads, n_q, n_kv), each 1 or its full size. Masks combine:
``&`` allows what both allow, ``|`` what either does, ``~`` turns one round.

A query with nothing allowed is legal; attention gives it zeros. Masks for scores that in float32
take more than MAX_SCORE_BYTES of attention.py are refused with a MemoryError.
"""

import itertools
import math

import numpy as np

from attn_helpers import attention
from attn_helpers.arguments import as_array, as_dtype, as_real, as_whole, check_axes


def causal_mask(n_q, n_kv=None, offset=0):
    """Hide the future: query i may attend to keys up to i + offset.

    n_q      number of queries
    n_kv     number of keys; None stands for n_q
    offset   position of query 0 among the keys, in tokens, negative too; query i stands at
             i + offset. 0 aligns the first query with the first key, as is_causal does;
             n_kv - n_q aligns the last with the last, as decoding with a cache needs.
    returns  boolean (n_q, n_kv), a lower triangle with its diagonal where n_q = n_kv and offset = 0

    Raises TypeError for what is not a whole number, ValueError for a size below 0 and for numbers
    beyond int64.
    Source: Vaswani et al. (2017), section 3.2.3.
    """
    return _up_to(_shape(n_q, n_kv), as_whole("offset", offset))


def window_mask(n_q, n_kv=None, *, window, offset=0):
    """Hide what is far away: query i may attend to keys at most `window` positions from i + offset.

    n_q, n_kv, offset  as for causal_mask
    window             in tokens, 0 or more, by keyword; counted to each side without the query's
                       own position, so that a query sees at most 2 * window + 1 keys
    returns            boolean (n_q, n_kv)

    With `& causal_mask(n_q, n_kv, offset)` it is a causal local window of at most window + 1 keys;
    libraries that count the query's own position, such as Hugging Face, call that window + 1.
    Raises TypeError for what is not a whole number, ValueError for a size or window below 0 and
    for numbers beyond int64.
    Source: Beltagy, Peters, Cohan, "Longformer: The Long-Document Transformer" (2020),
    https://arxiv.org/abs/2004.05150, section 3.1, where w is 2 * window.
    """
    shape = _shape(n_q, n_kv)
    window, offset = as_whole("window", window, 0), as_whole("offset", offset)
    return _up_to(shape, offset + window) & ~_up_to(shape, offset - window - 1)


def padding_mask(lengths, n_kv=None):
    """Hide the padding of a batch: key j of sentence b may be attended to where j < lengths[b].

    lengths  (batch,) whole numbers from 0 to n_kv, in tokens
    n_kv     number of keys, padding included; None stands for the longest length
    returns  boolean (batch, 1, 1, n_kv), for scores of (batch, heads, n_q, n_kv)

    The padding is on the right; with [..., ::-1] the mask is for padding on the left.
    Raises TypeError for what is not numbers, booleans included, ValueError for lengths that are
    not whole, negative, above n_kv or not of one axis, and for n_kv beyond int64.
    """
    lengths = _lengths(lengths)
    n_kv = int(lengths.max(initial=0)) if n_kv is None else as_whole("n_kv", n_kv, 0)
    if np.any(lengths > n_kv):
        raise ValueError(f"lengths hold {lengths.max():g}, but there are only n_kv = {n_kv} keys")
    _check_size((len(lengths), 1, 1, n_kv))
    return (np.arange(n_kv) < lengths[:, None])[:, None, None, :]  # (batch, 1, 1, n_kv)


def combine_masks(*masks):
    """Allow what all masks allow.

    masks    boolean, each (n_q, n_kv) or of the same number of axes as the others, axes 1 or
             equal; None stands for "no mask" and is left out
    returns  boolean, of the shape to which the masks broadcast; None where all are None

    Raises TypeError for masks that are not boolean (for one of 0 and -inf see to_boolean),
    ValueError for masks of fewer than two axes or that do not fit together.
    """
    given = {f"masks[{i}]": _boolean(f"masks[{i}]", mask) for i, mask in enumerate(masks) if mask is not None}
    for name, mask in given.items():
        check_axes(name, mask, "(n_q, n_kv)")
    for one, other in itertools.combinations(given.items(), 2):
        _check_fit(*one, *other)
    if not given:
        return None
    shape = np.broadcast_shapes(*(mask.shape for mask in given.values()))
    _check_size(shape)
    allowed = np.ones(shape, bool)
    for mask in given.values():
        allowed &= mask
    return allowed


def to_additive(mask, dtype=np.float64):
    """Write a boolean mask as numbers to add to the scores: 0 where allowed, -inf where not.

    mask     boolean, any shape
    dtype    floating point; above that of the scores, attention is computed in it. float16 has -inf too.
    returns  the same shape, in that dtype, the byte order that of the machine

    Raises TypeError for a mask that is not boolean and a dtype that is not floating point.
    Source: Vaswani et al. (2017), section 3.2.3.
    """
    mask, number = _boolean("mask", mask), _float_type(dtype)
    _check_size(mask.shape)
    return np.where(mask, number(0), number(-np.inf))  # a product would give 0 * -inf = NaN


def to_boolean(additive):
    """Read a mask of numbers to add to the scores as boolean: True for 0, False for -inf.

    additive  floating point, any shape, each 0 or -inf
    returns   boolean, the same shape

    A finite number, such as -1e9 or a bias by distance (ALiBi), is refused: it makes a key less
    likely without hiding it, so no boolean says the same. So is a boolean mask, which needs no reading.
    Raises TypeError for what is not floating point, ValueError for numbers other than 0 and -inf.
    """
    additive = as_array("additive", additive)
    if additive.dtype.kind != "f":
        raise TypeError(
            f"additive has dtype {additive.dtype}, but needs floating-point numbers, 0 = may attend and "
            "-inf = may not; a boolean mask is used as it is, integers 0 and 1 could mean either"
        )
    other = additive[(additive != 0) & (additive != -np.inf)]
    if other.size:
        raise ValueError(f"additive holds {other[0]:g}, so it is not a yes/no mask: only 0 and -inf can be read as one")
    return additive == 0


def _up_to(shape, last):
    """Whether j <= i + last, for indices (i, j) of that shape."""
    _check_size(shape)
    n_q, n_kv = shape
    return np.tri(n_q, n_kv, min(max(last, -n_q), n_kv), dtype=bool)  # (n_q, n_kv)


def _shape(n_q, n_kv):
    n_q = as_whole("n_q", n_q, 0)
    return n_q, n_q if n_kv is None else as_whole("n_kv", n_kv, 0)


def _lengths(lengths):
    lengths = as_real("lengths", lengths)
    if lengths.ndim != 1:
        raise ValueError(f"lengths has shape {lengths.shape}, but needs one axis (batch,), a number for each sentence")
    wrong = lengths[~((lengths >= 0) & (lengths < np.inf) & (lengths == np.trunc(lengths)))]
    if wrong.size:
        raise ValueError(f"lengths hold {wrong[0]:g}, but must be whole numbers from 0 on")
    return lengths


def _boolean(name, mask):
    mask = as_array(name, mask)
    if mask.dtype.kind != "b":
        raise TypeError(
            f"{name} has dtype {mask.dtype}: write a boolean mask (True = may attend); "
            + ("to_boolean makes one of 0 and -inf" if mask.dtype.kind == "f" else "0 and 1 could mean either")
        )
    return mask


def _float_type(dtype):
    found = as_dtype(dtype)
    if found.kind != "f":
        raise TypeError(f"dtype is {dtype!r}, but must be a floating-point type such as np.float32")
    return found.type


def _check_fit(name, mask, other_name, other):
    a, b = mask.shape, other.shape
    if len(a) != len(b) and 2 not in (len(a), len(b)):
        raise ValueError(
            f"{name} {a} has {len(a)} axes and {other_name} {b} has {len(b)}: give each two axes "
            "(n_q, n_kv) or both as many as the scores, for padding (batch, 1, 1, n_kv)"
        )
    if any(m != n and 1 not in (m, n) for m, n in zip(a[::-1], b[::-1])):
        raise ValueError(
            f"{name} {a} and {other_name} {b} do not fit: from the right, each axis must be 1 or "
            "equal; a padding mask of shape (batch, n_kv) is written (batch, 1, 1, n_kv)"
        )


def _check_size(shape):
    size = math.prod(max(n, 1) for n in shape) * np.dtype(np.float32).itemsize
    if size > attention.MAX_SCORE_BYTES:
        raise MemoryError(
            f"a mask {shape} is for scores of {size // 2**20:,} MiB in float32, "
            f"more than {attention.MAX_SCORE_BYTES // 2**20:,} MiB"
        )
