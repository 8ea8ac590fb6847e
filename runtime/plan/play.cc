#include "runtime/plan/play.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/describe.h"
#include "runtime/plan/limits.h"
#include "runtime/plan/rank_groups.h"
#include "runtime/plan/routes.h"
#include "runtime/plan/statistics.h"

namespace weft {
namespace {

using Actions = google::protobuf::RepeatedPtrField<plan::Action>;

// Ranks that an error names, of a chain that wait for one another.
constexpr size_t kMaxNamed = 6;

bool sameCalls(const Actions& a, const Actions& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const plan::Action& x, const plan::Action& y) { return x.function() == y.function(); });
}

// What the ranks of a submesh share.
struct Submesh {
  explicit Submesh(const plan::Plan& of) : plan(of), groups(of), arrivals(groups.count()) {
    for (const plan::Function& function : of.functions()) {
      auto& list = together.emplace_back();
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_collective() || instruction.has_transfer()) {
          list.push_back(&instruction);
        }
      }
    }
  }

  const plan::Plan& plan;
  size_t firstActor = 0;
  int64_t firstRank = 0;
  RankGroups groups;
  std::vector<std::vector<const plan::Instruction*>> together;  // [function]: what is done with other ranks
  std::vector<int64_t> arrivals;                                // members that stand at a collective, by group
};

// A rank's place in its schedule; or, where all ranks of a submesh do the same, that of all of them.
struct Actor {
  size_t submesh = 0;
  int64_t rank = 0;  // in the submesh
  const Actions* actions = nullptr;
  int action = 0;
  size_t at = 0;         // in what the function does with other ranks
  size_t outlet = 0;     // of a send to several ranks: done so far
  bool arrived = false;  // counted at the collective it stands at
  bool listed = true;    // to be looked at
};

// The messages of one channel to one rank.
struct Mail {
  int64_t capacity = 0;
  size_t target = 0;            // actor
  std::vector<size_t> sources;  // actors
  std::vector<int64_t> sent;    // by each source
  int64_t complete = 0;         // messages of which all sources sent their part
  int64_t received = 0;
};

class Play {
 public:
  // `alike`: all ranks of a submesh have the same calls and are played as one. They can go through a run side by side:
  // a
  // collective meets at once, and of a channel all ranks of a submesh have sent and received equally often.
  Play(const plan::Plan& plan, bool init, bool alike) : init_(init), alike_(alike) {
    int64_t rank = 0;
    for (const plan::Plan* submesh : submeshesOf(plan)) {
      submeshes_.push_back(std::make_unique<Submesh>(*submesh));
      submeshes_.back()->firstActor = actors_.size();
      submeshes_.back()->firstRank = rank;
      for (int64_t place = 0; place < (alike ? 1 : submesh->ranks()); ++place) {
        const plan::RankSchedule& schedule = submesh->schedules(static_cast<int>(place));
        actors_.push_back({submeshes_.size() - 1, place, init ? &schedule.init() : &schedule.step()});
        waiting_.push_back(actors_.size() - 1);
      }
      rank += submesh->ranks();
    }
    const Routes routes(plan);
    for (const auto& submesh : submeshes_) {
      addMail(*submesh, routes);
    }
  }

  absl::Status run() {
    while (!waiting_.empty()) {
      const size_t actor = waiting_.back();
      waiting_.pop_back();
      actors_[actor].listed = false;
      while (const plan::Instruction* instruction = standing(actor)) {
        WEFT_ASSIGN_OR_RETURN(const bool done, perform(actor, *instruction));
        if (!done) {
          break;
        }
      }
    }
    WEFT_RETURN_IF_ERROR(checkAllDone());
    return checkEmpty();
  }

 private:
  void addMail(const Submesh& submesh, const Routes& routes) {
    for (const auto& list : submesh.together) {
      for (const plan::Instruction* instruction : list) {
        if (instruction->has_transfer() && !instruction->transfer().send()) {
          addMail(submesh, instruction->transfer(), routes);
        }
      }
    }
  }

  void addMail(const Submesh& receiver, const plan::Transfer& transfer, const Routes& routes) {
    const size_t sender = submeshes_[transfer.submesh()]->firstActor;
    const int64_t targets = alike_ ? 1 : receiver.plan.ranks();
    for (int64_t place = 0; place < targets; ++place) {
      Mail& mail = mails_.emplace_back();
      mail.capacity = transfer.capacity();
      mail.target = receiver.firstActor + place;
      inlets_[{transfer.channel(), place}] = mails_.size() - 1;
      for (const int64_t source : alike_ ? std::vector<int64_t>{0} : routes.sources(transfer.channel(), place)) {
        mail.sources.push_back(sender + source);
        mail.sent.push_back(0);
        outlets_[{transfer.channel(), source}].push_back({mails_.size() - 1, mail.sources.size() - 1});
      }
    }
  }

