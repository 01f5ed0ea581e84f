"""Attention and softmax against references that nobody here wrote: ONNX and SciPy.

ONNX describes Attention and Softmax as operators and ships a slow evaluator of them in NumPy, along
with test cases; an "expanded" case has the operator written out in simpler operators.
"""

import functools
import importlib

import numpy as np
import pytest
import scipy.special
from onnx import TensorProto, helper
from onnx.backend.test.case import node as onnx_cases
from onnx.reference import ReferenceEvaluator

from attn_helpers import attention, blockwise

importlib.import_module("onnx.backend.test.case.node.attention")  # adds its cases to the list in onnx_cases

RNG = np.random.default_rng(11)
TYPES = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(np.float32): TensorProto.FLOAT}
TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-6, np.dtype(np.float16): 5e-3}
BATCH, HEADS, N_Q, N_KV, D_K, D_V = 2, 3, 4, 6, 8, 5
BOOLEAN = RNG.random((BATCH, HEADS, N_Q, N_KV)) < 0.6
BOOLEAN[..., 0] = True
ADDED = RNG.normal(scale=3, size=BOOLEAN.shape)
MASKS = {
    "none": None,
    "boolean": BOOLEAN[0, 0],
    "boolean per head": BOOLEAN,
    "padding": BOOLEAN[:, :1, :1],
    "a row of nothing": BOOLEAN[0, 0] & (np.arange(N_Q) != 2)[:, None],
    "float": ADDED[0, 0],
    "float per head": ADDED,
    "float with -inf": np.where(BOOLEAN, ADDED, -np.inf),
}


def run(operator, inputs, outputs, **attributes):
    """The outputs of one ONNX operator of set 23, as its reference computes them. "" is an output to leave out."""
    names = [f"in{i}" for i in range(len(inputs))]
    node = helper.make_node(operator, names, outputs, **attributes)
    dtype = TYPES[inputs[0].dtype]
    kinds = [TensorProto.BOOL if a.dtype == bool else dtype for a in inputs]
    graph = helper.make_graph(
        [node],
        operator,
        [helper.make_tensor_value_info(n, kind, a.shape) for n, kind, a in zip(names, kinds, inputs)],
        [helper.make_tensor_value_info(n, dtype, None) for n in outputs if n],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))


def composed(query, key, value, mask, is_causal, scale):
    """Attention from SciPy's softmax and einsum."""
    s = np.einsum("bhqd,bhkd->bhqk", query, key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    if is_causal:
        s = np.where(np.arange(s.shape[-1]) > np.arange(s.shape[-2])[:, None], -np.inf, s)
    weights = scipy.special.softmax(s, axis=-1)
    return np.einsum("bhqk,bhkv->bhqv", weights, value), weights


@functools.cache
def qkv(dtype):
    shapes = (N_Q, D_K), (N_KV, D_K), (N_KV, D_V)
    return [np.random.default_rng(3).normal(size=(BATCH, HEADS, *shape)).astype(dtype) for shape in shapes]


def options(masks):
    """Those masks, each with and without is_causal, with the default scale and another, in both dtypes."""

    def decorate(function):
        for name, values in dict(
            name=masks, is_causal=[False, True], scale=[None, 0.25], dtype=[np.float64, np.float32]
        ).items():
            function = pytest.mark.parametrize(name, values)(function)
        return function

    return decorate


@options(MASKS)
def test_attention_agrees_with_the_onnx_operator(name, is_causal, scale, dtype):
    arrays, mask = qkv(dtype), MASKS[name]
    inputs = arrays
    if mask is not None:  # in full size: with is_causal the reference takes the number of queries from the mask
        full = np.broadcast_to(mask, (*mask.shape[:-2], N_Q, N_KV))
        inputs = [*arrays, full if mask.dtype == bool else full.astype(dtype)]
    attributes = dict(is_causal=int(is_causal), qk_matmul_output_mode=3, **({} if scale is None else {"scale": scale}))
    expected = run("Attention", inputs, ["y", "", "", "weights"], **attributes)
    ours = attention.scaled_dot_product_attention(*arrays, mask, is_causal, scale)
    for one, other in zip(ours, expected):
        assert one.shape == other.shape
        assert one.dtype == other.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[np.dtype(dtype)])


