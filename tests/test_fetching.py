"""Fetching several places, against finite differences, loops, heads set by hand, and by what is learned."""

import math

import numpy as np
import pytest
from common import assert_close, silent, slope

from attn_helpers import fetching
from attn_helpers.fetching import FetchingModel, fetching_batch, train_fetching
from attn_helpers.training import Adam

INF, NAN = np.inf, np.nan
F64 = np.float64
MODELS = {
    "one head": dict(d_head=4),
    "concat": dict(heads=2, d_head=4),
    "sum": dict(heads=3, d_head=4, combine="sum"),
    "mean": dict(heads=2, d_head=2, answer="mean"),
    "mean of a sum": dict(heads=2, d_head=5, places=3, answer="mean", combine="sum"),
    "three places": dict(heads=3, d_head=2, places=3),
}


@pytest.fixture
def small(monkeypatch):
    """Sizes that all differ, so that a mixed-up axis shows."""
    for name, size in dict(LENGTH=7, TOKEN_WIDTH=3, POSITION_WIDTH=5).items():
        monkeypatch.setattr(fetching, name, size)


def model_and_batch(options, rows=2, **more):
    model = FetchingModel(**options, seed=1, dtype=F64, **more)
    return model, *fetching_batch(np.random.default_rng(3), rows, model.places, model.answer)


# the task


@pytest.mark.parametrize("places", [1, 2, 4, 15])
def test_the_answer_is_the_tokens_before_and_nothing_is_asked_where_some_are_missing(places):
    x, each = fetching_batch(np.random.default_rng(0), 3, places)
    same, mean = fetching_batch(np.random.default_rng(0), 3, places, "mean")
    assert x.shape == (3, 16, 8)
    assert each.shape == (3, 16, places * 8)
    assert mean.shape == (3, 16, 8)
    assert np.array_equal(x, same)
    for row in range(3):
        for t in range(16):
            before = [x[row, t - k] for k in range(1, places + 1)] if t >= places else [np.zeros(8)] * places
            assert each[row, t].tolist() == [number for token in before for number in token]
            np.testing.assert_allclose(mean[row, t], sum(before) / places, atol=1e-15)


def test_by_default_two_places_are_asked_for_each():
    for ours, expected in zip(*(fetching_batch(np.random.default_rng(0), 3, *task) for task in ((), (2, "each")))):
        assert np.array_equal(ours, expected)
    assert (FetchingModel().places, FetchingModel().answer) == (2, "each")


