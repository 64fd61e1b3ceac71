// Products of stacks of 8-bit matrices on any CPU, up to the quantization of the result: `fused` bodies of dequantized
// products and convolutions, qlinear_matmul, qlinear_conv. Sums are exact; what is made of them is the definition's up
// to one step of the output. A known matrix is packed once, others in each run.
//
// A convolution is a product of what the windows read of channels-last images. Row-major ones are turned there and
// back.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "autograph/op_def.h"
#include "backends/cpu/quantize/pixel_windows.h"
#include "backends/cpu/quantize/quantized_cost.h"
#include "backends/cpu/simd/isa.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/linear/integer_loops.h"
#include "backends/cpu/simd/linear/quantized_finish.h"
#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "ops/defs.h"
#include "ops/linear/matmul_shape.h"
#include "runtime/memory/packed_constants.h"
#include "tensor/size_of.h"

namespace autograph::simd {
namespace {

// Rows that stay in the second cache while they meet all columns, and columns whose sums stay in the first one.
constexpr int64_t kBlockRows = 96;
constexpr int64_t kBlockColumns = 128;

// Known weights as [depth, column], those of a convolution with the channels as the fastest part of the depth.
Tensor matrix_of(const QuantizedCall& call) {
  if (call.channel_axis_of_weights() != 0) return call.weights;
  const int64_t columns = call.w_dims[0], channels = call.w_dims[1];
  const int64_t taps = call.weights.num_elements() / (columns * channels);
  Tensor result = Tensor::empty(call.w_dtype, {taps * channels, columns});
  const auto* from = static_cast<const uint8_t*>(call.weights.raw());
  auto* const to = static_cast<uint8_t*>(result.mutable_raw());
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) to[(tap * channels + channel) * columns + column] = *from++;
    }
  }
  return result;
}

// Of results in units of the output, without its zero point.
std::pair<float, float> bounds_of(const QuantizedCall& call) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float low = call.is_clipped() ? call.low / call.y.scale : -kInfinity;
  const float high = call.is_clipped() ? call.high / call.y.scale : kInfinity;
  if (call.y.dtype == DType::f32) return {low, high};
  const int32_t lowest = call.y.dtype == DType::i8 ? -128 : 0;
  const auto first = static_cast<float>(lowest - call.y.zero), last = static_cast<float>(lowest + 255 - call.y.zero);
  return {std::clamp(low, first, last), std::clamp(high, first, last)};
}

// Rows of one matrix on the left, or of all, with one matrix on the right.
struct Pairing {
  int64_t first_row;
  int64_t matrix;
};

class QuantizedProduct : public Kernel {
 public:
  QuantizedProduct(const KernelCall& call, const QuantizedCall& product)
      : x_(product.x),
        residual_input_(product.residual ? product.residual->input : -1),
        w_input_(static_cast<size_t>(product.w)),
        w_is_signed_(product.w_dtype == DType::i8),
        when_(product.weights.is_present() ? PackedWhen::once : PackedWhen::each_run),
        columns_(product.num_channels()) {
    product.is_conv() ? read_windows(product) : read_stacks(product);
    for (const int64_t extent : product.x_dims) x_bytes_ *= extent;
    const double products = static_cast<double>(num_pairings() * rows_ * columns_) * static_cast<double>(depth_);
    threads_ = useful_integer_threads(call.threads, products);
    fill_finish(product);
    if (!product.weights.is_present()) return;
    const std::string form = "quantized_product_simd " + std::to_string(product.channel_axis_of_weights());
    packed_ = PackedConstants::share(call.packed, {product.weights}, form, [&] {
      Tensor packed = Tensor::empty(DType::i8, {packed_bytes()});
      pack_integer_matrices(matrices_of(matrix_of(product).raw()), 1, when_, packed.mutable_data<int8_t>());
      return packed;
    });
  }

  size_t scratch_bytes() const override {
    return memory_of_threads() + (packed_ ? 0 : static_cast<size_t>(packed_bytes()));
  }
  size_t weight_bytes() const override {
    const size_t of_columns = (scale_.size() + bias_.size()) * sizeof(float) + zeros_.size() * sizeof(int32_t);
    return of_columns + (packed_ ? packed_->size_bytes() : 0);
  }
  bool reads_input(size_t slot) const override { return slot != w_input_ || !packed_; }

