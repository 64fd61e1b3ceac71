// concat and split: each operand is a block of bytes in every row of the whole. The memory plan may have put parts
// where they belong, and there is nothing to copy: with a single row any, with several rows those of a concat whose
// kernels write rows apart. Threads take equal shares of the bytes.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/shape/piece_copies.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "tensor/front_axis.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

void copy_unless_there(char* to, const char* from, size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

int64_t axis_of(const KernelCall& call, const Dims& dims) {
  return front_axis(call.attributes.integer("axis"), std::ssize(dims));
}

// Where the parts lie in the whole: pieces of them in every row, a row being what the axes outside of theirs count. In
// a channels-last tensor the channels are the innermost axis. Blocks of channels are the innermost axis, too, where the
// parts are not taken from the channels, of which then whole blocks lie as single ones do in a row-major tensor.
class Blocks {
 public:
  Blocks(const KernelCall& call, std::span<const Type> parts) {
    const Dims first = parts[0].shape().static_dims();
    const auto axis = static_cast<size_t>(axis_of(call, first));
    const Layout layout = call.variant ? call.variant->output(0) : Layout::row_major;
    const auto place = [&](size_t a) { return a == 1 && layout == Layout::channels_last ? first.size() : a; };
    const auto is_outside = [&](size_t a) { return place(a) < place(axis); };
    const int64_t inner = axis > 1 ? channel_block(layout) : 1;
    for (size_t a = 0; a < first.size(); ++a) {
      if (is_outside(a)) rows_ *= a == 1 ? first[a] / inner : first[a];
    }
    starts_.push_back(0);
    for (const Type& part : parts) {
      const Dims dims = part.shape().static_dims();
      int64_t bytes = static_cast<int64_t>(element_size(part.dtype())) * inner;
      for (size_t a = 0; a < dims.size(); ++a) {
        if (!is_outside(a)) bytes *= dims[a];
      }
      starts_.push_back(starts_.back() + bytes);
    }
    threads_ = useful_threads(call.threads, rows_ * starts_.back() / 4);
    int64_t largest = 0;
    for (size_t part = 0; part < parts.size(); ++part) largest = std::max(largest, starts_[part + 1] - starts_[part]);
    has_small_pieces_ = rows_ >= threads_ * kRowsOfThread && largest > 0 && largest <= kMostBytes;
  }

  // Where each part begins in every row of the whole, in bytes.
  std::vector<size_t> offsets() const { return {starts_.begin(), starts_.end() - 1}; }
  size_t offset(size_t part) const { return static_cast<size_t>(starts_[part]); }

  int64_t rows() const { return rows_; }
  size_t row_bytes() const { return static_cast<size_t>(starts_.back()); }

  // Are all pieces so small that for_small_pieces() is to be called instead of for_each()?
  bool has_small_pieces() const { return has_small_pieces_; }

  // Calls copy(part, offset in the part, offset in the whole, bytes of a piece, pieces, bytes of a row) for pieces that
  // lie a row apart in the whole, until everything was covered once.
  template <class Copy>
  void for_small_pieces(const Copy& copy) const {
    // As many as stay in the first cache while the parts take turns.
    const int64_t rows = std::max<int64_t>(1, kBytesInTurn / starts_.back());
    for_shares(threads_, (rows_ + rows - 1) / rows, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin * rows; row < std::min(end * rows, rows_); row += rows) {
        for (size_t part = 0; part + 1 < starts_.size(); ++part) {
          const int64_t bytes = starts_[part + 1] - starts_[part];
          if (bytes == 0) continue;
          copy(part, row * bytes, row * starts_.back() + starts_[part], bytes, std::min(rows, rows_ - row),
               starts_.back());
        }
      }
    });
  }

  // Calls copy(part, offset in the part, offset in the whole, bytes) until everything was covered once.
  template <class Copy>
  void for_each(const Copy& copy) const {
    const int64_t row_bytes = starts_.back();
    for_shares(threads_, rows_ * row_bytes, [&](int64_t begin, int64_t end, int) {
      for (int64_t at = begin; at < end;) {
        const int64_t row = at / row_bytes;
        const int64_t inside = at - row * row_bytes;
        const auto next = std::upper_bound(starts_.begin(), starts_.end(), inside);
        const auto part = static_cast<size_t>(next - starts_.begin() - 1);
        const int64_t part_bytes = *next - starts_[part];
        const int64_t count = std::min(row * row_bytes + *next, end) - at;
        copy(part, row * part_bytes + inside - starts_[part], at, static_cast<size_t>(count));
        at += count;
      }
    });
  }

 private:
  // Larger pieces are copied one by one: to find out where each goes takes no time beside that. So are those of so few
  // rows that shares of them would not be even.
  static constexpr int64_t kMostBytes = 4096;
  static constexpr int64_t kRowsOfThread = 8;
  static constexpr int64_t kBytesInTurn = 16384;

  int64_t rows_ = 1;
  std::vector<int64_t> starts_;  // of each part in a row, in bytes; then the bytes of a row
  bool has_small_pieces_ = false;
  int threads_ = 1;
};

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const KernelCall& call) : blocks_(call, call.inputs) {}
  std::vector<size_t> part_offsets() const override { return blocks_.offsets(); }
  size_t joined_row_bytes() const override { return blocks_.rows() == 1 ? 0 : blocks_.row_bytes(); }
  void run(const KernelArgs& args) const override {
    char* whole = static_cast<char*>(args.outputs[0].raw());
    // Of a part that is there already the first piece is where it belongs.
    const auto is_there = [&](size_t part) { return args.inputs[part].raw() == whole + blocks_.offset(part); };
    bool is_whole = true;
    for (size_t part = 0; part < args.inputs.size(); ++part) is_whole = is_whole && is_there(part);
    if (is_whole) return;
    if (blocks_.has_small_pieces()) {
      return blocks_.for_small_pieces(
          [&](size_t part, int64_t from, int64_t to, int64_t bytes, int64_t pieces, int64_t row) {
            const char* data = static_cast<const char*>(args.inputs[part].raw());
            if (!is_there(part)) copy_pieces({whole + to, row, data + from, bytes, bytes, pieces});
          });
    }
    blocks_.for_each([&](size_t part, int64_t from, int64_t to, size_t bytes) {
      if (!is_there(part)) std::memcpy(whole + to, static_cast<const char*>(args.inputs[part].raw()) + from, bytes);
    });
  }

 private:
  const Blocks blocks_;
};

