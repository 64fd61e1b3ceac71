#!/usr/bin/env python3
"""Writes the operator tests that ship with the Python package `onnx` to disk, one folder a test.

usage: write_node_tests.py DIR [--max-opset N]

DIR/<test>/model.onnx and DIR/<test>/test_data_set_0/{input,output}_<i>.pb are in ONNX's own layout. DIR/index.json
holds {"<test>": {"opset": .., "rtol": .., "atol": ..}} and is written last: its presence means the folder is complete.
"""
import argparse
import json
import pathlib
import warnings

import numpy
import onnx
from onnx import numpy_helper

warnings.simplefilter("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402 (prints warnings while it loads)


def opset_of(model):
    """The version of the default domain; 0 for models that use other domains alone."""
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    return versions[0] if versions else 0


def serialized(value, value_info):
    """A value of a test's data set in the message that its declared type calls for."""
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    writers = {"sequence_type": numpy_helper.from_list, "optional_type": numpy_helper.from_optional}
    write = writers.get(value_info.type.WhichOneof("value"))
    message = write(value, value_info.name) if write else numpy_helper.from_array(numpy.asarray(value), value_info.name)
    return message.SerializeToString()


def write_case(case, folder):
    inputs, outputs = case.data_sets[0]
    files = {"model.onnx": case.model.SerializeToString()}
    graph = case.model.graph
    for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
        for position, (value, info) in enumerate(zip(values, infos)):
            files[f"test_data_set_0/{kind}_{position}.pb"] = serialized(value, info)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--max-opset", type=int, default=None, help="leave out tests of newer opsets")
    args = parser.parse_args()
    index = {}
    for case in collect_testcases(None):
        opset = opset_of(case.model)
        if args.max_opset is None or opset <= args.max_opset:
            write_case(case, args.dir / case.name)
            index[case.name] = {"opset": opset, "rtol": case.rtol, "atol": case.atol}
    (args.dir / "index.json").write_text(json.dumps(index, indent=1, sort_keys=True))
    print(f"{len(index)} operator tests in {args.dir}")


if __name__ == "__main__":
    main()
