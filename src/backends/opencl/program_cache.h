// Programs built at run time: each once in a process, and once on a machine, as files keep what the driver made.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backends/gpu/program_store.h"
#include "backends/opencl/api.h"

namespace autograph::opencl {

/// A program that was built.
class Program {
 public:
  Program(cl_program program, Hash128 key) : program_(program), key_(key) {}
  ~Program() { api().clReleaseProgram(program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  cl_program get() const { return program_; }
  /// Hash of source, options, device and driver.
  const Hash128& key() const { return key_; }

 private:
  cl_program program_;
  Hash128 key_;
};

/// The programs of one device. Any number of threads may ask at once.
class ProgramCache {
 public:
  /// `identity` tells device and driver apart. Files lie in `folder`, which is made; where it is "" or cannot be
  /// written, programs are built anew in each process. With `declarations` (kDeclarations) programs are built without
  /// the driver's header.
  ProgramCache(cl_context context, cl_device_id device, std::string identity, const std::string& folder,
               std::string declarations = "");
  /// `source` built. Throws InternalError with the compiler's messages when it does not compile.
  std::shared_ptr<const Program> get(const std::string& source);
  gpu::ProgramCounts counts() const { return programs_.counts(); }
  /// Are programs built without the driver's header? No longer once one was built with it alone.
  bool is_without_header() const { return is_without_header_; }

 private:
  gpu::BuiltProgram<Program> build(const std::string& source, const Hash128& key) const;
  cl_program from_binary(const std::string& binary) const;
  cl_program from_source(const std::string& source) const;
  cl_program without_header(const std::string& source) const;

  cl_context context_;
  cl_device_id device_;
  std::string identity_;
  std::string declarations_;
  mutable std::atomic<bool> is_without_header_;
  gpu::ProgramFiles files_;
  gpu::SharedPrograms<Program> programs_;
};

}  // namespace autograph::opencl
