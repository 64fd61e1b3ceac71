// size: the number of elements of a tensor, as a scalar.
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, DType::i64, {}); }

void reference(const OpCall& call) { *call.output(0).mutable_data<int64_t>() = call.input(0).num_elements(); }

}  // namespace

Var size(Var x) { return apply(size_def(), {x}); }

const OpDef& size_def() {
  static const OpDef def{
      .name = "size",
      .doc = "The number of elements.",
      .inputs = {{"data", "T", "Any shape; only the shape is read."}},
      .outputs = {{"size", "I", "A scalar."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .infer = infer,
      .reference = reference,
      .no_grad = "the output depends on the shape alone",
      .traits = {.reads_shape_only = true},
      .onnx = {{"Size"}},
      .sample = sample_unary,
  };
  return def;
}

}  // namespace autograph
