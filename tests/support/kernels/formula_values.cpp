#include "support/kernels/formula_values.h"

#include <array>
#include <bit>
#include <limits>

#include "autograph/random.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using Limits = std::numeric_limits<float>;
constexpr std::array<float, 16> kSpecial{0.0F,
                                         -0.0F,
                                         1.0F,
                                         -1.0F,
                                         0.5F,
                                         -3.0F,
                                         3.0F,
                                         Limits::infinity(),
                                         -Limits::infinity(),
                                         Limits::quiet_NaN(),
                                         Limits::max(),
                                         Limits::lowest(),
                                         Limits::min(),
                                         Limits::denorm_min(),
                                         -Limits::denorm_min(),
                                         88.9F};

float draw_float(Random& random) {
  if (draw(random, 0, 1) != 0) return static_cast<float>(draw(random, -10'000'000, 10'000'000)) / 1e6F;
  return std::bit_cast<float>(static_cast<uint32_t>(draw(random, 0, std::numeric_limits<uint32_t>::max())));
}

}  // namespace

std::vector<float> FormulaValues::at(int64_t i) const {
  std::vector<float> values;
  for (const auto& operand : operands) values.push_back(operand[static_cast<size_t>(i)]);
  values.insert(values.end(), parameters.begin(), parameters.end());
  return values;
}

FormulaValues draw_formula_values(const Formula& formula, int64_t count) {
  Random random(17);
  FormulaValues values;
  size_t divisor = 1;
  for (size_t k = 0; k < formula.info.operands; ++k, divisor *= kSpecial.size()) {
    values.operands.emplace_back();
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const bool special = i < kSpecial.size() * kSpecial.size() * kSpecial.size();
      values.operands.back().push_back(special ? kSpecial[i / divisor % kSpecial.size()] : draw_float(random));
    }
  }
  constexpr std::array<float, 2> kParameters{0.75F, 1.25F};
  for (size_t k = 0; k < formula.info.num_parameters(); ++k) {
    values.parameters.push_back(kParameters[k]);
    values.attributes.set(std::string(formula.info.parameters[k]), kParameters[k]);
  }
  if (!formula.info.attribute.empty()) {
    values.attributes.set(std::string(formula.info.attribute), std::string(formula.info.text));
  }
  return values;
}

}  // namespace autograph
