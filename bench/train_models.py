"""The models that train_peers.py trains: PyTorch modules with seeded weights, their inputs and targets, and exports."""

import numpy
import torch
from torch import nn

SEED = 20230207


class Mlp(nn.Module):
    def __init__(self, width=512, classes=10):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
        )

    def forward(self, x):
        return self.layers(x)


class Cnn(nn.Module):
    """Two stages of two convolutions, as tutorials for CIFAR have them."""

    def __init__(self, classes=10):
        super().__init__()
        layers, before = [], 3
        for width in (32, 64):
            for _ in range(2):
                layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
                before = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(64 * 8 * 8, 256), nn.ReLU(), nn.Linear(256, classes))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Block(nn.Module):
    """The basic block of ResNet-18 and -34."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Identity()
        if stride != 1 or before != width:
            self.shortcut = nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        before = 64
        for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Block(before, width, stride), Block(width, width, 1)]
            before = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(512, classes)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Layer(nn.Module):
    """A pre-norm layer of a decoder; the attention is spelled out, so that every exporter knows it."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        mask = torch.full((length, length), -1e4).triu(1)
        self.register_buffer("mask", mask)

    def attend(self, x):
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        query, key, value = (
            project(x).reshape(split).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5 + self.mask
        return self.out((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class CharTransformer(nn.Module):
    def __init__(self, vocabulary=96, width=256, layers=4, heads=4, length=128):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        self.layers = nn.Sequential(*(Layer(width, heads, length) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.norm(self.layers(self.embedding(tokens) + self.position)))


class Recurrent(nn.Module):
    def __init__(self, layers=nn.LSTM, vocabulary=96, width=256):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = layers(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))[0])


class Gru(Recurrent):
    def __init__(self):
        super().__init__(nn.GRU)


# Name -> (module, batch, shape of an input behind the batch or length of a text, classes).
MODELS = {
    "mlp": (Mlp, 64, (784,), 10),
    "cnn": (Cnn, 64, (3, 32, 32), 10),
    "resnet18": (ResNet18, 16, (3, 224, 224), 1000),
    "transformer": (CharTransformer, 16, 128, 96),
    "lstm": (Recurrent, 32, 64, 96),
    "gru": (Gru, 32, 64, 96),
}


def is_text(name):
    return isinstance(MODELS[name][2], int)


def loss_kind(name):
    """The program's name for the loss: over classes in dim 1, or in the last one."""
    return "token_cross_entropy" if is_text(name) else "cross_entropy"


def build(name):
    """The module. Norms get weights of their own: the exporter makes one tensor of all that are equal."""
    torch.manual_seed(SEED)
    module = MODELS[name][0]()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.uniform_(part.weight, 0.8, 1.2)
            nn.init.uniform_(part.bias, -0.1, 0.1)
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.uniform_(-0.1, 0.1)
            part.running_var.uniform_(0.8, 1.2)
    return module


def draw(name, batch=None):
    """(input, target) as arrays."""
    _, own_batch, shape, classes = MODELS[name]
    batch = batch or own_batch
    random = numpy.random.default_rng(SEED)
    if is_text(name):
        return tuple(random.integers(0, classes, (batch, shape)) for _ in range(2))
    return random.standard_normal((batch, *shape)).astype(numpy.float32), random.integers(0, classes, (batch,))


def export(name, path, batch=None):
    """Writes the module for evaluation, nothing folded: what learns, and batch norms, are promoted by the program."""
    module = build(name).eval()
    example = torch.from_numpy(draw(name, batch)[0])
    torch.onnx.export(
        module,
        (example,),
        path,
        dynamo=False,
        opset_version=17,
        do_constant_folding=False,
        input_names=["x"],
        output_names=["y"],
    )


def loss_of(name, scores, target):
    return nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten()) if is_text(name) else (
        nn.functional.cross_entropy(scores, target)
    )


def make_optimizer(kind, parameters, learning_rate):
    return {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[kind](parameters, lr=learning_rate)
