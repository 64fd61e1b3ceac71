#include "accuracy/sampled_run.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"
#include "graph/infer_node.h"

namespace autograph {
namespace {

// What the reference spends on an element beside its arithmetic.
constexpr double kFlopsOfElement = 20;
// Runs of the reference behind one result with scales.
constexpr double kRuns = 4;
// Fewer elements than this show too little.
constexpr int64_t kFewest = 8;

std::vector<Type> cropped_types(std::span<const Type> types, const std::vector<Selection>& selections) {
  std::vector<Type> result;
  for (size_t k = 0; k < types.size(); ++k) {
    result.push_back(types[k].is_tensor() ? Type(types[k].dtype(), Shape::of(dims_of(selections[k]))) : Type());
  }
  return result;
}

}  // namespace

SampledRun::SampledRun(const Graph& graph, const std::vector<ScaledTensor>& inputs, const ErrorModel& model)
    : graph_(graph), model_(model), inputs_(graph.value_capacity()) {
  for (size_t i = 0; i < inputs.size(); ++i) inputs_[graph.inputs()[i].index] = inputs[i];
  for (const ValueId v : graph.constants()) inputs_[v.index] = {graph.value(v).constant(), {}};
}

const Tensor* SampledRun::leaf(ValueId value) const {
  const Tensor& tensor = inputs_[value.index].value;
  return tensor.is_present() ? &tensor : nullptr;
}

SampledRun::Plan SampledRun::plan(const Node& node, size_t output, const Selection& wanted) {
  Plan plan;
  for (const ValueId v : node.inputs()) {
    const bool is_given = v.is_valid() && graph_.type(v).is_tensor();
    plan.inputs.push_back(is_given ? graph_.type(v) : Type());
    plan.known.push_back(is_given && leaf(v) ? *leaf(v) : Tensor());
  }
  for (const ValueId v : node.outputs()) plan.outputs.push_back(graph_.type(v));
  const WholeCall call{node.op(), node.attributes(), plan.inputs, plan.outputs, plan.known};
  if (output == 0) {
    if (auto cropped = crop_call(call, wanted)) {
      plan.cropped = std::move(*cropped);
      return plan;
    }
  }
  plan.cropped = {{}, node.attributes(), select_all(plan.outputs[output].shape().static_dims())};
  for (size_t slot = 0; slot < plan.inputs.size(); ++slot) plan.cropped.inputs.push_back(select_all(call.dims(slot)));
  return plan;
}

double SampledRun::work(ValueId value, const Selection& wanted) {
  if (leaf(value) || whole_.contains(graph_.value(value).producer())) return 0;
  const Node& node = graph_.node(graph_.value(value).producer());
  const Plan of = plan(node, graph_.value(value).slot(), wanted);
  std::vector<Type> outputs = of.outputs;
  if (graph_.value(value).slot() == 0) outputs[0] = Type(outputs[0].dtype(), Shape::of(dims_of(of.cropped.made)));
  const std::vector<Type> inputs = cropped_types(of.inputs, of.cropped.inputs);
  double work = kRuns * cost_of(node.op(), {of.cropped.attributes, inputs, outputs}).flops;
  for (const Type& type : outputs) {
    work += kRuns * kFlopsOfElement * static_cast<double>(type.shape().num_elements().value_or(0));
  }
  for (size_t slot = 0; slot < of.inputs.size(); ++slot) {
    if (of.inputs[slot].is_tensor()) work += this->work(node.input(slot), of.cropped.inputs[slot]);
  }
  return work;
}

ScaledTensor SampledRun::compute(ValueId value, const Selection& wanted) {
  const auto select_both = [](const ScaledTensor& from, const Selection& selection) {
    return ScaledTensor{select(from.value, selection),
                        from.scale.is_present() ? select(from.scale, selection) : Tensor()};
  };
  if (leaf(value)) return select_both(inputs_[value.index], wanted);
  const auto known = computed_.find({value, wanted});
  if (known != computed_.end()) return known->second;
  const NodeId producer = graph_.value(value).producer();
  const Node& node = graph_.node(producer);
  const size_t slot = graph_.value(value).slot();
  // A split into thousands of pieces runs once for all of them.
  const auto whole = whole_.find(producer);
  if (whole != whole_.end()) return select_both(whole->second[slot], wanted);
  const Plan of = plan(node, slot, wanted);
  std::vector<ScaledTensor> inputs(of.inputs.size());
  std::vector<Tensor> tensors(of.inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (of.inputs[k].is_tensor()) inputs[k] = compute(node.input(k), of.cropped.inputs[k]);
    tensors[k] = inputs[k].value;
  }
  const std::vector<Type> outputs = infer_call(node.op(), cropped_types(of.inputs, of.cropped.inputs), tensors,
                                               of.cropped.attributes, node.outputs().size(), "");
  AG_CHECK(outputs[slot].shape().static_dims() == dims_of(of.cropped.made), "[{}] a part of it: expected {}, got {}",
           node.op().name, to_string(Shape::of(dims_of(of.cropped.made))), to_string(outputs[slot]));
  auto results = run_scaled(node.op(), of.cropped.attributes, inputs, outputs, model_);
  ScaledTensor result = select_both(results[slot], positions_in(wanted, of.cropped.made));
  if (slot > 0) whole_.emplace(producer, std::move(results));  // behind the first output nothing is cut down
  computed_[{value, wanted}] = result;
  return result;
}

size_t SampledRun::first_window(ValueId value) const {
  // Epilogues keep dims: the windows of what is before them count.
  const Dims dims = graph_.type(value).shape().static_dims();
  for (ValueId v = value; !leaf(v);) {
    const Node& node = graph_.node(graph_.value(v).producer());
    const WholeCall call{node.op(), node.attributes(), {}, std::span(&graph_.type(node.output(0)), 1), {}};
    if (const size_t first = first_window_axis(call); first < dims.size()) return first;
    const auto keeps_dims = [&](ValueId in) {
      return in.is_valid() && !leaf(in) && graph_.type(in).is_static() && graph_.type(in).shape().static_dims() == dims;
    };
    const auto next = std::find_if(node.inputs().begin(), node.inputs().end(), keeps_dims);
    if (next == node.inputs().end()) break;
    v = *next;
  }
  return dims.size();
}

std::optional<Selection> SampledRun::draw(ValueId value, int64_t count, double max_work, std::mt19937_64& random) {
  const Dims dims = graph_.type(value).shape().static_dims();
  const size_t first = first_window(value);
  for (; count >= kFewest; count /= 2) {
    Selection wanted = draw_selection(dims, count, first, random);
    if (work(value, wanted) <= max_work) return wanted;
  }
  return std::nullopt;
}

}  // namespace autograph