  void run(const KernelArgs& args) const override {
    const int8_t* panels = packed_ ? packed_->data<int8_t>() : nullptr;
    if (!packed_) {
      auto* const to = static_cast<int8_t*>(args.scratch) + memory_of_threads();
      pack_integer_matrices(matrices_of(args.inputs[w_input_].raw()), threads_, when_, to);
      panels = to;
    }
    const auto* x = static_cast<const uint8_t*>(args.inputs[static_cast<size_t>(x_.input)].raw());
    const Output output{.residual = residual_input_ < 0 ? nullptr
                                                        : static_cast<const char*>(
                                                              args.inputs[static_cast<size_t>(residual_input_)].raw()),
                        .y = static_cast<char*>(args.outputs[0].raw())};
    const bool shares_columns = num_pairings() * tiles() < kTilesOfThread * threads_;
    const int64_t step = shares_columns ? integer_panel_width() : integer_tile_rows();
    const int64_t extent = shares_columns ? columns_ : rows_, steps = (extent + step - 1) / step;
    for_shares(threads_, num_pairings() * steps, [&](int64_t begin, int64_t end, int thread) {
      const Memory memory =
          memory_of(static_cast<char*>(args.scratch) + static_cast<size_t>(thread) * bytes_of_thread());
      for (int64_t at = begin; at < end;) {
        const int64_t first = at % steps, last = std::min(steps, first + end - at);
        const Range range{first * step, std::min(last * step, extent)};
        const Range rows = shares_columns ? Range{0, rows_} : range,
                    columns = shares_columns ? range : Range{0, columns_};
        compute(x, at / steps, panels, rows, columns, memory, output);
        at += last - first;
      }
    });
  }

 private:
  // Rows are shared where each thread has so many tiles of them, so that one more or less makes no difference.
  static constexpr int64_t kTilesOfThread = 8;
  static constexpr int64_t kNoOffset = 0;

  struct Range {
    int64_t begin, end;
  };
  // Some rows of a pairing.
  struct Block {
    int64_t pairing;
    int64_t row, count;
  };
  // What a thread works on.
  struct Memory {
    char* rows;  // prepared
    IntegerRow* terms;
    int32_t* sums;
    uint8_t* window;
  };
  struct Output {
    const char* residual;
    char* y;
  };

  void read_windows(const QuantizedCall& conv) {
    windows_.emplace(conv);
    rows_ = windows_->pixels();
    depth_ = windows_->row_bytes();
    runs_ = windows_->runs();
    pairings_.push_back({0, 0});
  }

  void read_stacks(const QuantizedCall& product) {
    depth_ = product.x_dims.back();
    const Dims w = product.channel_axis_of_weights() == 0 ? Dims{depth_, columns_} : product.w_dims;
    const MatmulWalk walk =
        walk_matmul(TensorView(DType::u8, product.x_dims, nullptr), TensorView(DType::u8, w, nullptr));
    rows_ = walk.size.rows;
    for (size_t i = 0; i < walk.a_matrix.size(); ++i) {
      pairings_.push_back({walk.a_matrix[i] * rows_, walk.b_matrix[i]});
      matrices_ = std::max(matrices_, walk.b_matrix[i] + 1);
    }
    if (w.size() > 2) return;
    rows_ *= num_pairings();
    pairings_.resize(1);
  }

