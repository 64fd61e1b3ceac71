#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "accuracy/sampled_run.h"
#include "accuracy/scaled_run.h"
#include "autograph/compare_values.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "base/join.h"
#include "cost/attester.h"
#include "cost/trial_tensors.h"
#include "device/host_threads.h"
#include "device/thread_steps.h"
#include "graph/infer_node.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// So many selections of so many elements of each output, as far as the reference can compute them in about the time
// that a kernel takes. Where even the least takes longer, up to the last limit.
constexpr int kSelections = 3;
constexpr int64_t kElements = 1024;
constexpr double kUsualWork = 1e6;
constexpr double kMostWork = 1e9;

// A graph of static types that computes what the call does.
Graph graph_of(const KernelCall& call) {
  if (&call.op == &fused_def()) {
    Graph body = *call.attributes.get<GraphRef>("body");
    for (size_t i = 0; i < call.inputs.size(); ++i) body.set_type(body.inputs()[i], call.inputs[i]);
    infer_types(body);
    return body;
  }
  Graph graph("call");
  std::vector<ValueId> inputs;
  for (const Type& type : call.inputs) {
    const ValueId input = graph.add_input(type);
    inputs.push_back(type.is_tensor() ? input : ValueId());
  }
  const NodeId node =
      graph.add_node_typed(call.op, inputs, call.attributes, {call.outputs.begin(), call.outputs.end()});
  for (const ValueId output : std::vector<ValueId>(graph.node(node).outputs())) graph.add_output(output);
  return graph;
}

// One run of the kernel on tensors of its own, in the memory of the device.
class TrialRun {
 public:
  TrialRun(const KernelCall& call, const KernelVariant& variant, const Kernel& kernel, const Device* device, int draw)
      : call_(call),
        variant_(variant),
        kernel_(kernel),
        stream_(device ? device->new_stream() : std::make_unique<Stream>()),
        state_(kernel.new_state()),
        scratch_(Buffer::allocate(kernel.scratch_bytes() + 64, stream_->memory())) {
    for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
      Tensor plain;
      if (const Tensor* constant = call.constant(slot)) {
        // In another layout a constant comes through a reorder.
        plain = *constant;
        const Layout layout = variant.input(slot);
        memory_.push_back(layout == Layout::row_major ? plain : laid_out(plain, layout));
      } else if (call.has_input(slot)) {
        plain = trial_input(call, slot, draw);
        memory_.push_back(laid_out(plain, variant.input(slot)));
      } else {
        memory_.emplace_back();
      }
      inputs_.push_back({std::move(plain), {}});
      dims_.push_back(call.has_input(slot) ? call.inputs[slot].shape().static_dims() : Dims());
      memory_.back() = memory_.back().to(stream_->memory());
    }
  }

  const std::vector<ScaledTensor>& inputs() const { return inputs_; }

  // Row-major outputs. With `reused` output 0 takes the memory of that input.
  std::vector<Tensor> run(std::optional<uint32_t> reused) {
    std::vector<TensorView> inputs;
    for (size_t slot = 0; slot < memory_.size(); ++slot) inputs.push_back(view(memory_[slot], dims_[slot]));
    std::vector<Dims> dims;
    std::vector<Tensor> memory;
    for (size_t k = 0; k < call_.outputs.size(); ++k) {
      dims.push_back(call_.outputs[k].is_tensor() ? call_.outputs[k].shape().static_dims() : Dims());
      if (k == 0 && reused) {
        // As large as the input, but perhaps of another rank: [2, 8] times [1, 1, 1].
        memory.push_back(memory_[*reused].reshaped(padded_dims(variant_.output(0), dims[0])));
        continue;
      }
      if (!call_.outputs[k].is_tensor()) {
        memory.emplace_back();
        continue;
      }
      const Layout layout = variant_.output(k);
      memory.push_back(Tensor::empty(call_.outputs[k].dtype(), padded_dims(layout, dims[k])));
      // NaN: what the kernel does not write is wrong.
      std::memset(memory[k].mutable_raw(), call_.outputs[k].dtype() == DType::boolean ? 0 : 0xFF,
                  memory[k].size_bytes());
      memory[k] = memory[k].to(stream_->memory());
    }
    std::vector<TensorView> outputs;
    for (size_t k = 0; k < memory.size(); ++k) outputs.push_back(view(memory[k], dims[k]));
    kernel_.run({inputs, outputs, scratch_.data(), state_.get(), stream_.get()});
    stream_->wait();
    std::vector<Tensor> results;
    for (size_t k = 0; k < memory.size(); ++k) {
      results.push_back(memory[k].is_present() ? row_major(memory[k].to_host(), variant_.output(k), dims[k])
                                               : Tensor());
    }
    return results;
  }

  // Inputs whose memory output 0 may have here.
  std::optional<uint32_t> reusable() const {
    for (const uint32_t slot : kernel_.in_place_inputs()) {
      if (call_.constant(slot) || !memory_[slot].is_present() || variant_.input(slot) != variant_.output(0)) continue;
      const size_t bytes = size_of(call_.outputs[0], variant_.output(0));
      if (memory_[slot].size_bytes() == bytes && call_.inputs[slot].dtype() == call_.outputs[0].dtype()) return slot;
    }
    return std::nullopt;
  }

 private:
  static TensorView view(const Tensor& memory, const Dims& dims) {
    return memory.is_present() ? TensorView(memory.dtype(), dims, memory.buffer().data()) : TensorView();
  }

  const KernelCall& call_;
  const KernelVariant& variant_;
  const Kernel& kernel_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<KernelState> state_;
  Buffer scratch_;
  std::vector<ScaledTensor> inputs_;  // row-major
  std::vector<Tensor> memory_;        // as the kernel wants them
  std::vector<Dims> dims_;
};

