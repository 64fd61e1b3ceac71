// Any bytes as a safetensors file.
#include "autograph/tensor_io.h"
#include "fuzz/target.h"

namespace autograph::fuzz {

void run(std::string_view bytes) { parse_safetensors(bytes); }

}  // namespace autograph::fuzz
