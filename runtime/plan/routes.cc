#include "runtime/plan/routes.h"

#include "runtime/plan/statistics.h"

namespace weft {

Routes::Routes(const plan::Plan& plan) {
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    for (const plan::Function& function : submesh->functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        const plan::Transfer& transfer = instruction.transfer();
        if (!instruction.has_transfer() || transfer.send()) {
          continue;
        }
        forEachRoute(transfer, submesh->ranks(),
                     [&](int64_t source, int64_t target, const plan::Transfer::Box* /*box*/) {
                       targets_[{transfer.channel(), source}].push_back(target);
                       sources_[{transfer.channel(), target}].push_back(source);
                     });
      }
    }
  }
}

const std::vector<int64_t>& Routes::find(const Ends& ends, uint32_t channel, int64_t place) {
  static const std::vector<int64_t> none;
  const auto it = ends.find({channel, place});
  return it == ends.end() ? none : it->second;
}

const std::vector<int64_t>& Routes::targets(uint32_t channel, int64_t source) const {
  return find(targets_, channel, source);
}

const std::vector<int64_t>& Routes::sources(uint32_t channel, int64_t target) const {
  return find(sources_, channel, target);
}

}  // namespace weft