  ByteMatrices matrices_of(const void* w) const {
    return {static_cast<const uint8_t*>(w), matrices_, depth_, columns_, w_is_signed_};
  }
  int64_t num_pairings() const { return static_cast<int64_t>(pairings_.size()); }
  int64_t panels() const { return (columns_ + integer_panel_width() - 1) / integer_panel_width(); }
  int64_t matrix_bytes() const { return panels() * integer_panel_bytes(depth_, when_); }
  int64_t packed_bytes() const { return matrices_ * matrix_bytes(); }
  int64_t tiles() const { return (rows_ + integer_tile_rows() - 1) / integer_tile_rows(); }
  int64_t block_rows() const { return std::min(kBlockRows, rows_); }
  size_t row_bytes() const {
    return aligned_size(static_cast<size_t>(block_rows() * integer_row_bytes(depth_, when_)));
  }
  size_t term_bytes() const { return aligned_size(static_cast<size_t>(block_rows()) * sizeof(IntegerRow)); }
  size_t sum_bytes() const {
    const int64_t count = block_rows() * kBlockColumns + quantized_finish_padding();
    return aligned_size(static_cast<size_t>(count) * sizeof(int32_t));
  }
  size_t bytes_of_thread() const {
    return row_bytes() + term_bytes() + sum_bytes() + (windows_ ? aligned_size(static_cast<size_t>(depth_)) : 0);
  }
  size_t memory_of_threads() const { return static_cast<size_t>(threads_) * bytes_of_thread(); }
  Memory memory_of(char* scratch) const {
    return {.rows = scratch,
            .terms = reinterpret_cast<IntegerRow*>(scratch + row_bytes()),
            .sums = reinterpret_cast<int32_t*>(scratch + row_bytes() + term_bytes()),
            .window = reinterpret_cast<uint8_t*>(scratch + row_bytes() + term_bytes() + sum_bytes())};
  }

  void fill_finish(const QuantizedCall& product) {
    const auto count = static_cast<size_t>(columns_ + quantized_finish_padding());
    const float unit = product.y.scale;
    scale_.assign(count, product.scale[0]);
    if (product.scale.size() > 1) std::copy(product.scale.begin(), product.scale.end(), scale_.begin());
    bias_.assign(count, 0.0F);
    std::copy(product.bias.begin(), product.bias.end(), bias_.begin());
    for (float& scale : scale_) scale /= unit;
    for (float& bias : bias_) bias /= unit;
    zeros_.assign(static_cast<size_t>(panels() * integer_panel_width()), product.w_zero[0]);
    if (product.w_zero.size() > 1) std::copy(product.w_zero.begin(), product.w_zero.end(), zeros_.begin());
    for (int32_t& zero : zeros_) zero -= w_is_signed_ ? 0 : kUnsignedShift;
    has_zeros_ = std::any_of(zeros_.begin(), zeros_.end(), [](int32_t zero) { return zero != 0; });
    const auto [lowest, highest] = bounds_of(product);
    finish_ = {.scale = scale_.data(),
               .bias = bias_.data(),
               .low = lowest,
               .high = highest,
               .y = product.y.dtype,
               .y_zero = product.y.zero};
    if (!product.residual) return;
    finish_.residual = product.residual->dtype;
    finish_.residual_scale = product.residual->scale / unit;
    finish_.residual_zero = product.residual->zero;
  }

  void compute(const uint8_t* x, int64_t pairing, const int8_t* panels, const Range& rows, const Range& columns,
               const Memory& memory, const Output& output) const {
    panels += pairings_[static_cast<size_t>(pairing)].matrix * matrix_bytes();
    const int64_t blocks = (rows.end - rows.begin + kBlockRows - 1) / kBlockRows, tile = integer_tile_rows();
    const int64_t step = ((rows.end - rows.begin + blocks - 1) / blocks + tile - 1) / tile * tile;
    for (int64_t row = rows.begin; row < rows.end; row += step) {
      const Block block{.pairing = pairing, .row = row, .count = std::min(step, rows.end - row)};
      prepare_rows(x, block, memory);
      for (int64_t column = columns.begin; column < columns.end; column += kBlockColumns) {
        multiply(block, panels, {column, std::min(column + kBlockColumns, columns.end)}, memory, output);
      }
    }
  }

  void prepare_rows(const uint8_t* x, const Block& block, const Memory& memory) const {
    const int64_t first = pairings_[static_cast<size_t>(block.pairing)].first_row + block.row;
    std::array<const uint8_t*, kBlockRows> starts;
    for (int64_t i = 0; i < block.count; ++i) {
      starts[static_cast<size_t>(i)] = windows_ ? windows_->start(x, first + i) : x + (first + i) * depth_;
    }
    for (int64_t i = 0; i < block.count;) {
      int64_t last = i;
      while (last < block.count && starts[static_cast<size_t>(last)]) ++last;
      if (last > i) {
        prepare({starts.data() + i, static_cast<size_t>(last - i)}, {runs_, x + x_bytes_}, i, memory);
      } else {
        windows_->fill(x, first + i, static_cast<uint8_t>(x_.zero), memory.window);
        const uint8_t* const window = memory.window;
        prepare({&window, 1}, {{&kNoOffset, 1}, memory.window + depth_}, i, memory);
        last = i + 1;
      }
      i = last;
    }
  }

