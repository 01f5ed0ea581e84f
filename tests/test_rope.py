"""Rotary positions, against complex numbers in plain Python, against ONNX, and by their own laws.

"Case n" names a public bug report that the test stands for.
"""

import cmath
import functools
import importlib

import numpy as np
import pytest
from common import INF, NAN, silent
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.backend.test.case import node as onnx_cases
from onnx.reference import ReferenceEvaluator

from attn_helpers import attention, rope

importlib.import_module("onnx.backend.test.case.node.rotaryembedding")  # adds its cases to the list in onnx_cases

LAYOUTS = pytest.mark.parametrize("interleaved", [False, True])


apply_rope = silent(rope.apply_rope)


def normal(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def loop(row, position, base, interleaved):
    """One vector turned in plain Python: each pair is a complex number times exp(i angle)."""
    d_k, turned = len(row), [0.0] * len(row)
    for i in range(d_k // 2):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + d_k // 2)
        pair = complex(row[a], row[b]) * cmath.exp(1j * position * base ** (-2 * i / d_k))
        turned[a], turned[b] = pair.real, pair.imag
    return turned


def pairs(x, interleaved):
    """The pairs of features, (..., d_k / 2, 2)."""
    half = x.shape[-1] // 2
    return x.reshape(*x.shape[:-1], half, 2) if interleaved else np.stack([x[..., :half], x[..., half:]], -1)


positions = st.lists(st.floats(-5000, 5000), min_size=1, max_size=5)
evens = st.integers(1, 8).map(lambda i: 2 * i)
bases = st.sampled_from([10000.0, 100000.0, 500000, 100, 2.0, 1.0, 0.5])


# values


@given(positions, evens, bases, st.booleans(), st.integers(0, 99))
def test_each_pair_is_a_complex_number_times_exp_of_i_times_its_angle(at, d_k, base, interleaved, seed):
    x = normal(len(at), d_k, seed=seed)
    expected = [loop(row, p, base, interleaved) for row, p in zip(x.tolist(), at)]
    np.testing.assert_allclose(apply_rope(x, at, base, interleaved), expected, atol=1e-11)


def test_by_hand():
    # d_k = 4, base 100: pair 0 turns by a radian for each position, pair 1 by a tenth
    quarter = np.pi / 2
    x = np.array([[1.0, 2.0, 3.0, 4.0]])
    np.testing.assert_allclose(apply_rope(x, [10 * quarter], 100), [[-1, -4, -3, 2]], atol=1e-14)
    np.testing.assert_allclose(apply_rope(x, [10 * quarter], 100, True), [[-1, -2, -4, 3]], atol=1e-14)
    np.testing.assert_allclose(apply_rope(x, [-quarter], 1), [[3, 4, -1, -2]], atol=1e-14)
    np.testing.assert_allclose(apply_rope(x, [-quarter], 1, True), [[2, -1, 4, -3]], atol=1e-14)


def test_the_paper_s_equation_34():
    d, m = 8, 5
    x = normal(1, d)
    theta = np.repeat([10000 ** (-2 * (i - 1) / d) for i in range(1, d // 2 + 1)], 2)
    crossed = np.array([-x[0, 1], x[0, 0], -x[0, 3], x[0, 2], -x[0, 5], x[0, 4], -x[0, 7], x[0, 6]])
    expected = x[0] * np.cos(m * theta) + crossed * np.sin(m * theta)
    np.testing.assert_allclose(apply_rope(x, [m], interleaved=True)[0], expected, rtol=1e-13)


def test_llama_s_rotate_half():
    # as SmolLM2 turns its queries and keys: heads of 64, base 100000
    x = normal(2, 9, 7, 64)
    angles = np.tile(np.outer(np.arange(7), 100000 ** (-np.arange(0, 64, 2) / 64)), 2)
    rotated = np.concatenate([-x[..., 32:], x[..., :32]], axis=-1)
    np.testing.assert_allclose(apply_rope(x, base=100000), x * np.cos(angles) + rotated * np.sin(angles), atol=1e-13)


@LAYOUTS
def test_positions_count_from_zero_and_the_base_is_10000_and_pairs_are_halves_by_default(interleaved):
    x = normal(2, 3, 6)
    assert np.array_equal(apply_rope(x, interleaved=interleaved), apply_rope(x, [0, 1, 2], 10000, interleaved))
    assert np.array_equal(apply_rope(x), apply_rope(x, interleaved=False))


# laws


@given(positions, evens, bases, st.booleans(), st.integers(0, 99))
def test_the_norm_of_each_pair_is_kept(at, d_k, base, interleaved, seed):
    x = normal(len(at), d_k, seed=seed)
    turned = apply_rope(x, at, base, interleaved)
    norms, expected = (np.linalg.norm(pairs(a, interleaved), axis=-1) for a in (turned, x))
    np.testing.assert_allclose(norms, expected, rtol=1e-12)


@given(positions, evens, st.sampled_from([1000, -1000, 37, 0.5]), st.booleans(), st.integers(0, 99))
def test_scores_depend_on_positions_only_through_their_difference(at, d_k, shift, interleaved, seed):
    # case 36: angles of one layout with pairs of the other keep neither this nor the norm
    query, key = normal(2, len(at), d_k, seed=seed)
    here, there = (
        attention.scores(*(apply_rope(a, p, interleaved=interleaved) for a in (query, key)))
        for p in (np.array(at), np.array(at) + shift)
    )
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-9)


@LAYOUTS
def test_scores_of_one_vector_with_itself_fall_off_alike_on_both_sides(interleaved):
    x = np.broadcast_to(normal(1, 8), (5, 8))
    turned = apply_rope(x, interleaved=interleaved)
    s = turned @ turned.T
    for i, j in np.ndindex(5, 5):
        assert s[i, j] == pytest.approx(s[abs(i - j), 0])
        assert i == j or s[i, j] < s[0, 0]


@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_position_zero_changes_nothing(interleaved, dtype):
    x = normal(4, 6, dtype=dtype)
    assert np.array_equal(apply_rope(x, [0] * 4, interleaved=interleaved), x)


@given(positions, evens, bases, st.booleans(), st.integers(0, 99))
def test_the_negative_positions_undo(at, d_k, base, interleaved, seed):
    x, at = normal(len(at), d_k, seed=seed), np.array(at)
    back = apply_rope(apply_rope(x, at, base, interleaved), -at, base, interleaved)
    np.testing.assert_allclose(back, x, atol=1e-12)


@LAYOUTS
def test_two_turns_add_up(interleaved):
    x = normal(3, 6)
    twice = apply_rope(apply_rope(x, [1, 2, 3], interleaved=interleaved), [10, 0.5, -3], interleaved=interleaved)
    np.testing.assert_allclose(twice, apply_rope(x, [11, 2.5, 0], interleaved=interleaved), atol=1e-14)


@given(positions, evens, st.integers(0, 99))
def test_the_two_layouts_differ_by_a_permutation_of_features(at, d_k, seed):
    # case 37: "the code differs from the paper"
    order = [*range(0, d_k, 2), *range(1, d_k, 2)]  # the first of each pair, then the second of each
    query, key = normal(2, len(at), d_k, seed=seed)
    paper = [apply_rope(a, at, interleaved=True) for a in (query, key)]
    llama = [apply_rope(a[:, order], at, interleaved=False) for a in (query, key)]
    for ours, theirs in zip(llama, paper):
        np.testing.assert_array_equal(ours, theirs[:, order])
    np.testing.assert_allclose(attention.scores(*llama), attention.scores(*paper), atol=1e-12)


def test_the_two_layouts_agree_only_for_a_single_pair():
    assert np.array_equal(apply_rope(normal(3, 2)), apply_rope(normal(3, 2), interleaved=True))
    assert not np.allclose(apply_rope(normal(3, 6)), apply_rope(normal(3, 6), interleaved=True))


@LAYOUTS
@pytest.mark.parametrize("sizes", [(4, 1), (1, 1, 1, 1, 1), (2, 3)], ids=str)
def test_decoding_with_a_cache_equals_all_at_once(interleaved, sizes):
    # case 35: every new token at position 0, or one too far
    query, key, value = normal(3, 2, 5, 6)
    turn = functools.partial(apply_rope, interleaved=interleaved)
    whole = attention.scaled_dot_product_attention(turn(query), turn(key), value, is_causal=True)[0]
    cache = np.empty((2, 0, 6))
    for size in sizes:
        past = cache.shape[1]
        new, at = slice(past, past + size), np.arange(past, past + size)
        cache = np.concatenate([cache, turn(key[:, new], at)], axis=1)
        mask = np.tri(size, past + size, past, dtype=bool)
        step = attention.scaled_dot_product_attention(turn(query[:, new], at), cache, value[:, : past + size], mask)[0]
        np.testing.assert_allclose(step, whole[:, new], rtol=1e-12)
    np.testing.assert_allclose(cache, turn(key), rtol=1e-12)


# ONNX: vectors, and an evaluator, that nobody here wrote


ONNX_CASES = {
    case.name: case
    for case in onnx_cases._NodeTestCases
    if case.name.startswith("test_rotary_embedding") and "rotary_dim" not in case.name  # we turn all features
}


def heads(x):
    """The ONNX input as (batch, heads, n, d_k)."""
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], 4, -1).swapaxes(1, 2)


def test_the_onnx_cases_are_there():
    plain = {"", "_interleaved", "_3d_input", "_no_position_ids", "_no_position_ids_interleaved"}
    assert {f"test_rotary_embedding{name}" for name in plain} <= set(ONNX_CASES)


@pytest.mark.parametrize("name", ONNX_CASES)
def test_the_vectors_of_the_onnx_cases(name):
    # case 36; their cosines and sines are random numbers, so they test the turn and not the angles
    [(inputs, [expected])] = ONNX_CASES[name].data_sets
    x, cos, sin, *at = inputs
    cos, sin = (a[at[0]][:, None] if at else a[:, None] for a in (cos, sin))
    x, expected = heads(x), heads(expected)
    np.testing.assert_allclose(rope._turn(x, cos, sin, "interleaved" in name), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ONNX_CASES)
@pytest.mark.parametrize("base", [10000, 100000])
def test_the_graphs_of_the_onnx_cases_with_real_angles(name, base):
    # "expanded": the operator written out in simpler operators
    case = ONNX_CASES[name]
    x, cos, _, *at = case.data_sets[0][0]
    where = at[0] if at else np.array([[3, 0, 49], [7, 8, 9]])
    angles = np.outer(np.arange(50), base ** (-np.arange(4) / 4))
    tables = [f(angles if at else angles[where]).astype(np.float32) for f in (np.cos, np.sin)]
    assert tables[0].shape == cos.shape
    names = [value.name for value in case.model.graph.input]
    [expected] = ReferenceEvaluator(case.model).run(None, dict(zip(names, [x, *tables, *at])))
    ours = apply_rope(heads(x), where[:, None], base, interleaved="interleaved" in name)
    np.testing.assert_allclose(ours, heads(expected), rtol=1e-5, atol=1e-6)


@functools.cache
def evaluator(interleaved):
    """ONNX's reference of its RotaryEmbedding operator, version 23."""
    node = helper.make_node(
        "RotaryEmbedding", ["x", "cos", "sin", "at"], ["y"], interleaved=int(interleaved), num_heads=0
    )
    shapes = dict(x=[None] * 4, cos=[None] * 2, sin=[None] * 2)
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    inputs.append(helper.make_tensor_value_info("at", TensorProto.INT64, [None] * 2))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)]
    graph = helper.make_graph([node], "rope", inputs, outputs)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]))


