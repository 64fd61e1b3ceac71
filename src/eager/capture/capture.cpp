// Captured functions: graphs by what they were captured for.
#include "autograph/capture.h"

#include <algorithm>
#include <list>
#include <map>

#include "base/check.h"
#include "base/join.h"
#include "eager/capture/capture_recording.h"
#include "eager/capture/extent_history.h"
#include "eager/capture/graph_call.h"
#include "eager/modes.h"

namespace autograph {
namespace {

/// A graph, and what must hold for a call to be one of it.
struct CapturedGraph {
  std::shared_ptr<GraphCall> call;
  std::vector<Type> inputs;  // with symbols
  size_t num_results = 0;
  std::vector<CapturedRead> reads;
  std::vector<Type> read_types;
  std::vector<std::vector<SharedHook>> read_hooks;  // those of what is read
  std::vector<CapturedWrite> writes;
  std::vector<CapturedGradient> gradients;
  std::vector<CapturedSetting> settings;
  int64_t calls = 0;
  uint64_t last_use = 0;
  std::string reason;  // why it was captured
};

Var current(const CapturedRead& read) {
  return read.is_gradient ? read.value->as_variable().gradient : Var(read.value);
}

// Why a call with this input is none of a graph that was captured for `expected`; "" where it is. `bound` has the
// extents of symbols so far.
std::string misfit(const Type& expected, const Type& got, std::map<std::string, int64_t>& bound) {
  const auto both = [&] { return fmt::format("{}, captured for {}", to_string(got), to_string(expected)); };
  if (!expected.is_tensor() || !got.is_tensor()) return expected == got ? "" : both();
  if (expected.dtype() != got.dtype() || expected.shape().rank() != got.shape().rank()) return both();
  for (int64_t axis = 0; axis < got.shape().rank(); ++axis) {
    const Dim& dim = expected.shape()[axis];
    const int64_t extent = got.shape()[axis].value();
    if (dim.is_known() ? dim.value() != extent
                       : bound.try_emplace(std::string(dim.name()), extent).first->second != extent) {
      return both();
    }
  }
  return "";
}

std::string misfit(const CapturedGraph& graph, const std::vector<Var>& inputs) {
  if (graph.inputs.size() != inputs.size()) {
    return fmt::format("{} inputs, captured for {}", inputs.size(), graph.inputs.size());
  }
  std::map<std::string, int64_t> bound;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string reason = misfit(graph.inputs[i], inputs[i].type(), bound);
    if (!reason.empty()) return fmt::format("input {} is {}", i, reason);
  }
  for (const CapturedGradient& gradient : graph.gradients) {
    if (gradient.variable->as_variable().gradient.is_valid() != gradient.was_there) {
      return fmt::format("a variable ({}) has {} gradient, unlike when it was captured",
                         to_string(gradient.variable->type()), gradient.was_there ? "no" : "a");
    }
  }
  for (const CapturedSetting& setting : graph.settings) {
    if (*setting.is_on != setting.was_on) {
      return fmt::format("{} is {}, captured with it {}", setting.what, setting.was_on ? "off" : "on",
                         setting.was_on ? "on" : "off");
    }
  }
  for (size_t i = 0; i < graph.reads.size(); ++i) {
    const Type& now = current(graph.reads[i]).type();
    if (!(now == graph.read_types[i])) {
      return fmt::format("a value from outside is {}, captured for {}", to_string(now), to_string(graph.read_types[i]));
    }
    if (const auto hooks = graph.reads[i].value->hooks(); hooks != graph.read_hooks[i]) {
      return fmt::format("a value from outside ({}) has {} hooks{}, captured with {}", to_string(now), hooks.size(),
                         hooks.size() == graph.read_hooks[i].size() ? " but others" : "", graph.read_hooks[i].size());
    }
  }
  return "";
}

}  // namespace

class Captured::Impl {
 public:
  Impl(EagerFunction function, CaptureOptions options) : function_(std::move(function)), options_(std::move(options)) {
    AG_CHECK_USER(function_, ValueError, "[capture] function: expected one, got none");
    AG_CHECK_USER(options_.max_graphs > 0, ValueError, "[capture] max_graphs: expected 1 or more, got 0");
    options_.compile.states = std::nullopt;
    options_.compile.donations.clear();
  }

  std::vector<Var> call(const std::vector<Var>& inputs) {
    if (modes().capture) return function_(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      AG_CHECK_USER(inputs[i].is_eager(), ValueError, "[capture] input {}: expected an eager value, got {}", i,
                    inputs[i].is_valid() ? to_string(inputs[i].type()) + " of a graph" : "none");
    }
    std::string reason = graphs_.empty() ? "the first call" : "";
    for (CapturedGraph& graph : graphs_) {
      const std::string why_not = misfit(graph, inputs);
      if (why_not.empty()) return run(graph, inputs);
      if (graph.last_use == clock_) reason = why_not;
    }
    return run(add(inputs, reason), inputs);
  }

