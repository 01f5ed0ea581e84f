"""Masks, against loops in plain Python, against ONNX, and by what they do to attention."""

import functools
import importlib
import itertools
import math
import tracemalloc
import types

import numpy as np
import pytest
from common import INF, NAN, qkv, silent
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper
from onnx.backend.test.case import node as onnx_cases
from onnx.reference import ReferenceEvaluator

from attn_helpers import attention, masks, rope

importlib.import_module("onnx.backend.test.case.node.attention")  # adds its cases to the list in onnx_cases

FLOATS = [np.float16, np.float32, np.float64, np.longdouble]


causal_mask = silent(masks.causal_mask)
window_mask = silent(masks.window_mask)
padding_mask = silent(masks.padding_mask)
combine_masks = silent(masks.combine_masks)
to_additive = silent(masks.to_additive)
to_boolean = silent(masks.to_boolean)
attend = silent(attention.scaled_dot_product_attention)
CREATORS = {
    "causal": causal_mask,
    "window": functools.partial(window_mask, window=1),
    "padding": lambda n_q, n_kv: padding_mask([0] * n_q, n_kv),
}


def loop(query, key, value, sees):
    """Attention of one head in plain Python, where query i gets no key but those with sees(i, j)."""
    output = np.zeros((len(query), value.shape[1]))
    for i, q in enumerate(query.tolist()):
        seen = [j for j in range(len(key)) if sees(i, j)]
        powers = [math.exp(sum(a * b for a, b in zip(q, key[j].tolist())) / math.sqrt(len(q))) for j in seen]
        for j, power in zip(seen, powers):
            output[i] += power / sum(powers) * value[j]
    return output


def table(n_q, n_kv, sees):
    """The mask of a rule, cell by cell."""
    return np.array([[sees(i, j) for j in range(n_kv)] for i in range(n_q)], bool).reshape(n_q, n_kv)


def drawn(mask):
    """The mask as strings, one for each query: x = may attend."""
    return ["".join("x" if cell else "." for cell in row) for row in mask]


def assert_mask(mask, expected):
    assert mask.dtype == bool
    assert mask.shape == expected.shape
    assert np.array_equal(mask, expected)


sizes = st.integers(0, 7)
offsets = st.integers(-9, 9)
booleans = hnp.arrays(bool, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))


# causal_mask


@given(sizes, sizes, offsets)
def test_causal_mask_agrees_with_the_plain_loop(n_q, n_kv, offset):
    assert_mask(causal_mask(n_q, n_kv, offset), table(n_q, n_kv, lambda i, j: j <= i + offset))


@given(sizes, sizes, offsets)
def test_causal_mask_is_the_lower_triangle_of_numpy(n_q, n_kv, offset):
    assert_mask(causal_mask(n_q, n_kv, offset), np.tri(n_q, n_kv, offset).astype(bool))
    assert_mask(causal_mask(n_q, n_kv, offset), np.tril(np.ones((n_q, n_kv), bool), offset))


@given(sizes)
def test_causal_mask_of_one_number_is_square_with_its_diagonal_allowed(n):
    assert_mask(causal_mask(n), np.tril(np.ones((n, n), bool)))
    assert_mask(~causal_mask(n), np.triu(np.ones((n, n), bool), k=1))


def test_causal_mask_drawn():
    assert drawn(causal_mask(3)) == ["x..", "xx.", "xxx"]
    assert drawn(causal_mask(2, 5)) == ["x....", "xx..."]
    assert drawn(causal_mask(2, 5, offset=3)) == ["xxxx.", "xxxxx"]
    assert drawn(causal_mask(4, 2)) == ["x.", "xx", "xx", "xx"]
    assert drawn(causal_mask(3, offset=-1)) == ["...", "x..", "xx."]


@given(st.integers(1, 6), st.integers(0, 6))
def test_causal_mask_with_the_cache_as_offset_is_the_last_rows_of_the_full_mask(new, past):
    n_kv = past + new
    assert_mask(causal_mask(new, n_kv, offset=n_kv - new), causal_mask(n_kv)[-new:])


@pytest.mark.parametrize("far", [10, 2**31, 2**62, 2**63 - 1])
def test_any_offset_and_window_will_do(far):
    assert causal_mask(3, 4, far).all()
    assert not causal_mask(3, 4, -far).any()
    assert window_mask(3, 4, window=far).all()
    assert not window_mask(3, 4, window=2, offset=far).any()
    assert not window_mask(3, 4, window=2, offset=-far).any()
    assert drawn(window_mask(3, 4, window=far, offset=far)) == ["xxxx", ".xxx", "..xx"]
    assert drawn(window_mask(3, 4, window=far, offset=-far)) == ["x...", "xx..", "xxx."]


@pytest.mark.parametrize("far", [2**63, -(2**63) - 1, 10**30, 10**400, 10**5000], ids=["1", "2", "3", "4", "5"])
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("offset", lambda far: causal_mask(3, offset=far)),
        ("n_q", lambda far: causal_mask(far)),
        ("n_kv", lambda far: causal_mask(3, far)),
        ("window", lambda far: window_mask(3, window=far)),
        ("n_kv", lambda far: padding_mask([2, 3], n_kv=far)),
    ],
)
def test_what_is_beyond_int64_is_refused_by_name(name, function, far):
    with pytest.raises(ValueError, match=f"{name} is beyond int64"):
        function(far)


# window_mask


@given(sizes, sizes, st.integers(0, 9), offsets)
def test_window_mask_agrees_with_the_plain_loop(n_q, n_kv, window, offset):
    expected = table(n_q, n_kv, lambda i, j: abs(i + offset - j) <= window)
    assert_mask(window_mask(n_q, n_kv, window=window, offset=offset), expected)


def test_window_mask_drawn():
    assert drawn(window_mask(4, window=1)) == ["xx..", "xxx.", ".xxx", "..xx"]
    assert drawn(window_mask(2, 5, window=1, offset=3)) == ["..xxx", "...xx"]
    assert drawn(window_mask(4, window=1) & causal_mask(4)) == ["x...", "xx..", ".xx.", "..xx"]