@options(MASKS)
def test_blockwise_attention_agrees_with_the_onnx_operator(name, is_causal, scale, dtype):
    arrays, mask = qkv(dtype), MASKS[name]
    inputs = arrays
    if mask is not None:
        full = np.broadcast_to(mask, (*mask.shape[:-2], N_Q, N_KV))
        inputs = [*arrays, full if mask.dtype == bool else full.astype(dtype)]
    [expected] = run(
        "Attention", inputs, ["y"], is_causal=int(is_causal), **({} if scale is None else {"scale": scale})
    )
    ours = blockwise.blockwise_attention(*arrays, mask, is_causal, scale, block_size=3)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE[np.dtype(dtype)])


@options([name for name in MASKS if name != "a row of nothing"])  # there SciPy's softmax is NaN
def test_attention_agrees_with_einsum_and_the_softmax_of_scipy(name, is_causal, scale, dtype):
    arrays, mask = qkv(dtype), MASKS[name]
    ours = attention.scaled_dot_product_attention(*arrays, mask, is_causal, scale)
    for one, other in zip(ours, composed(*arrays, mask, is_causal, scale)):
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[np.dtype(dtype)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("scale", [0.1, 5, 300])
def test_softmax_agrees_with_the_onnx_operator(dtype, axis, scale):
    s = RNG.normal(scale=scale, size=(3, 4, 5)).astype(dtype)
    s[0, 1, 2] = s[2, 0, 0] = -np.inf
    [expected] = run("Softmax", [s], ["y"], axis=axis)
    ours = attention.softmax(s, axis)
    assert ours.dtype == expected.dtype == dtype
    np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE[np.dtype(dtype)])


def fits(case):
    """Whether we have what the case asks for: four axes, heads of one number, no cache, no capped scores."""
    [(inputs, _)] = case.data_sets
    case_inputs = [value.name for value in case.model.graph.input]
    return (
        case_inputs in (["Q", "K", "V"], ["Q", "K", "V", "attn_mask"])
        and all(a.ndim == 4 and a.dtype in TOLERANCE for a in inputs[:3])
        and inputs[0].shape[1] == inputs[1].shape[1]
        and set(attributes(case)) <= {"scale", "is_causal"}
        and list(case.model.graph.node[0].output) == ["Y"]
    )


def attributes(case):
    return {a.name: helper.get_attribute_value(a) for a in case.model.graph.node[0].attribute}


ONNX_CASES = {
    case.name: case
    for case in onnx_cases._NodeTestCases
    if case.model.graph.node[0].op_type == "Attention" and fits(case)
}


def test_the_onnx_cases_are_there():
    plain = {"", "_causal", "_scaled", "_attn_mask", "_attn_mask_4d_causal", "_attn_mask_bool", "_diff_heads_sizes"}
    assert {f"test_attention_4d{name}" for name in plain} <= set(ONNX_CASES)


@pytest.mark.parametrize("name", ONNX_CASES)
def test_attention_agrees_with_the_vectors_of_the_onnx_cases(name):
    [((query, key, value, *mask), [expected])] = ONNX_CASES[name].data_sets
    given = attributes(ONNX_CASES[name])
    mask = mask[0] if mask else None
    ours, _ = attention.scaled_dot_product_attention(
        query, key, value, mask, bool(given.get("is_causal", False)), given.get("scale")
    )
    assert ours.dtype == expected.dtype
    np.testing.assert_allclose(ours, expected, rtol=0, atol=TOLERANCE[expected.dtype])
