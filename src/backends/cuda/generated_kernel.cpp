#include "backends/cuda/generated_kernel.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/cuda/stream.h"
#include "base/check.h"

namespace autograph::cuda {
namespace {

const void* address_of(const gpu::Operand& operand, const KernelArgs& args, const void* fault) {
  switch (operand.kind) {
    case gpu::Operand::Kind::input: return args.inputs[operand.slot].raw();
    case gpu::Operand::Kind::output: return args.outputs[operand.slot].raw();
    case gpu::Operand::Kind::fault: return fault;
    case gpu::Operand::Kind::scratch: break;
  }
  return static_cast<const char*>(args.scratch) + operand.slot;
}

class GeneratedKernel : public Kernel {
 public:
  GeneratedKernel(std::string_view op, std::shared_ptr<const Module> module, gpu::Emitted emitted)
      : op_(op), module_(std::move(module)), emitted_(std::move(emitted)) {
    for (const gpu::Launch& launch : emitted_.launches) functions_.push_back(module_->function(launch.entry));
  }

  void run(const KernelArgs& args) const override {
    auto& stream = static_cast<CudaStream&>(*args.stream);
    const void* fault = emitted_.fault.empty() || functions_.empty() ? nullptr : stream.expect_fault(emitted_.fault);
    thread_local std::vector<const void*> pointers;
    for (size_t k = 0; k < functions_.size(); ++k) {
      const gpu::Launch& launch = emitted_.launches[k];
      pointers.clear();
      for (const gpu::Operand& operand : launch.operands) pointers.push_back(address_of(operand, args, fault));
      stream.launch({functions_[k], static_cast<unsigned>(launch.groups), static_cast<unsigned>(launch.group_size),
                     pointers, op_});
    }
  }
  size_t scratch_bytes() const override { return emitted_.scratch_bytes; }
  std::vector<uint32_t> in_place_inputs() const override { return emitted_.in_place_inputs; }

 private:
  std::string_view op_;
  std::shared_ptr<const Module> module_;  // null where there is nothing to do
  gpu::Emitted emitted_;                  // its launches alone
  std::vector<CUfunction> functions_;     // parallel to them
};

}  // namespace

Prepared prepare_generated(const Machine& machine, const KernelCall& call) {
  gpu::Target target = machine.target();
  target.alternative = static_cast<size_t>(call.variant ? call.variant->tag : 0);
  return prepare_emitted(machine, call, gpu::emit(call, target));
}

std::vector<KernelVariant> generated_variants(const Machine& machine, const KernelCall& call) {
  const std::vector<double> alternatives_us = gpu::emit(call, machine.target()).alternatives_us;
  std::vector<KernelVariant> variants(std::max<size_t>(alternatives_us.size(), 1));
  for (size_t k = 0; k < alternatives_us.size(); ++k) {
    if (k > 0) variants[k].name = fmt::format("cut{}", k);
    variants[k].cost_us = alternatives_us[k];
    variants[k].tag = static_cast<int>(k);
  }
  return variants;
}

Prepared prepare_emitted(const Machine& machine, const KernelCall& call, gpu::Emitted emitted) {
  AG_CHECK(emitted.refusal.empty(), "[cuda] {}: {}", call.op.name, emitted.refusal);
  std::erase_if(emitted.launches, [](const gpu::Launch& launch) { return launch.groups == 0; });
  auto module = emitted.launches.empty() ? nullptr : machine.modules().get(emitted.source);
  emitted.source.clear();
  return {std::make_unique<GeneratedKernel>(call.op.name, std::move(module), std::move(emitted)), ""};
}

}  // namespace autograph::cuda
