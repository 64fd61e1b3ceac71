// fused: several nodes run as one.
//
// The attribute `body` is a closed graph, which alone says what the node computes: a convolution with what follows it,
// a chain of elementwise ops, a reduction at the end of one. Passes make these nodes where a device has a kernel for
// the whole; the reference runs the body node by node, and whoever does not know the op inlines the body.
#include "autograph/ops/fused.h"

#include <algorithm>
#include <cstring>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/quantize.h"
#include "base/check.h"
#include "graph/infer_node.h"
#include "graph/nested/inline_graph.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Ops on tensors whose reference needs nothing but its inputs.
void check_body(const InferContext& context, const Graph& body) {
  for (const NodeId id : body.nodes()) {
    const OpDef& op = body.node(id).op();
    if ((op.scalar || op.reference) && op.traits.pure && !op.traits.random) continue;
    context.fail<ValueError>("body", fmt::format("expected pure ops with a reference, got '{}'", op.name));
  }
}

void infer(InferContext& context) {
  check_body(context, *context.attributes().get<GraphRef>("body"));
  std::vector<Type> inputs;
  for (size_t slot = 0; slot < context.num_inputs(); ++slot) inputs.push_back(context.input(slot));
  const std::vector<Type> outputs = context.infer_nested("body", inputs);
  if (outputs.size() != context.num_outputs()) {
    context.fail<ValueError>("outputs",
                             fmt::format("expected {} as the body has, got {}", outputs.size(), context.num_outputs()));
  }
  for (size_t k = 0; k < outputs.size(); ++k) context.set_output(k, outputs[k]);
}

// The values of a body while it runs.
class BodyRun {
 public:
  BodyRun(const Graph& body, std::span<const TensorView> inputs) : body_(body), tensors_(body.value_capacity()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].is_present()) continue;
      tensors_[body.inputs()[i].index] =
          Tensor::wrap(inputs[i].dtype(), Dims(inputs[i].dims().begin(), inputs[i].dims().end()),
                       const_cast<void*>(inputs[i].raw()), nullptr);
    }
    for (const ValueId v : body.constants()) tensors_[v.index] = body.value(v).constant();
  }

  void run_node(const Node& node) {
    std::vector<Type> types;
    std::vector<Tensor> inputs;
    for (const ValueId v : node.inputs()) {
      inputs.push_back(v.is_valid() ? tensors_[v.index] : Tensor());
      types.push_back(inputs.back().is_present() ? inputs.back().type() : Type());
    }
    const std::vector<Type> outputs =
        infer_call(node.op(), std::move(types), inputs, node.attributes(), node.outputs().size(), "");
    const std::vector<Tensor> results = run_reference(node.op(), node.attributes(), inputs, outputs);
    for (size_t k = 0; k < results.size(); ++k) tensors_[node.output(k).index] = results[k];
  }

  const Tensor& value(ValueId v) const { return tensors_[v.index]; }

 private:
  const Graph& body_;
  std::vector<Tensor> tensors_;  // by value; absent until made
};

void reference(const OpCall& call) {
  const Graph& body = *call.attributes.get<GraphRef>("body");
  BodyRun run(body, call.inputs);
  for (const NodeId id : body.topological_order()) run.run_node(body.node(id));
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const Tensor& result = run.value(body.outputs()[k]);
    TensorView out = call.outputs[k];
    AG_CHECK(out.dtype() != DType::string, "[fused] body: gives strings");
    if (result.size_bytes() > 0) std::memcpy(out.mutable_data<char>(), result.raw(), result.size_bytes());
  }
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Graph& body = *context.attributes.get<GraphRef>("body");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < body.inputs().size(); ++i) inputs.push_back(context.inputs[i].id());
  std::vector<Var> outputs;
  for (const ValueId v : inline_graph(context.graph, body, inputs)) outputs.emplace_back(context.graph, v);
  return outputs;
}

