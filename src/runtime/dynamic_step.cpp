#include "runtime/dynamic_step.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/join.h"
#include "graph/infer_node.h"
#include "graph/run_reference.h"
#include "tensor/change_tensors.h"

namespace autograph {
namespace {

// Kernels kept per step, for graphs whose shapes alternate between a few.
constexpr size_t kCachedKernels = 8;
constexpr int64_t kMostScratchBytes = int64_t{256} * 1024;

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

bool are_static(const std::vector<Type>& types) {
  return std::all_of(types.begin(), types.end(), [](const Type& type) { return type.is_static(); });
}

bool is_string(const Type& type) { return type.is_tensor() && type.dtype() == DType::string; }

TensorView view_of(const Tensor& tensor) {
  if (!tensor.is_present()) return {};
  return {tensor.dtype(), tensor.dims(), tensor.buffer().data()};
}

}  // namespace

DynamicStep::DynamicStep(Launchable& launchable, size_t number, const RunOptions& options,
                         const std::shared_ptr<MemoryMeter>& meter, Stream* stream)
    : launchable_(launchable),
      number_(number),
      step_(launchable.compiled().plan.steps[number]),
      node_(launchable.compiled().graph->node(step_.node)),
      options_(options),
      meter_(meter),
      stream_(stream),
      memory_(stream ? stream->memory() : nullptr) {}

void DynamicStep::run() {
  if (stream_ && !memory_) stream_->wait();  // what is enqueued there may be read here
  std::vector<Datum> inputs = gather_inputs();
  std::vector<Datum> outputs = step_.kind == StepKind::evaluate ? evaluate(std::move(inputs)) : infer_and_run(inputs);
  AG_CHECK(outputs.size() == step_.outputs.size(), "[{}] gave {} outputs, expected {}", node_.op().name, outputs.size(),
           step_.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) launchable_.heap_[step_.outputs[k]] = std::move(outputs[k]);
  if (options_.check_nan) return;  // what a step read is told behind it; it goes at the end of the run
  for (const SlotIndex s : step_.last_reads) {
    const Datum last = std::exchange(launchable_.heap_[s], Datum());
    if (last.is_tensor()) retire(last.tensor());
  }
}

std::vector<Datum> DynamicStep::gather_inputs() const {
  std::vector<Datum> inputs;
  for (const SlotIndex s : step_.inputs) inputs.push_back(s == kNoSlot ? Datum() : launchable_.datum_of(s));
  return inputs;
}

std::vector<Datum> DynamicStep::evaluate(std::vector<Datum> inputs) {
  for (Datum& input : inputs) {
    if (memory_) input = on_host(input);
  }
  const std::vector<ByteRange> borrowed = borrowed_ranges(inputs);
  StepEvaluateContext context(*launchable_.compiled().graph, node_, std::move(inputs), options_, meter_);
  std::vector<Datum> outputs = node_.op().evaluate(context);
  for (Datum& output : outputs) output = owned(std::move(output), borrowed);
  return outputs;
}

// Inputs in memory that is used again, or that the caller takes, after this step.
std::vector<DynamicStep::ByteRange> DynamicStep::borrowed_ranges(const std::vector<Datum>& inputs) const {
  std::vector<ByteRange> ranges;
  if (memory_) return ranges;  // these are copies
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (step_.inputs[i] == kNoSlot || !inputs[i].is_tensor() || inputs[i].tensor().size_bytes() == 0) continue;
    const Place place = launchable_.compiled().plan.slots[step_.inputs[i]].place;
    if (place != Place::arena && place != Place::output) continue;
    const char* begin = static_cast<const char*>(inputs[i].tensor().raw());
    ranges.push_back({begin, begin + inputs[i].tensor().size_bytes()});
  }
  return ranges;
}

