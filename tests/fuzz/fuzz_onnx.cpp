// Any bytes as an ONNX model: a clear error or a graph that verifies, prints, parses back and exports.
#include "autograph/model_io.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "fuzz/target.h"

namespace autograph::fuzz {

void run(std::string_view bytes) {
  constexpr LoadOptions kSmall{.max_nodes = 10'000, .max_tensor_bytes = 1 << 20, .max_total_bytes = 4 << 20};
  const Model model = parse_onnx(bytes, "", kSmall);
  verify(model.graph);
  verify(parse_text(print_text(model.graph)));
  parse_onnx(serialize_onnx(model.graph), "", kSmall);
}

}  // namespace autograph::fuzz
