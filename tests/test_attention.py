"""The maths, against SciPy, against loops in plain Python, and by its own laws.

"Case n" names a public bug report that the test stands for.
"""

import fractions
import math
import tracemalloc

import numpy as np
import pytest
import scipy.special
import scipy.stats
from common import INF, LEADING_AXES, NAN, broadcasting, qkv, silent
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attn_helpers import attention

RNG = np.random.default_rng(7)
TINY = [5e-324, 1e-320, 1e-310, 1e-46, 1e-45, 1e-40, 1e-30]  # subnormal for float64, then for float32
HUGE = [1e30, 3e38, 1e39, 1e300, 1.7e308]  # beyond float32's range from 1e39
EPS = {np.float64: 1e-12, np.float32: 1e-5, np.float16: 2e-3}


softmax = silent(attention.softmax)
scores = silent(attention.scores)
attend = silent(attention.scaled_dot_product_attention)
entropy = silent(attention.entropy)


def loop(query, key, value, mask=None, is_causal=False, scale=None):
    """Attention for one head in plain Python, number by number: (output, weights) as lists."""
    scale = 1 / math.sqrt(len(query[0])) if scale is None else scale
    output, weights = [], []
    for i, q in enumerate(query):
        row = []
        for j, k in enumerate(key):
            score = scale * sum(a * b for a, b in zip(q, k))
            if mask is not None:
                score = (score if mask[i][j] else -INF) if isinstance(mask[i][j], bool) else score + mask[i][j]
            row.append(-INF if is_causal and j > i else score)
        powers = [math.exp(s - max(row)) if s > -INF else 0.0 for s in row]
        weights.append([p / sum(powers) if sum(powers) else 0.0 for p in powers])
        output.append([sum(w * v[c] for w, v in zip(weights[-1], value)) for c in range(len(value[0]))])
    return output, weights


def loop_all(query, key, value, mask=None, **options):
    """`loop` for each index of the leading axes."""
    lead = np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    n_q, n_kv = query.shape[-2], key.shape[-2]
    query, key, value = (np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (query, key, value))
    output, weights = np.empty((*lead, n_q, value.shape[-1])), np.empty((*lead, n_q, n_kv))
    mask = None if mask is None else np.broadcast_to(mask, weights.shape)
    for at in np.ndindex(lead):
        one = None if mask is None else mask[at].tolist()
        output[at], weights[at] = loop(query[at].tolist(), key[at].tolist(), value[at].tolist(), one, **options)
    return output, weights


def assert_same(result, expected, rtol=1e-12, atol=1e-14):
    """Equal output and equal weights."""
    for ours, theirs in zip(result, expected):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def rows(low=-40.0, high=40.0, dtype=np.float64, masked=True, max_n=8):
    """Strategy: (rows, n) scores on a grid of 1/8, so that sums and ties are exact; some -inf."""
    number = st.integers(int(low * 8), int(high * 8)).map(lambda i: i / 8)
    element = st.one_of(number, number, number, st.just(-INF)) if masked else number
    return hnp.arrays(dtype, st.tuples(st.integers(1, 4), st.integers(1, max_n)), elements=element)


temperatures = st.floats(1e-3, 1e3)


# softmax


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_softmax_agrees_with_scipy_on_every_axis(dtype, axis):
    s = np.random.default_rng(7).normal(scale=20, size=(3, 4, 5)).astype(dtype)
    ours = softmax(s, axis=axis)
    assert ours.dtype == dtype
    tiny, single = np.finfo(dtype).tiny, dtype == np.float32
    np.testing.assert_allclose(ours, scipy.special.softmax(s, axis=axis), rtol=1e-5 if single else 1e-13, atol=tiny)
    logs = s.astype(np.float64) - scipy.special.logsumexp(s.astype(np.float64), axis=axis, keepdims=True)
    np.testing.assert_allclose(ours, np.exp(logs), rtol=1e-4 if single else 1e-12, atol=tiny)


def test_softmax_of_logarithms_is_their_share():
    np.testing.assert_allclose(softmax(np.log([[1, 2, 5], [4, 3, 1]])), [[1 / 8, 2 / 8, 5 / 8], [1 / 2, 3 / 8, 1 / 8]])


def test_softmax_runs_over_the_last_axis_by_default():
    # case 23: softmax over the wrong axis; not square, so that row and column sums differ
    weights = softmax([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]])
    np.testing.assert_allclose(weights.sum(axis=-1), [1, 1])
    assert not np.allclose(weights.sum(axis=0), 1)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float64, 1e3), (np.float64, 1e300), (np.float32, 1e38), (np.float16, 6e4)]
)
def test_softmax_does_not_overflow(dtype, size):
    # case 38: without the maximum subtracted, exp overflows from 709.8, 88.8 and 11.1 on
    assert softmax(np.array([size, size, -size, 0], dtype)).tolist() == [0.5, 0.5, 0, 0]


@given(rows(), temperatures)
def test_softmax_rows_sum_to_one_or_have_nothing_allowed(s, temperature):
    weights = softmax(s, temperature=temperature)
    np.testing.assert_allclose(weights.sum(axis=-1), np.any(s > -INF, axis=-1), rtol=1e-12)
    assert (weights >= 0).all()
    assert (weights[s == -INF] == 0).all()


@given(rows(), st.integers(-1000, 1000))
def test_softmax_ignores_a_constant_added_to_all_scores(s, shift):
    assert np.array_equal(softmax(s + shift), softmax(s))


@given(rows(), st.randoms(use_true_random=False), temperatures)
def test_softmax_commutes_with_a_permutation(s, random, temperature):
    order = random.sample(range(s.shape[1]), s.shape[1])
    np.testing.assert_allclose(softmax(s[:, order], temperature=temperature), softmax(s, -1, temperature)[:, order])


@given(rows(masked=False), temperatures)
def test_softmax_keeps_the_order_and_gives_ties_the_same_weight(s, temperature):
    for row, weights in zip(s, softmax(s, temperature=temperature)):
        order = np.argsort(row, kind="stable")
        assert (np.diff(weights[order]) >= 0).all()
        assert (np.diff(weights[order])[np.diff(row[order]) == 0] == 0).all()


@given(rows(), temperatures)
def test_softmax_divides_the_scores_by_the_temperature(s, temperature):
    np.testing.assert_allclose(softmax(s, temperature=temperature), softmax(s / temperature), rtol=1e-8, atol=1e-300)


@given(rows(), temperatures, temperatures)
def test_softmax_gets_flatter_as_the_temperature_rises(s, one, other):
    cold, hot = (softmax(s, temperature=t).max(axis=-1) for t in sorted([one, other]))
    assert (cold >= hot - 1e-12).all()


@given(rows(), st.sampled_from([0, -0.0, *TINY]))
def test_softmax_at_temperature_zero_is_the_maximum_shared_by_ties(s, temperature):
    # case 81: at temperature 0 NaN, and so at temperatures that float32 rounds to 0
    best = (s == s.max(axis=-1, keepdims=True)) & (s > -INF)
    expected = best / np.maximum(best.sum(axis=-1, keepdims=True), 1)
    for dtype in (np.float32, np.float64):
        np.testing.assert_allclose(softmax(s.astype(dtype), temperature=temperature), expected, rtol=1e-6)


