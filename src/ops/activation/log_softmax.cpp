// log_softmax: y = x - max(x) - log(sum(exp(x - max(x)))) along `axis`. A row of -inf gives NaN, as softmax does.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "ops/activation/softmax_rows.h"
#include "ops/defs.h"

namespace autograph {
namespace {

void reference(const OpCall& call) {
  for_each_row(call, []<class T>(const T* in, T* out, const AxisRows& rows) {
    const auto [largest, sum] = exponential_sum(in, rows);
    const int64_t end = rows.extent * rows.stride;
    for (int64_t i = 0; i < end; i += rows.stride) out[i] = T(static_cast<double>(in[i]) - largest - std::log(sum));
  });
}

void vjp(VjpContext& c) { c.set(0, c.gy(0) - exp(c.out(0)) * reduce_sum(c.gy(0), {c.attributes().integer("axis")})); }

}  // namespace

Var log_softmax(Var x, int64_t axis) { return apply(log_softmax_def(), {x}, {{"axis", axis}}); }

const OpDef& log_softmax_def() {
  static const OpDef def = [] {
    OpDef log_softmax = make_along_axis();
    log_softmax.name = "log_softmax";
    log_softmax.doc = "y = log(softmax(x)) along axis.";
    log_softmax.reference = reference;
    log_softmax.vjp = vjp;
    log_softmax.onnx = {{.name = "LogSoftmax", .import = import_flattened, .export_since = 13}};
    return log_softmax;
  }();
  return def;
}

}  // namespace autograph
