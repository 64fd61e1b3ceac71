// fused: a mixture of experts (optimize/expert_mix.h) of which each token is computed by those whose factor for it is
// not 0. What an expert would give that does not count is not computed, even where that is infinite.
//
// The tokens of an expert are copied one behind the other; its two products in front share their loop, and the
// factor is applied on the way to the result. Threads share columns, so that all have the same to do whichever experts
// were chosen, and none waits for weights that another one reads.
#include <algorithm>
#include <memory>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent/recurrent_cells.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"
#include "optimize/expert_mix.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/chosen_experts.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/elementwise/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

// h [rows, width] = swiglu(c[:, :width], c[:, width:]) of rows of two panels.
void gate_rows(const float* c, int64_t rows, int64_t width, float* h, int64_t h_stride) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row, c += 2 * width, h += h_stride) {
    for (int64_t at = 0; at < width; at += lanes) {
      const Lanes gate(hn::LoadU(d, c + at)), value(hn::LoadU(d, c + width + at));
      hn::StoreU(formulas::fast<formulas::Swiglu>(gate, value, Lanes(1)).v, d, h + at);
    }
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(gate_rows);

constexpr int64_t kMaxTokens = 256;  // computed at a time, so that what lies between the products stays in cache

bool is_input(const Graph& body, ValueId v) {
  const auto& inputs = body.inputs();
  return std::find(inputs.begin(), inputs.end(), v) != inputs.end();
}

// The mixture of a body, whose weights are inputs of the call.
struct ExpertCall {
  std::shared_ptr<const Graph> body;
  std::optional<ExpertMix> mix;

  explicit ExpertCall(const KernelCall& call) : body(typed_body(call)) {
    if (body->outputs().size() != 1) return;
    const NodeId last = body->value(body->outputs()[0]).producer();
    if (!last.is_valid()) return;
    mix = read_expert_mix(*body, last, is_input);
    if (mix && (mix->nodes.size() != body->num_nodes() || !is_input(*body, mix->x))) mix.reset();
    for (size_t i = 0; mix && i < mix->experts.size(); ++i) {
      if (!is_input(*body, mix->experts[i].factor)) mix.reset();
    }
  }

  size_t slot(ValueId v) const {
    const auto& inputs = body->inputs();
    return static_cast<size_t>(std::find(inputs.begin(), inputs.end(), v) - inputs.begin());
  }
};

// [depth, columns] as rows of columns: what pack_gates() reads.
void transpose_into(const Tensor& matrix, float* to) {
  const int64_t depth = matrix.dims()[0], columns = matrix.dims()[1];
  const float* from = matrix.data<float>();
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t c = 0; c < columns; ++c) to[c * depth + k] = from[k * columns + c];
  }
}

// Matrices with the same rows, packed panel by panel, one after the other in each block of columns.
void pack_together(const std::vector<Tensor>& matrices, float* to) {
  const int64_t depth = matrices[0].dims()[0], columns = matrices[0].dims()[1];
  const auto count = static_cast<int64_t>(matrices.size());
  std::vector<float> turned(static_cast<size_t>(count * depth * columns));
  for (int64_t i = 0; i < count; ++i) transpose_into(matrices[static_cast<size_t>(i)], &turned[i * depth * columns]);
  std::vector<float> scratch(static_cast<size_t>(gate_width() * depth));
  pack_gates(turned.data(), count, columns, depth, scratch.data(), to);
}

class ChosenExperts : public WeightsKernel {
 public:
  explicit ChosenExperts(const KernelCall& call) : width_(gate_width()) {
    const ExpertCall experts(call);
    mix_ = *experts.mix;
    x_slot_ = experts.slot(mix_.x);
    reads_.assign(call.inputs.size(), false);
    reads_[x_slot_] = true;
    for (const Expert& expert : mix_.experts) {
      factor_slots_.push_back(experts.slot(expert.factor));
      reads_[factor_slots_.back()] = true;
      const auto weight = [&](ValueId v) { return KnownWeight::of(call, experts.slot(v)); };
      const int64_t front_size = packed_gates_size(2, mix_.inner, mix_.width);
      const int64_t back_size = packed_gates_size(1, mix_.columns, mix_.inner);
      front_.push_back(
          &packed(call, {weight(expert.gate), weight(expert.up)}, {"experts_simd front", front_size, pack_together}));
      back_.push_back(&packed(call, {weight(expert.down)}, {"experts_simd back", back_size, pack_together}));
    }
    chunk_ = std::min(mix_.tokens, kMaxTokens);
    inner_blocks_ = (mix_.inner + width_ - 1) / width_;
    column_blocks_ = (mix_.columns + width_ - 1) / width_;
    threads_ = useful_threads(call.threads, mix_.tokens * mix_.width * mix_.inner / 8);
  }

  bool reads_input(size_t slot) const override { return reads_[slot]; }
  size_t scratch_bytes() const override {
    const int64_t pairs = chunk_ * static_cast<int64_t>(mix_.experts.size());
    return static_cast<size_t>(pairs * (mix_.width + padded_inner()) + threads_ * thread_size()) * sizeof(float) +
           (mix_.experts.size() + 1 + static_cast<size_t>(pairs)) * sizeof(int64_t);
  }

  void run(const KernelArgs& args) const override {
    for (int64_t first = 0; first < mix_.tokens; first += chunk_) {
      run_chunk(args, first, std::min(chunk_, mix_.tokens - first));
    }
  }

