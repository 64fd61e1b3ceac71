// Where a node was made, in the words of the program: scopes, places and lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograph/source_line.h"

namespace autograph {

/// Shared by the nodes that were made at one place.
struct Origin {
  std::string scope;                     ///< ProvenanceScope::current().
  SourceLine place = {};                 ///< Of a SourceScope.
  bool has_place = false;                ///< Is there one?
  std::vector<uintptr_t> return_places;  ///< Inside SourceLines: the calls that led here, innermost first.
};

/// Of what the calling thread makes now; null where there is nothing to tell.
std::shared_ptr<const Origin> current_origin();

/// Where a node that the calling thread makes now would have been made, "train.cpp:27", without folders; "" where
/// nothing is known.
std::string current_place();

/// "add in layer1 at train.cpp:27", with as much of it as is known.
std::string describe_origin(std::string_view op, const Origin* origin);

}  // namespace autograph
