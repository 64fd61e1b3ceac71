// pad, center_crop_pad and trilu: copies that put something else where there is nothing to copy.
#include <algorithm>
#include <numeric>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "base/join.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// One axis of a padded tensor: position c of the output is c - begin of what is kept, which begins at `cropped` in the
// input.
struct PaddedAxis {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t cropped = 0;
  int64_t kept = 0;
};

std::optional<std::vector<PaddedAxis>> padded_axes(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  const auto pads = known_integers(call, 1);
  if (!pads || (call.has_input(3) && !call.constant(3))) return std::nullopt;
  Dims axes(x.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has_input(3)) axes = *known_integers(call, 3);
  std::vector<PaddedAxis> result(x.size());
  for (size_t a = 0; a < x.size(); ++a) result[a].kept = x[a];
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(front_axis(axes[k], static_cast<int64_t>(x.size())));
    const int64_t begin = (*pads)[k];
    const int64_t end = (*pads)[k + axes.size()];
    result[axis] = {std::max<int64_t>(begin, 0), std::max<int64_t>(end, 0), -std::min<int64_t>(begin, 0),
                    x[axis] + std::min<int64_t>(begin, 0) + std::min<int64_t>(end, 0)};
  }
  return result;
}

// Brings the position in variable `p` of an axis into [0, kept), as the mode says.
void write_source(Writer& writer, const std::string& mode, const std::string& p, int64_t kept) {
  const std::string n = writer.index().literal(kept);
  if (mode == "edge") {
    writer.line("{0} = {0} < 0 ? 0 : {0} >= {1} ? {1} - 1 : {0};", p, n);
  } else if (mode == "wrap") {
    writer.line("{0} = ({0} % {1} + {1}) % {1};", p, n);
  } else if (kept == 1) {
    writer.line("{} = 0;", p);
  } else {
    const std::string period = writer.index().literal(2 * (kept - 1));
    writer.line("{0} = ({0} % {1} + {1}) % {1};", p, period);
    writer.line("{0} = {0} < {1} ? {0} : {2} - {0};", p, n, period);
  }
}

std::string zero_of(std::string_view type) { return type == "u128" ? "zero_u128()" : fmt::format("({})0", type); }

// Sixteen bytes are a vector of two, which the languages make in different ways.
void write_zero(Writer& writer) {
  writer.function("DEVICE u128 zero_u128(void) { u128 z; z.x = 0; z.y = 0; return z; }\n");
}

// Mode "" fills the padding: with input 2 if `has_filling`, else with zeros. The others repeat what is there.
Emitted emit_padded(const KernelCall& call, const Target& target, const std::vector<PaddedAxis>& axes,
                    const std::string& mode, bool has_filling) {
  const Dims x = call.input_dims(0);
  const Dims y = call.output_dims(0);
  const bool fills = mode.empty();
  const std::string_view type = raw_type(call.inputs[0].dtype());
  Writer writer(target);
  writer.index().cover(num_elements(y));
  writer.index().cover(num_elements(x));
  // Positions are folded back by way of twice the extent.
  for (const PaddedAxis& axis : axes) writer.index().cover(fills ? axis.kept : 2 * axis.kept);
  std::vector<Parameter> parameters{input_parameter("x", type, 0)};
  if (has_filling) parameters.push_back(input_parameter("filling", type, 2));
  parameters.push_back(output_parameter("y", type));
  if (type == "u128") write_zero(writer);
  writer.begin_items(parameters, num_elements(y));
  const Dims strides = row_major_strides(x);
  std::vector<std::string> conditions;
  std::string at = "0";
  for (size_t a = 0; a < x.size(); ++a) {
    const PaddedAxis& axis = axes[a];
    const std::string p = fmt::format("p{}", a);
    writer.line("Index {} = {} - {};", p, coordinate(writer.index(), "i", y, a), writer.index().literal(axis.begin));
    const bool is_padded = axis.begin > 0 || axis.end > 0;
    if (is_padded && fills) conditions.push_back(fmt::format("{0} >= 0 && {0} < {1}", p, axis.kept));
    if (is_padded && !fills) write_source(writer, mode, p, axis.kept);
    at += fmt::format(" + ({} + {}) * {}", p, writer.index().literal(axis.cropped), writer.index().literal(strides[a]));
  }
  const std::string filling = has_filling ? "filling[0]" : zero_of(type);
  if (conditions.empty()) {
    writer.line("y[i] = x[{}];", at);
  } else {
    writer.line("if ({}) y[i] = x[{}]; else y[i] = {};", join(conditions, " && "), at, filling);
  }
  writer.end();
  return writer.finish();
}

}  // namespace

Emitted emit_pad(const KernelCall& call, const Target& target) {
  const auto axes = padded_axes(call);
  if (!axes) return refused("pads that are computed");
  const std::string& mode = call.attributes.text("mode");
  const bool fills = mode.starts_with('c');
  return emit_padded(call, target, *axes, fills ? "" : mode, fills && call.has_input(2));
}

Emitted emit_center_crop_pad(const KernelCall& call, const Target& target) {
  const Dims x = call.input_dims(0);
  const Dims y = call.output_dims(0);
  std::vector<PaddedAxis> axes;
  for (size_t a = 0; a < x.size(); ++a) {
    const int64_t more = std::max<int64_t>(y[a] - x[a], 0), less = std::max<int64_t>(x[a] - y[a], 0);
    axes.push_back({more / 2, more - more / 2, less / 2, x[a] - less});
  }
  return emit_padded(call, target, axes, "", false);
}

Emitted emit_trilu(const KernelCall& call, const Target& target) {
  if (call.has_input(1) && !call.constant(1)) return refused("a diagonal that is computed");
  const int64_t k = call.has_input(1) ? call.constant(1)->to_i64()[0] : 0;
  const Dims x = call.input_dims(0);
  const std::string_view type = raw_type(call.inputs[0].dtype());
  Writer writer(target);
  writer.index().cover(num_elements(x));
  if (type == "u128") write_zero(writer);
  writer.begin_items({input_parameter("x", type, 0), output_parameter("y", type)}, num_elements(x));
  writer.line("const i64 right = (i64)({}) - (i64)({});", coordinate(writer.index(), "i", x, x.size() - 1),
              coordinate(writer.index(), "i", x, x.size() - 2));
  // A diagonal may be shifted by any number: beyond the matrix they are all the same.
  const int64_t far = x[x.size() - 1] + x[x.size() - 2];
  const char* sign = call.attributes.flag("upper") ? ">=" : "<=";
  writer.line("if (right {} {}) y[i] = x[i]; else y[i] = {};", sign, std::clamp(k, -far, far), zero_of(type));
  writer.end();
  writer.in_place_inputs = {0};
  return writer.finish();
}

}  // namespace autograph::gpu
