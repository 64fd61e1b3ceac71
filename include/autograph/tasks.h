// Tasks that the program can train by name: a model, its data, and numbers that work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograph/data.h"
#include "autograph/nn/module.h"
#include "autograph/train.h"
#include "autograph/trainer.h"

namespace autograph {

/// What there is to be said about a task.
struct TaskInfo {
  std::string name;
  std::string doc;   ///< The model.
  std::string data;  ///< What has to be at the path of the data.
};

/// All tasks.
const std::vector<TaskInfo>& training_tasks();

/// A task, ready to train.
struct TrainingTask {
  std::string name;
  std::unique_ptr<nn::Module> module = {};
  LossFunction loss = {};  ///< Of the fields of the data; refers to `module`.
  std::string input = {};  ///< The field that the module takes.
  DatasetPtr training = {};
  DatasetPtr held_out = {};
  std::vector<Transform> transforms = {};  ///< Of training samples.
  int64_t epochs = 10;
  int64_t batch = 64;
  Optimizer optimizer = AdamW{};
  UpdateOptions update = {};
  std::string schedule = "one_cycle";       ///< For nn::find_schedule().
  double dropout = 0;                       ///< The ratio that `module` has.
  std::optional<Tokenizer> tokenizer = {};  ///< Of tasks on text.
};

/// What the data of a task are for.
enum class TaskUse {
  train,    ///< To learn from and to score what is held out.
  predict,  ///< Of images and trees both sets are all samples, see open_samples(): images need no labels.
};

/// How a task is made.
struct TaskOptions {
  uint64_t seed = 0;                   ///< Weights and what is held out are drawn from it.
  std::optional<double> dropout = {};  ///< In place of the ratio that the task has.
  TaskUse use = TaskUse::train;
  /// Of tasks on text: so many byte-pair tokens are learned from what is not held out; 0: its characters are the
  /// tokens.
  int64_t byte_pairs = 0;
  std::optional<Tokenizer> tokenizer = {};  ///< Instead: these.
};

/// A text in pieces, and its tokens.
struct TextData {
  Tokenizer tokenizer;
  DatasetPtr training;
  DatasetPtr held_out;
};

/// The text at `path` in pieces of `length` tokens, see token_dataset(), the last tenth of which is held out; tokens
/// are those that `options` ask for. Where a text is to be written with tokens that are there, path "" is no text: no
/// pieces.
TextData open_text(const std::string& path, const TaskOptions& options, int64_t length);

/// The task `name` with data from `path`. Of tasks on text that come with their tokens there need not be any data to
/// predict: path "". Throws ValueError, with the nearest name, for others, and what reading the data throws.
TrainingTask make_task(const std::string& name, const std::string& path, const TaskOptions& options = {});

/// The model of a task for any number of samples, its weights as states: its input is `input`, its output "scores".
Graph inference_graph(TrainingTask& task);
/// The same with weights from `states`, to run and to save.
Graph inference_graph(TrainingTask& task, const StateStore& states);

/// Goes on from `prompt` by `count` tokens that a model of a task on text draws; `program` is compiled from its
/// inference_graph() for texts of `length`. Temperature 0: always the likeliest.
std::string continue_text(const Executable& program, const Tokenizer& tokenizer, const std::string& prompt,
                          int64_t count, int64_t length, double temperature, uint64_t seed);

}  // namespace autograph
