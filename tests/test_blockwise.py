"""Attention in blocks, against the full function, by its memory, and step by step.

"Case n" names a public bug report that the test stands for.
"""
# ruff: noqa: E741 (the running sum is called l in the papers)

import math
import tracemalloc

import common
import numpy as np
import pytest
from common import INF, LEADING_AXES, NAN, broadcasting, silent
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attn_helpers import attention, blockwise

RNG = np.random.default_rng(5)
MIB = 2**20
BLOCKS = [1, 2, 3, 5, 7, 64]  # tiles of one, uneven, whole


attend = silent(blockwise.blockwise_attention)
step = silent(blockwise.online_softmax_step)


def full(*args, **kwargs):
    """The output of the full function."""
    return attention.scaled_dot_product_attention(*args, **kwargs)[0]


def qkv(n_q=7, n_kv=11, *sizes, **options):
    """More keys than queries, in several tiles."""
    return common.qkv(n_q, n_kv, *sizes, **options)


def assert_same(ours, theirs, atol=1e-12):
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=atol, atol=atol)


def peak(function):
    """The result of the function, and how many bytes it held at most beyond it."""
    tracemalloc.start()
    try:
        result = function()
        return result, tracemalloc.get_traced_memory()[1] - result.nbytes
    finally:
        tracemalloc.stop()


# against the full function


BOOLEAN = RNG.random((2, 3, 7, 11)) < 0.6
ADDED = RNG.normal(size=BOOLEAN.shape)
MASKS = {
    "none": None,
    "boolean": BOOLEAN[0, 0],
    "boolean per head": BOOLEAN[:1],
    "boolean for all": BOOLEAN,
    "padding": BOOLEAN[:, :1, :1],
    "queries": BOOLEAN[0, 0, :, :1],
    "one for all": np.ones((1, 1), bool),
    "nothing allowed": np.zeros((1, 1), bool),
    "some rows of nothing": BOOLEAN & (np.arange(7) % 3 > 0)[:, None],
    "the first keys": np.arange(11)[None] < 4,
    "the last keys": np.arange(11)[None] > 4,
    "float": ADDED[0, 0],
    "float per batch": ADDED[:, :1],
    "float with -inf": np.where(BOOLEAN, ADDED, -INF),
    "float padding": np.where(BOOLEAN, 0, -INF)[:, :1, :1],
    "float rows": ADDED[0, 0, :, :1],
    "float of float32": ADDED[0, 0].astype(np.float32),
    "float of float16": ADDED[0, 0].astype(np.float16),
    "float of the other byte order": ADDED[0, 0].astype(">f8"),
}


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 1e-6), (np.float16, 2e-3)])
def test_the_output_is_that_of_the_full_function(name, is_causal, block_size, dtype, atol):
    # cases 1, 2: rows of nothing, from one mask or from two
    arrays = qkv(lead=(2, 3), dtype=dtype)
    options = dict(mask=MASKS[name], is_causal=is_causal)
    assert_same(attend(*arrays, **options, block_size=block_size), full(*arrays, **options), atol)


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "shape", [dict(n_q=1), dict(n_kv=1), dict(n_q=20, n_kv=3), dict(n_q=3, n_kv=20), dict(n_q=9, n_kv=9), dict(d_k=1)]
)
def test_any_numbers_of_queries_and_keys_and_any_scale(shape, is_causal, block_size):
    arrays = qkv(**shape)
    for scale in (None, -1.5, 0, 40):
        ours = attend(*arrays, is_causal=is_causal, scale=scale, block_size=block_size)
        assert_same(ours, full(*arrays, is_causal=is_causal, scale=scale))


@pytest.mark.parametrize("lead", LEADING_AXES, ids=str)
@pytest.mark.parametrize("masked", ["", "boolean", "float"])
def test_leading_axes_broadcast(lead, masked):
    query, key, value, mask = broadcasting(lead, masked, qkv)
    assert_same(attend(query, key, value, mask, block_size=4), full(query, key, value, mask))


