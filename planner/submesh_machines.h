// The machine that each submesh of a program runs on: ranks lie on kinds of devices in order (Machine::of).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/layout/stage_meshes.h"
#include "planner/machine/machine.h"

namespace weft {

class SubmeshMachines {
 public:
  SubmeshMachines(const Machine& machine, const StageMeshes& meshes);

  // Of all ranks of the program together.
  const Machine& all() const { return all_; }
  const Machine& of(int64_t submesh) const { return machines_[numbers_[submesh]]; }
  // Submeshes on ranks of the same kinds have the same number.
  int64_t number(int64_t submesh) const { return numbers_[submesh]; }
  bool areAlike() const { return machines_.size() == 1; }

 private:
  Machine all_;
  std::vector<Machine> machines_;
  std::vector<int64_t> numbers_;  // by submesh
};

}  // namespace weft
