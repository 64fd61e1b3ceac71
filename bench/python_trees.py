#!/usr/bin/env python3
"""Writes the syntax trees of functions in Python's standard library as a set that `autograph train tree` learns from.

    python3 bench/python_trees.py trees.npz [--nodes 64] [--classes 12] [--library DIR]

A sample is the body of a function; its class is the first word of the function's name (get, set, test...), of the most
frequent ones. Nothing but the types of nodes is kept, so that what is learned is the shape of the code. Arrays:

    tree   i64 [samples, 3, nodes]  for each position the type of a node from 1, and the positions from 1 of its first
                                    child and of its next sibling, 0 for none; both stand before it, the root stands
                                    last, and shorter trees have zeros in front
    label  i64 [samples]            the class

Equal trees of one class are kept once. Prints the classes with their numbers of samples.
"""
import argparse
import ast
import collections
import pathlib
import re
import sysconfig
import warnings

import numpy

# Tests are ten times as many as all others, and what is installed beside the library differs from machine to machine.
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test"}
NO_NODES = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def children_of(node):
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, NO_NODES)]


def flatten(root, limit):
    """[(type, child, sibling)] in the order of positions; None where there are more than `limit`."""
    order = []  # (node, next siblings), a parent and an earlier sibling first
    stack = [(root, [])]
    while stack:
        node, siblings = stack.pop()
        order.append((node, siblings))
        if len(order) > limit:
            return None
        children = children_of(node)
        for following in (children, siblings):
            if following:
                stack.append((following[0], following[1:]))
    position = {id(node): len(order) - index for index, (node, _) in enumerate(order)}
    rows = []
    for node, siblings in reversed(order):
        children = children_of(node)
        rows.append(
            (
                type(node).__name__,
                position[id(children[0])] if children else 0,
                position[id(siblings[0])] if siblings else 0,
            )
        )
    return rows


def functions_of(library):
    """(first word of the name, body) of all functions."""
    for path in sorted(library.rglob("*.py")):
        if LEFT_OUT.intersection(path.parts):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue  # the library's own examples of what cannot be parsed
        for node in ast.walk(module):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            words = re.findall(r"[A-Z]?[a-z]{2,}", node.name)
            if words and not node.name.startswith("__"):
                body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
                yield words[0].lower(), ast.Module(body=body, type_ignores=[])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", help="the .npz file to write")
    parser.add_argument("--nodes", type=int, default=64, help="functions of more are left out (default: %(default)s)")
    parser.add_argument("--classes", type=int, default=12, help="most frequent first words (default: %(default)s)")
    parser.add_argument("--library", type=pathlib.Path, default=pathlib.Path(sysconfig.get_paths()["stdlib"]))
    options = parser.parse_args()

    found = collections.defaultdict(dict)  # word -> distinct trees, in order
    for word, body in functions_of(options.library):
        rows = flatten(body, options.nodes)
        if rows and len(rows) > 3:
            found[word][tuple(rows)] = None
    words = sorted(found, key=lambda word: (-len(found[word]), word))[: options.classes]
    names = sorted({name for word in words for rows in found[word] for name, _, _ in rows})
    number = {name: index + 1 for index, name in enumerate(names)}
    trees, labels = [], []
    for label, word in enumerate(words):
        for rows in found[word]:
            tree = numpy.zeros((3, options.nodes), numpy.int64)
            front = options.nodes - len(rows)
            for index, (name, child, sibling) in enumerate(rows):
                tree[:, front + index] = number[name], child and child + front, sibling and sibling + front
            trees.append(tree)
            labels.append(label)
        print(f"{label:3d} {word:12s} {len(found[word])}")
    numpy.savez_compressed(options.output, tree=numpy.stack(trees), label=numpy.array(labels, numpy.int64))
    print(f"{len(trees)} trees of up to {options.nodes} nodes of {len(names)} types in {options.output}")


if __name__ == "__main__":
    main()
