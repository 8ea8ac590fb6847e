#include "runtime/plan/match_collectives.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

// A rank's place in its schedule, always at a collective or at the end.
class Cursor {
 public:
  Cursor(const plan::Plan& plan, const google::protobuf::RepeatedPtrField<plan::Action>& actions)
      : plan_(plan), actions_(actions) {
    skipKernels();
  }

  // The collective this rank is at; null at the end.
  const plan::Instruction* at() const {
    return action_ == actions_.size() ? nullptr : &function().instructions(instruction_);
  }

  void advance() {
    ++instruction_;
    skipKernels();
  }

 private:
  const plan::Function& function() const { return plan_.functions(static_cast<int>(actions_[action_].function())); }

  void skipKernels() {
    for (; action_ < actions_.size(); ++action_, instruction_ = 0) {
      for (; instruction_ < function().instructions_size(); ++instruction_) {
        if (function().instructions(instruction_).has_collective()) {
          return;
        }
      }
    }
  }

  const plan::Plan& plan_;
  const google::protobuf::RepeatedPtrField<plan::Action>& actions_;
  int action_ = 0;
  int instruction_ = 0;
};

class Play {
 public:
  Play(const plan::Plan& plan, bool init) : plan_(plan) {
    for (const plan::RankSchedule& schedule : plan.schedules()) {
      cursors_.emplace_back(plan, init ? schedule.init() : schedule.step());
    }
    for (int64_t rank = 0; rank < plan.ranks(); ++rank) {
      all_.push_back(rank);
    }
    indexGroups();
  }

  absl::Status run() {
    // A rank is looked at again whenever it moved on; a group meets when its last member arrives.
    std::vector<int64_t> moved = all_;
    while (!moved.empty()) {
      const int64_t rank = moved.back();
      moved.pop_back();
      const plan::Instruction* instruction = cursors_[rank].at();
      if (instruction == nullptr) {
        continue;
      }
      const std::vector<int64_t>& group = groupOf(*instruction, rank);
      if (!std::all_of(group.begin(), group.end(), [&](int64_t other) { return standsWith(other, group); })) {
        continue;
      }
      for (const int64_t other : group) {
        WEFT_RETURN_IF_ERROR(compare(rank, other));
      }
      for (const int64_t other : group) {
        cursors_[other].advance();
        moved.push_back(other);
      }
    }
    return allDone();
  }

 private:
  void indexGroups() {
    for (const plan::GroupSet& set : plan_.group_sets()) {
      std::vector<std::vector<int64_t>>& groups = groups_.emplace_back();
      std::vector<int>& groupOfRank = groupOfRank_.emplace_back(plan_.ranks());
      for (const auto& group : set.groups()) {
        for (const int64_t rank : group.ranks()) {
          groupOfRank[rank] = static_cast<int>(groups.size());
        }
        groups.emplace_back(group.ranks().begin(), group.ranks().end());
      }
    }
  }

  const std::vector<int64_t>& groupOf(const plan::Instruction& instruction, int64_t rank) const {
    const plan::Collective& collective = instruction.collective();
    if (collective.kind() == plan::PERMUTE) {
      return all_;
    }
    return groups_[collective.group_set()][groupOfRank_[collective.group_set()][rank]];
  }

  bool standsWith(int64_t rank, const std::vector<int64_t>& group) const {
    const plan::Instruction* instruction = cursors_[rank].at();
    return instruction != nullptr && groupOf(*instruction, rank) == group;
  }

  absl::Status compare(int64_t rank, int64_t other) const {
    const plan::Instruction& mine = *cursors_[rank].at();
    const plan::Instruction& theirs = *cursors_[other].at();
    if (&mine == &theirs) {
      return absl::OkStatus();
    }
    bool same = mine.collective().kind() == theirs.collective().kind() &&
                mine.collective().reduction() == theirs.collective().reduction() &&
                mine.inputs_size() == theirs.inputs_size();
    for (int i = 0; same && i < mine.inputs_size(); ++i) {
      const plan::Buffer& a = plan_.buffers(static_cast<int>(mine.inputs(i).buffer()));
      const plan::Buffer& b = plan_.buffers(static_cast<int>(theirs.inputs(i).buffer()));
      same = a.type() == b.type() && std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
    }
    return same ? absl::OkStatus()
                : absl::DataLossError(absl::StrCat("plan is inconsistent: rank ", rank, " calls ", describe(mine),
                                                   " where rank ", other, " of its group calls ", describe(theirs)));
  }

  static std::string describe(const plan::Instruction& instruction) {
    return absl::StrCat(plan::CollectiveKind_Name(instruction.collective().kind()), " '", instruction.label(), "' of ",
                        instruction.inputs_size(), " tensors");
  }

  absl::Status allDone() const {
    for (const int64_t rank : all_) {
      if (const plan::Instruction* instruction = cursors_[rank].at()) {
        return absl::DataLossError(absl::StrCat("plan is inconsistent: rank ", rank, " would wait for ever at ",
                                                describe(*instruction), ": its group never meets there"));
      }
    }
    return absl::OkStatus();
  }

  const plan::Plan& plan_;
  std::vector<Cursor> cursors_;
  std::vector<int64_t> all_;
  std::vector<std::vector<std::vector<int64_t>>> groups_;
  std::vector<std::vector<int>> groupOfRank_;
};

}  // namespace

absl::Status matchCollectives(const plan::Plan& plan) {
  WEFT_RETURN_IF_ERROR(Play(plan, true).run());
  return Play(plan, false).run();
}

}  // namespace weft