@given(sizes, st.integers(0, 9))
def test_window_mask_is_symmetric_and_of_window_zero_the_diagonal(n, window):
    mask = window_mask(n, window=window)
    assert_mask(mask, mask.T)
    assert_mask(window_mask(n, window=0), np.eye(n, dtype=bool))


@given(st.integers(1, 12), st.integers(0, 6))
def test_a_query_sees_up_to_twice_the_window_and_itself_and_causally_the_window_and_itself(n, window):
    mask = window_mask(n, window=window)
    assert mask.sum(axis=1).max() == min(n, 2 * window + 1) or n < 2 * window + 1
    assert (mask & causal_mask(n)).sum(axis=1).tolist() == [min(i + 1, window + 1) for i in range(n)]


def test_window_is_required_and_by_keyword():
    with pytest.raises(TypeError, match="window"):
        window_mask(3)
    with pytest.raises(TypeError):
        window_mask(3, 3, 1)


# padding_mask


@given(st.lists(sizes, max_size=4), st.none() | st.integers(7, 9))
def test_padding_mask_agrees_with_the_plain_loop(lengths, n_kv):
    width = max(lengths, default=0) if n_kv is None else n_kv
    expected = table(len(lengths), width, lambda b, j: j < lengths[b]).reshape(len(lengths), 1, 1, width)
    assert_mask(padding_mask(lengths, n_kv), expected)


def test_padding_mask_drawn():
    assert drawn(padding_mask([2, 4, 0])[:, 0, 0]) == ["xx..", "xxxx", "...."]
    assert drawn(padding_mask([2, 4, 0], n_kv=5)[:, 0, 0]) == ["xx...", "xxxx.", "....."]
    assert drawn(padding_mask([2, 4, 0])[..., ::-1][:, 0, 0]) == ["..xx", "xxxx", "...."]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, ">i4", np.float16, np.float32, np.float64])
def test_lengths_of_any_kind_of_whole_number_mean_the_same(dtype):
    assert_mask(padding_mask(np.array([1, 0, 3], dtype)), padding_mask((1, 0, 3)))
    assert_mask(padding_mask(np.array([1, 0, 3], dtype), np.uint8(4)), padding_mask([1, 0, 3], 4))


@pytest.mark.parametrize("lead", [(2, 3), (2, 2)])
def test_a_padding_mask_hides_keys_of_its_own_sentence_in_all_heads_also_where_batch_equals_queries(lead):
    mask = padding_mask([3, 1])
    _, weights = attend(*qkv(n_q=2, n_kv=3, lead=lead), mask=mask)
    assert ((weights > 0) == np.array([[True, True, True], [True, False, False]])[:, None, None]).all()


# combine_masks


@given(st.data())
def test_combined_masks_agree_with_the_plain_loop(data):
    rank = data.draw(st.sampled_from([2, 3, 4]))
    full = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    given_masks = []
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.sampled_from([0, rank - 2]))
        shape = tuple(data.draw(st.sampled_from([1, n])) for n in full[start:])
        given_masks.append(data.draw(st.none() | hnp.arrays(bool, shape)))
    combined, there = combine_masks(*given_masks), [m for m in given_masks if m is not None]
    if not there:
        assert combined is None
        return
    expected = np.empty(np.broadcast_shapes(*(m.shape for m in there)), bool)
    for at in np.ndindex(expected.shape):
        expected[at] = all(np.broadcast_to(m, expected.shape)[at] for m in there)
    assert_mask(combined, expected)


def test_combining_without_masks_gives_no_mask():
    assert combine_masks() is None
    assert combine_masks(None, None) is None


def test_combined_masks_of_a_batch_have_the_shape_of_its_scores():
    combined = combine_masks(causal_mask(3), None, padding_mask([3, 1, 0]), window_mask(3, window=1))
    assert combined.shape == (3, 1, 3, 3)
    assert drawn(combined[0, 0]) == ["x..", "xx.", ".xx"]
    assert drawn(combined[1, 0]) == ["x..", "x..", "..."]
    assert not combined[2].any()


@given(hnp.arrays(bool, (2, 3)), hnp.arrays(bool, (2, 1, 1, 3)), hnp.arrays(bool, (1, 2, 2, 1)))
def test_the_order_and_grouping_of_masks_does_not_matter(one, two, three):
    together = combine_masks(one, two, three)
    for order in itertools.permutations([one, two, three]):
        assert_mask(combine_masks(*order), together)
    assert_mask(combine_masks(one, combine_masks(two, three)), together)
    assert_mask(combine_masks(together, one, None), together)


@pytest.mark.parametrize("b", [2, 3])
def test_a_mask_of_three_axes_beside_one_of_four_is_refused_also_where_batch_equals_heads(b):
    two, three, four = (np.ones(shape, bool) for shape in ((4, 5), (b, 4, 5), (b, 3, 1, 5)))
    for order in ((three, four), (four, three), (two, three, None, four)):
        (m, one), (n, other) = [(i, mask) for i, mask in enumerate(order) if mask is not None and mask.ndim > 2]
        with pytest.raises(ValueError) as caught:
            combine_masks(*order)
        assert str(caught.value) == (
            f"masks[{m}] {one.shape} has {one.ndim} axes and masks[{n}] {other.shape} has {other.ndim}: give each two "
            "axes (n_q, n_kv) or both as many as the scores, for padding (batch, 1, 1, n_kv)"
        )


@pytest.mark.parametrize(
    ("one", "other"),
    [((3, 5), (5, 3)), ((3, 5), (3, 4)), ((2, 1, 1, 5), (3, 1, 1, 5)), ((4, 5), (2, 5)), ((2, 1, 3, 4), (3, 5))],
)
def test_masks_that_do_not_fit_are_refused_with_both_names_and_shapes(one, other):
    with pytest.raises(ValueError) as caught:
        combine_masks(None, np.ones(one, bool), np.ones((1, 1), bool), np.ones(other, bool))
    assert str(caught.value) == (
        f"masks[1] {one} and masks[3] {other} do not fit: from the right, each axis must be 1 or "
        "equal; a padding mask of shape (batch, n_kv) is written (batch, 1, 1, n_kv)"
    )


