// Images of equal size in memory, a byte a value.
#pragma once

#include "autograph/data.h"

namespace autograph {

/// "image" f32 [channels, height, width], bytes divided by 255, from `pixels` u8 [samples, channels, height, width],
/// and "label" i64 [] from `labels` i64 [samples], 0 or more.
DatasetPtr make_pixel_dataset(Tensor pixels, Tensor labels, std::vector<std::string> class_names);

/// "0", "1", ... for `count` classes.
std::vector<std::string> numbered_classes(int64_t count);

}  // namespace autograph
