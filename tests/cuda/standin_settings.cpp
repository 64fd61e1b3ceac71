// Before anything looks for a driver: the stand-in is found first, and what it compiles is kept in a folder of its own.
#include <cstdlib>

namespace autograph {
namespace {

[[maybe_unused]] const bool kIsSet =
    ::setenv("AUTOGRAPH_CUDA_PATH", AG_STANDIN_FOLDER, 1) == 0 && ::setenv("XDG_CACHE_HOME", AG_STANDIN_CACHE, 1) == 0;

}  // namespace
}  // namespace autograph
