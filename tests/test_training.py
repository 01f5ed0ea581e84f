"""Training, against finite differences, against Adam as the paper writes it, and by what is learned."""

import copy
import functools
import math
import tracemalloc

import numpy as np
import pytest
from common import assert_close, slope

from attn_helpers import attention, head_statistics
from attn_helpers.training import Adam, AttentionModel, attention_backward, random_tokens, repeated_tokens, train

INF, NAN = np.inf, np.nan
F64 = np.float64
RANDOM = functools.partial(random_tokens, batch=32, n=16, vocabulary=16)
REPEATED = functools.partial(repeated_tokens, batch=32, n=16, vocabulary=16, shortest=4, longest=8)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# attention's backward pass

LEADS = {
    "none": ((), (), ()),
    "batch": ((2,), (2,), (2,)),
    "batch and heads": ((2, 3), (2, 3), (2, 3)),
    "one query for all": ((), (2,), (2,)),
    "shared keys": ((2, 3), (2, 1), (2, 1)),
    "values alone": ((1,), (1,), (3,)),
    "crossed": ((2, 1), (1, 3), (3,)),
}
MASKS = {
    "none": {},
    "causal": dict(is_causal=True),
    "boolean": dict(mask=np.arange(20).reshape(4, 5) % 3 > 0),
    "a row of nothing": dict(mask=np.ones((4, 5), bool) & (np.arange(4) != 2)[:, None]),
    "added": dict(mask=normal(4, 5, seed=9)),
}


def qkv(leads):
    return [normal(*lead, n, d, seed=seed) for seed, (lead, n, d) in enumerate(zip(leads, (4, 5, 5), (3, 3, 2)))]


@pytest.mark.parametrize("scale", [None, 0.9])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("leads", LEADS)
def test_the_gradients_are_those_of_finite_differences(leads, mask, scale):
    arrays = qkv(LEADS[leads])
    attend = functools.partial(attention.scaled_dot_product_attention, *arrays, **MASKS[mask], scale=scale)
    output, weights = attend()
    grad_output = normal(*output.shape, seed=5)
    ours = attention_backward(grad_output, *arrays, weights, scale)
    for array, gradient in zip(arrays, ours):
        assert gradient.shape == array.shape
        assert_close(gradient, slope(lambda: (attend()[0] * grad_output).sum(), array))


def test_gradients_by_hand():
    # two keys, weights 1/2: dA = (5, 1), dS = (1, -1)
    grads = attention_backward([[1.0]], [[3.0]], [[7.0], [7.0]], [[5.0], [1.0]], [[0.5, 0.5]], scale=2)
    assert [g.tolist() for g in grads] == [[[0.0]], [[6.0], [-6.0]], [[0.5], [0.5]]]
    query_alone = attention_backward([[1.0]], [[3.0]], [[7.0], [4.0]], [[5.0], [1.0]], [[0.5, 0.5]], scale=2)[0]
    assert query_alone.tolist() == [[6.0]]


def test_what_is_hidden_gets_no_gradient():
    query, key, value = normal(3, 4, 6)
    _, weights = attention.scaled_dot_product_attention(query, key, value, is_causal=True)
    grad_output = np.zeros((4, 6))
    grad_output[1] = 1
    grads = attention_backward(grad_output, query, key, value, weights)
    for gradient, seen in zip(grads, ([1], [0, 1], [0, 1])):
        assert gradient[seen].any(axis=-1).all()
        assert not np.delete(gradient, seen, axis=0).any()


@pytest.mark.parametrize("poison", [NAN, INF, -INF])
@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["grad_output", "query", "key", "value"])
def test_nan_and_infinity_in_what_has_weight_zero_do_not_reach_the_gradients(place, poison):
    query, key, value = (normal(2, 2, n, 3, seed=n) for n in (4, 5, 5))
    mask = (np.arange(5) < 4) & (np.arange(4) < 3)[:, None]  # the last query and the last key are hidden
    _, weights = attention.scaled_dot_product_attention(query, key, value, mask)
    arrays = [normal(2, 2, 4, 3), query, key, value]
    clean = attention_backward(*arrays, weights)
    arrays[place][..., -1, 1] = poison
    for ours, expected in zip(attention_backward(*arrays, weights), clean):
        np.testing.assert_allclose(ours, expected, rtol=1e-14)


def test_a_value_of_nan_reaches_the_gradients_of_those_who_see_it_alone():
    query, key, value = normal(3, 4, 6)
    value[3] = NAN
    _, weights = attention.scaled_dot_product_attention(query, key, value, is_causal=True)
    grad_query, _, grad_value = attention_backward(normal(4, 6), query, key, value, weights)
    assert np.isfinite(grad_query[:3]).all()
    assert np.isnan(grad_query[3]).all()
    assert np.isfinite(grad_value).all()


def test_gradients_that_underflow_and_infinity_in_what_is_hidden_raise_no_flag():
    query, key, value, weights = np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 2)), np.array([[1 / 3] * 3 + [0]] * 2)
    value[3] = INF
    with np.errstate(all="raise"):
        for size in (1e-308, 0):
            assert not attention_backward(np.full((2, 2), size), query, key, value, weights)[1][3].any()


def test_gradients_of_float16_are_computed_in_float32():
    query, key, value = (a.astype(np.float16) for a in normal(3, 4, 6))
    output, weights = attention.scaled_dot_product_attention(query, key, value)
    arrays = output, query, key, value, weights
    for ours, wide in zip(attention_backward(*arrays), attention_backward(*(a.astype(np.float32) for a in arrays))):
        assert np.array_equal(ours, wide.astype(np.float16))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_gradients_keep_the_dtype(dtype):
    query, key, value = (a.astype(dtype) for a in normal(3, 4, 6))
    output, weights = attention.scaled_dot_product_attention(query, key, value)
    grads = attention_backward(output, query, key, value, weights)
    wide = attention_backward(*(a.astype(F64) for a in (output, query, key, value, weights)))
    for ours, expected in zip(grads, wide):
        assert ours.dtype == dtype
        assert_close(ours, expected, rtol={np.float64: 1e-15, np.float32: 1e-5, np.float16: 5e-3}[dtype])


