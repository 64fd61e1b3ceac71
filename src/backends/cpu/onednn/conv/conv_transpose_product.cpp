// conv_transpose whose windows lie side by side (strides as large as the kernel, no padding), row-major: a matrix
// product of the weights, seen as [C, M * taps], and the pixels, whose rows are then laid side by side.
//
// The product goes by rows of the image, as many as keep its result in the second cache. Known weights are packed.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/onednn/movable_memory.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/onednn/team/team_scope.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "base/aligned_size.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/window/conv_transpose_windows.h"

namespace autograph::onednn {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

// y[width * i + b] = rows[b][i] + bias for the `width` rows, `stride` apart.
AG_MULTIVERSION void lay_side_by_side(const float* rows, int64_t stride, int64_t width, int64_t count, float bias,
                                      float* y) {
  if (width == 2) {
    const float* second = rows + stride;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      y[2 * i] = rows[i] + bias;
      y[2 * i + 1] = second[i] + bias;
    }
    return;
  }
  for (int64_t b = 0; b < width; ++b) {
    for (int64_t i = 0; i < count; ++i) y[width * i + b] = rows[b * stride + i] + bias;
  }
}

// A transposed convolution whose windows lie side by side.
struct SideBySide {
  int64_t batch = 1, channels = 1, height = 1, width = 1;
  int64_t out_channels = 1, tap_rows = 1, tap_columns = 1;

  explicit SideBySide(const KernelCall& call) {
    const Dims x = call.input_dims(kX), w = call.input_dims(kW);
    batch = x[0];
    channels = x[1];
    height = x.size() == 4 ? x[2] : 1;
    width = x.back();
    out_channels = w[1];
    tap_rows = w.size() == 4 ? w[2] : 1;
    tap_columns = w.back();
  }

  int64_t pixels() const { return height * width; }
  // Rows of the matrix of weights: [M, tap rows, tap columns].
  int64_t products() const { return out_channels * tap_rows * tap_columns; }
  int64_t out_size() const { return products() * pixels(); }

  // Lays products of rows of an image, `count` pixels of them, side by side. Lines are pairs of an output channel and a
  // tap row, of which `result` begins with `first_line`; `y` is the whole image.
  struct Products {
    const float* result;
    int64_t first_row, rows;
    int64_t first_line;
  };
  void write_line(const Products& products, int64_t line, const float* bias, float* y) const {
    const int64_t count = products.rows * width, out_width = width * tap_columns, channel = line / tap_rows;
    float* to = y + ((channel * height + products.first_row) * tap_rows + line % tap_rows) * out_width;
    const float* from = products.result + (line - products.first_line) * tap_columns * count;
    for (int64_t r = 0; r < products.rows; ++r) {
      lay_side_by_side(from + r * width, count, tap_columns, width, bias ? bias[channel] : 0,
                       to + r * tap_rows * out_width);
    }
  }
};

const float* bias_of(const KernelArgs& args) {
  return args.inputs.size() > kB && args.inputs[kB].is_present() ? args.inputs[kB].data<float>() : nullptr;
}

// oneDNN's sgemm generates code for all kinds of products when it is called for the first time, which takes 45 ms with
// AVX-512.
class ConvTransposeProduct : public Kernel {
 public:
  explicit ConvTransposeProduct(const KernelCall& call) : shape_(call) {
    constexpr int64_t kMostElements = int64_t{1} << 19;  // 2 MiB
    rows_ = std::clamp<int64_t>(kMostElements / (shape_.products() * shape_.width), 1, shape_.height);
    threads_ = useful_threads(call.threads, shape_.products() * rows_ * shape_.width);
  }

