// scatter_elements, scatter_nd, tensor_scatter, one_hot.
//
// Updates that meet in one element do so in order, as in the reference: one item does all that may meet. For
// scatter_elements that is a line of updates along the axis, for scatter_nd one element of every slice.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/checked_index.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// How an update meets what is there; "" for reductions of dtypes that are not computed with.
std::string combined(const std::string& reduction, DType dtype, const std::string& a, const std::string& b) {
  const std::string_view type = compute_type(dtype);
  const char* wide = element_size(dtype) == 8 ? "u64" : "u32";
  const bool is_sum = reduction.starts_with('a');
  const bool is_product = reduction.starts_with("mu");
  if (dtype == DType::boolean) {
    return fmt::format("(u8)({} {} {})", a, is_sum || reduction.starts_with("ma") ? "||" : "&&", b);
  }
  if (is_sum || is_product) {
    const char sign = is_sum ? '+' : '*';
    if (is_float(dtype)) return fmt::format("{} {} {}", a, sign, b);
    return fmt::format("({0})(({1}){2} {4} ({1}){3})", type, wide, a, b, sign);
  }
  const char* order = reduction.starts_with("ma") ? "<" : ">";
  const std::string larger = fmt::format("({0} {2} {1} ? {1} : {0})", a, b, order);
  return is_float(dtype) ? fmt::format("(isnan({0}) ? {0} : isnan({1}) ? {1} : {2})", a, b, larger) : larger;
}

class ScatterWriter {
 public:
  ScatterWriter(const KernelCall& call, const Target& target)
      : call_(call), w_(target), x_(call.input_dims(0)), indices_(call.input_dims(1)) {
    reduction_ = call.attributes.text("reduction");
    dtype_ = call.inputs[0].dtype();
    moves_ = reduction_.starts_with('n');
    type_ = moves_ ? raw_type(dtype_) : storage_type(dtype_);
    for (const Dims& dims : {x_, indices_, call.input_dims(2)}) w_.index().cover(num_elements(dims));
  }

  bool can_combine() const { return moves_ || can_compute(dtype_, w_.target()); }

  Emitted write() {
    w_.begin_items({input_parameter("x", type_, 0), output_parameter("y", type_)}, num_elements(x_));
    w_.line("y[i] = x[i];");
    w_.end();
    if (&call_.op == &scatter_elements_def()) {
      write_elements();
    } else {
      write_slices();
    }
    return w_.finish();
  }

 private:
  std::vector<Parameter> parameters() const {
    return {input_parameter("indices", storage_type(call_.inputs[1].dtype()), 1), input_parameter("updates", type_, 2),
            output_parameter("y", type_), fault_parameter("faults")};
  }

  // Update `from` meets element `to`.
  void write_update() {
    if (moves_) {
      w_.line("y[to] = updates[from];");
    } else {
      w_.line("const {} a = {}, b = {};", compute_type(dtype_), load(dtype_, "y", "to"),
              load(dtype_, "updates", "from"));
      w_.line("{}", store(dtype_, "y", "to", combined(reduction_, dtype_, "a", "b")));
    }
  }

  void write_elements() {
    const auto axis =
        static_cast<size_t>(front_axis(call_.attributes.integer("axis"), static_cast<int64_t>(x_.size())));
    const Dims strides = row_major_strides(x_);
    const Dims index_strides = row_major_strides(indices_);
    Walk source{{}, {}, 0};
    Walk line{{}, {}, 0};
    for (size_t a = 0; a < x_.size(); ++a) {
      if (a == axis) continue;
      source.extents.push_back(indices_[a]);
      source.strides.push_back(index_strides[a]);
      line.strides.push_back(strides[a]);
    }
    line.extents = source.extents;
    const int64_t lines = num_elements(indices_) == 0 ? 0 : num_elements(source.extents);
    w_.fault = index_fault(call_.op, x_[axis]);
    w_.begin_items(parameters(), lines);
    w_.line("const Index first = {}, base = {};", position(w_.index(), "i", source), position(w_.index(), "i", line));
    w_.open("for (Index r = 0; r < {}; ++r)", w_.index().literal(indices_[axis]));
    w_.line("const Index from = first + r * {};", w_.index().literal(index_strides[axis]));
    write_checked_index(w_, "index", call_.inputs[1].dtype(), "indices", "from", x_[axis], "return");
    w_.line("const Index to = base + (Index)index * {};", w_.index().literal(strides[axis]));
    write_update();
    w_.close();
    w_.end();
  }

  void write_slices() {
    const auto depth = static_cast<size_t>(indices_.back());
    const Dims strides = row_major_strides(x_);
    const int64_t length = num_elements(Dims(x_.begin() + static_cast<std::ptrdiff_t>(depth), x_.end()));
    const int64_t tuples = num_elements(Dims(indices_.begin(), indices_.end() - 1));
    w_.fault = fmt::format("[{}] indices: expected tuples that lie in {}, got ", call_.op.name, to_string(x_));
    w_.begin_items(parameters(), tuples == 0 ? 0 : length);
    w_.open("for (Index r = 0; r < {}; ++r)", w_.index().literal(tuples));
    w_.line("const Index from = r * {} + i;", w_.index().literal(length));
    w_.line("Index to = i;");
    for (size_t k = 0; k < depth; ++k) {
      const std::string name = fmt::format("index{}", k);
      write_checked_index(w_, name, call_.inputs[1].dtype(), "indices",
                          fmt::format("r * {} + {}", w_.index().literal(indices_.back()), k), x_[k], "return");
      w_.line("to += (Index){} * {};", name, w_.index().literal(strides[k]));
    }
    write_update();
    w_.close();
    w_.end();
  }

