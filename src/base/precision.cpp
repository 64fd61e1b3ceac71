// Names of precisions.
#include "autograph/precision.h"

#include <string>
#include <vector>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"

namespace autograph {

std::string_view to_string(Precision precision) { return precision == Precision::bf16 ? "bf16" : "f32"; }

Precision precision_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    if (to_string(precision) == name) return precision;
    known.emplace_back(to_string(precision));
  }
  throw ValueError(fmt::format("[compile] precision: expected one of {}, got '{}'{}", bracketed(known), name,
                               did_you_mean(std::string(name), known)));
}

}  // namespace autograph
