// Rules about pools: the mean is linear and a convolution, the maximum lets functions pass that keep the order.
#include <algorithm>
#include <cmath>

#include "ops/defs.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// Do all windows have the same divisor?
bool is_plain_mean(const RuleMatch& match) { return match.integer("i") != 0 || all_are(match.integers("p"), 0); }

std::vector<ValueId> mean_as_conv(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  Dims dims{match.dims("x")[1], 1};
  const std::vector<int64_t>& kernel = match.integers("k");
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  const double weight = 1.0 / static_cast<double>(element_count(kernel));
  const ValueId w = builder.filled(builder.type(match.value("x")).dtype(), dims, weight);
  return {builder.add(conv_def(), {match.value("x"), w},
                      {{"strides", match.integers("e")},
                       {"pads", match.integers("p")},
                       {"dilations", match.integers("d")},
                       {"group", dims[0]}})};
}

// A kernel on each channel with equal weights that add up to one?
bool is_mean(const RuleMatch& match) {
  const Dims dims = match.dims("w");
  const Value& value = match.graph().value(match.value("w"));
  if (!value.is_constant() || match.integer("g") != dims[0] || match.dims("x")[1] != dims[0]) return false;
  const int64_t taps = element_count(dims) / dims[0];
  const double weight = 1.0 / static_cast<double>(taps);
  const std::vector<double> elements = value.constant().to_f64();
  return std::all_of(elements.begin(), elements.end(),
                     [&](double element) { return std::fabs(element - weight) <= 1e-6 * weight; });
}

std::vector<ValueId> conv_as_mean(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  return {builder.add(average_pool_def(), {match.value("x")},
                      {{"kernel_shape", conv_form(match.graph(), match.nodes()[0]).kernel},
                       {"strides", match.integers("e")},
                       {"pads", match.integers("p")},
                       {"dilations", match.integers("d")},
                       {"count_include_pad", int64_t{1}}})};
}

// Has every window a tap inside the input? Pads are less than what a window covers.
bool windows_are_never_empty(const RuleMatch& match) {
  const auto& pads = match.integers("p");
  const auto& kernel = match.integers("k");
  const auto& dilations = match.integers("d");
  const Dims x = match.dims("x");
  for (size_t axis = 0; axis < kernel.size(); ++axis) {
    // With gaps between taps a window may step over a short input.
    if (dilations[axis] > 1 && x[axis + 2] < dilations[axis]) return false;
    const int64_t reach = (kernel[axis] - 1) * dilations[axis];
    if (pads[axis] > reach || pads[axis + kernel.size()] > reach) return false;
  }
  return true;
}

bool is_single_factor(const RuleMatch& match) {
  return element_count(match.dims("c")) == 1 && match.dims("c").size() <= match.dims("x").size();
}

// ---- Means and convolutions of one tap ----------------------------------------------------------------------------

// One tap, and a bias passes the mean as it is: no window mixes it with padding.
bool can_exchange(const RuleMatch& match) {
  if (!is_pointwise(match.dims("w"))) return false;
  return match.list("b").empty() ||
         (windows_are_never_empty(match) && (match.integer("i") == 0 || all_are(match.integers("p"), 0)));
}

const Rule kRules[] = {
    // conv(mean(x), W) -> mean(conv(x, W)) for a W of one tap
    {.name = "pool.mean_of_pointwise",
     .before = "q = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
               " y = conv[strides=1, pads=0, dilations=1, group=g](q, $w, b...)",
     .after = "c = conv[group=g](x, w, b...);"
              " y = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](c)",
     .guard_doc = "w has one tap; without bias, or padding does not count and no window lies in it alone",
     .guard = can_exchange},
    // mean(conv(x, W)) -> conv(mean(x), W) for a W of one tap
    {.name = "pool.pointwise_of_mean",
     .before = "c = conv[strides=1, pads=0, dilations=1, group=g](x, $w, b...);"
               " y = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](c)",
     .after = "q = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
              " y = conv[group=g](q, w, b...)",
     .guard_doc = "w has one tap; without bias, or padding does not count and no window lies in it alone",
     .guard = can_exchange},
    // mean(x) + mean(y) -> mean(x + y)
    {.name = "pool.sum_of_means",
     .before = "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
               " t = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](y);"
               " z = add(s, t)",
     .after = "a = add(x, y);"
              " z = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](a)",
     .kind = shrinks,
     .guard_doc = "x and y have the same shape",
     .guard = x_y_agree},
    // mean(x) + mean(y) -> mean(x + y), over all positions
    {.name = "pool.sum_of_global_means",
     .before = "s = global_average_pool(x); t = global_average_pool(y); z = add(s, t)",
     .after = "a = add(x, y); z = global_average_pool(a)",
     .guard_doc = "x and y have the same shape",
     .guard = x_y_agree},
    // mean(x c) -> mean(x) c
    {.name = "pool.scale_mean",
     .before = "a = mul(x, $c);"
               " y = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](a)",
     .after = "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
              " y = mul(s, $c)",
     .kind = canonicalizes,
     .guard_doc = "c has one element and no more axes than x",
     .guard = is_single_factor},
    // mean(x) c -> mean(x c)
    {.name = "pool.mean_of_scaled",
     .before = "s = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](x);"
               " y = mul(s, $c)",
     .after = "a = mul(x, $c);"
              " y = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m, count_include_pad=i](a)",
     .kind = canonicalizes,
     .guard_doc = "c has one element and no more axes than x",
     .guard = is_single_factor},
    // mean(x) -> conv(x, 1 / taps), channel by channel
    {.name = "pool.mean_as_conv",
     .before = "y = average_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=0, count_include_pad=i](x)",
     .after = "y = conv[strides=e, pads=p, dilations=d, group=channels](x, 1 / taps)",
     .guard_doc = "padding counts in the divisor, or there is none",
     .guard = is_plain_mean,
     .build = mean_as_conv},
    // conv(x, 1 / taps), channel by channel -> mean(x)
    {.name = "pool.conv_as_mean",
     .before = "y = conv[strides=e, pads=p, dilations=d, group=g](x, $w)",
     .after = "y = average_pool[strides=e, pads=p, dilations=d, count_include_pad=1](x)",
     .guard_doc = "w is a constant with one kernel for each channel, all elements 1 / taps",
     .guard = is_mean,
     .build = conv_as_mean},
    // max_pool(relu(x)) -> relu(max_pool(x))
    {.name = "pool.relu_behind_max",
     .before = "r = relu(x); y = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](r)",
     .after = "q = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x); y = relu(q)",
     .kind = canonicalizes,
     .guard_doc = "no window lies in the padding alone",
     .guard = windows_are_never_empty},
    // relu(max_pool(x)) -> max_pool(relu(x))
    {.name = "pool.relu_before_max",
     .before = "q = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](x); y = relu(q)",
     .after = "r = relu(x); y = max_pool[kernel_shape=k, strides=e, pads=p, dilations=d, ceil_mode=m](r)",
     .kind = canonicalizes,
     .guard_doc = "no window lies in the padding alone",
     .guard = windows_are_never_empty},
};

}  // namespace

std::span<const Rule> pool_rules() { return kRules; }

}  // namespace autograph