  // What the actor does next with others; null at the end of its schedule.
  const plan::Instruction* standing(size_t index) {
    Actor& actor = actors_[index];
    for (; actor.action < actor.actions->size(); ++actor.action, actor.at = 0) {
      const auto& list = submeshes_[actor.submesh]->together[(*actor.actions)[actor.action].function()];
      if (actor.at < list.size()) {
        return list[actor.at];
      }
    }
    return nullptr;
  }

  void look(size_t actor) {
    if (!actors_[actor].listed) {
      actors_[actor].listed = true;
      waiting_.push_back(actor);
    }
  }

  // False where the actor has to wait.
  absl::StatusOr<bool> perform(size_t index, const plan::Instruction& instruction) {
    if (instruction.has_collective()) {
      return alike_ ? pass(index) : meet(index, instruction);
    }
    return instruction.transfer().send() ? send(index, instruction.transfer()) : receive(index, instruction.transfer());
  }

  bool pass(size_t index) {
    ++actors_[index].at;
    actors_[index].outlet = 0;
    return true;
  }

  absl::StatusOr<bool> meet(size_t index, const plan::Instruction& instruction) {
    Actor& actor = actors_[index];
    Submesh& submesh = *submeshes_[actor.submesh];
    const int group = submesh.groups.of(instruction.collective(), actor.rank);
    const std::vector<int64_t>& members = submesh.groups.members(group);
    submesh.arrivals[group] += actor.arrived ? 0 : 1;
    actor.arrived = true;
    if (submesh.arrivals[group] < static_cast<int64_t>(members.size())) {
      return false;
    }
    submesh.arrivals[group] = 0;
    for (const int64_t member : members) {
      const size_t other = submesh.firstActor + member;
      WEFT_RETURN_IF_ERROR(compare(index, instruction, other, *standing(other)));
    }
    for (const int64_t member : members) {
      const size_t other = submesh.firstActor + member;
      actors_[other].arrived = false;
      pass(other);
      look(other);
    }
    return false;  // it is on the list again, as all members are
  }

  absl::Status compare(size_t index, const plan::Instruction& mine, size_t other,
                       const plan::Instruction& theirs) const {
    if (&mine == &theirs) {
      return absl::OkStatus();
    }
    const plan::Plan& plan = submeshes_[actors_[index].submesh]->plan;
    bool same = mine.collective().kind() == theirs.collective().kind() &&
                mine.collective().reduction() == theirs.collective().reduction() &&
                mine.inputs_size() == theirs.inputs_size();
    for (int i = 0; same && i < mine.inputs_size(); ++i) {
      const plan::Buffer& a = plan.buffers(static_cast<int>(mine.inputs(i).buffer()));
      const plan::Buffer& b = plan.buffers(static_cast<int>(theirs.inputs(i).buffer()));
      same = a.type() == b.type() && std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
    }
    const auto text = [&](const plan::Instruction& instruction) {
      return absl::StrCat(describe(plan, instruction), " of ", instruction.inputs_size(), " tensors");
    };
    return same ? absl::OkStatus()
                : inconsistentPlan("rank ", rankOf(index), " calls ", text(mine), " where rank ", rankOf(other),
                                   " of its group calls ", text(theirs));
  }

  bool send(size_t index, const plan::Transfer& transfer) {
    Actor& actor = actors_[index];
    const auto found = outlets_.find({transfer.channel(), actor.rank});
    const size_t count = found == outlets_.end() ? 0 : found->second.size();
    for (; actor.outlet < count; ++actor.outlet) {
      const auto [number, source] = found->second[actor.outlet];
      Mail& mail = mails_[number];
      if (mail.sent[source] - mail.received >= mail.capacity) {
        return false;
      }
      if (mail.sent[source]++ == mail.complete) {
        mail.complete = *std::min_element(mail.sent.begin(), mail.sent.end());
      }
      look(mail.target);
    }
    return pass(index);
  }

  bool receive(size_t index, const plan::Transfer& transfer) {
    Mail& mail = mails_[inlets_.at({transfer.channel(), actors_[index].rank})];
    if (mail.received == mail.complete) {
      return false;
    }
    ++mail.received;
    for (const size_t source : mail.sources) {
      look(source);
    }
    return pass(index);
  }

  int64_t rankOf(size_t actor) const { return submeshes_[actors_[actor].submesh]->firstRank + actors_[actor].rank; }

  // Whom an actor waits for, and for what.
  struct Wait {
    size_t other = 0;
    std::string reason;
  };