@pytest.mark.parametrize("shape", [(), (5,)])
def test_a_mask_needs_two_axes(shape):
    with pytest.raises(ValueError, match=r"masks\[1\] has shape .* needs at least two axes \(n_q, n_kv\)"):
        combine_masks(None, np.ones(shape, bool))


# to_additive, to_boolean


@given(booleans, st.sampled_from(FLOATS))
def test_to_additive_agrees_with_the_plain_loop(mask, dtype):
    added = to_additive(mask, dtype)
    assert added.dtype == dtype
    assert added.shape == mask.shape
    assert added.ravel().tolist() == [0.0 if cell else -INF for cell in mask.ravel()]
    assert not np.signbit(added[mask]).any()


@given(booleans, st.sampled_from(FLOATS))
def test_a_boolean_mask_survives_the_way_there_and_back(mask, dtype):
    assert_mask(np.asarray(to_boolean(to_additive(mask, dtype))), mask)


@given(hnp.arrays(st.sampled_from(FLOATS), hnp.array_shapes(), elements=st.sampled_from([0.0, -0.0, -INF])))
def test_an_additive_mask_survives_the_way_there_and_back(added):
    assert np.array_equal(to_additive(to_boolean(added), added.dtype), added)


def test_no_dtype_at_all_is_refused():
    with pytest.raises(TypeError, match="dtype is None, but must be a floating-point type"):
        to_additive([[True]], None)


def test_additive_masks_are_float64_unless_told():
    assert to_additive([[True, False]]).dtype == np.float64
    assert to_additive([[True, False]], "float32").dtype == np.float32
    assert to_additive([[True, False]], float).tolist() == [[0, -INF]]


@pytest.mark.parametrize("name", [">f4", "<f8", ">f2"])
def test_the_byte_order_does_not_matter(name):
    mask = np.array([[True, False]])
    assert to_additive(mask, name).tolist() == [[0, -INF]]
    assert to_additive(mask, name).dtype == np.dtype(name).newbyteorder("=")
    assert to_boolean(np.array([[0, -INF]], name)).tolist() == [[True, False]]


@given(st.sampled_from([16, 32, 64]), st.data())
def test_a_finite_number_is_not_a_yes_no_mask(width, data):
    number = data.draw(st.floats(allow_nan=False, allow_infinity=False, width=width).filter(bool))
    added = np.array([[0, number], [-INF, 0]], f"f{width // 8}")
    with pytest.raises(ValueError) as caught:
        to_boolean(added)
    assert str(caught.value).startswith(f"additive holds {number:g}, so it is not a yes/no mask")


@pytest.mark.parametrize("fill", [-1e9, -1e6, 1e-9, float(np.finfo(np.float32).min), 5e-324])
def test_a_fill_that_stands_for_minus_infinity_is_not_a_yes_no_mask(fill):
    with pytest.raises(ValueError, match=f"additive holds {fill:g}".replace("+", r"\+")):
        to_boolean(np.where(causal_mask(3), 0, fill))


def test_a_bias_by_distance_is_not_a_yes_no_mask():
    alibi = -0.5 * np.abs(np.subtract.outer(range(3), range(3)))
    with pytest.raises(ValueError, match="additive holds -0.5, so it is not a yes/no mask"):
        to_boolean(alibi)


@pytest.mark.parametrize(("bad", "word"), [(NAN, "nan"), (INF, "inf"), (-NAN, "nan")])
@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_plus_infinity_are_not_a_yes_no_mask(bad, word, dtype):
    with pytest.raises(ValueError, match=f"additive holds {word}, so it is not a yes/no mask"):
        to_boolean(np.array([0, -INF, bad], dtype))


def test_a_boolean_mask_is_not_read_a_second_time():
    with pytest.raises(TypeError, match="additive has dtype bool.* a boolean mask is used as it is"):
        to_boolean(causal_mask(3))


@pytest.mark.parametrize(
    "dtype", [int, bool, "int64", complex, "U3", object, "nonsense", 3, [1], [("a", float)] * 2], ids=str
)
def test_a_dtype_that_is_not_floating_point_is_refused_by_name(dtype):
    with pytest.raises(TypeError, match="dtype is .*, but must be a floating-point type"):
        to_additive(causal_mask(2), dtype)


# what all refuse


@pytest.mark.parametrize("name", ["masks[0]", "mask", "additive"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, object, complex, "U1"])
def test_integers_and_the_like_are_no_mask_since_they_could_mean_either(name, dtype):
    function = {"masks[0]": combine_masks, "mask": to_additive, "additive": to_boolean}[name]
    with pytest.raises(TypeError, match="0 and 1 could mean either") as caught:
        function(np.ones((2, 3)).astype(dtype))
    assert str(caught.value).startswith(f"{name} has dtype {np.dtype(dtype).name[:3]}" if dtype != "U1" else name)


BOOLEAN_WANTED = "write a boolean mask (True = may attend);"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: to_boolean(causal_mask(2)),
            "additive has dtype bool, but needs floating-point numbers, 0 = may attend and -inf = may not; "
            "a boolean mask is used as it is, integers 0 and 1 could mean either",
        ),
        (
            lambda: combine_masks(causal_mask(2), np.eye(2)),
            f"masks[1] has dtype float64: {BOOLEAN_WANTED} to_boolean makes one of 0 and -inf",
        ),
        (
            lambda: to_additive(np.eye(2, dtype=np.int8)),
            f"mask has dtype int8: {BOOLEAN_WANTED} 0 and 1 could mean either",
        ),
    ],
)
def test_what_is_no_mask_is_refused_with_the_cure(call, message):
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize(("name", "function"), [("masks[0]", combine_masks), ("mask", to_additive)])
def test_a_float_mask_is_not_taken_as_boolean_but_the_cure_is_named(name, function):
    with pytest.raises(TypeError, match="has dtype float64: write a boolean mask .*to_boolean") as caught:
        function(to_additive(causal_mask(3)))
    assert str(caught.value).startswith(name)
    assert combine_masks(to_boolean(to_additive(causal_mask(3)))).dtype == bool


