// Factors behind products: may they go into the weights without leaving the range of f32? And those of batch
// normalizations.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// The elements of a tensor that varies along `axis` of a result of rank `rank` alone, one for each of the channels.
/// What it is combined with keeps its shape, whether its other extents are known or not. Nothing where it varies
/// otherwise.
std::optional<std::vector<double>> per_channel(const Tensor& tensor, int64_t rank, int64_t axis, int64_t channels);

/// Each element of an f32 tensor times the factor of its channel, which is its position along `axis`; computed in f64
/// and rounded once.
Tensor scaled_weights(const Tensor& weights, int64_t axis, std::span<const double> factors);

/// Can the products with scaled_weights() take the place of the products with `weights`, times the factors? Not where a
/// weight would overflow that the run's product never was, nor where a channel would vanish in the numbers next to 0;
/// unless what is added to the channel afterwards (`shifts`, one a channel; empty: nothing) leaves nothing of it to
/// see.
bool may_scale_weights(const Tensor& weights, int64_t axis, std::span<const double> factors,
                       std::span<const float> shifts = {});

/// What batch normalization with given statistics does to channel c: y = (x - mean[c]) * factor[c] + bias[c].
struct BatchStatistics {
  std::vector<double> factor;  ///< scale / sqrt(var + epsilon)
  std::span<const float> mean, bias;
};

/// Of a batch normalization outside training whose statistics are constants of f32; nothing for other nodes. Refers to
/// the constants of the graph.
std::optional<BatchStatistics> read_batch_statistics(const Graph& graph, const Node& node);

}  // namespace autograph
