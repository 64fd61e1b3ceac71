#include "support/kernels/run_kernel.h"

#include <cstring>

#include "graph/run_reference.h"

namespace autograph {
namespace {

// Memory for these dims in a layout: in one row where the layout pads channels.
Tensor memory_for(DType dtype, const Dims& dims, Layout layout) {
  return Tensor::zeros(dtype, padded_dims(layout, dims) == dims ? dims : Dims{padded_elements(layout, dims)});
}

// The numbers of a tensor at the front of memory that has room for a layout.
Tensor with_room(const Tensor& from, Layout layout) {
  Tensor to = memory_for(from.dtype(), from.dims(), layout);
  std::memcpy(to.mutable_raw(), from.raw(), from.size_bytes());
  return to;
}

}  // namespace

int64_t padded_elements(Layout layout, const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t extent : padded_dims(layout, dims)) elements *= extent;
  return elements;
}

KernelCase::KernelCase(const OpDef& op, OpSample sample, KernelSetup setup)
    : test_(make_sample_graph(op, sample, false, setup.constant_weights)), setup_(setup) {
  const Node& node = test_.graph.node(test_.graph.nodes().front());
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    inputs_.push_back(sample.inputs[k].is_tensor() ? sample.inputs[k].tensor() : Tensor());
    input_types_.push_back(inputs_.back().is_present() ? inputs_.back().type() : Type());
    input_views_.push_back(inputs_.back().is_present() ? inputs_.back().view() : TensorView());
    const Layout layout = setup.variant ? setup.variant->input(k) : Layout::row_major;
    if (layout != Layout::row_major) {
      padded_.push_back(with_room(inputs_.back(), layout));
      input_views_.back() = TensorView(inputs_.back().dtype(), inputs_.back().dims(), padded_.back().mutable_raw());
    }
    // Lists of axes are constants in every graph.
    const bool known = (setup.constant_weights && k > 0 && k < setup.first_unknown) || is_shape_like(sample.inputs[k]);
    constants_.push_back(known ? inputs_.back() : Tensor());
  }
  for (const ValueId output : node.outputs()) output_types_.push_back(test_.graph.value(output).type());
}

KernelCall KernelCase::call() const {
  const Node& node = test_.graph.node(test_.graph.nodes().front());
  return {.op = node.op(),
          .attributes = node.attributes(),
          .inputs = input_types_,
          .outputs = output_types_,
          .constants = constants_,
          .threads = setup_.threads,
          .exact = setup_.exact,
          .variant = setup_.variant,
          .packed = setup_.packed};
}

std::vector<Tensor> KernelCase::reference() const {
  const KernelCall of = call();
  return run_reference(of.op, of.attributes, inputs_, output_types_);
}

KernelRun::KernelRun(const KernelDef& def, const KernelCase& of) : case_(of) {
  const KernelCall call = of.call();
  refusal_ = def.why_not(call);
  if (!refusal_.empty()) return;
  Prepared prepared = def.prepare(call);
  kernel_ = std::move(prepared.kernel);
  refusal_ = prepared.refusal;
  if (!kernel_) return;
  state_ = kernel_->new_state();
  scratch_ = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel_->scratch_bytes())});
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    const DType dtype = call.outputs[k].dtype();
    const Layout layout = call.variant ? call.variant->output(k) : Layout::row_major;
    outputs_.push_back(memory_for(dtype, call.output_dims(k), layout));
    output_views_.emplace_back(dtype, call.output_dims(k), outputs_.back().mutable_raw());
  }
}

void KernelRun::run() { kernel_->run({case_.inputs(), output_views_, scratch_.mutable_raw(), state_.get()}); }

}  // namespace autograph
