// reshape: the same elements, in row-major order, under another shape. In `shape`, -1 (at most once) is worked out from
// the number of elements and 0 copies the input's extent at that position, unless `allowzero` makes it a real 0.
#include <algorithm>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/sample.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// The product of dims with numbers and symbols apart, so that symbols on both sides cancel.
struct Factors {
  int64_t number = 1;
  std::vector<Dim> symbols = {};
  bool is_certain = true;  // false when an unknown dim takes part

  explicit Factors(const std::vector<Dim>& dims) {
    for (const Dim& d : dims) {
      if (d.is_known()) {
        number = checked_mul(number, d.value(), "reshape");
      } else if (d.is_unknown()) {
        is_certain = false;
      } else {
        symbols.push_back(d);
      }
    }
  }
};

// The extent that -1 stands for: product(input) / product(others), as far as it can be told. Both without copied
// extents of 0, which say nothing about it.
Dim inferred_extent(const InferContext& context, std::vector<Dim> target, size_t inferred) {
  const Shape& x = context.shape(0);
  std::vector<Dim> given = x.dims();
  target[inferred] = 1;
  if (!context.attributes().flag("allowzero")) {
    for (size_t i = 0; i < std::min(given.size(), target.size()); ++i) {
      if (i != inferred && target[i].is_known() && target[i].value() == 0) given[i] = target[i] = 1;
    }
  }
  Factors have(given);
  const Factors need(target);
  if (!have.is_certain || !need.is_certain) return Dim::unknown();
  for (const Dim& symbol : need.symbols) {
    const auto it = std::find(have.symbols.begin(), have.symbols.end(), symbol);
    if (it == have.symbols.end()) return Dim::unknown();
    have.symbols.erase(it);
  }
  if (need.number == 0) {
    context.fail<ShapeError>("shape", fmt::format("-1 is ambiguous next to an extent of 0 (input {})", to_string(x)));
  }
  if (have.number % need.number != 0) {
    if (!have.symbols.empty()) return Dim::unknown();
    context.fail<ShapeError>("shape", fmt::format("expected {} elements to divide into groups of {} (input {})",
                                                  have.number, need.number, to_string(x)));
  }
  Dim extent = have.number / need.number;
  for (const Dim& symbol : have.symbols) extent = extent * symbol;
  return extent;
}

// The output dims, with the position of -1 (or -1 when there is none).
std::vector<Dim> copied_dims(const InferContext& context, const std::vector<int64_t>& target, int64_t& inferred) {
  const Shape& x = context.shape(0);
  const bool allow_zero = context.attributes().flag("allowzero");
  std::vector<Dim> dims(target.size());
  inferred = -1;
  for (size_t i = 0; i < target.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    if (target[i] < -1) {
      context.fail<ShapeError>("shape", fmt::format("expected extents of -1 or more, got {}", bracketed(target)));
    } else if (target[i] == -1) {
      context.require<ShapeError>(inferred < 0, "shape", fmt::format("expected one -1, got {}", bracketed(target)));
      inferred = axis;
    } else if (target[i] == 0 && !allow_zero) {
      if (!x.has_rank()) continue;
      context.require<ShapeError>(axis < x.rank(), "shape",
                                  fmt::format("0 at position {} has no extent to copy (input {})", axis, to_string(x)));
      dims[i] = x[axis];
    } else {
      dims[i] = target[i];
    }
  }
  return dims;
}

void infer(InferContext& context) {
  const std::optional<int64_t> length = list_length(context, 1);
  const auto target = context.known_integers(1);
  if (!target) {
    context.set_output(0, context.dtype(0), length ? Shape::of_rank(*length) : Shape::unknown());
    return;
  }
  const Shape& x = context.shape(0);
  int64_t inferred = -1;
  std::vector<Dim> dims = copied_dims(context, *target, inferred);
  if (inferred >= 0) {
    const auto slot = static_cast<size_t>(inferred);
    if (x.has_rank()) dims[slot] = inferred_extent(context, dims, slot);
  }
  const Shape shape(std::move(dims));
  const auto count = x.is_static() ? x.num_elements() : std::nullopt;
  if (count && shape.is_static() && shape.num_elements() != count) {
    context.fail<ShapeError>("shape", fmt::format("expected {} elements, got {} (input {}, shape {})", *count,
                                                  *shape.num_elements(), to_string(x), bracketed(*target)));
  }
  context.set_output(0, context.dtype(0), shape);
}

void reference(const OpCall& call) { copy_all(call.input(0), call.output(0)); }

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  Dims target(dims.rbegin(), dims.rend());
  if (draw_bool(random)) target.insert(target.begin() + draw(random, 0, static_cast<int64_t>(target.size())), 1);
  if (!target.empty() && draw_bool(random)) {
    target[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(target.size()) - 1))] = -1;
  }
  return {.inputs = {draw_tensor(random, DType::f32, dims), Tensor::vector(target)},
          .attributes = {{"allowzero", draw(random, 0, 1)}}};
}

std::vector<ValueId> import_onnx(ForeignNode& node) {
  node.integers_to_input("shape", 1);  // an attribute before opset 5
  return node.emit();
}

}  // namespace

Var reshape(Var x, Var shape, bool allow_zero) {
  return apply(reshape_def(), {x, shape}, {{"allowzero", int64_t{allow_zero}}});
}

Var reshape(Var x, const std::vector<int64_t>& shape) { return reshape(x, constant_like(x, Tensor::vector(shape))); }

const OpDef& reshape_def() {
  static const OpDef def{
      .name = "reshape",
      .doc = "The elements of data, in order, under another shape; -1 is worked out and 0 copies an extent.",
      .inputs = {{"data", "T", "Any shape."},
                 {"shape", "I", "[rank of the output]: its extents; at most one -1; 0 copies the input's extent."}},
      .outputs = {{"reshaped", "T", "As `shape` says."}},
      .types = {{"T", dtypes::kAll}, {"I", dtypes::kI64}},
      .attributes = {{"allowzero", AttributeType::integer, "1: a 0 in shape is an extent of 0.", int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .vjp = [](VjpContext& c) { c.set(0, reshape_as(c.gy(0), c.in(0))); },
      .traits = {.view = true, .moves = true},
      .onnx = {{.name = "Reshape", .import = import_onnx, .export_since = 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
