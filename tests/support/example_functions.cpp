#include "support/example_functions.h"

#include <memory>

#include "autograph/autograph.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using Inputs = std::vector<Var>;

Var drawn(uint64_t seed, const Dims& dims) {
  Random random(seed);
  return eager(draw_tensor(random, DType::f32, dims, -1, 1));
}

Var weight(uint64_t seed, const Dims& dims) { return variable(elements(drawn(seed, dims))); }

Var labels(uint64_t seed, int64_t count, int64_t classes) {
  Random random(seed);
  Tensor list = Tensor::empty(DType::i64, {count});
  for (int64_t n = 0; n < count; ++n) list.mutable_data<int64_t>()[n] = draw(random, 0, classes - 1);
  return eager(list);
}

// A step of training: forward, backward and update.
ExampleFunction trained(const EagerFunction& loss, Inputs variables, const Optimizer& how, Inputs batch,
                        const UpdateOptions& options = {}) {
  const auto optimizer = std::make_shared<EagerOptimizer>(variables, how, options);
  EagerFunction step = [loss, optimizer](const Inputs& x) -> Inputs {
    optimizer->clear_gradients();
    const Var value = loss(x)[0];
    backward(value);
    optimizer->step();
    return {value};
  };
  return {std::move(step), std::vector<Inputs>(4, batch), std::move(variables)};
}

EagerFunction loss_of(const std::shared_ptr<nn::Module>& net) {
  return [net](const Inputs& x) -> Inputs { return {nn::cross_entropy((*net)(x[0]), x[1])}; };
}

ExampleFunction trained_module(const std::shared_ptr<nn::Module>& net, const Inputs& batch, double rate) {
  return trained(loss_of(net), net->weights(batch[0]), AdamW{.learning_rate = rate}, batch);
}

ExampleFunction build_and_run() {
  const Var w = drawn(1, {3, 2}), b = drawn(2, {2});
  return {[=](const Inputs& x) -> Inputs { return {softmax(matmul(x[0], w) + b)}; }, {{drawn(3, {2, 3})}}};
}

ExampleFunction custom_gradient() {
  const auto round_through = [](const Var& x) {
    return with_gradient({round(x)}, {x}, [](const Inputs& flows) { return flows; })[0];
  };
  const Var w = weight(1, {2, 1});
  const EagerFunction loss = [=](const Inputs& x) -> Inputs {
    const Var error = matmul(x[0], round_through(w)) - x[1];
    return {reduce_mean(error * error, {}, false)};
  };
  return trained(loss, {w}, Sgd{.learning_rate = 0.05}, {drawn(2, {4, 2}), drawn(3, {4, 1})});
}

struct Excitation : nn::Module {
  nn::Linear& down = add<nn::Linear>("down", 8, 4);
  nn::Linear& up = add<nn::Linear>("up", 4, 8);
  nn::GlobalAvgPool squeeze;
  Var forward(const Var& x) override { return x * unsqueeze(sigmoid(up(relu(down(squeeze(x))))), {2, 3}); }
};

ExampleFunction custom_layer() {
  const auto net = std::make_shared<nn::Sequential>();
  net->push<nn::Conv2d>(1, 8, nn::Sizes{3}, nn::ConvSettings{.padding = {1}}).push(relu).push<Excitation>();
  net->push<nn::Flatten>().push<nn::Linear>(8 * 64, 2);
  return trained_module(net, {drawn(1, {32, 1, 8, 8}), labels(2, 32, 2)}, 0.01);
}

// A block as torchvision has it, on small images. A bias in front of a batch norm would learn from rounding alone.
struct ResidualBlock : nn::Module {
  nn::Conv2d& conv1 =
      add<nn::Conv2d>("conv1", 3, 4, nn::Sizes{3}, nn::ConvSettings{.stride = {2}, .padding = {1}, .bias = false});
  nn::BatchNorm& bn1 = add<nn::BatchNorm>("bn1", 4);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", 4, 4, nn::Sizes{3}, nn::ConvSettings{.padding = {1}, .bias = false});
  nn::BatchNorm& bn2 = add<nn::BatchNorm>("bn2", 4);
  nn::Conv2d& downsample = add<nn::Conv2d>("downsample", 3, 4, nn::Sizes{1}, nn::ConvSettings{.stride = {2}});
  Var forward(const Var& x) override { return relu(bn2(conv2(relu(bn1(conv1(x))))) + downsample(x)); }
};

