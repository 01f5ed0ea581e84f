"""Training attention in NumPy: the backward pass, Adam, a small attention-only model, two tasks for it.

A batch is three arrays (batch, n): tokens (whole numbers 0..vocabulary-1), targets (the right
answer at each position) and counted (True where the answer counts). A task is a function that
makes one from a random generator: functools.partial(random_tokens, batch=32, n=16, vocabulary=16).
Losses are cross-entropies in nats, means over the counted positions; an accuracy is the share
of them where the most likely answer is right.
"""

import numpy as np

from attn_helpers.arguments import as_array, as_dict, as_dtype, as_number, as_real, as_whole, check_lead, check_switch
from attn_helpers.attention import (
    _cast,
    _check_triple,
    _scale,
    _weighted_sum,
    _wide,
    scaled_dot_product_attention,
)
from attn_helpers.heads import merge_heads, split_heads

PROJECTIONS = "W_Q", "W_K", "W_V"


def attention_backward(grad_output, query, key, value, weights, scale=None):
    """Carry the gradient of a loss back through scaled dot-product attention.

    grad_output  (..., n_q, d_v), the loss differentiated by each number of the output
    query, key, value, scale  as they went in
    weights      (..., n_q, n_kv), as they came out
    returns      grad_query, grad_key, grad_value, each of its argument's shape and dtype

    With S = scale Q K^T, A = softmax(S) by rows, Y = A V, and dY for the loss differentiated by Y:
        dV = A^T dY                       dA = dY V^T
        dS = A * (dA - rowsum(dA * A))    since A_j differentiated by S_k is A_j (1[j = k] - A_k)
        dQ = scale dS K                   dK = scale dS^T Q
    A hidden key has weight 0 and with it dS = 0: a mask needs nothing more. What has weight 0 adds
    nothing to a sum, even where it is NaN or infinite. An argument that was broadcast along a
    leading axis gets the sum along it.
    Raises TypeError or ValueError where an argument does not fit, and names it.
    Source: the chain rule on Vaswani et al. (2017), equation 1.
    """
    given = dict(grad_output=grad_output, query=query, key=key, value=value, weights=weights)
    given = {name: as_real(name, array) for name, array in given.items()}
    _check_backward(**given)
    grad_output, query, key, value, weights = (_wide(array) for array in given.values())
    scale = _scale(scale, query.shape[-1])
    seen = weights != 0
    with np.errstate(invalid="ignore", under="ignore"):
        grad_value = _sum_over_queries(weights, grad_output, seen)  # (..., n_kv, d_v)
        grad_weights = np.where(seen, grad_output @ value.swapaxes(-1, -2), 0)  # (..., n_q, n_kv)
        grad_scores = weights * (grad_weights - (grad_weights * weights).sum(-1, keepdims=True))
        grad_query = _weighted_sum(scale * grad_scores, key, seen)  # (..., n_q, d_k)
        grad_key = _sum_over_queries(scale * grad_scores, query, seen)  # (..., n_kv, d_k)
        grads = dict(query=grad_query, key=grad_key, value=grad_value)
        return tuple(_cast(_sum_to(given[name].shape, grad), given[name].dtype) for name, grad in grads.items())


