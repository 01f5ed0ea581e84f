"""Feedback on the reader's answers: check.<exercise>(answer), and predict() before a run."""

import copy
import dis
import html

import ipywidgets as widgets
import numpy as np

from attn_helpers.attention import entropy, softmax
from attn_helpers.live import RED, pre, quiet


class Feedback:
    """What a check says: correct is True, False, or None where nothing was attempted."""

    def __init__(self, correct, message):
        self.correct, self.message = correct, message

    def __repr__(self):
        return {True: "Correct: ", False: "Not yet: ", None: "Not attempted yet: "}[self.correct] + self.message

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), "text/html": pre(repr(self), "status", "inherit")}


class check:
    """One method for each exercise; each takes the reader's function and returns Feedback."""

    @staticmethod
    def softmax(answer):
        """answer(scores (n,)) -> weights (n,), also for scores of 1000."""
        return _judge(
            answer,
            cases=[([1.0, 0.0, 2.0],), ([1000.0, 1001.0, 999.0],), ([1000.0, 0.0, -1000.0],), ([-1001.0, -1000.0],)],
            right=softmax,
            mistakes=[
                (
                    lambda s: _share(np.exp(s)),
                    "exp(1000) overflows and inf / inf is NaN: subtract the largest score before exp",
                ),
                (
                    lambda s: np.exp(s - s.max()) / np.exp(s).sum(),
                    "above the line the largest score is subtracted, below it exp(1000) still overflows",
                ),
                (
                    lambda s: _share(np.exp(s - s.mean())),
                    "after subtracting the mean a score can still be 1000: subtract the maximum",
                ),
                (
                    lambda s: _share(np.exp(s - s.min())),
                    "subtracting the minimum makes scores larger, not smaller: subtract the maximum",
                ),
                (lambda s: _share(np.exp(s - 1000)), "a fixed constant cannot fit all scores: subtract the largest"),
                (
                    lambda s: np.exp(s - np.log(np.exp(s).sum())),
                    "exp(1000) overflows inside the logarithm: subtract the largest score before exp",
                ),
                (lambda s: np.exp(s - s.max()), "the weights do not sum to 1: divide by the sum"),
                (
                    lambda s: _share(np.exp(np.clip(s, -700, 700))),
                    "clipping gives 1000 and 1001 the same weight; subtracting the maximum keeps their difference",
                ),
                (lambda s: s / s.sum(), "without exp, negative scores do not give proper weights"),
                (
                    lambda s: _share(np.exp(s.min() - s)),
                    "the sign is wrong: the smallest score gets the largest weight",
                ),
                (lambda s: _share(2 ** (s - s.max())), "the base is 2, but softmax uses e: np.exp"),
                (
                    lambda s: softmax(s, temperature=0),
                    "all weight is on the largest score: that is softmax at temperature 0",
                ),
            ],
            praise="the weights sum to 1 and scores of 1000 do no harm.",
        )

    @staticmethod
    def attend(answer):
        """answer(q (d,), X (n, d), temperature) -> output (d,)."""

        def weights(q, X, T):
            return softmax(X @ q, temperature=T)

        rng = np.random.default_rng(0)
        q, X = np.array([0.5, -1.0, 0.75]), rng.normal(size=(4, 3))
        return _judge(
            answer,
            cases=[(q, X, 0.7), (q, X, 1.9), (9000 * q, X, 2.0)],
            right=lambda q, X, T: weights(q, X, T) @ X,
            hint="scores are X @ q, shape (n,), and the weighted sum is weights @ X; does your softmax return?",
            mistakes=[
                (weights, "these are the weights (n,): the output is their weighted sum of the rows of X, (d,)"),
                (lambda q, X, T: X @ q, "these are the scores (n,): softmax and the weighted sum are missing"),
                (lambda q, X, T: X @ q / T, "these are the scores (n,): softmax and the weighted sum are missing"),
                (lambda q, X, T: weights(q, X, T)[:, None] * X, "the rows are weighted but not summed"),
                (
                    lambda q, X, T: (weights(q, X, T)[:, None] * X).sum(axis=1),
                    "the sum ran over the features (axis 1), not over the positions (axis 0)",
                ),
                (
                    lambda q, X, T: np.exp(X @ q / T - (X @ q / T).max()) @ X,
                    "the weights do not sum to 1: divide by the sum",
                ),
                (lambda q, X, T: weights(q, X, 1) @ X, "the temperature plays no part: divide the scores by it"),
                (lambda q, X, T: softmax(X @ q * T) @ X, "the scores are multiplied by the temperature: divide by it"),
                (
                    lambda q, X, T: weights(q, X, 1) / T @ X,
                    "the weights are divided by the temperature: divide the scores, before softmax",
                ),
                (
                    lambda q, X, T: softmax(-X @ q / T) @ X,
                    "the sign is wrong: the smallest score gets the largest weight",
                ),
                (lambda q, X, T: X @ q / T @ X, "the scores are used as weights: softmax is missing"),
                (lambda q, X, T: X.mean(axis=0), "this is the mean of the rows: the query plays no part"),
                (
                    lambda q, X, T: X[np.argmax(X @ q)],
                    "this is the row with the largest score: a look-up, softmax at temperature 0",
                ),
                (
                    lambda q, X, T: _share(np.exp(X @ q / T)) @ X,
                    "exp overflows for large scores: subtract the largest score first",
                ),
                (
                    lambda q, X, T: softmax(X @ q / T / np.sqrt(len(q))) @ X,
                    "the scores are divided by sqrt(d): right in notebook 6, but not in the formula above",
                ),
                (
                    lambda q, X, T: softmax(X @ q / np.linalg.norm(X, axis=1) / np.linalg.norm(q) / T) @ X,
                    "the scores are cosines: the formula above does not divide by the norms",
                ),
                (
                    lambda q, X, T: (softmax(X * q / T, axis=1) * X).sum(axis=0),
                    "softmax ran over the features of each row, not over the positions",
                ),
            ],
            praise="scores, softmax, weighted sum: that is attention for one query.",
        )

    @staticmethod
    def effective_positions(answer):
        """answer(weights (n,)) -> 2 to the power of their entropy in bits."""
        return _judge(
            answer,
            cases=[([0.5, 0.25, 0.125, 0.125],), ([0.7, 0.2, 0.1],), ([0.5, 0.0, 0.5],), ([0.0, 1.0],)],
            right=lambda w: 2 ** entropy(w),
            mistakes=[
                (
                    lambda w: 2 ** -(w * np.log2(w)).sum(),
                    "a weight of 0 gives 0 * log2(0) = NaN: leave the zeros out of the sum",
                ),
                (entropy, "this is the entropy H: the effective number of positions is 2 ** H"),
                (
                    lambda w: entropy(w) * np.log(2),
                    "this is the entropy in nats: use np.log2 for H, and then 2 ** H",
                ),
                (
                    lambda w: 2 ** (entropy(w) * np.log(2)),
                    "the entropy is in nats (np.log) and the power has base 2: use np.log2, or exp with np.log",
                ),
                (
                    lambda w: np.exp(entropy(w)),
                    "the entropy is in bits and the power has base e: use 2 ** H, or np.log with np.exp",
                ),
                (lambda w: 2 ** -entropy(w), "the minus sign of the entropy is missing"),
                (len, "this counts all positions, whatever their weight"),
                (np.count_nonzero, "this counts the positions with any weight at all, however small"),
                (
                    lambda w: 1 / (w**2).sum(),
                    "this is 1 / sum(w^2), another measure of spread; the exercise asks for 2 ** entropy",
                ),
                (
                    lambda w: 1 / w.max(),
                    "this is 1 / the largest weight, another measure of spread; the exercise asks for 2 ** entropy",
                ),
            ],
            hint="the logarithm of 0 does not exist: leave the zeros out of the sum",
            praise="2 ** H counts equal weights as whole positions and small ones in part.",
        )

    @staticmethod
    def kernel_regression(answer):
        """answer(queries (m,), u (n,), v (n,), bandwidth) -> fitted values (m,)."""

        def fit(queries, u, v, temperature, axis=1, power=2, half=2):
            scores = -(np.abs(queries[:, None] - u) ** power) / half
            return softmax(scores, axis=axis, temperature=temperature) @ v

        u, v = np.array([0.0, 0.5, 2.0, 3.5]), np.array([1.0, -1.0, 2.0, 0.5])
        return _judge(
            answer,
            cases=[(np.array([0.2, 1.0, 3.0]), u, v, 0.7), (np.array([2.5, 0.1]), u, v, 1.6)],
            right=lambda q, u, v, b: fit(q, u, v, b**2),
            mistakes=[
                (lambda q, u, v, b: fit(q, u, v, b), "the bandwidth is not squared: the temperature is bandwidth ** 2"),
                (
                    lambda q, u, v, b: fit(q, u, v, b**2, half=1),
                    "the factor 1/2 is missing: the score is -(query - u) ** 2 / 2",
                ),
                (lambda q, u, v, b: fit(q, u, v, b**2, power=1), "the distance is not squared"),
                (
                    lambda q, u, v, b: fit(q, u, v, b**2, half=-2),
                    "the minus sign is missing: far points get the weight",
                ),
                (
                    lambda q, u, v, b: fit(q, u, v, b**2, axis=0),
                    "softmax ran over the queries: the weights of one query over all u must sum to 1",
                ),
                (
                    lambda q, u, v, b: np.exp(-((q[:, None] - u) ** 2) / (2 * b**2)) @ v,
                    "the kernel is not divided by its sum, so the weights do not sum to 1",
                ),
                (
                    lambda q, u, v, b: _share(np.exp(-((q[:, None] - u) ** 2) / 2 / b**2)) @ v,
                    "softmax ran over the whole (m, n) matrix: each query needs a sum of its own",
                ),
                (
                    lambda q, u, v, b: fit(q, u, v, 1 / b**2),
                    "the scores are multiplied by bandwidth ** 2: divide by it",
                ),
                (lambda q, u, v, b: fit(q, u, v, 1), "the bandwidth plays no part: the temperature is bandwidth ** 2"),
                (
                    lambda q, u, v, b: softmax(-((q[:, None] - u) ** 2) / 2, temperature=b**2),
                    "these are the weights (m, n): the fit is their weighted sum of v",
                ),
                (lambda q, u, v, b: fit(q, u, v, 0), "this is the v of the nearest u: a look-up, bandwidth 0"),
            ],
            hint="queries[:, None] - u has the shape (m, n), a row for each query",
            praise="attention with Gaussian scores is Nadaraya-Watson regression.",
        )