@LAYOUTS
@pytest.mark.parametrize("d_k", [2, 6, 64])
@pytest.mark.parametrize("base", [10000.0, 100000.0])
@pytest.mark.parametrize(
    "at",
    [[[0, 1, 2, 3, 4]] * 2, [[0, 1, 2, 3, 4], [1000, 1001, 1002, 1003, 1004]], [[7, 7, 0, 2047, 3], [9, 8, 7, 6, 5]]],
    ids=["from 0", "batches apart", "any order"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_onnx_rotary_embedding(interleaved, d_k, base, at, dtype):
    at = np.array(at)
    x = normal(2, 3, 5, d_k, dtype=dtype)
    angles = np.arange(2048)[:, None] / base ** (np.arange(d_k // 2) / (d_k // 2))
    feeds = dict(x=x, cos=np.cos(angles).astype(dtype), sin=np.sin(angles).astype(dtype), at=at)
    [expected] = evaluator(interleaved).run(None, feeds)
    ours = apply_rope(x, at[:, None], base, interleaved)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12 if dtype == np.float64 else 2e-6)


# types and shapes


@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_the_dtype_of_real_numbers_is_kept(interleaved, dtype):
    for at in (None, [5, 6, 7], np.array([5, 6, 7], np.float32), np.array([5, 6, 7], np.longdouble)):
        assert apply_rope(normal(3, 4, dtype=dtype), at, interleaved=interleaved).dtype == dtype


@pytest.mark.parametrize("x", [[[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], np.uint8), np.array([[1, 2], [3, 4]])])
def test_lists_and_integers_are_taken_as_float64(x):
    # cases 42, 43
    turned = apply_rope(x)
    assert turned.dtype == np.float64
    assert np.array_equal(turned, apply_rope(np.array(x, float)))


def test_float16_is_computed_in_float32():
    # case 41
    x = normal(50, 64, dtype=np.float16)
    assert np.array_equal(apply_rope(x), apply_rope(x.astype(np.float32)).astype(np.float16))


@LAYOUTS
def test_cosines_and_sines_are_rounded_to_the_dtype_of_x_and_the_turn_is_computed_in_it(interleaved):
    x, angles = normal(9, 2, dtype=np.float32), np.arange(9.0)
    (a, b), (cos, sin) = x.T, (f(angles).astype(np.float32) for f in (np.cos, np.sin))
    assert np.array_equal(apply_rope(x, interleaved=interleaved), np.stack([a * cos - b * sin, a * sin + b * cos], -1))


def test_float16_beyond_its_range_is_infinite_without_a_warning():
    assert apply_rope(np.full((1, 2), 6e4, np.float16), [np.pi / 4])[0, 1] == INF


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64, ">i4", np.float16, np.float32, ">f8", np.longdouble])
def test_positions_of_any_kind_of_number_mean_the_same(dtype):
    x = normal(3, 64)
    assert np.array_equal(apply_rope(x, np.array([0, 77, 127], dtype)), apply_rope(x, [0.0, 77.0, 127.0]))


def test_angles_are_computed_in_float64():
    # far along, an angle in float32 is off by a hundredth of a radian
    x, at = normal(1, 8), np.array([2_000_001], np.float32)
    np.testing.assert_allclose(apply_rope(x, at), [loop(x[0].tolist(), 2_000_001, 10000, False)], atol=1e-8)
    np.testing.assert_allclose(apply_rope(x.astype(np.float32), at), apply_rope(x, at), atol=1e-6)


@LAYOUTS
@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (1, 2, 3)], ids=str)
def test_leading_axes_of_positions_broadcast(interleaved, lead):
    x = normal(*lead, 4, 6)
    for shape in {(4,), (*lead, 4), (*(1 for _ in lead), 4), (*lead[:-1], *(1 for _ in lead[-1:]), 4)}:
        at = np.random.default_rng(1).integers(0, 99, shape)
        turned = apply_rope(x, at, interleaved=interleaved)
        assert turned.shape == x.shape
        full = np.broadcast_to(at, x.shape[:-1])
        for where in np.ndindex(x.shape[:-1]):
            expected = loop(x[where].tolist(), int(full[where]), 10000, interleaved)
            np.testing.assert_allclose(turned[where], expected, atol=1e-13)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 3, 4), (2, 0, 4)], ids=str)
