"""Multi-head attention, against loops in plain Python, against ONNX, and by its own laws; kinds of heads by hand.

"Case n" names a public bug report that the test stands for.
"""

import functools
import importlib
import math

import numpy as np
import pytest
from common import INF, NAN, silent
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.backend.test.case import node as onnx_cases
from onnx.reference import ReferenceEvaluator

from attn_helpers import attention, heads, masks

importlib.import_module("onnx.backend.test.case.node.attention")  # adds its cases to the list in onnx_cases

RNG = np.random.default_rng(5)
TOLERANCE = {np.float64: 1e-12, np.float32: 2e-5, np.float16: 2e-2}
MATRICES = "W_Q", "W_K", "W_V", "W_O"


split_heads = silent(heads.split_heads)
merge_heads = silent(heads.merge_heads)
multi_head_attention = silent(heads.multi_head_attention)
head_statistics = silent(heads.head_statistics)


def layer(h=3, kv=None, lead=(), n_q=4, n_kv=6, d=5, d_context=9, d_k=4, d_v=2, d_out=7, seed=0, dtype=np.float64):
    """Arguments of multi_head_attention, all sizes unequal, so that a mixed-up axis shows."""
    kv = h if kv is None else kv
    shapes = dict(x=(*lead, n_q, d), context=(*lead, n_kv, d_context), W_Q=(d, h * d_k), W_K=(d_context, kv * d_k))
    shapes |= dict(W_V=(d_context, kv * d_v), W_O=(h * d_v, d_out))
    rng = np.random.default_rng(seed)
    given = {name: (rng.normal(size=s) / math.sqrt(s[-2])).astype(dtype) for name, s in shapes.items()}
    biases = tuple(rng.normal(size=given[name].shape[1]).astype(dtype) for name in MATRICES)
    given["x"], given["context"] = 2 * given["x"], 2 * given["context"]
    return given | dict(heads=h, kv_heads=kv, biases=biases)


def self_layer(**sizes):
    """Likewise, where the context is x."""
    given = layer(**{**dict(n_q=6, d=9, d_context=9), **sizes})
    return given | dict(context=None)


def dots(rows, matrix, bias):
    """rows times matrix plus bias, number by number."""
    return [[sum(a * w for a, w in zip(row, column)) + b for column, b in zip(zip(*matrix), bias)] for row in rows]


