// Where files are kept that can be made again.
#pragma once

#include <string>

namespace autograph {

/// `$XDG_CACHE_HOME/autograph`, else `~/.cache/autograph`; "" when neither variable is set.
std::string default_cache_folder();

}  // namespace autograph