// What evaluate gives back may be an input, or lie in one: then it gets memory of its own.
Datum DynamicStep::owned(Datum datum, const std::vector<ByteRange>& borrowed) {
  if (borrowed.empty()) return datum;
  const auto is_borrowed = [&](const Tensor& tensor) {
    if (!tensor.is_present() || tensor.dtype() == DType::string) return false;
    const char* at = static_cast<const char*>(tensor.raw());
    return std::any_of(borrowed.begin(), borrowed.end(), [&](const ByteRange& range) {
      return std::greater_equal<>()(at, range.begin) && std::less<>()(at, range.end);
    });
  };
  return change_tensors(std::move(datum), is_borrowed, [](const Tensor& tensor) { return tensor.clone(); });
}

std::vector<Datum> DynamicStep::infer_and_run(const std::vector<Datum>& inputs) {
  std::vector<Type> input_types;
  std::vector<Tensor> tensors;
  for (const Datum& input : inputs) {
    tensors.push_back(input.is_present() ? input.tensor() : Tensor());
    input_types.push_back(input.is_present() ? tensors.back().type() : Type());
  }
  std::vector<Type> output_types = infer(input_types, tensors);
  AG_CHECK(are_static(output_types), "[{}] infer gave unknown extents although all inputs are known", node_.op().name);
  if (is_view(tensors, output_types)) return {Datum(tensors[0].reshaped(output_types[0].shape().static_dims()))};
  const bool has_strings = std::any_of(input_types.begin(), input_types.end(), is_string) ||
                           std::any_of(output_types.begin(), output_types.end(), is_string);
  if (memory_ && has_strings) return run_on_host(tensors, output_types);
  return run_kernel(tensors, std::move(input_types), std::move(output_types));
}

// Elements that lie on the device are asked for only where shapes depend on them.
std::vector<Type> DynamicStep::infer(const std::vector<Type>& input_types, const std::vector<Tensor>& inputs) const {
  const auto infer_from = [&](const std::vector<Tensor>& known) {
    return infer_call(node_.op(), input_types, known, node_.attributes(), node_.outputs().size(),
                      node_.provenance().to_string());
  };
  if (!memory_) return infer_from(inputs);
  std::vector<Tensor> known;
  for (const Tensor& input : inputs) known.push_back(input.is_on_host() ? input : Tensor());
  std::vector<Type> types = infer_from(known);
  if (are_static(types)) return types;
  for (size_t i = 0; i < inputs.size(); ++i) known[i] = on_host(inputs[i]);
  return infer_from(known);
}

// Is the output the first input under other extents, in memory that stays as it is?
bool DynamicStep::is_view(const std::vector<Tensor>& inputs, const std::vector<Type>& output_types) const {
  if (!node_.op().traits.view || output_types.size() != 1 || inputs.empty()) return false;
  if (output_types[0].dtype() != inputs[0].dtype()) return false;
  if (output_types[0].shape().num_elements() != inputs[0].num_elements()) return false;
  const Place place = launchable_.compiled().plan.slots[step_.inputs[0]].place;
  return place != Place::arena && place != Place::output;
}

std::vector<Datum> DynamicStep::run_on_host(const std::vector<Tensor>& inputs,
                                            const std::vector<Type>& output_types) const {
  std::vector<Tensor> copies;
  for (const Tensor& input : inputs) copies.push_back(on_host(input));
  std::vector<Datum> outputs;
  for (Tensor& result : run_reference(node_.op(), node_.attributes(), copies, output_types)) {
    outputs.emplace_back(std::move(result));
  }
  return outputs;
}

