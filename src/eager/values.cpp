// Making eager values, and looking at them.
#include <limits>
#include <ostream>

#include "autograph/eager.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "eager/modes.h"
#include "eager/tape/tape.h"

namespace autograph {

Var eager(Tensor elements) {
  AG_CHECK_USER(elements.is_present(), ValueError, "[eager] elements: expected a tensor, got none");
  auto type = std::make_shared<const Type>(elements.type());
  return Var(std::make_shared<Eager>(std::move(type), Datum(elements.to_host())));
}

Var eager(Datum datum, Type type) {
  if (datum.is_tensor()) return eager(datum.tensor());
  return Var(std::make_shared<Eager>(std::make_shared<const Type>(std::move(type)), std::move(datum)));
}

Var variable(Tensor elements) {
  AG_CHECK_USER(elements.is_present() && dtypes::kFloat.contains(elements.dtype()), TypeError,
                "[eager] variable: expected a float tensor, got {}",
                elements.is_present() ? to_string(elements.type()) : "none");
  Var value = eager(std::move(elements));
  static_cast<Eager&>(value.eager()).make_variable();
  return value;
}

bool requires_grad(const Var& value) {
  return value.is_eager() && static_cast<const Eager&>(value.eager()).requires_grad();
}

bool is_capturing() { return modes().capture != nullptr; }

const Datum& datum(const Var& value, SourceLine place) {
  AG_CHECK_USER(value.is_valid(), ValueError, "[elements] value: expected one, got none ({}:{})", place.file,
                place.line);
  AG_CHECK_USER(value.is_eager() && !modes().capture, ValueError,
                "[elements] value: expected one whose elements may be looked at, got {} {} ({}:{}; decide with cond() "
                "or while_loop(), or give the value back and look at it outside)",
                to_string(value.type()),
                modes().capture ? "in a function that is captured" : "of a graph, which has none before it runs",
                place.file, place.line);
  return static_cast<const Eager&>(value.eager()).datum();
}

const Tensor& elements(const Var& value, SourceLine place) { return datum(value, place).tensor(); }

double item(const Var& value, SourceLine place) {
  const Tensor& tensor = elements(value, place);
  AG_CHECK_USER(tensor.num_elements() == 1, ShapeError, "[item] value: expected one element, got {}",
                to_string(tensor.type()));
  return tensor.to_f64().front();
}

bool is_true(const Var& value, SourceLine place) {
  AG_CHECK_USER(value.is_valid() && value.type().is_tensor() && value.dtype() == DType::boolean, TypeError,
                "[is_true] value: expected bool, got {}", value.is_valid() ? to_string(value.type()) : "nothing");
  const Tensor& tensor = elements(value, place);
  AG_CHECK_USER(tensor.num_elements() == 1, ShapeError, "[is_true] value: expected one element, got {}",
                to_string(tensor.type()));
  return *tensor.data<bool>();
}

std::string to_string(const Var& value) {
  if (!value.is_valid()) return "none";
  if (!value.is_eager()) {
    const std::string& name = value.graph().value(value.id()).name();
    return to_string(value.type()) + (name.empty() ? "" : " \"" + name + "\"");
  }
  const auto& here = static_cast<const Eager&>(value.eager());
  if (here.datum().is_tensor()) return to_string(here.tensor());
  if (!here.datum().is_sequence()) return to_string(value.type()) + " nothing";
  return fmt::format("{} of {}", to_string(value.type()), here.datum().sequence().size());
}

std::ostream& operator<<(std::ostream& stream, const Var& value) { return stream << to_string(value); }

Index Index::all() { return {0, std::numeric_limits<int64_t>::max()}; }

Var at(const Var& x, const std::vector<Index>& places) {
  AG_CHECK_USER(x.is_valid() && x.type().is_tensor() && x.shape().has_rank() && x.rank() >= std::ssize(places),
                ShapeError, "[at] value: expected a tensor of rank {} or more, got {}", places.size(),
                x.is_valid() ? to_string(x.type()) : "nothing");
  std::vector<int64_t> starts, stops, axes, steps, dropped;
  for (int64_t axis = 0; axis < std::ssize(places); ++axis) {
    Index place = places[static_cast<size_t>(axis)];
    if (place.is_position) {
      const Dim& extent = x.shape()[axis];
      AG_CHECK_USER(!extent.is_known() || (place.start >= -extent.value() && place.start < extent.value()), ValueError,
                    "[at] position on axis {}: expected {}..{} for {}, got {}", axis, -extent.value(),
                    extent.value() - 1, to_string(x.type()), place.start);
      dropped.push_back(axis);
      place.stop = place.start == -1 ? std::numeric_limits<int64_t>::max() : place.start + 1;
    }
    starts.push_back(place.start);
    stops.push_back(place.stop);
    axes.push_back(axis);
    steps.push_back(place.step);
  }
  const Var part = places.empty() ? x : slice(x, starts, stops, axes, steps);
  return dropped.empty() ? part : squeeze(part, dropped);
}

}  // namespace autograph