def test_tokens_are_independent_standard_normal_and_drawn_from_the_generator_alone():
    rng = np.random.default_rng(0)
    x, again, other = (fetching_batch(r, 4000)[0] for r in (rng, np.random.default_rng(0), rng))
    assert np.array_equal(x, again)
    assert not np.isin(x, other).any()
    flat = x[:, :3].reshape(4000, -1)
    np.testing.assert_allclose(flat.mean(0), 0, atol=0.08)  # 5 standard deviations
    np.testing.assert_allclose(flat.T @ flat / 4000, np.eye(24), atol=0.12)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(rng=5), TypeError, "rng is 5, but must be a np.random.Generator"),
        (dict(batch=0), ValueError, "batch is 0, but must be 1 or more"),
        (dict(batch=2.0), TypeError, "batch is 2.0, but must be one whole number"),
        (dict(places=0), ValueError, "places is 0, but must be from 1 to 15"),
        (dict(places=16), ValueError, "places is 16, but must be from 1 to 15"),
        (dict(places=True), TypeError, "places is True"),
        (dict(answer="all"), ValueError, "answer is 'all', but must be one of 'each', 'mean'"),
        (dict(answer=np.array(["each", "mean"])), ValueError, "answer is array"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        fetching_batch(**{**dict(rng=np.random.default_rng(0), batch=2), **options})


# the model


def loop_row(model, tokens):
    """The outputs and each head's weights for one row, number by number."""
    p, places = model.parameters, range(len(tokens))
    placed = [[*x, *position] for x, position in zip(tokens.tolist(), p["P"].tolist())]
    d_head = p["W_Q"].shape[1] // model.heads
    carried, maps = [], []
    for head in range(model.heads):
        at = slice(head * d_head, (head + 1) * d_head)
        query, key = ([np.dot(row, p[name][:, at]) for row in placed] for name in ("W_Q", "W_K"))
        value = [np.dot(row, p["W_V"][:, at]) for row in tokens]
        powers = [[math.exp(np.dot(query[t], key[j]) / math.sqrt(d_head)) * (j <= t) for j in places] for t in places]
        maps.append([[power / sum(row) for power in row] for row in powers])
        carried.append([sum(w * v for w, v in zip(row, value)) for row in maps[-1]])
    together = np.concatenate if model.combine == "concat" else sum
    return [together(parts) @ p["W_O"] for parts in zip(*carried)], maps


@pytest.mark.parametrize("options", MODELS)
def test_outputs_and_weights_are_those_of_a_loop_over_rows_and_heads(options, small):
    model, x, target = model_and_batch(MODELS[options])
    outputs, maps = zip(*(loop_row(model, row) for row in x))
    np.testing.assert_allclose(model.outputs(x), outputs, atol=1e-13)
    np.testing.assert_allclose(model.weights(x), maps, atol=1e-13)
    counted = (np.array(outputs) - target)[:, model.places :]
    assert model.loss_and_gradients(x, target)[0] == pytest.approx((counted**2).mean(), rel=1e-12)


@pytest.mark.parametrize("options", MODELS)
def test_the_gradient_of_every_parameter_is_that_of_finite_differences(options, small):
    model, x, target = model_and_batch(MODELS[options])
    _, gradients = model.loss_and_gradients(x, target)
    assert list(gradients) == list(model.parameters)
    for name, parameter in model.parameters.items():
        assert gradients[name].shape == parameter.shape
        assert_close(gradients[name], slope(lambda: model.loss_and_gradients(x, target)[0], parameter, 1e-3))


@pytest.mark.parametrize("options", MODELS)
def test_what_stands_where_nothing_counts_changes_nothing(options, small):
    model, x, target = model_and_batch(MODELS[options])
    loss, gradients = model.loss_and_gradients(x, target)
    for filling in (7, NAN, INF):
        target[:, : model.places] = filling
        loss_now, gradients_now = model.loss_and_gradients(x, target)
        assert loss_now == loss
        assert all(np.array_equal(gradients[name], gradients_now[name]) for name in gradients)
    target[:, model.places] += 1
    assert model.loss_and_gradients(x, target)[0] != loss


@pytest.mark.parametrize(
    ("options", "size", "out", "rows"),
    [
        (dict(), 3840, 16, 32),
        (dict(heads=2, d_head=16), 3840, 16, 32),
        (dict(heads=32, d_head=1), 3840, 16, 32),
        (dict(d_head=256), 27136, 16, 256),
        (dict(heads=2, d_head=8), 2176, 16, 16),
        (dict(heads=2, d_head=8, combine="sum"), 2048, 16, 8),
        (dict(heads=2, d_head=16, combine="sum"), 3584, 16, 16),
        (dict(answer="mean"), 3584, 8, 32),
        (dict(places=4, heads=4, d_head=8), 4352, 32, 32),
        (dict(places=4, answer="mean"), 3584, 8, 32),
    ],
)
def test_the_parameters_are_as_many_as_their_shapes_say(options, size, out, rows):
    model = FetchingModel(**options)
    inner = model.heads * options.get("d_head", 32)
    expected = dict(P=(16, 32), W_Q=(40, inner), W_K=(40, inner), W_V=(8, inner), W_O=(rows, out))
    assert {name: array.shape for name, array in model.parameters.items()} == expected
    assert model.size == size


def test_parameters_start_normal_with_the_variances_promised():
    p = FetchingModel(heads=8, d_head=64, combine="sum", places=9, seed=4).parameters
    variance = dict(P=1, W_Q=1 / 40, W_K=1 / 40, W_V=1 / 8, W_O=1 / 64)
    for name, array in p.items():
        assert abs(array.mean()) < 5 * math.sqrt(variance[name] / array.size)
        assert array.var() == pytest.approx(variance[name], rel=5 * math.sqrt(2 / array.size))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "f4"])
