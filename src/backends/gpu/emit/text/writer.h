// Writes the text of a program, kernel by kernel, in the subset that both dialects share.
#pragma once

#include <fmt/core.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/gpu/emit/emitted.h"
#include "backends/gpu/emit/text/c_types.h"
#include "backends/gpu/emit/text/index.h"

namespace autograph::gpu {

/// A parameter of a kernel: a tensor, or scratch memory.
struct Parameter {
  std::string name;
  std::string_view type;  ///< Of its elements, for example "f32".
  Operand operand;
};

/// Inputs, outputs and scratch memory as parameters.
Parameter input_parameter(std::string name, std::string_view type, size_t slot);
Parameter output_parameter(std::string name, std::string_view type, size_t slot = 0);
Parameter scratch_parameter(std::string name, std::string_view type, size_t offset_bytes = 0);
/// Where a kernel says that the program's fault has happened.
Parameter fault_parameter(std::string name);

class Writer {
 public:
  explicit Writer(const Target& target) : target_(target) {}

  const Target& target() const { return target_; }
  IndexType& index() { return index_; }
  const IndexType& index() const { return index_; }

  /// Begins a kernel of `items` work items, of which each has its number in `i`. Positions are of type `Index`.
  void begin_items(const std::vector<Parameter>& parameters, int64_t items);
  /// Begins a kernel of `groups` groups, whose number is in `g`, of `size` items each, whose numbers are in `t`. With
  /// `resident` above 0 an item may use as many registers as let so many groups run at once on a processor; else the
  /// compiler decides.
  void begin_groups(const std::vector<Parameter>& parameters, int64_t groups, size_t size, int resident = 0);
  void end();

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...));
  }
  /// A line that ends with "{"; what follows stands further in.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    add(fmt::format(format, std::forward<Args>(args)...) + " {");
    ++depth_;
  }
  void close() {
    --depth_;
    add("}");
  }

  /// A function before the kernels; once, where the same text is given again.
  void function(const std::string& text);
  /// A name that no other call gave.
  std::string new_name(std::string_view stem) { return fmt::format("{}{}", stem, next_++); }

  /// The program. All that writes positions must have been covered by index() before it was written.
  Emitted finish() const;

  size_t scratch_bytes = 0;
  std::string fault;
  std::vector<uint32_t> in_place_inputs;
  std::vector<double> alternatives_us;

 private:
  void add(const std::string& text);
  void begin(const std::vector<Parameter>& parameters, size_t groups, size_t size, int resident);

  Target target_;
  IndexType index_;
  std::string functions_;
  std::set<std::string> known_functions_;
  std::string kernels_;
  std::vector<Launch> launches_;
  size_t depth_ = 0;
  int next_ = 0;
};

/// Covers positions in all inputs and outputs.
void cover_operands(IndexType& index, const KernelCall& call);

/// No program, and why.
Emitted refused(std::string reason);

/// Work items for kernels that need none of a group in particular.
size_t group_size_for(const Target& target, int64_t items);

}  // namespace autograph::gpu
