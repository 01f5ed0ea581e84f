"""What the checks say to right answers, to wrong ones, to none, and to what is no answer at all."""

import functools
import html
import math
import re
import warnings

import ipywidgets as widgets
import numpy as np
import pytest
import scipy.special
import scipy.stats

from attn_helpers import check, predict, scaled_dot_product_attention, softmax
from attn_helpers.exercises import Feedback

EXERCISES = ["softmax", "attend", "effective_positions", "kernel_regression"]
ARITY = {"softmax": 1, "attend": 3, "effective_positions": 1, "kernel_regression": 4}
GENERIC = re.compile(r"^(the result|your function)\b")


def judge(exercise, answer):
    """The feedback on an answer; any warning and any floating-point flag is an error."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        feedback = getattr(check, exercise)(answer)
    assert isinstance(feedback, Feedback)
    return feedback


def share(powers, axis=None):
    return powers / powers.sum(axis=axis, keepdims=True)


def stable(s):
    return share(np.exp(s - s.max()))


def stable32(s):
    return share(np.exp(np.float32(s) - np.float32(s).max()))


def softmax_by_loop(values):
    top = max(values)
    powers = [math.exp(v - top) for v in values]
    return [p / sum(powers) for p in powers]


def softmax_in_place_of_a_copy(x):
    x = x.copy()
    x -= x.max()
    np.exp(x, out=x)
    x /= x.sum()
    return x


def attend_by_loop(question, rows, t):
    weights = softmax_by_loop([sum(a * b for a, b in zip(question, row)) / t for row in rows])
    return [sum(w * row[j] for w, row in zip(weights, rows)) for j in range(len(question))]


def attend_into_one_buffer(q, X, T, buffer=np.empty(3)):  # noqa: B008
    buffer[:] = stable(X @ q / T) @ X
    return buffer


def bits(w):
    return -sum(x * math.log2(x) for x in w if x > 0)


def gauss(q, x, b):
    return np.exp(-((q[:, None] - x) ** 2) / (2 * b**2))


def mean_by(kernel, y):
    return kernel @ y / kernel.sum(axis=1)


def kernel_by_loop(points, centres, heights, width):
    fitted = []
    for p in points:
        kernel = [math.exp(-((p - c) ** 2) / 2 / width**2) for c in centres]
        fitted.append(sum(k * h for k, h in zip(kernel, heights)) / sum(kernel))
    return tuple(fitted)


RIGHT = {
    "softmax": {
        "reference": softmax,
        "scipy": scipy.special.softmax,
        "numpy": stable,
        "plain loop, list": softmax_by_loop,
        "tuple": lambda s: tuple(softmax_by_loop(s)),
        "from log-sum-exp": lambda s: np.exp(s - np.logaddexp.reduce(s)),
        "from differences": lambda s: 1 / np.exp(s - s[:, None]).sum(axis=1),
        "on a copy, in place": softmax_in_place_of_a_copy,
        "float32": stable32,
        "longdouble": lambda s: stable(s.astype(np.longdouble)),
        "objects": lambda s: stable(s).astype(object),
        "partial": functools.partial(softmax, axis=-1),
        "more parameters": lambda z, axis=-1, *, T=1.0: softmax(z, axis, T),
        "keeps axes": lambda s: np.exp(s - s.max(-1, keepdims=True)) / np.exp(s - s.max(-1)).sum(-1, keepdims=True),
    },
    "attend": {
        "reference": lambda q, X, T: softmax(X @ q, temperature=T) @ X,
        "plain loop, list": attend_by_loop,
        "average": lambda q, X, T: np.average(X, axis=0, weights=scipy.special.softmax(X.dot(q) / T)),
        "einsum": lambda a, B, c: np.einsum("n,nd->d", stable(np.einsum("nd,d", B, a) / c), B),
        "attention": lambda q, X, T: scaled_dot_product_attention(q[None], X, X, scale=1 / T)[0][0],
        "float32": lambda q, X, T: stable32(np.float32(X) @ np.float32(q) / np.float32(T)) @ np.float32(X),
        "one buffer": attend_into_one_buffer,
    },
    "effective_positions": {
        "reference": lambda w: 2.0 ** -(w[w > 0] * np.log2(w[w > 0])).sum(),
        "plain loop, float": lambda ws: 2 ** bits(ws),
        "nats and e": lambda p: np.exp(-scipy.special.xlogy(p, p).sum()),
        "scipy": lambda p: 2 ** scipy.stats.entropy(p, base=2),
        "product": lambda p: np.prod(np.where(p > 0, p, 1) ** -p),
        "nansum": lambda w: 2 ** -np.nansum(w * np.log2(w)),
        "tiny epsilon": lambda w: 2 ** -np.sum(w * np.log2(w + 1e-12)),
        "0-d array": lambda w: np.array(2 ** bits(w)),
        "float32": lambda w: np.exp2(scipy.stats.entropy(w.astype(np.float32), base=2)).astype(np.float32),
    },
    "kernel_regression": {
        "reference": lambda q, x, y, b: softmax(-((q[:, None] - x) ** 2) / 2, temperature=b**2) @ y,
        "plain loop, tuple": kernel_by_loop,
        "kernel and share": lambda Q, K, V, h: mean_by(gauss(Q, K, h), V),
        "normal density": lambda q, x, y, b: mean_by(scipy.stats.norm.pdf(q[:, None], x, b), y),
        "one query at a time": lambda q, x, y, b: [stable(-0.5 * ((one - x) / b) ** 2) @ y for one in q],
        "expanded square": lambda q, x, y, b: scipy.special.softmax((q[:, None] * x - x**2 / 2) / b**2, axis=1) @ y,
        "float32": lambda *all_: mean_by(gauss(*map(np.float32, (all_[0], all_[1], all_[3]))), np.float32(all_[2])),
    },
}

WRONG = {
    "softmax": {
        "exp overflows": (lambda s: np.exp(s) / np.sum(np.exp(s)), "subtract the largest score before exp"),
        "half shifted": (lambda s: np.exp(s - s.max()) / np.sum(np.exp(s)), "below it exp(1000) still overflows"),
        "mean subtracted": (lambda s: share(np.exp(s - np.mean(s))), "after subtracting the mean"),
        "minimum subtracted": (lambda s: share(np.exp(s - min(s))), "subtracting the minimum"),
        "not divided": (lambda s: np.exp(s - s.max()), "do not sum to 1"),
        "divided by the largest": (lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).max(), "do not sum to 1"),
        "clipped": (lambda s: share(np.exp(np.clip(s, -500, 500))), "clipping"),
        "no exp": (lambda s: s / np.sum(s), "without exp"),
        "sign": (lambda s: stable(-s), "the sign is wrong"),
        "base 2": (lambda s: share(np.exp2(s - s.max())), "the base is 2"),
        "largest only": (lambda s: np.eye(len(s))[np.argmax(s)], "temperature 0"),
    },
    "attend": {
        "weights": (lambda q, X, T: softmax_by_loop(X @ q / T), "these are the weights"),
        "scores": (lambda q, X, T: np.inner(X, q), "these are the scores"),
        "divided scores": (lambda q, X, T: np.inner(X, q) / T, "these are the scores"),
        "not summed": (lambda q, X, T: X * stable(X @ q / T).reshape(-1, 1), "not summed"),
        "wrong sum": (lambda q, X, T: [sum(w * x) for w, x in zip(stable(X @ q / T), X)], "over the features (axis 1)"),
        "no temperature": (lambda q, X, T: stable(X @ q) @ X, "temperature plays no part"),
        "times temperature": (lambda q, X, T: stable(T * (X @ q)) @ X, "multiplied by the temperature"),
        "temperature after softmax": (lambda q, X, T: stable(X @ q) @ X / T, "weights are divided by the temperature"),
        "scores as weights": (lambda q, X, T: X.T @ (X @ q / T), "the scores are used as weights"),
        "plain mean": (lambda q, X, T: sum(X) / len(X), "mean of the rows"),
        "best row": (lambda q, X, T: max(X, key=lambda x: x @ q), "largest score"),
        "exp overflows": (lambda q, X, T: np.average(X, axis=0, weights=np.exp(X @ q / T)), "exp overflows"),
        "scaled": (lambda q, X, T: stable(X @ q / X.shape[1] ** 0.5 / T) @ X, "divided by sqrt(d)"),
        "cosine": (lambda q, X, T: stable(X @ q / np.sqrt((X * X).sum(1) * (q @ q)) / T) @ X, "cosines"),
        "softmax over features": (
            lambda q, X, T: np.sum([stable(x * q / T) * x for x in X], axis=0),
            "over the features of each row",
        ),
    },
    "effective_positions": {
        "0 log 0": (lambda w: 2 ** -np.sum(w * np.log2(w)), "0 * log2(0)"),
        "0 log 0 in nats": (lambda w: np.exp(-np.sum(w * np.log(w))), "0 * log2(0)"),
        "entropy": (bits, "this is the entropy"),
        "nats with base 2": (lambda w: 2 ** scipy.stats.entropy(w), "in nats"),
        "bits with base e": (lambda w: math.exp(bits(w)), "in bits"),
        "sign": (lambda w: 2 ** -bits(w), "minus sign"),
        "count": (lambda w: sum(x > 0 for x in w), "counts the positions"),
        "inverse Simpson": (lambda w: 1 / (w @ w), "1 / sum(w^2)"),
        "inverse maximum": (lambda w: max(w) ** -1, "1 / the largest weight"),
    },
    "kernel_regression": {
        "bandwidth not squared": (lambda q, x, y, b: mean_by(gauss(q, x, b**0.5), y), "bandwidth is not squared"),
        "no half": (lambda q, x, y, b: mean_by(gauss(q, x, b / 2**0.5), y), "factor 1/2"),
        "distance not squared": (
            lambda q, x, y, b: mean_by(np.exp(-abs(q[:, None] - x) / 2 / b**2), y),
            "distance is not squared",
        ),
        "sign": (lambda q, x, y, b: mean_by(1 / gauss(q, x, b), y), "minus sign"),
        "softmax over queries": (lambda q, x, y, b: share(gauss(q, x, b), axis=0) @ y, "ran over the queries"),
        "not divided": (lambda q, x, y, b: gauss(q, x, b) @ y, "not divided by its sum"),
        "nearest": (lambda q, x, y, b: y[np.argmax(gauss(q, x, b), axis=1)], "nearest u"),
    },
}

ALSO_WRONG = {
    "softmax": [
        lambda s: np.full(len(s), 1 / len(s)),
        lambda s: s**2 / np.sum(s**2),
        lambda s: stable(s) + 1e-4,
        lambda s: np.sort(stable(s)),
        lambda s: np.round(stable(s), 3),
        lambda s: np.log(stable(s)),
        lambda s: stable(s / 2),
        lambda s: scipy.special.expit(s),
        lambda s: stable(s)[:, None],
        lambda s: [0.24472847, 0.09003057, 0.66524096],
        np.exp,
        sum,
    ],
    "attend": [
        lambda q, X, T: q,
        lambda q, X, T: X.sum(axis=0),
        lambda q, X, T: stable(-X @ q / T) @ X,
        lambda q, X, T: stable(X @ q / len(X) / T) @ X,
        lambda q, X, T: (stable(X @ q / T) @ X)[None],
        lambda q, X, T: np.outer(stable(X @ q / T), q),
        lambda q, X, T: stable(-((X - q) ** 2).sum(axis=1) / T) @ X,
        lambda q, X, T: (stable(X @ q / T) @ X, stable(X @ q / T)),
        lambda q, X, T: np.dot(X, q)[:3],
    ],
    "effective_positions": [
        len,
        sum,
        lambda w: 2 * bits(w),
        lambda w: bits(w) ** 2,
        lambda w: 10 ** bits(w),
        lambda w: round(2 ** bits(w)),
        lambda w: [2 ** bits(w)],
        lambda w: 2 ** bits(w) + 1e-3,
        lambda w: bits(w) / math.log2(len(w)),
    ],
    "kernel_regression": [
        lambda q, x, y, b: np.interp(q, x, y),
        lambda q, x, y, b: np.full(len(q), np.mean(y)),
        lambda q, x, y, b: share(gauss(q, x, b), axis=1),
        lambda q, x, y, b: mean_by(gauss(q, x, 1), y),
        lambda q, x, y, b: mean_by(gauss(q, x, 1 / b), y),
        lambda q, x, y, b: mean_by(gauss(q, x, b), x),
        lambda q, x, y, b: mean_by(gauss(q, x, b), y)[:, None],
    ],
}


def cases(table):
    """(exercise, name) for each answer of a table."""
    return [(exercise, name) for exercise in EXERCISES for name in table[exercise]]


@pytest.mark.parametrize(("exercise", "name"), cases(RIGHT))
def test_a_right_answer_is_accepted(exercise, name):
    feedback = judge(exercise, RIGHT[exercise][name])
    assert feedback.correct is True, feedback
    assert repr(feedback) == "Correct: " + feedback.message


@pytest.mark.parametrize(("exercise", "name"), cases(WRONG))
def test_a_usual_mistake_is_refused_and_named(exercise, name):
    answer, phrase = WRONG[exercise][name]
    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert phrase in feedback.message
    assert not GENERIC.match(feedback.message)
    assert repr(feedback) == "Not yet: " + feedback.message


@pytest.mark.parametrize("exercise", EXERCISES)
def test_different_mistakes_are_told_apart(exercise):
    phrases = {phrase for _, phrase in WRONG[exercise].values()}
    assert len({judge(exercise, answer).message for answer, _ in WRONG[exercise].values()}) == len(phrases)


@pytest.mark.parametrize(
    ("exercise", "i"), [(exercise, i) for exercise in EXERCISES for i in range(len(ALSO_WRONG[exercise]))]
)
def test_any_other_wrong_answer_is_refused_with_a_reason(exercise, i):
    feedback = judge(exercise, ALSO_WRONG[exercise][i])
    assert feedback.correct is False
    assert len(feedback.message) > 20


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda s: stable(s)[:, None], "shape (3, 1), but should have (3,)"),
        (lambda s: stable(s)[:-1], "shape (2,), but should have (3,)"),
        (lambda s: 0.5, "shape (), but should have (3,)"),
        (lambda s: s * np.nan, "holds NaN (for [1., 0., 2.])"),
        (lambda s: stable(s) / 2, "at 2 is 0.3326, but should be 0.6652 (for [1., 0., 2.])"),
        (lambda s: stable(s) * np.inf, "is inf, but should be"),
    ],
)
def test_the_difference_is_told_by_shape_or_by_value_and_place(answer, reason):
    assert reason in judge("softmax", answer).message


# what is no answer


def plain_stub(*args): ...


def stub_with_docstring(*args):
    """Return the answer."""
    ...


def stub_of_docstring(*args):
    """Return the answer."""


def stub_of_pass(*args):
    pass


def stub_with_hints(x: np.ndarray, *args, axis: int = -1) -> np.ndarray: ...


STUBS = [plain_stub, stub_with_docstring, stub_of_docstring, stub_of_pass, stub_with_hints, None, ...]


@pytest.mark.parametrize("exercise", EXERCISES)
@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: getattr(stub, "__name__", repr(stub)))
def test_the_untouched_stub_is_not_attempted(exercise, stub):
    feedback = judge(exercise, stub)
    assert feedback.correct is None
    assert repr(feedback).startswith("Not attempted yet: ")


def constant(x):
    return 1.5


def constant_with_docstring(x):
    """Return the answer."""
    return 1.5


def only_a_local(x):
    y = 2  # noqa: F841


@pytest.mark.parametrize(
    "answer", [constant, constant_with_docstring, only_a_local, lambda x: x, lambda x: 1.5, lambda x: ..., print]
)
def test_a_short_answer_is_not_taken_for_the_stub(answer):
    assert judge("softmax", answer).correct is False


@pytest.mark.parametrize("thing", [5, 0.0, "softmax", [1.0], stable(np.ones(2)), {}, (softmax,)], ids=repr)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_what_is_not_a_function_is_refused_with_the_cure(exercise, thing):
    feedback = judge(exercise, thing)
    assert feedback.correct is False
    assert f"this is {type(thing).__name__}, not a function" in feedback.message


@pytest.mark.parametrize("thing", [int, list, np.ndarray, dict, object, Exception, np.add, max, len, np.array, np.max])
@pytest.mark.parametrize("exercise", EXERCISES)
def test_classes_builtins_and_ufuncs_that_are_not_the_answer_are_refused(exercise, thing):
    assert judge(exercise, thing).correct is False


class Softmax:
    """An answer that is an object with a call, and its bound method."""

    def __call__(self, s):
        return stable(s)

    def method(self, s):
        return stable(s)


@pytest.mark.parametrize("answer", [Softmax(), Softmax().method], ids=["object", "bound method"])
def test_objects_and_methods_are_called_like_functions(answer):
    assert judge("softmax", answer).correct is True


def fail(*args):
    raise ZeroDivisionError("by zero")


def recurse(*args):
    return recurse(*args)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fail, "raised ZeroDivisionError: by zero"),
        (recurse, "raised RecursionError"),
        (lambda *args: missing, "raised NameError"),  # noqa: F821
        (lambda: 1, "raised TypeError"),
        (lambda a, b, c, d, e: 1, "raised TypeError"),
        (lambda *args: "abc", "returns str"),
        (lambda *args: {}, "returns dict"),
        (lambda *args: ..., "returns ellipsis"),
        (lambda *args: (x for x in args), "returns generator"),
        (lambda *args: [[1], [1, 2]], "returns list"),
        (lambda *args: np.ones(3) * 1j, "returns ndarray"),
        (lambda *args: [10**400], "returns list"),
    ],
)
@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_that_fails_or_returns_no_numbers_is_told_so(exercise, answer, reason):
    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert reason in feedback.message


def test_a_forgotten_return_is_told():
    def answer(s):
        stable(s)

    feedback = judge("softmax", answer)
    assert feedback.correct is False
    assert "is a return missing" in feedback.message


def test_an_interruption_by_the_reader_is_let_through():
    def answer(s):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge("softmax", answer)


def test_complex_numbers_are_not_right_because_their_real_part_is():
    assert judge("softmax", lambda s: stable(s) + 1j).correct is False


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_that_changes_its_input_is_told_so(exercise):
    def answer(*args):
        result = RIGHT[exercise]["reference"](*args)
        args[0][0] += 1
        return result

    feedback = judge(exercise, answer)
    assert feedback.correct is False
    assert "changed its input" in feedback.message


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_cannot_spoil_the_next_check(exercise):
    def spoil(*args):
        for array in args:
            if isinstance(array, np.ndarray):
                array[...] = 0
        return 1

    judge(exercise, spoil)
    assert judge(exercise, RIGHT[exercise]["reference"]).correct is True


def test_an_answer_may_print(capsys):
    assert judge("softmax", lambda s: print("here") or stable(s)).correct is True
    assert "here" in capsys.readouterr().out


@pytest.mark.parametrize("exercise", EXERCISES)
def test_an_answer_is_called_with_the_arguments_of_its_formula_by_position(exercise):
    seen = []
    judge(exercise, lambda *args, **kwargs: seen.append((args, kwargs)))
    assert [(len(args), kwargs) for args, kwargs in seen[:1]] == [(ARITY[exercise], {})]


# predict


def asked(answer=lambda: "two", options=("one", "two", "three")):
    return predict("How many?", options, answer)


def radio(prediction):
    return next(child for child in prediction.children if isinstance(child, widgets.RadioButtons))


def guess(prediction, option):
    """Choose an option and press the button."""
    radio(prediction).value = option
    button(prediction).click()


def button(prediction):
    return next(child for child in prediction.children if isinstance(child, widgets.Button))


def reply(prediction):
    """The text under the options, without its tags."""
    return html.unescape(re.sub("<[^>]*>", "", prediction.children[-1].value))


def test_nothing_is_chosen_computed_or_told_before_the_guess():
    calls = []
    prediction = asked(lambda: calls.append(1) or "two")
    repr(prediction), prediction._repr_mimebundle_()
    assert radio(prediction).value is None
    assert not radio(prediction).disabled
    assert prediction.guess is None
    assert reply(prediction) == ""
    assert calls == []
    radio(prediction).value = "one"
    radio(prediction).value = "three"  # as the arrow keys do on their way
    assert calls == []
    button(prediction).click()
    assert calls == [1]


def test_a_guess_without_a_choice_is_asked_for():
    prediction = asked()
    button(prediction).click()
    assert reply(prediction) == "Choose an option first."
    guess(prediction, "one")
    assert "Your guess: one" in reply(prediction)


@pytest.mark.parametrize("option", ["one", "two", "three"])
def test_a_guess_is_recorded_closes_the_question_and_is_answered(option):
    prediction = asked()
    guess(prediction, option)
    assert prediction.guess == option
    assert radio(prediction).disabled and button(prediction).disabled
    assert option in reply(prediction)
    assert "Computed: two" in reply(prediction)


def test_only_the_first_guess_counts():
    # two clicks may be on their way before the first closes the question
    prediction = asked()
    guess(prediction, "one")
    guess(prediction, "two")
    assert prediction.guess == "one"
    assert "Your guess: one" in reply(prediction)


@pytest.mark.parametrize("wrong", ["four", None, 2, np.array(["one", "two"])], ids=repr)
def test_a_computed_answer_that_is_not_an_option_is_shown_as_an_error(wrong):
    prediction = asked(lambda: wrong)
    guess(prediction, "one")
    assert "ValueError" in reply(prediction)
    assert "Computed" not in reply(prediction)


def test_an_answer_that_fails_is_shown_as_an_error():
    prediction = asked(lambda: 1 / 0)
    guess(prediction, "one")
    assert "ZeroDivisionError: division by zero" in reply(prediction)
    assert prediction.guess == "one"


@pytest.mark.parametrize("right", ["two", np.str_("two")], ids=repr)
def test_the_answer_may_be_a_numpy_string(right):
    prediction = asked(lambda: right)
    guess(prediction, "two")
    assert reply(prediction) == "Your guess: two. Computed: two."


def test_the_text_form_lists_the_question_and_the_options():
    prediction = asked(options=iter(["one", "two"]))
    assert repr(prediction) == "How many?\n( ) one\n( ) two"
    assert prediction._repr_mimebundle_()["text/plain"] == repr(prediction)


def test_the_question_and_the_reply_are_text_not_html():
    prediction = predict("Is a < b?", ["<b>yes</b>", "no"], lambda: "<b>yes</b>")
    assert "Is a &lt; b?" in prediction.children[0].value
    guess(prediction, "no")
    assert "<b>yes" not in prediction.children[-1].value
    assert "Computed: <b>yes</b>." in html.unescape(prediction.children[-1].value)