@given(st.data())
def test_any_shape_mask_and_block_size(data):
    n_q, n_kv, d_k, d_v = (data.draw(st.integers(1, 9)) for _ in range(4))
    lead = data.draw(st.sampled_from([(), (2,), (2, 3)]))
    arrays = qkv(n_q, n_kv, d_k, d_v, lead, seed=data.draw(st.integers(0, 99)))
    shape = (*data.draw(st.sampled_from([lead, (1,) * len(lead)])), n_q, n_kv)
    added = hnp.arrays(float, shape, elements=st.sampled_from([0.0, -1.5, 2.0, -INF, 300.0, -1e300]))
    mask = data.draw(st.none() | hnp.arrays(bool, shape) | added)
    options = dict(mask=mask, is_causal=data.draw(st.booleans()), scale=data.draw(st.sampled_from([None, 0.3, 100])))
    assert_same(attend(*arrays, **options, block_size=data.draw(st.integers(1, 10))), full(*arrays, **options))


@pytest.mark.parametrize("is_causal", [False, True])
def test_equal_to_a_millionth_in_float32_at_full_size(is_causal):
    arrays = qkv(1300, 1300, 64, 64, (2,), np.float32)
    exact = full(*(a.astype(np.float64) for a in arrays), is_causal=is_causal)
    ours = attend(*arrays, is_causal=is_causal)
    np.testing.assert_allclose(ours, full(*arrays, is_causal=is_causal), rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
@pytest.mark.parametrize("top", [700.0, 1e4, 1e300])
def test_scores_beyond_exp_do_not_overflow_whatever_tile_holds_the_largest(order, top):
    # case 38: unshifted, exp overflows from 709.8 on
    query, key, value = np.ones((1, 1)), np.linspace(-top, top, 9)[::order, None], np.arange(9.0)[:, None]
    for block_size in (1, 2, 9):
        assert_same(attend(query, key, value, block_size=block_size), full(query, key, value))


def test_float16_is_computed_in_float32():
    # case 41: in float16 a running sum stops at 2048
    arrays = np.zeros((1, 1, 4)), np.zeros((1, 6000, 4)), np.ones((1, 6000, 1))
    half = [a.astype(np.float16) for a in arrays]
    assert attend(*half, block_size=1).tolist() == [[[1]]]
    query, key, value = qkv(4, 3000, 64, dtype=np.float16)
    wide = attend(*(a.astype(np.float32) for a in (query, key, value)), block_size=100)
    assert np.array_equal(attend(query, key, value, block_size=100), wide.astype(np.float16))


def test_float16_results_beyond_its_range_are_infinite_without_a_warning():
    arrays = np.zeros((1, 1), np.float16), np.zeros((2, 1), np.float32), np.full((2, 1), 6e4, np.float16)
    assert attend(*arrays).dtype == np.float32
    far = np.full((2, 64), 300, np.float16)
    assert attend(far, far, far[:, :1], block_size=1).tolist() == [[300], [300]]


@pytest.mark.parametrize("dtypes", "eee fff ddd ggg eef ffd fdf dff fed def lll bbb ffl".split())
def test_the_dtype_is_the_widest_of_the_arguments(dtypes):
    arrays = [(4 * a).astype(dtype) for a, dtype in zip(qkv(), dtypes)]
    atol = {"eee": 5e-3, "fff": 1e-5, "eef": 1e-5}.get(dtypes, 1e-12)
    assert_same(attend(*arrays, block_size=3), full(*arrays), atol)


def test_values_of_float64_are_weighed_in_float64():
    query, key, value = (a.round() for a in qkv())  # scores are exact in float32
    arrays = query.astype(np.float32), key.astype(np.float32), value
    assert_same(attend(*arrays, block_size=3), full(query, key, value))


@pytest.mark.parametrize("block_size", [1, 2, 64])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_score_that_overflows_is_an_error_only_where_a_query_may_attend(sign, block_size):
    query, key, value = np.full((2, 1), 1e200), np.array([[0], [1e200]]), np.ones((2, 1))
    with pytest.raises(ValueError, match="beyond what float64 can hold"):
        attend(query, key, value, is_causal=True, scale=sign, block_size=block_size)
    for options in (dict(is_causal=True), dict(mask=[[True, False]]), dict(mask=np.array([[0, -INF]]))):
        assert attend(query[:1], key, value, **options, scale=sign, block_size=block_size).tolist() == [[1]]


@pytest.mark.parametrize("filler", [-INF, -65504.0, float(np.finfo(np.float32).min), float(np.finfo(np.float64).min)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_float64_mask_means_the_same_to_any_scores(filler, dtype):
    arrays, mask = qkv(n_q=2, n_kv=2, dtype=dtype), np.array([[0.0, filler], [filler, filler]])
    assert_same(attend(*arrays, mask, block_size=1), full(*arrays, mask), 1e-3)


def test_lists_of_integers_are_taken_as_float64():
    arrays = [[1, 0]], [[2, 0], [0, 3]], [[10], [20]]
    assert_same(attend(*arrays, mask=[[True, True]], block_size=1), full(*arrays))


def test_strided_and_transposed_views_give_the_same_as_copies():
    base = np.random.default_rng(5).normal(size=(12, 12))
    views = base[::-3, ::3], base[::2, ::-3], base.T[:6, 1::2]
    assert_same(attend(*views, block_size=2), full(*(v.copy() for v in views)))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
@pytest.mark.parametrize("mask", [None, np.eye(7, 11) == 1, np.where(np.eye(7, 11) == 1, 0, -INF)])
def test_inputs_are_read_only_and_two_calls_are_equal(dtype, mask):
    arrays = [a.astype(dtype) for a in qkv()] + ([] if mask is None else [mask.copy()])
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    one, other = (attend(*arrays, is_causal=True, block_size=4) for _ in range(2))
    assert np.array_equal(one, other)
    assert one.flags.writeable
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before))


# hidden, NaN, infinite, empty


@pytest.mark.parametrize("block_size", [1, 2, 4, 11])
@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("place", ["key", "value", "both"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("hide", [lambda keep: keep, lambda keep: np.where(keep, 0.5, -INF)], ids=["boolean", "float"])
def test_what_a_mask_hides_cannot_leak(hide, is_causal, place, poison, block_size):
    # case 6: 0 * NaN
    query, key, value = qkv(lead=(2,))
    options = dict(mask=hide(np.arange(11)[None] != 2), is_causal=is_causal, block_size=block_size)
    clean = attend(query, key, value, **options)
    if place != "value":
        key[:, 2, 1] = poison
    if place != "key":
        value[:, 2, 3] = poison
    assert_same(attend(query, key, value, **options), clean)


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("poison", [NAN, INF, -INF])
def test_what_a_causal_mask_hides_cannot_leak_and_what_it_shows_is_not_hidden(poison, block_size):
    # case 6
    query, key, value = qkv()
    clean = attend(query, key, value, is_causal=True)
    value[3, 2] = poison
    output = attend(query, key, value, is_causal=True, block_size=block_size)
    np.testing.assert_array_equal(output[3:, 2], np.full(4, poison))
    output[3:, 2] = clean[3:, 2]
    assert_same(output, clean)


@pytest.mark.parametrize("block_size", BLOCKS)
@pytest.mark.parametrize("which", [0, 1, 2], ids=["query", "key", "value"])
@pytest.mark.parametrize("options", [{}, dict(is_causal=True), dict(mask=BOOLEAN[0, 0]), dict(mask=ADDED[0, 0])])
def test_nan_is_where_the_full_function_has_it(which, options, block_size):
    arrays = qkv(lead=(2,))
    arrays[which][1, 4, 1] = NAN
    assert np.isnan(full(*arrays, **options)).any()
    assert_same(attend(*arrays, **options, block_size=block_size), full(*arrays, **options))


@pytest.mark.parametrize("block_size", [1, 2, 64])
def test_a_query_of_nan_with_nothing_allowed_gives_zeros(block_size):
    query, key, value = qkv()
    query[0] = NAN
    output = attend(query, key, value, mask=np.arange(7)[:, None] > 0, block_size=block_size)
    assert not output[0].any()
    assert np.isfinite(output).all()


@pytest.mark.parametrize("mask", [np.array([[False] + [True] * 10]), np.array([[-INF] + [0.5] * 10])])
@pytest.mark.parametrize("block_size", [1, 2, 64])
def test_causal_and_padding_together_may_empty_a_row(mask, block_size):
    # case 2: each alone leaves query 0 a key
    output = attend(*qkv(), mask=mask, is_causal=True, block_size=block_size)
    assert not output[0].any()
    assert output[1:].all()


@pytest.mark.parametrize("block_size", [1, 2, 64])
def test_an_infinite_score_is_an_error_unless_it_is_masked(block_size):
    query, key, value = [[1.0]], [[2.0], [INF], [1.0]], [[3.0], [4.0], [5.0]]
    with pytest.raises(ValueError, match=r"a score is \+inf"):
        attend(query, key, value, block_size=block_size)
    assert_same(
        attend(query, key, value, mask=[[True, False, True]], block_size=block_size),
        full(query, key, value, mask=[[True, False, True]]),
    )


@pytest.mark.parametrize("block_size", [1, 64])
def test_scores_below_what_the_dtype_holds_are_refused_not_taken_as_hidden(block_size):
    query, key = np.full((1, 4), 3e38, np.float32), np.full((2, 4), -3e38, np.float32)
    with pytest.raises(ValueError, match="beyond what float32 can hold"):
        attend(query, key, np.ones((2, 1), np.float32), block_size=block_size)


@pytest.mark.parametrize("block_size", [1, 64])
def test_a_score_and_a_mask_whose_sum_is_beyond_the_dtype_are_refused(block_size):
    low = np.finfo(np.float32).min
    query, key, mask = np.ones((2, 1), np.float32), np.array([[low], [0]], np.float32), np.zeros((2, 2), np.float32)
    mask[1, 0] = low
    with pytest.raises(ValueError, match="a score plus the mask is beyond what float32 can hold"):
        attend(query, key, np.ones((2, 1), np.float32), mask=mask, block_size=block_size)


@pytest.mark.parametrize("options", [{}, dict(is_causal=True), dict(mask=np.ones((7, 0), bool))])
def test_no_keys_give_zeros(options):
    # case 44
    output = attend(*qkv(n_kv=0, lead=(2,)), **options)
    assert output.shape == (2, 7, 6)
    assert not output.any()


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "shape", [dict(n_q=0), dict(n_q=0, n_kv=0), dict(lead=(0,)), dict(lead=(2, 0, 3)), dict(d_v=0)], ids=str
)
def test_what_is_empty_gives_an_empty_output(shape, is_causal):
    # case 44
    arrays = qkv(**shape)
    assert_same(attend(*arrays, is_causal=is_causal, block_size=2), full(*arrays, is_causal=is_causal))


# the step


def test_the_step_by_hand():
    # scores 0 and ln 3, then ln 4 and ln 8: weights 1, 3, 4, 8 of 16
    m, l, o = np.full((1, 1), -INF), np.zeros((1, 1)), np.zeros((1, 1))
    m, l, o = step(m, l, o, np.log([[1.0, 3.0]]), np.array([[16.0], [32.0]]))
    np.testing.assert_allclose([m, l, o], [[[math.log(3)]], [[4 / 3]], [[112 / 3]]])
    m, l, o = step(m, l, o, np.log([[4.0, 8.0]]), np.array([[2.0], [1.0]]))
    np.testing.assert_allclose([m, l, o], [[[math.log(8)]], [[2.0]], [[16.0]]])


@given(st.integers(0, 99), st.integers(1, 9))
def test_after_each_step_the_output_so_far_is_attention_to_the_keys_so_far(seed, block_size):
    query, key, value = qkv(seed=seed)
    m, l, o = np.full((7, 1), -INF), np.zeros((7, 1)), np.zeros((7, 6))
    for start in range(0, 11, block_size):
        tile = slice(start, start + block_size)
        m, l, o = step(m, l, o, attention.scores(query, key[tile]), value[tile])
        seen = key[: tile.stop], value[: tile.stop]
        s = attention.scores(query, seen[0])
        np.testing.assert_allclose(m, s.max(-1, keepdims=True), rtol=0, atol=1e-14)
        np.testing.assert_allclose(l, np.exp(s - m).sum(-1, keepdims=True), rtol=1e-12)
        np.testing.assert_allclose(o / l, full(query, *seen), rtol=1e-10, atol=1e-12)


def test_a_step_with_nothing_allowed_changes_nothing():
    before = np.array([[2.0], [-INF]]), np.array([[3.0], [0.0]]), np.array([[5.0, 6.0], [0.0, 0.0]])
    after = step(*(a.copy() for a in before), np.full((2, 3), -INF), np.full((3, 2), NAN), np.zeros((2, 3), bool))
    for one, other in zip(after, before):
        assert np.array_equal(one, other)


def test_a_step_of_float16_is_summed_in_float32():
    # case 41: in float16 a sum of ones stops at 2048
    m, l, o = (np.array([[x]], np.float16) for x in (-INF, 0, 0))
    for _ in range(3):
        m, l, o = step(m, l, o, np.zeros((1, 1001), np.float16), np.ones((1001, 1), np.float16))
    assert (m, l, o) == (0, 3003, 3003)
    assert {a.dtype for a in (m, l, o)} == {np.dtype(np.float32)}


# errors


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (dict(query=None), TypeError, "query"),
        (dict(key="abc"), TypeError, "key"),
        (dict(value=[[True]]), TypeError, "value"),
        (dict(query=np.zeros(4)), ValueError, r"query .*\(n_q, d_k\)"),
        (dict(key=np.zeros((11, 3))), ValueError, "d_k"),
        (dict(value=np.zeros((10, 6))), ValueError, "n_kv"),
        (dict(query=np.zeros((2, 7, 4)), key=np.zeros((3, 11, 4))), ValueError, "do not broadcast"),
        (dict(mask=np.ones((7, 11), int)), TypeError, "mask"),
        (dict(mask=np.ones((11, 7), bool)), ValueError, "mask"),
        (dict(mask=np.ones((1, 7, 11), bool)), ValueError, "mask .*3 axes.*2"),
        (dict(mask=np.full((7, 11), INF)), ValueError, "mask"),
        (dict(mask=np.where(np.eye(7, 11, 4) == 1, INF, 0), is_causal=True), ValueError, "mask"),
        (dict(mask=np.where(np.eye(7, 11) == 1, NAN, 0)), ValueError, "mask holds NaN"),
        (dict(mask=np.where(np.eye(7, 11) == 1, INF, NAN)), ValueError, "mask"),
        (dict(query=np.full((7, 4), 1e308), scale=9), ValueError, "beyond what float64"),
        (dict(is_causal=0.0), TypeError, "is_causal"),
        (dict(scale=NAN), ValueError, "scale"),
        (dict(scale="1"), TypeError, "scale"),
    ],
)
def test_errors_are_those_of_the_full_function(change, error, match):
    arguments = dict(zip(("query", "key", "value"), qkv())) | change
    with pytest.raises(error, match=match) as ours:
        attend(**arguments)
    with pytest.raises(error) as theirs:
        full(**arguments)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("block_size", "error"),
    [(0, ValueError), (-3, ValueError), (2.0, TypeError), (None, TypeError), ("4", TypeError), (True, TypeError)],
)
def test_a_block_size_that_is_not_a_whole_number_above_zero_is_refused(block_size, error):
    with pytest.raises(error, match=f"block_size is {block_size!r}"):
        attend(*qkv(), block_size=block_size)


