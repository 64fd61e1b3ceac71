// `autograph predict TASK|MODEL.onnx --data PATH`: classes of samples; of tasks on text, how a text goes on.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "cli/sources/learning_source.h"
#include "cli/sources/training_settings.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  LearningOptions learning;
  WeightsOptions weights;
  int64_t first = 0;
  int64_t count = 10;
  std::string prompt = "\n";
  double temperature = 0.8;
};

// The model with the weights that were asked for. No loss is part of it: labels may be missing.
Graph model_of(LearningSource& source, const Options& options, const std::optional<Checkpoint>& found) {
  // As it is: it need not have weights that could learn, as trees have none.
  if (source.model && !found && options.weights.from.empty()) return source.model->graph;
  Graph model = source.task.module ? inference_graph(source.task)
                                   : make_trainable(source.model->graph, {.batch_statistics = false}).graph;
  StateStore states;
  states.add(model);
  load_weights(source, options.weights, found, states);
  states.copy_to(model);
  model.freeze();
  return model;
}

struct Prediction {
  int64_t label = 0;
  double probability = 0;
};

// The output that losses are of, too.
size_t output_of_scores(const Graph& model) {
  for (size_t k = 0; k < model.outputs().size(); ++k) {
    const Type& type = model.type(model.outputs()[k]);
    if (type.is_tensor() && dtypes::kFloat.contains(type.dtype())) return k;
  }
  throw UserError("[predict] model: expected an output of floats, one for each class, got none");
}

// Is what the model gives a softmax already?
bool gives_probabilities(const Graph& model, size_t output) {
  const NodeId producer = model.value(model.outputs()[output]).producer();
  return producer.is_valid() && model.node(producer).op().name == "softmax";
}

// The largest of a row of scores, and the softmax there.
Prediction largest(const std::vector<double>& scores, bool are_probabilities) {
  AG_CHECK_USER(
      scores.size() > 1, UserError,
      "[predict] model: expected a number for each class, got {} in all (autograph run shows outputs as they are)",
      scores.size());
  const auto best = std::max_element(scores.begin(), scores.end());
  if (are_probabilities) return {best - scores.begin(), *best};
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - *best);
  return {best - scores.begin(), 1 / sum};
}

std::string class_name(const Dataset& dataset, int64_t label) {
  const auto& names = dataset.class_names();
  const auto at = static_cast<size_t>(label);
  return label >= 0 && at < names.size() ? names[at] : std::to_string(label);
}

// A sample under the shape of the model's input.
Tensor shaped(const Tensor& sample, const Type& type) {
  Dims dims{1};
  for (int64_t axis = 1; axis < type.shape().rank(); ++axis) {
    dims.push_back(type.shape()[axis].is_known() ? type.shape()[axis].value()
                                                 : sample.dims()[static_cast<size_t>(axis)]);
  }
  const int64_t elements = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  AG_CHECK_USER(elements == sample.num_elements(), UserError,
                "[predict] --data: expected samples of {} numbers as the model takes them, got {}", elements,
                sample.num_elements());
  return sample.reshaped(dims);
}

int predict_classes(Session& session, const LearningSource& source, const Graph& model, const Options& options) {
  const Dataset& dataset = *source.task.held_out;
  AG_CHECK_USER(options.first >= 0 && options.first < dataset.size(), UserError,
                "[predict] --first: expected 0 to {}, got {}", dataset.size() - 1, options.first);
  const Type& type = model.type(model.inputs()[0]);
  const size_t output = output_of_scores(model);
  const bool are_probabilities = gives_probabilities(model, output);
  const Executable program = compile(model, learning_compile_options(options.learning));
  Json list = Json::array();
  Table table({{"sample", true}, {"label"}, {"predicted"}, {"probability", true}});
  DataLoader samples = held_out_loader(source, 1);
  samples.seek({.sample = options.first});
  const int64_t end = options.first + std::min(options.count, dataset.size() - options.first);
  for (int64_t index = options.first; index < end; ++index) {
    const std::optional<Batch> sample = samples.next();
    Tensor input;
    Json label;
    std::string label_name;
    for (const auto& [name, tensor] : sample->tensors) {
      if (name == "label" && tensor.dtype() == DType::i64) {
        label = tensor.to_i64().front();
        label_name = class_name(dataset, tensor.to_i64().front());
      } else if (name != "label") {
        input = tensor;
      }
    }
    const Prediction found = largest(program.run({shaped(input, type)})[output].tensor().to_f64(), are_probabilities);
    list.push(Json::object({{"index", index},
                            {"label", label},
                            {"predicted", found.label},
                            {"name", class_name(dataset, found.label)},
                            {"probability", found.probability}}));
    table.add({std::to_string(index), label_name, class_name(dataset, found.label),
               fmt::format("{:.3f}", found.probability)});
  }
  session.print({{"task", source.task.name}, {"predictions", std::move(list)}},
                table.to_string(session.stdout_escapes()));
  return 0;
}

int predict_text(Session& session, const LearningSource& source, const Graph& model, const Options& options) {
  const int64_t length = source.task.training->fields().front().dims.front();
  const Executable program = compile(model, learning_compile_options(options.learning));
  const std::string text = continue_text(program, *source.task.tokenizer, options.prompt, options.count, length,
                                         options.temperature, static_cast<uint64_t>(options.learning.seed));
  session.print({{"task", source.task.name}, {"text", text}}, text + "\n");
  return 0;
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.count >= 0, UserError, "[predict] --count: expected 0 or more, got {}", options.count);
  const std::optional<Checkpoint> found = find_checkpoint(session, options.weights);
  LearningSource source = open_trained(session, options.learning, options.weights.from, found);
  const Graph model = model_of(source, options, found);
  return source.task.tokenizer ? predict_text(session, source, model, options)
                               : predict_classes(session, source, model, options);
}

}  // namespace

Command predict_command() {
  auto options = std::make_shared<Options>();
  options->learning.use = TaskUse::predict;
  std::vector<Option> table = learning_option_table(options->learning);
  for (Option& option : weights_option_table(options->weights)) table.push_back(std::move(option));
  table.push_back(
      {.names = "--first", .value_name = "N", .doc = "The first sample; 0 when not given.", .target = &options->first});
  table.push_back({.names = "--count",
                   .value_name = "N",
                   .doc = "Samples, or tokens of text; 10 when not given.",
                   .target = &options->count});
  table.push_back({.names = "--prompt",
                   .value_name = "TEXT",
                   .doc = "Of tasks on text: what to go on from.",
                   .target = &options->prompt});
  table.push_back({.names = "--temperature",
                   .value_name = "T",
                   .doc = "Of tasks on text: 0 takes the likeliest token each time; 0.8 when not given.",
                   .target = &options->temperature});
  return {
      .name = "predict",
      .doc = "classes of samples, or how a text goes on",
      .details =
          "All samples of a file, or those of the part for tests of a folder that has one. Labels may be missing: of a "
          "table the column, of arrays y, of .jsonl the field \"label\", of images the folders: an image file, or a "
          "folder of them, which are taken in the order of their names.",
      .examples = {{"autograph predict fashion --data DIR --checkpoint run1 --count 5", "Five samples for tests."},
                   {"autograph predict digits.onnx --data unknown.csv", "Pixels alone, without labels."},
                   {"autograph predict animals.onnx --data cat.jpg", "One image."},
                   {"autograph predict text --checkpoint run2 --prompt 'ROMEO:' --count 300", "300 tokens."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