def test_lists_and_whole_numbers_are_taken():
    grads = attention_backward([[2]], [[1]], [[1], [1]], [[1], [0]], [[0.5, 0.5]])
    assert [g.dtype for g in grads] == [F64] * 3
    assert grads[2].tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
@pytest.mark.parametrize(("n_q", "n_kv", "d_v"), [(0, 5, 2), (4, 0, 2), (4, 5, 0), (0, 0, 2)])
def test_what_is_empty_has_gradients_of_zero(n_q, n_kv, d_v, lead):
    # case 44: "zero-size array to reduction"
    arrays = [np.ones((*lead, *shape)) for shape in ((n_q, 3), (n_kv, 3), (n_kv, d_v))]
    output, weights = attention.scaled_dot_product_attention(*arrays)
    for array, gradient in zip(arrays, attention_backward(output, *arrays, weights)):
        assert gradient.shape == array.shape
        assert not gradient.any()


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("grad_output", (4, 3), "grad_output (4, 3) must have the shape of the output, (4, 2)"),
        ("grad_output", (2,), "grad_output (2,)"),
        ("weights", (5, 4), "weights (5, 4) must have the shape of the scores, (4, 5)"),
        ("weights", (5,), "weights (5,)"),
        ("weights", (2, 4, 5), "weights (2, 4, 5)"),
        ("key", (5, 2), "key (5, 2) differ in d_k"),
        ("value", (4, 2), "value (4, 2) differ in n_kv"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(name, shape, words):
    shapes = dict(grad_output=(4, 2), query=(4, 3), key=(5, 3), value=(5, 2), weights=(4, 5))
    with pytest.raises(ValueError) as caught:
        attention_backward(**{n: np.zeros(s) for n, s in (shapes | {name: shape}).items()})
    assert words in str(caught.value)


def test_weights_of_another_batch_are_refused():
    arrays = qkv(LEADS["batch"])
    for lead in ((3,), (2, 2)):
        with pytest.raises(ValueError, match="weights"):
            attention_backward(np.zeros((2, 4, 2)), *arrays, np.zeros((*lead, 4, 5)))


@pytest.mark.parametrize("name", ["grad_output", "query", "key", "value", "weights"])
def test_gradients_of_what_is_not_numbers_are_refused_by_name(name):
    shapes = dict(grad_output=(4, 2), query=(4, 3), key=(5, 3), value=(5, 2), weights=(4, 5))
    with pytest.raises(TypeError, match=name):
        attention_backward(**{n: np.zeros(s, bool if n == name else float) for n, s in shapes.items()})


# Adam


def paper(theta, gradients, alpha, beta1, beta2, epsilon):
    """Kingma & Ba (2014), algorithm 1, for one number, line by line."""
    m = v = t = 0
    for g in gradients:
        t = t + 1
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        theta = theta - alpha * m_hat / (math.sqrt(v_hat) + epsilon)
    return theta


@pytest.mark.parametrize("options", [{}, dict(rate=0.1, beta1=0.5, beta2=0.8, epsilon=0.3)], ids=["default", "other"])
def test_adam_is_algorithm_1_of_the_paper(options):
    start, gradients = dict(a=normal(3), b=normal(2, 2)), normal(20, 7, seed=1)
    parameters = {name: array.copy() for name, array in start.items()}
    adam = Adam(parameters, **options)
    for g in gradients:
        adam.update(dict(b=g[3:].reshape(2, 2), a=g[:3]))
    alpha, beta1, beta2, epsilon = ({**dict(rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8), **options}).values()
    for name, column in (("a", gradients[:, :3]), ("b", gradients[:, 3:])):
        expected = [paper(theta, g, alpha, beta1, beta2, epsilon) for theta, g in zip(start[name].ravel(), column.T)]
        np.testing.assert_allclose(parameters[name].ravel(), expected, rtol=1e-12)


def test_adam_s_first_step_has_the_size_of_the_rate_whatever_the_gradient():
    parameters = dict(a=np.zeros(4))
    Adam(parameters, rate=0.01).update(dict(a=np.array([1e-3, -5.0, 1e4, 0.0])))
    np.testing.assert_allclose(parameters["a"], [-0.01, 0.01, -0.01, 0], rtol=1e-4)


def test_adam_changes_the_arrays_in_place_and_keeps_their_dtype():
    array = np.ones(3, np.float32)
    adam = Adam(dict(a=array))
    for gradient in (np.ones(3, np.float32), np.ones(3)):
        adam.update(dict(a=gradient))
    assert array.dtype == np.float32
    np.testing.assert_allclose(array, 1 - 2e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(rate=0), "rate is 0, but must be above 0"),
        (dict(rate=INF), "rate is inf"),
        (dict(rate=NAN), "rate is nan"),
        (dict(beta1=1), "beta1 is 1, but must be above 0 and below 1"),
        (dict(beta2=1), "beta2 is 1, but must be above 0 and below 1"),
        (dict(beta2=-0.1), "beta2 is -0.1"),
        (dict(epsilon=0), "epsilon is 0"),
    ],
)
def test_adam_refuses_what_makes_no_steps(options, words):
    with pytest.raises(ValueError, match=words):
        Adam(dict(a=np.ones(2)), **options)


@pytest.mark.parametrize("bad", [np.arange(3), np.ones(3, np.float16), [1.0]], ids=["whole", "float16", "list"])
def test_adam_refuses_parameters_that_take_no_small_steps(bad):
    with pytest.raises(TypeError, match=r"parameters\['a'\].*float32 or float64"):
        Adam(dict(a=bad))


