// `autograph eval TASK|MODEL.onnx --data PATH`: loss and metrics of the samples that are held out.
#include <fmt/core.h>

#include "base/stopwatch.h"
#include "cli/sources/learning_source.h"
#include "cli/sources/training_settings.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  LearningOptions learning;
  WeightsOptions weights;
};

int run(Session& session, const Options& options) {
  const std::optional<Checkpoint> found = find_checkpoint(session, options.weights);
  LearningSource source = open_trained(session, options.learning, options.weights.from, found);
  const Graph evaluation = evaluation_of(source);
  StateStore states;
  states.add(evaluation);
  const int64_t step = load_weights(source, options.weights, found, states);
  DataLoader held_out = held_out_loader(source);
  session.progress("evaluating", -1);
  const Stopwatch watch;
  const Metrics metrics = evaluate(evaluation, states, held_out, learning_compile_options(options.learning));
  const double seconds = watch.ms() / 1000;
  session.end_progress();

  const int64_t samples = source.task.held_out->size(), all = samples + source.task.training->size();
  Json::Object document{{"task", source.task.name},
                        {"samples", samples},
                        {"held_out_of", all},
                        {"step", count_json(step)},
                        {"seconds", seconds}};
  std::vector<std::pair<std::string, std::string>> pairs{{"samples", fmt::format("{}, held out of {}", samples, all)}};
  for (const auto& [name, value] : metrics) {
    document.emplace_back(name, value);
    pairs.emplace_back(name, metric_text(value));
  }
  session.print(std::move(document), pairs_to_string(pairs));
  return 0;
}

}  // namespace

Command eval_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = learning_option_table(options->learning);
  for (Option& option : weights_option_table(options->weights)) table.push_back(std::move(option));
  return {
      .name = "eval",
      .doc = "loss and accuracy of what was held out",
      .details =
          "The samples that train does not learn from, with the weights of a run, of a file, or of the model. Of "
          "a set in one piece --seed draws them: give the one that train had.",
      .examples = {{"autograph eval fashion --data DIR --checkpoint run1", "The best checkpoint of a run."},
                   {"autograph eval model.onnx --data images/", "A model as it is."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
