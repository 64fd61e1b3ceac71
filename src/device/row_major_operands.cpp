#include "device/row_major_operands.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_size.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// The planes of pictures are interleaved, or taken apart, as fast as they are copied.
bool is_interleaving(const ReorderCall& call) {
  constexpr int64_t kMostPlanes = 4;
  const bool keeps_rows = (call.from == Layout::row_major && call.to == Layout::channels_last) ||
                          (call.from == Layout::channels_last && call.to == Layout::row_major);
  const auto& dims = call.type.shape().dims();
  return keeps_rows && dims.size() > 1 && dims[1].is_known() && dims[1].value() <= kMostPlanes;
}

bool is_reordered(const Type& type, Layout layout) {
  return type.is_tensor() && layout != Layout::row_major &&
         !is_same_order(Layout::row_major, layout, type.shape().static_dims());
}

// Calls act(reorder, slot, is an input) for each operand in another layout.
template <class Act>
void for_reorders(const KernelCall& call, const KernelVariant& variant, const Act& act) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Layout layout = variant.input(i);
    if (is_reordered(call.inputs[i], layout)) {
      act(ReorderCall{call.inputs[i], Layout::row_major, layout, call.threads}, i, true);
    }
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const Layout layout = variant.output(i);
    if (is_reordered(call.outputs[i], layout)) {
      act(ReorderCall{call.outputs[i], layout, Layout::row_major, call.threads}, i, false);
    }
  }
}

// An operand that has another layout, and where it lies then.
struct Reordered {
  size_t slot;
  std::unique_ptr<Kernel> kernel;
  size_t place;  // in the scratch memory
};

class ReorderingKernel : public Kernel {
 public:
  ReorderingKernel(std::unique_ptr<Kernel> kernel, std::vector<Reordered> inputs, std::vector<Reordered> outputs,
                   size_t scratch_bytes)
      : kernel_(std::move(kernel)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        scratch_bytes_(scratch_bytes) {}

  size_t scratch_bytes() const override { return scratch_bytes_; }
  size_t weight_bytes() const override { return kernel_->weight_bytes(); }
  bool reads_input(size_t slot) const override { return kernel_->reads_input(slot); }
  std::unique_ptr<KernelState> new_state() const override { return std::make_unique<State>(*this); }

  void run(const KernelArgs& args) const override {
    auto* const memory = static_cast<char*>(args.scratch);
    std::vector<TensorView> inputs(args.inputs.begin(), args.inputs.end());
    std::vector<TensorView> outputs(args.outputs.begin(), args.outputs.end());
    const auto placed = [&](const Reordered& operand, const TensorView& view) {
      return TensorView(view.dtype(), view.dims(), memory + operand.place);
    };
    auto* const state = static_cast<State*>(args.state);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      TensorView& view = inputs[inputs_[i].slot];
      const TensorView there = placed(inputs_[i], view);
      reorder(inputs_[i], view, there, args, state->inputs[i].get());
      view = there;
    }
    for (const Reordered& operand : outputs_) outputs[operand.slot] = placed(operand, outputs[operand.slot]);
    KernelArgs inner = args;
    inner.inputs = inputs;
    inner.outputs = outputs;
    inner.state = state->kernel.get();
    kernel_->run(inner);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const size_t slot = outputs_[i].slot;
      reorder(outputs_[i], outputs[slot], args.outputs[slot], args, state->outputs[i].get());
    }
  }

 private:
  struct State : KernelState {
    explicit State(const ReorderingKernel& of) : kernel(of.kernel_->new_state()) {
      for (const Reordered& operand : of.inputs_) inputs.push_back(operand.kernel->new_state());
      for (const Reordered& operand : of.outputs_) outputs.push_back(operand.kernel->new_state());
    }

    std::unique_ptr<KernelState> kernel;
    std::vector<std::unique_ptr<KernelState>> inputs, outputs;  // of the reorders
  };

  // The kernel's own scratch memory is nobody's before and after it runs.
  static void reorder(const Reordered& operand, const TensorView& from, const TensorView& to, const KernelArgs& args,
                      KernelState* state) {
    operand.kernel->run({{&from, 1}, {&to, 1}, args.scratch, state, args.stream});
  }

  std::unique_ptr<Kernel> kernel_;
  std::vector<Reordered> inputs_, outputs_;
  size_t scratch_bytes_;
};

}  // namespace

double estimated_reorder_us(const ReorderCall& call) {
  // Reading and writing at the speed of a shared cache, and a start.
  constexpr double kBytesPerUs = 6e3, kInterleavedBytesPerUs = 12e3;
  constexpr double kStartUs = 3;
  const double bytes =
      static_cast<double>(size_of(call.type, call.from)) + static_cast<double>(size_of(call.type, call.to));
  return kStartUs + bytes / (is_interleaving(call) ? kInterleavedBytesPerUs : kBytesPerUs) / call.threads;
}

double estimated_reorders_us(const KernelCall& call, const KernelVariant& variant) {
  double us = 0;
  for_reorders(call, variant, [&](const ReorderCall& reorder, size_t, bool) { us += estimated_reorder_us(reorder); });
  return us;
}

std::unique_ptr<Kernel> with_row_major_operands(const KernelCatalog& catalog, const KernelCall& call,
                                                const KernelVariant& variant, std::unique_ptr<Kernel> kernel) {
  std::vector<Reordered> inputs, outputs;
  size_t working = kernel->scratch_bytes();
  for_reorders(call, variant, [&](const ReorderCall& reorder, size_t slot, bool is_input) {
    std::unique_ptr<Kernel> made = catalog.prepare_reorder(reorder);
    working = std::max(working, made->scratch_bytes());
    (is_input ? inputs : outputs).push_back({slot, std::move(made), 0});
  });
  if (inputs.empty() && outputs.empty()) return kernel;
  size_t end = aligned_size(working);
  const auto place = [&](std::vector<Reordered>& operands, std::span<const Type> types, const auto& layout_of) {
    for (Reordered& operand : operands) {
      operand.place = end;
      end += aligned_size(size_of(types[operand.slot], layout_of(operand.slot)));
    }
  };
  place(inputs, call.inputs, [&](size_t slot) { return variant.input(slot); });
  place(outputs, call.outputs, [&](size_t slot) { return variant.output(slot); });
  return std::make_unique<ReorderingKernel>(std::move(kernel), std::move(inputs), std::move(outputs), end);
}

}  // namespace autograph
