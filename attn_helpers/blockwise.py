"""Attention in blocks: the same output without ever making the n_q x n_kv matrix of scores.

The scores come in tiles of some queries and some keys. Three running values of each query take a
tile in, after which it is dropped: m, the maximum of the scores so far; l, the sum of exp(score - m);
o, the sum of exp(score - m) * value. At the end o / l is the output.
"""
# ruff: noqa: E741 (the running sum is called l in the papers)

import numpy as np

from attn_helpers.arguments import as_real, as_whole
from attn_helpers.attention import (
    _add,
    _check_mask,
    _check_triple,
    _scale,
    _scores,
    _split_mask,
    _top,
    _weighted_sum,
    _wide,
)


def blockwise_attention(query, key, value, mask=None, is_causal=False, scale=None, block_size=512):
    """Weigh the values by how well their keys match each query, tile by tile.

    query       (..., n_q, d_k)
    key         (..., n_kv, d_k)
    value       (..., n_kv, d_v)
    mask        (n_q, n_kv), or one axis for each axis of the scores, each 1 or its full size.
                Boolean: True = may attend. Floating point: added to the scores after scaling.
    is_causal   True: query i may attend to keys 0..i. Combines with mask.
    scale       None stands for 1 / sqrt(d_k)
    block_size  how many queries and how many keys make a tile
    returns     output (..., n_q, d_v); there are no weights to return

    The output is that of scaled_dot_product_attention up to rounding, with its rules for what is
    hidden, NaN, empty or float16, and its errors; only scores have no limit on their size. Memory
    beyond input and output: a few tiles, whatever the leading axes and the number of tokens.
    A value above the largest float / n_kv may overflow, for o is divided only at the end.
    Raises TypeError and ValueError as scaled_dot_product_attention, and for a block_size that is
    not a whole number above 0.
    Source: Milakov, Gimelshein (2018), https://arxiv.org/abs/1805.02867, algorithm 3; Rabe, Staats
    (2021), https://arxiv.org/abs/2112.05682; Dao et al. (2022), https://arxiv.org/abs/2205.14135.
    """
    query, key, value = as_real("query", query), as_real("key", key), as_real("value", value)
    shape = _check_triple(query, key, value)
    mask = _check_mask(mask, is_causal, shape)
    scale, block_size = _scale(scale, query.shape[-1]), as_whole("block_size", block_size, 1)
    lead, n_q = shape[:-2], shape[-2]
    output = np.empty((*lead, n_q, value.shape[-1]), np.result_type(query, key, value))
    query, key, value = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (query, key, value))
    mask = None if mask is None else np.broadcast_to(mask, shape)
    with np.errstate(all="ignore"):
        for at in np.ndindex(lead):
            head = query[at], key[at], value[at], None if mask is None else mask[at]
            for rows in _blocks(n_q, block_size):
                output[at][rows] = _attend(rows, *head, is_causal, scale, block_size)
    return output


def online_softmax_step(m, l, o, s, v, allowed=None):
    """Take one tile of scores and values into the running maximum, sum and weighted sum.

    m        (n_q, 1) the largest score so far; -inf at the start
    l        (n_q, 1) sum of exp(score - m) so far; 0 at the start
    o        (n_q, d_v) sum of exp(score - m) * value so far; 0 at the start
    s        (n_q, n_kv) scores of the tile, -inf for "not allowed"; overwritten unless float16
    v        (n_kv, d_v) values of the tile
    allowed  (n_q, n_kv) boolean, None where all are: NaN or infinite values not allowed add nothing
    returns  m, l, o with the tile taken in, float16 in float32. The output so far is o / l.

    Raises ValueError for a score of +inf.
    Source: Milakov, Gimelshein (2018), algorithm 3; o as in Dao et al. (2022), algorithm 1.
    """
    s = _wide(s)
    new = np.maximum(m, _top(s, -1))  # (n_q, 1)
    top = np.where(new == -np.inf, 0, new)  # nothing allowed so far: -inf - 0, not -inf - -inf
    s -= top
    p = np.exp(s, out=s)  # (n_q, n_kv)
    c = np.exp(m - top)  # (n_q, 1), shrinks what was summed under the old maximum
    l = c * l + p @ np.ones((p.shape[1], 1), p.dtype)
    o = c * o + _weighted_sum(p, v, allowed)
    return new, l, o


def _attend(rows, q, k, v, mask, is_causal, scale, block_size):
    """The output (rows, d_v) of the queries in rows of one head."""
    n_q = rows.stop - rows.start
    m, l, o = (np.full((n_q, d), x, np.float32) for d, x in ((1, -np.inf), (1, 0), (v.shape[-1], 0)))
    seen = min(rows.stop, len(k)) if is_causal else len(k)  # later keys are in the future of every query here
    for columns in _blocks(seen, block_size):
        m, l, o = online_softmax_step(m, l, o, *_tile(rows, columns, q, k, v, mask, is_causal, scale))
    return o / np.where(l == 0, 1, l)


def _tile(rows, columns, q, k, v, mask, is_causal, scale):
    """(s, v, allowed) of some queries and some keys, as online_softmax_step takes them."""
    part, v = None if mask is None else mask[rows, columns], v[columns]
    diagonal = is_causal and rows.start == columns.start  # other tiles lie in the past of all their queries
    causal = np.tri(rows.stop - rows.start, columns.stop - columns.start, dtype=bool) if diagonal else None
    allowed, bias = _split_mask(part, causal)
    s = _scores(q[rows], k[columns], scale, np.result_type(np.float32, q, k, v), allowed)  # (rows, columns)
    if bias is not None:
        s = _add(s, bias, allowed)
    if allowed is not None:
        np.copyto(s, -np.inf, where=~allowed)
    return s, v, allowed


def _blocks(n, block_size):
    return [slice(start, min(start + block_size, n)) for start in range(0, n, block_size)]