@pytest.mark.parametrize("bad", [[np.zeros(2)], None, np.zeros(2)], ids=["list", "none", "array"])
def test_adam_takes_nothing_but_dicts(bad):
    with pytest.raises(TypeError, match="parameters is of type .*, but must be a dict"):
        Adam(bad)
    adam = Adam(dict(a=np.zeros(2)))
    with pytest.raises(TypeError, match="gradients is of type .*, but must be a dict"):
        adam.update(bad)
    assert adam.steps == 0


def test_adam_refuses_parameters_that_cannot_change_in_place():
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    for bad, error, words in (
        (np.float32(1), TypeError, "is of type float32, but must be an array"),
        (np.ma.zeros(2), TypeError, "is of type MaskedArray"),
        (fixed, ValueError, "is read-only"),
        (np.broadcast_to(np.zeros(1), 2), ValueError, "is read-only"),
    ):
        with pytest.raises(error, match=r"parameters\['b'\] " + words):
            Adam(dict(a=np.zeros(1), b=bad))


def test_adam_takes_arrays_of_no_axes():
    parameters = dict(a=np.array(1.0))
    Adam(parameters, rate=0.01).update(dict(a=5))
    assert parameters["a"] == pytest.approx(0.99)


@pytest.mark.parametrize(
    "bad",
    [np.array([1j, 2]), ["x", "y"], [True, False], [None, 1.0], np.ma.ones(2)],
    ids=["complex", "words", "booleans", "none", "masked"],
)
def test_adam_refuses_gradients_that_are_not_numbers_by_name_and_changes_nothing(bad):
    parameters = dict(a=np.zeros(2), b=np.zeros(2))
    adam = Adam(parameters)
    with pytest.raises(TypeError, match=r"gradients\['b'\]"):
        adam.update(dict(a=np.ones(2), b=bad))
    assert adam.steps == 0
    assert not any(array.any() for d in (parameters, adam.means, adam.squares) for array in d.values())


@pytest.mark.parametrize("dtype", [list, np.int8, np.uint8, np.float16, np.float64])
def test_adam_takes_gradients_of_any_kind_of_number(dtype):
    ours, expected = dict(a=np.zeros(2)), dict(a=np.zeros(2))
    gradient = [100, 3]
    for parameters, g in ((ours, gradient if dtype is list else np.array(gradient, dtype)), (expected, [100.0, 3.0])):
        adam = Adam(parameters, rate=0.1)
        for _ in range(3):
            adam.update(dict(a=g))
    np.testing.assert_allclose(ours["a"], expected["a"], rtol=1e-6)
    np.testing.assert_allclose(adam.squares["a"], np.square(gradient) * (1 - 0.999**3))


def test_adam_squares_gradients_of_float16_in_float32():
    adam = Adam(dict(a=np.zeros(1)))
    adam.update(dict(a=np.array([300], np.float16)))
    np.testing.assert_allclose(adam.squares["a"], 90)


def test_adam_lets_small_squares_underflow_in_silence():
    parameters = dict(a=np.zeros(2, np.float32))
    with np.errstate(all="raise"):
        Adam(parameters).update(dict(a=np.full(2, 1e-30, np.float32)))
    assert (parameters["a"] < 0).all()


@pytest.mark.parametrize("gradients", [{}, dict(b=np.ones(2)), dict(a=np.ones(3)), dict(a=np.ones((2, 1)))])
def test_adam_refuses_gradients_of_other_names_or_shapes(gradients):
    parameters = dict(a=np.ones(2))
    with pytest.raises(ValueError, match="gradients have shapes"):
        Adam(parameters).update(gradients)
    assert parameters["a"].tolist() == [1, 1]


# tasks


@pytest.mark.parametrize("task", [RANDOM, REPEATED])
def test_a_batch_is_drawn_from_the_generator_alone(task):
    once, again, other = (task(np.random.default_rng(seed)) for seed in (1, 1, 2))
    for tokens, targets, counted in (once, again, other):
        assert tokens.shape == targets.shape == counted.shape == (32, 16)
        assert tokens.dtype.kind == targets.dtype.kind == "i"
        assert counted.dtype == bool
        assert set(np.unique(tokens)) == set(range(16))
        assert np.array_equal(targets[:, :-1], tokens[:, 1:])
    assert all(np.array_equal(a, b) for a, b in zip(once, again))
    assert not np.array_equal(once[0], other[0])
    rng = np.random.default_rng(1)
    assert not np.array_equal(task(rng)[0], task(rng)[0])


def test_random_tokens_are_independent_and_equally_frequent():
    tokens, _, counted = random_tokens(np.random.default_rng(0), 4000, 5, 4)
    assert counted.tolist() == [[True] * 4 + [False]] * 4000
    for i, j in ((0, 1), (1, 2), (0, 2), (3, 4), (0, 4)):
        pairs = np.bincount(4 * tokens[:, i] + tokens[:, j], minlength=16)
        np.testing.assert_allclose(pairs / 4000, 1 / 16, atol=0.02)  # 5 standard deviations


def test_repeated_tokens_count_where_the_token_was_seen_and_was_followed_by_the_answer():
    tokens, targets, counted = repeated_tokens(np.random.default_rng(0), 200, 16, 12, 3, 7)
    periods = set()
    for row, answers, counts in zip(tokens.tolist(), targets.tolist(), counted.tolist()):
        for t in range(16):
            assert counts[t] == (row[t] in row[:t])
            if counts[t]:
                assert answers[t] == row[row.index(row[t]) + 1]
        periods.add(counts.index(True))
    assert periods == {3, 4, 5, 6, 7}


def test_a_run_may_be_the_whole_vocabulary_and_all_but_one_token_of_the_row():
    tokens, targets, counted = repeated_tokens(np.random.default_rng(0), 3, 5, 4, 4, 4)
    assert (np.sort(tokens[:, :4]) == np.arange(4)).all()
    assert np.array_equal(targets[:, 4], tokens[:, 1])
    assert counted.tolist() == [[False] * 4 + [True]] * 3