class Prediction(widgets.VBox):
    """A question with options; the recorded guess is compared with the computed answer."""

    def __init__(self, question, options, answer):
        self._question, self._options, self._answer, self.guess = question, list(options), answer, None
        self._radio = widgets.RadioButtons(options=self._options, value=None, layout={"width": "max-content"})
        self._button = widgets.Button(description="This is my guess")
        self._reply = widgets.HTML()
        heading = widgets.HTML(f"<b>{html.escape(question)}</b>")
        super().__init__([heading, self._radio, self._button, self._reply])
        self._button.on_click(self._on_click)
        for control in (self._radio, self._button):
            quiet(control)

    def _on_click(self, _button):
        if self._radio.value is None:
            self._say("Choose an option first.", RED)
        elif self.guess is None:  # only the first guess counts
            self.guess, self._radio.disabled, self._button.disabled = self._radio.value, True, True
            self._compare()

    def _compare(self):
        try:
            right = self._answer()
            if right not in self._options:
                raise ValueError(f"the computed answer {right!r} is not one of the options {self._options}")
            self._say(f"Your guess: {self.guess}. Computed: {right}.", "inherit")
        except Exception as error:  # shown to the reader, as in live.py
            self._say(f"{type(error).__name__}: {error}", RED)

    def _say(self, text, color):
        self._reply.value = f'<div role="status" style="color:{color}">{html.escape(text)}</div>'

    def __repr__(self):
        return "\n".join([self._question, *(f"( ) {option}" for option in self._options)])

    def _repr_mimebundle_(self, **kwargs):
        return {**(super()._repr_mimebundle_(**kwargs) or {}), "text/plain": repr(self)}


