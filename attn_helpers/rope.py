"""Rotary position embedding (RoPE) in NumPy: positions as angles by which queries and keys are turned."""

import math

import numpy as np

from attn_helpers.arguments import as_number, as_real, check_axes, check_switch
from attn_helpers.attention import _cast, _wide


def apply_rope(x, positions=None, base=10000.0, interleaved=False):
    """Turn each pair of features by an angle that grows with the position.

    x            queries or keys (..., n, d_k), d_k even
    positions    (n,), or one axis for each axis of x but the last, each 1 or its full size (the
                 last always n). In tokens; any finite numbers. None stands for 0..n-1; a token
                 decoded after others needs its own, the number of tokens before it.
    base         a number above 0; pair i turns by positions * base ** (-2 * i / d_k) radians
    interleaved  False: pair i is features i and i + d_k / 2 (Llama, SmolLM2 in Hugging Face).
                 True: features 2i and 2i + 1 (the paper). One is the other with features reordered.
    returns      the turned x, same shape and dtype

    The dot product of a turned query and a turned key depends on positions only through their
    difference. Angles are computed in float64, the rest as in attention: float16 in float32 and
    returned as float16; integers become float64. NaN or infinity stays within its pair.
    Raises TypeError for x, positions or base that are not real numbers and for interleaved that
    is not a boolean; ValueError for an odd d_k, for positions that do not fit or are not finite
    and for a base that is not above 0 and finite, or so small that an angle overflows.
    Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021),
    https://arxiv.org/abs/2104.09864, equation 34.
    """
    x = as_real("x", x)
    _check_x(x)
    wide = _wide(x)
    check_switch("interleaved", interleaved)
    with np.errstate(all="ignore"):
        angles = _angles(_positions(positions, x.shape[:-1]), base, x.shape[-1])  # (..., n, d_k / 2)
        cos, sin = (f(angles).astype(wide.dtype) for f in (np.cos, np.sin))
        return _cast(_turn(wide, cos, sin, interleaved), x.dtype)


def _turn(x, cos, sin, interleaved):
    half = x.shape[-1] // 2
    first, second = (np.s_[..., 0::2], np.s_[..., 1::2]) if interleaved else (np.s_[..., :half], np.s_[..., half:])
    turned = np.empty_like(x)
    turned[first] = x[first] * cos - x[second] * sin
    turned[second] = x[first] * sin + x[second] * cos
    return turned


def _angles(positions, base, d_k):
    number = as_number("base", base)
    if not 0 < number < math.inf:
        raise ValueError(f"base is {base}, but must be above 0 and finite")
    angles = positions[..., None] * number ** (-np.arange(0, d_k, 2) / d_k)
    if not np.isfinite(angles).all():
        raise ValueError(f"base is {base}, too small for these positions: an angle is beyond what float64 can hold")
    return angles


def _check_x(x):
    check_axes("x", x, "(n, d_k)")
    if x.shape[-1] % 2:
        raise ValueError(f"x {x.shape} has d_k = {x.shape[-1]}, the last axis, but pairs of features need an even d_k")


def _positions(positions, shape):
    """positions as an array, for x of the given shape without its last axis."""
    if positions is None:
        return np.arange(shape[-1])
    positions = _cast(as_real("positions", positions), np.float64)
    if not np.isfinite(positions).all():
        raise ValueError("positions hold NaN or infinity, but must be finite")
    if positions.ndim not in (1, len(shape)):
        raise ValueError(
            f"positions {positions.shape} have {positions.ndim} axes and x without its last axis, {shape}, has "
            f"{len(shape)}: give them one (n,) or as many, for positions of each sentence (batch, 1, n)"
        )
    if positions.shape[-1] != shape[-1]:
        raise ValueError(f"there are {positions.shape[-1]} positions, but x has n = {shape[-1]}, its last axis but one")
    if any(p not in (1, s) for p, s in zip(positions.shape, shape[-positions.ndim :])):
        raise ValueError(f"positions {positions.shape} do not fit x without its last axis, {shape}: each 1 or equal")
    return positions