std::vector<Datum> DynamicStep::run_kernel(const std::vector<Tensor>& inputs, std::vector<Type> input_types,
                                           std::vector<Type> output_types) {
  std::vector<Tensor> operands;
  std::vector<Tensor> results;
  for (size_t i = 0; i < inputs.size(); ++i) operands.push_back(on_device(step_.inputs[i], inputs[i]));
  for (const Type& type : output_types) {
    results.push_back(meter_->allocate(type.dtype(), type.shape().static_dims(), memory_));
  }
  std::vector<TensorView> input_views;
  std::vector<TensorView> output_views;
  for (const Tensor& operand : operands) input_views.push_back(view_of(operand));
  for (const Tensor& result : results) output_views.push_back(view_of(result));
  CachedKernel& cached = kernel_for(std::move(input_types), std::move(output_types));
  const bool has_own = cached.scratch.is_present();
  Tensor scratch = has_own ? cached.scratch : launchable_.large_scratch_.take(cached.scratch_bytes);
  cached.kernel->run({input_views, output_views, scratch.buffer().data(), cached.state.get(), stream_});
  if (!has_own) launchable_.large_scratch_.give_back(std::move(scratch));
  for (Tensor& operand : operands) retire(std::move(operand));
  std::vector<Datum> outputs;
  for (Tensor& result : results) outputs.emplace_back(std::move(result));
  return outputs;
}

Tensor DynamicStep::on_host(const Tensor& tensor) const {
  if (tensor.is_on_host()) return tensor;
  stream_->wait();
  return tensor.to_host();
}

Datum DynamicStep::on_host(const Datum& datum) const {
  if (datum.is_tensor()) return on_host(datum.tensor());
  if (!datum.is_sequence()) return datum;
  std::vector<Datum> elements;
  for (const Datum& element : datum.sequence()) elements.push_back(on_host(element));
  return elements;
}

Tensor DynamicStep::on_device(SlotIndex slot, const Tensor& tensor) const {
  if (!tensor.is_present() || tensor.buffer().memory() == memory_) return tensor;
  if (void* address = launchable_.address_of(slot)) {
    return Tensor::wrap(tensor.dtype(), tensor.dims(), Buffer(memory_, address, tensor.size_bytes(), nullptr));
  }
  return tensor.to(memory_);
}

// The device may come to what reads it only later.
void DynamicStep::retire(Tensor tensor) const {
  if (memory_ && !tensor.is_on_host()) launchable_.retired_.push_back(std::make_shared<Tensor>(std::move(tensor)));
}

DynamicStep::CachedKernel& DynamicStep::kernel_for(std::vector<Type> inputs, std::vector<Type> outputs) {
  auto& cache = launchable_.dynamic_kernels_[number_];
  const auto found = std::find_if(cache.begin(), cache.end(), [&](const auto& cached) {
    return cached->inputs == inputs && cached->outputs == outputs;
  });
  if (found != cache.end()) return **found;
  const Plan& plan = launchable_.compiled().plan;
  std::vector<Tensor> constants(step_.inputs.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    if (step_.inputs[i] == kNoSlot) continue;
    const Slot& slot = plan.slots[step_.inputs[i]];
    if (slot.place == Place::weight && slot.root == step_.inputs[i]) constants[i] = plan.weights[slot.index];
  }
  KernelSelection selection = options_.catalog.select({node_.op(), node_.attributes(), inputs, outputs, constants,
                                                       options_.threads, options_.exact, nullptr, options_.packed},
                                                      options_.judge, Reorders::as_needed);
  AG_CHECK_USER(selection.kernel, UnsupportedError, "[compile] kernels: none for {} ({})", node_.op().name,
                join(selection.refusals, "; "));
  if (cache.size() >= kCachedKernels) {
    if (memory_) launchable_.retired_.push_back(cache.front());
    cache.erase(cache.begin());
  }
  CachedKernel& cached = *cache.emplace_back(std::make_shared<CachedKernel>());
  cached.inputs = std::move(inputs);
  cached.outputs = std::move(outputs);
  cached.state = selection.kernel->new_state();
  cached.scratch_bytes = static_cast<int64_t>(selection.kernel->scratch_bytes());
  // What the host keeps for each kernel is small. A device may come to a kernel later than to the next one.
  if (memory_ || cached.scratch_bytes <= kMostScratchBytes) {
    cached.scratch = Tensor::empty(DType::u8, {cached.scratch_bytes}, memory_);
  }
  cached.kernel = std::move(selection.kernel);
  return cached;
}

}  // namespace autograph
