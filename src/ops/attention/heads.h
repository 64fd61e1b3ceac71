// Reading [batch, length, heads * size] and [batch, heads, length, size] tensors alike.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/op_def.h"
#include "ops/attention/head_layout.h"
#include "ops/real_values.h"

namespace autograph {

/// Symbolic layout of a tensor of heads.
struct HeadDims {
  Dim batch;
  Dim heads;
  Dim length;
  Dim size;
};

/// Layout of input `slot`, of rank 4, or of rank 3 with `num_heads` heads packed into the last dim. Throws ShapeError
/// on other ranks and ValueError on head counts that do not fit; all dims unknown while the rank is unknown.
HeadDims infer_heads(const InferContext& context, size_t slot, const int64_t* num_heads);

/// The shape of a tensor with these dims, packed like input `slot`.
Shape pack_heads(const InferContext& context, size_t slot, const HeadDims& dims);

/// Layouts of the operands of attention.
struct AttentionHeads {
  HeadDims q, k, v;
};

/// Those of inputs 0, 1 and 2, in rank 3 with the attributes q_num_heads and kv_num_heads; throws where they do not fit
/// together, or the scale or a window is out of its range.
AttentionHeads infer_attention_heads(const InferContext& context);

/// Throws ShapeError unless input `slot`, where it is given, broadcasts to [batch, heads, queries, keys]; its last dim
/// may be shorter.
void check_attention_mask(const InferContext& context, size_t slot, const HeadDims& q, const Dim& keys);

/// Operands of attention for a sample: extents of 1 to 4 (batch: 2), in rank 3 where `packed`.
struct DrawnHeads {
  int64_t batch, kv_heads, heads, queries, keys, size, value_size;
  bool packed;
  std::vector<Datum> qkv;

  /// Numbers of heads, which rank 3 needs.
  void set_heads(Attributes& attributes) const;
};

DrawnHeads draw_heads(Random& random);

/// A tensor of heads as f64, addressed by head and position whatever its layout.
class Heads {
 public:
  /// Copies a tensor of rank 4, or of rank 3 with `num_heads` heads.
  Heads(const TensorView& view, int64_t num_heads);
  /// Zeros in [batch, heads, length, size] layout.
  Heads(int64_t batch, int64_t heads, int64_t length, int64_t size);

  int64_t batch() const { return layout_.batch; }
  int64_t heads() const { return layout_.heads; }
  int64_t length() const { return layout_.length; }
  int64_t size() const { return layout_.size; }
  /// The `size()` elements at a position.
  double* row(int64_t b, int64_t head, int64_t position) { return values_.data() + layout_.offset(b, head, position); }
  const double* row(int64_t b, int64_t head, int64_t position) const {
    return const_cast<Heads*>(this)->row(b, head, position);
  }
  /// All elements in the layout of the view that it was made from.
  const std::vector<double>& values() const { return values_; }

 private:
  HeadLayout layout_;
  std::vector<double> values_;
};

}  // namespace autograph
