// flush_subnormals: weights next to 0 become 0.
//
// Weight decay takes the weights of channels that a network does not need towards 0 and leaves them there as subnormal
// numbers (below 2^-126), or so near to them that their products are: thousands of them in networks that read text.
// Many processors compute with a subnormal number a hundred times slower than with any other, and a convolution by such
// weights takes longer than all the rest.
//
// Holds before: f32 constants, as weights or addends of convolutions, products, batch normalizations and recurrent
// layers; beside those below 2^-100 stands a weight of at least 2^-30, so that what they add is no digit of the
// results, unless their inputs are 2^46 times as large as others. Tensors of tiny numbers alone keep them. Other
// readers of a constant keep theirs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <utility>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr float kWeight = 0x1p-30F;

// Not 0, and below 2^-100.
bool is_tiny(float x) {
  constexpr auto kEnd = std::bit_cast<uint32_t>(0x1p-100F);
  const uint32_t magnitude = std::bit_cast<uint32_t>(x) & 0x7fffffffU;
  return magnitude - 1 < kEnd - 1;
}

// As one sum over all elements, which compilers make of vectors: a model's weights are looked at whenever it is
// compiled.
bool has_tiny(std::span<const float> elements) {
  uint32_t count = 0;
  for (const float x : elements) count += is_tiny(x) ? 1 : 0;
  return count > 0;
}

bool has_weight(std::span<const float> elements) {
  return std::any_of(elements.begin(), elements.end(), [](float x) { return std::fabs(x) >= kWeight; });
}

// The inputs in which a node of this op takes weights and addends, from the first to behind the last.
struct Slots {
  size_t begin = 0, end = 0;
};

Slots weight_slots(const OpDef& op) {
  if (is_one_of(op, {&conv_def(), &conv_transpose_def()})) return {1, 3};
  if (&op == &matmul_def()) return {0, 2};
  if (&op == &gemm_def()) return {0, 3};
  if (is_one_of(op, {&batch_normalization_def(), &lstm_def(), &gru_def(), &rnn_def()})) return {1, 4};
  return {};
}

}  // namespace

std::unordered_set<const void*> flushed_weights(const Graph& graph) {
  std::unordered_set<const void*> addresses;
  for (const NodeId id : graph.nodes()) {
    const Slots slots = weight_slots(graph.node(id).op());
    for (size_t slot = slots.begin; slot < slots.end; ++slot) {
      const Tensor* weights = constant_f32(graph, graph.node(id).input(slot));
      if (weights) addresses.insert(weights->raw());
    }
  }
  return addresses;
}

bool flush_subnormals(Graph& graph, PassContext& context) {
  const auto is_known = [&](const Tensor& weights) {
    return context.flushed && context.flushed->contains(weights.raw());
  };
  return rewrite_nodes(graph, [&](NodeId id) {
    bool changed = false;
    const Slots slots = weight_slots(graph.node(id).op());
    for (size_t slot = slots.begin; slot < slots.end; ++slot) {
      const ValueId value = graph.node(id).input(slot);
      const Tensor* weights = constant_f32(graph, value);
      if (!weights || is_known(*weights)) continue;
      if (!has_tiny(weights->elements<float>()) || !has_weight(weights->elements<float>())) continue;
      Tensor flushed = weights->clone();
      float* elements = flushed.mutable_data<float>();
      std::replace_if(elements, elements + flushed.num_elements(), is_tiny, 0.0F);
      graph.set_input(id, slot, graph.add_constant(std::move(flushed), graph.value(value).name()));
      changed = true;
    }
    return changed;
  });
}

}  // namespace autograph