@given(rows(), st.sampled_from([INF, *HUGE]), st.sampled_from([np.float64, np.float32]))
def test_softmax_at_infinite_temperature_is_uniform_over_what_is_allowed(s, temperature, dtype):
    allowed = s > -INF
    expected = allowed / np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
    np.testing.assert_allclose(softmax(s.astype(dtype), temperature=temperature), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_softmax_at_infinite_temperature_is_uniform_even_for_the_largest_scores(dtype):
    top = np.finfo(dtype).max
    assert softmax(np.array([top, -top, -INF], dtype), temperature=INF).tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("temperature", [-1, -1e-300, -INF, NAN])
def test_softmax_refuses_a_temperature_below_zero(temperature):
    # case 81: a negative temperature silently turns the order round
    with pytest.raises(ValueError, match="temperature"):
        softmax([1.0, 2.0], temperature=temperature)


NOT_NUMBERS = [None, "1", b"1", bytearray(b"1"), [1.0], [1.0, 2.0], 1j, np.complex128(1), np.timedelta64(3, "s"), True]


@pytest.mark.parametrize(
    "temperature", [*NOT_NUMBERS, np.True_, np.array([2.0]), np.array(1j), np.array("1")], ids=repr
)
def test_softmax_refuses_a_temperature_that_is_not_one_number(temperature):
    with pytest.raises(TypeError, match="temperature"):
        softmax([1.0, 2.0], temperature=temperature)


@pytest.mark.parametrize(
    "temperature", [2, np.float32(2), np.int8(2), np.longdouble(2), fractions.Fraction(2), np.array(2.0)], ids=repr
)
def test_softmax_takes_any_kind_of_single_number_as_temperature(temperature):
    assert np.array_equal(softmax([1.0, 2.0], temperature=temperature), softmax([0.5, 1.0]))


@pytest.mark.parametrize("digits", [400, 5000])
def test_softmax_refuses_a_whole_number_beyond_any_float_by_name(digits):
    with pytest.raises(TypeError, match="temperature is beyond what float64 can hold"):
        softmax([1.0, 2.0], temperature=10**digits)


@pytest.mark.parametrize("temperature", [0, 1e-310, 1, 1e300, INF])
def test_softmax_of_nothing_allowed_is_all_zeros(temperature):
    weights = softmax([[-INF, -INF], [-INF, 3.0]], temperature=temperature)
    assert weights.tolist() == [[0, 0], [0, 1]]


@pytest.mark.parametrize("temperature", [0, 1, INF])
def test_softmax_keeps_nan_in_its_own_slice(temperature):
    s = np.array([[1.0, NAN, 2.0], [4.0, -INF, 4.0]])
    assert np.isnan(softmax(s, temperature=temperature)[0]).all()
    assert softmax(s, temperature=temperature)[1].tolist() == [0.5, 0, 0.5]
    assert np.isnan(softmax(s.T, axis=0, temperature=temperature)[:, 0]).all()


def test_softmax_refuses_plus_infinity():
    # case 38: NaN in every peer
    with pytest.raises(ValueError, match=r"\+inf"):
        softmax([[0.0, 1.0], [INF, 0.0]])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_softmax_of_an_empty_array_is_empty(shape):
    # case 44: "zero-size array to reduction"
    assert softmax(np.zeros(shape)).shape == shape


@pytest.mark.parametrize("axis", [0, -1])
def test_softmax_of_one_position_is_one(axis):
    assert softmax([-7.0], axis=axis).tolist() == [1]


def test_softmax_computes_float16_in_float32():
    # case 41: a running sum in float16 stops at 2048
    assert (softmax(np.zeros(4096, np.float16)) == np.float16(1 / 4096)).all()
    s = np.random.default_rng(7).normal(scale=4, size=(5, 50)).astype(np.float16)
    assert np.array_equal(softmax(s), softmax(s.astype(np.float32)).astype(np.float16))


def test_softmax_lets_float16_weights_underflow_silently():
    assert softmax(np.array([0, -30], np.float16)).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_softmax_keeps_the_dtype_of_real_numbers(dtype):
    assert softmax(np.array([1, 2], dtype)).dtype == dtype


@pytest.mark.parametrize("s", [[1, 2, 4], np.array([1, 2, 4], np.uint8), np.array([1, 2, 4], ">i4"), range(1, 5, 1)])
def test_softmax_takes_lists_and_integers_as_float64(s):
    # cases 42, 43: integers truncated, lists without a shape
    assert softmax(s).dtype == np.float64
    assert np.array_equal(softmax(s), softmax(np.array(list(s), float)))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "abc",
        [1.0, None],
        ["1", "2"],
        {1: 2},
        np.array([True, False]),
        np.array([1j]),
        np.array([1, 2], object),
        np.array(["2026"], "datetime64[Y]"),
        np.array([1], "timedelta64[s]"),
        np.zeros(2, [("a", float)]),
    ],
    ids=repr,
)
@pytest.mark.parametrize(("name", "function"), [("scores", softmax), ("weights", entropy)])
def test_what_is_not_real_numbers_is_refused_by_name(name, function, bad):
    with pytest.raises(TypeError, match=name):
        function(bad)


@pytest.mark.parametrize(("name", "function"), [("scores", softmax), ("weights", entropy)])
def test_a_ragged_list_is_refused_by_name(name, function):
    with pytest.raises(ValueError, match=name):
        function([[1.0], [0.5, 0.5]])


@pytest.mark.parametrize("function", [softmax, entropy])
@pytest.mark.parametrize(
    ("axis", "error"), [(2, ValueError), (-3, ValueError), (None, TypeError), ((0, 1), TypeError), (0.5, TypeError)]
)
def test_an_axis_that_is_not_there_is_refused_by_name(function, axis, error):
    with pytest.raises(error, match="axis"):
        function(np.full((2, 2), 0.5), axis=axis)


@pytest.mark.parametrize("function", [softmax, entropy])
def test_a_single_number_has_no_axis_to_sum_over(function):
    with pytest.raises(ValueError, match="0 axes"):
        function(1.0)


# scores


def test_scores_are_scaled_dot_products_of_queries_with_keys():
    query, key = [[1.0, 2.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]], [[4.0, 1.0, 5.0, 2.0]]
    assert scores(query, key).tolist() == [[4.0], [2.5]]
    assert scores(query, key, scale=1).tolist() == [[8.0], [5.0]]
    assert scores(query, key, scale=0).tolist() == [[0.0], [0.0]]


def test_scores_have_a_row_for_each_query_and_a_column_for_each_key():
    # case 53: queries and keys swapped on the map
    query, key, _ = qkv(n_q=2, n_kv=3)
    assert scores(query, key).shape == (2, 3)
    np.testing.assert_allclose(scores(query, key)[1, 2], query[1] @ key[2] / 2)


def test_scores_divide_by_the_root_of_the_width_of_one_head():
    # case 17: sqrt(d_model) = 8 instead of sqrt(d_k) = 4, which one head cannot show
    query, key, _ = qkv(n_q=2, n_kv=3, d_k=16, lead=(4,))
    np.testing.assert_allclose(scores(query, key) * 4, np.einsum("hqd,hkd->hqk", query, key))


@pytest.mark.parametrize("d_k", [1, 16, 256])
def test_scores_of_unit_variance_vectors_have_unit_variance(d_k):
    # case 19: a scale of d_k ** -0.5 divided by, not multiplied with
    query, key, _ = qkv(n_q=400, n_kv=400, d_k=d_k)
    assert scores(query, key).var() == pytest.approx(1, rel=0.15)


def test_unscaled_scores_have_variance_d_k_times_sigma_to_the_fourth():
    # case 22: sigma squared taken for sigma to the fourth; 2 ** 4 * 64 = 1024, not 256
    query, key, _ = qkv(n_q=400, n_kv=400, d_k=64)
    assert scores(2 * query, 2 * key, scale=1).var() == pytest.approx(1024, rel=0.15)


def test_the_scale_may_be_split_between_query_and_key():
    # case 21: d_k ** -0.25 on both is d_k ** -0.5 on the product
    query, key, _ = qkv(d_k=16)
    np.testing.assert_allclose(scores(query * 16**-0.25, key * 16**-0.25, scale=1), scores(query, key))