def test_an_empty_array_stays_empty(shape):
    # case 44
    assert apply_rope(np.zeros(shape)).shape == shape
    assert apply_rope(np.zeros(shape), np.zeros(shape[-2]), interleaved=True).shape == shape


@LAYOUTS
@pytest.mark.parametrize("poison", [NAN, INF, -INF])
def test_nan_and_infinity_stay_in_their_pair(interleaved, poison):
    x = normal(3, 6)
    clean, x[1, 2] = apply_rope(x, interleaved=interleaved), poison
    turned = pairs(apply_rope(x, interleaved=interleaved), interleaved)
    touched = np.isnan(pairs(x, interleaved)).any(-1) | np.isinf(pairs(x, interleaved)).any(-1)
    assert touched.sum() == 1
    assert not np.isfinite(turned[touched]).any()
    assert not np.isnan(poison) or np.isnan(turned[touched]).all()
    assert np.array_equal(turned[~touched], pairs(clean, interleaved)[~touched])


@LAYOUTS
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_inputs_are_not_changed_and_not_shared(interleaved, dtype):
    x, at = (9 * normal(3, 4)).astype(dtype), np.array([0.0, 0.0, 2.0])
    before = x.copy(), at.copy()
    x.flags.writeable = at.flags.writeable = False
    turned = apply_rope(x, at, interleaved=interleaved)
    assert turned.flags.writeable
    assert not np.shares_memory(turned, x)
    assert np.array_equal(x, before[0])
    assert np.array_equal(at, before[1])