def test_the_least_sizes_of_tasks():
    rng = np.random.default_rng(0)
    for batch, expected in (
        (random_tokens(rng, 1, 2, 1), ([[0, 0]], [[0, 0]], [[True, False]])),
        (repeated_tokens(rng, 1, 2, 1, 1, 1), ([[0, 0]], [[0, 0]], [[False, True]])),
    ):
        assert tuple(array.tolist() for array in batch) == expected


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        (RANDOM, dict(batch=0), "batch is 0, but must be 1 or more"),
        (RANDOM, dict(n=1), "n is 1, but must be 2 or more"),
        (RANDOM, dict(vocabulary=0), "vocabulary is 0"),
        (REPEATED, dict(batch=-1), "batch is -1"),
        (REPEATED, dict(vocabulary=0), "vocabulary is 0"),
        (REPEATED, dict(shortest=0), "shortest is 0"),
        (REPEATED, dict(longest=3), "shortest is 4 and longest 3"),
        (REPEATED, dict(longest=16), "below n = 16"),
        (REPEATED, dict(n=8), "below n = 8"),
        (REPEATED, dict(vocabulary=7), "within the 7 tokens"),
    ],
)
def test_tasks_refuse_sizes_that_do_not_fit(task, options, words):
    with pytest.raises(ValueError, match=words):
        task(np.random.default_rng(0), **options)


@pytest.mark.parametrize("task", [RANDOM, REPEATED])
@pytest.mark.parametrize("rng", [None, 5, np.random, np.random.RandomState(0)], ids=["none", "seed", "module", "old"])
def test_tasks_draw_from_a_generator_alone(task, rng):
    with pytest.raises(TypeError, match="rng is .*, but must be a np.random.Generator"):
        task(rng)


@pytest.mark.parametrize("bad", [2.0, "3", None, True])
def test_sizes_that_are_not_whole_are_refused_by_name(bad):
    with pytest.raises(TypeError, match="batch"):
        RANDOM(np.random.default_rng(0), batch=bad)
    with pytest.raises(TypeError, match="width"):
        AttentionModel(4, 4, width=bad)


# the model


def batch_of(vocabulary, n, seed=3):
    rng = np.random.default_rng(seed)
    tokens, targets = rng.integers(0, vocabulary, (2, 3, n))
    return tokens, targets, rng.random((3, n)) < 0.7


MODELS = {
    "one layer": {},
    "two layers of two heads": dict(heads=2, layers=2),
    "three heads of their own width": dict(heads=3, d_head=2, layers=2),
    "unmasked": dict(heads=2, is_causal=False),
    "unscaled": dict(scale=1, layers=2),
}


@pytest.mark.parametrize("n", [5, 3])
@pytest.mark.parametrize("options", MODELS)
def test_the_gradient_of_every_parameter_is_that_of_finite_differences(options, n):
    model = AttentionModel(4, 5, width=6, seed=1, dtype=F64, **MODELS[options])
    batch = batch_of(4, n)
    loss, accuracy, gradients = model.loss_and_gradients(*batch)
    assert (loss, accuracy) == model.evaluate(*batch)
    assert list(gradients) == list(model.parameters)
    for name, parameter in model.parameters.items():
        assert gradients[name].shape == parameter.shape
        assert_close(gradients[name], slope(lambda: model.evaluate(*batch)[0], parameter, 1e-3))


def loop_logits(model, tokens):
    """The model for one sequence, head by head: x grows by what each head writes."""
    p = model.parameters
    d_head = p["W_Q"].shape[-1] // model.heads
    x = np.array([p["E"][token] + p["P"][t] for t, token in enumerate(tokens)])
    for layer in range(model.layers):
        written = np.zeros_like(x)
        for head in range(model.heads):
            part = slice(head * d_head, (head + 1) * d_head)
            query, key, value = (x @ p[name][layer][:, part] for name in ("W_Q", "W_K", "W_V"))
            output, _ = attention.scaled_dot_product_attention(query, key, value, None, model.is_causal, model.scale)
            written += output @ p["W_O"][layer][part]
        x = x + written
    return x @ p["U"]


@pytest.mark.parametrize("options", MODELS)
def test_the_logits_are_those_of_a_loop_over_sequences_and_heads(options):
    model = AttentionModel(4, 5, width=6, dtype=F64, **MODELS[options])
    tokens = batch_of(4, 5)[0]
    logits, weights = model.logits(tokens)
    np.testing.assert_allclose(logits, [loop_logits(model, row) for row in tokens], atol=1e-12)
    assert logits.shape == (3, 5, 4)
    assert [w.shape for w in weights] == [(3, model.heads, 5, 5)] * model.layers
    for w in weights:
        np.testing.assert_allclose(w.sum(-1), 1)


def test_loss_and_accuracy_by_hand():
    model = AttentionModel(3, 2, width=3, dtype=F64)
    p = model.parameters
    for name in ("P", "W_O"):
        p[name][:] = 0
    p["E"][:], p["U"][:] = np.eye(3), math.log(2) * np.eye(3)  # the token's own logit is ln 2: 1/2, others 1/4
    tokens = [[0, 1], [2, 2]]
    loss, accuracy = model.evaluate(tokens, [[0, 2], [1, 0]], [[True, True], [False, False]])
    assert (loss, accuracy) == (pytest.approx((math.log(2) + math.log(4)) / 2), 0.5)
    loss, accuracy = model.evaluate(tokens, [[0, 2], [1, 0]], np.ones((2, 2), bool))
    assert (loss, accuracy) == (pytest.approx(math.log(2) * 7 / 4), 0.25)


def test_the_loss_of_a_model_that_is_sure_is_finite():
    model = AttentionModel(3, 2)
    model.parameters["U"] *= 1e4
    loss, _, gradients = model.loss_and_gradients(*batch_of(3, 2))
    assert 100 < loss < INF
    assert all(np.isfinite(g).all() for g in gradients.values())


