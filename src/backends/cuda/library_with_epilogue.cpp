#include "backends/cuda/library_with_epilogue.h"

#include "backends/cuda/generated_kernel.h"
#include "backends/gpu/emit/emitted.h"
#include "backends/gpu/emit/text/epilogue.h"

namespace autograph::cuda {
namespace {

// What the second kernel takes to begin and to end.
constexpr double kSecondKernelUs = 2;

class LibraryWithEpilogue : public Kernel {
 public:
  LibraryWithEpilogue(std::unique_ptr<Kernel> product, std::vector<size_t> slots, std::unique_ptr<Kernel> behind)
      : product_(std::move(product)), slots_(std::move(slots)), behind_(std::move(behind)) {}

  void run(const KernelArgs& args) const override {
    thread_local std::vector<TensorView> operands;
    operands.clear();
    for (const size_t slot : slots_)
      operands.push_back(slot == gpu::Epilogue::kNone ? TensorView() : args.inputs[slot]);
    KernelArgs of_product = args;
    of_product.inputs = operands;
    product_->run(of_product);
    behind_->run(args);
  }
  size_t scratch_bytes() const override { return product_->scratch_bytes(); }
  size_t weight_bytes() const override { return product_->weight_bytes(); }
  std::unique_ptr<KernelState> new_state() const override { return product_->new_state(); }

 private:
  std::unique_ptr<Kernel> product_;
  std::vector<size_t> slots_;  // inputs of the call, for each operand of the product
  std::unique_ptr<Kernel> behind_;
};

}  // namespace

std::string why_not_with_epilogue(const Machine& machine, const KernelCall& call, const OpDef& producer,
                                  const KernelDef& library) {
  std::string reason = gpu::emit_behind(call, producer, machine.target()).refusal;
  if (!reason.empty()) return reason;
  const gpu::Epilogue epilogue(call, producer);
  return library.why_not(epilogue.producer());
}

std::vector<KernelVariant> variants_with_epilogue(const KernelCall& call, const OpDef& producer,
                                                  const KernelDef& library) {
  const gpu::Epilogue epilogue(call, producer);
  std::vector<KernelVariant> variants = library.variants(epilogue.producer());
  for (KernelVariant& variant : variants) variant.cost_us += kSecondKernelUs;
  return variants;
}

Prepared prepare_with_epilogue(const Machine& machine, const KernelCall& call, const OpDef& producer,
                               const KernelDef& library) {
  const gpu::Epilogue epilogue(call, producer);
  KernelCall of_product = epilogue.producer();
  of_product.variant = call.variant;
  Prepared product = library.prepare(of_product);
  if (!product.kernel) return product;
  Prepared behind = prepare_emitted(machine, call, gpu::emit_behind(call, producer, machine.target()));
  return {std::make_unique<LibraryWithEpilogue>(std::move(product.kernel), epilogue.slots(), std::move(behind.kernel)),
          ""};
}

}  // namespace autograph::cuda
