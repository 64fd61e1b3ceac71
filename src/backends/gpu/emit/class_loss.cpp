// negative_log_likelihood_loss and softmax_cross_entropy_loss: a row of scores for each label, and a second launch that
// adds up what the rows gave. A label that is no class is a fault.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

struct ClassLoss {
  explicit ClassLoss(const KernelCall& call) : reduction(call.attributes.text("reduction")) {
    const Dims x = call.input_dims(0);
    classes = x[1];
    for (size_t a = 2; a < x.size(); ++a) inner *= x[a];
    rows = x[0] * inner;
    takes_softmax = &call.op == &softmax_cross_entropy_loss_def();
    has_log_prob = call.outputs.size() > 1 && call.outputs[1].is_tensor();
    const bool is_f64 = call.inputs[0].dtype() == DType::f64;
    type = is_f64 ? "f64" : "f32";
    element_bytes = is_f64 ? 8 : 4;
  }
  std::string reduction, type;
  int64_t classes = 0, inner = 1, rows = 0;
  bool takes_softmax = false, has_log_prob = false;
  size_t element_bytes = 4;

  bool adds_up() const { return reduction != "none"; }
  size_t second_half() const { return static_cast<size_t>(rows) * element_bytes; }
};

// "shift": what is taken off a score to make it a logarithm of a probability.
void write_shift(Writer& writer, const ReductionPlan& plan, const ClassLoss& loss, const std::string& element) {
  writer.line("{} shift = 0;", loss.type);
  if (!loss.takes_softmax) return;
  const Combination largest = largest_of(loss.type);
  writer.line("{} top = {};", loss.type, largest.start);
  write_loop(writer, plan, loss.classes, [&] {
    writer.line("const {} v = {};", loss.type, element);
    writer.line("top = {};", largest.combine("v", "top"));
  });
  write_group_total(writer, plan, largest, "top");
  writer.line("{} total = 0;", loss.type);
  write_loop(writer, plan, loss.classes, [&] { writer.line("total += exp({} - top);", element); });
  write_group_total(writer, plan, sum_of(loss.type), "total");
  writer.line("shift = top + log(total);");
}

// "loss" and "weight" of the row.
void write_row_loss(Writer& writer, const KernelCall& call, const ClassLoss& loss) {
  writer.line("const i64 label = labels[o];");
  writer.line("{} loss = 0, weight = 0;", loss.type);
  const auto* ignored = call.attributes.find_as<int64_t>("ignore_index");
  if (ignored) writer.open("if (label != {})", literal(DType::i64, *ignored));
  writer.open("if (label < 0 || label >= {})", loss.classes);
  writer.line("faults[0] = 1;");
  writer.line("faults[1] = label;");
  writer.close();
  writer.open("else");
  writer.line("weight = {};", call.has_input(2) ? load(call.inputs[2].dtype(), "given", "label") : "1");
  const std::string at = fmt::format("start + (Index)label * {}", writer.index().literal(loss.inner));
  writer.line("loss = -weight * ({} - shift);", load(call.inputs[0].dtype(), "x", at));
  writer.close();
  if (ignored) writer.close();
}

void write_rows(Writer& writer, const KernelCall& call, const ClassLoss& loss) {
  const DType dtype = call.inputs[0].dtype();
  std::vector<Parameter> parameters{input_parameter("x", storage_type(dtype), 0),
                                    input_parameter("labels", storage_type(call.inputs[1].dtype()), 1)};
  if (call.has_input(2)) parameters.push_back(input_parameter("given", storage_type(call.inputs[2].dtype()), 2));
  if (loss.adds_up()) {
    parameters.push_back(scratch_parameter("losses", loss.type));
    parameters.push_back(scratch_parameter("weights", loss.type, loss.second_half()));
  } else {
    parameters.push_back(output_parameter("y", storage_type(call.outputs[0].dtype())));
  }
  if (loss.has_log_prob) parameters.push_back(output_parameter("log_prob", storage_type(call.outputs[1].dtype()), 1));
  parameters.push_back(fault_parameter("faults"));
  const ReductionPlan plan = plan_reduction(writer.target(), loss.rows, loss.classes);
  begin_reduction(writer, plan, parameters, loss.rows);
  const std::string inner = writer.index().literal(std::max<int64_t>(loss.inner, 1));
  writer.line("const Index start = o / {0} * {1} * {0} + o % {0};", inner, writer.index().literal(loss.classes));
  const std::string at = fmt::format("start + r * {}", inner);
  const std::string element = load(dtype, "x", at);
  write_shift(writer, plan, loss, element);
  if (loss.has_log_prob) {
    write_loop(writer, plan, loss.classes,
               [&] { writer.line("{}", store(call.outputs[1].dtype(), "log_prob", at, element + " - shift")); });
  }
  writer.open("{}", plan.by_group ? "if (t == 0)" : "");
  write_row_loss(writer, call, loss);
  if (loss.adds_up()) {
    writer.line("losses[o] = loss;");
    writer.line("weights[o] = weight;");
  } else {
    writer.line("{}", store(call.outputs[0].dtype(), "y", "o", "loss"));
  }
  writer.close();
  writer.end();
}

void write_total(Writer& writer, const KernelCall& call, const ClassLoss& loss) {
  const ReductionPlan plan{true, group_size_for(writer.target(), loss.rows)};
  begin_reduction(writer, plan,
                  {scratch_parameter("losses", loss.type), scratch_parameter("weights", loss.type, loss.second_half()),
                   output_parameter("y", storage_type(call.outputs[0].dtype()))},
                  1);
  writer.line("{} total = 0, weight = 0;", loss.type);
  write_loop(writer, plan, loss.rows, [&] {
    writer.line("total += losses[r];");
    writer.line("weight += weights[r];");
  });
  write_group_total(writer, plan, sum_of(loss.type), "total");
  write_group_total(writer, plan, sum_of(loss.type), "weight");
  const char* value = loss.reduction == "sum" ? "total" : "total / weight";
  writer.line("if (t == 0) {}", store(call.outputs[0].dtype(), "y", "o", value));
  writer.end();
}

}  // namespace

Emitted emit_class_loss(const KernelCall& call, const Target& target) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (type.is_tensor() && !can_compute(type.dtype(), target)) return refused("dtype");
    }
  }
  const ClassLoss loss(call);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  writer.fault = fmt::format("[loss] labels: expected 0..{}, got ", loss.classes - 1);
  write_rows(writer, call, loss);
  if (!loss.adds_up()) return writer.finish();
  writer.scratch_bytes = 2 * loss.second_half();
  write_total(writer, call, loss);
  return writer.finish();
}

}  // namespace autograph::gpu
