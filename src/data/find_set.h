// What lies at a path.
#pragma once

#include <optional>
#include <string>

#include "autograph/data.h"

namespace autograph {

/// The whole of a set that comes in one piece, or the parts of one that comes in two, where they are there.
struct FoundSet {
  DatasetPtr whole = {};
  DatasetPtr train = {};
  DatasetPtr test = {};
  const DatasetPtr& part(Split split) const { return split == Split::train ? train : test; }
};

/// The set at `path`. Files are read and folders listed once, of parts `only` the one that is asked for. ValueError,
/// with what was looked for, where nothing is found.
FoundSet find_set(const std::string& path, const DataLimits& limits, const ImageSize& size,
                  std::optional<Split> only = {});

/// Is there an image at `path`, or a folder of images without folders in it?
bool holds_images_alone(const std::string& path);

}  // namespace autograph
