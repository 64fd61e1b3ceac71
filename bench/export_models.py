#!/usr/bin/env python3
"""Exports well-known models with seeded random weights to ONNX, for check_models.py.

    python bench/export_models.py DIR [--only NAME ...] [--timm [NAME ...]] [--tasks [NAME ...]] [--list]

Nothing is downloaded: every model is built from its architecture alone. Weights come from a fixed seed; statistics of
batch normalisation and layer scales are drawn too, because their initial values (0, 1, 1e-6) would hide a wrong
import. Each model is exported in a process of its own, so that one failure or a large model does not spoil the rest.
A file that is already there is kept, so an interrupted run can be repeated. Both exporters of torch are used: `legacy`
(TorchScript tracing) and `dynamo` (torch.export). Large weights go to FILE.onnx.data.
"""

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import Callable

from task_models import TASKS

SEED = 20230207


@dataclass(frozen=True)
class Spec:
    """One export: how to build the module, its example inputs, and how to export it."""

    build: Callable[[], tuple]  # () -> (module, tuple of example inputs)
    exporter: str = "legacy"
    opset: int = 17
    input_names: tuple = ("input",)
    dynamic_axes: dict = field(default_factory=dict)  # input or output name -> {axis: symbol}; legacy exporter only
    dynamic_batch: bool = False  # axis 0 of the first input is symbolic; dynamo exporter only


def _image(*shape):
    import torch

    return (torch.randn(*shape, generator=torch.Generator().manual_seed(SEED)),)


def _tokens(batch, length, vocabulary):
    import torch

    return (torch.randint(0, vocabulary, (batch, length), generator=torch.Generator().manual_seed(SEED)),)


def _torchvision(name, size=224, batch=1, **arguments):
    def build():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **arguments), _image(batch, 3, size, size)

    return build


def _timm(name, size=None):
    """With images of `size`, or of the size that timm gives the network."""

    def build():
        import timm

        network = timm.create_model(name, pretrained=False, exportable=True)
        high, wide = (size, size) if size else network.default_cfg.get("input_size", (3, 224, 224))[1:]
        return network, _image(1, 3, high, wide)

    return build


def _language_model(kind, length=128, batch=1):
    """A transformers model that takes token ids alone and returns its last hidden state."""

    def build():
        import torch
        import transformers

        model_class, configuration = {
            "bert": ("BertModel", transformers.BertConfig),
            "distilbert": ("DistilBertModel", transformers.DistilBertConfig),
            "gpt2": ("GPT2Model", transformers.GPT2Config),
            "t5": ("T5EncoderModel", transformers.T5Config),
        }[kind]
        arguments = {"use_cache": False} if kind == "gpt2" else {}
        settings = configuration(attn_implementation="eager", **arguments)
        model = getattr(transformers, model_class)(settings)

        class LastHiddenState(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, input_ids):
                # An explicit mask keeps transformers from looking for packed sequences, which neither exporter knows.
                mask = torch.ones_like(input_ids)
                return self.inner(input_ids=input_ids, attention_mask=mask, return_dict=False)[0]

        return LastHiddenState(), _tokens(batch, length, settings.vocab_size)

    return build