@pytest.mark.parametrize("layers", [1, 2])
def test_with_the_causal_mask_no_later_token_changes_an_earlier_logit(layers):
    tokens = batch_of(9, 6)[0]
    changed = tokens.copy()
    changed[:, 4:] = (changed[:, 4:] + 1) % 9
    for is_causal in (True, False):
        model = AttentionModel(9, 6, width=8, heads=2, layers=layers, is_causal=is_causal)
        before, after = (model.logits(t)[0] for t in (tokens, changed))
        assert np.array_equal(before[:, :4], after[:, :4]) == is_causal
        assert (before[:, 4:] != after[:, 4:]).any(-1).all()


def test_on_prefixes_a_causal_model_does_as_on_the_whole_and_another_does_not():
    batch = batch_of(9, 6)
    for is_causal in (True, False):
        model = AttentionModel(9, 6, width=8, layers=2, is_causal=is_causal, dtype=F64)
        model.parameters["U"] *= 3
        whole, prefixes = model.evaluate(*batch), model.evaluate_on_prefixes(*batch)
        assert (prefixes == pytest.approx(whole)) == is_causal
    for t in range(6):  # the loss at t, had the sequence ended there
        tokens, targets, _ = batch
        ended = model.evaluate(tokens[:, : t + 1], targets[:, : t + 1], np.arange(t + 1) == np.full((3, 1), t))
        assert model.evaluate_on_prefixes(tokens, targets, np.arange(6) == np.full((3, 1), t)) == pytest.approx(ended)


@pytest.mark.parametrize("d_head", [1, 16, 64])
def test_unscaled_scores_are_sqrt_d_head_times_the_scaled(d_head):
    tokens = batch_of(9, 6)[0]
    logs = []
    for scale in (None, 1):
        model = AttentionModel(9, 6, width=8, heads=2, d_head=d_head, is_causal=False, scale=scale, dtype=F64)
        log = np.log(model.logits(tokens)[1][0])
        logs.append(log - log.mean(-1, keepdims=True))  # the scores, up to a constant in each row
    np.testing.assert_allclose(logs[1], math.sqrt(d_head) * logs[0], atol=1e-9 * np.abs(logs[1]).max())


def test_without_what_the_heads_write_the_residual_path_carries_the_tokens():
    model = AttentionModel(9, 6, layers=3, dtype=F64)
    model.parameters["W_O"][:] = 0
    tokens, p = batch_of(9, 6)[0], model.parameters
    np.testing.assert_allclose(model.logits(tokens)[0], (p["E"][tokens] + p["P"]) @ p["U"], atol=1e-12)


def test_initial_values_have_the_variances_and_shapes_that_the_docstring_gives():
    model = AttentionModel(300, 200, width=128, heads=2, d_head=160, layers=2)
    p = model.parameters
    inner = (2, 128, 320)
    shapes = dict(E=(300, 128), P=(200, 128), W_Q=inner, W_K=inner, W_V=inner, W_O=(2, 320, 128), U=(128, 300))
    assert {name: a.shape for name, a in p.items()} == shapes
    for name, rows in dict(E=2, P=2, W_Q=128, W_K=128, W_V=128, W_O=320, U=128).items():
        assert p[name].dtype == np.float32
        assert p[name].var() * rows == pytest.approx(1, abs=0.05)
        assert abs(p[name].mean()) < 0.05
    assert not np.array_equal(p["W_Q"], p["W_K"])
    assert not np.array_equal(p["W_Q"][0], p["W_Q"][1])


@pytest.mark.parametrize("d_head", [64, 256])
def test_initial_scores_have_variance_one_scaled_and_d_head_unscaled(d_head):
    x = normal(500, 64)
    p = AttentionModel(4, 4, width=64, d_head=d_head, dtype=F64).parameters
    query, key = x @ p["W_Q"][0], x[::-1] @ p["W_K"][0]
    assert attention.scores(query, key).var() == pytest.approx(1, abs=0.2)
    assert attention.scores(query, key, scale=1).var() == pytest.approx(d_head, rel=0.2)


def test_the_seed_alone_decides_the_initial_values():
    one, again, other = (AttentionModel(9, 6, seed=seed, scale=s).parameters for seed, s in ((1, None), (1, 1), (2, 1)))
    for name, array in one.items():
        assert np.array_equal(array, again[name])
        assert not np.array_equal(array, other[name])


