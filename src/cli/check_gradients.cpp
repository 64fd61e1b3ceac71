#include "cli/check_gradients.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "autograph/gradient_check.h"
#include "base/check.h"
#include "cli/execute.h"
#include "cli/options/loss_option.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

Json row_json(const GradientDifference& value) {
  Json agrees;
  if (value.told) agrees = value.agrees;
  return Json::object({{"name", value.name},
                       {"norm", value.norm},
                       {"derivative", value.derivative},
                       {"difference", value.difference},
                       {"error", value.error},
                       {"moved_together", static_cast<int64_t>(value.group)},
                       {"agrees", std::move(agrees)},
                       {"told_apart", value.told},
                       {"at_kink", value.at_kink},
                       {"kernels", Json::object({{"ok", value.compiled.ok},
                                                 {"max_abs", value.compiled.max_abs},
                                                 {"max_rel", value.compiled.max_rel},
                                                 {"wrong", value.compiled.num_bad},
                                                 {"why", value.compiled.why}})}});
}

std::string verdict(const GradientDifference& value) {
  if (!value.agrees && value.told)
    return fmt::format("rule: derivative {:.6g}, difference {:.6g}", value.derivative, value.difference);
  if (!value.compiled.ok) return "kernels: " + value.compiled.why;
  if (value.is_wrong()) return fmt::format("one of {} that moved together, not told apart in the time", value.group);
  if (!value.told) return "at a kink, not told apart in the time";
  return value.at_kink ? "at a kink, right beside it" : "";
}

std::string conclusion(const GradientCheck& check) {
  if (!check.is_right()) return "GRADIENTS DIFFER";
  const auto untold = std::count_if(check.values.begin(), check.values.end(),
                                    [](const GradientDifference& value) { return !value.told; });
  if (untold == 0) return "gradients agree";
  return fmt::format("no gradient is shown to differ, {} of {} were not told apart in the time (--seconds gives more)",
                     untold, check.values.size());
}

void print(Session& session, const LoadedModel& loaded, const GradientFlags& flags, const GradientCheck& check) {
  Json rows = Json::array();
  Table table({{"gradient of"}, {"length", true}, {"rule error", true}, {"kernel error", true}, {"what is wrong"}});
  for (const GradientDifference& value : check.values) {
    rows.push(row_json(value));
    table.add({value.name, fmt::format("{:.4g}", value.norm), fmt::format("{:.2g}", value.error),
               fmt::format("{:.2g}", value.compiled.max_rel), verdict(value)});
  }
  session.print({{"ok", check.is_right()},
                 {"model", loaded.name},
                 {"loss_kind", flags.loss},
                 {"loss", check.loss},
                 {"compared_with", check.compared_with},
                 {"gradients", std::move(rows)}},
                fmt::format("{}\n{}\n", table.to_string(session.stdout_escapes()), conclusion(check)));
}

}  // namespace

std::vector<Option> gradient_option_table(GradientFlags& flags) {
  return {{.names = "--gradients",
           .doc = "Check gradients instead of outputs: rules against differences of the loss in f64, kernels against "
                  "the reference.",
           .target = &flags.check},
          loss_option(flags.loss, "With --gradients: ",
                      "sum when not given. The target is drawn from --seed: labels below the number of classes, which "
                      "do not move."),
          {.names = "--wrt",
           .value_name = "PATTERN",
           .doc = "With --gradients: names of inputs and weights, with * and ?; all when not given.",
           .target = &flags.wanted},
          {.names = "--seconds",
           .value_name = "T",
           .doc = "With --gradients: time for gradients in f64 and differences; where it is short, values are moved in "
                  "groups. Comparing kernels comes on top. 60 when not given.",
           .target = &flags.seconds}};
}

void refuse_without_gradients(const GradientFlags& flags) {
  const GradientFlags usual;
  const char* given = flags.loss != usual.loss         ? "loss"
                      : flags.wanted != usual.wanted   ? "wrt"
                      : flags.seconds != usual.seconds ? "seconds"
                                                       : nullptr;
  AG_CHECK_USER(flags.check || !given, UserError,
                "[cli] --{}: expected --gradients beside it, got none (outputs have "
                "no use for it)",
                given);
}

int check_gradients(Session& session, LoadedModel& loaded, const RunOptions& run, const GradientFlags& flags) {
  AG_CHECK_USER(flags.seconds >= 0 && flags.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                flags.seconds);
  refuse_plan(loaded, "check --gradients");
  bind_extents(loaded);
  if (draws_random_numbers(loaded.model.graph)) {
    session.warn("the model draws random numbers: without a seed its loss is another in every run");
  }
  GradientCheckOptions how;
  how.gradients = {.loss = flags.loss, .wanted = flags.wanted, .seed = loaded.seeds.seed};
  how.seconds = flags.seconds;
  how.on_progress = [&session](size_t done, size_t all) {
    session.progress(fmt::format("differences {} of {}", done + 1, all),
                     static_cast<double>(done) / static_cast<double>(all));
  };
  session.progress("gradients by the reference", -1);
  const GradientCheck check = autograph::check_gradients(loaded.model.graph, loaded.inputs, compile_options(run), how);
  session.end_progress();
  print(session, loaded, flags, check);
  return static_cast<int>(check.is_right() ? ExitCode::done : ExitCode::mismatch);
}

}  // namespace autograph::cli
