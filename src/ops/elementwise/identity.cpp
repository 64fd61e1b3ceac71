// identity: a copy of any value: tensor, sequence or optional.
#include <cstring>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void infer(InferContext& context) { context.set_output(0, context.input(0)); }

// A real copy: the input's buffer may be reused as soon as its last reader has run.
Datum copy_of(EvaluateContext& context, const Datum& value) {
  if (!value.is_present()) return {};
  if (value.is_sequence()) {
    std::vector<Datum> copies;
    for (const Datum& element : value.sequence()) copies.push_back(copy_of(context, element));
    return copies;
  }
  const Tensor& from = value.tensor();
  Tensor to = context.allocate(from.dtype(), from.dims());
  if (from.dtype() == DType::string) {
    std::copy_n(from.data<std::string>(), from.num_elements(), to.mutable_data<std::string>());
  } else if (from.size_bytes() != 0) {
    std::memcpy(to.mutable_raw(), from.raw(), from.size_bytes());
  }
  return to;
}

std::vector<Datum> evaluate(EvaluateContext& context) { return {copy_of(context, context.input(0))}; }

OpSample sample(Random& random) {
  if (draw_bool(random)) return sample_unary(random);
  std::vector<Datum> list;
  for (int64_t i = draw(random, 1, 3); i > 0; --i)
    list.emplace_back(draw_tensor(random, DType::f32, draw_dims(random)));
  return {.inputs = {Datum(std::move(list))}};
}

}  // namespace

Var identity(Var x) { return apply(identity_def(), {x}); }

const OpDef& identity_def() {
  static const OpDef def{
      .name = "identity",
      .doc = "y = x, whatever kind of value x is.",
      .inputs = {{"x", "", "A tensor, sequence or optional."}},
      .outputs = {{"y", "", "The type of x."}},
      .infer = infer,
      .evaluate = evaluate,
      .vjp = [](VjpContext& c) { c.set(0, c.gy(0)); },
      .traits = {.view = true},
      .onnx = {{.name = "Identity"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
