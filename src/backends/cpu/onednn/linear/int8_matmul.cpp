// Products of a stack of 8-bit rows with one 8-bit matrix: `fused` bodies of dequantized matmuls and gemms,
// qlinear_matmul. Products of two stacks stay what they are.
#include <set>
#include <string>

#include "autograph/op_def.h"
#include "backends/cpu/onednn/int8.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph {
namespace onednn {
namespace {

constexpr size_t kMaxImplementations = 2;

std::string why_not(const KernelCall& call) {
  std::string reason;
  const auto product = read_int8(call, reason);
  if (!product) return reason;
  if (product->is_conv()) return "not a matrix product";
  if (product->w_dims.size() != 2) return "a stack of matrices on the right";
  if (product->x_dims.empty()) return "a scalar";
  return product->why_not_matmul();
}

class Product {
 public:
  explicit Product(const QuantizedCall& call)
      : call_(call),
        a_(row_major({rows(), call.x_dims.back()}, data_type_of(call.x.dtype))),
        y_(row_major({rows(), call.num_channels()}, data_type_of(call.y.dtype))),
        bias_(int8_bias(call)),
        desc_(make_desc()) {}

  // Its first implementation. While the result steps through others this object must live.
  dnnl::matmul::primitive_desc describe(Use use) const { return {desc_, int8_attributes(call_, 1, use), cpu_engine()}; }

  std::unique_ptr<Kernel> make(std::string_view implementation) const {
    auto [primitive, pd] = make_implementation<dnnl::matmul>(implementation, [&] { return describe(Use::run); });
    std::vector<Argument> arguments{{DNNL_ARG_SRC, false, static_cast<size_t>(call_.x.input), a_, a_},
                                    int8_weights(call_, given_weights(), pd.weights_desc()),
                                    {DNNL_ARG_DST, true, 0, y_, y_}};
    if (bias_.is_present()) {
      const dnnl::memory::desc desc = row_major({1, call_.num_channels()});
      arguments.push_back({DNNL_ARG_BIAS, false, kNoInput, desc, desc, bias_});
    }
    auto kernel = std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), pd.scratchpad_desc());
    if (call_.residual) kernel->set_accumulated_input(static_cast<size_t>(call_.residual->input));
    return kernel;
  }

 private:
  int64_t rows() const {
    int64_t count = 1;
    for (size_t a = 0; a + 1 < call_.x_dims.size(); ++a) count *= call_.x_dims[a];
    return count;
  }

  // [k, n], perhaps given as its transpose.
  dnnl::memory::desc given_weights() const {
    if (call_.channel_axis_of_weights() == 1) return row_major(call_.w_dims, DataType::s8);
    const int64_t k = call_.w_dims[1];
    return {{k, call_.w_dims[0]}, DataType::s8, dnnl::memory::dims{1, k}};
  }

  dnnl::matmul::desc make_desc() const {
    const dnnl::memory::desc weights = any_layout({call_.x_dims.back(), call_.num_channels()}, DataType::s8);
    if (!bias_.is_present()) return {a_, weights, y_};
    return {a_, weights, row_major({1, call_.num_channels()}), y_};
  }

  const QuantizedCall& call_;
  dnnl::memory::desc a_, y_;
  Tensor bias_;
  dnnl::matmul::desc desc_;
};

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kFlopsPerUsAndThread = 90e3;
  constexpr double kBytesPerUs = 10e3;
  std::string ignored;
  const auto product = read_int8(call, ignored);
  double flops = 2 * static_cast<double>(product->num_channels());
  for (const int64_t extent : product->x_dims) flops *= static_cast<double>(extent);
  double bytes = static_cast<double>(size_of(call.outputs[0]));
  for (const Type& type : call.inputs) bytes += type.is_tensor() ? static_cast<double>(size_of(type)) : 0;
  std::vector<KernelVariant> result;
  try {
    const Product listed(*product);
    dnnl::matmul::primitive_desc candidate = listed.describe(Use::list);
    std::set<std::string> taken;
    do {
      const std::string name = candidate.impl_info_str();
      if (!taken.insert(name).second) continue;
      const double speed = kFlopsPerUsAndThread * call.threads * int8_speedup(name);
      const double us = 2 + flops / speed + bytes / kBytesPerUs;
      const double later = 1 + 0.05 * static_cast<double>(taken.size() - 1);
      result.push_back({.name = name, .inputs = {}, .outputs = {}, .cost_us = us * later});
    } while (taken.size() < kMaxImplementations && candidate.next_impl());
  } catch (const dnnl::error&) {
    // oneDNN has nothing for it.
  }
  return result;
}

Prepared prepare(const KernelCall& call) {
  std::string reason;
  const auto product = read_int8(call, reason);
  if (!product) return {nullptr, reason};
  if (product->must_shift_weights() && !product->weights.is_present()) return {nullptr, "weights that are not known"};
  return try_prepare([&] { return Product(*product).make(call.variant->name); });
}

}  // namespace

std::vector<KernelDef> int8_matmul_kernels() {
  std::vector<KernelDef> kernels;
  for (const std::string_view op : {fused_def().name, qlinear_matmul_def().name}) {
    kernels.push_back(
        {.name = "cpu.int8_matmul_onednn", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants});
  }
  return kernels;
}

}  // namespace onednn
}  // namespace autograph
