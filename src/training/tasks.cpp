// The table of tasks.
#include "autograph/tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograph/random.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "training/image_models.h"
#include "training/text_models.h"
#include "training/tree_models.h"

namespace autograph {
namespace {

// What a task is made of: where its data are, and how.
struct TaskRequest : TaskOptions {
  std::string path;

  template <class Sizes>
  Sizes with_dropout(Sizes sizes) const {
    sizes.dropout = dropout.value_or(sizes.dropout);
    return sizes;
  }
};

// One name for the pixels: "image" of image files, "x" of tables.
std::string pixels_of(const Dataset& dataset, int64_t count) {
  for (const Field& field : dataset.fields()) {
    int64_t elements = 1;
    for (const int64_t extent : field.dims) elements *= extent;
    if (field.name != "label" && elements == count) return field.name;
  }
  std::vector<std::string> fields;
  for (const Field& field : dataset.fields()) {
    const Shape shape(std::vector<Dim>(field.dims.begin(), field.dims.end()));
    fields.push_back(fmt::format("'{}' {}", printable(field.name), to_string(Type(field.dtype, shape))));
  }
  throw ShapeError(
      fmt::format("[task] data: expected a field of {} pixels, got {} (tables have the label in their last "
                  "column; predict takes them without, too)",
                  count, join(fields, ", ")));
}

void take_images(TrainingTask& task, const TaskRequest& from, const ImageModelSizes& sizes, bool is_wide) {
  const int64_t pixels = sizes.channels * sizes.side * sizes.side;
  if (from.use == TaskUse::predict) {
    task.training = task.held_out = open_samples(from.path, pixels);
  } else {
    const HeldOutSplit data = open_split(from.path, from.seed);
    task.training = data.training;
    task.held_out = data.held_out;
  }
  task.input = pixels_of(*task.training, pixels);
  task.module = is_wide ? vgg_like_net(sizes) : small_conv_net(sizes);
  task.loss = classification(*task.module, task.input);
  task.dropout = sizes.dropout;
  task.optimizer = AdamW{.learning_rate = 2e-3};
  task.update.groups = {{.weights = "*bias", .weight_decay = 0}};
}

void make_fashion(TrainingTask& task, const TaskRequest& from) {
  take_images(task, from, from.with_dropout(ImageModelSizes{.mean = 0.286, .deviation = 0.353}), false);
}

// Files of MNIST have pixels up to 1, tables up to 255.
void make_mnist(TrainingTask& task, const TaskRequest& from) {
  const double scale = from.path.ends_with(".csv") ? 255 : 1;
  const ImageModelSizes sizes{.mean = 0.1307 * scale, .deviation = 0.3081 * scale};
  take_images(task, from, from.with_dropout(sizes), false);
}

void make_digits(TrainingTask& task, const TaskRequest& from) {
  const ImageModelSizes sizes{.side = 8, .mean = 4.9, .deviation = 6, .width = 32, .hidden = 128, .dropout = 0.3};
  take_images(task, from, from.with_dropout(sizes), false);
  task.epochs = 30;
  task.batch = 32;
}

void make_cifar10(TrainingTask& task, const TaskRequest& from) {
  const ImageModelSizes sizes{.channels = 3, .side = 32, .mean = 0.473, .deviation = 0.251};
  take_images(task, from, from.with_dropout(sizes), true);
  task.transforms = {RandomCrop{.padding = 4}, HorizontalFlip{}};
  task.epochs = 20;
}

TextModelSizes take_text(TrainingTask& task, const TaskRequest& from) {
  TextModelSizes sizes = from.with_dropout(TextModelSizes{});
  TextData data = open_text(from.path, from, sizes.length);
  task.tokenizer = std::move(data.tokenizer);
  task.training = std::move(data.training);
  task.held_out = std::move(data.held_out);
  task.input = "input";
  task.epochs = 2;
  task.batch = 32;
  task.optimizer = AdamW{.learning_rate = 2e-3};
  task.update.clip_norm = 1.0;
  task.dropout = sizes.dropout;
  sizes.words = task.tokenizer->size();
  return sizes;
}

void make_text(TrainingTask& task, const TaskRequest& from) {
  task.module = text_transformer(take_text(task, from));
  task.loss = next_token(*task.module);
}

void make_sru(TrainingTask& task, const TaskRequest& from) {
  TextModelSizes sizes = take_text(task, from);
  sizes.width = 192;
  task.module = text_sru(sizes);
  task.loss = next_token(*task.module);
}

// Numbers of types and classes are those that occur.
TreeModelSizes sizes_of_trees(const Dataset& dataset) {
  const std::vector<Field>& fields = dataset.fields();
  const auto tree = std::find_if(fields.begin(), fields.end(), [](const Field& field) { return field.name == "tree"; });
  const bool has_labels = std::any_of(fields.begin(), fields.end(), [](const Field& field) {
    return field.name == "label" && field.dtype == DType::i64 && field.dims.empty();
  });
  AG_CHECK_USER(
      tree != fields.end() && tree->dtype == DType::i64 && tree->dims.size() == 2 && tree->dims[0] == 3 && has_labels,
      ShapeError, "[task] data: expected fields 'tree' i64[3,nodes] and 'label' i64[] (bench/python_trees.py)");
  TreeModelSizes sizes{.nodes = tree->dims[1]};
  for (int64_t n = 0; n < dataset.size(); ++n) {
    for (const auto& [name, tensor] : dataset.sample(n)) {
      const int64_t* numbers = name == "tree" || name == "label" ? tensor.data<int64_t>() : nullptr;
      if (name == "label") sizes.classes = std::max(sizes.classes, numbers[0] + 1);
      for (int64_t k = 0; name == "tree" && k < 3 * sizes.nodes; ++k) {
        const int64_t end = k < sizes.nodes ? std::numeric_limits<int32_t>::max() : k % sizes.nodes + 1;
        AG_CHECK_USER(numbers[k] >= 0 && numbers[k] < end, ValueError,
                      "[task] data: sample {}, number {} of its tree: expected 0 to {}, got {}", n, k, end - 1,
                      numbers[k]);
        if (k < sizes.nodes) sizes.types = std::max(sizes.types, numbers[k] + 1);
      }
    }
  }
  return sizes;
}

void make_tree(TrainingTask& task, const TaskRequest& from) {
  const DatasetPtr trees = npz_dataset(from.path);
  const TreeModelSizes sizes = from.with_dropout(sizes_of_trees(*trees));
  const HeldOutSplit data = from.use == TaskUse::predict ? HeldOutSplit{trees, trees} : hold_out(trees, from.seed);
  task.training = data.training;
  task.held_out = data.held_out;
  task.input = "tree";
  task.module = tree_lstm(sizes);
  task.dropout = sizes.dropout;
  task.loss = classification(*task.module, task.input);
  task.batch = 32;
  task.optimizer = AdamW{.learning_rate = 2e-3};
  task.update.clip_norm = 1.0;
}

using Make = void (*)(TrainingTask& task, const TaskRequest& from);

struct TaskEntry {
  TaskInfo info;
  Make make;
};

const std::vector<TaskEntry>& entries() {
  static const std::vector<TaskEntry> list{
      {{"fashion", "clothes, 28x28, by two convolutions", "a folder with the IDX files of Fashion-MNIST"},
       make_fashion},
      {{"mnist", "digits, 28x28, by two convolutions",
        "a folder with the IDX files of MNIST, or a .csv of pixels and labels"},
       make_mnist},
      {{"digits", "digits, 8x8, by two convolutions", "a .csv of 64 pixels (0 to 16) and a label in each line"},
       make_digits},
      {{"cifar10", "colour images, 32x32, by six convolutions", "a folder with the binary files of CIFAR-10"},
       make_cifar10},
      {{"text", "the next token, by a transformer", "any text file"}, make_text},
      {{"sru", "the next token, by simple recurrent units", "any text file"}, make_sru},
      {{"tree", "classes of trees, by a Tree-LSTM", "a .npz of trees and labels, as bench/python_trees.py writes it"},
       make_tree}};
  return list;
}

}  // namespace

const std::vector<TaskInfo>& training_tasks() {
  static const std::vector<TaskInfo> list = [] {
    std::vector<TaskInfo> infos;
    for (const TaskEntry& entry : entries()) infos.push_back(entry.info);
    return infos;
  }();
  return list;
}

TrainingTask make_task(const std::string& name, const std::string& path, const TaskOptions& options) {
  std::vector<std::string> names;
  for (const TaskEntry& entry : entries()) {
    names.push_back(entry.info.name);
    if (entry.info.name != name) continue;
    TrainingTask task{.name = name};
    entry.make(task, {options, path});
    task.module->set_seed(options.seed);
    return task;
  }
  throw ValueError(fmt::format("[task] no task '{}'{}", name, did_you_mean(name, names)));
}

Graph inference_graph(TrainingTask& task) {
  GraphBuilder graph(task.name);
  const bool was_training = task.module->is_training();
  task.module->eval();
  for (const Field& field : task.training->fields()) {
    if (field.name != task.input) continue;
    std::vector<Dim> dims{Dim::symbol("batch")};
    dims.insert(dims.end(), field.dims.begin(), field.dims.end());
    graph.output("scores", (*task.module)(graph.input(field.name, field.dtype, Shape(dims))));
  }
  task.module->train(was_training);
  return graph.build();
}

Graph inference_graph(TrainingTask& task, const StateStore& states) {
  Graph model = inference_graph(task);
  states.copy_to(model);
  model.freeze();
  return model;
}

std::string continue_text(const Executable& program, const Tokenizer& tokenizer, const std::string& prompt,
                          int64_t count, int64_t length, double temperature, uint64_t seed) {
  AG_CHECK_USER(temperature >= 0, ValueError, "[text] temperature: expected 0 or more, got {}", temperature);
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  AG_CHECK_USER(!tokens.empty(), ValueError, "[text] prompt: expected at least one token");
  Random random(seed);
  for (int64_t done = 0; done < count; ++done) {
    // The last tokens stand in front; what comes behind them is not seen by causal models.
    const auto used = static_cast<int64_t>(std::min(tokens.size(), static_cast<size_t>(length)));
    Tensor x = Tensor::zeros(DType::i64, {1, length});
    std::copy(tokens.end() - used, tokens.end(), x.mutable_data<int64_t>());
    const Tensor scores = program.run({x})[0].tensor();
    const int64_t words = scores.dims()[2];
    const float* row = scores.data<float>() + (used - 1) * words;
    const float best = *std::max_element(row, row + words);
    double total = 0;
    const auto weight = [&](int64_t k) { return std::exp((double{row[k]} - best) / temperature); };
    for (int64_t k = 0; k < words && temperature > 0; ++k) total += weight(k);
    int64_t next = std::max_element(row, row + words) - row;
    double left = static_cast<double>(random() >> 11) * 0x1p-53 * total;
    for (int64_t k = 0; k < words && temperature > 0; ++k) {
      next = k;
      if ((left -= weight(k)) < 0) break;
    }
    tokens.push_back(static_cast<int32_t>(next));
  }
  return tokenizer.decode(tokens);
}

}  // namespace autograph
