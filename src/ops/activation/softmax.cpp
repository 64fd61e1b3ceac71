// softmax: y = exp(x - max(x)) / sum(exp(x - max(x))) along `axis`. A row of -inf gives NaN, as in ONNX.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/reduction.h"
#include "ops/activation/softmax_rows.h"
#include "ops/defs.h"

namespace autograph {
namespace {

void reference(const OpCall& call) {
  for_each_row(call, []<class T>(const T* in, T* out, const AxisRows& rows) {
    const auto [largest, sum] = exponential_sum(in, rows);
    const int64_t end = rows.extent * rows.stride;
    for (int64_t i = 0; i < end; i += rows.stride) out[i] = T(std::exp(static_cast<double>(in[i]) - largest) / sum);
  });
}

void vjp(VjpContext& c) {
  const Var product = c.out(0) * c.gy(0);
  c.set(0, product - c.out(0) * reduce_sum(product, {c.attributes().integer("axis")}));
}

}  // namespace

Var softmax(Var x, int64_t axis) { return apply(softmax_def(), {x}, {{"axis", axis}}); }

const OpDef& softmax_def() {
  static const OpDef def = [] {
    OpDef softmax = make_along_axis();
    softmax.name = "softmax";
    softmax.doc = "y = exp(x) / sum(exp(x)) along axis.";
    softmax.reference = reference;
    softmax.vjp = vjp;
    softmax.onnx = {{.name = "Softmax", .import = import_flattened, .export_since = 13}};
    return softmax;
  }();
  return def;
}

}  // namespace autograph