@pytest.mark.parametrize("function", [combine_masks, to_additive, to_boolean])
def test_ragged_lists_and_masked_arrays_are_refused_by_name(function):
    with pytest.raises(ValueError, match=r"(mask|masks\[0\]|additive) is not a regular array"):
        function([[True], [True, False]])
    with pytest.raises(TypeError, match=r"(mask|masks\[0\]|additive) is a masked array"):
        function(np.ma.masked_array([[True]], mask=[[True]]))


SIZES = {
    "n_q": lambda n: causal_mask(n, 3),
    "n_kv": lambda n: causal_mask(3, n),
    "offset": lambda n: causal_mask(3, 3, n),
    "window": lambda n: window_mask(3, window=n),
    "n_kv of a padding mask": lambda n: padding_mask([0], n),
    "n_q of a window": lambda n: window_mask(n, window=1),
    "n_kv of a window": lambda n: window_mask(2, n, window=1),
    "offset of a window": lambda n: window_mask(2, window=1, offset=n),
}


@pytest.mark.parametrize("bad", [2.0, 2.5, NAN, True, np.True_, "2", b"2", [2], np.array([2]), np.float64(2), 1j])
@pytest.mark.parametrize("name", SIZES)
def test_what_is_not_one_whole_number_is_refused_by_name(name, bad):
    with pytest.raises(TypeError) as caught:
        SIZES[name](bad)
    assert str(caught.value) == f"{name.split()[0]} is {bad!r}, but must be one whole number"


@pytest.mark.parametrize("name", [name for name in SIZES if "offset" not in name])
def test_a_size_below_zero_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"^{name.split()[0]} is -1, but must be 0 or more$"):
        SIZES[name](-1)
    SIZES[name](0)


@pytest.mark.parametrize("name", ["n_q", "offset", "window", "offset of a window"])
def test_none_stands_only_for_the_number_of_keys(name):
    with pytest.raises(TypeError, match=f"^{name.split()[0]} is None"):
        SIZES[name](None)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64, np.array], ids=lambda k: k.__name__)
def test_whole_numbers_of_numpy_are_taken(kind):
    assert_mask(causal_mask(kind(3), kind(5), kind(2)), causal_mask(3, 5, 2))
    assert_mask(window_mask(kind(3), kind(5), window=kind(0), offset=kind(0)), window_mask(3, 5, window=0))
    assert_mask(window_mask(kind(3), window=kind(3)), np.ones((3, 3), bool))


@pytest.mark.parametrize("bad", [[True, False], "abc", None, [None], ["1"], [1j], np.array([1], object)], ids=repr)
def test_lengths_that_are_not_numbers_are_refused_by_name(bad):
    with pytest.raises(TypeError, match="lengths has dtype"):
        padding_mask(bad)


@pytest.mark.parametrize("bad", [1.5, 0.5, -0.5, -1, NAN, INF, -INF])
@pytest.mark.parametrize("n_kv", [None, 3])
def test_lengths_that_are_not_whole_numbers_from_zero_on_are_refused(bad, n_kv):
    with pytest.raises(ValueError, match=f"lengths hold {bad:g}, but must be whole numbers from 0 on"):
        padding_mask([1, bad], n_kv)


def test_lengths_above_the_number_of_keys_are_refused_with_both():
    with pytest.raises(ValueError, match="lengths hold 5, but there are only n_kv = 4 keys"):
        padding_mask([5, 1], 4)
    assert padding_mask([4, 1], 4)[0].all()


@pytest.mark.parametrize("bad", [3, [[1, 1, 0]], np.ones((2, 3, 1))], ids=["number", "0/1 mask", "three axes"])
def test_lengths_have_one_axis(bad):
    with pytest.raises(ValueError, match=r"lengths has shape .*, but needs one axis \(batch,\)"):
        padding_mask(bad)


BEYOND = [(2**15, 2**15), (1, 2**28 + 1), (0, 10**12)]


@pytest.mark.parametrize(
    ("name", "n_q", "n_kv"),
    [(name, *size) for name in CREATORS for size in BEYOND]
    + [(name, *size[::-1]) for name in ("causal", "window") for size in BEYOND[1:]],
)
def test_masks_for_scores_beyond_the_limit_of_attention_are_refused_before_anything_is_made(name, n_q, n_kv):
    tracemalloc.start()
    try:
        with pytest.raises(MemoryError, match=f"{n_q}.*{n_kv}"):
            CREATORS[name](n_q, n_kv)
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("function", ["causal", "window", "padding", "combine", "additive"])
def test_a_mask_is_refused_exactly_where_attention_refuses_its_float32_scores(monkeypatch, function):
    rows, columns = np.ones((6, 1), bool), np.ones((1, 8), bool)
    calls = dict(
        causal=lambda: causal_mask(6, 8),
        window=lambda: window_mask(6, 8, window=2),
        padding=lambda: padding_mask([8] * 6),
        combine=lambda: combine_masks(rows, columns),
        additive=lambda: to_additive(rows & columns),
    )
    monkeypatch.setattr(attention, "MAX_SCORE_BYTES", 4 * 6 * 8)
    calls[function]()
    attend(*qkv(6, 8, dtype=np.float32))
    monkeypatch.setattr(attention, "MAX_SCORE_BYTES", 4 * 6 * 8 - 1)
    with pytest.raises(MemoryError, match=r"a mask \(6, (1, 1, )?8\)"):
        calls[function]()
    with pytest.raises(MemoryError):
        attend(*qkv(6, 8, dtype=np.float32))


def test_the_memory_error_gives_both_sizes_in_mebibytes():
    with pytest.raises(MemoryError, match=r"a mask \(20000, 20000\) is for scores of 1,525 MiB .* than 1,024 MiB"):
        causal_mask(20000)
    with pytest.raises(MemoryError):
        causal_mask(2**62)


@pytest.mark.parametrize("function", [combine_masks, to_additive, lambda m: to_boolean(to_additive(m))])
def test_inputs_are_not_changed_and_not_shared(function):
    mask = causal_mask(3)
    mask.flags.writeable = False
    result = function(mask)
    assert result.flags.writeable
    assert not np.shares_memory(result, mask)
    assert np.array_equal(mask, np.tri(3, dtype=bool))