def test_the_options_have_these_places_and_defaults():
    ours, spelled = AttentionModel(9, 6), AttentionModel(9, 6, 32, 1, None, 1, True, None, 0, np.float32)
    other = AttentionModel(9, 6, seed=1)
    for name, array in ours.parameters.items():
        assert np.array_equal(array, spelled.parameters[name])
        assert not np.array_equal(array, other.parameters[name])
    first, again, another = (
        next(train(model, functools.partial(RANDOM, n=6, vocabulary=9), 1, 0.01, *seed))[1]
        for model, seed in ((ours, ()), (spelled, (0,)), (spelled, (1,)))
    )
    assert first == again != another


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_model_computes_in_its_dtype(dtype):
    model = AttentionModel(9, 6, dtype=dtype)
    logits, weights = model.logits(batch_of(9, 6)[0])
    gradients = model.loss_and_gradients(*batch_of(9, 6))[2]
    assert {a.dtype for a in (logits, *weights, *gradients.values())} == {np.dtype(dtype)}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(vocabulary=0), ValueError, "vocabulary is 0, but must be 1 or more"),
        (dict(length=-1), ValueError, "length is -1"),
        (dict(heads=0), ValueError, "heads is 0"),
        (dict(layers=0), ValueError, "layers is 0"),
        (dict(d_head=0), ValueError, "d_head is 0"),
        (dict(width=6, heads=4), ValueError, "heads is 4 and does not divide width, 6"),
        (dict(scale=INF), ValueError, "scale is inf"),
        (dict(scale="no"), TypeError, "scale"),
        (dict(dtype=np.float16), TypeError, "dtype is .*float16.*, but must be float32 or float64"),
        (dict(dtype=int), TypeError, "dtype"),
        (dict(dtype=None), TypeError, "dtype is None"),
        (dict(dtype="nonsense"), TypeError, "dtype is 'nonsense', but must be float32 or float64"),
        (dict(seed=-1), ValueError, "seed is -1, but must be 0 or more"),
        (dict(seed="a"), TypeError, "seed is 'a', but must be one whole number"),
        (dict(seed=None), TypeError, "seed is None"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        AttentionModel(**{**dict(vocabulary=4, length=4), **options}).logits([[0, 1]])


@pytest.mark.parametrize("bad", [1, "no", None])
def test_a_model_refuses_is_causal_that_is_not_a_boolean_when_it_is_made(bad):
    with pytest.raises(TypeError, match=f"is_causal is {bad!r}, but must be True or False"):
        AttentionModel(4, 4, is_causal=bad)


@pytest.mark.parametrize("dtype", ["float32", "f4", np.dtype("f4"), np.float32])
def test_a_model_takes_any_name_of_its_dtype(dtype):
    assert {a.dtype for a in AttentionModel(4, 4, dtype=dtype).parameters.values()} == {np.dtype(np.float32)}
    assert AttentionModel(4, 4, dtype=float).parameters["E"].dtype == F64


@pytest.mark.parametrize("factor", [30, 1e-25])
def test_weights_products_and_gradients_underflow_in_silence(factor):
    model = AttentionModel(5, 6, width=8, heads=2)
    for parameter in model.parameters.values():
        parameter *= factor
    with np.errstate(all="raise"):
        model.loss_and_gradients(*batch_of(5, 6))
        model.evaluate(*batch_of(5, 6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_overflow_with_an_error_and_underflow_in_silence(dtype):
    with np.errstate(all="raise"):
        for size in (1e-30, 2e-38):
            optimise(dict(a=np.full(1, size, dtype)), **SMALL)
        for size in (1e20, 1e38):
            with pytest.raises(ValueError, match="whose square is beyond what float32 can hold"):
                optimise(dict(a=np.full(1, size, dtype)), **SMALL)


def test_a_sure_answer_has_a_loss_of_0_without_a_sign():
    loss, _ = AttentionModel(1, 2).evaluate([[0, 0]], [[0, 0]], [[True, True]])
    assert str(loss) == "0.0"


def test_a_large_vocabulary_needs_no_square_of_it():
    model, batch = AttentionModel(4000, 4, width=2), ([[1, 3999]], [[0, 3999]], [[True, True]])
    tracemalloc.start()
    try:
        gradients = model.loss_and_gradients(*batch)[2]
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert np.flatnonzero(gradients["E"].any(axis=1)).tolist() == [1, 3999]


TOKENS = [[0, 1, 2]]


@pytest.mark.parametrize("method", ["evaluate", "evaluate_on_prefixes", "loss_and_gradients"])
@pytest.mark.parametrize(
    ("batch", "error", "words"),
    [
        (([[0.0, 1.0]], TOKENS, [[True]]), TypeError, "tokens has dtype float64, but needs whole numbers"),
        (([0, 1, 2], TOKENS, [[True]]), ValueError, r"tokens has shape \(3,\), but needs two axes"),
        ((np.zeros((0, 3), int), TOKENS, [[True]]), ValueError, "neither empty"),
        (([[0, 4]], TOKENS, [[True]]), ValueError, "tokens go from 0 to 4, but the vocabulary from 0 to 3"),
        (([[-1, 3]], TOKENS, [[True]]), ValueError, "tokens go from -1 to 3"),
        (([[0, 1, 2, 3, 0, 1]], TOKENS, [[True]]), ValueError, "n = 6, but the model has 5 positions"),
        ((TOKENS, [[0, 1, 4]], [[True] * 3]), ValueError, "targets go from 0 to 4"),
        ((TOKENS, [[0, 1]], [[True] * 3]), ValueError, r"targets \(1, 2\) must have the shape of the tokens, \(1, 3\)"),
        ((TOKENS, TOKENS, [True] * 3), ValueError, r"counted \(3,\) must have the shape"),
        ((TOKENS, TOKENS, [[1] * 3]), ValueError, "counted must be boolean, and True somewhere"),
        ((TOKENS, TOKENS, [[False] * 3]), ValueError, "counted must be boolean, and True somewhere"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(method, batch, error, words):
    with pytest.raises(error, match=words):
        getattr(AttentionModel(4, 5), method)(*batch)


# messages


def backward(**shapes):
    """The backward pass on zeros, two sequences of 4 queries and 5 keys, with something of another shape."""
    given = dict(grad_output=(2, 4, 3), query=(2, 4, 6), key=(2, 5, 6), value=(2, 5, 3), weights=(2, 4, 5)) | shapes
    return attention_backward(**{name: np.zeros(shape) for name, shape in given.items()})


def optimise(gradients=None, **options):
    """A step of Adam for one number named a."""
    return Adam(**dict(parameters=dict(a=np.zeros(1))) | options).update(gradients)


def build(**options):
    return AttentionModel(**dict(vocabulary=4, length=5) | options)


def evaluate(tokens=TOKENS, targets=TOKENS, counted=((True,) * 3,)):
    return build().evaluate(tokens, targets, counted)


def step(task):
    return next(train(build(), task, 1, 0.1))


SMALL = dict(parameters=dict(a=np.zeros(1, np.float32)))
WHOLE, REAL, DICT = "but must be one whole number", "but needs real numbers", "but must be a dict of arrays"
MASKED = "is a masked array: pass its data, and what to hide as mask"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: backward(grad_output=(2, 4, 2)),
            "grad_output (2, 4, 2) must have the shape of the output, (2, 4, 3)",
        ),
        (lambda: backward(weights=(2, 5, 4)), "weights (2, 5, 4) must have the shape of the scores, (2, 4, 5)"),
        (lambda: backward(weights=(1, 2, 4, 5)), "weights (1, 2, 4, 5) must have the shape of the scores, (2, 4, 5)"),
        (
            lambda: backward(weights=(3, 4, 5)),
            "the axes before the last two do not broadcast: grad_output (2, 4, 3), weights (3, 4, 5)",
        ),
        (lambda: optimise(parameters=[1.0]), f"parameters is of type list, {DICT}"),
        (
            lambda: optimise(parameters=dict(b=[1.0])),
            "parameters['b'] is of type list, but must be an array in float32 or float64",
        ),
        (
            lambda: optimise(parameters=dict(b=np.zeros(1, np.float16))),
            "parameters['b'] is dtype('float16'), but must be float32 or float64",
        ),
        (
            lambda: optimise(parameters=dict(b=np.broadcast_to(0.0, 2))),
            "parameters['b'] is read-only, but changes in place",
        ),
        (lambda: optimise(rate="a"), "rate is 'a', but must be one number"),
        (lambda: optimise(rate=0), "rate is 0, but must be above 0 and below inf"),
        (lambda: optimise(epsilon=-1), "epsilon is -1, but must be above 0 and below inf"),
        (lambda: optimise(**SMALL, epsilon=1e-50), "epsilon is 1e-50, but is 0 in float32, that of parameters['a']"),
        (
            lambda: optimise(dict(a=np.full(1, 1e20)), **SMALL),
            "gradients['a'] holds NaN, or a number whose square is beyond what float32 can hold",
        ),
        (
            lambda: optimise(dict(a=np.full(1, np.nan)), **SMALL),
            "gradients['a'] holds NaN, or a number whose square is beyond what float32 can hold",
        ),
        (lambda: optimise(beta1=1), "beta1 is 1, but must be above 0 and below 1"),
        (lambda: optimise(beta2=1.5), "beta2 is 1.5, but must be above 0 and below 1"),
        (lambda: optimise([1.0]), f"gradients is of type list, {DICT}"),
        (lambda: optimise(dict(a="b")), f"gradients['a'] has dtype <U1, {REAL}"),
        (
            lambda: optimise(dict(a=np.zeros(2))),
            "gradients have shapes {'a': (2,)}, but the parameters have {'a': (1,)}",
        ),
        *(
            (lambda name=name: build(**{name: "a"}), f"{name} is 'a', {WHOLE}")
            for name in ("vocabulary", "length", "width", "heads", "layers", "d_head", "seed")
        ),
        (lambda: build(width=6, heads=4), "heads is 4 and does not divide width, 6: choose d_head"),
        (lambda: build(is_causal=1), "is_causal is 1, but must be True or False"),
        (lambda: build(dtype="f2"), "dtype is 'f2', but must be float32 or float64"),
        (lambda: evaluate(tokens=[[0.5]]), "tokens has dtype float64, but needs whole numbers"),
        (lambda: evaluate(tokens=[0]), "tokens has shape (1,), but needs two axes (batch, n), neither empty"),
        (lambda: evaluate(tokens=np.ma.zeros((1, 3), int)), f"tokens {MASKED}"),
        (lambda: evaluate(tokens=[[0, -1, 5]]), "tokens go from -1 to 5, but the vocabulary from 0 to 3"),
        (lambda: evaluate(tokens=[[0] * 6] * 2), "tokens (2, 6) have n = 6, but the model has 5 positions"),
        (lambda: evaluate(targets=[[0, 1, 4]]), "targets go from 0 to 4, but the vocabulary from 0 to 3"),
        (lambda: evaluate(targets=[[0]]), "targets (1, 1) must have the shape of the tokens, (1, 3)"),
        (lambda: evaluate(counted=[True]), "counted (1,) must have the shape of the tokens, (1, 3)"),
        (lambda: evaluate(counted=np.ma.ones((1, 3), bool)), f"counted {MASKED}"),
        (lambda: evaluate(counted=[[1, 1, 1]]), "counted must be boolean, and True somewhere"),
        *(
            (lambda task=task, name=name: task(np.random.default_rng(0), **{name: "a"}), f"{name} is 'a', {WHOLE}")
            for task, names in ((RANDOM, ()), (REPEATED, ("shortest", "longest")))
            for name in ("batch", "n", "vocabulary", *names)
        ),
        (lambda: RANDOM(5), "rng is 5, but must be a np.random.Generator, such as np.random.default_rng(0)"),
        (lambda: REPEATED(np.random.default_rng(0), n=0), "n is 0, but must be 1 or more"),
        (lambda: REPEATED(np.random.default_rng(0), longest=0), "longest is 0, but must be 1 or more"),
        (
            lambda: REPEATED(np.random.default_rng(0), n=1),
            "shortest is 4 and longest 8, but must rise and stay within the 16 tokens of the vocabulary "
            "and below n = 1",
        ),
        (lambda: step(5), "task is 5, but must be a function of a np.random.Generator"),
        (lambda: step(lambda rng: [0]), "task gives list, but must give a batch: tokens, targets and counted"),
        (lambda: next(train(3, RANDOM, 1, 0.1)), "model is of type int, but must be an AttentionModel"),
        (lambda: next(train(build(), RANDOM, "a", 0.1)), f"steps is 'a', {WHOLE}"),
        (lambda: next(train(build(), RANDOM, 1, 0.1, "a")), f"seed is 'a', {WHOLE}"),
    ],
)
def test_the_whole_message_says_what_came_and_what_was_expected(call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == message


# training


def curve(model, task, steps, rate, seed=0):
    """Loss and accuracy of each step."""
    steps_seen, losses, accuracies = zip(*train(model, task, steps, rate, seed))
    assert steps_seen == tuple(range(steps))
    return np.array(losses), np.array(accuracies)


def test_training_is_adam_on_fresh_batches():
    model, twin = AttentionModel(16, 16, seed=1), AttentionModel(16, 16, seed=1)
    losses, accuracies = curve(model, REPEATED, 5, 0.01, seed=3)
    rng, adam = np.random.default_rng(3), Adam(twin.parameters, 0.01)
    for expected in zip(losses, accuracies):
        *measured, gradients = twin.loss_and_gradients(*REPEATED(rng))
        assert tuple(measured) == expected
        adam.update(gradients)
    assert all(np.array_equal(a, twin.parameters[name]) for name, a in model.parameters.items())


def test_training_runs_as_far_as_it_is_asked():
    model = AttentionModel(16, 16)
    start = model.parameters["U"].copy()
    progress = train(model, RANDOM, 10, 0.01)
    assert np.array_equal(model.parameters["U"], start)
    assert next(progress)[0] == 0
    assert np.array_equal(model.parameters["U"], start)
    assert next(progress)[0] == 1
    assert not np.array_equal(model.parameters["U"], start)


def test_training_reduces_the_loss_and_equal_seeds_give_equal_curves():
    one, again, other = (
        curve(AttentionModel(16, 16, layers=2, seed=1), REPEATED, 60, 0.005, seed)[0] for seed in (0, 0, 1)
    )
    assert one[-10:].mean() < one[:10].mean() - 0.5
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (lambda rng: None, "task gives NoneType, but must give a batch: tokens, targets and counted"),
        (lambda rng: ([[0]], [[0]]), "task gives tuple"),
        (5, "task is 5, but must be a function"),
    ],
)
def test_training_refuses_a_task_that_gives_no_batch(task, words):
    with pytest.raises(TypeError, match=words):
        next(train(AttentionModel(16, 16), task, 1, 0.1))


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("a", TypeError), (None, TypeError), (1.0, TypeError)])
def test_training_refuses_a_seed_that_is_not_a_whole_number(seed, error):
    with pytest.raises(error, match=f"seed is {seed!r}"):
        next(train(AttentionModel(16, 16), RANDOM, 1, 0.1, seed))


