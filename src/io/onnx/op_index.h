// Finds the op that imports an ONNX node.
#pragma once

#include <string>

#include "autograph/op_def.h"

namespace autograph::io {

/// An op and the spelling that matched.
struct OnnxForm {
  const OpDef* op = nullptr;
  const OnnxName* name = nullptr;
};

/// What the table says about "domain::name" at a version of the domain.
struct FormSearch {
  std::optional<OnnxForm> form;  ///< The newest form that is not newer than the version.
  int earliest = 0;              ///< When there is none: the first version that has one; 0 = unknown op.
};

/// Searches the spellings of all ops, and the contrib ops.
FormSearch find_form(const std::string& domain, const std::string& op_type, int opset);

}  // namespace autograph::io
