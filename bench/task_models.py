"""Networks of other tasks than those of export_models.py, in sizes that people export: speech and codecs of sound,
pictures drawn, mended and enlarged, detectors, video.

    python bench/export_models.py DIR --tasks [NAME ...]

They need `pip install --no-deps diffusers spandrel kokoro loguru einops attrs requests` beside bench/requirements.txt.
Each builder gives (module, example inputs).
"""

import importlib
import sys
import tempfile
import types


def _draw(*shape):
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _ids(most, *shape):
    import torch

    return torch.randint(1, most, shape, generator=torch.Generator().manual_seed(1))


def _calling(module, function):
    """`module` with this as its forward."""
    import torch

    class Calling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, *inputs):
            return function(self.inner, *inputs)

    return Calling()


def _transformers(model, configuration, inputs, function=lambda m, *x: m(*x, return_dict=False)[0], **settings):
    def build():
        import transformers

        made = getattr(transformers, model)(getattr(transformers, configuration)(**settings))
        return _calling(made, function), inputs()

    return build


def _diffusers(model, inputs, function=lambda m, *x: m(*x, return_dict=False)[0], **settings):
    def build():
        import diffusers

        return _calling(getattr(diffusers, model)(**settings), function), inputs()

    return build


def _spandrel(name, size=64, channels=3):
    """An architecture that mends or enlarges pictures, with its defaults."""

    def build():
        import spandrel

        entry = next(e.architecture for e in spandrel.MAIN_REGISTRY if e.architecture.id == name)
        network = type(entry).__orig_bases__[0].__args__[0]
        return network(), (_draw(1, channels, size, size).sigmoid(),)

    return build


def _torchvision(group, name, shape, function=None, **settings):
    def build():
        import torchvision

        network = getattr(getattr(torchvision.models, group), name)(weights=None, **settings)
        return _calling(network, function) if function else network, (_draw(*shape).sigmoid(),)

    return build


def _detector(name, **settings):
    def found(network, image):
        return tuple(network([image])[0].values())

    return _torchvision("detection", name, (3, 240, 320), found, weights_backbone=None, **settings)


def _kokoro():
    """Text to speech: the durations follow from the text. Noise is left out, for it differs from run to run."""
    import torch

    torch.randn_like = torch.rand_like = lambda x, **_: torch.zeros_like(x)
    torch.rand = lambda *shape, **_: torch.zeros(*shape)
    package = types.ModuleType("kokoro")  # without what it needs to read text
    package.__path__ = [importlib.util.find_spec("kokoro").submodule_search_locations[0]]
    sys.modules["kokoro"] = package
    vocoder = {
        "upsample_kernel_sizes": [20, 12],
        "upsample_rates": [10, 6],
        "gen_istft_hop_size": 5,
        "gen_istft_n_fft": 20,
        "resblock_dilation_sizes": [[1, 3, 5]] * 3,
        "resblock_kernel_sizes": [3, 7, 11],
        "upsample_initial_channel": 512,
    }
    bert = {
        "hidden_size": 768,
        "num_attention_heads": 12,
        "intermediate_size": 2048,
        "max_position_embeddings": 512,
        "num_hidden_layers": 12,
        "dropout": 0.1,
    }
    settings = {"vocab": {}, "n_token": 1000, "hidden_dim": 512, "style_dim": 128, "n_layer": 3, "max_dur": 50}
    settings |= {"dropout": 0.2, "text_encoder_kernel_size": 5, "n_mels": 80, "plbert": bert, "istftnet": vocoder}
    with tempfile.NamedTemporaryFile(suffix=".pth") as nothing:
        torch.save({}, nothing.name)
        made = importlib.import_module("kokoro.model").KModel("none", settings, nothing.name, disable_complex=True)
    with torch.no_grad():
        made.predictor.duration_proj.linear_layer.bias.fill_(-3)  # 2.5 frames a token
    speak = _calling(made, lambda m, ids, style: m.forward_with_tokens(ids, style, 1.0))
    return speak, (_ids(1000, 1, 20), _draw(1, 256))


_UNET = {"sample_size": 32, "block_out_channels": (128, 256, 256, 256), "layers_per_block": 1}
_VAE = {
    "block_out_channels": (64, 128, 256, 256),
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "layers_per_block": 1,
}

TASKS = {
    # Sound
    "kokoro": _kokoro,
    "hifigan": _transformers("SpeechT5HifiGan", "SpeechT5HifiGanConfig", lambda: (_draw(40, 80),), lambda m, x: m(x)),
    "dac_encoder": _transformers(
        "DacModel", "DacConfig", lambda: (_draw(1, 1, 8000),), lambda m, x: m.encode(x, return_dict=False)[2]
    ),
    "dac_decoder": _transformers(
        "DacModel", "DacConfig", lambda: (_draw(1, 1024, 20),), lambda m, z: m.decode(z, return_dict=False)[0]
    ),
    "wav2vec2": _transformers("Wav2Vec2Model", "Wav2Vec2Config", lambda: (_draw(1, 16000),), num_hidden_layers=3),
    "parakeet": _transformers(
        "ParakeetEncoder", "ParakeetEncoderConfig", lambda: (_draw(1, 200, 80),), num_hidden_layers=3
    ),
    # Pictures
    "unet": _diffusers(
        "UNet2DConditionModel",
        lambda: (_draw(1, 4, 32, 32), _draw(1), _draw(1, 77, 512)),
        cross_attention_dim=512,
        **_UNET,
    ),
    "vae_decoder": _diffusers(
        "AutoencoderKL", lambda: (_draw(1, 4, 16, 16),), lambda m, z: m.decode(z, return_dict=False)[0], **_VAE
    ),
    "esrgan": _spandrel("ESRGAN"),
    "compact": _spandrel("Compact"),
    "scunet": _spandrel("SCUNet"),
    "omnisr": _spandrel("OmniSR"),
    "hvi_cidnet": _spandrel("HVICIDNet"),
    "sam_encoder": _transformers(
        "SamVisionModel",
        "SamVisionConfig",
        lambda: (_draw(1, 3, 256, 256),),
        image_size=256,
        hidden_size=192,
        num_attention_heads=3,
        mlp_dim=768,
        num_hidden_layers=4,
        global_attn_indexes=[1, 3],
    ),
    # Detectors and video
    "faster_rcnn": _detector("fasterrcnn_mobilenet_v3_large_320_fpn"),
    "mask_rcnn": _detector("maskrcnn_resnet50_fpn", min_size=240, max_size=320),
    "ssdlite": _detector("ssdlite320_mobilenet_v3_large"),
    "retinanet": _detector("retinanet_resnet50_fpn", min_size=240, max_size=320),
    "r2plus1d": _torchvision("video", "r2plus1d_18", (1, 3, 8, 64, 64)),
    "swin3d": _torchvision("video", "swin3d_t", (1, 3, 8, 64, 64)),
}
