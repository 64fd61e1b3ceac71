// Where files are kept that can be made again.
#pragma once

#include <string>

namespace autograph {

/// `$XDG_CACHE_HOME/autograph`, else `~/.cache/autograph`; "" when neither variable is set.
std::string default_cache_folder();

/// Of the database of measurements in the folder of the cache.
inline constexpr const char* kMeasurementsFile = "/measurements.sqlite";

}  // namespace autograph
