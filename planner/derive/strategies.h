// The user's words: shard strategies, constraints and argument layouts, checked and turned into axes of factors.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/derive/shardings.h"

namespace weft {

// The layouts that the user asked for: an argument's own, else, of a parameter, the first pattern of the request that
// matches its name. Texts; one of several layouts, "[{dp},{}];[{},{}]", has one for each submesh.
class UserLayouts {
 public:
  UserLayouts(const ProgramGraph& graph, const std::vector<std::pair<std::string, std::string>>& patterns);

  // Of an argument on the mesh of that number; "" none.
  std::string of(unsigned index, int64_t mesh) const;

 private:
  std::vector<std::string> texts_;  // by argument
};

// Writes what the user said with this priority into shardings; priorities are read in ascending order, from 0.
// Operators whose whole factor he splits, and that have an alternative, are listed in `expansions`. The next priority
// that something has; nothing behind the last. Errors at the user's lines.
absl::StatusOr<std::optional<int64_t>> readUserWords(const SettledGraph& graph, const UserLayouts& layouts,
                                                     int64_t priority, Shardings& shardings);

// The arguments that must be stored padded: index to stored shape.
struct PaddedArguments {
  std::map<unsigned, Shape> stored;
  std::set<unsigned> named;  // whose pads the user's layout names, be they none (pad{1:6} of 6): stored just so
};

// `rows`: what the batch of an input must divide by. The user's layouts are read on the meshes that read the argument;
// the largest pad counts.
absl::StatusOr<PaddedArguments> paddedArguments(const GraphView& view, const Placement& placement, int64_t rows,
                                                const UserLayouts& layouts);

// Parameters whose dimensions do not divide into the parts that a strategy by names splits them into, with the stored
// shapes that do: a vocabulary of 50257 over tp=2. Strategies of operators that read the parameter itself count.
std::map<unsigned, Shape> strategyPads(const GraphView& view, const Placement& placement);

}  // namespace weft
