// TASK or MODEL.onnx and --data: what train, eval and predict have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autograph/checkpoint.h"
#include "autograph/model_io.h"
#include "autograph/tasks.h"
#include "autograph/trainer.h"
#include "cli/options/command.h"
#include "cli/options/nan_check_options.h"
#include "cli/options/training_flags.h"
#include "cli/session.h"
#include "cli/sources/image_options.h"

namespace autograph::cli {

/// TASK|MODEL, --data, --size, --normalize, --loss, --batch, --seed, --threads, --memory-budget, --precision,
/// --check-nan, --check-every-node.
struct LearningOptions {
  std::string what;
  std::string data;
  std::string loss;   ///< "": cross_entropy.
  int64_t batch = 0;  ///< 0: the task's own.
  int64_t seed = 0;
  int64_t threads = 0;
  int64_t memory_budget_mib = 0;
  std::string precision = "f32";
  NanCheckFlags check_nan;
  ImageOptions images;
  TaskUse use = TaskUse::train;  ///< No option: what the verb does.
  double dropout = kNotGiven;    ///< The task's own when not given. An option of train alone: nothing else drops.
  std::string tokens;            ///< Of tasks on text; "": those beside the weights, else characters. Of train alone.
  std::optional<Tokenizer> kept_tokens = {};  ///< No option: those beside the weights that are taken.
};

/// These as an option table.
std::vector<Option> learning_option_table(LearningOptions& options);

/// A task, or an imported model with data: one of `model` and `task.module` is there.
struct LearningSource {
  TrainingTask task;           ///< Of a model: its data and defaults.
  std::optional<Model> model;  ///< Imported.
  TrainingOptions training;    ///< Of the model: its loss.
  /// Of its samples, where they are images.
  std::optional<ImageSize> size = {};
  /// What is done to its samples whatever they are for.
  std::vector<Transform> preparation = {};
};

/// Opens both. Throws UserError with the nearest task where `what` is neither a task nor a file .onnx, and what reading
/// throws.
LearningSource open_learning(const Session& session, const LearningOptions& options);

/// Samples to learn from, shuffled and changed as the task says.
DataLoader training_loader(const LearningSource& source, const LearningOptions& options);
/// Samples that are held out, in their order. `batch`: how many at a time; 0: as many as suit an evaluation.
DataLoader held_out_loader(const LearningSource& source, int64_t batch = 0);

/// How to compile what trains or evaluates.
CompileOptions learning_compile_options(const LearningOptions& options);

/// Loss and metrics of any number of samples; states have the weights that the task or model begins with.
Graph evaluation_of(LearningSource& source);

/// Where weights come from.
struct WeightsOptions {
  std::string checkpoint;  ///< Folder of checkpoints: the best of them.
  std::string from;        ///< A file .safetensors.
};

/// --from.
Option from_option(std::string& from);

/// --checkpoint and --from.
std::vector<Option> weights_option_table(WeightsOptions& options);

/// Overwrites the weights that a task or model begins with by those of a file; of a model those that the file has.
void begin_from(LearningSource& source, const std::string& file);

/// The best checkpoint of the folder, else the newest; none where no folder was given. Throws IoError where there is
/// none in it.
std::optional<Checkpoint> find_checkpoint(const Session& session, const WeightsOptions& options);

/// Overwrites `states` with the weights of the file, then with those of `found`, and says on which step these were
/// written, -1 where there are none. Throws UserError where a task has neither.
int64_t load_weights(const LearningSource& source, const WeightsOptions& options,
                     const std::optional<Checkpoint>& found, StateStore& states);

/// A number, or null below 0.
Json count_json(int64_t count);

/// "0.9312", "2.31e-05"
std::string metric_text(double value);

}  // namespace autograph::cli
