#include "eager/origin.h"

#include <fmt/core.h>

#include <string_view>

#include "autograph/builder.h"
#include "eager/modes.h"
#include "eager/source_lines.h"

namespace autograph {
namespace {

// "train.cpp:27 (step)", "" where nothing is known.
std::string place_of(const Origin& origin) {
  std::string line = origin.return_places.empty() ? "" : line_of(origin.return_places);
  if (!line.empty() || !origin.has_place) return line;
  return fmt::format("{}:{}", origin.place.file, origin.place.line);
}

}  // namespace

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

std::string current_place() {
  const std::shared_ptr<const Origin> origin = current_origin();
  const std::string place = origin ? place_of(*origin) : "";
  const std::string line = place.substr(0, place.find(" ("));  // functions may have slashes, too
  return line.substr(line.find_last_of('/') + 1);
}

std::string describe_origin(std::string_view op, const Origin* origin) {
  std::string text(op);
  if (!origin) return text;
  if (!origin->scope.empty()) text += " in " + origin->scope;
  const std::string place = place_of(*origin);
  return place.empty() ? text : text + " at " + place;
}

}  // namespace autograph
