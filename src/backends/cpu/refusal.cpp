#include "backends/cpu/refusal.h"

#include <fmt/core.h>

namespace autograph {

std::string why_not_f32(const KernelCall& call) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (!type.is_tensor()) continue;
      if (type.dtype() != DType::f32) return fmt::format("dtype {}: only f32", to_string(type.dtype()));
      if (type.shape().num_elements() == 0) return "a tensor without elements";
    }
  }
  return "";
}

std::string why_not_empty(const KernelCall& call) {
  for (const Type& type : call.inputs) {
    if (type.is_tensor() && type.shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

std::string why_not_bytes(const KernelCall& call) { return call.inputs[0].dtype() == DType::string ? "strings" : ""; }

}  // namespace autograph
