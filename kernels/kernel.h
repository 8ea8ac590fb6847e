// The kernel interface: how the runtime calls compute.
//
// A kernel is made once per instruction and rank when a plan is loaded, by one of the threads that may run it
// (libraries like oneDNN bind to the thread's settings, which these share), and run many times, once at a time but not
// always on the same thread. `run` allocates nothing and does not wait for other ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/describe/kernel_spec.h"

namespace weft {

struct KernelArguments {
  const void* const* inputs = nullptr;
  void* const* outputs = nullptr;
  const int64_t* scalars = nullptr;  // origins, micro-batch index: see each kernel's comment
  void* workspace = nullptr;         // at least workspaceBytes(), 64-byte aligned
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Errors are about data (an index out of range); shapes were checked when the kernel was made.
  virtual absl::Status run(const KernelArguments& args) = 0;
  virtual int64_t workspaceBytes() const { return 0; }
};

using KernelFactory = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelSpec&)>;

// Kernels by name; an object that is passed along, so a user can add his own.
class KernelRegistry {
 public:
  // Replaces an existing entry of the same name.
  void add(const std::string& name, KernelFactory factory);
  // Errors: unknown kernel; shapes, types or attributes the kernel does not accept (both values named).
  absl::StatusOr<std::unique_ptr<Kernel>> create(const KernelSpec& spec) const;
  // The entries of another registry, too; they replace those of the same names.
  void addAll(const KernelRegistry& others);
  bool contains(const std::string& name) const { return factories_.count(name) > 0; }

 private:
  std::unordered_map<std::string, KernelFactory> factories_;
};

struct CpuKernelOptions {
  bool plainMatmul = false;  // own loops instead of oneDNN (sanitizers, f64 always)
};

// All built-in CPU kernels.
KernelRegistry cpuKernels(const CpuKernelOptions& options = {});

}  // namespace weft