class Adam:
    """Gradient descent with a step of its own for each number: running mean of its gradient / its size.

    parameters    a dict of writeable arrays in float32 or float64, changed in place by update
    rate          about the size of a step (alpha in the paper), above 0
    beta1, beta2  share of the running mean, of gradient and squared gradient, that a step keeps; between 0 and 1
    epsilon       above 0 in the parameters' dtypes, keeps the division finite

    Raises TypeError or ValueError where an argument does not fit, and names it.
    Source: Kingma & Ba, "Adam: A Method for Stochastic Optimization" (2014),
    https://arxiv.org/abs/1412.6980, algorithm 1.
    """

    def __init__(self, parameters, rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8):
        for name, array in as_dict("parameters", parameters, "of arrays").items():
            _check_parameter(f"parameters[{name!r}]", array)
        self.parameters, self.steps = parameters, 0
        self.rate, self.epsilon = _positive("rate", rate, np.inf), _positive("epsilon", epsilon, np.inf)
        self.betas = _positive("beta1", beta1, 1), _positive("beta2", beta2, 1)
        for name, array in parameters.items():
            if not array.dtype.type(self.epsilon):
                raise ValueError(
                    f"epsilon is {self.epsilon:g}, but is 0 in {array.dtype}, that of parameters[{name!r}]"
                )
        self.means = {name: np.zeros_like(array) for name, array in parameters.items()}
        self.squares = {name: np.zeros_like(array) for name, array in parameters.items()}

    def update(self, gradients):
        """Take one step down the gradients, a dict with the names and shapes of the parameters.

        Raises TypeError or ValueError where gradients do not fit, or their squares are not finite in
        the parameters' dtypes, and changes nothing then.
        """
        gradients = as_dict("gradients", gradients, "of arrays")
        gradients = {name: _wide(as_real(f"gradients[{name!r}]", array)) for name, array in gradients.items()}
        ours, theirs = ({name: a.shape for name, a in d.items()} for d in (self.parameters, gradients))
        if ours != theirs:
            raise ValueError(f"gradients have shapes {theirs}, but the parameters have {ours}")
        squared = {name: _squared(name, gradients[name], self.squares[name].dtype) for name in ours}
        self.steps += 1
        beta1, beta2 = self.betas
        with np.errstate(under="ignore"):
            for name, parameter in self.parameters.items():
                mean, square, gradient = self.means[name], self.squares[name], gradients[name]
                mean += (1 - beta1) * (gradient - mean)
                square += (1 - beta2) * (squared[name] - square)
                unbiased, size = mean / (1 - beta1**self.steps), np.sqrt(square / (1 - beta2**self.steps))
                parameter -= self.rate * unbiased / (size + self.epsilon)


