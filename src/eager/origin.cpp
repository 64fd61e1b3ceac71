#include "eager/origin.h"

#include <fmt/core.h>

#include <string_view>

#include "autograph/builder.h"
#include "eager/modes.h"
#include "eager/source_lines.h"

namespace autograph {

// Nodes that are made one after the other mostly share where: they share what tells it.
std::shared_ptr<const Origin> current_origin() {
  const EagerModes& now = modes();
  const std::string& scope = ProvenanceScope::current();
  if (scope.empty() && !now.place && !now.keeps_lines) return nullptr;
  thread_local std::shared_ptr<const Origin> last;
  if (last && !now.keeps_lines && last->return_places.empty() && last->scope == scope &&
      last->has_place == (now.place != nullptr) &&
      (!now.place || (last->place.line == now.place->line && last->place.file == now.place->file))) {
    return last;
  }
  auto origin = std::make_shared<Origin>();
  origin->scope = scope;
  if (now.place) {
    origin->place = *now.place;
    origin->has_place = true;
  }
  if (now.keeps_lines) origin->return_places = return_places();
  last = origin;
  return origin;
}

std::string describe_origin(std::string_view op, const Origin* origin) {
  std::string text(op);
  if (!origin) return text;
  if (!origin->scope.empty()) text += " in " + origin->scope;
  const std::string line = origin->return_places.empty() ? "" : line_of(origin->return_places);
  if (!line.empty()) {
    text += " at " + line;
  } else if (origin->has_place) {
    text += fmt::format(" at {}:{}", origin->place.file, origin->place.line);
  }
  return text;
}

}  // namespace autograph
