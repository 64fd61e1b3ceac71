"""Random calls of classic models (ai.onnx.ml), for bench/contrib_ops.py, beside those of contrib_cases.py."""

import numpy

from contrib_cases import floats, op, pick


def features(case, random):
    """Rows of features; how many columns there are."""
    case.domain = "ai.onnx.ml"
    rows, columns = int(random.integers(1, 9)), int(random.integers(1, 7))
    case.add("X", floats(random, rows, columns), False)
    case.yields("Y")
    return columns


def linear_model(case, random, columns, scores):
    case.set(coefficients=floats(random, scores * columns).tolist(), intercepts=floats(random, scores).tolist())
    case.set(post_transform=pick(random, "NONE", "LOGISTIC", *(["SOFTMAX"] if scores > 1 else [])))


@op
def LinearRegressor(case, random):
    columns, targets = features(case, random), int(random.integers(1, 4))
    linear_model(case, random, columns, targets)
    case.set(targets=targets)


@op
def LinearClassifier(case, random):
    columns, scores = features(case, random), int(random.integers(1, 5))
    linear_model(case, random, columns, scores)
    case.yields("Z")
    case.set(classlabels_ints=[int(x) for x in 7 * numpy.arange(max(scores, 2)) + 3])


@op
def SVMRegressor(case, random):
    columns, supports = features(case, random), int(random.integers(1, 6))
    case.set(n_supports=supports, coefficients=floats(random, supports).tolist(), rho=floats(random, 1).tolist())
    case.set(support_vectors=floats(random, supports * columns).tolist(), one_class=int(random.integers(2)))
    case.set(kernel_type=pick(random, "LINEAR", "RBF", "POLY", "SIGMOID"), kernel_params=[0.4, 0.1, 2.0])


@op
def Normalizer(case, random):
    features(case, random)
    case.set(norm=pick(random, "MAX", "L1", "L2"))


@op
def Imputer(case, random):
    columns = features(case, random)
    values = case.operands["X"]
    missing = float(pick(random, 0.0, numpy.nan))
    values[random.random(values.shape) < 0.4] = missing
    case.set(imputed_value_floats=floats(random, pick(random, 1, columns)).tolist())
    case.set(replaced_value_float=missing)


@op
def SVMClassifier(case, random):
    columns, classes = features(case, random), int(random.integers(2, 6))
    case.yields("Z")
    pairs = classes * (classes - 1) // 2
    names = [f"c{i}" for i in range(classes)] if random.integers(2) else [int(x) for x in 7 * numpy.arange(classes) + 3]
    case.set(**{"classlabels_strings" if isinstance(names[0], str) else "classlabels_ints": names})
    case.set(kernel_type=pick(random, "LINEAR", "RBF", "POLY", "SIGMOID"), kernel_params=[0.4, 0.1, 2.0])
    if random.integers(4) == 0:
        case.set(coefficients=floats(random, classes * columns).tolist(), rho=floats(random, 1).tolist())
    else:
        supports = [int(x) for x in random.integers(1, 5, classes)]
        total = sum(supports)
        case.set(vectors_per_class=supports, support_vectors=floats(random, total * columns).tolist())
        case.set(coefficients=floats(random, (classes - 1) * total).tolist(), rho=floats(random, pairs).tolist())
        if random.integers(2):
            case.set(prob_a=(-1 - random.random(pairs)).tolist(), prob_b=floats(random, pairs, scale=0.3).tolist())
    case.set(post_transform=pick(random, "NONE", "NONE", "LOGISTIC", "SOFTMAX"))


def texts(case, random, known):
    """Rows of words, most of which are among those known."""
    case.domain = "ai.onnx.ml"
    shape = (int(random.integers(1, 6)), int(random.integers(1, 4)))
    case.add("X", random.choice(numpy.array([*known, "other"], dtype=object), shape), False)
    case.yields("Y")


@op
def OneHotEncoder(case, random):
    known = ["red", "green", "blue", ""][: int(random.integers(1, 5))]
    if random.integers(2):
        texts(case, random, known)
        case.set(cats_strings=known)
    else:
        features(case, random)
        case.operands["X"] = random.integers(0, 5, (3, 2)).astype(pick(random, numpy.int64, numpy.float32))
        case.set(cats_int64s=[3, 0, 1][: len(known)])


@op
def CategoryMapper(case, random):
    known, numbers = ["red", "green", "blue"], [4, 7, 1]
    texts(case, random, known)
    if random.integers(2):
        case.operands["X"] = random.integers(0, 9, (3, 2))
    case.set(cats_strings=known, cats_int64s=numbers)
    if random.integers(2):
        case.set(default_string="none", default_int64=99)


@op
def LabelEncoder(case, random):
    known, numbers = ["red", "green", "blue"], [4, 7, 1]
    texts(case, random, known)
    tables = [
        {"keys_strings": known, "values_int64s": numbers},
        {"keys_strings": known, "values_floats": [0.5, 1.5, 2.5]},
        {"keys_int64s": numbers, "values_strings": known},
    ]
    table = tables[int(random.integers(3))]
    if "keys_int64s" in table:
        case.operands["X"] = random.integers(0, 9, (3, 2))
    case.set(**table)