@pytest.mark.parametrize(("steps", "rate", "words"), [(0, 0.1, "steps is 0"), (3, -1, "rate is -1")])
def test_training_refuses_no_steps_and_steps_of_no_size(steps, rate, words):
    with pytest.raises(ValueError, match=words):
        next(train(AttentionModel(16, 16), RANDOM, steps, rate))


# what the notebooks show


@pytest.mark.parametrize("seed", range(3))
def test_without_the_causal_mask_a_model_learns_to_copy_the_future_and_nothing_else(seed):
    least, fresh = math.log(16), RANDOM(np.random.default_rng(99), batch=200)
    masked, unmasked = (AttentionModel(16, 16, is_causal=c, seed=seed) for c in (True, False))
    for model in (masked, unmasked):
        curve(model, RANDOM, 200, 0.005, seed + 100)
    assert least < masked.evaluate(*fresh)[0] < least + 0.1
    assert masked.evaluate_on_prefixes(*fresh) == pytest.approx(masked.evaluate(*fresh), abs=1e-4)
    assert unmasked.evaluate(*fresh)[0] < 0.05
    assert unmasked.evaluate(*fresh)[1] > 0.99
    assert unmasked.evaluate_on_prefixes(*fresh)[0] > least + 2
    assert unmasked.evaluate_on_prefixes(*fresh)[1] < 0.1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("d_head", "steps", "unscaled_learns"), [(8, 300, True), (64, 150, False), (256, 100, False)])
