// Rules for convolutions and pools: the windows of some outputs, and the channels that they read.
#include <algorithm>
#include <set>

#include "accuracy/crop_rules.h"
#include "ops/defs.h"
#include "ops/window/window_geometry.h"

namespace autograph {
namespace {

// The part of x under the windows of a stretch of outputs on each spatial axis, with the padding that is left there.
bool crop_windows(const WholeCall& call, const Dims& kernel, const Selection& wanted, CroppedCall& cropped) {
  const Dims in = call.dims(0);
  const size_t spatial = in.size() - 2;
  const auto windows = resolve_windows(window_spec(call.attributes, kernel), std::span(in).subspan(2));
  std::vector<int64_t> pads(2 * spatial, 0);
  for (size_t axis = 0; axis < spatial; ++axis) {
    const WindowAxis& window = windows[axis];
    const auto [low, high] = std::minmax_element(wanted[axis + 2].begin(), wanted[axis + 2].end());
    const int64_t begin = *low * window.stride - window.pad_begin;
    const int64_t end = *high * window.stride - window.pad_begin + (window.kernel - 1) * window.dilation + 1;
    const int64_t from = std::clamp<int64_t>(begin, 0, window.in);
    const int64_t to = std::clamp<int64_t>(end, 0, window.in);
    if (from >= to) return false;
    pads[axis] = from - begin;
    pads[axis + spatial] = end - to;
    cropped.inputs[0][axis + 2] = all_of(window.in);
    cropped.inputs[0][axis + 2] = {cropped.inputs[0][axis + 2].begin() + from,
                                   cropped.inputs[0][axis + 2].begin() + to};
    cropped.made[axis + 2].clear();
    for (int64_t o = *low; o <= *high; ++o) cropped.made[axis + 2].push_back(o);
  }
  cropped.attributes.set("pads", pads);
  cropped.attributes.set("auto_pad", std::string("NOTSET"));
  return true;
}

// The groups that some output channels belong to, and the places that these have in theirs.
struct GroupedChannels {
  std::set<int64_t> groups;
  std::set<int64_t> offsets;

  GroupedChannels(const std::vector<int64_t>& channels, int64_t group_size) {
    for (const int64_t channel : channels) {
      groups.insert(channel / group_size);
      offsets.insert(channel % group_size);
    }
  }
  /// All channels of these groups, of `size` each.
  std::vector<int64_t> of_groups(int64_t size) const {
    std::vector<int64_t> result;
    for (const int64_t group : groups) {
      for (int64_t c = 0; c < size; ++c) result.push_back(group * size + c);
    }
    return result;
  }
};

// The smaller call has as many output channels of each group that it has any of. `per_channel`: inputs that may have
// one element for each output channel.
Cropped crop_convolution(const WholeCall& call, const Selection& wanted, size_t w,
                         std::initializer_list<size_t> per_channel) {
  const Dims weights = call.dims(w);
  const int64_t group_size = weights[0] / call.attributes.get_or<int64_t>("group", 1);
  const GroupedChannels channels(wanted[1], group_size);
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0][0] = wanted[0];
  cropped.inputs[0][1] = channels.of_groups(weights[1]);
  cropped.made[1].clear();
  for (const int64_t group : channels.groups) {
    for (const int64_t offset : channels.offsets) cropped.made[1].push_back(group * group_size + offset);
  }
  cropped.inputs[w][0] = cropped.made[1];
  for (const size_t slot : per_channel) {
    if (call.dims(slot) == Dims{weights[0]} && weights[0] > 1) cropped.inputs[slot] = {cropped.made[1]};
  }
  cropped.attributes.set("group", std::ssize(channels.groups));
  if (!crop_windows(call, Dims(weights.begin() + 2, weights.end()), wanted, cropped)) return std::nullopt;
  return cropped;
}

}  // namespace

Cropped crop_pool(const WholeCall& call, const Selection& wanted) {
  // Windows that reach over the padding count otherwise in means.
  if (call.attributes.flag("ceil_mode") && &call.op != &max_pool_def()) return std::nullopt;
  CroppedCall cropped = start_crop(call, wanted);
  for (const size_t axis : {0, 1}) cropped.inputs[0][axis] = wanted[axis];
  if (!crop_windows(call, call.attributes.integers("kernel_shape"), wanted, cropped)) return std::nullopt;
  if (call.attributes.flag("ceil_mode")) cropped.attributes.set("ceil_mode", int64_t{0});
  return cropped;
}

Cropped crop_conv(const WholeCall& call, const Selection& wanted) {
  return crop_convolution(call, wanted, 1, {2});  // bias
}

Cropped crop_conv_integer(const WholeCall& call, const Selection& wanted) {
  return crop_convolution(call, wanted, 1, {3});  // zero points of the weights
}

Cropped crop_qlinear_conv(const WholeCall& call, const Selection& wanted) {
  return crop_convolution(call, wanted, 3, {4, 5, 8});  // scales and zero points of the weights, bias
}

// Images of the batch, and output channels where they are no matter of groups.
Cropped crop_conv_transpose(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[0] = wanted[0];
  cropped.inputs[0][0] = wanted[0];
  if (call.attributes.get_or<int64_t>("group", 1) > 1) return cropped;
  cropped.made[1] = wanted[1];
  cropped.inputs[1][1] = wanted[1];
  if (call.has(2)) cropped.inputs[2] = {wanted[1]};
  return cropped;
}

// Every weight takes two channels, one of x and one of gy. In groups, which have all of theirs.
Cropped crop_conv_grad_weight(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  const int64_t num_groups = call.attributes.get_or<int64_t>("group", 1);
  if (num_groups > 1) {
    const GroupedChannels channels(wanted[0], call.dims(1)[1] / num_groups);
    cropped.inputs[0][1] = channels.of_groups(call.dims(0)[1] / num_groups);
    cropped.made[0] = cropped.inputs[1][1] = channels.of_groups(call.dims(1)[1] / num_groups);
    cropped.attributes.set("group", std::ssize(channels.groups));
    return cropped;
  }
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    cropped.made[axis] = wanted[axis];
    cropped.inputs[1 - axis][1] = wanted[axis];
  }
  return cropped;
}

}  // namespace autograph
