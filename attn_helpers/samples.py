"""Real data to look at: word vectors, and heads of two trained models. Loaded on first use, offline."""

import difflib
import functools
from importlib import resources
from typing import NamedTuple

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

MINILM_HEADS = ("0.2", "0.8", "1.8", "2.0", "2.8", "3.1", "4.5")
"""Heads of MiniLM, written layer.head, both counted from 0."""

MINILM_SENTENCES = ("suitcase", "animal", "money", "river", "keys", "mary", "scientist", "attention")
"""Sentences that MiniLM read, by a word of theirs."""

SMOLLM2_HEADS = ("1.2", "2.1", "8.0", "11.1", "14.3", "16.0", "17.3", "18.6", "18.8", "23.0")
"""Heads of SmolLM2, written layer.head, both counted from 0."""

SMOLLM2_TEXTS = ("gift", "keys", "names", "alice", "random")
"""Texts that SmolLM2 read; "random" is twelve random words, twice."""

RELATIONS = ("object to verb", "preposition to object")
"""Pairs of words that a parser found in a book, with a head of MiniLM that looks from the first to the second."""


class BertHead(NamedTuple):
    """One head of a trained BERT-like model with the sentence that entered its layer."""

    name: str  # layer.head
    tokens: tuple  # n strings
    X: np.ndarray  # (n, 384) the vectors that enter the layer
    W_Q: np.ndarray  # (384, 32)
    b_Q: np.ndarray  # (32,)
    W_K: np.ndarray  # (384, 32)
    b_K: np.ndarray  # (32,)
    W_V: np.ndarray  # (384, 32)
    b_V: np.ndarray  # (32,)
    reference: np.ndarray  # (n, n) the weights that the model's own framework computed


class GptHead(NamedTuple):
    """One head of a trained GPT-like model on a text."""

    name: str  # layer.head
    tokens: tuple  # n strings
    Q: np.ndarray  # (n, 64) queries before RoPE
    K: np.ndarray  # (n, 64) keys before RoPE
    V: np.ndarray  # (n, 64)
    reference: np.ndarray  # (n, n) the weights that the model's own framework computed


class Senses(NamedTuple):
    """The vector of one word in sentences that use it in two senses."""

    sentences: tuple  # m strings
    senses: tuple  # m strings, the sense in each
    vectors: np.ndarray  # (m, 7, 384): entering layer 0, ..., entering layer 5, leaving layer 5


class PaddedBatch(NamedTuple):
    """A batch of two sentences for MiniLM, the first one filled up with [PAD]."""

    tokens: tuple  # 2 tuples of 16 strings
    lengths: tuple  # (8, 16) tokens without [PAD]
    X: np.ndarray  # (2, 16, 384) the vectors that enter layer 0
    unmasked: np.ndarray  # (6, 12, 16, 16) weights in the first sentence, by layer and head, without a mask
    alone: np.ndarray  # (384,) mean vector of the first sentence after the last layer, run on its own
    with_mask: np.ndarray  # (384,) the same in the batch, with the padding mask
    without_mask: np.ndarray  # (384,) the same in the batch, without a mask


class Relation(NamedTuple):
    """Pairs of words in a book: where the partner stands and where a head looks, in words from the first one."""

    head: str  # layer.head of MiniLM
    partner: np.ndarray  # (m,) whole numbers, negative to the left
    looks: np.ndarray  # (m,) offset of the word with the largest weight
    back: np.ndarray  # (m,) the same for the partner, in words from the partner


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


def minilm_head(head="2.0", sentence="money"):
    """Give one trained head of MiniLM and a sentence as it enters the head's layer.

    head      one of MINILM_HEADS
    sentence  one of MINILM_SENTENCES
    returns   BertHead; Q = X @ W_Q + b_Q, likewise K and V; the scale is 1 / sqrt(32)

    Raises ValueError for a head or a sentence that is not there.
    Source: all-MiniLM-L6-v2, a sentence encoder of 6 layers and 12 heads, d = 384; distilled
    as in Wang et al., "MiniLM" (2020), https://arxiv.org/abs/2002.10957.
    """
    row = _index("head", head, MINILM_HEADS)
    _index("sentence", sentence, MINILM_SENTENCES)
    stored, layer = _read("minilm_heads"), int(head.split(".")[0])
    weights, biases = _wide(stored["W"][row]), _wide(stored["b"][row])
    parts = [part for pair in zip(weights, biases) for part in pair]
    reference = _wide(stored[f"{sentence}_maps"][row])
    return BertHead(head, _tokens("minilm_states", sentence), minilm_states(sentence)[layer], *parts, reference)


