// bernoulli: y = 1 with probability x, else 0. Probabilities below 0 (or NaN) never give 1, those above 1 always do.
#include "autograph/op_def.h"
#include "autograph/ops/random.h"
#include "ops/defs.h"
#include "ops/random/generator.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using DrawnTypes = Concat<NumericTypes, TypeList<bool>>;

void infer(InferContext& context) {
  context.set_output(0, context.attributes().get_or("dtype", context.dtype(0)), context.shape(0));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  Generator generator(call.attributes);
  dispatch<FloatTypes>(x.dtype(), [&]<class In>(TypeTag<In>) {
    dispatch<DrawnTypes>(call.output(0).dtype(), [&]<class Out>(TypeTag<Out>) {
      Out* y = call.output(0).mutable_data<Out>();
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        y[i] = static_cast<Out>(generator.uniform() < static_cast<double>(x.data<In>()[i]) ? 1 : 0);
      }
    });
  });
}

OpSample sample(Random& random) {
  OpSample call{.inputs = {draw_tensor(random, DType::f32, draw_dims(random), 0, 1)},
                .attributes = {{"seed", static_cast<float>(draw(random, 0, 1000))}}};
  if (draw_bool(random)) call.attributes.set("dtype", draw_one_of(random, {DType::boolean, DType::i64, DType::f64}));
  return call;
}

}  // namespace

Var bernoulli(Var x, std::optional<float> seed) {
  Attributes attributes;
  if (seed) attributes.set("seed", *seed);
  return apply(bernoulli_def(), {x}, std::move(attributes));
}

const OpDef& bernoulli_def() {
  static const OpDef def{
      .name = "bernoulli",
      .doc = "y = 1 with probability x, else 0.",
      .inputs = {{"x", "S", "Any shape: probabilities."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"S", dtypes::kFloat}, {"T", dtypes::kNumeric | dtypes::kBool}},
      .attributes = {{"dtype", AttributeType::dtype, "The dtype of y; missing: that of x."},
                     {"seed", AttributeType::real, "Makes every run draw the same numbers."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "drawn at random",
      .traits = {.pure = false, .random = true},
      .onnx = {{.name = "Bernoulli", .since = 15}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
