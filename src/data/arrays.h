// Samples and labels as arrays of NumPy, under the names that scripts give them.
#pragma once

#include <optional>
#include <string>

#include "data/find_set.h"

namespace autograph {

/// The arrays x and y (or x_train, y_train, x_test and y_test; capital letters, too) of a file .npz, or of files .npy
/// in a folder; a file .npy is x. They are the fields "x" and "label": bytes of x with three axes or more are pixels
/// and become f32 from 0 to 1, f64 becomes f32, integers of y become i64. Other arrays of a file .npz are fields as
/// they are. Nothing where the path is anything else. ValueError for y without x.
std::optional<FoundSet> find_arrays(const std::string& path, const DataLimits& limits);

}  // namespace autograph