def test_scores_broadcast_leading_axes():
    query, key, _ = qkv(lead=(2, 3))
    together = scores(query, key[:, :1])
    for b, h in np.ndindex(2, 3):
        np.testing.assert_allclose(together[b, h], scores(query[b, h], key[b, 0]))


def test_scores_of_float16_are_computed_in_float32():
    # case 41: float16 stops counting at 2048
    ones = np.ones((1, 4096), np.float16)
    assert scores(ones, ones, scale=1).tolist() == [[4096]]
    assert scores(300 * ones, 300 * ones, scale=1e-6)[0, 0] == np.float16(
        368.64
    )  # the sum before scaling is beyond 65504
    assert scores(ones, ones).dtype == np.float16


def test_scores_beyond_float16_are_infinite_without_a_warning():
    far = np.full((1, 4), 300, np.float16)
    assert scores(far, far).tolist() == [[INF]]
    assert scores(far, -far).tolist() == [[-INF]]


@pytest.mark.parametrize("scale", [NAN, INF, -INF])
def test_a_scale_that_is_not_finite_is_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        scores([[1.0]], [[1.0]], scale=scale)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1e300), (np.float32, -1e39), (np.float16, 1e39)])
def test_a_scale_that_is_not_finite_in_the_dtype_of_the_scores_is_refused(dtype, scale):
    query, key, value = qkv(dtype=dtype)
    for function in (lambda: scores(query, key, scale), lambda: attend(query, 0 * key, value, scale=scale)):
        with pytest.raises(ValueError, match=r"scale is .*, but must be finite in float32"):
            function()
    assert attend(query, 0 * key, value.astype(float), scale=scale)[1][0, 0] == 0.2


@pytest.mark.parametrize("scale", NOT_NUMBERS[1:], ids=repr)
def test_a_scale_that_is_not_one_number_is_refused(scale):
    with pytest.raises(TypeError, match="scale"):
        scores([[1.0]], [[1.0]], scale=scale)


# attention, values


def test_attention_by_hand():
    # query . key = 0 and ln 3, so the weights are 1/4 and 3/4
    output, weights = attend([[1.0]], [[0.0], [math.log(3)]], [[8.0, 0.0], [0.0, 4.0]])
    assert_same((output, weights), ([[2.0, 3.0]], [[0.25, 0.75]]))


CASES = {
    "one head": dict(shape={}),
    "n_q > n_kv": dict(shape=dict(n_q=6, n_kv=2)),  # case 30: cross-attention
    "d_k = 1": dict(shape=dict(d_k=1)),
    "one key": dict(shape=dict(n_kv=1)),
    "batch and heads": dict(shape=dict(lead=(2, 3))),
    "many leading axes": dict(shape=dict(lead=(2, 1, 3, 2))),
    "scale": dict(shape={}, scale=-1.5),
    "scale 0": dict(shape={}, scale=0),
    "causal": dict(shape=dict(lead=(2, 3)), is_causal=True),
    "causal, n_q > n_kv": dict(shape=dict(n_q=6, n_kv=2), is_causal=True),
    "boolean mask": dict(shape=dict(lead=(2, 3)), mask=RNG.random((3, 5)) < 0.6),
    "boolean mask per head": dict(shape=dict(lead=(2, 3)), mask=RNG.random((1, 3, 3, 5)) < 0.6),
    "padding mask": dict(shape=dict(lead=(2, 3)), mask=RNG.random((2, 1, 1, 5)) < 0.6),
    "mask of queries": dict(shape=dict(lead=(2, 3)), mask=RNG.random((3, 1)) < 0.6),
    "float mask": dict(shape=dict(lead=(2, 3)), mask=RNG.normal(scale=3, size=(3, 5))),
    "float mask per head": dict(shape=dict(lead=(2, 3)), mask=RNG.normal(scale=3, size=(1, 3, 3, 5))),
    "float mask with -inf": dict(shape={}, mask=np.where(RNG.random((3, 5)) < 0.6, 1.5, -INF)),
    "boolean mask and causal": dict(shape=dict(lead=(2, 3)), mask=RNG.random((2, 3, 3, 5)) < 0.6, is_causal=True),
    "float mask and causal": dict(shape=dict(lead=(2, 3)), mask=RNG.normal(size=(3, 5)), is_causal=True, scale=0.3),
}


@pytest.mark.parametrize("name", CASES)
def test_attention_agrees_with_the_plain_loop(name):
    # case 52: each option alone and with the others
    options = dict(CASES[name])
    arrays = qkv(**options.pop("shape"))
    assert_same(attend(*arrays, **options), loop_all(*arrays, **options))


@pytest.mark.parametrize("lead", LEADING_AXES, ids=str)
@pytest.mark.parametrize("masked", ["", "boolean", "float"])
def test_leading_axes_broadcast(lead, masked):
    query, key, value, mask = broadcasting(lead, masked)
    output, weights = attend(query, key, value, mask)
    expected = loop_all(query, key, value, mask)
    assert output.shape == expected[0].shape
    assert_same((output, np.broadcast_to(weights, expected[1].shape)), expected)


@given(st.data())
def test_attention_of_any_shape_and_mask_agrees_with_the_plain_loop(data):
    n_q, n_kv, d_k, d_v = (data.draw(st.integers(1, 4)) for _ in range(4))
    lead = data.draw(st.sampled_from([(), (2,), (2, 3)]))
    arrays = qkv(n_q, n_kv, d_k, d_v, lead, seed=data.draw(st.integers(0, 99)))
    shape = (*data.draw(st.sampled_from([lead, (1,) * len(lead)])), n_q, n_kv)
    added = hnp.arrays(float, shape, elements=st.sampled_from([0.0, -1.5, 2.0, -INF]))
    mask = data.draw(st.none() | hnp.arrays(bool, shape) | added)
    options = dict(mask=mask, is_causal=data.draw(st.booleans()))
    assert_same(attend(*arrays, **options), loop_all(*arrays, **options))


def test_weights_of_a_query_sum_to_one_and_output_is_their_weighted_mean():
    # cases 23, 53: rows are queries
    query, key, value = qkv(n_q=2, n_kv=3)
    output, weights = attend(query, key, value)
    assert weights.shape == (2, 3)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    np.testing.assert_allclose(output, weights @ value)
    np.testing.assert_allclose(weights, softmax(scores(query, key)))


@given(st.permutations(range(5)))
def test_the_order_of_keys_and_values_does_not_matter(order):
    query, key, value = qkv()
    expected_output, expected_weights = attend(query, key, value)
    assert_same(attend(query, key[order], value[order]), (expected_output, expected_weights[:, order]))


@given(st.permutations(range(4)))
def test_self_attention_commutes_with_a_permutation_of_its_sequence(order):
    x = qkv(n_q=4)[0]
    output, weights = attend(x, x, x)
    assert_same(attend(x[order], x[order], x[order]), (output[order], weights[np.ix_(order, order)]))


@given(st.integers(1, 5), st.integers(0, 99))
def test_a_causal_prefix_does_not_see_what_follows(n, seed):
    # case 32: with no cache yet, the first n of 5 queries are the run on n tokens alone
    query, key, value = qkv(n_q=5, seed=seed)
    whole, _ = attend(query, key, value, is_causal=True)
    alone, _ = attend(query[:n], key[:n], value[:n], is_causal=True)
    np.testing.assert_allclose(whole[:n], alone, rtol=1e-12)


def test_one_new_query_with_all_keys_is_the_last_row_of_the_causal_run():
    # case 32: past 3, one new token: it sees 4 keys
    query, key, value = qkv(n_q=4, n_kv=4)
    whole = attend(query, key, value, is_causal=True)
    assert_same(attend(query[-1:], key, value), [whole[0][-1:], whole[1][-1:]])