  // Where the bytes of rows lie, and what may be read of them.
  struct Source {
    std::span<const int64_t> runs;
    const uint8_t* end;
  };
  // Rows of a block from row `at` on.
  void prepare(std::span<const uint8_t* const> starts, const Source& source, int64_t at, const Memory& memory) const {
    const ByteRows rows{.starts = starts.data(),
                        .runs = source.runs,
                        .run_bytes = depth_ / static_cast<int64_t>(source.runs.size()),
                        .end = source.end,
                        .is_signed = x_.dtype == DType::i8,
                        .zero = x_.zero,
                        .packed = when_};
    prepare_integer_rows(rows, static_cast<int64_t>(starts.size()), has_zeros_,
                         memory.rows + at * integer_row_bytes(depth_, when_), memory.terms + at);
  }

  // At most kBlockColumns columns, from the first of a panel on.
  void multiply(const Block& block, const int8_t* panels, const Range& columns, const Memory& memory,
                const Output& output) const {
    const int64_t column = columns.begin, count = columns.end - column;
    multiply_integers({.rows = memory.rows,
                       .terms = memory.terms,
                       .count = block.count,
                       .depth = depth_,
                       .panels = panels + column / integer_panel_width() * integer_panel_bytes(depth_, when_),
                       .packed = when_,
                       .columns = count,
                       .zeros = has_zeros_ ? zeros_.data() + column : nullptr,
                       .y = memory.sums,
                       .y_stride = kBlockColumns});
    const auto y_bytes = static_cast<int64_t>(element_size(finish_.y));
    const int64_t at = (block.pairing * rows_ + block.row) * columns_ + column;
    finish_quantized(finish_, {.sums = memory.sums,
                               .sum_stride = kBlockColumns,
                               .rows = block.count,
                               .column = column,
                               .columns = count,
                               .residual = output.residual ? output.residual + at : nullptr,
                               .y = output.y + at * y_bytes,
                               .y_stride = columns_});
  }

  const QuantizedTensor x_;
  const int residual_input_;  // -1: none
  const size_t w_input_;
  const bool w_is_signed_;
  const PackedWhen when_;
  std::optional<PixelWindows> windows_;  // of a convolution
  std::vector<int64_t> runs_{0};         // of a row (ByteRows)
  std::vector<Pairing> pairings_;        // by matrix of the output
  int64_t matrices_ = 1;                 // on the right
  int64_t x_bytes_ = 1;
  int64_t rows_ = 1, depth_ = 1;  // of a pairing
  int64_t columns_;
  int threads_ = 1;
  std::vector<float> scale_, bias_;  // by column
  std::vector<int32_t> zeros_;       // of the columns as packed
  bool has_zeros_ = false;           // others than 0
  QuantizedFinish finish_{};
  std::shared_ptr<const Tensor> packed_;  // all matrices, where they are known
};

// A convolution of row-major images by one of channels-last images.
class TurnedConv : public Kernel {
 public:
  TurnedConv(const KernelCall& call, const QuantizedCall& conv, std::unique_ptr<Kernel> kernel)
      : kernel_(std::move(kernel)), y_(call.outputs[0]) {
    turned_.push_back(turn(call, static_cast<size_t>(conv.x.input), Layout::channels_last));
    if (conv.residual) turned_.push_back(turn(call, static_cast<size_t>(conv.residual->input), Layout::channels_last));
    back_ = reorder_by_transpose({y_, Layout::channels_last, Layout::row_major, call.threads});
    for (const Turned& input : turned_) bytes_ += aligned_size(size_of(input.type));
  }

  size_t scratch_bytes() const override {
    size_t bytes = std::max(kernel_->scratch_bytes(), back_->scratch_bytes());
    for (const Turned& input : turned_) bytes = std::max(bytes, input.kernel->scratch_bytes());
    return bytes_ + aligned_size(size_of(y_)) + bytes;
  }
  size_t weight_bytes() const override { return kernel_->weight_bytes(); }
  bool reads_input(size_t slot) const override { return kernel_->reads_input(slot); }

