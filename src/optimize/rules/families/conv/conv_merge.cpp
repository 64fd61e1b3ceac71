// Rules that make one convolution of several: of the same input, of inputs that are put together, of the same weights;
// and of fewer groups.
#include <algorithm>

#include "ops/defs.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// ---- The same input -----------------------------------------------------------------------------------------------

bool is_alike(const ConvForm& model, const std::optional<ConvForm>& form) {
  return form && form->same_window(model) && form->group == model.group;
}

// All convolutions of the input of `first` with its window and groups, by id.
std::vector<ConvForm> convs_like(const Graph& graph, NodeId first) {
  const ConvForm model = conv_form(graph, first);
  std::vector<ConvForm> forms;
  for (const NodeId node : readers_of(graph, model.x, conv_def(), 0)) {
    if (const auto form = weighted_conv(graph, node); is_alike(model, form)) forms.push_back(*form);
  }
  return forms;
}

// Weights are no one's results, so that all of them are independent.
bool leads_convs(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const NodeId a = match.nodes()[0];
  const NodeId b = match.nodes()[1];
  const auto model = weighted_conv(graph, a);
  const auto would_be_taken = [&](NodeId node) { return is_alike(*model, weighted_conv(graph, node)); };
  return model && would_be_taken(b) && are_first_two(graph, model->x, 0, a, b, would_be_taken);
}

std::vector<ValueId> merge_same_input(RuleBuilder& builder) {
  const std::vector<ConvForm> forms = convs_like(builder.graph(), builder.match().nodes()[0]);
  include(builder, forms);
  std::vector<ValueId> results;
  for (const ConvForm& form : forms) results.push_back(builder.graph().node(form.node).output(0));
  return builder.hand_out(results, merge_outputs(builder, forms, weights_of(forms), forms.front()));
}

bool can_enlarge(const RuleMatch& match) {
  if (match.nodes()[1] < match.nodes()[0]) return false;
  const ConvForm a = conv_form(match, 0);
  const ConvForm b = conv_form(match, 1);
  return !a.same_window(b) && common_window(match.graph(), a, b).has_value();
}

std::vector<ValueId> merge_enlarged(RuleBuilder& builder) {
  const std::vector<ConvForm> forms{conv_form(builder.match(), 0), conv_form(builder.match(), 1)};
  const ConvForm window = *common_window(builder.graph(), forms[0], forms[1]);
  std::vector<ValueId> weights;
  for (const ConvForm& form : forms) weights.push_back(enlarged_weights(builder, form, window));
  return merge_outputs(builder, forms, weights, window);
}

// ---- Different inputs ---------------------------------------------------------------------------------------------

// The convolutions in front of a concat, when nothing else reads them and all fit the first.
std::vector<ConvForm> convs_in_front(const RuleMatch& match, FunctionRef<bool(const ConvForm&, const ConvForm&)> fit) {
  const Graph& graph = match.graph();
  std::vector<ConvForm> forms;
  for (const ValueId value : match.list("xs")) {
    const NodeId node = producer_of_op(graph, value, conv_def());
    const auto form = node.is_valid() && has_one_reader(graph, value) ? weighted_conv(graph, node) : std::nullopt;
    if (!form || (!forms.empty() && !fit(forms.front(), *form))) return {};
    forms.push_back(*form);
  }
  return forms.size() > 1 ? forms : std::vector<ConvForm>{};
}

// Those that can be the groups of one.
std::vector<ConvForm> convs_joined(const RuleMatch& match) {
  return convs_in_front(match, [&](const ConvForm& a, const ConvForm& b) { return are_groups(match.graph(), a, b); });
}

std::vector<ValueId> make_groups(RuleBuilder& builder) {
  const std::vector<ConvForm> forms = convs_joined(builder.match());
  include(builder, forms);
  std::vector<ValueId> inputs;
  for (const ConvForm& form : forms) inputs.push_back(form.x);
  return {grouped_conv(builder, forms, builder.concat(inputs, 1))};
}

bool can_join_sum(const RuleMatch& match) {
  const ConvForm a = conv_form(match, 0);
  const ConvForm b = conv_form(match, 1);
  return match.dims("s") == match.dims("t") && same_dims_but(match.dims("x"), match.dims("y"), 1) &&
         common_window(match.graph(), a, b).has_value();
}

std::vector<ValueId> join_sum(RuleBuilder& builder) {
  const std::vector<ConvForm> forms{conv_form(builder.match(), 0), conv_form(builder.match(), 1)};
  const ConvForm window = *common_window(builder.graph(), forms[0], forms[1]);
  std::vector<ValueId> weights;
  for (const ConvForm& form : forms) weights.push_back(enlarged_weights(builder, form, window));
  const ValueId x = builder.concat({forms[0].x, forms[1].x}, 1);
  return {add_conv(builder, window, x, builder.concat(weights, 1), sum_of_biases(builder, forms), 1)};
}

