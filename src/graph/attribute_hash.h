// Hashes of attributes: part of the structural hash of a graph, and of the keys by which costs are remembered.
#pragma once

#include "autograph/attribute.h"
#include "base/hash.h"

namespace autograph {

/// Adds a value: a tensor by content, a nested graph by its structural hash.
void add_attribute(Hasher& hasher, const AttributeValue& value);

/// Adds names and values.
void add_attributes(Hasher& hasher, const Attributes& attributes);

}  // namespace autograph
