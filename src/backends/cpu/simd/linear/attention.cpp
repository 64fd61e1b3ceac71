// attention in f32 without the score matrix: for a block of queries, block after block of keys, a few rows of scores at
// a time go through the mask and the exponential while they are in the first cache, and their weighted values are
// added up at once. For few queries, as a decoder has them, keys and values are not packed: attention_few-inl.h.
//
// The softmax is kept up to date as blocks come: with m the largest score so far, l the sum of e^(s - m) and o the sum
// of e^(s - m) v, a block that raises m scales l and o down; the result is o / l. A query that sees no key gives zeros.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/attention_call.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/attention.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/attention_few-inl.h"
#include "backends/cpu/simd/linear/micro_gemm-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_ATTENTION_TASK
#define AG_SIMD_ATTENTION_TASK
namespace autograph::simd {

// Keys per block: a panel of their values takes half of the first cache, and the scores of a group of queries the rest.
constexpr int64_t kKeyBlock = 128;
// Queries whose scores against a block are worked on together: a panel of keys is read once for all of them.
constexpr int64_t kQueryGroup = 32;
// Queries per task: their sums stay in the second cache.
constexpr int64_t kMaxQueries = 256;
// Lanes of the widest vectors, to which rows are padded.
constexpr int64_t kMaxLanes = 16;

constexpr int64_t round_up(int64_t count) { return (count + kMaxLanes - 1) / kMaxLanes * kMaxLanes; }

// Up to so many queries keys and values are read where they lie.
constexpr int64_t kFewQueries = 8;

// Some queries of one head, or those of several heads that share keys, all at the same position.
struct AttentionTask {
  const float* q;
  const float* k;
  const float* v;
  float* y;
  float* log_sums;                                              // one a query; may be null
  const void* mask;                                             // row of the first query; may be null
  int64_t q_stride, k_stride, v_stride, y_stride, mask_stride;  // between positions
  int64_t first_query, queries, keys, size, value_size;
  int64_t position_step;  // between the positions of queries: 1, or 0 of several heads
  int64_t mask_keys;
  bool mask_is_bool;
  float scale;
  float softcap;                          // 0: none
  int64_t visible_before, visible_after;  // how far a query sees to both sides
  float* scratch;
};

// Elements of scratch memory for one task.
struct AttentionScratch {
  AttentionScratch(int64_t queries, int64_t keys, int64_t size, int64_t value_size) {
    const int64_t block = round_up(std::min(keys, kKeyBlock));
    keys_at = round_up(queries * size);
    values_at = keys_at + block * size;
    scores_at = values_at + block * round_up(value_size);
    sums_at = scores_at + kQueryGroup * block;
    rows_at = sums_at + queries * round_up(value_size);
    total = rows_at + round_up(2 * queries);
  }
  int64_t keys_at, values_at, scores_at, sums_at, rows_at, total;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
static_assert(HWY_MAX_BYTES <= kMaxLanes * sizeof(float));

// The keys of a block that a query sees: [begin, end) within the block.
struct KeyRange {
  int64_t begin, end;
};

HWY_INLINE KeyRange visible_keys(const AttentionTask& task, int64_t query, int64_t first_key, int64_t count) {
  const int64_t position = task.first_query + query * task.position_step;
  const int64_t begin = std::max<int64_t>(0, position - task.visible_before - first_key);
  int64_t end = std::min(count, position + task.visible_after + 1 - first_key);
  if (task.mask) end = std::min(end, task.mask_keys - first_key);
  return {std::min(begin, count), std::max(end, int64_t{0})};
}

// Mask elements [at, at + count) of a query, to be added to its scores.
HWY_INLINE V load_mask(const AttentionTask& task, int64_t query, int64_t at, size_t count) {
  const D d;
  const int64_t offset = query * task.mask_stride + at;
  if (!task.mask_is_bool) {
    const float* from = static_cast<const float*>(task.mask) + offset;
    return count == hn::Lanes(d) ? hn::LoadU(d, from) : load_some(d, from, count, hn::Zero(d));
  }
  const bool* from = static_cast<const bool*>(task.mask) + offset;
#if HWY_TARGET != HWY_SCALAR
  if (count == hn::Lanes(d)) {
    const hn::Rebind<int32_t, D> di;
    const auto seen = hn::PromoteTo(di, hn::LoadU(hn::Rebind<uint8_t, D>(), reinterpret_cast<const uint8_t*>(from)));
    return hn::IfThenElse(hn::RebindMask(d, hn::Eq(seen, hn::Zero(di))), hn::Set(d, -kInfinity), hn::Zero(d));
  }
#endif
  HWY_ALIGN float hidden[HWY_MAX_BYTES / sizeof(float)] = {};
  for (size_t i = 0; i < count; ++i) hidden[i] = from[i] ? 0.0F : -kInfinity;
  return hn::Load(d, hidden);
}

// softcap * tanh(s / softcap).
HWY_INLINE V cap(const AttentionTask& task, V s) {
  const D d;
  const V limit = hn::Set(d, task.softcap);
  return hn::Mul(limit, tanh(d, hn::Div(s, limit)));
}

// Caps a row of scores, adds the mask, hides what lies outside of `range` and the padding, and returns the largest
// score.
HWY_INLINE float mask_row(const AttentionTask& task, int64_t query, int64_t first_key, KeyRange range, float* scores,
                          int64_t padded) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V hidden = hn::Set(d, -kInfinity);
  V largest = hidden;
  if (range.begin > 0) std::fill(scores, scores + std::min(range.begin, padded), -kInfinity);
  const bool changes = task.mask || task.softcap > 0;
  int64_t j = range.begin;
  for (; j + lanes <= range.end; j += lanes) {
    V s = hn::LoadU(d, scores + j);
    if (task.softcap > 0) s = cap(task, s);
    if (task.mask) s = hn::Add(s, load_mask(task, query, first_key + j, static_cast<size_t>(lanes)));
    if (changes) hn::StoreU(s, d, scores + j);
    largest = hn::Max(largest, s);
  }
  if (j < range.end) {
    const auto rest = static_cast<size_t>(range.end - j);
    V s = load_some(d, scores + j, rest, hidden);
    if (task.softcap > 0) s = hn::IfThenElse(hn::FirstN(d, rest), cap(task, s), hidden);
    if (task.mask) s = hn::Add(s, load_mask(task, query, first_key + j, rest));
    // Rows that begin at 0 end with whole vectors; otherwise the padding may begin within this one.
    if (j + lanes <= padded) {
      hn::StoreU(s, d, scores + j);
      j += lanes;
    } else {
      store_some(d, s, scores + j, rest);
      j = range.end;
    }
    largest = hn::Max(largest, s);
  }
  j = std::max(j, range.begin);
  if (j < padded) std::fill(scores + j, scores + padded, -kInfinity);
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// Scores of one query to weights. `largest` and `sum` are what the row has so far; scales what is summed up already.
HWY_INLINE void weigh_row(float* scores, int64_t padded, float block_largest, float& largest, float& sum, float* sums,
                          int64_t width) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float before = largest;
  largest = block_largest > before || block_largest != block_largest ? block_largest : before;
  const V m = hn::Set(d, largest);
  if (largest == -kInfinity) {  // no key seen yet; infinity minus infinity would be NaN
    std::fill(scores, scores + padded, 0.0F);
    return;
  }
  V s = hn::Zero(d);
  for (int64_t j = 0; j < padded; j += lanes) {
    const V e = exp_nonpositive(d, hn::Sub(hn::LoadU(d, scores + j), m));
    hn::StoreU(e, d, scores + j);
    s = hn::Add(s, e);
  }
  const float block_sum = hn::GetLane(hn::SumOfLanes(d, s));
  if (before == largest || before == -kInfinity) {
    sum += block_sum;
    return;
  }
  const float factor = std::exp(before - largest);
  sum = sum * factor + block_sum;
  const V f = hn::Set(d, factor);
  map_row(d, sums, sums, static_cast<size_t>(width), [&](V x, size_t, size_t) HWY_ATTR { return hn::Mul(x, f); });
}

// A block of scores to weights; the sums of the queries are scaled to them.
HWY_INLINE void weigh_block(const AttentionTask& task, const AttentionScratch& at, KeyRange keys, KeyRange queries) {
  const int64_t count = keys.end - keys.begin, padded = padded_columns(count);
  const int64_t width = padded_columns(task.value_size);
  float* scores = task.scratch + at.scores_at;
  float* largest = task.scratch + at.rows_at;
  float* sum = largest + task.queries;
  // In two loops of short turns, so that the processor works on several rows at once.
  float block_largest[kQueryGroup];
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    float* const row = scores + (i - queries.begin) * padded;
    const KeyRange range = visible_keys(task, i, keys.begin, count);
    block_largest[i - queries.begin] = mask_row(task, i, keys.begin, range, row, padded);
  }
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    weigh_row(scores + (i - queries.begin) * padded, padded, block_largest[i - queries.begin], largest[i], sum[i],
              task.scratch + at.sums_at + i * width, width);
  }
}

