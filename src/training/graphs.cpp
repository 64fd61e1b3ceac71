// From modules and imported models to the two graphs of a run.
#include <algorithm>
#include <utility>

#include "autograph/nn/losses.h"
#include "autograph/ops/shape.h"
#include "autograph/trainer.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/join.h"
#include "training/averages.h"

namespace autograph {
namespace {

std::map<std::string, Var> add_fields(GraphBuilder& graph, const std::vector<Field>& fields, const Dim& batch) {
  std::map<std::string, Var> values;
  for (const Field& field : fields) {
    std::vector<Dim> dims{batch};
    dims.insert(dims.end(), field.dims.begin(), field.dims.end());
    values[field.name] = graph.input(field.name, field.dtype, Shape(dims));
  }
  return values;
}

// A number where all batches are equally large: plans of known shapes are made once.
Dim batch_of(const DataLoader& loader) {
  const LoaderOptions& options = loader.options();
  const bool all_alike = options.drop_last || loader.samples_per_epoch() % options.batch_size == 0;
  return all_alike ? Dim(options.batch_size) : Dim::symbol("batch");
}

void add_outputs(GraphBuilder& graph, const BatchLoss& result) {
  graph.output("loss", result.loss);
  for (const auto& [name, value] : result.metrics) graph.output(name, value);
}

const Var& field_of(const std::map<std::string, Var>& fields, const std::string& name) {
  const auto found = fields.find(name);
  std::vector<std::string> names;
  for (const auto& [key, value] : fields) names.push_back(key);
  AG_CHECK_USER(found != fields.end(), ValueError, "[train] data: expected a field '{}', got {}", name,
                join(names, ", "));
  return found->second;
}

// "" where there is none.
std::string target_of(const std::vector<Field>& fields) {
  for (const char* name : {"label", "target"}) {
    if (std::any_of(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; })) return name;
  }
  return "";
}

// The field for the one input of an imported model.
std::string input_of(const std::vector<Field>& fields, const std::string& target) {
  std::vector<std::string> names;
  for (const Field& field : fields) {
    if (field.name != target) names.push_back(field.name);
  }
  AG_CHECK_USER(names.size() == 1, ValueError, "[train] data: expected one field{}, got {}",
                target.empty() ? "" : " besides \"" + target + "\"", names.empty() ? "none" : join(names, ", "));
  return names.front();
}

// Files are often for one sample at a time: the first extent of all inputs becomes the batch.
Graph with_batch(const Graph& model, const Dim& batch) {
  Graph graph = model;
  bool is_changed = false;
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.type(id);
    if (!type.is_tensor() || !type.shape().has_rank() || type.shape().rank() == 0) continue;
    Shape shape = type.shape();
    is_changed = is_changed || !(shape[0] == batch);
    shape[0] = batch;
    graph.set_type(id, Type(type.dtype(), shape));
  }
  if (is_changed) infer_types(graph);
  return graph;
}

// Labels that were mixed are probabilities of classes.
TrainingOptions for_labels(TrainingOptions options, const std::vector<Field>& fields) {
  const std::string target = target_of(fields);
  const bool is_soft = std::any_of(fields.begin(), fields.end(), [&](const Field& field) {
    return field.name == target && field.dtype == DType::f32 && field.dims.size() == 1;
  });
  if (is_soft && options.loss == "cross_entropy") options.loss = "soft_cross_entropy";
  return options;
}

// The one input of the model and the target, where the loss has one, under the names of the data.
Graph with_fields(Graph graph, const Graph& model, const std::vector<Field>& fields) {
  const std::string target = target_of(fields);
  const bool has_target = graph.inputs().size() > model.inputs().size();
  AG_CHECK_USER(!has_target || !target.empty(), ValueError,
                "[train] data: expected a field \"label\" or \"target\", got none");
  AG_CHECK_USER(model.inputs().size() == 1, ValueError,
                "[train] model: expected one input, got {} (models of several need a loop of their own)",
                model.inputs().size());
  graph.set_value_name(graph.inputs()[0], input_of(fields, target));
  if (has_target) graph.set_value_name(graph.inputs()[1], target);
  return graph;
}

}  // namespace

TrainingGraphs training_graphs(nn::Module& module, const DataLoader& loader, const LossFunction& loss,
                               const Optimizer& optimizer, const UpdateOptions& options) {
  GraphBuilder evaluation("evaluation");
  module.eval();
  add_outputs(evaluation, loss(add_fields(evaluation, loader.dataset()->fields(), Dim::symbol("batch"))));
  GraphBuilder step("step");
  module.train();
  const BatchLoss result = loss(add_fields(step, loader.fields(), batch_of(loader)));
  add_outputs(step, result);
  nn::minimize(result.loss, module, optimizer, options);
  return evaluated_by_averages({step.build(), evaluation.build()});
}

TrainingGraphs training_graphs(const Graph& model, const DataLoader& loader, const TrainingOptions& options) {
  const Graph of_step = with_batch(model, batch_of(loader));
  const std::vector<Field>& mixed = loader.fields();
  return evaluated_by_averages({with_fields(training_graph(of_step, for_labels(options, mixed)), model, mixed),
                                evaluation_graph(model, loader, options)});
}

Graph evaluation_graph(const Graph& model, const DataLoader& loader, const TrainingOptions& options) {
  const Graph of_any = with_batch(model, Dim::symbol("batch"));
  const std::vector<Field>& kept = loader.dataset()->fields();
  return with_fields(evaluation_graph(of_any, for_labels(options, kept)), model, kept);
}

LossFunction classification(nn::Module& module, std::string input, std::string target, double label_smoothing) {
  return [&module, input = std::move(input), target = std::move(target),
          label_smoothing](const std::map<std::string, Var>& fields) -> BatchLoss {
    const Var scores = module(field_of(fields, input));
    const Var& labels = field_of(fields, target);
    // What is held out is judged without smoothing. Labels may be probabilities, as Mixup makes them.
    const double smoothing = module.is_training() ? label_smoothing : 0;
    return {nn::cross_entropy(scores, labels, {.label_smoothing = smoothing}),
            {{"accuracy", nn::accuracy(scores, labels)}}};
  };
}

LossFunction next_token(nn::Module& module, std::string input, std::string target) {
  return [&module, input = std::move(input),
          target = std::move(target)](const std::map<std::string, Var>& fields) -> BatchLoss {
    const Var scores = module(field_of(fields, input));
    const Var flat = reshape(scores, {-1, scores.dim(-1)}), labels = reshape(field_of(fields, target), {-1});
    return {nn::cross_entropy(flat, labels), {{"accuracy", nn::accuracy(flat, labels)}}};
  };
}

}  // namespace autograph
