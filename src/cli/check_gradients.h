// `autograph check --gradients`: are the gradients of a model right?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/command.h"
#include "cli/options/run_options.h"
#include "cli/session.h"
#include "cli/sources/model_source.h"

namespace autograph::cli {

/// --gradients, --loss, --wrt, --seconds.
struct GradientFlags {
  bool check = false;
  std::string loss = "sum";
  std::string wanted = "all";
  double seconds = 60;
};

/// These as an option table.
std::vector<Option> gradient_option_table(GradientFlags& flags);

/// Throws UserError where one of the others is given without --gradients.
void refuse_without_gradients(const GradientFlags& flags);

/// Checks the gradients of the model at its inputs, which have been given or drawn, and prints a row for each. Returns
/// the exit code: mismatch where one is wrong. Throws UserError for a saved plan.
int check_gradients(Session& session, LoadedModel& loaded, const RunOptions& run, const GradientFlags& flags);

}  // namespace autograph::cli