class AttentionModel:
    """A transformer of attention alone: embed, in each layer attend and add, unembed.

    x = E[tokens] + P; in each layer x = x + concat(heads) W_O; logits = x U. No biases, no
    normalisation, no feed-forward layers.

    vocabulary, length  number of tokens, and of positions
    width, heads, d_head, layers  sizes; d_head None stands for width / heads
    is_causal   True: no position attends to a later one
    scale       factor of the scores; None stands for 1 / sqrt(d_head), 1 for unscaled
    seed        a whole number, 0 or more, of the parameters' initial values: normal around 0, E and P
                with variance 1/2, so that x starts with variance 1, the matrices with variance 1 / rows
    dtype       np.float32 or np.float64
    parameters  (attribute) a dict of arrays: E (vocabulary, width), P (length, width), W_Q, W_K, W_V
                (layers, width, heads * d_head), W_O (layers, heads * d_head, width), U (width, vocabulary)

    Raises TypeError or ValueError where an argument does not fit, and names it.
    Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021),
    https://transformer-circuits.pub/2021/framework.
    """

    def __init__(
        self,
        vocabulary,
        length,
        width=32,
        heads=1,
        d_head=None,
        layers=1,
        is_causal=True,
        scale=None,
        seed=0,
        dtype=np.float32,
    ):
        sizes = dict(vocabulary=vocabulary, length=length, width=width, heads=heads, layers=layers)
        vocabulary, length, width, heads, layers = (as_whole(name, size, 1) for name, size in sizes.items())
        d_head = _d_head(d_head, width, heads)
        inner = heads * d_head
        check_switch("is_causal", is_causal)
        self.heads, self.layers, self.is_causal, self.scale = heads, layers, is_causal, _scale(scale, d_head)
        shapes = dict(E=(vocabulary, width), P=(length, width))
        shapes |= dict.fromkeys(PROJECTIONS, (layers, width, inner))
        shapes |= dict(W_O=(layers, inner, width), U=(width, vocabulary))
        normal, dtype = np.random.default_rng(as_whole("seed", seed, 0)).standard_normal, _trainable("dtype", dtype)
        spread = {name: (2 if name in ("E", "P") else shape[-2]) ** -0.5 for name, shape in shapes.items()}
        self.parameters = {name: (spread[name] * normal(shape)).astype(dtype) for name, shape in shapes.items()}

    def logits(self, tokens):
        """Scores of the next answer (batch, n, vocabulary), and each layer's weights (batch, heads, n, n) in a list.

        tokens  (batch, n), n at most the model's length
        """
        logits, _, tape = self._forward(self._read(tokens))
        return logits, [weights for *_, weights in tape]

    def evaluate(self, tokens, targets, counted):
        """Loss and accuracy on a batch, every position from one run over the whole sequence."""
        return _cross_entropy(self.logits(tokens)[0], targets, counted)[:2]

    def evaluate_on_prefixes(self, tokens, targets, counted):
        """Loss and accuracy where position t is answered from tokens 0..t alone, as when text is generated.

        Without a look ahead it is what evaluate gives, n times as slow.
        """
        tokens = self._read(tokens)
        last = [self.logits(tokens[:, : t + 1])[0][:, -1] for t in range(tokens.shape[1])]
        return _cross_entropy(np.stack(last, axis=1), targets, counted)[:2]

    def loss_and_gradients(self, tokens, targets, counted):
        """Loss, accuracy, and the loss differentiated by each parameter, a dict as parameters is."""
        tokens = self._read(tokens)
        logits, x, tape = self._forward(tokens)
        loss, accuracy, grad_logits = _cross_entropy(logits, targets, counted)
        return loss, accuracy, self._backward(tokens, grad_logits, x, tape)

    def _forward(self, tokens):
        """Logits, the x they were made of, and for each layer what its backward pass needs."""
        p, tape = self.parameters, []
        with np.errstate(under="ignore"):
            x = p["E"][tokens] + p["P"][: tokens.shape[1]]  # (batch, n, width)
            for layer in range(self.layers):
                qkv = [split_heads(x @ p[name][layer], self.heads) for name in PROJECTIONS]  # (batch, heads, n, d_head)
                output, weights = scaled_dot_product_attention(*qkv, None, self.is_causal, self.scale)
                tape.append((x, qkv, output, weights))
                x = x + merge_heads(output) @ p["W_O"][layer]  # (batch, n, width)
            return x @ p["U"], x, tape

    def _backward(self, tokens, grad_logits, x, tape):
        p = self.parameters
        grads = {name: np.zeros_like(array) for name, array in p.items()}
        with np.errstate(under="ignore"):
            grads["U"] = _outer(x, grad_logits)
            grad = grad_logits @ p["U"].T  # (batch, n, width)
            for layer in reversed(range(self.layers)):
                x, qkv, output, weights = tape[layer]
                grads["W_O"][layer] = _outer(merge_heads(output), grad)
                grad_output = split_heads(grad @ p["W_O"][layer].T, self.heads)  # (batch, heads, n, d_head)
                for name, grad_head in zip(PROJECTIONS, attention_backward(grad_output, *qkv, weights, self.scale)):
                    grads[name][layer] = _outer(x, merge_heads(grad_head))
                    grad = grad + merge_heads(grad_head) @ p[name][layer].T  # (batch, n, width)
            grads["P"][: tokens.shape[1]] = grad.sum(0)
            grads["E"] = _outer(_one_hot(tokens, len(p["E"]), grad.dtype), grad)
            return grads

    def _read(self, tokens):
        vocabulary, length = (len(self.parameters[name]) for name in ("E", "P"))
        tokens = _tokens("tokens", tokens, vocabulary)
        if tokens.shape[1] > length:
            raise ValueError(f"tokens {tokens.shape} have n = {tokens.shape[1]}, but the model has {length} positions")
        return tokens


