// Ops whose output extents depend on the elements:
//   non_zero  positions of the elements that are not zero, one column each: [rank, n]; a scalar gives [0, n]
//   compress  the slices along `axis` (or the elements, without axis) for which `condition` is true; a condition
//             shorter than the axis leaves the rest out
#include <algorithm>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/index.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

std::vector<int64_t> non_zero_positions(const Tensor& x) {
  std::vector<int64_t> positions;
  const auto scan = [&]<class T>(TypeTag<T>) {
    const T* in = x.data<T>();
    for (int64_t i = 0; i < x.num_elements(); ++i) {
      if (!(in[i] == T{})) positions.push_back(i);
    }
  };
  using Types = Concat<NumericTypes, TypeList<bool, std::string, std::complex<float>, std::complex<double>>>;
  dispatch<Types>(x.dtype(), scan);
  return positions;
}

void infer_non_zero(InferContext& context) {
  const Shape& x = context.shape(0);
  context.set_output(0, DType::i64, {x.has_rank() ? Dim(x.rank()) : Dim::unknown(), Dim::unknown()});
}

std::vector<Datum> evaluate_non_zero(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const std::vector<int64_t> positions = non_zero_positions(x);
  const auto count = static_cast<int64_t>(positions.size());
  Tensor y = context.allocate(DType::i64, {x.rank(), count});
  int64_t* out = y.mutable_data<int64_t>();
  const std::vector<int64_t> strides = dense_strides(x.dims());
  for (size_t a = 0; a < strides.size(); ++a) {
    for (const int64_t position : positions) *out++ = position / strides[a] % x.dims()[a];
  }
  return {std::move(y)};
}

OpSample sample_non_zero(Random& random) {
  return {.inputs = {draw_tensor(random, DType::i32, draw_dims(random, 1), 0, 1)}};
}

void infer_compress(InferContext& context) {
  const Shape& x = context.shape(0);
  context.require_rank(1, 1);
  const auto* axis = context.attributes().find_as<int64_t>("axis");
  if (!axis) return context.set_output(0, context.dtype(0), Shape{Dim::unknown()});
  Shape y = x;
  if (x.has_rank()) y[context.normalized_axis(*axis, x.rank())] = Dim::unknown();
  context.set_output(0, context.dtype(0), std::move(y));
}

std::vector<Datum> evaluate_compress(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const auto condition = context.tensor(1).elements<bool>();
  const auto* axis = context.attributes().find_as<int64_t>("axis");
  Dims dims = axis ? x.dims() : Dims{x.num_elements()};
  const auto along = static_cast<size_t>(axis ? front_axis(*axis, x.rank()) : 0);
  const int64_t extent = dims[along];
  AG_CHECK_USER(static_cast<int64_t>(condition.size()) <= extent, ShapeError,
                "[compress] condition: expected at most {} elements, got {}", extent, condition.size());
  int64_t inner = 1;
  for (size_t a = along + 1; a < dims.size(); ++a) inner *= dims[a];
  int64_t outer = 1;
  for (size_t a = 0; a < along; ++a) outer *= dims[a];
  dims[along] = std::count(condition.begin(), condition.end(), true);
  Tensor y = context.allocate(x.dtype(), dims);
  int64_t at = 0;
  for (int64_t block = 0; block < outer; ++block) {
    for (size_t i = 0; i < condition.size(); ++i) {
      if (!condition[i]) continue;
      copy_run(x.view(), (block * extent + static_cast<int64_t>(i)) * inner, y.view(), at, inner);
      at += inner;
    }
  }
  return {std::move(y)};
}

OpSample sample_compress(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims)}};
  int64_t extent = result.inputs[0].tensor().num_elements();
  if (draw_bool(random)) {
    const int64_t axis = draw(random, -rank, rank - 1);
    result.attributes.set("axis", axis);
    extent = dims[static_cast<size_t>(front_axis(axis, rank))];
  }
  result.inputs.emplace_back(draw_tensor(random, DType::boolean, {draw(random, 1, extent)}));
  return result;
}

// As paddle2onnx writes masked_select: a condition of the shape of the input, which ONNX Runtime reads as a list.
std::vector<ValueId> import_compress(ForeignNode& node) {
  const Type condition = node.input_type(1);
  if (condition.is_tensor() && condition.shape().has_rank() && condition.shape().rank() != 1) {
    const ValueId everything = node.constant(Tensor::vector({-1}));
    node.inputs[1] = node.add(reshape_def(), {node.inputs[1], everything})[0];
  }
  return node.emit();
}

}  // namespace

Var non_zero(Var x) { return apply(non_zero_def(), {x}); }

Var compress(Var x, Var condition, int64_t axis) { return apply(compress_def(), {x, condition}, {{"axis", axis}}); }

const OpDef& non_zero_def() {
  static const OpDef def{
      .name = "non_zero",
      .doc = "Positions of the elements that are not zero, a column each, in row-major order.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "I", "[rank of x, number of such elements]."}},
      .types = {{"T", dtypes::kNumeric | dtypes::kBool | dtypes::kString | dtypes::kComplex}, {"I", dtypes::kI64}},
      .infer = infer_non_zero,
      .evaluate = evaluate_non_zero,
      .no_grad = "positions are not differentiable",
      .onnx = {{"NonZero", 9}},
      .sample = sample_non_zero,
  };
  return def;
}

const OpDef& compress_def() {
  static const OpDef def{
      .name = "compress",
      .doc = "Keeps the slices along axis, or the elements, for which condition is true.",
      .inputs = {{"input", "T", "Rank 1 or more."}, {"condition", "B", "[n], n no more than the extent."}},
      .outputs = {{"output", "T", "What is kept; one-dimensional without axis."}},
      .types = {{"T", dtypes::kAll}, {"B", dtypes::kBool}},
      .attributes = {{"axis", AttributeType::integer, "The axis to choose along; absent: over all elements."}},
      .infer = infer_compress,
      .evaluate = evaluate_compress,
      .vjp = moved_elements_vjp,
      .onnx = {{.name = "Compress", .since = 9, .import = import_compress}},
      .sample = sample_compress,
  };
  return def;
}

}  // namespace autograph