class SplitKernel : public Kernel {
 public:
  explicit SplitKernel(const KernelCall& call) : blocks_(call, call.outputs) {}
  std::vector<size_t> piece_offsets() const override {
    return blocks_.rows() == 1 ? blocks_.offsets() : std::vector<size_t>();
  }
  void run(const KernelArgs& args) const override {
    const char* whole = static_cast<const char*>(args.inputs[0].raw());
    if (blocks_.has_small_pieces()) {
      return blocks_.for_small_pieces(
          [&](size_t part, int64_t to, int64_t from, int64_t bytes, int64_t pieces, int64_t row) {
            char* data = static_cast<char*>(args.outputs[part].raw());
            copy_pieces({data + to, bytes, whole + from, row, bytes, pieces});
          });
    }
    blocks_.for_each([&](size_t part, int64_t to, int64_t from, size_t bytes) {
      copy_unless_there(static_cast<char*>(args.outputs[part].raw()) + to, whole + from, bytes);
    });
  }

 private:
  const Blocks blocks_;
};

Prepared prepare_concat(const KernelCall& call) { return {std::make_unique<ConcatKernel>(call), ""}; }
Prepared prepare_split(const KernelCall& call) { return {std::make_unique<SplitKernel>(call), ""}; }

// Row-major always; other layouts where they have one, blocked ones where all parts are whole blocks of channels.
std::vector<KernelVariant> variants(const KernelCall& call, const Type& whole, std::span<const Type> parts) {
  const double us = 1 + static_cast<double>(size_of(whole)) / 12e3 / call.threads;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  const Dims dims = whole.shape().static_dims();
  if (whole.dtype() != DType::f32) return result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked8, Layout::blocked16}) {
    if (!fits_rank(layout, dims.size())) continue;
    const bool whole_blocks = std::all_of(parts.begin(), parts.end(), [&](const Type& part) {
      return part.shape()[1].value() % channel_block(layout) == 0;
    });
    if (!whole_blocks) continue;
    // A split's second input, the lengths, has no layout.
    std::vector<Layout> inputs(call.inputs.size(), layout);
    if (&parts[0] == &call.outputs[0] && inputs.size() > 1) inputs[1] = Layout::row_major;
    result.push_back(
        {.name = "", .inputs = inputs, .outputs = std::vector<Layout>(call.outputs.size(), layout), .cost_us = us});
  }
  return result;
}

// Where parts are pieces of every row, only kernels of f32 that have channels together can leave gaps between rows.
std::vector<KernelVariant> concat_variants(const KernelCall& call) {
  const int64_t axis = axis_of(call, call.output_dims(0));
  std::vector<KernelVariant> result = variants(call, call.outputs[0], call.inputs);
  for (KernelVariant& variant : result) {
    KernelCall chosen = call;
    chosen.variant = &variant;
    variant.joins_parts = Blocks(chosen, call.inputs).rows() == 1;
    variant.joins_rows = !variant.joins_parts && axis == 1 && variant.output(0) == Layout::channels_last;
  }
  return result;
}

std::vector<KernelVariant> split_variants(const KernelCall& call) {
  return variants(call, call.inputs[0], call.outputs);
}

}  // namespace

KernelDef concat_kernel() {
  return {.name = "cpu.concat",
          .op = concat_def().name,
          .why_not = why_not_bytes,
          .prepare = prepare_concat,
          .variants = concat_variants};
}

KernelDef split_kernel() {
  return {.name = "cpu.split",
          .op = split_def().name,
          .why_not = why_not_bytes,
          .prepare = prepare_split,
          .variants = split_variants};
}

}  // namespace autograph
