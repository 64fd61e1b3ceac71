// Classifiers of trees: [batch, 3, nodes] numbers to [batch, classes] scores.
#pragma once

#include <cstdint>
#include <memory>

#include "autograph/nn/module.h"

namespace autograph {

/// How large they are.
struct TreeModelSizes {
  int64_t types = 0;  ///< Types of nodes, 0 for no node among them.
  int64_t nodes = 0;  ///< Positions of a tree.
  int64_t classes = 0;
  int64_t width = 64;    ///< Of what stands for a type.
  int64_t hidden = 128;  ///< Of the state of a node.
  double dropout = 0.2;
};

/// A binary Tree-LSTM (Tai, Socher and Manning, "Improved Semantic Representations From Tree-Structured Long Short-Term
/// Memory Networks", ACL 2015, section 3.2 with N = 2) and a linear layer on the state of the root.
///
/// Trees of any arity are binary by first child and next sibling. Their nodes stand in an order in which both come
/// before the node itself, the root last; trees of fewer nodes have positions of type 0 in front. For each position
/// there are three i64: the type, and the positions of the first child and of the next sibling, counted from 1, 0 for
/// none.
std::unique_ptr<nn::Module> tree_lstm(const TreeModelSizes& sizes);

}  // namespace autograph
