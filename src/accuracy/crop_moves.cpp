// Rules for ops that take elements from places which other inputs name.
#include <algorithm>

#include "accuracy/crop_rules.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

size_t axis_of(const WholeCall& call) {
  const int64_t axis = call.attributes.get_or<int64_t>("axis", 0);
  return static_cast<size_t>(front_axis(axis, std::ssize(call.dims(0))));
}

bool is_one(const WholeCall& call, size_t slot, size_t at) {
  const Tensor& known = call.known[slot];
  return known.is_present() && known.num_elements() > static_cast<int64_t>(at) && known.to_f64()[at] == 1;
}

}  // namespace

// y[i, q, j] = data[i, indices[q], j].
Cropped crop_gather(const WholeCall& call, const Selection& wanted) {
  const size_t axis = axis_of(call), rank = call.dims(0).size(), index_rank = call.dims(1).size();
  CroppedCall cropped = start_crop(call, wanted);
  for (size_t a = 0; a < rank; ++a) {
    if (a != axis) cropped.inputs[0][a] = wanted[a < axis ? a : a - 1 + index_rank];
  }
  for (size_t a = 0; a < index_rank; ++a) cropped.inputs[1][a] = wanted[axis + a];
  return cropped;
}

// Positions are those of the indices on all axes but one.
Cropped crop_gather_elements(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[1] = wanted;
  for (size_t a = 0; a < wanted.size(); ++a) {
    if (a != axis_of(call)) cropped.inputs[0][a] = wanted[a];
  }
  return cropped;
}

// y[b, q, j] = data[b, indices[b, q, :], j].
Cropped crop_gather_nd(const WholeCall& call, const Selection& wanted) {
  const size_t rank = call.dims(0).size(), index_rank = call.dims(1).size();
  const auto batch = static_cast<size_t>(call.attributes.get_or<int64_t>("batch_dims", 0));
  const size_t tail = batch + static_cast<size_t>(call.dims(1).back());  // axes of data from here on are kept
  CroppedCall cropped = start_crop(call, wanted);
  for (size_t a = 0; a + 1 < index_rank; ++a) cropped.inputs[1][a] = wanted[a];
  for (size_t a = 0; a < batch; ++a) cropped.inputs[0][a] = wanted[a];
  for (size_t a = tail; a < rank; ++a) cropped.inputs[0][a] = wanted[index_rank - 1 + a - tail];
  return cropped;
}

// On axes where there are as many updates as elements, lines do not touch each other.
Cropped crop_scatter_elements(const WholeCall& call, const Selection& wanted) {
  const Dims data = call.dims(0);
  CroppedCall cropped = start_crop(call, select_all(data));
  for (size_t a = 0; a < wanted.size(); ++a) {
    if (a == axis_of(call) || call.dims(1)[a] != data[a]) continue;
    cropped.made[a] = wanted[a];
    for (Selection& input : cropped.inputs) input[a] = wanted[a];
  }
  return cropped;
}

// Axes behind those that the indices name are kept.
Cropped crop_scatter_nd(const WholeCall& call, const Selection& wanted) {
  const size_t index_rank = call.dims(1).size();
  const auto named = static_cast<size_t>(call.dims(1).back());
  CroppedCall cropped = start_crop(call, select_all(call.dims(0)));
  for (size_t a = named; a < wanted.size(); ++a) {
    cropped.made[a] = cropped.inputs[0][a] = cropped.inputs[2][index_rank - 1 + a - named] = wanted[a];
  }
  return cropped;
}

// Images and channels, where nothing happens along their axes.
Cropped crop_resize(const WholeCall& call, const Selection& wanted) {
  const bool crops = call.attributes.get_or<std::string>("coordinate_transformation_mode", "") == "tf_crop_and_resize";
  const bool has_axes = call.attributes.find_as<std::vector<int64_t>>("axes") != nullptr;
  if (wanted.size() < 3 || crops || has_axes || !call.has(2) || call.has(3)) return std::nullopt;
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  for (const size_t axis : {0, 1}) {
    if (is_one(call, 2, axis)) cropped.made[axis] = cropped.inputs[0][axis] = wanted[axis];
  }
  return cropped;
}

// Each pixel reads where the grid says, in the whole image.
Cropped crop_grid_sample(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  for (const size_t axis : {0, 1}) cropped.inputs[0][axis] = wanted[axis];
  cropped.inputs[1][0] = wanted[0];
  for (size_t axis = 2; axis < wanted.size(); ++axis) cropped.inputs[1][axis - 1] = wanted[axis];
  return cropped;
}

}  // namespace autograph