def _recurrent():
    import torch

    class Recurrent(torch.nn.Module):
        """A bidirectional LSTM and a GRU, batch first, with a linear head."""

        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(64, 96, num_layers=2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(192, 128, batch_first=True)
            self.head = torch.nn.Linear(128, 10)

        def forward(self, x):
            return self.head(self.gru(self.lstm(x)[0])[0])

    return Recurrent(), _image(2, 30, 64)


SPECS = {
    "resnet50": Spec(_torchvision("resnet50")),
    "resnet50_dynamo": Spec(_torchvision("resnet50"), exporter="dynamo", opset=20),
    "resnext50_32x4d": Spec(_torchvision("resnext50_32x4d")),
    "inception_v3": Spec(_torchvision("inception_v3", 299, aux_logits=False, init_weights=False), opset=13),
    "squeezenet1_1": Spec(_torchvision("squeezenet1_1"), opset=11),
    "mobilenet_v3_large": Spec(_torchvision("mobilenet_v3_large")),
    "mobilenet_v3_large_dynamo": Spec(_torchvision("mobilenet_v3_large"), exporter="dynamo", opset=18),
    "efficientnet_b0": Spec(_torchvision("efficientnet_b0")),
    "regnet_y_400mf": Spec(_torchvision("regnet_y_400mf"), opset=15),
    "densenet121": Spec(_torchvision("densenet121"), opset=9),
    "googlenet": Spec(_torchvision("googlenet", aux_logits=False, init_weights=False), opset=12),
    "nasnet_large": Spec(_timm("nasnetalarge", 331)),
    "shufflenet_v2_x1_0": Spec(_torchvision("shufflenet_v2_x1_0")),
    "convnext_tiny": Spec(_torchvision("convnext_tiny")),
    "swin_t": Spec(_torchvision("swin_t")),
    "vit_b_16": Spec(_torchvision("vit_b_16")),
    "vit_tiny_timm_dynamo": Spec(_timm("vit_tiny_patch16_224"), exporter="dynamo", opset=21),
    "mixer_s32_timm": Spec(_timm("mixer_s32_224")),
    "resnet18_dynamic": Spec(
        _torchvision("resnet18", batch=2), dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}
    ),
    "resnet18_dynamic_dynamo": Spec(
        _torchvision("resnet18", batch=2), exporter="dynamo", opset=20, dynamic_batch=True
    ),
    "bert_base": Spec(_language_model("bert"), input_names=("input_ids",)),
    "distilbert_dynamic": Spec(
        _language_model("distilbert", batch=2),
        input_names=("input_ids",),
        dynamic_axes={"input_ids": {0: "batch", 1: "tokens"}, "output": {0: "batch", 1: "tokens"}},
    ),
    "gpt2": Spec(_language_model("gpt2", length=64), input_names=("input_ids",)),
    "t5_encoder": Spec(_language_model("t5", length=64), input_names=("input_ids",)),
    "distilbert_dynamo": Spec(_language_model("distilbert"), exporter="dynamo", opset=20, input_names=("input_ids",)),
    "recurrent": Spec(_recurrent),
}


# With --timm: one small network of each family of timm that the exporter can write, by its name there.
TIMM = """
    resnetv2_50 resnest14d res2net50_26w_4s skresnet18 cspresnet50 cspdarknet53 dla34 hrnet_w18_small
    efficientnet_lite0 tf_efficientnetv2_b0 mobilenetv2_100 mobilenetv4_conv_small mnasnet_100 fbnetc_100 lcnet_100
    ghostnet_100 ghostnetv2_100 ghostnetv3_100 mobileone_s0 repvgg_a0 regnetx_002 regnetz_b16 rexnet_100 tinynet_a
    hardcorenas_a xception41 inception_v4 nf_resnet50 convnextv2_atto coat_tiny coatnet_0_rw_224 maxvit_tiny_tf_224
    mvitv2_tiny pvt_v2_b0 poolformer_s12 caformer_s18 crossvit_9_240 cait_xxs24_224 xcit_nano_12_p16_224 levit_128
    edgenext_xx_small mobilevit_xxs mobilevitv2_050 fastvit_t8 efficientvit_b0 efficientvit_m0 efficientformer_l1
    efficientformerv2_s0 repvit_m0_9 swinv2_tiny_window8_256 focalnet_tiny_srf davit_tiny gcvit_xxtiny nest_tiny
    twins_svt_small tnt_s_legacy_patch16_224 visformer_tiny sequencer2d_s gmlp_s16_224 resmlp_12_224
    eva02_tiny_patch14_224 hgnetv2_b0 starnet_s1 rdnet_tiny inception_next_tiny hiera_tiny_224
    vit_small_patch14_reg4_dinov2 tiny_vit_5m_224 selecsls42b ese_vovnet19b_dw dpn68 botnet26t_256 lambda_resnet26t
    vit_tiny_patch16_224 beit_base_patch16_224 shvit_s1 swiftformer_xs mambaout_femto nextvit_small
    samvit_base_patch16_224 test_byobnet convit_tiny
""".split()


