// What a checkpoint takes from a run and gives back.
#include "autograph/checkpoint.h"

#include <locale>
#include <map>
#include <shared_mutex>
#include <sstream>

#include "base/check.h"
#include "base/printable.h"
#include "engine/state_store.h"

namespace autograph {

void Checkpoint::capture(const StateStore& states) {
  StateStore::Impl& store = states.impl();
  const std::vector<std::string> names = store.names();  // states come, but never go
  const std::shared_lock lock(store.mutex());            // all of them between the same two runs
  for (const std::string& name : names) {
    const Tensor& tensor = store.state(name).tensor;
    tensors.emplace_back(name, tensor.is_on_host() ? tensor.clone() : tensor.to_host());
  }
}

void Checkpoint::restore(StateStore& states) const {
  std::map<std::string_view, const Tensor*> known;
  for (const auto& [name, tensor] : tensors) known.emplace(name, &tensor);
  const std::vector<std::string> names = states.names();
  for (const std::string& name : names) {
    const auto found = known.find(name);
    AG_CHECK_USER(found != known.end(), ValueError, "[checkpoint] state '{}': expected by the program, got none",
                  printable(name));
    const Type expected = states.type(name), got = found->second->type();
    AG_CHECK_USER(expected.dtype() == got.dtype(), TypeError, "[checkpoint] state '{}': expected {}, got {}",
                  printable(name), to_string(expected), to_string(got));
    AG_CHECK_USER(expected == got, ShapeError, "[checkpoint] state '{}': expected {}, got {}", printable(name),
                  to_string(expected), to_string(got));
  }
  for (const std::string& name : names) states.set(name, *known.at(name));
}

std::string random_state(const Random& random) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << random;
  return text.str();
}

Random random_from_state(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  Random random;
  stream >> random;
  AG_CHECK_USER(!stream.fail() && (stream >> std::ws).eof(), FormatError,
                "[checkpoint] random state: expected the words of a generator, got '{}'",
                printable(text.substr(0, 40)));
  return random;
}

}  // namespace autograph
