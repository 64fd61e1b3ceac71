#include "support/kernels/planted_kernel.h"

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/devices.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/reference_kernel.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/sample.h"

namespace autograph {
namespace {

const KernelDef& right_kernel() {
  static const KernelDef kRight = [] {
    for (const KernelDef& kernel : onednn_kernels()) {
      if (kernel.op == "fused" && kernel.name.find("conv") != std::string_view::npos) return kernel;
    }
    return KernelDef();
  }();
  return kRight;
}

// The constants of a body that elementwise ops multiply or add, in order.
std::vector<ValueId> numbers_of(const Graph& body) {
  std::vector<ValueId> numbers;
  for (const NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    if (node.op().name != "mul" && node.op().name != "add") continue;
    for (const ValueId v : node.inputs()) {
      if (body.value(v).is_constant() && body.value(v).constant().num_elements() == 1) numbers.push_back(v);
    }
  }
  return numbers;
}

std::string why_not(const KernelCall& call) {
  const auto* body = call.attributes.find_as<GraphRef>("body");
  if (!body || numbers_of(**body).size() < 2) return "no two numbers behind a convolution";
  return right_kernel().why_not(call);
}

class PlantedKernel : public Kernel {
 public:
  PlantedKernel(const KernelCall& call, std::string& refusal) : attributes_(call.attributes) {
    auto wrong = std::make_shared<Graph>(*call.attributes.get<GraphRef>("body"));
    const std::vector<ValueId> numbers = numbers_of(*wrong);
    for (const ValueId v : numbers) wrong->set_constant(v, wrong->value(numbers[0]).constant());
    attributes_.set("body", GraphRef(wrong));
    KernelCall changed{call.op,        attributes_,  call.inputs, call.outputs,
                       call.constants, call.threads, call.exact,  call.variant};
    Prepared prepared = right_kernel().prepare(changed);
    kernel_ = std::move(prepared.kernel);
    refusal = prepared.refusal;
  }
  bool is_there() const { return kernel_ != nullptr; }
  void run(const KernelArgs& args) const override { kernel_->run(args); }
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  size_t weight_bytes() const override { return kernel_->weight_bytes(); }
  std::vector<uint32_t> in_place_inputs() const override { return kernel_->in_place_inputs(); }
  bool reads_input(size_t slot) const override { return kernel_->reads_input(slot); }
  std::unique_ptr<KernelState> new_state() const override { return kernel_->new_state(); }

 private:
  Attributes attributes_;
  std::unique_ptr<Kernel> kernel_;
};

Prepared prepare(const KernelCall& call) {
  std::string refusal;
  auto kernel = std::make_unique<PlantedKernel>(call, refusal);
  if (!kernel->is_there()) return {nullptr, refusal};
  return {std::move(kernel), ""};
}

// Cheaper than whatever else there is.
std::vector<KernelVariant> variants(const KernelCall& call) {
  std::vector<KernelVariant> list = right_kernel().variants(call);
  for (KernelVariant& variant : list) variant.cost_us *= 1e-3;
  return list;
}

}  // namespace

KernelDef planted_kernel() {
  return {.name = kPlantedKernel, .op = "fused", .why_not = why_not, .prepare = prepare, .variants = variants};
}

std::string planted_device() {
  static const std::string kName = [] {
    std::vector<KernelDef> kernels{planted_kernel()};
    for (const KernelDef& kernel : cpu_kernels()) kernels.push_back(kernel);
    add_device(std::make_unique<CpuDevice>("planted", std::move(kernels), "a machine with a wrong kernel"));
    return std::string("planted");
  }();
  return kName;
}

Graph planted_model() {
  Graph graph("planted");
  Random random(3);
  const auto weights = [&](Dims dims) { return constant(graph, draw_tensor(random, DType::f32, dims, -0.3, 0.3)); };
  const auto number = [&](float value) { return constant(graph, Tensor::scalar(value)); };
  const ConvOptions same{.pads = {1, 1, 1, 1}};
  Var x = input(graph, DType::f32, {1, 8, 12, 12}, "x");
  x = relu(conv(x, weights({16, 8, 3, 3}), weights({16}), same));
  const Var y = conv(x, weights({16, 16, 1, 1}), weights({16}), {});
  // An activation between the numbers and the convolution keeps them out of its weights.
  x = add(mul(relu(y), number(1.4F)), number(0.6F));
  x = relu(conv(x, weights({8, 16, 3, 3}), weights({8}), same));
  graph.add_output(x.id(), "y");
  return graph;
}

}  // namespace autograph
