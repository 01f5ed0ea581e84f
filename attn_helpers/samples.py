"""Real data to look at: word vectors, and heads of two trained models. Loaded on first use, offline."""

import difflib
import functools
from importlib import resources
from typing import NamedTuple

import numpy as np

from attn_helpers.arguments import index_of

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

MINILM_CHANGED = {"suitcase": "suitcase small", "animal": "animal wide"}
"""Sentences with one word changed, so that "it" means another thing: "small" for "big", "wide" for "tired"."""

SMOLLM2_HEADS = ("1.2", "2.1", "8.0", "11.1", "14.3", "16.0", "17.3", "18.6", "18.8", "23.0")
"""Heads of SmolLM2, written layer.head, both counted from 0."""

SMOLLM2_TEXTS = ("gift", "keys", "names", "alice", "random")
"""Texts that SmolLM2 read; "random" is twelve random words, twice."""

MODELS = ("MiniLM", "SmolLM2")
"""Models whose heads are all surveyed: 6 layers of 12 heads, and 30 layers of 9."""

RELATIONS = ("object to verb", "preposition to object", "verb to far subject")
"""Pairs of words that a parser found in a book, with the head of MiniLM that best finds the second from the first."""


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


class Maps(NamedTuple):
    """All attention maps of a model on a text."""

    tokens: tuple  # n strings
    weights: np.ndarray  # (layers, heads, n, n)


class BertLayer(NamedTuple):
    """All heads of one layer of a trained BERT-like model with the sentence that entered it."""

    number: int  # of the layer, from 0
    heads: int
    tokens: tuple  # n strings
    X: np.ndarray  # (n, 384) the vectors that enter the layer
    W_Q: np.ndarray  # (384, 384) the heads side by side, 32 columns each
    b_Q: np.ndarray  # (384,)
    W_K: np.ndarray  # (384, 384)
    b_K: np.ndarray  # (384,)
    W_V: np.ndarray  # (384, 384)
    b_V: np.ndarray  # (384,)
    W_O: np.ndarray  # (384, 384) the heads below one another, 32 rows each
    b_O: np.ndarray  # (384,)
    reference: np.ndarray  # (n, 384) the attention output that the model's own framework computed


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


class Ablation(NamedTuple):
    """The loss of SmolLM2 with some of its heads switched off, in nats per token."""

    names: tuple  # m strings, what kind of heads
    heads: tuple  # m tuples of strings, layer.head
    repeated: np.ndarray  # (m,) on the second copy of random tokens
    text: np.ndarray  # (m,) on a book


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
    row = index_of("head", head, MINILM_HEADS)
    index_of("sentence", sentence, MINILM_SENTENCES)
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
    index_of("sentence", sentence, MINILM_SENTENCES)
    return _wide(_read("minilm_states")[f"{sentence}_X"])


def minilm_maps(sentence="money"):
    """Give the maps of all 72 heads of MiniLM on a sentence.

    sentence  one of MINILM_SENTENCES or of MINILM_CHANGED.values()
    returns   Maps; weights (6, 12, n, n) float64

    The weights are those of the model's own framework, stored in 8 bits as multiples of 1 / 255 that
    sum to 1 in each row: none is off by more than 0.004, most of those below 1 / 510 are 0.
    Raises ValueError for a sentence that is not there.
    Source: all-MiniLM-L6-v2 (see minilm_head).
    """
    changed = tuple(MINILM_CHANGED.values())
    index_of("sentence", sentence, MINILM_SENTENCES + changed)
    tokens = _tokens("minilm_maps" if sentence in changed else "minilm_states", sentence)
    return Maps(tokens, _read("minilm_maps")[f"{sentence}_maps"] / 255)


def minilm_layer(sentence="money"):
    """Give layer 2 of MiniLM, all twelve heads, and a sentence as it enters the layer.

    sentence  one of MINILM_SENTENCES
    returns   BertLayer; Q = X @ W_Q + b_Q, likewise K and V; head h has columns 32 h to 32 h + 31 of
              each, its scale is 1 / sqrt(32); W_O and b_O turn the heads' outputs, side by side, into
              reference, to which the layer then adds X

    The matrices are stored in 16 bits, so a layer computed from them is off by up to 0.001.
    Raises ValueError for a sentence that is not there.
    Source: all-MiniLM-L6-v2 (see minilm_head); Vaswani et al. (2017), section 3.2.2.
    """
    index_of("sentence", sentence, MINILM_SENTENCES)
    stored, number = _read("minilm_layer"), 2
    parts = [_wide(part) for pair in zip(stored["W"], stored["b"]) for part in pair]
    X, reference = minilm_states(sentence)[number], _wide(stored[f"{sentence}_reference"])
    return BertLayer(number, 12, _tokens("minilm_states", sentence), X, *parts, reference)


