// philox: random numbers as a function of a seed, a step and the op's id, so that they are the same on every device and
// for every number of threads, and a recomputed node draws what it drew before.
//
// Element i of `bits` is word i % 4 of block i / 4 of the op's stream (philox.h). `uniform` is one word an element in
// f32, two in f64. `normal` is the Box-Muller transform of neighbouring uniform numbers u, v: sqrt(-2 log(1 - u)) times
// cos(2 pi v) and sin(2 pi v), in f64, rounded once.
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/random.h"
#include "ops/defs.h"
#include "ops/random/fill_philox.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"

namespace autograph {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<uint32_t>::max();

void require_scalar(const InferContext& context, size_t slot, std::string_view what) {
  const Shape& shape = context.shape(slot);
  const bool one = !shape.has_rank() || shape.num_elements().value_or(1) == 1;
  context.require<ShapeError>(one, what, "expected one element, got shape " + to_string(shape));
}

void infer(InferContext& context) {
  const bool is_bits = context.attributes().text("distribution") == "bits";
  const DType dtype = context.attributes().get_or("dtype", is_bits ? DType::u32 : DType::f32);
  const bool fits = is_bits ? dtype == DType::u32 : dtype == DType::f32 || dtype == DType::f64;
  context.require<TypeError>(fits, "dtype",
                             fmt::format("expected {}, got {}", is_bits ? "u32" : "f32 or f64", to_string(dtype)));
  const int64_t id = context.attributes().integer("id");
  context.require<ValueError>(id >= 0 && id <= kMaxId, "id", fmt::format("expected 0 to {}, got {}", kMaxId, id));
  require_scalar(context, 1, "seed");
  require_scalar(context, 2, "step");
  const std::optional<int64_t> length = list_length(context, 0);
  const auto dims = context.known_integers(0);
  if (!dims) return context.set_output(0, dtype, length ? Shape::of_rank(*length) : Shape::unknown());
  for (const int64_t d : *dims) {
    if (d < 0) context.fail<ValueError>("shape", fmt::format("expected extents of 0 or more, got {}", d));
  }
  context.set_output(0, dtype, Shape::of(*dims));
}

void reference(const OpCall& call) {
  const TensorView y = call.output(0);
  check_philox_size(y);
  fill_philox(philox_stream(call.attributes, call.input(1), call.input(2)), call.attributes, y, 0, y.num_elements());
}

OpSample sample(Random& random) {
  OpSample call{.inputs = {Tensor::vector(draw_dims(random)), Tensor::scalar(draw(random, 0, int64_t{1} << 40)),
                           Tensor::scalar(draw(random, 0, 1000))},
                .attributes = {{"id", draw(random, 0, 100)}}};
  const bool is_bits = draw_bool(random);
  call.attributes.set("distribution", std::string(is_bits ? "bits" : draw_one_of(random, {"uniform", "normal"})));
  if (!is_bits && draw_bool(random)) call.attributes.set("dtype", DType::f64);
  return call;
}

Var draw_from(std::string_view distribution, Var shape, Var seed, Var step, DType dtype) {
  return apply(philox_def(), {shape, seed, step}, {{"distribution", std::string(distribution)}, {"dtype", dtype}});
}

}  // namespace

Var philox_bits(Var shape, Var seed, Var step) { return draw_from("bits", shape, seed, step, DType::u32); }

Var philox_uniform(Var shape, Var seed, Var step, DType dtype) {
  return draw_from("uniform", shape, seed, step, dtype);
}

Var philox_normal(Var shape, Var seed, Var step, DType dtype) { return draw_from("normal", shape, seed, step, dtype); }

const OpDef& philox_def() {
  static const OpDef def{
      .name = "philox",
      .doc = "y = random numbers by Philox4x32-10, a function of seed, step and id.",
      .inputs = {{"shape", "I", "[rank of y]: its extents."},
                 {"seed", "I", "One element: whose numbers."},
                 {"step", "I", "One element: the numbers of other steps are others."}},
      .outputs = {{"y", "T", "Shape `shape`."}},
      .types = {{"I", dtypes::kI64}, {"T", DTypeSet{DType::u32, DType::f32, DType::f64}}},
      .attributes = {{.name = "id",
                      .type = AttributeType::integer,
                      .doc = "Whose numbers, among nodes with one seed; 0 to 2^32 - 1. Filled in when not given.",
                      .required = true,
                      .unique = true},
                     {.name = "distribution",
                      .type = AttributeType::text,
                      .doc = "bits: any u32; uniform: in [0, 1); normal: mean 0, variance 1.",
                      .default_value = std::string("uniform"),
                      .allowed = {"bits", "uniform", "normal"}},
                     {"dtype", AttributeType::dtype, "u32 for bits; else f32 (when missing) or f64."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "drawn at random",
      .onnx = {{.name = "Philox", .since = 1, .domain = "autograph"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
