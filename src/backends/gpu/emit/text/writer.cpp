#include "backends/gpu/emit/text/writer.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace autograph::gpu {
namespace {

// "ITEM()" numbers at most this many groups along one axis: what CUDA allows.
constexpr int64_t kMaxGroups = std::numeric_limits<int32_t>::max();

std::string opencl_parameters(const std::vector<Parameter>& parameters) {
  std::string list;
  for (const Parameter& p : parameters) {
    list += fmt::format("{}GLOBAL u8* {}_memory, const u64 {}_offset", list.empty() ? "" : ", ", p.name, p.name);
  }
  return list;
}

bool is_read_only(const Parameter& p) { return p.operand.kind == Operand::Kind::input; }

std::string cuda_parameters(const std::vector<Parameter>& parameters) {
  std::string list;
  for (const Parameter& p : parameters) {
    list += fmt::format("{}{}{}* {}", list.empty() ? "" : ", ", is_read_only(p) ? "const " : "", p.type, p.name);
  }
  return list;
}

}  // namespace

Parameter input_parameter(std::string name, std::string_view type, size_t slot) {
  return {std::move(name), type, {Operand::Kind::input, slot}};
}

Parameter output_parameter(std::string name, std::string_view type, size_t slot) {
  return {std::move(name), type, {Operand::Kind::output, slot}};
}

Parameter scratch_parameter(std::string name, std::string_view type, size_t offset_bytes) {
  return {std::move(name), type, {Operand::Kind::scratch, offset_bytes}};
}

Parameter fault_parameter(std::string name) { return {std::move(name), "i64", {Operand::Kind::fault, 0}}; }

void Writer::begin_items(const std::vector<Parameter>& parameters, int64_t items) {
  const size_t size = group_size_for(target_, items);
  const int64_t groups = (items + static_cast<int64_t>(size) - 1) / static_cast<int64_t>(size);
  index_.cover(items);
  begin(parameters, static_cast<size_t>(groups), size, 0);
  line("const Index i = (Index)ITEM();");
  line("if (i >= {}) return;", index_.literal(items));
}

void Writer::begin_groups(const std::vector<Parameter>& parameters, int64_t groups, size_t size, int resident) {
  index_.cover(groups);
  begin(parameters, static_cast<size_t>(groups), size, resident);
  line("const Index g = (Index)GROUP();");
  line("const i32 t = THREAD();");
}

// Buffers of OpenCL 1.2 have no addresses: a kernel gets the buffer and where in it a tensor begins.
void Writer::begin(const std::vector<Parameter>& parameters, size_t groups, size_t size, int resident) {
  AG_CHECK(groups <= static_cast<size_t>(kMaxGroups), "{} groups are more than a launch can have", groups);
  Launch launch{fmt::format("kernel{}", launches_.size()), {}, groups, size};
  for (const Parameter& p : parameters) launch.operands.push_back(p.operand);
  const bool is_opencl = target_.dialect == Dialect::opencl;
  if (is_opencl) {
    open("__kernel __attribute__((reqd_work_group_size({}, 1, 1))) void {}({})", size, launch.entry,
         opencl_parameters(parameters));
    for (const Parameter& p : parameters) {
      const std::string type = fmt::format("{}GLOBAL {}*", is_read_only(p) ? "const " : "", p.type);
      line("{0} const {1} = ({0})({1}_memory + {1}_offset);", type, p.name);
    }
  } else {
    const std::string bounds = resident > 0 ? fmt::format("{}, {}", size, resident) : fmt::format("{}", size);
    open("extern \"C\" __global__ void __launch_bounds__({}) {}({})", bounds, launch.entry,
         cuda_parameters(parameters));
  }
  launches_.push_back(std::move(launch));
}

void Writer::end() {
  close();
  AG_CHECK(depth_ == 0, "a block was left open");
}

void Writer::add(const std::string& text) {
  kernels_.append(2 * depth_, ' ');
  kernels_ += text;
  kernels_ += '\n';
}

void Writer::function(const std::string& text) {
  if (known_functions_.insert(text).second) functions_ += text;
}

Emitted Writer::finish() const {
  const std::string index = fmt::format("typedef {} Index;\n", index_.name());
  Emitted emitted;
  emitted.source = prelude(target_) + index + functions_ + kernels_;
  emitted.launches = launches_;
  emitted.scratch_bytes = scratch_bytes;
  emitted.fault = fault;
  emitted.in_place_inputs = in_place_inputs;
  emitted.alternatives_us = alternatives_us;
  return emitted;
}

void cover_operands(IndexType& index, const KernelCall& call) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (type.is_tensor()) index.cover(*type.shape().num_elements());
    }
  }
}

Emitted refused(std::string reason) {
  Emitted none;
  none.refusal = std::move(reason);
  return none;
}

size_t group_size_for(const Target& target, int64_t items) {
  size_t size = 32;
  while (size < target.max_group && static_cast<int64_t>(size) < items) size *= 2;
  return std::min(size, target.max_group);
}

}  // namespace autograph::gpu