// ---- The same weights ---------------------------------------------------------------------------------------------

std::vector<ValueId> merge_batch(RuleBuilder& builder) {
  const ConvForm form = conv_form(builder.match(), 0);
  const ValueId x = builder.concat({builder.value("x"), builder.value("y")}, 0);
  const ValueId joined = add_conv(builder, form, x, form.w, form.b, form.group);
  return builder.split(joined, {builder.match().dims("x")[0], builder.match().dims("y")[0]}, 0);
}

// ---- Grouped convolutions of the same input, joined for another one ------------------------------------------------

std::vector<ConvForm> convs_of_one_input(const RuleMatch& match) {
  return convs_in_front(match, [](const ConvForm& a, const ConvForm& b) { return a.x == b.x && is_alike(a, b); });
}

// The input channels of w in the order in which interleaved convolutions of `forms` make them: group by group.
ValueId interleaved_inputs(RuleBuilder& builder, ValueId w, const std::vector<ConvForm>& forms) {
  const Dims dims = builder.dims(w);
  const int64_t taps = element_count(dims) / (dims[0] * dims[1]);
  std::vector<int64_t> sizes;
  for (const ConvForm& form : forms) sizes.push_back(form.out_channels);
  std::vector<ValueId> pieces = builder.split(w, sizes, 1);
  for (size_t k = 0; k < pieces.size(); ++k) {
    pieces[k] = builder.reshape(pieces[k], {dims[0], forms[k].group, sizes[k] / forms[k].group, taps});
  }
  return builder.reshape(builder.concat(pieces, 2), dims);
}

std::vector<ValueId> join_for_reader(RuleBuilder& builder) {
  const std::vector<ConvForm> forms = convs_of_one_input(builder.match());
  const ConvForm reader = conv_form(builder.match(), 1);
  include(builder, forms);
  const ValueId joined = merged_conv(builder, forms, weights_of(forms), forms.front());
  return {add_conv(builder, reader, joined, interleaved_inputs(builder, reader.w, forms), reader.b, 1)};
}

// Channels of one convolution in the order of the concat: those of several groups would have to be sorted again.
std::vector<ConvForm> filters_joined(const RuleMatch& match) {
  std::vector<ConvForm> forms = convs_of_one_input(match);
  if (!forms.empty() && forms.front().group != 1) forms.clear();
  return forms;
}

std::vector<ValueId> join_filters(RuleBuilder& builder) {
  const std::vector<ConvForm> forms = filters_joined(builder.match());
  include(builder, forms);
  return {merged_conv(builder, forms, weights_of(forms), forms.front())};
}

// ---- Fewer groups -------------------------------------------------------------------------------------------------

// Two groups become one: the weights of the first are followed by zeros, those of the second come behind zeros.
std::vector<ValueId> halve_groups(RuleBuilder& builder) {
  const ConvForm form = conv_form(builder.match(), 0);
  const Dims dims = builder.dims(form.w);
  Dims grouped = dims;
  grouped[0] /= form.group;
  grouped.insert(grouped.begin(), {form.group / 2, 2});
  const auto halves = builder.split(builder.reshape(form.w, grouped), {1, 1}, 1);
  const auto padded = [&](ValueId half, int64_t before, int64_t after) {
    std::vector<int64_t> pads(2 * grouped.size(), 0);
    pads[3] = before;
    pads[grouped.size() + 3] = after;
    return builder.add(pad_def(), {half, builder.integers(pads)});
  };
  const ValueId joined = builder.concat({padded(halves[0], 0, dims[1]), padded(halves[1], dims[1], 0)}, 1);
  Dims merged = dims;
  merged[1] *= 2;
  return {add_conv(builder, form, form.x, builder.reshape(joined, merged), form.b, form.group / 2)};
}

