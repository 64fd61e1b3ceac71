// softmax: y = exp(x - max(x)) / sum(exp(x - max(x))) along `axis`. A row of -inf gives NaN, as in ONNX.
#include <cmath>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/activation/softmax_rows.h"
#include "tensor/element_types.h"

namespace autograph {

const OpDef& softmax_def();
namespace {

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const AxisRows rows(x, call.attributes.integer("axis"));
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t row = 0; row < rows.count; ++row) {
      const T* in = x.data<T>() + rows.start(row);
      T* out = call.output(0).mutable_data<T>() + rows.start(row);
      const auto at = [&](int64_t i) { return static_cast<double>(in[i * rows.stride]); };
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < rows.extent; ++i) largest = std::fmax(largest, at(i));
      double sum = 0;
      for (int64_t i = 0; i < rows.extent; ++i) sum += std::exp(at(i) - largest);
      for (int64_t i = 0; i < rows.extent; ++i) out[i * rows.stride] = T(std::exp(at(i) - largest) / sum);
    }
  });
}

}  // namespace

Var softmax(Var x, int64_t axis) { return apply(softmax_def(), {x}, {{"axis", axis}}); }

const OpDef& softmax_def() {
  static const OpDef def = [] {
    OpDef softmax = make_along_axis();
    softmax.name = "softmax";
    softmax.doc = "y = exp(x) / sum(exp(x)) along axis.";
    softmax.reference = reference;
    softmax.onnx = {{.name = "Softmax", .import = import_flattened, .export_since = 13}};
    return softmax;
  }();
  return def;
}

}  // namespace autograph
