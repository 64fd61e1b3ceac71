// ConvForm: a convolution with all its attributes filled in, and what rules make of several.
#pragma once

#include <optional>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

struct ConvForm {
  NodeId node;
  ValueId x;
  ValueId w;
  ValueId b;  ///< Invalid: none.
  std::vector<int64_t> strides;
  std::vector<int64_t> pads;  ///< Begins, then ends.
  std::vector<int64_t> dilations;
  int64_t group = 1;
  Dims kernel;
  int64_t out_channels = 0;

  /// Same strides and dilations.
  bool same_steps(const ConvForm& other) const;
  /// Same strides, dilations, pads and kernel extents.
  bool same_window(const ConvForm& other) const;
};

/// The form of a conv node; its types must be static.
ConvForm conv_form(const Graph& graph, NodeId node);

/// The form of the conv that is a statement of the pattern.
ConvForm conv_form(const RuleMatch& match, size_t statement);

/// The form, when weights and bias are constants and the types of input and result static.
std::optional<ConvForm> weighted_conv(const Graph& graph, NodeId node);

/// Can both be groups of one conv: the same window, as many input and output channels in each group, and inputs that
/// differ in channels alone?
bool are_groups(const Graph& graph, const ConvForm& a, const ConvForm& b);

/// Have weights of these dims one tap?
bool is_pointwise(const Dims& weights);

/// The attributes of the form.
Attributes attributes_of(const ConvForm& form);

/// The smallest window that holds the taps of both, so that kernels filled up with zeros compute the same; nothing when
/// steps differ, taps lie between each other's, or the results have different extents.
std::optional<ConvForm> common_window(const Graph& graph, const ConvForm& a, const ConvForm& b);

/// The weights of `form`, filled up with zeros to the window of `window`.
ValueId enlarged_weights(RuleBuilder& builder, const ConvForm& form, const ConvForm& window);

/// A conv of `x` with the window of `form`.
ValueId add_conv(RuleBuilder& builder, const ConvForm& form, ValueId x, ValueId w, ValueId bias, int64_t group);

/// The weights of each form.
std::vector<ValueId> weights_of(const std::vector<ConvForm>& forms);

/// All forms as groups of one conv of `x`, their inputs joined.
ValueId grouped_conv(RuleBuilder& builder, const std::vector<ConvForm>& forms, ValueId x);

/// Tells the builder that all forms go.
void include(RuleBuilder& builder, const std::vector<ConvForm>& forms);

/// The sum of biases; an invalid id when no form has one.
ValueId sum_of_biases(RuleBuilder& builder, const std::vector<ConvForm>& forms);

/// The biases one after the other, zeros where there is none; an invalid id when no form has one. With `group` above 1,
/// those of each group together.
ValueId joined_biases(RuleBuilder& builder, const std::vector<ConvForm>& forms, int64_t group = 1);

/// One convolution in place of several of the same input, window and number of groups. Its channels are those of the
/// first group of all, then of the second, and so on.
ValueId merged_conv(RuleBuilder& builder, const std::vector<ConvForm>& forms, const std::vector<ValueId>& weights,
                    const ConvForm& window);

/// One convolution in place of several of the same input, window and number of groups, and its pieces. With more than
/// one group, the channels of each group are put together, and apart again behind it.
std::vector<ValueId> merge_outputs(RuleBuilder& builder, const std::vector<ConvForm>& forms,
                                   const std::vector<ValueId>& weights, const ConvForm& window);

}  // namespace autograph