def loop(x, context, W_Q, W_K, W_V, W_O, heads, kv_heads, biases, mask=None, is_causal=False, scale=None):
    """One sequence in plain Python: each head on its own columns, and the sum of what each adds to the output."""
    context = x if context is None else context
    b = [[0.0] * W.shape[1] if bias is None else bias for W, bias in zip((W_Q, W_K, W_V, W_O), biases or [None] * 4)]
    d_k, d_v, shared = W_Q.shape[1] // heads, W_V.shape[1] // kv_heads, heads // kv_heads
    output, weights = np.zeros((len(x), W_O.shape[1])) + b[3], np.zeros((heads, len(x), len(context)))
    for h in range(heads):
        k, v, own = (slice(i * width, (i + 1) * width) for i, width in ((h, d_k), (h // shared, d_v), (h, d_v)))
        query, j = dots(x.tolist(), W_Q[:, k].tolist(), b[0][k]), h // shared
        key = dots(context.tolist(), W_K[:, j * d_k : (j + 1) * d_k].tolist(), b[1][j * d_k : (j + 1) * d_k])
        value = dots(context.tolist(), W_V[:, v].tolist(), b[2][v])
        for t, q in enumerate(query):
            s = [sum(a * c for a, c in zip(q, key_j)) * (d_k**-0.5 if scale is None else scale) for key_j in key]
            for i in range(len(s)):
                allowed = not (is_causal and i > t)
                if mask is not None and mask.dtype == bool:
                    allowed = allowed and mask[h, t, i]
                elif mask is not None:
                    s[i] += float(mask[h, t, i])
                s[i] = s[i] if allowed else -INF
            powers = [math.exp(a - max(s)) if a > -INF else 0.0 for a in s]
            weights[h, t] = [p / (sum(powers) or 1) for p in powers]
            found = [[sum(w * row[c] for w, row in zip(weights[h, t], value)) for c in range(d_v)]]
            output[t] += dots(found, W_O[own].tolist(), [0.0] * W_O.shape[1])[0]
    return output, weights


def loop_all(x, context, mask=None, **rest):
    """loop for each index of the leading axes."""
    lead = x.shape[:-2] if context is None else np.broadcast_shapes(x.shape[:-2], context.shape[:-2])
    n_kv = (x if context is None else context).shape[-2]
    full = (*lead, rest["heads"], x.shape[-2], n_kv)
    x, context = (a if a is None else np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in (x, context))
    mask = None if mask is None else np.broadcast_to(mask, full)
    output, weights = np.empty((*lead, x.shape[-2], rest["W_O"].shape[1])), np.empty(full)
    for at in np.ndindex(lead):
        one = None if context is None else context[at], None if mask is None else mask[at]
        output[at], weights[at] = loop(x[at], one[0], mask=one[1], **rest)
    return output, weights


def assert_same(result, expected, atol=1e-12):
    """Equal output and equal weights."""
    for ours, theirs in zip(result, expected):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def changed(given, name, change):
    """The arguments with one of them changed."""
    return given | {name: change(given[name])}


# split and merge


def test_case_26_three_heads_of_24_numbers():
    # a reshape straight to (batch, heads, n, d_h) gives 2, 3
    split = split_heads(np.arange(24).reshape(1, 4, 6), 3)
    assert split.shape == (1, 3, 4, 2)
    assert split[0, 0, 1].tolist() == [6, 7]
    assert split[0].tolist() == [[[6 * t + 2 * h, 6 * t + 2 * h + 1] for t in range(4)] for h in range(3)]


def test_case_25_two_heads_of_two_tokens():
    # a reshape without the swap gives a, b, c, d: both tokens of the first head
    merged = merge_heads([[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]]])
    assert merged.tolist() == [["a", "b", "e", "f"], ["c", "d", "g", "h"]]


@pytest.mark.parametrize("lead", [(), (2,), (2, 3), (4, 1, 2)], ids=str)
@pytest.mark.parametrize("h", [1, 2, 3, 12])
def test_each_head_is_a_block_of_columns(lead, h):
    x = RNG.normal(size=(*lead, 5, h * 4))
    split = split_heads(x, h)
    assert split.shape == (*lead, h, 5, 4)
    for i in range(h):
        assert np.array_equal(split[..., i, :, :], x[..., 4 * i : 4 * i + 4])
    assert np.array_equal(merge_heads(split), np.concatenate([split[..., i, :, :] for i in range(h)], -1))


sizes = st.integers(0, 4)


@given(st.lists(sizes, max_size=3), st.integers(1, 5), sizes, sizes)
def test_merge_undoes_split_and_split_undoes_merge(lead, h, n, d_h):
    x = np.arange(math.prod(lead) * n * h * d_h).reshape(*lead, n, h * d_h)
    split = split_heads(x, h)
    assert split.shape == (*lead, h, n, d_h)
    assert merge_heads(split).shape == x.shape
    assert np.array_equal(merge_heads(split), x)
    y = np.arange(x.size).reshape(*lead, h, n, d_h)
    assert np.array_equal(split_heads(merge_heads(y), h), y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, bool, ">f4", object])
def test_moving_numbers_keeps_their_dtype(dtype):
    x = np.ones((3, 4), dtype)
    assert split_heads(x, 2).dtype == merge_heads(x[None]).dtype == x.dtype


def test_split_and_merge_take_lists():
    assert split_heads([[1, 2, 3, 4]], np.int8(2)).tolist() == [[[1, 2]], [[3, 4]]]
    assert merge_heads([[[1, 2]], [[3, 4]]]).tolist() == [[1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("x", "h", "error", "words"),
    [
        (np.ones((5, 380)), 12, ValueError, r"x \(5, 380\) has 380 features, its last axis, which 12 heads do not div"),
        (np.ones(4), 2, ValueError, r"x has shape \(4,\), but needs at least two axes \(n, heads \* d_h\)"),
        (np.ones((2, 4)), 0, ValueError, "heads is 0, but must be 1 or more"),
        (np.ones((2, 4)), -2, ValueError, "heads is -2, but must be 1 or more"),
        (np.ones((2, 4)), True, TypeError, "heads is True, but must be one whole number"),
        (np.ones((2, 4)), 2.0, TypeError, "heads is 2.0, but must be one whole number"),
        (np.ones((2, 4)), None, TypeError, "heads is None, but must be one whole number"),
        (None, 1, ValueError, r"x has shape \(\)"),
        ([[1, 2], [3]], 1, ValueError, "x is not a regular array"),
        (np.ma.ones((2, 2)), 1, TypeError, "x is a masked array"),
    ],
)
def test_split_refuses_what_does_not_fit(x, h, error, words):
    with pytest.raises(error, match=words):
        split_heads(x, h)


@pytest.mark.parametrize(
    ("x", "words"),
    [(np.ones((2, 4)), r"x has shape \(2, 4\), but needs at least three axes \(heads, n, d_h\)"), (1.0, r"shape \(\)")],
)
def test_merge_refuses_less_than_three_axes(x, words):
    with pytest.raises(ValueError, match=words):
        merge_heads(x)


# multi-head attention, values


def masks_for(h, n_q, n_kv, lead):
    """Masks of each kind that the scores (..., h, n_q, n_kv) take."""
    rng = np.random.default_rng(1)
    boolean = rng.random((*lead, h, n_q, n_kv)) < 0.6
    boolean[..., 1:, 0] = True  # the first query of some heads sees nothing
    ones = (1,) * len(lead)
    return {
        "none": None,
        "boolean": boolean[(0,) * (len(lead) + 1)],
        "boolean per head": boolean,
        "padding": np.broadcast_to(np.arange(n_kv) < n_kv - 2, (*ones, 1, 1, n_kv)),
        "padding of each": boolean[..., :1, 1:2, :],
        "float": rng.normal(size=(n_q, n_kv)),
        "float per head": np.where(boolean, rng.normal(size=boolean.shape), -INF),
    }


MASKS = list(masks_for(1, 2, 2, ()))
CAUSAL = pytest.mark.parametrize("is_causal", [False, True])
HEADS = pytest.mark.parametrize(("h", "kv"), [(1, 1), (2, 2), (3, 3), (3, 1), (4, 2), (12, 12), (12, 4), (12, 1)])


@HEADS
@CAUSAL
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
def test_loops_of_plain_python(h, kv, is_causal, lead):
    given = layer(h, kv, lead)
    options = dict(is_causal=is_causal)
    assert_same(multi_head_attention(**given, **options), loop_all(**given, **options))


@CAUSAL
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("lead", [(), (2,), (3,)], ids=str)
@pytest.mark.parametrize("scale", [None, -1.5])
def test_loops_with_a_mask(name, is_causal, lead, scale):
    # case 28: two sentences and two heads would hide that an axis is another
    given = layer(4, 2, lead)
    options = dict(is_causal=is_causal, scale=scale, mask=masks_for(4, 4, 6, lead)[name])
    assert_same(multi_head_attention(**given, **options), loop_all(**given, **options))


@HEADS
@CAUSAL
def test_without_a_context_x_attends_to_itself(h, kv, is_causal):
    given = self_layer(h=h, kv=kv, lead=(2,))
    result = multi_head_attention(**given, is_causal=is_causal)
    assert_same(result, loop_all(**given, is_causal=is_causal))
    assert_same(result, multi_head_attention(**given | dict(context=given["x"]), is_causal=is_causal), 0)


@pytest.mark.parametrize("absent", range(4))
def test_each_bias_may_be_absent(absent):
    given = layer()
    biases = [b if i != absent else None for i, b in enumerate(given["biases"])]
    one, all_four = multi_head_attention(**given | dict(biases=biases)), multi_head_attention(**given)
    assert_same(one, loop_all(**given | dict(biases=biases)))
    zeros = [np.zeros(given[name].shape[1]) if i == absent else b for i, (name, b) in enumerate(zip(MATRICES, biases))]
    assert_same(one, multi_head_attention(**given | dict(biases=zeros)))
    # a bias of the keys adds the same to all scores of a query, so softmax takes it away again
    assert np.allclose(one[0], all_four[0]) == (absent == 1)


def test_no_biases_are_four_of_none():
    given = layer() | dict(biases=None)
    assert_same(multi_head_attention(**given), loop_all(**given))
    assert_same(multi_head_attention(**given), multi_head_attention(**given | dict(biases=[None] * 4)), 0)


def test_options_have_these_places_and_defaults():
    given, mask = layer(4, 2), np.tri(4, 6, dtype=bool)
    x, context, W, biases = given["x"], given["context"], [given[name] for name in MATRICES], given["biases"]
    by_place = multi_head_attention(x, *W, 4, context, 2, biases, mask, True, 0.5)
    assert_same(by_place, multi_head_attention(**given, mask=mask, is_causal=True, scale=0.5), 0)
    given = layer(4)
    W = [given[name] for name in MATRICES]
    spelled = multi_head_attention(x, *W, 4, context, 4, None, None, False, None)
    assert_same(multi_head_attention(x, *W, 4, context), spelled, 0)


def test_case_17_the_divisor_is_the_root_of_the_width_of_one_head():
    # d_model 64 in 4 heads: sqrt(16) = 4, not sqrt(64) = 8, which one head cannot show
    x = np.zeros((2, 64))
    x[:, ::16] = [[1], [1 + 4 * math.log(3)]]  # in each head query 0 has products 1 and 1 + 4 ln 3 with the keys
    weights = multi_head_attention(x, *[np.eye(64)] * 4, 4)[1]
    np.testing.assert_allclose(weights[:, 0], [[1 / 4, 3 / 4]] * 4)


def test_by_hand():
    # head 0 sees the first feature, head 1 the second; ln 3 and ln 1 make weights 1/4, 3/4 and 1/2, 1/2
    context = [[0.0, 5.0], [math.log(3), 5.0]]
    W_V, W_O = [[0.0, 0.0], [8.0, 1.0]], [[1.0, 10.0, 0.0], [0.0, 1.0, 2.0]]
    output, weights = multi_head_attention([[1.0, 1.0]], np.eye(2), np.eye(2), W_V, W_O, 2, context)
    np.testing.assert_allclose(weights, [[[0.25, 0.75]], [[0.5, 0.5]]])
    np.testing.assert_allclose(output, [[40, 405, 10]])  # values 40 for head 0, 5 for head 1


def test_one_head_is_attention_between_two_matrices():
    given = layer(1, lead=(2,))
    found, weights = attention.scaled_dot_product_attention(
        given["x"] @ given["W_Q"], given["context"] @ given["W_K"], given["context"] @ given["W_V"]
    )
    expected = found @ given["W_O"], weights[:, None]
    assert_same(multi_head_attention(**given | dict(biases=None)), expected)


@pytest.mark.parametrize(("h", "kv"), [(2, 1), (6, 2), (6, 3), (12, 4)])
def test_neighbouring_query_heads_share_a_key_value_head(h, kv):
    # the wrong order, heads j and j + kv_heads together, shows only from two key/value heads on
    given = layer(h, kv, lead=(2,))
    repeated = dict(kv_heads=h)
    for i, (name, width) in enumerate((("W_K", 4), ("W_V", 2)), start=1):
        columns = np.concatenate([np.arange(width) + h_j // (h // kv) * width for h_j in range(h)])
        repeated[name] = given[name][:, columns]
        repeated |= {f"b{i}": given["biases"][i][columns]}
    biases = given["biases"][0], repeated.pop("b1"), repeated.pop("b2"), given["biases"][3]
    full = multi_head_attention(**given | repeated | dict(biases=biases))
    assert_same(multi_head_attention(**given), full)


def test_each_sentence_is_on_its_own():
    given = self_layer(h=3, lead=(2, 3))
    mask = masks_for(3, 6, 6, (2, 3))["boolean per head"]
    together = multi_head_attention(**given, mask=mask)
    for at in np.ndindex(2, 3):
        alone = multi_head_attention(**given | dict(x=given["x"][at]), mask=mask[at])
        assert_same([a[at] for a in together], alone, 1e-14)


def test_leading_axes_broadcast():
    # one question to all texts, and all questions to one text
    given = layer(lead=(2,))
    for name in ("x", "context"):
        shared = given | {name: given[name][0]}
        full = given | {name: np.broadcast_to(given[name][0], given[name].shape)}
        assert_same(multi_head_attention(**shared), multi_head_attention(**full), 1e-14)


# laws


orders = st.permutations(range(6))


@given(orders, st.sampled_from([(1, 1), (3, 3), (4, 2)]), st.integers(0, 99))
def test_a_permutation_of_the_positions_permutes_the_output(order, sizes, seed):
    given_layer = self_layer(h=sizes[0], kv=sizes[1], lead=(2,), seed=seed)
    output, weights = multi_head_attention(**given_layer)
    permuted = multi_head_attention(**given_layer | dict(x=given_layer["x"][:, order]))
    assert_same(permuted, (output[:, order], weights[..., order, :][..., order]))


@given(orders, st.integers(0, 99))
def test_a_permutation_of_the_context_changes_no_output(order, seed):
    given_layer = layer(seed=seed)
    output, weights = multi_head_attention(**given_layer)
    permuted = multi_head_attention(**given_layer | dict(context=given_layer["context"][order]))
    assert_same(permuted, (output, weights[..., order]))


@given(orders, st.integers(0, 99))
def test_heads_have_no_order(order, seed):
    # columns of W_Q, W_K, W_V and rows of W_O together
    given_layer = layer(6, seed=seed)
    order = np.array(order)
    k, v = ((width * order[:, None] + np.arange(width)).ravel() for width in (4, 2))
    b_Q, b_K, b_V, b_O = given_layer["biases"]
    moved = {name: given_layer[name][:, columns] for name, columns in (("W_Q", k), ("W_K", k), ("W_V", v))}
    moved |= dict(W_O=given_layer["W_O"][v], biases=(b_Q[k], b_K[k], b_V[v], b_O))
    output, weights = multi_head_attention(**given_layer)
    assert_same(multi_head_attention(**given_layer | moved), (output, weights[order]))


@pytest.mark.parametrize("h", [1, 2, 3, 12])
def test_the_output_is_a_sum_over_heads(h):
    # with the other rows of W_O at zero, one head is left
    given = layer(h, lead=(2,)) | dict(biases=None)
    rows = np.arange(2 * h) // 2
    parts = [
        multi_head_attention(**changed(given, "W_O", lambda W, i=i: W * (rows == i)[:, None]))[0] for i in range(h)
    ]
    np.testing.assert_allclose(sum(parts), multi_head_attention(**given)[0], atol=1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
def test_each_row_of_each_head_sums_to_one(is_causal):
    weights = multi_head_attention(**layer(12, 4, (2,)), is_causal=is_causal)[1]
    assert weights.shape == (2, 12, 4, 6)
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_no_token_sees_the_future_under_a_causal_mask():
    given = self_layer(h=3)
    output, weights = multi_head_attention(**given, is_causal=True)
    assert not weights[:, ~np.tri(6, dtype=bool)].any()
    given["x"][4:] += 1
    later = multi_head_attention(**given, is_causal=True)[0]
    np.testing.assert_allclose(later[:4], output[:4], atol=1e-14)
    assert not np.isclose(later[4:], output[4:]).any()


# ONNX: vectors, and an evaluator, that nobody here wrote


@functools.cache
def evaluator(q_heads, kv_heads, mask_type, options):
    """ONNX's reference of its Attention operator, version 23, on (batch, n, heads * d_h)."""
    names = ["query", "key", "value"] + ([] if mask_type is None else ["mask"])
    node = helper.make_node(
        "Attention",
        names,
        ["output", "", "", "weights"],
        q_num_heads=q_heads,
        kv_num_heads=kv_heads,
        qk_matmul_output_mode=3,  # after softmax
        **dict(options),
    )
    types = [TensorProto.DOUBLE] * 3 + ([] if mask_type is None else [mask_type])
    inputs = [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, types)]
    outputs = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in ("output", "weights")]
    graph = helper.make_graph([node], "heads", inputs, outputs)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]))


