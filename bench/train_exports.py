"""Models of torchvision and transformers, small, whose gradients train_peers.py --check compares with PyTorch's.

Nothing is downloaded: weights are drawn. Every file is what torch.onnx.export writes, without folding, so that weights
keep their names; those with ":train" are exported for training, batch norms with the statistics of their batch.
"""

import warnings
from dataclasses import dataclass
from typing import Callable

import numpy
import torch

import export_models

SEED = 20230207
TRAINING = ":train"


@dataclass(frozen=True)
class Export:
    build: Callable[[], torch.nn.Module]
    shape: tuple  # of the input; indices below `vocabulary` where there is one
    vocabulary: int = 0
    opset: int = 17
    seed: int = SEED  # of weights and input: one where f32 rounds no sum to the other side of a kink


def _vision(name, **arguments):
    def build():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **arguments)

    return build


def _dense():
    import torchvision

    return torchvision.models.DenseNet(growth_rate=12, block_config=(2, 3, 3, 2), num_init_features=16, num_classes=10)


def _vision_transformer():
    import torchvision

    return torchvision.models.VisionTransformer(
        image_size=64, patch_size=16, num_layers=3, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10
    )


class _LastHiddenState(torch.nn.Module):
    """Token ids to the last hidden state; the mask keeps transformers from looking for packed sequences."""

    def __init__(self, inner, arguments):
        super().__init__()
        self.inner, self.arguments = inner, arguments

    def forward(self, tokens):
        mask = torch.ones_like(tokens)
        return self.inner(input_ids=tokens, attention_mask=mask, return_dict=False, **self.arguments)[0]


# What a language model of transformers is called and how its configuration says: 2 layers of 64, 4 heads.
_LANGUAGE = {
    "bert": ("BertModel", "BertConfig", {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                                         "intermediate_size": 128}),
    "distilbert": ("DistilBertModel", "DistilBertConfig", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}),
    "gpt2": ("GPT2Model", "GPT2Config", {"n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": None,
                                         "eos_token_id": None}),
    "t5_encoder": ("T5EncoderModel", "T5Config", {"d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16,
                                                  "d_ff": 128}),
}


def _language(kind):
    def build():
        import transformers

        model, configuration, sizes = _LANGUAGE[kind]
        settings = getattr(transformers, configuration)(vocab_size=_WORDS, attn_implementation="eager", **sizes)
        arguments = {"use_cache": False} if kind == "gpt2" else {}
        return _LastHiddenState(getattr(transformers, model)(settings), arguments)

    return build


_WORDS = 100
_IMAGES = (4, 3, 64, 64)
_LARGE_IMAGES = (2, 3, 96, 96)
_TOKENS = (2, 24)

EXPORTS = {
    "resnet18": Export(_vision("resnet18", num_classes=10), _IMAGES, seed=1),
    "mobilenet_v2": Export(_vision("mobilenet_v2", num_classes=10), _IMAGES, seed=4),
    "mobilenet_v3_small": Export(_vision("mobilenet_v3_small", num_classes=10), _IMAGES, seed=4),
    "efficientnet_b0": Export(_vision("efficientnet_b0", num_classes=10), _LARGE_IMAGES, seed=3),
    "squeezenet1_1": Export(_vision("squeezenet1_1", num_classes=10), _IMAGES, opset=11),
    "shufflenet_v2_x0_5": Export(_vision("shufflenet_v2_x0_5", num_classes=10), _IMAGES, seed=2),
    "densenet": Export(_dense, (4, 3, 32, 32), opset=13, seed=4),
    "convnext_tiny": Export(_vision("convnext_tiny", num_classes=10), _IMAGES),
    "vision_transformer": Export(_vision_transformer, _IMAGES),
    "swin_t": Export(_vision("swin_t", num_classes=10), _IMAGES),
    "bert": Export(_language("bert"), _TOKENS, _WORDS),
    "distilbert": Export(_language("distilbert"), _TOKENS, _WORDS),
    "gpt2": Export(_language("gpt2"), _TOKENS, _WORDS),
    "t5_encoder": Export(_language("t5_encoder"), _TOKENS, _WORDS),
}
TRAINED = ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5")
NAMES = [*EXPORTS, *(name + TRAINING for name in TRAINED)]


def draw(name, more=0):
    """The input and, of the output's shape, what it should be; others for each `more`."""
    spec = EXPORTS[name.removesuffix(TRAINING)]
    random = numpy.random.default_rng(spec.seed + more)
    if spec.vocabulary:
        # Not 0, the padding of BERT's embedding: PyTorch takes its gradient to be 0, of which the file says nothing.
        x = random.integers(1, spec.vocabulary, spec.shape)
    else:
        x = random.standard_normal(spec.shape).astype(numpy.float32)
    with torch.no_grad():
        shape = build(name)(torch.from_numpy(x)).shape
    return x, random.standard_normal(shape).astype(numpy.float32)


def _without_chance(module):
    """No dropout and no stochastic depth: what the others compare would differ from run to run."""
    for part in module.modules():
        for chance in ("p", "dropout"):
            if isinstance(getattr(part, chance, None), float):
                setattr(part, chance, 0.0)


def _draw_constant(module):
    """Moves what is 0 or 1 throughout: the exporter makes one tensor of all that are equal."""
    for parameter in module.parameters():
        if parameter.numel() > 1 and (parameter == parameter.flatten()[0]).all():
            parameter.add_(torch.randn(parameter.shape), alpha=0.05)


def build(name):
    """The module; norms have statistics of a batch, weights that are all 1 or 0 are drawn."""
    warnings.filterwarnings("ignore")
    torch.backends.mha.set_fastpath_enabled(False)  # a fused attention op that the exporter cannot write
    spec = EXPORTS[name.removesuffix(TRAINING)]
    torch.manual_seed(spec.seed)
    module = spec.build().eval()
    with torch.no_grad():
        export_models._draw_parameters(module)
        if not spec.vocabulary:
            export_models._calibrate(module, (torch.randn(spec.shape),))
        _draw_constant(module)
    if name.endswith(TRAINING):
        _without_chance(module)
        module.train()
    return module


def export(name, path, x):
    training = torch.onnx.TrainingMode.TRAINING if name.endswith(TRAINING) else torch.onnx.TrainingMode.PRESERVE
    torch.onnx.export(
        build(name),
        (torch.from_numpy(x),),
        path,
        dynamo=False,
        opset_version=EXPORTS[name.removesuffix(TRAINING)].opset,
        training=training,
        do_constant_folding=False,
        input_names=["x"],
        output_names=["y"],
    )


def gradients(name, arrays, dtype=torch.float64):
    """Of the mean squared error, by PyTorch."""
    module = build(name).to(dtype)
    x, target = (torch.from_numpy(array) for array in arrays)
    y = module(x.to(dtype) if x.is_floating_point() else x)
    torch.nn.functional.mse_loss(y, target.to(y.dtype)).backward()
    return {key: weight.grad.numpy() for key, weight in module.named_parameters() if weight.grad is not None}
