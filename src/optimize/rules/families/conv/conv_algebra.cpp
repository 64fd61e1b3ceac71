// Rules that use that a convolution is linear: in its input, in its weights, and behind another one.
#include <algorithm>

#include "ops/defs.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

constexpr int64_t kMaxIdentityElements = int64_t{1} << 24;  // of a kernel of zeros and ones

int64_t kernel_size(const ConvForm& form) { return element_count(form.kernel); }

// ---- Sums ---------------------------------------------------------------------------------------------------------

std::vector<ValueId> factor_input(RuleBuilder& builder) {
  const std::vector<ConvForm> forms{conv_form(builder.match(), 0), conv_form(builder.match(), 1)};
  const ConvForm window = *common_window(builder.graph(), forms[0], forms[1]);
  const ValueId w = builder.add(
      add_def(), {enlarged_weights(builder, forms[0], window), enlarged_weights(builder, forms[1], window)});
  return {add_conv(builder, window, window.x, w, sum_of_biases(builder, forms), window.group)};
}

// ---- One behind the other -----------------------------------------------------------------------------------------

// The bias of the second, plus the first one's bias on its way through the weights w [M, J, K...].
ValueId bias_through(RuleBuilder& builder, const ConvForm& first, const ConvForm& second) {
  if (!first.b.is_valid()) return second.b;
  const int64_t inner = first.out_channels;
  const int64_t taps = kernel_size(second);
  const DType dtype = builder.type(second.w).dtype();
  const ValueId column = builder.reshape(first.b, {inner, 1});
  const ValueId repeated = builder.add(mul_def(), {column, builder.filled(dtype, {1, taps}, 1)});
  const ValueId w = builder.reshape(second.w, {second.out_channels, inner * taps});
  const ValueId product = builder.add(matmul_def(), {w, builder.reshape(repeated, {inner * taps, 1})});
  const ValueId bias = builder.reshape(product, {second.out_channels});
  return second.b.is_valid() ? builder.add(add_def(), {bias, second.b}) : bias;
}

bool has_no_bias_at_edges(const RuleMatch& match) {
  const ConvForm first = conv_form(match, 0);
  const ConvForm second = conv_form(match, 1);
  const bool is_padded = std::any_of(second.pads.begin(), second.pads.end(), [](int64_t pad) { return pad != 0; });
  return is_pointwise(match.dims("v")) && (!is_padded || !first.b.is_valid());
}

// W'[m, c, k] = sum over j of w[m, j, k] v[j, c].
std::vector<ValueId> compose_pointwise_first(RuleBuilder& builder) {
  const ConvForm first = conv_form(builder.match(), 0);
  const ConvForm second = conv_form(builder.match(), 1);
  const int64_t inner = first.out_channels;
  const int64_t channels = builder.dims(first.w)[1];
  const ValueId v = builder.reshape(first.w, {inner, channels});
  const ValueId w = builder.reshape(second.w, {second.out_channels, inner, kernel_size(second)});
  const ValueId product = builder.add(matmul_def(), {builder.transpose(w, {0, 2, 1}), v});
  Dims dims = builder.dims(second.w);
  dims[1] = channels;
  const ValueId weights = builder.reshape(builder.transpose(product, {0, 2, 1}), dims);
  return {add_conv(builder, second, first.x, weights, bias_through(builder, first, second), 1)};
}

// W'[m, c, k] = sum over j of w[m, j] v[j, c, k].
std::vector<ValueId> compose_pointwise_last(RuleBuilder& builder) {
  const ConvForm first = conv_form(builder.match(), 0);
  const ConvForm second = conv_form(builder.match(), 1);
  const int64_t inner = first.out_channels;
  Dims dims = builder.dims(first.w);
  const ValueId v = builder.reshape(first.w, {inner, element_count(dims) / inner});
  const ValueId w = builder.reshape(second.w, {second.out_channels, inner});
  dims[0] = second.out_channels;
  const ValueId weights = builder.reshape(builder.add(matmul_def(), {w, v}), dims);
  return {add_conv(builder, first, first.x, weights, bias_through(builder, first, second), 1)};
}

// ---- The input added to the result --------------------------------------------------------------------------------

// Index of the tap that lies on the output's own position, flat; -1: none.
int64_t centre_tap(const ConvForm& form) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < form.kernel.size(); ++axis) {
    const int64_t tap = form.pads[axis] / form.dilations[axis];
    if (form.pads[axis] % form.dilations[axis] != 0 || tap >= form.kernel[axis]) return -1;
    flat = flat * form.kernel[axis] + tap;
  }
  return flat;
}

bool can_absorb_input(const RuleMatch& match) {
  return same_dims(match, "s", "x") && centre_tap(conv_form(match, 0)) >= 0 &&
         element_count(match.dims("w")) <= kMaxIdentityElements;
}

template <class T>
void write_identity(Tensor& tensor, int64_t per_group, int64_t taps, int64_t centre) {
  T* elements = tensor.mutable_data<T>();
  for (int64_t m = 0; m < tensor.dims()[0]; ++m) {
    elements[(m * per_group + m % per_group) * taps + centre] = T(1);
  }
}

std::vector<ValueId> absorb_input(RuleBuilder& builder) {
  const ConvForm form = conv_form(builder.match(), 0);
  const Dims dims = builder.dims(form.w);
  const DType dtype = builder.type(form.w).dtype();
  Tensor identity = Tensor::zeros(dtype, dims);
  const int64_t taps = kernel_size(form);
  switch (dtype) {
    case DType::f32: write_identity<float>(identity, dims[1], taps, centre_tap(form)); break;
    case DType::f64: write_identity<double>(identity, dims[1], taps, centre_tap(form)); break;
    case DType::f16: write_identity<Half>(identity, dims[1], taps, centre_tap(form)); break;
    case DType::bf16: write_identity<BFloat16>(identity, dims[1], taps, centre_tap(form)); break;
    default: return {};
  }
  const ValueId w = builder.add(add_def(), {form.w, builder.constant(std::move(identity))});
  return {add_conv(builder, form, form.x, w, form.b, form.group)};
}