// Keys [begin, end), which are packed here, for all queries of the task.
HWY_INLINE void add_packed_keys(const AttentionTask& task, const AttentionScratch& at, KeyRange keys) {
  const int64_t count = keys.end - keys.begin, padded = padded_columns(count);
  const int64_t width = padded_columns(task.value_size);
  float* scores = task.scratch + at.scores_at;
  pack_transposed(task.k + keys.begin * task.k_stride, task.k_stride, task.size, count, task.scratch + at.keys_at);
  pack_rows(task.v + keys.begin * task.v_stride, task.v_stride, count, task.value_size, task.scratch + at.values_at);
  for (int64_t i = 0; i < task.queries; i += kQueryGroup) {
    const int64_t rows = std::min(kQueryGroup, task.queries - i);
    multiply_packed(
        {task.scratch + i * task.size, task.size, task.scratch + at.keys_at, task.size, scores, padded, false}, rows,
        count);
    weigh_block(task, at, keys, {i, i + rows});
    multiply_packed(
        {scores, padded, task.scratch + at.values_at, count, task.scratch + at.sums_at + i * width, width, true}, rows,
        task.value_size);
  }
}

// The same for few queries.
HWY_INLINE void add_keys_in_place(const AttentionTask& task, const AttentionScratch& at, KeyRange keys) {
  const int64_t count = keys.end - keys.begin, padded = padded_columns(count);
  float* const scores = task.scratch + at.scores_at;
  multiply_keys({task.scratch, task.size, task.queries}, {task.k + keys.begin * task.k_stride, task.k_stride, count},
                task.size, scores, padded);
  weigh_block(task, at, keys, {0, task.queries});
  add_values({scores, padded, task.queries}, {task.v + keys.begin * task.v_stride, task.v_stride, count},
             task.value_size, task.scratch + at.sums_at, padded_columns(task.value_size));
}

