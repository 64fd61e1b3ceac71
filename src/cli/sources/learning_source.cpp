#include "cli/sources/learning_source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "cli/options/loss_option.h"
#include "cli/options/names.h"
#include "cli/options/run_options.h"
#include "cli/sources/token_options.h"

namespace autograph::cli {
namespace {

constexpr int64_t kEvaluationBatch = 500;

bool is_model(const std::string& what) { return what.ends_with(".onnx"); }

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskInfo& task : training_tasks()) names.push_back(task.name);
  return names;
}

void check_what(const std::string& what) {
  const std::vector<std::string> names = task_names();
  const bool is_task = std::find(names.begin(), names.end(), what) != names.end();
  if (is_task || is_model(what)) return;
  constexpr std::string_view kZoo = "zoo:";
  const bool is_zoo = what.starts_with(kZoo);
  const std::string hint =
      is_zoo ? fmt::format(" (autograph zoo export {} -o FILE.onnx writes it as one)", what.substr(kZoo.size()))
             : did_you_mean(what, names);
  throw UserError(
      fmt::format("[cli] task: expected {} or a file .onnx, got '{}'{}", join(names, ", "), printable(what), hint));
}

// That the data of a task are wanted is said with what they are. Texts are written without any.
void check_data(const LearningOptions& options, bool has_tokens) {
  if (!options.data.empty() || (has_tokens && options.use == TaskUse::predict)) return;
  for (const TaskInfo& task : training_tasks()) {
    AG_CHECK_USER(task.name != options.what, UserError, "[cli] --data: expected {}", task.data);
  }
  throw UserError("[cli] --data: expected a set of samples: a folder, or a file .npz, .npy, .csv or .jsonl");
}

// Of an imported model some weights may have learned, the others are its own. A task has none of its own.
void restore(const NamedTensors& given, const LearningSource& source, StateStore& states) {
  const NamedTensors tensors = with_averages(given);
  if (!source.model) return Checkpoint{.tensors = tensors}.restore(states);
  for (const auto& [name, tensor] : tensors) {
    if (states.contains(name)) states.set(name, tensor);
  }
}

// How many numbers a sample of the one input has; 0 where the model leaves it open.
int64_t elements_of_input(const Graph& model) {
  if (model.inputs().empty()) return 0;
  const Type& type = model.type(model.inputs()[0]);
  if (!type.is_tensor() || !type.shape().has_rank()) return 0;
  int64_t elements = 1;
  for (int64_t axis = 1; axis < type.shape().rank(); ++axis) {
    elements *= type.shape()[axis].is_known() ? type.shape()[axis].value() : 0;
  }
  return elements;
}

// `size` where the samples are images of it, as those of folders are. One that was asked for must be.
std::optional<ImageSize> size_of_samples(const Dataset& dataset, const ImageSize& size, bool is_asked_for) {
  const Field& first = dataset.fields().front();
  if (first.dims == Dims{size.channels, size.height, size.width}) return size;
  AG_CHECK_USER(!is_asked_for, UserError, "[cli] --size: expected a folder of images, got samples '{}' of {}",
                printable(first.name), to_string(first.dims));
  return std::nullopt;
}

// The data of an imported model.
void open_data(LearningSource& source, const LearningOptions& options, const ImageSize& size) {
  if (options.use == TaskUse::predict) {
    source.task.training = source.task.held_out =
        open_samples(options.data, elements_of_input(source.model->graph), {}, size);
    return;
  }
  HeldOutSplit split = open_split(options.data, static_cast<uint64_t>(options.seed), size);
  source.task.training = std::move(split.training);
  source.task.held_out = std::move(split.held_out);
}

// The same of one that was saved with its tokens.
void open_tokens(LearningSource& source, const LearningOptions& options, const Tokenizer& tokenizer) {
  const Type& type = source.model->graph.type(source.model->graph.inputs().front());
  const Shape& shape = type.shape();
  AG_CHECK_USER(shape.has_rank() && shape.rank() == 2 && shape[1].is_known(), UserError,
                "[cli] {}: expected an input [batch, length] of a known length for its tokens, got {}", options.what,
                to_string(type));
  TextData data = open_text(options.data, {.use = options.use, .tokenizer = tokenizer}, shape[1].value());
  source.task.tokenizer = std::move(data.tokenizer);
  source.task.training = std::move(data.training);
  source.task.held_out = std::move(data.held_out);
}