// ---- Factors of the input -----------------------------------------------------------------------------------------

// Has `c` one element, or one for each channel of x alone?
bool is_per_channel(const RuleMatch& match) {
  const Dims c = match.dims("c");
  const Dims x = match.dims("x");
  if (!same_dims(match, "x", "a")) return false;
  if (element_count(c) == 1) return true;
  const size_t missing = x.size() - c.size();
  return missing <= 1 && element_count(c) == x[1] && c[1 - missing] == x[1];
}

std::vector<ValueId> scale_weights(RuleBuilder& builder) {
  const ConvForm form = conv_form(builder.match(), 1);
  const Dims dims = builder.dims(form.w);
  const ValueId c = builder.value("c");
  ValueId w;
  if (element_count(builder.dims(c)) == 1) {
    w = builder.add(mul_def(), {form.w, builder.reshape(c, {})});
  } else {
    const Dims grouped{form.group, dims[0] / form.group, dims[1], kernel_size(form)};
    const ValueId factors = builder.reshape(c, {form.group, 1, dims[1], 1});
    w = builder.reshape(builder.add(mul_def(), {builder.reshape(form.w, grouped), factors}), dims);
  }
  return {add_conv(builder, form, builder.value("x"), w, form.b, form.group)};
}

const Rule kRules[] = {
    // conv(x, w) + conv(y, w) -> conv(x + y, w)
    {.name = "conv.factor_weights",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, w);"
               " t = conv[strides=e, pads=p, dilations=d, group=g](y, w); z = add(s, t)",
     .after = "a = add(x, y); z = conv[strides=e, pads=p, dilations=d, group=g](a, w)",
     .kind = shrinks,
     .guard_doc = "x and y have the same shape",
     .guard = x_y_agree},
    // conv(x + y, w) -> conv(x, w) + conv(y, w)
    {.name = "conv.distribute_input",
     .before = "a = add(x, y); z = conv[strides=e, pads=p, dilations=d, group=g](a, w, b...)",
     .after = "s = conv[strides=e, pads=p, dilations=d, group=g](x, w, b...);"
              " t = conv[strides=e, pads=p, dilations=d, group=g](y, w); z = add(s, t)",
     .guard_doc = "x and y have the same shape",
     .guard = x_y_agree,
     // w = inf, x > -y > 0: inf becomes inf - inf
     .finite_only = true},
    // conv(x, V) + conv(x, W) -> conv(x, V + W), the smaller kernel filled up with zeros
    {.name = "conv.factor_input",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, $v, b...);"
               " t = conv[strides=e, pads=q, dilations=d, group=g](x, $w, c...); z = add(s, t)",
     .after = "u = add(pad(v), pad(w)); z = conv[strides=e, dilations=d, group=g](x, u)",
     .kind = shrinks,
     .guard_doc = "s and t have the same shape; pads differ by multiples of the dilation",
     .guard =
         [](const RuleMatch& match) {
           return same_dims(match, "s", "t") &&
                  common_window(match.graph(), conv_form(match, 0), conv_form(match, 1)).has_value();
         },
     .build = factor_input,
     // inf in x, under the zeros that fill up the smaller kernel: 0 inf
     .finite_only = true},
    // conv(conv(x, V), W) -> conv(x, W V) for a V of one tap
    {.name = "conv.compose_pointwise_first",
     .before = "s = conv[strides=1, pads=0, dilations=1, group=1](x, $v, b...);"
               " t = conv[strides=e, pads=p, dilations=d, group=1](s, $w, c...)",
     .after = "u = W V; t = conv[strides=e, pads=p, dilations=d](x, u)",
     .guard_doc = "v has one tap; it has no bias, or there are no pads behind it",
     .guard = has_no_bias_at_edges,
     .build = compose_pointwise_first},
    // conv(conv(x, V), W) -> conv(x, W V) for a W of one tap
    {.name = "conv.compose_pointwise_last",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=1](x, $v, b...);"
               " t = conv[strides=1, pads=0, dilations=1, group=1](s, $w, c...)",
     .after = "u = W V; t = conv[strides=e, pads=p, dilations=d](x, u)",
     .guard_doc = "w has one tap",
     .guard = [](const RuleMatch& match) { return is_pointwise(match.dims("w")); },
     .build = compose_pointwise_last},
    // conv(x, W) + x -> conv(x, W + 1)
    {.name = "conv.absorb_input",
     .before = "s = conv[strides=1, pads=p, dilations=d, group=g](x, $w, b...); z = add(s, x)",
     .after = "u = w + 1 on the tap at the output's position; z = conv[strides=1, pads=p, dilations=d, group=g](x, u)",
     .kind = shrinks,
     .guard_doc = "the result has the shape of x, and a tap lies on the output's own position",
     .guard = can_absorb_input,
     .build = absorb_input},
    // conv(x c, W) -> conv(x, c W)
    {.name = "conv.scale_weights",
     .before = "a = mul(x, $c); y = conv[strides=e, pads=p, dilations=d, group=g](a, $w, b...)",
     .after = "u = mul(w, c); y = conv[strides=e, pads=p, dilations=d, group=g](x, u, b...)",
     .kind = shrinks,
     .guard_doc = "c has one element or one for each channel, and leaves the shape of x",
     .guard = is_per_channel,
     .build = scale_weights},
};

}  // namespace

std::span<const Rule> conv_algebra_rules() { return kRules; }

}  // namespace autograph
