// transpose: y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]; without `perm` the axes are reversed.
#include <numeric>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"
#include "ops/shape/strided_parts.h"

namespace autograph {
namespace {

std::vector<int64_t> permutation(const Attributes& attributes, int64_t rank) {
  if (const auto* perm = attributes.find_as<std::vector<int64_t>>("perm")) return *perm;
  std::vector<int64_t> reversed(static_cast<size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

void require_permutation(const InferContext& context, const std::vector<int64_t>& perm, int64_t rank) {
  std::vector<bool> seen(perm.size(), false);
  bool legal = static_cast<int64_t>(perm.size()) == rank;
  for (const int64_t axis : perm) {
    if (axis < 0 || axis >= rank || !legal || seen[static_cast<size_t>(axis)]) {
      legal = false;
      break;
    }
    seen[static_cast<size_t>(axis)] = true;
  }
  if (!legal) {
    context.fail<ValueError>("perm", fmt::format("expected a permutation of {} axes, got {}", rank, bracketed(perm)));
  }
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  if (!x.has_rank()) {
    const auto* perm = context.attributes().find_as<std::vector<int64_t>>("perm");
    const auto rank = perm ? std::optional(static_cast<int64_t>(perm->size())) : std::nullopt;
    return context.set_output(0, context.dtype(0), rank ? Shape::of_rank(*rank) : Shape::unknown());
  }
  const std::vector<int64_t> perm = permutation(context.attributes(), x.rank());
  require_permutation(context, perm, x.rank());
  std::vector<Dim> dims;
  for (const int64_t axis : perm) dims.push_back(x[axis]);
  context.set_output(0, context.dtype(0), Shape(std::move(dims)));
}

}  // namespace

Strided transposed_part(const OpCall& call) {
  const TensorView x = call.input(0);
  const std::vector<int64_t> strides = dense_strides(x.dims());
  Strided source;
  for (const int64_t axis : permutation(call.attributes, x.rank())) {
    source.strides.push_back(strides[static_cast<size_t>(axis)]);
  }
  return source;
}

namespace {

void reference(const OpCall& call) {
  const TensorView y = call.output(0);
  copy_strided(call.input(0), transposed_part(call), y, {0, dense_strides(y.dims())}, y.dims());
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  OpSample result{.inputs = {draw_tensor(random, DType::f32, dims)}};
  if (draw_bool(random)) {
    std::vector<int64_t> perm(dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i) {
      std::swap(perm[i - 1], perm[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(i) - 1))]);
    }
    result.attributes.set("perm", perm);
  }
  return result;
}

void vjp(VjpContext& c) {
  Attributes attributes;
  if (const auto* perm = c.attributes().find_as<std::vector<int64_t>>("perm")) {
    std::vector<int64_t> back(perm->size());
    for (size_t k = 0; k < perm->size(); ++k) back[static_cast<size_t>((*perm)[k])] = static_cast<int64_t>(k);
    attributes.set("perm", back);
  }
  c.set(0, apply(c.op(), {c.gy(0)}, attributes));
}

}  // namespace

Var transpose(Var x, const std::vector<int64_t>& perm) { return apply(transpose_def(), {x}, {{"perm", perm}}); }

const OpDef& transpose_def() {
  static const OpDef def{
      .name = "transpose",
      .doc = "Permutes the axes: output axis k is input axis perm[k].",
      .inputs = {{"data", "T", "Any shape."}},
      .outputs = {{"transposed", "T", "Permuted shape."}},
      .types = {{"T", dtypes::kAll}},
      .attributes = {{"perm", AttributeType::integers, "A permutation of all axes; reversed order when absent."}},
      .infer = infer,
      .reference = reference,
      .vjp = vjp,
      .traits = {.moves = true},
      .onnx = {{"Transpose"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