void open_task(LearningSource& source, const LearningOptions& options) {
  AG_CHECK_USER(options.loss.empty(), UserError, "[cli] --loss: {} has its own", options.what);
  check_data(options, options.kept_tokens.has_value());
  AG_CHECK_USER(options.images.size.empty() && options.images.normalize.empty(), UserError,
                "[cli] --size and --normalize: {} has its own", options.what);
  TaskOptions how{.seed = static_cast<uint64_t>(options.seed), .use = options.use};
  if (is_given(options.dropout, "dropout")) how.dropout = options.dropout;
  choose_tokens(how, options.tokens, options.kept_tokens);
  source.task = make_task(options.what, options.data, how);
}

// What was asked for, or what is usual where there are as many samples.
int64_t batch_of(const LearningSource& source, const LearningOptions& options) {
  if (options.use != TaskUse::train) return options.batch > 0 ? options.batch : source.task.batch;
  const int64_t samples = source.task.training->size();
  AG_CHECK_USER(options.batch <= samples, UserError, "[cli] --batch: expected at most the {} samples, got {}", samples,
                options.batch);
  return options.batch > 0 ? options.batch : std::min(source.task.batch, samples);
}

void open_model(const Session& session, LearningSource& source, const LearningOptions& options) {
  std::error_code code;
  AG_CHECK_USER(std::filesystem::exists(options.what, code), IoError, "[cli] model: no file '{}'", options.what);
  AG_CHECK_USER(!is_given(options.dropout, "dropout"), UserError, "[cli] --dropout: {} has its own", options.what);
  source.model = load_onnx(options.what);
  for (const std::string& warning : source.model->warnings) session.warn(warning);
  source.task.name = options.what;
  const std::optional<Tokenizer> tokenizer = tokens_kept(source.model->metadata);
  check_data(options, tokenizer.has_value());
  const ImageSize size = image_size(options.images, source.model->graph);
  if (const auto normalize = normalization(options.images)) source.preparation = {*normalize};
  if (tokenizer) {
    open_tokens(source, options, *tokenizer);
  } else {
    open_data(source, options, size);
  }
  source.size = size_of_samples(*source.task.training, size, !options.images.size.empty());
  source.task.optimizer = AdamW{.learning_rate = 1e-4};
  source.task.epochs = 3;
  source.training.loss = tokenizer ? "token_cross_entropy" : "cross_entropy";
  if (!options.loss.empty()) source.training.loss = options.loss;
}

}  // namespace

std::vector<Option> learning_option_table(LearningOptions& options) {
  std::vector<Option> table{
      {.names = "TASK",
       .doc = "One of " + join(task_names(), ", ") + "; or MODEL.onnx with one input.",
       .target = &options.what,
       .kind = ValueKind::task,
       .required = true},
      {.names = "--data",
       .value_name = "PATH",
       .doc = "The samples: a folder (MNIST's or CIFAR's files, x.npy and y.npy, or a folder of images for each "
              "class), or a file .npz (x and y, or x_train and so on), .npy, .csv, .tsv, .jsonl; of text and sru any "
              "text file, which predict does without where tokens are kept beside the weights. predict takes an image "
              "file "
              "or a folder of images alone, too.",
       .target = &options.data,
       .kind = ValueKind::file},
      loss_option(options.loss, "Of MODEL.onnx: ",
                  "when not given that of the run whose checkpoint is taken, else cross_entropy (of models with tokens "
                  "token_cross_entropy). The target is the data's label; sum wants known extents."),
      {.names = "--batch",
       .value_name = "N",
       .doc = "Samples of a step; the task's own when not given, 64 for MODEL.onnx.",
       .target = &options.batch},
      {.names = "--seed",
       .value_name = "N",
       .doc = "Of weights, order, dropout and of which fifth of a set in one piece is held out; when not given that of "
              "the run whose checkpoint eval or predict takes, else 0.",
       .target = &options.seed,
       .env = "AUTOGRAPH_SEED"},
      {.names = "--threads",
       .value_name = "N",
       .doc = "Threads of one run; 0: all that this process may use.",
       .target = &options.threads,
       .env = "AUTOGRAPH_NUM_THREADS"},
      {.names = "--memory-budget",
       .value_name = "MIB",
       .doc = "Refuse to run when activations need more, or in training all that it keeps: activations, weights, what "
              "the optimiser remembers and batches (exit 5); on a device states may wait on the host. 0: no limit.",
       .target = &options.memory_budget_mib,
       .env = "AUTOGRAPH_MEMORY_BUDGET"},
      {.names = "--precision",
       .value_name = "TYPE",
       .doc = "In what convolutions and matrix products multiply: f32, or bf16 where the CPU has it (else exit 7).",
       .target = &options.precision,
       .kind = ValueKind::choice,
       .choices = {"f32", "bf16"}},
      check_nan_option(options.check_nan),
      check_every_node_option(options.check_nan),
  };
  for (Option& option : image_option_table(options.images)) table.push_back(std::move(option));
  return table;
}

