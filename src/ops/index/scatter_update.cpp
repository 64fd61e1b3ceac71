#include "ops/index/scatter_update.h"

#include "base/check.h"
#include "ops/index/scatter_reduction.h"
#include "ops/shape/copy_elements.h"
#include "tensor/element_types.h"

namespace autograph {
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
    dispatch_reduction(reduction, [&]<ScatterReduction R>() {
      const T* in = updates.data<T>();
      T* out = y.mutable_data<T>();
      for (const int64_t start : starts) {
        for (int64_t i = 0; i < length; ++i) out[start + i] = combine<R>(out[start + i], *in++);
      }
    });
  });
}

}  // namespace autograph