def test_views_give_the_same_as_copies():
    base = normal(12, 12)
    for view in (base[::-3, ::3], base.T[:6, 1::2], np.broadcast_to(base[0], (3, 12)), base.astype(">f8")):
        assert np.array_equal(apply_rope(view), apply_rope(view.astype(float, order="C")))


@pytest.mark.parametrize("base", [100, np.float32(100), np.int8(100), np.array(100.0)], ids=repr)
def test_any_kind_of_single_number_is_taken_as_base(base):
    assert np.array_equal(apply_rope(normal(3, 4), base=base), apply_rope(normal(3, 4), base=100.0))


@pytest.mark.parametrize("true", [True, np.True_])
def test_interleaved_takes_the_booleans_of_python_and_numpy(true):
    assert np.array_equal(apply_rope(normal(3, 4), None, 10000, true), apply_rope(normal(3, 4), interleaved=True))


# errors


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((3, 5), ("x (3, 5)", "d_k = 5", "even")),
        ((2, 3, 1), ("x (2, 3, 1)", "d_k = 1", "even")),
        ((4,), ("x has shape (4,)", "at least two axes (n, d_k)", "x[None, :]")),
        ((), ("x has shape ()", "at least two axes (n, d_k)")),
    ],
)
def test_an_x_that_does_not_fit_is_refused(shape, words):
    with pytest.raises(ValueError) as caught:
        apply_rope(np.zeros(shape))
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_a_wrong_number_of_positions_is_refused_with_both_numbers(n):
    # one position for all tokens is not spread over them
    with pytest.raises(ValueError, match=f"there are {n} positions, but x has n = 3, its last axis but one"):
        apply_rope(np.zeros((2, 3, 4)), np.zeros(n))
    with pytest.raises(ValueError, match=f"there are {n} positions, but x has n = 3"):
        apply_rope(np.zeros((2, 3, 4)), np.zeros((2, n)))


