"""Real data to look at: word vectors that were trained on text. Loaded on first use, offline."""

import difflib
import functools
from importlib import resources

import numpy as np

SENTENCES = {
    "river": "they had a picnic on the grassy bank of the river",
    "money": "she deposited her salary at the bank before the weekend",
    "fruit": "the boy ate an apple and a banana after school",
    "animal": "a small dog chased the cat across the green garden",
    "doctor": "the nurse gave the patient some medicine at the hospital",
    "king": "the queen walked through the palace with her soldiers",
    "music": "he played the piano while she sang an old song",
}
"""Eight to eleven words each; the name of a sentence is a word to ask it about."""


def vocabulary():
    """List the words that have a vector, the most frequent first: a tuple of 2,029 strings."""
    return tuple(_glove()[0])


def word_vectors(words):
    """Look up GloVe vectors, one row for each word.

    words    a list of n lower-case words, for example "the old song".split()
    returns  (n, 50) float64, a new array

    Raises TypeError for a single string, ValueError for a word that has no vector.
    Source: Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation"
    (2014), the 50-dimensional vectors trained on 6 billion words.
    """
    if isinstance(words, (str, bytes)):
        raise TypeError(f"words is one string, {words!r}: write a list of words, such as {words!r}.split()")
    row, vectors = _glove()
    try:
        words = list(words)
    except TypeError:
        raise TypeError(f"words is {words!r}, but must be a list of words") from None
    for i, word in enumerate(words):
        if not isinstance(word, str) or word not in row:
            raise ValueError(f"words[{i}] is {word!r}, not one of the {len(row):,} words here; {_near(word, row)}")
    return vectors[[row[word] for word in words]].astype(np.float64)


def _near(word, known):
    near = difflib.get_close_matches(str(word).lower().strip(), known, n=3, cutoff=0.6)
    return "near ones: " + ", ".join(near) if near else "nothing near it is known"


@functools.cache
def _glove():
    """({word: row}, vectors (2029, 50) float16), read once."""
    with (resources.files(__package__) / "data" / "glove50.npz").open("rb") as file:
        stored = np.load(file, allow_pickle=False)
        return {word.decode("ascii"): i for i, word in enumerate(stored["words"])}, stored["vectors"]
