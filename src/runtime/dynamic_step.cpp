#include "runtime/dynamic_step.h"

#include <algorithm>

#include "base/check.h"
#include "base/join.h"
#include "graph/infer_node.h"

namespace autograph {
namespace {

// Kernels kept per step, for graphs whose shapes alternate between a few.
constexpr size_t kCachedKernels = 8;

class StepEvaluateContext : public EvaluateContext, public SessionOpener {
 public:
  StepEvaluateContext(const Graph& graph, const Node& node, std::vector<Datum> inputs, const RunOptions& options,
                      const std::shared_ptr<MemoryMeter>& meter)
      : graph_(graph), node_(node), inputs_(std::move(inputs)), options_(options), meter_(meter) {}

  const Attributes& attributes() const override { return node_.attributes(); }
  size_t num_inputs() const override { return inputs_.size(); }
  size_t num_outputs() const override { return node_.outputs().size(); }
  const Type& input_type(size_t slot) const override {
    static const Type kNone;
    const ValueId value = node_.input(slot);
    return value.is_valid() ? graph_.type(value) : kNone;
  }
  const Datum& input(size_t slot) const override {
    static const Datum kNothing;
    return slot < inputs_.size() ? inputs_[slot] : kNothing;
  }
  std::vector<Datum> run_nested(std::string_view attribute, const std::vector<Datum>& inputs) override {
    return options_.run_nested(node_.attributes().get<GraphRef>(attribute), inputs, meter_);
  }
  std::unique_ptr<NestedSession> open_nested(std::string_view attribute,
                                             const std::vector<Datum>& inputs) const override {
    return options_.open_nested ? options_.open_nested(node_.attributes().get<GraphRef>(attribute), inputs) : nullptr;
  }
  Tensor allocate(DType dtype, Dims dims) override { return meter_->allocate(dtype, std::move(dims)); }

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<Datum> inputs_;
  const RunOptions& options_;
  const std::shared_ptr<MemoryMeter>& meter_;
};

}  // namespace

DynamicStep::DynamicStep(RunContext& context, size_t number, const RunOptions& options,
                         const std::shared_ptr<MemoryMeter>& meter)
    : context_(context),
      number_(number),
      step_(context.compiled_->plan.steps[number]),
      node_(context.compiled_->graph->node(step_.node)),
      options_(options),
      meter_(meter) {}

void DynamicStep::run() {
  std::vector<Datum> inputs = gather_inputs();
  std::vector<Datum> outputs = step_.kind == StepKind::evaluate ? evaluate(std::move(inputs)) : infer_and_run(inputs);
  AG_CHECK(outputs.size() == step_.outputs.size(), "[{}] gave {} outputs, expected {}", node_.op().name, outputs.size(),
           step_.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) context_.heap_[step_.outputs[k]] = std::move(outputs[k]);
  for (const SlotIndex s : step_.last_reads) context_.heap_[s] = Datum();
}

std::vector<Datum> DynamicStep::gather_inputs() const {
  std::vector<Datum> inputs;
  for (const SlotIndex s : step_.inputs) inputs.push_back(s == kNoSlot ? Datum() : context_.datum_of(s));
  return inputs;
}

std::vector<Datum> DynamicStep::evaluate(std::vector<Datum> inputs) {
  const std::vector<ByteRange> borrowed = borrowed_ranges(inputs);
  StepEvaluateContext context(*context_.compiled_->graph, node_, std::move(inputs), options_, meter_);
  std::vector<Datum> outputs = node_.op().evaluate(context);
  for (Datum& output : outputs) output = owned(output, borrowed);
  return outputs;
}

// Inputs in memory that is used again, or that the caller takes, after this step.
std::vector<DynamicStep::ByteRange> DynamicStep::borrowed_ranges(const std::vector<Datum>& inputs) const {
  std::vector<ByteRange> ranges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (step_.inputs[i] == kNoSlot || !inputs[i].is_tensor() || inputs[i].tensor().size_bytes() == 0) continue;
    const Place place = context_.compiled_->plan.slots[step_.inputs[i]].place;
    if (place != Place::arena && place != Place::output) continue;
    const char* begin = static_cast<const char*>(inputs[i].tensor().raw());
    ranges.push_back({begin, begin + inputs[i].tensor().size_bytes()});
  }
  return ranges;
}