@pytest.mark.parametrize("name", CREATORS)
def test_a_new_mask_may_be_written_to(name):
    mask = CREATORS[name](2, 3)
    mask[...] = True
    assert mask.all()
    assert not CREATORS[name](2, 3).all()


# with attention: which keys a query sees


RULES = {
    "causal": (causal_mask(4, 6, 1), lambda i, j: j <= i + 1),
    "window": (window_mask(4, 6, window=2, offset=1), lambda i, j: abs(i + 1 - j) <= 2),
    "padding": (padding_mask([5], 6)[0, 0], lambda i, j: j < 5),
}


@pytest.mark.parametrize(
    "names", [c for n in range(4) for c in itertools.combinations(RULES, n)], ids=lambda names: " and ".join(names)
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_each_mask_alone_and_with_the_others_agrees_with_the_plain_loop(names, is_causal):
    query, key, value = qkv(4, 6)
    mask = combine_masks(*(RULES[name][0] for name in names))
    expected = loop(query, key, value, lambda i, j: all(RULES[n][1](i, j) for n in names) and (j <= i or not is_causal))
    np.testing.assert_allclose(attend(query, key, value, mask, is_causal)[0], expected, rtol=1e-12)


@given(st.integers(1, 6), st.integers(1, 6), offsets, st.integers(0, 4), st.integers(0, 6))
def test_rectangular_masks_of_all_kinds_agree_with_the_plain_loop(n_q, n_kv, offset, window, length):
    query, key, value = qkv(n_q, n_kv)
    length = min(length, n_kv)
    combined = combine_masks(
        causal_mask(n_q, n_kv, offset),
        window_mask(n_q, n_kv, window=window, offset=offset),
        padding_mask([length], n_kv)[0, 0],
    )
    expected = loop(query, key, value, lambda i, j: i + offset - window <= j <= i + offset and j < length)
    np.testing.assert_allclose(attend(query, key, value, combined)[0], expected, rtol=1e-12, atol=1e-15)


def test_cross_attention_of_two_queries_and_five_keys_takes_a_padding_mask_of_keys():
    _, weights = attend(*qkv(2, 5, lead=(3, 2)), mask=padding_mask([5, 2, 3]))
    assert ((weights > 0).sum(axis=-1) == np.array([5, 2, 3])[:, None, None]).all()


@pytest.mark.parametrize(("n_q", "n_kv"), [(3, 3), (2, 5), (5, 2)])
def test_causal_mask_of_offset_zero_is_what_is_causal_does(n_q, n_kv):
    arrays = qkv(n_q, n_kv)
    for ours, theirs in zip(attend(*arrays, causal_mask(n_q, n_kv)), attend(*arrays, is_causal=True)):
        assert np.array_equal(ours, theirs)


def test_the_causal_edge_of_two_queries_and_five_keys_at_the_first_or_at_the_last_key():
    arrays = qkv(2, 5)
    first, last = (attend(*arrays, causal_mask(2, 5, offset))[1] > 0 for offset in (0, 3))
    assert first.sum(axis=-1).tolist() == [1, 2]
    assert last.sum(axis=-1).tolist() == [4, 5]


def test_one_new_query_after_three_in_the_cache_sees_four_keys():
    assert drawn(attend(*qkv(1, 4), causal_mask(1, 4, offset=3))[1] > 0) == ["xxxx"]
    assert drawn(attend(*qkv(1, 4), is_causal=True)[1] > 0) == ["x..."]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("convert", [lambda m, dtype: m, to_additive], ids=["boolean", "additive"])
def test_the_weight_of_every_hidden_key_is_exactly_zero_and_of_every_other_not(dtype, convert):
    mask = combine_masks(causal_mask(5), padding_mask([5, 2, 0]))
    _, weights = attend(*qkv(5, 5, lead=(3, 2), dtype=dtype), mask=convert(mask, dtype))
    assert ((weights > 0) == mask).all()
    assert (weights[np.broadcast_to(~mask, weights.shape)] == 0).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("convert", [lambda m, dtype: m, to_additive], ids=["boolean", "additive"])
def test_hidden_keys_lose_to_scores_far_below_any_finite_fill(dtype, convert):
    query, key, value = (np.array(a, dtype) for a in ([[-200.0]], [[250.0], [1.0]], [[3.0], [5.0]]))
    output, weights = attend(query, key, value, convert(padding_mask([1], 2)[0, 0], dtype), scale=1e30)
    assert weights.tolist() == [[1, 0]]
    assert output.tolist() == [[3]]


def test_float16_has_minus_infinity_where_it_has_no_minus_a_billion():
    added = to_additive(padding_mask([2, 0], 3), np.float16)
    output, weights = attend(*qkv(2, 3, lead=(2, 1), dtype=np.float16), mask=added)
    assert added[1].tolist() == [[[-INF] * 3]]
    assert not output[1].any()
    assert np.isfinite(weights).all()
    with np.errstate(over="ignore"):
        assert np.float16(-1e9) == -INF


def test_true_means_may_attend_and_the_opposite_convention_gives_the_opposite_keys():
    mask = padding_mask([2], 3)[0, 0]
    shown, hidden = (attend(*qkv(1, 3), m)[1] > 0 for m in (mask, ~mask))
    assert drawn(shown) == ["xx."]
    assert drawn(hidden) == ["..x"]


def test_rows_sum_to_one_over_what_is_allowed_so_the_mask_comes_before_softmax():
    arrays, mask = qkv(3, 3), causal_mask(3)
    _, weights = attend(*arrays, mask)
    _, free = attend(*arrays)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert ((free * mask).sum(axis=-1)[:2] < 0.99).all()


MASKS = {
    "causal": causal_mask(4),
    "cached": causal_mask(4, offset=2),
    "window": window_mask(4, window=1),
    "padding": padding_mask([3, 1], 4),
    "nothing for query 0": causal_mask(4, offset=-1),
    "all": combine_masks(causal_mask(4), window_mask(4, window=1), padding_mask([4, 2])),
}


@pytest.mark.parametrize("name", MASKS)
def test_masked_weights_are_the_unmasked_ones_restricted_and_divided_by_their_sum(name):
    query, key, value = qkv(4, 4, lead=(2, 3))
    _, free = attend(query, key, value)
    output, weights = attend(query, key, value, MASKS[name])
    kept = free * MASKS[name]
    total = kept.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(weights, kept / np.where(total == 0, 1, total), rtol=1e-12)
    np.testing.assert_allclose(output, weights @ value, rtol=1e-12)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_boolean_and_additive_masks_of_the_dtype_of_the_scores_or_below_give_bit_equal_attention(name, dtype):
    arrays = qkv(4, 4, lead=(2, 3), dtype=dtype)
    expected = attend(*arrays, MASKS[name])
    for added in (to_additive(MASKS[name], dtype), to_additive(MASKS[name], np.float16)):
        for mask in (added, to_boolean(added)):
            for ours, theirs in zip(attend(*arrays, mask), expected):
                assert ours.dtype == theirs.dtype == dtype
                assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("name", MASKS)
def test_an_additive_mask_above_the_dtype_of_the_scores_is_the_same_attention_computed_in_its_dtype(name):
    arrays = qkv(4, 4, lead=(2, 3), dtype=np.float32)
    for ours, theirs in zip(attend(*arrays, to_additive(MASKS[name])), attend(*arrays, MASKS[name])):
        assert ours.dtype == theirs.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("fill", "same"), [(-INF, True), (-10.0, False), (-1e9, True)])
