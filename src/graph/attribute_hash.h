// Hashes of attributes: part of the structural hash of a graph, and of the keys by which costs are remembered.
#pragma once

#include "autograph/attribute.h"
#include "base/hash.h"

namespace autograph {

/// Adds names and values: tensors by content, nested graphs by their structural hash.
void add_attributes(Hasher& hasher, const Attributes& attributes);

}  // namespace autograph
