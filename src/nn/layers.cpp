// Layers that are products, tables and norms of whole samples. Those that slide a window: windows.cpp; norms:
// norms.cpp.
#include "autograph/nn/layers.h"

#include <cmath>
#include <numeric>

#include "autograph/eager.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/random.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/binding.h"
#include "nn/default_init.h"
#include "ops/gradients.h"

namespace autograph::nn {

Init torch_weight() { return Init::kaiming_uniform(std::sqrt(5.0)); }

Init torch_bias(int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return Init::uniform(-bound, bound);
}

Linear::Linear(int64_t in, int64_t out, bool bias) : weight_(add_parameter("weight", {out, in}, torch_weight())) {
  if (bias) bias_ = &add_parameter("bias", {out}, torch_bias(in));
}

Var Linear::forward(const Var& x) {
  const Var weight = weight_.beside(x), bias = bias_ ? bias_->beside(x) : Var();
  if (x.shape().has_rank() && x.rank() == 2) return gemm(x, weight, bias, {.transpose_b = true});
  const Var y = matmul(x, transpose(weight, {1, 0}));
  return bias.is_valid() ? y + bias : y;
}

Var Flatten::forward(const Var& x) { return flatten(x, 1); }

namespace {

std::optional<int64_t> row_of(std::optional<int64_t> padding_index, int64_t count) {
  if (!padding_index) return {};
  AG_CHECK_USER(*padding_index >= -count && *padding_index < count, ValueError,
                "[nn] embedding: expected a padding index of {} to {}, got {}", -count, count - 1, *padding_index);
  return *padding_index < 0 ? *padding_index + count : *padding_index;
}

Init embedding_init(std::optional<int64_t> padding_row) {
  return padding_row ? Init::normal().with_row_of_zeros(*padding_row) : Init::normal();
}

}  // namespace

Embedding::Embedding(int64_t count, int64_t width, std::optional<int64_t> padding_index)
    : padding_index_(row_of(padding_index, count)),
      weight_(add_parameter("weight", {count, width}, embedding_init(padding_index_))) {}

// Gather alone reads the table, so that updates of rows stay such.
Var Embedding::forward(const Var& x) {
  const Var rows = gather(weight_.beside(x), x);
  if (!padding_index_) return rows;
  const Var is_padding = equal(x, scalar_like(x, *padding_index_));
  return where(unsqueeze(is_padding, {-1}), stop_gradient(rows), rows);
}

Dropout::Dropout(double ratio) : Dropout(ratio, 0) {}

Dropout::Dropout(double ratio, int64_t axes) : ratio_(ratio), axes_(axes) {
  AG_CHECK_USER(ratio >= 0 && ratio < 1, ValueError, "[nn] dropout: expected 0 <= ratio < 1, got {}", ratio);
}

namespace {

// The first of what lies behind the first `axes` axes: [..., 1, 1...].
Var first_of(const Var& x, int64_t axes) {
  AG_CHECK_USER(x.shape().has_rank() && x.rank() >= axes, ShapeError, "[nn] dropout: expected rank {} or more, got {}",
                axes, to_string(x.type()));
  if (x.rank() == axes) return x;
  std::vector<int64_t> behind(static_cast<size_t>(x.rank() - axes));
  std::iota(behind.begin(), behind.end(), axes);
  return slice(x, std::vector<int64_t>(behind.size(), 0), std::vector<int64_t>(behind.size(), 1), behind);
}

}  // namespace

Var Dropout::draw_kept(const Var& x) {
  const Var drawn = random_like(axes_ == 0 ? x : first_of(x, axes_), seed(), path(), count_);
  return greater_or_equal(drawn, scalar_like(drawn, ratio_));
}

Var Dropout::forward(const Var& x) {
  return drops() ? where(draw_kept(x), x * (1 / (1 - ratio_)), scalar_like(x, 0)) : x;
}

namespace {

constexpr const char* kCalls = "random/calls/";

void collect_dropouts(const Module& module, std::vector<Dropout*>& found) {
  for (Module* child : module.children()) {
    if (auto* dropout = dynamic_cast<Dropout*>(child)) found.push_back(dropout);
    collect_dropouts(*child, found);
  }
}

std::vector<Dropout*> dropouts_in(const Module& module) {
  std::vector<Dropout*> found;
  collect_dropouts(module, found);
  return found;
}

}  // namespace

NamedTensors dropout_counts(const Module& module) {
  NamedTensors counts;
  for (const Dropout* dropout : dropouts_in(module)) {
    if (dropout->count_.is_valid()) counts.emplace_back(kCalls + dropout->path(), elements(dropout->count_));
  }
  return counts;
}

void restore_dropout_counts(Module& module, const NamedTensors& tensors) {
  for (Dropout* dropout : dropouts_in(module)) {
    for (const auto& [name, tensor] : tensors) {
      if (name != kCalls + dropout->path()) continue;
      if (dropout->count_.is_valid()) assign(dropout->count_, eager(tensor.clone()));
      if (!dropout->count_.is_valid()) dropout->count_ = variable(tensor.clone());
    }
  }
}

Var AlphaDropout::forward(const Var& x) {
  if (!drops()) return x;
  constexpr double kDropped = -1.7580993408473766;  // -alpha * scale of selu
  const double kept = 1 - ratio();
  const double factor = 1 / std::sqrt(kept * (1 + ratio() * kDropped * kDropped));
  return where(draw_kept(x), x, scalar_like(x, kDropped)) * factor - factor * ratio() * kDropped;
}

}  // namespace autograph::nn