def smollm2_head(head="16.0", text="alice"):
    """Give one trained head of SmolLM2: queries and keys before RoPE, and values.

    head     one of SMOLLM2_HEADS
    text     one of SMOLLM2_TEXTS
    returns  GptHead; its weights are causal, with RoPE of base 100000 on Q and K, scale 1 / 8

    Raises ValueError for a head or a text that is not there.
    Source: Allal et al., "SmolLM2" (2025), https://arxiv.org/abs/2502.02737; 135 million
    parameters, stored with 4 bits each.
    """
    row = index_of("head", head, SMOLLM2_HEADS)
    index_of("text", text, SMOLLM2_TEXTS)
    stored = _read("smollm2_heads")
    query, key = _wide(stored[f"{text}_QK"][row])
    value, reference = (_wide(stored[f"{text}_{part}"][row]) for part in ("V", "maps"))
    return GptHead(head, _tokens("smollm2_heads", text), query, key, value, reference)


def smollm2_maps(text="random"):
    """Give the maps of all 270 heads of SmolLM2 on a text.

    text     one of SMOLLM2_TEXTS
    returns  Maps; weights (30, 9, n, n) float64, 0 above the diagonal

    Stored in 8 bits, as those of minilm_maps, with the same error.
    Raises ValueError for a text that is not there.
    Source: SmolLM2 (see smollm2_head).
    """
    index_of("text", text, SMOLLM2_TEXTS)
    tokens, packed = _tokens("smollm2_heads", text), _read("smollm2_maps")[f"{text}_maps"]
    weights = np.zeros((*packed.shape[:2], len(tokens), len(tokens)))
    weights[(..., *np.tril_indices(len(tokens)))] = packed / 255
    return Maps(tokens, weights)


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


def head_survey(model="MiniLM"):
    """Give the statistics of every head of a model, each a mean over many texts.

    model    one of MODELS
    returns  {name: (layers, heads) float64, to 3 decimals}: those of head_statistics, in its order

    previous to entropy come from a book: for MiniLM 300 sentences, with [SEP] and punctuation marks as
    delimiters; for SmolLM2 40 pieces of 64 tokens after its first token, with the marks alone. duplicate
    and induction come from 20 texts of random words (MiniLM, twelve) or tokens (SmolLM2, 40), all of
    them twice. Texts where a statistic is NaN do not count.
    Raises ValueError for a model that is not there.
    Source: the models of minilm_head and smollm2_head on "Alice's Adventures in Wonderland".
    """
    index_of("model", model, MODELS)
    stored = _read("survey")
    names = (name.decode("ascii") for name in stored["statistics"])
    return {name: np.round(_wide(values), 3) for name, values in zip(names, stored[model])}


def ablation():
    """Give what SmolLM2 loses when the outputs of some heads are set to 0 before its W_O.

    returns  Ablation; the first entry is the model as it is, the last six are ten heads each of layers 2
             to 29 drawn at random from those neither among the 20 best induction heads nor among the 20
             best previous-token heads

    repeated is measured on 8 rows of 40 random tokens twice, from the third token of the second copy
    on; text on 8 pieces of 96 tokens of "Alice's Adventures in Wonderland". The heads were picked on
    other random tokens, by the statistics of head_statistics. Losses are stored to 3 decimals.
    Source: SmolLM2 (see smollm2_head); the experiment is that of Olsson et al., "In-context Learning
    and Induction Heads" (2022), https://arxiv.org/abs/2209.11895, argument 3.
    """
    stored = _read("ablation")
    names, heads = ([text.decode("ascii") for text in stored[part]] for part in ("names", "heads"))
    losses = (np.round(_wide(stored[part]), 3) for part in ("repeated", "text"))
    return Ablation(tuple(names), tuple(tuple(several.split()) for several in heads), *losses)


def word_relation(name="object to verb"):
    """Give the pairs of words in one relation and where a head of MiniLM looks from the first.

    name     one of RELATIONS
    returns  Relation

    The relations come from a parser (spaCy), the sentences from "Alice's Adventures in
    Wonderland"; the head was chosen on one half of them, the pairs are those of the other.
    Raises ValueError for a relation that is not there.
    """
    row = index_of("name", name, RELATIONS)
    stored = _read("relations")
    return Relation(
        ("2.0", "2.8", "5.5")[row], *(stored[f"{name} {part}"].astype(int) for part in Relation._fields[1:])
    )


def _near(word, known):
    near = difflib.get_close_matches(str(word).lower().strip(), known, n=3, cutoff=0.6)
    return "near ones: " + ", ".join(near) if near else "nothing near it is known"


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
