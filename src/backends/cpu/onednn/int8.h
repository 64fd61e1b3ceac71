// What the kernels for products of 8-bit numbers share: scales, zero points, bias and residual as oneDNN takes them.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/quantize/quantized_call.h"

namespace autograph::onednn {

/// Reads the call when it is one that oneDNN computes right on this CPU; else nothing, and why.
std::optional<QuantizedCall> read_int8(const KernelCall& call, std::string& why_not);

/// Attributes of the primitive. `channel_axis` is that of what it writes.
dnnl::primitive_attr int8_attributes(const QuantizedCall& call, size_t channel_axis, Use use);

/// The bias in units of the accumulator, zero point of the residual included; absent when there is none.
Tensor int8_bias(const QuantizedCall& call);

/// Weights as the primitive reads them, which are known, or an input of type i8.
Argument int8_weights(const QuantizedCall& call, const dnnl::memory::desc& given, const dnnl::memory::desc& wanted);

/// The one form of a kernel by oneDNN's integer gemm, with an estimate of its time.
std::vector<KernelVariant> integer_gemm_variants(const KernelCall& call);

/// Does an implementation add up bytes with instructions from before VNNI, which it may have whatever the CPU has,
/// where that overflows?
bool may_overflow(const QuantizedCall& call, std::string_view implementation);

/// How much faster products of bytes are than those of f32, as far as the name of an implementation tells.
double int8_speedup(std::string_view implementation);

}  // namespace autograph::onednn
