// Runs: they learn, tell what they do, stop when they should, and go on as if they had not been stopped.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/checkpoint.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "support/message_of.h"
#include "training/toy_run.h"

namespace autograph {
namespace {

// All states of two runs, bit for bit.
void expect_same_states(const StateStore& a, const StateStore& b) {
  ASSERT_EQ(a.names(), b.names());
  for (const std::string& name : a.names()) EXPECT_TRUE(a.get(name).bitwise_equal(b.get(name))) << name;
}

// All that is not the clock's.
void expect_same_epochs(const TrainingResult& a, const TrainingResult& b) {
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  for (size_t k = 0; k < a.epochs.size(); ++k) {
    EXPECT_EQ(a.epochs[k].training, b.epochs[k].training) << k;
    EXPECT_EQ(a.epochs[k].held_out, b.epochs[k].held_out) << k;
    EXPECT_EQ(a.epochs[k].step, b.epochs[k].step) << k;
    EXPECT_EQ(a.epochs[k].learning_rate, b.epochs[k].learning_rate) << k;
  }
}

TEST(Trainer, LearnsAndTells) {
  std::vector<TrainingProgress> told;
  ToyRun toy({.epochs = 12, .schedule = nn::cosine(0.03, 12 * 8), .on_progress = [&](const TrainingProgress& now) {
                told.push_back(now);
              }});
  toy.run();
  ASSERT_EQ(toy.result.epochs.size(), 12U);
  EXPECT_EQ(toy.result.steps, 12 * 8);
  EXPECT_GT(toy.result.epochs.back().held_out.at("accuracy"), 0.9);
  EXPECT_LT(toy.result.epochs.back().training.at("loss"), 0.5 * toy.result.epochs.front().training.at("loss"));
  ASSERT_EQ(told.size(), 96U);
  EXPECT_EQ(told[9].epoch, 2);
  EXPECT_EQ(told[9].step, 10);
  EXPECT_EQ(told[9].steps, 96);
  EXPECT_GT(told[9].samples_per_second, 0);
  EXPECT_EQ(told.back().seconds_left, 0);
  // The rate of the last step, and what the module takes over is what was evaluated.
  EXPECT_EQ(toy.result.epochs.back().learning_rate, nn::cosine(0.03, 96)(95));
  DataLoader again(toy_points(100, 2), {.batch_size = 100});
  EXPECT_NEAR(toy.trainer->evaluate(again).at("accuracy"), toy.result.epochs.back().held_out.at("accuracy"), 1e-6);
}

// Stopped after any step, in an epoch or at its end, and gone on.
TEST(Trainer, GoesOnBitForBit) {
  const TestFolder folder;
  const auto options = [&](const std::string& name) {
    return TrainerOptions{.epochs = 3,
                          .schedule = nn::one_cycle(0.03, 24),
                          .checkpoints = folder / name,
                          .resume = true,
                          .metrics_file = folder / (name + ".jsonl")};
  };
  ToyRun whole(options("whole"));
  whole.run();
  EXPECT_EQ(whole.result.resumed_from, -1);
  for (const int64_t stop : {1, 5, 8, 15, 16, 23}) {
    SCOPED_TRACE(stop);
    const std::string name = "stopped" + std::to_string(stop);
    int64_t steps = 0;
    TrainerOptions first = options(name);
    first.should_stop = [&] { return ++steps == stop; };
    ToyRun stopped(first);
    stopped.run();
    EXPECT_TRUE(stopped.result.was_interrupted);
    EXPECT_EQ(stopped.result.steps, stop);
    ToyRun resumed(options(name));
    resumed.run();
    EXPECT_EQ(resumed.result.resumed_from, stop);
    EXPECT_FALSE(resumed.result.was_interrupted);
    expect_same_states(resumed.trainer->states(), whole.trainer->states());
    expect_same_epochs(resumed.result, whole.result);
    EXPECT_EQ(whole_file(folder / (name + ".jsonl")), whole_file(folder / "whole.jsonl"));
  }
}

// A run that is killed has metrics of steps behind its last checkpoint, and half a line.
TEST(Trainer, GoesOnFromTheLastCheckpointOfAKilledRun) {
  const TestFolder folder;
  const auto options = [&](const std::string& name) {
    return TrainerOptions{.epochs = 2,
                          .checkpoints = folder / name,
                          .checkpoint_every = 3,
                          .resume = true,
                          .metrics_file = folder / (name + ".jsonl")};
  };
  ToyRun whole(options("whole"));
  whole.run();
  TrainerOptions first = options("killed");
  first.on_progress = [&](const TrainingProgress& now) {
    if (now.step == 11) throw Error(ExitCode::failed, "killed");
  };
  {
    ToyRun killed(first);
    EXPECT_EQ(message_of<Error>([&] { killed.run(); }), "killed");
  }
  std::ofstream(folder / "killed.jsonl", std::ios::app) << "{\"step\":12,\"lo";
  ToyRun resumed(options("killed"));
  resumed.run();
  EXPECT_EQ(resumed.result.resumed_from, 9);
  expect_same_states(resumed.trainer->states(), whole.trainer->states());
  EXPECT_EQ(whole_file(folder / "killed.jsonl"), whole_file(folder / "whole.jsonl"));
}

// What updates keep between steps comes back, too: sums over runs, averages, the factor of the loss.
TEST(Trainer, GoesOnBitForBitWithAllOptionsOfUpdates) {
  const TestFolder folder;
  const UpdateOptions update{.clip_norm = 1,
                             .clip_value = 0.5,
                             .loss_scale = LossScale{.growth_interval = 3},
                             .accumulate = 3,
                             .groups = {{.weights = "*bias,norm.*", .weight_decay = 0}},
                             .average = 0.8};
  const auto options = [&](const std::string& name) {
    return TrainerOptions{.epochs = 2, .checkpoints = folder / name, .checkpoint_every = 1, .resume = true};
  };
  ToyRun whole(options("whole"), Sgd{.learning_rate = 0.1, .momentum = 0.9}, update);
  whole.run();
  for (const int64_t stop : {1, 5, 9}) {
    SCOPED_TRACE(stop);
    TrainerOptions first = options(std::to_string(stop));
    first.on_progress = [&](const TrainingProgress& now) {
      if (now.step == stop + 1) throw Error(ExitCode::failed, "killed");
    };
    {
      ToyRun killed(first, Sgd{.learning_rate = 0.1, .momentum = 0.9}, update);
      EXPECT_THROW(killed.run(), Error);
    }
    ToyRun resumed(options(std::to_string(stop)), Sgd{.learning_rate = 0.1, .momentum = 0.9}, update);
    resumed.run();
    EXPECT_EQ(resumed.result.resumed_from, stop);
    expect_same_states(resumed.trainer->states(), whole.trainer->states());
    expect_same_epochs(resumed.result, whole.result);
  }
}

// What is evaluated is what with_averages() gives, and neither the weights nor what a run without averages gives.
TEST(Trainer, EvaluatesAverages) {
  ToyRun toy({.epochs = 3}, AdamW{.learning_rate = 0.05}, {.average = 0.9});
  toy.run();
  DataLoader held_out(toy_points(100, 2), {.batch_size = 50});
  const Metrics by_averages = toy.trainer->evaluate(held_out);
  const auto loss_of = [&](const StateStore& states) {
    DataLoader again(toy_points(100, 2), {.batch_size = 50});
    toy.net.read_from(states);
    const Graph evaluation = training_graphs(toy.net, again, classification(toy.net, "x"), Sgd{}).evaluation;
    StateStore own;
    own.add(evaluation);
    toy.net.write_to(own);
    return evaluate(evaluation, own, again).at("loss");
  };
  EXPECT_NEAR(loss_of(with_averages(toy.trainer->states())), by_averages.at("loss"), 1e-6);
  EXPECT_GT(std::fabs(loss_of(toy.trainer->states()) - by_averages.at("loss")), 1e-4);
}

TEST(Trainer, MoreStepsLaterAreAsManyAtOnce) {
  const TestFolder folder;
  TrainerOptions options{.epochs = 3, .max_steps = 13, .checkpoints = folder / "run", .resume = true};
  ToyRun first(options);
  first.run();
  EXPECT_FALSE(first.result.was_interrupted);
  ASSERT_EQ(first.result.epochs.size(), 2U);  // the second as far as it went
  EXPECT_EQ(first.result.epochs[1].step, 13);
  options.max_steps = 24;
  ToyRun second(options);
  second.run();
  ToyRun whole({.epochs = 3});
  whole.run();
  expect_same_states(second.trainer->states(), whole.trainer->states());
  expect_same_epochs(second.result, whole.result);
}

TEST(Trainer, RefusesCheckpointsOfAnotherRun) {
  const TestFolder folder;
  ToyRun({.epochs = 1, .checkpoints = folder / "run", .identity = "seed 1"}).run();
  ToyRun other({.epochs = 1, .checkpoints = folder / "run", .resume = true, .identity = "seed 2"});
  EXPECT_EQ(message_of<UserError>([&] { other.run(); }),
            "[train] resume: expected a checkpoint of 'seed 2', got one of 'seed 1'");
  EXPECT_EQ(message_of<ValueError>([] { ToyRun({.resume = true}); }),
            "[train] resume: expected a folder with checkpoints");
}

// Each that differs is named; one that the checkpoint does not have says nothing.
TEST(Trainer, GoesOnWithTheSameSettingsOnly) {
  const TestFolder folder;
  const auto options = [&](std::vector<RunSetting> settings) {
    return TrainerOptions{.epochs = 1,
                          .checkpoints = folder / "run",
                          .resume = true,
                          .settings = std::move(settings),
                          .identity = "toy",
                          .attachments = {{"tokens", "ab"}}};
  };
  const std::vector<RunSetting> before{{"--optimizer", "adamw"}, {"--batch", "32"}, {"--lr", "0.02"}};
  ToyRun(options(before)).run();
  const auto newest = Checkpoints(folder / "run").load_latest();
  ASSERT_TRUE(newest);
  EXPECT_EQ(run_settings(*newest),
            (std::map<std::string, std::string>{{"--optimizer", "adamw"}, {"--batch", "32"}, {"--lr", "0.02"}}));
  EXPECT_TRUE(run_settings({.config = "[1]"}).empty());
  EXPECT_EQ(run_attachments(*newest), (std::map<std::string, std::string>{{"tokens", "ab"}}));
  EXPECT_TRUE(run_attachments({.config = "{}"}).empty());
  ToyRun same(options({{"--batch", "32"}, {"--optimizer", "adamw"}, {"--new", "1"}}));
  EXPECT_EQ(same.run().result.resumed_from, 8);
  ToyRun other(options({{"--optimizer", "sgd"}, {"--batch", "32"}, {"--lr", "0.1", "try 0.02"}}));
  EXPECT_EQ(message_of<UserError>([&] { other.run(); }),
            "[train] resume: expected the settings of the run that wrote the checkpoint, got others - --optimizer: "
            "adamw before, sgd now; --lr: 0.02 before, 0.1 now (give those from before, or train anew with a folder "
            "that has no checkpoints; try 0.02)");
}

// They have an identity alone.
TEST(Trainer, GoesOnFromCheckpointsWithoutSettings) {
  const TestFolder folder;
  TrainerOptions options{.epochs = 2, .checkpoints = folder / "run", .resume = true, .identity = "seed 1"};
  TrainerOptions first = options;
  first.should_stop = [] { return true; };
  ToyRun(first).run();
  ASSERT_FALSE(Checkpoints(folder / "run").load_latest()->config.find("settings") != std::string::npos);
  options.settings = {{"--optimizer", "adamw"}};
  options.identity = "seed 2";
  ToyRun other(options);
  EXPECT_EQ(message_of<UserError>([&] { other.run(); }),
            "[train] resume: expected a checkpoint of 'seed 2', got one of 'seed 1'");
  options.identity = "seed 1";
  ToyRun same(options);
  EXPECT_EQ(same.run().result.resumed_from, 1);
}

// Else the moments of one would be dropped in silence.
TEST(Trainer, RefusesCheckpointsWithMoreStates) {
  const TestFolder folder;
  const TrainerOptions options{.epochs = 1, .checkpoints = folder / "run", .resume = true};
  ToyRun(options).run();
  ToyRun other(options, Sgd{.learning_rate = 0.1});
  const std::string message = message_of<UserError>([&] { other.run(); });
  EXPECT_NE(message.find("states that this run has, got 'optimizer/"), std::string::npos) << message;
  EXPECT_NE(message.find("train anew with a folder that has no checkpoints"), std::string::npos) << message;
}

TEST(Trainer, BeginsAnewInAFolderWithoutCheckpointsOnly) {
  const TestFolder folder;
  const TrainerOptions options{
      .epochs = 1, .checkpoints = folder / "run", .metrics_file = folder / "m.jsonl", .log_folder = folder / "logs"};
  ToyRun(options).run();
  const std::vector<std::string> before = Checkpoints(folder / "run").list();
  const std::string metrics = whole_file(folder / "m.jsonl");
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(message_of<UserError>([&] { ToyRun{options}; }),
            "[train] checkpoints: expected a folder without any to begin anew, got 1 in '" + (folder / "run") + "', '" +
                before[0] + "' the newest (resume goes on from it: --resume; or give another folder)");
  EXPECT_EQ(Checkpoints(folder / "run").list(), before);
  EXPECT_EQ(whole_file(folder / "m.jsonl"), metrics);
}

TEST(Trainer, SkipsADamagedCheckpoint) {
  const TestFolder folder;
  const TrainerOptions options{.epochs = 3, .checkpoints = folder / "run", .resume = true};
  ToyRun whole(options);
  whole.run();
  const Checkpoints checkpoints(folder / "run");
  const std::string newest = checkpoints.list().front();
  std::filesystem::resize_file(newest + "/checkpoint.json", 10);
  ToyRun resumed(options);
  resumed.run();
  EXPECT_EQ(resumed.result.resumed_from, 16);
  ASSERT_EQ(resumed.result.warnings.size(), 1U);
  EXPECT_NE(resumed.result.warnings[0].find(newest), std::string::npos) << resumed.result.warnings[0];
  expect_same_states(resumed.trainer->states(), whole.trainer->states());
}

TEST(Trainer, StopsEarly) {
  // Nothing is learned, so that nothing gets better.
  ToyRun toy({.epochs = 20, .patience = 3}, Sgd{.learning_rate = 0});
  toy.run();
  EXPECT_TRUE(toy.result.stopped_early);
  EXPECT_LT(toy.result.epochs.size(), 20U);
  ToyRun unknown({.epochs = 2, .patience = 1, .watched = "acuracy"});
  EXPECT_EQ(message_of<ValueError>([&] { unknown.run(); }), "[train] patience: there is no metric 'acuracy'");
}

TEST(Trainer, PlateausLowerTheRate) {
  ToyRun toy({.epochs = 8, .plateau = nn::Plateau(1e-9, 0.1, 1, 0.5)});
  toy.run();
  // Too small to learn: each second epoch without a much better loss takes a tenth.
  EXPECT_EQ(toy.result.epochs.front().learning_rate, 0.02);
  EXPECT_LT(toy.result.epochs.back().learning_rate, 2e-11);
}

TEST(Trainer, SaysThatTheLossIsNoNumber) {
  ToyRun toy({.epochs = 1}, Sgd{.learning_rate = 1e30});
  const std::string message = message_of<Error>([&] { toy.run(); });
  EXPECT_NE(message.find("at step"), std::string::npos) << message;
  EXPECT_NE(message.find("lower learning rate"), std::string::npos) << message;
}

TEST(Trainer, ImportedModelsLearn) {
  Random random(3);
  GraphBuilder graph("imported");
  const Var x = graph.input("pixels", DType::f32, {Dim::symbol("n"), 2});
  const Var hidden = relu(gemm(x, graph.constant(draw_tensor(random, DType::f32, {2, 32}, -1, 1), "w1"),
                               graph.constant(draw_tensor(random, DType::f32, {32}, -1, 1), "b1")));
  graph.output("scores", gemm(hidden, graph.constant(draw_tensor(random, DType::f32, {32, 3}, -0.3, 0.3), "w2")));
  DataLoader training(toy_points(256, 1), {.batch_size = 32, .shuffle = true, .drop_last = true});
  TrainingGraphs graphs = training_graphs(graph.build(), training, {.optimizer = AdamW{.learning_rate = 0.02}});
  Trainer trainer(std::move(graphs), std::move(training), DataLoader(toy_points(100, 2), {.batch_size = 100}),
                  {.epochs = 12});
  EXPECT_GT(trainer.run().epochs.back().held_out.at("accuracy"), 0.9);
}

// What a loss of outputs alone makes small needs no label; where there is one, it is not read.
TEST(Trainer, ImportedModelsLearnWithoutATarget) {
  GraphBuilder graph("distance");
  const Var x = graph.input("pixels", DType::f32, {Dim::symbol("n"), 2});
  const Var off = x - graph.constant(Tensor::of<float>({2}, {3, -3}), "center");
  graph.output("squares", off * off);
  const Graph model = graph.build();
  const auto final_loss = [&](const DatasetPtr& points) {
    DataLoader training(points, {.batch_size = 32, .drop_last = true});
    TrainingGraphs graphs = training_graphs(model, training, {.loss = "mean", .optimizer = Sgd{.learning_rate = 0.5}});
    Trainer trainer(std::move(graphs), std::move(training), DataLoader(points, {.batch_size = 32}), {.epochs = 5});
    return trainer.run().epochs.back().held_out.at("loss");
  };
  Random random(5);
  const Tensor points = draw_tensor(random, DType::f32, {64, 2}, -1, 1);
  const double bare = final_loss(tensor_dataset({{"x", points}}));
  EXPECT_LT(bare, 3);
  EXPECT_EQ(final_loss(tensor_dataset({{"x", points}, {"label", Tensor::zeros(DType::i64, {64})}})), bare);
}

// Probabilities in the data are what cross_entropy is of, where models are evaluated, too.
TEST(Trainer, ImportedModelsLearnProbabilities) {
  GraphBuilder graph("scores");
  const Var x = graph.input("x", DType::f32, {Dim::symbol("n"), 2});
  graph.output("scores", matmul(x, graph.constant(Tensor::zeros(DType::f32, {2, 3}), "w")));
  const DatasetPtr points = tensor_dataset(
      {{"x", Tensor::of<float>({2, 2}, {1, 0, 0, 1})}, {"label", Tensor::of<float>({2, 3}, {0.5, 0.5, 0, 0, 0, 1})}});
  DataLoader training(points, {.batch_size = 2});
  TrainingGraphs graphs = training_graphs(graph.build(), training, {.optimizer = Sgd{.learning_rate = 0.1}});
  Trainer trainer(std::move(graphs), std::move(training), DataLoader(points, {.batch_size = 2}), {.epochs = 3});
  const std::vector<EpochResult> epochs = trainer.run().epochs;
  EXPECT_NEAR(epochs[0].training.at("loss"), std::log(3.0), 1e-6);
  EXPECT_LT(epochs.back().held_out.at("loss"), std::log(3.0));
}

// Plans alone would fit: weights and moments do not.
TEST(Trainer, AMemoryBudgetIsForAllThatARunKeeps) {
  size_t least = 0;
  for (size_t budget = size_t{1} << 20; budget > 1024; budget = budget * 7 / 8) {
    TrainerOptions options{.epochs = 1};
    options.compile.memory_budget_bytes = budget;
    try {
      ToyRun toy(options);
      least = budget;
      continue;
    } catch (const BudgetError& error) {
      EXPECT_NE(std::string(error.what()).find("[train] memory: expected at most " + std::to_string(budget)),
                std::string::npos)
          << error.what();
    }
    break;
  }
  // Three copies of 32 + 32 + 32 + 32 + 96 + 3 + 64 floats, statistics and counts of steps: 3.6 kB; six batches 2.5 kB.
  EXPECT_GT(least, 6000U);
  EXPECT_LT(least, 200'000U);
}

// Labels are probabilities then, in training alone.
TEST(Trainer, LearnsFromMixedSamples) {
  Random random(4);
  Tensor x = draw_tensor(random, DType::f32, {256, 1, 1, 2}, -1, 1), label = Tensor::empty(DType::i64, {256});
  for (int64_t n = 0; n < 256; ++n) label.mutable_data<int64_t>()[n] = x.data<float>()[2 * n] < 0 ? 0 : 1;
  const DatasetPtr points = tensor_dataset({{"image", x}, {"label", label}});
  struct Net : nn::Module {
    nn::Linear& head = add<nn::Linear>("head", 2, 2);
    Var forward(const Var& y) override { return head(flatten(y)); }
  } net;
  DataLoader training(
      points,
      {.batch_size = 32, .shuffle = true, .drop_last = true, .transforms = {Mixup{.alpha = 0.4, .classes = 2}}});
  TrainingGraphs graphs = training_graphs(net, training, classification(net), AdamW{.learning_rate = 0.05});
  Trainer trainer(std::move(graphs), std::move(training), DataLoader(points, {.batch_size = 64}), {.epochs = 10});
  EXPECT_GT(trainer.run().epochs.back().held_out.at("accuracy"), 0.95);
}

// bf16 in products, the loss scaled; where the processor has no bf16 that is said before anything runs.
TEST(Trainer, LearnsInBf16WithAScaledLoss) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    ToyNet net;
    DataLoader training(toy_points(256, 1), {.batch_size = 32, .shuffle = true, .drop_last = true, .seed = 5});
    DataLoader held_out(toy_points(100, 2), {.batch_size = 50});
    TrainingGraphs graphs = training_graphs(net, training, classification(net, "x"), AdamW{.learning_rate = 0.005},
                                            {.loss_scale = LossScale{.growth_interval = 20}});
    TrainerOptions options{.epochs = 60};
    options.compile.precision = precision;
    try {
      Trainer trainer(std::move(graphs), std::move(training), std::move(held_out), options);
      EXPECT_GT(trainer.run().epochs.back().held_out.at("accuracy"), 0.9);
      EXPECT_GT(trainer.states().get("optimizer/loss_scale").to_f64()[0], 65536);
    } catch (const DeviceError& error) {
      EXPECT_EQ(precision, Precision::bf16);
      EXPECT_NE(std::string(error.what()).find("bf16 is not there"), std::string::npos) << error.what();
    }
  }
}

// What bf16 kernels do, spelt as casts: master weights stay f32, products see 8 bits of both factors, and gradients so
// small that bf16 would keep them anyway are scaled and divided again without a trace.
TEST(Trainer, EmulatedBf16LearnsAsF32Does) {
  struct Net : nn::Module {
    bool is_rounded;
    nn::Parameter& w1 = add_parameter("w1", {2, 32}, nn::Init::kaiming_uniform());
    nn::Parameter& w2 = add_parameter("w2", {32, 3}, nn::Init::kaiming_uniform());
    explicit Net(bool rounded) : is_rounded(rounded) {}
    Var rounded(const Var& x) const { return is_rounded ? cast(cast(x, DType::bf16), DType::f32) : x; }
    Var forward(const Var& x) override {
      return matmul(rounded(relu(matmul(rounded(x), rounded(w1.beside(x))))), rounded(w2.beside(x)));
    }
  };
  std::vector<double> losses;
  for (const bool rounded : {false, true}) {
    Net net(rounded);
    DataLoader training(toy_points(256, 1), {.batch_size = 32, .shuffle = true, .drop_last = true, .seed = 5});
    TrainingGraphs graphs = training_graphs(net, training, classification(net, "x"), AdamW{.learning_rate = 0.02},
                                            {.loss_scale = LossScale{}});
    Trainer trainer(std::move(graphs), std::move(training), {}, {.epochs = 12});
    losses.push_back(trainer.run().epochs.back().training.at("loss"));
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[1], 0.03);
}

TEST(Trainer, SaysWhatOfDataDoesNotFit) {
  ToyNet net;
  const DataLoader loader(toy_points(64, 1), {.batch_size = 32});
  EXPECT_EQ(message_of<ValueError>([&] { training_graphs(net, loader, classification(net, "image"), Sgd{}); }),
            "[train] data: expected a field 'image', got label, x");
  EXPECT_NE(message_of<ValueError>([] { ToyRun({.epochs = 0}); }).find("epochs: expected 1 or more"),
            std::string::npos);
}

}  // namespace
}  // namespace autograph
