// split: cuts a tensor along `axis` into pieces of the sizes in `split`, or into `num_outputs` pieces of
// ceil(extent / num_outputs) of which the last may be smaller.
#include <algorithm>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"
#include "ops/shape/strided_parts.h"

namespace autograph {
namespace {

// Extents of the pieces along the axis, or nothing while they are open.
std::optional<std::vector<Dim>> piece_extents(const InferContext& context, const Dim& extent) {
  const auto count = static_cast<int64_t>(context.num_outputs());
  if (!context.has_input(1)) {
    if (!extent.is_known()) return count == 1 ? std::optional(std::vector<Dim>{extent}) : std::nullopt;
    const int64_t size = extent.value() / count + (extent.value() % count != 0);
    std::vector<Dim> extents;
    for (int64_t k = 0; k < count; ++k) extents.push_back(std::clamp<int64_t>(extent.value() - k * size, 0, size));
    return extents;
  }
  const auto sizes = context.known_integers(1);
  if (!sizes) return std::nullopt;
  if (static_cast<int64_t>(sizes->size()) != count) {
    context.fail<ValueError>("split", fmt::format("expected {} sizes, one per output, got {}", count, sizes->size()));
  }
  int64_t sum = 0;
  for (const int64_t size : *sizes) {
    context.require<ValueError>(size >= 0, "split", "expected sizes of 0 or more");
    sum = checked_add(sum, size, "split");
  }
  if (extent.is_known() && sum != extent.value()) {
    context.fail<ValueError>(
        "split", fmt::format("expected a sum of {}, got {} from {}", extent.value(), sum, bracketed(*sizes)));
  }
  return std::vector<Dim>(sizes->begin(), sizes->end());
}

void infer(InferContext& context) {
  const Attributes& attributes = context.attributes();
  const auto count = static_cast<int64_t>(context.num_outputs());
  context.require<ValueError>(count > 0, "outputs", "expected at least one");
  if (const auto* declared = attributes.find_as<int64_t>("num_outputs")) {
    context.require<ValueError>(!context.has_input(1), "num_outputs", "expected it alone, got `split` as well");
    if (*declared != count) {
      context.fail<ValueError>("num_outputs",
                               fmt::format("expected {}, the number of outputs, got {}", count, *declared));
    }
  }
  const Shape& x = context.shape(0);
  std::optional<std::vector<Dim>> extents;
  int64_t axis = 0;
  if (x.has_rank()) {
    axis = context.normalized_axis(attributes.integer("axis"), x.rank());
    extents = piece_extents(context, x[axis]);
  }
  for (size_t k = 0; k < context.num_outputs(); ++k) {
    Shape y = x;
    if (x.has_rank()) y[axis] = extents ? (*extents)[k] : Dim::unknown();
    context.set_output(k, context.dtype(0), std::move(y));
  }
}

}  // namespace

std::vector<Strided> split_parts(const OpCall& call) {
  const TensorView x = call.input(0);
  const int64_t axis = front_axis(call.attributes.integer("axis"), x.rank());
  const std::vector<int64_t> strides = dense_strides(x.dims());
  std::vector<Strided> parts;
  int64_t start = 0;
  for (const TensorView& y : call.outputs) {
    parts.push_back({start, strides});
    start += y.dim(axis) * strides[static_cast<size_t>(axis)];
  }
  return parts;
}

namespace {

void reference(const OpCall& call) {
  const std::vector<Strided> parts = split_parts(call);
  for (size_t k = 0; k < parts.size(); ++k) {
    const TensorView& y = call.outputs[k];
    copy_strided(call.input(0), parts[k], y, {0, dense_strides(y.dims())}, y.dims());
  }
}

OpSample sample(Random& random) {
  Dims dims = draw_dims(random, 1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  const int64_t count = draw(random, 1, 4);
  std::vector<int64_t> sizes;
  int64_t sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += sizes.emplace_back(draw(random, 0, 3));
  const bool explicit_sizes = draw_bool(random);
  if (explicit_sizes) dims[static_cast<size_t>(front_axis(axis, rank))] = sum;
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims)},
                  .attributes = {{"axis", axis}},
                  .num_outputs = static_cast<int>(count)};
  if (explicit_sizes) {
    result.inputs.emplace_back(Tensor::vector(sizes));
  } else {
    result.attributes.set("num_outputs", count);
  }
  return result;
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("split", 1);  // an attribute before opset 13
  const bool has_split = node.has_input(1);
  if (!has_split && node.opset < 18) {
    const Type type = node.input_type(0);
    const int64_t axis = node.attributes.get_or<int64_t>("axis", 0);
    const auto parts = static_cast<int64_t>(node.num_outputs);
    if (type.is_tensor() && type.shape().has_rank() && axis >= -type.shape().rank() && axis < type.shape().rank()) {
      const int64_t extent = type.shape()[front_axis(axis, type.shape().rank())].value_or(0);
      AG_CHECK_USER(parts > 0 && extent % parts == 0, ShapeError,
                    "[split] outputs: expected {} equal parts, got extent {} (node \"{}\")", parts, extent,
                    node.provenance.to_string());
    }
  }
  if (!has_split && !node.attributes.contains("num_outputs")) {
    node.attributes.set("num_outputs", static_cast<int64_t>(node.num_outputs));
  }
  return node.emit();
}

// Since opset 18 the number of pieces must be written down when their sizes are not.
void export_onnx(ExportNode& to) {
  if (to.node.input(1).is_valid() || to.opset < 18) {
    to.attributes.erase("num_outputs");
  } else {
    to.attributes.set("num_outputs", static_cast<int64_t>(to.node.outputs().size()));
  }
}

void vjp(VjpContext& c) {
  std::vector<Var> pieces;
  for (size_t k = 0; k < c.num_outputs(); ++k) pieces.push_back(c.gy(k));
  c.set(0, concat(pieces, c.attributes().integer("axis")));
}

}  // namespace

std::vector<Var> split(Var x, const std::vector<int64_t>& sizes, int64_t axis) {
  return apply_all(split_def(), {x, constant_like(x, Tensor::vector(sizes))}, {{"axis", axis}},
                   static_cast<int>(sizes.size()));
}

std::vector<Var> split_evenly(Var x, int64_t num_outputs, int64_t axis) {
  return apply_all(split_def(), {x}, {{"axis", axis}, {"num_outputs", num_outputs}}, static_cast<int>(num_outputs));
}

const OpDef& split_def() {
  static const OpDef def{
      .name = "split",
      .doc =
          "Cuts a tensor along axis into pieces of given sizes, or into equal ones of which the last may be smaller.",
      .inputs = {{"input", "T", "Rank 1 or more."},
                 {"split", "I", "[number of outputs]: extents of the pieces; their sum is the extent.",
                  Arity::optional}},
      .outputs = {{"outputs", "T", "The pieces, in order.", Arity::variadic}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"axis", AttributeType::integer, "The axis to cut along.", int64_t{0}},
                     {"num_outputs", AttributeType::integer, "Number of pieces when split is not given."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .onnx = {{.name = "Split", .import = import_onnx, .export_node = export_onnx, .export_since = 13}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
