#include "cli/options/nan_check_options.h"

namespace autograph::cli {

Option check_nan_option(NanCheckFlags& flags) {
  return {.names = "--check-nan",
          .doc =
              "Stop at the first NaN, or infinity out of finite inputs, that one step hands to the next, and name the "
              "node that makes it.",
          .target = &flags.steps,
          .env = "AUTOGRAPH_CHECK_NAN"};
}

Option check_every_node_option(NanCheckFlags& flags) {
  return {.names = "--check-every-node",
          .doc =
              "As --check-nan, behind each node by itself, none joined or left out: slower, and finds what later "
              "nodes turn into numbers.",
          .target = &flags.nodes,
          .env = "AUTOGRAPH_CHECK_EVERY_NODE"};
}

}  // namespace autograph::cli