def test_at_a_large_d_head_only_the_scaled_model_learns_in_time(d_head, steps, unscaled_learns, seed):
    scaled, unscaled = (
        curve(
            AttentionModel(16, 16, d_head=d_head, layers=2, scale=scale, seed=seed), REPEATED, steps, 0.005, seed + 100
        )
        for scale in (None, 1)
    )
    assert scaled[1][-10:].mean() > 0.85
    assert (unscaled[1][-10:].mean() > 0.85) == unscaled_learns
    assert unscaled_learns or unscaled[1][-10:].mean() < 0.5


@pytest.mark.parametrize("seed", range(5))
def test_two_layers_form_an_induction_head_that_needs_the_head_before_it_and_one_layer_never_does(seed):
    task = functools.partial(repeated_tokens, batch=32, n=32, vocabulary=32, shortest=8, longest=16)
    probe, exam = task(np.random.default_rng(5), batch=1, shortest=12, longest=12)[0], task(np.random.default_rng(6))
    two = AttentionModel(32, 32, width=64, heads=2, layers=2, seed=seed)
    one = AttentionModel(32, 32, width=64, heads=4, d_head=32, layers=1, seed=seed)
    assert curve(two, task, 300, 3e-3, seed)[1][-20:].mean() > 0.95
    assert curve(one, task, 300, 3e-3, seed)[1][-20:].mean() < 0.4
    maps = np.stack(two.logits(probe)[1])[:, 0]  # (2, 2, 32, 32)
    previous = head_statistics(maps[..., :12, :12])["previous"][0]  # (2,) of layer 0, as far as needed for keys
    induction = head_statistics(maps, tokens=probe[0])["induction"]  # (2, 2)
    assert previous.max() > 0.8
    assert induction[1].max() > 0.8 > 0.3 > induction[0].max()
    assert head_statistics(one.logits(probe)[1][0][0], tokens=probe[0])["induction"].max() < 0.3
    kept = two.evaluate(*exam)[1]
    spoiled = copy.deepcopy(two)
    spoiled.parameters["W_O"][0, 32 * previous.argmax() :][:32] = 0
    assert spoiled.evaluate(*exam)[1] < kept - 0.1
