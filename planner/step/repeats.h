// Which operations of the annotated step run a second time in a step, by a record: forward ones in the backward pass,
// and gathers of the backward pass for the gradients of weights, where these run apart.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "planner/decisions.h"
#include "planner/step/place.h"

namespace weft {

// The name of a mask in ReshardDecision::how.
std::string howOfMask(int64_t dim);

class Repeats {
 public:
  explicit Repeats(const Decisions& decisions);

  // An operator of the program, by its number. `partialOverTime`: is a result a sum over the micro-batches? It is whole
  // only after all of them, and never runs again.
  bool ofOperator(int64_t id, const Place& place, bool partialOverTime) const;

  // A reshard or mask, by its name in the record: id, index, how and stage of `name`. One of the backward pass runs
  // again where an entry says so; one of the forward pass follows what it changes where there is none. `follows`: does
  // that run again, on the same stage?
  bool ofMove(const ReshardDecision& name, const Place& place, bool partialOverTime, bool follows) const;

 private:
  using Key = std::tuple<int64_t, unsigned, std::string, int64_t>;
  static Key keyOf(const ReshardDecision& entry) { return {entry.id, entry.index, entry.how, entry.stage}; }

  std::map<int64_t, bool> operators_;
  std::map<Key, bool> moves_;
};

}  // namespace weft