@HEADS
@CAUSAL
@pytest.mark.parametrize("name", MASKS)
def test_onnx_attention_between_the_matrices(h, kv, is_causal, name):
    given, mask = layer(h, kv, (2,)), masks_for(h, 4, 6, (2,))[name]
    b_Q, b_K, b_V, b_O = given["biases"]
    feeds = dict(query=given["x"] @ given["W_Q"] + b_Q)
    feeds |= dict(key=given["context"] @ given["W_K"] + b_K, value=given["context"] @ given["W_V"] + b_V)
    mask_type = None
    if mask is not None:  # in full size: with is_causal the reference takes the number of queries from the mask
        feeds["mask"] = np.broadcast_to(mask, (2, h, 4, 6))
        mask_type = TensorProto.BOOL if mask.dtype == bool else TensorProto.DOUBLE
    for scale in (None, 0.3):
        options = dict(is_causal=int(is_causal)) | ({} if scale is None else dict(scale=scale))
        found, weights = evaluator(h, kv, mask_type, tuple(options.items())).run(None, feeds)
        ours = multi_head_attention(**given, mask=mask, is_causal=is_causal, scale=scale)
        assert_same(ours, (found @ given["W_O"] + b_O, weights), 1e-6 if scale else 1e-12)  # its scale is in float32