  size_t scratch_bytes() const override {
    return static_cast<size_t>(shape_.products() * rows_ * shape_.width) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[kX].data<float>();
    const float* w = args.inputs[kW].data<float>();
    const float* bias = bias_of(args);
    float* y = args.outputs[0].mutable_data<float>();
    float* result = static_cast<float*>(args.scratch);
    const int64_t pixels = shape_.pixels(), products = shape_.products();
    for (int64_t n = 0; n < shape_.batch; ++n) {
      for (int64_t row = 0; row < shape_.height; row += rows_) {
        const int64_t rows = std::min(rows_, shape_.height - row), count = rows * shape_.width;
        const dnnl_status_t status =
            dnnl_sgemm('T', 'N', products, count, shape_.channels, 1, w, products,
                       x + n * shape_.channels * pixels + row * shape_.width, pixels, 0, result, count);
        AG_CHECK(status == dnnl_success, "dnnl_sgemm: {}", static_cast<int>(status));
        for_shares(threads_, shape_.out_channels * shape_.tap_rows, [&](int64_t begin, int64_t end, int) {
          for (int64_t line = begin; line < end; ++line) {
            shape_.write_line({result, row, rows, 0}, line, bias, y + n * shape_.out_size());
          }
        });
      }
    }
  }

 private:
  SideBySide shape_;
  int64_t rows_ = 1;  // of the image that are multiplied at a time
  int threads_ = 1;
};

// How an image is divided: rows that are multiplied at a time, and parts of the output channels.
struct Division {
  int64_t rows = 1, slices = 1, parts = 1;

  // Small images are taken as they lie. Slices of others are few enough pixels that a product stays in the second
  // cache, and that oneDNN need not go far from row to row.
  Division(const SideBySide& shape, int threads) {
    constexpr int64_t kSmallImage = 1024, kPixels = 512, kFewestPixels = 128, kFewestProducts = 64;
    rows = shape.height;
    if (shape.pixels() > kSmallImage) rows = std::clamp<int64_t>(kPixels / shape.width, 1, shape.height);
    slices = (shape.height + rows - 1) / rows;
    const int64_t wanted = (threads + shape.batch - 1) / shape.batch;  // shares of an image
    for (int64_t n = 2; slices * parts < wanted && shape.products() / n >= kFewestProducts; ++n) {
      if (shape.out_channels % n == 0) parts = n;
    }
    if (slices * parts < wanted) slices = std::clamp<int64_t>(shape.pixels() / kFewestPixels, slices, wanted / parts);
    rows = (shape.height + slices - 1) / slices;
    slices = (shape.height + rows - 1) / rows;
  }
};

// Of few products, or of lines that are too long to be copied, sgemm makes more.
bool is_worth_packing(const KernelCall& call, const SideBySide& shape) {
  constexpr int64_t kFewestProducts = 16, kMostPixels = 2048;
  const bool has_elements = shape.batch * shape.channels * shape.pixels() > 0;
  return call.constant(kW) && has_elements && shape.products() >= kFewestProducts && shape.width <= kMostPixels;
}

// With known weights, transposed once: oneDNN's other product, of which code is generated for one shape alone, for one
// thread. Each thread has slices or channels of its own; slices are copied to where one row is next to the other.
class KnownConvTransposeProduct : public WeightsKernel {
 public:
  // Null where oneDNN would call its sgemm all the same.
  static std::unique_ptr<Kernel> make(const KernelCall& call) {
    const SideBySide shape(call);
    if (!is_worth_packing(call, shape)) return nullptr;
    const int threads = useful_threads(call.threads, shape.batch * shape.out_size());
    const Division division(shape, threads);
    const int64_t rest = shape.height - (division.slices - 1) * division.rows;
    const TeamScope scope(1);
    std::vector<dnnl::matmul::primitive_desc> list;
    for (const int64_t rows : {division.rows, rest}) {
      const dnnl::memory::dims a{shape.products() / division.parts, shape.channels},
          b{shape.channels, rows * shape.width};
      try {
        list.push_back({{row_major(a), row_major(b), row_major({a[0], b[1]})}, new_attributes(), cpu_engine()});
      } catch (const dnnl::error&) {
        return nullptr;
      }
      if (!std::string_view(list.back().impl_info_str()).starts_with("brg")) return nullptr;
    }
    return std::make_unique<KnownConvTransposeProduct>(call, division, list, threads);
  }