def test_the_model_computes_in_its_dtype(dtype):
    model, (x, target) = FetchingModel(2, 4, dtype=dtype), fetching_batch(np.random.default_rng(0), 2)
    arrays = [*model.parameters.values(), *model.loss_and_gradients(x, target)[1].values()]
    assert {a.dtype for a in (*arrays, model.outputs(x), model.weights(x))} == {np.dtype(dtype)}
    assert {a.dtype for a in FetchingModel().parameters.values()} == {np.dtype(np.float32)}


def test_lists_and_whole_numbers_are_taken():
    model = FetchingModel(dtype=F64)
    x, target = np.arange(256).reshape(2, 16, 8) % 5, np.arange(512).reshape(2, 16, 16) % 3
    loss, gradients = model.loss_and_gradients(x.tolist(), target.tolist())
    assert loss == model.loss_and_gradients(x.astype(F64), target.astype(F64))[0]
    assert np.array_equal(model.outputs(x), model.outputs(x.tolist()))


@pytest.mark.parametrize("combine", ["concat", "sum"])
def test_what_underflows_raises_no_flag(combine):
    model = FetchingModel(2, 8, combine=combine)
    for name, parameter in model.parameters.items():
        parameter *= 1e-25 if name in ("W_V", "W_O") else 30
    batch = fetching_batch(np.random.default_rng(0), 2)
    with np.errstate(all="raise"):
        model.evaluate()
        model.loss_and_gradients(batch[0], 1e-25 * batch[1])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(heads=0), ValueError, "heads is 0, but must be 1 or more"),
        (dict(heads=1.5), TypeError, "heads is 1.5"),
        (dict(d_head=0), ValueError, "d_head is 0"),
        (dict(d_head=None), TypeError, "d_head is None"),
        (dict(places=0), ValueError, "places is 0"),
        (dict(places=16), ValueError, "places is 16, but must be from 1 to 15"),
        (dict(answer="none"), ValueError, "answer is 'none', but must be one of 'each', 'mean'"),
        (dict(answer=None), ValueError, "answer is None"),
        (dict(combine="mean"), ValueError, "combine is 'mean', but must be one of 'concat', 'sum'"),
        (dict(combine=[1]), ValueError, r"combine is \[1\]"),
        (dict(seed=-1), ValueError, "seed is -1, but must be 0 or more"),
        (dict(seed=None), TypeError, "seed is None"),
        (dict(dtype=np.float16), TypeError, "dtype is .*float16.*, but must be float32 or float64"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        FetchingModel(**options)


@pytest.mark.parametrize("method", ["outputs", "weights", "loss_and_gradients"])
@pytest.mark.parametrize("shape", [(16, 8), (2, 15, 8), (2, 16, 9), (0, 16, 8), (2, 1, 16, 8)])
def test_tokens_of_another_shape_are_refused(method, shape):
    rest = [np.zeros((2, 16, 16))] if method == "loss_and_gradients" else []
    with pytest.raises(ValueError) as caught:
        getattr(FetchingModel(), method)(np.zeros(shape), *rest)
    assert f"x {shape} must have the shape (batch, 16, 8), batch 1 or more" in str(caught.value)


@pytest.mark.parametrize("broken", [NAN, INF, -INF])
def test_tokens_that_are_not_finite_are_refused(broken):
    x = np.ones((2, 16, 8))
    x[1, 3, 5] = broken
    with pytest.raises(ValueError, match="x holds NaN or infinity, but must be finite"):
        silent(FetchingModel().outputs)(x)


@pytest.mark.parametrize("shape", [(16, 16), (1, 16, 16), (2, 16, 8), (2, 15, 16), (2, 16, 1)])
def test_a_target_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError) as caught:
        FetchingModel().loss_and_gradients(np.zeros((2, 16, 8)), np.zeros(shape))
    assert f"target {shape} must have the shape of the outputs, (2, 16, 16)" in str(caught.value)


def test_what_is_not_numbers_is_refused_by_name():
    x, target = np.zeros((2, 16, 8)), np.zeros((2, 16, 16))
    with pytest.raises(TypeError, match="x has dtype bool"):
        FetchingModel().outputs(x > 0)
    with pytest.raises(TypeError, match="target has dtype complex128"):
        FetchingModel().loss_and_gradients(x, target + 0j)