def predict(question, options, answer):
    """Ask for a guess before the run; the answer is computed only when one was made.

    question  text; options a list of strings; answer a function without arguments that
              returns the right option
    returns   a widget, to stand on the last line of a cell
    """
    return Prediction(question, options, answer)


@np.errstate(all="ignore")
def _judge(answer, cases, right, mistakes, praise, hint=""):
    """Run the answer on every case; say what it got right or which known mistake it makes.

    cases     tuples of arguments; lists become arrays
    right     the function whose results the answer must reach
    mistakes  (function, message): an answer that gives a mistake's results, in all cases or at
              least in the first wrong one, gets its message
    hint      what to add where the answer raises an exception
    """
    if _is_stub(answer):
        return Feedback(None, "replace the ... by your code and run the cell again.")
    if not callable(answer):
        return Feedback(False, f"this is {type(answer).__name__}, not a function: pass its name, without brackets.")
    cases = [tuple(np.array(a) if isinstance(a, list) else a for a in case) for case in cases]
    try:
        results = [_run(answer, case, hint) for case in cases]
    except _Refused as error:
        return Feedback(False, str(error))
    targets = [np.asarray(right(*case), dtype=float) for case in cases]
    if all(map(_equal, results, targets)):
        return Feedback(True, praise)
    wrong = next(i for i, result in enumerate(results) if not _equal(result, targets[i]))
    telling = np.isfinite(results[wrong]).all() and results[wrong].any()  # NaN and zeros have many causes
    for these in (range(len(cases)), [wrong]) if telling else (range(len(cases)),):
        for mistake, message in mistakes:
            if all(_equal(results[i], np.asarray(mistake(*cases[i]), dtype=float)) for i in these):
                return Feedback(False, message + ".")
    return Feedback(False, _difference(cases[wrong], results[wrong], targets[wrong]))


