// The attribute `num_captures` of ops whose nested graph takes formal inputs first and captured values last.
#pragma once

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"

namespace autograph {

/// The attribute: how many of the last inputs are captured.
inline AttributeSpec captures_spec() {
  return {.name = "num_captures",
          .type = AttributeType::integer,
          .doc = "How many of the last inputs are captured values, handed to the nested graph as they are.",
          .default_value = int64_t{0}};
}

/// Number of inputs before the captured ones; throws ValueError when the attribute does not fit.
size_t num_formal_inputs(const InferContext& context);

/// The same for a run, where infer has checked it.
size_t num_formal_inputs(const EvaluateContext& context);

/// Import: notes how many inputs the importer has appended.
void import_captures(ForeignNode& node);

/// Export: says how many inputs are captured, which nested graphs of ONNX name directly; the attribute goes.
void export_captures(ExportNode& to);

}  // namespace autograph
