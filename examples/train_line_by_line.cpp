// A training loop of one's own: a layer of one's own, frozen weights, a schedule, gradients of two batches in a step,
// validation, early stopping, checkpoints from which a stopped run goes on to the same bits, and an ONNX file.
#include <cstdio>
#include <filesystem>

#include "autograph/autograph.h"

using namespace autograph;

namespace {

// y = gamma * x for each channel.
struct ChannelScale : nn::Module {
  nn::Parameter& gamma;
  explicit ChannelScale(int64_t channels) : gamma(add_parameter("gamma", {channels}, nn::Init::ones())) {}
  Var forward(const Var& x) override { return x * gamma.beside(x); }
};

struct Net : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", 1, 8, nn::Sizes{3}, nn::ConvSettings{.padding = {1}});
  nn::BatchNorm& norm = add<nn::BatchNorm>("norm", 8);
  ChannelScale& scale = add<ChannelScale>("scale", 8 * 16);
  nn::Dropout& drop = add<nn::Dropout>("drop", 0.2);
  nn::Linear& head = add<nn::Linear>("head", 8 * 16, 2);
  nn::MaxPool pool{{2}};
  Var forward(const Var& x) override { return head(drop(scale(flatten(pool(relu(norm(conv(x)))))))); }
};

// Images with a bright half: which one is the class.
DatasetPtr make_samples(int64_t count, uint64_t seed) {
  Random random(seed);
  Tensor images = Tensor::empty(DType::f32, {count, 1, 8, 8}), labels = Tensor::empty(DType::i64, {count});
  for (int64_t i = 0; i < images.num_elements(); ++i) {
    const int64_t label = i / 64 % 2, row = i / 8 % 8;
    images.mutable_data<float>()[i] = static_cast<float>(random() % 100) / 100 + (row / 4 == label ? 0.2F : 0.0F);
    labels.mutable_data<int64_t>()[i / 64] = label;
  }
  return tensor_dataset({{"image", images}, {"label", labels}}, {"upper", "lower"});
}

double held_out_loss(Net& net, DataLoader& data) {
  const NoGrad off;
  net.eval();
  double sum = 0;
  while (const auto batch = data.next()) {
    sum += item(nn::cross_entropy(net(eager((*batch)["image"])), eager((*batch)["label"])));
  }
  net.train();
  return sum / static_cast<double>(data.batches_per_epoch());
}

Checkpoint checkpoint_of(const Net& net, const EagerOptimizer& optimizer, const DataLoader& data, int64_t step) {
  Checkpoint now{.step = step, .data = data.position()};
  for (const auto& [name, tensor] : net.state_dict()) now.tensors.emplace_back(name, tensor.clone());
  for (const auto& [name, value] : optimizer.states()) now.tensors.emplace_back(name, elements(value).clone());
  for (const auto& [name, tensor] : nn::dropout_counts(net)) now.tensors.emplace_back(name, tensor.clone());
  return now;
}

// So many epochs, or fewer: the loss of what was held out. Goes on from the newest checkpoint in `folder`.
double train(Net& net, const std::string& folder, int64_t epochs) {
  DataLoader data(make_samples(256, 1), {.batch_size = 32, .shuffle = true, .drop_last = true, .seed = 1});
  DataLoader held_out(make_samples(64, 2), {.batch_size = 32});
  net.freeze("conv.bias");
  EagerOptimizer optimizer(net.named_weights(eager(Tensor::scalar(0.0F))), RAdam{.weight_decay = 0.01},
                           {.accumulate = 2, .groups = {{.weights = "*bias,norm*", .weight_decay = 0}}});
  const nn::Schedule schedule = nn::warm_up(nn::cosine(0.02, 8 * data.batches_per_epoch()), 4);
  CaptureOptions fixed;
  fixed.compile.expert.fixed_threads = true;  // sums in the same order, however busy the machine is
  const auto one_step = [&](const std::vector<Var>& batch) -> std::vector<Var> {
    const Var loss = nn::cross_entropy(net(batch[0]), batch[1], {.label_smoothing = 0.05});
    optimizer.clear_gradients();
    backward(loss);
    optimizer.step();
    return {loss};
  };
  Captured step = capture(one_step, fixed);

  Checkpoints checkpoints(folder, {.better = BetterMetric::smaller});
  int64_t done = 0;
  if (const auto found = checkpoints.load_latest()) {
    net.load_state_dict(found->tensors, false);  // not strict: there are other tensors, too
    optimizer.restore(found->tensors);
    nn::restore_dropout_counts(net, found->tensors);
    data.seek(found->data);
    done = found->step;
  }
  double loss = 0, best = 1e30;
  for (int64_t epoch = done / data.batches_per_epoch(), worse = 0; epoch < epochs && worse < 3; ++epoch) {
    while (const auto batch = data.next()) {
      optimizer.set_learning_rate(schedule(done));
      step({eager((*batch)["image"]), eager((*batch)["label"])});
      ++done;
    }
    loss = held_out_loss(net, held_out);
    worse = loss < best ? 0 : worse + 1;
    best = std::min(best, loss);
    Checkpoint now = checkpoint_of(net, optimizer, data, done);
    now.metric = loss;
    checkpoints.save(std::move(now));
  }
  checkpoints.wait();
  return loss;
}

// For other runtimes: weights are constants, and the number of images is open.
void save_for_others(Net& net, const std::string& file) {
  net.eval();
  GraphBuilder builder("halves");
  builder.output("scores", net(builder.input("image", DType::f32, {Dim::symbol("n"), 1, 8, 8})));
  Graph graph = builder.build();
  graph.freeze();
  save_onnx(graph, file);
}

}  // namespace

int main() try {
  const std::filesystem::path runs = std::filesystem::temp_directory_path() / "autograph_line_by_line";
  std::filesystem::remove_all(runs);
  std::filesystem::create_directories(runs);
  Net whole, stopped, resumed;
  const double loss = train(whole, runs / "whole", 8);
  train(stopped, runs / "stopped", 4);
  const double again = train(resumed, runs / "stopped", 8);
  save_for_others(whole, runs / "halves.onnx");
  const bool is_plain = load_onnx(runs / "halves.onnx").graph.inputs().size() == 1;
  std::filesystem::remove_all(runs);
  std::printf("held out: loss %.6f without a stop, %.6f with one\n", loss, again);
  return loss == again && loss < 0.4 && is_plain ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}
