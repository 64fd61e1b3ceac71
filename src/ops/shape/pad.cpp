// pad: adds (or with negative numbers removes) elements at both ends of the given axes. `pads` lists all begins, then
// all ends. What is added:
//   constant  `constant_value`, or 0
//   edge      the nearest element
//   reflect   the mirror image, not repeating the edge, over and over when the pad is longer than the input
//   wrap      the input again and again
// Negative pads are applied first. The last three modes need at least one element to take from.
#include <algorithm>
#include <numeric>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"
#include "ops/shape/pad_positions.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

Dim padded_extent(const InferContext& context, const Dim& extent, int64_t begin, int64_t end) {
  if (!extent.is_known()) {
    const int64_t sum = checked_add(begin, end, "pad");
    return sum >= 0 ? extent + Dim(sum) : Dim::unknown();
  }
  const int64_t kept =
      checked_add(checked_add(extent.value(), std::min<int64_t>(begin, 0), "pad"), std::min<int64_t>(end, 0), "pad");
  if (kept < 0) {
    context.fail<ShapeError>(
        "pads", fmt::format("expected to remove at most {} elements, got pads {} and {}", extent.value(), begin, end));
  }
  const int64_t added = checked_add(std::max<int64_t>(begin, 0), std::max<int64_t>(end, 0), "pad");
  if (kept == 0 && added > 0 && context.attributes().text("mode") != "constant") {
    context.fail<ShapeError>(
        "pads", fmt::format("expected an element to repeat, got extent 0 after pads {} and {}", begin, end));
  }
  return checked_add(kept, added, "pad");
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const DType dtype = context.dtype(0);
  const auto pads_length = list_length(context, 1);
  if (!x.has_rank()) return context.set_output(0, dtype, x);
  const auto pads = context.known_integers(1);
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (context.has_input(3)) {
    list_length(context, 3);
    const auto listed = context.known_integers(3);
    if (!listed) return context.set_output(0, dtype, Shape::of_rank(x.rank()));
    axes = normalized_axes(context, *listed, x.rank());
  }
  const auto count = static_cast<int64_t>(axes.size());
  if (pads_length && *pads_length != 2 * count) {
    context.fail<ShapeError>("pads", fmt::format("expected {} values, two per axis, got {}", 2 * count, *pads_length));
  }
  Shape y = x;
  for (size_t k = 0; k < axes.size(); ++k) {
    Dim& extent = y[axes[k]];
    extent = pads ? padded_extent(context, extent, (*pads)[k], (*pads)[k + axes.size()]) : Dim::unknown();
  }
  context.set_output(0, dtype, std::move(y));
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const std::vector<std::vector<int64_t>> positions =
      pad_positions(call.attributes.text("mode"), x.dims(), y.dims(), call.input(1), call.input(3));
  const std::vector<int64_t> strides = dense_strides(x.dims());
  dispatch_storage(x.dtype(), [&]<class T>() {
    const T fill = call.input(2).is_present() ? *call.input(2).data<T>() : T{};
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    std::vector<size_t> index(strides.size(), 0);
    for (int64_t i = 0; i < y.num_elements(); ++i) {
      int64_t from = 0;
      for (size_t a = 0; a < index.size() && from >= 0; ++a) {
        const int64_t position = positions[a][index[a]];
        from = position < 0 ? -1 : from + position * strides[a];
      }
      out[i] = from < 0 ? fill : in[from];
      for (size_t a = index.size(); a-- > 0;) {
        if (++index[a] < positions[a].size()) break;
        index[a] = 0;
      }
    }
  });
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> axes, begins, ends;
  const bool list_axes = draw_bool(random);
  for (int64_t a = 0; a < rank; ++a) {
    if (list_axes && draw_bool(random)) continue;
    axes.push_back(draw_bool(random) ? a : a - rank);
    begins.push_back(draw(random, dims[static_cast<size_t>(a)] > 1 ? -1 : 0, 3));
    ends.push_back(draw(random, 0, 3));
  }
  std::vector<int64_t> pads = begins;
  pads.insert(pads.end(), ends.begin(), ends.end());
  OpSample result{
      .inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector(pads)},
      .attributes = {{"mode", std::string(draw_one_of<const char*>(random, {"constant", "edge", "reflect", "wrap"}))}}};
  result.inputs.emplace_back(draw_bool(random) ? Datum(draw_tensor(random, DType::f32, {})) : Datum());
  if (list_axes) result.inputs.emplace_back(Tensor::vector(axes));
  return result;
}

// Attributes became inputs with opset 11; the value was an f32 attribute whatever the dtype.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("pads", 1);
  if (const auto* value = node.attributes.find_as<float>("value")) {
    const DType dtype = node.input_type(0).dtype();
    Tensor tensor;
    try_dispatch(NumericTypes{}, dtype,
                 [&]<class T>(TypeTag<T>) { tensor = Tensor::scalar<T>(static_cast<T>(*value)); });
    if (tensor.is_present()) node.set_input(2, node.constant(std::move(tensor)));
    node.attributes.erase("value");
  }
  return node.emit();
}

// What was added is cut off, what was cut off gets zeros. All that comes from the constant flows to it.
void vjp(VjpContext& c) {
  if (c.attributes().text("mode") != "constant") {
    const Var positions = apply(c.op(), {linear_positions(c.in(0)), c.in(1), Var(), c.in(3)}, c.attributes());
    if (c.wants(0)) c.set(0, add_at(c.in(0), positions, c.gy(0)));
    return c.set_none(2);
  }
  std::vector<Var> inputs{c.gy(0), neg(c.in(1)), Var(), c.in(3)};
  const Var inner = apply(c.op(), inputs, c.attributes());
  if (c.wants(0)) c.set(0, inner);
  if (c.wants(2)) c.set(2, reshape_as(reduce_sum(c.gy(0)) - reduce_sum(inner), c.in(2)));
}

}  // namespace

Var pad(Var x, const std::vector<int64_t>& pads, const std::string& mode, Var constant_value) {
  return apply(pad_def(), {x, constant_like(x, Tensor::vector(pads)), constant_value}, {{"mode", mode}});
}

const OpDef& pad_def() {
  static const OpDef def{
      .name = "pad",
      .doc = "Adds elements at both ends of axes: a constant, the edge, the mirror image or the input again.",
      .inputs = {{"data", "T", "Any shape."},
                 {"pads", "I", "[2 * axes]: elements to add before, then behind each axis; negative: to remove."},
                 {"constant_value", "T", "One element, for mode constant; 0 when not given.", Arity::optional},
                 {"axes", "A", "[n]: the axes that pads is about; all when not given.", Arity::optional}},
      .outputs = {{"output", "T", "Extents plus pads."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}, {"A", dtypes::kIndex}},
      .attributes = {{.name = "mode",
                      .type = AttributeType::text,
                      .doc = "What is added.",
                      .default_value = "constant",
                      .allowed = {"constant", "reflect", "edge", "wrap"}}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .onnx = {{.name = "Pad", .import = import_onnx, .export_since = 19}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