  KnownConvTransposeProduct(const KernelCall& call, const Division& division,
                            const std::vector<dnnl::matmul::primitive_desc>& list, int threads)
      : shape_(call),
        division_(division),
        threads_(threads),
        packed_(packed(call, {KnownWeight::of(call, kW)}, form())) {
    for (const dnnl::matmul::primitive_desc& pd : list) {
      products_.push_back({dnnl::matmul(pd), pd.src_desc(), pd.weights_desc(), pd.dst_desc(), pd.scratchpad_desc()});
    }
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_) * bytes_of_worker(); }
  bool reads_input(size_t slot) const override { return slot != kW; }

  std::unique_ptr<KernelState> new_state() const override {
    auto state = std::make_unique<State>();
    for (int t = 0; t < threads_; ++t) {
      Worker& worker = state->workers.emplace_back();
      for (const Product& product : products_) worker.bound.emplace_back(product);
    }
    return state;
  }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[kX].data<float>();
    const float* bias = bias_of(args);
    float* y = args.outputs[0].mutable_data<float>();
    auto& workers = static_cast<State&>(*args.state).workers;
    const int64_t slices = division_.slices, parts = division_.parts;
    // Parts of a slice come last, so that a thread may copy it once for several of them.
    for_shares(threads_, shape_.batch * slices * parts, [&](int64_t begin, int64_t end, int thread) {
      char* scratch = static_cast<char*>(args.scratch) + static_cast<size_t>(thread) * bytes_of_worker();
      const float* columns = nullptr;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i % parts, slice = i / parts % slices, n = i / parts / slices;
        if (part == 0 || !columns) columns = columns_of(x + n * shape_.channels * shape_.pixels(), slice, scratch);
        multiply(workers[static_cast<size_t>(thread)], slice, part, columns, scratch);
        write(slice, part, scratch, bias, y + n * shape_.out_size());
      }
    });
  }

 private:
  // Of the rows of a slice, and of those that are left for the last one.
  struct Product {
    dnnl::primitive primitive;
    dnnl::memory::desc a, b, y, scratchpad;
  };
  struct Bound {
    MovableMemory a, b, y, scratchpad;
    explicit Bound(const Product& product) : a(product.a), b(product.b), y(product.y), scratchpad(product.scratchpad) {}
  };
  struct Worker {
    dnnl::stream stream{cpu_engine()};
    std::vector<Bound> bound;  // parallel to products_
  };
  struct State : KernelState {
    std::vector<Worker> workers;  // one for each thread
  };

  // [products, channels] of weights [channels, products].
  WeightForm form() const {
    const int64_t depth = shape_.channels, products = shape_.products();
    return {"conv_transpose_product", depth * products, [depth, products](const std::vector<Tensor>& w, float* to) {
              reorder(w[0].raw(), {{products, depth}, DataType::f32, dnnl::memory::dims{1, products}}, to,
                      row_major({products, depth}));
            }};
  }

  // Where things are in the memory of a thread: products, columns, scratchpad.
  size_t columns_at() const { return aligned_size(products_[0].y.get_size()); }
  size_t scratchpad_at() const { return columns_at() + aligned_size(products_[0].b.get_size()); }
  size_t bytes_of_worker() const {
    const size_t of_rest = products_[1].scratchpad.get_size();
    return scratchpad_at() + aligned_size(std::max(products_[0].scratchpad.get_size(), of_rest));
  }

  int64_t rows_of(int64_t slice) const { return std::min(division_.rows, shape_.height - slice * division_.rows); }

  // The pixels of a slice, [channels, pixels].
  const float* columns_of(const float* x, int64_t slice, char* scratch) const {
    if (division_.slices == 1) return x;
    auto* columns = reinterpret_cast<float*>(scratch + columns_at());
    const int64_t count = rows_of(slice) * shape_.width;
    const float* from = x + slice * division_.rows * shape_.width;
    for (int64_t c = 0; c < shape_.channels; ++c) std::copy_n(from + c * shape_.pixels(), count, columns + c * count);
    return columns;
  }

  void multiply(Worker& worker, int64_t slice, int64_t part, const float* columns, char* scratch) const {
    const size_t which = slice + 1 == division_.slices ? 1 : 0;
    Bound& bound = worker.bound[which];
    const int64_t first = part * (shape_.products() / division_.parts);
    bound.a.move_to(const_cast<float*>(packed_.data() + first * shape_.channels));
    bound.b.move_to(const_cast<float*>(columns));
    bound.y.move_to(scratch);
    bound.scratchpad.move_to(scratch + scratchpad_at());
    const std::array<dnnl_exec_arg_t, 4> list{dnnl_exec_arg_t{DNNL_ARG_SRC, bound.a.memory.get()},
                                              dnnl_exec_arg_t{DNNL_ARG_WEIGHTS, bound.b.memory.get()},
                                              dnnl_exec_arg_t{DNNL_ARG_DST, bound.y.memory.get()},
                                              dnnl_exec_arg_t{DNNL_ARG_SCRATCHPAD, bound.scratchpad.memory.get()}};
    const dnnl_status_t status = dnnl_primitive_execute(products_[which].primitive.get(), worker.stream.get(),
                                                        static_cast<int>(list.size()), list.data());
    AG_CHECK(status == dnnl_success, "oneDNN execute gave status {}", static_cast<int>(status));
  }

  void write(int64_t slice, int64_t part, const char* scratch, const float* bias, float* y) const {
    const int64_t lines = shape_.out_channels / division_.parts * shape_.tap_rows, first = part * lines;
    const SideBySide::Products products{reinterpret_cast<const float*>(scratch), slice * division_.rows, rows_of(slice),
                                        first};
    for (int64_t line = first; line < first + lines; ++line) shape_.write_line(products, line, bias, y);
  }

  const SideBySide shape_;
  const Division division_;
  const int threads_;
  const PackedWeights& packed_;
  std::vector<Product> products_;
};

