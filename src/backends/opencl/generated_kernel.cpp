#include "backends/opencl/generated_kernel.h"

#include <mutex>

#include "backends/opencl/stream.h"
#include "base/check.h"

namespace autograph::opencl {
namespace {

// One kernel of a program. Its arguments belong to it, so that one thread at a time may set them and enqueue it.
class KernelHandle {
 public:
  KernelHandle(const Program& program, const gpu::Launch& launch) : launch_(launch) {
    cl_int code = CL_SUCCESS;
    kernel_ = api().clCreateKernel(program.get(), launch.entry.c_str(), &code);
    check(code, "clCreateKernel");
  }
  ~KernelHandle() { api().clReleaseKernel(kernel_); }
  KernelHandle(const KernelHandle&) = delete;
  KernelHandle& operator=(const KernelHandle&) = delete;

  void enqueue(const KernelArgs& args, OpenClStream& stream, const void* fault) const {
    const std::lock_guard lock(mutex_);
    cl_uint number = 0;
    for (const gpu::Operand& operand : launch_.operands) {
      const void* const address = address_of(operand, args, fault);
      // What has no elements has no memory either.
      const Location at = address ? stream.machine().memory().locate(address) : Location{};
      const cl_ulong offset = at.offset;
      check(api().clSetKernelArg(kernel_, number++, sizeof(cl_mem), &at.buffer), "clSetKernelArg");
      check(api().clSetKernelArg(kernel_, number++, sizeof(offset), &offset), "clSetKernelArg");
    }
    const size_t items = launch_.groups * launch_.group_size;
    check(api().clEnqueueNDRangeKernel(stream.queue(), kernel_, 1, nullptr, &items, &launch_.group_size, 0, nullptr,
                                       nullptr),
          "clEnqueueNDRangeKernel");
  }

 private:
  static const void* address_of(const gpu::Operand& operand, const KernelArgs& args, const void* fault) {
    switch (operand.kind) {
      case gpu::Operand::Kind::input: return args.inputs[operand.slot].raw();
      case gpu::Operand::Kind::output: return args.outputs[operand.slot].raw();
      case gpu::Operand::Kind::fault: return fault;
      case gpu::Operand::Kind::scratch: break;
    }
    return static_cast<const char*>(args.scratch) + operand.slot;
  }

  gpu::Launch launch_;
  cl_kernel kernel_ = nullptr;
  mutable std::mutex mutex_;
};

class GeneratedKernel : public Kernel {
 public:
  GeneratedKernel(std::shared_ptr<const Program> program, const gpu::Emitted& emitted)
      : program_(std::move(program)),
        scratch_bytes_(emitted.scratch_bytes),
        fault_(emitted.fault),
        in_place_inputs_(emitted.in_place_inputs) {
    for (const gpu::Launch& launch : emitted.launches) {
      if (launch.groups > 0) handles_.push_back(std::make_unique<KernelHandle>(*program_, launch));
    }
  }

  void run(const KernelArgs& args) const override {
    auto& stream = static_cast<OpenClStream&>(*args.stream);
    const void* fault = fault_.empty() || handles_.empty() ? nullptr : stream.expect_fault(fault_);
    for (const auto& handle : handles_) handle->enqueue(args, stream, fault);
  }
  size_t scratch_bytes() const override { return scratch_bytes_; }
  std::vector<uint32_t> in_place_inputs() const override { return in_place_inputs_; }

 private:
  std::shared_ptr<const Program> program_;  // null where there is nothing to do
  size_t scratch_bytes_;
  std::string fault_;
  std::vector<uint32_t> in_place_inputs_;
  std::vector<std::unique_ptr<KernelHandle>> handles_;
};

bool has_work(const gpu::Emitted& emitted) {
  for (const gpu::Launch& launch : emitted.launches) {
    if (launch.groups > 0) return true;
  }
  return false;
}

}  // namespace

Prepared prepare_generated(const Machine& machine, const KernelCall& call) {
  const gpu::Emitted emitted = gpu::emit(call, machine.target());
  AG_CHECK(emitted.refusal.empty(), "[opencl] {}: {}", call.op.name, emitted.refusal);
  auto program = has_work(emitted) ? machine.programs().get(emitted.source) : nullptr;
  return {std::make_unique<GeneratedKernel>(std::move(program), emitted), ""};
}

}  // namespace autograph::opencl
