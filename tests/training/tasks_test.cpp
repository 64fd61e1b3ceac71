// Tasks: they read what they say, hold out the same every time, and learn a little from very little.
#include <gtest/gtest.h>

#include <set>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/tasks.h"
#include "support/message_of.h"
#include "training/toy_run.h"

namespace autograph {
namespace {

// Images of 8x8 pixels from 0 to 16, of which two rows say the class; as scikit-learn has them.
void write_digits(const std::string& path, int64_t count) {
  Random random(11);
  std::ofstream file(path);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t label = n % 4;
    for (int64_t pixel = 0; pixel < 64; ++pixel) {
      file << draw(random, 0, 3) + (pixel / 16 == label ? 10 : 0) << ',';
    }
    file << label << '\n';
  }
}

// Pixels 0 to 3, and 200 more in the quarter of the rows that says the class.
std::string pixels_of_class(Random& random, int64_t count, int64_t label) {
  std::string pixels;
  for (int64_t k = 0; k < count; ++k) {
    pixels += static_cast<char>(draw(random, 0, 3) + (k * 4 / count == label ? 200 : 0));
  }
  return pixels;
}

// The header of an IDX file of bytes: big-endian extents.
std::string idx_header(const std::vector<int64_t>& extents) {
  std::string bytes{0, 0, 8, static_cast<char>(extents.size())};
  for (const int64_t extent : extents) bytes += {0, 0, static_cast<char>(extent >> 8), static_cast<char>(extent)};
  return bytes;
}

// A folder as MNIST and Fashion-MNIST are.
void write_idx(const TestFolder& folder, const std::string& part, int64_t count) {
  Random random(static_cast<uint64_t>(count));
  std::ofstream images(folder / (part + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (part + "-labels-idx1-ubyte"), std::ios::binary);
  images << idx_header({count, 28, 28});
  labels << idx_header({count});
  for (int64_t n = 0; n < count; ++n) {
    images << pixels_of_class(random, 784, n % 4);
    labels << static_cast<char>(n % 4);
  }
}

// A table as MNIST comes in, too: pixels up to 255, then the label.
void write_mnist_table(const std::string& path, int64_t count) {
  Random random(5);
  std::ofstream file(path);
  for (int64_t n = 0; n < count; ++n) {
    for (const char pixel : pixels_of_class(random, 784, n % 4)) file << int{static_cast<uint8_t>(pixel)} << ',';
    file << n % 4 << '\n';
  }
}

// A binary file as CIFAR-10 has them.
void write_cifar(const std::string& path, int64_t count) {
  Random random(static_cast<uint64_t>(count));
  std::ofstream file(path, std::ios::binary);
  for (int64_t n = 0; n < count; ++n) {
    file << static_cast<char>(n % 4);
    for (int channel = 0; channel < 3; ++channel) file << pixels_of_class(random, 1024, n % 4);
  }
}

double train(TrainingTask& task, TrainerOptions options) {
  DataLoader training(task.training, {.batch_size = task.batch, .shuffle = true, .drop_last = true});
  TrainingGraphs graphs = training_graphs(*task.module, training, task.loss, task.optimizer, task.update);
  DataLoader held_out(task.held_out, {.batch_size = task.batch, .drop_last = task.tokenizer.has_value()});
  Trainer trainer(std::move(graphs), std::move(training), std::move(held_out), std::move(options));
  const TrainingResult result = trainer.run();
  // What is saved gives what was evaluated, for one sample as for many.
  const Executable program = compile(inference_graph(task, trainer.states()));
  const std::vector<int64_t> first{0};
  for (const auto& [name, tensor] : task.held_out->batch(first)) {
    if (name != task.input) continue;
    EXPECT_EQ(program.run({tensor})[0].tensor().dims().front(), 1);
  }
  return result.epochs.back().held_out.at("accuracy");
}

TEST(Tasks, DigitsFromATable) {
  const TestFolder folder;
  write_digits(folder / "digits.csv", 400);
  TrainingTask task = make_task("digits", folder / "digits.csv", {.seed = 1});
  EXPECT_EQ(task.training->size(), 320);
  EXPECT_EQ(task.held_out->size(), 80);
  EXPECT_EQ(task.module->state_dict().front().first, "conv1.weight");
  EXPECT_GT(train(task, {.epochs = 4}), 0.9);
}

TEST(Tasks, FashionAndMnistFromFiles) {
  const TestFolder folder;
  write_idx(folder, "train", 192);
  write_idx(folder, "t10k", 40);
  write_mnist_table(folder / "mnist.csv", 240);
  for (const auto& [name, path] :
       {std::pair{"fashion", folder / ""}, {"mnist", folder / ""}, {"mnist", folder / "mnist.csv"}}) {
    SCOPED_TRACE(name + (" of " + path));
    TrainingTask task = make_task(name, path);
    EXPECT_EQ(task.training->size(), 192);
    EXPECT_EQ(task.held_out->size(), path.ends_with(".csv") ? 48 : 40);
    EXPECT_EQ(task.module->state_dict().back().second.dims(), Dims{10});
    task.batch = 16;
    EXPECT_GT(train(task, {.epochs = 3}), 0.9);
  }
}

TEST(Tasks, Cifar10FromFiles) {
  const TestFolder folder;
  write_cifar(folder / "data_batch_1.bin", 40);
  write_cifar(folder / "data_batch_2.bin", 24);
  write_cifar(folder / "test_batch.bin", 12);
  TrainingTask task = make_task("cifar10", folder / "");
  EXPECT_EQ(task.training->size(), 64);
  EXPECT_EQ(task.held_out->size(), 12);
  EXPECT_EQ(task.transforms.size(), 2U);
  task.batch = 8;
  EXPECT_GE(train(task, {.epochs = 1}), 0.25);
}

TEST(Tasks, TextByTransformerAndSru) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 600; ++i) text += "abcdefgh ";
  std::ofstream(folder / "t.txt") << text;
  for (const char* name : {"text", "sru"}) {
    SCOPED_TRACE(name);
    TrainingTask task = make_task(name, folder / "t.txt");
    task.batch = 4;
    EXPECT_EQ(task.tokenizer->size(), 9);
    EXPECT_GT(train(task, {.epochs = 3}), 0.8);
  }
}