// Does a mask of bools hide these keys from all queries? They are not looked at then, whatever they are: a cache is
// often longer than what it holds, and of a prompt half of all pairs are hidden.
bool are_hidden(const AttentionTask& task, KeyRange keys) {
  if (!task.mask || !task.mask_is_bool) return false;
  const int64_t count = std::min(keys.end, task.mask_keys) - keys.begin;
  // Later queries are more likely to see them.
  for (int64_t i = task.queries; count > 0 && i-- > 0;) {
    const bool* const row = static_cast<const bool*>(task.mask) + i * task.mask_stride + keys.begin;
    if (std::memchr(row, 1, static_cast<size_t>(count))) return false;
    if (task.mask_stride == 0) break;
  }
  return true;
}

// Does the query see any key at all? Asked where no weight is above 0.
bool sees_any_key(const AttentionTask& task, int64_t query) {
  const KeyRange range = visible_keys(task, query, 0, task.keys);
  if (!task.mask) return range.begin < range.end;
  const int64_t row = query * task.mask_stride;
  for (int64_t key = range.begin; key < range.end; ++key) {
    const bool is_seen = task.mask_is_bool ? static_cast<const bool*>(task.mask)[row + key]
                                           : static_cast<const float*>(task.mask)[row + key] != -kInfinity;
    if (is_seen) return true;
  }
  return false;
}

