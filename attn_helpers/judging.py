"""How an answer to an exercise is judged: compared with the right one and with known mistakes."""

import copy
import dis

import numpy as np

from attn_helpers.live import pre


class Feedback:
    """What a check says: correct is True, False, or None where nothing was attempted."""

    def __init__(self, correct, message):
        self.correct, self.message = correct, message

    def __repr__(self):
        return {True: "Correct: ", False: "Not yet: ", None: "Not attempted yet: "}[self.correct] + self.message

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), "text/html": pre(repr(self), "status", "inherit")}


@np.errstate(all="ignore")
def judge(answer, cases, right, mistakes, praise, hint="", explain=None, read=None):
    """Run the answer on every case; say what it got right or which known mistake it makes.

    cases     tuples of arguments; lists become arrays
    right     the function whose results the answer must reach
    mistakes  (function, message): an answer that gives a mistake's results, in all cases or at
              least in the first wrong one and where it is right, gets its message
    hint      what to add where the answer raises an exception
    explain   (case, result, right result) -> message, for wrong results that no mistake gives
    read      what the answer returns -> an array of floats; raises Refused for what is no answer
    """
    if (feedback := no_answer(answer)) is not None:
        return feedback
    cases = [tuple(np.array(a) if isinstance(a, list) else a for a in case) for case in cases]
    try:
        results, failure = _run_all(answer, cases, hint, read or numbers)
    except Refused as error:
        return Feedback(False, str(error))
    targets = [np.asarray(right(*case), dtype=float) for case in cases]
    wrong = [i for i, result in enumerate(results) if not _equal(result, targets[i])]
    if not wrong:
        return Feedback(True, praise)
    first = next((i for i in wrong if results[i] is not None), None)
    telling = [i for i in range(len(cases)) if i == first or i not in wrong]
    message = None if first is None else _named(mistakes, cases, results, first, telling)
    if message or failure:
        return Feedback(False, message or failure)
    return Feedback(False, (explain or difference)(cases[first], results[first], targets[first]))


class Refused(Exception):
    """An answer that cannot be compared; the text says why, for the reader."""


class _Failed(Refused):
    """An answer that raised an exception or returned nothing; it may still run on other cases."""


def no_answer(answer):
    """The feedback on what is not attempted or not a function, None for what can be called."""
    if _is_stub(answer):
        return Feedback(None, "replace the ... by your code and run the cell again.")
    if not callable(answer):
        return Feedback(False, f"this is {type(answer).__name__}, not a function: pass its name, without brackets.")
    return None


def _run_all(answer, cases, hint, read):
    """The result for each case, None where the answer failed, and the text of the first failure."""
    results, failures = [], []
    for case in cases:
        try:
            results.append(read(call(answer, case, hint)))
        except _Failed as error:
            results.append(None)
            failures.append(str(error))
    return results, next(iter(failures), None)


def call(answer, case, hint):
    """Call the answer on a copy of the case and return what it returns; Refused where it fails or changes its input."""
    given = copy.deepcopy(case)
    try:
        result = answer(*given)
    except Exception as error:
        reason = f"your function raised {type(error).__name__}: {error} (for {show(case)})."
        raise _Failed(f"{reason} Hint: {hint}." if hint else reason) from error
    if result is None:
        raise _Failed("your function returns None: is a return missing?")
    if not all(np.array_equal(a, b) for a, b in zip(given, case)):
        raise Refused("your function changed its input: work on a copy.")
    return result


def numbers(result):
    """A copy of the result as an array of floats; Refused where it is none."""
    if isinstance(result, np.ma.MaskedArray):
        raise Refused("your function returns a masked array, whose hidden numbers are still there: return a plain one.")
    try:
        if np.iscomplexobj(result):
            raise TypeError
        return np.array(result, dtype=float)  # a copy: the answer may fill one array again and again
    except (TypeError, ValueError, OverflowError):
        cure = ": return the output alone" if isinstance(result, tuple) else ""
        kind = type(result).__name__
        raise Refused(f"your function returns {kind}, but one array of numbers is expected{cure}.") from None


def yes_or_no(result):
    """True or False as a number; Refused where it is none."""
    try:
        value = numbers(result)
    except Refused:
        raise Refused(f"your function returns {type(result).__name__}, but True or False is expected.") from None
    if value.ndim:
        raise Refused(f"your test returns an array of shape {value.shape}: return one True or False, with np.any.")
    if value not in (0, 1):
        raise Refused(f"your test returns the number {value:.3g}: return True or False, such as difference > 1e-8.")
    return value


def _named(mistakes, cases, results, first, telling):
    """The message of the mistake with these results, in all cases or in the telling ones, None where there is none."""
    finite, lone = np.isfinite(results[first]).all(), np.array_equal(results[first], 1)
    vague = not finite or not results[first].any() or lone  # NaN, zeros and a lone 1 or True have many causes
    for these in (range(len(cases)),) if vague else (range(len(cases)), telling):
        for mistake, message in mistakes:
            if all(_equal(results[i], _outcome(mistake, cases[i])) for i in these):
                return message + "."
    return None


def _outcome(mistake, case):
    """What a mistake gives, None where its shapes do not fit."""
    try:
        return np.asarray(mistake(*case), dtype=float)
    except (ValueError, IndexError):
        return None


def _equal(a, b):
    """True for equal results, within what float32 can hold; None (no result) equals None."""
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)


def difference(case, result, target):
    """Where a result differs most from the right one, in words."""
    if result.shape != target.shape:
        return f"the result has shape {result.shape}, but should have {target.shape} (for {show(case)})."
    if np.isnan(result).any():
        return f"the result holds NaN (for {show(case)})."
    where = np.unravel_index(np.argmax(np.abs(result - target)), target.shape)
    place = f" at {', '.join(map(str, where))}" if where else ""
    got, wanted = apart(result[where], target[where])
    return f"the result{place} is {got}, but should be {wanted} (for {show(case)})."


def apart(a, b):
    """Two numbers as texts, with as many digits as it takes to tell them apart."""
    texts = ([f"{x:.{digits}g}" for x in (a, b)] for digits in range(4, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), [f"{a:.17g}", f"{b:.17g}"])


def show(case):
    """The arguments of a case: short ones by value, long ones by shape, functions as such."""
    return ", ".join("a function" if callable(a) else _shown(np.asarray(a)) for a in case)


def _shown(array):
    text = np.array2string(array, precision=3, separator=", ")
    return text if len(text) <= 40 else f"an array of shape {array.shape}"


def _is_stub(answer):
    """True for a function whose body is only `...` or a docstring or both, and for `...` or None themselves."""
    if answer is None or answer is ...:
        return True
    code = getattr(answer, "__code__", None)
    return code is not None and _steps(code) == _steps((lambda: None).__code__)


def _steps(code):
    return [(step.opname, step.argval) for step in dis.get_instructions(code) if step.opname != "NOP"]
