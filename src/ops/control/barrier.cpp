// barrier: output k is input k, and whatever makes any of the inputs comes before whatever reads any of the outputs.
//
// No pass merges nodes across it: a copy of a node behind a barrier stays a copy (to be computed again instead of kept
// in memory), and nodes with effects stay in their order. In a plan it costs nothing: outputs are other names for
// inputs.
#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require<ValueError>(
      context.num_inputs() == context.num_outputs() && context.num_inputs() > 0, "outputs",
      fmt::format("expected one per input, got {} for {}", context.num_outputs(), context.num_inputs()));
  for (size_t k = 0; k < context.num_outputs(); ++k) context.set_output(k, context.input(k));
}

void reference(const OpCall& call) {
  for (size_t k = 0; k < call.outputs.size(); ++k) copy_all(call.input(k), call.output(k));
}

OpSample sample(Random& random) {
  OpSample call;
  call.num_outputs = static_cast<int>(draw(random, 1, 3));
  for (int k = 0; k < call.num_outputs; ++k) {
    call.inputs.emplace_back(draw_tensor(random, draw_one_of(random, {DType::f32, DType::i64}), draw_dims(random)));
  }
  return call;
}

void vjp(VjpContext& c) {
  for (size_t k = 0; k < c.num_inputs(); ++k) {
    if (c.wants(k)) c.has_gy(k) ? c.set(k, c.gy(k)) : c.set_none(k);
  }
}

}  // namespace

std::vector<Var> barrier(const std::vector<Var>& xs) {
  return apply_all(barrier_def(), xs, {}, static_cast<int>(xs.size()));
}

const OpDef& barrier_def() {
  static const OpDef def{
      .name = "barrier",
      .doc = "ys = xs, but what makes the xs comes before what reads the ys.",
      .inputs = {{"xs", "", "Tensors.", Arity::variadic}},
      .outputs = {{"ys", "", "The types of xs.", Arity::variadic}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.pure = false, .barrier = true},
      .cost = [](const CostContext&) { return OpCost(); },
      .onnx = {{.name = "Barrier", .since = 1, .domain = "autograph"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