def fits(case):
    """Whether it has heads side by side, without a cache, capped scores or a window."""
    given = {a.name for a in case.model.graph.node[0].attribute}
    return (
        case.model.graph.node[0].op_type == "Attention"
        and {"q_num_heads", "kv_num_heads"} <= given <= {"q_num_heads", "kv_num_heads", "scale", "is_causal"}
        and [value.name for value in case.model.graph.input][3:] in ([], ["attn_mask"])
        and case.data_sets[0][0][0].dtype.type in TOLERANCE
    )


ONNX_CASES = {case.name: case for case in onnx_cases._NodeTestCases if fits(case)}


def test_the_onnx_cases_are_there():
    plain = {"", "_gqa", "_diff_heads_sizes", "_scaled", "_gqa_causal", "_attn_mask", "_transpose_verification"}
    assert {f"test_attention_3d{name}" for name in plain} <= set(ONNX_CASES)


@pytest.mark.parametrize("name", ONNX_CASES)
def test_the_vectors_of_the_onnx_cases(name):
    # x is their query, the context their key and value side by side, and the matrices pick these
    [((query, key, value, *mask), [expected])] = ONNX_CASES[name].data_sets
    given = {a.name: helper.get_attribute_value(a) for a in ONNX_CASES[name].model.graph.node[0].attribute}
    d, d_k, d_v = (a.shape[-1] for a in (query, key, value))
    W_K, W_V = np.split(np.eye(d_k + d_v, dtype=query.dtype), [d_k], axis=1)
    W_Q, W_O = (np.eye(size, dtype=query.dtype) for size in (d, expected.shape[-1]))
    output, _ = multi_head_attention(
        query,
        *(W_Q, W_K, W_V, W_O),
        given["q_num_heads"],
        np.concatenate([key, value], -1),
        given["kv_num_heads"],
        mask=mask[0] if mask else None,
        is_causal=bool(given.get("is_causal", False)),
        scale=given.get("scale"),
    )
    assert output.dtype == expected.dtype
    np.testing.assert_allclose(output, expected, rtol=0, atol=2e-6)


# types, what is hidden, what is empty


@pytest.mark.parametrize("dtype", TOLERANCE)
@HEADS
def test_the_dtype_of_real_numbers_is_kept(dtype, h, kv):
    given = layer(h, kv, (2,), dtype=dtype)
    wide = {
        name: a.astype(float) if isinstance(a, np.ndarray) else a for name, a in given.items() if name != "biases"
    } | dict(biases=[b.astype(float) for b in given["biases"]])
    result = multi_head_attention(**given)
    assert {a.dtype for a in result} == {np.dtype(dtype)}
    assert_same(result, multi_head_attention(**wide), TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["x", "context", *MATRICES])
def test_one_argument_in_float64_makes_the_result_float64(name):
    given = changed(layer(dtype=np.float32), name, lambda a: a.astype(float))
    assert {a.dtype for a in multi_head_attention(**given)} == {np.dtype(float)}


@pytest.mark.parametrize("place", range(4))
def test_one_bias_in_float64_makes_the_result_float64(place):
    given = changed(
        layer(dtype=np.float32), "biases", lambda b: [a.astype(float) if i == place else a for i, a in enumerate(b)]
    )
    assert {a.dtype for a in multi_head_attention(**given)} == {np.dtype(float)}


def test_lists_of_integers_are_taken_as_float64():
    # cases 42, 43
    rng = np.random.default_rng(0)
    given = {n: a if np.ndim(a) == 0 else rng.integers(-2, 3, a.shape) for n, a in layer().items() if n != "biases"}
    biases = [rng.integers(-2, 3, given[name].shape[1]) for name in MATRICES]
    lists = {n: a if np.ndim(a) == 0 else a.tolist() for n, a in given.items()} | dict(
        biases=[b.tolist() for b in biases]
    )
    result = multi_head_attention(**lists)
    assert {a.dtype for a in result} == {np.dtype(float)}
    assert_same(result, loop_all(**given, biases=biases))


def test_float16_is_computed_in_float32_from_end_to_end():
    # case 41: float16 stops counting at 2048, and one rounding between two steps shows
    given = layer(3, lead=(2,), d=400, d_out=50, dtype=np.float16)
    wide = {n: a.astype(np.float32) if isinstance(a, np.ndarray) else a for n, a in given.items() if n != "biases"}
    wide |= dict(biases=[b.astype(np.float32) for b in given["biases"]])
    for ours, theirs in zip(multi_head_attention(**given), multi_head_attention(**wide)):
        assert np.array_equal(ours, theirs.astype(np.float16))
    ones = np.ones((1, 4096), np.float16)
    assert multi_head_attention(ones, ones.T / 64, ones.T / 64, ones.T, ones[:, :1], 1)[0].tolist() == [[4096]]


def test_float32_is_computed_in_float32():
    # there the 2**-24 of (1 + 2**-12)**2 is lost, and float64 would show it
    one, x = np.ones((1, 1), np.float32), np.full((1, 1), 1 + 2**-12, np.float32)
    output, _ = multi_head_attention(x, one, one, x, one, 1, biases=(None, None, -one[0], None))
    assert output.tolist() == [[2**-11]]