std::string why_not(const KernelCall& call) {
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  const Dims x = call.input_dims(kX), w = call.input_dims(kW), y = call.output_dims(0);
  if (x.size() < 3 || x.size() > 4) return "1 or 2 spatial dims only";
  if (call.attributes.integer("group") != 1) return "groups";
  const std::vector<WindowAxis> axes = conv_transpose_windows(call.attributes, x, w);
  for (size_t a = 0; a < axes.size(); ++a) {
    const bool side_by_side = axes[a].stride == axes[a].kernel && axes[a].dilation == 1 && axes[a].pad_begin == 0 &&
                              y[a + 2] == x[a + 2] * axes[a].kernel;
    if (!side_by_side) return "windows that do not lie side by side";
  }
  return "";
}

Prepared prepare(const KernelCall& call) {
  if (std::unique_ptr<Kernel> known = KnownConvTransposeProduct::make(call)) return {std::move(known), ""};
  return {std::make_unique<ConvTransposeProduct>(call), ""};
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  // Measured with AVX-512 and with AVX2, on other machines.
  const bool is_wide = native_block() == Layout::blocked16;
  const double flops_per_us = !is_wide ? 90e3 : is_worth_packing(call, SideBySide(call)) ? 95e3 : 80e3;
  constexpr double kBytesPerUs = 15e3;
  constexpr double kStartUs = 4;
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  const double us = (cost.flops / flops_per_us + cost.bytes / kBytesPerUs) / call.threads;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = kStartUs + us}};
}

}  // namespace

KernelDef conv_transpose_product_kernel() {
  return {.name = "cpu.conv_transpose_product_onednn",
          .op = conv_transpose_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::onednn
