// top_k of f32 along any axis. Elements are compared with the worst of the k best so far, a vector at a time; those
// that beat it are collected, and when there are as many again, all but the k best of them are dropped.
//
// An element and its index make one integer, a smaller one for a better element, so that ties are broken by the index.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/axis_blocks.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/reduction/top_k.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"
#include "base/aligned_size.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_TOP_K
#define AG_SIMD_TOP_K
namespace autograph::simd {

// Orders as floats do, with -0 as 0 and NaN above all; best first when `largest` elements are sought.
inline uint64_t rank_of(float value, size_t index, bool largest) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0F);
  uint32_t order = (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
  if (std::isnan(value)) order = std::numeric_limits<uint32_t>::max();
  return static_cast<uint64_t>(largest ? ~order : order) << 32 | index;
}

inline size_t index_of_rank(uint64_t rank) { return static_cast<uint32_t>(rank); }

// The best elements of a row so far.
class Candidates {
 public:
  Candidates(const float* row, size_t k, bool largest, uint64_t* ranks, size_t capacity)
      : row_(row), k_(k), largest_(largest), ranks_(ranks), capacity_(capacity) {}

  void add(size_t index) {
    const uint64_t rank = rank_of(row_[index], index, largest_);
    if (rank >= worst_) return;
    ranks_[size_++] = rank;
    if (size_ == capacity_) drop();
  }
  // What later elements must beat, when there are k.
  float bound() const { return row_[index_of_rank(worst_)]; }
  // The k best, best first.
  const uint64_t* sorted() {
    drop();
    std::sort(ranks_, ranks_ + k_);
    return ranks_;
  }

 private:
  void drop() {
    if (size_ <= k_) return;
    std::nth_element(ranks_, ranks_ + (k_ - 1), ranks_ + size_);
    size_ = k_;
    worst_ = ranks_[k_ - 1];
  }

  const float* row_;
  const size_t k_;
  const bool largest_;
  uint64_t* ranks_;
  const size_t capacity_;
  size_t size_ = 0;
  uint64_t worst_ = std::numeric_limits<uint64_t>::max();
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;

// Adds elements [from, count) of a row; there are candidates enough for a bound.
template <bool kLargest>
HWY_INLINE void collect(const float* row, size_t from, size_t count, Candidates& candidates) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto bound_of = [&]() HWY_ATTR { return hn::Set(d, candidates.bound()); };
  auto bound = bound_of();
  // Negated, so that NaN passes: add() knows its rank.
  const auto may_beat = [&](size_t at) HWY_ATTR {
    const auto v = hn::LoadU(d, row + at);
    return hn::Not(kLargest ? hn::Le(v, bound) : hn::Ge(v, bound));
  };
  size_t i = from;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto any =
        hn::Or(hn::Or(may_beat(i), may_beat(i + lanes)), hn::Or(may_beat(i + 2 * lanes), may_beat(i + 3 * lanes)));
    if (hn::AllFalse(d, any)) continue;
    for (size_t j = i; j < i + 4 * lanes; j += lanes) {
      uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, may_beat(j), bytes);
      for (size_t b = 0; b * 8 < lanes; ++b) {
        for (unsigned bits = bytes[b]; bits != 0; bits &= bits - 1) {
          candidates.add(j + 8 * b + static_cast<size_t>(std::countr_zero(bits)));
        }
      }
    }
    bound = bound_of();
  }
  for (; i < count; ++i) candidates.add(i);
}

void collect_candidates(const float* row, size_t from, size_t count, bool largest, Candidates& candidates) {
  if (largest)
    collect<true>(row, from, count, candidates);
  else
    collect<false>(row, from, count, candidates);
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(collect_candidates);

class TopKKernel : public Kernel {
 public:
  explicit TopKKernel(const KernelCall& call)
      : blocks_(call.input_dims(0), call.attributes.integer("axis")),
        k_(AxisBlocks(call.output_dims(0), call.attributes.integer("axis")).extent),
        // As many again as are kept, and not so few that dropping costs more than collecting.
        capacity_(std::min(blocks_.extent, std::max(2 * k_, k_ + 128))),
        largest_(call.attributes.flag("largest")),
        threads_(useful_threads(call.threads, 2 * blocks_.elements())) {}

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_) * scratch_per_thread(); }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* values = args.outputs[0].mutable_data<float>();
    int64_t* indices =
        args.outputs.size() > 1 && args.outputs[1].is_present() ? args.outputs[1].mutable_data<int64_t>() : nullptr;
    for_shares(threads_, blocks_.outer * blocks_.inner, [&](int64_t begin, int64_t end, int thread) {
      auto* ranks = reinterpret_cast<uint64_t*>(static_cast<char*>(args.scratch) +
                                                static_cast<size_t>(thread) * scratch_per_thread());
      for (int64_t r = begin; r < end; ++r) {
        const int64_t outer = r / blocks_.inner, inner = r % blocks_.inner;
        const float* row = row_at(x + outer * blocks_.extent * blocks_.inner + inner, ranks + capacity_);
        const uint64_t* best = best_of(row, ranks);
        for (int64_t i = 0; i < k_; ++i) {
          const size_t from = index_of_rank(best[i]);
          const int64_t to = (outer * k_ + i) * blocks_.inner + inner;
          values[to] = row[from];
          if (indices) indices[to] = static_cast<int64_t>(from);
        }
      }
    });
  }

 private:
  // Candidates, and a row where its elements are not neighbours.
  size_t scratch_per_thread() const {
    const int64_t row = blocks_.inner == 1 ? 0 : blocks_.extent;
    return aligned_size(static_cast<size_t>(capacity_) * sizeof(uint64_t) + static_cast<size_t>(row) * sizeof(float));
  }

  // The row that begins at x, its elements next to each other.
  const float* row_at(const float* x, void* buffer) const {
    if (blocks_.inner == 1) return x;
    auto* row = static_cast<float*>(buffer);
    for (int64_t i = 0; i < blocks_.extent; ++i) row[i] = x[i * blocks_.inner];
    return row;
  }

  const uint64_t* best_of(const float* row, uint64_t* ranks) const {
    Candidates candidates(row, static_cast<size_t>(k_), largest_, ranks, static_cast<size_t>(capacity_));
    const auto first = static_cast<size_t>(capacity_), count = static_cast<size_t>(blocks_.extent);
    for (size_t i = 0; i < first; ++i) candidates.add(i);
    if (first < count) HWY_DYNAMIC_DISPATCH(collect_candidates)(row, first, count, largest_, candidates);
    return candidates.sorted();
  }

  const AxisBlocks blocks_;
  const int64_t k_;
  const int64_t capacity_;
  const bool largest_;
  const int threads_;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "only f32";
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  if (call.outputs[0].shape().num_elements() == 0) return "k is 0";
  const AxisBlocks blocks(call.input_dims(0), call.attributes.integer("axis"));
  return blocks.extent <= std::numeric_limits<uint32_t>::max() ? "" : "more than 2^32 elements along the axis";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<TopKKernel>(call), ""}; }

}  // namespace

KernelDef top_k_kernel() {
  return {.name = "cpu.top_k_simd", .op = top_k_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