def test_a_mask_inside_the_scaling_is_the_same_for_minus_infinity_and_another_for_a_finite_number(fill, same):
    query, key, value = qkv(3, 3, d_k=64)
    added = np.where(causal_mask(3), 0, fill)
    _, outside = attend(query, key, value, added)
    inside = attention.softmax((query @ key.T + added) / math.sqrt(64))
    assert np.allclose(outside, inside, rtol=1e-12, atol=0) == same


def test_a_finite_bias_is_not_divided_by_the_root_of_d_k():
    zeros = np.zeros((1, 64)), np.zeros((2, 64)), np.zeros((2, 1))
    bias = np.where(padding_mask([1], 2)[0, 0], 0, -10.0)
    _, weights = attend(*zeros, bias)
    inside = attention.softmax(bias / math.sqrt(64))
    assert weights[0, 1] / weights[0, 0] == pytest.approx(math.exp(-10))
    assert inside[0, 1] / inside[0, 0] == pytest.approx(math.exp(-1.25))


# with attention: rows and axes of nothing


def test_a_query_with_nothing_allowed_gives_zeros_and_disturbs_no_other():
    arrays = qkv(3, 3)
    output, weights = attend(*arrays, causal_mask(3, offset=-1))
    assert not output[0].any()
    assert not weights[0].any()
    np.testing.assert_allclose(weights.sum(axis=-1), [0, 1, 1])
    np.testing.assert_allclose(output[1:], attend(arrays[0][1:], *arrays[1:], causal_mask(2, 3))[0], rtol=1e-12)


def test_a_sentence_of_padding_alone_gives_zeros_and_disturbs_no_other():
    query, key, value = qkv(2, 3, lead=(2, 2))
    output, weights = attend(query, key, value, padding_mask([0, 3]))
    assert not output[0].any()
    assert not weights[0].any()
    np.testing.assert_allclose(output[1], attend(query[1], key[1], value[1])[0], rtol=1e-14)


@pytest.mark.parametrize("convert", [lambda m: m, to_additive], ids=["boolean", "additive"])
def test_causal_and_left_padding_together_empty_a_row_that_each_alone_does_not(convert):
    arrays = qkv(3, 3, lead=(1, 1))
    causal, padding = causal_mask(3), padding_mask([2], 3)[..., ::-1]
    for alone in (causal, padding):
        assert (attend(*arrays, convert(alone))[1].sum(axis=-1) > 0).all()
    for given_masks in (dict(mask=combine_masks(causal, padding)), dict(mask=convert(padding), is_causal=True)):
        output, weights = attend(*arrays, **given_masks)
        np.testing.assert_allclose(weights.sum(axis=-1), [[[0, 1, 1]]])
        assert not output[..., 0, :].any()


@pytest.mark.parametrize("n_q, n_kv", [(0, 0), (0, 3), (3, 0)])
def test_no_queries_give_an_empty_output_and_no_keys_zeros(n_q, n_kv):
    causal, window = causal_mask(n_q, n_kv), window_mask(n_q, n_kv, window=1)
    padding = padding_mask([0, 0], n_kv)
    for mask in (causal, window, padding, combine_masks(causal, window, padding), to_additive(causal)):
        output, weights = attend(*qkv(n_q, n_kv, lead=(2, 2)), mask=mask)
        assert output.shape == (2, 2, n_q, 6)
        assert weights.shape == (2, 2, n_q, n_kv)
        assert not output.any() or n_kv


def test_no_sentences_make_an_empty_batch():
    mask = padding_mask([], 5)
    assert mask.shape == (0, 1, 1, 5)
    assert padding_mask([]).shape == (0, 1, 1, 0)
    assert attend(*qkv(lead=(0, 2)), mask=mask)[0].shape == (0, 2, 3, 6)


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("place", ["key", "value"])
@pytest.mark.parametrize("convert", [lambda m: m, to_additive], ids=["boolean", "additive"])
def test_nan_and_infinity_in_the_padding_do_not_reach_the_output(poison, place, convert):
    query, key, value = qkv(3, 3, lead=(2, 2))
    for mask in (padding_mask([3, 2]), combine_masks(padding_mask([3, 2]), causal_mask(3))):
        clean, _ = attend(query, key, value, convert(mask))
        arrays = dict(query=query, key=key.copy(), value=value.copy())
        arrays[place][1, :, 2, 1] = poison
        output, weights = attend(**arrays, mask=convert(mask))
        np.testing.assert_allclose(output, clean, rtol=1e-14)
        assert np.isfinite(weights).all()