ExampleFunction torchvision_resnet() {
  const auto net = std::make_shared<nn::Sequential>();
  net->push<ResidualBlock>().push<nn::GlobalAvgPool>().push<nn::Linear>(4, 2);
  return trained_module(net, {drawn(1, {8, 3, 8, 8}), labels(2, 8, 2)}, 0.01);
}

const OpDef& cube_def() {
  static const OpDef def{
      .name = "example_cube",
      .doc = "y = x^3.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", DTypeSet{DType::f32}}},
      .infer = [](InferContext& context) { context.set_output(0, context.dtype(0), context.shape(0)); },
      .reference =
          [](const OpCall& call) {
            const TensorView x = call.input(0);
            float* y = call.output(0).mutable_data<float>();
            for (int64_t i = 0; i < x.num_elements(); ++i) {
              y[i] = x.data<float>()[i] * x.data<float>()[i] * x.data<float>()[i];
            }
          },
  };
  return def;
}

ExampleFunction custom_op() {
  return {[](const Inputs& x) -> Inputs { return {apply(cube_def(), {x[0]}) + 1}; }, {{drawn(1, {3})}}};
}

ExampleFunction dynamic_batch() {
  const Var w1 = drawn(1, {64, 64}), w2 = drawn(2, {64, 64});
  ExampleFunction example{[=](const Inputs& x) -> Inputs { return {relu(matmul(relu(matmul(x[0], w1)), w2))}; }, {}};
  for (const int64_t batch : {1, 4, 32, 4, 1}) example.calls.push_back({drawn(3, {batch, 64})});
  return example;
}

ExampleFunction eager_example() {
  const Var w1 = weight(1, {1, 8}), b1 = weight(2, {8}), w2 = weight(3, {8, 1});
  const EagerFunction loss = [=](const Inputs& x) -> Inputs {
    const Var error = matmul(tanh(matmul(x[0], w1) + b1), w2) - sin(x[0]);
    return {reduce_mean(error * error, {}, false)};
  };
  return trained(loss, {w1, b1, w2}, Adam{.learning_rate = 0.02}, {drawn(4, {5, 1})});
}

// The outputs of a model, node by node, on whatever values there are.
Inputs run_nodes(const Graph& graph, const Inputs& inputs) {
  Inputs values(graph.value_capacity()), outputs;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (const ValueId id : graph.constants()) values[id.index] = eager(graph.value(id).constant());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    Inputs operands;
    for (const ValueId input : node.inputs()) operands.push_back(input.is_valid() ? values[input.index] : Var());
    const Inputs made = apply_all(node.op(), operands, node.attributes(), static_cast<int>(node.outputs().size()));
    for (size_t k = 0; k < made.size(); ++k) values[node.output(k).index] = made[k];
  }
  for (const ValueId id : graph.outputs()) outputs.push_back(values[id.index]);
  return outputs;
}

// A model of a file, node by node. With `learns`, its last layer is trained.
ExampleFunction imported(bool learns) {
  Graph model = parse_onnx(serialize_onnx(build_zoo_model("mlp"))).graph;
  const auto is_of_last_layer = [&](ValueId id) { return model.value(id).name().starts_with("fc3/"); };
  Inputs variables;
  if (learns) {
    for (const ValueId id : std::vector<ValueId>(model.constants())) {
      if (!is_of_last_layer(id)) continue;
      const Tensor initial = model.value(id).constant();
      variables.push_back(variable(initial));
      model.replace_uses(id, model.add_input(model.type(id)));
    }
  }
  const auto graph = std::make_shared<const Graph>(std::move(model));
  const Dims dims = graph->type(graph->inputs()[0]).shape().static_dims();
  const EagerFunction run = [=](const Inputs& x) -> Inputs {
    Inputs given{x[0]};
    given.insert(given.end(), variables.begin(), variables.end());
    return run_nodes(*graph, given);
  };
  if (!learns) return {run, {{drawn(1, dims)}}};
  const EagerFunction loss = [=](const Inputs& x) -> Inputs { return {nn::cross_entropy(run(x)[0], x[1])}; };
  return trained(loss, variables, AdamW{.learning_rate = 0.003}, {drawn(1, dims), labels(2, dims[0], 10)});
}