 private:
  int64_t padded_inner() const { return inner_blocks_ * width_; }
  int64_t thread_size() const { return chunk_ * 2 * width_; }

  // The pairs of a token and an expert that count, those of one expert together.
  struct Pairs {
    int64_t* begin;  // by expert; behind the last one the end
    int64_t* token;  // by pair, counted from the first of the chunk
    float* rows;     // of x, by pair
    float* hidden;   // by pair

    int64_t count(size_t expert) const { return begin[expert + 1] - begin[expert]; }
  };

  void run_chunk(const KernelArgs& args, int64_t first, int64_t count) const {
    const int64_t most = chunk_ * static_cast<int64_t>(mix_.experts.size());
    auto* const begin = static_cast<int64_t*>(args.scratch);
    int64_t* const token = begin + mix_.experts.size() + 1;
    auto* const rows = reinterpret_cast<float*>(token + most);
    const Pairs pairs{begin, token, rows, rows + most * mix_.width};
    float* const of_threads = pairs.hidden + most * padded_inner();
    gather(args, first, count, pairs);
    for_shares(threads_, inner_blocks_, [&](int64_t block, int64_t end, int thread) {
      for (; block < end; ++block) compute_hidden(pairs, block, of_threads + thread * thread_size());
    });
    for_shares(threads_, column_blocks_, [&](int64_t block, int64_t end, int thread) {
      for (; block < end; ++block)
        compute_results(args, first, count, pairs, block, of_threads + thread * thread_size());
    });
  }

  void gather(const KernelArgs& args, int64_t first, int64_t count, const Pairs& pairs) const {
    const float* x = args.inputs[x_slot_].data<float>() + first * mix_.width;
    int64_t at = 0;
    for (size_t expert = 0; expert < factor_slots_.size(); ++expert) {
      const float* factors = args.inputs[factor_slots_[expert]].data<float>() + first;
      pairs.begin[expert] = at;
      for (int64_t t = 0; t < count; ++t) {
        if (factors[t] == 0) continue;
        std::copy_n(x + t * mix_.width, mix_.width, pairs.rows + at * mix_.width);
        pairs.token[at++] = t;
      }
    }
    pairs.begin[factor_slots_.size()] = at;
  }

  // One block of what lies between the products.
  void compute_hidden(const Pairs& pairs, int64_t block, float* sums) const {
    for (size_t expert = 0; expert < front_.size(); ++expert) {
      const int64_t count = pairs.count(expert), begin = pairs.begin[expert];
      if (count == 0) continue;
      multiply_gates({pairs.rows + begin * mix_.width, mix_.width, count, mix_.width,
                      front_[expert]->data() + block * 2 * width_ * mix_.width, 2, sums, 2 * width_});
      HWY_DYNAMIC_DISPATCH(gate_rows)
      (sums, count, width_, pairs.hidden + begin * padded_inner() + block * width_, padded_inner());
    }
  }

  // One block of columns of the result.
  void compute_results(const KernelArgs& args, int64_t first, int64_t count, const Pairs& pairs, int64_t block,
                       float* sums) const {
    const int64_t columns = std::min(width_, mix_.columns - block * width_);
    float* const y = args.outputs[0].mutable_data<float>() + first * mix_.columns + block * width_;
    for (int64_t t = 0; t < count; ++t) std::fill_n(y + t * mix_.columns, columns, 0.0F);
    for (size_t expert = 0; expert < back_.size(); ++expert) {
      const int64_t begin = pairs.begin[expert];
      if (pairs.count(expert) == 0) continue;
      const float* factors = args.inputs[factor_slots_[expert]].data<float>() + first;
      multiply_gates({pairs.hidden + begin * padded_inner(), padded_inner(), pairs.count(expert), mix_.inner,
                      back_[expert]->data() + block * width_ * mix_.inner, 1, sums, width_});
      for (int64_t i = 0; i < pairs.count(expert); ++i) {
        const int64_t token = pairs.token[begin + i];
        for (int64_t c = 0; c < columns; ++c) y[token * mix_.columns + c] += factors[token] * sums[i * width_ + c];
      }
    }
  }

  ExpertMix mix_;
  int64_t width_;
  size_t x_slot_ = 0;
  std::vector<size_t> factor_slots_;  // by expert
  std::vector<bool> reads_;           // by input of the call
  std::vector<const PackedWeights*> front_, back_;
  int64_t chunk_ = 1, inner_blocks_ = 1, column_blocks_ = 1;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  const ExpertCall experts(call);
  if (!experts.mix) return "not a mixture of experts with weights from outside";
  for (const Expert& expert : experts.mix->experts) {
    for (const ValueId weight : {expert.gate, expert.up, expert.down}) {
      if (!call.constant(experts.slot(weight))) return "weights that are not known";
    }
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ChosenExperts>(call), ""}; }

// As if a quarter of all pairs counted: more is known only while running.
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 6, kFlopsPerUsAndThread = 60e3, kWeightsPerUs = 3e3, kShare = 0.25;
  const ExpertMix mix = *ExpertCall(call).mix;
  const double weights = static_cast<double>(mix.experts.size()) *
                         static_cast<double>(2 * mix.width * mix.inner + mix.inner * mix.columns);
  const double flops = 2 * kShare * weights * static_cast<double>(mix.tokens);
  const double us = kStartUs + flops / (kFlopsPerUsAndThread * call.threads) + weights / kWeightsPerUs;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
}

}  // namespace

KernelDef chosen_experts_kernel() {
  return {.name = "cpu.chosen_experts_simd",
          .op = fused_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
