#include "prove/verify/exact/exact_op.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"
#include "ops/broadcast_offsets.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace {

// Among integers a function gives small integers as well.
uint64_t result_of(const ExactCall& call, uint64_t value) {
  return call.options.functions == Functions::opaque ? value : field_of(static_cast<int64_t>(value % 19) - 9);
}

// Operands of a commutative op in an order of their own.
void call_opaque_elementwise(const ExactCall& call) {
  const OpaqueFunction function(call.op, call.attributes);
  const BroadcastWalk walk(call.inputs, call.outputs[0].dims());
  std::vector<uint64_t> arguments;
  for (int64_t i = 0; i < call.outputs[0].num_elements(); ++i) {
    arguments.clear();
    for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
      if (!call.has_input(slot)) continue;
      const Tensor& input = call.inputs[slot];
      const int64_t position = walk.position(slot, i);
      const bool field = input.dtype() == DType::u64;
      arguments.push_back(field ? input.data<uint64_t>()[position] : static_cast<uint64_t>(input.to_i64()[position]));
    }
    if (call.op.traits.commutative) std::sort(arguments.begin(), arguments.end());
    call.out()[i] = result_of(call, function(arguments));
  }
}

}  // namespace

const Tensor& ExactCall::input(size_t slot) const {
  static const Tensor kAbsent;
  return slot < inputs.size() ? inputs[slot] : kAbsent;
}

int64_t integer_of(uint64_t a) {
  constexpr int64_t kLargest = int64_t{1} << 48;
  const int64_t n = signed_of(a);
  AG_CHECK_USER(n >= -kLargest && n <= kLargest, UnsupportedError,
                "[rules] a number beyond +-2^48 modulo the prime, where integers are wanted: it has no sign");
  return n;
}

OpaqueFunction::OpaqueFunction(const OpDef& op, const Attributes& attributes,
                               std::span<const std::string_view> except) {
  Hasher hasher;
  hasher.add(op.name);
  for (const auto& [name, value] : attributes) {
    if (std::find(except.begin(), except.end(), name) != except.end()) continue;
    hasher.add(std::string_view(name));
    add_attribute(hasher, value);
  }
  key_ = hasher.finish().low;
}

uint64_t OpaqueFunction::operator()(std::span<const uint64_t> arguments) const {
  Hasher hasher;
  hasher.add(static_cast<int64_t>(key_));
  hasher.add(hash_bytes(arguments.data(), arguments.size_bytes()));
  return hasher.finish().low % kPrime;
}

void call_opaque(const ExactCall& call) {
  if (call.op.traits.elementwise && call.outputs.size() == 1) return call_opaque_elementwise(call);
  const OpaqueFunction function(call.op, call.attributes);
  Hasher all;
  for (const Tensor& input : call.inputs) all.add(input.is_present() ? input.content_hash() : Hash128{});
  for (size_t slot = 0; slot < call.outputs.size(); ++slot) {
    for (int64_t i = 0; i < call.outputs[slot].num_elements(); ++i) {
      const std::array arguments{all.finish().low, static_cast<uint64_t>(slot), static_cast<uint64_t>(i)};
      call.out(slot)[i] = result_of(call, function(arguments));
    }
  }
}

BroadcastWalk::BroadcastWalk(std::span<const Tensor> inputs, const Dims& dims) {
  positions_.resize(inputs.size());
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!inputs[slot].is_present() || inputs[slot].rank() > static_cast<int64_t>(dims.size())) continue;
    positions_[slot] = broadcast_offsets(inputs[slot].dims(), dims);
  }
}

}  // namespace autograph