@pytest.mark.parametrize("shape", [(), (2, 3), (1, 3), (1, 2, 2, 3)], ids=str)
def test_positions_need_one_axis_or_all_but_the_last_of_x(shape):
    # cases 28, 29: numpy would read (batch, n) as (heads, n) where batch = heads
    with pytest.raises(ValueError) as caught:
        apply_rope(np.zeros((2, 2, 3, 4)), np.zeros(shape))
    assert str(caught.value) == (
        f"positions {shape} have {len(shape)} axes and x without its last axis, (2, 2, 3), has 3: "
        "give them one (n,) or as many, for positions of each sentence (batch, 1, n)"
    )


@pytest.mark.parametrize("shape", [(3, 1, 3), (2, 5, 3), (0, 1, 3)], ids=str)
def test_positions_that_do_not_broadcast_are_refused_with_both_shapes(shape):
    with pytest.raises(ValueError) as caught:
        apply_rope(np.zeros((2, 4, 3, 4)), np.zeros(shape))
    expected = f"positions {shape} do not fit x without its last axis, (2, 4, 3): each 1 or equal"
    assert str(caught.value) == expected


def test_positions_may_not_add_axes_to_x():
    with pytest.raises(ValueError, match="each 1 or equal"):
        apply_rope(np.zeros((1, 3, 4)), np.zeros((2, 3)))


