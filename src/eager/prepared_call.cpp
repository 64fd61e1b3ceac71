#include "eager/prepared_call.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "autograph/cpu_count.h"
#include "base/check.h"
#include "base/join.h"
#include "eager/origin.h"
#include "eager/tape/tape.h"
#include "engine/thread_scope.h"
#include "graph/schema.h"
#include "ops/shape/strided_parts.h"

namespace autograph {
namespace {

// Calls with less work than this are over before a team of threads has begun.
constexpr double kManyFlops = 2e6;
constexpr double kManyBytes = 512 << 10;

// Runs infer with all elements known, and remembers which were asked for.
class AskedInfer final : public InferContext {
 public:
  AskedInfer(const OpDef& op, const Attributes& attributes, std::span<const Var> inputs, size_t num_outputs,
             const std::string& where)
      : inputs_(inputs), asked_(inputs.size(), false) {
    op_ = &op;
    attributes_ = &attributes;
    where_ = where;
    for (const Var& input : inputs) input_types_.push_back(input.is_valid() ? input.type() : Type());
    output_types_.resize(num_outputs);
  }

  const Tensor* known_value(size_t slot) const override {
    if (slot >= inputs_.size() || !inputs_[slot].is_valid() || !input_types_[slot].is_tensor()) return nullptr;
    asked_[slot] = true;
    return inputs_[slot].known();
  }

  std::vector<Type> run() {
    op_->infer(*this);
    for (size_t slot = 0; slot < output_types_.size(); ++slot) {
      AG_CHECK(output_types_[slot].kind() != Type::Kind::none, "[{}] infer left output {} without a type", op_->name,
               slot);
    }
    check_dtypes(*op_, input_types_, output_types_, where_);
    return std::move(output_types_);
  }

  std::vector<size_t> asked() const {
    std::vector<size_t> slots;
    for (size_t slot = 0; slot < asked_.size(); ++slot) {
      if (asked_[slot]) slots.push_back(slot);
    }
    return slots;
  }

 private:
  std::span<const Var> inputs_;
  mutable std::vector<bool> asked_;
};

void check_arguments(const OpDef& op, std::span<const Var> inputs, const std::string& where) {
  Graph graph;
  std::vector<ValueId> ids;
  for (const Var& input : inputs) ids.push_back(input.is_valid() ? graph.add_input(input.type()) : ValueId{});
  check_inputs(op, graph, ids, where);
}

// Numbers that no other call has: what random ops tell their calls apart by.
void give_unique_ids(const OpDef& op, Attributes& attributes) {
  static std::atomic<int64_t> next{0};
  constexpr int64_t kMask = (int64_t{1} << 32) - 1;
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.unique && !attributes.contains(spec.name)) attributes.set(spec.name, next++ & kMask);
  }
}

bool are_static(const std::vector<Type>& types) {
  return std::all_of(types.begin(), types.end(), [](const Type& type) { return type.is_static(); });
}

const Eager& eager_input(const Var& input) { return static_cast<const Eager&>(input.eager()); }

// As many views as fit stand on the stack.
class Views {
 public:
  explicit Views(size_t count) : count_(count) {
    if (count > few_.size()) many_.resize(count);
  }
  TensorView& operator[](size_t i) { return count_ > few_.size() ? many_[i] : few_[i]; }
  std::span<const TensorView> all() const { return {count_ > few_.size() ? many_.data() : few_.data(), count_}; }

 private:
  size_t count_;
  std::array<TensorView, 6> few_;
  std::vector<TensorView> many_;
};

}  // namespace

PreparedCall::PreparedCall(const CallRequest& request)
    : device_(request.device), threads_(request.threads > 0 ? request.threads : usable_cpu_count()) {
  op = &request.op;
  name = request.op.name;
  attributes = request.attributes;
  const std::shared_ptr<const Origin> origin = current_origin();
  const std::string where = origin ? describe_origin(name, origin.get()) : "";
  give_unique_ids(request.op, attributes);
  complete_attributes(request.op, attributes, where);
  check_arguments(request.op, request.inputs, where);
  const size_t count = resolve_num_outputs(request.op, request.num_outputs, where);
  AskedInfer infer(request.op, attributes, request.inputs, count, where);
  output_types = infer.run();
  value_slots_ = infer.asked();
  for (const Var& input : request.inputs) input_types_.push_back(input.is_valid() ? input.type() : Type());
  if (op->evaluate) {
    make_program(request);
    return;
  }
  AG_CHECK(are_static(output_types), "[{}] infer gave unknown extents although all inputs are known", name);
  for (const Type& type : output_types) output_dims_.push_back(type.shape().static_dims());
  const auto starts = starts_of_views(request);
  starts_ = starts.value_or(std::vector<int64_t>());
  const bool has_body_alone = !op->scalar && !op->reference && op->decompose;
  if (starts)
    way_ = Way::view;
  else if (has_body_alone &&
           !device_.catalog().accepts({*op, attributes, input_types_, output_types, constants_of(request), threads_}))
    way_ = Way::body;
  else
    choose_kernel(request);
}

