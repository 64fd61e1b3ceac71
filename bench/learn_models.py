"""The models of `autograph train` in PyTorch: the same layers, sizes and names of parameters; and what surrounds them.
See learn_peers.py."""

import torch

import learn_data

HIDDEN, WIDTH = 128, 64  # of the Tree-LSTM


class SmallConvNet(torch.nn.Module):
    def __init__(self, side, mean, deviation, dropout, width=32, hidden=128):
        super().__init__()
        self.side, self.mean, self.deviation = side, mean, deviation
        self.conv1 = torch.nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(width, 2 * width, 3, padding=1)
        self.fc1 = torch.nn.Linear(2 * width * (side // 4) ** 2, hidden)
        self.fc2 = torch.nn.Linear(hidden, 10)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        y = (x.reshape(-1, 1, self.side, self.side) - self.mean) * (1 / self.deviation)
        for conv in (self.conv1, self.conv2):
            y = torch.nn.functional.max_pool2d(conv(y).relu(), 2)
        return self.fc2(self.dropout(self.fc1(y.flatten(1)).relu()))


class VggLikeNet(torch.nn.Module):
    def __init__(self, mean, deviation, dropout, width=32):
        super().__init__()
        self.mean, self.deviation = mean, deviation
        layers, channels = [], 3
        for outputs in (width, 2 * width, 4 * width):
            for inputs in (channels, outputs):
                layers += [torch.nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), torch.nn.BatchNorm2d(outputs),
                           torch.nn.ReLU()]  # fmt: skip
            layers.append(torch.nn.MaxPool2d(2))
            channels = outputs
        self.features = torch.nn.Sequential(*layers)
        mean_of_positions = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
        self.head = torch.nn.Sequential(mean_of_positions, torch.nn.Dropout(dropout), torch.nn.Linear(channels, 10))

    def forward(self, x):
        return self.head(self.features((x - self.mean) * (1 / self.deviation)))


class TextTransformer(torch.nn.Module):
    def __init__(self, words, dropout, length=64, width=128, layers=2, heads=4):
        super().__init__()
        self.tokens = torch.nn.Embedding(words, width)
        self.positions = torch.nn.Parameter(torch.empty(length, width))
        torch.nn.init.normal_(self.positions, 0, 0.02)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu", batch_first=True,
                                                 norm_first=True)  # fmt: skip
        self.transformer = torch.nn.TransformerEncoder(layer, layers, torch.nn.LayerNorm(width),
                                                       enable_nested_tensor=False)  # fmt: skip
        for other in self.transformer.layers:  # copies of one layer: each draws its own weights
            for part in (other.self_attn.out_proj, other.linear1, other.linear2):
                part.reset_parameters()
            torch.nn.init.xavier_uniform_(other.self_attn.in_proj_weight)
            torch.nn.init.zeros_(other.self_attn.out_proj.bias)
        self.head = torch.nn.Linear(width, words)
        self.register_buffer("mask", torch.nn.Transformer.generate_square_subsequent_mask(length), persistent=False)

    def forward(self, x):
        return self.head(self.transformer(self.tokens(x) + self.positions, mask=self.mask, is_causal=True))


@torch.jit.script
def sru_steps(z, f, r, x, v_f, v_r):
    c = torch.zeros_like(x[0])
    kept = []
    for t in range(x.size(0)):
        forget = torch.sigmoid(f[t] + v_f * c)
        reset = torch.sigmoid(r[t] + v_r * c)
        c = forget * c + (1 - forget) * z[t]
        kept.append(reset * c + (1 - reset) * x[t])
    return torch.stack(kept)


