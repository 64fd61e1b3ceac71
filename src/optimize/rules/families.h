// The families of rules; each is one file of this folder.
#pragma once

#include <span>

#include "optimize/rules/rule.h"

namespace autograph {

std::span<const Rule> arithmetic_rules();

}  // namespace autograph