  const KernelCall& call_;
  Writer w_;
  Dims x_;
  Dims indices_;
  std::string reduction_;
  DType dtype_ = DType::undefined;
  bool moves_ = true;  // without looking at elements
  std::string_view type_;
};

}  // namespace

Emitted emit_scatter(const KernelCall& call, const Target& target) {
  ScatterWriter writer(call, target);
  if (!writer.can_combine()) return refused("a reduction of this dtype");
  return writer.write();
}

// One item an element of the cache: it lies behind the first position that is written, or is kept.
Emitted emit_tensor_scatter(const KernelCall& call, const Target& target) {
  constexpr size_t kCache = 0, kUpdate = 1, kFirst = 2;
  const Dims cache = call.input_dims(kCache), update = call.input_dims(kUpdate);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), std::ssize(cache)));
  const int64_t capacity = cache[axis], length = update[axis];
  const bool is_circular = call.attributes.text("mode") == "circular";
  const bool has_first = call.has_input(kFirst) && length > 0;
  const std::string_view type = raw_type(call.inputs[kCache].dtype());
  Writer writer(target);
  cover_operands(writer.index(), call);
  const IndexType& index = writer.index();
  std::vector<Parameter> parameters{input_parameter("cache", type, kCache), input_parameter("update", type, kUpdate),
                                    output_parameter("y", type)};
  if (has_first) {
    parameters.push_back(input_parameter("write_indices", storage_type(call.inputs[kFirst].dtype()), kFirst));
    parameters.push_back(fault_parameter("faults"));
  }
  writer.begin_items(parameters, num_elements(cache));
  writer.line("Index behind = {};", coordinate(index, "i", cache, axis));
  if (has_first) {
    const int64_t last = is_circular ? capacity - 1 : capacity - length;
    writer.fault = fmt::format("[tensor_scatter] write_indices: expected 0..{}, got ", last);
    writer.line("const i64 first = write_indices[{}];", coordinate(index, "i", cache, 0));
    writer.open("if (first < 0 || first > {})", last);
    write_fault(writer, "first", "return");
    writer.close();
    writer.line("behind -= (Index)first;");
    if (is_circular) writer.line("if (behind < 0) behind += {};", index.literal(capacity));
  }
  Walk others{cache, row_major_strides(update), 0};
  others.strides[axis] = 0;
  writer.line("y[i] = behind >= 0 && behind < {} ? update[{} + behind * {}] : cache[i];", index.literal(length),
              position(index, "i", others), index.literal(row_major_strides(update)[axis]));
  writer.end();
  writer.in_place_inputs = {kCache};
  return writer.finish();
}

Emitted emit_one_hot(const KernelCall& call, const Target& target) {
  const DType indices = call.inputs[0].dtype();
  if (!can_compute(indices, target)) return refused("dtype");
  const Dims y = call.output_dims(0);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(y.size())));
  const int64_t depth = y[axis];
  const std::string_view type = raw_type(call.inputs[2].dtype());
  Writer writer(target);
  writer.index().cover(num_elements(y));
  writer.begin_items({input_parameter("indices", storage_type(indices), 0), input_parameter("choices", type, 2),
                      output_parameter("y", type)},
                     num_elements(y));
  Walk picked{y, {}, 0};
  Dims without = y;
  without.erase(without.begin() + static_cast<std::ptrdiff_t>(axis));
  picked.strides = row_major_strides(without);
  picked.strides.insert(picked.strides.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  writer.line("const {} given = {};", compute_type(indices),
              load(indices, "indices", position(writer.index(), "i", picked)));
  // Fractions are cut off; what is out of range is nowhere.
  const bool is_real = is_float(indices);
  const bool is_unsigned = !is_real && !is_signed_whole(indices);
  const std::string low = is_unsigned ? "1"
                          : is_real   ? fmt::format("given > -{}", literal(indices, static_cast<double>(depth + 1)))
                                      : fmt::format("(i64)given >= -{}L", depth);
  const std::string high = is_real       ? fmt::format("given < {}", literal(indices, static_cast<double>(depth)))
                           : is_unsigned ? fmt::format("(u64)given < {}UL", depth)
                                         : fmt::format("(i64)given < {}L", depth);
  writer.line("i64 index = {} && {} ? (i64)given : -{}L;", low, high, depth + 1);
  writer.line("if (index < 0) index += {}L;", depth);
  writer.line("y[i] = choices[index == (i64)({}) ? 1 : 0];", coordinate(writer.index(), "i", y, axis));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
