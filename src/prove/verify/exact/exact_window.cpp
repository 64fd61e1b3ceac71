// Exact pools, global pools and reductions: each output combines a list of positions of the input.
#include <algorithm>

#include "ops/defs.h"
#include "ops/reduction/axes.h"
#include "ops/window/pool_loops.h"
#include "optimize/match.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace {

using Elements = std::vector<uint64_t>;

uint64_t sum_of(const Elements& elements) {
  uint64_t sum = 0;
  for (const uint64_t element : elements) sum = field_add(sum, element);
  return sum;
}

uint64_t mean_of(const Elements& elements, int64_t count) {
  return field_multiply(sum_of(elements), field_inverse(field_of(count)));
}

// The largest element, or a function without properties of the set of elements.
uint64_t extreme_of(const ExactCall& call, const OpaqueFunction& opaque, Elements elements, bool largest) {
  if (call.options.functions == Functions::opaque || elements.empty()) {
    std::sort(elements.begin(), elements.end());
    return opaque(elements);
  }
  std::sort(elements.begin(), elements.end(), [](uint64_t a, uint64_t b) { return integer_of(a) < integer_of(b); });
  return largest ? elements.back() : elements.front();
}

// Calls pool(window position, elements) for every output element.
template <class Pool>
void for_each_window_of(const ExactCall& call, std::span<const WindowAxis> axes, Pool&& pool) {
  for_each_pool(axes, call.input(0).view(),
                [&](std::span<const int64_t> at, std::span<const int64_t> taps, int64_t channel, int64_t output) {
                  Elements elements;
                  for (const int64_t tap : taps) elements.push_back(call.in(0)[channel + tap]);
                  call.out()[output] = pool(at, elements);
                });
}

std::vector<WindowAxis> pool_axes(const ExactCall& call) { return pool_windows(call.attributes, call.input(0).view()); }

void average_pool(const ExactCall& call) {
  const auto axes = pool_axes(call);
  std::vector<std::vector<float>> counted;
  for (const WindowAxis& axis : axes) counted.push_back(counted_taps(axis, call.attributes.flag("count_include_pad")));
  for_each_window_of(call, axes, [&](std::span<const int64_t> at, const Elements& elements) {
    int64_t count = 1;
    for (size_t a = 0; a < at.size(); ++a) count *= static_cast<int64_t>(counted[a][static_cast<size_t>(at[a])]);
    return mean_of(elements, count);
  });
}

// The largest of a window is a function of the set of its elements alone: how they are found does not matter.
void max_pool(const ExactCall& call) {
  if (call.outputs.size() > 1) return call_opaque(call);
  const OpaqueFunction opaque(reduce_max_def(), {});
  for_each_window_of(call, pool_axes(call), [&](std::span<const int64_t>, const Elements& elements) {
    return extreme_of(call, opaque, elements, true);
  });
}

std::vector<Elements> channels_of(const ExactCall& call) {
  const int64_t channels = call.outputs[0].num_elements();
  const int64_t image = channels == 0 ? 0 : call.input(0).num_elements() / channels;
  std::vector<Elements> result;
  for (int64_t c = 0; c < channels; ++c) {
    result.emplace_back(call.in(0) + c * image, call.in(0) + (c + 1) * image);
  }
  return result;
}

void global_average_pool(const ExactCall& call) {
  uint64_t* out = call.out();
  for (const Elements& elements : channels_of(call)) *out++ = mean_of(elements, static_cast<int64_t>(elements.size()));
}

void global_max_pool(const ExactCall& call) {
  const OpaqueFunction opaque(reduce_max_def(), {});
  uint64_t* out = call.out();
  for (const Elements& elements : channels_of(call)) *out++ = extreme_of(call, opaque, elements, true);
}

void reduce(const ExactCall& call) {
  std::vector<TensorView> views;
  for (const Tensor& input : call.inputs) views.push_back(input.view());
  const TensorView output = call.outputs[0].view();
  const ReductionWalk walk = walk_of(OpCall{call.attributes, views, std::span(&output, 1)});
  const OpDef& op = call.op;
  const OpaqueFunction opaque(call.op, {});
  uint64_t* out = call.out();
  for (const int64_t start : walk.starts) {
    Elements elements;
    for (const int64_t offset : walk.offsets) elements.push_back(call.in(0)[start + offset]);
    if (&op == &reduce_sum_def()) {
      *out++ = sum_of(elements);
    } else if (&op == &reduce_mean_def()) {
      *out++ = mean_of(elements, static_cast<int64_t>(elements.size()));
    } else if (&op == &reduce_prod_def()) {
      *out = 1;
      for (const uint64_t element : elements) *out = field_multiply(*out, element);
      ++out;
    } else if (&op == &reduce_sum_square_def()) {
      for (uint64_t& element : elements) element = field_multiply(element, element);
      *out++ = sum_of(elements);
    } else {
      *out++ = extreme_of(call, opaque, std::move(elements), &op == &reduce_max_def());
    }
  }
}

}  // namespace

ExactFn find_exact_window(const OpDef& op) {
  if (&op == &average_pool_def()) return average_pool;
  if (&op == &max_pool_def()) return max_pool;
  if (&op == &global_average_pool_def()) return global_average_pool;
  if (&op == &global_max_pool_def()) return global_max_pool;
  const bool is_reduced = is_one_of(op, {&reduce_sum_def(), &reduce_mean_def(), &reduce_prod_def(),
                                         &reduce_sum_square_def(), &reduce_max_def(), &reduce_min_def()});
  return is_reduced ? reduce : nullptr;
}

}  // namespace autograph
