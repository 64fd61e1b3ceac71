// Any text as a graph: a clear error or a graph that verifies and prints.
#include "autograph/text.h"
#include "autograph/verify.h"
#include "fuzz/target.h"

namespace autograph::fuzz {

void run(std::string_view bytes) {
  const Graph graph = parse_text(bytes);
  verify(graph);
  print_text(graph);
}

}  // namespace autograph::fuzz
