// conv_integer on any CPU and in any form: what the windows of some output pixels read becomes panels of bytes, which
// the weights of all output channels are multiplied with. Padding is the zero point of the input.
#include <algorithm>

#include "autograph/op_def.h"
#include "backends/cpu/quantize/integer_windows.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/integer_loops.h"
#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "ops/defs.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::simd {
namespace {

constexpr size_t kX = 0, kW = 1, kXZero = 2, kWZero = 3;
// Output pixels that are packed at a time, and bytes of them: a part of the second cache.
constexpr int64_t kPixels = 256;
constexpr int64_t kPanelBytes = int64_t{128} * 1024;
constexpr PackedWhen kPacked = PackedWhen::each_run;  // the windows

bool is_signed(const KernelCall& call, size_t slot) { return call.inputs[slot].dtype() == DType::i8; }

// Zero point number `i`, of none, one or as many as there are.
int32_t zero_point(const TensorView& zeros, int64_t i) {
  if (!zeros.is_present()) return 0;
  const int64_t at = zeros.num_elements() > 1 ? i : 0;
  return zeros.dtype() == DType::i8 ? zeros.data<int8_t>()[at] : zeros.data<uint8_t>()[at];
}

// The weights of each output channel as a prepared row.
struct WeightRows {
  char* rows;
  IntegerRow* terms;
};

class IntegerConv : public Kernel {
 public:
  explicit IntegerConv(const KernelCall& call)
      : x_is_signed_(is_signed(call, kX)),
        w_is_signed_(is_signed(call, kW)),
        images_(call.input_dims(kX)[0]),
        groups_(call.attributes.integer("group")),
        channels_(call.input_dims(kW)[1]),
        outputs_(call.input_dims(kW)[0] / groups_),
        windows_(call) {
    const double products = static_cast<double>(images_ * groups_ * outputs_ * windows_.pixels() * depth());
    threads_ = useful_integer_threads(call.threads, products);
    const int64_t width = integer_panel_width();
    const int64_t fit = std::clamp<int64_t>(kPanelBytes / depth(), width, kPixels);
    // Enough parts for all threads.
    const int64_t share = (windows_.pixels() * images_ * groups_ + threads_ - 1) / threads_;
    chunk_ = (std::min({fit, share, windows_.pixels()}) + width - 1) / width * width;
    if (!call.constant(kW) || (call.has_input(kWZero) && !call.constant(kWZero))) return;
    const Tensor zeros = call.has_input(kWZero) ? *call.constant(kWZero) : Tensor();
    packed_ = PackedConstants::share(call.packed, {*call.constant(kW), zeros}, "integer_conv_simd", [&] {
      Tensor packed = Tensor::empty(DType::u8, {static_cast<int64_t>(weight_row_bytes())});
      prepare_weights(static_cast<const uint8_t*>(call.constant(kW)->raw()), zeros.view(),
                      weight_rows(packed.mutable_raw()));
      return packed;
    });
  }

  size_t scratch_bytes() const override { return memory_of_threads() + (packed_ ? 0 : weight_row_bytes()); }
  size_t weight_bytes() const override { return packed_ ? packed_->size_bytes() : 0; }
  bool reads_input(size_t slot) const override { return (slot != kW && slot != kWZero) || !packed_; }

  void run(const KernelArgs& args) const override {
    const auto given = [&](size_t slot) { return slot < args.inputs.size() ? args.inputs[slot] : TensorView(); };
    void* const memory =
        packed_ ? const_cast<void*>(packed_->raw()) : static_cast<char*>(args.scratch) + memory_of_threads();
    const WeightRows weights = weight_rows(memory);
    if (!packed_) prepare_weights(static_cast<const uint8_t*>(args.inputs[kW].raw()), given(kWZero), weights);
    const int32_t zero = zero_point(given(kXZero), 0);
    const auto* x = static_cast<const uint8_t*>(args.inputs[kX].raw());
    auto* const y = static_cast<int32_t*>(args.outputs[0].raw());
    const int64_t chunks = (windows_.pixels() + chunk_ - 1) / chunk_;
    for_shares(threads_, images_ * groups_ * chunks, [&](int64_t begin, int64_t end, int thread) {
      auto* const scratch = static_cast<char*>(args.scratch) + static_cast<size_t>(thread) * bytes_of_thread();
      auto* const zeros = reinterpret_cast<int32_t*>(scratch);
      auto* const panels = reinterpret_cast<int8_t*>(zeros + chunk_);
      std::fill_n(zeros, chunk_, zero - (x_is_signed_ ? 0 : kUnsignedShift));
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t part = unit / chunks, first = unit % chunks * chunk_;
        const int64_t count = std::min(chunk_, windows_.pixels() - first), channel = part % groups_ * outputs_;
        pack(x + part * channels_ * windows_.inputs(), static_cast<uint8_t>(zero), first, count, panels);
        multiply_integers({.rows = weights.rows + channel * integer_row_bytes(depth(), kPacked),
                           .terms = weights.terms + channel,
                           .count = outputs_,
                           .depth = depth(),
                           .panels = panels,
                           .packed = kPacked,
                           .columns = count,
                           .zeros = zeros,
                           .y = y + part * outputs_ * windows_.pixels() + first,
                           .y_stride = windows_.pixels()});
      }
    });
  }

