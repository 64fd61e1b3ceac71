#include "backends/gpu/emit/text/checked_index.h"

namespace autograph::gpu {

std::string index_fault(const OpDef& op, int64_t extent) {
  return fmt::format("[{}] indices: expected {}..{} for extent {}, got ", op.name, -extent, extent - 1, extent);
}

void write_fault(Writer& writer, std::string_view value, std::string_view leave) {
  writer.line("faults[0] = 1;");
  writer.line("faults[1] = {};", value);
  writer.line("{};", leave);
}

void write_checked_index(Writer& writer, std::string_view name, DType dtype, std::string_view pointer,
                         std::string_view at, int64_t extent, std::string_view leave) {
  writer.line("i64 {} = ({}){}[{}];", name, compute_type(dtype), pointer, at);
  writer.open("if ({0} < -{1} || {0} >= {1})", name, extent);
  write_fault(writer, name, leave);
  writer.close();
  writer.line("if ({0} < 0) {0} += {1};", name, extent);
}

}  // namespace autograph::gpu