LearningSource open_learning(const Session& session, const LearningOptions& options) {
  check_what(options.what);
  AG_CHECK_USER(options.batch >= 0, UserError, "[cli] batch: expected 1 or more, got {}", options.batch);
  // Looked at before the data are read.
  checked_threads(options.threads);
  bytes_of_budget(options.memory_budget_mib);
  LearningSource source;
  if (is_model(options.what)) {
    open_model(session, source, options);
  } else {
    open_task(source, options);
  }
  AG_CHECK_USER(options.tokens.empty() || (source.task.tokenizer && !source.model), UserError,
                "[cli] --tokens: expected a task on text, text or sru, got {}{}", printable(options.what),
                source.task.tokenizer ? ", which has its own" : "");
  source.task.batch = batch_of(source, options);
  source.task.transforms = transforms_of(std::move(source.task.transforms), options.images);
  return source;
}

DataLoader training_loader(const LearningSource& source, const LearningOptions& options) {
  return DataLoader(source.task.training, {.batch_size = source.task.batch,
                                           .shuffle = true,
                                           .drop_last = true,
                                           .seed = static_cast<uint64_t>(options.seed),
                                           .transforms = source.task.transforms});
}

DataLoader held_out_loader(const LearningSource& source, int64_t batch) {
  const int64_t usual = source.task.tokenizer ? source.task.batch : kEvaluationBatch;
  return DataLoader(source.task.held_out, {.batch_size = batch > 0 ? batch : usual, .transforms = source.preparation});
}

CompileOptions learning_compile_options(const LearningOptions& options) {
  CompileOptions compile;
  compile.threads = static_cast<int>(options.threads);
  compile.memory_budget_bytes = bytes_of_budget(options.memory_budget_mib);
  compile.precision = precision_named(options.precision);
  compile.check_nan = options.check_nan.check();
  return compile;
}

Graph evaluation_of(LearningSource& source) {
  // What is scored need not fill a batch of training.
  const DataLoader loader = held_out_loader(source);
  if (source.model) return evaluation_graph(source.model->graph, loader, source.training);
  return training_graphs(*source.task.module, loader, source.task.loss, source.task.optimizer).evaluation;
}

Option from_option(std::string& from) {
  return {.names = "--from",
          .value_name = "FILE.safetensors",
          .doc = "Weights by name; for a task those that PyTorch would use.",
          .target = &from,
          .kind = ValueKind::file};
}

void begin_from(LearningSource& source, const std::string& file) {
  if (file.empty()) return;
  if (source.task.module) return source.task.module->load(file);
  const NamedTensors tensors = read_safetensors(file).tensors;
  Graph& graph = source.model->graph;
  for (const ValueId id : graph.constants()) {
    const auto named = [&](const auto& entry) { return entry.first == graph.value(id).name(); };
    const auto found = std::find_if(tensors.begin(), tensors.end(), named);
    if (found == tensors.end()) continue;
    AG_CHECK_USER(found->second.type() == graph.type(id), UserError, "[cli] --from: '{}': expected {}, got {}",
                  found->first, to_string(graph.type(id)), to_string(found->second.type()));
    graph.set_constant(id, found->second);
  }
}

std::vector<Option> weights_option_table(WeightsOptions& options) {
  return {{.names = "--checkpoint",
           .value_name = "DIR",
           .doc = "Folder of the checkpoints of a run: the best of them is taken.",
           .target = &options.checkpoint,
           .kind = ValueKind::directory},
          from_option(options.from)};
}

std::optional<Checkpoint> find_checkpoint(const Session& session, const WeightsOptions& options) {
  if (options.checkpoint.empty()) return std::nullopt;
  Checkpoints checkpoints(options.checkpoint);
  auto found = checkpoints.load_best();
  if (!found) found = checkpoints.load_latest();
  for (const DamagedCheckpoint& damaged : checkpoints.damaged()) {
    session.warn(fmt::format("checkpoint '{}' is damaged and was skipped: {}", damaged.path, damaged.problem));
  }
  AG_CHECK_USER(found, IoError, "[cli] checkpoint: there is none in '{}'", options.checkpoint);
  return found;
}

int64_t load_weights(const LearningSource& source, const WeightsOptions& options,
                     const std::optional<Checkpoint>& found, StateStore& states) {
  AG_CHECK_USER(source.model || found || !options.from.empty(), UserError,
                "[cli] weights: expected --checkpoint DIR or --from FILE.safetensors");
  if (!options.from.empty()) restore(read_safetensors(options.from).tensors, source, states);
  if (found) restore(found->tensors, source, states);
  return found ? found->step : -1;
}

Json count_json(int64_t count) {
  Json json;
  if (count >= 0) json = count;
  return json;
}

std::string metric_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.4g}", value); }

}  // namespace autograph::cli
