#include "kernels/kernel.h"

#include "absl/strings/str_cat.h"

namespace weft {

void KernelRegistry::add(const std::string& name, KernelFactory factory) {
  factories_[name] = std::move(factory);
}

void KernelRegistry::addAll(const KernelRegistry& others) {
  for (const auto& [name, factory] : others.factories_) {
    factories_[name] = factory;
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::create(const KernelSpec& spec) const {
  const auto it = factories_.find(spec.name);
  if (it == factories_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no kernel '", spec.name, "' in this runtime; register it with KernelRegistry::add"));
  }
  return it->second(spec);
}

}  // namespace weft