class _Refused(Exception):
    """An answer that cannot be compared; the text says why."""


def _run(answer, case, hint):
    given = copy.deepcopy(case)
    try:
        result = answer(*given)
    except Exception as error:
        reason = f"your function raised {type(error).__name__}: {error} (for {_show(case)})."
        raise _Refused(f"{reason} Hint: {hint}." if hint else reason) from error
    if result is None:
        raise _Refused("your function returns None: is a return missing?")
    if not all(np.array_equal(a, b) for a, b in zip(given, case)):
        raise _Refused("your function changed its input: work on a copy.")
    try:
        if np.iscomplexobj(result):
            raise TypeError
        return np.array(result, dtype=float)  # a copy: the answer may fill one array again and again
    except (TypeError, ValueError, OverflowError):
        raise _Refused(
            f"your function returns {type(result).__name__}, but one array of numbers is expected."
        ) from None


def _equal(a, b):
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=True)


def _difference(case, result, target):
    if result.shape != target.shape:
        return f"the result has shape {result.shape}, but should have {target.shape} (for {_show(case)})."
    if np.isnan(result).any():
        return f"the result holds NaN (for {_show(case)})."
    where = np.unravel_index(np.argmax(np.abs(result - target)), target.shape)
    place = f" at {', '.join(map(str, where))}" if where else ""
    return f"the result{place} is {result[where]:.4g}, but should be {target[where]:.4g} (for {_show(case)})."


def _show(case):
    """The arguments of a case: short ones by value, long ones by shape."""
    shown = [np.array2string(a, precision=3, separator=", ") for a in map(np.asarray, case)]
    return ", ".join(text if len(text) <= 40 else f"an array of shape {np.shape(a)}" for text, a in zip(shown, case))


def _share(powers):
    return powers / powers.sum()


def _is_stub(answer):
    """True for a function whose body is only `...` or a docstring or both, and for `...` or None themselves."""
    if answer is None or answer is ...:
        return True
    code = getattr(answer, "__code__", None)
    return code is not None and _steps(code) == _steps((lambda: None).__code__)


def _steps(code):
    return [(step.opname, step.argval) for step in dis.get_instructions(code) if step.opname != "NOP"]
