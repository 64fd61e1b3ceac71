// tiled_attention_grad in f32: the weights of a block of queries and a block of keys at a time are formed again, and
// what they give to the gradients is added up at once. Nothing grows with the product of the lengths.
//
// A tile lies across: a row for every key, a column for every query. The sums of softmax and delta are then a vector
// along the row, P^T and dS^T are left sides of the products that give gv and gk as they are, and the product for gq,
// which wants the queries in front, is formed the other way round, gq^T = k^T dS^T, and turned when it is stored.
//
// A mask that learns gets the tiles of dS themselves. Where all samples share it, one thread goes through them.
//
// Where there are fewer pairs of batch and key head than threads like, queries and keys are cut into tasks of their
// own, of which each forms the weights for itself: twice the products with q and v, and no sums that two threads share.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/attention_call.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/attention_grad.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/micro_gemm-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_ATTENTION_GRAD_TASK
#define AG_SIMD_ATTENTION_GRAD_TASK
namespace autograph::simd {

// A tile of keys and queries, twice, lies in the first and second cache beside the panels that it is multiplied with.
constexpr int64_t kTileKeys = 64;
constexpr int64_t kTileQueries = 64;
// Lanes of the widest vectors, to which rows are padded.
constexpr int64_t kWidestVector = 16;

constexpr int64_t round_to_vectors(int64_t count) {
  return (count + kWidestVector - 1) / kWidestVector * kWidestVector;
}

// Some queries and keys of the query heads that share a key head.
struct AttentionGradTask {
  const float *q, *k, *v, *gy, *log_sums, *delta;  // position 0 of the first head
  float *gq, *gk, *gv;
  float* gmask;                                     // added to, rows of mask_keys; may be null
  const void* mask;                                 // row of query 0 of the first head; may be null
  int64_t q_stride, k_stride, v_stride, gy_stride;  // between positions; gradients lie as what they belong to
  int64_t q_head, gy_head, sums_head;               // between heads
  int64_t mask_stride, mask_head, mask_keys, gmask_head;
  bool mask_is_bool;
  int64_t heads, size, value_size;
  int64_t first_query, end_query, first_key, end_key;
  bool gives_q, gives_kv;
  float scale;
  float softcap;                          // 0: none
  int64_t visible_before, visible_after;  // how far a query sees to both sides
  float* scratch;
};

// Where things lie in the scratch memory of a task, in floats.
struct AttentionGradScratch {
  AttentionGradScratch(int64_t keys, int64_t size, int64_t value_size) {
    const int64_t width = round_to_vectors(size), value_width = round_to_vectors(value_size);
    int64_t at = 0;
    const auto take = [&](int64_t count) {
      const int64_t begin = at;
      at += round_to_vectors(count);
      return begin;
    };
    keys_across = take(size * keys);
    gk = take(keys * width);
    gv = take(keys * value_width);
    queries = take(kTileQueries * width);
    q_across = take(size * kTileQueries);
    gy_across = take(value_size * kTileQueries);
    q_panels = take(kTileQueries * width);
    gy_panels = take(kTileQueries * value_width);
    weights = take(kTileKeys * kTileQueries);
    flows = take(kTileKeys * kTileQueries);
    flow_panels = take(kTileKeys * kTileQueries);
    mask = take(kTileKeys * kTileQueries);
    gq_across = take(size * kTileQueries);
    log_sums = take(kTileQueries);
    delta = take(kTileQueries);
    total = at;
  }
  int64_t keys_across, gk, gv, queries, q_across, gy_across, q_panels, gy_panels, weights, flows, flow_panels, mask,
      gq_across, log_sums, delta, total;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using GradD = hn::ScalableTag<float>;
using GradV = hn::Vec<GradD>;
static_assert(HWY_MAX_BYTES <= kWidestVector * sizeof(float));

// A block of queries of one head.
struct QueryBlock {
  int64_t head, first, count, width;  // width: with padding
};

// to[c * to_stride + r] = from[r * from_stride + c].
HWY_INLINE void turn(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                     int64_t to_stride) {
  for (int64_t r = 0; r < rows; r += 4) {
    int64_t c = 0;
    if (r + 4 <= rows) {
      for (; c + 4 <= columns; c += 4) {
        transpose_4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
      }
    }
    for (; c < columns; ++c) {
      for (int64_t i = r; i < std::min(r + 4, rows); ++i) to[c * to_stride + i] = from[i * from_stride + c];
    }
  }
}

// The mask of a tile, across, as what is added to scores. Keys behind its end are left out.
HWY_INLINE void load_mask_tile(const AttentionGradTask& task, const QueryBlock& block, int64_t first_key, int64_t keys,
                               float* tile) {
  const int64_t at = block.head * task.mask_head + block.first * task.mask_stride + first_key;
  if (task.mask_is_bool) {
    const bool* from = static_cast<const bool*>(task.mask) + at;
    for (int64_t i = 0; i < block.count; ++i) {
      for (int64_t j = 0; j < keys; ++j) tile[j * block.width + i] = from[i * task.mask_stride + j] ? 0.0F : -kInfinity;
    }
    return;
  }
  turn(static_cast<const float*>(task.mask) + at, task.mask_stride, block.count, keys, tile, block.width);
}

// Scores to weights, and what flows into weights to what flows into scores, for one key. Columns outside of
// [begin, end) do not see it.
HWY_INLINE void form_row(const AttentionGradTask& task, const AttentionGradScratch& at, int64_t begin, int64_t end,
                         const float* mask, float* scores, float* flows, int64_t width) {
  const GradD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const GradV zero = hn::Zero(d), one = hn::Set(d, 1.0F);
  const float* log_sums = task.scratch + at.log_sums;
  const float* delta = task.scratch + at.delta;
  const GradV cap = hn::Set(d, task.softcap);
  for (int64_t i = 0; i < width; i += lanes) {
    if (i + lanes <= begin || i >= end) {
      hn::StoreU(zero, d, scores + i);
      hn::StoreU(zero, d, flows + i);
      continue;
    }
    GradV s = hn::LoadU(d, scores + i), slope = one;
    if (task.softcap > 0) {
      const GradV bent = tanh(d, hn::Div(s, cap));
      s = hn::Mul(cap, bent);
      slope = hn::NegMulAdd(bent, bent, one);
    }
    if (mask) s = hn::Add(s, hn::LoadU(d, mask + i));
    // The sums are an input: nothing says that they are those of these scores.
    GradV p = exp(d, hn::Sub(s, hn::LoadU(d, log_sums + i)));
    GradV flow = hn::Mul(hn::Mul(p, slope), hn::Sub(hn::LoadU(d, flows + i), hn::LoadU(d, delta + i)));
    if (i < begin || i + lanes > end) {
      const auto number = hn::Iota(d, static_cast<float>(i));
      const auto is_seen = hn::And(hn::Ge(number, hn::Set(d, static_cast<float>(begin))),
                                   hn::Lt(number, hn::Set(d, static_cast<float>(end))));
      p = hn::IfThenElseZero(is_seen, p);
      flow = hn::IfThenElseZero(is_seen, flow);
    }
    hn::StoreU(p, d, scores + i);
    hn::StoreU(flow, d, flows + i);
  }
}

// Packs what the tiles of a block of queries are multiplied with.
HWY_INLINE void load_queries(const AttentionGradTask& task, const AttentionGradScratch& at, const QueryBlock& block) {
  const GradD d;
  const GradV scale = hn::Set(d, task.scale);
  const float* q = task.q + block.head * task.q_head + block.first * task.q_stride;
  const float* gy = task.gy + block.head * task.gy_head + block.first * task.gy_stride;
  float* queries = task.scratch + at.queries;
  for (int64_t i = 0; i < block.count; ++i) {
    map_row(d, q + i * task.q_stride, queries + i * task.size, static_cast<size_t>(task.size),
            [&](GradV x, size_t, size_t) HWY_ATTR { return hn::Mul(x, scale); });
  }
  pack_transposed(queries, task.size, task.size, block.count, task.scratch + at.q_across);
  pack_transposed(gy, task.gy_stride, task.value_size, block.count, task.scratch + at.gy_across);
  if (task.gives_kv) {
    pack_rows(queries, task.size, block.count, task.size, task.scratch + at.q_panels);
    pack_rows(gy, task.gy_stride, block.count, task.value_size, task.scratch + at.gy_panels);
  }
  const int64_t row = block.head * task.sums_head + block.first;
  std::fill_n(task.scratch + at.log_sums, block.width, kInfinity);
  std::fill_n(task.scratch + at.delta, block.width, 0.0F);
  std::copy_n(task.log_sums + row, block.count, task.scratch + at.log_sums);
  std::copy_n(task.delta + row, block.count, task.scratch + at.delta);
}

// A mask that learns gets what flows into the scores.
HWY_INLINE void add_to_mask(const AttentionGradTask& task, const AttentionGradScratch& at, const QueryBlock& block,
                            int64_t first_key, int64_t keys) {
  const GradD d;
  float* rows = task.scratch + at.mask;
  turn(task.scratch + at.flows, block.width, keys, block.count, rows, keys);
  float* gmask = task.gmask + block.head * task.gmask_head + block.first * task.mask_keys + first_key;
  for (int64_t i = 0; i < block.count; ++i) {
    float* to = gmask + i * task.mask_keys;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const float* from = rows + i * keys;
    int64_t j = 0;
    for (; j + lanes <= keys; j += lanes) hn::StoreU(hn::Add(hn::LoadU(d, to + j), hn::LoadU(d, from + j)), d, to + j);
    for (; j < keys; ++j) to[j] += from[j];
  }
}

// Of its own: inside of add_tile() five copies of all its tiles took the compiler most of its time.
static HWY_NOINLINE void multiply(const TileProduct& product, int64_t rows, int64_t columns) {
  multiply_packed(product, rows, columns);
}

HWY_INLINE void add_tile(const AttentionGradTask& task, const AttentionGradScratch& at, const QueryBlock& block,
                         int64_t first_key, int64_t keys) {
  float* weights = task.scratch + at.weights;
  float* flows = task.scratch + at.flows;
  multiply({task.k + first_key * task.k_stride, task.k_stride, task.scratch + at.q_across, task.size, weights,
            block.width, false},
           keys, block.count);
  multiply({task.v + first_key * task.v_stride, task.v_stride, task.scratch + at.gy_across, task.value_size, flows,
            block.width, false},
           keys, block.count);
  const int64_t masked = task.mask ? std::clamp(task.mask_keys - first_key, int64_t{0}, keys) : keys;
  float* mask = task.mask ? task.scratch + at.mask : nullptr;
  if (mask) load_mask_tile(task, block, first_key, masked, mask);
  for (int64_t j = 0; j < keys; ++j) {
    const int64_t key = first_key + j - block.first;
    const int64_t begin = std::max<int64_t>(0, key - task.visible_after);
    const int64_t end = j < masked ? std::min(block.count, key + task.visible_before + 1) : 0;
    form_row(task, at, begin, end, mask ? mask + j * block.width : nullptr, weights + j * block.width,
             flows + j * block.width, block.width);
  }
  if (task.gmask && task.gives_q && masked > 0) add_to_mask(task, at, block, first_key, masked);
  if (task.gives_kv) {
    const int64_t width = padded_columns(task.size), value_width = padded_columns(task.value_size);
    const int64_t row = first_key - task.first_key;
    multiply({weights, block.width, task.scratch + at.gy_panels, block.count, task.scratch + at.gv + row * value_width,
              value_width, true},
             keys, task.value_size);
    multiply(
        {flows, block.width, task.scratch + at.q_panels, block.count, task.scratch + at.gk + row * width, width, true},
        keys, task.size);
  }
  if (task.gives_q) {
    pack_rows(flows, block.width, keys, block.count, task.scratch + at.flow_panels);
    multiply({task.scratch + at.keys_across + first_key - task.first_key, task.end_key - task.first_key,
              task.scratch + at.flow_panels, keys, task.scratch + at.gq_across, block.width, true},
             task.size, block.count);
  }
}

HWY_INLINE void store_queries(const AttentionGradTask& task, const AttentionGradScratch& at, const QueryBlock& block) {
  const GradD d;
  const GradV scale = hn::Set(d, task.scale);
  float* rows = task.scratch + at.queries;
  turn(task.scratch + at.gq_across, block.width, task.size, block.count, rows, task.size);
  float* gq = task.gq + block.head * task.q_head + block.first * task.q_stride;
  for (int64_t i = 0; i < block.count; ++i) {
    map_row(d, rows + i * task.size, gq + i * task.q_stride, static_cast<size_t>(task.size),
            [&](GradV x, size_t, size_t) HWY_ATTR { return hn::Mul(x, scale); });
  }
}

void attend_back(const AttentionGradTask& task) {
  const int64_t keys = task.end_key - task.first_key;
  const AttentionGradScratch at(keys, task.size, task.value_size);
  const int64_t width = padded_columns(task.size), value_width = padded_columns(task.value_size);
  if (task.gives_kv) {
    std::fill_n(task.scratch + at.gk, keys * width, 0.0F);
    std::fill_n(task.scratch + at.gv, keys * value_width, 0.0F);
  }
  if (task.gives_q) {
    turn(task.k + task.first_key * task.k_stride, task.k_stride, keys, task.size, task.scratch + at.keys_across, keys);
  }
  for (int64_t head = 0; head < task.heads; ++head) {
    for (int64_t first = task.first_query; first < task.end_query; first += kTileQueries) {
      const int64_t count = std::min(kTileQueries, task.end_query - first);
      const QueryBlock block{head, first, count, padded_columns(count)};
      load_queries(task, at, block);
      if (task.gives_q) std::fill_n(task.scratch + at.gq_across, task.size * block.width, 0.0F);
      for (int64_t key = task.first_key; key < task.end_key; key += kTileKeys) {
        const int64_t tile = std::min(kTileKeys, task.end_key - key);
        // Beyond the causal frontier, or before the window.
        if (key > first + count - 1 + task.visible_after) break;
        if (key + tile <= first - task.visible_before) continue;
        add_tile(task, at, block, key, tile);
      }
      if (task.gives_q) store_queries(task, at, block);
    }
  }
  if (!task.gives_kv) return;
  for (int64_t j = 0; j < keys; ++j) {
    std::copy_n(task.scratch + at.gk + j * width, task.size, task.gk + (task.first_key + j) * task.k_stride);
    std::copy_n(task.scratch + at.gv + j * value_width, task.value_size,
                task.gv + (task.first_key + j) * task.v_stride);
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(attend_back);

class AttentionGradKernel : public Kernel {
 public:
  explicit AttentionGradKernel(const KernelCall& call)
      : q_(call.input_dims(0), call.attributes.get_or<int64_t>("q_num_heads", 1)),
        k_(call.input_dims(1), call.attributes.get_or<int64_t>("kv_num_heads", 1)),
        v_(call.input_dims(2), call.attributes.get_or<int64_t>("kv_num_heads", 1)),
        gy_(call.input_dims(3), q_.heads),
        settings_(call.attributes, q_.size) {
    if (call.has_input(6)) mask_ = MaskLayout(call.inputs[6]);
    gives_mask_ = call.outputs.size() > 3;
    const int64_t work = q_.batch * q_.heads * q_.length * k_.length * (q_.size + v_.size) / 3;
    threads_ = useful_threads(call.threads, work);
    plan_tasks();
    scratch_elements_ = AttentionGradScratch(k_.length, q_.size, v_.size).total;
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * scratch_elements_) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    const auto count = static_cast<int64_t>(parts_.size());
    const int64_t samples = samples_of_task();
    for_shares(threads_, pairs() * count, [&](int64_t begin, int64_t end, int thread) {
      float* scratch = static_cast<float*>(args.scratch) + thread * scratch_elements_;
      for (int64_t t = begin; t < end; ++t) {
        const Part& part = parts_[static_cast<size_t>(t % count)];
        for (int64_t b = 0; b < samples; ++b) run_task(args, t / count + b * pairs(), part, scratch);
      }
    });
  }

 private:
  // What one task does of a batch and a key head.
  struct Part {
    int64_t first_query, end_query, first_key, end_key;
    bool gives_q, gives_kv;
  };

  // What flows into a mask that all samples share is summed over them, by one thread.
  int64_t samples_of_task() const { return gives_mask_ && mask_.batch_stride == 0 ? q_.batch : 1; }
  // Of batch and key head, each with tasks of its own.
  int64_t pairs() const { return q_.batch * k_.heads / samples_of_task(); }

  void plan_tasks() {
    if (threads_ == 1 || pairs() % threads_ == 0 || pairs() >= int64_t{4} * threads_) {
      parts_ = {{0, q_.length, 0, k_.length, true, true}};
      return;
    }
    const int64_t wanted = (4 * threads_ - 1) / pairs() + 1;
    const auto piece = [&](int64_t length) {
      return std::max((length + wanted - 1) / wanted + kTileKeys - 1, kTileKeys) / kTileKeys * kTileKeys;
    };
    for (int64_t at = 0; at < q_.length; at += piece(q_.length)) {
      parts_.push_back({at, std::min(q_.length, at + piece(q_.length)), 0, k_.length, true, false});
    }
    for (int64_t at = 0; at < k_.length; at += piece(k_.length)) {
      parts_.push_back({0, q_.length, at, std::min(k_.length, at + piece(k_.length)), false, true});
    }
  }

  void run_task(const KernelArgs& args, int64_t pair, const Part& part, float* scratch) const {
    const int64_t b = pair / k_.heads, kv_head = pair % k_.heads, shared = q_.heads / k_.heads;
    const int64_t head = kv_head * shared, rows = (b * q_.heads + head) * q_.length;
    AttentionGradTask task{};
    task.q = args.inputs[0].data<float>() + q_.offset(b, head, 0);
    task.k = args.inputs[1].data<float>() + k_.offset(b, kv_head, 0);
    task.v = args.inputs[2].data<float>() + v_.offset(b, kv_head, 0);
    task.gy = args.inputs[3].data<float>() + gy_.offset(b, head, 0);
    task.log_sums = args.inputs[4].data<float>() + rows;
    task.delta = args.inputs[5].data<float>() + rows;
    task.gq = args.outputs[0].mutable_data<float>() + q_.offset(b, head, 0);
    task.gk = args.outputs[1].mutable_data<float>() + k_.offset(b, kv_head, 0);
    task.gv = args.outputs[2].mutable_data<float>() + v_.offset(b, kv_head, 0);
    if (mask_.is_given()) task.mask = mask_.row(args.inputs[6], b, head, 0);
    if (gives_mask_) {
      const int64_t sample = mask_.batch_stride == 0 ? 0 : b;
      task.gmask_head = q_.length * mask_.keys;
      task.gmask = args.outputs[3].mutable_data<float>() + (sample * q_.heads + head) * task.gmask_head;
      for (int64_t h = 0; h < shared && part.gives_q && b == sample; ++h) {
        std::fill(task.gmask + h * task.gmask_head + part.first_query * mask_.keys,
                  task.gmask + h * task.gmask_head + part.end_query * mask_.keys, 0.0F);
      }
    }
    task.q_stride = q_.position_stride, task.k_stride = k_.position_stride, task.v_stride = v_.position_stride;
    task.gy_stride = gy_.position_stride, task.q_head = q_.head_stride, task.gy_head = gy_.head_stride;
    task.sums_head = q_.length;
    task.mask_stride = mask_.query_stride, task.mask_head = mask_.head_stride;
    task.mask_keys = mask_.keys, task.mask_is_bool = mask_.is_bool;
    task.heads = shared, task.size = q_.size, task.value_size = v_.size;
    task.first_query = part.first_query, task.end_query = part.end_query;
    task.first_key = part.first_key, task.end_key = part.end_key;
    task.gives_q = part.gives_q, task.gives_kv = part.gives_kv;
    task.scale = settings_.scale, task.softcap = settings_.softcap;
    task.visible_before = settings_.visible_before, task.visible_after = settings_.visible_after;
    task.scratch = scratch;
    HWY_DYNAMIC_DISPATCH(attend_back)(task);
  }

  const HeadLayout q_, k_, v_, gy_;
  const ScoreSettings settings_;
  MaskLayout mask_;
  std::vector<Part> parts_;
  int64_t scratch_elements_ = 0;
  int threads_ = 1;
  bool gives_mask_ = false;
};

std::string why_not(const KernelCall& call) {
  // What flows into scores does not stay apart from what flows into those before the cap.
  if (call.outputs.size() > 3 && call.attributes.real("softcap") > 0) return "a mask that learns under a soft cap";
  return why_not_attention(call, 6, 6);
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<AttentionGradKernel>(call), ""}; }

}  // namespace

KernelDef tiled_attention_grad_kernel() {
  return {.name = "cpu.tiled_attention_grad_simd",
          .op = tiled_attention_grad_def().name,
          .why_not = why_not,
          .prepare = prepare};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
