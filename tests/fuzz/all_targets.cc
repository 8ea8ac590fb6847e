#include <algorithm>

#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

std::vector<Target> allTargets() {
  std::vector<Target> all = {planTarget(),  decisionsTarget(), safetensorsTarget(), idxTarget(),
                             textTarget(),  scheduleTarget(),  lifetimesTarget(),   traceTarget(),
                             flagsTarget(), layoutsTarget(),   graphTarget(),       strategyGraphTarget(),
                             bpeTarget()};
#if WEFT_FUZZ_COMPILER
  all.push_back(irTarget());
  all.push_back(exampleFlagsTarget());
#endif
  return all;
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> kAll = allTargets();
  return kAll;
}

const Target* findTarget(const std::string& name) {
  const auto found =
      std::find_if(targets().begin(), targets().end(), [&](const Target& target) { return target.name == name; });
  return found == targets().end() ? nullptr : &*found;
}

}  // namespace weft::fuzz
