"""A task that asks one attention layer for several places at once: what do several heads buy?

Each row of a batch is n = LENGTH tokens, vectors x_t of m = TOKEN_WIDTH independent standard normal
numbers. The answer at position t is made of x_{t-1} .. x_{t-K}, K being `places`. It is counted
from t = K on, by the mean squared error per number. Knowing nothing costs 1 where each of the
places is asked for, and 1 / K where only their mean is.

A head whose weights depend on positions alone carries one mixture of the places, so h < K heads leave
an expected loss of 1 - h / K or more where each is asked for, however wide the heads. Vaswani et al.
(2017), section 3.2.2, say it in words: "With a single attention head, averaging inhibits this".
"""

import numpy as np

from attn_helpers.arguments import as_real, as_whole, index_of
from attn_helpers.attention import scaled_dot_product_attention
from attn_helpers.heads import merge_heads, split_heads
from attn_helpers.training import Adam, _check_generator, _outer, _trainable, attention_backward

TOKEN_WIDTH, POSITION_WIDTH, LENGTH = 8, 32, 16
ANSWERS = "each", "mean"
COMBINATIONS = "concat", "sum"
BATCH, HELD_OUT = 32, 256  # rows of a training step, and of evaluate


def fetching_batch(rng, batch, places=2, answer="each"):
    """Draw a batch: tokens, and what is to be fetched at each position.

    rng      a np.random.Generator
    batch    number of rows
    places   K, how far back the answer reaches, from 1 to n - 1
    answer   "each": [x_{t-1}, ..., x_{t-K}] side by side, K m numbers; "mean": their mean, m numbers
    returns  x (batch, n, m) and target (batch, n, K m or m); target is 0 before t = K, where nothing counts

    Raises TypeError or ValueError where an argument does not fit, and names it.
    """
    _check_generator(rng)
    batch, places = as_whole("batch", batch, 1), _places(places)
    index_of("answer", answer, ANSWERS)
    x = rng.standard_normal((batch, LENGTH, TOKEN_WIDTH))  # (batch, n, m)
    earlier = np.stack([np.roll(x, k, axis=1) for k in range(1, places + 1)], axis=2)  # (batch, n, K, m)
    earlier[:, :places] = 0
    return x, earlier.mean(2) if answer == "mean" else earlier.reshape(batch, LENGTH, -1)