  std::string explain() const {
    std::string text = fmt::format("{} calls, captured {} times\n", calls_, captures_);
    for (const std::string& line : log_) text += line + "\n";
    for (const CapturedGraph& graph : graphs_) {
      std::vector<std::string> types;
      for (const Type& type : graph.inputs) types.push_back(to_string(type));
      const auto& settings = graph.settings;
      const auto num_on = std::count_if(settings.begin(), settings.end(), [](const auto& each) { return each.was_on; });
      text += fmt::format(
          "graph for ({}), {} settings on and {} off: {} nodes, reads {} values from outside, changes {}, {} calls; "
          "captured because of {}\n",
          join(types, ", "), num_on, std::ssize(settings) - num_on, graph.call->graph().num_nodes(), graph.reads.size(),
          graph.writes.size(), graph.calls, graph.reason);
    }
    return text;
  }

  int num_captures() const { return captures_; }

  Graph model() const {
    AG_CHECK_USER(clock_ > 0, ValueError, "[capture] graph: expected a call before");
    const auto last = std::find_if(graphs_.begin(), graphs_.end(),
                                   [this](const CapturedGraph& graph) { return graph.last_use == clock_; });
    Graph model = last->call->graph();
    const std::vector<ValueId> inputs = model.inputs();
    for (size_t i = 0; i < last->reads.size(); ++i) {
      const ValueId input = inputs[last->inputs.size() + i];
      const Tensor& now = static_cast<const Eager&>(current(last->reads[i]).eager()).tensor();
      model.replace_uses(input, model.add_constant(now, model.value(input).name()));
      model.erase_value(input);
    }
    return model;
  }

 private:
  std::vector<Var> run(CapturedGraph& graph, const std::vector<Var>& inputs) {
    ++calls_;
    ++graph.calls;
    graph.last_use = ++clock_;
    std::vector<Var> given = inputs;
    for (const CapturedRead& read : graph.reads) given.push_back(current(read));
    std::vector<Var> results = graph.call->run(given, graph.num_results);
    size_t next = graph.num_results;
    for (const CapturedWrite& write : graph.writes) {
      const Var value = write.value.is_valid() ? results[next++] : Var();
      if (write.is_gradient)
        write.variable->as_variable().gradient = value;
      else
        write.variable->set_tensor(static_cast<const Eager&>(value.eager()).tensor());
    }
    results.resize(graph.num_results);
    return results;
  }

  CapturedGraph& add(const std::vector<Var>& inputs, const std::string& reason) {
    std::vector<Type> types;
    for (const Var& input : inputs) types.push_back(input.type());
    history_.add(types);
    const std::string symbols = options_.symbolic ? history_.describe_symbols() : "";
    CapturedGraph graph;
    if (!symbols.empty()) {
      try {
        graph = capture(history_.types());
        graph.reason = fmt::format("{}; three extents or more: {} made symbolic", reason, symbols);
      } catch (const Error& error) {
        log_.push_back(fmt::format("not with {} made symbolic: {}", symbols, error.what()));
      }
    }
    if (!graph.call) {
      graph = capture(types);
      graph.reason = reason;
    }
    ++captures_;
    while (graphs_.size() >= options_.max_graphs) {
      const auto oldest = std::min_element(graphs_.begin(), graphs_.end(),
                                           [](const auto& a, const auto& b) { return a.last_use < b.last_use; });
      if (log_.size() < kLogLines) {
        log_.push_back(fmt::format("a graph was dropped for a newer one after {} calls (max_graphs is {})",
                                   oldest->calls, options_.max_graphs));
      }
      graphs_.erase(oldest);
    }
    return graphs_.emplace_back(std::move(graph));
  }

  CapturedGraph capture(const std::vector<Type>& types) const {
    CapturedGraph graph;
    graph.inputs = types;
    CaptureRecording recording;
    std::vector<Var> inputs;
    for (size_t i = 0; i < types.size(); ++i) {
      inputs.emplace_back(recording.root(), recording.root().add_input(types[i], fmt::format("input{}", i)));
    }
    const std::vector<Var> results = function_(inputs);
    recording.finish(results);
    graph.num_results = results.size();
    graph.reads = recording.reads();
    for (const CapturedRead& read : graph.reads) {
      graph.read_types.push_back(current(read).type());
      graph.read_hooks.push_back(read.value->hooks());
    }
    graph.writes = recording.writes();
    graph.gradients = recording.gradients();
    graph.settings = recording.settings();
    graph.call = std::make_shared<GraphCall>(recording.root(), options_.compile);
    return graph;
  }

  static constexpr size_t kLogLines = 100;

  EagerFunction function_;
  CaptureOptions options_;
  std::list<CapturedGraph> graphs_;
  ExtentHistory history_;
  std::vector<std::string> log_;
  int captures_ = 0;
  int64_t calls_ = 0;
  uint64_t clock_ = 0;
};

Captured::Captured(EagerFunction function, CaptureOptions options)
    : impl_(std::make_unique<Impl>(std::move(function), std::move(options))) {}
Captured::Captured(Captured&&) noexcept = default;
Captured& Captured::operator=(Captured&&) noexcept = default;
Captured::~Captured() = default;

std::vector<Var> Captured::operator()(const std::vector<Var>& inputs) { return impl_->call(inputs); }
std::string Captured::explain() const { return impl_->explain(); }
int Captured::num_captures() const { return impl_->num_captures(); }
Graph Captured::graph() const { return impl_->model(); }

Captured capture(EagerFunction function, CaptureOptions options) { return {std::move(function), std::move(options)}; }

}  // namespace autograph
