// What is known of opsets 1 to 6, most of whose ops changed with opset 7.
#pragma once

#include <string>

namespace autograph::io {

/// The first opset of which ops of every kind are supported.
inline constexpr int kOldestOpset = 7;

/// Does `op_type` of the default domain mean in `opset`, below kOldestOpset, what it means in that one?
bool is_unchanged_since(const std::string& op_type, int opset);

}  // namespace autograph::io
