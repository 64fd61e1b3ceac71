// `autograph rules prune FILE -o OUT`: of the rules of a file those that are of use on a corpus of models.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "autograph/error.h"
#include "autograph/prove.h"
#include "autograph/search.h"
#include "autograph/zoo.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "cli/session.h"
#include "cli/sources/model_source.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  std::string file;
  std::string output;
  std::vector<std::string> models;
  std::string device = "sim:v100";
  double seconds = 20;
};

// What a rule does on all models together.
struct Sum {
  size_t matches = 0;
  size_t applied = 0;
  double gain_us = 0;
  std::vector<std::string> models;  // in whose best graphs it is
};

std::vector<std::string> models_of(const Options& options) {
  if (!options.models.empty()) return options.models;
  std::vector<std::string> all;
  for (const ZooEntry& model : zoo_models()) all.push_back("zoo:" + model.name);
  return all;
}

std::map<std::string, Sum> look_through(Session& session, const Options& options,
                                        const std::shared_ptr<const RuleSet>& rules) {
  CompileOptions compile_as;
  compile_as.device = options.device;
  SearchOptions search;
  search.rules = rules;
  search.budget_seconds = options.seconds;
  std::map<std::string, Sum> sums;
  const std::vector<std::string> models = models_of(options);
  for (size_t i = 0; i < models.size(); ++i) {
    session.progress("searching " + models[i], static_cast<double>(i) / static_cast<double>(models.size()));
    ModelOptions how;
    how.model = models[i];
    LoadedModel loaded = load_one_of(session, how);
    refuse_plan(loaded, "rules prune");
    bind_extents(loaded);
    for (const RuleUse& use : rule_use(loaded.model.graph, compile_as, search)) {
      Sum& sum = sums[use.rule];
      sum.matches += use.matches;
      sum.applied += use.applied;
      sum.gain_us += use.gain_us;
      if (use.applied > 0) sum.models.push_back(models[i]);
    }
  }
  session.end_progress();
  return sums;
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.seconds > 0 && options.seconds <= 86400, UserError,
                "[cli] seconds: expected more than 0 and up to 86400, got {}", options.seconds);
  require_writable(options.output);
  const std::shared_ptr<const RuleSet> rules = load_rules(options.file);
  const std::map<std::string, Sum> sums = look_through(session, options, rules);
  std::vector<std::string> useful;
  std::vector<std::string> notes;
  Json list = Json::array();
  Table table({{"rule"}, {"matches", true}, {"applied", true}, {"gain us", true}, {"models"}});
  for (const RuleInfo& rule : rules->list()) {
    const auto at = sums.find(rule.name);
    const Sum sum = at == sums.end() ? Sum() : at->second;
    std::string models;
    for (const std::string& model : sum.models) models += (models.empty() ? "" : ", ") + model;
    list.push(Json::object({{"rule", rule.name},
                            {"matches", sum.matches},
                            {"applied", sum.applied},
                            {"gain_us", sum.gain_us},
                            {"models", sum.models},
                            {"kept", sum.applied > 0}}));
    if (sum.applied == 0) continue;
    useful.push_back(rule.name);
    notes.push_back("of use on " + models);
    table.add({rule.name, fmt::format("{}", sum.matches), fmt::format("{}", sum.applied),
               fmt::format("{:.1f}", sum.gain_us), models});
  }
  write_file(options.output, print_rules(*rules->only(useful),
                                         fmt::format("{} of {} rules, those that are of use on a corpus of models",
                                                     useful.size(), rules->size()),
                                         notes));
  session.print({{"rules", std::move(list)}, {"kept", useful.size()}, {"all", rules->size()}, {"file", options.output}},
                table.to_string(session.stdout_escapes()) +
                    fmt::format("{} of {} rules kept; gains are those of all added rules together, by the cost model\n",
                                useful.size(), rules->size()));
  return 0;
}

}  // namespace

Command prune_rules_command() {
  auto options = std::make_shared<Options>();
  return {
      .name = "prune",
      .doc = "of the rules of a file those that are of use on a corpus",
      .details =
          "Each model is searched as a whole for the least sum of estimated costs, with the built-in rules alone and "
          "with those of the file that match; what stands in the better of both is kept. Nothing is run.",
      .examples = {{"autograph rules prune all.rules -o few.rules", "On the models of the zoo."},
                   {"autograph optimize model.onnx -o model.agplan --rules few.rules", "Search with what was kept."}},
      .options = {{.names = "FILE",
                   .doc = "A rules file, of `rules generate -o`.",
                   .target = &options->file,
                   .kind = ValueKind::file,
                   .required = true},
                  {.names = "-o,--output",
                   .value_name = "OUT",
                   .doc = "File to write.",
                   .target = &options->output,
                   .kind = ValueKind::file,
                   .required = true},
                  {.names = "--models",
                   .value_name = "MODEL",
                   .doc = "A model of the corpus, may be repeated; all of the zoo when none is given.",
                   .target = &options->models},
                  {.names = "--device",
                   .value_name = "D",
                   .doc = "Whose costs count; sim:v100 when not given.",
                   .target = &options->device,
                   .kind = ValueKind::device},
                  {.names = "--seconds",
                   .value_name = "T",
                   .doc = "For each model at most; 20 when not given.",
                   .target = &options->seconds}},
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli
