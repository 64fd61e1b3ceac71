// top_k: the k largest (or smallest) elements along `axis`, best first, and their indices. Of equal elements the one
// with the lower index comes first; NaN counts as larger than any number. sorted = 0 leaves the order open: it is the
// same here.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "base/check.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const auto k = context.known_integers(1);
  context.require<ShapeError>(!k || k->size() == 1, "k", "expected one element, got " + to_string(context.shape(1)));
  Shape y = x;
  if (x.has_rank()) {
    const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), x.rank());
    if (k && (k->front() < 0 || (x[axis].is_known() && k->front() > x[axis].value()))) {
      context.fail<ValueError>("k", fmt::format("expected 0..{}, got {}", to_string(x[axis]), k->front()));
    }
    y[axis] = k ? Dim(k->front()) : Dim::unknown();
  }
  context.set_output(0, context.dtype(0), y);
  context.set_output(1, DType::i64, y);
}

template <class C>
bool larger(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(b)) return false;
    if (std::isnan(a)) return true;
  }
  return a > b;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const bool largest = call.attributes.flag("largest");
  int64_t axis = call.attributes.integer("axis");
  if (axis < 0) axis += x.rank();
  int64_t stride = 1;
  for (int64_t a = axis + 1; a < x.rank(); ++a) stride *= x.dim(a);
  const int64_t extent = x.dim(axis);
  const int64_t k = call.output(0).dim(axis);
  const int64_t rows = extent == 0 ? 0 : x.num_elements() / extent;
  std::vector<int64_t> order(static_cast<size_t>(extent));
  dispatch<NumericTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    using C = ComputeType<T>;
    for (int64_t row = 0; row < rows; ++row) {
      const T* in = x.data<T>() + row / stride * extent * stride + row % stride;
      const int64_t to = row / stride * k * stride + row % stride;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const auto va = static_cast<C>(in[a * stride]);
        const auto vb = static_cast<C>(in[b * stride]);
        return largest ? larger(va, vb) : larger(vb, va);
      });
      for (int64_t i = 0; i < k; ++i) {
        const int64_t from = order[static_cast<size_t>(i)];
        call.output(0).mutable_data<T>()[to + i * stride] = in[from * stride];
        if (call.has_output(1)) call.output(1).mutable_data<int64_t>()[to + i * stride] = from;
      }
    }
  });
}

// k was an attribute before opset 10.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("k", 1);
  return node.emit();
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, 0, rank - 1);
  const int64_t k = draw(random, 1, dims[static_cast<size_t>(axis)]);
  return {.inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector({k})},
          .attributes = {{"axis", draw_bool(random) ? axis : axis - rank},
                         {"largest", draw(random, 0, 1)},
                         {"sorted", draw(random, 0, 1)}}};
}

void vjp(VjpContext& c) {
  if (!c.has_gy(0)) return c.set_none(0);
  const Var gradient = c.gy(0);
  const Var indices = c.num_outputs() > 1 ? c.out(1) : c.with_outputs(2)[1];
  c.set(0, scatter_elements(filled_like(c.in(0), 0), indices, gradient, c.attributes().integer("axis"), "add"));
}

}  // namespace

std::pair<Var, Var> top_k(Var x, int64_t k, int64_t axis, bool largest) {
  const std::vector<Var> outputs = apply_all(top_k_def(), {x, constant_like(x, Tensor::vector({k}))},
                                             {{"axis", axis}, {"largest", int64_t{largest}}});
  return {outputs[0], outputs[1]};
}

const OpDef& top_k_def() {
  static const OpDef def{
      .name = "top_k",
      .doc = "values, indices = the k largest or smallest elements along axis, best first.",
      .inputs = {{"x", "T", "Any shape of rank 1 or more."}, {"k", "I", "[1]: how many."}},
      .outputs = {{"values", "T", "Shape of x with extent k along axis."}, {"indices", "I", "Shape of values."}},
      .types = {{"T", dtypes::kNumeric}, {"I", dtypes::kI64}},
      .attributes = {{"axis", AttributeType::integer, "Where to search; negative counts from the end.", int64_t{-1}},
                     {"largest", AttributeType::integer, "1: the largest; 0: the smallest.", int64_t{1}},
                     {"sorted", AttributeType::integer, "1: best first; 0: in any order.", int64_t{1}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .onnx = {{.name = "TopK", .import = import_onnx, .export_since = 11}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
