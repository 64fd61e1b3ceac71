// softmax along any axis in f32.
//
// oneDNN clamps the arguments of its exp, and so loses NaN: a NaN, or an infinity minus itself, becomes 0. Inputs that
// lead there are rare and go through the reference instead. A masked -inf among finite elements is not one of them.
#include <algorithm>
#include <limits>

#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "graph/run_reference.h"

namespace autograph::onednn {
namespace {

std::string why_not(const KernelCall& call) { return why_not_f32(call); }

class SoftmaxKernel : public PrimitiveKernel {
 public:
  SoftmaxKernel(const KernelCall& call, dnnl::primitive primitive, std::vector<Argument> arguments,
                const dnnl::memory::desc& scratchpad)
      : PrimitiveKernel(std::move(primitive), std::move(arguments), scratchpad),
        op_(call.op),
        attributes_(call.attributes) {}

  void run(const KernelArgs& args) const override {
    if (is_ordinary(args.inputs[0])) return PrimitiveKernel::run(args);
    call_reference(op_, {attributes_, args.inputs, args.outputs});
  }

 private:
  // Is every element below infinity? Counts instead of stopping early, so that the loop has no branches.
  static bool is_ordinary(const TensorView& x) {
    const float* elements = x.data<float>();
    const auto below = [](float e) { return e < std::numeric_limits<float>::infinity(); };
    return std::count_if(elements, elements + x.num_elements(), below) == x.num_elements();
  }

  const OpDef& op_;
  const Attributes& attributes_;
};

// The dims before, at and after the axis: oneDNN then always sees three dims.
Prepared prepare(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const Dims x = call.input_dims(0);
    int64_t axis = call.attributes.integer("axis");
    if (axis < 0) axis += static_cast<int64_t>(x.size());
    dnnl::memory::dims dims{1, x[static_cast<size_t>(axis)], 1};
    for (size_t a = 0; a < x.size(); ++a) {
      if (static_cast<int64_t>(a) < axis) dims[0] *= x[a];
      if (static_cast<int64_t>(a) > axis) dims[2] *= x[a];
    }
    if (dims[2] == 1) dims.pop_back();
    const auto layout = row_major(dims);
    const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, layout, 1);
    const dnnl::softmax_forward::primitive_desc pd(desc, new_attributes(), cpu_engine());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, false, 0, layout, pd.src_desc()},
                                    {DNNL_ARG_DST, true, 0, layout, pd.dst_desc()}};
    return std::make_unique<SoftmaxKernel>(call, dnnl::softmax_forward(pd), std::move(arguments), pd.scratchpad_desc());
  });
}

}  // namespace

KernelDef softmax_kernel() {
  return {.name = "cpu.softmax_onednn", .op = "softmax", .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::onednn