def _draw_parameters(module):
    """Redraws what starts at 0, 1 or 1e-6 (norms, layer scales, zero heads): leaving it out would not show."""
    import torch

    generator = torch.Generator().manual_seed(SEED)
    norms = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm)
    for child in module.modules():
        if isinstance(child, norms) and child.weight is not None:
            child.weight.data.uniform_(0.8, 1.2, generator=generator)
            child.bias.data.normal_(0, 0.1, generator=generator)
        if isinstance(child, torch.nn.Linear) and not child.weight.any():
            child.weight.data.normal_(0, child.in_features**-0.5, generator=generator)
    for name, parameter in module.named_parameters():
        if name.endswith(("layer_scale", "gamma")):
            parameter.data.uniform_(0.1, 0.3, generator=generator)


def _calibrate(module, inputs):
    """Gives batch normalisations the statistics of `inputs`: with initial ones, signals die out or blow up in depth."""
    import torch

    norms = [child for child in module.modules() if isinstance(child, torch.nn.modules.batchnorm._BatchNorm)]

    def leave_single_values(norm, inputs):
        if inputs[0].numel() == inputs[0].shape[1]:
            norm.eval()

    hooks = []
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
        hooks.append(norm.register_forward_pre_hook(leave_single_values))
    if norms:
        module(*inputs)
    for norm, hook in zip(norms, hooks):
        hook.remove()
        norm.eval()


def spec_of(name):
    """Of a name in SPECS, timm_NAME, or task_NAME."""
    if name.startswith("task_"):
        build = TASKS[name.removeprefix("task_")]
        return Spec(build, input_names=())
    return SPECS[name] if name in SPECS else Spec(_timm(name.removeprefix("timm_")))


def build_module(name):
    """(module, example inputs) of model `name`, in evaluation mode; the same weights every time."""
    import torch

    warnings.filterwarnings("ignore")
    torch.manual_seed(SEED)
    module, inputs = spec_of(name).build()
    module.eval()
    with torch.no_grad():
        _draw_parameters(module)
        _calibrate(module, inputs)
    return module, inputs


def export(name, path):
    """Exports model `name` to `path`."""
    import torch

    torch.backends.mha.set_fastpath_enabled(False)  # a fused attention op that the legacy exporter cannot write
    spec = spec_of(name)
    module, inputs = build_module(name)
    names = {"input_names": list(spec.input_names), "output_names": ["output"] if spec.input_names else []}
    with torch.no_grad():
        if spec.exporter == "legacy":
            torch.onnx.export(
                module, inputs, path, opset_version=spec.opset, dynamo=False, dynamic_axes=spec.dynamic_axes, **names
            )
        else:
            shapes = ({0: torch.export.Dim("batch", min=1, max=64)},) if spec.dynamic_batch else None
            torch.onnx.export(
                module,
                inputs,
                path,
                opset_version=spec.opset,
                dynamo=True,
                dynamic_shapes=shapes,
                verbose=False,
                **names,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", default=".", help="where the .onnx files go")
    parser.add_argument("--only", nargs="+", choices=sorted(SPECS), metavar="NAME", help="export these alone")
    parser.add_argument("--timm", nargs="*", metavar="NAME", help="these of timm, or one of each family, as timm_NAME")
    parser.add_argument("--tasks", nargs="*", metavar="NAME", help="these of task_models.py, or all, as task_NAME")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(SPECS))
        return 0
    os.makedirs(options.directory, exist_ok=True)
    names = options.only or list(SPECS)
    if options.timm is not None:
        names = (options.only or []) + ["timm_" + name for name in options.timm or TIMM]
    if options.tasks is not None:
        names = (options.only or []) + ["task_" + name for name in options.tasks or TASKS]
    failed = []
    for name in names:
        path = os.path.join(options.directory, name + ".onnx")
        if os.path.exists(path):
            print(f"{name:28} kept", flush=True)
            continue
        begin = time.monotonic()
        worker = multiprocessing.get_context("spawn").Process(target=export, args=(name, path))
        worker.start()
        worker.join()
        if worker.exitcode != 0:
            failed.append(name)
            for leftover in (path, path + ".data"):
                if os.path.exists(leftover):
                    os.remove(leftover)
        state = "failed" if worker.exitcode else f"{os.path.getsize(path) / 1e6:8.1f} MB"
        print(f"{name:28} {state:>12} {time.monotonic() - begin:6.1f} s", flush=True)
    if failed:
        print(f"{len(failed)} of {len(names)} exports failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