# with attention: padding


def batch(lengths, n, left=False, seed=0):
    """Self-attention inputs (batch, heads, n, d), and where the real tokens of each sentence stand."""
    arrays = qkv(n, n, lead=(len(lengths), 2), seed=seed)
    return arrays, [slice(n - length, n) if left else slice(0, length) for length in lengths]


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
def test_with_a_padding_mask_each_sentence_of_a_batch_comes_out_as_alone(left, is_causal):
    lengths = [3, 6, 1]
    arrays, real = batch(lengths, 6, left)
    mask = padding_mask(lengths)
    output, _ = attend(*arrays, mask[..., ::-1] if left else mask, is_causal)
    for b, rows in enumerate(real):
        alone, _ = attend(*(a[b, :, rows] for a in arrays), is_causal=is_causal)
        np.testing.assert_allclose(output[b, :, rows], alone, rtol=1e-12)


def test_right_padding_under_a_causal_mask_needs_no_padding_mask_for_the_real_tokens():
    lengths = [3, 6, 1]
    arrays, real = batch(lengths, 6)
    bare, _ = attend(*arrays, causal_mask(6))
    masked, _ = attend(*arrays, combine_masks(causal_mask(6), padding_mask(lengths)))
    for b, rows in enumerate(real):
        assert np.array_equal(bare[b, :, rows], masked[b, :, rows])
    assert not np.allclose(bare[0, :, 3:], masked[0, :, 3:])
    free, _ = attend(*arrays)
    assert not np.allclose(free[0, :, :3], attend(*arrays, padding_mask(lengths))[0][0, :, :3])


def test_left_padding_under_a_causal_mask_does_need_a_padding_mask():
    lengths = [3, 6, 1]
    arrays, real = batch(lengths, 6, left=True)
    bare, _ = attend(*arrays, causal_mask(6))
    masked, _ = attend(*arrays, combine_masks(causal_mask(6), padding_mask(lengths)[..., ::-1]))
    for b, rows in enumerate(real):
        assert np.allclose(bare[b, :, rows], masked[b, :, rows]) == (lengths[b] == 6)
    assert not masked[0, :, :3].any()


# with attention: time


@given(st.integers(0, 5), st.integers(0, 99))
def test_a_changed_token_reaches_no_output_before_it(j, seed):
    x = qkv(n_q=6, d_k=8, seed=seed)[0]
    changed = x.copy()
    changed[j] += 1
    before, after = (attend(a, a, a, causal_mask(6)) for a in (x, changed))
    for one, other in zip(before, after):
        assert np.array_equal(one[:j], other[:j])
        assert not np.allclose(one[j:], other[j:]) or j == 0
    assert not np.allclose(before[0][j:], after[0][j:])
    open_before, open_after = (attend(a, a, a)[0] for a in (x, changed))
    assert not np.isclose(open_before, open_after).all(axis=-1).any()


@pytest.mark.parametrize("window", [0, 1, 3])
def test_a_changed_token_reaches_no_output_beyond_the_window(window):
    x = qkv(n_q=9, d_k=8)[0]
    changed = x.copy()
    changed[4] += 1
    one, other = (attend(a, a, a, window_mask(9, window=window))[0] for a in (x, changed))
    same = (one == other).all(axis=-1)
    assert same.tolist() == [abs(i - 4) > window for i in range(9)]


@given(st.integers(1, 7), st.integers(0, 99))
def test_one_masked_pass_is_all_prefixes_one_by_one(n, seed):
    query, key, value = qkv(n, n, seed=seed)
    whole, weights = attend(query, key, value, causal_mask(n))
    for t in range(1, n + 1):
        output, row = attend(query[t - 1 : t], key[:t], value[:t])
        np.testing.assert_allclose(whole[t - 1 : t], output, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(weights[t - 1 : t, :t], row, rtol=1e-12)


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("steps", [(4, 1), (1, 1, 1, 1, 1), (2, 3), (3, 2), (5,)], ids=str)
def test_decoding_with_a_cache_equals_the_rows_of_the_full_run_with_positions_continued(steps, window):
    query, key, value = np.random.default_rng(0).normal(size=(3, 2, 5, 6))

    def mask(n_q, n_kv):
        offset = n_kv - n_q
        local = None if window is None else window_mask(n_q, n_kv, window=window, offset=offset)
        return combine_masks(causal_mask(n_q, n_kv, offset=offset), local)

    whole, _ = attend(rope.apply_rope(query), rope.apply_rope(key), value, mask(5, 5))
    cache = np.empty((2, 0, 6))
    for size in steps:
        past = cache.shape[1]
        new, at = slice(past, past + size), np.arange(past, past + size)
        cache = np.concatenate([cache, rope.apply_rope(key[:, new], at)], axis=1)
        turned = rope.apply_rope(query[:, new], at)
        step, _ = attend(turned, cache, value[:, : past + size], mask(size, past + size))
        np.testing.assert_allclose(step, whole[:, new], rtol=1e-12, atol=1e-14)
    if len(steps) > 1:
        reset, _ = attend(rope.apply_rope(query[:, new]), cache, value, mask(size, 5))
        assert not np.allclose(reset, whole[:, new])
        unshifted, _ = attend(turned, cache, value, causal_mask(size, 5))
        assert not np.allclose(unshifted, whole[:, new])


# ONNX: its evaluator, and vectors, that nobody here wrote


TYPES = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.float32): TensorProto.FLOAT}
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-6}
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