def test_two_calls_are_equal():
    # case 46: dropout that never switches off
    arrays = qkv(lead=(2,))
    for one, other in zip(attend(*arrays, is_causal=True), attend(*arrays, is_causal=True)):
        assert np.array_equal(one, other)
        assert not np.shares_memory(one, other)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64])
@pytest.mark.parametrize("mask", [None, np.eye(3, 5) == 1, np.where(np.eye(3, 5) == 1, 0, -INF)])
def test_inputs_are_read_only_to_attention(dtype, mask):
    arrays = [a.astype(dtype) for a in qkv()] + ([] if mask is None else [mask.copy()])
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    for result in attend(*arrays, is_causal=True):
        assert result.flags.writeable
        assert not any(np.shares_memory(result, a) for a in arrays)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, before))


@pytest.mark.parametrize("function", [softmax, entropy, lambda w: scores(w, w)], ids=["softmax", "entropy", "scores"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_other_functions_leave_their_input_alone_too(function, dtype):
    given = np.array([[0.25, 0.75], [1, 0]], dtype)
    given.flags.writeable = False
    result = function(given)
    assert given.tolist() == [[0.25, 0.75], [1, 0]]
    assert not np.shares_memory(result, given)


def test_strided_and_transposed_views_give_the_same_as_copies():
    base = np.random.default_rng(7).normal(size=(12, 12))
    views = base[::-3, ::3], base[::2, ::-3], base.T[:6, 1::2]
    assert_same(attend(*views), attend(*(v.copy() for v in views)))


# attention, masks


def test_true_in_a_mask_means_may_attend():
    # cases 7, 8: polarity; the mask is not symmetric under inversion
    query, key, value = qkv(n_q=1, n_kv=3)
    _, weights = attend(query, key, value, mask=np.array([[True, True, False]]))
    assert weights[0, 2] == 0
    assert (weights[0, :2] > 0).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_masked_key_has_weight_exactly_zero_however_low_the_other_scores(dtype):
    # cases 10, 12, 50: -1e9 or +1e-9 as "minus infinity"; a real score may lie below any finite fill
    query, key = np.array([[-200]], dtype), np.array([[250], [1]], dtype)
    output, weights = attend(query, key, np.array([[3], [5]], dtype), mask=np.array([[True, False]]), scale=1e30)
    assert weights.tolist() == [[1, 0]]
    assert output.tolist() == [[3]]


def test_a_mask_is_applied_before_softmax():
    # case 14: masked after softmax, rows no longer sum to 1
    _, weights = attend(*qkv(n_q=3, n_kv=3), is_causal=True)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert (weights[np.triu_indices(3, k=1)] == 0).all()


def test_masking_is_multiplying_the_weights_and_renormalising():
    # case 15
    query, key, value = qkv()
    mask = np.array([True, False, True, True, False])
    _, free = attend(query, key, value)
    _, masked = attend(query, key, value, mask=mask[None])
    np.testing.assert_allclose(masked, free * mask / (free * mask).sum(axis=-1, keepdims=True))


def test_a_finite_float_mask_is_added_after_scaling():
    # case 16: scaled with the scores, a bias of -10 shrinks to -1.25 at d_k = 64; 0 and -inf cannot show it
    zeros = np.zeros((1, 64)), np.zeros((2, 64)), np.zeros((2, 1))
    _, weights = attend(*zeros, mask=np.array([[0.0, -10.0]]))
    assert weights[0, 1] / weights[0, 0] == pytest.approx(math.exp(-10))


def test_boolean_mask_equals_float_mask_of_zero_and_minus_infinity():
    arrays = qkv(lead=(2, 3))
    mask = np.random.default_rng(7).random((3, 5)) < 0.5
    assert_same(attend(*arrays, mask), attend(*arrays, np.where(mask, 0.0, -INF)), rtol=0, atol=0)


@pytest.mark.parametrize("filler", [-INF, -65504.0, float(np.finfo(np.float32).min), float(np.finfo(np.float64).min)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_float64_mask_means_the_same_to_any_scores(filler, dtype):
    # a finite fill hides nothing where it stands everywhere, not even the one that float32 rounds to -inf
    arrays = qkv(n_q=2, n_kv=2, dtype=dtype)
    _, weights = attend(*arrays, mask=np.array([[0.0, filler], [filler, filler]]))
    assert weights[0].tolist() == [1, 0]
    assert weights[1].sum() == pytest.approx(0 if filler == -INF else 1, abs=1e-3)


def test_causal_is_aligned_at_the_first_position():
    # case 31: n_q = 2, n_kv = 5 lets the queries see 1, then 2 keys (not 4, then 5)
    _, weights = attend(*qkv(n_q=2, n_kv=5), is_causal=True)
    assert (weights > 0).astype(int).tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]


def test_causal_includes_the_diagonal():
    # case 33: triu(k=1) or tril
    _, weights = attend(*qkv(n_q=3, n_kv=3), is_causal=True)
    assert ((weights > 0) == np.tril(np.ones((3, 3), bool))).all()


@pytest.mark.parametrize("mask", [np.zeros((3, 5), bool), np.full((3, 5), -INF), np.zeros((1, 1), bool)])
def test_a_mask_that_hides_everything_gives_zeros(mask):
    # case 1, whole: no NaN and no warning
    output, weights = attend(*qkv(lead=(2,)), mask=mask)
    assert not output.any()
    assert not weights.any()


def test_a_query_with_nothing_allowed_gives_zeros_and_disturbs_no_other():
    # case 1: row 1 is all hidden
    query, key, value = qkv(n_q=2, n_kv=3)
    output, weights = attend(query, key, value, mask=np.array([[True] * 3, [False] * 3]))
    assert not output[1].any()
    assert not weights[1].any()
    assert_same((output[:1], weights[:1]), attend(query[:1], key, value))


@pytest.mark.parametrize("mask", [np.array([[False, True, True]]), np.array([[-INF, 0.0, 0.5]])])
def test_causal_and_padding_together_may_empty_a_row(mask):
    # case 2: each alone leaves query 0 a key
    output, weights = attend(*qkv(n_q=3, n_kv=3), mask=mask, is_causal=True)
    assert (weights.sum(axis=-1).round(12) == [0, 1, 1]).all()
    assert not output[0].any()


def test_a_query_of_nan_with_nothing_allowed_gives_zeros():
    query, key, value = qkv(n_q=2, n_kv=3)
    query[0] = NAN
    output, _ = attend(query, key, value, mask=np.array([[False], [True]]))
    assert not output[0].any()
    assert np.isfinite(output).all()


HIDDEN = {
    "boolean": dict(mask=np.array([[True, True, False, True, True]])),
    "float": dict(mask=np.array([[0.0, 0.5, -INF, -1.0, 0.0]])),
    "padding": dict(mask=np.array([True, True, False, True, True]).reshape(1, 1, 1, 5)),
    "padding and causal": dict(mask=np.array([[True, True, False, True, True]]), is_causal=True),
}


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("place", ["key", "value", "both"])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_padding_mask_hides_cannot_leak(name, place, poison):
    # case 6: 0 * NaN; torch and ONNX let it through
    query, key, value = qkv(lead=(2, 3))
    clean = attend(query, key, value, **HIDDEN[name])
    if place != "value":
        key[..., 2, 1] = poison
    if place != "key":
        value[..., 2, 3] = poison
    assert_same(attend(query, key, value, **HIDDEN[name]), clean, rtol=1e-14)


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
def test_what_a_causal_mask_hides_cannot_leak_and_what_it_shows_is_not_hidden(poison):
    # case 6
    query, key, value = qkv(n_q=5)
    clean, _ = attend(query, key, value, is_causal=True)
    value[3, 2] = poison
    output, weights = attend(query, key, value, is_causal=True)
    np.testing.assert_allclose(output[:3], clean[:3], rtol=1e-14)
    assert (output[3:, 2] == poison).all() or (np.isnan(poison) and np.isnan(output[3:, 2]).all())
    np.testing.assert_allclose(np.delete(output, 2, axis=1), np.delete(clean, 2, axis=1), rtol=1e-14)
    assert np.isfinite(weights).all()


def test_nan_in_one_head_stays_there():
    query, key, value = qkv(lead=(2, 3))
    clean = attend(query, key, value)
    query[1, 2, 0, 0] = NAN
    for poisoned, expected in zip(attend(query, key, value), clean):
        expected[1, 2, 0] = NAN
        np.testing.assert_allclose(poisoned, expected, rtol=1e-14)


def test_an_infinite_score_is_an_error_unless_it_is_masked():
    query, key, value = [[1.0]], [[INF], [2.0]], [[3.0], [4.0]]
    with pytest.raises(ValueError, match=r"\+inf"):
        attend(query, key, value)
    assert attend(query, key, value, mask=[[False, True]])[0].tolist() == [[4.0]]


def test_an_infinite_score_is_an_error_also_beside_nan():
    for s in ([[NAN, INF]], [[INF, 1.0, NAN]], [[0.0, 1.0], [NAN, 0.0], [INF, 0.0]]):
        with pytest.raises(ValueError, match=r"\+inf"):
            softmax(s)


def test_scores_below_what_the_dtype_holds_are_refused_also_beside_nan():
    query, key = np.array([[NAN, 0], [3e38, 3e38]], np.float32), np.array([[-3e38, -3e38]], np.float32)
    with pytest.raises(ValueError, match="beyond what float32 can hold"):
        scores(query, key)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f8"])
def test_plus_infinity_in_a_mask_is_refused_also_beside_nan(dtype):
    with pytest.raises(ValueError, match="mask"):
        attend(*qkv(n_q=1, n_kv=2), mask=np.array([[NAN, INF]], dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f8"])
@pytest.mark.parametrize(("number", "name"), [(NAN, "NaN"), (INF, r"\+inf")])
def test_a_mask_of_nan_or_plus_infinity_is_refused(number, name, dtype):
    with pytest.raises(ValueError, match=f"mask holds {name}: .* adds a finite number"):
        attend(*qkv(n_q=2, n_kv=2), mask=np.array([[-INF, 0], [number, 0]], dtype))


def test_a_float_mask_is_checked_without_a_copy():
    mask = np.zeros((1000, 1000))
    tracemalloc.start()
    try:
        attention._check_mask(mask, False, (1000, 1000))
        assert tracemalloc.get_traced_memory()[1] < mask.nbytes / 20
    finally:
        tracemalloc.stop()


def test_without_a_mask_no_matrix_but_the_weights_is_made():
    arrays = qkv(n_q=700, n_kv=900, dtype=np.float32)
    tracemalloc.start()
    try:
        _, weights = attend(*arrays)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * weights.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_query_and_key_are_not_copied(dtype):
    query, key = np.ones((1, 1000), dtype), np.ones((1000, 1000), dtype)
    tracemalloc.start()
    try:
        scores(query, key)
        assert tracemalloc.get_traced_memory()[1] < key.nbytes / 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("score", "bias", "reused"),
    [
        (("f", (2, 3)), ("f", (2, 3)), True),
        (("f", (2, 3)), ("e", (1, 3)), True),
        (("d", (4, 2, 3)), ("f", (2, 1)), True),
        (("f", (2, 3)), ("d", (2, 3)), False),
        (("f", (2, 3)), ("f", (4, 2, 3)), False),
    ],
)
def test_a_float_mask_is_added_in_the_memory_of_the_scores_where_that_has_room(score, bias, reused):
    one, two = np.ones(score[1], score[0]), np.full(bias[1], 2, bias[0])
    total = attention._add(one, two, True)
    assert (total is one) == reused
    assert np.array_equal(total, np.full(np.broadcast_shapes(one.shape, two.shape), 3))
    assert total.dtype == np.result_type(one, two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_score_and_a_mask_whose_sum_is_beyond_the_dtype_are_refused_not_taken_as_hidden(dtype):
    low = np.finfo(dtype).min
    query, key, value = np.full((1, 1), 1, dtype), np.array([[low], [0]], dtype), np.ones((2, 1), dtype)
    for least in (low / 1e5, low * np.finfo(dtype).eps):
        with pytest.raises(ValueError, match=f"plus the mask is beyond what {dtype.__name__} can hold: use -inf"):
            attend(query, key, value, mask=np.array([[least, 0]], dtype))
    for hidden in (dict(mask=np.array([[-INF, 0]])), dict(mask=np.array([[0, low], [0, 0]]), is_causal=True)):
        assert attend(query.repeat(len(hidden["mask"]), 0), key[::-1], value, **hidden)[0].all()
    assert attend(query, key, value, mask=np.full((1, 2), low * np.finfo(dtype).eps / 5))[1].tolist() == [[0, 1]]
    key[0] = -INF  # no overflow: the score was infinite before
    assert attend(query, key, value, mask=np.array([[low / 1e5, 0]], dtype))[1].tolist() == [[0, 1]]


def test_plus_infinity_in_a_mask_is_refused_by_name():
    with pytest.raises(ValueError, match="mask"):
        attend(*qkv(n_q=1, n_kv=2), mask=np.array([[0.0, INF]]))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, object, complex, "U1"])
def test_a_mask_that_is_neither_boolean_nor_float_is_refused(dtype):
    # case 7: 0 and 1 could mean either
    with pytest.raises(TypeError, match="mask"):
        attend(*qkv(), mask=np.ones((3, 5)).astype(dtype))


def test_a_ragged_mask_is_refused_by_name():
    with pytest.raises(ValueError, match="mask"):
        attend(*qkv(n_q=2, n_kv=2), mask=[[True], [True, False]])


@pytest.mark.parametrize("b", [2, 3, 5])
def test_a_mask_of_three_axes_against_scores_of_four_is_refused(b):
    # case 28: read as heads where batch = heads = 3, as batch nowhere
    with pytest.raises(ValueError, match=r"mask .*3 axes.*4"):
        attend(*qkv(lead=(b, 3)), mask=np.ones((b, 3, 5), bool))


@pytest.mark.parametrize("shape", [(), (5,), (1, 3, 5), (1, 1, 1, 3, 5)])
def test_a_mask_needs_two_axes_or_as_many_as_the_scores(shape):
    with pytest.raises(ValueError, match="mask"):
        attend(*qkv(lead=(2, 3)), mask=np.ones(shape, bool))


@pytest.mark.parametrize("shape", [(5, 3), (3, 4), (2, 5), (3, 0), (3, 3, 3, 5), (2, 2, 3, 5), (2, 3, 1, 3)])
def test_a_mask_that_does_not_fit_is_refused_with_both_shapes(shape):
    with pytest.raises(ValueError, match="mask") as caught:
        attend(*qkv(lead=(2, 3)), mask=np.ones(shape, bool))
    assert str(shape) in str(caught.value)
    assert "(2, 3, 3, 5)" in str(caught.value)


def test_a_padding_mask_of_batch_and_keys_is_refused_with_the_cure():
    # case 29
    with pytest.raises(ValueError, match=r"\(batch, 1, 1, n_kv\)"):
        attend(*qkv(lead=(2, 4)), mask=np.ones((2, 5), bool))


def test_a_mask_of_two_axes_is_for_queries_and_keys_also_where_batch_equals_queries():
    # case 29: numpy cannot tell (batch, n_kv) from (n_q, n_kv) when batch == n_q; ours is always the latter
    mask = np.array([[True, True, False], [True, False, False]])
    _, weights = attend(*qkv(n_q=2, n_kv=3, lead=(2, 4)), mask=mask)
    assert ((weights > 0) == mask).all()


@pytest.mark.parametrize("b", [2, 3])
def test_a_padding_mask_of_four_axes_hides_keys_of_its_own_sentence(b):
    # cases 8, 29
    keep = np.arange(3) < np.arange(1, b + 1)[:, None]
    _, weights = attend(*qkv(n_q=b, n_kv=3, lead=(b, 2)), mask=keep[:, None, None])
    assert ((weights > 0) == keep[:, None, None]).all()


@pytest.mark.parametrize(
    "is_causal",
    ["False", 0.5, 0.0, [1], [], np.eye(3, 5), np.ones(1, bool)],
    ids=["text", "number", "zero", "list", "empty list", "matrix", "array of one"],
)
def test_is_causal_must_be_true_or_false(is_causal):
    # torch's fifth argument by position is dropout_p: (q, k, v, None, 0.0, True) must not pass for ours
    with pytest.raises(TypeError, match="is_causal"):
        attend(*qkv(), None, is_causal)


@pytest.mark.parametrize("true", [True, np.True_])
def test_is_causal_takes_the_booleans_of_python_and_numpy(true):
    assert attend(*qkv(), is_causal=true)[1][0].tolist() == [1, 0, 0, 0, 0]


# attention, types and shapes


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ("eee", "e"),
        ("fff", "f"),
        ("ddd", "d"),
        ("ggg", "g"),
        ("eef", "f"),
        ("fed", "d"),
        ("def", "d"),
        ("fdf", "d"),
        ("lll", "d"),
        ("bbb", "d"),
        ("ffl", "d"),
    ],
)
def test_results_have_the_widest_dtype_of_the_arguments(dtypes, expected):
    arrays = [(4 * a).astype(dtype) for a, dtype in zip(qkv(), dtypes)]
    output, weights = attend(*arrays)
    assert output.dtype.char == weights.dtype.char == expected
    tolerance = 4e-3 if "e" in dtypes else 1e-5
    assert_same((output, weights), loop_all(*(a.astype(float) for a in arrays)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [">f2", ">f4", ">f8", ">i4"])
def test_the_byte_order_does_not_matter(dtype):
    arrays = [(4 * a).astype(dtype) for a in qkv()]
    assert_same(attend(*arrays), attend(*(a.astype(a.dtype.newbyteorder("=")) for a in arrays)), rtol=0, atol=0)


def test_lists_of_integers_are_taken_as_float64():
    # cases 42, 43
    output, weights = attend([[1, 0]], [[2, 0], [0, 3]], [[10], [20]])
    assert output.dtype == weights.dtype == np.float64
    assert_same((output, weights), loop([[1, 0]], [[2, 0], [0, 3]], [[10], [20]]))


def test_float16_attention_is_computed_in_float32():
    # cases 10, 41
    arrays = qkv(n_q=4, n_kv=3000, d_k=64, dtype=np.float16)
    wide = attend(*(a.astype(np.float32) for a in arrays))
    for ours, theirs in zip(attend(*arrays, mask=np.ones((4, 3000), bool)), wide):
        assert np.array_equal(ours, theirs.astype(np.float16))


def test_float16_scores_beyond_its_range_do_no_harm():
    far = np.full((2, 64), 300, np.float16)
    assert attend(far, far, far[:, :1])[1].tolist() == [[0.5, 0.5]] * 2


def test_no_queries_give_an_empty_output():
    # case 44
    output, weights = attend(*qkv(n_q=0, lead=(2,)), is_causal=True)
    assert output.shape == (2, 0, 6)
    assert weights.shape == (2, 0, 5)


@pytest.mark.parametrize("options", [{}, dict(is_causal=True), dict(mask=np.ones((3, 0), bool))])
def test_no_keys_give_zeros(options):
    # case 44
    output, weights = attend(*qkv(n_kv=0, lead=(2,)), **options)
    assert output.shape == (2, 3, 6)
    assert not output.any()
    assert weights.shape == (2, 3, 0)


def test_an_empty_batch_and_empty_values_give_empty_outputs():
    assert attend(*qkv(lead=(0,)))[0].shape == (0, 3, 6)
    assert attend(*qkv(d_v=0))[0].shape == (3, 0)


@pytest.mark.parametrize(
    ("shapes", "names"),
    [
        (((3, 4), (5, 3), (5, 6)), ("query (3, 4)", "key (5, 3)", "d_k")),
        (((3, 4), (4, 5), (5, 6)), ("query (3, 4)", "key (4, 5)", "d_k")),
        (((3, 4), (5, 4), (4, 6)), ("key (5, 4)", "value (4, 6)", "n_kv")),
        (((3, 0), (5, 0), (5, 6)), ("query (3, 0)", "key (5, 0)", "d_k = 0")),
        (((4,), (5, 4), (5, 6)), ("query", "(4,)", "(n_q, d_k)")),
        (((3, 4), (4,), (5, 6)), ("key", "(4,)", "(n_kv, d_k)")),
        (((3, 4), (5, 4), (5,)), ("value", "(5,)", "(n_kv, d_v)")),
        (((), (5, 4), (5, 6)), ("query", "()")),
        (((2, 3, 4), (3, 5, 4), (3, 5, 6)), ("query (2, 3, 4)", "key (3, 5, 4)")),
        (((2, 3, 4), (2, 5, 4), (3, 5, 6)), ("query (2, 3, 4)", "value (3, 5, 6)")),
    ],
)
def test_shapes_that_do_not_fit_are_refused_with_names_and_shapes(shapes, names):
    with pytest.raises(ValueError) as caught:
        attend(*map(np.zeros, shapes))
    assert all(name in str(caught.value) for name in names)


@pytest.mark.parametrize("name", ["query", "key", "value"])
@pytest.mark.parametrize("bad", [None, "abc", [["a", "b"]], [[True, False]], [[1j, 2]], [[None, 1.0]]], ids=repr)
def test_arguments_that_are_not_real_numbers_are_refused_by_name(name, bad):
    arguments = dict(zip(("query", "key", "value"), qkv()))
    with pytest.raises(TypeError, match=name):
        attend(**{**arguments, name: bad})


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("function", [attend, lambda q, k, v, is_causal: scores(q, k)], ids=["attend", "scores"])
def test_scores_that_would_fill_the_memory_are_refused_before_anything_is_made(monkeypatch, function, is_causal):
    # case 47: 8 heads of 20,000 x 20,000 in float32 are 12.8 GB; here in small: 16 MB above a limit of 1 MB
    monkeypatch.setattr(attention, "MAX_SCORE_BYTES", 2**20)
    arrays = qkv(n_q=2000, n_kv=2000, dtype=np.float32)
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match="2000 queries and 2000 keys"):
            function(*arrays, is_causal=is_causal)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtypes", ["eee", "fff", "ddd", "dff", "fdf", "ffd"])
@pytest.mark.parametrize("place", [0, 1, 2], ids=["query", "key", "value"])
def test_the_memory_guard_counts_all_leading_axes_in_the_dtype_of_the_work(monkeypatch, place, dtypes):
    arrays = [a.astype(dtype) for a, dtype in zip(qkv(n_q=4, n_kv=8), dtypes)]
    arrays[place] = np.broadcast_to(arrays[place], (2, 3, *arrays[place].shape))
    for function, some in ((attend, arrays), (scores, arrays[:2])):
        size = (2 * 3 if place < len(some) else 1) * 4 * 8 * (8 if "d" in dtypes[: len(some)] else 4)
        monkeypatch.setattr(attention, "MAX_SCORE_BYTES", size)
        function(*some)
        monkeypatch.setattr(attention, "MAX_SCORE_BYTES", size - 1)
        with pytest.raises(MemoryError, match="4 queries and 8 keys"):
            function(*some)


def test_the_memory_guard_counts_leading_axes_that_come_with_the_value_and_its_mask(monkeypatch):
    query, key, _ = qkv()
    value, mask = np.zeros((100, 5, 1)), np.ones((100, 3, 5), bool)
    monkeypatch.setattr(attention, "MAX_SCORE_BYTES", 8 * 100 * 3 * 5 - 1)
    with pytest.raises(MemoryError):
        attend(query, key, value, mask=mask)


def test_the_memory_limit_lets_ordinary_sizes_pass():
    assert 2**28 <= attention.MAX_SCORE_BYTES <= 2**33


# entropy


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_entropy_agrees_with_scipy_in_bits(dtype, axis):
    weights = softmax(np.random.default_rng(7).normal(scale=3, size=(4, 5)).astype(dtype), axis=axis)
    expected = scipy.stats.entropy(weights.astype(np.float64), base=2, axis=axis)
    np.testing.assert_allclose(entropy(weights, axis=axis), expected, rtol=1e-4 if dtype == np.float32 else 1e-12)


def test_entropy_by_hand():
    assert entropy([0.5, 0.25, 0.125, 0.125]) == 1.75
    assert entropy([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]).tolist() == [1, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_entropy_of_n_equal_weights_is_log2_n(n, dtype):
    assert entropy(np.full(n, 1 / n, dtype)) == pytest.approx(math.log2(n), rel=2e-3 if dtype == np.float16 else 1e-5)


def test_entropy_of_one_weight_is_plus_zero():
    assert str(entropy([0, 1, 0])) == "0.0"
    assert str(entropy([-0.0, 1.0])) == "0.0"


@pytest.mark.parametrize("weights", [[1 + 2**-52, 0.0], [1.00005, 0.0], [1.0, 1.5e-323]])
def test_entropy_is_never_negative(weights):
    assert entropy(weights) >= 0


def test_entropy_of_a_slice_of_zeros_is_nan_and_disturbs_no_other():
    bits = entropy([[0.0, 0.0], [0.5, 0.5]])
    assert np.isnan(bits[0])
    assert bits[1] == 1


def test_entropy_keeps_nan_in_its_own_slice():
    bits = entropy([[NAN, 1.0], [0.5, 0.5]])
    assert np.isnan(bits[0])
    assert bits[1] == 1


@pytest.mark.parametrize("weights", [[-0.5, 1.5], [[0.5, 0.5], [1.25, -0.25]], [[NAN, 1.0], [1.5, -0.5]]])
def test_entropy_refuses_negative_weights(weights):
    with pytest.raises(ValueError, match=r"negative.*-0\.(5|25)"):
        entropy(weights)


@pytest.mark.parametrize("weights", [[1.0, 1.0], [[0.5, 0.5], [0.0, 2.0]], [[0.0, 0.0], [0.0, 2.0]]])
def test_entropy_refuses_weights_that_do_not_sum_to_one(weights):
    with pytest.raises(ValueError, match="sums to 2"):
        entropy(weights)


@pytest.mark.parametrize(("dtype", "rounding"), [(np.float64, 1e-4), (np.float32, 1e-4), (np.float16, 1e-2)])
def test_entropy_lets_a_sum_off_by_rounding_pass_and_no_other(dtype, rounding):
    assert entropy(np.array([0.5, 0.5 + 0.8 * rounding], dtype)) == pytest.approx(1, abs=rounding)
    with pytest.raises(ValueError, match="must sum to 1"):
        entropy(np.array([0.5, 0.5 + 1.3 * rounding], dtype))


@pytest.mark.parametrize("weights", [[INF, 0.0], [INF, -INF], [1.7e308, 1.7e308]])
def test_entropy_refuses_weights_beyond_any_sum_without_a_warning(weights):
    with pytest.raises(ValueError, match="weights"):
        entropy(weights)


def test_entropy_refuses_scores_taken_for_weights():
    query, key, _ = qkv()
    with pytest.raises(ValueError, match="weights"):
        entropy(scores(query, key))


@given(rows(), temperatures, st.sampled_from(list(EPS)))
def test_entropy_takes_what_softmax_gives_and_lies_between_zero_and_log2_n(s, temperature, dtype):
    assume((s > -INF).any(axis=-1).all())
    bits = entropy(softmax(s.astype(dtype), temperature=temperature))
    assert (bits >= -EPS[dtype]).all()
    assert (bits <= np.log2((s > -INF).sum(axis=-1)) + 4 * EPS[dtype]).all()


@given(rows(), temperatures, temperatures)
def test_entropy_rises_with_the_temperature(s, one, other):
    assume((s > -INF).any(axis=-1).all())
    cold, hot = (entropy(softmax(s, temperature=t)) for t in sorted([one, other]))
    assert (cold <= hot + 1e-9).all()


OVERFLOWS = {
    "-inf": ([[1.0, 1.0]], [[-1.0, -1.0]]),
    "+inf": ([[1.0, 1.0]], [[1.0, 1.0]]),
    "NaN": ([[1.0, 1.0]], [[1.0, -1.0]]),
    "beside": ([[0.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]]),
}
LARGE = {np.float32: 3e38, np.float64: 1e200}


@pytest.mark.parametrize("dtype", LARGE)
@pytest.mark.parametrize("name", OVERFLOWS)
def test_scores_of_finite_numbers_beyond_what_the_dtype_holds_are_refused(name, dtype):
    query, key = (np.array(a, dtype) * dtype(LARGE[dtype]) for a in OVERFLOWS[name])
    value = np.ones((len(key), 1), dtype)
    for function in (scores, lambda q, k: attend(q, k, value), lambda q, k: attend(q, k, value, [[True]])):
        with pytest.raises(ValueError, match=f"beyond what {dtype.__name__} can hold: make query or key smaller"):
            function(query, key)


@pytest.mark.parametrize("scale", [None, -1, 1e-30, 1e5])
@pytest.mark.parametrize("mask", [[[True, False]], [[0.0, -INF]]])
def test_a_hidden_score_that_overflows_is_no_error(mask, scale):
    arrays = [[1e200, 1e200]], [[1e-200, 0.0], [1e200, -1e200]], [[3.0], [4.0]]
    assert attend(*arrays, np.array(mask), scale=scale)[0].tolist() == [[3.0]]
    with pytest.raises(ValueError, match="beyond what float64"):
        attend(*arrays, ~np.array([[True, False]]), scale=scale)


@pytest.mark.parametrize("shape", [(1, 8), (1, 1, 1, 8)])
def test_a_sum_that_overflows_before_it_is_scaled_is_refused(shape):
    with pytest.raises(ValueError, match="beyond what float64"):
        scores(np.full(shape, 5e153), np.full(shape, 1e154), scale=1e-30)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_score_that_overflows_only_as_it_is_scaled_is_refused(sign):
    with pytest.raises(ValueError, match="beyond what float64"):
        scores([[1.0]], [[sign * 1e300]], scale=1e10)


def test_the_largest_scores_are_taken():
    top = float(np.finfo(np.float32).max)
    assert scores(np.array([[top]], np.float32), np.ones((1, 1), np.float32)).tolist() == [[top]]
    assert attend([[1e150]], [[1e150], [-1e150]], [[3.0], [4.0]])[0].tolist() == [[3.0]]


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
def test_a_hidden_value_does_not_leak_beside_an_infinite_one_that_is_allowed(poison):
    # inf - inf is NaN: not only the weight of what is hidden must be 0
    zeros = np.zeros((2, 1))
    assert attend(zeros[:1], zeros, [[INF], [poison]], np.array([[True, False]]))[0].tolist() == [[INF]]
    output, _ = attend(zeros, zeros, [[INF], [poison]], is_causal=True)
    assert output[0] == INF
    np.testing.assert_array_equal(output[1], [poison if poison == INF else NAN])


@pytest.mark.parametrize("dtypes", ["ffd", "fdf", "dff", "eed", "efd", "fdd"])
def test_scores_are_computed_in_the_dtype_of_all_arguments(dtypes):
    arrays = [a.astype(dtype) for a, dtype in zip(qkv(d_k=40), dtypes)]
    assert_same(attend(*arrays), attend(*(a.astype(float) for a in arrays)), rtol=1e-13)


@pytest.mark.parametrize("dtypes", ["fd", "df", "ed", "de"])
def test_scores_have_the_widest_dtype_of_query_and_key_and_are_computed_in_it(dtypes):
    query, key = (a.astype(dtype) for a, dtype in zip(qkv(d_k=40), dtypes))
    assert scores(query, key).dtype == np.float64
    np.testing.assert_allclose(scores(query, key), scores(query.astype(float), key.astype(float)), rtol=1e-13)


def test_a_key_of_minus_infinity_is_hidden():
    output, weights = attend([[1.0, 0.0]], [[-INF, 1.0], [1.0, 1.0]], [[5.0], [7.0]])
    assert weights.tolist() == [[0.0, 1.0]]
    assert output.tolist() == [[7.0]]


@pytest.mark.parametrize("function", [softmax, entropy, lambda x: attend(x, x, x)])
def test_a_masked_array_is_refused_since_its_mask_would_be_lost(function):
    with pytest.raises(TypeError, match="is a masked array"):
        function(np.ma.masked_array([[0.5, 0.5]], mask=[[False, True]]))


Q, K, V, M, TEXT = np.ones((3, 4)), np.ones((5, 4)), np.ones((5, 6)), np.ones((3, 5)), np.array("a")
NO_NUMBERS = "has dtype <U1, but needs real numbers"
ONE = "but must be one number"
HOW = "a padding mask of shape (batch, n_kv) is written (batch, 1, 1, n_kv)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: softmax(TEXT), TypeError, f"scores {NO_NUMBERS}"),
        (lambda: softmax(Q, axis=2), ValueError, "axis is 2, but scores has 2 axes"),
        (lambda: softmax(Q, axis=None), TypeError, "axis is None, but must be one whole number"),
        (lambda: softmax(Q, temperature="1"), TypeError, f"temperature is '1', {ONE}"),
        (lambda: softmax(Q, temperature=-1), ValueError, "temperature is -1, but must be 0 or more"),
        (
            lambda: softmax([INF]),
            ValueError,
            "a score is +inf: softmax has no value there (only -inf, for 'not allowed', can be weighed)",
        ),
        (lambda: entropy(TEXT), TypeError, f"weights {NO_NUMBERS}"),
        (lambda: entropy(Q / 4, axis=2), ValueError, "axis is 2, but weights has 2 axes"),
        (lambda: entropy([1.5, -0.5]), ValueError, "weights must not be negative, but the smallest is -0.5"),
        (
            lambda: entropy([[0.5, 0.0], [1.0, 0.1]]),
            ValueError,
            "weights must sum to 1 along axis -1, but one slice sums to 0.5",
        ),
        (lambda: scores(TEXT, K), TypeError, f"query {NO_NUMBERS}"),
        (lambda: scores(Q, TEXT), TypeError, f"key {NO_NUMBERS}"),
        (lambda: scores(Q, K, "1"), TypeError, f"scale is '1', {ONE}"),
        (lambda: scores(Q, K, NAN), ValueError, "scale is nan, but must be finite"),
        (
            lambda: scores(np.float32(Q), np.float32(K), 1e39),
            ValueError,
            "scale is 1e+39, but must be finite in float32, the dtype of the scores",
        ),
        (
            lambda: scores(1e200 * Q, 1e200 * K),
            ValueError,
            "a score is beyond what float64 can hold: make query or key smaller",
        ),
        (
            lambda: scores(Q[0], K),
            ValueError,
            "query has shape (4,), but needs at least two axes (n_q, d_k); for a single vector write query[None, :]",
        ),
        (
            lambda: scores(Q, K[0]),
            ValueError,
            "key has shape (4,), but needs at least two axes (n_kv, d_k); for a single vector write key[None, :]",
        ),
        (
            lambda: scores(Q[None], K[None, :, :2]),
            ValueError,
            "query (1, 3, 4) and key (1, 5, 2) differ in d_k, the last axis: 4 and 2",
        ),
        (
            lambda: scores(Q[:, :0], K[:, :0]),
            ValueError,
            "query (3, 0) and key (5, 0) have d_k = 0: there is nothing to compare",
        ),
        (
            lambda: attend(np.ones((2, 3, 4)), np.ones((3, 5, 4)), V),
            ValueError,
            "the axes before the last two do not broadcast: query (2, 3, 4), key (3, 5, 4)",
        ),
        (
            lambda: attend(np.ones((2, 3, 4)), K, np.ones((3, 5, 6))),
            ValueError,
            "the axes before the last two do not broadcast: query (2, 3, 4), key (5, 4), value (3, 5, 6)",
        ),
        (
            lambda: scores(np.ones((20_000, 1)), np.ones((10_000, 1))),
            MemoryError,
            "the scores (20000, 10000) of 20000 queries and 10000 keys would take 1.5 GiB, more than 1 GiB",
        ),
        (lambda: attend(Q, K, TEXT), TypeError, f"value {NO_NUMBERS}"),
        (
            lambda: attend(Q, K, V[0]),
            ValueError,
            "value has shape (6,), but needs at least two axes (n_kv, d_v); for a single vector write value[None, :]",
        ),
        (
            lambda: attend(Q, K, V[:2]),
            ValueError,
            "key (5, 4) and value (2, 6) differ in n_kv, the last axis but one: 5 and 2",
        ),
        (lambda: attend(Q, K, V, is_causal=1), TypeError, "is_causal is 1, but must be True or False"),
        (
            lambda: attend(Q, K, V, np.ma.array(M)),
            TypeError,
            "mask is a masked array: pass its data, and what to hide as mask",
        ),
        (
            lambda: attend(Q, K, V, M.astype(np.int8)),
            TypeError,
            "mask has dtype int8: write a boolean mask (True = may attend) or a floating-point one "
            "(added to the scores); 0 and 1 could mean either",
        ),
        (
            lambda: attend(Q, K, V, INF * M),
            ValueError,
            "mask holds +inf: a floating-point mask adds a finite number, or -inf for 'not allowed'",
        ),
        (
            lambda: attend(Q, K, V, NAN * M),
            ValueError,
            "mask holds NaN: a floating-point mask adds a finite number, or -inf for 'not allowed'",
        ),
        (
            lambda: attend(Q, K, V, M[None]),
            ValueError,
            "mask (1, 3, 5) has 3 axes and the scores (3, 5) have 2: give it two axes (n_q, n_kv) "
            "or as many as the scores, for padding (batch, 1, 1, n_kv)",
        ),
        (
            lambda: attend(Q, K, V, M[:2]),
            ValueError,
            f"mask (2, 5) does not fit the scores (3, 5): from the right, each axis must be 1 or equal; {HOW}",
        ),
    ],
)
def test_errors_say_what_came_and_what_was_expected(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == message
