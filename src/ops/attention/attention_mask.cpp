#include "ops/attention/attention_mask.h"

#include <limits>

#include "base/check.h"
#include "ops/broadcast_offsets.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Bool masks say who takes part; all others are added as they are.
std::vector<double> additive_mask(const TensorView& mask) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(mask.num_elements()));
  dispatch<Concat<NumericTypes, TypeList<bool>>>(mask.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T& element : mask.elements<T>()) {
      if constexpr (std::is_same_v<T, bool>) {
        values.push_back(element ? 0.0 : kHidden);
      } else {
        values.push_back(static_cast<double>(element));
      }
    }
  });
  return values;
}

}  // namespace

AttentionBias::AttentionBias(const OpCall& call, ScoreDims dims, int64_t past)
    : dims_(dims),
      past_(past),
      causal_(call.attributes.flag("is_causal")),
      left_window_(call.attributes.integer("left_window_size")),
      right_window_(call.attributes.integer("right_window_size")) {
  if (const TensorView mask = call.input(3); mask.is_present()) {
    has_mask_ = true;
    mask_keys_ = mask.dim(mask.rank() - 1);
    mask_ = additive_mask(mask);
    const Dims covered{dims.batch, dims.heads, dims.queries, mask_keys_};
    mask_offsets_ = broadcast_offsets(mask.dims(), covered);
  }
  if (const TensorView counts = call.input(6); counts.is_present()) {
    const auto elements = counts.elements<int64_t>();
    valid_keys_.assign(elements.begin(), elements.end());
    for (const int64_t count : valid_keys_) {
      AG_CHECK_USER(count >= 0 && count <= dims.keys, ValueError,
                    "[attention] nonpad_kv_seqlen: expected 0..{}, got {}", dims.keys, count);
    }
  }
}

bool AttentionBias::is_visible(int64_t b, int64_t query, int64_t key) const {
  int64_t before = past_;  // keys in front of the query block
  if (!valid_keys_.empty()) {
    const int64_t valid = valid_keys_[static_cast<size_t>(b)];
    if (key >= valid) return false;
    before = valid - dims_.queries;
  }
  const int64_t distance = query + before - key;
  if (causal_ && distance < 0) return false;
  if (left_window_ >= 0 && distance > left_window_) return false;
  return right_window_ < 0 || -distance <= right_window_;
}

bool AttentionBias::fill(int64_t b, int64_t head, int64_t query, std::vector<double>& row) const {
  bool any = false;
  const int64_t mask_row = ((b * dims_.heads + head) * dims_.queries + query) * mask_keys_;
  for (int64_t key = 0; key < dims_.keys; ++key) {
    double bias = is_visible(b, query, key) ? 0.0 : kHidden;
    if (has_mask_) {
      bias +=
          key < mask_keys_ ? mask_[static_cast<size_t>(mask_offsets_[static_cast<size_t>(mask_row + key)])] : kHidden;
    }
    row[static_cast<size_t>(key)] = bias;
    any = any || bias != kHidden;
  }
  return any;
}

}  // namespace autograph