// What is held out decides about no token: the pair "xy" is in the last tenth alone.
TEST(Tasks, BytePairsAreLearnedFromWhatIsNotHeldOut) {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 900; ++i) text += "abcd ";
  for (int i = 0; i < 90; ++i) text += "xyxy ";
  std::ofstream(folder / "t.txt") << text;
  const TrainingTask task = make_task("sru", folder / "t.txt", {.byte_pairs = 300});
  EXPECT_EQ(task.tokenizer->kind(), "byte_pairs");
  EXPECT_EQ(task.tokenizer->encode(" abcd").size(), 1U);
  EXPECT_EQ(task.tokenizer->encode(" xyxy").size(), 5U);
  const TrainingTask other = make_task("sru", folder / "t.txt", {.tokenizer = Tokenizer::characters(text)});
  EXPECT_EQ(other.tokenizer->kind(), "characters");
  // To write a text there need not be one.
  const TrainingTask without = make_task("text", "", {.use = TaskUse::predict, .tokenizer = task.tokenizer});
  EXPECT_EQ(without.held_out->size(), 0);
  EXPECT_THROW(make_task("text", "", {.tokenizer = task.tokenizer}), IoError);
}

TEST(Tasks, TextsGoOn) {
  // A model that always finds the next letter likeliest.
  const Tokenizer tokenizer = Tokenizer::characters("abcd");
  GraphBuilder graph;
  std::vector<float> table(16, 0);
  for (size_t k = 0; k < 4; ++k) table[4 * k + (k + 1) % 4] = 9;
  nn::Embedding next(4, 4);
  next.tensor("weight").set_value(Tensor::of<float>({4, 4}, table));
  graph.output("scores", next(graph.input("input", DType::i64, {Dim::symbol("batch"), 3})));
  const Executable program = compile(graph.build());
  EXPECT_EQ(continue_text(program, tokenizer, "a", 6, 3, 0, 1), "abcdabc");
  EXPECT_EQ(continue_text(program, tokenizer, "abcda", 2, 3, 0.1, 1), "abcdabc");
  EXPECT_EQ(continue_text(program, tokenizer, "a", 40, 3, 100, 1),
            continue_text(program, tokenizer, "a", 40, 3, 100, 1));
  EXPECT_NE(continue_text(program, tokenizer, "a", 40, 3, 100, 1),
            continue_text(program, tokenizer, "a", 40, 3, 100, 2));
  EXPECT_NE(message_of<ValueError>([&] { continue_text(program, tokenizer, "", 1, 3, 0, 1); }).find("prompt"),
            std::string::npos);
}

TEST(Tasks, SamplesAreHeldOutOnceEach) {
  const DatasetPtr points = toy_points(50, 3);
  const HeldOutSplit split = hold_out(points, 4), same = hold_out(points, 4), other = hold_out(points, 5);
  std::set<float> seen;
  for (const DatasetPtr& part : {split.training, split.held_out}) {
    for (int64_t n = 0; n < part->size(); ++n) seen.insert(part->sample(n)[0].second.data<float>()[0]);
  }
  EXPECT_EQ(split.held_out->size(), 10);
  EXPECT_EQ(seen.size(), 50U);
  const auto first = [](const HeldOutSplit& s) { return s.held_out->sample(0)[0].second.to_f64(); };
  EXPECT_EQ(first(split), first(same));
  EXPECT_NE(first(split), first(other));
  EXPECT_NE(message_of<ValueError>([&] { hold_out(toy_points(4, 3), 0); }).find("got 4"), std::string::npos);
}

// What drops draws random numbers, which are states.
TEST(Tasks, TakeAnotherDropout) {
  const TestFolder folder;
  write_digits(folder / "digits.csv", 100);
  for (const double ratio : {0.3, 0.0}) {
    TrainingTask task = make_task("digits", folder / "digits.csv", {.seed = 1, .dropout = ratio});
    const DataLoader loader(task.training, {.batch_size = 8});
    const Graph step = training_graphs(*task.module, loader, task.loss, task.optimizer, task.update).step;
    const std::vector<ValueId> states = step.states();
    EXPECT_EQ(
        std::any_of(states.begin(), states.end(), [&](ValueId id) { return step.value(id).name() == "random/step"; }),
        ratio > 0)
        << ratio;
  }
  EXPECT_THROW(make_task("digits", folder / "digits.csv", {.seed = 1, .dropout = 1.5}), ValueError);
}

TEST(Tasks, SayWhatThereIs) {
  EXPECT_EQ(message_of<ValueError>([] { make_task("fashon", ""); }),
            "[task] no task 'fashon' (did you mean 'fashion'?)");
  EXPECT_THROW(make_task("fashion", "/no/such/folder"), IoError);
  std::set<std::string> names;
  for (const TaskInfo& task : training_tasks()) names.insert(task.name);
  EXPECT_EQ(names, (std::set<std::string>{"fashion", "mnist", "digits", "cifar10", "text", "sru", "tree"}));
}

}  // namespace
}  // namespace autograph
