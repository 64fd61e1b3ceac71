// Programs built at run time: each once in a process, and once on a machine, as files keep what the driver made.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/opencl/api.h"
#include "base/hash.h"

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

/// What became of the programs that were asked for.
struct ProgramCounts {
  size_t compiled = 0;   ///< From source.
  size_t from_file = 0;  ///< From the binary of an earlier build.
  size_t shared = 0;     ///< Were there already.
};

/// The programs of one device. Any number of threads may ask at once.
class ProgramCache {
 public:
  /// `identity` tells device and driver apart. Files lie in `folder`, which is made; where it is "" or cannot be
  /// written, programs are built anew in each process.
  ProgramCache(cl_context context, cl_device_id device, std::string identity, std::string folder);
  /// `source` built. Throws InternalError with the compiler's messages when it does not compile.
  std::shared_ptr<const Program> get(const std::string& source);
  ProgramCounts counts() const;

 private:
  std::shared_ptr<const Program> build(const std::string& source, const Hash128& key);
  cl_program from_file(const std::string& path) const;
  cl_program from_source(const std::string& source) const;
  void save(cl_program program, const std::string& path) const;

  cl_context context_;
  cl_device_id device_;
  std::string identity_;
  std::string folder_;        // "": none
  mutable std::mutex mutex_;  // guards the rest
  std::unordered_map<Hash128, std::weak_ptr<const Program>> programs_;
  ProgramCounts counts_;
};

}  // namespace autograph::opencl
