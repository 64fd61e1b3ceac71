// fused: elementwise ops with a reduction of the innermost axes at their end. Some rows at a time are computed as a
// tile program and combined while they are in cache, so that what lies between never reaches memory.
#include <algorithm>
#include <utility>
#include <vector>

#include "autograph/verify.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/simd/elementwise/lower_body.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/reduction/row_reduction.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/reduction/axes.h"

namespace autograph::simd {
namespace {

// Elements that are computed before they are combined: half of a first cache. Longer rows stay in the second one.
constexpr int64_t kBand = int64_t{6} * 1024;
constexpr int64_t kLongestRow = int64_t{64} * 1024;

// A call taken apart. Types are those of the call.
struct FusedReduction {
  std::shared_ptr<const Graph> body;
  std::vector<NodeId> elementwise;
  const Node* last = nullptr;  // the reduction
  int64_t rows = 0;
  int64_t length = 0;  // of a row
  TileProgram program;
  std::string refusal;

  explicit FusedReduction(const KernelCall& call) : body(typed_body(call)) { refusal = read(call); }

  ValueId reduced() const { return last->inputs()[0]; }
  // The call whose output is what will be reduced.
  KernelCall elementwise_call(const KernelCall& call, const Type& output) const {
    KernelCall part = call;
    part.outputs = {&output, 1};
    part.variant = nullptr;
    return part;
  }

 private:
  std::string read(const KernelCall& call) {
    elementwise = body->topological_order();
    if (elementwise.size() < 2 || body->outputs().size() != 1) return "not several ops with one output";
    last = &body->node(elementwise.back());
    elementwise.pop_back();
    if (last->outputs().size() != 1 || last->output(0) != body->outputs()[0]) return "a result in the middle";
    if (body->type(reduced()).dtype() != DType::f32) return "a reduction of other than f32";
    std::string reason = read_reduction(call.threads);
    if (reason.empty()) {
      const ValueId result = reduced();
      reason = lower_body(call, *body, elementwise, {&result, 1}, program);
    }
    if (!reason.empty()) return reason;
    return why_not_tiles(elementwise_call(call, body->type(reduced())), program);
  }

  std::string read_reduction(int threads) {
    std::vector<Type> inputs, outputs{body->type(last->output(0))};
    std::vector<Tensor> constants;
    for (const ValueId v : last->inputs()) {
      inputs.push_back(v.is_valid() ? body->type(v) : Type());
      constants.push_back(v.is_valid() && body->value(v).is_constant() ? body->value(v).constant() : Tensor());
    }
    if (!inputs[0].is_static()) return "dims that are not known";
    const auto axes = reduced_axes({last->op(), last->attributes(), inputs, outputs, constants, threads});
    if (!axes) return std::string(last->op().name) + " at the end of the body";
    if (!axes->is_row || axes->offsets.size() != 1) return "a reduction of other than the innermost axes";
    rows = axes->groups;
    length = axes->run;
    if (length < 2) return "rows of one element";
    if (length > kLongestRow) return "rows that are too long to stay in cache";
    // Rows are not shared between threads.
    return useful_threads(threads, rows * length) > rows ? "fewer rows than threads" : "";
  }
};

std::string why_not(const KernelCall& call) {
  const Graph& body = *call.attributes.get<GraphRef>("body");
  for (const ValueId v : body.outputs()) {
    const NodeId producer = body.value(v).producer();
    if (!producer.is_valid() || !is_reduction(body.node(producer).op())) return "no reduction at the end";
  }
  return FusedReduction(call).refusal;
}

class FusedReductionKernel : public Kernel {
 public:
  FusedReductionKernel(const KernelCall& call, FusedReduction parts)
      : rows_(parts.rows),
        length_(parts.length),
        rows_per_band_(std::max<int64_t>(1, kBand / parts.length)),
        threads_(useful_threads(call.threads, rows_ * length_ * static_cast<int64_t>(parts.elementwise.size()))),
        total_(parts.last->op().name, parts.length) {
    const Type between = parts.body->type(parts.reduced());
    tiles_ = make_tile_range(parts.elementwise_call(call, between), std::move(parts.program));
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_) * static_cast<size_t>(scratch_elements()) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int thread) {
      float* scratch = static_cast<float*>(args.scratch) + thread * scratch_elements();
      float* band = scratch + tiles_->scratch_elements();
      for (int64_t row = begin; row < end; row += rows_per_band_) {
        const int64_t rows = std::min(rows_per_band_, end - row);
        const float* x = tiles_->compute(args.inputs, row * length_, (row + rows) * length_, scratch, band);
        total_.run(x, rows, y + row);
      }
    });
  }

 private:
  int64_t scratch_elements() const { return tiles_->scratch_elements() + rows_per_band_ * length_ + 2 * kTileElements; }

  int64_t rows_;
  int64_t length_;
  int64_t rows_per_band_;
  int threads_;
  RowReduction total_;
  std::unique_ptr<TileRange> tiles_;
};

Prepared prepare(const KernelCall& call) {
  return {std::make_unique<FusedReductionKernel>(call, FusedReduction(call)), ""};
}

}  // namespace

KernelDef fused_reduction_kernel() {
  return {.name = "cpu.fused_reduction_simd", .op = fused_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::simd
