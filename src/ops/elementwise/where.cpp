// where: y = condition ? a : b, with broadcasting, for every dtype. Copies bits, so NaN payloads stay.
#include <cstring>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

void where_strings(const Attributes&, std::span<const void* const> inputs, std::span<const int64_t> steps, void* output,
                   int64_t count) {
  const bool* condition = static_cast<const bool*>(inputs[0]);
  const auto* a = static_cast<const std::string*>(inputs[1]);
  const auto* b = static_cast<const std::string*>(inputs[2]);
  auto* out = static_cast<std::string*>(output);
  for (int64_t i = 0; i < count; ++i) out[i] = condition[i * steps[0]] ? a[i * steps[1]] : b[i * steps[2]];
}

template <size_t Size>
void where_bytes(const Attributes&, std::span<const void* const> inputs, std::span<const int64_t> steps, void* output,
                 int64_t count) {
  constexpr auto kSize = static_cast<int64_t>(Size);
  const bool* condition = static_cast<const bool*>(inputs[0]);
  const char* a = static_cast<const char*>(inputs[1]);
  const char* b = static_cast<const char*>(inputs[2]);
  char* out = static_cast<char*>(output);
  for (int64_t i = 0; i < count; ++i) {
    const char* from = condition[i * steps[0]] ? a + i * steps[1] * kSize : b + i * steps[2] * kSize;
    std::memcpy(out + i * kSize, from, Size);
  }
}

ScalarLoop where_loop(std::span<const DType>, DType output) {
  if (output == DType::string) return where_strings;
  switch (element_size(output)) {
    case 1: return where_bytes<1>;
    case 2: return where_bytes<2>;
    case 4: return where_bytes<4>;
    case 8: return where_bytes<8>;
    case 16: return where_bytes<16>;
    default: return nullptr;
  }
}

void infer(InferContext& context) {
  const Shape shapes[] = {context.shape(0), context.shape(1), context.shape(2)};
  context.set_output(0, context.dtype(1), broadcast_shapes(context, shapes));
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::boolean, draw_broadcastable(random, dims)),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, dims)),
                     draw_tensor(random, DType::f32, dims)}};
}

void vjp(VjpContext& c) {
  const Var zero = scalar_like(c.gy(0), 0);
  if (c.wants(1)) c.set(1, where(c.in(0), c.gy(0), zero));
  if (c.wants(2)) c.set(2, where(c.in(0), zero, c.gy(0)));
}

}  // namespace

Var where(Var condition, Var x, Var y) { return apply(where_def(), {condition, x, y}); }

const OpDef& where_def() {
  static const OpDef def{
      .name = "where",
      .doc = "y = condition ? a : b.",
      .inputs = {{"condition", "B", "Any shape."},
                 {"a", "T", "Taken where condition is true; a shape that broadcasts with the others."},
                 {"b", "T", "Taken where condition is false; a shape that broadcasts with the others."}},
      .outputs = {{"y", "T", "The shape to which all inputs broadcast."}},
      .types = {{"B", dtypes::kBool}, {"T", dtypes::kAll}},
      .infer = infer,
      .scalar = where_loop,
      .vjp = vjp,
      .traits = {.elementwise = true},
      .onnx = {{.name = "Where", .since = 9}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