// What evaluate gives back may be an input, or lie in one: then it gets memory of its own.
Datum DynamicStep::owned(const Datum& datum, const std::vector<ByteRange>& borrowed) {
  if (datum.is_sequence()) {
    std::vector<Datum> elements;
    for (const Datum& element : datum.sequence()) elements.push_back(owned(element, borrowed));
    return elements;
  }
  if (!datum.is_tensor() || datum.tensor().dtype() == DType::string) return datum;
  const char* at = static_cast<const char*>(datum.tensor().raw());
  const bool is_borrowed = std::any_of(borrowed.begin(), borrowed.end(), [&](const ByteRange& range) {
    return std::greater_equal<>()(at, range.begin) && std::less<>()(at, range.end);
  });
  return is_borrowed ? Datum(datum.tensor().clone()) : datum;
}

std::vector<Datum> DynamicStep::infer_and_run(const std::vector<Datum>& inputs) {
  std::vector<Type> input_types;
  std::vector<Tensor> tensors;
  std::vector<TensorView> input_views;
  for (const Datum& input : inputs) {
    tensors.push_back(input.is_present() ? input.tensor() : Tensor());
    input_types.push_back(input.is_present() ? tensors.back().type() : Type());
  }
  for (const Tensor& tensor : tensors) input_views.push_back(tensor.view());
  std::vector<Type> output_types = infer_call(node_.op(), input_types, tensors, node_.attributes(),
                                              node_.outputs().size(), node_.provenance().to_string());
  for (const Type& type : output_types) {
    AG_CHECK(type.is_static(), "[{}] infer gave {} although all inputs are known", node_.op().name, to_string(type));
  }
  if (node_.op().traits.view && output_types.size() == 1 && !tensors.empty() &&
      output_types[0].dtype() == tensors[0].dtype() &&
      output_types[0].shape().num_elements() == tensors[0].num_elements()) {
    const Place place = context_.compiled_->plan.slots[step_.inputs[0]].place;
    if (place != Place::arena && place != Place::output) {
      return {Datum(tensors[0].reshaped(output_types[0].shape().static_dims()))};
    }
  }
  std::vector<Datum> outputs;
  std::vector<Tensor> results;
  for (const Type& type : output_types) {
    results.push_back(meter_->allocate(type.dtype(), type.shape().static_dims()));
  }
  std::vector<TensorView> output_views;
  for (const Tensor& result : results) output_views.push_back(result.view());
  RunContext::CachedKernel& cached = kernel_for(std::move(input_types), std::move(output_types));
  cached.kernel->run({input_views, output_views, cached.scratch.mutable_raw(), cached.state.get()});
  for (Tensor& result : results) outputs.emplace_back(std::move(result));
  return outputs;
}

RunContext::CachedKernel& DynamicStep::kernel_for(std::vector<Type> inputs, std::vector<Type> outputs) {
  auto& cache = context_.dynamic_kernels_[number_];
  const auto found = std::find_if(cache.begin(), cache.end(), [&](const RunContext::CachedKernel& cached) {
    return cached.inputs == inputs && cached.outputs == outputs;
  });
  if (found != cache.end()) return *found;
  const Plan& plan = context_.compiled_->plan;
  std::vector<Tensor> constants(step_.inputs.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    if (step_.inputs[i] == kNoSlot) continue;
    const Slot& slot = plan.slots[step_.inputs[i]];
    if (slot.place == Place::weight && slot.root == step_.inputs[i]) constants[i] = plan.weights[slot.index];
  }
  KernelSelection selection = options_.catalog.select(
      {node_.op(), node_.attributes(), inputs, outputs, constants, options_.threads, false, nullptr, options_.packed},
      options_.judge);
  AG_CHECK_USER(selection.kernel, UnsupportedError, "[compile] kernels: none for {} ({})", node_.op().name,
                join(selection.refusals, "; "));
  if (cache.size() >= kCachedKernels) cache.erase(cache.begin());
  RunContext::CachedKernel& cached = cache.emplace_back();
  cached.inputs = std::move(inputs);
  cached.outputs = std::move(outputs);
  cached.state = selection.kernel->new_state();
  cached.scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(selection.kernel->scratch_bytes())});
  cached.kernel = std::move(selection.kernel);
  return cached;
}

}  // namespace autograph
