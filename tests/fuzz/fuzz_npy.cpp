// Any bytes as a .npy file.
#include "autograph/tensor_io.h"
#include "fuzz/target.h"

namespace autograph::fuzz {

void run(std::string_view bytes) { parse_npy(bytes); }

}  // namespace autograph::fuzz