@pytest.mark.parametrize("bad", [NAN, INF, -INF, np.longdouble("1e4000")])
def test_positions_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="positions hold NaN or infinity, but must be finite"):
        apply_rope(np.zeros((2, 4)), np.array([0, bad]))


@pytest.mark.parametrize("bad", [0, 0.0, -1, -10000.0, NAN, INF, -INF])
def test_a_base_that_is_not_above_zero_and_finite_is_refused(bad):
    with pytest.raises(ValueError, match=f"base is {bad}, but must be above 0 and finite"):
        apply_rope(np.zeros((2, 4)), base=bad)


@pytest.mark.parametrize("bad", [None, "10000", b"1", [1.0, 2.0], 1j, True, 10**400], ids=lambda b: type(b).__name__)
def test_a_base_that_is_not_one_number_is_refused(bad):
    with pytest.raises(TypeError, match="base is .*, but must be one number"):
        apply_rope(np.zeros((2, 4)), base=bad)


@pytest.mark.parametrize(("at", "base"), [(1e300, 1e-300), (1, 5e-324), (1.7e308, 0.5)])
def test_angles_beyond_float64_are_refused(at, base):
    with pytest.raises(ValueError, match=f"base is {base}, too small for these positions"):
        apply_rope(np.zeros((1, 1000)), [at], base)


@pytest.mark.parametrize("bad", [None, 0, 1, "half", "False", [], [True], np.ones(1, bool)], ids=repr)
def test_interleaved_must_be_true_or_false(bad):
    with pytest.raises(TypeError) as caught:
        apply_rope(np.zeros((2, 4)), interleaved=bad)
    assert str(caught.value) == f"interleaved is {bad!r}, but must be True or False"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            dict(x=np.zeros((2, 3, 5))),
            "x (2, 3, 5) has d_k = 5, the last axis, but pairs of features need an even d_k",
        ),
        (
            dict(x=np.zeros(4)),
            "x has shape (4,), but needs at least two axes (n, d_k); for a single vector write x[None, :]",
        ),
        (dict(positions=[0, 1, NAN]), "positions hold NaN or infinity, but must be finite"),
        (
            dict(positions=np.zeros((2, 3))),
            "positions (2, 3) have 2 axes and x without its last axis, (2, 4, 3), has "
            "3: give them one (n,) or as many, for positions of each sentence (batch, 1, n)",
        ),
        (dict(positions=[0, 1]), "there are 2 positions, but x has n = 3, its last axis but one"),
        (
            dict(positions=np.zeros((2, 2, 3))),
            "positions (2, 2, 3) do not fit x without its last axis, (2, 4, 3): each 1 or equal",
        ),
        (dict(base=0), "base is 0, but must be above 0 and finite"),
        (
            dict(base=5e-324),
            "base is 5e-324, too small for these positions: an angle is beyond what float64 can hold",
        ),
    ],
)
def test_the_whole_message_says_what_came_and_what_was_expected(change, message):
    with pytest.raises(ValueError) as caught:
        apply_rope(**dict(x=np.zeros((2, 4, 3, 1000))) | change)
    assert str(caught.value) == message


@pytest.mark.parametrize("bad", ["abc", [["a", "b"]], [[True, False]], [[1j, 2]], [[None, 1.0]]], ids=repr)
def test_what_is_not_real_numbers_is_refused_by_name(bad):
    with pytest.raises(TypeError, match=r"^x has dtype .*, but needs real numbers$"):
        apply_rope(bad)
    with pytest.raises(TypeError, match=r"^positions has dtype .*, but needs real numbers$"):
        apply_rope(np.zeros((1, 2)), bad)


def test_ragged_lists_are_refused_by_name():
    with pytest.raises(ValueError, match="x is not a regular array"):
        apply_rope([[1.0, 2.0], [1.0]])
    with pytest.raises(ValueError, match="positions is not a regular array"):
        apply_rope(np.zeros((2, 2)), [[1.0, 2.0], [1.0]])
