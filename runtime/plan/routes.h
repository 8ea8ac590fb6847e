// The senders and receivers of every channel of a program.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace weft {

// Calls visit(source, target, box) for each message of a receiver's channel, in the order of sending: ranks of the
// sender's and of the receiver's submesh, which has `ranks`. `box` is what of the tensors goes, null for all of it.
template <typename Visit>
void forEachRoute(const plan::Transfer& receive, int64_t ranks, const Visit& visit) {
  for (const plan::Transfer::Box& box : receive.boxes()) {
    visit(box.source(), box.target(), &box);
  }
  for (int64_t rank = 0; receive.boxes_size() == 0 && rank < ranks; ++rank) {
    visit(rank, rank, nullptr);
  }
}

// Ranks are places in the sender's and in the receiver's submesh.
class Routes {
 public:
  // The plan's channels must fit (check_channels.h).
  explicit Routes(const plan::Plan& plan);

  // To whom the rank at `source` sends, in this order; to none where other ranks hold the same and send it.
  const std::vector<int64_t>& targets(uint32_t channel, int64_t source) const;
  // From whom the one at `target` receives.
  const std::vector<int64_t>& sources(uint32_t channel, int64_t target) const;

 private:
  using Ends = std::map<std::pair<uint32_t, int64_t>, std::vector<int64_t>>;
  static const std::vector<int64_t>& find(const Ends& ends, uint32_t channel, int64_t place);

  Ends targets_;
  Ends sources_;
};

}  // namespace weft
