// non_max_suppression: for every batch and class, takes boxes from the highest score down and drops each box whose
// intersection over union with one taken before is above iou_threshold. Only scores above score_threshold count, and at
// most max_output_boxes_per_class boxes are taken. Equal scores keep the order of the boxes; boxes without area overlap
// nothing. The result has one row [batch, class, box] per box taken.
#include <algorithm>
#include <numeric>

#include "autograph/op_def.h"
#include "autograph/ops/vision.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/vision/box_index.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(0, 3);
  context.require_rank(1, 3);
  const Shape& boxes = context.shape(0);
  const Shape& scores = context.shape(1);
  if (boxes.has_rank()) {
    context.require<ShapeError>(boxes[2].value_or(4) == 4, "boxes", "expected [N, boxes, 4], got " + to_string(boxes));
  }
  if (boxes.is_static() && scores.is_static()) {
    context.require<ShapeError>(
        boxes[0] == scores[0] && boxes[1] == scores[2], "scores",
        "expected [N, classes, boxes] for boxes " + to_string(boxes) + ", got " + to_string(scores));
  }
  context.set_output(0, DType::i64, Shape{Dim::unknown(), Dim(3)});
}

Box box_of(const float* data, bool centered) {
  if (centered) {
    return {{data[0] - data[2] / 2, data[1] - data[3] / 2}, {data[0] + data[2] / 2, data[1] + data[3] / 2}};
  }
  return {{std::min(data[0], data[2]), std::min(data[1], data[3])},
          {std::max(data[0], data[2]), std::max(data[1], data[3])}};
}

struct Limits {
  int64_t max_boxes;
  float iou;
  const float* score;  // null: no limit
  bool centered;
};

// Boxes of one batch and class, in the order in which they are taken.
std::vector<int64_t> select(const float* boxes, const float* scores, int64_t count, const Limits& limits) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  // Also drops NaN scores, which have no place in an order.
  std::erase_if(order,
                [&](int64_t i) { return scores[i] != scores[i] || (limits.score && !(scores[i] > *limits.score)); });
  std::stable_sort(order.begin(), order.end(), [scores](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  std::vector<Box> candidates;
  for (const int64_t i : order) candidates.push_back(box_of(boxes + 4 * i, limits.centered));
  BoxIndex index(candidates);
  std::vector<int64_t> taken;
  for (size_t k = 0; k < order.size() && static_cast<int64_t>(taken.size()) < limits.max_boxes; ++k) {
    if (index.has_overlap(candidates[k], limits.iou)) continue;
    index.add(candidates[k]);
    taken.push_back(order[k]);
  }
  return taken;
}

// The one element of an optional scalar, or null.
template <class T>
const T* scalar(const EvaluateContext& context, size_t slot, const char* name) {
  if (!context.has_input(slot)) return nullptr;
  const Tensor& tensor = context.tensor(slot);
  AG_CHECK_USER(tensor.num_elements() == 1, ShapeError, "[non_max_suppression] {}: expected one element, got {}", name,
                to_string(tensor.dims()));
  return tensor.data<T>();
}

std::vector<Datum> evaluate(EvaluateContext& context) {
  const Tensor& boxes = context.tensor(0);
  const Tensor& scores = context.tensor(1);
  const int64_t* max_boxes = scalar<int64_t>(context, 2, "max_output_boxes_per_class");
  const float* iou = scalar<float>(context, 3, "iou_threshold");
  AG_CHECK_USER(!iou || (*iou >= 0 && *iou <= 1), ValueError,
                "[non_max_suppression] iou_threshold: expected 0..1, got {}", iou ? *iou : 0);
  const Limits limits{max_boxes ? *max_boxes : 0, iou ? *iou : 0, scalar<float>(context, 4, "score_threshold"),
                      context.attributes().flag("center_point_box")};
  const int64_t classes = scores.dims()[1];
  const int64_t count = scores.dims()[2];
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < scores.dims()[0] * classes; ++i) {
    const float* batch_boxes = boxes.data<float>() + i / classes * count * 4;
    for (const int64_t box : select(batch_boxes, scores.data<float>() + i * count, count, limits)) {
      rows.insert(rows.end(), {i / classes, i % classes, box});
    }
  }
  Tensor result = context.allocate(DType::i64, {static_cast<int64_t>(rows.size()) / 3, 3});
  std::copy(rows.begin(), rows.end(), result.mutable_data<int64_t>());
  return {result};
}

OpSample sample(Random& random) {
  const int64_t batch = draw(random, 1, 2);
  const int64_t boxes = draw(random, 1, 6);
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, {batch, boxes, 4}, 0, 1),
                             draw_tensor(random, DType::f32, {batch, draw(random, 1, 2), boxes}, 0, 1),
                             Tensor::scalar<int64_t>(draw(random, 0, 4))},
                  .attributes = {{"center_point_box", draw(random, 0, 1)}}};
  if (draw_bool(random)) {
    sample.inputs.emplace_back(Tensor::scalar<float>(0.5F));
    sample.inputs.emplace_back(Tensor::scalar<float>(0.2F));
  }
  return sample;
}

}  // namespace

Var non_max_suppression(Var boxes, Var scores, Var max_per_class, Var iou_threshold, Var score_threshold,
                        bool center_point_box) {
  return apply(non_max_suppression_def(), {boxes, scores, max_per_class, iou_threshold, score_threshold},
               {{"center_point_box", int64_t{center_point_box}}});
}

const OpDef& non_max_suppression_def() {
  static const OpDef def{
      .name = "non_max_suppression",
      .doc = "Boxes from the highest score down, without those that overlap one taken before.",
      .inputs = {{"boxes", "T", "[N, boxes, 4]: two opposite corners (y, x), or centre and size."},
                 {"scores", "T", "[N, classes, boxes]."},
                 {"max_output_boxes_per_class", "I", "Scalar; default 0: no boxes.", Arity::optional},
                 {"iou_threshold", "T", "Scalar in 0..1; default 0.", Arity::optional},
                 {"score_threshold", "T", "Scalar; default: every score counts.", Arity::optional}},
      .outputs = {{"selected_indices", "I", "[selected, 3]: batch, class, box."}},
      .types = {{"T", dtypes::kF32}, {"I", dtypes::kI64}},
      .attributes = {{"center_point_box", AttributeType::integer, "1: boxes are [x centre, y centre, width, height].",
                      int64_t{0}}},
      .infer = infer,
      .evaluate = evaluate,
      .no_grad = "selects indices",
      .onnx = {{.name = "NonMaxSuppression", .since = 10}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