// What the sums of a query are divided by. Without any key the result is 0; scores that are all minus infinity by
// themselves make it NaN.
float normalizer(const AttentionTask& task, int64_t query, float sum) {
  if (sum != 0) return 1 / sum;
  return sees_any_key(task, query) ? std::numeric_limits<float>::quiet_NaN() : 0.0F;
}

void attend(const AttentionTask& task) {
  const D d;
  const AttentionScratch at(task.queries, task.keys, task.size, task.value_size);
  const int64_t width = padded_columns(task.value_size);
  const V scale = hn::Set(d, task.scale);
  for (int64_t i = 0; i < task.queries; ++i) {
    map_row(d, task.q + i * task.q_stride, task.scratch + i * task.size, static_cast<size_t>(task.size),
            [&](V x, size_t, size_t) HWY_ATTR { return hn::Mul(x, scale); });
  }
  float* sums = task.scratch + at.sums_at;
  float* largest = task.scratch + at.rows_at;
  float* sum = largest + task.queries;
  std::fill(sums, sums + task.queries * width, 0.0F);
  std::fill(largest, largest + task.queries, -kInfinity);
  std::fill(sum, sum + task.queries, 0.0F);
  for (int64_t first = 0; first < task.keys; first += kKeyBlock) {
    const int64_t count = std::min(kKeyBlock, task.keys - first);
    // Blocks beyond the causal frontier, or before the window.
    if (first > task.first_query + (task.queries - 1) * task.position_step + task.visible_after) break;
    if (first + count <= task.first_query - task.visible_before) continue;
    if (are_hidden(task, {first, first + count})) continue;
    if (task.queries <= kFewQueries) {
      add_keys_in_place(task, at, {first, first + count});
    } else {
      add_packed_keys(task, at, {first, first + count});
    }
  }
  for (int64_t i = 0; i < task.queries; ++i) {
    const float inverse = normalizer(task, i, sum[i]);
    // Infinite where no key is seen, so that weights formed from it are 0.
    if (task.log_sums) task.log_sums[i] = inverse == 0 ? kInfinity : largest[i] + std::log(sum[i]) + 0 * inverse;
    const V factor = hn::Set(d, inverse);
    map_row(d, sums + i * width, task.y + i * task.y_stride, static_cast<size_t>(task.value_size),
            [&](V x, size_t, size_t) HWY_ATTR { return hn::Mul(x, factor); });
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(attend);

class AttentionKernel : public Kernel {
 public:
  explicit AttentionKernel(const KernelCall& call)
      : q_(call.input_dims(0), call.attributes.get_or<int64_t>("q_num_heads", 1)),
        k_(call.input_dims(1), call.attributes.get_or<int64_t>("kv_num_heads", 1)),
        v_(call.input_dims(2), call.attributes.get_or<int64_t>("kv_num_heads", 1)),
        y_(call.output_dims(0), q_.heads),
        settings_(call.attributes, q_.size) {
    if (call.has_input(3)) mask_ = MaskLayout(call.inputs[3]);
    has_sums_ = call.outputs.size() > 1;
    group_ = q_.heads / std::max<int64_t>(k_.heads, 1);
    const int64_t shared = std::max<int64_t>(q_.batch * k_.heads, 1);
    if (q_.length == 1) heads_ = (group_ - 1) / ((call.threads - 1) / shared + 1) + 1;
    const int64_t blocks = (q_.length + kMaxQueries - 1) / kMaxQueries;
    // Few heads: shorter blocks, so that every thread has some.
    const int64_t wanted = std::max(blocks, (4 * call.threads - 1) / std::max<int64_t>(q_.batch * q_.heads, 1) + 1);
    queries_ = std::max<int64_t>(8, ((q_.length + wanted - 1) / wanted + 7) / 8 * 8);
    queries_ = std::max(queries_, heads_);
    scratch_elements_ = AttentionScratch(queries_, k_.length, q_.size, v_.size).total;
    const int64_t work = q_.batch * q_.heads * q_.length * k_.length * (q_.size + v_.size) / 8;
    threads_ = useful_threads(call.threads, work);
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * scratch_elements_) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    const int64_t blocks = (q_.length + queries_ - 1) / queries_;
    const int64_t parts = (group_ + heads_ - 1) / heads_;
    for_shares(threads_, q_.batch * k_.heads * parts * blocks, [&](int64_t begin, int64_t end, int thread) {
      float* scratch = static_cast<float*>(args.scratch) + thread * scratch_elements_;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t part = t / blocks, shared = part / parts;
        const int64_t first = part % parts * heads_;
        run_task(args, {shared / k_.heads, shared % k_.heads, first, std::min(heads_, group_ - first)},
                 t % blocks * queries_, scratch);
      }
    });
  }

 private:
  // Some of the query heads that share keys and values.
  struct SharedHeads {
    int64_t batch, kv_head, first, count;
  };

  void run_task(const KernelArgs& args, const SharedHeads& heads, int64_t first, float* scratch) const {
    const int64_t b = heads.batch, head = heads.kv_head * group_ + heads.first;
    const bool is_alone = heads_ == 1;  // else queries are those of several heads
    AttentionTask task{};
    task.q = args.inputs[0].data<float>() + q_.offset(b, head, first);
    task.k = args.inputs[1].data<float>() + k_.offset(b, heads.kv_head, 0);
    task.v = args.inputs[2].data<float>() + v_.offset(b, heads.kv_head, 0);
    task.y = args.outputs[0].mutable_data<float>() + y_.offset(b, head, first);
    if (mask_.is_given()) task.mask = mask_.row(args.inputs[3], b, head, first);
    if (has_sums_) task.log_sums = args.outputs[1].mutable_data<float>() + (b * q_.heads + head) * q_.length + first;
    task.q_stride = is_alone ? q_.position_stride : q_.head_stride;
    task.y_stride = is_alone ? y_.position_stride : y_.head_stride;
    task.mask_stride = is_alone ? mask_.query_stride : mask_.head_stride;
    task.k_stride = k_.position_stride, task.v_stride = v_.position_stride;
    task.first_query = first, task.queries = is_alone ? std::min(queries_, q_.length - first) : heads.count;
    task.position_step = is_alone ? 1 : 0;
    task.keys = k_.length;
    task.size = q_.size, task.value_size = v_.size;
    task.mask_keys = mask_.keys, task.mask_is_bool = mask_.is_bool;
    task.scale = settings_.scale, task.softcap = settings_.softcap;
    task.visible_before = settings_.visible_before, task.visible_after = settings_.visible_after;
    task.scratch = scratch;
    HWY_DYNAMIC_DISPATCH(attend)(task);
  }

  const HeadLayout q_, k_, v_, y_;
  const ScoreSettings settings_;
  MaskLayout mask_;
  bool has_sums_ = false;
  int64_t group_ = 1;  // query heads that share keys and values
  int64_t heads_ = 1;  // of these, how many a task takes
  int64_t queries_ = 0, scratch_elements_ = 0;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.has_input(4)) return "a key/value cache";
  if (call.has_input(6)) return "nonpad_kv_seqlen";
  if (call.outputs.size() > 1) return "more than one output";
  return why_not_attention(call, 3, 3);
}

std::string why_not_tiled(const KernelCall& call) { return why_not_attention(call, 3, 3); }

Prepared prepare(const KernelCall& call) { return {std::make_unique<AttentionKernel>(call), ""}; }

}  // namespace

KernelDef attention_kernel() {
  return {.name = "cpu.attention_simd", .op = attention_def().name, .why_not = why_not, .prepare = prepare};
}

KernelDef tiled_attention_kernel() {
  return {.name = "cpu.tiled_attention_simd",
          .op = tiled_attention_def().name,
          .why_not = why_not_tiled,
          .prepare = prepare};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
