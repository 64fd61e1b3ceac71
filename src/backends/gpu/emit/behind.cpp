// What follows a product or convolution of a library.
#include "backends/gpu/emit/text/epilogue.h"
#include "ops/defs.h"

namespace autograph::gpu {

Emitted emit_behind(const KernelCall& call, const OpDef& producer, const Target& target) {
  if (&call.op != &fused_def()) return refused("no fused body");
  Epilogue epilogue(call, producer);
  if (!epilogue.refusal().empty()) return refused(epilogue.refusal());
  const DType dtype = call.outputs[0].dtype();
  if (epilogue.producer().outputs[0].dtype() != dtype) return refused("an output of another dtype than the product");
  Writer writer(target);
  epilogue.cover(writer.index());
  writer.begin_items(epilogue.parameters(), num_elements(call.output_dims(0)));
  epilogue.store(writer, "i", load(dtype, "y", "i"));
  writer.end();
  return epilogue.refusal().empty() ? writer.finish() : refused(epilogue.refusal());
}

}  // namespace autograph::gpu