std::optional<std::vector<int64_t>> PreparedCall::starts_of_views(const CallRequest& request) const {
  std::vector<TensorView> from, to;
  for (const Var& input : request.inputs) {
    if (input.is_valid() && !input.type().is_tensor()) return std::nullopt;
    from.push_back(input.is_valid() ? eager_input(input).tensor().view() : TensorView());
  }
  for (size_t k = 0; k < output_dims_.size(); ++k) {
    to.emplace_back(output_types[k].dtype(), output_dims_[k], nullptr);
  }
  return starts_in_input(*op, {attributes, from, to});
}

std::vector<Datum> PreparedCall::views_of(const Tensor& whole) const {
  std::vector<Datum> views;
  for (size_t k = 0; k < starts_.size(); ++k) views.emplace_back(whole.part(starts_[k], output_dims_[k]));
  return views;
}

std::vector<Tensor> PreparedCall::constants_of(const CallRequest& request) const {
  std::vector<Tensor> constants(request.inputs.size());
  for (const size_t slot : value_slots_) constants[slot] = eager_input(request.inputs[slot]).tensor();
  return constants;
}

void PreparedCall::choose_kernel(const CallRequest& request) {
  const std::vector<Tensor> constants = constants_of(request);
  const OpCost cost = cost_of(*op, {attributes, input_types_, output_types});
  if (cost.flops < kManyFlops && cost.bytes < kManyBytes) threads_ = 1;
  const ThreadScope threads(device_, threads_);
  KernelSelection selection =
      device_.catalog().select({*op, attributes, input_types_, output_types, constants, threads_});
  AG_CHECK_USER(selection.kernel, UnsupportedError, "[eager] kernels: none for {} on {} ({})", name, device_.name(),
                join(selection.refusals, "; "));
  kernel_ = std::move(selection.kernel);
  state_ = kernel_->new_state();
  scratch_ = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel_->scratch_bytes())});
}

void PreparedCall::make_program(const CallRequest& request) {
  way_ = Way::program;
  Graph graph{std::string(name)};
  std::vector<ValueId> ids;
  for (size_t slot = 0; slot < request.inputs.size(); ++slot) {
    const Var& input = request.inputs[slot];
    const bool is_known = std::find(value_slots_.begin(), value_slots_.end(), slot) != value_slots_.end();
    if (!input.is_valid()) {
      ids.emplace_back();
    } else if (is_known) {
      ids.push_back(graph.add_constant(eager_input(input).tensor()));
    } else {
      ids.push_back(graph.add_input(input.type()));
      program_inputs_.push_back(slot);
    }
  }
  const NodeId node = graph.add_node(*op, std::move(ids), attributes,
                                     {.provenance = {}, .num_outputs = static_cast<int>(output_types.size())});
  for (const ValueId output : std::vector<ValueId>(graph.node(node).outputs())) graph.add_output(output);
  CompileOptions options;
  options.device = device_.name();
  options.threads = threads_;
  options.expert.use_passes = false;
  program_ = compile(std::move(graph), options);
}

CallResult PreparedCall::run(std::span<const Var> inputs) {
  switch (way_) {
    case Way::program: return run_program(inputs);
    case Way::view: return {shared_from_this(), views_of(eager_input(inputs[0]).tensor())};
    case Way::kernel: return {shared_from_this(), run_kernel(inputs)};
    case Way::body: break;
  }
  throw InternalError(fmt::format("[{}] has nothing but its body to be computed by", name));
}

std::vector<Datum> PreparedCall::run_kernel(std::span<const Var> inputs) {
  Views from(inputs.size()), to(output_types.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_valid()) from[i] = eager_input(inputs[i]).tensor().view();
  }
  std::vector<Datum> outputs;
  outputs.reserve(output_types.size());
  for (size_t k = 0; k < output_types.size(); ++k) {
    outputs.emplace_back(Tensor::empty(output_types[k].dtype(), output_dims_[k]));
    to[k] = outputs[k].tensor().view();
  }
  const ThreadScope threads(device_, threads_);
  kernel_->run({from.all(), to.all(), scratch_.mutable_raw(), state_.get()});
  return outputs;
}

CallResult PreparedCall::run_program(std::span<const Var> inputs) {
  std::vector<Datum> given;
  for (const size_t slot : program_inputs_) given.push_back(eager_input(inputs[slot]).datum());
  std::vector<Datum> outputs = program_->run(given);
  if (are_static(output_types)) return {shared_from_this(), std::move(outputs)};
  auto info = std::make_shared<CallInfo>(static_cast<const CallInfo&>(*this));
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (info->output_types[k].is_tensor()) info->output_types[k] = outputs[k].tensor().type();
  }
  return {std::move(info), std::move(outputs)};
}

}  // namespace autograph
