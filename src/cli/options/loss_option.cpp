#include "cli/options/loss_option.h"

namespace autograph::cli {

Option loss_option(std::string& target, const std::string& before, const std::string& after) {
  constexpr const char* kLosses =
      "sum (of all float outputs, each element times a drawn weight), sum1 (weights of 1), mean, an output with one "
      "element; or of the first float output and a target cross_entropy (classes in dim 1, integer labels), "
      "token_cross_entropy (classes in the last dim), soft_cross_entropy (probabilities of classes in dim 1) or mse; ";
  return {.names = "--loss", .value_name = "LOSS", .doc = before + kLosses + after, .target = &target};
}

}  // namespace autograph::cli