  void run(const KernelArgs& args) const override {
    auto* at = static_cast<char*>(args.scratch);
    void* const scratch = at + bytes_ + aligned_size(size_of(y_));
    std::vector<TensorView> inputs(args.inputs.begin(), args.inputs.end());
    for (const Turned& input : turned_) {
      const TensorView to(input.type.dtype(), inputs[input.slot].dims(), at);
      input.kernel->run({.inputs = {&inputs[input.slot], 1}, .outputs = {&to, 1}, .scratch = scratch});
      inputs[input.slot] = to;
      at += aligned_size(size_of(input.type));
    }
    const TensorView y(y_.dtype(), args.outputs[0].dims(), at);
    kernel_->run({.inputs = inputs, .outputs = {&y, 1}, .scratch = scratch});
    back_->run({.inputs = {&y, 1}, .outputs = args.outputs, .scratch = scratch});
  }

 private:
  struct Turned {
    size_t slot;
    Type type;
    std::unique_ptr<Kernel> kernel;
  };

  static Turned turn(const KernelCall& call, size_t slot, Layout to) {
    return {slot, call.inputs[slot], reorder_by_transpose({call.inputs[slot], Layout::row_major, to, call.threads})};
  }

  std::unique_ptr<Kernel> kernel_, back_;
  Type y_;
  std::vector<Turned> turned_;
  size_t bytes_ = 0;  // of turned inputs
};

std::string why_not(const KernelCall& call) {
  std::string reason;
  const auto product = QuantizedCall::read(call, reason);
  if (!product) return reason;
  const bool is_transposed = product->channel_axis_of_weights() == 0;
  if (is_transposed && !product->weights.is_present()) return "weights that are not known";
  if (!product->is_conv()) return product->why_not_matmul();
  if (product->x_dims.size() < 3 || product->x_dims.size() > 5) return "1 to 3 spatial dims only";
  if (product->attributes->integer("group") != 1) return "groups";
  const QuantizedCost cost(*product, has_wide_vnni());
  return cost.float_ns() < cost.integer_ns() ? "convolutions of floats are faster here" : "";
}

double cost_us(const KernelCall& call, const QuantizedCall& product) {
  constexpr double kStartUs = 3, kNsPerUs = 1e3;
  return kStartUs + QuantizedCost(product, has_wide_vnni()).integer_ns() / (kNsPerUs * call.threads);
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  std::string ignored;
  const auto product = QuantizedCall::read(call, ignored);
  const double us = cost_us(call, *product);
  if (!product->is_conv()) return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  std::vector<Layout> inputs(call.inputs.size(), Layout::row_major);
  inputs[static_cast<size_t>(product->x.input)] = Layout::channels_last;
  if (product->residual) inputs[static_cast<size_t>(product->residual->input)] = Layout::channels_last;
  constexpr double kTurnedBytesPerUs = 4e3;
  double turned = static_cast<double>(size_of(call.outputs[0]));
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (inputs[slot] == Layout::channels_last) turned += static_cast<double>(size_of(call.inputs[slot]));
  }
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us + turned / kTurnedBytesPerUs},
          {.name = "", .inputs = inputs, .outputs = {Layout::channels_last}, .cost_us = us}};
}

Prepared prepare(const KernelCall& call) {
  std::string reason;
  const auto product = QuantizedCall::read(call, reason);
  if (!product) return {nullptr, reason};
  auto kernel = std::make_unique<QuantizedProduct>(call, *product);
  if (!product->is_conv() || call.variant->output(0) == Layout::channels_last) return {std::move(kernel), ""};
  return {std::make_unique<TurnedConv>(call, *product, std::move(kernel)), ""};
}

}  // namespace

std::vector<KernelDef> quantized_product_kernels() {
  std::vector<KernelDef> kernels;
  for (const std::string_view op : {fused_def().name, qlinear_matmul_def().name, qlinear_conv_def().name}) {
    kernels.push_back(
        {.name = "cpu.quantized_product_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants});
  }
  return kernels;
}

}  // namespace autograph::simd