class FetchingModel:
    """One causal attention layer of several heads, and nothing else: no residual, no biases.

    Queries and keys are made of [x_t, P_t], the token and its position's learned vector side by side,
    values of x_t alone.

    heads, d_head   number of heads, width of each
    places, answer  the task, as for fetching_batch
    combine         "concat": the heads' outputs side by side, times W_O (heads * d_head, out);
                    "sum": their sum, times W_O (d_head, out)
    seed            a whole number, 0 or more, of the parameters' initial values: normal around 0, P with
                    variance 1, the matrices with variance 1 / rows
    dtype           np.float32 or np.float64
    parameters      (attribute) a dict of arrays: P (n, POSITION_WIDTH), W_Q and W_K
                    (m + POSITION_WIDTH, heads * d_head), W_V (m, heads * d_head), W_O (as above);
                    out is K m for "each", m for "mean"

    Raises TypeError or ValueError where an argument does not fit, and names it.
    Source: Vaswani et al. (2017), section 3.2.2.
    """

    def __init__(self, heads=1, d_head=32, places=2, answer="each", combine="concat", seed=0, dtype=np.float32):
        self.heads, d_head, self.places = as_whole("heads", heads, 1), as_whole("d_head", d_head, 1), _places(places)
        index_of("answer", answer, ANSWERS)
        index_of("combine", combine, COMBINATIONS)
        self.answer, self.combine, inner = answer, combine, self.heads * d_head
        shapes = dict(P=(LENGTH, POSITION_WIDTH))
        shapes |= dict.fromkeys(("W_Q", "W_K"), (TOKEN_WIDTH + POSITION_WIDTH, inner))
        shapes |= dict(W_V=(TOKEN_WIDTH, inner))
        out = TOKEN_WIDTH if answer == "mean" else self.places * TOKEN_WIDTH
        shapes |= dict(W_O=(inner if combine == "concat" else d_head, out))
        normal, dtype = np.random.default_rng(as_whole("seed", seed, 0)).standard_normal, _trainable("dtype", dtype)
        spread = {name: 1 if name == "P" else shape[0] ** -0.5 for name, shape in shapes.items()}
        self.parameters = {name: (spread[name] * normal(shape)).astype(dtype) for name, shape in shapes.items()}

    @property
    def size(self):
        """Number of parameters."""
        return sum(array.size for array in self.parameters.values())

    def outputs(self, x):
        """What the model answers to tokens x (batch, n, m): (batch, n, out)."""
        return self._forward(self._read(x))[0]

    def weights(self, x):
        """Each head's attention weights (batch, heads, n, n) on tokens x (batch, n, m)."""
        return self._forward(self._read(x))[-1]

    def evaluate(self):
        """Loss on HELD_OUT rows, the same ones at each call and for each model of the same task."""
        rng = np.random.default_rng((0, 2))  # no stream of a model or of training, for seeds below 2**32
        x, target = fetching_batch(rng, HELD_OUT, self.places, self.answer)
        return self._loss(self.outputs(x), target)[0]

    def loss_and_gradients(self, x, target):
        """Loss on a batch, and the loss differentiated by each parameter, a dict as parameters is.

        x, target  (batch, n, m) and (batch, n, out), as fetching_batch gives them
        """
        x = self._read(x)
        outputs, *tape = self._forward(x)
        loss, grad_outputs = self._loss(outputs, target)
        return loss, self._backward(x, grad_outputs, *tape)

    def _forward(self, x):
        """Outputs, and what the backward pass needs of the way to them, the weights last."""
        p = self.parameters
        with np.errstate(under="ignore"):
            placed = np.concatenate(
                [x, np.broadcast_to(p["P"], (len(x), *p["P"].shape))], axis=-1
            )  # (batch, n, m + 32)
            projected = placed @ p["W_Q"], placed @ p["W_K"], x @ p["W_V"]  # (batch, n, heads * d_head)
            qkv = [split_heads(a, self.heads) for a in projected]  # (batch, heads, n, d_head)
            output, weights = scaled_dot_product_attention(*qkv, is_causal=True)
            combined = merge_heads(output) if self.combine == "concat" else output.sum(1)  # (batch, n, rows of W_O)
            return combined @ p["W_O"], placed, qkv, combined, weights

    def _backward(self, x, grad_outputs, placed, qkv, combined, weights):
        p = self.parameters
        with np.errstate(under="ignore"):
            grad = grad_outputs @ p["W_O"].T  # (batch, n, rows of W_O)
            grad = split_heads(grad, self.heads if self.combine == "concat" else 1)  # (batch, heads or 1, n, d_head)
            grads = attention_backward(np.broadcast_to(grad, qkv[2].shape), *qkv, weights)
            query, key, value = (merge_heads(g) for g in grads)  # (batch, n, heads * d_head)
            positions = query.sum(0) @ p["W_Q"][TOKEN_WIDTH:].T + key.sum(0) @ p["W_K"][TOKEN_WIDTH:].T
            projections = dict(W_Q=_outer(placed, query), W_K=_outer(placed, key), W_V=_outer(x, value))
            return dict(P=positions, **projections, W_O=_outer(combined, grad_outputs))

    def _loss(self, outputs, target):
        """Mean squared error from t = K on, and it differentiated by the outputs."""
        target = as_real("target", target)
        if target.shape != outputs.shape:
            raise ValueError(f"target {target.shape} must have the shape of the outputs, {outputs.shape}")
        with np.errstate(under="ignore"):
            error = outputs - target.astype(outputs.dtype, copy=False)
            error[:, : self.places] = 0
            counted = error[:, self.places :].size
            return float((error**2).sum() / counted), 2 / counted * error

    def _read(self, x):
        """The tokens, in the dtype of the parameters."""
        x = as_real("x", x)
        if x.ndim != 3 or x.shape[1:] != (LENGTH, TOKEN_WIDTH) or not len(x):
            raise ValueError(f"x {x.shape} must have the shape (batch, {LENGTH}, {TOKEN_WIDTH}), batch 1 or more")
        if not np.isfinite(x).all():
            raise ValueError("x holds NaN or infinity, but must be finite")
        return x.astype(self.parameters["P"].dtype, copy=False)


def train_fetching(model, steps=600, rate=5e-3, seed=0):
    """Train a FetchingModel in place, a fresh batch of BATCH rows at each step; nothing runs until it is iterated.

    steps   number of steps, 1 or more
    rate    Adam's step size for the first 60 % of the steps; a fifth of it after that
    seed    a whole number, 0 or more, of the batches
    yields  step, loss: of the step's batch, before the model has learned from it

    Raises TypeError or ValueError where an argument does not fit, and names it.
    """
    if not isinstance(model, FetchingModel):
        raise TypeError(f"model is {model!r}, but must be a FetchingModel")
    steps, rng = as_whole("steps", steps, 1), np.random.default_rng((as_whole("seed", seed, 0), 1))
    adam = Adam(model.parameters, rate, beta2=0.98)
    for step in range(steps):
        loss, gradients = model.loss_and_gradients(*fetching_batch(rng, BATCH, model.places, model.answer))
        yield step, loss
        if step == 3 * steps // 5:
            adam.rate /= 5
        adam.update(gradients)


def _places(places):
    return as_whole("places", places, 1, LENGTH - 1)