def minilm_states(sentence="money"):
    """Give the vectors of a sentence on their way through MiniLM.

    sentence  one of MINILM_SENTENCES
    returns   (5, n, 384) float64: entering layer 0, 1, 2, 3 and 4

    Raises ValueError for a sentence that is not there.
    """
    _index("sentence", sentence, MINILM_SENTENCES)
    return _wide(_read("minilm_states")[f"{sentence}_X"])


def smollm2_head(head="16.0", text="alice"):
    """Give one trained head of SmolLM2: queries and keys before RoPE, and values.

    head     one of SMOLLM2_HEADS
    text     one of SMOLLM2_TEXTS
    returns  GptHead; its weights are causal, with RoPE of base 100000 on Q and K, scale 1 / 8

    Raises ValueError for a head or a text that is not there.
    Source: Allal et al., "SmolLM2" (2025), https://arxiv.org/abs/2502.02737; 135 million
    parameters, stored with 4 bits each.
    """
    row = _index("head", head, SMOLLM2_HEADS)
    _index("text", text, SMOLLM2_TEXTS)
    stored = _read("smollm2_heads")
    query, key = _wide(stored[f"{text}_QK"][row])
    value, reference = (_wide(stored[f"{text}_{part}"][row]) for part in ("V", "maps"))
    return GptHead(head, _tokens("smollm2_heads", text), query, key, value, reference)


def bank_senses():
    """Give the vector of the word `bank`, layer by layer, in four sentences on money and four on rivers.

    returns  Senses; `bank` is the seventh word of each, so its vector is the same in all
             before the first layer

    Source: the hidden states of all-MiniLM-L6-v2 (see minilm_head).
    """
    stored = _read("minilm_states")
    sentences = tuple(text.decode("ascii") for text in stored["bank_sentences"])
    return Senses(sentences, ("money",) * 4 + ("river",) * 4, _wide(stored["bank_vectors"]))


def padded_batch():
    """Give two sentences of different length as one batch, and what MiniLM makes of the shorter one.

    returns  PaddedBatch of the sentences "attention" and "suitcase"; the weights and the mean
             vectors are those of the model's own framework

    Source: all-MiniLM-L6-v2 (see minilm_head).
    """
    stored = _read("minilm_padding")
    short, long = (_tokens("minilm_states", name) for name in ("attention", "suitcase"))
    X = np.stack([np.vstack([minilm_states("attention")[0], _wide(stored["pads"])]), minilm_states("suitcase")[0]])
    lengths = len(short), len(long)
    tokens = (*short, *["[PAD]"] * len(stored["pads"])), long
    return PaddedBatch(tokens, lengths, X, _wide(stored["maps"]), *_wide(stored["vectors"]))


def word_relation(name="object to verb"):
    """Give the pairs of words in one relation and where a head of MiniLM looks from the first.

    name     one of RELATIONS
    returns  Relation

    The relations come from a parser (spaCy), the sentences from "Alice's Adventures in
    Wonderland"; the head was chosen on one half of them, the pairs are those of the other.
    Raises ValueError for a relation that is not there.
    """
    row = _index("name", name, RELATIONS)
    stored = _read("relations")
    return Relation(("2.0", "2.8")[row], *(stored[f"{name} {part}"].astype(int) for part in Relation._fields[1:]))


def _near(word, known):
    near = difflib.get_close_matches(str(word).lower().strip(), known, n=3, cutoff=0.6)
    return "near ones: " + ", ".join(near) if near else "nothing near it is known"


def _index(name, value, known):
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(repr, known))}")
    return known.index(value)


def _tokens(file, name):
    return tuple(token.decode("ascii") for token in _read(file)[f"{name}_tokens"])


def _wide(array):
    return array.astype(np.float64)


@functools.cache
def _glove():
    """({word: row}, vectors (2029, 50) float16), read once."""
    stored = _read("glove50")
    return {word.decode("ascii"): i for i, word in enumerate(stored["words"])}, stored["vectors"]


@functools.cache
def _read(name):
    """The arrays of a data file by name, read once."""
    with (resources.files(__package__) / "data" / f"{name}.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))