def random_tokens(rng, batch, n, vocabulary):
    """A task without an answer: tokens drawn independently, say the next one.

    rng      a np.random.Generator
    returns  tokens, targets, counted, each (batch, n); the last position, whose next token is not
             among the tokens, does not count

    From tokens 0..t nothing better than a loss of ln(vocabulary) is possible; a model that may look
    ahead copies the answer. Raises TypeError or ValueError where an argument does not fit.
    """
    _check_generator(rng)
    batch, n, vocabulary = as_whole("batch", batch, 1), as_whole("n", n, 2), as_whole("vocabulary", vocabulary, 1)
    drawn = rng.integers(0, vocabulary, (batch, n + 1))
    return drawn[:, :-1], drawn[:, 1:], np.arange(n) < np.full((batch, 1), n - 1)


def repeated_tokens(rng, batch, n, vocabulary, shortest, longest):
    """A task for induction: each row repeats a random run of distinct tokens, say the next one.

    rng                a np.random.Generator
    shortest, longest  bounds of the run's length, drawn for each row, in tokens; longest below n
                       and at most vocabulary
    returns            tokens, targets, counted, each (batch, n); what counts is a token that was
                       seen before, so that the token after it then is the answer now

    No fixed distance is right in all rows, since the lengths differ. Raises TypeError or ValueError where
    an argument does not fit.
    """
    _check_generator(rng)
    batch, n, vocabulary = as_whole("batch", batch, 1), as_whole("n", n, 1), as_whole("vocabulary", vocabulary, 1)
    shortest, longest = as_whole("shortest", shortest, 1), as_whole("longest", longest, 1)
    if not shortest <= longest <= min(vocabulary, n - 1):
        raise ValueError(
            f"shortest is {shortest} and longest {longest}, but must rise and stay within the {vocabulary} "
            f"tokens of the vocabulary and below n = {n}"
        )
    period = rng.integers(shortest, longest + 1, (batch, 1))
    run = rng.permuted(np.tile(np.arange(vocabulary), (batch, 1)), axis=1)  # (batch, vocabulary)
    drawn = np.take_along_axis(run, np.arange(n + 1) % period, axis=1)  # (batch, n + 1)
    return drawn[:, :-1], drawn[:, 1:], np.arange(n) >= period


def train(model, task, steps, rate, seed=0):
    """Train a model in place with Adam, a fresh batch at each step; nothing runs until it is iterated.

    model   an AttentionModel
    task    a function of a np.random.Generator that returns a batch
    rate    Adam's step size
    seed    a whole number, 0 or more, of the batches
    yields  step, loss, accuracy: of the step's batch, before the model has learned from it; no
            batch comes twice, so these tell how the model does on what it has not seen

    Raises TypeError or ValueError where an argument does not fit, and names it.
    """
    if not isinstance(model, AttentionModel):
        raise TypeError(f"model is of type {type(model).__name__}, but must be an AttentionModel")
    rng, adam = np.random.default_rng(as_whole("seed", seed, 0)), Adam(model.parameters, rate)
    for step in range(as_whole("steps", steps, 1)):
        loss, accuracy, gradients = model.loss_and_gradients(*_batch(task, rng))
        yield step, loss, accuracy
        adam.update(gradients)


def _cross_entropy(logits, targets, counted):
    """Loss, accuracy, and the loss differentiated by the logits."""
    targets, counted = _tokens("targets", targets, logits.shape[-1]), as_array("counted", counted)
    for name, array in (("targets", targets), ("counted", counted)):
        if array.shape != logits.shape[:2]:
            raise ValueError(f"{name} {array.shape} must have the shape of the tokens, {logits.shape[:2]}")
    if counted.dtype.kind != "b" or not counted.any():
        raise ValueError("counted must be boolean, and True somewhere")
    with np.errstate(under="ignore"):
        below = logits - logits.max(-1, keepdims=True)
        log_p = below - np.log(np.exp(below).sum(-1, keepdims=True))  # (batch, n, vocabulary)
        right = _one_hot(targets, logits.shape[-1], logits.dtype)
        share = (counted / counted.sum()).astype(logits.dtype)[..., None]  # (batch, n, 1)
        accuracy = (logits.argmax(-1) == targets)[counted].mean()
        return float(0 - (share * right * log_p).sum()), float(accuracy), share * (np.exp(log_p) - right)


