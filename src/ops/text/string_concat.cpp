// string_concat: z = x followed by y, element by element, with broadcasting.
#include "autograph/op_def.h"
#include "autograph/ops/text.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"
#include "ops/text/draw_strings.h"

namespace autograph {
namespace {

struct Append {
  explicit Append(const Attributes&) {}
  std::string operator()(const std::string& x, const std::string& y) const { return x + y; }
};

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_strings(random, dims), draw_strings(random, draw_broadcastable(random, dims))}};
}

}  // namespace

Var string_concat(Var x, Var y) { return apply(string_concat_def(), {x, y}); }

const OpDef& string_concat_def() {
  static const OpDef def{
      .name = "string_concat",
      .doc = "x followed by y, element by element.",
      .inputs = {{"x", "T", "Strings."}, {"y", "T", "Strings; the shapes broadcast."}},
      .outputs = {{"z", "T", "The common shape."}},
      .types = {{"T", dtypes::kString}},
      .infer = infer_elementwise,
      .scalar = same_type_loop<Append, 2, TypeList<std::string>>,
      .no_grad = "strings are not differentiable",
      .traits = {.elementwise = true, .associative = true},
      .onnx = {{"StringConcat", 20}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
