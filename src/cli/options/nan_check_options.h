// --check-nan and --check-every-node, of every verb that runs or trains.
#pragma once

#include "autograph/compile.h"
#include "cli/options/command.h"

namespace autograph::cli {

/// Where to look for NaN and infinity: the stricter one counts where both are given.
struct NanCheckFlags {
  bool steps = false;
  bool nodes = false;
  NanCheck check() const { return nodes ? NanCheck::nodes : steps ? NanCheck::steps : NanCheck::off; }
};

Option check_nan_option(NanCheckFlags& flags);
Option check_every_node_option(NanCheckFlags& flags);

}  // namespace autograph::cli