ExampleFunction gradients() {
  const Var slope = variable(Tensor::scalar(0.0F)), offset = variable(Tensor::scalar(0.0F));
  const EagerFunction step = [=](const Inputs& x) -> Inputs {
    const Var error = x[0] * slope + offset - x[1];
    const Var loss = reduce_mean(error * error, {}, false);
    const Inputs slopes = grad(loss, {slope, offset});
    assign(slope, slope - 0.1 * slopes[0]);
    assign(offset, offset - 0.1 * slopes[1]);
    return {loss};
  };
  return {step, std::vector<Inputs>(4, {drawn(1, {4}), drawn(2, {4})}), {slope, offset}};
}

ExampleFunction hello() {
  return {[](const Inputs& x) -> Inputs { return {relu(2 * x[0] + 1)}; }, {{drawn(1, {2, 2})}}};
}

ExampleFunction resume() {
  const Var w = weight(1, {64, 2});
  const EagerFunction loss = [=](const Inputs& x) -> Inputs {
    return {nn::cross_entropy(matmul(flatten(x[0]), w), x[1])};
  };
  return trained(loss, {w}, AdamW{.learning_rate = 0.01}, {drawn(2, {32, 1, 8, 8}), labels(3, 32, 2)});
}

ExampleFunction running_mean() {
  const Var count = variable(Tensor::scalar(0.0F)), mean = variable(Tensor::zeros(DType::f32, {2}));
  const EagerFunction step = [=](const Inputs& x) -> Inputs {
    const NoGrad none;
    const Var before = mean + 0;
    assign(mean, mean + (x[0] - mean) / (count + 1));
    assign(count, count + 1);
    return {before};
  };
  return {step, std::vector<Inputs>(3, {drawn(1, {2})}), {count, mean}};
}

ExampleFunction train() {
  const Var w1 = weight(1, {2, 32}), b1 = weight(2, {32}), w2 = weight(3, {32, 2}), b2 = weight(4, {2});
  const EagerFunction loss = [=](const Inputs& x) -> Inputs {
    return {nn::cross_entropy(gemm(relu(gemm(x[0], w1, b1)), w2, b2), x[1])};
  };
  return trained(loss, {w1, b1, w2, b2}, AdamW{.learning_rate = 0.01}, {drawn(5, {256, 2}), labels(6, 256, 2)});
}

ExampleFunction two_layers(int64_t batch) {
  const auto net = std::make_shared<nn::Sequential>();
  net->push<nn::Linear>(2, 32).push(relu).push<nn::Linear>(32, 2);
  return trained_module(net, {drawn(1, {batch, 2}), labels(2, batch, 2)}, 0.01);
}

// y = gamma * x for each channel.
struct ChannelScale : nn::Module {
  nn::Parameter& gamma;
  explicit ChannelScale(int64_t channels) : gamma(add_parameter("gamma", {channels}, nn::Init::ones())) {}
  Var forward(const Var& x) override { return x * gamma.beside(x); }
};

ExampleFunction train_line_by_line() {
  const auto net = std::make_shared<nn::Sequential>();
  net->push<nn::Conv2d>(1, 8, nn::Sizes{3}, nn::ConvSettings{.padding = {1}}).push<nn::BatchNorm>(8).push(relu);
  net->push<nn::MaxPool>(nn::Sizes{2}).push<nn::Flatten>().push<ChannelScale>(8 * 16).push<nn::Dropout>(0.2);
  net->push<nn::Linear>(8 * 16, 2);
  net->freeze("0.bias");
  const Inputs batch{drawn(1, {32, 1, 8, 8}), labels(2, 32, 2)};
  const RAdam how{.learning_rate = 0.02, .weight_decay = 0.01};
  return trained(loss_of(net), net->weights(batch[0]), how, batch, {.accumulate = 2});
}

}  // namespace

std::vector<Example> example_functions() {
  return {{"build_and_run", build_and_run},
          {"custom_gradient", custom_gradient},
          {"custom_layer", custom_layer},
          {"custom_op", custom_op},
          {"dynamic_batch", dynamic_batch},
          {"eager", eager_example},
          {"fine_tune", [] { return imported(true); }},
          {"gradients", gradients},
          {"hello", hello},
          {"resume", resume},
          {"run_onnx", [] { return imported(false); }},
          {"running_mean", running_mean},
          {"torchvision_resnet", torchvision_resnet},
          {"train", train},
          {"train_from_files", [] { return two_layers(50); }},
          {"train_in_30_lines", [] { return two_layers(32); }},
          {"train_line_by_line", train_line_by_line}};
}

}  // namespace autograph
