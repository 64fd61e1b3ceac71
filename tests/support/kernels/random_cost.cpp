#include "support/kernels/random_cost.h"

#include "autograph/devices.h"
#include "autograph/verify.h"
#include "engine/executable.h"
#include "runtime/run_context.h"

namespace autograph {

std::vector<double> RandomCost::candidates_us(const KernelCatalog&, const KernelCall&,
                                              std::span<const KernelCandidate> candidates) {
  std::vector<double> costs;
  for (size_t i = 0; i < candidates.size(); ++i) costs.push_back(draw_cost());
  return costs;
}

double RandomCost::reorder_us(const KernelCatalog&, const ReorderCall&) { return draw_cost() / 4; }

std::vector<Datum> run_with_costs(const Graph& source, const std::vector<Tensor>& inputs, KernelCost& cost,
                                  std::string& plan_text) {
  const Device& device = get_device("cpu");
  Graph graph = prepare_graph(source, device, {});
  const KnownValues known = infer_types(graph);
  const auto compiled = compile_plan(std::make_shared<const Graph>(std::move(graph)), known,
                                     {.catalog = device.catalog(), .cost = &cost});
  plan_text = print_plan(compiled->plan, *compiled->graph);
  RunContext context(compiled);
  for (size_t k = 0; k < inputs.size(); ++k) context.bind_input(k, inputs[k]);
  std::vector<Datum> outputs;
  for (size_t k = 0; k < compiled->plan.outputs.size(); ++k) {
    const SlotIndex slot = compiled->plan.outputs[k].slot;
    Tensor out = Tensor::empty(DType::f32, compiled->slot_dims[slot]);
    context.bind_output(k, out.mutable_raw());
    outputs.emplace_back(std::move(out));
  }
  const RunOptions options{.catalog = device.catalog(), .run_nested = nullptr};
  // Twice: what a run leaves behind in the arena must not matter to the next.
  context.launch(options, nullptr);
  context.launch(options, nullptr);
  return outputs;
}

}  // namespace autograph