  Wait waitOf(size_t index, const plan::Instruction& instruction) const {
    const Actor& actor = actors_[index];
    const Submesh& submesh = *submeshes_[actor.submesh];
    if (instruction.has_collective()) {
      const int group = submesh.groups.of(instruction.collective(), actor.rank);
      for (const int64_t member : submesh.groups.members(group)) {
        const size_t other = submesh.firstActor + member;
        if (!standsAt(other, group)) {
          return {other, absl::StrCat("for rank ", rankOf(other), " of its group")};
        }
      }
    }
    const plan::Transfer& transfer = instruction.transfer();
    if (transfer.send()) {
      const Mail& mail = mails_[outlets_.at({transfer.channel(), actor.rank})[actor.outlet].first];
      return {mail.target, absl::StrCat("for room in channel ", transfer.channel(), ", which holds ", mail.capacity,
                                        " messages for rank ", rankOf(mail.target))};
    }
    const Mail& mail = mails_[inlets_.at({transfer.channel(), actor.rank})];
    const size_t late = std::find(mail.sent.begin(), mail.sent.end(), mail.complete) - mail.sent.begin();
    return {mail.sources[late],
            absl::StrCat("for a message of rank ", rankOf(mail.sources[late]), " in channel ", transfer.channel())};
  }

  bool standsAt(size_t index, int group) const {
    const Actor& actor = actors_[index];
    if (!actor.arrived) {
      return false;
    }
    const Submesh& submesh = *submeshes_[actor.submesh];
    const plan::Instruction& at = *submesh.together[(*actor.actions)[actor.action].function()][actor.at];
    return submesh.groups.of(at.collective(), actor.rank) == group;
  }

  absl::Status checkAllDone() {
    for (size_t actor = 0; actor < actors_.size(); ++actor) {
      if (standing(actor) != nullptr) {
        return stuck(actor);
      }
    }
    return absl::OkStatus();
  }

  // The ranks that wait for one another, from `actor` on.
  absl::Status stuck(size_t actor) {
    std::string text;
    std::set<size_t> named;
    for (; named.insert(actor).second && named.size() <= kMaxNamed;) {
      const plan::Instruction* instruction = standing(actor);
      if (instruction == nullptr) {
        absl::StrAppend(&text, "; rank ", rankOf(actor), " is at the end of its ", init_ ? "init" : "step");
        break;
      }
      const Wait wait = waitOf(actor, *instruction);
      absl::StrAppend(&text, text.empty() ? "" : "; ", "rank ", rankOf(actor), " would wait for ever at ",
                      describe(submeshes_[actors_[actor].submesh]->plan, *instruction), ", ", wait.reason);
      actor = wait.other;
    }
    return inconsistentPlan(text);
  }

  absl::Status checkEmpty() const {
    for (const auto& [key, index] : inlets_) {
      const Mail& mail = mails_[index];
      for (size_t i = 0; i < mail.sources.size(); ++i) {
        if (mail.sent[i] != mail.received) {
          return inconsistentPlan("in ", init_ ? "init" : "a step", " rank ", rankOf(mail.sources[i]), " sends ",
                                  mail.sent[i], " messages in channel ", key.first, ", of which rank ",
                                  rankOf(mail.target), " receives ", mail.received);
        }
      }
    }
    return absl::OkStatus();
  }

  bool init_;
  bool alike_;
  std::vector<std::unique_ptr<Submesh>> submeshes_;
  std::vector<Actor> actors_;
  std::vector<Mail> mails_;
  // Keyed by channel and by the rank's index in its submesh.
  std::map<std::pair<uint32_t, int64_t>, size_t> inlets_;
  std::map<std::pair<uint32_t, int64_t>, std::vector<std::pair<size_t, size_t>>> outlets_;  // mail, which source of it
  std::vector<size_t> waiting_;
};

// Do all ranks of each submesh call the same functions in the same order?
bool areAlike(const plan::Plan& plan, bool init) {
  for (const plan::Plan* submesh : submeshesOf(plan)) {
    const plan::RankSchedule& first = submesh->schedules(0);
    for (const plan::RankSchedule& schedule : submesh->schedules()) {
      if (!sameCalls(init ? schedule.init() : schedule.step(), init ? first.init() : first.step())) {
        return false;
      }
    }
  }
  return true;
}

absl::Status play(const plan::Plan& plan, bool init) {
  // If submeshes played as one get stuck, it is said of ranks.
  if (areAlike(plan, init) && Play(plan, init, /*alike=*/true).run().ok()) {
    return absl::OkStatus();
  }
  return Play(plan, init, /*alike=*/false).run();
}

}  // namespace

absl::Status checkProgress(const plan::Plan& plan) {
  WEFT_RETURN_IF_ERROR(play(plan, /*init=*/true));
  return play(plan, /*init=*/false);
}

}  // namespace weft
