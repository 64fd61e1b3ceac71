#include "ops/index/scatter_update.h"

#include <cmath>

#include "base/check.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// NaN wins in max and min, as everywhere.
template <class C>
C larger(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return a < b ? b : a;
}

template <class C>
C smaller(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b < a ? b : a;
}

// Integers wrap: arithmetic on the unsigned type of the same width (widened, so that promotion cannot overflow).
template <class T>
T combine(const std::string& reduction, T a, T b) {
  using C = ComputeType<T>;
  if (reduction == "max") return static_cast<T>(larger<C>(static_cast<C>(a), static_cast<C>(b)));
  if (reduction == "min") return static_cast<T>(smaller<C>(static_cast<C>(a), static_cast<C>(b)));
  using Ring = std::conditional_t<kIsFloat<T>, C, uint64_t>;
  const auto x = static_cast<Ring>(static_cast<C>(a));
  const auto y = static_cast<Ring>(static_cast<C>(b));
  const Ring result = reduction == "add" ? x + y : x * y;
  return static_cast<T>(result);
}

bool combine(const std::string& reduction, bool a, bool b) {
  return reduction == "add" || reduction == "max" ? (a || b) : (a && b);
}

}  // namespace

AttributeSpec reduction_spec() {
  return {.name = "reduction",
          .type = AttributeType::text,
          .doc = "How an update meets what is there: none replaces it (the last one wins), the others combine.",
          .default_value = "none",
          .allowed = {"none", "add", "mul", "max", "min"}};
}

void check_reduction(const InferContext& context) {
  const std::string& reduction = context.attributes().text("reduction");
  constexpr DTypeSet kAllowed = dtypes::kNumeric | dtypes::kBool;
  if (reduction == "none" || kAllowed.contains(context.dtype(0))) return;
  context.fail<TypeError>("reduction",
                          fmt::format("expected none for dtype {}, got {}", to_string(context.dtype(0)), reduction));
}

void scatter_updates(const OpCall& call, std::span<const int64_t> starts, int64_t length) {
  const TensorView updates = call.input(2);
  const TensorView y = call.output(0);
  const std::string& reduction = call.attributes.text("reduction");
  copy_all(call.input(0), y);
  if (reduction == "none") {
    for (size_t k = 0; k < starts.size(); ++k) {
      copy_run(updates, static_cast<int64_t>(k) * length, y, starts[k], length);
    }
    return;
  }
  dispatch<Concat<NumericTypes, TypeList<bool>>>(y.dtype(), [&]<class T>(TypeTag<T>) {
    const T* in = updates.data<T>();
    T* out = y.mutable_data<T>();
    for (const int64_t start : starts) {
      for (int64_t i = 0; i < length; ++i) out[start + i] = combine(reduction, out[start + i], *in++);
    }
  });
}

}  // namespace autograph