 private:
  int64_t depth() const { return channels_ * windows_.taps(); }
  int64_t rows() const { return groups_ * outputs_; }
  int64_t panel_bytes() const { return chunk_ / integer_panel_width() * integer_panel_bytes(depth(), kPacked); }
  // Zero points, panels and rows that are to be packed.
  size_t bytes_of_thread() const {
    return aligned_size(static_cast<size_t>(panel_bytes()) +
                        static_cast<size_t>(chunk_) * (sizeof(int32_t) + static_cast<size_t>(integer_group(kPacked))));
  }
  size_t memory_of_threads() const { return static_cast<size_t>(threads_) * bytes_of_thread(); }
  size_t row_bytes() const { return aligned_size(static_cast<size_t>(rows() * integer_row_bytes(depth(), kPacked))); }
  size_t weight_row_bytes() const { return row_bytes() + static_cast<size_t>(rows()) * sizeof(IntegerRow); }
  WeightRows weight_rows(void* memory) const {
    auto* const rows = static_cast<char*>(memory);
    return {rows, reinterpret_cast<IntegerRow*>(rows + row_bytes())};
  }

  void prepare_weights(const uint8_t* w, const TensorView& zeros, const WeightRows& to) const {
    for (int64_t row = 0; row < rows(); ++row) {
      to.terms[row] = prepare_integer_row(w + row * depth(), w_is_signed_, zero_point(zeros, row), depth(), kPacked,
                                          to.rows + row * integer_row_bytes(depth(), kPacked));
    }
  }

  // Panels of [channel and tap, output pixel].
  void pack(const uint8_t* x, uint8_t zero, int64_t first, int64_t count, int8_t* panels) const {
    auto* const rows = reinterpret_cast<uint8_t*>(panels) + panel_bytes();
    const int64_t group = integer_group(kPacked);
    const IntegerWindows::Pixel begin = windows_.pixel(first);
    int64_t tap = 0;
    for (int64_t k = 0; k < depth(); k += group) {
      for (int64_t i = k; i < std::min(k + group, depth()); ++i) {
        windows_.fill(x, tap, begin, count, 0, zero, rows + (i - k) * chunk_);
        if (++tap < windows_.taps()) continue;
        tap = 0;
        x += windows_.inputs();
      }
      pack_integer_rows({rows, chunk_, x_is_signed_}, count, k, depth(), kPacked, panels);
    }
    finish_integer_panels(count, depth(), kPacked, panels);
  }

  const bool x_is_signed_, w_is_signed_;
  const int64_t images_, groups_;
  const int64_t channels_, outputs_;  // of a group
  const IntegerWindows windows_;
  int64_t chunk_ = 1;  // pixels that are packed at a time, in whole panels
  int threads_ = 1;
  std::shared_ptr<const Tensor> packed_;  // weight rows, when they are known
};

std::string why_not(const KernelCall& call) {
  if (call.input_dims(kX).size() < 3 || call.input_dims(kX).size() > 5) return "1 to 3 spatial dims only";
  for (const Type& type : {call.inputs[kX], call.inputs[kW], call.outputs[0]}) {
    if (type.shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<IntegerConv>(call), ""}; }

}  // namespace

KernelDef integer_conv_kernel() {
  return {.name = "cpu.integer_conv_simd",
          .op = conv_integer_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = integer_variants};
}

}  // namespace autograph::simd
