#include "backends/cuda/module.h"

#include "backends/cuda/libraries/nvrtc.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

Module::Module(const Machine& machine, const std::string& cubin) : machine_(machine) {
  machine.make_current();
  machine.check(driver().cuModuleLoadData(&module_, cubin.data()), "cuModuleLoadData");
}

Module::~Module() {
  machine_.make_current();
  driver().cuModuleUnload(module_);
}

CUfunction Module::function(const std::string& name) const {
  machine_.make_current();
  CUfunction function = nullptr;
  machine_.check(driver().cuModuleGetFunction(&function, module_, name.c_str()), "cuModuleGetFunction");
  return function;
}

std::shared_ptr<const Module> ModuleCache::get(const std::string& source) {
  const Hash128 key = Hasher()
                          .add(source)
                          .add(std::string_view(Compiler::options(machine_.architecture())))
                          .add(static_cast<int64_t>(compiler().version()))
                          .finish();
  return modules_.get(key, [&] { return build(source, key); });
}

gpu::BuiltProgram<Module> ModuleCache::build(const std::string& source, const Hash128& key) const {
  if (const std::string cubin = files_.load(key); !cubin.empty()) {
    return {std::make_shared<Module>(machine_, cubin), true};
  }
  std::string cubin = compiler().compile(source, machine_.architecture());
  files_.save(key, [&] { return cubin; });
  return {std::make_shared<Module>(machine_, cubin), false};
}

}  // namespace autograph::cuda
