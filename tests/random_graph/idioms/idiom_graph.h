// The graph that a run of idioms writes, and what they draw it with.
//
// A graph is made of blocks (idioms.h). A block asks for a value of the kind that it works on: an image [N, C, H, W], a
// sequence [N, length, width], a row for each entry [N, width]. It gets one that an earlier block left, perhaps led
// there the way models do it (flattened patches, a pooled image, the first token), or a new input of the graph.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/random.h"
#include "ops/sample.h"
#include "support/graphs/sample_graph.h"

namespace autograph {

class IdiomGraph {
 public:
  /// Draws the dtype of the floats, whether extents are symbols, and what the inputs look like.
  explicit IdiomGraph(uint64_t seed);
  IdiomGraph(const IdiomGraph&) = delete;
  IdiomGraph& operator=(const IdiomGraph&) = delete;

  // ---- Drawing ----
  Random& random() { return random_; }
  int64_t between(int64_t low, int64_t high) { return draw(random_, low, high); }
  bool chance(int percent) { return draw(random_, 1, 100) <= percent; }
  double real(double low, double high);
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return draw_one_of(random_, values);
  }
  /// One of the entries, or of `values`.
  Var one_of(const std::vector<Var>& values) { return values[static_cast<size_t>(between(0, std::ssize(values) - 1))]; }
  /// Channels as models have them, and those that no vector is as wide as.
  int64_t channels();

  // ---- Values ----
  Graph& graph() { return result_.graph; }
  DType dtype() const { return dtype_; }
  bool is_dynamic() const { return is_dynamic_; }
  Var image();
  Var sequence();
  Var row();
  /// An earlier value of just this type; invalid when there is none.
  Var earlier(const Type& type);
  /// Leaves `v` for the blocks behind; some of these values are outputs of the graph although others read them.
  void leave(Var v);
  /// As leave(), for what no block takes up.
  void output(Var v) { graph().add_output(v.id()); }

  /// A new input. Extents below 0 stand for the batch (-1) and free extents (-2, -3), which may be symbols.
  Var input(DType dtype, Dims dims, double low = -2, double high = 2);
  /// A constant of floats.
  Var weight(Dims dims, double low = -0.5, double high = 0.5);
  Var weight_like(Var like, Dims dims, double low = -0.5, double high = 0.5);
  Var constant(Tensor tensor) { return autograph::constant(graph(), std::move(tensor)); }
  Var integers(const std::vector<int64_t>& values) { return constant(Tensor::vector(values)); }
  /// One element of the dtype of `like`, as [], [1] or [1, 1, ...] up to its rank.
  Var number(Var like, double value);
  /// One element for each position along `axis` of `like`: [C, 1, 1], [1, C, 1, 1]; [C] or the like on the last axis.
  Var per_channel(Var like, int64_t axis, double low, double high);

  /// Ends the graph: what nobody reads is an output.
  TestGraph finish();

 private:
  Var led_to(int64_t rank);
  Tensor elements(DType dtype, const Dims& dims, double low, double high);

  Random random_;
  DType dtype_ = DType::f32;
  bool is_dynamic_ = false;
  int64_t batch_ = 1;
  enum class Look : uint8_t { plain, large, tiny, equal, zero, sparse, whole } look_ = Look::plain;
  std::vector<Var> left_;
  TestGraph result_;
};

}  // namespace autograph
