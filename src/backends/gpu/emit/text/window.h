// Sliding windows as text, shared by pools and convolutions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/gpu/emit/text/writer.h"
#include "ops/window/window_geometry.h"

namespace autograph::gpu {

/// Extents of the input, the output and the kernel of windows.
Dims in_extents(const std::vector<WindowAxis>& axes);
Dims out_extents(const std::vector<WindowAxis>& axes);
Dims kernel_extents(const std::vector<WindowAxis>& axes);

/// Covers all positions and steps of windows, in the padding, too. What is below needs that.
void cover_windows(IndexType& index, const std::vector<WindowAxis>& axes);

/// Writes nested loops over the taps of the window at output position `o` (flat, among the output's) that lie inside
/// the input, and in them `body`: the tap's flat position in the input is in `p`, in the kernel in `k`.
void write_taps(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view o,
                const std::function<void()>& body);

/// The other way round: loops over the windows that have the input's position `p` (flat) among their taps. In `body`
/// the window's flat position in the output is in `o`, the tap's in the kernel in `k`.
void write_windows_over(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view p,
                        const std::function<void()>& body);

/// Where tap `k` (flat) of output `o` (flat) lies in the input, and under which condition it lies inside; "" for
/// always.
struct TapText {
  std::string position;
  std::string inside;
};

/// The same for one tap, without loops; declares what it needs.
TapText write_tap(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view o, std::string_view k);

/// The same in two halves, of which each is written once for many of the other: what depends on the output alone and on
/// the tap alone. Names that they declare end with `id`; the position is the sum of "window<id>" and "tap<id>".
void write_window(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view o, std::string_view id);
void write_tap_alone(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view k, std::string_view id);
std::string inside_of(Writer& writer, const std::vector<WindowAxis>& axes, std::string_view window_id,
                      std::string_view tap_id);

}  // namespace autograph::gpu