OpCost cost(const CostContext& context) {
  Graph body = *context.attributes.get<GraphRef>("body");
  for (size_t i = 0; i < context.inputs.size(); ++i) body.set_type(body.inputs()[i], context.inputs[i]);
  infer_types(body);
  OpCost total;
  for (const NodeId id : body.nodes()) {
    const Node& node = body.node(id);
    std::vector<Type> inputs, outputs;
    for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? body.type(v) : Type());
    for (const ValueId v : node.outputs()) outputs.push_back(body.type(v));
    total.flops += cost_of(node.op(), {node.attributes(), inputs, outputs}).flops;
  }
  // What lies between the nodes stays in registers or cache.
  for (const auto& types : {context.inputs, context.outputs}) {
    for (const Type& type : types) {
      if (!type.is_static()) continue;
      total.bytes += static_cast<double>(type.shape().num_elements().value_or(0)) *
                     static_cast<double>(element_size(type.dtype()));
    }
  }
  return total;
}

// y = quantize(sigmoid(dequantize(x))), bytes to bytes.
OpSample sample_quantized(Random& random) {
  const DType dtype = draw_one_of(random, {DType::u8, DType::i8});
  const Dims dims = draw_dims(random, 1, 4);
  auto body = std::make_shared<Graph>("body");
  const auto number = [&](double low, double high) {
    return constant(*body, draw_tensor(random, DType::f32, {}, low, high));
  };
  const Var zero = constant(*body, draw_tensor(random, dtype, {}, 0, 9));
  const Var x = input(*body, dtype, Shape::of(dims), "x");
  const Var y = quantize_linear(sigmoid(dequantize_linear(x, number(0.01, 0.1), zero)), number(0.01, 0.1), zero);
  body->add_output(y.id(), "y");
  return {
      .inputs = {draw_tensor(random, dtype, dims, 0, 100)}, .attributes = {{"body", GraphRef(body)}}, .num_outputs = 1};
}

// y = the mean of abs(x) * b over the innermost axis.
OpSample sample_reduced(Random& random) {
  const Dims dims = draw_dims(random, 1, 4);
  const Dims other = draw_broadcastable(random, dims);
  auto body = std::make_shared<Graph>("body");
  const Var x = input(*body, DType::f32, Shape::of(dims), "x");
  const Var b = input(*body, DType::f32, Shape::of(other), "b");
  const Var axes = constant(*body, Tensor::vector({static_cast<int64_t>(dims.size()) - 1}));
  body->add_output(apply(reduce_mean_def(), {mul(abs(x), b), axes}, {}).id(), "y");
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, other)},
          .attributes = {{"body", GraphRef(body)}},
          .num_outputs = 1};
}

// y = relu(x + b) * s or y = sigmoid(x) + x * b, with b and s broadcasting.
OpSample sample(Random& random) {
  if (draw(random, 0, 3) == 0) return sample_quantized(random);
  if (draw(random, 0, 3) == 0) return sample_reduced(random);
  const Dims dims = draw_dims(random, 1, 4);
  const Dims other = draw_broadcastable(random, dims);
  auto body = std::make_shared<Graph>("body");
  const Var x = input(*body, DType::f32, Shape::of(dims), "x");
  const Var b = input(*body, DType::f32, Shape::of(other), "b");
  const Var y =
      draw_bool(random) ? mul(relu(add(x, b)), constant(*body, Tensor::scalar(1.5F))) : add(sigmoid(x), mul(x, b));
  body->add_output(y.id(), "y");
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, other)},
          .attributes = {{"body", GraphRef(body)}},
          .num_outputs = 1};
}

}  // namespace

std::vector<Var> fused(const std::vector<Var>& inputs, GraphRef body) {
  const int num_outputs = static_cast<int>(body->outputs().size());
  return apply_all(fused_def(), inputs, {{"body", std::move(body)}}, num_outputs);
}

const OpDef& fused_def() {
  static const OpDef def{
      .name = "fused",
      .doc = "The outputs of body, computed as one node.",
      .inputs = {{"inputs", "", "The inputs of the body.", Arity::variadic}},
      .outputs = {{"outputs", "", "The outputs of the body.", Arity::variadic}},
      .attributes = {{.name = "body",
                      .type = AttributeType::graph,
                      .doc = "A closed graph of pure ops on tensors.",
                      .required = true}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