class Sru(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        bound = (3 / width) ** 0.5
        self.weight = torch.nn.Parameter(torch.empty(3 * width, width).uniform_(-bound, bound))
        self.weight_c = torch.nn.Parameter(torch.empty(2 * width).uniform_(-0.5, 0.5))
        self.bias = torch.nn.Parameter(torch.zeros(2 * width))

    def forward(self, x):
        z, f, r = (x @ self.weight.T).chunk(3, 2)
        b_f, b_r = self.bias.chunk(2)
        v_f, v_r = self.weight_c.chunk(2)
        return sru_steps(z, f + b_f, r + b_r, x, v_f, v_r)


class TextSru(torch.nn.Module):
    def __init__(self, words, dropout, width=192, layers=2):
        super().__init__()
        self.tokens = torch.nn.Embedding(words, width)
        self.layers = torch.nn.Sequential(*[Sru(width) for _ in range(layers)])
        self.dropout = torch.nn.Dropout(dropout)
        self.head = torch.nn.Linear(width, words)

    def forward(self, x):
        y = self.tokens(x).transpose(0, 1)
        for layer in self.layers:
            y = self.dropout(layer(y))
        return self.head(y.transpose(0, 1))


class TreeLstm(torch.nn.Module):
    def __init__(self, types, nodes, classes, dropout):
        super().__init__()
        self.nodes = nodes
        self.types = torch.nn.Embedding(types, WIDTH)
        self.of_type = torch.nn.Linear(WIDTH, 5 * HIDDEN)
        self.of_children_weight = torch.nn.Parameter(torch.empty(5 * HIDDEN, 2 * HIDDEN))
        torch.nn.init.xavier_uniform_(self.of_children_weight)
        self.dropout = torch.nn.Dropout(dropout)
        self.head = torch.nn.Linear(HIDDEN, classes)

    def forward(self, tree):
        gates = self.of_type(self.types(tree[:, 0])).unbind(1)
        rows = torch.arange(len(tree))[:, None]
        states = [torch.zeros(len(tree), 2 * HIDDEN)]  # a node's h beside its c, by position; 0: none
        for position in range(self.nodes):
            # Nodes look back to any position: what is there so far is one tensor.
            so_far = torch.stack(states, 1)
            children = so_far[rows, tree[:, 1:, position]]
            h = children[..., :HIDDEN].reshape(len(tree), 2 * HIDDEN)
            all_gates = gates[position] + h @ self.of_children_weight.T
            i, child, sibling, o, u = all_gates.chunk(5, 1)
            cells = children[..., HIDDEN:]
            c = i.sigmoid() * u.tanh() + child.sigmoid() * cells[:, 0] + sibling.sigmoid() * cells[:, 1]
            states.append(torch.cat([o.sigmoid() * c.tanh(), c], 1))
        return self.head(self.dropout(states[-1][:, :HIDDEN]))


class Task:
    """Data, a model, and the numbers of src/training/tasks.cpp."""

    rate = 2e-3
    clip = None
    changed = staticmethod(lambda x, samples, seed, epoch: x)
    decays_biases = True

    def __init__(self, name, path, seed):
        self.name = name
        self.batch, self.epochs, self.dropout = {"fashion": (64, 10, 0.3), "mnist": (64, 10, 0.3),
                                                 "digits": (32, 30, 0.3), "cifar10": (64, 20, 0.3),
                                                 "text": (32, 2, 0.1), "sru": (32, 2, 0.1),
                                                 "tree": (32, 10, 0.2)}[name]  # fmt: skip
        if name in ("text", "sru"):
            self.clip = 1.0
            (self.training, self.held_out), words = learn_data.open_text(path, 64)
            kind = TextTransformer if name == "text" else TextSru
            self.make = lambda dropout: kind(words, dropout)
        elif name == "tree":
            self.clip = 1.0
            self.training, self.held_out = learn_data.open_trees(path, seed)
            trees, labels = (numpy_array for numpy_array in zip(*(self.training, self.held_out)))
            types = max(int(part[:, 0].max()) for part in trees) + 1
            classes = max(int(part.max()) for part in labels) + 1
            self.make = lambda dropout: TreeLstm(types, trees[0].shape[2], classes, dropout)
        elif name == "cifar10":
            self.decays_biases = False
            self.changed = learn_data.crop_and_flip
            self.training, self.held_out = learn_data.open_cifar(path)
            self.make = lambda dropout: VggLikeNet(0.473, 0.251, dropout)
        else:
            self.decays_biases = False
            self.training, self.held_out = learn_data.open_images(path, seed)
            side = 8 if name == "digits" else 28
            scale = 255 if name == "mnist" and str(path).endswith(".csv") else 1
            mean, deviation = {"fashion": (0.286, 0.353), "mnist": (0.1307 * scale, 0.3081 * scale),
                               "digits": (4.9, 6)}[name]  # fmt: skip
            self.make = lambda dropout: SmallConvNet(side, mean, deviation, dropout)

    def optimizer(self, model):
        groups = [{"params": []}, {"params": [], "weight_decay": 0.0}]
        for name, weight in model.named_parameters():
            groups[not self.decays_biases and name.endswith("bias")]["params"].append(weight)
        return torch.optim.AdamW([group for group in groups if group["params"]], lr=self.rate)