const Rule kRules[] = {
    // conv(x, V), conv(x, W), ... -> split(conv(x, [V; W; ...])): all of this window and number of groups
    {.name = "conv.merge_same_input",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, $v, b...);"
               " t = conv[strides=e, pads=p, dilations=d, group=g](x, $w, c...)",
     .after = "u = concat[axis=0](v, w), group by group; m = conv[strides=e, pads=p, dilations=d, group=g](x, u);"
              " s, t = split[axis=1](m), group by group",
     .outputs = {"s", "t"},
     .guard_doc = "same kernel extents; biases are weights; s and t are the first two of all such convolutions of x, "
                  "which are all merged",
     .guard = leads_convs,
     .build = merge_same_input},
    // conv(x, V), conv(x, W) -> the same with the smaller kernel filled up with zeros
    {.name = "conv.merge_enlarged",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, $v, b...);"
               " t = conv[strides=e, pads=q, dilations=d, group=g](x, $w, c...)",
     .after = "u = concat[axis=0](pad(v), pad(w)), group by group; m = conv[strides=e, dilations=d, group=g](x, u);"
              " s, t = split[axis=1](m), group by group",
     .outputs = {"s", "t"},
     .guard_doc = "different kernels or pads; results of the same extents; pads differ by multiples of the dilation",
     .guard = can_enlarge,
     .build = merge_enlarged,
     // inf in x, under the zeros that fill up the smaller kernel: 0 inf
     .finite_only = true},
    // [conv(x, V), conv(y, W), ...] -> conv([x, y, ...], [V; W; ...]) in groups
    {.name = "conv.make_groups",
     .before = "c = concat[axis=1](xs...)",
     .after =
         "where xs = conv(us, ws): u = concat[axis=1](us...); w = concat[axis=0](ws...); c = conv(u, w), in groups",
     .outputs = {"c"},
     .guard_doc = "all xs are convolutions with weights, read here alone, with the same window, and as many input and "
                  "output channels in each group; their inputs differ in channels alone",
     .guard = [](const RuleMatch& match) { return !convs_joined(match).empty(); },
     .build = make_groups},
    // conv(x, V) + conv(y, W) -> conv([x, y], [V W])
    {.name = "conv.join_pair_sum",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=1](x, $v, b...);"
               " t = conv[strides=e, pads=q, dilations=d, group=1](y, $w, c...); z = add(s, t)",
     .after = "u = concat[axis=1](x, y); w2 = concat[axis=1](pad(v), pad(w)); z = conv[strides=e, dilations=d](u, w2)",
     .guard_doc = "x and y differ in channels alone; s and t have the same shape; pads differ by multiples of the "
                  "dilation, kernels are filled up with zeros",
     .guard = can_join_sum,
     .build = join_sum,
     // inf in x or y, under the zeros that fill up the smaller kernel: 0 inf
     .finite_only = true},
    // conv(x, W), conv(y, W) -> split(conv([x; y], W))
    {.name = "conv.merge_batch",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, $w, b...);"
               " t = conv[strides=e, pads=p, dilations=d, group=g](y, $w, b...)",
     .after = "u = concat[axis=0](x, y); m = conv[strides=e, pads=p, dilations=d, group=g](u, w, b...);"
              " s, t = split[axis=0](m)",
     .outputs = {"s", "t"},
     .guard_doc = "x and y differ in their first extent alone, and neither result depends on the other",
     .guard =
         [](const RuleMatch& match) {
           return same_dims_but(match.dims("x"), match.dims("y"), 0) &&
                  are_independent(match.graph(), match.nodes()[0], match.nodes()[1]);
         },
     .build = merge_batch},
    // conv([conv(x, U), conv(x, V), ...], W) -> conv(conv(x, [U; V; ...]), W), channels of each group together
    {.name = "conv.join_for_reader",
     .before = "c = concat[axis=1](xs...); y = conv[strides=e, pads=p, dilations=d, group=1](c, $w, b...)",
     .after = "where xs = conv[group=g](x, us): u = concat[axis=0](us...), group by group; m = conv[group=g](x, u);"
              " v = w with its input channels in the order of m; y = conv[strides=e, pads=p, dilations=d](m, v, b...)",
     .kind = shrinks,
     .guard_doc = "all xs are convolutions with weights of one value, with the same window and groups, read here alone",
     .guard = [](const RuleMatch& match) { return !convs_of_one_input(match).empty(); },
     .build = join_for_reader},
    // [conv(x, V), conv(x, W), ...] -> conv(x, [V; W; ...])
    {.name = "conv.join_filters",
     .before = "c = concat[axis=1](xs...)",
     .after = "where xs = conv(x, ws): w = concat[axis=0](ws...); c = conv(x, w)",
     .kind = shrinks,
     .guard_doc = "all xs are convolutions with weights of one value, of one group, with the same window, read here "
                  "alone",
     .guard = [](const RuleMatch& match) { return !filters_joined(match).empty(); },
     .build = join_filters},
    // conv(x, W) in g groups -> conv(x, W with zeros) in g / 2 groups
    {.name = "conv.halve_groups",
     .before = "y = conv[strides=e, pads=p, dilations=d, group=g](x, $w, b...)",
     .after =
         "u = w, with zeros for the other group of each pair; y = conv[strides=e, pads=p, dilations=d](x, u, b...)",
     .outputs = {"y"},
     .guard_doc = "an even number of groups",
     .guard = [](const RuleMatch& match) { return match.integer("g") % 2 == 0; },
     .build = halve_groups,
     // inf in the channels of the other group, under its zeros: 0 inf
     .finite_only = true},
};

}  // namespace

std::span<const Rule> conv_merge_rules() { return kRules; }

}  // namespace autograph