@pytest.mark.parametrize("block_size", [np.int8(3), np.uint64(3), np.array(3), 2**62], ids=repr)
def test_a_block_size_may_be_any_whole_number(block_size):
    assert_same(attend(*qkv(), block_size=block_size), full(*qkv()))


# memory and time


KEEP = np.random.default_rng(1).random((2048, 2048)) < 0.7
LARGE_MASKS = {
    "none": None,
    "boolean": KEEP,
    "boolean per head": np.broadcast_to(KEEP, (8, 2048, 2048)),
    "padding": np.arange(2048)[None] < 1500,
    "float32": np.where(KEEP, np.float32(0.5), np.float32(-INF)),
    "float64": np.where(KEEP, 0.5, -INF),
}


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("name", LARGE_MASKS)
def test_memory_beyond_input_and_output_is_at_most_4_mib(name, is_causal):
    arrays = qkv(2048, 2048, 64, 64, (8,), np.float32)
    _, extra = peak(lambda: blockwise.blockwise_attention(*arrays, LARGE_MASKS[name], is_causal))
    assert extra <= 4 * MIB


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("mask_dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_stays_at_4_mib_with_a_float_mask_and_nan_in_what_it_hides(dtype, mask_dtype, is_causal):
    query, key, value = qkv(2048, 2048, 64, 64, (2,), dtype)
    mask = np.where(KEEP, mask_dtype(0.5), mask_dtype(-INF))
    mask[:, 2040:] = -INF
    key[:, 2040:] = value[:, 2040:] = NAN
    output, extra = peak(lambda: blockwise.blockwise_attention(query, key, value, mask, is_causal))
    assert extra <= 4 * MIB
    assert np.isfinite(output).all()


def test_the_full_function_takes_over_100_mib_for_the_same():
    arrays = qkv(2048, 2048, 64, 64, (8,), np.float32)
    output, extra = peak(lambda: full(*arrays))
    assert extra > 100 * MIB
    np.testing.assert_allclose(attend(*arrays), output, rtol=0, atol=1e-6)


def test_20000_tokens_need_no_more_memory():
    # case 47: 8 heads of 20,000 x 20,000 in float32 would be 12.8 GB
    arrays = qkv(20_000, 20_000, 16, 16, (8,), np.float32)
    with pytest.raises(MemoryError):
        full(*arrays)
    query, key, value = (a[:1] for a in arrays)
    output, extra = peak(lambda: attend(query, key, value, is_causal=True))
    assert extra <= 4 * MIB
    some = [0, 1, 511, 512, 10_000, 19_999]
    mask = np.arange(20_000) <= np.array(some)[:, None]
    np.testing.assert_allclose(output[:, some], full(query[:, some], key, value, mask), rtol=0, atol=1e-6)


def test_20000_keys_in_all_8_heads_for_some_queries():
    # case 47
    query, key, value = qkv(100, 20_000, 16, 16, (8,), np.float32)
    output, extra = peak(lambda: attend(query, key, value))
    assert extra <= 4 * MIB
    np.testing.assert_allclose(output[:, ::30], full(query[:, ::30], key, value), rtol=0, atol=1e-6)


def test_the_size_of_the_scores_has_no_limit(monkeypatch):
    monkeypatch.setattr(attention, "MAX_SCORE_BYTES", 0)
    assert attend(*qkv(), block_size=2).shape == (7, 6)


def test_tiles_in_the_future_are_never_made(monkeypatch):
    made = []

    def scores(query, key, *options):
        made.append(query.shape[-2] * key.shape[-2])
        return attention._scores(query, key, *options)

    monkeypatch.setattr(blockwise, "_scores", scores)
    arrays = qkv(64, 64)
    attend(*arrays, block_size=8)
    assert sum(made) == 64 * 64
    made.clear()
    attend(*arrays, is_causal=True, block_size=8)
    assert made == [64] * (8 * 9 // 2)


def test_tiles_are_of_512_queries_and_512_keys_unless_told(monkeypatch):
    made = []

    def scores(query, key, *options):
        made.append((len(query), len(key)))
        return attention._scores(query, key, *options)

    monkeypatch.setattr(blockwise, "_scores", scores)
    attend(*qkv(513, 514))
    assert made == [(512, 512), (512, 2), (1, 512), (1, 2)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_running_values_are_of_float32_for_float16_and_float32(monkeypatch, dtype):
    seen = set()

    def one_step(m, l, o, *tile):
        seen.update(a.dtype for a in (m, l, o))
        return step(m, l, o, *tile)

    monkeypatch.setattr(blockwise, "online_softmax_step", one_step)
    attend(*qkv(dtype=dtype), block_size=3)
    assert seen == {np.dtype(np.float32)}