def test_float16_beyond_its_range_is_infinite_without_a_warning():
    one, far = np.ones((1, 1), np.float16), np.full((1, 1), 6e4, np.float16)
    assert multi_head_attention(one, one, one, far, 2 * one, 1)[0].tolist() == [[INF]]


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("kind", ["padding", "float padding", "causal"])
def test_what_is_hidden_cannot_reach_the_output(poison, kind):
    given = self_layer(h=3, lead=(2,))
    seen = np.arange(6) < 4
    mask = {"padding": seen[None], "float padding": np.where(seen, 0, -INF)[None], "causal": None}[kind]
    clean = multi_head_attention(**given, mask=mask, is_causal=kind == "causal")
    given["x"][:, 4:] = poison
    output, weights = multi_head_attention(**given, mask=mask, is_causal=kind == "causal")
    assert_same((output[:, :4], weights[..., :4, :]), (clean[0][:, :4], clean[1][..., :4, :]))
    assert not np.isfinite(output[:, 4:]).any()


def test_a_query_with_nothing_allowed_gets_the_bias_of_the_output():
    given, mask = layer(), np.ones((4, 6), bool)
    mask[2] = False
    output, weights = multi_head_attention(**given, mask=mask)
    assert not weights[:, 2].any()
    assert np.array_equal(output[2], given["biases"][3])


@pytest.mark.parametrize("empty", [dict(n_q=0), dict(n_kv=0), dict(d_v=0), dict(d_out=0), dict(lead=(0,)), dict(d=0)])
def test_an_empty_axis_stays_empty(empty):
    # case 44
    given = layer(**empty)
    output, weights = multi_head_attention(**given)
    assert output.shape == (*given["x"].shape[:-1], given["W_O"].shape[1])
    assert weights.shape == (*given["x"].shape[:-2], 3, given["x"].shape[-2], given["context"].shape[-2])
    if empty in (dict(n_kv=0), dict(d_v=0)):
        assert np.array_equal(output, np.broadcast_to(given["biases"][3], output.shape))


def test_nothing_that_went_in_is_changed():
    given = layer(4, 2, (2,))
    arrays = [*(a for a in given.values() if isinstance(a, np.ndarray)), *given["biases"]]
    copies = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    multi_head_attention(**given, is_causal=True)
    assert all(np.array_equal(a, b) for a, b in zip(arrays, copies))


# multi-head attention, errors


