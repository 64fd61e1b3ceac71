// philox: random numbers as a function of a seed, a step and the op's id, so that they are the same on every device and
// for every number of threads, and a recomputed node draws what it drew before.
//
// Element i of `bits` is word i % 4 of block i / 4 of the op's stream (philox.h). `uniform` is one word an element in
// f32, two in f64. `normal` is the Box-Muller transform of neighbouring uniform numbers u, v: sqrt(-2 log(1 - u)) times
// cos(2 pi v) and sin(2 pi v), in f64, rounded once.
#include <cmath>
#include <limits>
#include <numbers>

#include "autograph/op_def.h"
#include "autograph/ops/random.h"
#include "base/check.h"
#include "ops/random/philox.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "tensor/element_types.h"

namespace autograph {

const OpDef& philox_def();
namespace {

constexpr int64_t kMaxId = std::numeric_limits<uint32_t>::max();
constexpr int64_t kWordsPerBlock = 4;

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

PhiloxStream stream_of(const OpCall& call) {
  return {static_cast<uint64_t>(*call.input(1).data<int64_t>()), static_cast<uint64_t>(*call.input(2).data<int64_t>()),
          static_cast<uint32_t>(call.attributes.integer("id"))};
}

// Calls `take(i, word)` for the words of blocks 0, 1, ... in order.
template <class Take>
void for_words(const PhiloxStream& stream, int64_t count, const Take& take) {
  AG_CHECK_USER((count - 1) / kWordsPerBlock <= kMaxId, BudgetError,
                "[philox] shape: {} words are more than a step has", count);
  for (int64_t first = 0; first < count; first += kWordsPerBlock) {
    const auto words = stream.block(static_cast<uint32_t>(first / kWordsPerBlock));
    for (int64_t k = 0; k < std::min(kWordsPerBlock, count - first); ++k)
      take(first + k, words[static_cast<size_t>(k)]);
  }
}

// Calls `take(i, u)` for uniform numbers as precise as a T.
template <class T, class Take>
void for_uniform(const PhiloxStream& stream, int64_t count, const Take& take) {
  if constexpr (sizeof(T) == 4) {
    for_words(stream, count, [&](int64_t i, uint32_t word) { take(i, unit_interval(word)); });
  } else {
    uint32_t high = 0;
    for_words(stream, 2 * count, [&](int64_t i, uint32_t word) {
      if (i % 2 == 1) take(i / 2, unit_interval(high, word));
      high = word;
    });
  }
}

template <class T>
void fill_normal(const PhiloxStream& stream, T* y, int64_t count) {
  double radius = 0;
  // An odd count needs the second number of its last pair, too.
  for_uniform<T>(stream, count + count % 2, [&](int64_t i, double u) {
    if (i % 2 == 0) {
      radius = std::sqrt(-2 * std::log(1 - u));
      return;
    }
    const double angle = 2 * std::numbers::pi * u;
    y[i - 1] = static_cast<T>(radius * std::cos(angle));
    if (i < count) y[i] = static_cast<T>(radius * std::sin(angle));
  });
}

void reference(const OpCall& call) {
  const PhiloxStream stream = stream_of(call);
  const TensorView y = call.output(0);
  const int64_t count = y.num_elements();
  const std::string& distribution = call.attributes.text("distribution");
  if (distribution == "bits") {
    for_words(stream, count, [&](int64_t i, uint32_t word) { y.mutable_data<uint32_t>()[i] = word; });
    return;
  }
  dispatch<TypeList<float, double>>(y.dtype(), [&]<class T>(TypeTag<T>) {
    T* elements = y.mutable_data<T>();
    if (distribution == "normal") return fill_normal(stream, elements, count);
    for_uniform<T>(stream, count, [&](int64_t i, double u) { elements[i] = static_cast<T>(u); });
  });
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