# the held-out rows


def test_evaluate_takes_the_loss_on_256_rows_that_nothing_else_has(monkeypatch):
    seen, draw = [], fetching.fetching_batch
    monkeypatch.setattr(fetching, "fetching_batch", lambda *args: seen.append(draw(*args)) or seen[-1])
    models = [FetchingModel(seed=seed, places=3, answer="mean") for seed in (0, 1)]
    losses = [model.evaluate() for model in (*models, models[0])]
    assert losses[0] == losses[2] != losses[1]
    assert all(np.array_equal(seen[0][0], x) for x, _ in seen[1:])
    assert seen[0][0].shape == (256, 16, 8)
    assert losses[0] == models[0].loss_and_gradients(*seen[0])[0]
    held_out = seen.pop(0)[0]
    for seed in (0, 1, 2):
        next(train_fetching(models[0], seed=seed))
        assert not np.isin(seen[-1][0], held_out).any()
        start = FetchingModel(seed=seed, dtype=F64).parameters
        assert not np.isin(start["P"], (*held_out, *seen[-1][0])).any()


@pytest.mark.parametrize(("task", "loss"), [((2, "each"), 1), ((2, "mean"), 1 / 2), ((5, "mean"), 1 / 5)])
def test_knowing_nothing_costs_the_variance_of_the_answer(task, loss):
    model = FetchingModel(places=task[0], answer=task[1])
    model.parameters["W_O"][:] = 0
    assert model.evaluate() == pytest.approx(loss, rel=0.04)


# heads set by hand


def by_hand(offsets, values, W_O, **options):
    """A model whose head h looks at the positions offsets[h] back alone, in equal parts, and carries x @ values[h]."""
    model = FetchingModel(len(offsets), 16, dtype=F64, **options)
    for array in model.parameters.values():
        array[:] = 0
    model.parameters["P"][:, :16] = np.eye(16)
    for head, back in enumerate(offsets):
        at = slice(16 * head, 16 * head + 16)
        model.parameters["W_Q"][8:24, at] = 4000 * sum(np.eye(16, k=-k) for k in back)  # t asks for t - k
        model.parameters["W_K"][8:24, at] = np.eye(16)
        model.parameters["W_V"][:, at] = values[head]
    model.parameters["W_O"][: len(W_O)] = W_O
    return model


LEFT, RIGHT = np.eye(8, 16), np.eye(8, 16, k=8)


def test_a_head_for_each_place_fetches_both_exactly():
    apart = np.zeros((32, 16))
    apart[:8, :8] = apart[16:24, 8:] = np.eye(8)
    assert by_hand([[1], [2]], [LEFT, LEFT], apart).evaluate() == 0


def test_a_sum_of_heads_that_write_apart_fetches_both_exactly():
    assert by_hand([[1], [2]], [LEFT, RIGHT], np.eye(16), combine="sum").evaluate() == 0


def test_one_head_for_two_places_has_their_mean_and_half_the_loss():
    twice = np.zeros((16, 16))
    twice[:8, :8] = twice[:8, 8:] = np.eye(8)
    assert by_hand([[1, 2]], [LEFT], twice).evaluate() == pytest.approx(0.5, abs=0.02)
    assert by_hand([[1]], [LEFT], np.eye(16)).evaluate() == pytest.approx(0.5, abs=0.02)
    assert by_hand([[1, 2]], [LEFT], np.eye(16, 8), answer="mean").evaluate() < 1e-28


# training


def test_training_is_adam_on_fresh_batches_with_a_rate_that_falls_to_a_fifth():
    model, twin, batches = FetchingModel(2, 4, seed=1), FetchingModel(2, 4, seed=1), []
    measure = model.loss_and_gradients
    model.loss_and_gradients = lambda *batch: batches.append(batch) or measure(*batch)
    progress = list(train_fetching(model, 10, 0.01, seed=3))
    adam = Adam(twin.parameters, 0.01, beta1=0.9, beta2=0.98)
    for step, batch in enumerate(batches):
        loss, gradients = twin.loss_and_gradients(*batch)
        assert progress[step] == (step, loss)
        adam.rate = 0.01 if step < 6 else 0.01 / 5
        adam.update(gradients)
    assert all(np.array_equal(a, twin.parameters[name]) for name, a in model.parameters.items())
    assert [batch[0].shape for batch in batches] == [(32, 16, 8)] * 10
    assert len(np.unique([x for x, _ in batches])) == 10 * 32 * 16 * 8


