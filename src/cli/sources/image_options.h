// How images of a set become samples: their size, their numbers, and how they are changed while training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograph/data.h"
#include "autograph/graph.h"
#include "cli/options/command.h"

namespace autograph::cli {

/// --size, --normalize; of train --crop, --flip, --mixup, too.
struct ImageOptions {
  std::string size;       ///< "": that of the model's input, else 224.
  std::string normalize;  ///< "": not at all.
  int64_t crop = -1;      ///< These three below 0: the task's own.
  double flip = -1;
  double mixup = -1;
};

/// --size and --normalize as an option table.
std::vector<Option> image_option_table(ImageOptions& options);
/// --crop, --flip and --mixup.
std::vector<Option> augment_option_table(ImageOptions& options);

/// Of samples from folders, for the one input of `model`. Throws UserError where --size is no size.
ImageSize image_size(const ImageOptions& options, const Graph& model);
/// None where there is no --normalize; throws UserError where it is not MEAN:DEVIATION.
std::optional<Normalize> normalization(const ImageOptions& options);
/// `own` with what the options say instead, in the order in which they are applied.
std::vector<Transform> transforms_of(std::vector<Transform> own, const ImageOptions& options);

/// "224x320", and what --normalize takes.
std::string size_text(const ImageSize& size);
std::string normalize_text(const Normalize& normalize);

}  // namespace autograph::cli