def _outer(x, grad):
    """The gradient of a matrix that x was multiplied by, summed over batch and positions."""
    return x.reshape(-1, x.shape[-1]).T @ grad.reshape(-1, grad.shape[-1])


def _one_hot(tokens, vocabulary, dtype):
    return (tokens[..., None] == np.arange(vocabulary)).astype(dtype)  # (batch, n, vocabulary)


def _sum_over_queries(weights, rows, seen):
    return _weighted_sum(weights.swapaxes(-1, -2), rows, seen.swapaxes(-1, -2))


def _batch(task, rng):
    if not callable(task):
        raise TypeError(f"task is {task!r}, but must be a function of a np.random.Generator")
    batch = task(rng)
    if not isinstance(batch, (tuple, list)) or len(batch) != 3:
        raise TypeError(f"task gives {type(batch).__name__}, but must give a batch: tokens, targets and counted")
    return batch


def _sum_to(shape, grad):
    """The gradient for an argument of that shape, which was broadcast to the shape of grad."""
    if grad.shape == shape:
        return grad
    extra = grad.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, size in enumerate(shape) if size == 1))
    return grad.sum(axes).reshape(shape)


def _check_backward(grad_output, query, key, value, weights):
    *lead, n_q, n_kv = _check_triple(query, key, value)
    if grad_output.shape != (*lead, n_q, value.shape[-1]):
        raise ValueError(
            f"grad_output {grad_output.shape} must have the shape of the output, {(*lead, n_q, value.shape[-1])}"
        )
    if weights.shape[-2:] != (n_q, n_kv) or check_lead(grad_output=grad_output, weights=weights) != tuple(lead):
        raise ValueError(f"weights {weights.shape} must have the shape of the scores, {(*lead, n_q, n_kv)}")


def _check_generator(rng):
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng is {rng!r}, but must be a np.random.Generator, such as np.random.default_rng(0)")


def _check_parameter(name, array):
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is of type {type(array).__name__}, but must be an array in float32 or float64")
    _trainable(name, array.dtype)
    if not array.flags.writeable:
        raise ValueError(f"{name} is read-only, but changes in place")


def _tokens(name, tokens, vocabulary):
    tokens = as_array(name, tokens)
    if tokens.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {tokens.dtype}, but needs whole numbers")
    if tokens.ndim != 2 or not tokens.size:
        raise ValueError(f"{name} has shape {tokens.shape}, but needs two axes (batch, n), neither empty")
    if tokens.min() < 0 or tokens.max() >= vocabulary:
        raise ValueError(
            f"{name} go from {tokens.min()} to {tokens.max()}, but the vocabulary from 0 to {vocabulary - 1}"
        )
    return tokens


def _d_head(d_head, width, heads):
    if d_head is None and width % heads:
        raise ValueError(f"heads is {heads} and does not divide width, {width}: choose d_head")
    return width // heads if d_head is None else as_whole("d_head", d_head, 1)


def _squared(name, gradient, dtype):
    """The gradient squared, refused where that dtype cannot hold it."""
    with np.errstate(all="ignore"):
        squared = (gradient**2).astype(dtype, copy=False)
    if not np.isfinite(squared).all():
        raise ValueError(f"gradients[{name!r}] holds NaN, or a number whose square is beyond what {dtype} can hold")
    return squared


def _positive(name, value, bound):
    number = as_number(name, value)
    if not 0 < number < bound:
        raise ValueError(f"{name} is {number:g}, but must be above 0 and below {bound}")
    return number


def _trainable(name, dtype):
    """The dtype, if small steps do not vanish in it."""
    if as_dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"{name} is {dtype!r}, but must be float32 or float64")
    return np.dtype(dtype)