def test_training_takes_600_steps_of_5e_3_from_seed_0_unless_told():
    assert sum(1 for _ in train_fetching(FetchingModel(1, 1))) == 600
    models = FetchingModel(2, 4), FetchingModel(2, 4)
    short = [loss for _, loss in train_fetching(models[0], 5)]
    assert short == [loss for _, loss in train_fetching(models[1], 5, 5e-3, 0)]


def test_training_asks_for_the_model_s_own_task():
    for places, answer, loss in ((1, "mean", 1), (4, "mean", 1 / 4), (4, "each", 1)):
        model = FetchingModel(places=places, answer=answer)
        model.parameters["W_O"][:] = 0
        assert next(train_fetching(model))[1] == pytest.approx(loss, rel=0.15)


def test_training_runs_as_far_as_it_is_asked():
    model = FetchingModel()
    start = model.parameters["W_O"].copy()
    progress = train_fetching(model, 10)
    assert np.array_equal(model.parameters["W_O"], start)
    assert next(progress)[0] == 0
    assert np.array_equal(model.parameters["W_O"], start)
    assert next(progress)[0] == 1
    assert not np.array_equal(model.parameters["W_O"], start)


def test_equal_seeds_give_equal_bits_and_other_seeds_others():
    runs = []
    for seed, batches in ((0, 0), (0, 0), (1, 0), (0, 1)):
        model = FetchingModel(2, 4, seed=seed)
        losses = [loss for _, loss in train_fetching(model, 20, seed=batches)]
        runs.append((losses, model.evaluate(), [a.tobytes() for a in model.parameters.values()]))
    assert runs[0] == runs[1]
    for other in runs[2:]:
        assert all(a != b for a, b in zip(runs[0], other))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(steps=0), ValueError, "steps is 0, but must be 1 or more"),
        (dict(steps=2.5), TypeError, "steps is 2.5"),
        (dict(rate=0), ValueError, "rate is 0, but must be above 0"),
        (dict(rate="fast"), TypeError, "rate is 'fast'"),
        (dict(seed=-1), ValueError, "seed is -1, but must be 0 or more"),
        (dict(seed=None), TypeError, "seed is None"),
    ],
)
def test_training_that_makes_no_sense_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        next(train_fetching(FetchingModel(), **options))


# what the notebook shows


def trained(seed, steps, **options):
    model = FetchingModel(seed=seed, **options)
    for _ in train_fetching(model, steps, seed=seed):
        pass
    return model


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("steps", "options", "least", "most"),
    [
        (150, dict(), 0.45, 0.56),
        (300, dict(heads=2, d_head=8, combine="sum"), 0.45, 0.56),
        (300, dict(heads=2, d_head=16, combine="sum"), 0, 0.02),
        (200, dict(answer="mean"), 0, 0.02),
        (150, dict(places=4, heads=2, d_head=16), 0.45, 0.56),
    ],
    ids=["one head", "a narrow sum", "a wide sum", "a mean", "two heads for four places"],
)
def test_what_no_head_is_free_for_and_what_has_no_room_stays_unknown(steps, options, least, most, seed):
    assert least <= trained(seed, steps, **options).evaluate() <= most


@pytest.mark.parametrize("seed", range(5))
def test_two_heads_share_two_places_out_among_themselves(seed):
    model = trained(seed, 300, heads=2, d_head=16)
    assert model.evaluate() < 0.02
    weights = model.weights(fetching_batch(np.random.default_rng(seed), 50)[0])
    one, two = (np.diagonal(weights, -k, 2, 3)[..., 2 - k :].mean((0, 2)) for k in (1, 2))  # (heads,)
    assert {int(one.argmax()), int(two.argmax())} == {0, 1}
    assert (one + two).min() > 0.9
    assert abs(one[0] * two[1] - one[1] * two[0]) > 0.5  # a head may hold a mixture: W_O takes it apart
