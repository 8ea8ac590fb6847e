// Do the two ends of every channel fit?
#pragma once

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

// Every channel has one sender and one receiver, in two submeshes that name each other; rank i's tensor goes to rank i,
// or the receiver's parts, each inside of what its ranks hold, make up the receiving ranks' tensors. A mailbox is
// memory that nothing else uses. A plan without submeshes has no channels. What each submesh holds for itself (indices,
// sizes, operands) must be in range.
absl::Status checkChannels(const plan::Plan& plan);

}  // namespace weft
