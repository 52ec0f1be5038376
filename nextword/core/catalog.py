"""The catalog of named parts: slot -> name -> "module:attribute", imported on first use.

A new model, tokenizer or smoothing is one file plus one line here; another package registers its own with an
entry point in the group ``nextword.<slot>``. The lazy registry of strings follows lm-evaluation-harness.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType
from typing import Any

from nextword.core import own_parts
from nextword.core.errors import ConfigError, MissingPart
from nextword.core.suggestions import same_but_case, unknown

SLOTS: dict[str, dict[str, str]] = {
    # Tasks: an object with the protocol of `core.task`.
    "task": {
        "lm": "nextword.tasks.lm:TASK",
        "tag": "nextword.tasks.tag:TASK",
        "classify": "nextword.tasks.classify:TASK",
        "translate": "nextword.tasks.translate:TASK",
    },
    # Families: an object with the protocol of `core.family`.
    "model": {
        "ngram": "nextword.ngram.family:FAMILY",
        "unbounded": "nextword.ngram.unbounded:FAMILY",
        "mixture": "nextword.mixtures.family:FAMILY",
        "window": "nextword.models.window:WINDOW",
        "rnn": "nextword.models.recurrent:RNN",
        "lstm": "nextword.models.recurrent:LSTM",
        "gru": "nextword.models.recurrent:GRU",
        "gru-torch": "nextword.models.recurrent:GRU_TORCH",
        "mingru": "nextword.models.recurrent:MINGRU",
        "transformer": "nextword.models.transformer:TRANSFORMER",
    },
    # Families of taggers: `--task tag --model NAME`.
    "tagger": {
        "window": "nextword.models.tagger:WINDOW",
        "rnn": "nextword.models.tagger:RNN",
        "lstm": "nextword.models.tagger:LSTM",
        "gru": "nextword.models.tagger:GRU",
        "gru-torch": "nextword.models.tagger:GRU_TORCH",
        "mingru": "nextword.models.tagger:MINGRU",
        "transformer": "nextword.models.tagger:TRANSFORMER",
        "convolution": "nextword.models.tagger:CONVOLUTION",
    },
    # Families of classifiers: `--task classify --model NAME`.
    "classifier": {
        "window": "nextword.models.classifier:WINDOW",
        "rnn": "nextword.models.classifier:RNN",
        "lstm": "nextword.models.classifier:LSTM",
        "gru": "nextword.models.classifier:GRU",
        "gru-torch": "nextword.models.classifier:GRU_TORCH",
        "mingru": "nextword.models.classifier:MINGRU",
        "transformer": "nextword.models.classifier:TRANSFORMER",
        "convolution": "nextword.models.classifier:CONVOLUTION",
        "linear": "nextword.models.linear:FAMILY",
        "generative": "nextword.models.generative:FAMILY",
        "ensemble": "nextword.models.ensemble:FAMILY",
    },
    # Families of encoder-decoders: `--task translate --model NAME`.
    "translator": {
        "rnn": "nextword.models.seq2seq:RNN",
        "lstm": "nextword.models.seq2seq:LSTM",
        "gru": "nextword.models.seq2seq:GRU",
        "gru-torch": "nextword.models.seq2seq:GRU_TORCH",
        "mingru": "nextword.models.seq2seq:MINGRU",
        "transformer": "nextword.models.seq2seq:TRANSFORMER",
        "babble": "nextword.models.seq2seq:BABBLE",
    },
    # How a model made of models is trained, by task: `fit` and `part_settings`.
    "composition": {
        "lm": "nextword.training.mixtures.mixture:MixtureTraining",
        "classify": "nextword.training.mixtures.ensemble:EnsembleTraining",
    },
    # Classes with `fit` that make a `contracts.Tokenizer`.
    "tokenizer": {
        "words": "nextword.text.words:WordTokenizer",
        "characters": "nextword.text.characters:CharacterTokenizer",
        "bytes": "nextword.text.bytes:ByteTokenizer",
        "bpe": "nextword.text.subwords:SubwordTokenizer",
        "unigram": "nextword.text.subwords:SubwordTokenizer",
    },
    # Where an n-gram that was never seen gets its probability from.
    "smoothing": {
        "mle": "nextword.ngram.smoothing.mle:MaximumLikelihood",
        "add": "nextword.ngram.smoothing.add:Add",
        "laplace": "nextword.ngram.smoothing.add:Laplace",
        "backoff": "nextword.ngram.smoothing.mle:Backoff",
        "katz": "nextword.ngram.smoothing.katz:Katz",
        "stupid": "nextword.ngram.smoothing.mle:Stupid",
        "witten-bell": "nextword.ngram.smoothing.interpolated:WittenBell",
        "absolute": "nextword.ngram.smoothing.interpolated:Absolute",
        "kneser-ney": "nextword.ngram.smoothing.interpolated:KneserNey",
        "modified-kneser-ney": "nextword.ngram.smoothing.interpolated:ModifiedKneserNey",
    },
    # Ways to choose the next word: classes of the shape `decode.choose.Chooser`.
    "decode": {
        "greedy": "nextword.decode.choose:Greedy",
        "sample": "nextword.decode.choose:Sampling",
        "beam": "nextword.decode.beam:Beam",
        "mbr": "nextword.decode.mbr:MinimumRisk",
    },
    # The parts of a network: small classes in `blocks`; a variant is another class in its slot.
    # Recurrent layers: a `blocks.cells.Cell` of (inputs, hidden).
    "cell": {
        "rnn": "nextword.blocks.recurrent:RNN",
        "lstm": "nextword.blocks.recurrent:LSTM",
        "gru": "nextword.blocks.recurrent:GRU",
        "gru-torch": "nextword.blocks.recurrent:TorchGRU",
        "mingru": "nextword.blocks.recurrent:MinGRU",
    },
    # What the vanilla recurrent cell does to its sum: a `blocks.cells.Activation`.
    "cell_activation": {
        "tanh": "nextword.blocks.cells:TANH",
        "relu": "nextword.blocks.cells:RELU",
        "sigmoid": "nextword.blocks.cells:SIGMOID",
        "identity": "nextword.blocks.cells:IDENTITY",
    },
    # The state of a recurrent layer before the first token: classes of (hidden, parts).
    "initial": {
        "zero": "nextword.blocks.states:ZeroStart",
        "learned": "nextword.blocks.states:LearnedStart",
    },
    # Dropout between recurrent layers: classes of (share).
    "dropout": {
        "locked": "nextword.blocks.dropout:LockedDropout",
        "plain": "nextword.blocks.dropout:Dropout",
    },
    # Between stacked recurrent layers: a `blocks.joins.Join` of (inputs, outputs).
    "connection": {
        "plain": "nextword.blocks.joins:Plain",
        "residual": "nextword.blocks.joins:Residual",
        "dense": "nextword.blocks.joins:Dense",
        "highway": "nextword.blocks.joins:NarrowHighway",
    },
    "activation": {
        "relu": "nextword.blocks.activations:relu",
        "relu2": "nextword.blocks.activations:relu2",
        "gelu": "nextword.blocks.activations:gelu",
        "gelu-tanh": "nextword.blocks.activations:gelu_tanh",
        "swish": "nextword.blocks.activations:swish",
        "elu": "nextword.blocks.activations:elu",
        "selu": "nextword.blocks.activations:selu",
        "sigmoid": "nextword.blocks.activations:sigmoid",
        "softplus": "nextword.blocks.activations:softplus",
        "tanh": "nextword.blocks.activations:tanh",
        "identity": "nextword.blocks.activations:identity",
    },
    # Tokens as vectors: classes of (vocab_size, width, extra); `tie` makes a head that shares them.
    "embedding": {
        "table": "nextword.blocks.embeddings:Embedding",
        "scaled": "nextword.blocks.embeddings:ScaledEmbedding",
        "factorized": "nextword.blocks.embeddings:Factorized",
        "adaptive": "nextword.blocks.clusters:ClusterEmbedding",
        "sphere": "nextword.blocks.sphere:SphereEmbedding",
    },
    # Memories beside a model: objects with the protocol of `mixtures.memory.Kind`.
    "memory": {
        "cache": "nextword.mixtures.cache:CACHE",
        "recent": "nextword.mixtures.recent:RECENT",
        "neighbours": "nextword.mixtures.neighbours:NEIGHBOURS",
    },
    # What makes features of a sentence's words: a `models.encoders.encoder.Encoder` of (settings, inputs).
    "encoder": {
        "window": "nextword.models.encoders.window:WindowEncoder",
        "rnn": "nextword.models.encoders.recurrent:RNNEncoder",
        "lstm": "nextword.models.encoders.recurrent:LSTMEncoder",
        "gru": "nextword.models.encoders.recurrent:GRUEncoder",
        "gru-torch": "nextword.models.encoders.recurrent:TorchGRUEncoder",
        "mingru": "nextword.models.encoders.recurrent:MinGRUEncoder",
        "transformer": "nextword.models.encoders.transformer:TransformerEncoder",
        "convolution": "nextword.models.encoders.convolution:ConvolutionEncoder",
    },
    # How a recurrent decoder attends: a `blocks.source_attention.DotAttention` of (query, source).
    "attention": {
        "dot": "nextword.blocks.source_attention:DotAttention",
        "bilinear": "nextword.blocks.source_attention:BilinearAttention",
        "mlp": "nextword.blocks.source_attention:MLPAttention",
        "multihead": "nextword.blocks.source_attention:MultiHeadAttention",
    },
    # A word's vector from its letters: classes of (alphabet, width, buckets).
    "spelling": {
        "none": "nextword.blocks.spelling:NoSpelling",
        "affixes": "nextword.blocks.spelling:Affixes",
        "cnn": "nextword.blocks.spelling:CharacterCNN",
        "lstm": "nextword.blocks.spelling:CharacterLSTM",
        "affixes+cnn": "nextword.blocks.spelling:AffixesAndCNN",
        "affixes+lstm": "nextword.blocks.spelling:AffixesAndLSTM",
    },
    # One vector for a text: a `blocks.pooling.Pooling` of the size of a feature.
    "pooling": {
        "last": "nextword.blocks.pooling:Last",
        "max": "nextword.blocks.pooling:Max",
        "mean": "nextword.blocks.pooling:Mean",
        "attention": "nextword.blocks.pooling:Attention",
    },
    # Tags from features: a `blocks.tag_heads.TagHead` of (width, legal transitions).
    "tag_head": {
        "softmax": "nextword.blocks.tag_heads:SoftmaxTags",
        "crf": "nextword.blocks.tag_heads:CRFTags",
        "autoregressive": "nextword.blocks.own_tags:AutoregressiveTags",
    },
    # Output layers: classes (width, vocab_size, forbidden, embedding_VE), see `models.network.Head`.
    "head": {
        "softmax": "nextword.blocks.heads:SoftmaxHead",
        "adaptive": "nextword.blocks.adaptive:AdaptiveHead",
        "softmaxes": "nextword.blocks.softmaxes:Softmaxes",
        "sphere": "nextword.blocks.sphere:SphereHead",
    },
    # Parts of a Transformer, made from a `blocks.shape.Shape`; see `models.build`.
    "position": {
        "none": "nextword.blocks.positions:NoPosition",
        "sinusoidal": "nextword.blocks.positions:Sinusoidal",
        "learned": "nextword.blocks.positions:Learned",
        "rope": "nextword.blocks.positions:Rotary",
        "alibi": "nextword.blocks.positions:ALiBi",
        "t5": "nextword.blocks.relative:Buckets",
        "t5-layers": "nextword.blocks.relative:LayerBuckets",
        "t5-content": "nextword.blocks.relative:ContentBuckets",
        "shaw": "nextword.blocks.relative:Shaw",
    },
    "norm": {
        "layernorm": "nextword.blocks.norms:LayerNorm",
        "rmsnorm": "nextword.blocks.norms:RMSNorm",
        "partial-rmsnorm": "nextword.blocks.norms:PartialRMSNorm",
        "scalenorm": "nextword.blocks.norms:ScaleNorm",
        "dyt": "nextword.blocks.norms:DynamicTanh",
        "shift": "nextword.blocks.norms:Shift",
        "shift-scale": "nextword.blocks.norms:ShiftScale",
        "none": "nextword.blocks.norms:NoNorm",
    },
    "norm_place": {
        "pre": "nextword.blocks.block:PreNorm",
        "post": "nextword.blocks.block:PostNorm",
        "sandwich": "nextword.blocks.places:Sandwich",
        "peri": "nextword.blocks.places:Peri",
        "output": "nextword.blocks.places:OutputNorm",
        "deepnorm": "nextword.blocks.places:DeepNorm",
    },
    "qk_norm": {
        "none": "nextword.blocks.qk_norm:NoQKNorm",
        "rms": "nextword.blocks.qk_norm:QKNorm",
        "sphere": "nextword.blocks.sphere:SphereQKNorm",
    },
    "ffn": {
        "relu": "nextword.blocks.feedforward:ReLU",
        "relu2": "nextword.blocks.feedforward:ReLU2",
        "gelu": "nextword.blocks.feedforward:GELU",
        "gelu-tanh": "nextword.blocks.feedforward:GELUTanh",
        "swish": "nextword.blocks.feedforward:Swish",
        "elu": "nextword.blocks.feedforward:ELU",
        "selu": "nextword.blocks.feedforward:SELU",
        "sigmoid": "nextword.blocks.feedforward:Sigmoid",
        "softplus": "nextword.blocks.feedforward:Softplus",
        "glu": "nextword.blocks.feedforward:GLU",
        "reglu": "nextword.blocks.feedforward:ReGLU",
        "geglu": "nextword.blocks.feedforward:GeGLU",
        "geglu-tanh": "nextword.blocks.feedforward:GeGLUTanh",
        "swiglu": "nextword.blocks.feedforward:SwiGLU",
        "liglu": "nextword.blocks.feedforward:LiGLU",
        "fixup": "nextword.blocks.feedforward:Fixup",
        "sphere": "nextword.blocks.sphere:SphereSwiGLU",
        "experts": "nextword.blocks.experts:Experts",
        "switch": "nextword.blocks.experts:Switch",
        "memory": "nextword.blocks.memory:ProductKeyMemory",
    },
    # From the scores of attention to weights: a `blocks.weighing.Softmax` of the shape.
    "weighing": {
        "softmax": "nextword.blocks.weighing:Fused",
        "softcap": "nextword.blocks.weighing:SoftCap",
        "sink": "nextword.blocks.weighing:Sink",
        "off-by-one": "nextword.blocks.weighing:OffByOne",
        "talking-heads": "nextword.blocks.weighing:TalkingHeads",
        "sigmoid": "nextword.blocks.weighing:Sigmoid",
    },
    # What the scores of attention are multiplied by: functions of the size of a head.
    "scale": {
        "sqrt": "nextword.blocks.attention:sqrt",
        "linear": "nextword.blocks.attention:linear_scale",
        "none": "nextword.blocks.attention:no_scale",
        "grow": "nextword.blocks.sphere:grow",
    },
    "mixer": {
        "attention": "nextword.blocks.attention:Attention",
        "lightconv": "nextword.blocks.convolution:LightConvolution",
        "dynamicconv": "nextword.blocks.convolution:DynamicConvolution",
        "window": "nextword.blocks.window:WindowAttention",
        "differential": "nextword.blocks.attentions:Differential",
        "latent": "nextword.blocks.attentions:Latent",
        "value-residual": "nextword.blocks.attentions:ValueResidual",
        "linear": "nextword.blocks.linear_mixers:LinearAttention",
        "retnet": "nextword.blocks.linear_mixers:RetNet",
        "gla": "nextword.blocks.gated_linear:GatedLinearAttention",
        "mamba2": "nextword.blocks.state_space:Mamba2",
        "delta": "nextword.blocks.state_space:GatedDelta",
        "rwkv7": "nextword.blocks.rwkv:RWKV7",
        "lstm": "nextword.blocks.recurrent_mixers:LSTMMixer",
        "gru": "nextword.blocks.recurrent_mixers:GRUMixer",
        "mingru": "nextword.blocks.recurrent_mixers:MinGRUMixer",
        "minlstm": "nextword.blocks.recurrent_mixers:MinLSTM",
        "sru": "nextword.blocks.recurrent_mixers:SRU",
        "qrnn": "nextword.blocks.recurrent_mixers:QRNN",
        "mlstm": "nextword.blocks.xlstm:MLSTM",
        "slstm": "nextword.blocks.xlstm:SLSTM",
        "synthesizer-dense": "nextword.blocks.synthesizer:Dense",
        "synthesizer-dense-plus": "nextword.blocks.synthesizer:DensePlus",
        "synthesizer-dense-plus-alpha": "nextword.blocks.synthesizer:DensePlusAlpha",
        "synthesizer-factorized": "nextword.blocks.synthesizer:Factorized",
        "synthesizer-random": "nextword.blocks.synthesizer:Random",
        "synthesizer-random-plus": "nextword.blocks.synthesizer:RandomPlus",
        "synthesizer-random-plus-alpha": "nextword.blocks.synthesizer:RandomPlusAlpha",
    },
    # What a decoder looks at its source by.
    "cross": {
        "attention": "nextword.blocks.cross:CrossAttention",
    },
    # How a part joins the stream: a `blocks.joins.Join` of (width, width).
    "join": {
        "residual": "nextword.blocks.joins:Residual",
        "plain": "nextword.blocks.joins:Plain",
        "rezero": "nextword.blocks.joins:ReZero",
        "highway": "nextword.blocks.joins:Highway",
        "fixup": "nextword.blocks.joins:Fixup",
        "layerscale": "nextword.blocks.joins:LayerScale",
        "gru": "nextword.blocks.joins:GRUGate",
        "universal": "nextword.blocks.joins:UniversalGate",
        "sphere": "nextword.blocks.sphere:SphereJoin",
        "hyper": "nextword.blocks.hyper:HyperConnections",
        "hyper-dynamic": "nextword.blocks.hyper:DynamicHyperConnections",
    },
    "block": {
        "serial": "nextword.blocks.block:Block",
        "parallel": "nextword.blocks.places:Parallel",
        "weighted": "nextword.blocks.weighted:Weighted",
        "evolved": "nextword.blocks.evolved:Evolved",
    },
    # Which layers there are and how often each is applied: a `blocks.stack.Stack`.
    "stack": {
        "plain": "nextword.blocks.stack:Stack",
        "shared": "nextword.blocks.stack:SharedStack",
        "universal": "nextword.blocks.universal:Universal",
        "funnel": "nextword.blocks.funnel:Funnel",
        "hourglass": "nextword.blocks.hourglass:Hourglass",
        "transparent": "nextword.blocks.transparent:TransparentStack",
        "sphere": "nextword.blocks.sphere:SphereStack",
    },
    # What a decoder sees of an encoder: a `blocks.link.Last` of (layers, layers of the decoder, dropout).
    "link": {
        "last": "nextword.blocks.link:Last",
        "transparent": "nextword.blocks.link:Transparent",
    },
    # What a Transformer learns from text: networks with `made` and batches of their own.
    "objective": {
        "causal": "nextword.models.transformer:TransformerNetwork",
        "masked": "nextword.models.masked:MaskedNetwork",
        "span": "nextword.models.spans:SpanNetwork",
        "prefix": "nextword.models.prefix:PrefixNetwork",
    },
    "init": {
        "zero": "nextword.blocks.weights:zero",
        "gpt2": "nextword.blocks.weights:gpt2",
        "xavier": "nextword.blocks.weights:xavier",
        "t5": "nextword.blocks.weights:t5",
        "fixup": "nextword.blocks.weights:fixup",
        "deepnorm": "nextword.blocks.weights:deepnorm",
        "mup": "nextword.blocks.weights:mup",
        "sphere": "nextword.blocks.sphere:sphere",
    },
    # Rules for an update: functions (network, settings) -> a list of `training.optimizers.Rule`.
    "optimizer": {
        "sgd": "nextword.training.optimizers:sgd",
        "adamw": "nextword.training.optimizers:adamw",
        "muon": "nextword.training.optimizers:muon",
    },
    # How the learning rate falls: functions of the share of the decay that is over, from 1 at 0.
    "schedule": {
        "cosine": "nextword.training.optimizers:cosine",
        "linear": "nextword.training.optimizers:linear",
        "sqrt": "nextword.training.optimizers:sqrt",
        "constant": "nextword.training.optimizers:constant",
        "plateau": "nextword.training.optimizers:constant",  # it falls by what is measured
    },
    # What training reads at a time: a `Batches` of (ids, documents, carry, batch, length, seed).
    "batches": {
        "columns": "nextword.data.batches.batch:Columns",
        "windows": "nextword.data.batches.windows:Windows",
        "sentences": "nextword.data.batches.sentences:Sentences",
    },
    # Types of products: those of `torch.autocast`.
    "precision": {
        "fp32": "torch:float32",
        "bf16": "torch:bfloat16",
    },
    # How files of other shapes become pairs (`nextword data pairs`): a function (file, lines) -> pairs.
    "recipe": {
        "stories": "nextword.data.recipes.stories:stories",
        "trees": "nextword.data.recipes.trees:trees",
        "numbered-trees": "nextword.data.recipes.trees:numbered_trees",
        "letters": "nextword.data.recipes.letters:letters",
        "turns": "nextword.data.recipes.turns:turns",
    },
    # What a text-to-text job is judged by: a `Measure` of `evaluation.pairs.measure`.
    "measure": {
        "translation": "nextword.evaluation.pairs.bleu:TRANSLATION",
        "summary": "nextword.evaluation.pairs.rouge:SUMMARY",
        "answers": "nextword.evaluation.pairs.errors:ANSWERS",
        "phones": "nextword.evaluation.pairs.errors:PHONES",
        "parse": "nextword.evaluation.pairs.brackets:PARSE",
        "dialogue": "nextword.evaluation.pairs.distinct:DIALOGUE",
    },
    # Ways to look inside a model: classes of the shape `probe.selection.Probe`.
    "probe": {
        "gradients": "nextword.probe.gradients:Gradients",
        "depth": "nextword.probe.depth:Depth",
        "gates": "nextword.probe.gates:OfGates",
        "eigenvalues": "nextword.probe.eigenvalues:Eigenvalues",
        "attention": "nextword.probe.attention:OfAttention",
        "embeddings": "nextword.probe.embeddings:Embeddings",
        "units": "nextword.probe.units:Units",
        "linear": "nextword.probe.linear:Linear",
        "surprise": "nextword.probe.surprise:Surprise",
        "evidence": "nextword.probe.evidence:OfEvidence",
        "memory": "nextword.probe.memory:OfMemory",
        "beam": "nextword.probe.beam:OfBeam",
        "alignment": "nextword.probe.alignment:Alignment",
        "importance": "nextword.probe.importance:Importance",
    },
    # Experiments of the lectures, in their order: a function (out, run, quick) -> events.
    "lab": {
        "sums-to-one": "nextword.experiments.sums_to_one:run",
        "counts": "nextword.experiments.counts:run",
        "smoothing": "nextword.experiments.smoothing:run",
        "sparsity": "nextword.experiments.sparsity:run",
        "window": "nextword.experiments.window:run",
        "parallel": "nextword.experiments.parallel:run",
        "chain-rule": "nextword.experiments.chain_rule:run",
        "random-truncation": "nextword.experiments.random_truncation:run",
        "vanishing": "nextword.experiments.vanishing:run",
        "clipping": "nextword.experiments.clipping:run",
        "initial-state": "nextword.experiments.initial_state:run",
        "reach": "nextword.experiments.reach:run",
        "lstm-or-gru": "nextword.experiments.lstm_or_gru:run",
        "bidirectional": "nextword.experiments.bidirectional:run",
        "layers": "nextword.experiments.lower_layers:run",
        "window-tagger": "nextword.experiments.window_tagger:run",
        "bidirectional-tagging": "nextword.experiments.bidirectional_tagging:run",
        "pooling": "nextword.experiments.pooling:run",
        "stopping": "nextword.experiments.stopping:run",
        "greedy-or-beam": "nextword.experiments.greedy_or_beam:run",
        "exposure-bias": "nextword.experiments.exposure_bias:run",
        "babble": "nextword.experiments.babble:run",
        "forcing": "nextword.experiments.own_words:run",
        "bottleneck": "nextword.experiments.bottleneck:run",
        "attention": "nextword.experiments.attention:run",
        "alignment": "nextword.experiments.alignment:run",
        "complexity": "nextword.experiments.complexity:run",
        "three-kinds": "nextword.experiments.three_kinds:run",
        "many-changes": "nextword.experiments.many_changes:run",
        "length": "nextword.experiments.length:run",
    },
}


def slots() -> list[str]:
    """Return the names of all slots."""
    return sorted(SLOTS)


def names(slot: str) -> list[str]:
    """Return the names a slot accepts: ours in catalog order, then plug-ins sorted by name."""
    own = _slot(slot)
    return [*own, *sorted(set(_plugins(slot)) - set(own))]


def has(slot: str, name: str) -> bool:
    """Whether a slot has this name; nothing is imported."""
    return spelled(slot, name) is not None


def spelled(slot: str, name: str) -> str | None:
    """Return a name as the slot spells it, whatever the case (``LSTM`` is ``lstm``); None if it has none."""
    for names_of in (_slot(slot), _plugins(slot)):
        if name in names_of:
            return name
    if own_parts.STORED.fullmatch(name):
        own_parts.find(name)
        return name
    return same_but_case(name, names(slot))


def find_path(slot: str, name: str) -> str:
    """Return the "module:attribute" of a name; raise an error that suggests the nearest if it is unknown."""
    found = spelled(slot, name)
    if found is None:
        raise ConfigError(unknown(slot, name, names(slot), more=f"nextword list {slot}"))
    own = _slot(slot)
    return own[found] if found in own else _plugins(slot)[found]


def find(slot: str, name: str) -> Any:
    """Return the object a name stands for, importing its module."""
    if own_parts.STORED.fullmatch(name):
        return own_parts.find(name)
    return getattr(find_module(slot, name), find_path(slot, name).partition(":")[2])


def find_module(slot: str, name: str) -> ModuleType:
    """Import and return the module that holds a name; a missing package is an error that names it."""
    try:
        return importlib.import_module(find_path(slot, name).partition(":")[0])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "nextword":
            raise
        raise MissingPart(error.name, "all", f"the {slot} '{name}'") from error


def _slot(slot: str) -> dict[str, str]:
    found = slot if slot in SLOTS else same_but_case(slot, SLOTS)
    if found is None:
        raise ConfigError(unknown("slot", slot, slots(), more="nextword list"))
    return SLOTS[found]


@cache
def _plugins(slot: str) -> dict[str, str]:
    """Return the names other installed packages register for a slot."""
    from importlib.metadata import entry_points  # takes milliseconds, and most names are ours

    return {entry.name: entry.value for entry in entry_points(group=f"nextword.{slot}")}
