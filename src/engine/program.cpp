// Executable: what users hold of a compiled graph.
#include <algorithm>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "engine/executable.h"

namespace autograph {
namespace {

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId input : graph.inputs()) names.push_back(graph.value(input).name());
  return names;
}

std::shared_ptr<const std::vector<std::string>> output_names(const Graph& graph) {
  auto names = std::make_shared<std::vector<std::string>>();
  for (size_t k = 0; k < graph.outputs().size(); ++k) names->push_back(graph.output_name(k));
  return names;
}

// In the order of the graph's inputs.
std::vector<Datum> in_order(const Graph& graph, std::span<const NamedInput> given) {
  const std::vector<std::string> names = input_names(graph);
  std::vector<Datum> inputs(names.size());
  std::vector<bool> is_given(names.size(), false);
  for (const auto& [name, datum] : given) {
    const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    AG_CHECK_USER(at < names.size(), ValueError, "[run] input '{}': the graph has none of this name{}; its inputs: {}",
                  printable(name), did_you_mean(name, names), printable(join(names, ", ")));
    AG_CHECK_USER(!is_given[at], ValueError, "[run] input '{}': given twice", printable(name));
    is_given[at] = true;
    inputs[at] = datum;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    AG_CHECK_USER(is_given[i], ValueError, "[run] input '{}' of type {}: not given", printable(names[i]),
                  printable(to_string(graph.type(graph.inputs()[i]))));
  }
  return inputs;
}

}  // namespace

const Tensor& Outputs::operator[](std::string_view name) const {
  static const std::vector<std::string> none;
  const std::vector<std::string>& names = names_ ? *names_ : none;
  const auto at = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  AG_CHECK_USER(at < size(), ValueError, "[run] output '{}': the graph has none of this name{}; its outputs: {}",
                printable(name), did_you_mean(name, names), printable(join(names, ", ")));
  return (*this)[at].tensor();
}

Executable::Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;
Executable::Executable(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)), output_names_(output_names(impl_->graph())) {}

Executable::Impl& Executable::impl() const {
  AG_CHECK_USER(impl_, ValueError, "[run] executable: empty (made without a graph, or moved from); use what {} gave",
                "compile()");
  return *impl_;
}

Outputs Executable::run(const std::vector<Datum>& inputs) const {
  return {impl().run(RunInputs(inputs), nullptr), output_names_};
}

Outputs Executable::run(std::initializer_list<NamedInput> inputs) const {
  return run(std::span<const NamedInput>(inputs.begin(), inputs.size()));
}

Outputs Executable::run(std::span<const NamedInput> inputs) const { return run(in_order(graph(), inputs)); }

void Executable::run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) const {
  impl().run_into(RunInputs(inputs), outputs);
}

const Graph& Executable::graph() const { return impl().graph(); }
const StateStore& Executable::states() const { return impl().states(); }

MemoryReport Executable::memory() const {
  const auto plan = impl().current_plan();
  return plan ? plan->memory : MemoryReport();
}

std::vector<PeakTensor> Executable::memory_at_peak() const {
  const auto plan = impl().current_plan();
  return plan ? tensors_at_peak(*plan) : std::vector<PeakTensor>();
}

std::vector<KernelChoice> Executable::kernel_choices() const {
  const auto plan = impl().current_plan();
  return plan ? plan->choices : std::vector<KernelChoice>();
}

KernelTimes Executable::kernel_times() const { return impl().kernel_times(); }

std::vector<StepProfile> Executable::profile() const { return impl().profile(); }

CompileReport Executable::compile_report() const { return impl().report(); }

std::string Executable::print_plan() const {
  const auto plan = impl().current_plan();
  return plan ? autograph::print_plan(plan->plan, *plan->graph) : "plan: none yet (it is made for the first inputs)\n";
}

std::optional<double> Executable::simulated_latency_ms() const { return impl().simulated_latency_ms(); }

const Schedule& Executable::schedule() const { return impl().schedule(); }

int Executable::threads() const { return impl().threads(); }
int Executable::threads_now() const { return impl().threads_now(); }

}  // namespace autograph
