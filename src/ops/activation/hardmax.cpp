// hardmax: 1 at the first largest element along `axis`, 0 elsewhere. The first NaN counts as the largest.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "ops/activation/softmax_rows.h"
#include "ops/defs.h"

namespace autograph {
namespace {

void reference(const OpCall& call) {
  for_each_row(call, []<class T>(const T* in, T* out, const AxisRows& rows) {
    const auto at = [&](int64_t i) { return static_cast<ComputeType<T>>(in[i * rows.stride]); };
    int64_t best = 0;
    for (int64_t i = 1; i < rows.extent && !std::isnan(at(best)); ++i) {
      if (at(i) > at(best) || std::isnan(at(i))) best = i;
    }
    for (int64_t i = 0; i < rows.extent; ++i) out[i * rows.stride] = T(i == best ? 1.0F : 0.0F);
  });
}

}  // namespace

Var hardmax(Var x, int64_t axis) { return apply(hardmax_def(), {x}, {{"axis", axis}}); }

const OpDef& hardmax_def() {
  static const OpDef def = [] {
    OpDef hardmax = make_along_axis();
    hardmax.name = "hardmax";
    hardmax.doc = "y = 1 at the first largest element along axis, 0 elsewhere.";
    hardmax.reference = reference;
    hardmax.no_grad = "piecewise constant";
    hardmax.onnx = {{.name = "Hardmax", .import = import_flattened, .export_since = 13}};
    return hardmax;
  }();
  return def;
}

}  // namespace autograph