def with_shape(**shapes):
    """Ones of those shapes, by name."""
    return {name: np.ones(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_shape(W_Q=(5, 13)), r"W_Q \(5, 13\) has 13 columns, which 4 heads do not divide"),
        (with_shape(W_V=(9, 5)), r"W_V \(9, 5\) has 5 columns, which 2 kv_heads do not divide"),
        (
            with_shape(W_K=(9, 16)),
            r"W_K \(9, 16\) has 16 columns, but needs 8: 2 kv_heads of d_k = 4, as W_Q \(5, 16\) has it for 4 heads",
        ),
        (with_shape(W_K=(9, 7)), r"W_K \(9, 7\) has 7 columns, but needs 8"),
        (
            with_shape(W_O=(4, 7)),
            r"W_O \(4, 7\) has 4 rows, but needs 8: 4 heads of d_v = 2, as W_V \(9, 4\) has it for 2 kv_heads",
        ),
        (with_shape(x=(4, 6)), r"x \(4, 6\) has width 6, its last axis, but W_Q \(5, 16\) has 5 rows"),
        (with_shape(context=(6, 5)), r"context \(6, 5\) has width 5, its last axis, but W_K \(9, 8\) has 9 rows"),
        (with_shape(W_V=(8, 4)), r"context \(6, 9\) has width 9, its last axis, but W_V \(8, 4\) has 8 rows"),
        (dict(context=None), r"x \(4, 5\) has width 5, its last axis, but W_K \(9, 8\) has 9 rows"),
        (with_shape(x=5), r"x has shape \(5,\), but needs at least two axes \(n_q, d\)"),
        (with_shape(context=9), r"context has shape \(9,\), but needs at least two axes \(n_kv, d_context\)"),
        (with_shape(x=(2, 4, 5), context=(3, 6, 9)), r"do not broadcast: x \(2, 4, 5\), context \(3, 6, 9\)"),
        *((with_shape(**{name: 3}), rf"{name} has shape \(3,\), but needs two axes, rows and") for name in MATRICES),
        *((with_shape(**{name: (2, 9, 8)}), rf"{name} has shape \(2, 9, 8\), but needs two axes") for name in MATRICES),
        (with_shape(W_Q=(5, 0), W_K=(9, 0)) | dict(biases=None), r"W_Q \(5, 0\) has no columns: there is nothing"),
        (dict(kv_heads=3), "kv_heads is 3, but must divide heads, 4"),
        (dict(kv_heads=8), "kv_heads is 8, but must divide heads, 4"),
        (dict(kv_heads=0), "kv_heads is 0, but must be 1 or more"),
        (dict(heads=0), "heads is 0, but must be 1 or more"),
        (dict(biases=()), r"biases has 0 entries, but must be None or four: \(b_Q, b_K, b_V, b_O\)"),
        (dict(biases=[None] * 3), "biases has 3 entries"),
        (dict(biases=[np.zeros(8), None, None, None]), r"b_Q has shape \(8,\), but needs \(16,\), the columns of W_Q"),
        (dict(biases=[None, np.zeros(16), None, None]), r"b_K has shape \(16,\), but needs \(8,\), the columns of W_K"),
        (dict(biases=[None, None, 0.0, None]), r"b_V has shape \(\), but needs \(4,\), the columns of W_V \(9, 4\)"),
        (dict(biases=[None, None, None, np.zeros((4, 7))]), r"b_O has shape \(4, 7\), but needs \(7,\), the columns"),
        (dict(mask=np.ones((2, 4, 6), bool)), r"mask \(2, 4, 6\) does not fit the scores \(4, 4, 6\)"),
        (dict(mask=np.ones(6, bool)), r"mask \(6,\) has 1 axes and the scores \(4, 4, 6\) have 3"),
        (dict(scale=NAN), "scale is nan"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        multi_head_attention(**layer(4, 2) | change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *((dict(heads=bad), f"heads is {bad!r}, but must be one whole number") for bad in (True, 4.0, "4", None)),
        *((dict(kv_heads=bad), f"kv_heads is {bad!r}, but must be one whole number") for bad in (True, 2.0, "2")),
        *(({name: bad}, name) for name in ("x", *MATRICES) for bad in (None, "abc", [[True]], np.ones((2, 2)) * 1j)),
        (dict(context="abc"), "context has dtype"),
        (dict(biases=5), r"biases is 5, but must be None or four: \(b_Q, b_K, b_V, b_O\)"),
        (dict(biases="abcd"), "b_Q has dtype"),
        (dict(biases=[None, None, None, [True] * 7]), "b_O has dtype bool"),
        (dict(mask=np.ones((4, 6), int)), "mask has dtype int"),
        (dict(is_causal=1), "is_causal is 1"),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(change, words):
    with pytest.raises(TypeError, match=words):
        multi_head_attention(**layer(4, 2) | change)


@pytest.mark.parametrize("h", [2, 3])
def test_case_28_a_mask_without_an_axis_for_the_heads_is_refused(h):
    # two sentences, two heads: NumPy would take the axis of the sentences for that of the heads
    with pytest.raises(ValueError, match=rf"mask \(2, 4, 6\) has 3 axes and the scores \(2, {h}, 4, 6\) have 4"):
        multi_head_attention(**layer(h, lead=(2,)), mask=np.ones((2, 4, 6), bool))


def test_scores_beyond_the_limit_of_memory_are_refused():
    one = np.ones((1, 1))
    with pytest.raises(MemoryError, match=r"the scores \(1, 40000, 40000\)"):
        multi_head_attention(np.ones((40000, 1)), one, one, one, one, 1)


# kinds of heads


KINDS = "previous", "next", "self", "first", "distance", "entropy"


def assert_kind(statistics, **expected):
    """Those values, and no other key."""
    assert list(statistics) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(statistics[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


def sink(n):
    weights = np.zeros((n, n))
    weights[:, 0] = 1
    return weights


def shifted(n, by):
    """All weight on the token that far on, the outermost on itself."""
    return np.eye(n)[np.clip(np.arange(n) + by, 0, n - 1)]


MAPS = {
    # n = 5                previous next  self first  distance entropy
    "previous": (shifted(5, -1), [1, 0, 1 / 5, 1 / 4, 4 / 5, 0]),
    "next": (shifted(5, 1), [0, 1, 1 / 5, 0, 4 / 5, 0]),
    "two back": (shifted(5, -2), [1 / 4, 0, 1 / 5, 2 / 4, 7 / 5, 0]),
    "self": (np.eye(5), [0, 0, 1, 0, 0, 0]),
    "first": (sink(5), [1 / 4, 0, 1 / 5, 1, 2, 0]),
    "uniform": (np.full((5, 5), 1 / 5), [1 / 5, 1 / 5, 1 / 5, 1 / 5, 8 / 5, math.log2(5)]),
    "half self, half previous": (
        (np.eye(5) + shifted(5, -1)) / 2,
        [1 / 2, 0, 3 / 5, 1 / 8, 2 / 5, 4 / 5],
    ),
    "uniform causal": (
        np.tri(5) / np.arange(1, 6)[:, None],
        [
            (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4,
            0,
            (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5,
            (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4,
            (0 + 1 / 2 + 1 + 3 / 2 + 2) / 5,
            math.log2(math.factorial(5)) / 5,
        ],
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps_by_hand(name):
    weights, expected = MAPS[name]
    assert_kind(head_statistics(weights), **dict(zip(KINDS, expected)))


@pytest.mark.parametrize("n", [2, 3, 10, 97])
def test_a_uniform_map_by_formula(n):
    # the mean distance of two places out of n is (n^2 - 1) / 3n, the entropy log2 n
    statistics = head_statistics(np.full((n, n), 1 / n))
    expected = dict.fromkeys(KINDS[:4], 1 / n) | dict(distance=(n * n - 1) / (3 * n), entropy=math.log2(n))
    assert_kind(statistics, **expected)


def mean(values):
    return sum(values) / len(values) if values else NAN


def by_loop(weights, tokens, delimiters):
    """The nine definitions in plain Python."""
    A, n = weights.tolist(), len(weights)
    copies = {t: [j for j in range(t) if tokens[j] == tokens[t]] for t in range(n)}
    after = {t: [j + 1 for j in copies[t] if j + 1 < t] for t in range(n)}
    some = any(delimiters)
    return dict(
        previous=mean([A[t][t - 1] for t in range(1, n)]),
        next=mean([A[t][t + 1] for t in range(n - 1)]),
        self=mean([A[t][t] for t in range(n)]),
        first=mean([A[t][0] for t in range(1, n)]),
        delimiter=mean(
            [sum(A[t][i] for i in range(n) if delimiters[i]) for t in range(n) if some and not delimiters[t]]
        ),
        distance=mean([sum(A[t][i] * abs(t - i) for i in range(n)) for t in range(n)]),
        entropy=mean([-sum(a * math.log2(a) for a in row if a) for row in A]),
        duplicate=mean([sum(A[t][j] for j in copies[t]) for t in range(n) if copies[t]]),
        induction=mean([sum(A[t][j] for j in after[t]) for t in range(n) if after[t]]),
    )


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=9),
    st.booleans(),
    st.integers(0, 99),
)
def test_the_definitions_in_plain_python(row, causal, seed):
    n = len(row)
    tokens, delimiters = zip(*row)
    mask = masks.causal_mask(n) if causal else np.ones((n, n), bool)
    s = np.where(mask, np.random.default_rng(seed).normal(scale=2, size=(n, n)), -INF)
    weights = attention.softmax(s)
    assert_kind(head_statistics(weights, tokens, delimiters), **by_loop(weights, tokens, delimiters))


def test_delimiters_by_hand():
    # [CLS] and [SEP] around two words: the words give 0.3 + 0.1 and 0.5 + 0.25
    weights = [[1.0, 0, 0, 0], [0.3, 0.2, 0.4, 0.1], [0.5, 0.125, 0.125, 0.25], [0, 0, 0, 1.0]]
    assert head_statistics(weights, delimiters=[True, False, False, True])["delimiter"] == pytest.approx(0.575)


@pytest.mark.parametrize("delimiters", [[True] * 3, [False] * 3])
def test_without_a_delimiter_or_with_nothing_else_the_share_is_nan(delimiters):
    assert np.isnan(head_statistics(np.eye(3), delimiters=delimiters)["delimiter"])


TOKENS = "the", "cat", "the", "cat", "sat"


def row_maps(n, *rows):
    """A map of rows (query, {key: weight}); the other queries look at themselves."""
    weights = np.eye(n)
    for t, keys in rows:
        weights[t] = 0
        for i, weight in keys.items():
            weights[t, i] = weight
    return weights


def test_induction_and_duplicate_by_hand():
    # the second "the" finds the first (key 0) and what came after it (key 1); "cat" finds key 1, and key 2
    weights = row_maps(5, (2, {0: 0.25, 1: 0.75}), (3, {1: 0.5, 2: 0.125, 3: 0.375}), (4, {0: 1.0}))
    statistics = head_statistics(weights, TOKENS)
    assert statistics["duplicate"] == pytest.approx((0.25 + 0.5) / 2)
    assert statistics["induction"] == pytest.approx((0.75 + 0.125) / 2)


def test_all_earlier_copies_count():
    # "a b a c a": the last a has earlier ones at 0 and 2, followed by 1 and 3; the one at 2 at 0, followed by 1
    weights = row_maps(5, (2, {0: 0.5, 1: 0.5}), (4, {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4}))
    statistics = head_statistics(weights, "abaca")
    assert statistics["duplicate"] == pytest.approx((0.5 + 0.4) / 2)
    assert statistics["induction"] == pytest.approx((0.5 + 0.6) / 2)


def test_a_token_after_its_own_copy_is_no_query_of_induction():
    # in "a a" the token after the first a is the query itself; in "a a a" the last has key 1
    assert np.isnan(head_statistics(np.eye(2), "aa")["induction"])
    assert head_statistics(row_maps(2, (1, {0: 1.0})), "aa")["duplicate"] == 1
    statistics = head_statistics(row_maps(3, (1, {0: 1.0}), (2, {1: 0.5, 0: 0.25, 2: 0.25})), "aaa")
    assert statistics["induction"] == 0.5
    assert statistics["duplicate"] == pytest.approx((1 + 0.75) / 2)


def test_without_a_repetition_duplicate_and_induction_are_nan():
    statistics = head_statistics(np.eye(4), "abcd")
    assert np.isnan(statistics["duplicate"])
    assert np.isnan(statistics["induction"])


@pytest.mark.parametrize(
    "tokens",
    [
        ["x", "y", "x", "z"],
        "xyxz",
        (7, 0, 7, 2),
        np.array([7, 0, 7, 2]),
        np.array(["x", "y", "x", "z"]),
        [(1, 2), (1,), (1, 2), ()],
        [1, "1", 1.0, None],
    ],
    ids=repr,
)
def test_tokens_are_anything_that_compares(tokens):
    weights = row_maps(4, (2, {0: 0.75, 1: 0.25}))
    assert head_statistics(weights, tokens)["duplicate"] == 0.75
    assert head_statistics(weights, iter(tokens))["duplicate"] == 0.75


def test_an_induction_head_is_found_on_repeated_tokens():
    # a run of 6 twice: query 6 + j on key j + 1, on key j, and on both
    after = np.eye(12)[np.r_[np.zeros(6, int), np.arange(1, 7)]]
    same = np.eye(12)[np.r_[np.zeros(6, int), np.arange(6)]]
    tokens = list(range(6)) * 2
    for weights, induction, duplicate in ((after, 1, 0), (same, 0, 1), ((after + 3 * same) / 4, 0.25, 0.75)):
        statistics = head_statistics(weights, tokens)
        assert (statistics["induction"], statistics["duplicate"]) == (induction, duplicate)


def test_the_keys_come_in_this_order_and_only_those_asked_for():
    weights = np.eye(2)
    assert list(head_statistics(weights)) == list(KINDS)
    assert list(head_statistics(weights, "ab")) == [*KINDS, "duplicate", "induction"]
    with_both = ["previous", "next", "self", "first", "delimiter", "distance", "entropy", "duplicate", "induction"]
    assert list(head_statistics(weights, "ab", [True, False])) == with_both
    assert list(head_statistics(weights, None, [True, False])) == with_both[:7]


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (0,)], ids=str)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_leading_axes_stay_and_results_are_float64(lead, dtype):
    weights = attention.softmax(RNG.normal(size=(*lead, 4, 4))).astype(dtype)
    statistics = head_statistics(weights, "abab", [True, False, False, False])
    assert len(statistics) == 9
    for name, values in statistics.items():
        assert values.shape == lead
        assert values.dtype == np.float64
        for at in np.ndindex(lead):
            alone = head_statistics(weights[at], "abab", [True, False, False, False])[name]
            np.testing.assert_allclose(values[at], alone, rtol=1e-6)


def test_one_token_alone_has_no_neighbours():
    expected = dict(previous=NAN, next=NAN, self=1, first=NAN, delimiter=NAN, distance=0, entropy=0)
    assert_kind(head_statistics([[1]], "a", [False]), **expected, duplicate=NAN, induction=NAN)


@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_of_no_token_at_all_everything_is_nan(lead):
    statistics = head_statistics(np.zeros((*lead, 0, 0)), [], np.zeros(0, bool))
    assert len(statistics) == 9
    assert all(values.shape == lead and np.isnan(values).all() for values in statistics.values())


def test_a_row_of_zeros_has_no_entropy():
    weights = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
    expected = dict(previous=1, next=0, self=0, first=1 / 2, distance=2 / 3, entropy=NAN)
    assert_kind(head_statistics(weights), **expected)


def test_weights_underflow_in_silence():
    weights = row_maps(3, (1, {0: 5e-324, 1: 1.0}))
    assert head_statistics(weights, "aab", [True, False, False])["previous"] == 0


def test_float16_weights_may_miss_one_by_their_rounding():
    weights = np.full((2, 3, 3), 1 / 3, np.float16)
    assert head_statistics(weights)["self"] == pytest.approx([float(np.float16(1 / 3))] * 2, abs=1e-9)


def test_what_is_summed_is_summed_in_float64():
    weights = attention.softmax(RNG.normal(size=(200, 200)).astype(np.float32))
    tokens, delimiters = list(range(100)) * 2, np.arange(200) % 9 == 0
    wide = head_statistics(weights.astype(np.float64), tokens, delimiters)
    for name, value in head_statistics(weights, tokens, delimiters).items():
        assert value == pytest.approx(wide[name], rel=1e-6 if name == "entropy" else 1e-14)


@pytest.mark.parametrize(
    ("weights", "options", "error", "words"),
    [
        (np.ones((2, 3)) / 3, {}, ValueError, r"weights \(2, 3\) have 2 queries and 3 keys, but self-attention has"),
        (np.ones(1), {}, ValueError, r"weights has shape \(1,\), but needs at least two axes \(n, n\)"),
        (np.ones((2, 2)), {}, ValueError, "weights must sum to 1 along axis -1, but one slice sums to 2"),
        ([[1, 0], [-1, 2]], {}, ValueError, "weights must not be negative"),
        (sink(3).T, {}, ValueError, "one slice sums to 3"),  # columns that sum to 1
        (np.eye(2, dtype=bool), {}, TypeError, "weights has dtype bool"),
        (None, {}, TypeError, "weights"),
        (np.eye(3), dict(tokens="ab"), ValueError, "there are 2 tokens, but weights have n = 3, their last axis"),
        (np.eye(3), dict(tokens=[]), ValueError, "there are 0 tokens"),
        (np.eye(3), dict(tokens="abcd"), ValueError, "there are 4 tokens, but weights have n = 3"),
        (np.eye(3), dict(tokens=np.zeros((3, 3), int)), ValueError, r"tokens has shape \(3, 3\), but needs one axis"),
        (np.eye(3), dict(tokens=5), TypeError, "tokens is 5, but must be n tokens in a row"),
        (np.eye(3), dict(delimiters=[1, 0, 0]), TypeError, "delimiters has dtype int.*, but must be boolean"),
        (np.eye(3), dict(delimiters=[True]), ValueError, r"delimiters has shape \(1,\), but needs \(3,\)"),
        (np.eye(3), dict(delimiters=np.ones((3, 3), bool)), ValueError, r"delimiters has shape \(3, 3\)"),
    ],
)
def test_statistics_refuse_what_does_not_fit(weights, options, error, words):
    with pytest.raises(error, match=words):
        head_statistics(weights, **options)


def attend(**change):
    """A layer of 4 heads and 2 key/value heads with something else in it."""
    return multi_head_attention(**layer(4, 2) | change)


def attend_to_itself(**change):
    """Likewise of 4 heads with keys and values of their own, the context x."""
    return multi_head_attention(**self_layer(h=4) | change)


ones, masked = np.ones, np.ma.ones((2, 2))
NO_REAL, MASKED = "needs real numbers", "is a masked array: pass its data, and what to hide as mask"
TWO_AXES, FOUR = "needs two axes, rows and columns", "must be None or four: (b_Q, b_K, b_V, b_O), each a vector or None"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split_heads(ones((2, 5, 380)), 12),
            "x (2, 5, 380) has 380 features, its last axis, which 12 heads do not divide",
        ),
        (
            lambda: split_heads(ones(4), 2),
            "x has shape (4,), but needs at least two axes (n, heads * d_h); for a single vector write x[None, :]",
        ),
        (lambda: split_heads(masked, 1), f"x {MASKED}"),
        (lambda: split_heads(ones((2, 4)), 0), "heads is 0, but must be 1 or more"),
        (lambda: merge_heads(ones((2, 4))), "x has shape (2, 4), but needs at least three axes (heads, n, d_h)"),
        (lambda: merge_heads(masked), f"x {MASKED}"),
        (lambda: attend(heads="4"), "heads is '4', but must be one whole number"),
        (lambda: attend(kv_heads="2"), "kv_heads is '2', but must be one whole number"),
        (lambda: attend(kv_heads=3), "kv_heads is 3, but must divide heads, 4"),
        (lambda: attend(x="abc"), f"x has dtype <U3, but {NO_REAL}"),
        (lambda: attend(context="abc"), f"context has dtype <U3, but {NO_REAL}"),
        (lambda: attend_to_itself(x="abc"), f"x has dtype <U3, but {NO_REAL}"),
        (lambda: attend(W_K="abc"), f"W_K has dtype <U3, but {NO_REAL}"),
        (lambda: attend(W_O=ones((2, 8, 7))), f"W_O has shape (2, 8, 7), but {TWO_AXES}"),
        (
            lambda: attend(x=ones(5)),
            "x has shape (5,), but needs at least two axes (n_q, d); for a single vector write x[None, :]",
        ),
        (
            lambda: attend(context=ones(9)),
            "context has shape (9,), but needs at least two axes (n_kv, d_context); "
            "for a single vector write context[None, :]",
        ),
        (
            lambda: attend(x=ones((2, 4, 5)), context=ones((3, 6, 9))),
            "the axes before the last two do not broadcast: x (2, 4, 5), context (3, 6, 9)",
        ),
        (
            lambda: attend(x=ones((2, 4, 6))),
            "x (2, 4, 6) has width 6, its last axis, but W_Q (5, 16) has 5 rows",
        ),
        (
            lambda: attend(context=ones((2, 6, 5))),
            "context (2, 6, 5) has width 5, its last axis, but W_K (9, 8) has 9 rows",
        ),
        (
            lambda: attend(W_V=ones((8, 4))),
            "context (6, 9) has width 9, its last axis, but W_V (8, 4) has 8 rows",
        ),
        (
            lambda: attend_to_itself(W_V=ones((8, 8))),
            "x (6, 9) has width 9, its last axis, but W_V (8, 8) has 8 rows",
        ),
        (lambda: attend(W_Q=ones((5, 13))), "W_Q (5, 13) has 13 columns, which 4 heads do not divide"),
        (lambda: attend(W_Q=ones((5, 0))), "W_Q (5, 0) has no columns: there is nothing to compare"),
        (lambda: attend(W_V=ones((9, 5))), "W_V (9, 5) has 5 columns, which 2 kv_heads do not divide"),
        (lambda: attend_to_itself(W_V=ones((9, 5))), "W_V (9, 5) has 5 columns, which 4 heads do not divide"),
        (
            lambda: attend(W_K=ones((9, 7))),
            "W_K (9, 7) has 7 columns, but needs 8: 2 kv_heads of d_k = 4, as W_Q (5, 16) has it for 4 heads",
        ),
        (
            lambda: attend_to_itself(W_K=ones((9, 7))),
            "W_K (9, 7) has 7 columns, but needs 16: 4 heads of d_k = 4, as W_Q (9, 16) has it for 4 heads",
        ),
        (
            lambda: attend(W_O=ones((4, 7))),
            "W_O (4, 7) has 4 rows, but needs 8: 4 heads of d_v = 2, as W_V (9, 4) has it for 2 kv_heads",
        ),
        (
            lambda: attend_to_itself(W_O=ones((4, 7))),
            "W_O (4, 7) has 4 rows, but needs 8: 4 heads of d_v = 2, as W_V (9, 8) has it for 4 heads",
        ),
        (lambda: attend(biases=5), f"biases is 5, but {FOUR}"),
        (lambda: attend(biases=()), f"biases has 0 entries, but {FOUR}"),
        (
            lambda: attend(biases=(ones(8), None, None, None)),
            "b_Q has shape (8,), but needs (16,), the columns of W_Q (5, 16)",
        ),
        (lambda: attend(biases=(None, None, None, "abc")), f"b_O has dtype <U3, but {NO_REAL}"),
        (lambda: head_statistics("abc"), f"weights has dtype <U3, but {NO_REAL}"),
        (
            lambda: head_statistics(ones(1)),
            "weights has shape (1,), but needs at least two axes (n, n); for a single vector write weights[None, :]",
        ),
        (
            lambda: head_statistics(ones((5, 2, 3)) / 3),
            "weights (5, 2, 3) have 2 queries and 3 keys, but self-attention has as many of both, (..., n, n)",
        ),
        (
            lambda: head_statistics(np.eye(2), delimiters=[1, 0.5]),
            "delimiters has dtype float64, but must be boolean, True for a delimiter token",
        ),
        (
            lambda: head_statistics(np.eye(2), delimiters=[True]),
            "delimiters has shape (1,), but needs (2,), an entry for each of n = 2 tokens",
        ),
        (lambda: head_statistics(np.eye(2), delimiters=masked), f"delimiters {MASKED}"),
        (
            lambda: head_statistics(np.eye(2), np.eye(2)),
            "tokens has shape (2, 2), but needs one axis (n,), the same tokens for all maps",
        ),
        (lambda: head_statistics(np.eye(2), 5), "tokens is 5, but must be n tokens in a row"),
        (
            lambda: head_statistics(np.eye(2), "abc"),
            "there are 3 tokens, but weights have n = 2, their last axis",
        ),
        (
            lambda: head_statistics(np.eye(2), [ones(2)] * 2),
            "tokens hold arrays, but == must give one True or False for two tokens",
        ),
    ],
)
def test_the_whole_message_says_what_came_and_what_was_expected(call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == message
