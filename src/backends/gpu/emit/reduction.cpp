// reduce_*: a group of items for each result, or one item where there is little to combine.
//
// Floats are summed in f32 by many items, or one after the other: the reference sums in f64.
#include <algorithm>
#include <functional>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/chain.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "backends/gpu/emit/text/reduced_dims.h"
#include "ops/defs.h"
#include "tensor/front_axis.h"

namespace autograph::gpu {
namespace {

using Text = std::function<std::string(const std::string&)>;

// What is done with each element, how two are combined, what is done with the total.
struct Form {
  Combination combination;
  Text element;
  Text result;
};

std::string same(const std::string& x) { return x; }

// Of floats: NaN where either is.
Combination extreme_of(DType dtype, bool largest) {
  const std::string type(compute_type(dtype));
  const char* sign = largest ? ">" : "<";
  if (is_float(dtype)) {
    return {type, largest ? "-INFINITY" : "INFINITY", [sign](const std::string& a, const std::string& b) {
              return fmt::format("(isnan({0}) || {0} {2} {1} ? {0} : {1})", a, b, sign);
            }};
  }
  const size_t bits = element_size(dtype) * 8;
  const std::string top = dtype == DType::boolean  ? "1"
                          : is_signed_whole(dtype) ? fmt::format("({})((u{})(-1) >> 1)", type, bits)
                                                   : fmt::format("({})(-1)", type);
  const std::string bottom = is_signed_whole(dtype) ? fmt::format("({})(-{} - 1)", type, top) : "0";
  return {type, largest ? bottom : top, [sign](const std::string& a, const std::string& b) {
            return fmt::format("({0} {2} {1} ? {0} : {1})", a, b, sign);
          }};
}

// Integers wrap around: they are added up as unsigned ones.
std::string accumulator_of(DType dtype) {
  if (is_float(dtype)) return std::string(compute_type(dtype));
  return element_size(dtype) == 8 ? "u64" : "u32";
}

std::optional<Form> form_of(const OpDef& op, DType dtype, int64_t combined) {
  const std::string type(compute_type(dtype));
  const std::string wide = accumulator_of(dtype);
  const auto unwrap = [type](const std::string& x) { return fmt::format("({}){}", type, x); };
  const auto magnitude = [](const std::string& x) { return fmt::format("({0} < 0 ? -{0} : {0})", x); };
  const auto square = [](const std::string& x) { return fmt::format("{0} * {0}", x); };
  if (&op == &reduce_max_def()) return Form{extreme_of(dtype, true), same, same};
  if (&op == &reduce_min_def()) return Form{extreme_of(dtype, false), same, same};
  if (&op == &reduce_sum_def()) return Form{sum_of(wide), same, unwrap};
  if (&op == &reduce_prod_def()) return Form{product_of(wide), same, unwrap};
  if (!is_float(dtype)) return std::nullopt;
  if (&op == &reduce_l1_def()) return Form{sum_of(wide), magnitude, same};
  if (&op == &reduce_sum_square_def()) return Form{sum_of(wide), square, same};
  if (&op == &reduce_l2_def()) {
    return Form{sum_of(wide), square, [](const std::string& x) { return fmt::format("sqrt({})", x); }};
  }
  if (&op == &reduce_log_sum_def()) {
    return Form{sum_of(wide), same, [](const std::string& x) { return fmt::format("log({})", x); }};
  }
  if (&op == &reduce_mean_def()) {
    const std::string count = literal(dtype, static_cast<double>(combined));
    return Form{sum_of(wide), same, [count](const std::string& x) { return fmt::format("{} / {}", x, count); }};
  }
  return std::nullopt;
}

// Axes must be known now.
std::optional<std::vector<bool>> reduced_axes(const Attributes& attributes, const Tensor* axes, bool is_given,
                                              size_t rank) {
  if (is_given && !axes) return std::nullopt;
  std::vector<bool> flags(rank, false);
  if (!axes || axes->num_elements() == 0) {
    flags.assign(rank, !attributes.flag("noop_with_empty_axes"));
    return flags;
  }
  for (const int64_t axis : axes->to_i64()) {
    const int64_t at = front_axis(axis, static_cast<int64_t>(rank));
    if (at < 0 || at >= static_cast<int64_t>(rank)) return std::nullopt;
    flags[static_cast<size_t>(at)] = true;
  }
  return flags;
}

struct Reduction {
  const OpDef& op;
  const Attributes& attributes;
  const Tensor* axes;
  bool has_axes;
};

Reduction reduction_of(const KernelCall& call, const Chain& chain) {
  if (!chain.body()) return {call.op, call.attributes, call.constant(1), call.has_input(1)};
  const Node& node = *chain.reduction();
  const bool has_axes = node.inputs().size() > 1 && node.inputs()[1].is_valid();
  const Tensor* axes = has_axes && chain.body()->value(node.inputs()[1]).is_constant()
                           ? &chain.body()->value(node.inputs()[1]).constant()
                           : nullptr;
  return {node.op(), node.attributes(), axes, has_axes};
}

// log(sum(exp(x))): two walks, as the largest element must be known first.
void write_log_sum_exp(Writer& writer, const ReductionPlan& plan, int64_t combined, const std::string& type,
                       const std::function<std::string()>& element) {
  const Combination largest = largest_of(type);
  writer.line("{} top = {};", type, largest.start);
  write_loop(writer, plan, combined, [&] {
    const std::string x = element();
    writer.line("top = {};", largest.combine(x, "top"));
  });
  write_group_total(writer, plan, largest, "top");
  writer.line("{} total = 0;", type);
  writer.open("if (!isnan(top) && !isinf(top))");
  write_loop(writer, plan, combined, [&] { writer.line("total += exp({} - top);", element()); });
  writer.close();
  write_group_total(writer, plan, sum_of(type), "total");
  writer.line("total = isnan(top) || isinf(top) ? top : top + log(total);");
}

// Combines what kernels of parts have left in "partial".
void write_sum_of_parts(Writer& writer, const Form& form, int64_t results, int64_t parts, DType dtype) {
  const std::string& type = form.combination.type;
  const ReductionPlan plan = plan_reduction(writer.target(), results, parts);
  begin_reduction(writer, plan, {scratch_parameter("partial", type), output_parameter("y", storage_type(dtype))},
                  results);
  writer.line("{} total = {};", type, form.combination.start);
  write_loop(writer, plan, parts, [&] {
    writer.line("const {} v = partial[o * {} + r];", type, writer.index().literal(parts));
    writer.line("total = {};", form.combination.combine("total", "v"));
  });
  write_group_total(writer, plan, form.combination, "total");
  writer.line("{}{}", plan.by_group ? "if (t == 0) " : "", store(dtype, "y", "o", form.result("total")));
  writer.end();
}

}  // namespace

Emitted emit_reduction(const KernelCall& call, const Target& target) {
  Chain chain(call);
  if (!chain.refusal().empty()) return refused(chain.refusal());
  if (chain.body() && !chain.reduction()) return refused("no reduction at the end");
  const Reduction reduction = reduction_of(call, chain);
  const DType dtype = call.outputs[0].dtype();
  if (!can_compute(dtype, target) || (!chain.body() && call.inputs[0].dtype() != dtype)) return refused("dtype");
  const Dims dims = chain.body() ? chain.dims() : call.input_dims(0);
  const auto flags = reduced_axes(reduction.attributes, reduction.axes, reduction.has_axes, dims.size());
  if (!flags) return refused("axes that are computed");
  const ReducedDims reduced(dims, *flags);
  const bool is_log_sum_exp = &reduction.op == &reduce_log_sum_exp_def() && is_float(dtype);
  const auto form = form_of(reduction.op, dtype, reduced.combined);
  if (!form && !is_log_sum_exp) return refused(fmt::format("{} of {}", reduction.op.name, to_string(dtype)));
  const ReductionPlan plan = plan_reduction(target, reduced.results, reduced.combined);
  Writer writer(target);
  writer.index().cover(num_elements(dims));
  std::vector<Parameter> parameters;
  if (chain.body()) {
    chain.cover(writer.index());
    parameters = chain.parameters();
  } else {
    parameters.push_back(input_parameter("x0", storage_type(dtype), 0));
  }
  const int64_t parts = is_log_sum_exp ? 1 : choose_parts(target, plan, reduced.results, reduced.combined);
  if (parts > 1) {
    writer.index().cover(2 * reduced.combined);
    writer.scratch_bytes = static_cast<size_t>(reduced.results * parts) * sizeof(int64_t);  // of any type
    parameters.push_back(scratch_parameter("partial", form->combination.type));
    begin_parts(writer, plan, parameters, reduced.results, reduced.combined, parts);
  } else {
    parameters.push_back(output_parameter("y", storage_type(dtype)));
    begin_reduction(writer, plan, parameters, reduced.results);
  }
  writer.line("const Index kept = {};", position(writer.index(), "o", reduced.kept));
  const auto element = [&]() -> std::string {
    writer.line("const Index e = kept + {};", position(writer.index(), "r", reduced.reduced));
    return chain.body() ? chain.write(writer, "e")[0] : load(dtype, "x0", "e");
  };
  if (is_log_sum_exp) {
    write_log_sum_exp(writer, plan, reduced.combined, std::string(compute_type(dtype)), element);
  } else {
    const std::string& type = form->combination.type;
    writer.line("{} total = {};", type, form->combination.start);
    const auto combine = [&] {
      writer.line("const {} v = {};", type, element());
      if (chain.refusal().empty()) writer.line("total = {};", form->combination.combine("total", form->element("v")));
    };
    if (parts > 1) {
      writer.open("for (Index r = first + t; r < last; r += {})", plan.group_size);
      combine();
      writer.close();
    } else {
      write_loop(writer, plan, reduced.combined, combine);
    }
    write_group_total(writer, plan, form->combination, "total");
  }
  if (!chain.refusal().empty()) return refused(chain.refusal());
  if (parts > 1) {
    writer.line("if (t == 0) partial[g] = total;");
    writer.end();
    write_sum_of_parts(writer, *form, reduced.results, parts, dtype);
    return writer.finish();
  }
  const std::string result = is_log_sum_exp ? "total" : form->result("total");
  writer.line("{}{}", plan.by_group ? "if (t == 0) " : "", store(dtype, "y", "o", result));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