// While it lives, kernels that the calling thread runs use so many threads at most.
class Team {
 public:
  Team(const HostThreads& host, int threads) : host_(host), before_(host.limit(threads)) {}
  ~Team() { host_.limit(before_); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  const HostThreads& host_;
  const int before_;
};

// Teams that a kernel for `threads` may be left with while other programs keep processors busy, all of them.
std::vector<int> smaller_teams(int threads, const HostThreads& host) {
  std::vector<int> teams;
  if (!host.can_be_limited()) return teams;
  for (int team = threads; team > 1;) teams.push_back(team = thread_step_at_most(team - 1));
  return teams;
}

struct Sample {
  size_t output = 0;
  Selection selection;
  ScaledTensor expected;
};

std::string position(const Selection& selection, int64_t element) {
  std::vector<std::string> at(selection.size());
  for (size_t axis = selection.size(); axis-- > 0;) {
    const auto extent = static_cast<int64_t>(selection[axis].size());
    at[axis] = fmt::format("{}", selection[axis][static_cast<size_t>(element % extent)]);
    element /= extent;
  }
  return "[" + join(at, ",") + "]";
}

std::string compare(const std::vector<Sample>& samples, const std::vector<Tensor>& outputs, const ErrorModel& model,
                    std::string_view how) {
  for (const Sample& sample : samples) {
    const Tensor actual = select(outputs[sample.output], sample.selection);
    const Difference difference =
        compare_values(actual, sample.expected.value, {.rtol = 0, .share = model.epsilon}, sample.expected.scale);
    if (difference.ok) continue;
    return fmt::format("element {} of output {}{}: expected {:.6g}, got {:.6g}",
                       position(sample.selection, difference.first_bad), sample.output, how,
                       sample.expected.value.to_f64()[static_cast<size_t>(difference.first_bad)],
                       actual.to_f64()[static_cast<size_t>(difference.first_bad)]);
  }
  return "";
}

struct Samples {
  std::vector<Sample> list;
  bool are_too_much = false;  // of some output
};

Samples draw_samples(const Graph& graph, const std::vector<ScaledTensor>& inputs, const ErrorModel& model, int draw) {
  Samples samples;
  SampledRun reference(graph, inputs, model);
  std::mt19937_64 random(graph.num_nodes() + (static_cast<uint64_t>(draw) << 32));
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    const ValueId output = graph.outputs()[k];
    const Type& type = graph.type(output);
    if (!type.is_tensor() || type.shape().num_elements().value_or(0) == 0 || type.dtype() == DType::string) continue;
    for (int n = 0; n < kSelections; ++n) {
      auto selection = reference.draw(output, kElements, kUsualWork, random);
      if (!selection && n == 0) selection = reference.draw(output, kElements, kMostWork, random);
      samples.are_too_much = samples.are_too_much || (!selection && n == 0);
      if (!selection) break;
      samples.list.push_back({k, *selection, reference.compute(output, *selection)});
    }
  }
  return samples;
}

// Do these inputs give outputs of the extents that the call has? A shape out of a hat does not.
bool gives_extents(const KernelCall& call, const std::vector<ScaledTensor>& inputs) {
  std::vector<Tensor> tensors;
  for (const ScaledTensor& input : inputs) tensors.push_back(input.value);
  const std::vector<Type> inferred =
      infer_call(call.op, {call.inputs.begin(), call.inputs.end()}, tensors, call.attributes, call.outputs.size(), "");
  const auto is_as_expected = [](const Type& expected, const Type& type) {
    return !expected.is_tensor() || (type.is_static() && type.shape().static_dims() == expected.shape().static_dims());
  };
  return std::equal(call.outputs.begin(), call.outputs.end(), inferred.begin(), is_as_expected);
}

bool can_be_tried(const KernelCall& call) {
  const auto is_plain = [](const Type& type) { return !type.is_tensor() || type.dtype() != DType::string; };
  return std::all_of(call.inputs.begin(), call.inputs.end(), is_plain) &&
         std::all_of(call.outputs.begin(), call.outputs.end(), is_plain);
}

}  // namespace

bool is_small_for_reference(const KernelCall& call) {
  constexpr double kRoom = 8;  // estimates are rough
  return cost_of_scaled_run(graph_of(call)).flops <= kMostWork / kRoom;
}

std::optional<std::string> find_wrong_element(const KernelCall& call, const KernelVariant& variant,
                                              const Kernel& kernel, const ErrorModel& model, const Device* device,
                                              int draw) {
  if (!can_be_tried(call)) return "";
  TrialRun trial(call, variant, kernel, device, draw);
  Samples samples;
  try {
    if (!gives_extents(call, trial.inputs())) return "";
    samples = draw_samples(graph_of(call), trial.inputs(), model, draw);
  } catch (const UserError&) {
    return "";  // inputs out of a hat are none for this op
  }
  if (samples.list.empty()) return samples.are_too_much ? std::nullopt : std::optional<std::string>("");
  const HostThreads& host = device ? device->host_threads() : HostThreads::none();
  // The thread that compiles may have been limited by a run before.
  const Team whole(host, call.threads);
  std::string wrong = compare(samples.list, trial.run(std::nullopt), model, "");
  for (const int threads : smaller_teams(call.threads, host)) {
    if (!wrong.empty()) break;
    const Team team(host, threads);
    wrong = compare(samples.list, trial.run(std::nullopt), model,
                    fmt::format(" (by {} of {} threads)", threads, call.threads));
  }
  const auto reused = trial.reusable();
  if (wrong.empty() && reused) wrong = compare(samples.list, trial.run(reused), model, " (computed in place)");
  return wrong;
}

}  // namespace autograph