def onnx_attention(attributes, **inputs):
    """(output, weights) of the Attention operator of set 25, as ONNX's reference computes them."""
    kind = {np.dtype(bool): TensorProto.BOOL, np.dtype(np.int64): TensorProto.INT64, **TYPES}
    names = [name if name in inputs else "" for name in INPUTS]
    outputs = ["Y", "present_key", "present_value", "weights"]
    node = helper.make_node("Attention", names, outputs, qk_matmul_output_mode=3, **attributes)
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(n, kind[inputs[n].dtype], inputs[n].shape) for n in names if n],
        [helper.make_tensor_value_info(n, kind[inputs["Q"].dtype], None) for n in ("Y", "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)])
    return ReferenceEvaluator(model).run(None, inputs)


def ours(attributes, **inputs):
    """(output, weights) of ours for the same, the masks made by the functions under test."""
    given_arrays = types.SimpleNamespace(**{name: inputs.get(name) for name in INPUTS})
    key, value, n_q = given_arrays.K, given_arrays.V, inputs["Q"].shape[-2]
    past, lengths = 0, given_arrays.nonpad_kv_seqlen
    if given_arrays.past_key is not None:
        past = given_arrays.past_key.shape[-2]
        key, value = (
            np.concatenate(pair, axis=-2) for pair in ((inputs["past_key"], key), (inputs["past_value"], value))
        )
    n_kv = key.shape[-2]
    offsets = [past] if lengths is None else [int(length) - n_q for length in lengths]
    mask = given_arrays.attn_mask
    if mask is not None and mask.dtype != bool:
        mask = to_boolean(mask)
    padding = None if lengths is None else padding_mask(lengths, n_kv)
    causal = window = None
    if attributes.get("is_causal"):
        causal = np.stack([causal_mask(n_q, n_kv, o) for o in offsets])[:, None]
    if attributes.get("left_window_size", -1) >= 0:
        size = attributes["left_window_size"]
        window = np.stack([window_mask(n_q, n_kv, window=size, offset=o) for o in offsets])[:, None]
    return attend(inputs["Q"], key, value, combine_masks(mask, padding, causal, window))


def assert_agree(attributes, **inputs):
    expected = onnx_attention(attributes, **inputs)
    for one, other in zip(ours(attributes, **inputs), expected):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[inputs["Q"].dtype])


def tensors(n_q, n_kv, past=None, dtype=np.float64):
    query, key, value = qkv(n_q, n_kv, lead=(3, 2), dtype=dtype)
    cache = {} if past is None else dict(zip(("past_key", "past_value"), qkv(1, past, lead=(3, 2), dtype=dtype)[1:]))
    return dict(Q=query, K=key, V=value, **cache)


WINDOWS = {"no window": {}, **{f"window {w}": dict(left_window_size=w, right_window_size=w) for w in (0, 1, 3)}}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(("n_q", "past"), [(1, 3), (2, 3), (4, 1), (4, 0), (1, 0), (3, 7)])
def test_the_causal_edge_and_the_window_move_with_the_cache_as_in_onnx(n_q, past, is_causal, window, dtype):
    assert_agree(dict(is_causal=is_causal, **WINDOWS[window]), **tensors(n_q, n_q, past, dtype))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize(("n_q", "n_kv"), [(4, 4), (2, 5), (5, 2)])
def test_without_a_cache_masks_are_aligned_at_the_first_key_as_in_onnx(n_q, n_kv, is_causal, window):
    assert_agree(dict(is_causal=is_causal, **WINDOWS[window]), **tensors(n_q, n_kv))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("lengths", [[6, 4, 2], [5, 0, 1], [6, 6, 6]], ids=str)
def test_padding_is_hidden_as_in_onnx_also_behind_a_cache_of_its_own_length_for_each_sentence(
    lengths, is_causal, window
):
    inputs = dict(tensors(2, 6), nonpad_kv_seqlen=np.array(lengths))
    assert_agree(dict(is_causal=is_causal, **WINDOWS[window]), **inputs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("name", MASKS)
def test_onnx_gives_the_same_for_our_boolean_mask_and_its_additive_form(name, is_causal, dtype):
    inputs, attributes = tensors(4, 4, dtype=dtype), dict(is_causal=is_causal)
    mask = np.broadcast_to(MASKS[name], (2, 1, 4, 4)) if MASKS[name].ndim == 4 else MASKS[name]
    if mask.ndim == 4:
        inputs = {key: a[:2] for key, a in inputs.items()}
    assert_agree(attributes, **inputs, attn_mask=mask)
    assert_agree(attributes, **inputs, attn_mask=to_additive(mask, dtype))
    for one, other in zip(
        *(onnx_attention(attributes, **inputs, attn_mask=m) for m in (mask, to_additive(mask, dtype)))
    ):
        np.testing.assert_array_equal(one, other)


def case_inputs(case):
    return dict(zip([value.name for value in case.model.graph.input], case.data_sets[0][0]))


def case_attributes(case):
    return {a.name: helper.get_attribute_value(a) for a in case.model.graph.node[0].attribute}


def fits(case):
    """Whether our masks say what the case asks for: heads of one number, no bias, a window on both sides or causal."""
    inputs, attributes = case_inputs(case), case_attributes(case)
    return ({"past_key", "nonpad_kv_seqlen"} & set(inputs) or "left_window_size" in attributes) and (
        inputs["Q"].dtype == np.float32
        and inputs["Q"].ndim == 4
        and inputs["Q"].shape[1] == inputs["K"].shape[1]
        and ("attn_mask" not in inputs or inputs["attn_mask"].dtype == bool and inputs["attn_mask"].ndim in (2, 4))
        and inputs.get("attn_mask", inputs["V"]).shape[-1] in (inputs["V"].shape[-1], inputs["V"].shape[-2])
        and set(attributes) <= {"is_causal", "left_window_size", "right_window_size"}
        and attributes.get("right_window_size", -1) == -1
    )


ONNX_CASES = {
    case.name: case
    for case in onnx_cases._NodeTestCases
    if case.model.graph.node[0].op_type == "Attention" and fits(case)
}


def test_the_onnx_cases_are_there():
    names = "causal_with_past_and_present", "causal_nonpad_batch_prefill", "causal_nonpad_attn_mask_composition"
    windows = "test_attention_local_window", "test_attention_local_window_with_past"
    assert {*(f"test_attention_4d_{name}" for name in names), *windows} <= set(ONNX_CASES)


@pytest.mark.parametrize("name", ONNX_CASES)
def test_the_vectors_of_the_onnx_cases(name):
    case = ONNX_CASES[name]
    output, _ = ours(case_attributes(case), **case_inputs(case))
    np.testing.assert_allclose(output, case.data_sets[0][1][0], rtol=0, atol=2e-6)
