#include "tensor/change_tensors.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace autograph {
namespace {

bool has_any(const Datum& datum, FunctionRef<bool(const Tensor&)> differs) {
  if (datum.is_tensor()) return differs(datum.tensor());
  if (!datum.is_sequence()) return false;
  const std::vector<Datum>& elements = datum.sequence();
  return std::any_of(elements.begin(), elements.end(), [&](const Datum& each) { return has_any(each, differs); });
}

}  // namespace

Datum change_tensors(Datum datum, FunctionRef<bool(const Tensor&)> differs, FunctionRef<Tensor(const Tensor&)> change) {
  if (!has_any(datum, differs)) return datum;
  if (datum.is_tensor()) return change(datum.tensor());
  std::vector<Datum> elements = std::move(datum).take_sequence();
  for (Datum& element : elements) element = change_tensors(std::move(element), differs, change);
  return elements;
}

}  // namespace autograph
