// The verbs train, eval and predict, on small sets that the tests write.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "autograph/builder.h"
#include "autograph/model_io.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/tensor_io.h"
#include "cli/run_program.h"

namespace autograph {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Images of 8x8 pixels from 0 to 16, of which two rows say the class.
std::string write_digits(const TestFolder& folder) {
  uint32_t state = 1;
  std::ofstream file(folder / "digits.csv");
  for (int n = 0; n < 320; ++n) {
    const int label = n % 4;
    for (int pixel = 0; pixel < 64; ++pixel) {
      state = state * 1664525 + 1013904223;
      file << (state >> 24) % 4 + (pixel / 16 == label ? 10 : 0) << ',';
    }
    file << label << '\n';
  }
  return folder / "digits.csv";
}

// The same table below a line of names.
std::string with_header(const TestFolder& folder, const std::string& table) {
  std::string header;
  for (int pixel = 0; pixel < 64; ++pixel) header += "p" + std::to_string(pixel) + ",";
  std::ofstream(folder / "t.csv") << header << "label\n" << read_text(table);
  return folder / "t.csv";
}

// Scores of 64 pixels for 4 classes, all 0.
std::string write_linear_model(const TestFolder& folder) {
  GraphBuilder graph("linear");
  const Var x = graph.input("pixels", DType::f32, {Dim::symbol("n"), 64});
  graph.output("scores", gemm(x, graph.constant(Tensor::zeros(DType::f32, {64, 4}), "fc.weight"),
                              graph.constant(Tensor::zeros(DType::f32, {4}), "fc.bias")));
  save_onnx(graph.build(), folder / "m.onnx");
  return folder / "m.onnx";
}

TEST(CliTrain, LearnsEvaluatesAndPredicts) {
  const TestFolder folder;
  const std::string data = " --data " + write_digits(folder);
  const ProgramResult trained = run_program("train digits --epochs 4 --seed 3 --json" + data + " --checkpoint " +
                                            (folder / "run") + " --metrics " + (folder / "m.jsonl") + " --log-dir " +
                                            (folder / "logs") + " -o " + (folder / "digits.onnx"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const nlohmann::json document = trained.json();
  EXPECT_EQ(document["schema"], 1);
  ASSERT_EQ(document["epochs"].size(), 4U);
  for (const char* key : {"epoch", "loss", "accuracy", "seconds", "samples_per_second"}) {
    EXPECT_TRUE(document["epochs"][0].contains(key)) << key;
  }
  EXPECT_GT(document["final"]["accuracy"].get<double>(), 0.9);

  // A line for each step.
  std::istringstream metrics(read_text(folder / "m.jsonl"));
  int64_t step = 0;
  for (std::string line; std::getline(metrics, line);) EXPECT_EQ(nlohmann::json::parse(line)["step"], ++step);
  EXPECT_EQ(step, document["steps"].get<int64_t>());
  EXPECT_TRUE(contains(read_text(folder / "logs/curves.svg"), "<svg"));

  const ProgramResult evaluated =
      run_program("eval digits --seed 3 --json" + data + " --checkpoint " + (folder / "run"));
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_GE(evaluated.json()["accuracy"].get<double>(), document["final"]["accuracy"].get<double>());
  EXPECT_EQ(evaluated.json()["samples"], 64);

  const ProgramResult predicted =
      run_program("predict digits --seed 3 --json --count 5" + data + " --checkpoint " + (folder / "run"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const nlohmann::json predictions = predicted.json()["predictions"];
  ASSERT_EQ(predictions.size(), 5U);
  int right = 0;
  for (const auto& entry : predictions) right += entry["label"] == entry["predicted"] ? 1 : 0;
  EXPECT_GE(right, 4);
  EXPECT_EQ(run_program("check " + (folder / "digits.onnx")).exit_code, 0);
}

TEST(CliTrain, BudgetsPrecisionAndDropout) {
  const TestFolder folder;
  const std::string train = "train digits --steps 5 --json --data " + write_digits(folder);
  const ProgramResult small = run_program(train + " --memory-budget 1");
  EXPECT_EQ(small.exit_code, 5) << small.err;
  EXPECT_TRUE(contains(small.err, "memory")) << small.err;
  EXPECT_EQ(run_program(train + " --memory-budget 500 --dropout 0 --loss-scale 1024").exit_code, 0);
  const ProgramResult bf16 = run_program(train + " --precision bf16 --loss-scale 1024");
  EXPECT_TRUE(bf16.exit_code == 0 || (bf16.exit_code == 7 && contains(bf16.err, "bf16 is not there"))) << bf16.err;
  EXPECT_EQ(run_program(train + " --dropout 1").exit_code, 2);
}

// Stopped as soon as it has a step behind it, and gone on; with these options the same as in one piece.
void expect_goes_on_after_ctrl_c(const std::string& options) {
  SCOPED_TRACE(options);
  const TestFolder folder;
  const std::string data = write_digits(folder);
  const auto arguments = [&](const std::string& name) {
    // One thread: beside busy neighbours there are fewer, which add up a loss in another order.
    return "train digits --epochs 24 --threads 1 --json " + options + " --data " + data + " --metrics " +
           (folder / (name + ".jsonl"));
  };
  const std::string kept = arguments("a") + " --checkpoint-every 1 --checkpoint " + (folder / "a");
  const std::string script =
      std::string(AG_PROGRAM) + " " + kept + " >" + (folder / "out") +
      " 2>&1 & pid=$!; for i in $(seq 5000); do [ -d " + (folder / "a") + " ] && ls " + (folder / "a") +
      " | grep -q step && break; sleep 0.01; done; kill -INT $pid; wait $pid; echo $? >" + (folder / "code");
  std::ofstream(folder / "stop.sh") << script;
  ASSERT_EQ(std::system(("bash " + (folder / "stop.sh")).c_str()), 0);
  EXPECT_EQ(read_text(folder / "code"), "130\n") << read_text(folder / "out");
  const nlohmann::json stopped = nlohmann::json::parse(read_text(folder / "out"));
  EXPECT_TRUE(stopped["interrupted"].get<bool>());

  const ProgramResult resumed = run_program(kept + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(resumed.json()["resumed_from"], stopped["steps"]);
  const ProgramResult whole = run_program(arguments("b"));
  EXPECT_EQ(resumed.json()["final"], whole.json()["final"]);
  EXPECT_EQ(read_text(folder / "a.jsonl"), read_text(folder / "b.jsonl"));
}

TEST(CliTrain, GoesOnAfterCtrlC) {
  expect_goes_on_after_ctrl_c("");
  expect_goes_on_after_ctrl_c("--ema 0.9 --accumulate 3 --clip-value 0.5 --clip-norm 2 --no-decay '*weight'");
}

// Each option that decides about the numbers; where the data lie and how many threads there are does not.
TEST(CliTrain, GoesOnWithTheSameOptionsOnly) {
  const TestFolder folder;
  const std::string data = write_digits(folder);
  const std::string train = "train digits --json --epochs 1 --resume --checkpoint " + (folder / "run");
  const ProgramResult first = run_program(train + " --data " + data);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const ProgramResult other =
      run_program(train + " --data " + data + " --optimizer sgd --momentum 0.9 --nesterov --lr 0.1 --clip-norm 1");
  EXPECT_EQ(other.exit_code, 2) << other.out;
  EXPECT_TRUE(
      contains(other.err,
               "--optimizer: adamw (beta1 0.9, beta2 0.999, epsilon 1e-08, amsgrad no) before, sgd (momentum "
               "0.9, dampening 0, nesterov yes) now; --learning-rate: 0.002 before, 0.1 now; --weight-decay: 0.01 "
               "before, 0 now; --clip-norm: none before, 1 now"))
      << other.err;
  EXPECT_FALSE(contains(other.err, "--batch")) << other.err;
  const ProgramResult updates =
      run_program(train + " --data " + data + " --ema 0.9 --accumulate 2 --clip-value 1 --no-decay '*weight'");
  EXPECT_EQ(updates.exit_code, 2) << updates.out;
  EXPECT_TRUE(contains(updates.err,
                       "--clip-value: none before, 1 now; --accumulate: 1 before, 2 now; --ema: none before, 0.9 now; "
                       "weight groups: *bias (learning rate times 1, weight decay 0) before, *weight (learning rate "
                       "times 1, weight decay 0), *bias (learning rate times 1, weight decay 0) now"))
      << updates.err;
  const std::string rows = read_text(data);
  std::filesystem::create_directory(folder / "moved");
  std::ofstream(folder / "moved/digits.csv") << rows;
  std::ofstream(folder / "moved/more.csv") << rows << rows;
  const ProgramResult moved = run_program(train + " --threads 1 --dropout 0.3 --data " + (folder / "moved/digits.csv"));
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(moved.json()["resumed_from"], first.json()["steps"]);
  const ProgramResult more = run_program(train + " --data " + (folder / "moved/more.csv"));
  EXPECT_EQ(more.exit_code, 2) << more.out;
  EXPECT_TRUE(contains(more.err, "--data: digits.csv before, more.csv now; samples: 256 before, 512 now")) << more.err;
}

// A longer run goes on from a shorter one where it would have begun with the same steps.
TEST(CliTrain, MoreEpochsGoOnWhereTheRateDoesNotDependOnThem) {
  const TestFolder folder;
  const std::string train = "train digits --json --data " + write_digits(folder);
  const auto run = [&](const std::string& name, const std::string& options) {
    return run_program(train + " --resume --checkpoint " + (folder / name) + " " + options);
  };
  for (const std::string schedule : {"constant --warm-up 3", "plateau"}) {
    SCOPED_TRACE(schedule);
    const std::string options = " --schedule " + schedule;
    ASSERT_EQ(run(schedule.substr(0, 5), "--epochs 1" + options).exit_code, 0);
    const ProgramResult longer = run(schedule.substr(0, 5), "--epochs 2" + options);
    ASSERT_EQ(longer.exit_code, 0) << longer.err;
    EXPECT_EQ(longer.json()["resumed_from"], 8);
    const ProgramResult whole = run_program(train + " --epochs 2 --threads 1" + options);
    EXPECT_EQ(longer.json()["epochs"].size(), 2U);
    EXPECT_NEAR(longer.json()["final"]["loss"].get<double>(), whole.json()["final"]["loss"].get<double>(), 1e-4);
  }
  ASSERT_EQ(run("cycle", "--epochs 2 --steps 8").exit_code, 0);
  EXPECT_EQ(run("cycle", "--epochs 1").exit_code, 0) << "the same steps";
  const ProgramResult longer = run("cycle", "--epochs 4");
  EXPECT_EQ(longer.exit_code, 2) << longer.out;
  EXPECT_TRUE(contains(longer.err, "got others - --epochs: 1 (8 steps) before, 4 (32 steps) now")) << longer.err;
  EXPECT_TRUE(contains(longer.err, "train anew with a folder that has no checkpoints; the schedule one_cycle spans"))
      << longer.err;
  EXPECT_TRUE(contains(longer.err, "runs with --schedule constant or plateau can be made longer")) << longer.err;
}

// What was held out of the run, and not what another seed would hold out of it.
TEST(CliTrain, EvaluatesWhatTheRunHeldOut) {
  const TestFolder folder;
  const std::string rest = " --json --data " + write_digits(folder) + " --checkpoint " + (folder / "run");
  const ProgramResult trained = run_program("train digits --epochs 1 --seed 3" + rest);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const ProgramResult evaluated = run_program("eval digits" + rest);
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_NEAR(evaluated.json()["loss"].get<double>(), trained.json()["epochs"][0]["held_out_loss"].get<double>(), 1e-4);
  EXPECT_EQ(run_program("predict digits" + rest).out, run_program("predict digits --seed 3" + rest).out);
  for (const std::string verb : {"eval", "predict"}) {
    const ProgramResult other = run_program(verb + " digits --seed 4" + rest);
    EXPECT_EQ(other.exit_code, 2) << other.out;
    EXPECT_TRUE(contains(other.err, "--seed: expected 3, as the run that wrote the checkpoint had it, got 4"))
        << other.err;
  }
}

// What is told while training, what eval finds in the checkpoint and what -o writes are the averages.
TEST(CliTrain, AveragesAreWhatIsLearned) {
  const TestFolder folder;
  write_linear_model(folder);
  const std::string rest = " --json --data " + with_header(folder, write_digits(folder));
  const std::string run = " --checkpoint " + (folder / "run");
  for (const std::string& what : {std::string("digits"), folder / "m.onnx"}) {
    SCOPED_TRACE(what);
    std::filesystem::remove_all(folder / "run");
    const ProgramResult trained = run_program(
        "train " + what + " --steps 8 --lr 0.05 --ema 0.8 --no-decay '*bias' -o " + (folder / "o.onnx") + rest + run);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const double loss = trained.json()["final"]["loss"].get<double>();
    for (const std::string& learned : {what + run, folder / "o.onnx"}) {
      const ProgramResult evaluated = run_program("eval " + learned + rest);
      ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
      EXPECT_NEAR(evaluated.json()["loss"].get<double>(), loss, 1e-4) << learned;
    }
  }
  const ProgramResult wrong = run_program("train digits --no-decay 'hed*'" + rest);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(contains(wrong.err, "no weight is called 'hed*'")) << wrong.err;
  EXPECT_EQ(run_program("train digits --accumulate -1" + rest).exit_code, 2);
  EXPECT_EQ(run_program("train digits --ema 1" + rest).exit_code, 2);
}

TEST(CliTrain, FineTunesAModel) {
  const TestFolder folder;
  write_linear_model(folder);
  const std::string data = " --data " + with_header(folder, write_digits(folder));
  const ProgramResult before = run_program("eval " + (folder / "m.onnx") + data + " --json");
  ASSERT_EQ(before.exit_code, 0) << before.err;
  EXPECT_LT(before.json()["accuracy"].get<double>(), 0.5);
  const ProgramResult trained = run_program("train " + (folder / "m.onnx") + data +
                                            " --json --lr 0.01 --epochs 5 --batch 16 -o " + (folder / "tuned.onnx"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_GT(trained.json()["final"]["accuracy"].get<double>(), 0.9);
  const ProgramResult after = run_program("eval " + (folder / "tuned.onnx") + data + " --json");
  EXPECT_EQ(after.json()["accuracy"], trained.json()["final"]["accuracy"]);
  const ProgramResult frozen = run_program("train " + (folder / "m.onnx") + data + " --weights fc.wieght");
  EXPECT_EQ(frozen.exit_code, 2);
  EXPECT_TRUE(contains(frozen.err, "did you mean 'fc.weight'?")) << frozen.err;

  // A model may be moved, but not be another of the same name.
  std::filesystem::create_directory(folder / "moved");
  const std::string model = folder / "moved/m.onnx", rest = data + " --checkpoint " + (folder / "run");
  const std::string constant = rest + " --schedule constant --resume";
  std::filesystem::copy_file(folder / "m.onnx", model);
  ASSERT_EQ(run_program("train " + (folder / "m.onnx") + constant + " --epochs 1").exit_code, 0);
  const ProgramResult moved = run_program("train " + model + constant + " --epochs 2");
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(run_program("eval " + model + rest).exit_code, 0);
  const ProgramResult loss = run_program("eval " + model + rest + " --loss token_cross_entropy");
  EXPECT_EQ(loss.exit_code, 2) << loss.out;
  EXPECT_TRUE(contains(loss.err, "--loss: expected cross_entropy")) << loss.err;
  std::filesystem::copy_file(folder / "tuned.onnx", model, std::filesystem::copy_options::overwrite_existing);
  for (const std::string& verb : {"train " + model + constant + " --epochs 2", "eval " + model + rest}) {
    const ProgramResult other = run_program(verb);
    EXPECT_EQ(other.exit_code, 2) << other.out;
    EXPECT_TRUE(contains(other.err, "TASK: ") && contains(other.err, "m.onnx (hash ")) << other.err;
  }
}

// A checkpoint has what learns. The rest is in the file that the run began with.
TEST(CliTrain, FrozenWeightsAreThoseOfTheFile) {
  const TestFolder folder;
  write_linear_model(folder);
  const std::string model = (folder / "m.onnx") + " --data " + with_header(folder, write_digits(folder)) + " --json";
  ASSERT_EQ(run_program("train " + model + " --lr 0.01 --epochs 3 --batch 16 -o " + (folder / "tuned.onnx")).exit_code,
            0);
  const Graph tuned = load_onnx(folder / "tuned.onnx").graph;
  NamedTensors weights;
  for (const ValueId id : tuned.constants()) weights.emplace_back(tuned.value(id).name(), tuned.value(id).constant());
  write_safetensors(folder / "w.safetensors", {.tensors = weights, .metadata = {}});
  const std::string run = " --checkpoint " + (folder / "run"), from = " --from " + (folder / "w.safetensors");
  const ProgramResult trained = run_program("train " + model + run + from + " --weights fc.bias --epochs 1 --batch 16");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const double accuracy = trained.json()["final"]["accuracy"].get<double>();
  EXPECT_GT(accuracy, 0.7);
  const ProgramResult without = run_program("eval " + model + run);
  EXPECT_EQ(without.exit_code, 2) << without.out;
  EXPECT_TRUE(contains(without.err, "--from: expected w.safetensors (hash ")) << without.err;
  const ProgramResult with = run_program("eval " + model + run + from);
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(with.json()["accuracy"].get<double>(), accuracy);
}

// What a task has learned is scored on the samples that it held out when it is a model, too; whatever the seed.
TEST(CliTrain, HoldsOutTheSameForTasksAndModels) {
  const TestFolder folder;
  const std::string data = " --json --threads 1 --data " + write_digits(folder);
  const std::string model = folder / "digits.onnx";
  for (const char* seed : {" --seed 0", " --seed 5"}) {
    // Little is learned, so that one sample more or less is seen in the numbers.
    const ProgramResult trained = run_program("train digits --steps 4" + data + seed + " -o " + model);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const nlohmann::json last = trained.json()["epochs"][0];
    const ProgramResult evaluated = run_program("eval " + model + data + seed);
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    EXPECT_EQ(evaluated.json()["samples"], 64);
    EXPECT_EQ(evaluated.json()["held_out_of"], 320);
    EXPECT_EQ(evaluated.json()["accuracy"], last["accuracy"]);
    EXPECT_NEAR(evaluated.json()["loss"].get<double>(), last["held_out_loss"].get<double>(), 1e-4);
  }
  const ProgramResult other = run_program("eval " + model + data + " --seed 6");
  const ProgramResult same = run_program("eval " + model + data + " --seed 5");
  EXPECT_NE(other.json()["loss"], same.json()["loss"]);
}

// Tasks and models look for a header in the same way: no sample is lost, no name is one.
TEST(CliTrain, TablesMayHaveAHeader) {
  const TestFolder folder;
  const std::string bare = write_digits(folder), headed = with_header(folder, bare);
  write_linear_model(folder);
  for (const std::string& what : {std::string("digits"), folder / "m.onnx"}) {
    const auto train = [&](const std::string& data) {
      const ProgramResult trained = run_program("train " + what + " --steps 3 --json --threads 1 --data " + data);
      EXPECT_EQ(trained.exit_code, 0) << trained.err;
      return trained.json()["final"];
    };
    EXPECT_EQ(train(bare), train(headed)) << what;
  }
}

// How often a file was opened while the program ran.
int times_opened(const std::string& path, const std::string& arguments) {
  const int queue = inotify_init1(IN_NONBLOCK);
  // Like events in a row would be told as one: each opening is followed by its end.
  inotify_add_watch(queue, path.c_str(), IN_OPEN | IN_CLOSE);
  EXPECT_EQ(run_program(arguments).exit_code, 0);
  alignas(inotify_event) char events[4096];
  const ssize_t size = read(queue, events, sizeof events);
  close(queue);
  // Without a folder to watch no event has a name behind it.
  const auto count = size < 0 ? 0 : static_cast<size_t>(size) / sizeof(inotify_event);
  return static_cast<int>(count / 2);
}

// What is learned from and what is held out are one reading; so it is with what looks for the columns.
TEST(CliTrain, ReadsItsDataOnce) {
  const TestFolder folder;
  const std::string data = write_digits(folder);
  write_linear_model(folder);
  const std::string rest = " --steps 1 --threads 1 --data " + data;
  EXPECT_EQ(times_opened(data, "train digits" + rest), 1);
  EXPECT_EQ(times_opened(data, "train " + (folder / "m.onnx") + rest), 1);
}

TEST(CliTrain, SaysHowFarItIsAndHowLongItTakes) {
  const TestFolder folder;
  const std::string train = "train digits --steps 4 --data " + write_digits(folder);
  const std::string line = run_program(train + " --progress plain").err;
  // The first step: what follows it within a second is left out.
  EXPECT_TRUE(std::regex_search(line, std::regex("^epoch 1/30  loss [0-9.]+  accuracy [0-9.e-]+  [0-9]+ samples/s  "
                                                 "[0-9:]+ (s|min) left +25 %\n")))
      << line;
  EXPECT_EQ(run_program(train).err, "") << "no terminal";
  EXPECT_EQ(run_program(train + " --quiet --progress plain").err, "");
}

// On a terminal: a bar in the room that is left, never more than a line, which would not be written over.
TEST(CliTrain, DrawsABarThatFitsTheTerminal) {
  const TestFolder folder;
  const std::string train =
      std::string(AG_PROGRAM) + " train digits --steps 40 --threads 1 --data " + write_digits(folder);
  for (const size_t columns : {40, 110}) {
    SCOPED_TRACE(columns);
    std::ofstream(folder / "run.sh") << "stty cols " << columns << "; " << train << '\n';
    const std::string screen = folder / "screen";
    ASSERT_EQ(
        std::system(("script -qec 'sh " + (folder / "run.sh") + "' /dev/null >" + screen + " </dev/null").c_str()), 0);
    std::istringstream frames(read_text(screen));
    std::string frame;
    size_t bars = 0, lines = 0;
    while (std::getline(frames, frame, '\r')) {
      if (!frame.starts_with("epoch 1/30")) continue;
      frame = frame.substr(0, frame.find('\033'));
      EXPECT_LT(frame.size(), columns) << frame;
      ++lines;
      bars += std::regex_search(frame, std::regex(" [0-9]+ % \\[#*-+\\]$")) ? 1 : 0;
    }
    EXPECT_GT(lines, 0U);
    EXPECT_EQ(bars, columns == 110 ? lines : 0U);
  }
}

TEST(CliTrain, PredictsFewSamplesWithoutLabels) {
  const TestFolder folder;
  const std::string data = write_digits(folder);
  ASSERT_EQ(run_program("train digits --epochs 4 --data " + data + " -o " + (folder / "d.onnx")).exit_code, 0);
  ASSERT_EQ(run_program("train digits --epochs 4 --data " + data + " -o " + (folder / "d.safetensors")).exit_code, 0);
  // The first two lines, without what stands behind the last comma.
  std::istringstream lines(read_text(data));
  std::ofstream few(folder / "few.csv"), bare(folder / "bare.csv");
  std::string line;
  for (int n = 0; n < 2 && std::getline(lines, line); ++n) {
    few << line << '\n';
    bare << line.substr(0, line.rfind(',')) << '\n';
  }
  few.close();
  bare.close();
  for (const std::string& model : {folder / "d.onnx", "digits --from " + (folder / "d.safetensors")}) {
    const auto predict = [&](const char* file) {
      const ProgramResult result = run_program("predict " + model + " --json --data " + (folder / file));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return result.json()["predictions"];
    };
    const nlohmann::json labelled = predict("few.csv"), unlabelled = predict("bare.csv");
    ASSERT_EQ(labelled.size(), 2U) << model;
    ASSERT_EQ(unlabelled.size(), 2U) << model;
    for (size_t n = 0; n < 2; ++n) {
      EXPECT_EQ(labelled[n]["label"], n);
      EXPECT_TRUE(unlabelled[n]["label"].is_null());
      EXPECT_EQ(unlabelled[n]["predicted"], n);
      EXPECT_EQ(unlabelled[n]["probability"], labelled[n]["probability"]);
    }
    EXPECT_EQ(
        run_program("predict " + model + " --json --first 310 --count 50 --data " + data).json()["predictions"].size(),
        10U);
  }
  const ProgramResult trained = run_program("train digits --data " + (folder / "bare.csv"));
  EXPECT_EQ(trained.exit_code, 2);
  EXPECT_TRUE(contains(trained.err, "got 2 (predict takes any number)")) << trained.err;
}

// x -> y = x, with these outputs.
ProgramResult predict_with(const TestFolder& folder, const std::function<void(GraphBuilder&, const Var&)>& outputs,
                           int64_t classes) {
  GraphBuilder graph("scores");
  outputs(graph, graph.input("x", DType::f32, {Dim::symbol("n"), classes}));
  save_onnx(graph.build(), folder / "scores.onnx");
  std::vector<float> row(static_cast<size_t>(classes), 0.0F);
  row.back() = 2;
  write_npy(folder / "x.npy", Tensor::of<float>({1, classes}, row));
  return run_program("predict " + (folder / "scores.onnx") + " --json --data " + (folder / "x.npy"));
}

TEST(CliTrain, PredictKnowsWhatScoresAre) {
  const TestFolder folder;
  const double expected = 1 / (1 + 2 * std::exp(-2.0));
  const auto prediction = [&](const std::function<void(GraphBuilder&, const Var&)>& outputs) {
    const ProgramResult result = predict_with(folder, outputs, 3);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json()["predictions"][0];
  };
  // Scores, probabilities, and labels in front of either.
  const std::function<void(GraphBuilder&, const Var&)> models[] = {
      [](GraphBuilder& graph, const Var& x) { graph.output("y", x); },
      [](GraphBuilder& graph, const Var& x) { graph.output("y", softmax(x, 1)); },
      [](GraphBuilder& graph, const Var& x) {
        graph.output("label", arg_max(x, 1, false));
        graph.output("y", softmax(x, -1));
      }};
  for (const auto& outputs : models) {
    const nlohmann::json found = prediction(outputs);
    EXPECT_EQ(found["predicted"], 2);
    EXPECT_NEAR(found["probability"].get<double>(), expected, 1e-5);
  }
  const ProgramResult one = predict_with(folder, models[0], 1);
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_TRUE(contains(one.err, "expected a number for each class, got 1 in all")) << one.err;
  const ProgramResult none = predict_with(
      folder, [](GraphBuilder& graph, const Var& x) { graph.output("label", arg_max(x, 1, false)); }, 3);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "expected an output of floats")) << none.err;
  EXPECT_EQ(run_program("predict m.onnx --data x.npy --count -1").exit_code, 2);
}

TEST(CliTrain, NamesTheNodeOfTheFirstNaN) {
  const TestFolder folder;
  const std::string train = "train digits --steps 9 --schedule constant --lr 1e30 --data " + write_digits(folder);
  const ProgramResult checked = run_program(train + " --check-nan");
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_TRUE(contains(checked.err, "[check_nan] output ")) << checked.err;
  EXPECT_TRUE(contains(checked.err, "all inputs are finite: input 0 f32[32,")) << checked.err;
  EXPECT_TRUE(contains(checked.err, "rms ") && contains(checked.err, "in node ")) << checked.err;
  // What is scored and predicted is looked at, too, and a run that is well passes.
  const std::string data = " --check-nan --data " + (folder / "digits.csv");
  EXPECT_EQ(run_program("train digits --steps 2" + data + " -o " + (folder / "d.onnx")).exit_code, 0);
  EXPECT_EQ(run_program("eval " + (folder / "d.onnx") + data).exit_code, 0);
  EXPECT_EQ(run_program("predict " + (folder / "d.onnx") + data).exit_code, 0);
}

TEST(CliTrain, IsWatchedStoppedAndHashed) {
  const TestFolder folder;
  const std::string train =
      "train " + write_linear_model(folder) + " --batch 64 --steps 2 --data " + write_digits(folder) + " --threads 1 ";
  const ProgramResult watched = run_program(train + "--json --watch fc.weight*,gemm,matmul");
  ASSERT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_GE(watched.json()["watched"].size(), 2U);
  const ProgramResult stopped = run_program(train + "--break '*'", "echo q |");
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_TRUE(contains(stopped.err, "stopped")) << stopped.err;
  // A pattern that fits nothing is told after the first step, not at the end.
  const ProgramResult lost = run_program(train + "--steps 20 --epochs 20 --progress plain --watch gemmm");
  EXPECT_TRUE(contains(lost.err, "no node fits 'gemmm' (did you mean 'gemm'?)")) << lost.err;
  EXPECT_LT(lost.err.find("no node fits"), lost.err.find("epoch")) << lost.err;
  // Two orders of the samples part at what the first step makes of its batch.
  for (const char* seed : {"1", "2"}) {
    const ProgramResult hashed = run_program(train + "--threads 0 --seed " + seed + " --hashes " + (folder / seed));
    ASSERT_EQ(hashed.exit_code, 0) << hashed.err;
  }
  const ProgramResult same = run_program("diff-runs " + (folder / "1") + " " + (folder / "1") + " --json");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_GT(same.json()["a"]["threads"], 0);
  EXPECT_EQ(run_program("diff-runs " + (folder / "1") + " " + (folder / "2")).exit_code, 6);
}

TEST(CliTrain, WeightsGoToAndComeFromSafetensors) {
  const TestFolder folder;
  const std::string data = " --data " + write_digits(folder);
  const ProgramResult trained =
      run_program("train digits --epochs 2 --json" + data + " -o " + (folder / "w.safetensors"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(read_safetensors(folder / "w.safetensors").tensors.front().first, "conv1.weight");
  const ProgramResult evaluated = run_program("eval digits --json" + data + " --from " + (folder / "w.safetensors"));
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.json()["accuracy"], trained.json()["final"]["accuracy"]);
  // Training goes on from there: its first loss is that of what has been learned.
  const ProgramResult more = run_program("train digits --steps 1 --schedule constant --lr 0 --json" + data +
                                         " --from " + (folder / "w.safetensors"));
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_EQ(more.json()["final"]["accuracy"], trained.json()["final"]["accuracy"]);
}

TEST(CliTrain, TextGoesOn) {
  const TestFolder folder;
  std::ofstream text(folder / "t.txt");
  for (int i = 0; i < 800; ++i) text << "abcdefgh ";
  text.close();
  const std::string data = " --data " + (folder / "t.txt");
  ASSERT_EQ(run_program("train sru --epochs 3 --batch 4" + data + " --checkpoint " + (folder / "run")).exit_code, 0);
  const ProgramResult predicted = run_program("predict sru" + data + " --checkpoint " + (folder / "run") +
                                              " --prompt 'abc' --count 12 --temperature 0 --seed 7");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_EQ(predicted.out, "abcdefgh abcdef\n");
}

// Byte pairs go where the weights go: neither eval nor predict is told of them, and predict needs no text.
TEST(CliTrain, TokensAreKeptBesideTheWeights) {
  const TestFolder folder;
  std::ofstream text(folder / "t.txt");
  for (int i = 0; i < 400; ++i) text << "abcdefgh ijkl ";
  text.close();
  const std::string data = " --data " + (folder / "t.txt"), options = " --steps 4 --batch 2 --threads 1 --json";
  const auto train = [&](const std::string& more) { return run_program("train sru" + data + options + more); };
  const ProgramResult trained = train(" --tokens bpe:300 --checkpoint " + (folder / "run"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  for (const char* file : {"w.safetensors", "m.onnx"}) {
    ASSERT_EQ(train(" --tokens bpe:300 -o " + (folder / file)).exit_code, 0) << file;
  }
  std::ofstream(folder / "other.txt") << std::string(3000, '\xFF') << read_text(folder / "t.txt");
  std::set<std::string> continued;
  for (const std::string& learned :
       {"sru --checkpoint " + (folder / "run"), "sru --from " + (folder / "w.safetensors"), folder / "m.onnx"}) {
    SCOPED_TRACE(learned);
    const ProgramResult evaluated = run_program("eval " + learned + data + " --json --threads 1");
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    EXPECT_NEAR(evaluated.json()["loss"].get<double>(), trained.json()["final"]["loss"].get<double>(), 1e-4);
    EXPECT_EQ(run_program("eval " + learned + " --threads 1 --data " + (folder / "other.txt")).exit_code, 0);
    const ProgramResult predicted =
        run_program("predict " + learned + " --prompt abc --count 9 --temperature 0 --threads 1");
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    continued.insert(predicted.out);
  }
  EXPECT_EQ(continued.size(), 1U);
  EXPECT_TRUE(continued.begin()->starts_with("abc"));

  const ProgramResult other = train(" --resume --checkpoint " + (folder / "run"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(
      std::regex_search(other.err, std::regex("--tokens: [0-9]+ byte_pairs \\(hash .*\\) before, 13 characters")))
      << other.err;
  EXPECT_TRUE(contains(train(" --tokens bpx").err, "--tokens: expected characters, bpe, bpe:N or a file .json, got"));
  EXPECT_TRUE(contains(train(" --tokens bpe:9").err, "[tokens] size: expected 256 to"));
  EXPECT_TRUE(contains(run_program("train " + (folder / "m.onnx") + data + " --tokens bpe").err, "has its own"));
  EXPECT_TRUE(contains(run_program("train digits --tokens bpe --data " + write_digits(folder)).err,
                       "--tokens: expected a task on text, text or sru, got digits"));
}

TEST(CliTrain, SaysWhatIsWrong) {
  const TestFolder folder;
  const ProgramResult task = run_program("train fashon --data x");
  EXPECT_EQ(task.exit_code, 2);
  EXPECT_TRUE(contains(task.err, "did you mean 'fashion'?")) << task.err;
  EXPECT_TRUE(contains(run_program("train zoo:mlp --data x").err, "autograph zoo export mlp -o FILE.onnx"));
  const ProgramResult data = run_program("train fashion");
  EXPECT_EQ(data.exit_code, 2);
  EXPECT_TRUE(contains(data.err, "IDX files of Fashion-MNIST")) << data.err;
  const ProgramResult schedule = run_program("train digits --schedule cosin --data " + write_digits(folder));
  EXPECT_EQ(schedule.exit_code, 2);
  EXPECT_TRUE(contains(schedule.err, "did you mean 'cosine'?")) << schedule.err;
  EXPECT_EQ(run_program("train digits --resume --data " + (folder / "digits.csv")).exit_code, 2);
  // None of these was heard of.
  for (const std::string options :
       {"--loss mse", "--warm-up 5", "--schedule plateau --warm-up 5", "--schedule cosine --warm-up -5",
        "--clip-norm -1", "--clip-value -1", "--loss-scale -1", "--checkpoint-every 5"}) {
    const ProgramResult result = run_program("train digits --steps 1 --data " + (folder / "digits.csv ") + options);
    EXPECT_EQ(result.exit_code, 2) << options;
    EXPECT_TRUE(contains(result.err, options.substr(options.rfind("--"), 6))) << result.err;
  }
  const ProgramResult output = run_program("train digits -o x.txt --data " + (folder / "digits.csv"));
  EXPECT_TRUE(contains(output.err, "ending in .onnx or .safetensors")) << output.err;
  const ProgramResult weights = run_program("eval digits --data " + (folder / "digits.csv"));
  EXPECT_TRUE(contains(weights.err, "--checkpoint DIR or --from")) << weights.err;
  EXPECT_TRUE(contains(run_program("train --help").out, "autograph train fashion")) << "examples first";
  EXPECT_TRUE(contains(run_program("completion --values task").out, "fashion"));
}

}  // namespace
}  // namespace autograph
